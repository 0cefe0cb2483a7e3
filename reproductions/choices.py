"""How the defaults of noisy shares were chosen: on Bank, ACS-Income and German credit only.

    python reproductions/choices.py [--draws 4] [--save]

No row of Adult, Credit or Parkinsons, whose numbers this project reports, was read for a choice.
Every table is split as always (25 % test; of the rest 20 % public) twice; teachers are logistic
regressions (C = 100), noise is drawn anew ``--draws`` times, epsilon is .5, 1 and 3 at delta 1e-5.
The figure is the mean error on these tables' test parts, over all tables, splits, draws and
epsilons; ± is the mean over tables of the standard error of a table's mean.

What was tried: the factor in the number of teachers, the number of rounds and the share of rows
that later rounds ask, the prior variance of the student's coefficients, teachers and students in
coordinates whitened by the public rows, and sums of teachers' probabilities in place of votes.
Kept is the row marked "default". A second table is about students under a margin, on ACS-Income
with marital status as the group (base rates .60 and .31; margins .02, .05 and .1): whether the
student under the margin follows the shares as they were released, or what a student without one
made of them, and with which ridge. It shows error / pairwise gap. A third says when to warn: the
error on 6,000 rows of ACS-Income (a guess errs on half) with fewer and fewer teachers, beside
``teachers * mu / sqrt(columns)``; below 1 ``NoiseDrownsAnswers`` is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from _table import asked, write
from scipy.special import expit

from evenhand.datasets import (
    Dataset,
    PublicEncoder,
    load_acs_income,
    load_bank,
    load_german,
)
from evenhand.fairness import DemographicParity
from evenhand.fairness.groups import encode_groups
from evenhand.learners.linear import StackedLogistic
from evenhand.privacy.gaussian import mu_from_epsilon
from evenhand.students.constrained import LinearFit, fit_linear
from evenhand.students.objective import ShareLoss
from evenhand.students.within import Within
from evenhand.teachers import by_position
from evenhand.typing import BoolArray, FloatArray, IntArray

EPSILONS = (0.5, 1.0, 3.0)
SPLITS = (0, 1)
TABLES: tuple[tuple[str, Callable[[], Dataset], int | None], ...] = (
    ("German", load_german, None),
    ("ACS-Income, 6,000 rows", load_acs_income, 6_000),
    ("Bank, 6,000 rows", load_bank, 6_000),
    ("ACS-Income, 20,000 rows", load_acs_income, 20_000),
    ("ACS-Income", load_acs_income, None),
    ("Bank", load_bank, None),
)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One way to choose; the fields that differ from the default name it."""

    teachers: float = 5.0
    rounds: int = 3
    again: float = 0.2
    prior: float = 0.25
    teacher_space: str = "as encoded"
    student_space: str = "as encoded"
    counted: str = "votes"
    follows: str = "smoothed shares"
    smoothed_variance: float = 0.1

    def name(self) -> str:
        """Return what differs from the default."""
        mine, usual = vars(self), vars(Choice())
        return ", ".join(f"{k}={v}" for k, v in mine.items() if v != usual[k]) or "default"


DEFAULT = Choice()
CHOICES = (
    DEFAULT,
    *(replace(DEFAULT, teachers=c) for c in (2.5, 3.5, 7.0, 10.0)),
    replace(DEFAULT, rounds=1),
    replace(DEFAULT, rounds=2),
    replace(DEFAULT, rounds=4),
    *(replace(DEFAULT, again=share) for share in (0.1, 0.4)),
    *(replace(DEFAULT, prior=v) for v in (0.06, 0.12, 0.5, 1.0)),
    replace(DEFAULT, teacher_space="whitened"),
    replace(DEFAULT, student_space="whitened"),
    replace(DEFAULT, counted="probabilities"),
)

UNDER_A_MARGIN = (
    DEFAULT,
    replace(DEFAULT, smoothed_variance=0.01),
    replace(DEFAULT, smoothed_variance=1.0),
    replace(DEFAULT, follows="released shares"),
    replace(DEFAULT, rounds=1),
    replace(DEFAULT, rounds=1, follows="released shares"),
)
MARGINS = (0.02, 0.05, 0.1)
MARGIN_ROWS = (6_000, 20_000)
FEWER = (0.2, 0.35, 0.6, 1.0, 1.8, 3.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Encoded rows, 0/1 labels and group codes of the three parts."""

    private: FloatArray
    y_private: IntArray
    public: FloatArray
    z_public: IntArray
    test: FloatArray
    y_test: IntArray
    z_test: IntArray

    @classmethod
    def of(cls, data: Dataset, n_rows: int | None, seed: int) -> Split:
        """Take a part of the table, and split and encode it as an estimator would."""
        if n_rows is not None:
            rows = np.random.default_rng(0).permutation(len(data.y))[:n_rows]
            data = replace(
                data,
                **{
                    name: getattr(data, name).iloc[rows].reset_index(drop=True)
                    for name in ("X", "y", "groups")
                },
            )
        parts = data.split(public=0.2, test=0.25, random_state=seed)
        encoder = PublicEncoder().fit(parts.public.X)
        code = {value: k for k, value in enumerate(sorted(set(data.y)))}
        groups = encode_groups(parts.public.groups)
        return cls(
            private=encoder.transform(parts.private.X),
            y_private=parts.private.y.map(code).to_numpy(np.int64),
            public=encoder.transform(parts.public.X),
            z_public=groups.codes,
            test=encoder.transform(parts.test.X),
            y_test=parts.test.y.map(code).to_numpy(np.int64),
            z_test=encode_groups(parts.test.groups, names=groups.names).codes,
        )

    def whitened(self) -> Split:
        """Rotate and scale by the covariance of the public rows, small directions floored."""
        mean = self.public.mean(axis=0)
        spread, directions = np.linalg.eigh(np.cov(self.public.T))
        turn = directions / np.sqrt(np.maximum(spread, 1e-3 * spread.max()))
        moved = {k: (getattr(self, k) - mean) @ turn for k in ("private", "public", "test")}
        return replace(self, **moved)


class Runs:
    """Errors of all choices on one split; teachers are trained once."""

    def __init__(self, split: Split) -> None:
        self.spaces = {"as encoded": split, "whitened": split.whitened()}
        self._said: dict[tuple[int, str, str], FloatArray] = {}

    def error(self, choice: Choice, epsilon: float, seed: int) -> float:
        """Test error of one student with noise of its own."""
        where = self.spaces[choice.student_space]
        _, fit = self.learn(choice, epsilon, seed)
        return float((self.decide(choice, fit) != where.y_test).mean())

    def under_margin(
        self, choice: Choice, epsilon: float, margin: float, seed: int
    ) -> tuple[float, float]:
        """Test error and gap of one student whose public decisions are within the margin."""
        where = self.spaces[choice.student_space]
        loss, free = self.learn(choice, epsilon, seed)
        if choice.follows == "smoothed shares":
            p = expit(where.public @ free.coef[0] + free.intercept[0])
            loss = ShareLoss(
                shares=np.stack([1 - p, p], axis=1),
                variance=np.full(len(p), choice.smoothed_variance),
            )
        within = Within(notion=DemographicParity(margin=margin), groups=where.z_public, n_groups=2)
        decided = self.decide(choice, fit_linear(where.public, loss, within))
        rates = [decided[where.z_test == z].mean() for z in range(2)]
        return float((decided != where.y_test).mean()), float(abs(rates[0] - rates[1]))

    def decide(self, choice: Choice, fit: LinearFit) -> BoolArray:
        """Return the decisions on test rows."""
        decided: BoolArray = (
            self.spaces[choice.student_space].test @ fit.coef[0] + fit.intercept[0] > 0
        )
        return decided

    def learn(self, choice: Choice, epsilon: float, seed: int) -> tuple[ShareLoss, LinearFit]:
        """Return what the rounds released, and the student without a margin."""
        mu = mu_from_epsilon(epsilon, 1e-5)
        n_teachers = self.n_teachers(choice, mu)
        said = self.said(n_teachers, choice.teacher_space, choice.counted)
        where = self.spaces[choice.student_space]
        rng = np.random.default_rng(seed)
        total, precision = np.zeros(len(said)), np.zeros(len(said))
        rows, fit = np.arange(len(said)), None
        for _ in range(choice.rounds):
            if fit is not None:
                sure = np.abs(where.public @ fit.coef[0] + fit.intercept[0])
                rows = np.argsort(sure, kind="stable")[: max(1, int(choice.again * len(said)))]
            sigma = np.sqrt(len(rows) * choice.rounds) / mu / n_teachers
            total[rows] += (said[rows] + sigma * rng.normal(size=len(rows))) / sigma**2
            precision[rows] += sigma**-2
            share = total / precision
            loss = ShareLoss(
                shares=np.stack([1 - share, share], axis=1),
                variance=1 / precision,
                prior_variance=choice.prior,
            )
            fit = fit_linear(where.public, loss, None)
        assert fit is not None
        return loss, fit

    def n_teachers(self, choice: Choice, mu: float) -> int:
        """Return how many teachers the choice makes of this split."""
        n = len(self.spaces["as encoded"].private)
        return max(1, min(int(choice.teachers * np.cbrt(n / mu**2)), n // 4))

    def said(self, n_teachers: int, space: str, counted: str) -> FloatArray:
        """Mean over teachers of what each says about each public row, from 0 to 1."""
        key = (n_teachers, space, counted)
        if key not in self._said:
            split = self.spaces[space]
            rng = np.random.default_rng(0)
            deal = by_position(len(split.private), n_teachers, 0)
            fitted = StackedLogistic(C=100.0, tolerance=1e-5).fit(
                split.private, split.y_private, deal.all_rows, n_classes=2, rng=rng
            )
            scores = split.public @ fitted.coef[:, 0].T + fitted.intercept[:, 0]
            votes = scores > 0 if counted == "votes" else expit(scores)
            self._said[key] = votes.mean(axis=1)
        return self._said[key]


def main() -> None:
    """Measure every choice and print a row for each."""
    parser = asked(__doc__, keeps=False)
    parser.add_argument("--draws", type=int, default=4)
    given = parser.parse_args()
    errors: dict[str, dict[str, list[float]]] = {choice.name(): {} for choice in CHOICES}
    for name, loader, n_rows in TABLES:
        data = loader()
        for seed in SPLITS:
            runs = Runs(Split.of(data, n_rows, seed))
            for choice in CHOICES:
                errors[choice.name()].setdefault(name, []).extend(
                    runs.error(choice, epsilon, draw)
                    for epsilon in EPSILONS
                    for draw in range(given.draws)
                )
        print(name, flush=True)
    rows = [row_of(name, found) for name, found in errors.items()]
    under = [margin_row(choice, given.draws) for choice in UNDER_A_MARGIN]
    drowned = [row for factor in FEWER for row in drowned_rows(factor, given.draws)]
    lines = [*as_table(rows), "", *as_margin_table(under), "", *as_drowned_table(drowned)]
    print("\n".join(lines))
    if given.save:
        document = __doc__.replace("    python", "`python").replace("[--save]", "[--save]`")
        about = {"draws": given.draws, "rows": rows, "margins": under}
        about |= {"drowned": drowned}
        write("choices", about, f"# {document}", *lines)


def row_of(name: str, found: dict[str, list[float]]) -> dict[str, Any]:
    """Mean error over tables, and of each."""
    tables = {table: float(np.mean(values)) for table, values in found.items()}
    noise = [np.std(values, ddof=1) / np.sqrt(len(values)) for values in found.values()]
    return {
        "choice": name,
        "error": float(np.mean(list(tables.values()))),
        "standard_error": float(np.mean(noise)),
        "tables": tables,
    }


def margin_row(choice: Choice, draws: int) -> dict[str, Any]:
    """Mean error and gap of students under each margin, over tables, splits, draws, epsilons."""
    data = load_acs_income()
    data = replace(data, groups=data.X["MAR"].astype(str).rename("MAR"))
    found: dict[str, list[tuple[float, float]]] = {}
    for n_rows in MARGIN_ROWS:
        for seed in SPLITS:
            key = (n_rows, seed)
            if key not in _RUNS:
                _RUNS[key] = Runs(Split.of(data, n_rows, seed))
            for margin in MARGINS:
                found.setdefault(f"{margin:g}", []).extend(
                    _RUNS[key].under_margin(choice, epsilon, margin, draw)
                    for epsilon in EPSILONS
                    for draw in range(draws)
                )
    return {"choice": choice.name()} | {
        margin: [float(x) for x in np.mean(values, axis=0)] for margin, values in found.items()
    }


def drowned_rows(factor: float, draws: int) -> list[dict[str, float]]:
    """Error with ``factor`` in the number of teachers, for each epsilon."""
    choice = replace(DEFAULT, teachers=factor)
    rows = []
    for epsilon in EPSILONS:
        mu, found, signal = mu_from_epsilon(epsilon, 1e-5), [], 0.0
        for seed in SPLITS:
            runs = _RUNS.setdefault(
                (MARGIN_ROWS[0], seed), Runs(Split.of(load_acs_income(), MARGIN_ROWS[0], seed))
            )
            n_teachers = runs.n_teachers(choice, mu)
            signal = n_teachers * mu / np.sqrt(runs.spaces["as encoded"].public.shape[1])
            found += [runs.error(choice, epsilon, draw) for draw in range(draws)]
        rows.append(
            {
                "teachers": n_teachers,
                "epsilon": epsilon,
                "signal": float(signal),
                "error": float(np.mean(found)),
            }
        )
    return rows


def as_drowned_table(rows: list[dict[str, float]]) -> list[str]:
    """Lines of a Markdown table, the weakest signal first."""
    lines = ["| teachers * mu / sqrt(columns) | teachers | epsilon | error |", "|" + " --- |" * 4]
    for row in sorted(rows, key=lambda row: row["signal"]):
        lines.append(
            f"| {row['signal']:.2f} | {row['teachers']} | {row['epsilon']:g} | {row['error']:.3f} |"
        )
    return lines


_RUNS: dict[tuple[int, int], Runs] = {}


def as_margin_table(rows: list[dict[str, Any]]) -> list[str]:
    """Lines of a Markdown table: error / gap for each margin."""
    names = [f"{margin:g}" for margin in MARGINS]
    lines = [
        f"| under a margin | {' | '.join(f'margin {name}' for name in names)} |",
        "|" + " --- |" * (1 + len(names)),
    ]
    for row in rows:
        each = " | ".join(f"{row[name][0]:.4f} / {row[name][1]:.3f}" for name in names)
        lines.append(f"| {row['choice']} | {each} |")
    return lines


def as_table(rows: list[dict[str, Any]]) -> list[str]:
    """Lines of a Markdown table."""
    names = list(rows[0]["tables"])
    lines = [
        f"| choice | mean error | {' | '.join(names)} |",
        "|" + " --- |" * (2 + len(names)),
    ]
    for row in rows:
        each = " | ".join(f"{row['tables'][name]:.4f}" for name in names)
        mean = f"{row['error']:.4f} ± {row['standard_error']:.4f}"
        lines.append(f"| {row['choice']} | {mean} | {each} |")
    return lines


if __name__ == "__main__":
    main()
