"""Gates on rates of true classes: within the margin by every truth that calibration allows."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil, floor
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy.stats import beta, binomtest

from evenhand._words import REFERENCES
from evenhand.fairness import DemographicParity, EqualizedOdds, ErrorParity, FalsePositiveParity
from evenhand.fairness.calibration import CalibratedJoint
from evenhand.fairness.gate import DemographicParityGate
from evenhand.fairness.gate.calibrated import CalibratedGate, GateCalibration
from evenhand.fairness.gate.gate import gate_from_dict, open_gate
from evenhand.fairness.gate.several import SeveralGate
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.rates import Rates
from evenhand.fairness.tally import JointTally, Tally
from evenhand.fairness.true_positive_rate import TruePositiveRateParity
from evenhand.testing.gates import N_CLASSES, N_GROUPS, GateContract
from evenhand.typing import IntArray


@cache
def calibration(
    n: int, n_groups: int = 2, n_classes: int = 2, seed: int = 0, **options: Any
) -> GateCalibration:
    """Return about ``n`` calibration rows per group and answer; the later classes err more."""
    right = np.linspace(0.95, 0.6, n_classes)
    truth = np.diag(right) + (1 - np.eye(n_classes)) * (1 - right) / (n_classes - 1)
    counts = np.random.default_rng(seed).poisson(n * truth, size=(n_groups, n_classes, n_classes))
    return GateCalibration(labelled=JointTally(counts=counts), **options)


# ---- the definition again, slowly ----------------------------------------------------------

ONE = 10**6


@cache
def limits(hits: int, n: int, error: float, by: str) -> tuple[Any, Any]:
    """Return the exact limits of a proportion in millionths, outward; or the proportion itself."""
    if not n:
        return 0, ONE
    if by == "estimate":
        return Fraction(hits * ONE, n), Fraction(hits * ONE, n)
    low = beta.ppf(error / 2, hits, n - hits + 1) if hits else 0.0
    high = beta.ppf(1 - error / 2, hits + 1, n - hits) if hits < n else 1.0
    return floor(Fraction(low) * ONE), ceil(Fraction(high) * ONE)


@dataclass(frozen=True)
class Ends:
    """Least and greatest value of a rate, and of what it is taken among."""

    low: Fraction
    high: Fraction
    least: Fraction
    most: Fraction


class Slow:
    """The largest gap that calibration allows, from the definition."""

    def __init__(self, notion: RateNotion, known: GateCalibration, n_limits: int) -> None:
        self.notion, self.by = notion, known.admit_by
        self.truth = known.labelled.counts.tolist()
        self.error = (1 - known.level) / n_limits
        rates = notion.rates(known.labelled.n_classes)
        self.rates = list(zip(rates.among.tolist(), rates.hits.tolist(), strict=True))

    def ends(self, table: Any, groups: list[int], among: Any, hits: Any) -> Ends | None:
        """Return the range of a rate in some groups together; None among no record."""
        classes = range(len(among))
        sums: dict[str, Any] = dict.fromkeys(("hit-", "hit+", "miss-", "miss+", "least", "most"), 0)
        for z, j in itertools.product(groups, classes):
            n = sum(self.truth[z][k][j] for k in classes)
            ranges = []
            for name, members in (
                ("hit", [k for k in classes if hits[k][j]]),
                ("miss", [k for k in classes if among[k] and not hits[k][j]]),
            ):
                told = sum(self.truth[z][k][j] for k in members)
                low, high = limits(told, n, self.error, self.by)
                if len(members) in (0, len(among)):
                    low = high = ONE * bool(members)
                sums[f"{name}-"] += table[z][j] * low
                sums[f"{name}+"] += table[z][j] * high
                ranges.append((low, high))
            sums["least"] += table[z][j] * min(ONE, sum(low for low, _ in ranges))
            sums["most"] += table[z][j] * min(ONE, sum(high for _, high in ranges))
        if all(among):
            size = ONE * sum(sum(table[z]) for z in groups)
            return Ends(*(Fraction(n, size) for n in (sums["hit-"], sums["hit+"])), size, size)
        if not sums["most"]:
            return None
        top, bottom = sums["hit+"] + sums["miss-"], sums["hit-"] + sums["miss+"]
        return Ends(
            Fraction(sums["hit-"], bottom) if bottom else Fraction(0),
            Fraction(sums["hit+"], top) if top else Fraction(1),
            sums["least"],
            sums["most"],
        )

    def gap(self, counts: IntArray) -> Fraction:
        table = counts.tolist()
        answered = [z for z, row in enumerate(table) if sum(row)]
        found = Fraction(0)
        for (among, hits), z in itertools.product(self.rates, answered):
            rest = [y for y in answered if y != z]
            for others in [[y] for y in rest] if self.notion.reference == "pairwise" else [rest]:
                own = self.ends(table, [z], among, hits)
                other = self.ends(table, others, among, hits) if others else None
                if own is None or other is None:
                    continue
                weight = Fraction(1)
                if self.notion.reference == "overall" and own.least + other.most:
                    weight = Fraction(other.most) / (own.least + other.most)
                found = max(found, weight * max(own.high - other.low, other.high - own.low))
        return found


class Contract(GateContract):
    """The contract on errors, by the definition above."""

    reference: ClassVar[str] = "rest"
    kind: ClassVar[type[CalibratedGate]] = CalibratedGate

    @property
    def known(self) -> GateCalibration:
        return calibration(20_000, N_GROUPS, N_CLASSES)

    def notion(self, margin: float) -> RateNotion:
        return ErrorParity(margin=margin, reference=self.reference)

    def gate(self, margin: float, n_groups: int, n_classes: int) -> Any:
        return self.kind(
            self.notion(margin), n_groups, n_classes, calibration=self.known, cold_start=20
        )

    def gap(self, counts: IntArray) -> Fraction:
        # Of the truth given an answer there is one limit for each answer: whether it was right.
        return Slow(self.notion(self.margin), self.known, N_CLASSES * N_GROUPS).gap(counts)


class TestErrorsBesideTheOthers(Contract):
    margin = 0.06


class ByTheEstimate(CalibratedGate):
    """It goes by the estimate and says that it goes by the limit."""

    def __init__(self, *arguments: Any, calibration: GateCalibration, **options: Any) -> None:
        known = GateCalibration(labelled=calibration.labelled, admit_by="estimate")
        super().__init__(*arguments, calibration=known, **options)


class OnItsOwnPair(CalibratedGate):
    """It tests the group that is answered, and not how the rest moved for the others."""

    def _within_after_one_more(self, group: int) -> tuple[int, ...]:
        every = self._table.groups
        self._table.groups = [group, *[z for z in every if z != group][:1]]
        found = super()._within_after_one_more(group)
        self._table.groups = every
        return found


class TenPercentTooWide(CalibratedGate):
    """Its margin is a tenth wider than it says."""

    def __init__(self, notion: RateNotion, *arguments: Any, **options: Any) -> None:
        wider = type(notion)(margin=1.1 * notion.margin, reference=notion.reference)
        super().__init__(wider, *arguments, **options)


@pytest.mark.parametrize("broken", [ByTheEstimate, OnItsOwnPair, TenPercentTooWide])
def test_a_broken_gate_fails_the_contract(broken: type[CalibratedGate]) -> None:
    class Broken(TestErrorsBesideTheOthers):
        kind = broken

    with pytest.raises(AssertionError):
        Broken().test_after_every_answer_the_given_table_is_within_the_margin(0)


# ---- every notion, by brute force ----------------------------------------------------------


NOTIONS = (
    EqualizedOdds,
    ErrorParity,
    FalsePositiveParity,
    TruePositiveRateParity,
)


@st.composite
def streams(draw: st.DrawFn) -> tuple[RateNotion, GateCalibration, list[tuple[int, int]]]:
    """Draw a notion, calibration rows (some cells empty), and runs of offers."""
    n_groups = draw(st.integers(2, 3))
    cells = st.lists(st.integers(0, 400), min_size=4 * n_groups, max_size=4 * n_groups)
    counts = np.array(draw(cells.filter(any))).reshape(n_groups, 2, 2)
    notion = draw(st.sampled_from(NOTIONS))(
        margin=draw(st.sampled_from([0.1, 0.3, 0.6])), reference=draw(st.sampled_from(REFERENCES))
    )
    known = GateCalibration(
        labelled=JointTally(counts=counts),
        level=draw(st.sampled_from([0.5, 0.95])),
        admit_by=draw(st.sampled_from(["limit", "estimate"])),
    )
    run = st.tuples(st.integers(0, n_groups - 1), st.integers(0, 1), st.integers(1, 6))
    runs = draw(st.lists(run, min_size=1, max_size=8))
    return notion, known, [(z, k) for z, k, times in runs for _ in range(times)]


@settings(max_examples=60)
@given(drawn=streams())
def test_a_class_is_admissible_if_and_only_if_every_gap_stays_within_the_margin(
    drawn: tuple[RateNotion, GateCalibration, list[tuple[int, int]]],
) -> None:
    notion, known, offers = drawn
    n_groups = known.labelled.n_groups
    gate = open_gate(notion, n_groups, 2, cold_start=3, calibration=known)
    assert isinstance(gate, CalibratedGate)
    slow = Slow(notion, known, 2 * n_groups)  # the truth given either answer, in each group
    for group, label in offers:
        if gate.active[group] and gate.active.sum() > 1:
            more = gate.counts
            more[group, label] += 1
            assert (label in gate.admissible(group)) == (slow.gap(more) <= notion.exact_margin)
        else:
            assert gate.admissible(group) == (0, 1)
        gate.offer(group, label)
        gap = slow.gap(gate.counts)
        assert gap <= notion.exact_margin
        assert gate.gap == pytest.approx(float(gap), abs=1e-12)


@settings(max_examples=25)
@given(drawn=streams())
def test_the_limit_bounds_the_gap_for_every_truth_within_the_limits(
    drawn: tuple[RateNotion, GateCalibration, list[tuple[int, int]]],
) -> None:
    notion, known, offers = drawn
    known = GateCalibration(labelled=known.labelled, level=known.level)
    n_groups = known.labelled.n_groups
    gate = CalibratedGate(notion, n_groups, 2, calibration=known)
    for group, label in offers:
        gate.give_by_hand(group, label)
    error = (1 - known.level) / (2 * n_groups)
    largest = Fraction(0)
    for ends in itertools.product((0, 1), repeat=2 * n_groups):
        truth = {
            (z, j): Fraction(
                limits(*_right(known, z, j), error, "limit")[ends[2 * z + j]],
                ONE,
            )
            for z, j in itertools.product(range(n_groups), range(2))
        }
        largest = max(largest, _gap_of_truth(notion, gate.counts, truth))
    found = Fraction(gate.gap).limit_denominator(10**12)
    assert largest <= found + Fraction(1, 10**9)
    answered = (gate.counts > 0).sum(axis=1)
    both = answered[answered > 0].min() == 2  # else a rate may be taken among nobody
    if notion.reference != "overall" and both and known.labelled.counts.sum(axis=1).all():
        assert largest >= found - Fraction(1, 10**6)  # no wider than it must be


def _right(known: GateCalibration, z: int, j: int) -> tuple[int, int]:
    """Return how many of the calibration rows with answer j are of class 1, and of how many."""
    column = known.labelled.counts[z, :, j]
    return int(column[1]), int(column.sum())


def _gap_of_truth(
    notion: RateNotion, counts: IntArray, truth: dict[tuple[int, int], Fraction]
) -> Fraction:
    """Return the gap that is expected of the answers, where ``truth`` is P(Y=1 | answer, group)."""
    table = counts.tolist()
    rates = notion.rates(2)
    groups = [z for z, row in enumerate(table) if sum(row)]
    worst = Fraction(0)

    def joint(members: list[int], k: int, j: int) -> Fraction:
        return sum(
            (table[z][j] * (truth[z, j] if k else 1 - truth[z, j]) for z in members), Fraction(0)
        )

    for among, hits in zip(rates.among.tolist(), rates.hits.tolist(), strict=True):

        def rate(members: list[int], among: Any = among, hits: Any = hits) -> Fraction | None:
            cells = list(itertools.product(range(2), range(2)))
            whole = sum((joint(members, k, j) for k, j in cells if among[k]), Fraction(0))
            part = sum((joint(members, k, j) for k, j in cells if hits[k][j]), Fraction(0))
            return part / whole if whole else None

        for z in groups:
            rest = [y for y in groups if y != z]
            pools = {
                "pairwise": [[y] for y in rest],
                "rest": [rest] if rest else [],
                "overall": [groups] if rest else [],
            }[notion.reference]
            for pool in pools:
                own, other = rate([z]), rate(pool)
                if own is not None and other is not None:
                    worst = max(worst, abs(own - other))
    return worst


# ---- what it says of the population --------------------------------------------------------

TRUTH = np.array([[0.05, 0.65], [0.1, 0.7]])
"""P(Y = 1 | answer, group) in the population: group, answer."""


def true_gap(notion: RateNotion, counts: IntArray) -> float:
    """Return the gap that is expected of the answers of two groups."""
    if not counts.sum(axis=1).all():
        return 0.0
    joint = counts[:, None, :] * np.stack([1 - TRUTH, TRUTH], axis=1)  # group, truth, answer
    rates = notion.rates(2)
    hits = np.einsum("zkj,rkj->zr", joint, rates.hits)
    one, other = hits / np.einsum("zkj,rk->zr", joint, rates.among)
    return float(np.abs(one - other).max())


def runs_outside(notion: RateNotion, n_runs: int, seed: int, **options: Any) -> tuple[int, int]:
    """Count the runs whose true gap left the margin, and those that gave to both groups.

    Each has calibration rows of its own.
    """
    rng = np.random.default_rng(seed)
    outside = both = 0
    for _ in range(n_runs):
        n = rng.binomial(600, 0.5, size=(2, 2)) + 100
        ones = rng.binomial(n, TRUTH)
        labelled = JointTally(counts=np.stack([n - ones, ones], axis=1))
        known = GateCalibration(labelled=labelled, **options)
        gate = CalibratedGate(notion, 2, 2, calibration=known, cold_start=10)
        left = False
        groups = rng.integers(0, 2, 200)
        labels = rng.random(200) < np.array([0.8, 0.2])[groups]
        for group, label in zip(groups.tolist(), labels.astype(int).tolist(), strict=True):
            if any(gate.offer(group, label)[::2]):
                left |= true_gap(notion, gate.counts) > notion.margin + 1e-12
        outside += left
        both += gate.active.all()
    return outside, both


@pytest.mark.parametrize("notion", [ErrorParity(margin=0.12), EqualizedOdds(margin=0.3)])
def test_the_true_gap_is_within_the_margin_as_often_as_the_level_says(notion: RateNotion) -> None:
    level, n_runs = 0.9, 40
    outside, both = runs_outside(notion, n_runs, 0, level=level)
    assert both > n_runs // 4
    assert binomtest(outside, n_runs, 1 - level, alternative="greater").pvalue > FALSE_ALARM
    # The estimate leaves the margin so often that the same runs convict it.
    by_estimate, _ = runs_outside(notion, n_runs, 1, admit_by="estimate")
    assert binomtest(by_estimate, n_runs, 1 - level, alternative="greater").pvalue < FALSE_ALARM


# ---- late groups, other notions, state, bad input ------------------------------------------


def test_the_first_group_is_answered_at_once_and_a_late_one_as_a_block() -> None:
    gate = CalibratedGate(ErrorParity(margin=0.3), 2, 2, calibration=calibration(500), cold_start=6)
    assert all(gate.offer(0, label).given for label in (0, 1, 0, 1))
    outcomes = [gate.offer(1, label) for label in (1, 1, 1, 0, 1, 1)]
    assert [outcome.withheld for outcome in outcomes[:5]] == [True] * 5
    assert gate.active.all()
    assert sum(outcomes[-1].released) + outcomes[-1].given == gate.counts[1].sum() > 0
    assert gate.gap <= 0.3


def test_a_block_that_does_not_fit_stays_withheld_and_is_looked_for_again() -> None:
    known = GateCalibration(labelled=JointTally(counts=[[[90, 0], [0, 90]], [[90, 90], [0, 0]]]))
    gate = CalibratedGate(ErrorParity(margin=0.5), 2, 2, calibration=known, cold_start=2)
    gate.offer(0, 0)
    for _ in range(40):  # the late group's answers of class 1 are all wrong
        assert gate.offer(1, 1).withheld
    for _ in range(40):
        gate.offer(1, 0)
    assert gate.active[1]  # by those of class 0
    assert gate.gap <= 0.5


def test_a_notion_that_reads_answers_alone_needs_no_calibration_and_is_exact() -> None:
    @dataclass(frozen=True, kw_only=True)
    class SecondClass(RateNotion):
        name: ClassVar[str] = "second-class"
        words: ClassVar[str] = "how often the second class is predicted"
        symbols: ClassVar[str] = "P(Yhat=1)"
        needs_labels: ClassVar[bool] = False

        def rates(self, n_classes: int) -> Rates:
            every = range(n_classes)
            return Rates.of(n_classes, [(every, [(k, 1) for k in every])])

    gate = open_gate(SecondClass(margin=0.2), 2, 2, cold_start=3)
    same = DemographicParityGate(0.2, 2, 2, cold_start=3)
    rng = np.random.default_rng(0)
    for group, label in rng.integers(0, 2, (200, 2)).tolist():
        if gate.held.sum() + same.held.sum() == 0:
            assert gate.admissible(group) == same.admissible(group)
        gate.offer(group, label)
        same.offer(group, label)
    assert gate.gap <= 0.2
    assert isinstance(gate, CalibratedGate)


@pytest.mark.parametrize("kind", NOTIONS)
def test_a_saved_gate_is_the_same_gate(kind: type[RateNotion]) -> None:
    known = calibration(300, level=0.9)
    gate = CalibratedGate(kind(margin=0.3), 2, 2, calibration=known, cold_start=4)
    for group, label in np.random.default_rng(1).integers(0, 2, (60, 2)).tolist():
        gate.offer(group, label)
    again = gate_from_dict(json.loads(json.dumps(gate.to_dict())))
    assert isinstance(again, CalibratedGate)
    assert again.to_dict() == gate.to_dict()
    assert (again.notion, again.gap) == (gate.notion, gate.gap)
    assert again.estimate == gate.estimate


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"notion": {"name": "parity"}}, "A saved notion must be one of demographic-parity"),
        ({"notion": {"name": "os:path"}}, "A saved notion must be one of"),
        ({"notion": {"name": "error-parity", "margin": 0.3}}, "must have exactly margin, refer"),
        ({"calibration": None}, "ErrorParity is about true classes"),
        ({"calibration": {"labelled": []}}, "exactly the keys labelled, level and admit_by"),
        ({"counts": [[0, 9], [9, 0]], "active": [0, 1]}, "above the margin of 0.3"),
    ],
)
def test_a_state_that_it_cannot_have_reached_is_refused(changes: Any, said: str) -> None:
    known = GateCalibration(labelled=JointTally(counts=[[[90, 0], [0, 90]], [[0, 90], [90, 0]]]))
    gate = CalibratedGate(ErrorParity(margin=0.3), 2, 2, calibration=known)
    with pytest.raises(ValueError, match=said):
        gate_from_dict(gate.to_dict() | changes)


def test_what_does_not_go_together_is_refused() -> None:
    known = calibration(50)
    odds = EqualizedOdds(margin=0.1)
    with pytest.raises(ValueError, match="EqualizedOdds is about true classes, which answers"):
        open_gate(odds, 2, 2)
    with pytest.raises(ValueError, match="count 2 groups and 2 classes, the gate 3 and 2"):
        open_gate(odds, 3, 2, calibration=known)
    with pytest.raises(ValueError, match="DemographicParity is about answers alone"):
        open_gate(DemographicParity(margin=0.1), 2, 2, calibration=known)
    with pytest.raises(ValueError, match="holds no calibration row"):
        GateCalibration(labelled=JointTally(counts=np.zeros((2, 2, 2), dtype=np.int64)))
    with pytest.raises(ValueError, match="admit_by must be one of 'limit', 'estimate'"):
        GateCalibration(labelled=known.labelled, admit_by="guess")
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        GateCalibration(labelled=known.labelled, level=1.0)


def test_the_gap_is_the_upper_limit_of_calibrated_joint() -> None:
    known = calibration(200, 3, 3)
    for kind, reference in itertools.product((EqualizedOdds, ErrorParity), REFERENCES):
        notion = kind(margin=1.0, reference=reference)
        gate = CalibratedGate(notion, 3, 3, calibration=known, cold_start=1)
        for group, label in np.random.default_rng(2).integers(0, 3, (200, 2)).tolist():
            gate.offer(group, label)
        joint = CalibratedJoint(
            answered=Tally(counts=gate.counts), labelled=known.labelled, sampled=False
        )
        assert gate.gap == pytest.approx(joint.gap(notion).high, abs=1e-5)
        assert gate.estimate == joint.gap(notion)


# ---- several margins at once ---------------------------------------------------------------


@settings(max_examples=40)
@given(drawn=streams(), narrow=st.sampled_from([0.1, 0.3]))
def test_several_margins_admit_what_each_of_them_admits(
    drawn: tuple[RateNotion, GateCalibration, list[tuple[int, int]]], narrow: float
) -> None:
    notion, known, offers = drawn
    parity = DemographicParity(margin=narrow, reference="pairwise")
    size = known.labelled.n_groups, 2
    gate = open_gate([parity, notion], *size, cold_start=3, calibration=known)
    assert isinstance(gate, SeveralGate)
    slow = Slow(notion, known, 2 * size[0])

    def holds(counts: IntArray) -> bool:
        return parity.holds(counts) and slow.gap(counts) <= notion.exact_margin

    for group, label in offers:
        if gate.active[group] and gate.active.sum() > 1:
            more = gate.counts
            more[group, label] += 1
            assert (label in gate.admissible(group)) == holds(more)
        gate.offer(group, label)
        assert holds(gate.counts)
        assert gate.within
        assert gate.gaps == pytest.approx((parity.gap(gate.counts), float(slow.gap(gate.counts))))
    again = gate_from_dict(json.loads(json.dumps(gate.to_dict())))
    assert again.to_dict() == gate.to_dict()
    for group, label in offers:
        assert again.offer(group, label) == gate.offer(group, label)
    for group, label in gate.deliver():
        assert (group, label) in [(z, k) for z, k in offers]
    assert holds(gate.counts)


def test_people_may_leave_one_of_several_margins_and_the_gate_leads_back() -> None:
    known = calibration(500)
    gate = open_gate(
        [DemographicParity(margin=0.1), ErrorParity(margin=0.3)],
        2, 2, cold_start=2, calibration=known,
    )  # fmt: skip
    for group, label in ((0, 0), (0, 1), (1, 0), (1, 1)) * 5:
        gate.offer(group, label)
    gate.give_by_hand(0, 1)
    gate.give_by_hand(0, 1)
    gate.give_by_hand(0, 1)
    assert not gate.within
    assert gate.notion == DemographicParity(margin=0.1)  # the one that is furthest above
    assert gate.gap > 0.1
    assert gate.admissible(0) == (0,)
    for _ in range(3):
        gate.take_back(0, 1)
    assert gate.within


def test_gates_that_cannot_stand_together_are_refused() -> None:
    class Lonely:
        n_groups = n_classes = 2

    with pytest.raises(ValueError, match="Lonely keeps no table that others could share"):
        SeveralGate([Lonely(), DemographicParityGate(0.1, 2, 2)])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="2 gates of 2 sizes"):
        SeveralGate([DemographicParityGate(0.1, 3, 2), DemographicParityGate(0.1, 2, 2)])
    gate = SeveralGate([DemographicParityGate(0.1, 2, 2), DemographicParityGate(0.2, 2, 2)])
    with pytest.raises(ValueError, match="is none of several gates over one table"):
        gate_from_dict(gate.to_dict() | {"gates": [gate.to_dict()]})
