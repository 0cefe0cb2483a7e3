"""Every gate meets the published contract, and a gate that leaves its margin does not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from evenhand.fairness.gate import DemographicParityGate
from evenhand.fairness.gate.gate import Outcome
from evenhand.testing.gates import GateContract
from evenhand.typing import IntArray


@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
class TestDemographicParityGate(GateContract):
    reference = "rest"

    @pytest.fixture(autouse=True)
    def _of(self, reference: str) -> None:
        self.reference = reference

    def gate(self, margin: float, n_groups: int, n_classes: int) -> Any:
        return DemographicParityGate(
            margin, n_groups, n_classes, cold_start=20, reference=self.reference
        )

    def gap(self, counts: IntArray) -> Fraction:
        """Largest difference of a class's rate in a group and in what the group is held to."""
        found = Fraction(0)
        rows = [row for row in counts.tolist() if sum(row)]
        for z, row in enumerate(rows):
            others = [other for at, other in enumerate(rows) if at != z]
            pools = {
                "pairwise": [[other] for other in others],
                "rest": [others] if others else [],
                "overall": [rows],
            }[self.reference]
            for pool in pools:
                size = sum(map(sum, pool))
                for k, count in enumerate(row):
                    rate = Fraction(sum(other[k] for other in pool), size)
                    found = max(found, abs(Fraction(count, sum(row)) - rate))
        return found


class TenPercentTooWide(DemographicParityGate):
    """Its margin is a tenth wider than it says."""

    def __init__(self, margin: float, n_groups: int, n_classes: int, **options: Any) -> None:
        super().__init__(min(1.0, 1.1 * margin), n_groups, n_classes, **options)


class GivesWhatItWithholds(DemographicParityGate):
    """A late group's answers are handed out at once, and counted later."""

    def offer(self, group: int, label: int) -> Outcome:
        outcome = super().offer(group, label)
        return outcome._replace(given=True, withheld=False) if outcome.withheld else outcome


class Shut(DemographicParityGate):
    """Nothing is ever admissible: within every margin, and of no use."""

    def admissible(self, group: int) -> tuple[int, ...]:
        super().admissible(group)
        return ()


class NeverStarts(DemographicParityGate):
    """Says of every late group that it cannot start, so that none is ever asked."""

    def can_start(self, group: int, n_more: int) -> bool:
        return bool(self.active[group])


class GoesOnOutside(DemographicParityGate):
    """Where people left the margin it gives whatever it is offered."""

    def _leads_no_further(self, group: int, label: int) -> bool:
        return True


class Forgets(DemographicParityGate):
    """Saves no withheld answer."""

    def to_dict(self) -> dict[str, object]:
        nothing = [[0] * self.n_classes for _ in range(self.n_groups)]
        return {**super().to_dict(), "held": nothing, "first_held": []}


class Keeps(DemographicParityGate):
    """Delivers nothing of what it withholds."""

    def deliver(self) -> list[tuple[int, int]]:
        return []


BROKEN = {
    TenPercentTooWide: "after_every_answer_the_given_table_is_within_the_margin",
    GivesWhatItWithholds: "after_every_answer_the_given_table_is_within_the_margin",
    GoesOnOutside: "where_people_left_the_margin_no_answer_leads_further_from_it",
    NeverStarts: "a_group_that_one_answer_starts_could_start",
    Forgets: "a_gate_goes_on_where_its_saved_state_stopped",
    Keeps: "deliver_leaves_nothing_that_may_be_given",
    Shut: "a_margin_of_1_refuses_nothing_and_gives_all_in_the_end",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_gate_fails_the_contract(broken: Any) -> None:
    class Contract(TestDemographicParityGate):
        def gate(self, margin: float, n_groups: int, n_classes: int) -> Any:
            return broken(margin, n_groups, n_classes, cold_start=20)

    law = getattr(Contract(), f"test_{BROKEN[broken]}")

    def on_some_stream() -> None:
        for seed in (*range(20), 200):  # or after how many offers
            law(seed)

    with pytest.raises(AssertionError):
        law() if broken is Shut else on_some_stream()
