"""Where fairness can be put into PATE: the seven places of FairPATE's Figure 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class InterventionPoint:
    """One place of intervention, and what it can promise."""

    number: int
    """As in Figure 1 of the paper, 1 to 7 along the data's way."""
    name: str
    does: str
    """What happens there."""
    promise: str
    """The set of decisions that is within the margin afterwards, or that there is none."""
    reads_private_groups: bool = False
    """Whether teachers read the groups of their own records."""
    needs_group: bool = False
    """Whether the model needs the group of each row at prediction."""

    def __str__(self) -> str:
        return f"{self.number} {self.name}: {self.does}; {self.promise}"


POINTS: Final[Mapping[str, InterventionPoint]] = {
    point.name: point
    for point in (
        InterventionPoint(
            number=1,
            name="T_pre",
            does="each teacher drops records of its own that a gate refuses",
            promise="promised are the labels each teacher learns from; of answers and student "
            "nothing is promised",
            reads_private_groups=True,
        ),
        InterventionPoint(
            number=2,
            name="T_in",
            does="each teacher is trained towards the margin on its own records",
            promise="nothing is promised",
            reads_private_groups=True,
        ),
        InterventionPoint(
            number=3,
            name="T_post",
            does="each teacher votes at one threshold per group, set on the public rows",
            promise="promised are the votes of each teacher alone, up to one row a group; of "
            "their noisy majority and of the student nothing is promised",
        ),
        InterventionPoint(
            number=4,
            name="aggregator",
            does="a gate refuses answers that would leave the margin",
            promise="promised are the answers; of the student nothing is promised",
        ),
        InterventionPoint(
            number=5,
            name="S_pre",
            does="a gate drops given answers before the student learns",
            promise="promised are the answers that the student learns from; of the student "
            "nothing is promised",
        ),
        InterventionPoint(
            number=6,
            name="S_in",
            does="the student is trained under the margin",
            promise="promised are the student's decisions on the public rows, where the margin "
            "was met",
        ),
        InterventionPoint(
            number=7,
            name="S_post",
            does="the student's scores are cut at one threshold per group",
            promise="promised are the decisions on the public rows, in expectation over the draws "
            "at the thresholds",
            needs_group=True,
        ),
    )
}
"""By name, in the order of the data's way."""
