"""The section on the margin: where it sits, how it stands, and who needs the group."""

from __future__ import annotations

from evenhand.estimators.small_groups import Held, in_words
from evenhand.fairness import DemographicParity, FairnessKind
from evenhand.report import claim, figures
from evenhand.report.answers import Disparity
from evenhand.report.content import Cuts, ModelReport, StudentMargin
from evenhand.report.derived import Derived
from evenhand.report.frames import between, cover, framed
from evenhand.report.htmltext import pairs, table, text
from evenhand.report.measured import MEANINGS, NAMES, REFERENCES


def margin(report: ModelReport) -> str:
    """Return which kind of fairness the model has, and how it stands to its margin."""
    trace, student = report.disparity, report.student
    where, _, who = str(report.kind).partition(", ")
    parts = [
        f"<p><strong>Where the margin sits: {text(where)}. At prediction: {text(who)}.</strong> "
        f"{text(report.kind.words)}</p>"
    ]
    if report.kind == FairnessKind.NONE:
        return parts[0] + "<p>The gaps of this model can only be measured.</p>"
    held = (trace, student, report.cuts, report.derived)
    if any(found is not None for found in held):
        parts.append(cover(report))
    elif "fairness_weight" in dict(report.settings):
        parts.append(f"<p>{text(claim.DRAWN_TOWARDS)}</p>")
    else:
        parts.append(f"<p>{text(claim.AIMED_FOR)}</p>")
        if report.aimed is not None:
            parts.append(pairs(_margin_rows(report.aimed)))
    if report.cuts is not None:
        parts.append(_thresholds(report.cuts))
    if report.derived is not None:
        parts.append(_probabilities(report.derived))
    if trace is not None:
        parts.append(_trace(trace, alone=student is None))
    if student is not None:
        kept = "are within" if student.met else "are outside"
        if student.held is not None:
            kept = "of the small groups below are held to their intervals, those of all others to"
        parts.append(
            f"<h3>The student</h3><p><strong>The student’s decisions {student.where} {kept} "
            f"the margin.</strong> {text(claim.STUDENT_BOUND_ON[student.source])}</p>"
        )
        parts.append(pairs(_student_rows(student)))
        if student.held is not None:
            parts.append(_held(student.held, student))
    return "".join(parts)


def _student_rows(student: StudentMargin) -> list[tuple[str, str]]:
    kind = student.notion.name.replace("-", "_")
    rows = [
        ("Notion", f"{NAMES[kind]}: {MEANINGS[kind]}"),
        ("Margin", f"{student.notion.margin:g}"),
        (f"Gap {student.where}", f"{student.gap:.4f}"),
        ("A group is compared with", REFERENCES[student.notion.reference]),
    ]
    if (found := student.calibration) is not None:
        rows.append(
            (
                "Gap on the calibration rows",
                f"{found.value:.4f}, {found.level:.0%} interval {between(found, 4)}, on the "
                f"hopeful side: the same rows chose the student",
            )
        )
    return rows


def _held(held: Held, student: StudentMargin) -> str:
    """Return which groups are held to what, and what the margin would have cost."""
    rows = [
        (student.groups[g.group], f"{g.n_rows:,}", f"{g.limit:.4f}", f"{g.gap:.4f}")
        for g in held.groups
    ]
    return f"<p>{text(in_words(held, student.groups, student.notion.margin))}</p>" + table(
        "Groups that are held to the interval of their size",
        ("Group", "Public rows", "Held to", "Gap there"),
        rows,
        3,
    )


def _thresholds(cuts: Cuts) -> str:
    rows = [(group, f"{cut:.4f}", f"{probability:.4f}") for group, cut, probability in cuts.rows]
    return (
        "<h3>The thresholds</h3>"
        f"<p>{text(claim.THRESHOLDS_BIND)}</p>"
        + table(
            f"Scores from which a group is given {cuts.label}",
            ("Group", "Threshold", "Probability at the threshold"),
            rows,
            2,
        )
        + pairs(_margin_rows(cuts.notion))
    )


def _probabilities(derived: Derived) -> str:
    rows = [
        (group, own, *(f"{probability:.4f}" for probability in probabilities))
        for group, own, probabilities in derived.rows
    ]
    return (
        "<h3>The probabilities</h3>"
        f"<p>{text(claim.PROBABILITIES_BIND)}</p>"
        + table(
            "Probability of each final decision",
            ("Group", "The model’s own", *derived.classes),
            rows,
            len(derived.classes),
        )
        + pairs(
            [
                ("Notion", derived.notion.replace("_", " ")),
                ("Margin, between every two groups", f"{derived.margin:g}"),
                ("Gap by the noisy table", f"{derived.gap:.4f}"),
                (
                    "Further apart among the private records",
                    f"by at most {derived.beyond:.4f}, with a probability of 95%",
                ),
            ]
        )
    )


def _margin_rows(notion: DemographicParity) -> tuple[tuple[str, str], ...]:
    return (
        ("Margin", f"{notion.margin:g}"),
        ("A group is compared with", REFERENCES[notion.reference]),
    )


def _trace(trace: Disparity, *, alone: bool) -> str:
    notion = trace.notion
    kept = (
        "The answered set was within the margin after every answer."
        if trace.kept
        else f"The answered set was outside the margin after {trace.n_outside:,} of "
        f"{len(trace.gaps):,} steps."
    )
    scope = claim.MARGIN_BINDS if alone else claim.MARGIN_BINDS_ANSWERS
    rows = [
        ("Margin", f"{notion.margin:g}"),
        ("Largest gap after any step", f"{trace.largest:.4f}"),
        ("Gap of all answers", f"{trace.final:.4f}"),
        ("A group is compared with", REFERENCES[notion.reference]),
        ("Rule of the gate", trace.rule),
    ]
    return (
        f"<p><strong>{text(kept)}</strong> {text(scope)}</p>"
        "<p>The gap is the largest difference, over groups and classes, between the rate at which "
        f"a group received a class and the rate at which {REFERENCES[notion.reference]} did. "
        "Answers that were given together count as one step.</p>"
        + framed(
            "disparity",
            "Largest gap after each answer",
            "Within the margin means at or below the dashed line.",
            figures.disparity(trace),
        )
        + pairs(rows)
    )
