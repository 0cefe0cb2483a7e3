"""A gate is got from its notion; a notion without one says so."""

from collections.abc import Iterator

import numpy as np
import pytest

from evenhand.fairness import (
    DemographicParity,
    DemographicParityGate,
    ErrorParity,
    GeneralizedDemographicParity,
    RejectOption,
)
from evenhand.fairness.gate.gate import GATES, gate_from_dict, gate_of, open_gate


class OwnParity(DemographicParity):
    """A notion of one's own."""


@pytest.fixture
def own_gate() -> Iterator[type[DemographicParityGate]]:
    class OwnGate(DemographicParityGate):
        format = "own gate 1"

    gate_of(OwnParity)(OwnGate)
    yield OwnGate
    del GATES[OwnParity]


def test_a_gate_is_that_of_the_notion_or_of_what_the_notion_is_one_of(
    own_gate: type[DemographicParityGate],
) -> None:
    for kind, expected in ((DemographicParity, DemographicParityGate), (OwnParity, own_gate)):
        gate = open_gate(kind(margin=0.2, reference="pairwise"), 2, 3, cold_start=7)
        assert type(gate) is expected
        assert (gate.n_groups, gate.n_classes, gate.cold_start) == (2, 3, 7)
        assert gate.notion == DemographicParity(margin=0.2, reference="pairwise")
        again = gate_from_dict(gate.to_dict())
        assert type(again) is expected
    del GATES[OwnParity]
    assert type(open_gate(OwnParity(margin=0.2), 2, 2)) is DemographicParityGate
    GATES[OwnParity] = own_gate


def test_a_reject_option_opens_and_restores_the_gate_of_its_notion(
    own_gate: type[DemographicParityGate],
) -> None:
    option = RejectOption(OwnParity(margin=0.2), ["a", "b"], ["no", "yes"])
    option.decide([0, 1], [0, 0])
    again = RejectOption.from_dict(option.to_dict() | {"model": "m"})
    assert isinstance(option._gate, own_gate)
    assert np.array_equal(again.counts, option.counts)


def test_a_notion_of_scores_has_no_gate_and_says_so() -> None:
    notion = GeneralizedDemographicParity(margin=0.1)
    with pytest.raises(ValueError, match=r"GeneralizedDemographicParity has no gate.*RateNotion"):
        open_gate(notion, 2, 2)  # type: ignore[arg-type]


def test_a_gate_about_true_classes_asks_for_the_rows_that_tell_of_them() -> None:
    notion = ErrorParity(margin=0.1)
    with pytest.raises(ValueError, match=r"ErrorParity is about true classes.*Give calibration="):
        open_gate(notion, 2, 2)
    with pytest.raises(ValueError, match="ErrorParity is about true classes"):
        RejectOption(notion, ["a", "b"], ["no", "yes"])
    with pytest.raises(ValueError, match=r"A gate's format must be .*'evenhand demographic"):
        gate_from_dict({"format": "another 1"})
