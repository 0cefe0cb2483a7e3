"""Cells and bins: every value has one cell, drawn values go back to theirs, 0 stays 0."""

import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy.stats import binomtest, ks_2samp

from evenhand.generators.tables.bins import LEAST_BINS, Bins, Cells

BOUNDS = [
    (0, 80, 0),
    (0, 99_999, 0),
    (-1000, 50, 0),
    (0.5, 4.0, 0),
    (0.0, 1.0, None),
    (-5.0, 3e6, None),
    (2.0, 3.5, None),
    (35.5, 42.0, 1),
    (-0.05, 0.123, 2),
    (-3.0, 9000.0, 2),
]


@pytest.mark.parametrize(("low", "high", "decimals"), BOUNDS)
def test_cells_cover_the_range_in_order_and_without_overlap(
    low: float, high: float, decimals: int | None
) -> None:
    cells = Cells.between(low, high, decimals=decimals)
    assert (cells.starts <= cells.ends).all()
    assert (cells.ends[:-1] == cells.starts[1:]).all()
    if decimals is None:
        assert cells.bounds == (low, high)
    else:
        near = range(int(low * 10**decimals) - 3, int(high * 10**decimals) + 4)
        inside = [k for k in near if low <= k / 10**decimals <= high]
        assert (cells.starts[0], cells.ends[-1] - 1) == (inside[0], inside[-1])


@pytest.mark.parametrize(("low", "high", "decimals"), BOUNDS)
def test_what_is_drawn_from_a_cell_lies_in_it_and_in_the_bounds(
    low: float, high: float, decimals: int | None
) -> None:
    cells = Cells.between(low, high, decimals=decimals)
    codes = np.repeat(np.arange(len(cells)), 30)
    drawn = cells.draw(codes, np.random.default_rng(0))
    assert (cells.codes(drawn) == codes).all()
    assert ((drawn >= low) & (drawn <= high)).all()
    if decimals is not None:
        assert (drawn == np.round(drawn, decimals)).all()


@given(value=st.floats(-1e9, 1e9), which=st.sampled_from(BOUNDS))
def test_a_value_has_the_cell_that_holds_it_or_the_end_beyond_which_it_lies(
    value: float, which: tuple[float, float, int | None]
) -> None:
    low, high, decimals = which
    cells = Cells.between(low, high, decimals=decimals)
    code = int(cells.codes(np.array([value]))[0])
    inside = value if decimals is None else round(value * 10**decimals)
    inside = float(np.clip(inside, cells.starts[0], cells.ends[-1] - cells.step))
    assert cells.starts[code] <= inside <= cells.ends[code]


@given(
    ends=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2, unique=True),
    on_grid=st.booleans(),
    decimals=st.integers(0, 4),
    named=st.lists(st.floats(0.0, 1.0), max_size=3),
    seed=st.integers(0, 2**32 - 1),
)
def test_what_is_drawn_has_the_decimals_of_its_column_and_lies_within_the_bounds(
    ends: list[float], on_grid: bool, decimals: int, named: list[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    low, high = sorted(round(x, decimals) if on_grid else x for x in ends)
    assume(math.floor(high * 10**decimals) > math.ceil(low * 10**decimals))
    alone = np.round(low + (high - low) * np.array(named), decimals)
    alone = alone[(alone >= low) & (alone <= high)]
    cells = Cells.between(low, high, decimals=decimals).with_values(alone)
    bins = Bins.from_noisy(cells, rng.exponential(9.0, len(cells)), sigma=1.0, n_bins=5)
    for made in (bins, Bins.from_dict(json.loads(json.dumps(bins.to_dict())))):
        drawn = made.draw(np.repeat(np.arange(made.n_bins), 20), rng)
        assert ((drawn >= low) & (drawn <= high)).all()
        # The very float that a user writes: 36.7, never 36.699999999999996.
        assert drawn.tolist() == [float(f"{x:.{decimals}f}") for x in drawn]
    own = np.repeat(cells.codes(alone), 3)
    assert (cells.draw(own, rng) == np.repeat(alone, 3)).all()
    assert (cells.codes(cells.draw(own, rng)) == own).all()


def test_numbers_that_arithmetic_moved_have_the_cell_of_the_nearest() -> None:
    cells = Cells.between(0.0, 1.0, decimals=1)
    assert cells.codes(np.array([0.7 + 0.1, 0.1 + 0.2, 0.34, 0.36, -9.0, 9e307])).tolist() == [
        *(8, 3, 3, 4, 0, 10),
    ]


def test_bins_of_before_there_were_decimals_are_read() -> None:
    for decimals, word in ((0, True), (None, False)):
        bins = Bins.single(Cells.between(0, 9, decimals=decimals))
        saved = bins.to_dict()
        del saved["decimals"]
        again = Bins.from_dict(saved | {"integer": word})
        assert again.cells.decimals == decimals
        codes = np.arange(bins.n_bins)
        one, other = (b.draw(codes, np.random.default_rng(1)).tolist() for b in (bins, again))
        assert one == other
    for wrong in (-1, 10, 1.5):
        with pytest.raises((TypeError, ValueError), match="decimals must be"):
            Bins.from_dict(saved | {"decimals": wrong})


def test_zero_is_a_cell_of_its_own() -> None:
    for decimals in (0, None, 2):
        cells = Cells.between(-7, 50_000, decimals=decimals)
        code = int(cells.codes(np.array([0.0]))[0])
        assert cells.atoms[code]
        assert cells.draw(np.array([code] * 9), np.random.default_rng(0)).tolist() == [0.0] * 9
        near = {0: [1.0], None: [1e-9, 0.3], 2: [0.01]}[decimals]
        assert (cells.codes(np.array(near)) > code).all()


def test_bins_hold_enough_to_stand_above_the_noise_and_keep_a_frequent_zero_alone() -> None:
    cells = Cells.between(0, 99_999, decimals=0)
    rng = np.random.default_rng(0)
    values = np.where(rng.random(30_000) < 0.9, 0, rng.integers(1, 90_000, 30_000))
    counts = np.bincount(cells.codes(values.astype(float)), minlength=len(cells))
    sigma = 30.0
    bins = Bins.from_noisy(cells, counts + rng.normal(0, sigma, len(cells)), sigma=sigma, n_bins=16)
    assert bins.n_bins <= 17
    first = int(cells.codes(np.zeros(1))[0])
    assert (bins.bin_of_cell == bins.bin_of_cell[first]).sum() == 1
    held = np.bincount(bins.bin_of_cell, counts)
    assert held[:-1].min() > 4 * sigma


def test_values_drawn_from_bins_follow_the_noisy_counts_and_survive_a_file() -> None:
    cells = Cells.between(0, 9, decimals=0)
    noisy = [500, 0, 0, 100, 300, 0, 0, 0, 0, 100]
    bins = Bins.from_noisy(cells, noisy, sigma=1.0, n_bins=2)
    again = Bins.from_dict(bins.to_dict())
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(bins.n_bins), 5000)
    drawn = bins.draw(codes, rng)
    assert set(drawn) <= {0.0, 3.0, 4.0, 9.0}
    with_four = bins.bin_of_cell == bins.bin_of_cell[4]
    share = 300 / np.array(noisy)[with_four].sum()
    assert abs((drawn[codes == bins.bin_of_cell[4]] == 4).mean() - share) < 0.05
    one, other = (b.draw(codes, np.random.default_rng(1)) for b in (bins, again))
    assert (one == other).all()


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (0.0, np.inf)])
def test_bounds_that_hold_nothing_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="Bounds must be finite and low < high"):
        Cells.between(*bounds, decimals=None)
    with pytest.raises(ValueError, match="no whole number from"):
        Cells.between(0.2, 0.7, decimals=0)
    with pytest.raises(ValueError, match=r"no number of 1 decimals from 0\.21 to 0\.27"):
        Cells.between(0.21, 0.27, decimals=1)


@given(
    seed=st.integers(0, 10**6),
    high=st.integers(1, 300),
    sigma=st.floats(0.1, 1e4),
    n_bins=st.integers(2, 40),
)
def test_bins_are_neighboring_cells_and_at_least_four_however_loud_the_noise(
    seed: int, high: int, sigma: float, n_bins: int
) -> None:
    cells = Cells.between(0, high, decimals=0)
    rng = np.random.default_rng(seed)
    noisy = rng.poisson(5, len(cells)) + rng.normal(0, sigma, len(cells))
    bins = Bins.from_noisy(cells, noisy, sigma=sigma, n_bins=n_bins)
    assert bins.bin_of_cell[0] == 0
    assert set(np.diff(bins.bin_of_cell)) <= {0, 1}
    # Even bins of a grid that is not even may be empty: half of them hold a cut of it at least.
    assert bins.n_bins >= min(LEAST_BINS, n_bins, len(cells)) / 2
    assert np.bincount(bins.bin_of_cell, bins.weights) == pytest.approx(np.ones(bins.n_bins))


def test_under_loud_noise_a_range_is_cut_in_four_even_bins() -> None:
    cells = Cells.between(0.0, 1.0, decimals=None)
    bins = Bins.from_noisy(cells, np.zeros(len(cells)), sigma=1e6, n_bins=16)
    first = [cells.starts[bins.bin_of_cell == b].min() for b in range(bins.n_bins)]
    assert first == pytest.approx([0.0, 0.25, 0.5, 0.75])


@pytest.mark.parametrize(("n_values", "kept"), [(26, 26), (60, 15)])
def test_a_column_of_few_values_keeps_each_and_one_of_many_does_not(
    n_values: int, kept: int
) -> None:
    cells = Cells.between(1, n_values, decimals=0)
    noisy = np.full(n_values, 100.0)
    assert Bins.from_noisy(cells, noisy, sigma=5.0, n_bins=16).n_bins == kept


def test_a_range_beside_an_atom_is_cut_by_its_own_count() -> None:
    # 3,000 amounts beside 33,000 times nothing: a sixteenth of all records would be two bins.
    cells = Cells.between(0, 99_999, decimals=0)
    counts = np.zeros(len(cells))
    counts[0], counts[1:] = 33_000, 3_000 / (len(cells) - 1)
    bins = Bins.from_noisy(cells, counts, sigma=1.0, n_bins=16)
    assert (bins.bin_of_cell == 0).sum() == 1
    assert 12 <= bins.n_bins - 1 <= 16


@pytest.mark.parametrize(("low", "high", "decimals"), BOUNDS)
def test_draws_between_two_values_are_those_of_the_bins_that_lie_there(
    low: float, high: float, decimals: int | None
) -> None:
    cells, rng = Cells.between(low, high, decimals=decimals), np.random.default_rng(2)
    noisy = rng.exponential(100, len(cells))
    bins = Bins.from_noisy(cells, noisy, sigma=1.0, n_bins=3)
    start, end = low + 0.15 * (high - low), low + 0.7 * (high - low)
    within, chances = bins.between(start, end)
    n = 20_000
    for b in range(bins.n_bins):
        draws = bins.draw(np.full(n, b), rng)
        draws = draws[(draws >= start) & (draws <= end)]
        assert binomtest(len(draws), n, min(float(chances[b]), 1.0)).pvalue > FALSE_ALARM
        if chances[b] > 0:
            mine = within.draw(np.full(n, b), rng)
            assert ((mine >= start) & (mine <= end)).all()
            assert len(draws) < 1000 or ks_2samp(mine, draws).pvalue > FALSE_ALARM
    assert bins.between(-np.inf, np.inf)[1] == pytest.approx(np.ones(bins.n_bins))
    assert not bins.between(high + 1, high + 2)[1].any()
