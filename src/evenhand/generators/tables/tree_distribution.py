"""A tree of columns under every condition: of largest entropy, given noisy tables.

Write c for a condition (a label with a group), x_i for the state of column i. The distribution is

    p(x | c) ~ exp( sum over columns of u_i[c, x_i] + sum over edges of v_ij[x_i, x_j] ),

with the edges of a forest, so that sums and samples are exact (belief propagation). Noisy tables
``A = n p + noise of variance s^2`` are explained by the distribution that maximises

    w * n * entropy  -  sum over tables of  |n p - A|^2 / (2 s^2):

no table is trusted further than its noise allows, and a count that noise took below zero is none.
With one parameter t per cell of a table the stationary point is ``n p = A - w s^2 t`` and p is of
the form above, so the t minimise the convex

    sum over c of n_c log Z_c(t)  -  <t, A>  +  w s^2 |t|^2 / 2,

whose gradient is ``n p - A + w s^2 t``. A cell whose logarithm stands off by t from what the others
imply is thus drawn back by ``w s^2 t`` records; ``w = 0.5 / s`` makes that half of the noise itself
(``TRUST``, set by hand on ACS-Income and Bank).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import minimize

from evenhand.typing import FloatArray, IntArray

TRUST: Final = 0.5
_BLOCK = 50_000  # rows that are drawn at once


@dataclass(frozen=True, kw_only=True, eq=False)
class Forest:
    """Which column hangs from which.

    Parameters
    ----------
    parents : tuple of int
        Parent of each column, -1 for a root.
    order : tuple of int
        All columns, every parent before its children.
    """

    parents: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a parent and its child, in order."""
        return tuple((self.parents[i], i) for i in self.order if self.parents[i] >= 0)

    @classmethod
    def heaviest(cls, weights: FloatArray) -> Forest:
        """Return the forest of largest total weight; edges of weight 0 or less are left out.

        Examples
        --------
        >>> weights = np.array([[0, 3, 2], [3, 0, 1], [2, 1, 0]])
        >>> Forest.heaviest(weights).edges
        ((0, 1), (0, 2))
        """
        m = len(weights)
        parents, order = [-1] * m, []
        best = np.full(m, -np.inf)
        hangs = np.full(m, -1)
        left = list(range(m))
        while left:
            i = max(left, key=lambda j: best[j])
            left.remove(i)
            order.append(i)
            parents[i] = int(hangs[i]) if best[i] > 0 else -1
            for j in left:
                if weights[i, j] > best[j]:
                    best[j], hangs[j] = weights[i, j], i
        return cls(parents=tuple(parents), order=tuple(order))


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeDistribution:
    """A distribution over the columns for each condition.

    Parameters
    ----------
    forest : Forest
    own : tuple of ndarray, one (n_conditions, n_states) per column
        The u of the module's formula.
    pairs : tuple of ndarray, one (states of the parent, states of the child) per edge
        The v, in the order of ``forest.edges``.
    """

    forest: Forest
    own: tuple[FloatArray, ...]
    pairs: tuple[FloatArray, ...]

    def sample(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw one row of states per condition, shape (n, n_columns)."""
        up = _Upward.of(self)
        drawn = np.zeros((len(conditions), len(self.own)), dtype=np.int64)
        for start in range(0, len(conditions), _BLOCK):
            rows = slice(start, start + _BLOCK)
            c = conditions[rows]
            for i in self.forest.order:
                probabilities = up.beliefs[i][c]
                if (parent := self.forest.parents[i]) >= 0:
                    probabilities = probabilities * up.factors[i][drawn[rows, parent]]
                drawn[rows, i] = _draw(probabilities, rng)
        return drawn

    def tables(self, weights: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return what the distribution expects: a table per column, and one per edge.

        Parameters
        ----------
        weights : ndarray, shape (n_conditions,)
            Records of each condition.
        """
        return _expected(self, _Upward.of(self), weights)


def fit_tree(
    forest: Forest,
    own: Sequence[FloatArray],
    own_sigma: float,
    pairs: Sequence[FloatArray],
    pair_sigma: float,
    weights: FloatArray,
    *,
    trust: float = TRUST,
    max_iterations: int = 300,
) -> TreeDistribution:
    """Fit the distribution to noisy tables.

    Parameters
    ----------
    forest : Forest
    own : sequence of ndarray, one (n_conditions, n_states) per column
        Noisy counts of condition and state.
    own_sigma, pair_sigma : float
        Standard deviation of the noise of one cell.
    pairs : sequence of ndarray, one (states of the parent, states of the child) per edge
        Noisy counts over all conditions, in the order of ``forest.edges``.
    weights : ndarray, shape (n_conditions,)
        Records of each condition, as estimated; not negative.
    trust : float
        How far a cell is drawn back to the others, in standard deviations of its noise.
    max_iterations : int
        Of L-BFGS.
    """
    shapes = [table.shape for table in (*own, *pairs)]
    sizes = [int(np.prod(shape)) for shape in shapes]
    cuts = np.cumsum(sizes)[:-1]
    target = np.concatenate([np.ravel(table) for table in (*own, *pairs)])
    weight = min(1.0, trust / own_sigma)
    variance = np.concatenate(
        [
            np.full(sum(sizes[: len(own)]), weight * own_sigma**2),
            np.full(sum(sizes[len(own) :]), weight * pair_sigma**2),
        ]
    )
    # Scaled so that one step moves cells by about their noise; the problem is the same.
    scale = 1.0 / np.sqrt(variance)

    def distribution(t: FloatArray) -> TreeDistribution:
        parts = [p.reshape(s) for p, s in zip(np.split(t * scale, cuts), shapes, strict=True)]
        return TreeDistribution(
            forest=forest, own=tuple(parts[: len(own)]), pairs=tuple(parts[len(own) :])
        )

    def objective(t: FloatArray) -> tuple[float, FloatArray]:
        current = distribution(t)
        up = _Upward.of(current)
        mine, joint = _expected(current, up, weights)
        expected = np.concatenate([np.ravel(table) for table in (*mine, *joint)])
        value = float(weights @ up.log_z) - float((t * scale) @ target) + 0.5 * float(t @ t)
        gradient = (expected - target) * scale + t
        return value, gradient

    found = minimize(
        objective,
        np.zeros(len(target)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iterations, "maxcor": 20},
    )
    return distribution(found.x)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Upward:
    """Messages from the leaves to the roots.

    ``beliefs[i]`` (n_conditions, n_states) is proportional to the probability of a state given what
    hangs below it, ``factors[i]`` (states of the parent, states) the factor of its edge,
    ``messages[i]`` (n_conditions, states of the parent) the sum over the states.
    """

    beliefs: list[FloatArray]
    factors: list[FloatArray]
    messages: list[FloatArray]
    log_z: FloatArray

    @classmethod
    def of(cls, tree: TreeDistribution) -> _Upward:
        forest, m = tree.forest, len(tree.own)
        log_z = np.zeros(len(tree.own[0]))
        logs = [np.array(own) for own in tree.own]
        beliefs = [np.empty(0)] * m
        factors = [np.empty((0, 0))] * m
        messages = [np.empty((0, 0))] * m
        for (_, child), pair in zip(forest.edges, tree.pairs, strict=True):
            top = pair.max()
            factors[child] = np.exp(pair - top)
            log_z += top
        for i in reversed(forest.order):
            top = logs[i].max(axis=1, keepdims=True)
            beliefs[i] = np.exp(logs[i] - top)
            log_z += top[:, 0]
            parent = forest.parents[i]
            if parent < 0:
                log_z += np.log(beliefs[i].sum(axis=1))
                continue
            messages[i] = np.maximum(beliefs[i] @ factors[i].T, 1e-300)
            logs[parent] += np.log(messages[i])
        return cls(beliefs=beliefs, factors=factors, messages=messages, log_z=log_z)


def _expected(
    tree: TreeDistribution, up: _Upward, weights: FloatArray
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Tables of the distribution: downward from the roots."""
    forest = tree.forest
    mine = [np.empty(0)] * len(tree.own)
    joint = []
    for i in forest.order:
        parent = forest.parents[i]
        if parent < 0:
            mine[i] = up.beliefs[i] * (weights / up.beliefs[i].sum(axis=1))[:, None]
            continue
        above = mine[parent] / up.messages[i]
        # joint[c, a, b] = above[c, a] * factor[a, b] * belief[c, b], summed over c or a.
        joint.append((above.T @ up.beliefs[i]) * up.factors[i])
        mine[i] = (above @ up.factors[i]) * up.beliefs[i]
    return mine, joint


def _draw(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one column per row with probabilities proportional to the entries."""
    cumulated = np.cumsum(probabilities, axis=1)
    u = rng.random(len(probabilities)) * cumulated[:, -1]
    below = (cumulated <= u[:, None]).sum(axis=1)
    drawn: IntArray = np.minimum(below, probabilities.shape[1] - 1).astype(np.int64)
    return drawn
