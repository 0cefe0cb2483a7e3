"""Aggregators: the declared sensitivity is the largest distance between sums of neighbors."""

import itertools
import math
import tracemalloc
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.generators.aggregators import (
    ClippedSums,
    FeatureSums,
    OuterSums,
    ProductSums,
    TableCounts,
    TableDistances,
)
from evenhand.generators.budget_plan import noisy_sum
from evenhand.generators.teacher_sums import (
    BinaryVotes,
    GradientSum,
    ProjectedHistogram,
    SeveralTeachers,
    TopKSigns,
)
from evenhand.privacy import FloatNoise, audit_epsilon_lower_bound
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.typing import IntArray

RELATIONS = ("add or remove one", "replace one")
ONE, TWO = np.ones((1, 1)), np.ones((1, 2))


def neighbors(rows: list[object], values: list[object], relation: str) -> list[list[object]]:
    """Every neighbor of a small data set."""
    if relation == "replace one":
        return [
            [*rows[:i], v, *rows[i + 1 :]] for i in range(len(rows)) for v in values if v != rows[i]
        ]
    return [[*rows, v] for v in values] + [rows[:i] + rows[i + 1 :] for i in range(len(rows))]


def farthest_neighbors(
    sums: Callable[[Any], np.ndarray], values: Sequence[Any], relation: str
) -> float:
    """L2 distance of sums that are farthest apart, over all data sets of two rows."""
    return max(
        float(np.linalg.norm(sums(list(rows)) - sums(other)))
        for rows in itertools.product(values, repeat=2)
        for other in neighbors(list(rows), list(values), relation)
    )


def assert_moves(sums: Any, values: Any, relation: str, declared: float, rel: float) -> None:
    """As far as declared, up to how finely sums are rounded, and no further."""
    worst = farthest_neighbors(sums, values, relation)
    assert worst <= declared
    assert worst == pytest.approx(declared, rel=rel)


@pytest.mark.parametrize("relation", RELATIONS)
def test_tables_of_counts_move_as_far_as_declared_and_no_further(relation: str) -> None:
    # Brute force: two tables of shape (2, 2) over three binary columns, all data sets of 2 rows.
    counter = TableCounts(shapes=((2, 2), (2, 2)))
    values = list(itertools.product((0, 1), repeat=3))

    def sums(rows: list[tuple[int, ...]]) -> np.ndarray:
        x = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return counter.total([(x[0], x[1]), (x[0], x[2])])

    worst = farthest_neighbors(sums, values, relation)
    assert worst == pytest.approx(counter.l2_sensitivity(relation))


@pytest.mark.parametrize("relation", RELATIONS)
def test_distances_of_tables_move_as_far_as_declared_and_no_further(relation: str) -> None:
    rng = np.random.default_rng(0)
    score = TableDistances(n_tables=2)
    values = list(itertools.product((0, 1), repeat=3))
    worst = 0.0
    for trial in range(12):
        # Fixed tables far away on one side make the bound tight; random ones must stay below it.
        fixed = (
            [np.array([[9.0, -9.0], [9.0, -9.0]])] * 2
            if trial == 0
            else [rng.normal(0, 2, (2, 2)) for _ in range(2)]
        )

        @cache
        def sums(
            rows: tuple[tuple[int, ...], ...], fixed: list[np.ndarray] = fixed
        ) -> tuple[int, ...]:
            x = np.array(rows, dtype=np.int64).reshape(-1, 3).T
            counted = [np.bincount(2 * x[0] + x[j], minlength=4).reshape(2, 2) for j in (1, 2)]
            return tuple(score.total(counted, fixed).tolist())

        found = max(
            math.dist(sums(rows), sums(tuple(other)))
            for rows in itertools.product(values, repeat=2)
            for other in neighbors(list(rows), values, relation)
        )
        worst = max(worst, found)
        assert found <= score.l2_sensitivity(relation) + 1e-9
    assert worst == pytest.approx(score.l2_sensitivity(relation))


@pytest.mark.parametrize("n_tenths", [10, 20])
def test_one_record_moves_a_distance_by_one_though_tenths_are_no_doubles(n_tenths: int) -> None:
    # Summed as they are, 15 + 10 * 0.1 is below 16, and 16 + 10 * 0.1 is 17: two steps for one.
    score = TableDistances(n_tables=1)
    fixed = np.concatenate([[0.0], np.full(n_tenths, 0.1)])
    found = [
        int(score.total([np.eye(1, n_tenths + 1, dtype=np.int64)[0] * n], [fixed])[0])
        for n in range(600)
    ]
    assert set(np.diff(found)) == {1}


@pytest.mark.parametrize("relation", RELATIONS)
def test_feature_sums_move_as_far_as_declared_and_no_further(relation: str) -> None:
    # Unit vectors of both signs, and one that is too long and must be shortened.
    phis = [(1.0, 0.0), (-1.0, 0.0), (0.6, 0.8), (30.0, -40.0)]
    values = [(phi, c) for phi in phis for c in (0, 1)]
    sums_of = FeatureSums(n_features=2, n_conditions=2)

    def sums(rows: list[tuple[tuple[float, float], int]]) -> np.ndarray:
        phi = np.array([r[0] for r in rows], dtype=float).reshape(-1, 2)
        return sums_of.total(phi, np.array([r[1] for r in rows], dtype=np.int64))

    assert_moves(sums, values, relation, sums_of.l2_sensitivity(relation), 1e-5)


@pytest.mark.parametrize("relation", RELATIONS)
def test_clipped_sums_move_as_far_as_declared_and_no_further(relation: str) -> None:
    vectors = [(0.3, 0.4), (-0.3, -0.4), (30.0, -40.0), (0.0, 0.1)]
    sums_of = ClippedSums(clip_norm=0.5)

    def sums(rows: list[tuple[float, float]]) -> np.ndarray:
        return sums_of.total(np.array(rows, dtype=float).reshape(-1, 2))

    assert_moves(sums, vectors, relation, sums_of.l2_sensitivity(relation), 1e-5)


@pytest.mark.parametrize("relation", RELATIONS)
def test_sums_of_products_move_as_far_as_declared_and_no_further(relation: str) -> None:
    lefts = [(0.5, 0.0), (-0.5, 0.0), (30.0, -40.0), (1e-7, 0.0)]
    values = list(itertools.product(lefts, [(2.0, 0.0), (700.0, -1e5), (1e-9, 0.3)]))
    sums_of = ProductSums(n_left=2, n_right=2)

    def sums(rows: list[tuple[tuple[float, float], tuple[float, float]]]) -> np.ndarray:
        left, right = (np.array([row[k] for row in rows]).reshape(-1, 2) for k in (0, 1))
        return sums_of.total(left, right)

    assert_moves(sums, values, relation, sums_of.l2_sensitivity(relation), 1e-3)  # the grid


@pytest.mark.parametrize("relation", RELATIONS)
def test_products_of_a_row_with_itself_move_as_far_as_declared_and_no_further(
    relation: str,
) -> None:
    # Brute force: all data sets of two rows from unit vectors, a short and a long one, two blocks.
    zs = [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (0.1, 0.2), (30.0, -40.0)]
    values = list(itertools.product(zs, (0, 1)))
    products = OuterSums(n_features=2, n_conditions=2)

    def sums(rows: list[tuple[tuple[float, float], int]]) -> np.ndarray:
        z = np.array([r[0] for r in rows], dtype=float).reshape(-1, 2)
        return products.total(z, np.array([r[1] for r in rows], dtype=np.int64))

    declared = products.l2_sensitivity(relation)
    assert_moves(sums, values, relation, declared, 1e-3)  # z is rounded towards zero
    three = OuterSums(n_features=2, n_conditions=2, per_unit=3)
    assert three.l2_sensitivity(relation) == 3 * declared


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e4))
def test_sums_of_products_are_those_of_whole_numbers_however_rows_are_split(
    seed: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.normal(0, 1, (40, 3)), rng.normal(0, scale, (40, 5))
    sums = ProductSums(n_left=3, n_right=5)
    each = np.array([sums.total(left[i : i + 1], right[i : i + 1]) for i in range(40)])
    assert (np.linalg.norm(each.astype(float), axis=1) <= sums.l2_sensitivity(RELATIONS[0])).all()
    assert np.array_equal(sums.total(left, right), each.sum(axis=0))
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    exact = (left / np.maximum(lengths, 1.0)[:, None]).T @ right
    found = sums.total(left, right).reshape(3, 5) * sums.unit
    # Of each factor less than a step of its grid is cut.
    off = 40 * (2.0**-14 * np.abs(left).max() + 2.0**-20 * np.abs(right).max())
    assert np.abs(found - exact).max() <= off


def test_what_products_are_made_of_is_held_for_some_rows_at_once() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(0, 1, (20_000, 1)), rng.normal(0, 1, (20_000, 100))
    tracemalloc.start()
    ProductSums(n_left=1, n_right=100).total(left, right)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 0.6 * right.nbytes  # it was 3 times that, and a fit was four times as long


def test_a_teachers_block_is_clipped_as_a_whole_and_moves_by_twice_the_norm() -> None:
    rng = np.random.default_rng(1)
    gradient = GradientSum(clip_norm=0.5)
    rest = rng.normal(size=(5, 4, 3))
    long = rng.normal(size=(4, 3))
    long *= 100 / np.linalg.norm(long)
    one, other = (gradient.total(np.concatenate([rest, b[None]])) for b in (long, -long))
    apart = float(np.linalg.norm(one - other))
    assert apart <= gradient.l2_sensitivity("replace one")
    assert apart == pytest.approx(gradient.l2_sensitivity("replace one"), rel=1e-5)
    # Clipping each of the four rows to 0.5 would let the block reach norm 1.
    assert np.linalg.norm(gradient.total(long[None])) * gradient.unit <= 0.5


def test_votes_of_one_teacher_can_flip_on_every_row() -> None:
    votes = BinaryVotes(n_rows=7)
    rest = np.random.default_rng(0).integers(0, 2, (9, 7))
    one, other = (votes.total(np.vstack([rest, np.full(7, v)])) for v in (0, 1))
    assert np.linalg.norm(one - other) == pytest.approx(votes.l2_sensitivity("replace one"))


def farthest(sums: list[IntArray]) -> float:
    """L2 distance of the two sums that are farthest apart."""
    table = np.stack(sums).astype(float)
    return float(np.sqrt(((table[:, None] - table[None]) ** 2).sum(axis=2).max()))


def test_signs_of_one_teacher_move_as_far_as_declared_and_no_further() -> None:
    # Brute force: every way to put at most 2 signs into a row of 3, for one row and for two.
    rows = [r for r in itertools.product((-1, 0, 1), repeat=3) if np.count_nonzero(r) <= 2]
    for n_rows in (1, 2):
        signs = TopKSigns(n_rows=n_rows, width=3, k=2)
        said = [np.array(s).reshape(1, n_rows, 3) for s in itertools.product(rows, repeat=n_rows)]
        assert farthest([signs.total(s) for s in said]) == pytest.approx(
            signs.l2_sensitivity("replace one")
        )


def test_bins_of_one_teacher_move_as_far_as_declared_and_no_further() -> None:
    # Brute force: every bin of every direction, for one row and for two.
    for n_rows in (1, 2):
        bins = ProjectedHistogram(n_rows=n_rows, n_directions=2, n_bins=3, reach=1.5)
        values = [
            np.array(v).reshape(1, n_rows, 2)
            for v in itertools.product((-9.0, 0.0, 1.5), repeat=2 * n_rows)
        ]
        assert farthest([bins.total(v) for v in values]) == pytest.approx(
            bins.l2_sensitivity("add or remove one")
        )


def test_two_teachers_of_several_move_as_far_as_declared_and_no_further() -> None:
    # Brute force: everything that two teachers can say together, before and after.
    signs = TopKSigns(n_rows=1, width=2, k=1)
    bins = ProjectedHistogram(n_rows=1, n_directions=1, n_bins=3, reach=1.5)
    blocks = GradientSum(clip_norm=1.0)
    one = [np.array(w) for w in ((0.0, 0.0), (1.0, 0.0), (0.0, -1.0), (-0.6, 0.8), (0.6, -0.8))]
    sums = {
        signs: [
            signs.total(np.array(pair)[:, None, :])
            for pair in itertools.product([(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)], repeat=2)
        ],
        bins: [
            bins.total(np.array(at)[:, None, None], np.array(votes)[:, None])
            for at in itertools.product((-9.0, 0.0, 1.5), repeat=2)
            for votes in itertools.product((False, True), repeat=2)
        ],
        blocks: [blocks.total(np.stack(pair)) for pair in itertools.product(one, repeat=2)],
    }
    for of_one, found in sums.items():
        both = SeveralTeachers(of_one=of_one, n_moved=2)
        assert both.unit == of_one.unit
        declared = both.l2_sensitivity("replace one")
        assert declared == 2 * of_one.l2_sensitivity("replace one")
        assert farthest(found) <= declared
        assert farthest(found) == pytest.approx(declared, rel=1e-5)


def test_a_teacher_that_does_not_vote_in_a_row_is_in_no_bin_of_it() -> None:
    bins = ProjectedHistogram(n_rows=2, n_directions=2, n_bins=2)
    values = np.array([[[-1.0, 1.0], [1.0, 1.0]], [[-1.0, -1.0], [-1.0, -1.0]]])
    voting = np.array([[True, False], [True, True]])
    assert bins.total(values, voting).tolist() == [2, 0, 1, 1, 1, 0, 1, 0]
    assert bins.total(values).tolist() == [2, 0, 1, 1, 1, 1, 1, 1]


def test_a_direction_is_decided_by_its_fullest_bin_if_that_is_full_enough() -> None:
    bins = ProjectedHistogram(n_rows=1, n_directions=3, n_bins=4, reach=2.0)
    assert bins.midpoints.tolist() == [-1.5, -0.5, 0.5, 1.5]
    projected = np.array([[[-1.9, 0.1, 7.0]]] * 6 + [[[1.9, -0.1, -7.0]]] * 4)
    counts = bins.total(projected)
    assert counts.tolist() == [6, 0, 0, 4, 0, 4, 6, 0, 4, 0, 0, 6]
    assert bins.decide(counts.astype(float), least=5.0).tolist() == [[-1.5, 0.5, 1.5]]
    assert bins.decide(counts.astype(float), least=6.5).tolist() == [[0.0, 0.0, 0.0]]


def test_rounding_is_towards_zero_so_that_no_norm_grows() -> None:
    # 2000 equal coordinates of norm exactly 1: rounding to nearest could lengthen the vector.
    phi = np.full((1, 2000), 2000**-0.5)
    sums = FeatureSums(n_features=2000, n_conditions=1)
    total = sums.total(phi, np.zeros(1, dtype=np.int64))[:-1]
    assert np.linalg.norm(total.astype(float)) * sums.unit <= 1.0


def test_units_with_several_records_multiply_the_sensitivity() -> None:
    for relation in RELATIONS:
        for one, three in (
            (TableCounts(shapes=((2, 2),)), TableCounts(shapes=((2, 2),), per_unit=3)),
            (TableDistances(n_tables=4), TableDistances(n_tables=4, per_unit=3)),
            (ClippedSums(clip_norm=0.5), ClippedSums(clip_norm=0.5, per_unit=3)),
            (ProductSums(n_left=1, n_right=2), ProductSums(n_left=1, n_right=2, per_unit=3)),
            (
                FeatureSums(n_features=2, n_conditions=2),
                FeatureSums(n_features=2, n_conditions=2, per_unit=3),
            ),
        ):
            assert three.l2_sensitivity(relation) == 3 * one.l2_sensitivity(relation)


WORST = {
    "tables": (
        TableCounts(shapes=((1, 2), (1, 2))),
        [np.array([1, 0, 1, 0]), np.array([0, 0, 0, 0])],
    ),
    "features": (
        FeatureSums(n_features=1, n_conditions=1),
        [np.array([2**20, 2**20]), np.array([0, 0])],
    ),
    "products": (ProductSums(n_left=1, n_right=1), [np.array([2**34]), np.array([0])]),
    "clipped": (ClippedSums(clip_norm=2.0**-10), [np.array([2**10]), np.array([0])]),
    "gradients": (GradientSum(clip_norm=1.0), [np.array([2**20]), np.array([-(2**20)])]),
    "signs": (
        TopKSigns(n_rows=2, width=3, k=2),
        [np.array([1, 1, 0, 1, 1, 0]), np.array([-1, -1, 0, -1, -1, 0])],
    ),
    "bins": (
        ProjectedHistogram(n_rows=2, n_directions=1, n_bins=2),
        [np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1])],
    ),
    "several": (
        SeveralTeachers(of_one=GradientSum(clip_norm=1.0), n_moved=2),
        [np.array([2**21]), np.array([-(2**21)])],
    ),
    "votes": (BinaryVotes(n_rows=4), [np.ones(4, np.int64), np.zeros(4, np.int64)]),
    "distances": (TableDistances(n_tables=9), [np.full(9, 1), np.zeros(9, np.int64)]),
}


@pytest.mark.parametrize("name", sorted(WORST))
def test_an_attack_stays_below_the_claim_and_convicts_half_the_noise(name: str) -> None:
    # The score is the best one there is: the projection on the direction between the two sums.
    # 100,000 runs each; the bound is wrong with a probability of at most 1e-6 (FALSE_ALARM).
    aggregator, (one, other) = WORST[name]
    delta, mu, n = 1e-3, 1.0, 100_000
    claimed = epsilon_from_mu(mu, delta)
    step = noisy_sum(
        aggregator,
        mu_squared=mu**2,
        n_steps=1,
        neighbors="add or remove one",
        noise=FloatNoise(),
    )
    rng = np.random.default_rng(3)

    def found(sigma: float) -> float:
        way = (one - other) / np.linalg.norm(one - other)
        scores = []
        for sums in (one, other):
            drawn = rng.normal(0.0, sigma, (n, len(sums)))
            scores.append(step.decide(np.broadcast_to(sums, drawn.shape), drawn) @ way)
        return audit_epsilon_lower_bound(*scores, delta=delta, confidence=1 - 1e-6)

    assert 0.5 * claimed < found(step.sigma) < claimed
    assert found(step.sigma / 2) > claimed


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GradientSum(clip_norm=0.0), "clip_norm must be finite and > 0"),
        (
            lambda: SeveralTeachers(of_one=GradientSum(clip_norm=1.0), n_moved=0),
            "n_moved must be at least 1",
        ),
        (lambda: TableCounts(shapes=()), "number of tables must be at least 1"),
        (lambda: BinaryVotes(n_rows=2).total(np.array([[0, 2]])), "votes must be 0 or 1"),
        (lambda: GradientSum(clip_norm=1.0).total(np.array([[np.nan]])), "not finite"),
        (lambda: TopKSigns(n_rows=1, width=2, k=3), "k must be at most the numbers of a row"),
        (
            lambda: TopKSigns(n_rows=1, width=2, k=1).total(np.array([[[1, -1]]])),
            "at most k=1 numbers of a row",
        ),
        (
            lambda: TopKSigns(n_rows=1, width=2, k=1).total(np.array([[[2, 0]]])),
            "got values from",
        ),
        (
            lambda: TopKSigns(n_rows=1, width=2, k=1).total(np.zeros((1, 1, 3))),
            r"must have shape \(n_teachers, 1, 2\)",
        ),
        (lambda: ProjectedHistogram(n_rows=1, n_directions=1, n_bins=1), "n_bins must be at least"),
        (
            lambda: ProjectedHistogram(n_rows=1, n_directions=1).total(np.array([[[np.nan]]])),
            "has no bin",
        ),
        (
            lambda: ProjectedHistogram(n_rows=1, n_directions=1).total(np.zeros((2, 1))),
            r"must have shape \(n_teachers, 1, 1\)",
        ),
        (lambda: TableCounts(shapes=((1, 1),)).l2_sensitivity("none"), "neighbors must be one of"),
        *[
            (partial(ProductSums(n_left=1, n_right=2).total, *pair), "not finite has no bound")
            for value in (np.nan, np.inf)
            for pair in ((ONE, TWO * value), (ONE * value, TWO))
        ],
    ],
)
def test_what_has_no_bound_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
