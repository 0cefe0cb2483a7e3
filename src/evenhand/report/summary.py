"""The report in a few lines of plain text, for a terminal."""

from __future__ import annotations

from evenhand.report.claim import not_private
from evenhand.report.content import ModelReport
from evenhand.report.measured import REFERENCES, known
from evenhand.report.spending import Spending


def summary_lines(report: ModelReport) -> tuple[str, ...]:
    """Return what a reader must know first, one line each, in the order of the page.

    Names that come from data are printed without control characters.
    """
    lines = [report.title]
    if not report.guarantee.holds:
        lines.append(f"{report.guarantee.verdict}. {not_private(report.guarantee)}")
    lines += [f"Warning: {words}." for words in report.warnings]
    lines.append(f"Claim: {report.guarantee}")
    lines.append(f"Where the margin sits: {report.kind}.")
    lines += [] if report.spending is None else _spent(report.spending)
    lines += _measured(report)
    answers, trace, student = report.answers, report.disparity, report.student
    if answers is not None:
        what = "labels" if report.outcomes is not None else "noisy shares"
        lines.append(
            f"Answers: {answers.n_answered:,} {what} given, {answers.n_asked:,} asked, of "
            f"{len(answers):,} {report.asked}."
        )
    if report.coverage is not None:
        lines.append(report.coverage.most_refused(report.classes))
    if trace is not None:
        kept = "within it after every answer" if trace.kept else f"left {trace.n_outside:,} times"
        lines.append(
            f"Gap of the answered set: {trace.final:.4f}, largest {trace.largest:.4f}; margin "
            f"{trace.notion.margin:g}, {kept}."
        )
    if student is not None:
        lines.append(
            f"Gap of the student {student.where}: {student.gap:.4f}; margin "
            f"{student.notion.margin:g} of {student.notion.name.replace('-', ' ')}, "
            f"{student.kept}. {student.on_new_rows}"
        )
    elif trace is not None:
        lines.append("The student is not bound by the margin.")
    if report.cuts is not None:
        named = ", ".join(
            f"{group} {cut:.4f}" + f" (with probability {above:.2f})" * (above < 1)
            for group, cut, _, above in report.cuts.rows
        )
        lines.append(
            f"Thresholds: {named}; margin {report.cuts.notion.margin:g} of "
            f"{report.cuts.notion.title}, kept {report.cuts.where}"
            + ("." if report.cuts.held is None else f", where it is {report.cuts.to_in_words}.")
        )
    if report.by_table is not None:
        lines.append(report.by_table.in_words)
    return tuple(_printable(line) for line in lines)


def _spent(found: Spending) -> list[str]:
    return [
        f"Spent: {charge.share:.1%} of the budget on {charge.purpose}, {charge.n_uses:,} uses of "
        f"{charge.rounded}."
        for charge in found.charges
    ] + [f"Left of the budget: {max(0.0, 1 - found.share):.1%}."]


def _measured(report: ModelReport) -> list[str]:
    found = report.measured
    if found is None:
        return ["Error and gaps on test rows: not measured."]
    estimates = [("Error", found.error)] if found.error is not None else []
    estimates += [
        (f"{gap.name} gap, against {REFERENCES.get(gap.reference, 'its reference')}", gap.estimate)
        for gap in found.gaps
        if known(gap.estimate)
    ]
    if report.yardstick is not None:
        of_others = [(f"Error of {w}", e) for w, e in report.yardstick.rows(report.classes)]
        estimates[1:1] = of_others
    lines = [f"Measured on {found.n_rows:,} test rows, not covered by the guarantee:"]
    lines += [
        f"  {name}: {e.value:.4f} ({e.level:.0%} interval {e.low:.4f} to {e.high:.4f})"
        for name, e in estimates
    ]
    return lines


def _printable(line: str) -> str:
    """Replace control characters: a name must not move the cursor of somebody's terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
