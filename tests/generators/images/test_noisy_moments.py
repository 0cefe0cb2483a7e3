"""Means and covariances in noise: what is told from it, and what is nearest to what was found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenhand.generators.images.noisy_moments import (
    apart,
    each_towards,
    pooled,
    root,
    towards,
    towards_each,
)


def test_noise_alone_seldom_has_a_direction_in_which_means_differ() -> None:
    rng = np.random.default_rng(0)
    frame, noise = np.linalg.qr(rng.normal(size=(150, 30)))[0], rng.uniform(0.1, 3.0, 10)
    n, found = 400, 0
    for _ in range(n):
        directions, _ = apart(noise[:, None] * rng.normal(size=(10, 150)), frame, noise)
        found += directions.shape[1] > 0
    # One of a hundred: more than 13 of 400 come with a probability below 1e-4.
    assert found <= 13


def test_a_direction_stands_beside_the_frame_and_holds_what_is_not_noise() -> None:
    # Two means that differ along one of 200 directions, by a length near that of the noise.
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.normal(size=(200, 20)))[0]
    true = rng.normal(size=200)
    true -= frame @ (frame.T @ true)
    true *= 14.0 / np.linalg.norm(true)
    steps = np.stack([true, -true])
    held, taken = [], []
    for _ in range(60):
        noisy = steps + rng.normal(size=(2, 200)) + 30.0 * rng.normal(size=(2, 20)) @ frame.T
        directions, kept = apart(noisy, frame, np.ones(2))
        assert directions.T @ directions == pytest.approx(np.eye(directions.shape[1]))
        assert np.abs(frame.T @ directions).max() < 1e-9
        found, real = (each @ directions[:, 0] for each in (noisy, steps))
        held.append(kept[0] * (found[0] - found[1]) / (real[0] - real[1]))
        taken.append((found[0] - found[1]) / (real[0] - real[1]))
    # Each lies within .2 of 1, so their mean within six times .2 / sqrt(60).
    assert np.mean(held) == pytest.approx(1.0, abs=0.15)
    assert np.mean(taken) > 1.25  # without what is taken off


def test_numbers_are_moved_as_if_the_spread_of_the_true_ones_were_known() -> None:
    rng = np.random.default_rng(0)
    n, factor = 5000, 0.3
    scale, noise = np.geomspace(1e-3, 1e3, n), rng.uniform(0.5, 2.0, n)
    centre = rng.normal(size=n)
    true = centre + rng.normal(size=n) * (factor * scale) ** 0.5
    found = true + rng.normal(size=n) * noise**0.5
    best = centre + (found - centre) * factor * scale / (factor * scale + noise)
    ours = each_towards(found, centre, scale, noise)
    one_part = towards(found, centre, float(noise.sum()))
    wrong = [float(((guess - true) ** 2).sum()) for guess in (best, ours, one_part, found)]
    assert wrong[1] < 1.05 * wrong[0]
    assert wrong[2] > 1.5 * wrong[0]  # all by one part: the large ones decide for the small
    assert wrong[3] > 1.5 * wrong[0]


def test_noise_alone_leaves_the_centre_and_no_noise_leaves_what_was_found() -> None:
    rng = np.random.default_rng(0)
    centre, scale, step = rng.normal(size=50), rng.uniform(1, 2, 50), rng.normal(size=50)
    none = np.full(50, 1e-12)
    assert each_towards(centre + step, centre, scale, none) == pytest.approx(centre + step)
    assert each_towards(centre + step, centre, scale, np.full(50, 1e6)) == pytest.approx(centre)
    nowhere = each_towards(centre + step, centre, np.zeros(50), np.ones(50))
    assert nowhere == pytest.approx(centre)


def test_a_covariance_is_moved_as_by_hand() -> None:
    products = 100.0 * np.array([[[0.6, 0.1], [0.1, 0.2]]])
    centre = np.diag([0.5, 0.25])[None]
    found = towards_each(products, 10.0, np.array([100.0]), centre)
    # Noise of variance .01 on the diagonal and .005 beside; steps of .1, .1 and -.05. The factor is
    # (2 * .125 * .005 - .0625 * .0075) / (.25**2 + 2 * .125**2 + .0625**2) = .008.
    first, beside, last = 0.1 * 0.002 / 0.012, 0.1 * 0.001 / 0.006, -0.05 * 0.0005 / 0.0105
    assert found[0] == pytest.approx(np.array([[0.5 + first, beside], [beside, 0.25 + last]]))


SQUARE = arrays(np.float64, (4, 4), elements=st.floats(-10, 10, allow_subnormal=False, width=32))


@given(noisy=SQUARE, other=SQUARE)
def test_the_root_is_of_the_nearest_covariance_with_this_trace(
    noisy: np.ndarray, other: np.ndarray
) -> None:
    given = noisy + noisy.T
    total = max(0.0, float(np.trace(given)))
    found = root(given) @ root(given).T
    assert np.trace(found) == pytest.approx(total, abs=1e-4)
    covariance = other @ other.T
    size = float(np.trace(covariance))
    near = covariance * (total / size) if size > 1e-6 else np.eye(4) * total / 4
    for part in (1.0, 0.01):  # another covariance, and one beside what was found
        rival = part * near + (1.0 - part) * found
        assert np.linalg.norm(found - given) <= np.linalg.norm(rival - given) + 1e-4


def test_a_covariance_of_noise_is_not_widened_by_it() -> None:
    rng = np.random.default_rng(0)
    m, sigma = 100, 0.05
    true = np.diag(np.geomspace(1.0, 0.01, m))
    raw = rng.normal(0.0, sigma, (m, m))
    noise = np.triu(raw, 1) / 2**0.5
    given = true + noise + noise.T + np.diag(np.diag(raw))
    values, vectors = np.linalg.eigh(given)
    cut = (vectors * np.maximum(values, 0.0)) @ vectors.T
    spread = [np.trace(each) / np.trace(true) for each in (root(given) @ root(given).T, cut)]
    # A trace is known within six times sigma sqrt(m).
    assert spread[0] == pytest.approx(1.0, abs=6 * sigma * m**0.5 / np.trace(true))
    assert spread[1] > 1.3


def test_the_covariance_of_all_keeps_small_variances_that_stand_above_the_noise() -> None:
    # Two of twenty vary much: half of the others would be lost below the edge of the noise.
    rng = np.random.default_rng(0)
    m, sigma, held = 20, 3.0, np.full(3, 1000.0)
    variances = np.concatenate([[1.0, 0.5], np.full(m - 2, 0.02)])
    raw = rng.normal(0.0, sigma, (3, m, m))
    noise = np.triu(raw, 1) / 2**0.5
    noise = noise + noise.transpose(0, 2, 1) + np.stack([np.diag(np.diag(own)) for own in raw])
    products = held[:, None, None] * np.diag(variances) + noise
    found = pooled(products, sigma, held, np.arange(3), np.full(3, True))
    # Noise on a variance of all: 3 sqrt(3) / 3000, a tenth of the small ones; six times that.
    assert np.abs(np.einsum("kii->ki", found) - variances).max() < 6 * sigma * 3**0.5 / 3000
    beside = found - np.einsum("ki,ij->kij", np.einsum("kii->ki", found), np.eye(m))
    assert np.abs(beside[:, 2:, 2:]).max() < 1e-3  # noise of .0009 on each
