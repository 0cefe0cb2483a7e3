"""What documents under three rules ask: New York City, the European Union, Colorado.

The sections help to fill in a document, and are none: what a rule requires of whom is not for a
library to say. Sources and dates stand in ``docs/card.md``.
"""

from __future__ import annotations

from typing import Final

from evenhand.report.card.questions import Question
from evenhand.report.card.record import Record

LL144: Final = "New York City, Local Law 144 of 2021 and 6 RCNY 5-300 to 5-304"
EU: Final = "European Union, Regulation (EU) 2024/1689, Articles 10 and 4a"
COLORADO: Final = "Colorado, Senate Bill 26-189"


def _warnings(record: Record) -> str | None:
    return "; ".join(record.report.warnings) or None


def _limitations(record: Record) -> str:
    claimed = record.guarantee
    said = [*record.report.warnings, *(f"not covered: {words}" for words in claimed.not_covered)]
    return "; ".join([*said, record.limits])


def _settings(record: Record) -> str:
    return f"{record.report.method}: " + ", ".join(
        f"{name} = {value}" for name, value in record.report.settings if value != "default"
    )


def _intended(record: Record) -> str | None:
    said = record.filled.get("registry", {}).get("basic.intended_use")
    return None if said is None else str(said)


LL144_QUESTIONS: Final = (
    Question("audit_date", "Date of the audit", yours=True, kind="date"),
    Question("auditor", "Who audited, and how they are independent", yours=True),
    Question("tool", "Name of the tool", says=lambda r: f"{r.report.method} {r.thing}", yours=True),
    Question(
        "distribution_date", "Since when this version of the tool is used", yours=True, kind="date"
    ),
    Question(
        "data_source",
        "Where the rows are from, and whether they are historical or test data",
        yours=True,
    ),
    Question(
        "unknown",
        "How many people are of an unknown category",
        says=lambda record: (
            "None was left out: rows without a group are refused, so fill in a group of their own "
            "such as 'unknown'"
            if record.impact
            else None
        ),
        yours=True,
    ),
)

EU_QUESTIONS: Final = (
    Question("design", "Design choices, 10(2)(a)", says=_settings),
    Question("origin", "Origin and collection of the data, 10(2)(b)", yours=True),
    Question("preparation", "Annotation, labelling, cleaning, updating, 10(2)(c)", yours=True),
    Question("assumptions", "What the data are meant to measure, 10(2)(d)", yours=True),
    Question("suitability", "Availability, quantity and suitability, 10(2)(e)", yours=True),
    Question("bias", "Examination for bias, 10(2)(f)", says=lambda r: r.measured, yours=True),
    Question(
        "measures",
        "Measures to detect, prevent and mitigate bias, 10(2)(g)",
        says=lambda r: r.measures,
    ),
    Question("shortcomings", "Gaps or shortcomings, 10(2)(h)", says=_warnings, yours=True),
    Question(
        "representative",
        "Whether the data are relevant, representative, free of errors and complete, 10(3)",
        yours=True,
    ),
    Question("setting", "Geographical and other setting of use, 10(4)", yours=True),
    Question(
        "necessity",
        "Special categories: why bias cannot be found and corrected with other data, 4a",
        yours=True,
    ),
    Question(
        "safeguards",
        "Special categories: technical limits on re-use, and protection of privacy, 4a",
        says=lambda r: f"{r.guarantee} {r.reads_groups}",
    ),
    Question("access", "Special categories: who has access, and how it is logged, 4a", yours=True),
    Question("transfer", "Special categories: that nobody else receives them, 4a", yours=True),
    Question("deletion", "Special categories: when they are deleted, 4a", yours=True),
)

COLORADO_QUESTIONS: Final = (
    Question("intended_use", "Intended uses", says=_intended, yours=True),
    Question("harmful_use", "Known harmful or inappropriate uses", yours=True),
    Question("training_data", "Categories of training data", says=lambda r: r.columns),
    Question("limitations", "Known limitations", says=_limitations),
    Question("instructions", "Instructions for use", says=lambda r: r.use),
    Question(
        "monitoring",
        "Monitoring",
        says=lambda record: (
            "While it decides: GET /state and GET /metrics of evenhand serve tell coverage, counts "
            "per group and the gap as they are"
            if record.thing == "model"
            else None
        ),
        yours=True,
    ),
    Question("review", "Meaningful human review", yours=True),
    Question("notice", "Notice to people before a decision", yours=True),
    Question("adverse", "What people are told after an adverse decision", yours=True),
    Question("correction", "How people correct their data", yours=True),
)
