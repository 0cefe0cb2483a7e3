"""How the defaults of noisy shares were chosen: on Bank, ACS-Income and German credit only.

    python reproductions/choices.py [--draws 4] [--save]

No row of Adult, Credit or Parkinsons, whose numbers this project reports, was read for a choice.
Every table is split as always (25 % test; of the rest 20 % public) twice; teachers are logistic
regressions (C = 100), noise is drawn anew ``--draws`` times, epsilon is .5, 1 and 3 at delta 1e-5.
The figure is the mean error on these tables' test parts, over all tables, splits, draws and
epsilons; beside it the mean over tables of the standard error of its mean.

What was tried: the factor in the number of teachers, the number of rounds and the share of rows
that later rounds ask, the prior variance of the student's coefficients, teachers and students in
coordinates whitened by the public rows, and sums of teachers' probabilities in place of votes.
Kept is the row marked "default".
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from evenhand.datasets import (
    Dataset,
    PublicEncoder,
    load_acs_income,
    load_bank,
    load_german,
)
from evenhand.learners import StackedLogistic
from evenhand.privacy import mu_from_epsilon
from evenhand.students import ShareLoss, fit_linear
from evenhand.teachers import by_position
from evenhand.typing import FloatArray, IntArray

RESULTS = Path(__file__).parent / "results"
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Encoded rows and 0/1 labels of the three parts."""

    private: FloatArray
    y_private: IntArray
    public: FloatArray
    test: FloatArray
    y_test: IntArray

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
        return cls(
            private=encoder.transform(parts.private.X),
            y_private=parts.private.y.map(code).to_numpy(np.int64),
            public=encoder.transform(parts.public.X),
            test=encoder.transform(parts.test.X),
            y_test=parts.test.y.map(code).to_numpy(np.int64),
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
        n = len(self.spaces["as encoded"].private)
        mu = mu_from_epsilon(epsilon, 1e-5)
        n_teachers = max(1, min(int(choice.teachers * np.cbrt(n / mu**2)), n // 4))
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
            fit = fit_linear(where.public, loss, None, 2)
        assert fit is not None
        decided = where.test @ fit.coef[0] + fit.intercept[0] > 0
        return float((decided != where.y_test).mean())

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--save", action="store_true", help="write reproductions/results/")
    arguments = parser.parse_args()
    errors: dict[str, dict[str, list[float]]] = {choice.name(): {} for choice in CHOICES}
    for name, loader, n_rows in TABLES:
        data = loader()
        for seed in SPLITS:
            runs = Runs(Split.of(data, n_rows, seed))
            for choice in CHOICES:
                errors[choice.name()].setdefault(name, []).extend(
                    runs.error(choice, epsilon, draw)
                    for epsilon in EPSILONS
                    for draw in range(arguments.draws)
                )
        print(name, flush=True)
    rows = [row_of(name, found) for name, found in errors.items()]
    lines = as_table(rows)
    print("\n".join(lines))
    if arguments.save:
        document = __doc__.replace("    python", "`python").replace("[--save]", "[--save]`")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "choices.json").write_text(
            json.dumps({"draws": arguments.draws, "rows": rows}, indent=1) + "\n"
        )
        (RESULTS / "choices.md").write_text(f"# {document}\n" + "\n".join(lines) + "\n")


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


def as_table(rows: list[dict[str, Any]]) -> list[str]:
    """Lines of a Markdown table."""
    names = list(rows[0]["tables"])
    lines = [
        f"| choice | mean error | {' | '.join(names)} |",
        "|" + " --- |" * (2 + len(names)),
    ]
    for row in rows:
        each = " | ".join(f"{row['tables'][name]:.4f}" for name in names)
        lines.append(f"| {row['choice']} | {row['error']:.4f} | {each} |")
    return lines


if __name__ == "__main__":
    main()
