"""Scores counted by group: the counts, and the rows that stand for noisy ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from evenhand.students.score_counts import N_RANGES, certain_rows, count_scores, rows_of

TABLES = hnp.arrays(np.int64, (3, N_RANGES), elements=st.integers(0, 40))
NOISY = hnp.arrays(np.float64, (3, N_RANGES), elements=st.floats(-60, 90))


@given(
    scores=st.lists(st.floats(0, 1), max_size=40),
    data=st.data(),
)
def test_each_row_is_counted_once_in_the_range_of_its_score(
    scores: list[float], data: st.DataObject
) -> None:
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(scores), max_size=len(scores)))
    table = np.zeros((3, N_RANGES), dtype=int)
    for p, z in zip(scores, groups, strict=True):
        inside = [r for r in range(N_RANGES) if r <= p * N_RANGES < r + 1]
        table[z, inside[0] if inside else N_RANGES - 1] += 1
    found = count_scores(np.array(scores), np.array(groups, dtype=int), 3)
    assert np.array_equal(found, table)


@pytest.mark.parametrize(
    ("groups", "words"), [([0, 3], "below 3"), ([0], "scores has 2, groups has 1")]
)
def test_rows_that_have_no_place_are_refused(groups: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        count_scores([0.1, 0.2], groups, 3)


@given(table=TABLES)
def test_counts_without_noise_come_back_as_the_rows_they_were(table: Any) -> None:
    scores, groups = rows_of(table.astype(float), 0.0)
    assert np.array_equal(count_scores(scores, groups, 3), table)


@given(noisy=NOISY, public=TABLES)
def test_public_rows_come_back_alone_where_noise_drowns_the_counts(noisy: Any, public: Any) -> None:
    scores, groups = rows_of(noisy - noisy.mean(axis=1, keepdims=True), 1e9, public)
    kept = public.sum(axis=1) > 0
    assert np.array_equal(count_scores(scores, groups, 3)[kept], public[kept])


@given(noisy=NOISY, noise=st.floats(0, 50), public=TABLES)
def test_there_are_as_many_rows_of_a_group_as_both_say(
    noisy: Any, noise: float, public: Any
) -> None:
    scores, groups = rows_of(noisy, noise, public)
    assert ((scores >= 0) & (scores <= 1)).all()
    expected = public.sum(axis=1) + np.maximum(noisy.sum(axis=1), 0.0)
    assert np.abs(np.bincount(groups, minlength=3) - expected).max() <= 0.5 + 1e-6
    # Each group by itself: the others change nothing of it.
    own, _ = rows_of(noisy[1:2], noise, public[1:2])
    assert np.array_equal(scores[groups == 1], own)


@pytest.mark.parametrize(
    ("n_private", "noise", "most"), [(4000, 5.0, 0.9), (1500, 12.0, 0.9), (300, 25.0, 1.4)]
)
def test_both_together_are_nearer_to_the_truth_than_either(
    n_private: int, noise: float, most: float
) -> None:
    # Mean squared error of the rate above 1/2, over many draws of rows and of noise: less than that
    # of public rows or counts alone, and not much more where noise drowns the counts. By variances,
    # weighed for this rate as a whole, both have .83, .82 and 1.00 of the better one's.
    rng = np.random.default_rng(0)
    law = stats.beta(1, 4)
    share = np.diff(law.cdf(np.linspace(0, 1, N_RANGES + 1)))
    rate, n_public, errors = law.sf(0.5), 400, []
    for _ in range(1000):
        public = rng.multinomial(n_public, share)[None]
        noisy = rng.multinomial(n_private, share)[None] + rng.normal(0, noise, (1, N_RANGES))
        scores, _ = rows_of(noisy, noise, public)
        alone = noisy[0, N_RANGES // 2 :].sum() / noisy.sum()
        known = public[0, N_RANGES // 2 :].sum() / n_public
        errors.append([(x - rate) ** 2 for x in ((scores > 0.5).mean(), known, alone)])
    both, *others = np.array(errors).T
    for other in others:
        apart = most * other - both
        assert apart.mean() > -5 * apart.std() / np.sqrt(len(apart))


def test_a_group_of_which_nothing_is_known_has_no_row() -> None:
    counts = np.zeros((2, N_RANGES))
    counts[0, 3] = 5.0
    counts[1, 2] = -4.0
    scores, groups = rows_of(counts, 1.0)
    assert groups.tolist() == [0] * 5
    np.testing.assert_allclose(scores, [0.155, 0.165, 0.175, 0.185, 0.195])


@pytest.mark.parametrize("n_public", [0, 300])
def test_rows_that_are_certain_are_as_many_as_would_err_as_much(n_public: int) -> None:
    # The variance of the rate in the upper half of the ranges, over noise and rows, is that of so
    # many rows of a sample: by a fifth more or less, for the rate weighs ranges one by one.
    rng, share, noise = np.random.default_rng(1), np.full(N_RANGES, 1 / N_RANGES), 14.0
    rates, said = [], []
    for _ in range(2000):
        public = rng.multinomial(n_public, share)[None]
        noisy = rng.multinomial(1500, share)[None] + rng.normal(0, noise, (1, N_RANGES))
        scores, _ = rows_of(noisy, noise, public)
        rates.append((scores > 0.5).mean())
        said.append(certain_rows(noisy, noise, public, np.array([rates[-1]]))[0])
    assert n_public < np.mean(said) < n_public + 1500
    assert np.var(rates) == pytest.approx(0.25 / np.mean(said), rel=0.2)
