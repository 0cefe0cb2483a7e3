"""A decision derived from a model's own and the group, of least error within a margin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from evenhand import _checks
from evenhand.fairness.notion import RateNotion, rates_of, require_reference
from evenhand.fairness.rates import Rates
from evenhand.typing import ArrayLike, FloatArray

_FEASIBILITY: Final = 1e-9  # of the solver, in rates


@dataclass(frozen=True, kw_only=True, eq=False)
class DerivedRule:
    """Probabilities of each final decision, given the group and the model's own decision.

    Privacy
    -------
    Free: reads a table that was released (post-processing).

    Notes
    -----
    ``fit`` finds the rule of least expected error among all whose rates, *by the table that it is
    given*, are within the margin between every two groups: a linear program (Hardt, Price and
    Srebro 2016; on noisy tables Jagielski et al. 2019). It has a solution for every table: a rule
    that ignores group and decision has no gap.

    Examples
    --------
    Group 0 is judged well, group 1 badly; labels by decisions:

    >>> from evenhand import EqualizedOdds
    >>> table = [[[40, 10], [5, 45]], [[30, 20], [20, 30]]]
    >>> odds = EqualizedOdds(margin=0.1, reference="pairwise")
    >>> rule = DerivedRule.fit(table, odds)
    >>> rule.rates(table, odds).round(2).tolist()
    [[0.3, 0.7], [0.4, 0.6]]
    """

    probabilities: FloatArray
    """``probabilities[g, h, k]``: of deciding k in group g where the model says h. Rows add up to
    1. Shape (n_groups, n_classes, n_classes).
    """

    def __post_init__(self) -> None:
        probabilities = np.array(self.probabilities, dtype=np.float64)
        if probabilities.ndim != 3 or probabilities.shape[1] != probabilities.shape[2]:
            raise ValueError(
                f"probabilities must have shape (n_groups, n_classes, n_classes), "
                f"got {probabilities.shape}."
            )
        if not (
            (probabilities >= 0).all() and np.allclose(probabilities.sum(axis=2), 1.0, atol=1e-9)
        ):
            raise ValueError(
                f"probabilities must be at least 0 and each row must add up to 1, "
                f"got {probabilities.tolist()}."
            )
        probabilities.setflags(write=False)
        object.__setattr__(self, "probabilities", probabilities)

    @classmethod
    def fit(cls, table: ArrayLike, fairness: RateNotion) -> DerivedRule:
        """Solve for the rule.

        Parameters
        ----------
        table : array-like, shape (n_groups, n_classes, n_classes)
            Records by group, true label and the model's decision. May be noisy: a cell below 0
            counts as 0.
        fairness : RateNotion
            Largest difference of a rate between two groups; ``reference="pairwise"``.
        """
        cells = _cells(table)
        require_reference(fairness, "pairwise", "The rule")
        margin = _checks.closed_unit("margin", fairness.margin)
        n_groups, n_classes = cells.shape[:2]
        coefficients = _coefficients(cells, rates_of(fairness, n_classes))
        # Variables: the probabilities (g, h, k), then a floor under each rate over all groups.
        shape = cells.shape
        n_bound = coefficients.shape[1]
        own = np.arange(cells.size).reshape(shape)
        above, below = [], []
        for g in range(n_groups):
            for r in range(n_bound):
                # floor <= rate <= floor + margin
                of_rate = coefficients[g, r]
                rate = [(own[g, h, k], of_rate[h, k]) for h, k in np.argwhere(of_rate)]
                floor = cells.size + r
                above.append([*rate, (floor, -1.0)])
                below.append([*((i, -c) for i, c in rate), (floor, 1.0)])
        bounds = [max(0.0, margin - _FEASIBILITY)] * len(above) + [0.0] * len(below)
        n_variables = cells.size + n_bound
        sums = [[(own[g, h, k], 1.0) for k in range(n_classes)] for g, h in np.ndindex(shape[:2])]
        # Of records with label y that the model gives h, the rule is right where it decides y.
        right = np.concatenate([cells.transpose(0, 2, 1).ravel(), np.zeros(n_bound)])
        solved = linprog(
            -right / max(1.0, float(cells.sum())),
            A_ub=_rows(above + below, n_variables),
            b_ub=bounds,
            A_eq=_rows(sums, n_variables),
            b_eq=np.ones(len(sums)),
            bounds=(0.0, 1.0),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if solved.x is None:
            raise RuntimeError(f"The rule could not be found: {solved.message}")
        probabilities = np.clip(solved.x[: cells.size].reshape(shape), 0.0, 1.0) + 0.0  # no -0.0
        return cls(probabilities=probabilities / probabilities.sum(axis=2, keepdims=True))

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.probabilities)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.probabilities.shape[1])

    def rates(self, table: ArrayLike, fairness: RateNotion) -> FloatArray:
        """Return the rates that ``fairness`` bounds, shape (n_groups, n_rates), in expectation."""
        cells = _cells(table)
        coefficients = _coefficients(cells, rates_of(fairness, cells.shape[1]))
        rates: FloatArray = np.einsum("grhk,ghk->gr", coefficients, self.probabilities)
        return rates

    def gap(self, table: ArrayLike, fairness: RateNotion) -> float:
        """Largest difference of a bound rate between two groups, in [0, 1], in expectation."""
        return float(np.ptp(self.rates(table, fairness), axis=0).max())

    def error(self, table: ArrayLike) -> float:
        """Return the expected error on the records of a table, in [0, 1]."""
        cells = _cells(table)
        right = float(np.einsum("gyh,ghy->", cells, self.probabilities))
        return 1.0 - right / float(cells.sum())

    def expected(self, decisions: ArrayLike, groups: ArrayLike) -> FloatArray:
        """Probabilities of each final decision, shape (n, n_classes)."""
        h = _checks.codes("decisions", decisions, self.n_classes)
        g = _checks.codes("groups", groups, self.n_groups)
        _checks.same_length(decisions=h, groups=g)
        out: FloatArray = self.probabilities[g, h]
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"probabilities": self.probabilities.tolist()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DerivedRule:
        """Read what ``to_dict`` wrote."""
        return cls(probabilities=np.array(values["probabilities"], dtype=np.float64))


def noise_bound(
    table: ArrayLike, fairness: RateNotion, *, scale: float, level: float = 0.95
) -> float:
    """Bound how much further apart rates can be than they are by a noisy table, for *any* rule.

    Parameters
    ----------
    table : array-like, shape (n_groups, n_classes, n_classes)
        The noisy table.
    fairness : RateNotion
    scale : float
        Of the Laplace noise on each cell, in records.
    level : float
        Probability with which the bound holds, over the noise.

    Returns
    -------
    float
        In [0, 1], for the records that were counted; upper bound, loose. Public, as the table is.

    Notes
    -----
    With probability ``level`` no cell is off by more than ``t = scale ln(n_cells / (1 - level))``.
    Then the distribution of decisions given a label, of ``K`` cells with noisy sum N, is off by at
    most ``K t / N`` in total variation, and so is every rate; a gap has two of them. For
    discrete noise t is raised to the next whole number.
    """
    cells = _cells(table)
    _checks.open_unit("level", level)
    off = math.ceil(_checks.positive("scale", scale) * math.log(cells.size / (1.0 - level)))
    rates = rates_of(fairness, cells.shape[1])
    totals = np.einsum("gyh,ry->gr", cells, rates.among)
    n_cells = rates.among.sum(axis=1) * cells.shape[1]
    each = np.sort(n_cells * off / np.maximum(totals, 1e-12), axis=0)
    return float(min(1.0, each[-2:].sum(axis=0).max()))


def _cells(table: ArrayLike) -> FloatArray:
    cells = np.asarray(table, dtype=np.float64)
    if cells.ndim != 3 or cells.shape[1] != cells.shape[2] or cells.shape[1] < 2:
        raise ValueError(
            f"table must count records by group, label and decision, with shape "
            f"(n_groups, n_classes, n_classes), got {cells.shape}."
        )
    if not np.isfinite(cells).all():
        raise ValueError("table must hold finite counts.")
    return np.maximum(cells, 0.0)


def _coefficients(cells: FloatArray, rates: Rates) -> FloatArray:
    """Return each rate as coefficients of a rule's probabilities, (n_groups, n_rates, h, k).

    Where no record is known that a rate is taken among, its cells count alike.
    """
    totals = np.einsum("gyh,ry->gr", cells, rates.among)[:, :, None, None]
    known = np.einsum("gyh,ryk->grhk", cells, rates.hits)
    alike = rates.hits.sum(axis=1)[:, None, :] / (
        rates.among.sum(axis=1)[:, None, None] * rates.n_classes
    )
    out: FloatArray = np.where(totals > 0, known / np.maximum(totals, 1e-300), alike)
    return out


def _rows(rows: list[Any], n_columns: int) -> csr_array:
    """Return a sparse matrix from rows of (column, value)."""
    where = [(r, int(c)) for r, row in enumerate(rows) for c, _ in row]
    values = [float(v) for row in rows for _, v in row]
    place = tuple(np.array(where, dtype=np.int64).T)
    return csr_array((values, place), shape=(len(rows), n_columns))
