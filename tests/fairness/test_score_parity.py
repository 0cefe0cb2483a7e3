"""Generalized demographic parity: the largest distance between scores, and its interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.fairness import (
    DemographicParity,
    fairness_report,
    gap_of,
)
from evenhand.fairness.score_parity import generalized_demographic_parity, score_distance
from evenhand.fairness.tally import Tally

ROWS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), min_size=3, max_size=30)


def pair(p):
    return np.column_stack([1.0 - p, p])


@given(rows=ROWS, reference=st.sampled_from(["rest", "pairwise", "overall"]))
def test_it_is_the_mean_over_thresholds_of_how_far_apart_the_rates_are(rows, reference) -> None:
    # Brute force: scores on a grid of twentieths, so each of 20 thresholds has its own rates.
    p, z = np.array([r[0] for r in rows]) / 20, np.array([r[1] for r in rows])
    found = generalized_demographic_parity(pair(p), z, n_groups=3, reference=reference)
    worst = np.nan
    for a in range(3):
        others = {"rest": [z != a], "overall": [z >= 0]}.get(reference, [z == b for b in range(3)])
        for other in others:
            if (z == a).any() and other.any() and not np.array_equal(z == a, other):
                apart = [
                    abs((p[z == a] > t).mean() - (p[other] > t).mean())
                    for t in (np.arange(20) + 0.5) / 20
                ]
                worst = np.fmax(worst, np.mean(apart))
    if np.isnan(worst):  # one group with rows: against everybody it is 0, else there is nobody
        assert reference == "overall" or np.isnan(found.value)
        assert found.high == 1.0
    else:
        assert found.value == pytest.approx(worst, abs=1e-9)
        assert found.low <= found.value <= found.high
    assert found.n_empty == 3 - len(set(z.tolist()))


def test_of_decisions_it_is_demographic_parity_and_of_scores_the_distance() -> None:
    rng = np.random.default_rng(0)
    z, decided = rng.integers(3, size=400), rng.integers(3, size=400)
    table = Tally.of(z, decided, 3, 3)
    for reference in ("rest", "pairwise", "overall"):
        ours = generalized_demographic_parity(
            np.eye(3)[decided], z, n_groups=3, reference=reference
        )
        notion = DemographicParity(margin=0.0, reference=reference)
        assert ours.value == pytest.approx(gap_of(notion, table).value)
        p = rng.random(400)
        ours = generalized_demographic_parity(pair(p), z, n_groups=3, reference=reference)
        assert ours.value == pytest.approx(score_distance(p, z, reference=reference))


def test_its_interval_covers_the_distance_of_the_populations() -> None:
    # Uniform on [0, 1] against its square: W1 = 1/2 - 1/3. Coverage is at least .95 by theorem; the
    # bound is loose, so a miss in 300 would be a wrong build (an interval a third as wide misses).
    rng, truth, missed, missed_narrow = np.random.default_rng(1), 1 / 6, 0, 0
    z = np.arange(200) % 2
    for _ in range(300):
        p = rng.random(200)
        p[z == 1] **= 2
        found = generalized_demographic_parity(pair(p), z, n_groups=2)
        missed += not found.low <= truth <= found.high
        missed_narrow += abs(found.value - truth) > (found.high - found.value) / 6
    assert missed == 0
    assert missed_narrow > 15  # more than one in twenty


def test_probabilities_that_rounding_takes_above_1_are_1() -> None:
    found = generalized_demographic_parity([[0.0, 1.0 + 2**-52], [1.0, 0.0]], [0, 1], n_groups=2)
    assert (found.value, found.high) == (1.0, 1.0)


def test_one_group_has_nobody_to_differ_from() -> None:
    found = generalized_demographic_parity(pair(np.array([0.2, 0.9])), [0, 0], n_groups=1)
    assert np.isnan(found.value)
    assert (found.low, found.high) == (0.0, 1.0)


def test_scores_that_are_no_probabilities_are_refused() -> None:
    with pytest.raises(ValueError, match=r"in \[0, 1\], got values from -2 to 3\. Pass what"):
        generalized_demographic_parity([[3.0, -2.0]], [0], n_groups=2)


def test_a_report_has_it_if_it_is_given_probabilities() -> None:
    p, z = np.array([0.1, 0.6, 0.9, 0.4]), ["a", "a", "b", "b"]
    told = fairness_report([0, 1, 1, 0], [0, 1, 1, 0], z, probabilities=pair(p))
    assert told["generalized_demographic_parity_pairwise"].value == pytest.approx(0.3)
    with pytest.raises(KeyError):
        fairness_report([0, 1, 1, 0], [0, 1, 1, 0], z)["generalized_demographic_parity_pairwise"]
