"""Seven places to put fairness into PATE: error, gap and coverage of each at equal budget.

    python reproductions/intervention_points.py [--data Adult Credit] [--seeds 10] [--save]

Every seed is a split of its own (25 % test; of the rest 20 % public) with floating-point noise from
the operating system, delta 1e-5, margin .05, 250 teachers, defaults throughout. Every row of a seed
and an epsilon has the same budget; nothing is chosen on the test part. The first 2,000 test rows
are kept out of all measurements: they are the labelled public rows of fair-tuning. Error, balanced
error (the mean over classes) and pairwise gap are measured on the others: mean and half width of a
95 % interval over seeds.

"answered" is the share of the public rows whose answer the student learnt from, "decided" the share
of test rows that got a decision. "margin kept" counts the seeds whose test gap is at most the
margin, or is not above it by more than its own 95 % interval. Below the table stand the claims of
FairPATE (Section 3, Section 5 with Figure 4) about the points, on Adult, and whether our means
agree; "no" stays. A run saves the data sets it was asked for and leaves the others as they were.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _table import asked, beside_saved, rule, write
from scipy import stats

from evenhand import (
    REJECTED,
    Budget,
    DemographicParity,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.baselines import InterventionClassifier
from evenhand.baselines.intervention_points import POINTS
from evenhand.datasets import Dataset, load_adult, load_credit_default
from evenhand.fairness import fairness_report
from evenhand.fairness.gate.table_gate import default_cold_start
from evenhand.privacy import FloatNoise
from evenhand.students import MarginNotMet, ReductionStudent
from evenhand.teachers import ResampledTeachers, Undersample

LOADERS: dict[str, Callable[[], Dataset]] = {"Adult": load_adult, "Credit": load_credit_default}
MARGIN = DemographicParity(margin=0.05)
LABELLED = 2000  # test rows that serve fair-tuning and are measured by nobody
COLUMNS = ("error", "balanced", "gap", "answered", "decided", "kept", "seconds")


class Run:
    """One split, one budget: fits each row of the table and lets it decide on the test rows."""

    def __init__(self, data: Dataset, epsilon: float, seed: int) -> None:
        self.split = data.split(public=0.2, test=0.25, random_state=seed)
        self.common = {
            "budget": Budget(epsilon=epsilon, delta=1e-5),
            "noise": FloatNoise(),
            "random_state": seed,
        }
        test = self.split.test
        self.X, self.y, self.groups = (
            part[LABELLED:] for part in (test.X, np.asarray(test.y), np.asarray(test.groups))
        )

    def pate(self, answers: str = "labels", **settings: Any) -> Any:
        """Fit PATE, without a margin."""
        private, public = self.split.private, self.split.public
        model = PATEClassifier(answers=answers, **settings, **self.common)
        return model.fit(private.X, private.y, X_public=public.X)

    def fair(self, method: Any) -> Any:
        """Fit the estimator for use, which binds answers and student, or the student of shares."""
        return self._fit(method(fairness=MARGIN, **self.common))

    def at(self, point: str, answers: str = "labels", **settings: Any) -> Any:
        """Fit PATE with fairness at one point."""
        model = InterventionClassifier(
            fairness=MARGIN, at=point, answers=answers, **settings, **self.common
        )
        return self._fit(model)

    def tuned(self) -> Any:
        """Fit PATE, and tune its student on labelled rows."""
        test = self.split.test
        rows = (part[:LABELLED] for part in (test.X, np.asarray(test.y), np.asarray(test.groups)))
        return self.pate().fair_tuned(*rows, fairness=MARGIN)

    def rejecting(self) -> Any:
        """Fit PATE, and let it refuse decisions that would leave the margin."""
        names = sorted(set(np.asarray(self.split.public.groups).tolist()))
        cold_start = default_cold_start(MARGIN.margin)
        return self.pate().with_reject_option(MARGIN.margin, groups=names, cold_start=cold_start)

    def _fit(self, model: Any) -> Any:
        private, public = self.split.private, self.split.public
        return model.fit(
            private.X,
            private.y,
            sensitive_features=private.groups,
            X_public=public.X,
            sensitive_features_public=public.groups,
        )

    def measure(self, make: Callable[[Run], Any], needs_group: bool) -> tuple[float, ...]:
        """Fit one row of the table and measure it, in the order of ``COLUMNS``."""
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MarginNotMet)  # "margin kept" counts it
            model = make(self)
        seconds = time.perf_counter() - start
        given = {"sensitive_features": self.groups} if needs_group else {}
        said = np.asarray(model.predict(self.X, **given))
        decided = said != REJECTED
        y, said, groups = self.y[decided], said[decided], self.groups[decided]
        report = fairness_report(y, said, groups, classes=(0, 1), positive=1)
        gap = report["demographic_parity_pairwise"]
        answers = getattr(model, "estimator", model).answers_  # of the model that rejects
        return (
            report["error_rate"].value,
            float(np.mean([(said[y == k] != k).mean() for k in (0, 1)])),
            gap.value,
            answers.n_answered / len(answers),
            decided.mean(),
            gap.low <= MARGIN.margin,
            seconds,
        )


ROWS: dict[str, tuple[Callable[[Run], Any], bool]] = {
    "none: PATE": (lambda run: run.pate(), False),
    **{
        f"{point.number} {name}": ((lambda run, at=name: run.at(at)), point.needs_group)
        for name, point in POINTS.items()
    },
    "6 S_in, fairlearn's reduction": (
        lambda run: run.at("S_in", student=ReductionStudent()),
        False,
    ),
    "7 S_post, reject option": (lambda run: run.rejecting(), True),
    "4 and 6: FairPATEClassifier": (lambda run: run.fair(FairPATEClassifier), False),
    "6 on shares: FairSharesClassifier": (lambda run: run.fair(FairSharesClassifier), False),
    "3 T_post on shares": (lambda run: run.at("T_post", "shares"), False),
    "7 S_post on shares": (lambda run: run.at("S_post", "shares"), True),
    "fair-tuned (App. D), 2,000 labelled rows": (lambda run: run.tuned(), False),
    "none, undersampled teachers (E.2)": (
        lambda run: run.pate(teachers=ResampledTeachers(Undersample())),
        False,
    ),
}


def main() -> None:
    """Measure every row of the table and print it."""
    parser = asked(__doc__, seeds=10, keeps=False)
    parser.add_argument("--data", nargs="+", default=["Adult"], choices=LOADERS)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in given.data:
        data = LOADERS[name]()
        for epsilon in (3.0, 1.0):
            runs = [Run(data, epsilon, seed) for seed in range(given.seeds)]
            for label, (make, needs_group) in ROWS.items():
                found = np.array([run.measure(make, needs_group) for run in runs], dtype=float)
                rows.append(row_of(name, epsilon, label, needs_group, found))
                print(as_line(rows[-1]), flush=True)
        if given.save:  # after each data set: a run that is stopped keeps what it has
            save([row for row in rows if row["data"] == name], name)
    print("\n".join(map(claim_line, claims(rows))))


def row_of(name: str, epsilon: float, label: str, needs_group: bool, found: Any) -> dict[str, Any]:
    """One row of the table over seeds."""
    half = float(stats.t.ppf(0.975, len(found) - 1)) / np.sqrt(len(found))
    row: dict[str, Any] = {"data": name, "epsilon": epsilon, "point": label, "seeds": len(found)}
    row["needs_group"] = needs_group
    row |= dict(zip(COLUMNS, found.mean(axis=0).tolist(), strict=True))
    row |= {"error_pm": half * found[:, 0].std(ddof=1), "gap_pm": half * found[:, 2].std(ddof=1)}
    row["kept"] = int(found[:, COLUMNS.index("kept")].sum())
    return row


def claims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what FairPATE says about its points, beside our means."""
    out = []
    rows = [row for row in rows if row["data"] == "Adult"]
    for epsilon in sorted({row["epsilon"] for row in rows}, reverse=True):
        at = {row["point"]: row for row in rows if row["epsilon"] == epsilon}
        fair, pre, inside = at["4 aggregator"], at["5 S_pre"], at["6 S_in, fairlearn's reduction"]
        teachers = [at[f"{i} {name}"] for i, name in ((1, "T_pre"), (2, "T_in"), (3, "T_post"))]
        said = [
            (
                "C1: points before the noise do not satisfy the margin (T_pre, T_in, T_post)",
                all(row["gap"] > MARGIN.margin for row in teachers),
                "gaps " + ", ".join(f"{row['gap']:.3f}" for row in teachers),
            ),
            (
                "C2: T_pre costs more privacy",
                False,
                "each teacher filters its own partition: equal epsilon",
            ),
            (
                "C3: S_pre leaves the student fewer answers than the aggregator",
                pre["answered"] < fair["answered"],
                f"{pre['answered']:.3f} against {fair['answered']:.3f} of the public rows",
            ),
            (
                "Figure 4: the aggregator is at least as good as S_pre in error and gap",
                fair["error"] <= pre["error"] and fair["gap"] <= pre["gap"],
                f"{fair['error']:.4f} / {fair['gap']:.3f} against "
                f"{pre['error']:.4f} / {pre['gap']:.3f}",
            ),
            (
                "Figure 4: S_in has the tighter gap, by up to .03",
                0 < fair["gap"] - inside["gap"] <= 0.03,
                f"by {fair['gap'] - inside['gap']:.3f}",
            ),
            (
                "Figure 4: S_in pays for it with up to .02 of accuracy",
                0 < inside["error"] - fair["error"] <= 0.02,
                f"with {inside['error'] - fair['error']:.4f}",
            ),
            (
                "Section 4: the aggregator is the only viable point (its student keeps the margin)",
                fair["kept"] >= 0.9 * fair["seeds"],
                f"gap {fair['gap']:.3f}, kept in {fair['kept']} of {fair['seeds']} seeds",
            ),
        ]
        out += [
            {
                "epsilon": epsilon,
                "claim": claim,
                "ours": ours,
                "agrees": "yes" if agrees else "no",
            }
            for claim, agrees, ours in said
        ]
    return out


def claim_line(claim: dict[str, Any]) -> str:
    """One claim of the paper."""
    return f"| {claim['epsilon']:g} | {claim['claim']} | {claim['ours']} | {claim['agrees']} |"


def as_line(row: dict[str, Any]) -> str:
    """One line of the table."""
    return (
        f"| {row['data']} | {row['epsilon']:g} | {row['point']} | "
        f"{row['error']:.4f} ± {row['error_pm']:.4f} | {row['balanced']:.3f} | "
        f"{row['gap']:.4f} ± {row['gap_pm']:.4f} | {row['kept']} of {row['seeds']} | "
        f"{row['answered']:.2f} | {row['decided']:.2f} | "
        f"{'yes' if row['needs_group'] else 'no'} | {row['seconds']:.1f} |"
    )


def save(fresh: list[dict[str, Any]], name: str) -> None:
    """Write the rows of one data set beside those that are saved, as JSON and as tables."""
    commits, rows = beside_saved("intervention_points", name, fresh, order=list(LOADERS))
    measured = "; ".join(
        f"{data}: {next(row['seeds'] for row in rows if row['data'] == data)} seeds, "
        f"commit {commits[data]}"
        for data in LOADERS
        if data in commits
    )
    write(
        "intervention_points",
        {"commits": commits, "rows": rows, "claims": claims(rows)},
        f"# Intervention points\n\n{measured}.\n",
        f"`python reproductions/intervention_points.py --data {' '.join(LOADERS)} --save`; "
        "margin .05, delta 1e-5; what the columns are, and when a claim agrees, stands in the "
        "script.\n",
        "| data | epsilon | point | error | balanced error | pairwise gap | margin kept | answered "
        "| decided | group at prediction? | seconds a fit |",
        rule(11),
        *map(as_line, rows),
        "\n## What FairPATE says (Adult)\n\n| epsilon | claim | ours | agrees? |",
        rule(4),
        *map(claim_line, claims(rows)),
    )


if __name__ == "__main__":
    main()
