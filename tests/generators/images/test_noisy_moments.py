"""Means and covariances in noise: what is told from it, and what is nearest to what was found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenhand.generators.images.noisy_moments import (
    affordable,
    denoised,
    directions_of_means,
    pooled,
    root,
    shrunk_by_scale,
    shrunk_covariances,
    towards,
)


def test_noise_alone_seldom_has_a_direction_in_which_means_differ() -> None:
    rng = np.random.default_rng(0)
    frame, noise = np.linalg.qr(rng.normal(size=(150, 30)))[0], rng.uniform(0.1, 3.0, 10)
    n, found = 400, 0
    for _ in range(n):
        directions, _ = directions_of_means(
            noise[:, None] * rng.normal(size=(10, 150)), frame, noise
        )
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
        directions, kept = directions_of_means(noisy, frame, np.ones(2))
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
    ours = shrunk_by_scale(found, centre, scale, noise)
    one_part = towards(found, centre, float(noise.sum()))
    wrong = [float(((guess - true) ** 2).sum()) for guess in (best, ours, one_part, found)]
    assert wrong[1] < 1.05 * wrong[0]
    assert wrong[2] > 1.5 * wrong[0]  # all by one part: the large ones decide for the small
    assert wrong[3] > 1.5 * wrong[0]


def test_noise_alone_leaves_the_centre_and_no_noise_leaves_what_was_found() -> None:
    rng = np.random.default_rng(0)
    centre, scale, step = rng.normal(size=50), rng.uniform(1, 2, 50), rng.normal(size=50)
    none = np.full(50, 1e-12)
    assert shrunk_by_scale(centre + step, centre, scale, none) == pytest.approx(centre + step)
    assert shrunk_by_scale(centre + step, centre, scale, np.full(50, 1e6)) == pytest.approx(centre)
    nowhere = shrunk_by_scale(centre + step, centre, np.zeros(50), np.ones(50))
    assert nowhere == pytest.approx(centre)


def test_a_covariance_is_moved_as_by_hand() -> None:
    products = 100.0 * np.array([[[0.6, 0.1], [0.1, 0.2]]])
    centre = np.diag([0.5, 0.25])[None]
    found = shrunk_covariances(products, 10.0, np.array([100.0]), centre)
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
    assert np.abs(beside[:, 2:, 2:]).max() < 1e-3  # of noise of .0012 on each


def test_noise_alone_has_no_direction_and_what_stands_above_it_keeps_its_size() -> None:
    rng = np.random.default_rng(0)
    d, sigma = 800, 3.0
    raw = rng.normal(0.0, sigma, (d, d))
    noise = np.triu(raw, 1) / 2**0.5
    noise = noise + noise.T + np.diag(np.diag(raw))
    edge = sigma * (2 * d) ** 0.5
    # The largest eigenvalue moves by edge d**(-2/3) about the edge: at 1.1 of it, 8 times that.
    assert np.abs(np.linalg.eigvalsh(noise)).max() == pytest.approx(edge, rel=0.1)
    assert (denoised(noise, 1.1 * sigma)[0] == 0).all()
    true = np.zeros(d)
    true[:3] = np.array([10.0, 4.0, 1.0]) * edge
    found, _ = denoised(noise + np.diag(true), sigma)
    # A value moves by about the noise on one entry, sigma; six times that.
    assert np.abs(found[:3] - true[:3]).max() < 6 * sigma
    values = np.linalg.eigvalsh(noise + np.diag(true))[::-1]
    assert (
        values[2] - true[2] > 4 * sigma
    )  # a quarter of the edge, 10 sigma, if nothing is taken off


def test_what_the_noise_explains_is_given_up_and_no_more() -> None:
    rng = np.random.default_rng(0)
    centre, n = rng.normal(size=400), 400
    near = towards(centre + rng.normal(size=n), centre, float(n))
    # The squared length of the noise is n within 6 sqrt(2 n): at most that part of it stays.
    assert ((near - centre) ** 2).sum() < 6 * (2 * n) ** 0.5
    far = centre + 100.0
    assert towards(far, centre, float(n)) == pytest.approx(far, abs=0.02)
    assert towards(centre, centre, 1.0) == pytest.approx(centre)


def test_what_is_pooled_is_the_covariance_of_the_label() -> None:
    rng = np.random.default_rng(0)
    held, labels = np.array([50.0, 150.0, 80.0, 40.0]), np.array([0, 0, 1, 2])
    roots = rng.normal(size=(4, 6, 6))
    products = held[:, None, None] * (roots @ roots.transpose(0, 2, 1))
    used = np.array([True, True, True, False])
    found = pooled(products, 1e-9, held, labels, used)
    first = (products[0] + products[1]) / 200
    assert found[0] == pytest.approx(first)
    assert found[1] == pytest.approx(first)
    assert found[2] == pytest.approx(products[2] / 80)
    assert found[3] == pytest.approx(products[:3].sum(axis=0) / 280)  # of a label not seen: all
    noisy = pooled(products, 1e9, held, labels, used)
    assert np.ptp(noisy, axis=0).max() == pytest.approx(0.0)  # noise alone tells no label apart


def test_there_are_as_many_components_as_stand_above_the_noise() -> None:
    rng = np.random.default_rng(0)
    m, sigma = 20, 5.0
    held = np.array([20_000.0, 4_000.0, 10.0])
    products = held[:, None, None] * np.diag(np.linspace(0.1, 0.01, m)) / 2
    noisy = products + np.stack([np.diag(rng.normal(0.0, sigma, m)) for _ in held])
    found = affordable(noisy, sigma, held, 1000)
    # By hand: the length of the products of n records against the root of twice their noise.
    noise = (2.0 * sigma**2 * m * (m + 1) / 2) ** 0.5
    each = np.linalg.norm(np.linspace(0.1, 0.01, m)) / 2
    assert found == pytest.approx(np.maximum(held * each / noise, 1.0), rel=0.05, abs=1)
    assert (affordable(noisy, sigma, held, 4) == [4, 4, 1]).all()
    assert (affordable(noisy, 1e6, held, 4) == 1).all()
    assert (affordable(noisy, sigma, held, 1000, least=3000.0) == [6, 1, 1]).all()
