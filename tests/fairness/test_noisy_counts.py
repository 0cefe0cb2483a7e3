"""Metrics of a noisy table: limits of sums of noise, and intervals that cover both errors."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, dlaplace

from evenhand.fairness import DemographicParity, EqualizedOdds, ErrorParity
from evenhand.fairness.metrics import error_rate, gap_of
from evenhand.fairness.noisy_counts import NoisyCounts, sum_limit
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.tally import JointTally, Tally
from evenhand.typing import IntArray

REPEATS = 300
# Counts of what covers in 95 % of the cases are below it once in a million.
FEWEST = binom.ppf(1e-6, REPEATS, 0.95)
CELLS = np.array([[[0.20, 0.06], [0.08, 0.14]], [[0.22, 0.04], [0.12, 0.14]]])
CELLS = CELLS / CELLS.sum()


def noise(rng: np.random.Generator, scale: float, shape: tuple[int, ...]) -> IntArray:
    stop = 1.0 - math.exp(-1.0 / scale)
    drawn: IntArray = rng.geometric(stop, shape) - rng.geometric(stop, shape)
    return drawn


@pytest.mark.parametrize("scale", [0.4, 1.0, 7.0])
@pytest.mark.parametrize("error", [0.2, 0.05, 1e-3])
def test_limits_of_one_and_two_cells_are_those_of_the_distribution(
    scale: float, error: float
) -> None:
    one = dlaplace(1.0 / scale)
    assert one.sf(sum_limit(scale, 1, error)) * 2 <= error
    assert one.sf(sum_limit(scale, 1, error) - 1) * 2 > error
    reach = np.arange(-400, 401)
    two = np.convolve(one.pmf(reach), one.pmf(reach))
    beyond = np.abs(np.arange(len(two)) - 800)
    limit = sum_limit(scale, 2, error)
    assert two[beyond > limit].sum() <= error
    assert two[beyond > limit - 1].sum() > error


def notions() -> list[RateNotion]:
    return [
        DemographicParity(margin=0, reference="pairwise"),
        EqualizedOdds(margin=0, reference="rest"),
        ErrorParity(margin=0, reference="overall"),
    ]


def exact_gap(notion: RateNotion, cells: np.ndarray) -> float:
    """Of a population, by a table so large that its rounding is of no account."""
    return gap_of(notion, JointTally(counts=np.rint(cells * 1e9).astype(np.int64))).value


def covered(
    n: int, scale: float, *, sampled: bool = True, broken: bool = False, seed: int = 0
) -> dict[str, int]:
    rng = np.random.default_rng(seed)
    truth = {notion.name: exact_gap(notion, CELLS) for notion in notions()}
    found = dict.fromkeys(truth, 0)
    fixed = np.rint(CELLS * n).astype(np.int64)
    for _ in range(REPEATS):
        counts = rng.multinomial(n, CELLS.ravel()).reshape(CELLS.shape) if sampled else fixed
        table = NoisyCounts(
            counts=counts + noise(rng, scale, counts.shape),
            scale=1e-3 if broken else scale,
            n_summed=(1, 1),
        )
        for notion in notions():
            gap = table.gap(notion)
            found[notion.name] += gap.low <= truth[notion.name] <= gap.high
    return found


def test_intervals_cover_sample_and_noise_together() -> None:
    assert min(covered(150, 2.0).values()) >= FEWEST


def test_intervals_cover_noise_alone_in_all_but_their_half_of_the_error() -> None:
    of_noise = covered(4000, 20.0, sampled=False)
    assert min(of_noise.values()) >= binom.ppf(1e-6, REPEATS, 0.975)


def test_that_count_would_see_intervals_that_forget_the_noise() -> None:
    assert min(covered(20_000, 1000.0, broken=True).values()) < FEWEST


def test_joined_groups_are_sums_with_the_noise_of_all_their_cells() -> None:
    table = NoisyCounts(counts=[[5, 3], [-1, 4], [2, 2]], scale=2.0, n_summed=(1, 1, 1))
    joined = table.joined([0, 1, 0], 2)
    assert joined.counts.tolist() == [[7, 5], [-1, 4]]
    assert joined.n_summed == (2, 1)
    rate = joined.selection_rates(1)
    assert rate[0].n == 12
    assert rate[1].value == 1.0  # a count below 0 is taken as 0
    assert rate[1].low < 0.5


def test_without_noise_and_with_half_the_error_the_intervals_are_those_of_exact_counts() -> None:
    counts = np.array([[[60, 20], [10, 40]], [[50, 30], [20, 50]]])
    table = NoisyCounts(counts=counts, scale=1e-3, n_summed=(1, 1))
    joint = JointTally(counts=counts)
    for notion in notions():
        ours, exact = table.gap(notion), gap_of(notion, joint, level=0.975)
        assert (ours.low, ours.high) == pytest.approx((exact.low, exact.high))
    (ours,) = table.joined([0, 0], 1).error_rates()
    exact = error_rate(joint, level=0.975)
    assert (ours.value, ours.low) == pytest.approx((exact.value, exact.low))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: NoisyCounts(counts=[[0.5, 1.0]], scale=1.0, n_summed=(1,)), "whole numbers"),
        (lambda: NoisyCounts(counts=[[1, 2]], scale=0.0, n_summed=(1,)), "scale"),
        (lambda: NoisyCounts(counts=[[1, 2]], scale=1.0, n_summed=(1, 1)), "n_summed"),
        (
            lambda: NoisyCounts(counts=[[1, 2], [3, 4]], scale=1.0, n_summed=(1, 1)).gap(
                ErrorParity(margin=0)
            ),
            "true classes",
        ),
    ],
)
def test_what_is_wrong_is_said(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        wrong()


def test_exact_counts_and_noisy_counts_have_the_same_names() -> None:
    notion = DemographicParity(margin=0, reference="pairwise")
    counts = np.array([[60, 40], [80, 20]])
    noisy = NoisyCounts(counts=counts, scale=1.0, n_summed=(1, 1)).gap(notion)
    exact = gap_of(notion, Tally(counts=counts))
    assert (noisy.name, noisy.value, noisy.n) == (exact.name, exact.value, exact.n)
    assert noisy.low < exact.low
    assert noisy.high > exact.high
