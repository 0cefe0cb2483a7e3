"""The claim about a release: one value, and one sentence that a regulator can read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from evenhand import _values
from evenhand._checks import at_least, did_you_mean, flag, positive
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.relation import apart, check_relation, each, words_of

EXACT_GAUSSIAN: Final = "exact Gaussian DP accounting"
NOT_AS_CLAIMED: Final = "NOT PRIVATE AS CLAIMED"
BASIC: Final = "basic composition of epsilon and delta"
AS_PRINTED: Final = "the accounting of a paper as it is printed, which does not hold"
"""Of a published method that runs as it stands in its paper, to compare with."""

LITTLE: Final = 10.0
NOTHING: Final = 100.0
"""Epsilons above which a claim says little, and nothing."""

NEVER_COVERED: Final = "timing, side channels and error messages"
"""What no bound here is about; the last of ``not_covered`` wherever there is a bound."""

_TEXTS: Final = ("unit", "neighbors", "noise", "accounting", "reason")
_LISTS: Final = ("public", "not_covered", "warnings")


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What is promised, to whom, under which assumptions, and what is left out.

    Parameters
    ----------
    epsilon, delta : float
        Bound on the privacy loss in nats, and the probability with which it may fail. ``inf`` where
        there is no bound: only with ``holds=False`` and a reason, as ``no_guarantee`` makes it.
    unit : str
        Whose data are protected: "record", "person", or any noun; ``attribute_of("person")`` where
        only the sensitive attribute is.
    neighbors : str
        Which change of the data the bound is about: one of ``NEIGHBORS``.
    noise : str
        What kind of noise was drawn.
    accounting : str
        How the costs were added up.
    public : tuple of str
        What is treated as known to everybody.
    not_covered : tuple of str
        What touched, or may touch, the private data outside this bound; ``NEVER_COVERED`` is added.
    warnings : tuple of str
        What a reader must know before relying on it.
    holds : bool
        False if nothing is promised; the sentence then starts with NOT PRIVATE.
    mu_squared : float, optional
        The same bound in Gaussian DP. With it two guarantees add up tightly.
    reason : str
        Why it does not hold; only with ``holds=False``.

    Examples
    --------
    >>> print(Guarantee(epsilon=3.0, delta=1e-5, unit="person", neighbors="add or remove one",
    ...                 noise="exact discrete noise (OpenDP)", accounting=EXACT_GAUSSIAN,
    ...                 public=("the unlabelled rows",), not_covered=("the choice of sigma",)))
    The release is (3.0, 1e-05)-differentially private for each person (neighbors: add or remove
    one person), with exact discrete noise (OpenDP) and exact Gaussian DP accounting; taken as
    public: the unlabelled rows; not covered: the choice of sigma, timing, side channels and
    error messages.
    """

    epsilon: float
    delta: float
    unit: str
    neighbors: str
    noise: str
    accounting: str
    public: tuple[str, ...]
    not_covered: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    holds: bool = True
    mu_squared: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.epsilon == math.inf:
            self._check_unbounded()
        else:
            object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got delta={self.delta!r}.")
        for name in _TEXTS:
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be text, got {getattr(self, name)!r}.")
        for name in _LISTS:
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        if self.bounded:
            said = [words for words in self.not_covered if words != NEVER_COVERED]
            object.__setattr__(self, "not_covered", (*said, NEVER_COVERED))
        check_relation(self.unit, self.neighbors)
        flag("holds", self.holds)
        if self.holds and self.reason:
            raise ValueError(f"reason says why a guarantee fails, but holds=True: {self.reason!r}.")
        if self.mu_squared is not None:
            self._check_mu()

    @property
    def bounded(self) -> bool:
        """Whether there is a bound at all, be it one that holds or one that would."""
        return math.isfinite(self.epsilon)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader must know first: the warnings, and what so large an epsilon says."""
        large = epsilon_warning(self.epsilon) if self.bounded else ""
        return tuple(filter(None, (*self.warnings, large)))

    @property
    def as_printed(self) -> bool:
        """Whether it is of a paper's method as it is printed, whose claim does not hold."""
        return not self.holds and AS_PRINTED in self.accounting

    @property
    def verdict(self) -> str:
        """What a reader must see first where nothing is promised; empty where the claim holds."""
        if self.holds:
            return ""
        return NOT_AS_CLAIMED if self.as_printed else "NOT PRIVATE"

    def __str__(self) -> str:
        who = words_of(self.unit, self.neighbors)
        claim = (
            f"({self.epsilon!r}, {self.delta!r})-differentially private for {each(self.unit)} "
            f"(neighbors: {who}), with {self.noise} and {self.accounting}"
        )
        if self.holds:
            said = [f"The release is {claim}"]
        elif not self.bounded:
            said = [f"{self.verdict}: {self.reason}; nothing is promised about any {self.unit}"]
        else:
            why = self.reason or f"the noise protects nobody ({self.noise})"
            said = [f"{self.verdict}: {why}; if that were mended it would be {claim}"]
        for words, items in (
            ("taken as public", self.public),
            ("not covered", self.not_covered),
            ("warning", self.warnings),
        ):
            if items:
                said.append(f"{words}: {', '.join(items)}")
        return "; ".join(said) + "."

    def __add__(self, other: Guarantee) -> Guarantee:
        if not isinstance(other, Guarantee):
            return NotImplemented
        # Where nothing is promised, nothing is promised for every unit and relation.
        known = self if self.bounded else other
        for name in ("unit", "neighbors") if self.bounded and other.bounded else ():
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(apart(name, mine, theirs))
        return Guarantee(
            **self._bound_with(other),
            unit=known.unit,
            neighbors=known.neighbors,
            noise=" and ".join(dict.fromkeys((self.noise, other.noise))),
            public=_once(self.public, other.public),
            not_covered=_once(self.not_covered, other.not_covered),
            warnings=_once(self.warnings, other.warnings),
            holds=self.holds and other.holds,
            reason=" and ".join(dict.fromkeys(r for r in (self.reason, other.reason) if r)),
        )

    def with_warning(self, text: str) -> Guarantee:
        """Return the same guarantee with one more warning, if ``text`` says anything."""
        return replace(self, warnings=_once(self.warnings, (text,))) if text else self

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; no bound is None, for JSON has no infinity."""
        values = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
        return values if self.bounded else values | {"epsilon": None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Guarantee:
        """Read what ``to_dict`` wrote. A missing or unknown key is an error, never a default."""
        known = [field.name for field in fields(cls)]
        unknown = [key for key in values if key not in known]
        if unknown:
            raise ValueError(
                f"A guarantee has no key {unknown[0]!r}.{did_you_mean(unknown[0], known)} "
                f"Its keys are {', '.join(known)}."
            )
        missing = [name for name in known if name not in values]
        if missing:
            raise ValueError(
                f"This guarantee lacks the key{'s' * (len(missing) > 1)} {', '.join(missing)}. "
                f"Nothing is assumed in their place."
            )
        epsilon = math.inf if values["epsilon"] is None else values["epsilon"]
        return cls(**{**values, "epsilon": epsilon})

    def _bound_with(self, other: Guarantee) -> dict[str, Any]:
        """Compose in Gaussian DP if both are known there, else by adding epsilon and delta."""
        if self.mu_squared is not None and other.mu_squared is not None:
            mu_squared = self.mu_squared + other.mu_squared
            delta = max(self.delta, other.delta)
            if delta > 0:
                return {
                    "epsilon": epsilon_from_mu(math.sqrt(mu_squared), delta),
                    "delta": delta,
                    "accounting": _both(self.accounting, other.accounting),
                    "mu_squared": mu_squared,
                }
        if self.delta + other.delta >= 1:
            raise ValueError(
                f"The deltas add up to {self.delta + other.delta}, which promises nothing. "
                f"Choose smaller ones."
            )
        return {
            "epsilon": self.epsilon + other.epsilon,
            "delta": self.delta + other.delta,
            "accounting": _both(self.accounting, other.accounting, BASIC),
        }

    def _check_unbounded(self) -> None:
        if self.holds:
            raise ValueError(
                "epsilon must be finite and > 0, got epsilon=inf, which promises nothing. Say so "
                "with no_guarantee(reason)."
            )
        if not self.reason:
            raise ValueError(
                "reason must say why there is no bound (epsilon=inf), for example 'it was trained "
                "without noise'."
            )
        if self.mu_squared is not None:
            raise ValueError(
                f"mu_squared={self.mu_squared!r} is a bound, and epsilon=inf says that there is "
                f"none. Leave one of them out."
            )

    def _check_mu(self) -> None:
        mu_squared = positive("mu_squared", self.mu_squared or 0.0)
        object.__setattr__(self, "mu_squared", mu_squared)
        if self.delta == 0:
            raise ValueError("mu_squared does not go with delta=0: Gaussian DP needs a delta > 0.")
        needed = epsilon_from_mu(math.sqrt(mu_squared), self.delta)
        if self.epsilon < needed * (1 - 1e-6):
            raise ValueError(
                f"mu_squared={mu_squared!r} means epsilon={needed:.6g} at delta={self.delta!r}, "
                f"above the epsilon={self.epsilon!r} that is claimed."
            )


def no_guarantee(
    reason: str,
    *,
    unit: str = "record",
    neighbors: str = "replace one",
    public: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> Guarantee:
    """Return the claim of a release that was made without protection: there is none.

    Parameters
    ----------
    reason : str
        Why nothing is promised.
    unit, neighbors : str
        About whom nothing is promised, and about which change of the data.
    public, warnings : tuple of str
        As for ``Guarantee``.

    Examples
    --------
    >>> print(no_guarantee("the model was trained without noise"))
    NOT PRIVATE: the model was trained without noise; nothing is promised about any record.
    """
    return Guarantee(
        epsilon=math.inf,
        delta=0.0,
        unit=unit,
        neighbors=neighbors,
        noise="no noise",
        accounting="no accounting",
        public=public,
        not_covered=(),
        warnings=warnings,
        holds=False,
        reason=reason,
    )


def as_printed(whole: Guarantee, reason: str) -> Guarantee:
    """Return what may be said of a release whose paper's own accounting does not hold."""
    none = no_guarantee(
        reason,
        unit=whole.unit,
        neighbors=whole.neighbors,
        public=whole.public,
        warnings=whole.warnings,
    )
    return replace(none, noise=whole.noise, accounting=AS_PRINTED)


def delta_warning(delta: float, n_records: int, *, n_is_private: bool = False) -> str:
    """Return a warning if ``delta`` is too large for ``n_records``, else an empty text.

    Where ``n_is_private`` the text quotes the number under ``show_values()`` alone; that there is a
    warning depends on it, so such a text is for the curator and enters no claim.

    Publishing one random record in full is (0, 1 / n_records)-private by the letter, so a larger
    delta promises too little.

    Examples
    --------
    >>> delta_warning(1e-3, n_records=5000)
    'delta=0.001 is not below 1 / 5000 records: publishing one record outright would satisfy it'
    >>> delta_warning(1e-5, n_records=5000)
    ''
    """
    if delta * at_least("n_records", n_records, 1) < 1:
        return ""
    n = _values.count(n_records) if n_is_private else n_records
    whose = "; how many there are is private: this is for the curator, and not to be published"
    return (
        f"delta={delta!r} is not below 1 / {n} records: publishing one record outright "
        f"would satisfy it{whose if n_is_private else ''}"
    )


def epsilon_warning(epsilon: float) -> str:
    """Return a warning if ``epsilon`` promises little or nothing, else an empty text.

    Of two equally likely data sets, (epsilon, 0)-privacy lets an attacker guess the right one with
    probability ``1 / (1 + e^-epsilon)``: at 10 that is .99995, at 100 it is 1 in any arithmetic.

    Examples
    --------
    >>> epsilon_warning(30.0)
    'epsilon=30 is above 10 and says little: an outcome may be 10^14 times as likely with a record'
    >>> epsilon_warning(10.0)
    ''
    """
    if epsilon <= LITTLE:
        return ""
    if epsilon > NOTHING:
        return f"epsilon={epsilon:g} is above {NOTHING:g} and says nothing: it is no protection"
    times = f"10^{math.ceil(epsilon / math.log(10))}"
    return (
        f"epsilon={epsilon:g} is above {LITTLE:g} and says little: an outcome may be {times} times "
        f"as likely with a record"
    )


def _texts(name: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{name} must be several texts, got {values!r}. Write ({values!r},).")
    return tuple(values)


def _once(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(first + second))


def _both(*accounts: str) -> str:
    return ", ".join(dict.fromkeys(accounts))
