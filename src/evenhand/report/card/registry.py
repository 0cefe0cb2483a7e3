"""An entry for the public registry of deployments of differential privacy, kept by OpenDP.

One row per field of its schema, in its order: the path below ``deployment``, what it asks, and what
the record of any model says. Required fields that nobody filled in are marked as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from evenhand.privacy.guarantee import NEVER_COVERED
from evenhand.report import claim
from evenhand.report.card.questions import BLANK, Answer, Question
from evenhand.report.card.record import Record

SCHEMA: Final = "opendp/deployments-registry-data, schemas/deployments-schema.yaml"
SCHEMA_VERSION: Final = "2026-07-15, commit 3e9c812a924cf01d228f26f6c462c59c391c3f2a"
"""The schema has no number of its own: its date and commit stand for one."""

STATUS: Final = "Draft"
NO_DATE: Final = "1900-01-01"
"""The registry's own mark for a date that is to be filled in."""


def _made(record: Record) -> str | None:
    spending = record.report.spending
    return spending.last[:10] if spending is not None and spending.last else None


def _variant(record: Record) -> str:
    return "Approximate DP" if record.guarantee.delta > 0 else "Pure DP"


def _unprotected(record: Record) -> str:
    claimed = record.guarantee
    public = "; ".join(claimed.public) or "nothing"
    left = "; ".join(claimed.not_covered) or "nothing that is named"
    return f"Treated as public: {public}. Not covered by the guarantee: {left}"


def _adjacent(record: Record) -> str:
    return claim.meaning(record.guarantee)[0][1]


def _parameters(record: Record) -> str:
    claimed = record.guarantee
    gauss = "" if claimed.mu_squared is None else f" As Gaussian DP: mu = {claimed.mu_squared**0.5}"
    gains = dict(claim.meaning(claimed, record.report.allowed))["What an attacker gains"]
    return f"{gains} The whole budget is claimed, however much of it was spent.{gauss}"


def _release(record: Record) -> str:
    parts = [
        f"account {part['account']!r}: epsilon {part['epsilon']:g} at delta {part['delta']:g}, "
        f"epsilon {part['epsilon_spent']:.4g} of it charged"
        for part in record.parts
    ]
    return (
        f"The {record.thing} is one release; what is computed from it is post-processing. "
        f"{'; '.join(parts)}. Other releases of the same data are not known to it: where they "
        f"were charged to one store, its ledger holds them"
    )


def _composition(record: Record) -> str:
    return f"{record.guarantee.accounting}: {record.mechanisms}"


def _preprocessing(record: Record) -> str:
    return (
        f"{_unprotected(record)}. Settings are treated as public: what was learnt of private rows "
        f"to choose them is not accounted for"
    )


def _mechanisms(record: Record) -> str:
    noise = record.guarantee.noise
    return (
        f"{record.mechanisms}. Noise: {noise}. Interactive: no. Not covered: {NEVER_COVERED}. "
        f"Code: {record.versions}"
    )


def _justification(record: Record) -> str | None:
    return " ".join(record.report.choices) or None


def _notes(record: Record) -> str:
    return f"The claim of the {record.thing}: {record.guarantee}"


_SECTORS: Final = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")

_needed: Final = partial(Question, tier=1, needed=True)
"""A question that the registry takes no entry without."""

QUESTIONS: Final = (
    _needed(
        "basic.name", "What the data product is called", says=lambda record: record.name, yours=True
    ),
    _needed("basic.data_curators", "Who publishes it", yours=True, kind="list"),
    _needed("basic.intended_use", "What it is meant for", yours=True),
    _needed(
        "basic.data_product_type", "What kind of product it is", says=lambda record: record.product
    ),
    _needed(
        "basic.data_product_region",
        "Which region the data describe, or whose law applies",
        yours=True,
    ),
    _needed(
        "basic.description",
        "What it is, in a sentence",
        says=lambda record: record.description,
        yours=True,
    ),
    _needed(
        "basic.publication_date",
        "When it was published or made",
        says=_made,
        yours=True,
        kind="date",
    ),
    Question(
        "basic.data_product_sector",
        "Which industry it is about",
        yours=True,
        among=_SECTORS,
        tier=1,
    ),
    Question("dp_variant.variant_name", "Which variant of the definition", says=_variant, tier=2),
    Question(
        "dp_variant.data_domain",
        "Which data sets are protected",
        says=lambda record: record.domain,
        tier=3,
    ),
    Question(
        "dp_variant.unprotected_quantities",
        "What of the data is not protected",
        says=_unprotected,
        tier=3,
    ),
    Question(
        "privacy_loss.privacy_unit",
        "Whose data are protected",
        says=lambda record: record.guarantee.unit,
        tier=2,
    ),
    Question(
        "privacy_loss.privacy_unit_details",
        "Which two data sets are neighbors",
        says=_adjacent,
        tier=3,
    ),
    Question(
        "privacy_loss.privacy_parameters.epsilon",
        "Epsilon",
        says=lambda record: float(record.guarantee.epsilon),
        tier=2,
    ),
    Question(
        "privacy_loss.privacy_parameters.delta",
        "Delta",
        says=lambda record: float(record.guarantee.delta),
        tier=2,
    ),
    Question(
        "privacy_loss.privacy_parameters_details",
        "What these numbers mean",
        says=_parameters,
        tier=3,
    ),
    Question(
        "deployment_model.model_name",
        "Whom the people in the data must trust with it",
        says=lambda record: "Central",
        yours=True,
        among=("Local", "Central", "Shuffle", "Federated", "Varies"),
        tier=2,
    ),
    Question(
        "deployment_model.model_name_details",
        "More on that",
        says=lambda record: f"Whoever trains sees the records; what leaves is the {record.thing}",
        yours=True,
        tier=3,
    ),
    Question(
        "deployment_model.actors",
        "Who takes part, whom each of them must trust, and why they may",
        yours=True,
        tier=3,
    ),
    Question(
        "deployment_model.release_type",
        "One release, or many",
        says=lambda record: "One release",
        yours=True,
        among=("One release", "Many releases"),
        tier=2,
    ),
    Question(
        "deployment_model.release_type_details",
        "What else is released of the same data",
        says=_release,
        yours=True,
        tier=3,
    ),
    Question(
        "deployment_model.data_source_type",
        "Whether new data come in over time",
        yours=True,
        among=("Static", "Dynamic"),
        tier=2,
    ),
    Question("deployment_model.data_source_type_details", "More on that", yours=True, tier=3),
    Question(
        "deployment_model.access_type",
        "Whether anybody may ask the data more",
        says=lambda record: "Non-interactive",
        tier=2,
    ),
    Question(
        "deployment_model.access_type_details",
        "More on that",
        says=lambda record: (
            f"What is asked of it is computed from the released {record.thing} alone"
        ),
        tier=3,
    ),
    Question(
        "accounting.post_processing",
        "What was computed from the released values",
        says=lambda record: record.derived,
        tier=3,
    ),
    Question("accounting.composition", "How costs were added up", says=_composition, tier=3),
    Question(
        "implementation.preprocessing_and_hyperparameter_tuning",
        "What looking at the data before, and choosing settings, cost",
        says=_preprocessing,
        tier=3,
    ),
    Question(
        "implementation.mechanisms",
        "Which mechanisms, in which code, and what protects them",
        says=_mechanisms,
        tier=3,
    ),
    Question(
        "implementation.justification",
        "Why these choices were made",
        says=_justification,
        yours=True,
        tier=3,
    ),
    Question("administrative.sources", "Where it is described", yours=True, tier=1),
    Question("administrative.notes", "Anything else", says=_notes, tier=1),
    _needed("administrative.registry_authors", "Who filled in this entry", yours=True, kind="list"),
)


def tier_of(answers: Sequence[Answer]) -> int:
    """Return the highest tier of which, and of those below, nothing is blank; 1 at least."""
    blank = {answer.question.tier for answer in answers if answer.source == "blank"}
    return next((tier for tier in (1, 2) if {tier, tier + 1} & blank), 3)


def entry(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the entry as the registry's schema has it; needed blanks are marked."""
    made: dict[str, Any] = {}
    for answer in answers:
        words: Any = answer.words
        if words is None:
            if not answer.question.needed:
                continue
            words = _marked(answer.question)
        *path, last = answer.question.key.split(".")
        place = made
        for part in path:
            place = place.setdefault(part, {})
        place[last] = list(words) if isinstance(words, tuple) else words
    slug = re.sub(r"[^a-z0-9]+", "_", str(made["basic"]["name"]).lower()).strip("_") or "model"
    return {"url_slug": slug, "status": STATUS, "tier": tier_of(answers), "deployment": made}


def blanks(answers: Sequence[Answer]) -> Iterator[Answer]:
    """Yield what somebody has to fill in."""
    return (answer for answer in answers if answer.source == "blank")


def _marked(question: Question) -> Any:
    if question.kind == "date":
        return NO_DATE
    words = f"{BLANK}: {question.asks}"
    return [words] if question.kind == "list" else words
