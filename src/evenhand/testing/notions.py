"""What every notion of decisions must keep: subclass the contract in your tests and name yours.

A notion says its rates, and all else derives from them: the gap and its interval, the calibrated
gap, the function that is trained for and the constraint of a student. The contract writes the rates
anew, record by record, and holds everything that derives to them.
"""

# ruff: noqa: D102 -- a test's name is its sentence

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest
from scipy.stats import binom

from evenhand._words import REFERENCES
from evenhand.fairness import gap_of
from evenhand.fairness.calibration import CalibratedJoint
from evenhand.fairness.functions import worst_violation
from evenhand.fairness.tally import JointTally
from evenhand.students.within import Within
from evenhand.typing import IntArray

FALSE_ALARM: Final = 1e-6  # probability, over seeds, that a right notion fails the coverage test
SEEDS: Final = range(6)

Kind = tuple[Callable[[int], bool], Callable[[int, int], bool]]


class NotionContract:
    """What holds of ``RateNotion``; subclass it, write :meth:`notion` and :meth:`kinds`."""

    n_classes: int = 3

    def notion(self, margin: float = 0.1, reference: str = "rest") -> Any:
        """Return the notion to check."""
        raise NotImplementedError("Return the notion, for example EqualizedOdds(margin=margin).")

    def kinds(self, n_classes: int) -> Sequence[Kind]:
        """Return, for each kind of rate, which true classes it is taken among, and what counts.

        Written anew: the first function takes a true class, the second a true and a predicted one.
        """
        raise NotImplementedError("Return the rates, each as two functions of a record.")

    def table(self, seed: int) -> IntArray:
        """Return counts of group, true class and predicted class; some cells are empty."""
        rng = np.random.default_rng(seed)
        shape = (3, self.n_classes, self.n_classes)
        cells: IntArray = rng.integers(0, 9, shape) * rng.integers(0, 2, shape)
        return cells

    @pytest.mark.parametrize("reference", REFERENCES)
    @pytest.mark.parametrize("seed", SEEDS)
    def test_the_gap_is_the_definition_record_by_record(self, seed: int, reference: str) -> None:
        notion, table = self.notion(reference=reference), self.table(seed)
        slow = by_brute_force(table, self.kinds(self.n_classes), reference)
        assert notion.gap(table) == float(slow or 0)
        found = gap_of(notion, JointTally(counts=table))
        assert found.value == pytest.approx(math.nan if slow is None else float(slow), nan_ok=True)
        assert 0.0 <= found.low <= found.high <= 1.0
        assert found.name == f"{notion.name.replace('-', '_')}_{reference}"
        margin = float(slow or 0)
        for near, within in ((margin, True), (margin - 0.01, margin < 0.01), (margin + 0.01, True)):
            if 0 <= near <= 1 and near != margin:
                assert self.notion(near, reference).holds(table) is within

    @pytest.mark.parametrize("seed", SEEDS)
    def test_renaming_the_groups_changes_nothing_and_an_empty_one_widens(self, seed: int) -> None:
        notion, table = self.notion(), self.table(seed)
        one, other = (gap_of(notion, JointTally(counts=t)) for t in (table, table[::-1]))
        assert (other.low, other.high) == pytest.approx((one.low, one.high), abs=1e-12)
        assert other.value == pytest.approx(one.value, nan_ok=True)
        empty = gap_of(notion, JointTally(counts=np.concatenate([table, 0 * table[:1]])))
        assert empty.value == pytest.approx(one.value, nan_ok=True)
        assert empty.high >= one.high - 1e-12

    def test_one_group_differs_from_nobody(self) -> None:
        found = gap_of(self.notion(), JointTally(counts=self.table(0)[:1]))
        assert math.isnan(found.value)
        assert (found.low, found.high) == (0.0, 1.0)

    def test_it_says_whether_it_reads_labels_and_what_it_is_about(self) -> None:
        notion = self.notion()
        assert notion.needs_labels or not notion.rates(self.n_classes).reads_labels
        assert notion.name == notion.name.lower().replace(" ", "-")
        assert notion.words
        assert notion.definition.startswith("max over z")
        assert notion == self.notion() != self.notion(0.2)
        with pytest.raises(ValueError, match=r"margin must lie in \[0, 1\]"):
            self.notion(1.5)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_the_function_that_is_trained_for_has_the_same_gap_and_its_gradient(
        self, seed: int
    ) -> None:
        notion, rng = self.notion(reference="overall"), np.random.default_rng(seed)
        n, k = 60, self.n_classes
        p, y, z = rng.dirichlet(np.ones(k), n), rng.integers(k, size=n), rng.integers(3, size=n)
        joint = JointTally.of(z, y, p.argmax(axis=1), 3, k)
        assert worst_violation(notion, p, y, z) == pytest.approx(notion.gap(joint.counts))
        truth = np.eye(k)[y]
        pull = rng.normal(size=notion.values(p, truth).shape) * notion.among(truth)
        gradient = notion.gradient(p, truth, pull)
        for row, column in itertools.product(range(4), range(k)):
            nudge = np.zeros_like(p)
            nudge[row, column] = 1e-6
            rise = notion.values(p + nudge, truth) - notion.values(p - nudge, truth)
            assert gradient[row, column] == pytest.approx((pull * rise).sum() / 2e-6, abs=1e-8)

    @pytest.mark.parametrize("reference", REFERENCES)
    def test_the_constraint_of_a_student_is_about_the_same_differences(
        self, reference: str
    ) -> None:
        notion, rng = self.notion(reference=reference), np.random.default_rng(0)
        n, k = 200, self.n_classes
        y, z, said = (rng.integers(m, size=n) for m in (k, 3, k))
        within = Within(notion=notion, groups=z, n_groups=3, labels=y)
        differences = within.differences(k)
        decisions = np.eye(k)[said]
        decisions = decisions[:, 1:] if k == 2 else decisions
        apart = differences.apart(decisions)
        exact = notion.gap(JointTally.of(z, y, said, 3, k).counts)
        assert np.abs(apart).max() == pytest.approx(exact)
        assert within.gap(said, k) == exact
        pull, other = rng.normal(size=apart.shape), rng.random(decisions.shape)
        moved = float((pull * (differences.apart(other) - apart)).sum())
        back = float((differences.back(pull) * (other - decisions)).sum())
        assert back == pytest.approx(moved)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_calibrated_gap_is_the_plain_one_where_the_rows_are_the_same(self, seed: int) -> None:
        joint = JointTally(counts=self.table(seed) + 1)
        found = CalibratedJoint(answered=joint.predicted, labelled=joint).gap(self.notion())
        plain = gap_of(self.notion(), joint)
        assert found.name == plain.name
        assert found.value == pytest.approx(plain.value)
        assert found.low <= found.value <= found.high

    @pytest.mark.parametrize("reference", REFERENCES)
    def test_the_interval_covers_at_least_at_its_level(self, reference: str) -> None:
        notion, level, repeats = self.notion(reference=reference), 0.8, 80
        rng = np.random.default_rng(0)
        shape = (3, self.n_classes, self.n_classes)
        world = rng.dirichlet(np.ones(math.prod(shape)))
        exact = JointTally(counts=np.rint(world.reshape(shape) * 1e12).astype(np.int64))
        truth, covered = gap_of(notion, exact).value, 0
        for _ in range(repeats):
            drawn = JointTally(counts=rng.multinomial(150, world).reshape(shape))
            found = gap_of(notion, drawn, level=level)
            covered += found.low - 1e-9 <= truth <= found.high + 1e-9
        assert binom.cdf(covered, repeats, level) > FALSE_ALARM


def by_brute_force(table: IntArray, kinds: Sequence[Kind], reference: str) -> Fraction | None:
    """Return the largest difference of a rate, by loops over records; None where there is none."""
    records = [cell for cell, n in np.ndenumerate(table) for _ in range(int(n))]
    groups, worst = range(len(table)), None
    for among, hit in kinds:

        def rate(members: set[int], among: Any = among, hit: Any = hit) -> Fraction | None:
            inside = [(y, k) for z, y, k in records if z in members and among(y)]
            return Fraction(sum(hit(y, k) for y, k in inside), len(inside)) if inside else None

        for z in groups:
            others = {
                "rest": [set(groups) - {z}],
                "pairwise": [{other} for other in groups if other != z],
                "overall": [set(groups)],
            }[reference]
            for other in others:
                own, theirs = rate({z}), rate(other)
                if own is not None and theirs is not None:
                    worst = max(worst or Fraction(0), abs(own - theirs))
    return worst
