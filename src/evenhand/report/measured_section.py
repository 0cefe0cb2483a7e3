"""The section on what was measured on test rows, which is not covered by the guarantee."""

from __future__ import annotations

from evenhand.fairness import Estimate
from evenhand.report import claim, figures
from evenhand.report.content import ModelReport
from evenhand.report.frames import between, framed
from evenhand.report.htmltext import table, text
from evenhand.report.measured import MEANINGS, REFERENCES, Gap, Measured, known


def measured(report: ModelReport) -> str:
    """Return error, rates and gaps on test rows, with intervals."""
    found = report.measured
    if found is None:
        return (
            "<p>No measurements were given for this report. Neither the error of the model nor its "
            "gaps between groups can be judged from this page: neither a privacy guarantee nor a "
            "margin in training says anything about them on new rows.</p>"
        )
    gap_rows = [(g.name, _compares(g), *_cells(g.estimate)) for g in found.gaps]
    return (
        f'<p class="cover uncovered">{text(claim.NOT_COVERED)}</p>'
        f"<p>{text(_how_measured(found))}</p>"
        + _errors(report)
        + framed(
            "gaps",
            "Gaps between groups on test rows",
            _gap_words(report),
            figures.gaps(found, report.notion),
            table("Gaps on test rows", ("Gap", "Compares", "Value", "Interval"), gap_rows, 2),
        )
        + framed(
            "groups",
            "Error and predictions in each group",
            "Share of the group’s test rows. The dotted line is the error over all rows.",
            figures.by_group(found),
            _group_table(found),
        )
    )


def _errors(report: ModelReport) -> str:
    """Return the error of the model beside those that it must be better than."""
    found = report.yardstick
    if found is None or report.measured is None:
        return ""
    rows = [
        (name, *_cells(e)) for name, e in (("this model", found.error), *found.rows(report.classes))
    ]
    return table(
        "Error on test rows, and what to read it beside", ("Of", "Error", "Interval"), rows, 2
    )


def _group_table(found: Measured) -> str:
    rows = []
    for i, group in enumerate(found.groups):
        estimates = [("wrong predictions", e) for e in found.errors[i : i + 1]]
        named = zip(found.classes, found.rates[i], strict=True)
        estimates += [(f"predicted {name}", e) for name, e in named]
        rows += [(group, name, f"{e.n:,}", *_cells(e)) for name, e in estimates]
    return table(
        "Test rows per group", ("Group", "Share of", "Test rows", "Value", "Interval"), rows, 3
    )


def _cells(estimate: Estimate) -> tuple[str, str]:
    if not known(estimate):
        return "no data", ""
    return f"{estimate.value:.4f}", between(estimate, 4)


def _how_measured(found: Measured) -> str:
    missing = (
        f" {found.n_unanswered:,} further rows got no prediction and are not counted."
        if found.n_unanswered
        else ""
    )
    return (
        f"Measured on {found.n_rows:,} test rows.{missing} Each interval covers the rate of the "
        f"population with a probability of at least {found.level:.0%} by itself, if the test rows "
        f"are a random sample of it; small groups have wide intervals. No single number says "
        f"whether people are treated fairly: read the gaps together with the errors, and with what "
        f"a wrong prediction costs whom."
    )


def _compares(gap: Gap) -> str:
    if gap.kind not in MEANINGS:
        return gap.estimate.definition
    return f"{MEANINGS[gap.kind]}, against {REFERENCES[gap.reference]}"


def _gap_words(report: ModelReport) -> str:
    words = "Each mark is measured on the model’s predictions; the bar is its interval."
    if report.notion is None:
        return words
    return f"{words} The dashed line is the margin, for comparison: on new rows it binds nothing."
