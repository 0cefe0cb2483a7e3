"""The tree: exact sums against brute force, the stationary point, and its draws."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy.stats import chi2, ttest_1samp

from evenhand.generators.tables.tree_distribution import (
    TRUST,
    JunctionTree,
    Table,
    TreeDistribution,
    fit_tree,
)

SIZES = (2, 3, 2, 4)
FOREST = JunctionTree(parents=((), (0,), (0,), ()), order=(0, 1, 2, 3))
LOOPS = JunctionTree(parents=((), (0,), (1, 0), (2, 1)), order=(0, 1, 2, 3))
TREES = pytest.mark.parametrize("tree", [FOREST, LOOPS], ids=["forest", "loops"])
STATES = np.array(list(itertools.product(*(range(size) for size in SIZES))))
WEIGHTS = np.array([300.0, 900.0, 500.0])
EACH, LABELS = np.arange(3), np.array([0, 0, 1])


def tables_of(tree: JunctionTree, fill: Any) -> tuple[Table, ...]:
    """Return a table per column by condition, and one per edge: by label, or over all."""
    own = [Table(columns=(i,), parts=EACH, values=fill((3, size))) for i, size in enumerate(SIZES)]
    for at, (a, b) in enumerate(tree.edges):
        parts = (LABELS, 0 * LABELS)[at % 2]
        shape = (int(parts.max()) + 1, SIZES[b], SIZES[a])  # the child first: any order will do
        own.append(Table(columns=(b, a), parts=parts, values=fill(shape)))
    return tuple(own)


def some_tree(seed: int = 0, tree: JunctionTree = FOREST) -> TreeDistribution:
    rng = np.random.default_rng(seed)
    tables = tables_of(tree, lambda shape: rng.normal(0, 1, shape))
    return TreeDistribution(tree=tree, tables=tables)


def by_brute_force(made: TreeDistribution) -> np.ndarray:
    """Probability of every combination of states, per condition, from the formula."""
    logs = np.zeros((3, len(STATES)))
    for table in made.tables:
        logs += table.values[(table.parts[:, None], *(STATES[:, i] for i in table.columns))]
    probabilities = np.exp(logs)
    return probabilities / probabilities.sum(axis=1, keepdims=True)


@TREES
def test_the_tables_are_those_of_every_combination_summed_one_by_one(tree: JunctionTree) -> None:
    made = some_tree(tree=tree)
    probabilities = by_brute_force(made) * WEIGHTS[:, None]
    for table, found in zip(made.tables, made.expected(WEIGHTS), strict=True):
        summed = np.zeros_like(table.values)
        for c, part in enumerate(table.parts):
            for states, p in zip(STATES, probabilities[c], strict=True):
                summed[(part, *states[list(table.columns)])] += p
        assert found == pytest.approx(summed)


@TREES
def test_of_rows_that_agree_in_the_parents_each_state_has_its_share_to_within_two(
    tree: JunctionTree,
) -> None:
    made = some_tree(1, tree)
    conditions = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], 700))
    rows = made.sample(conditions, np.random.default_rng(2))
    probabilities = by_brute_force(made)
    for i, parents in enumerate(tree.parents):
        agree = np.unique(np.column_stack([conditions, rows[:, parents]]), axis=0)
        for c, *states in agree:
            own = (conditions == c) & (rows[:, parents] == states).all(axis=1)
            like = (STATES[:, parents] == states).all(axis=1)
            chances = np.bincount(STATES[like, i], probabilities[c, like], SIZES[i])
            counts = np.bincount(rows[own, i], minlength=SIZES[i])
            # A share that begins and ends within a part of its own may gain or lose one at each.
            assert np.abs(counts - own.sum() * chances / chances.sum()).max() < 2
            ends = np.cumsum(counts) - own.sum() * np.cumsum(chances) / chances.sum()
            assert np.abs(ends).max() < 1 + 1e-9


def test_one_row_is_of_the_law_wherever_it_stands() -> None:
    # 4,000 draws of three rows, of which one is looked at: 24 cells, each within five deviations.
    made, n = some_tree(1), 4000
    rng = np.random.default_rng(3)
    drawn = np.array([made.sample(np.array([1, 1, 0]), rng)[1] for _ in range(n)])
    found = np.bincount(np.ravel_multi_index(tuple(drawn.T), SIZES), minlength=len(STATES))
    p = by_brute_force(made)[1]
    assert (np.abs(found - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1e-9).all()


@TREES
def test_rows_are_drawn_from_the_law(tree: JunctionTree) -> None:
    made, n = some_tree(1, tree), 200_000
    rows = made.sample(np.repeat([0, 1, 2], n), np.random.default_rng(2))
    expected = by_brute_force(made)
    for c in (0, 1, 2):
        at = np.ravel_multi_index(tuple(rows[c * n : (c + 1) * n].T), SIZES)
        counts = np.bincount(at, minlength=len(STATES))

        def p_value(probabilities: np.ndarray, counts: np.ndarray = counts) -> float:
            statistic = ((counts - n * probabilities) ** 2 / (n * probabilities)).sum()
            return float(chi2(len(STATES) - 1).sf(statistic))

        assert p_value(expected[c]) > FALSE_ALARM
        # 10 % in about half of the mass m would be seen: the statistic's noncentrality is near
        # n m (1 - m) / 100 > 290 for m in [.5, .8], and its power above 1 - 1e-6.
        likeliest = np.argsort(-expected[c])
        half = likeliest[: np.searchsorted(np.cumsum(expected[c][likeliest]), 0.5) + 1]
        assert expected[c][half].sum() < 0.8
        tilted = expected[c].copy()
        tilted[half] *= 1.1
        assert p_value(tilted / tilted.sum()) < FALSE_ALARM


@TREES
def test_given_an_event_it_is_the_law_of_every_combination_reweighted(tree: JunctionTree) -> None:
    made = some_tree(4, tree)
    likelihoods = {1: np.array([0.0, 0.3, 1.0]), 3: np.array([1.0, 0.0, 0.0, 0.25])}
    held, chances = made.given(likelihoods)
    joint = by_brute_force(made)
    for i, likelihood in likelihoods.items():
        joint = joint * likelihood[STATES[:, i]]
    assert chances == pytest.approx(joint.sum(axis=1))
    assert by_brute_force(held) == pytest.approx(joint / joint.sum(axis=1, keepdims=True))
    rows = held.sample(np.repeat([0, 1, 2], 5000), np.random.default_rng(0))
    assert set(rows[:, 1]) == {1, 2}
    assert set(rows[:, 3]) == {0, 3}
    assert made.given({})[1].tolist() == [1.0, 1.0, 1.0]


def noised(tables: Any, values: Any, sigma: float, seed: int) -> list[Table]:
    rng = np.random.default_rng(seed)
    return [
        replace(table, values=value + rng.normal(0, sigma, value.shape))
        for table, value in zip(tables, values, strict=True)
    ]


@pytest.mark.slow
@TREES
def test_without_noise_the_tables_are_met_and_with_it_within_the_noise(tree: JunctionTree) -> None:
    truth = some_tree(3, tree)
    exact = truth.expected(WEIGHTS)
    n = len(exact)
    met = fit_tree(
        tree, noised(truth.tables, exact, 0.0, 0), [0.01] * n, WEIGHTS, max_iterations=2000
    )
    for found, aim in zip(met.expected(WEIGHTS), exact, strict=True):
        assert found == pytest.approx(aim, abs=0.5)
    sigma = 8.0

    def error(values: Any) -> float:
        return float(
            (
                np.concatenate([(a - b).ravel() for a, b in zip(values, exact, strict=True)]) ** 2
            ).mean()
        )

    # Nearer to the truth than the tables it read, in the mean over draws of the noise: a fit that
    # is not would pass with probability 1e-6. This one gains .4 sigma**2, nine standard errors.
    gains = []
    for seed in range(40):
        noisy = noised(truth.tables, exact, sigma, seed)
        fitted = fit_tree(tree, noisy, [sigma] * n, WEIGHTS)
        gains.append(error([t.values for t in noisy]) - error(fitted.expected(WEIGHTS)))
    assert ttest_1samp(gains, 0.0, alternative="greater").pvalue < FALSE_ALARM


@TREES
def test_the_fit_is_the_stationary_point_of_its_formula(tree: JunctionTree) -> None:
    rng = np.random.default_rng(5)
    sigmas = [5.0] * len(SIZES) + [7.0] * len(tree.edges)
    noisy = tables_of(tree, lambda shape: rng.uniform(0, 400, shape))
    made = fit_tree(tree, noisy, sigmas, WEIGHTS, max_iterations=5000)
    weight = TRUST / sigmas[0]
    for found, aim, t, sigma in zip(
        made.expected(WEIGHTS), noisy, made.tables, sigmas, strict=True
    ):
        assert found == pytest.approx(aim.values - weight * sigma**2 * t.values, abs=2.0)


def symmetric(rng: np.random.Generator, m: int) -> np.ndarray:
    weights = np.triu(rng.normal(0.3, 1.0, (m, m)), 1)
    return weights + weights.T


def test_the_forest_is_the_heaviest_of_all() -> None:
    # Brute force: every set of at most 4 edges on 5 nodes without a cycle.
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(5), 2))
    for _ in range(20):
        weights = symmetric(rng, 5)

        def total(chosen: tuple[tuple[int, int], ...], weights: np.ndarray = weights) -> float:
            root = list(range(5))
            for a, b in chosen:
                if root[a] == root[b]:
                    return -np.inf
                root = [root[a] if r == root[b] else r for r in root]
            return float(sum(weights[e] for e in chosen))

        best = max(total(c) for k in range(5) for c in itertools.combinations(edges, k))
        forest = JunctionTree.heaviest(weights)
        assert sum(weights[e] for e in forest.edges) == pytest.approx(best)
        seen: set[int] = set()
        for i in forest.order:
            assert set(forest.parents[i]) <= seen
            seen.add(i)


@given(seed=st.integers(0, 10**6), m=st.integers(1, 9), width=st.integers(1, 3))
def test_a_tree_has_an_order_in_which_parents_are_neighbors_and_no_edge_weighs_nothing(
    seed: int, m: int, width: int
) -> None:
    weights = symmetric(np.random.default_rng(seed), m)
    tree = JunctionTree.heaviest(weights, width=width)
    edges = {frozenset(edge) for edge in tree.edges}
    seen: set[int] = set()
    for i in tree.order:
        assert len(tree.parents[i]) <= width
        assert set(tree.parents[i]) <= seen
        assert {frozenset(pair) for pair in itertools.combinations(tree.parents[i], 2)} <= edges
        seen.add(i)
    assert seen == set(range(m))
    assert all(weights[edge] > 0 for edge in tree.edges)


def test_cliques_of_too_many_cells_are_left_out() -> None:
    weights = np.ones((3, 3)) - np.eye(3)
    big = np.full(3, 1000.0)
    assert len(JunctionTree.heaviest(weights, width=2).edges) == 3
    assert len(JunctionTree.heaviest(weights, width=2, cells=big).edges) == 2
