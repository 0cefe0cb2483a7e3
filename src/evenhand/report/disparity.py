"""How far apart the groups' answers were after each answer, against the margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand.fairness import DemographicParity, Tally, gap_trace
from evenhand.typing import FloatArray, IntArray
from evenhand.voting import Answers

CLOSE: Final = 1e-9
"""Gaps in floats above the margin less this much are decided again, in fractions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Disparity:
    """The gap of the answered set over time.

    Parameters
    ----------
    notion : DemographicParity
        The margin, and what a group is compared with.
    rule : str
        ``"sound"`` or ``"published"``.
    n_given : ndarray of int64, shape (n_events,)
        Answers given up to and including each event. Answers given together are one event.
    gaps : ndarray of float64, shape (n_events,)
        Largest difference of rates after each event; 0.0 while one group alone has answers.
    n_outside : int
        Events after which the gap was above the margin, decided in fractions.
    joined : tuple of (str, int)
        Each group that has answers, and how many answers had been given after the event that
        brought its first.

    Privacy
    -------
    A function of the released answers and of public groups: covered by the guarantee.
    """

    notion: DemographicParity
    rule: str
    n_given: IntArray
    gaps: FloatArray
    n_outside: int
    joined: tuple[tuple[str, int], ...]

    @classmethod
    def of(
        cls, answers: Answers, groups: tuple[str, ...], notion: DemographicParity, rule: str
    ) -> Disparity:
        """Replay the answers in the order in which they were given."""
        if answers.groups is None:
            raise ValueError("These answers have no groups: without a gate there is no margin.")
        z, k = answers.groups[answers.order], answers.labels[answers.order]
        gaps = gap_trace(z, k, answers.events, reference=notion.reference)
        ends = np.flatnonzero(np.diff(answers.events, append=-1) != 0) + 1
        n_outside = 0
        for event in np.flatnonzero(gaps > notion.margin - CLOSE):
            upto = slice(ends[event])
            table = Tally.of(z[upto], k[upto], len(groups), answers.n_classes)
            n_outside += not notion.holds(table.counts)
        firsts = [(group, np.flatnonzero(z == code)) for code, group in enumerate(groups)]
        joined = [
            (group, int(ends[np.searchsorted(ends, rows[0], side="right")]))
            for group, rows in firsts
            if len(rows)
        ]
        return cls(
            notion=notion,
            rule=rule,
            n_given=ends.astype(np.int64),
            gaps=gaps,
            n_outside=n_outside,
            joined=tuple(sorted(joined, key=lambda pair: pair[1])),
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
    def kept(self) -> bool:
        """Whether the answered set was within the margin after every event."""
        return self.n_outside == 0
