"""How a fitted model stands to its margin: its student, its thresholds, its derived decisions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evenhand.estimators import small_groups
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import Notion, RateNotion
from evenhand.students.derived import DerivedRule
from evenhand.students.small_groups import Held
from evenhand.students.thresholds import GroupThresholds
from evenhand.students.within import SOURCES
from evenhand.typing import FloatArray

WHERE: Final[Mapping[str, str]] = {
    **SOURCES,
    "calibration rows": "on the calibration rows",
    "released answers": "on the public rows (classes by the released answers)",
    "own probabilities": "on the public rows (classes by the model's own probabilities)",
    "expected counts": "by noisy counts of the private rows' scores (classes by the model's own "
    "probabilities)",
    "noisy tables": "by the noisy tables of the last steps of training",
}
"""Where a student's margin is read, in the words of a sentence."""

AIM_AGAIN: Final = (
    "take more steps, widen the margin, or hold it on public rows, by a blind rule (--blind-rule, "
    "in Python with_blind_rule) or by a margin with a confidence"
)
"""What to do where training aimed for a margin and missed it."""


@dataclass(frozen=True, kw_only=True)
class KeptMargin:
    """A margin, and the rows on which it is read."""

    notion: Notion
    """The margin, on which rates, and what a group is compared with."""
    source: str = "public rows"
    """Where the margin is read, a key of ``WHERE``."""
    cross_fitted: Estimate | None = None
    """The gap on rows that a student, or thresholds, of this kind were not fitted on, where the
    notion has a confidence: that of the interval.
    """

    @property
    def supported(self) -> float | None:
        """Least margin that holds on new rows at the notion's confidence; None without one."""
        return (
            None if self.cross_fitted is None else max(self.notion.margin, self.cross_fitted.high)
        )

    @property
    def where(self) -> str:
        """Where the margin is read, in the words of a sentence."""
        return WHERE[self.source]


@dataclass(frozen=True, kw_only=True)
class StudentMargin(KeptMargin):
    """How a student that was trained under a margin stands to it where the margin is read.

    Privacy
    -------
    A function of the student, of released answers and of what is public of public rows: covered.
    """

    gap: float
    """Largest difference of rates among its own decisions where the margin is read."""
    met: bool | None
    """Whether that is within the margin; None where the noise of what it is read from leaves that
    open.
    """
    calibration: Estimate | None = None
    """The gap on the calibration rows, with its interval."""
    held: Held | None = None
    """The groups that are held to the interval of their size, and not to the margin."""
    groups: tuple[str, ...] = ()
    """Names of the groups."""

    @property
    def on_new_rows(self) -> str:
        """What is known of the gap on rows that the student was not fitted on, in a sentence."""
        found = self.cross_fitted
        if found is None:
            return "On new rows it is not bound."
        return (
            f"On rows that it was not fitted on the gap is {found.value:.4f}, at most "
            f"{found.high:.4f} with {found.level:.0%} confidence."
        )

    def on_test_rows(self, measured: Iterable[Estimate]) -> str:
        """Say what is left of the margin on test rows; empty where its gap was not measured."""
        name = f"{self.notion.key}_{getattr(self.notion, 'reference', '')}"
        found = next((estimate for estimate in measured if estimate.name == name), None)
        if found is None or math.isnan(found.value):
            return ""
        beyond = found.value - self.notion.margin
        lost = f"{beyond:.4f} beyond it" if beyond > 0 else "within it"
        margin = f"{self.notion.margin:g}"
        kept = f"The margin of {margin} was kept {self.where}, with a gap of {self.gap:.4f}"
        if self.held is not None or not self.met:
            kept = f"The gap {self.where} is {self.gap:.4f}, margin {margin}, {self.kept}"
        return (
            f"{kept}; on the test rows the gap is {found.value:.4f}, {lost} "
            f"({found.level:.0%} interval {found.low:.4f} to {found.high:.4f})."
        )

    @property
    def kept(self) -> str:
        """How the gap stands to the margin, in a few words."""
        if self.held is not None:
            n = len(self.held.groups)
            return f"all within it but {n} small group{'s' * (n > 1)}, held to their intervals"
        if self.met is None and self.gap > self.notion.margin:
            return "above it, by no more than is allowed for noise"
        if self.met is None:
            return "not above it, by noise that is wider than the margin"
        return "within it" if self.met else "outside it"

    @property
    def held_in_words(self) -> str:
        """Which groups are held to the interval of their size, and why."""
        if self.held is None:
            return ""
        return small_groups.in_words(self.held, self.groups, self.notion.margin)

    def held_record(self) -> dict[str, Any] | None:
        """Return which groups are held to more than the margin, as plain values."""
        return None if self.held is None else small_groups.to_dict(self.held, self.groups)


@dataclass(frozen=True, kw_only=True)
class Cuts(KeptMargin):
    """The scores from which each group is given a class, where a model has such by group.

    Privacy
    -------
    A function of the released model and of public rows.
    """

    notion: RateNotion
    """The margin that the decisions keep, in expectation, where it is read."""
    label: str
    """The class that is given above a threshold."""
    groups: tuple[str, ...]
    thresholds: GroupThresholds
    held: float | None = None
    """The margin that the thresholds were set to there, of more than two groups the least that a
    difference was held to; None where it is that of ``notion``.
    """

    @property
    def by_counts(self) -> bool:
        """Whether noisy counts of private scores had a part in them."""
        return self.source in ("noisy counts", "expected counts")

    @property
    def to(self) -> float:
        """The margin that the thresholds were set to."""
        return float(self.notion.margin) if self.held is None else self.held

    @property
    def to_in_words(self) -> str:
        """That margin, and whether it is the least of several."""
        least = len(self.groups) > 2 and self.held is not None
        return f"{self.to:.4f}" + " or more, by how well each difference is known" * least

    @property
    def rows(self) -> tuple[tuple[str, float, float, float], ...]:
        """Group, threshold, and the probability of the class for a score at it and above it."""
        return tuple(
            (group, *step)
            for group, steps in zip(self.groups, self.thresholds.steps, strict=True)
            for step in zip(*steps, strict=True)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Derived:
    """Decisions derived from a model's own and the group.

    Privacy
    -------
    A function of the released model and of the released table.
    """

    notion: str
    """Which rates are held together, by the key of its notion."""
    margin: float
    """That was asked for."""
    gap: float
    """Largest difference of those rates between two groups, by the noisy table."""
    beyond: float
    """How much further apart they may be among the private records, with probability 0.95."""
    classes: tuple[str, ...]
    groups: tuple[str, ...]
    rule: DerivedRule
    table: FloatArray
    """The released table of group, true label and decision. Shape (n_groups, n_classes, n_classes).
    """

    @property
    def rows(self) -> tuple[tuple[str, str, tuple[float, ...]], ...]:
        """Group, the model's own decision, and the probability of each class."""
        return tuple(
            (group, own, tuple(probabilities))
            for group, table in zip(self.groups, self.rule.probabilities.tolist(), strict=True)
            for own, probabilities in zip(self.classes, table, strict=True)
        )


@dataclass(frozen=True, kw_only=True)
class ByTable:
    """How far apart the decisions about the private records are, by a noisy table of them.

    Privacy
    -------
    A function of the released table.
    """

    notion: str
    """Which rates are compared between two groups, by the name of its notion."""
    margin: float
    """That was asked for."""
    gap: float
    """Largest difference of those rates by the table."""
    at_most: float
    """What it is at most among the private records, with probability 0.95."""

    @property
    def in_words(self) -> str:
        """All of it in a sentence."""
        return (
            f"Gap of the decisions by the noisy table: {self.gap:.4f}, and at most "
            f"{self.at_most:.4f} among the private records, with a probability of 95%; margin "
            f"{self.margin:g} of {self.notion.replace('-', ' ')}."
        )


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A bound on the violation for the true groups, for this model."""

    name: str
    """The bound, and where it comes from."""
    value: float | None
    """The bound on the violation where it is one; else None."""
    says: bool
    """Whether it is below 1, so that it says anything."""
    words: str
    """What it is, or why it says nothing."""


@dataclass(frozen=True, kw_only=True)
class TrueGroups:
    """How a model of SF-PATE stands to its margin, and what is known of the true groups.

    Privacy
    -------
    A function of the student, of released shares and of public values.
    """

    notion: str
    """What the fairness function is called."""
    margin: float
    by_teachers: bool
    """Whether each teacher was held to it on its own rows."""
    violation: float
    """Of the student by the noisy groups; NaN where it knows none."""
    met: bool
    bounds: tuple[Bound, ...]
    beneath: bool = False
    """Whether a rule or thresholds around the student decide, of which all this says nothing."""

    @property
    def knows_no_group(self) -> bool:
        """Whether the student learned no more of the groups than that its teachers were held."""
        return self.by_teachers and math.isnan(self.violation)

    @property
    def bounded(self) -> bool:
        """Whether a bound says anything about the violation by the true groups."""
        return any(bound.says for bound in self.bounds)
