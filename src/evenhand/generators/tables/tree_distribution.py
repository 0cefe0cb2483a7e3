"""A junction tree of columns under every condition: of largest entropy, given noisy tables.

Write c for a condition (a label with a group) and x for the states of the columns. The distribution
is

    p(x | c) ~ exp( sum over tables of t[part of c, states of the table's columns] ),

where a table counts one or more columns, in parts of the conditions: each condition by itself, or
those of one label together. Every column hangs from columns that are neighbors of each other, and
a table's columns are neighbors too, so that sums and samples are exact (variable elimination; with
one parent each it is a forest). Noisy tables ``A = n p + noise of variance s^2`` are explained by
the distribution that maximises

    w * n * entropy  -  sum over tables of  |n p - A|^2 / (2 s^2):

no table is trusted further than its noise allows, and a count that noise took below zero is none.
With one parameter t per cell of a table the stationary point is ``n p = A - w s^2 t`` and p is of
the form above, so the t minimise the convex

    sum over c of n_c log Z_c(t)  -  <t, A>  +  w s^2 |t|^2 / 2,

whose gradient is ``n p - A + w s^2 t``. A cell whose logarithm stands off by t from what the others
imply is thus drawn back by ``w s^2 t`` records; ``w = 0.5 / s``, with the largest s of a single
column, makes that half of the noise itself (``TRUST``, set by hand on ACS-Income and Bank).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np
from scipy.optimize import minimize

from evenhand.typing import Array, BoolArray, FloatArray, IntArray

TRUST: Final = 0.5
"""How far a cell is drawn back to the others, in standard deviations of its noise."""

MOST_CELLS: Final = 1_000_000
"""Cells of all cliques of more than two columns together, over all conditions: a second's fit."""

BLOCK = 50_000  # rows that are drawn at once

MOST_AT_ONCE: Final = 4_000_000
"""Cells of the tree under all events that are seen to at once."""


@dataclass(frozen=True, kw_only=True)
class JunctionTree:
    """Which columns each column hangs from."""

    parents: tuple[tuple[int, ...], ...]
    """Of each column; none for a root. They are neighbors of each other."""
    order: tuple[int, ...]
    """All columns, every parent before its children."""

    @classmethod
    def alone(cls, n_columns: int) -> JunctionTree:
        """Return the tree without an edge."""
        return cls(parents=((),) * n_columns, order=tuple(range(n_columns)))

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a parent and its child, in order."""
        return tuple((parent, i) for i in self.order for parent in self.parents[i])

    @property
    def threes(self) -> tuple[tuple[int, int, int], ...]:
        """Two parents and their child, in order."""
        return tuple((*two, i) for i in self.order for two in combinations(self.parents[i], 2))

    @classmethod
    def heaviest(
        cls, weights: FloatArray, *, width: int = 1, cells: FloatArray | None = None
    ) -> JunctionTree:
        """Return a tree of large total weight; edges of weight 0 or less are left out.

        Column after column joins where its edges weigh most, as in Prim's algorithm: with a width
        of 1 the forest of largest weight.

        Parameters
        ----------
        weights : ndarray, shape (n_columns, n_columns)
            Of each edge.
        width : int
            Parents of a column at most.
        cells : ndarray, shape (n_columns,), optional
            States of each column, times the number of conditions for one of them: cliques of more
            than two columns have at most ``MOST_CELLS / n_columns`` cells then.

        Examples
        --------
        >>> weights = np.array([[0, 3, 2], [3, 0, 1], [2, 1, 0]])
        >>> JunctionTree.heaviest(weights).edges
        ((0, 1), (0, 2))
        >>> JunctionTree.heaviest(weights, width=2).edges
        ((0, 1), (0, 2), (1, 2))
        """
        m = len(weights)
        gains = np.maximum(weights, 0.0)
        first = gains.max(axis=1, initial=0.0)
        parents: list[tuple[int, ...]] = [()] * m
        best = np.zeros(m)
        left, order = list(range(m)), []
        while left:
            i = max(left, key=lambda j: (best[j], first[j]))
            left.remove(i)
            order.append(i)
            near = [(*some, i) for k in range(width) for some in combinations(parents[i], k)]
            for j in left:
                for clique in near:
                    kept = tuple(p for p in clique if gains[j, p] > 0)
                    total = float(gains[j, list(kept)].sum())
                    if total > best[j] and (len(kept) < 2 or _fits((*kept, j), cells)):
                        best[j], parents[j] = total, kept
        return cls(parents=tuple(parents), order=tuple(order))


def _fits(clique: tuple[int, ...], cells: FloatArray | None) -> bool:
    return cells is None or float(np.prod(cells[list(clique)])) <= MOST_CELLS / len(cells)


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """A number for every combination of states of some columns, in each part of the conditions."""

    columns: tuple[int, ...]
    """Neighbors of each other in the tree."""
    parts: IntArray
    """In which part of the table a condition is. Shape (n_conditions,)."""
    values: FloatArray
    """Shape (n_parts, states of the first column, ...)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeDistribution:
    """A distribution over the columns for each condition."""

    tree: JunctionTree
    tables: tuple[Table, ...]
    """The t of the module's formula; of each column alone, at least, in its order, each condition a
    part by itself.
    """

    def sample(
        self,
        conditions: IntArray,
        rng: np.random.Generator,
        strata: IntArray | None = None,
        *,
        even: bool = True,
    ) -> IntArray:
        """Draw one row of states per condition, shape (n, n_columns).

        Each row is of the distribution. Of rows that agree in condition and parents each state has
        as many as its chance says, to within two (stratified as in systematic sampling, Madow 1949,
        in random order), so that tables of the rows vary less than those of rows drawn one by one.
        Rows of two ``strata`` (n,) are drawn independently of each other; without ``even`` all are,
        in less time.
        """
        up = self._upward
        drawn = np.zeros((len(conditions), len(self.tree.order)), dtype=np.int64)
        for start in range(0, len(conditions), BLOCK):
            rows = slice(start, start + BLOCK)
            c = conditions[rows]
            for i in self.tree.order:
                above = (c, *(drawn[rows, parent] for parent in self.tree.parents[i]))
                if even:
                    at = np.ravel_multi_index(above, up.given[i].shape[:-1])
                    if strata is not None:
                        at = at * (int(strata.max(initial=0)) + 1) + strata[rows]
                    u = spread(at, rng)
                else:
                    u = rng.random(len(c))
                drawn[rows, i] = draw_states(up.cumulated[i][above], u)
        return drawn

    def given(
        self, likelihoods: Mapping[int, FloatArray], conditions: IntArray | None = None
    ) -> tuple[TreeDistribution, FloatArray]:
        """Return the distribution given an event, and the event's probability by condition.

        Parameters
        ----------
        likelihoods : mapping of int to ndarray, shape (states,) or (n_conditions, states)
            Of columns: the event's probability in each state, independent of all other columns.
        conditions : ndarray of int64, optional
            Those that the distribution has then, in the place of all: each with its own event.
        """
        held, log_chances = self._given(likelihoods, conditions)
        return held, np.exp(log_chances)

    def _given(
        self, likelihoods: Mapping[int, FloatArray], conditions: IntArray | None
    ) -> tuple[TreeDistribution, FloatArray]:
        whole = self.tables
        if conditions is not None:
            whole = tuple(replace(table, parts=table.parts[conditions]) for table in whole)
        tables = list(whole)
        with np.errstate(divide="ignore"):
            for i, likelihood in likelihoods.items():
                values = tables[i].values[tables[i].parts] + np.log(likelihood)
                tables[i] = replace(tables[i], parts=np.arange(len(values)), values=values)
        before, after = (_Upward.of(self.tree, some).log_z for some in (whole, tables))
        return replace(self, tables=tuple(tables)), after - before

    def expected(self, weights: FloatArray) -> list[FloatArray]:
        """Return what the distribution expects of each of its tables.

        Parameters
        ----------
        weights : ndarray, shape (n_conditions,)
            Records of each condition.
        """
        return _expected(self.tree, self.tables, self._upward, weights)

    def log_density(
        self, codes: IntArray, conditions: IntArray, unknown: BoolArray | None = None
    ) -> FloatArray:
        """Return the logarithm of the chance of each row of states under its condition, (n,).

        Of the states that are not ``unknown`` (n, n_columns), where that is given.
        """
        found = np.zeros(len(codes))
        for i, log in enumerate(self._log_given):
            found += log[(conditions, *(codes[:, j] for j in (*self.tree.parents[i], i)))]
        if unknown is not None:
            rows = np.flatnonzero(unknown.any(axis=1))
            step = max(1, MOST_AT_ONCE // self.n_cells)
            for some in (rows[start : start + step] for start in range(0, len(rows), step)):
                likelihoods = {}
                for i, log in enumerate(self._log_given):
                    own = np.eye(log.shape[-1])[codes[some, i]]
                    likelihoods[i] = np.where(unknown[some, i][:, None], 1.0, own)
                found[some] = self._given(likelihoods, conditions[some])[1]
        return found

    @property
    def n_cells(self) -> int:
        """Cells of a condition."""
        sizes = [table.values.shape[1] for table in self.tables[: len(self.tree.order)]]
        cliques = [(i, *above) for i, above in enumerate(self.tree.parents)]
        return sum(math.prod(sizes[j] for j in clique) for clique in cliques)

    def arrays(self) -> dict[str, Array]:
        """Return it as arrays by name."""
        widest = max((len(above) for above in self.tree.parents), default=1)
        parents = np.full((len(self.tree.order), widest), -1, dtype=np.int64)
        for i, above in enumerate(self.tree.parents):
            parents[i, : len(above)] = above
        out: dict[str, Array] = {"parents": parents}
        out["order"] = np.array(self.tree.order, dtype=np.int64)
        for at, table in enumerate(self.tables):
            out[f"columns_{at}"] = np.array(table.columns, dtype=np.int64)
            out[f"parts_{at}"] = table.parts.astype(np.int64)
            out[f"values_{at}"] = table.values
        return out

    @classmethod
    def restored(cls, arrays: Mapping[str, Array]) -> TreeDistribution:
        """Take back what ``arrays`` gave, among others."""
        parents = tuple(tuple(row[row >= 0].tolist()) for row in arrays["parents"])
        return cls(
            tree=JunctionTree(parents=parents, order=tuple(arrays["order"].tolist())),
            tables=tuple(
                Table(
                    columns=tuple(arrays[f"columns_{at}"].tolist()),
                    parts=arrays[f"parts_{at}"],
                    values=arrays[f"values_{at}"],
                )
                for at in range(sum(name.startswith("values_") for name in arrays))
            ),
        )

    @cached_property
    def _upward(self) -> _Upward:
        return _Upward.of(self.tree, self.tables)

    @cached_property
    def _log_given(self) -> list[FloatArray]:
        return [np.log(np.maximum(given, 1e-300)) for given in self._upward.given]


def fit_tree(
    tree: JunctionTree,
    noisy: Sequence[Table],
    sigmas: Sequence[float],
    weights: FloatArray,
    *,
    max_iterations: int = 300,
) -> TreeDistribution:
    """Fit the distribution to noisy tables.

    Parameters
    ----------
    tree : JunctionTree
    noisy : sequence of Table
        Noisy counts: of every column alone by condition, in its order, then of cliques.
    sigmas : sequence of float
        Standard deviation of the noise of one cell of each.
    weights : ndarray, shape (n_conditions,)
        Records of each condition, as estimated; not negative.
    max_iterations : int
        Of L-BFGS.
    """
    sizes = [table.values.size for table in noisy]
    cuts = np.cumsum(sizes)[:-1]
    target = np.concatenate([np.ravel(table.values) for table in noisy])
    # Scaled so that one step moves cells by about their noise; the problem is the same.
    weight = min(1.0, TRUST / max(sigmas[: len(tree.order)]))
    scale = np.repeat([1.0 / np.sqrt(weight * sigma**2) for sigma in sigmas], sizes)

    def tables(t: FloatArray) -> tuple[Table, ...]:
        return tuple(
            Table(columns=a.columns, parts=a.parts, values=values.reshape(a.values.shape))
            for a, values in zip(noisy, np.split(t * scale, cuts), strict=True)
        )

    def objective(t: FloatArray) -> tuple[float, FloatArray]:
        current = tables(t)
        up = _Upward.of(tree, current)
        found = np.concatenate([np.ravel(a) for a in _expected(tree, current, up, weights)])
        value = float(weights @ up.log_z) - float((t * scale) @ target) + 0.5 * float(t @ t)
        return value, (found - target) * scale + t

    found = minimize(
        objective,
        np.zeros(len(target)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "maxcor": 20},
    )
    return TreeDistribution(tree=tree, tables=tables(found.x))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Upward:
    """Columns summed out one by one, children before their parents.

    ``given[i]`` (n_conditions, states of the parents..., states) is the probability of a state of
    column i given those of its parents; ``log_z`` (n_conditions,) the logarithm of the sum of all.
    """

    given: list[FloatArray]
    log_z: FloatArray

    @cached_property
    def cumulated(self) -> list[FloatArray]:
        """Sums of ``given`` over the states up to each."""
        return [np.cumsum(given, axis=-1) for given in self.given]

    @classmethod
    def of(cls, tree: JunctionTree, tables: Sequence[Table]) -> _Upward:
        last = {i: at for at, i in enumerate(tree.order)}
        n_conditions = len(tables[0].parts)
        sizes = [tables[i].values.shape[1] for i in range(len(tree.order))]
        axes = [(*tree.parents[i], i) for i in range(len(sizes))]
        logs = [np.zeros((n_conditions, *(sizes[a] for a in near))) for near in axes]
        for table in tables:
            home = max(table.columns, key=last.__getitem__)
            logs[home] += _aligned(table.values, table.columns, axes[home])[table.parts]
        log_z = np.zeros(n_conditions)
        given = [np.empty(0)] * len(sizes)
        for i in reversed(tree.order):
            top = logs[i].max(axis=-1, keepdims=True)
            grown = np.exp(logs[i] - top)
            total = grown.sum(axis=-1, keepdims=True)
            given[i] = grown / total
            message = (np.log(total) + top)[..., 0]
            if not tree.parents[i]:
                log_z += message
                continue
            home = max(tree.parents[i], key=last.__getitem__)
            logs[home] += _aligned(message, tree.parents[i], axes[home])
        return cls(given=given, log_z=log_z)


def _expected(
    tree: JunctionTree, tables: Sequence[Table], up: _Upward, weights: FloatArray
) -> list[FloatArray]:
    """Tables of the distribution: downward from the roots."""
    last = {i: at for at, i in enumerate(tree.order)}
    axes = [(*parents, i) for i, parents in enumerate(tree.parents)]
    joint = [np.empty(0)] * len(axes)
    for i in tree.order:
        above = weights
        if tree.parents[i]:
            home = max(tree.parents[i], key=last.__getitem__)
            above = _summed(joint[home], axes[home], tree.parents[i])
        joint[i] = above[..., None] * up.given[i]
    found = []
    for table in tables:
        home = max(table.columns, key=last.__getitem__)
        counts = np.zeros_like(table.values)
        np.add.at(counts, table.parts, _summed(joint[home], axes[home], table.columns))
        found.append(counts)
    return found


def _aligned(values: FloatArray, columns: tuple[int, ...], axes: tuple[int, ...]) -> FloatArray:
    """Give values of some columns the axes of a clique, of length 1 where they have none."""
    at = [columns.index(a) + 1 for a in axes if a in columns]
    moved = values.transpose(0, *at)
    lengths = iter(moved.shape[1:])
    return moved.reshape(len(values), *(next(lengths) if a in columns else 1 for a in axes))


def _summed(values: FloatArray, axes: tuple[int, ...], columns: tuple[int, ...]) -> FloatArray:
    """Sum a clique's values over all but some columns, and give them in the order of these."""
    away = tuple(at + 1 for at, a in enumerate(axes) if a not in columns)
    left = [a for a in axes if a in columns]
    summed: FloatArray = values.sum(axis=away)
    return summed.transpose(0, *(left.index(a) + 1 for a in columns))


def spread(groups: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return a number in [0, 1) per row, spread evenly over the rows of a group, in random order.

    Of a group of k rows each has one of the k equal parts of [0, 1), and is uniform within it.
    """
    order = np.lexsort((rng.random(len(groups)), groups))
    _, first, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    rank = np.arange(len(groups)) - np.repeat(first, sizes)
    out = np.empty(len(groups))
    out[order] = (rank + rng.random(len(groups))) / np.repeat(sizes, sizes)
    return out


def draw_states(cumulated: FloatArray, u: FloatArray) -> IntArray:
    """Return the column of each row in which its ``u`` in [0, 1) lies; rows are sums up to each."""
    below = (cumulated <= (u * cumulated[:, -1])[:, None]).sum(axis=1)
    drawn: IntArray = np.minimum(below, cumulated.shape[1] - 1).astype(np.int64)
    return drawn
