"""Whether teachers tell more where the noisy counts doubt: which drawn rows they are asked about.

    python reproductions/doubted_rows.py [--seeds 5] [--again 0] [--kept FILE] [--save]

On training rows of tables on which defaults are chosen (German, Parkinsons, Bank, ACS-Income of
Maryland, Credit; ``_inner.py``: of no test row anything is read), each seed a split of its own;
epsilon 1 and 3, delta 1e-5, noise from the operating system, no margin. The *default* is
``PATEClassifier(public="synthetic")``: nine tenths of the budget buy noisy counts, 2,000 rows are
drawn from these, teachers answer by noisy shares, and the student learns the answers beside the
chances of labels by the counts.

- *doubted*: ten times as many rows are drawn, and those are asked about of which the counts are
  least sure: whose largest chance of a label is least. That is free.
- *half doubted*: half of the rows so, the others as they are drawn.
- *doubted, half the budget*: as the first, and half of the budget buys counts, so that votes, which
  might now tell more, have five times as much.

**Rule**, written before the first run: of each seed the mean over the five tables of error minus
the default's; a way is *taken* if the 95 % interval of these differences over seeds lies below 0 at
epsilon 1 and at epsilon 3. A way that is taken is measured again, on as many other splits
(``--again``), before anything is made a default: it must be taken there too, by these alone. "no"
rows stay.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import _tried
import numpy as np
import pandas as pd
from _inner import LOADERS, inner
from _table import Runs
from _tried import DEFAULT, DELTA, EPSILONS

from evenhand import Budget, PATEClassifier
from evenhand.estimators.drawn_rows import MARGIN_ROWS
from evenhand.estimators.synthetic_rows import SyntheticRows
from evenhand.generators import MarginalSynthesizer
from evenhand.privacy import FloatNoise

NAME = "doubted_rows"
WAYS = {"doubted": (1.0, None), "half doubted": (0.5, None), "doubted, half the budget": (1.0, 0.5)}
"""Which part of the rows the counts doubt, and the share of the budget that buys counts."""
TIMES = 10


@contextmanager
def doubting(part: float) -> Iterator[None]:
    """Ask about such rows, within this: of those that are drawn to be asked about, alone."""
    sample = MarginalSynthesizer.sample

    def doubted(self: MarginalSynthesizer, n_rows: int, **given: Any) -> pd.DataFrame:
        if n_rows >= MARGIN_ROWS:  # for the student, and to read a margin on
            return sample(self, n_rows, **given)
        frame = sample(self, TIMES * n_rows, **given)
        sure = self.label_chances(frame).max(axis=1)
        n = round(part * n_rows)
        least = np.argsort(sure, kind="stable")[:n]
        others = np.setdiff1d(np.arange(len(frame)), least)
        others = np.random.default_rng(0).permutation(others)[: n_rows - n]
        return frame.iloc[[*least, *others]].reset_index(drop=True)

    with mock.patch.object(MarginalSynthesizer, "sample", doubted):
        yield


def error(of: Any, seed: int, epsilon: float, way: str) -> float:
    """Return the error of a way on the rows that judge."""
    part, share = WAYS.get(way, (0.0, None))
    drawn = SyntheticRows() if share is None else SyntheticRows(share=share)
    model = PATEClassifier(
        Budget(epsilon=epsilon, delta=DELTA), noise=FloatNoise(), random_state=seed, public=drawn
    )
    with doubting(part) if part else warnings.catch_warnings():
        model.fit(of.X, of.y)
    return float((model.predict(of.X_judge) != of.y_judge).mean())


def measure(seed: int, table: str) -> list[dict[str, Any]]:
    """Return the errors of the ways on one split of a table."""
    split = inner(table, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of noise: the error says it
        return [
            {
                **{"table": table, "seed": seed, "epsilon": epsilon, "way": way},
                **{"n": len(split.y), "error": error(split, seed, epsilon, way)},
            }
            for epsilon in EPSILONS
            for way in (DEFAULT, *WAYS)
        ]


def save(rows: list[dict[str, Any]], seeds: int, again: int, commit: str) -> None:
    """Write rows and verdicts as JSON, and as tables."""
    about = {"ways": tuple(WAYS), "tables": tuple(LOADERS), "seeds": seeds, "again": again}
    _tried.save(NAME, "Which drawn rows teachers are asked about", rows, commit=commit, **about)


def complete(rows: Runs, seeds: range) -> None:
    """Measure what is missing of these splits."""
    rows.complete(measure, seed=seeds, table=LOADERS)


if __name__ == "__main__":
    _tried.main(__doc__, 5, complete, save)
