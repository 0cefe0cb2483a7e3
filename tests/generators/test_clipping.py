"""Bounds on gradients: what a record adds with its mark has norm 1 at most, however they move."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.generators.aggregators import ClippedSums
from evenhand.generators.clipping import CLIPS, SHARE, Clipping

BOUND = 0.7
SUMS = ClippedSums(clip_norm=1.0)


def moved(clip: str, bounds: list[float]) -> Clipping:
    made = Clipping.start(clip, BOUND, n_groups=len(bounds))
    made.bounds = np.array(bounds) if clip != "flat" else made.bounds
    return made


def some_gradients() -> np.ndarray:
    """Along and across, shorter than every bound, on them, beyond, and as long as doubles go."""
    lengths = [0.0, 1e-300, 1e-9, 0.5, BOUND, BOUND * (1 + 1e-15), 1.4, 2.8, 1e6, 1e150]
    ways = np.array([[1.0, 0.0, 0.0], [-0.6, 0.8, 0.0], [1 / 3, 2 / 3, -2 / 3]])
    return np.concatenate([length * ways for length in lengths])


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("bounds", [[BOUND, BOUND], [1.4, 0.9], [2.8, 0.7], [0.02, 0.02]])
@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_one_record_moves_the_sum_by_1_and_a_replaced_one_by_2(
    clip: str, bounds: list[float], weight: float
) -> None:
    # Brute force: every pair of records of both groups, gradient and mark together, in units.
    clipping, gradients = moved(clip, bounds), some_gradients()
    records = [
        clipping.vectors(gradient[None], np.array([group]), weight)
        for gradient, group in product(gradients, range(len(clipping.bounds)))
    ]
    # The vectors are short by themselves: that nothing has to be shortened keeps marks whole.
    assert max(float(np.linalg.norm(r)) for r in records) <= 1.0
    alone = [SUMS.total(r) for r in records]
    assert max(float(np.linalg.norm(a)) for a in alone) <= SUMS.l2_sensitivity("add or remove one")
    apart = max(float(np.linalg.norm(a - b)) for a, b in combinations(alone, 2))
    assert apart <= SUMS.l2_sensitivity("replace one")
    assert apart * SUMS.unit > 1.7  # the worst is nearly as bad as declared
    # Whole numbers: a sum is the sum of its records, to the last digit.
    together = np.concatenate(records)
    assert np.array_equal(SUMS.total(together), np.sum(alone, axis=0))


def test_a_mark_beside_a_gradient_that_leaves_no_room_for_it_would_be_seen() -> None:
    # What the test above must catch: the same vector with the gradient at full length.
    clipping = moved("group", [BOUND, BOUND])
    right = clipping.vectors(np.array([[5.0, 0.0]]), np.array([0]))
    wrong = np.concatenate([[1.0, 0.0], right[0, 2:]])
    assert np.linalg.norm(right) <= 1.0 < np.linalg.norm(wrong)


@pytest.mark.parametrize("clip", ["group", "global-adapt"])
def test_a_mark_is_whole_and_in_the_cell_of_its_group_and_says_that_a_gradient_is_long(
    clip: str,
) -> None:
    clipping, gradients = moved(clip, [1.4, 0.7]), some_gradients()
    limit = BOUND if clip == "group" else 1.4
    for group in (0, 1):
        made = clipping.vectors(gradients, np.full(len(gradients), group))
        long = np.linalg.norm(gradients, axis=1) > limit
        assert np.array_equal(made[:, 3 + group], SHARE * long)
        assert (made[:, 3 + 1 - group] == 0).all()


@pytest.mark.parametrize("clip", CLIPS)
def test_gradients_within_all_bounds_come_back_as_their_mean(clip: str) -> None:
    rng = np.random.default_rng(0)
    gradients, groups = rng.normal(0.0, 0.1, (50, 4)), rng.integers(0, 2, 50)
    clipping = moved(clip, [2.0, 1.0])
    sums = SUMS.total(clipping.vectors(gradients, groups)) * SUMS.unit
    assert clipping.mean(sums[:4], 50) == pytest.approx(gradients.mean(axis=0), abs=1e-5)


@given(
    norm=st.floats(1e-6, 1e6),
    bounds=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=3),
    data=st.data(),
)
def test_a_cut_gradient_ends_at_its_own_bound_and_a_short_one_stays(
    norm: float, bounds: list[float], data: st.DataObject
) -> None:
    clipping = moved("group", bounds)
    group = data.draw(st.integers(0, len(bounds) - 1))
    after = norm * float(clipping.cut(np.array([norm]), np.array([group]))[0])
    assert after == pytest.approx(min(norm, bounds[group]), rel=1e-12)


def test_global_adapt_settles_where_a_tenth_is_beyond_the_bound() -> None:
    # Esipova et al. 2023: the bound follows the share beyond it; here by the true marks.
    norms = np.random.default_rng(0).lognormal(1.0, 0.5, 4000)
    clipping = Clipping.start("global-adapt", 0.5, n_groups=1)
    for _ in range(600):
        marks = SHARE * np.array([clipping.long(norms).sum()], dtype=np.float64)
        clipping.move(marks, np.array([4000.0]))
    assert clipping.long(norms).mean() == pytest.approx(0.1, abs=0.01)


def test_marks_are_read_as_a_running_mean_whose_first_value_is_the_first_mark() -> None:
    clipping = Clipping.start("group", 1.0, n_groups=2, memory=0.9)
    seen = np.array([[4.0, 1.0], [2.0, 6.0], [3.0, 3.0]])
    for at, marks in enumerate(seen, start=1):
        clipping.move(SHARE * marks, np.array([10.0, 10.0]))
        weights = 0.9 ** np.arange(at)[::-1]
        long = np.average(seen[:at], axis=0, weights=weights) / 10.0
        assert clipping.bounds == pytest.approx(1.0 + long / long.mean())


def test_no_noise_takes_bounds_of_groups_out_of_their_range() -> None:
    rng = np.random.default_rng(0)
    clipping = Clipping.start("group", BOUND, n_groups=3)
    for _ in range(200):
        clipping.move(rng.normal(0.0, 100.0, 3), np.array([30.0, 5.0, 0.0]))
        assert (clipping.bounds >= BOUND).all()
        assert (clipping.bounds <= 4.0 * BOUND).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip": "groups"}, "Did you mean 'group'"),
        ({"first": 0.0}, "clip_norm must be finite and > 0"),
        ({"n_groups": 0}, "n_groups must be at least 1"),
        ({"memory": 1.0}, r"memory must lie in \[0, 1\), got memory=1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], message: str) -> None:
    given = {"clip": "group", "first": 1.0, "n_groups": 2, **settings}
    with pytest.raises(ValueError, match=message):
        Clipping.start(**given)
