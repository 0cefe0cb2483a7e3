"""A claim and a ledger that come from a file: computed again, never believed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evenhand._checks import at_least, non_negative
from evenhand.privacy.budget import Budget
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.guarantee import EXACT_GAUSSIAN, Guarantee
from evenhand.privacy.ledger_store import Entry
from evenhand.privacy.noise import NoPrivacy, SeededNoise

CLOSE: Final = 1e-6
"""Relative difference that rounding may leave between two ways to one number."""

_PURE: Final = ("LaplaceTable", "RandomizedResponse")  # their delta is 0
_NO_GAUSSIAN: Final = (*_PURE, "SubsampledGaussian")  # of which mu**2 speaks at one delta only
_TEST_MODE: Final = (SeededNoise.name, NoPrivacy.name)


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedLedger:
    """The ledger of a finished run, as it was saved. Nothing can be charged to it."""

    record: Mapping[str, Any]
    """As ``Ledger.to_dict`` gave it."""

    @property
    def spent(self) -> float:
        """Sum of ``mu**2`` that the run charged."""
        return float(self.record["mu_squared_spent"])

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was charged, oldest first."""
        return tuple(Entry(**entry) for entry in self.record["entries"])

    def to_dict(self) -> dict[str, Any]:
        """Return the account as plain values, as ``Ledger.to_dict`` did."""
        return dict(self.record)


def gaussian_budget(guarantee: Guarantee, ledger: Mapping[str, Any]) -> tuple[float | None, float]:
    """Return the mu**2 that a run kept within, and with what probability it may fail beside it.

    None where its ledger does not say so: it is no Gaussian cost, or several ledgers (whose costs
    have no common currency), or the claim counts more than it, or for others.

    Parameters
    ----------
    guarantee : Guarantee
        The claim of the run. A part of its delta may be set aside, outside the ledger.
    ledger : mapping
        As ``Ledger.to_dict`` gave it.
    """
    kinds = {_kind(entry) for entry in ledger["entries"]}
    aside = guarantee.delta - ledger["delta"]
    told = (
        "parts" not in ledger
        and bool(kinds)
        and kinds.isdisjoint(_NO_GAUSSIAN)
        and math.isclose(guarantee.epsilon, ledger["epsilon"], rel_tol=CLOSE)
        and aside >= 0.0
        and all(ledger[name] == getattr(guarantee, name) for name in ("unit", "neighbors"))
    )
    return (float(ledger["mu_squared_budget"]), aside) if told else (None, 0.0)


def claim_record(guarantee: Guarantee, ledger: Any) -> dict[str, Any]:
    """Return a guarantee and its ledger as plain values, as ``read_claim`` takes them."""
    return {
        "sentence": str(guarantee),
        "guarantee": guarantee.to_dict(),
        "ledger": None if ledger is None else ledger.to_dict(),
    }


def read_claim(
    record: Mapping[str, Any], *, neighbors: Sequence[str], own_words: bool = True
) -> tuple[Guarantee, SavedLedger | None]:
    """Return the claim of a file if its ledger, and the method that made it, bear it out.

    It finds a claim that was edited, not an attacker who writes a ledger to suit: only a signature
    does (``docs/security.md``).

    Parameters
    ----------
    record : mapping
        As ``claim_record`` gave it; may hold more.
    neighbors : sequence of str
        Changes of the data that the method can be private about; empty if it never is private.
    own_words : bool
        Whether this version wrote the sentence. That of another may word it in its own way, with
        the same numbers.

    Raises
    ------
    ValueError
        If the claim promises more than its ledger sums to, in any respect.

    Examples
    --------
    >>> from evenhand.privacy import GNMax, Ledger
    >>> ledger = Ledger(Budget(epsilon=3.0, delta=1e-5))
    >>> _ = ledger.release(GNMax(sigma=40.0), [[190, 60]], purpose="an answer")
    >>> record = claim_record(ledger.guarantee(), ledger)
    >>> read_claim(record, neighbors=["replace one"])[0].epsilon
    3.0
    >>> record["ledger"]["entries"] = []
    >>> read_claim(record, neighbors=["replace one"])
    Traceback (most recent call last):
    ...
    ValueError: the ledger has no entries, and a claim rests on what was charged
    """
    guarantee = Guarantee.from_dict(record["guarantee"])
    if not _says(record["sentence"], guarantee, own_words):
        raise ValueError("the claim's sentence does not say what its guarantee says")
    ledger = None if record["ledger"] is None else SavedLedger(record=record["ledger"])
    if not guarantee.bounded:
        return guarantee, ledger
    if guarantee.holds and guarantee.neighbors not in neighbors:
        raise ValueError(
            f"the claim is about neighbors that {guarantee.neighbors}, and the method "
            + (f"is about those that {' or '.join(neighbors)}" if neighbors else "promises nothing")
        )
    if ledger is None:
        raise ValueError("the claim has no ledger, and a bound rests on what was charged")
    _check(guarantee, ledger.record.get("parts", [ledger.record]))
    return guarantee, ledger


def _says(sentence: str, guarantee: Guarantee, own_words: bool) -> bool:
    """Whether a sentence says what the guarantee says, or, if others worded it, its numbers."""
    if own_words:
        return sentence == str(guarantee)
    said = re.findall(r"\(([^()]*)\)-differentially private", sentence)
    numbers = [f"{guarantee.epsilon!r}, {guarantee.delta!r}"] if guarantee.bounded else []
    return said == numbers and sentence.startswith("NOT PRIVATE") == (not guarantee.holds)


def _check(guarantee: Guarantee, parts: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a guarantee that promises more than the ledgers of its parts together."""
    if not parts:
        raise ValueError("the ledger has no parts, and a claim rests on what was charged")
    bounds = [_bound_of(part) for part in parts]
    epsilon, delta = (math.fsum(bound[i] for bound in bounds) for i in (0, 1))
    if guarantee.epsilon < epsilon * (1 - CLOSE):
        raise ValueError(
            f"the claim says epsilon={guarantee.epsilon!r}, and its ledger sums to {epsilon:.6g}"
        )
    if guarantee.delta < delta * (1 - CLOSE):
        raise ValueError(
            f"the claim says delta={guarantee.delta!r}, and its ledger sums to {delta:.6g}"
        )
    for part in parts:
        for name in ("unit", "neighbors"):
            if part[name] != getattr(guarantee, name):
                raise ValueError(
                    f"the claim's {name} is {getattr(guarantee, name)!r}, and its ledger counts "
                    f"for {part[name]!r}"
                )
    protects = all(part["protects"] is True and part["noise"] not in _TEST_MODE for part in parts)
    if guarantee.holds and (not protects or any(mode in guarantee.noise for mode in _TEST_MODE)):
        raise ValueError("the claim holds, and its noise protects nobody")
    if guarantee.accounting == EXACT_GAUSSIAN:
        kinds = {_kind(entry) for part in parts for entry in part["entries"]}
        if kinds & set(_NO_GAUSSIAN):
            raise ValueError(f"the claim's accounting is {EXACT_GAUSSIAN}, and its costs are not")
        spent = math.fsum(part["mu_squared_budget"] for part in parts)
        if guarantee.mu_squared is None or guarantee.mu_squared < spent * (1 - CLOSE):
            raise ValueError(
                f"the claim says mu_squared={guarantee.mu_squared!r}, and its ledger's budget is "
                f"{spent:.6g}"
            )


def _bound_of(part: Mapping[str, Any]) -> tuple[float, float]:
    """Return epsilon and delta of one ledger, from its entries and from its budget."""
    entries = part["entries"]
    if not entries:
        raise ValueError("the ledger has no entries, and a claim rests on what was charged")
    costs, kinds = [], set()
    for entry in entries:
        at_least("n_uses of an entry", entry["n_uses"], 0)
        costs.append(non_negative("mu_squared of an entry", entry["mu_squared"]))
        kinds.add(_kind(entry))
        if not f"{entry['account']}/".startswith(f"{part['account']}/"):  # or of one within it
            raise ValueError(
                f"an entry of the ledger is of the account {entry['account']!r}, and the ledger "
                f"is of {part['account']!r}"
            )
    alone = kinds & set(_NO_GAUSSIAN)
    if alone and len(kinds) > 1:
        raise ValueError(f"costs of {', '.join(sorted(kinds))} do not add up in one ledger")
    budget = Budget(epsilon=part["epsilon"], delta=part["delta"])
    spent = math.fsum(costs)
    if not spent > 0:
        raise ValueError("the entries of the ledger cost nothing, and a claim rests on their cost")
    for name, value, found in (
        ("mu_squared_spent", part["mu_squared_spent"], spent),
        ("mu_squared_budget", part["mu_squared_budget"], budget.mu_squared),
        ("epsilon_spent", part["epsilon_spent"], epsilon_from_mu(spent**0.5, budget.delta)),
    ):
        if not math.isclose(non_negative(name, value), found, rel_tol=CLOSE):
            raise ValueError(f"the ledger says {name}={value!r}, and it is {found:.6g}")
    if spent > budget.mu_squared * (1 + CLOSE):
        raise ValueError(
            f"the entries of the ledger sum to mu_squared={spent:.6g}, above its budget of "
            f"{budget.mu_squared:.6g}"
        )
    return budget.epsilon, 0.0 if alone and alone <= set(_PURE) else budget.delta


def _kind(entry: Mapping[str, Any]) -> str:
    """Return the name of the mechanism that a line of the ledger is about."""
    return str(entry["mechanism"]).partition("(")[0]
