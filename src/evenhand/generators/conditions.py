"""The combinations of label and group that a generator knows, and the rows that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._checks import did_you_mean
from evenhand._numerals import text_of
from evenhand.datasets.columns import refuse_repeated
from evenhand.generators.rounding import Rounding
from evenhand.typing import ArrayLike, BoolArray, FloatArray, IntArray

BALANCES: Final = ("label", "sensitive")

NO_GROUPS: Final = (
    "asks for even groups, and this generator is conditioned on the label alone: it draws no "
    "groups. Ask for 'label' or for none; groups are exact where it learns from them with "
    "condition='label+group'."
)


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The combinations of label and sensitive values that a generator is conditioned on.

    Examples
    --------
    >>> cells = Conditions(names=("y", "s"), categories=(("no", "yes"), ("a", "b", "c")))
    >>> cells.n, cells.words(4)
    (6, 'y=yes, s=b')
    """

    names: tuple[str, ...]
    """The label's column first, then the sensitive ones."""
    categories: tuple[tuple[str, ...], ...]
    """Of each."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each column."""
        return tuple(map(len, self.categories))

    @property
    def n(self) -> int:
        """Number of combinations."""
        return int(np.prod(self.sizes))

    @property
    def n_groups(self) -> int:
        """Number of groups: combinations of the sensitive values alone."""
        return self.n // self.sizes[0]

    def code(self, codes: Sequence[IntArray]) -> IntArray:
        """Return the combination of each row from the codes of its columns."""
        joined: IntArray = np.ravel_multi_index(tuple(codes), self.sizes).astype(np.int64)
        return joined

    def parts(self, combined: IntArray) -> tuple[IntArray, ...]:
        """Return the code of every column from the combination."""
        return tuple(part.astype(np.int64) for part in np.unravel_index(combined, self.sizes))

    def labels(self) -> IntArray:
        """Label code of each combination."""
        return self.parts(np.arange(self.n))[0]

    def groups(self) -> IntArray:
        """Group code of each combination."""
        return np.arange(self.n) % self.n_groups

    def words(self, combined: int) -> str:
        """Name a combination."""
        at = self.parts(np.array([combined]))
        named = zip(self.names, self.categories, at, strict=True)
        return ", ".join(f"{name}={values[int(i[0])]}" for name, values, i in named)

    def position(self, column: str, value: str) -> int:
        """Return the code of a value, or say that it was never seen."""
        categories = self.categories[self.names.index(column)]
        if value not in categories:
            raise ValueError(
                f"The condition {column}={value!r} is not a category of that column: "
                f"{', '.join(map(repr, categories))}.{did_you_mean(value, categories)}"
            )
        return categories.index(value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """Rows that are asked for."""

    counts: IntArray
    """Rows of each combination. Empty where ``fixed`` says it row by row. Shape (n_conditions,)."""
    probabilities: FloatArray
    """Shares behind the counts. Shape (n_conditions,)."""
    as_it_is: bool
    """Whether nothing was balanced and no condition set."""
    fixed: IntArray | None = None
    """Combination of each row of a table of conditions."""
    index: Any = None
    """Of that table."""

    @classmethod
    def of(
        cls,
        known: Conditions,
        learnt: FloatArray,
        *,
        n: int | None,
        conditions: Mapping[str, object] | pd.DataFrame | None,
        balance: Sequence[str],
        shares: ArrayLike | None = None,
        rounding: Rounding,
    ) -> Request:
        """Read what the user asked for.

        Raises
        ------
        ValueError
            For a column that is not a condition, a value that was never seen (the nearest is
            named), no number of rows, an unknown word in ``balance``, and a balance of groups
            alone where none are known.
        TypeError
            For a balance that is no list, and conditions that name no columns.
        """
        if isinstance(balance, str):
            balance = (balance,)
        if not isinstance(balance, Iterable):
            raise TypeError(
                f"balance must be a list of {', '.join(map(repr, BALANCES))}, got {balance!r}. For "
                f"shares as they were learnt pass balance=()."
            )
        for word in balance:
            _checks.one_of("balance", word, BALANCES)
        if set(balance) == {"sensitive"} and not known.names[1:]:
            raise ValueError(f"balance=('sensitive',) {NO_GROUPS}")
        require_conditions(conditions)
        if shares is not None:
            return cls._by_shares(known, n, conditions, shares, rounding)
        if isinstance(conditions, pd.DataFrame):
            return cls._row_by_row(known, learnt, n, conditions, balance, rounding)
        if n is None:
            raise ValueError("n is missing: say how many rows, or pass a table of conditions.")
        n = _checks.at_least("n", n, 1)
        allowed = np.ones(known.n, dtype=np.bool_)
        for column, value in (conditions or {}).items():
            _refuse_other(known, column)
            at = known.position(column, text_of(value))
            allowed &= known.parts(np.arange(known.n))[known.names.index(column)] == at
        probabilities = _shares(known, learnt, allowed, balance)
        return cls(
            counts=_counts(known, n, probabilities, balance, rounding),
            probabilities=probabilities,
            as_it_is=not balance and not conditions,
        )

    @classmethod
    def _by_shares(
        cls,
        known: Conditions,
        n: int | None,
        conditions: object,
        given: ArrayLike,
        rounding: Rounding,
    ) -> Request:
        if n is None or conditions is not None:
            raise ValueError("shares= goes with n, and without conditions=.")
        try:
            shares = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            shares = np.full(0, np.nan)  # no numbers, or of no shape
        right = shares.shape == (known.n,) and bool((shares >= 0).all())
        if not (right and 0 < shares.sum() < np.inf):
            raise ValueError(
                f"shares must be {known.n} finite numbers that are not negative and not all 0, one "
                f"per combination of label and group, got {given!r:.200}."
            )
        counts = rounding(_checks.at_least("n", n, 1), shares)
        return cls(counts=counts, probabilities=shares / shares.sum(), as_it_is=False)

    @classmethod
    def _row_by_row(
        cls,
        known: Conditions,
        learnt: FloatArray,
        n: int | None,
        conditions: pd.DataFrame,
        balance: Sequence[str],
        rounding: Rounding,
    ) -> Request:
        require_lines(n, conditions)
        fixed = np.zeros(len(conditions), dtype=np.int64)
        names = list(conditions.columns)
        by = names if names[1:] else names[0]  # pandas warns of a list of one
        lines = conditions.reset_index(drop=True).groupby(by, dropna=False)
        probabilities = np.zeros(known.n)
        for values, rows in lines.groups.items():
            given = values if isinstance(values, tuple) else (values,)
            one = cls.of(
                known,
                learnt,
                n=len(rows),
                conditions=dict(zip(names, given, strict=True)),
                balance=balance,
                rounding=rounding,
            )
            fixed[np.asarray(rows)] = one.rows(rounding.rng)
            probabilities += one.probabilities
        return cls(
            counts=np.bincount(fixed, minlength=known.n).astype(np.int64),
            probabilities=probabilities,
            as_it_is=False,
            fixed=fixed,
            index=conditions.index,
        )

    def rows(self, rng: np.random.Generator) -> IntArray:
        """Return the combination of each row, in random order unless it is fixed."""
        if self.fixed is not None:
            return self.fixed
        return rng.permutation(np.repeat(np.arange(len(self.counts)), self.counts))


def require_conditions(conditions: object) -> None:
    """Raise TypeError for conditions that name no columns."""
    if conditions is not None and not isinstance(conditions, Mapping | pd.DataFrame):
        raise TypeError(
            f"conditions must be a mapping such as {{'sex': 'F'}}, or a DataFrame of one line per "
            f"row, got {conditions!r:.60}."
        )
    if isinstance(conditions, pd.DataFrame):
        refuse_repeated(map(str, conditions.columns), "table of conditions")


def require_lines(n: int | None, conditions: pd.DataFrame) -> None:
    """Raise ValueError for a table of conditions without a line, or of other length than n."""
    if n is not None and n != len(conditions):
        raise ValueError(
            f"n={n} and a table of {len(conditions)} conditions do not agree: leave n out."
        )
    if not len(conditions) or not conditions.shape[1]:
        raise ValueError("The table of conditions is empty.")


def _shares(
    known: Conditions, learnt: FloatArray, allowed: BoolArray, balance: Sequence[str]
) -> FloatArray:
    """Share of each combination: even where balanced, else as the noisy counts have it."""
    weights = np.where(allowed, learnt, 0.0)
    shares: FloatArray
    if set(balance) == set(BALANCES):
        shares = allowed / allowed.sum()
    elif not balance:
        shares = weights / weights.sum()
    else:
        by = known.labels() if "label" in balance else known.groups()
        totals = np.bincount(by, weights)
        shares = np.where(allowed, weights / np.maximum(totals[by], 1e-300), 0.0)
        shares = shares / shares.sum()
    return shares


def _counts(
    known: Conditions, n: int, shares: FloatArray, balance: Sequence[str], rounding: Rounding
) -> IntArray:
    """Whole numbers near ``n * shares``; what is balanced differs by at most 1."""
    if len(set(balance)) != 1:
        return rounding(n, shares)
    # First the parts that are even, then the rows within each: roundings of all combinations at
    # once would add up in one part.
    by = known.labels() if "label" in balance else known.groups()
    counts = np.zeros(known.n, dtype=np.int64)
    parts = np.bincount(by, shares).astype(np.float64)
    for part, rows in enumerate(rounding(n, parts)):
        if rows:
            counts[by == part] = rounding(int(rows), shares[by == part], within=part)
    return counts


def _refuse_other(known: Conditions, column: object) -> None:
    if column not in known.names:
        raise ValueError(
            f"{column!r} is not a condition of this generator: it was conditioned on "
            f"{', '.join(map(repr, known.names))}.{did_you_mean(column, known.names)}"
        )
