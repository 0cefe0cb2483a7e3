"""What every gate must keep: subclass the contract in your tests and name your own.

A gate decides, answer by answer, which classes a group may receive, so that the answers that were
given stay within a margin. The streams here jump and drift: nothing a gate could learn from.
"""

# ruff: noqa: D102 -- a test's name is its sentence

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pytest

from evenhand.typing import IntArray

N_GROUPS: Final = 3
N_CLASSES: Final = 3
N_OFFERS: Final = 1200
SEEDS: Final = (0, 1, 2)


class GateContract:
    """What holds of the protocol ``Gate``; subclass it, write :meth:`gate` and :meth:`gap`."""

    margin: float = 0.1

    def gate(self, margin: float, n_groups: int, n_classes: int) -> Any:
        """Return a new gate that withholds at most a few dozen answers of a late group."""
        raise NotImplementedError("Return the gate to check, for example DemographicParityGate.")

    def gap(self, counts: IntArray) -> Fraction:
        """Return what the gate bounds, from a table (n_groups, n_classes) of given answers.

        Written anew, in fractions: this is the definition that the gate is held to.
        """
        raise NotImplementedError("Return the largest difference of two rates, as a Fraction.")

    def new(self) -> Any:
        """Return a gate of the contract's own size."""
        return self.gate(self.margin, N_GROUPS, N_CLASSES)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_after_every_answer_the_given_table_is_within_the_margin(self, seed: int) -> None:
        gate, margin = self.new(), Fraction(str(self.margin))
        table = np.zeros((N_GROUPS, N_CLASSES), dtype=np.int64)
        for group, label in stream(seed):
            outcome = gate.offer(group, label)
            table[group] += outcome.released
            table[group, label] += outcome.given
            assert self.gap(table) <= margin
        for group, label in gate.deliver():
            table[group, label] += 1
            assert self.gap(table) <= margin
        assert np.array_equal(gate.counts, table)
        assert (table.sum(axis=1) > 0).all(), "a group got no answer: nothing was shown"

    @pytest.mark.parametrize("seed", SEEDS)
    def test_an_answer_is_given_or_withheld_if_and_only_if_its_class_was_admissible(
        self, seed: int
    ) -> None:
        gate, refused = self.new(), 0
        for group, label in stream(seed):
            admissible = label in gate.admissible(group)
            before = gate.counts.sum() + gate.held.sum()
            outcome = gate.offer(group, label)
            assert admissible == (outcome.given or outcome.withheld)
            assert not (outcome.given and outcome.withheld)
            assert gate.counts.sum() + gate.held.sum() == before + admissible
            refused += not admissible
        assert refused, "the stream never left the margin: nothing was shown"

    def test_its_gap_is_that_of_the_given_table(self) -> None:
        gate = self.new()
        for group, label in stream(2, 300):
            gate.offer(group, label)
            assert gate.gap == pytest.approx(float(self.gap(gate.counts)), abs=1e-12)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_what_is_released_or_delivered_was_withheld_before(self, seed: int) -> None:
        gate = self.new()
        for group, label in stream(seed):
            before = gate.held
            outcome = gate.offer(group, label)
            assert (np.array(outcome.released) <= before[group]).all()
        before = gate.held
        for group, label in gate.deliver():
            before[group, label] -= 1
        assert before.min() >= 0
        assert np.array_equal(gate.held, before)
        assert gate.deliver() == []

    @pytest.mark.parametrize("seed", SEEDS)
    def test_a_group_that_one_answer_starts_could_start(self, seed: int) -> None:
        # Else its queries would be skipped though an answer could have been given.
        gate = self.new()
        for group, label in stream(seed):
            could = gate.can_start(group, 1)
            outcome = gate.offer(group, label)
            assert could or not (outcome.given or any(outcome.released))

    def test_what_is_admissible_is_a_function_of_given_answers(self) -> None:
        # So it may be asked before a teacher is, at no cost: asking moves nothing.
        gate, same = self.new(), self.new()
        for group, label in stream(0):
            for z in range(N_GROUPS):
                assert gate.admissible(z) == gate.admissible(z)
            assert gate.offer(group, label) == same.offer(group, label)
            assert gate.admissible(group) == same.admissible(group)

    def test_a_margin_of_1_refuses_nothing_and_gives_all_in_the_end(self) -> None:
        gate = self.gate(1.0, N_GROUPS, N_CLASSES)
        for group, label in stream(0):
            outcome = gate.offer(group, label)
            assert outcome.given or outcome.withheld
        gate.deliver()
        assert gate.counts.sum() == N_OFFERS

    @pytest.mark.parametrize("n_before", [10, 40, N_OFFERS // 2])  # also while groups wait
    def test_a_gate_goes_on_where_its_saved_state_stopped(self, n_before: int) -> None:
        gate, offers = self.new(), stream(1)
        for group, label in offers[:n_before]:
            gate.offer(group, label)
        again = type(gate).from_dict(json.loads(json.dumps(gate.to_dict())))
        assert np.array_equal(gate.held, again.held)
        for group, label in offers[n_before : n_before + N_OFFERS // 2]:
            assert gate.offer(group, label) == again.offer(group, label)
        assert gate.deliver() == again.deliver()
        assert gate.to_dict() == again.to_dict()

    @pytest.mark.parametrize("n_before", [100, 200, N_OFFERS])
    def test_deliver_leaves_nothing_that_may_be_given(self, n_before: int) -> None:
        # A group without a given answer still waits for a block that fits.
        for seed in SEEDS:
            gate = self.new()
            for group, label in stream(seed)[:n_before]:
                gate.offer(group, label)
            gate.deliver()
            for group, label in np.argwhere(gate.held).tolist():
                assert not gate.counts[group].any() or label not in gate.admissible(group)

    def test_what_people_give_and_take_back_is_counted(self) -> None:
        gate, rng = self.new(), np.random.default_rng(5)
        for group, label in stream(2, 300):
            before = gate.counts
            if rng.random() < 0.5:
                gate.give_by_hand(group, label)
                before[group, label] += 1
            elif before[group, label]:
                gate.take_back(group, label)
                before[group, label] -= 1
            assert np.array_equal(gate.counts, before)
            assert gate.within == (self.gap(before) <= Fraction(str(self.margin)))

    def test_what_a_person_decided_is_withheld_no_longer(self) -> None:
        gate = self.new()
        for group, label in stream(0):
            if gate.offer(group, label).withheld:
                held = gate.held
                gate.forget(group, label)
                held[group, label] -= 1
                assert np.array_equal(gate.held, held)

    def test_what_was_not_given_is_not_taken_back_and_what_is_not_held_is_not_forgotten(
        self,
    ) -> None:
        gate = self.new()
        for act in (gate.take_back, gate.forget):
            with pytest.raises(ValueError, match="group 0"):
                act(0, 0)
        assert gate.counts.sum() + gate.held.sum() == 0

    @pytest.mark.parametrize("seed", SEEDS)
    def test_where_people_left_the_margin_no_answer_leads_further_from_it(self, seed: int) -> None:
        gate, margin, offers = self.new(), Fraction(str(self.margin)), stream(seed)
        for group, label in offers[: N_OFFERS // 2]:
            gate.offer(group, label)
        for _ in range(N_OFFERS):
            if not gate.within:
                break
            gate.give_by_hand(0, 0)
        assert not gate.within
        gate = type(gate).from_dict(json.loads(json.dumps(gate.to_dict())))
        for group, label in offers[N_OFFERS // 2 :]:
            before = self.gap(gate.counts)
            gate.offer(group, label)
            after = self.gap(gate.counts)
            assert after <= max(before, margin)
            assert gate.within == (after <= margin)

    @pytest.mark.parametrize(("group", "label"), [(N_GROUPS, 0), (-1, 0), (0, N_CLASSES), (0, -1)])
    def test_a_group_or_a_class_that_is_not_in_the_table_is_refused(
        self, group: int, label: int
    ) -> None:
        gate = self.new()
        for act in (gate.offer, gate.give_by_hand, gate.take_back, gate.forget):
            with pytest.raises(ValueError, match=r"group|label"):
                act(group, label)
        assert gate.counts.sum() + gate.held.sum() == 0


def stream(seed: int, n: int = N_OFFERS) -> list[tuple[int, int]]:
    """Return offers (group, label) whose rates jump; every group and class comes."""
    rng = np.random.default_rng(seed)
    found: list[tuple[int, int]] = []
    while len(found) < n:
        rates = rng.dirichlet(np.full(N_CLASSES, rng.choice([0.5, 5.0])), size=N_GROUPS)
        groups = rng.integers(N_GROUPS, size=100).tolist()
        found += [(z, int(rng.choice(N_CLASSES, p=rates[z]))) for z in groups]
    return found[:n]
