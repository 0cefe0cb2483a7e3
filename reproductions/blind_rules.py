"""Decisions that never read the group: our rule beside OxonFair, LinearPost's idea, and training.

    python reproductions/blind_rules.py [--case NAME] [--seeds 3] [--without METHOD] [--save]

``pip install oxonfair==0.3`` first, or ``--without`` its two searches. No privacy: what is compared
is the step after a model. Each seed is a split of its own: half of the rows train a logistic
regression (C .3, encoded by the rows of the next quarter), a quarter has labels and groups and sets
the rule, the last quarter measures. Error and largest difference between two groups (demographic
parity; or of the true positive rate, where the case says so) for margins .01, .02, .05 and .1, ours
also for .005:

* ours: ``BlindRuleClassifier`` with the labels of the middle rows. Linear program, cross-fitted
  groups, recalibrated where held-out rows say so.
* OxonFair 0.3: ``FairPredictor(inferred_groups=...)`` with the same model of the groups, accuracy
  under ``max_diff`` of the rate: its fast search (hard groups, an "uncertain" one below 2/3), and
  ``hybrid`` (soft groups; two groups only, for its grid grows with their power).
* LinearPost's idea, plainly: the same program with probabilities of groups by a model that has
  seen the rows, and nothing read off their own groups (Xian and Zhao 2024).
* fairlearn 0.15: ``ExponentiatedGradient`` on the training rows (two groups only).
* constrained: our student under the margin, on the training rows, their labels and their groups:
  it knows the groups of twice as many rows.
* constrained, the same groups: its labels are those of the training rows, and its margin is read on
  the middle rows, whose groups are all that it knows, as ours.

Choices (the squares of the log-odds in the recalibration, the ridges of the model of the groups,
how near to a bound a rule must be) were made on Bank and German. The cases here: Adult by sex,
Credit by sex, ACS-Income (Connecticut and Maryland) by sex, by race (five groups; the race is a
column too), COMPAS by race (four groups, a column too), and true positives on Adult and ACS by sex.

Our odds of a decision are moved where held-out rows have surely less error (``Recalibrated``,
``decides``). This was added later, because OxonFair was ahead on Credit; how was chosen on inner
rows of Bank and German (3 of 26 splits move: error -.0003 and -.0008 without a margin, never above;
isotonic curves +.0086, cuts moved for any gain at all +.0067 on German), before Credit was run
again. Rule 1 of Credit stands as it is: at most .001 above OxonFair, or the row stays a "no".

Rules, written before the first run on these test rows. At a gap g the error of a method is read off
the lower convex hull of its points (mean gap, mean error over seeds; that of the model without a
rule is one of each): a mixture of two of its models reaches it. Below its smallest gap it has none,
and is not compared there.

1. *Never worse than OxonFair*: at each point of OxonFair (either search), our error at its gap is
   at most .001 above its error. One row for each case, with the largest excess.
2. *Better in the mean*: the mean of these differences is below 0, over the points of all cases.
3. *Ahead of constrained students*: at the gap of each point of the constrained student our error is
   below its error; "ACS by race" is the row that was asked for. The student that knows the same
   groups came later, and is judged by the same rule, written before it ran.

"no" rows stay. Intervals are 95 % over seeds.

Splits: three, then ten of each case and twenty of Credit, where one split differed from another by
more than what rule 1 allows. More were said after three had been seen, with which Credit missed
rule 1, and after the other seventeen of Credit too; there it ends, whatever comes of it.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from _table import Runs, asked, commit, interval, later, rule, select, write
from sklearn.linear_model import LogisticRegression

from evenhand.datasets import PublicEncoder, load_acs_income, load_adult, load_credit_default
from evenhand.datasets.compas import load_compas
from evenhand.estimators.blind_rule import BlindRuleClassifier
from evenhand.fairness import DemographicParity
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.true_positive_rate import TruePositiveRateParity
from evenhand.students.blind_rule import BlindRule, RuleProgram
from evenhand.students.constrained import fit_linear
from evenhand.students.inferred_groups import InferredGroups, SoftmaxRegression
from evenhand.students.objective import LabelLoss
from evenhand.students.within import Within

MARGINS = (0.01, 0.02, 0.05, 0.1)
LARGE_RACES = 4  # and "Other"


def with_group(data: Any, merge: int | None = None) -> tuple[Any, Any, Any]:
    """Rows, labels and groups of a data set, with the group as a column too."""
    groups = data.groups.astype(str)
    if merge is not None:
        large = groups.value_counts().index[:merge]
        groups = groups.where(groups.isin(large), "Other")
    return data.X.assign(group=groups.to_numpy()), np.asarray(data.y).astype(int), groups


def plain(data: Any) -> tuple[Any, Any, Any]:
    """Rows, labels and groups of a data set."""
    return data.X, np.asarray(data.y).astype(int), data.groups


CASES: dict[str, tuple[Callable[[], tuple[Any, Any, Any]], Any]] = {
    "Adult, sex": (lambda: plain(load_adult()), DemographicParity),
    "Credit, sex": (lambda: plain(load_credit_default()), DemographicParity),
    "ACS, sex": (lambda: plain(load_acs_income()), DemographicParity),
    "ACS, race": (
        lambda: with_group(load_acs_income(sensitive="race"), LARGE_RACES),
        DemographicParity,
    ),
    "COMPAS, race": (lambda: with_group(load_compas()), DemographicParity),
    "Adult, sex, true positives": (lambda: plain(load_adult()), TruePositiveRateParity),
    "ACS, sex, true positives": (lambda: plain(load_acs_income()), TruePositiveRateParity),
}


class Trial:
    """One split of a case, and the model that all rules are around."""

    def __init__(self, case: str, seed: int) -> None:
        load, self.kind = CASES[case]
        X, y, groups = load()
        order = np.random.default_rng(seed).permutation(len(y))
        cuts = np.split(order, [len(y) // 2, 3 * len(y) // 4])
        encoder = PublicEncoder().fit(X.iloc[cuts[1]])
        self.X = [encoder.transform(X.iloc[rows]) for rows in cuts]
        self.y = [y[rows] for rows in cuts]
        codes = encode_groups(groups)
        self.z, self.n_groups = [codes.codes[rows] for rows in cuts], codes.n_groups
        self.model = LogisticRegression(C=0.3, max_iter=3000).fit(self.X[0], self.y[0])

    def notion(self, margin: float) -> Any:
        """Return the notion of the case, between every two groups."""
        more = {"positive": 1} if self.kind is TruePositiveRateParity else {}
        return self.kind(margin=margin, reference="pairwise", **more)

    def within(self, part: int, margin: float) -> Within:
        """Return the margin on one of the three parts."""
        notion = self.notion(margin)
        return Within(
            notion=notion,
            groups=self.z[part],
            n_groups=self.n_groups,
            labels=self.y[part] if notion.needs_labels else None,
        )

    def measured(self, decided: np.ndarray) -> tuple[float, float]:
        """Error and gap on the test part."""
        decided = np.asarray(decided).astype(np.int64)
        return float((decided != self.y[2]).mean()), self.within(2, 0.0).gap(decided, 2)


def ours(trial: Trial, margin: float) -> Any:
    """Return the decisions of our rule."""
    fair = BlindRuleClassifier(trial.model, trial.notion(margin))
    fair.fit(trial.X[1], trial.y[1], sensitive_features=trial.z[1])
    return fair.predict(trial.X[2])


def plugged_in(trial: Trial, margin: float) -> Any:
    """Return the decisions of the program by probabilities alone."""
    within = trial.within(1, margin)
    features = InferredGroups.of(trial.model, trial.X[1], within, 2, groups=SoftmaxRegression(1.0))
    p = features.classes_of(trial.X[1])
    cells = features.cells_of(trial.X[1], p)
    program = RuleProgram(p=p, cells=cells, differences=within.combined(2))
    bounds = np.full(len(program.differences), margin)
    found = program.solve(-bounds, bounds)
    return BlindRule(features, found.weights[None]).predict(trial.X[2])


def oxonfair(trial: Trial, margin: float, *, search: Any) -> Any:
    """Return the decisions of OxonFair with inferred groups."""
    from oxonfair import FairPredictor, group_metrics

    notion = trial.notion(margin)
    rate = group_metrics.true_pos_rate if notion.needs_labels else group_metrics.pos_pred_rate
    groups = SoftmaxRegression.chosen(
        trial.X[1],
        Within(notion=DemographicParity(margin=0), groups=trial.z[1], n_groups=trial.n_groups),
        2,
    )(trial.X[1], trial.z[1])
    known = {"data": trial.X[1], "target": trial.y[1], "groups": trial.z[1]}
    fair = FairPredictor(trial.model, known, inferred_groups=groups, use_fast=search)
    width = {} if search is True else {"grid_width": 30}
    fair.fit(group_metrics.accuracy, rate.max_diff, margin, **width)
    return fair.predict({"data": trial.X[2]})


def reduced(trial: Trial, margin: float) -> Any:
    """Return the decisions of fairlearn's exponentiated gradient."""
    from fairlearn import reductions

    bound = 0.5 * margin  # fairlearn bounds each group's difference to everybody
    kind = (
        reductions.TruePositiveRateParity
        if trial.notion(margin).needs_labels
        else reductions.DemographicParity
    )
    fair = reductions.ExponentiatedGradient(
        LogisticRegression(C=0.3, max_iter=1000), kind(difference_bound=bound), max_iter=20
    )
    fair.fit(trial.X[0], trial.y[0], sensitive_features=trial.z[0])
    return fair.predict(trial.X[2], random_state=0)


def constrained(trial: Trial, margin: float, *, part: int) -> Any:
    """Return the decisions of our student under the margin, read on a part."""
    loss = LabelLoss(
        labels=trial.y[0].astype(np.int64), rows=np.arange(len(trial.y[0])), n_classes=2, C=0.3
    )
    within = replace(trial.within(part, margin), X=trial.X[part])
    fit = fit_linear(trial.X[0], loss, within, quiet=True)
    return fit.classifier(2).predict(trial.X[2])


METHODS: dict[str, Callable[[Trial, float], Any]] = {
    "ours": ours,
    "plugged in": plugged_in,
    "OxonFair": lambda trial, margin: oxonfair(trial, margin, search=True),
    "OxonFair, hybrid": lambda trial, margin: oxonfair(trial, margin, search="hybrid"),
    "fairlearn": reduced,
    "constrained": partial(constrained, part=0),
    "constrained, the same groups": partial(constrained, part=1),
}
TWO_GROUPS = ("OxonFair, hybrid", "fairlearn")


def measure(case: str, seed: int, without: Sequence[str]) -> list[dict[str, Any]]:
    """Measure all methods on one split."""
    trial, rows = Trial(case, seed), []
    free = trial.measured(trial.model.predict(trial.X[2]))
    about = {"case": case, "seed": seed}
    rows.append(about | {"method": "no rule", "margin": None, "error": free[0], "gap": free[1]})
    for name, method in METHODS.items():
        if name in without or (name in TWO_GROUPS and trial.n_groups > 2):
            continue
        for margin in (*((0.005,) if name == "ours" else ()), *MARGINS):
            started = time.process_time()
            try:
                error, gap = trial.measured(method(trial, margin))
            except (ValueError, IndexError) as refused:  # OxonFair, a group inferred of nobody
                print(f"{case}, {name}, {margin}: {refused}")
                continue
            seconds = time.process_time() - started
            found = {"method": name, "margin": margin, "error": error, "gap": gap, "cpu_s": seconds}
            rows.append(about | found)
    return rows


def hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the lower convex hull of (gap, error), up to the least error."""
    out: list[tuple[float, float]] = []
    for gap, error in sorted(points):
        while len(out) > 1 and (out[-1][1] - out[-2][1]) * (gap - out[-2][0]) >= (
            error - out[-2][1]
        ) * (out[-1][0] - out[-2][0]):
            out.pop()
        out.append((gap, error))
    least = min(range(len(out)), key=lambda i: out[i][1])
    return out[: least + 1]


def error_at(points: list[tuple[float, float]], gap: float) -> float | None:
    """Return the error that a mixture of two of the points has at a gap; None below the first."""
    at = hull(points)
    if gap < at[0][0]:
        return None
    return float(np.interp(gap, *zip(*at, strict=True)))


def points_of(rows: list[dict[str, Any]], case: str, method: str) -> dict[Any, tuple[float, float]]:
    """Return (mean gap, mean error) over seeds by margin."""
    own = [row for row in rows if row["case"] == case and row["method"] in (method, "no rule")]
    margins = {row["margin"] for row in own}
    mean = {}
    for margin in margins:
        some = [row for row in own if row["margin"] == margin]
        mean[margin] = (
            float(np.mean([row["gap"] for row in some])),
            float(np.mean([row["error"] for row in some])),
        )
    return mean


def judged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare ours with each other method at each of its points."""
    out = []
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = list(points_of(rows, case, "ours").values())
        for method in METHODS:
            theirs = points_of(rows, case, method)
            found = [
                (margin, error_at(mine, gap), gap, error)
                for margin, (gap, error) in theirs.items()
                if margin is not None
            ]
            apart = [own - error for _, own, _, error in found if own is not None]
            if method != "ours" and apart:
                below = sum(own is None for _, own, _, _ in found)
                out.append({"case": case, "method": method, "apart": apart, "below": below})
    return out


def save(rows: list[dict[str, Any]], commit: str) -> None:
    """Write rows and verdicts."""
    compared, verdicts = judged(rows), []
    lines = [
        "# Decisions that never read the group\n",
        "`python reproductions/blind_rules.py --save`; methods and rules stand in the script. "
        'Which algorithm ran: "ours" is `BlindRuleClassifier`, "plugged in" the idea of LinearPost '
        "(Xian and Zhao 2024) written here, OxonFair and fairlearn their own packages, "
        f'"constrained" our student. Commit {commit}{later(rows, "method", "case")}. '
        "Error / gap on test rows, mean ± half a 95 % interval over seeds.\n",
    ]
    for case in dict.fromkeys(row["case"] for row in rows):
        own = select(rows, case=case)
        seeds = len({row["seed"] for row in own})
        lines += [
            f"## {case} ({seeds} split{'s' * (seeds > 1)})\n",
            "| method | " + " | ".join(f"margin {m:g}" for m in MARGINS) + " | processor s |",
            rule(2 + len(MARGINS)),
        ]
        for method in dict.fromkeys(row["method"] for row in own):
            cells, spent = [], []
            for margin in MARGINS:
                some = [r for r in own if r["method"] == method and r["margin"] in (margin, None)]
                spent += [r["cpu_s"] for r in some if "cpu_s" in r]
                if len(some) < 2:
                    one = [f"{r['error']:.4f} / {r['gap']:.3f} (one seed)" for r in some]
                    cells.append(one[0] if one else "-")
                    continue
                error, gap = (interval([r[key] for r in some]) for key in ("error", "gap"))
                cells.append(f"{error:.4f} / {gap:.3f}")
            lines.append(
                f"| {method} | {' | '.join(cells)} | {np.mean(spent):.2f} |"
                if spent
                else f"| {method} | {' | '.join(cells)} | - |"
            )
        lines.append("")
    absent = [case for case in CASES if case not in {row["case"] for row in rows}]
    if absent:
        lines.append(f"Not run: {'; '.join(absent)}.\n")
    lines += [
        "## Rules\n",
        'Our error minus theirs at their gaps, on our hull. "Below" are points of theirs at a '
        "smaller gap than any of ours.\n",
        "| case | beside | mean | largest | below | rule | agrees? |",
        rule(7),
    ]
    for row in compared:
        mean, largest = float(np.mean(row["apart"])), max(row["apart"])
        if row["method"].startswith("OxonFair"):
            said, agrees = "1: largest at most .001", largest <= 0.001
        elif row["method"].startswith("constrained"):
            said, agrees = "3: largest below 0", largest < 0
        else:
            said, agrees = "-", None
        verdict = "-" if agrees is None else "yes" if agrees else "no"
        verdicts.append(
            {"case": row["case"], "beside": row["method"], "mean": mean, "largest": largest}
            | {"below": row["below"], "agrees": verdict}
        )
        lines.append(
            f"| {row['case']} | {row['method']} | {mean:+.4f} | {largest:+.4f} | {row['below']} | "
            f"{said} | {verdict} |"
        )
    all_apart = [
        x for row in compared if row["method"].startswith("OxonFair") for x in row["apart"]
    ]
    if all_apart:
        mean = float(np.mean(all_apart))
        verdicts.append(
            {"case": "all", "beside": "OxonFair", "mean": mean}
            | {"agrees": "yes" if mean < 0 else "no"}
        )
        lines.append(
            f"| all | OxonFair | {mean:+.4f} | {max(all_apart):+.4f} | - | 2: mean below 0 | "
            f"{'yes' if mean < 0 else 'no'} |"
        )
    write("blind_rules", {"commit": commit, "rows": rows, "verdicts": verdicts}, *lines)


def main() -> None:
    """Measure every case and seed that was not measured yet."""
    parser = asked(__doc__, seeds=5)
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--first", type=int, default=0, help="seed to begin with")
    parser.add_argument("--without", action="append", choices=list(METHODS), default=[])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rows, seeds = Runs(given.kept), range(given.first, given.seeds)
    rows.complete(partial(measure, without=given.without), seed=seeds, case=given.case or CASES)
    if given.save:
        save(rows, commit())


if __name__ == "__main__":
    main()
