"""The tree: exact sums against brute force, the stationary point, and its draws."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, ttest_1samp

from evenhand.generators.tables.tree_distribution import TRUST, Forest, TreeDistribution, fit_tree

FALSE_ALARM = 1e-6
SIZES = (2, 3, 2, 4)
FOREST = Forest(parents=(-1, 0, 0, -1), order=(0, 1, 2, 3))
STATES = np.array(list(itertools.product(*(range(size) for size in SIZES))))
WEIGHTS = np.array([300.0, 900.0])


def some_tree(seed: int = 0) -> TreeDistribution:
    rng = np.random.default_rng(seed)
    return TreeDistribution(
        forest=FOREST,
        own=tuple(rng.normal(0, 1, (2, size)) for size in SIZES),
        pairs=tuple(rng.normal(0, 1, (SIZES[a], SIZES[b])) for a, b in FOREST.edges),
    )


def by_brute_force(tree: TreeDistribution) -> np.ndarray:
    """Probability of every combination of states, per condition, from the formula."""
    logs = np.zeros((2, len(STATES)))
    for i, own in enumerate(tree.own):
        logs += own[:, STATES[:, i]]
    for (a, b), pair in zip(tree.forest.edges, tree.pairs, strict=True):
        logs += pair[STATES[:, a], STATES[:, b]]
    probabilities = np.exp(logs)
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def test_the_tables_are_those_of_every_combination_summed_one_by_one() -> None:
    tree = some_tree()
    probabilities = by_brute_force(tree) * WEIGHTS[:, None]
    own, pairs = tree.tables(WEIGHTS)
    for i, size in enumerate(SIZES):
        summed = np.stack(
            [probabilities[:, STATES[:, i] == k].sum(axis=1) for k in range(size)], axis=1
        )
        assert own[i] == pytest.approx(summed)
    for (a, b), table in zip(FOREST.edges, pairs, strict=True):
        for k, m in itertools.product(range(SIZES[a]), range(SIZES[b])):
            both = (STATES[:, a] == k) & (STATES[:, b] == m)
            assert table[k, m] == pytest.approx(probabilities[:, both].sum())


def test_rows_are_drawn_from_the_law() -> None:
    tree, n = some_tree(1), 200_000
    rows = tree.sample(np.repeat([0, 1], n), np.random.default_rng(2))
    expected = by_brute_force(tree)
    for c in (0, 1):
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


def test_without_noise_the_tables_are_met_and_with_it_within_the_noise() -> None:
    truth = some_tree(3)
    own, pairs = truth.tables(WEIGHTS)
    near = fit_tree(FOREST, own, 0.01, pairs, 0.01, WEIGHTS, max_iterations=2000)
    for found, aim in zip(near.tables(WEIGHTS)[0], own, strict=True):
        assert found == pytest.approx(aim, abs=0.5)
    sigma = 8.0

    def error(tables: Any) -> float:
        apart = [(a - b).ravel() for a, b in zip(tables, own, strict=True)]
        return float((np.concatenate(apart) ** 2).mean())

    # Nearer to the truth than the tables it read, in the mean over draws of the noise: a fit that
    # is not would pass with probability 1e-6. This one gains .45 sigma**2, nine standard errors.
    gains = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        noisy = [t + rng.normal(0, sigma, t.shape) for t in own]
        loud = [t + rng.normal(0, sigma, t.shape) for t in pairs]
        fitted = fit_tree(FOREST, noisy, sigma, loud, sigma, WEIGHTS)
        gains.append(error(noisy) - error(fitted.tables(WEIGHTS)[0]))
    assert ttest_1samp(gains, 0.0, alternative="greater").pvalue < FALSE_ALARM


def test_the_fit_is_the_stationary_point_of_its_formula() -> None:
    rng = np.random.default_rng(5)
    sigma = 5.0
    own = [rng.uniform(0, 400, (2, size)) for size in SIZES]
    pairs = [rng.uniform(0, 300, (SIZES[a], SIZES[b])) for a, b in FOREST.edges]
    tree = fit_tree(FOREST, own, sigma, pairs, sigma, WEIGHTS, max_iterations=5000)
    expected, joint = tree.tables(WEIGHTS)
    weight = TRUST / sigma
    for found, aim, t in zip((*expected, *joint), (*own, *pairs), (*tree.own, *tree.pairs),
                             strict=True):  # fmt: skip
        assert found == pytest.approx(aim - weight * sigma**2 * t, abs=2.0)


def test_the_forest_is_the_heaviest_of_all() -> None:
    # Brute force: every set of at most 4 edges on 5 nodes without a cycle.
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(5), 2))
    for _ in range(20):
        weights = rng.normal(0.3, 1.0, (5, 5))
        weights = np.triu(weights, 1) + np.triu(weights, 1).T

        def total(chosen: tuple[tuple[int, int], ...], weights: np.ndarray = weights) -> float:
            root = list(range(5))
            for a, b in chosen:
                if root[a] == root[b]:
                    return -np.inf
                root = [root[a] if r == root[b] else r for r in root]
            return float(sum(weights[e] for e in chosen))

        best = max(total(c) for k in range(5) for c in itertools.combinations(edges, k))
        forest = Forest.heaviest(weights)
        assert sum(weights[e] for e in forest.edges) == pytest.approx(best)
        seen: set[int] = set()
        for i in forest.order:
            assert forest.parents[i] in seen | {-1}
            seen.add(i)
