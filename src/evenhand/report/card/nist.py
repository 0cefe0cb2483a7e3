"""What NIST SP 800-226 (March 2025) has an evaluator ask of a claim of differential privacy.

The topics are those of the publication, from the top of its pyramid (the parameter and the unit) to
its base (how data are collected and kept), and its named hazards; the wording is ours.
"""

from __future__ import annotations

from typing import Final

from evenhand.privacy.guarantee import NEVER_COVERED
from evenhand.report import claim
from evenhand.report.card.questions import Question, Said, Words
from evenhand.report.card.record import Record

SOURCE: Final = "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees, 2025"


def _bounded(record: Record) -> bool:
    return record.guarantee.bounded


def _meant(term: str) -> Said:
    def said(record: Record) -> Words | None:
        claimed = record.guarantee
        if not claimed.holds:
            return None
        known = dict(claim.meaning(claimed, record.report.allowed))
        return next(words for name, words in known.items() if name.startswith(term))

    return said


def _verdict(record: Record) -> str:
    return str(record.guarantee)


def _unit(record: Record) -> str | None:
    claimed = record.guarantee
    if not _bounded(record):
        return None
    return f"{claimed.unit}; neighboring data sets differ by: {claimed.neighbors}"


def _mechanisms(record: Record) -> str | None:
    return record.mechanisms or None


def _composition(record: Record) -> str | None:
    if not record.parts:
        return None
    spent = "; ".join(
        f"account {part['account']!r} charged mu² = {part['mu_squared_spent']:.6g} of "
        f"{part['mu_squared_budget']:.6g}, before the noise was drawn"
        for part in record.parts
    )
    return f"{record.guarantee.accounting}; {spent}"


def _floating_point(record: Record) -> str | None:
    if not _bounded(record):
        return None
    noise = record.guarantee.noise
    if "exact" in noise:
        return f"Noise is whole numbers drawn exactly, not floating-point numbers: {noise}"
    return f"Not excluded: {noise}"


def _tuning(record: Record) -> str | None:
    if not _bounded(record):
        return None
    claimed = record.guarantee
    chosen = " ".join(record.report.choices)
    return (
        f"Not covered by the guarantee: {'; '.join(claimed.not_covered)}. Settings are treated as "
        f"public." + (f" Chosen from public numbers: {chosen}" if chosen else "")
    )


def _public(record: Record) -> str | None:
    claimed = record.guarantee
    return ("; ".join(claimed.public) or "Nothing") if claimed.bounded else None


def _releases(record: Record) -> str | None:
    if not record.parts:
        return None
    accounts = ", ".join(repr(part["account"]) for part in record.parts)
    return (
        f"One: the {record.thing}, charged to {accounts}. Other releases of the same data are not "
        f"in its folder; a store that all of them are charged to holds them"
    )


QUESTIONS: Final = (
    Question("claim", "What exactly is claimed?", says=_verdict),
    Question("epsilon", "How strong is the bound (epsilon)?", says=_meant("Epsilon")),
    Question("delta", "How often may the bound fail (delta)?", says=_meant("Delta")),
    Question("attacker", "What can an attacker gain?", says=_meant("What an attacker")),
    Question("unit", "What is the unit of privacy, and what are neighbors?", says=_unit),
    Question("mechanisms", "Which mechanisms add noise, and how often?", says=_mechanisms),
    Question("composition", "How were costs added up?", says=_composition),
    Question("public", "What is not protected, or assumed to be public?", says=_public),
    Question(
        "tuning",
        "What did preprocessing, exploration and the choice of settings cost?",
        says=_tuning,
    ),
    Question("utility", "How useful is the result?", says=lambda record: record.utility),
    Question(
        "bias", "Does it treat groups differently (systemic or by noise)?", says=lambda r: r.bias
    ),
    Question("releases", "One release or many, and what others of the data?", says=_releases),
    Question("trust", "Who must be trusted (trust model, actors, threats)?", yours=True),
    Question("floating_point", "Is noise safe from floating-point attacks?", says=_floating_point),
    Question(
        "side_channels",
        "Timing and other side channels?",
        says=lambda record: f"Not covered: {NEVER_COVERED}" if _bounded(record) else None,
    ),
    Question("versions", "Which library, in which version?", says=lambda r: r.versions),
    Question("collection", "How were the data collected, and is that protected?", yours=True),
    Question("access", "Who has access to the data, and how are they kept?", yours=True),
    Question(
        "checked",
        "How was the implementation checked?",
        says=lambda record: (
            "evenhand verify compares files, claim and ledger of the folder; evenhand audit tries "
            "to break the claim of the method by attacks. Whether either was run is not recorded"
        ),
    ),
)
"""One row per question. Each answer is a function of the record, whatever the method is."""
