"""Goals and published numbers on faces, beside what ``fairpate_utkface.py`` measured."""

from __future__ import annotations

import itertools
from typing import Any

from _faces import U_ALL, U_PUBLISHED
from _table import select

PLAIN = ("shares", "shares, thresholds", "labels", "labels, gate")
AGAIN = "shares, thresholds, again"
JUDGED = (
    *(*PLAIN, AGAIN, "shares, first", "labels, first"),
    *("shares, held out", "labels, held out"),
)
"""Ways of which accuracy and gap have goals."""

OF_GENDER = ("references", "gender", "first", "held", "joined", "again")
PUBLISHED = {2.0: (0.743, 0.83), 3.0: (0.786, 0.79), 5.0: (0.802, 0.82)}
"""FairPATE's example runs at margin .01: accuracy at coverage."""

DP_FERMI = {
    10.0: ((0.586, 0.204), (0.673, 0.092), (0.851, 0.058), (0.884, 0.045)),
    100.0: ((0.300, 0.235), (0.308, 0.186), (0.389, 0.089), (0.535, 0.072), (0.606, 0.080)),
    200.0: ((0.293, 0.237), (0.302, 0.180), (0.381, 0.079), (0.525, 0.070), (0.600, 0.079)),
}
"""Published errors and gaps on UTKFace, age in nine classes by race, weights 0 and more."""


def claim(goal: str, found: str, agrees: bool) -> dict[str, Any]:
    """Return one verdict."""
    return {"goal": goal, "found": found, "agrees": "yes" if agrees else "no"}


def verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the goals beside what was found; the rules stand on top of the script."""
    out = []
    gender = [row for row in rows if row.get("part") in OF_GENDER]
    if any(row["part"] == "gender" for row in gender):
        out += of_accuracy(gender) + of_gaps(gender) + of_published(gender)
    if age := select(rows, part="age"):
        out += of_dp_fermi(age)
    return out


def of_accuracy(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rules 1 to 3."""
    out = []
    for name in JUDGED:
        own = select(rows, method=name, public=U_ALL, margin=0.01)
        at = {row["epsilon"]: row for row in own}
        if not at:
            continue
        of_shares = name.startswith("shares")
        column, goal = ("accuracy", 0.92) if of_shares else ("answered accuracy", 0.94)
        words = "at coverage 1" if of_shares else "of what is answered"
        one, two = at[1.0][column], at[2.0][column]
        said = f"{two:.4f} ± {at[2.0][f'{column}_pm']:.4f}"
        if not of_shares:
            said += f" at coverage {at[2.0]['answered coverage']:.2f}"
        out += [
            claim(
                f"{name}, epsilon 2, margin .01: accuracy {words} at least {goal}",
                said,
                two >= goal,
            ),
            claim(
                f"{name}, epsilon 1: within .01 of that at epsilon 2",
                f"{one:.4f}, {one - two:+.4f}",
                one >= two - 0.01,
            ),
        ]
    return out


def of_gaps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rule 4."""
    return [
        claim(
            f"{row['method']}, epsilon 2, margin {row['margin']:g}: gap on test rows within the "
            "margin and its interval in 9 of 10 seeds",
            f"{row['kept']} of {row['seeds']}; gap {row['gap']:.3f} ± {row['gap_pm']:.3f}, on "
            f"public rows {row['gap public']:.3f}",
            row["kept"] >= 0.9 * row["seeds"],
        )
        for name in JUDGED
        for row in select(rows, method=name, public=U_ALL, epsilon=2.0)
    ]


def of_published(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rule 5."""
    out = []
    for name, epsilon in itertools.product((*PLAIN[2:], "labels, first"), PUBLISHED):
        accuracy, coverage = PUBLISHED[epsilon]
        wanted = {"method": name, "public": U_PUBLISHED, "epsilon": epsilon, "margin": 0.01}
        row = select(rows, **wanted)[0]
        out.append(
            claim(
                f"FairPATE's example run, epsilon {epsilon:g}, margin .01: {accuracy} at coverage "
                f"{coverage}; {name}",
                f"{row['answered accuracy']:.3f} at coverage {row['answered coverage']:.3f}",
                row["answered accuracy"] >= accuracy
                and row["answered coverage"] >= coverage - 0.02,
            )
        )
    return out


def of_dp_fermi(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rule 6."""
    out = []
    for theirs in (200.0, 10.0):
        own = select(rows, method="shares", epsilon=3.0)
        below = [
            (row, point)
            for row in own
            for point in DP_FERMI[theirs]
            if row["error"] <= point[0] + row["error_pm"]
            and row["gap pairwise"] <= point[1] + row["gap pairwise_pm"]
        ]
        pairs = ", ".join(f"{row['error']:.3f} / {row['gap pairwise']:.3f}" for row in own)
        points = ", ".join(f"{error:.3f} / {gap:.3f}" for error, gap in DP_FERMI[theirs])
        out.append(
            claim(
                f"nine classes of age by race, epsilon 3: at or below a point that DP-FERMI "
                f"published at epsilon {theirs:g} ({points})",
                f"error / gap {pairs}; {len(below)} pairs of ours and theirs",
                bool(below),
            )
        )
    return out


def missed(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the goals that are missed as they were stated, what was measured, and why."""

    def of(name: str, column: str, **wanted: Any) -> str:
        wanted = {"public": U_ALL, "margin": 0.01} | wanted
        (row,) = (r for r in select(rows, method=name, **wanted) if r["part"] in OF_GENDER)
        return f"{row[column]:.3f} ± {row[f'{column}_pm']:.3f}"

    def of_age(name: str, **wanted: Any) -> str:
        (row,) = (r for r in select(rows, part="age", method=name, **wanted) if "margin" not in r)
        return f"{row['error']:.2f} / {row['gap pairwise']:.2f}"

    free = of("no privacy, margin", "accuracy")
    gate = of("labels, gate", "answered accuracy", epsilon=2.0)
    bound = of("labels", "answered accuracy", epsilon=2.0)
    return [
        {
            "goal": "accuracy .92 at coverage 1, epsilon 2, margin .01, in the weights (shares)",
            "measured": of("shares", "accuracy", epsilon=2.0),
            "why": "The race is not read at prediction. Logistic regression without privacy that "
            f"keeps this margin by reductions has {free}. With a threshold per race the goal is "
            f"met: {of(AGAIN, 'accuracy', epsilon=2.0)}.",
        },
        {
            "goal": "the same, with a confidence (shares, held out)",
            "measured": of("shares, held out", "accuracy", epsilon=2.0),
            "why": "As above; and the public faces of the smallest race are too few to say that "
            "so small a margin holds, so the rule keeps less than it on these.",
        },
        {
            "goal": "accuracy .94 of what is answered, epsilon 2, margin .01 (labels, margin in "
            "the student too)",
            "measured": bound,
            "why": "The student pays for the margin, and then the reject option keeps it once "
            f"more. Without it in the student the goal is met: {gate}.",
        },
        {
            "goal": "gap on test rows within the margin and its interval in 9 of 10 seeds (labels, "
            "gate)",
            "measured": f"gap {of('labels, gate', 'gap', epsilon=2.0)} at margin .01",
            "why": "Nothing binds this student, as in the paper; the reject option does that.",
        },
        {
            "goal": "error and gap below DP-FERMI's at epsilon 200 (.29 / .24), epsilon at most 3",
            "measured": of_age("shares", epsilon=3.0),
            "why": "Its label is age in nine classes and its group race (source: above). Without "
            f"privacy the same features have {of_age('no privacy')}, and DP-SGD on them "
            f"{of_age('DP-SGD', epsilon=3.0)}: they were made to tell people apart whatever their "
            "age. Its point of epsilon 10 (.59 / .20) is passed at epsilon 3.",
        },
    ]
