"""Rows of tables on which defaults are chosen: the training part alone, parted once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

from evenhand.datasets import (
    Dataset,
    load_acs_income,
    load_bank,
    load_credit_default,
    load_german,
    load_parkinsons,
)
from evenhand.typing import IntArray

LOADERS: dict[str, Callable[[], Dataset]] = {
    "German": load_german,
    "Parkinsons": lambda: load_parkinsons(keep_motor_updrs=True),
    "Bank": load_bank,
    "ACS-Income MD": lambda: load_acs_income(("MD",)),
    "Credit": load_credit_default,
}
MOST_FITTED, MOST_JUDGES = 16_000, 8_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Inner:
    """A split of the training part: rows to fit on, public rows without labels, and judges."""

    X: pd.DataFrame
    y: IntArray
    public: pd.DataFrame
    X_judge: pd.DataFrame
    y_judge: IntArray


@cache
def load(table: str) -> Dataset:
    """Return a table, read once."""
    return LOADERS[table]()


def inner(table: str, seed: int) -> Inner:
    """Set 25 % test rows aside unseen and 20 % of the rest as public; part what is left by 2 to 1.

    At most 16,000 rows are fitted and 8,000 judge. Classes are 0 and 1.
    """
    split = load(table).split(public=0.2, test=0.25, random_state=seed)
    X, y = split.private.X, pd.factorize(split.private.y, sort=True)[0].astype(np.int64)
    n = min(MOST_FITTED, 2 * len(y) // 3)
    fit, judge = slice(0, n), slice(n, n + MOST_JUDGES)  # a split has its rows in random order
    return Inner(
        X=X.iloc[fit],
        y=y[fit],
        public=split.public.X,
        X_judge=X.iloc[judge],
        y_judge=y[judge],
    )
