"""Group-aware thresholds: DP-SGD and teachers, beside what users glue together today.

    python reproductions/group_thresholds.py [--seeds 5] [--part parity] [--part odds] [--save]

Extra ``glued`` for the second part.

*Demographic parity on Adult* (part "parity"): the reference is an Opacus MLP trained by DP-SGD
whose decisions fairlearn's ThresholdOptimizer cuts on public rows labelled by the model's own
scores (five seeds): error / pairwise gap. Ours are ``DPSGDClassifier`` (logistic regression) and
``PATEClassifier`` (noisy shares), defaults, delta 1e-5, both cut by ``with_group_thresholds`` on
the public rows at a pairwise margin equal to the gap that the reference delivered. All need the
group at prediction. Every seed is a split of its own (25 % test; of the rest 20 % public) with
noise from the operating system (floating-point).

A row agrees if its gap is at most the reference gap and its error at most the reference error plus
what was set out to be allowed (DP-SGD none; teachers .02 at epsilon 1, .01 at epsilon 3), each up
to the half width of its 95 % interval over seeds. "no" rows stay.

*Equalized odds within a tolerance* (part "odds"): Adult, Credit and ACS-Income of Connecticut by
sex, margins 0, .02, .05 and .1 between every two groups, five seeds, splits as above. All rules are
set on the same scores of the public rows, with their true labels, and measured on the test rows: of
a logistic regression without privacy and of ``DPSGDClassifier`` at epsilon 1 (defaults, delta 1e-5,
floating-point noise). Ours is ``GroupThresholds``; theirs ``RelaxedThresholdOptimizer`` of
error-parity (Cruz and Hardt 2024, its defaults, the largest of both differences) and fairlearn's
``ThresholdOptimizer``, which knows no margin here and so stands at 0 alone. "Ours, no labels" goes
by the scores alone and has no rule. Draws are seeded. Errors, gaps and the milliseconds of setting
a rule are means over seeds.

Rule, written before the first run: of ours minus theirs the error and the gap have a 95 % interval
over the seeds each. Ours is "ahead" if one lies below 0 and the other not above, "behind" if one
lies above and the other not below, "either" if one lies below and one above, else "level". A row
agrees unless ours is behind.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _judged import error_and_gap
from _table import RESULTS, asked, commit, interval, rule, write
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from evenhand import Budget, DemographicParity, DPSGDClassifier, EqualizedOdds, PATEClassifier
from evenhand.datasets import (
    Dataset,
    PublicEncoder,
    load_acs_income,
    load_adult,
    load_credit_default,
)
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.tally import JointTally
from evenhand.privacy import FloatNoise
from evenhand.students.thresholds import GroupThresholds

GLUED: dict[float, tuple[tuple[float, float], ...]] = {
    0.5: ((0.159, 0.108), (0.165, 0.059), (0.174, 0.013)),
    1.0: ((0.159, 0.109), (0.165, 0.057), (0.175, 0.011)),
    3.0: ((0.159, 0.105), (0.165, 0.058), (0.175, 0.013)),
}
METHODS: dict[str, tuple[type, dict[float, float]]] = {
    "DP-SGD": (DPSGDClassifier, {0.5: 0.0, 1.0: 0.0, 3.0: 0.0}),
    "teachers": (PATEClassifier, {1.0: 0.02, 3.0: 0.01}),
}

TABLES: dict[str, Callable[[], Dataset]] = {
    "Adult": load_adult,
    "Credit": load_credit_default,
    "ACS-Income": lambda: load_acs_income(("CT",)),
}
TOLERANCES = (0.0, 0.02, 0.05, 0.1)
FREE, PRIVATE = "no privacy", "DP-SGD, epsilon 1"
OURS, UNLABELLED, RELAXED, EXACT = "ours", "ours, no labels", "error-parity", "fairlearn"


def measure(method: str, epsilon: float, seed: int) -> list[tuple[float, float]]:
    """Error and pairwise gap on the test part for each margin, from one fit."""
    split = load_adult().split(public=0.2, test=0.25, random_state=seed)
    more = {"n_steps": 1500} if method == "DP-SGD" else {}
    model = METHODS[method][0](
        Budget(epsilon=epsilon, delta=1e-5), noise=FloatNoise(), random_state=seed, **more
    )
    model.fit(split.private.X, split.private.y, X_public=split.public.X)
    found = []
    for _, gap in GLUED[epsilon]:
        fairness = DemographicParity(margin=gap, reference="pairwise")
        cut = model.with_group_thresholds(split.public.X, split.public.groups, fairness=fairness)
        decided = cut.predict(split.test.X, sensitive_features=split.test.groups, random_state=0)
        found.append(error_and_gap(split.test, decided))
    return found


class Known(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Scores that are known already, as fairlearn wants an estimator: rows are scores."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> Known:
        """Do nothing: the scores are known."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of both classes."""
        return np.column_stack([1 - np.asarray(X)[:, 0], np.asarray(X)[:, 0]])


class Scored:
    """One split of a table and a model: scores, groups and labels of public and of test rows."""

    def __init__(self, data: Dataset, model: str, seed: int) -> None:
        split = data.split(public=0.2, test=0.25, random_state=seed)
        private, parts = split.private, (split.public, split.test)
        encoder = PublicEncoder().fit(split.public.X)
        if model == FREE:
            fitted = LogisticRegression(max_iter=2000)
            fitted.fit(encoder.transform(private.X), np.asarray(private.y))
            found = [fitted.predict_proba(encoder.transform(part.X)) for part in parts]
        else:
            budget = Budget(epsilon=1.0, delta=1e-5)
            steps = DPSGDClassifier(budget, degree=0, noise=FloatNoise(), random_state=seed)
            steps.fit(private.X, private.y, X_public=split.public.X)
            found = [steps.predict_proba(part.X) for part in parts]
        self.p, self.p_test = (each[:, 1] for each in found)
        groups = encode_groups(split.public.groups)
        self.n_groups, self.z = groups.n_groups, groups.codes
        self.z_test = encode_groups(split.test.groups, names=groups.names).codes
        classes = np.unique(np.asarray(private.y))
        truth = (data.y.loc[split.public.X.index], split.test.y)
        self.y, self.y_test = (np.searchsorted(classes, np.asarray(each)) for each in truth)

    def decided(self, rule: str, margin: float) -> tuple[Any, float]:
        """Return a rule's decisions about the test rows, and the seconds of setting it."""
        if rule in (OURS, UNLABELLED):
            start = time.perf_counter()
            fair = GroupThresholds.fit(
                self.p,
                self.z,
                fairness=EqualizedOdds(margin=margin, reference="pairwise"),
                n_groups=self.n_groups,
                labels=self.y if rule == OURS else None,
            )
            seconds = time.perf_counter() - start
            return fair.decide(self.p_test, self.z_test, np.random.default_rng(0)), seconds
        try:
            from error_parity import RelaxedThresholdOptimizer
            from fairlearn.postprocessing import ThresholdOptimizer
        except ImportError as error:
            raise SystemExit(f'{error}. Install it with: pip install "evenhand[glued]"') from None
        rows, test = self.p[:, None], self.p_test[:, None]
        start = time.perf_counter()
        if rule == RELAXED:
            relaxed = RelaxedThresholdOptimizer(predictor=lambda X: X[:, 0], tolerance=margin)
            relaxed.fit(rows, self.y, group=self.z)
            seconds = time.perf_counter() - start
            return relaxed(test, group=self.z_test), seconds
        optimizer = ThresholdOptimizer(
            estimator=Known(),
            constraints="equalized_odds",
            prefit=True,
            predict_method="predict_proba",
        )
        optimizer.fit(rows, self.y, sensitive_features=self.z)
        seconds = time.perf_counter() - start
        return optimizer.predict(test, sensitive_features=self.z_test, random_state=0), seconds

    def measured(self, rule: str, margin: float) -> list[float]:
        """Return error and gap on the test rows, and milliseconds."""
        decided, seconds = self.decided(rule, margin)
        decided = np.asarray(decided).astype(np.int64)
        joint = JointTally.of(self.z_test, self.y_test, decided, self.n_groups, 2)
        gap = EqualizedOdds(margin=0.0, reference="pairwise").gap(joint.counts)
        return [float((decided != self.y_test).mean()), gap, 1000 * seconds]


def rules_at(margin: float) -> tuple[str, ...]:
    """Return the rules that a margin can be asked of."""
    return (OURS, UNLABELLED, RELAXED) + (EXACT,) * (margin == 0)


def odds_of(seeds: int) -> dict[str, Any]:
    """Measure equalized odds within each tolerance, and return rows with their repeats."""
    rows: list[dict[str, Any]] = []
    for name, load in TABLES.items():
        data = load()
        for model in (FREE, PRIVATE):
            splits = [Scored(data, model, seed) for seed in range(seeds)]
            for margin in TOLERANCES:
                about = {"data": name, "model": model, "margin": margin}
                own = [
                    {**about, "rule": each, "repeats": [s.measured(each, margin) for s in splits]}
                    for each in rules_at(margin)
                ]
                print("\n".join(odds_lines(own)), flush=True)
                rows += own
    return {"commit": commit(), "seeds": seeds, "rows": rows}


def stands(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Return how ours stands beside theirs, by the intervals of error and gap over seeds."""
    said = {
        interval(apart).judged("behind", "level", "ahead") for apart in (ours - theirs)[:, :2].T
    }
    if {"behind", "ahead"} <= said:
        return "either"
    return next((word for word in ("behind", "ahead") if word in said), "level")


def odds_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return lines of the table of equalized odds; rows of one setting begin with ours."""
    out = []
    for row in rows:
        found = np.array(row["repeats"])
        if row["rule"] == OURS:
            ours = found
        said = agrees = "-"
        if row["rule"] in (RELAXED, EXACT):
            said = stands(ours, found)
            agrees = "no" if said == "behind" else "yes"
        error, gap, milliseconds = found.mean(axis=0)
        out.append(
            f"| {row['data']} | {row['model']} | {row['margin']:g} | {row['rule']} | {error:.4f} "
            f"| {gap:.4f} | {milliseconds:.0f} | {said} | {agrees} |"
        )
    return out


def main() -> None:
    """Measure every setting and print a row for each."""
    parser = asked(__doc__, seeds=5, keeps=False)
    parser.add_argument("--part", action="append", choices=("parity", "odds"), help="default: both")
    given = parser.parse_args()
    parts = given.part or ("parity", "odds")
    saved = json.loads((RESULTS / "group_thresholds.json").read_text())
    about = {name: saved.get(name) for name in ("commit", "seeds", "rows", "odds")}
    if "parity" in parts:
        rows = parity_of(given.seeds)
        about |= {"commit": commit(), "seeds": given.seeds, "rows": rows}
    if "odds" in parts:
        about["odds"] = odds_of(given.seeds)
    if given.save:
        save(**about)


def parity_of(seeds: int) -> list[dict[str, Any]]:
    """Measure demographic parity on Adult at the gaps of the reference."""
    rows: list[dict[str, Any]] = []
    for epsilon, glued in GLUED.items():
        for method in METHODS:
            found = np.array([measure(method, epsilon, s) for s in range(seeds)])
            for i, reference in enumerate(glued):
                rows.append(row_of(method, epsilon, reference, found[:, i]))
                print(as_line(rows[-1]), flush=True)
    return rows


def row_of(
    method: str, epsilon: float, reference: tuple[float, float], found: np.ndarray
) -> dict[str, Any]:
    """One setting over seeds, and what it is compared with."""
    error, gap = (interval(column) for column in found.T)
    allowed = METHODS[method][1].get(epsilon)
    agrees = "-"
    if allowed is not None:
        close = error.mean <= reference[0] + allowed + error.half
        agrees = "yes" if close and gap.mean <= reference[1] + gap.half else "no"
    return {
        "method": method,
        "epsilon": epsilon,
        "reference": reference,
        "error": error.mean,
        "gap": gap.mean,
        "error_pm": error.half,
        "gap_pm": gap.half,
        "allowed": allowed,
        "agrees": agrees,
    }


def as_line(row: dict[str, Any]) -> str:
    """One line of the table."""
    error, gap = row["reference"]
    allowed = "-" if row["allowed"] is None else f"+{row['allowed']:g}"
    return (
        f"| {row['epsilon']:g} | {row['method']} | {error:.3f} / {gap:.3f} | {allowed} | "
        f"{row['error']:.4f} ± {row['error_pm']:.4f} / {row['gap']:.4f} ± {row['gap_pm']:.4f} | "
        f"{row['agrees']} |"
    )


def save(commit: str, seeds: int, rows: list[dict[str, Any]], odds: dict[str, Any]) -> None:
    """Write the rows as JSON and as tables."""
    write(
        "group_thresholds",
        {"commit": commit, "seeds": seeds, "rows": rows, "odds": odds},
        f"# Group-aware thresholds, {seeds} seeds, commits {commit} and {odds['commit']}\n",
        "`python reproductions/group_thresholds.py --save`; what a row compares with, and when it "
        "agrees, stands in the script.\n",
        "## Demographic parity on Adult\n",
        "| epsilon | method | glued together: error / gap | allowed | ours: error / gap "
        "| agrees? |",
        rule(6),
        *map(as_line, rows),
        f"\n## Equalized odds within a margin, {odds['seeds']} seeds\n",
        "| data | model | margin | rule | error | gap | ms | ours is | agrees? |",
        rule(9),
        *odds_lines(odds["rows"]),
    )


if __name__ == "__main__":
    main()
