"""Features of mixed rows: norm 1, gradients by differences, means that tell distributions apart."""

import numpy as np
import pytest

from evenhand.generators.aggregators import FeatureSums
from evenhand.generators.tables.mean_embedding import _fit
from evenhand.generators.tables.random_features import MixedFeatures

SIZES, ORDERED, MISSING = (3, 6, 2), (False, True, False), (True, True, False)


def features(n: int = 40, seed: int = 0) -> MixedFeatures:
    return MixedFeatures.draw(SIZES, ORDERED, MISSING, n, np.random.default_rng(seed))


def every_row() -> np.ndarray:
    return np.stack(np.meshgrid(*map(np.arange, SIZES), indexing="ij"), axis=-1).reshape(-1, 3)


def test_every_row_has_norm_one_so_that_none_is_shortened() -> None:
    maps = features()
    phi = maps.of(maps.one_hot(every_row()))
    assert np.linalg.norm(phi, axis=1) == pytest.approx(np.ones(len(phi)))
    assert phi.shape == (36, maps.n_features)
    sums = FeatureSums(n_features=maps.n_features, n_conditions=1)
    total = sums.total(phi, np.zeros(36, dtype=np.int64)) * sums.unit
    assert total[:-1] == pytest.approx(phi.sum(axis=0), abs=36 * sums.unit)


def test_the_gradient_is_that_of_differences() -> None:
    maps, rng = features(), np.random.default_rng(1)
    probabilities = rng.dirichlet(np.ones(maps.n_states), 2)
    way = rng.normal(size=(2, maps.n_features))

    def value(at: np.ndarray) -> float:
        return float((maps.of(at) * way).sum())

    found = maps.pull_back(probabilities, way)
    for i in range(2):
        for j in range(maps.n_states):
            step = np.zeros_like(probabilities)
            step[i, j] = 1e-6
            gradient = (value(probabilities + step) - value(probabilities - step)) / 2e-6
            assert found[i, j] == pytest.approx(gradient, abs=1e-6)


def test_rows_that_are_alike_have_features_that_are_alike() -> None:
    # Neighboring values of an ordered column are nearer than its two ends.
    maps = features(400)
    rows = np.array([[0, 0, 0], [0, 1, 0], [0, 4, 0]])
    phi = maps.of(maps.one_hot(rows))[:, : 2 * 400]
    assert phi[0] @ phi[1] > phi[0] @ phi[2]


def test_a_mixture_fitted_to_noiseless_means_has_their_dependence() -> None:
    # Columns 0 and 2 always agree; a product of columns could not have it.
    maps = features(200)
    rows = np.array([[0, 1, 0], [1, 4, 1]])
    aim = maps.of(maps.one_hot(rows)).mean(axis=0)
    probabilities = _fit(maps, aim, n_parts=30, n_steps=300, rng=np.random.default_rng(0))
    first, third = probabilities[:, :3], probabilities[:, 9:]
    joint = first.T @ third / len(probabilities)
    assert joint[0, 0] + joint[1, 1] > 0.9
    assert abs(joint[0, 0] - 0.5) < 0.1
