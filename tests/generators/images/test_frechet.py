"""Distances between sets of pictures, against other derivations and against probability."""

import numpy as np
import pytest
from scipy.linalg import sqrtm

from evenhand.datasets.features import EfficientNetLite0
from evenhand.generators.images.frechet import distances, frechet_distance, kernel_distance
from evenhand.typing import Array, FloatArray


@pytest.mark.parametrize("seed", range(3))
def test_the_frechet_distance_is_that_of_matrix_roots(seed: int) -> None:
    # A second derivation: the matrix square root of SciPy, where covariances have full rank.
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    b = rng.normal(size=(150, 5)) @ rng.normal(size=(5, 5)) + 1.0
    s, t = np.cov(a.T), np.cov(b.T)
    root = np.real(sqrtm(s @ t))
    wanted = ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(s + t - 2 * root)
    assert frechet_distance(a, b) == pytest.approx(wanted, rel=1e-8)


def test_a_set_is_at_no_distance_from_itself_and_a_shift_costs_its_square() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 50))  # fewer rows than features
    assert frechet_distance(rows, rows) == pytest.approx(0.0, abs=1e-9)
    assert frechet_distance(rows, rows + 2.0) == pytest.approx(50 * 4.0)


def test_the_kernel_distance_is_the_mean_over_all_pairs() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(5, 3))

    def k(x: FloatArray, y: FloatArray) -> float:
        return float((x @ y / 3 + 1) ** 3)

    pairs = np.mean([k(x, y) for i, x in enumerate(a) for j, y in enumerate(a) if i != j])
    pairs += np.mean([k(x, y) for i, x in enumerate(b) for j, y in enumerate(b) if i != j])
    pairs -= 2 * np.mean([k(x, y) for x in a for y in b])
    assert kernel_distance(a, b) == pytest.approx(pairs)


class Means:
    """A user's own extractor: mean and spread of each half of a picture."""

    name = "means"

    def transform(self, images: Array) -> FloatArray:
        halves = np.array_split(images.reshape(len(images), -1), 2, axis=1)
        return np.stack([f for half in halves for f in (half.mean(1), half.std(1))], axis=1)


@pytest.mark.parametrize(("name", "said"), [("means", "FD-means"), ("FID", "FID")])
def test_a_distance_is_called_fid_where_its_features_are(name: str, said: str) -> None:
    rng = np.random.default_rng(0)
    extractor = Means()
    extractor.name = name
    shown = {"a": rng.random((20, 4, 4))}
    assert {found.name for found in distances(shown, shown, extractor, n=20, rng=rng)} == {said}


def test_groups_are_compared_at_equal_n_and_small_ones_left_out() -> None:
    rng = np.random.default_rng(0)

    def some(n: int) -> Array:
        return rng.random((n, 4, 4))

    real = {"a": some(80), "b": some(30), "c": some(9)}
    found = distances(real, {"a": some(90), "b": some(25), "c": some(50)}, Means(), n=50, rng=rng)
    assert [(d.group, d.n, d.name) for d in found] == [
        ("overall", 50, "FD-means"),
        ("a", 25, "FD-means"),
        ("b", 25, "FD-means"),
    ]
    assert distances(real, {"c": some(50)}, Means(), n=50, rng=rng) == ()
    with pytest.raises(ValueError, match="n must be at least 10"):
        distances(real, real, Means(), n=3, rng=rng)


def test_pictures_of_another_kind_are_farther_than_those_of_the_same() -> None:
    rng = np.random.default_rng(1)
    real = {"a": rng.random((200, 4, 4))}
    same, other = {"a": rng.random((200, 4, 4))}, {"a": rng.random((200, 4, 4)) ** 2}
    near = distances(real, same, Means(), n=200, rng=rng)[0]
    far = distances(real, other, Means(), n=200, rng=rng)[0]
    assert near.frechet < 0.1 * far.frechet
    assert abs(near.kid) < 0.1 * far.kid


@pytest.mark.slow
@pytest.mark.torch
def test_efficientnet_tells_noise_from_stripes_and_takes_grey_and_colour() -> None:
    pytest.importorskip("efficientnet_lite_pytorch", reason="the extra frechet is not installed")
    extractor = EfficientNetLite0.load()
    rng = np.random.default_rng(0)
    noise, stripes = rng.random((12, 1, 14, 14)), np.zeros((12, 1, 14, 14))
    stripes[:, :, ::4] = 1.0
    a, b, c = map(extractor.transform, (noise, stripes, rng.random((12, 1, 14, 14))))
    assert a.shape == (12, 1280)
    assert frechet_distance(a, c) < 0.5 * frechet_distance(a, b)
    grey, colour = (extractor.transform(x) for x in (noise[:2], noise[:2].repeat(3, axis=1)))
    assert np.abs(grey - colour).max() < 1e-4
    (found, *_) = distances({"a": noise[:, 0]}, {"a": stripes[:, 0]}, extractor, n=12, rng=rng)
    assert found.name == "FD-EfficientNet-Lite0"
