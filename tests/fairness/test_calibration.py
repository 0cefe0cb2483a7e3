"""Calibrated metrics are the plain ones where both tables agree; their intervals cover."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from runs import FALSE_ALARM
from scipy.stats import binomtest

from evenhand._words import REFERENCES
from evenhand.fairness import FalsePositiveParity, calibrated_range, gap_of
from evenhand.fairness.calibrated_range import Column, _mean
from evenhand.fairness.calibration import CalibratedJoint, published_rates
from evenhand.fairness.intervals import clopper_pearson
from evenhand.fairness.metrics import error_rate
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.notions import known_notions, notion_named
from evenhand.fairness.tally import JointTally, Tally


def notion(name: str, reference: str = "rest") -> RateNotion:
    return notion_named(name)(margin=0.0, reference=reference)


sizes = st.tuples(st.integers(2, 3), st.integers(2, 3))
tables = sizes.flatmap(
    lambda s: hnp.arrays(np.int64, (s[0], s[1], s[1]), elements=st.integers(0, 12))
).filter(lambda table: table.sum() > 0)


# ---- values --------------------------------------------------------------------------------


@settings(max_examples=50)
@given(table=tables, reference=st.sampled_from(REFERENCES))
def test_where_the_calibration_rows_are_the_answered_ones_the_metrics_are_the_plain_ones(
    table: np.ndarray, reference: str
) -> None:
    plain = JointTally(counts=table)
    found = CalibratedJoint(answered=plain.predicted, labelled=plain)
    for kind in known_notions().values():
        notion = kind(margin=0.0, reference=reference)
        ours, theirs = found.gap(notion), gap_of(notion, plain)
        assert ours.name == theirs.name
        assert ours.value == pytest.approx(theirs.value, abs=1e-12, nan_ok=True)
        assert ours.low <= ours.high
    assert found.error_rate().value == pytest.approx(error_rate(plain).value)


@given(table=tables, scale=st.integers(2, 5))
def test_a_calibration_class_drawn_more_often_changes_no_value(
    table: np.ndarray, scale: int
) -> None:
    # P(Y | Yhat, Z) is all that the calibration table says: its own shares of answers do not count.
    plain = JointTally(counts=table + 1)
    drawn = table + 1
    drawn[0, :, 1] *= scale
    once = CalibratedJoint(answered=plain.predicted, labelled=plain)
    again = CalibratedJoint(answered=plain.predicted, labelled=JointTally(counts=drawn))
    assert again.rates == pytest.approx(once.rates)
    assert again.error_rates == pytest.approx(once.error_rates)


def test_the_joint_law_is_share_times_truth_cell_by_cell() -> None:
    answered = Tally(counts=[[30, 10], [5, 15]])
    labelled = JointTally(counts=[[[4, 1], [1, 4]], [[3, 0], [0, 9]]])
    joint = CalibratedJoint(answered=answered, labelled=labelled)
    for z, k, given_class in itertools.product(range(2), repeat=3):
        share = answered.counts[z, given_class] / answered.counts[z].sum()
        truth = labelled.counts[z, k, given_class] / labelled.counts[z, :, given_class].sum()
        assert joint.joint[z, k, given_class] == pytest.approx(share * truth)
    assert joint.error_rates == pytest.approx([0.2, 0.0])
    assert joint.rates[0, 1, 1] == pytest.approx(0.2 / (0.2 + 0.15))


# ---- the published rule --------------------------------------------------------------------


def as_printed(answered: Tally, labelled: JointTally) -> tuple[np.ndarray, np.ndarray]:
    """FairPATE, Section 4.2 and Appendix C, over records and in loops."""
    records = [(z, y, a) for (z, y, a), n in np.ndenumerate(labelled.counts) for _ in range(int(n))]
    groups, classes = range(answered.n_groups), range(answered.n_classes)
    rates = np.empty((len(groups), len(classes), len(classes)))
    errors = np.zeros(len(groups))
    for z in groups:
        for k, k2 in itertools.product(classes, classes):
            others = [a for g, y, a in records if g == z and y != k]
            not_k2 = sum(a != k2 for a in others) / len(others)
            p = answered.counts[:, k2].sum() / answered.counts.sum()
            p_z = answered.counts[z, k2] / answered.counts[z].sum()
            rates[z, k, k2] = (p_z - not_k2 * (1 - p)) / p
            if k != k2:
                of_answer = [y for g, y, a in records if g == z and a == k2]
                truth = sum(y == k for y in of_answer) / len(of_answer)
                errors[z] += p_z * truth * sum(y == k for _, y, _ in records) / len(records)
    return rates, errors


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_published_rule_is_the_papers_formula(n_classes: int) -> None:
    counts = np.random.default_rng(4).integers(1, 9, (2, n_classes, n_classes))
    answered = Tally(counts=np.random.default_rng(5).integers(1, 99, (2, n_classes)))
    labelled = JointTally(counts=counts)
    rates, errors = published_rates(answered, labelled)
    expected_rates, expected_errors = as_printed(answered, labelled)
    assert rates == pytest.approx(expected_rates)
    assert errors == pytest.approx(expected_errors)


def test_the_published_rule_gives_a_perfect_classifier_a_true_positive_rate_of_zero() -> None:
    perfect = JointTally(counts=[[[50, 0], [0, 50]]] * 2)
    wrong, _ = published_rates(perfect.predicted, perfect)
    right = CalibratedJoint(answered=perfect.predicted, labelled=perfect)
    assert wrong[0].tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert right.rates[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert right.error_rates.tolist() == [0.0, 0.0]
    rarer = JointTally(counts=[[[75, 0], [0, 25]]])
    assert published_rates(rarer.predicted, rarer)[0][0, 1, 1] == -2.0


def test_the_published_error_rate_of_a_classifier_that_is_always_wrong_is_a_half() -> None:
    wrong = JointTally(counts=[[[0, 50], [50, 0]]])
    assert published_rates(wrong.predicted, wrong)[1].tolist() == [0.5]
    right = CalibratedJoint(answered=wrong.predicted, labelled=wrong)
    assert right.error_rates.tolist() == [1.0]


def test_both_rules_agree_where_one_class_is_answered_and_where_there_are_no_errors() -> None:
    constant = JointTally(counts=[[[30, 0], [70, 0]]])
    corrected = CalibratedJoint(answered=constant.predicted, labelled=constant)
    printed, _ = published_rates(constant.predicted, constant)
    assert corrected.rates[0, :, 0].tolist() == printed[0, :, 0].tolist() == [1.0, 1.0]
    perfect = JointTally(counts=[[[75, 0], [0, 25]]])
    corrected = CalibratedJoint(answered=perfect.predicted, labelled=perfect)
    _, errors = published_rates(perfect.predicted, perfect)
    assert corrected.error_rates.tolist() == errors.tolist() == [0.0]


# ---- ranges --------------------------------------------------------------------------------


def corners(low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """Vertices of a box cut by ``sum a = 1``: all but one coordinate stand at an end."""
    found = []
    for free in range(len(low)):
        rest = [j for j in range(len(low)) if j != free]
        for ends in itertools.product(*[(low[j], high[j]) for j in rest]):
            last = 1 - sum(ends)
            if low[free] - 1e-12 <= last <= high[free] + 1e-12:
                a = np.empty(len(low))
                a[rest], a[free] = ends, last
                found.append(a)
    return found


@given(
    answered=hnp.arrays(np.int64, 3, elements=st.integers(0, 40)).filter(lambda a: a.sum() > 0),
    trials=hnp.arrays(np.int64, 3, elements=st.integers(0, 20)),
    share=hnp.arrays(np.float64, 3, elements=st.floats(0, 1)),
    hits=hnp.arrays(np.bool_, 3),
    whole=st.booleans(),
    sampled=st.booleans(),
)
def test_limits_are_the_extremes_over_every_corner(
    answered: np.ndarray,
    trials: np.ndarray,
    share: np.ndarray,
    hits: np.ndarray,
    whole: bool,
    sampled: bool,
) -> None:
    # Of two true classes the rate is taken among the first, or among both; an answer counts for
    # the first or is missed. Both forms are fractional-linear in each a and u: extremes stand at
    # corners.
    first = np.floor(trials * share).astype(np.int64)
    column = Column(
        answered=answered,
        labelled=np.stack([first, trials - first]),
        among=np.array([True, whole]),
        hits=np.stack([hits, np.zeros(3, dtype=np.bool_)]),
        sampled=sampled,
    )
    error = 0.01
    u_low, u_high = clopper_pearson(first, trials, error=error)
    a_low, a_high = clopper_pearson(answered, np.full(3, answered.sum()), error=error)
    if not sampled:
        a_low = a_high = answered / answered.sum()
    rates, wholes = [], []
    for a in corners(a_low, a_high):
        for u in itertools.product(*zip(u_low, u_high, strict=True)):
            terms = a * np.array(u)
            wholes.append(1.0 if whole else terms.sum())
            if whole:
                rates.append(terms[hits].sum())
            elif terms.sum() > 1e-12:
                rates.append(terms[hits].sum() / terms.sum())
    found = column.limits(error)
    assert found.low <= min(rates, default=0.0) + 1e-9
    assert found.high >= max(rates, default=1.0) - 1e-9
    if min(wholes) > 1e-9:  # else 0/0 is among the values, and leaves the whole range
        assert found.low == pytest.approx(min(rates), abs=1e-9)
        assert found.high == pytest.approx(max(rates), abs=1e-9)
    assert (found.least, found.most) == pytest.approx((min(wholes), max(wholes)), abs=1e-9)


@pytest.mark.parametrize(
    ("shape", "reference", "name", "n_limits"),
    [
        # Groups times (rates of every answer, shares), and shares of groups where they weigh.
        ((2, 2), "pairwise", "error-parity", 2 * (2 + 1)),
        ((2, 2), "rest", "equalized-odds", 2 * (2 + 1)),
        ((3, 2), "rest", "false-positive-parity", 3 * (2 + 1) + 3),
        ((2, 3), "overall", "equalized-odds", 2 * (9 + 3) + 1),
        ((2, 3), "pairwise", "error-parity", 2 * (3 + 3)),
        ((2, 2), "pairwise", "true-positive-rate-parity", 2 * (2 + 1)),
        ((2, 3), "pairwise", "true-positive-rate-parity", 2 * (9 + 3)),
    ],
)
def test_all_limits_of_a_metric_share_its_error(
    shape: tuple[int, int],
    reference: str,
    name: str,
    n_limits: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = set()

    def limits(x: np.ndarray, n: np.ndarray, error: float) -> tuple[np.ndarray, np.ndarray]:
        errors.add(round(0.05 / error, 6))
        return clopper_pearson(x, n, error=error)

    monkeypatch.setattr(calibrated_range, "clopper_pearson", limits)
    table = JointTally(counts=np.ones((shape[0], shape[1], shape[1]), dtype=np.int64))
    joint = CalibratedJoint(answered=table.predicted, labelled=table)
    joint.gap(notion(name, reference))
    assert errors == {n_limits}


@given(
    cells=st.lists(
        st.tuples(st.floats(0.01, 1), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=4
    )
)
def test_the_largest_mean_is_the_largest_over_every_corner_of_the_weights(
    cells: list[tuple[float, float, float]],
) -> None:
    low = [a for a, _, _ in cells]
    high = [a + more for a, more, _ in cells]
    rates = [rate for _, _, rate in cells]
    best = max(
        np.average(rates, weights=w) for w in itertools.product(*zip(low, high, strict=True))
    )
    assert _mean(range(len(cells)), low, high, rates, math.nan) == pytest.approx(best)


def test_a_group_apart_from_everybody_differs_by_the_weight_of_the_rest() -> None:
    # Exact limits: rates 0.2 and 0.6, weights 1 : 3; everybody 0.5, so group 0 is 0.3 away.
    answered = Tally(counts=[[1000, 0], [3000, 0]])
    n = 10**9
    labelled = JointTally(counts=[[[8 * n, 0], [2 * n, 0]], [[4 * n, 0], [6 * n, 0]]])
    joint = CalibratedJoint(answered=answered, labelled=labelled, sampled=False)
    found = joint.gap(notion("error-parity", "overall"))
    assert (found.low, found.value, found.high) == pytest.approx((0.3, 0.3, 0.3), abs=1e-4)


# ---- coverage ------------------------------------------------------------------------------


class World:
    """A law of group, answer and truth, and the metrics in it."""

    def __init__(self, n_groups: int, n_classes: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.cells = rng.dirichlet(np.ones(n_groups * n_classes)).reshape(n_groups, n_classes)
        self.truth = rng.dirichlet(np.ones(n_classes), (n_groups, n_classes))  # z, answer, truth

    @cache  # noqa: B019  a few worlds, for the length of a test
    def metric(self, name: str, reference: str) -> float:
        joint = np.rint(self.cells[:, None, :] * self.truth.swapaxes(1, 2) * 1e12)
        exact = JointTally(counts=joint.astype(np.int64))
        return gap_of(notion(name, reference), exact).value

    def draw(
        self, rng: np.random.Generator, n_answered: int, n_labelled: int, *, sampled: bool = True
    ) -> CalibratedJoint:
        answered = rng.multinomial(n_answered, self.cells.ravel()).reshape(self.cells.shape)
        drawn = rng.multinomial(n_labelled, self.cells.ravel()).reshape(self.cells.shape)
        labelled = np.stack(
            [
                [rng.multinomial(n, p) for n, p in zip(*row, strict=True)]
                for row in zip(drawn, self.truth, strict=True)
            ]
        ).swapaxes(1, 2)
        return CalibratedJoint(
            answered=Tally(counts=answered), labelled=JointTally(counts=labelled), sampled=sampled
        )


def coverage_p_value(
    name: str,
    reference: str,
    *,
    shape: tuple[int, int] = (2, 2),
    n_answered: int = 300,
    n_labelled: int = 60,
    level: float = 0.8,
    repeats: int = 200,
    sampled: bool = True,
) -> float:
    """Probability of so few covering intervals if each covered with its level."""
    rng = np.random.default_rng(11)
    covered, worlds = 0, [World(*shape, seed=seed) for seed in range(5)]
    for i in range(repeats):
        world = worlds[i % 5]
        joint = world.draw(rng, n_answered, n_labelled, sampled=sampled)
        found = joint.gap(notion(name, reference), level=level)
        covered += found.low - 1e-9 <= world.metric(name, reference) <= found.high + 1e-9
    return float(binomtest(covered, repeats, level, alternative="less").pvalue)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in known_notions() if n != "demographic-parity"])
@pytest.mark.parametrize(
    ("reference", "shape"),
    [("pairwise", (2, 2)), ("rest", (3, 2)), ("overall", (2, 3)), ("rest", (2, 2))],
)
@pytest.mark.parametrize(("n_answered", "n_labelled"), [(300, 60), (15, 4000), (4000, 15)])
def test_intervals_cover_with_thin_tables_of_either_kind(
    name: str, reference: str, shape: tuple[int, int], n_answered: int, n_labelled: int
) -> None:
    assert (
        coverage_p_value(
            name,
            reference,
            shape=shape,
            n_answered=n_answered,
            n_labelled=n_labelled,
            repeats=60,
        )
        > FALSE_ALARM
    )


def test_the_coverage_test_sees_an_answered_table_taken_for_exact() -> None:
    p_value = coverage_p_value(
        "error-parity", "pairwise", n_answered=30, n_labelled=10**6, sampled=False
    )
    assert p_value < FALSE_ALARM


def test_the_coverage_test_sees_calibration_rows_counted_several_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def limits(x: np.ndarray, n: np.ndarray, error: float) -> tuple[np.ndarray, np.ndarray]:
        return clopper_pearson(36 * np.asarray(x), 36 * np.asarray(n), error=error)

    monkeypatch.setattr(calibrated_range, "clopper_pearson", limits)
    p_value = coverage_p_value("error-parity", "pairwise", n_answered=10**6, n_labelled=60)
    assert p_value < FALSE_ALARM


def test_equal_groups_are_told_apart_no_more_often_than_stated() -> None:
    world, rng, told = World(2, 2, seed=3), np.random.default_rng(8), 0
    world.cells[:] = world.cells[0] / world.cells[0].sum() / 2
    world.truth[:] = world.truth[0]
    for _ in range(200):
        told += world.draw(rng, 200, 100).gap(notion("equalized-odds"), level=0.8).low > 0
    assert binomtest(told, 200, 0.2, alternative="greater").pvalue > FALSE_ALARM


# ---- empty cells and errors ----------------------------------------------------------------

HOLE = JointTally(counts=[[[40, 0], [10, 0]], [[30, 5], [5, 30]]])


def test_an_empty_cell_makes_an_interval_as_wide_as_its_answered_share() -> None:
    # Group 0 was answered 1 in 20 % of the cases; what the truth was then is anybody's guess.
    n = 10**8
    joint = CalibratedJoint(
        answered=Tally(counts=[[80, 20], [50, 50]]),
        labelled=JointTally(counts=[[[n, 0], [0, 0]], [[n, 0], [0, n]]]),
        sampled=False,
    )
    found = joint.gap(notion("error-parity"))
    assert math.isnan(found.value)
    assert (found.low, found.high) == pytest.approx((0.0, 0.2), abs=1e-4)
    assert (found.n_empty, joint.empty_cells) == (1, ((0, 1),))
    assert np.isnan(joint.error_rates).tolist() == [True, False]


def test_a_class_never_answered_needs_no_calibration_row() -> None:
    joint = CalibratedJoint(
        answered=Tally(counts=[[80, 0], [50, 50]]), labelled=HOLE, sampled=False
    )
    assert joint.error_rates == pytest.approx([0.2, 10 / 70])
    assert not math.isnan(joint.gap(notion("error-parity")).value)


def test_those_who_need_numbers_are_told_the_cells_and_the_way_out() -> None:
    joint = CalibratedJoint(answered=Tally(counts=[[80, 20], [50, 50]]), labelled=HOLE)
    with pytest.raises(
        ValueError, match=r"no row in \(group 0, answered 1\)\. Add labelled rows of these groups"
    ):
        joint.require_every_cell()
    whole = CalibratedJoint(answered=joint.answered, labelled=JointTally(counts=HOLE.counts + 1))
    assert whole.require_every_cell() is whole


def test_tables_that_do_not_match_or_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="the same groups, got 1 and 2"):
        CalibratedJoint(answered=Tally(counts=[[1, 1]]), labelled=HOLE)
    with pytest.raises(ValueError, match="the same classes, got 3 and 2"):
        CalibratedJoint(answered=Tally(counts=[[1, 1, 1]] * 2), labelled=HOLE)
    with pytest.raises(ValueError, match=r"no calibration row.*ask_calibration"):
        CalibratedJoint(answered=Tally(counts=[[1, 1]]), labelled=JointTally(counts=[[[0, 0]] * 2]))


def test_wrong_arguments_name_what_is_allowed() -> None:
    joint = CalibratedJoint(answered=HOLE.predicted, labelled=HOLE)
    with pytest.raises(ValueError, match=r"positive must be a class from 0 to 1, got positive=2"):
        joint.gap(FalsePositiveParity(margin=0, positive=2))
    with pytest.raises(ValueError, match=r"reference must be one of.*Did you mean 'pairwise'"):
        joint.gap(notion("error-parity", "pairwize"))


def test_a_single_group_differs_from_nobody() -> None:
    one = JointTally(counts=[[[4, 1], [1, 4]]])
    found = CalibratedJoint(answered=one.predicted, labelled=one).gap(notion("error-parity"))
    assert (math.isnan(found.value), found.low, found.high) == (True, 0.0, 1.0)


def test_the_conditions_are_printed_with_every_number() -> None:
    found = CalibratedJoint(answered=HOLE.predicted, labelled=HOLE).gap(notion("equalized-odds"))
    assert "same noisy mechanism" in found.definition
    assert "P(Y | Yhat, Z) is the same" in found.definition


@settings(max_examples=30)
@given(table=tables, reference=st.sampled_from(REFERENCES), more=st.integers(2, 50))
def test_more_rows_of_the_same_kind_never_widen_an_interval(
    table: np.ndarray, reference: str, more: int
) -> None:
    few, many = JointTally(counts=table + 1), JointTally(counts=(table + 1) * more)
    for name in ("equalized-odds", "error-parity", "false-positive-parity"):
        wide, narrow = (
            CalibratedJoint(answered=few.predicted, labelled=t).gap(notion(name, reference))
            for t in (few, many)
        )
        assert narrow.high - narrow.low <= wide.high - wide.low + 1e-9
