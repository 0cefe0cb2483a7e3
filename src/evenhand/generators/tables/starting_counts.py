"""Noisy counts of each column by label and group, from which a generator network starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables.marginal import OWN, joint_totals
from evenhand.generators.tables.private_table import EncodedTable
from evenhand.typing import FloatArray

CELLS: Final = "counts of label and group"
CELLS_SHARE: Final = 0.05


def starting_shares(start: float, rest: str) -> Mapping[str, float]:
    """Return the plan: ``start`` for the counts of all columns, or a little for label and group.

    Examples
    --------
    >>> dict(starting_shares(0.25, "votes"))
    {'counts of each column by label and group': 0.25, 'votes': 0.75}
    """
    if not 0 <= start < 1:
        raise ValueError(f"start must lie in [0, 1), got start={start!r}.")
    first = {OWN: start} if start else {CELLS: CELLS_SHARE}
    return first | {rest: 1.0 - sum(first.values())}


@dataclass(frozen=True, kw_only=True, eq=False)
class StartingCounts:
    """What was released.

    Parameters
    ----------
    cells : ndarray of float64, shape (n_conditions,)
        Noisy number of records of each combination of label and group.
    sigma : float
        Standard deviation of the noise on each.
    tables : tuple of ndarray, each of shape (n_conditions, states of a column)
        Empty if only the cells were released.
    """

    cells: FloatArray
    sigma: float
    tables: tuple[FloatArray, ...]

    @classmethod
    def release(cls, data: EncodedTable, n_conditions: int, plan: BudgetPlan) -> StartingCounts:
        """Release what the plan has a share for, in one Gaussian release."""
        if OWN not in plan.shares:
            released = plan.release_counts(
                data.condition, n_conditions, CELLS, per_unit=data.per_unit
            )
            return cls(cells=released.values, sigma=released.sigma, tables=())
        counter = TableCounts(
            shapes=tuple((n_conditions, size) for size in data.sizes), per_unit=data.per_unit
        )
        counted = counter.total([(data.condition, column) for column in data.codes.T])
        released = plan.release(counter, counted, OWN)
        tables = counter.apart(released.values)
        cells, sigma = joint_totals(tables, released.sigma)
        return cls(cells=cells, sigma=sigma, tables=tuple(tables))
