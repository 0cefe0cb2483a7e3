"""What became of the public rows, and how far apart the answers to the groups were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand.fairness import DemographicParity
from evenhand.fairness.gate.calibrated import GateCalibration, calibrated_trace
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.tally import Tally
from evenhand.fairness.trace import gap_trace
from evenhand.typing import FloatArray, IntArray
from evenhand.voting.answers import Answers, Reason

SHORT: Final[Mapping[Reason, str]] = {
    Reason.NO_CONSENSUS: "refused: below the threshold",
    Reason.OUTSIDE_MARGIN: "refused: outside the margin",
    Reason.WITHHELD: "withheld",
    Reason.NO_CLASS_ADMISSIBLE: "skipped at no cost",
    Reason.NOT_ASKED: "not asked",
}
"""Reasons for which a row has no label, in the order of the charts, in two or three words."""

EVERY_ROW: Final = "all rows"
"""The one line of the table where no groups were read."""

N_STAGES: Final = 10
CLOSE: Final = 1e-9
"""Gaps in floats above the margin less this much are decided again, in fractions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """How many public rows of each group got which label, or none and why.

    Privacy
    -------
    A function of the released answers and of public groups: covered by the guarantee.
    """

    groups: tuple[str, ...]
    """Names of the lines; ``(EVERY_ROW,)`` for a method without groups."""
    classes: tuple[str, ...]
    """Names of the classes."""
    answered: IntArray
    """Rows that carry this label. Shape (n_groups, n_classes)."""
    unlabelled: IntArray
    """Rows without a label, one column per ``reasons``. Shape (n_groups, n_reasons)."""
    reasons: tuple[Reason, ...]
    """Those that occurred, in the order of ``SHORT``."""

    @classmethod
    def of(
        cls, answers: Answers, classes: tuple[str, ...], groups: tuple[str, ...] | None
    ) -> Outcomes:
        """Count the answers per group; without group codes, over all rows."""
        names: tuple[str, ...] = (EVERY_ROW,)
        codes = np.zeros(len(answers), dtype=np.int64)
        if answers.groups is not None and groups is not None:
            names, codes = groups, answers.groups
        reasons = tuple(reason for reason in SHORT if answers.count(reason))
        given = answers.answered
        answered = np.zeros((len(names), len(classes)), dtype=np.int64)
        np.add.at(answered, (codes[given], answers.labels[given]), 1)
        unlabelled = np.zeros((len(names), len(reasons)), dtype=np.int64)
        for column, reason in enumerate(reasons):
            np.add.at(unlabelled[:, column], codes[answers.reasons == reason], 1)
        return cls(
            groups=names,
            classes=classes,
            answered=answered,
            unlabelled=unlabelled,
            reasons=reasons,
        )

    @property
    def sizes(self) -> IntArray:
        """Public rows per group, shape (n_groups,)."""
        sizes: IntArray = self.answered.sum(axis=1) + self.unlabelled.sum(axis=1)
        return sizes

    @property
    def without_answers(self) -> tuple[str, ...]:
        """The groups that have public rows and not one answer."""
        none = (self.sizes > 0) & (self.answered.sum(axis=1) == 0)
        return tuple(group for group, silent in zip(self.groups, none, strict=True) if silent)

    @property
    def columns(self) -> list[str]:
        """What is counted of each group, in words."""
        given = [f"answered {name}" for name in self.classes]
        return [*given, *(SHORT[reason] for reason in self.reasons), "rows"]

    @property
    def numbers(self) -> IntArray:
        """A row per group, a column per ``columns``."""
        numbers: IntArray = np.column_stack([self.answered, self.unlabelled, self.sizes])
        return numbers

    @property
    def by_group(self) -> bool:
        """Whether the lines are groups, rather than all rows together."""
        return self.groups != (EVERY_ROW,)


@dataclass(frozen=True, kw_only=True, eq=False)
class Disparity:
    """The gap of the answered set over time.

    Privacy
    -------
    A function of the released answers and of public groups: covered by the guarantee.
    """

    notion: RateNotion
    """The margin, and what a group is compared with."""
    n_given: IntArray
    """Answers given up to and including each event. Answers given together are one event. Shape
    (n_events,).
    """
    gaps: FloatArray
    """Largest difference of rates after each event; 0.0 while one group alone has answers. Of rates
    of true classes: what the gate held within the margin. Shape (n_events,).
    """
    n_outside: int
    """Events after which the gap was above the margin, decided in fractions."""
    joined: tuple[tuple[str, int], ...]
    """Each group that has answers, and how many answers had been given after the event that brought
    its first.
    """
    calibration: GateCalibration | None = None
    """What was known of true classes; None for a notion that needs none."""

    @classmethod
    def of(
        cls,
        answers: Answers,
        groups: tuple[str, ...],
        notion: RateNotion,
        calibration: GateCalibration | None = None,
    ) -> Disparity:
        """Replay the answers in the order in which they were given."""
        if answers.groups is None:
            raise ValueError("These answers have no groups: without a gate there is no margin.")
        z, k = answers.groups[answers.order], answers.labels[answers.order]
        ends = np.flatnonzero(np.diff(answers.events, append=-1) != 0) + 1
        if isinstance(notion, DemographicParity):
            gaps = gap_trace(z, k, answers.events, reference=notion.reference)
            n_outside = 0
            for event in np.flatnonzero(gaps > notion.margin - CLOSE):
                upto = slice(ends[event])
                table = Tally.of(z[upto], k[upto], len(groups), answers.n_classes)
                n_outside += not notion.holds(table.counts)
        else:
            size = len(groups), answers.n_classes
            gaps, n_outside = calibrated_trace(z, k, ends, notion, *size, calibration)
        firsts = [(group, np.flatnonzero(z == code)) for code, group in enumerate(groups)]
        joined = [
            (group, int(ends[np.searchsorted(ends, rows[0], side="right")]))
            for group, rows in firsts
            if len(rows)
        ]
        return cls(
            notion=notion,
            n_given=ends.astype(np.int64),
            gaps=gaps,
            n_outside=n_outside,
            joined=tuple(sorted(joined, key=lambda pair: pair[1])),
            calibration=calibration,
        )

    @property
    def what(self) -> str:
        """What the gap is, in a sentence."""
        against = self.notion.against
        if self.calibration is None:
            return (
                f"The gap is the largest difference, over groups and classes, between a group and "
                f"{against} in {self.notion.words}."
            )
        known, n = self.calibration, int(self.calibration.labelled.totals.sum())
        of = (
            f"the upper limit, with {known.level:.0%} confidence,"
            if known.admit_by == "limit"
            else "the estimate, which promises nothing of the gap itself,"
        )
        return (
            f"The gap is {of} of the largest difference between a group and {against} in "
            f"{self.notion.words}. What is true behind an answer is taken from the teachers' "
            f"answers to {n:,} labelled calibration rows, which were charged as any others; it is "
            f"expected of the given answers, provided that both kinds of rows are alike."
        )

    @property
    def largest(self) -> float:
        """Largest gap after any event; 0.0 without one."""
        return float(self.gaps.max(initial=0.0))

    @property
    def final(self) -> float:
        """Gap of the whole answered set."""
        return float(self.gaps[-1]) if len(self.gaps) else 0.0

    @property
    def stages(self) -> tuple[tuple[int, float, float], ...]:
        """Answers given, the gap then, and the largest up to then, at ten steps or fewer."""
        if not len(self.gaps):
            return ()
        at = np.unique(np.linspace(0, len(self.gaps) - 1, N_STAGES).astype(np.int64))
        largest = np.maximum.accumulate(self.gaps)
        return tuple((int(self.n_given[i]), float(self.gaps[i]), float(largest[i])) for i in at)

    @property
    def kept(self) -> bool:
        """Whether the answered set was within the margin after every event."""
        return self.n_outside == 0
