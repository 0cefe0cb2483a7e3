"""Two methods compared: volumes over seeds, and attainment by its definition."""

from __future__ import annotations

import math
from collections.abc import Callable

import moocore
import numpy as np
import pytest
from scipy import stats

from evenhand.frontier import Run, compare, hypervolume
from evenhand.frontier.run import OBJECTIVES

Make = Callable[..., Run]
NAMES = ("gap", "error")


def method_runs(
    run_of: Make, rng: np.random.Generator, *, seeds: list[int], n: int = 4, shift: float = 0.0
) -> list[Run]:
    return [
        run_of(
            seed=seed,
            arguments={"i": i},
            epsilon=float(rng.uniform(0.5, 9)),
            gap=float(rng.uniform(0.1, 0.8)),
            error=float(rng.uniform(0.1, 0.7) + shift),
            coverage=float(rng.uniform(0.3, 1)),
        )
        for seed in seeds
        for i in range(n)
    ]


def attained(runs: list[Run], seed: int, darts: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Whether some run of this seed is at least as good as each dart in every objective."""
    hit = np.zeros(len(darts), dtype=bool)
    for run in runs:
        if run.setting.seed == seed:
            hit |= np.all(
                [
                    darts[:, j] <= run.coverage
                    if x == "coverage"
                    else darts[:, j] >= getattr(run, x)
                    for j, x in enumerate(names)
                ],
                axis=0,
            )
    return hit


@pytest.mark.parametrize("names", [("gap", "error"), ("gap", "error", "coverage"), OBJECTIVES])
def test_the_surplus_of_attainment_is_that_of_random_points(
    run_of: Make, names: tuple[str, ...]
) -> None:
    # By definition: at each dart, the share of A's seeds that attain it less the share of B's.
    rng = np.random.default_rng(len(names))
    a = method_runs(run_of, rng, seeds=[0, 1, 2])
    b = method_runs(run_of, rng, seeds=[5, 6], shift=0.05)
    n = 60_000
    darts = rng.random((n, len(names))) * [10.0 if x == "epsilon" else 1.0 for x in names]
    surplus = np.mean([attained(a, s, darts, names) for s in (0, 1, 2)], axis=0) - np.mean(
        [attained(b, s, darts, names) for s in (5, 6)], axis=0
    )
    found = compare(a, b, names)
    seen = []
    for ours, part in ((found.a_more_often, surplus), (found.b_more_often, -surplus)):
        positive = np.maximum(part, 0)
        z = -stats.norm.ppf(0.5e-6) * positive.std() / math.sqrt(n)
        assert abs(positive.mean() - ours) <= z  # both are 0 where one never attains more
        seen.append(positive.mean() > 10 * z)  # the test would see a tenth of it gone
    assert any(seen) or len(names) > 2
    assert found.a_more_often - found.b_more_often == pytest.approx(found.difference, abs=1e-12)


def test_the_surplus_of_attainment_is_that_of_moocores_rectangles(run_of: Make) -> None:
    # A second derivation in two objectives; moocore counts seeds, so both have three.
    rng = np.random.default_rng(3)
    a, b = (method_runs(run_of, rng, seeds=[0, 1, 2]) for _ in range(2))
    x, y = (np.array([[r.gap, r.error, r.setting.seed + 1] for r in runs]) for runs in (a, b))
    areas = moocore.eafdiff(x, y, rectangles=True)
    size = (np.minimum(areas[:, 2], 1) - areas[:, 0]) * (np.minimum(areas[:, 3], 1) - areas[:, 1])
    weight = areas[:, 4] / np.abs(areas[:, 4]).max() if len(areas) else areas[:, 4]
    found = compare(a, b, NAMES)
    scale = np.abs(areas[:, 4]).max() / 3
    assert found.a_more_often == pytest.approx(float((size * weight).clip(0).sum()) * scale)
    assert found.b_more_often == pytest.approx(float((-size * weight).clip(0).sum()) * scale)


def test_volumes_are_means_over_seeds_with_students_interval(run_of: Make) -> None:
    rng = np.random.default_rng(4)
    a = method_runs(run_of, rng, seeds=[0, 1, 2, 3])
    b = method_runs(run_of, rng, seeds=[0, 1, 2, 3], shift=0.1)
    v = np.array(
        [
            [hypervolume([r for r in runs if r.setting.seed == seed], NAMES) for seed in range(4)]
            for runs in (a, b)
        ]
    )
    found = compare(a, b, NAMES, level=0.9)
    assert found.paired
    assert found.hypervolume_a == pytest.approx(v[0].mean())
    low, high = stats.ttest_1samp(v[1], 0).confidence_interval(0.9)
    assert found.interval_b == pytest.approx((low, high))
    low, high = stats.ttest_rel(v[0], v[1]).confidence_interval(0.9)
    assert found.difference_interval == pytest.approx((low, high))
    other = [run_of(**{"seed": r.setting.seed + 9, "gap": r.gap, "error": r.error}) for r in b]
    found = compare(a, other, NAMES, level=0.9)
    assert not found.paired
    w = [hypervolume([r for r in other if r.setting.seed == s], NAMES) for s in range(9, 13)]
    low, high = stats.ttest_ind(v[0], w, equal_var=False).confidence_interval(0.9)
    assert found.difference_interval == pytest.approx((low, high))


def test_one_seed_has_a_difference_and_no_interval(run_of: Make) -> None:
    found = compare([run_of(gap=0.1, error=0.1)], [run_of(gap=0.5, error=0.1)], NAMES)
    assert found.difference == pytest.approx(0.9 * 0.9 - 0.5 * 0.9)
    assert (found.a_more_often, found.b_more_often) == pytest.approx((found.difference, 0))
    assert all(math.isnan(x) for x in (*found.interval_a, *found.difference_interval))


def test_a_method_with_nothing_in_the_box_has_no_volume(run_of: Make) -> None:
    found = compare([run_of()], [run_of(epsilon=math.inf)])
    assert found.hypervolume_b == 0.0
    assert found.b_more_often == 0.0
    with pytest.raises(ValueError, match="runs_b is empty"):
        compare([run_of()], [])
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        compare([run_of()], [run_of()], level=1.0)
