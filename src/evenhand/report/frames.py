"""What several sections of the page are framed with."""

from __future__ import annotations

from evenhand.fairness import Estimate
from evenhand.report import claim
from evenhand.report.content import ModelReport
from evenhand.report.htmltext import text


def framed(name: str, title: str, about: str, chart: str, numbers: str = "") -> str:
    """Return a chart with its caption, and its numbers as a table if not beside it already."""
    more = f"<details><summary>The numbers as a table</summary>{numbers}</details>"
    return (
        f'<figure aria-labelledby="{name}-title"><figcaption id="{name}-title">{text(title)}'
        f"<span>{text(about)}</span></figcaption>"
        f'<div class="chart" id="{name}" role="img" aria-label="{text(title)}. The numbers follow '
        f'as a table.">{chart}</div>{more if numbers else ""}</figure>'
    )


def cover(report: ModelReport) -> str:
    """Return whether what follows is covered by the guarantee, as a sentence."""
    kind = "covered" if report.guarantee.holds else "uncovered"
    return f'<p class="cover {kind}">{text(claim.covered(report.guarantee))}</p>'


def between(estimate: Estimate, digits: int) -> str:
    """Return an interval in words."""
    return f"{estimate.low:.{digits}f} to {estimate.high:.{digits}f}"
