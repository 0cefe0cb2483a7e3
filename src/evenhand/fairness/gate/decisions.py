"""What became of requests at a reject option, and how the given labels stand to each margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

from evenhand.fairness.gate.calibrated import CalibratedGate
from evenhand.fairness.gate.gate import Gate
from evenhand.fairness.gate.several import SeveralGate
from evenhand.fairness.gate.table_gate import TableGate
from evenhand.fairness.notion import RateNotion
from evenhand.typing import REJECTED, BoolArray, IntArray

UNKNOWN: Final = -1
"""The code of a group that is none of the known ones."""


class Verdict(IntEnum):
    """What became of a request."""

    ANSWERED = 0
    OUTSIDE_MARGIN = 1
    WITHHELD = 2
    UNSURE = 3
    UNKNOWN_GROUP = 4

    @property
    def words(self) -> str:
        """The verdict as a reader meets it."""
        return _WORDS[self]


_WORDS = {
    Verdict.ANSWERED: "answered",
    Verdict.OUTSIDE_MARGIN: "refused: the label would have left the margin",
    Verdict.WITHHELD: "withheld until enough answers of the group fit the margin together",
    Verdict.UNSURE: "refused: the model was not sure enough",
    Verdict.UNKNOWN_GROUP: "refused: the group is none of those between which the margin is kept",
}


class Delivery(NamedTuple):
    """Earlier requests that are answered now."""

    ids: IntArray
    """Numbers of the requests, shape (n,)."""
    labels: IntArray
    """Their class codes, shape (n,)."""


class KeptMargin(NamedTuple):
    """One margin, and how the given labels stand to it."""

    notion: RateNotion
    """What is kept, with its margin."""
    gap: float
    """Largest difference of rates in the given set, as the margin is held against it."""
    gap_is: str
    """What that is: ``exact``, ``upper limit``, or ``estimate``."""
    within: bool
    """Whether it is within the margin."""
    n_compared: int
    """Groups with given labels. With fewer than two nothing is compared, and ``gap`` is 0."""
    n_groups: int
    """Groups that may come."""

    @property
    def words(self) -> str:
        """The gap and the margin as a reader meets them."""
        margin = f"margin {self.notion.margin:g}"
        if self.n_compared < 2:
            return f"{self.notion.title}: no gap yet, fewer than two groups have labels; {margin}"
        shown = "largest gap" if self.gap_is == "exact" else f"{self.gap_is} of the gap"
        some = self.n_compared < self.n_groups
        between = f" between the {self.n_compared} groups of {self.n_groups} with labels" * some
        return f"{self.notion.title}: {shown} {self.gap:.4f}{between}, {margin}"

    def to_dict(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        return {
            "notion": self.notion.name,
            "reference": self.notion.reference,
            "margin": float(self.notion.margin),
            "gap": self.gap,
            "gap_is": self.gap_is,
            "within_margin": self.within,
            "n_compared": self.n_compared,
        }


class After(NamedTuple):
    """How the given labels would stand after a person's decision."""

    gap: float
    """The gap that is nearest to its margin, or furthest above it."""
    within: bool
    """Whether all margins are kept."""
    beyond: bool
    """Whether it leaves a margin, or leads further out: it must be forced."""
    kept: tuple[KeptMargin, ...]
    """Each margin."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions:
    """What became of the requests of one call, in their order."""

    ids: IntArray
    """Number of each request, counted over the life of the reject option. Shape (n,)."""
    labels: IntArray
    """Class codes; ``REJECTED`` (-1) where none was given. Shape (n,)."""
    reasons: IntArray
    """A ``Verdict`` for each request. Shape (n,)."""
    n_released: int
    """Answers to requests of *earlier* calls that wait to be fetched with ``deliver``."""

    @property
    def answered(self) -> BoolArray:
        """Mask of the requests that carry a label."""
        mask: BoolArray = self.labels != REJECTED
        return mask


def gates_of(gate: Gate) -> Sequence[Gate | TableGate]:
    """Return the gates of the single margins."""
    if isinstance(gate, SeveralGate):
        return gate.gates
    return (gate,)


def kept_margins(gate: Gate) -> tuple[KeptMargin, ...]:
    """Return how the given labels stand to each margin of a gate."""
    withins = gate.withins if isinstance(gate, SeveralGate) else (gate.within,)
    return tuple(
        KeptMargin(
            notion=one.notion,
            gap=one.gap,
            gap_is=_what_the_gap_is(one),
            within=within,
            n_compared=int(one.counts.any(axis=1).sum()),
            n_groups=len(one.counts),
        )
        for one, within in zip(gates_of(gate), withins, strict=True)
    )


def _what_the_gap_is(gate: Gate | TableGate) -> str:
    known = gate.calibration if isinstance(gate, CalibratedGate) else None
    if known is None or not gate.notion.needs_labels:
        return "exact"
    return "upper limit" if known.admit_by == "limit" else "estimate"
