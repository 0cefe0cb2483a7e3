"""The rules by which a method is chosen, line by line, and the case that they read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from evenhand import _checks

PROTECTED: Final = ("record", "attribute")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is public of a task, and what is wished. Nothing of it is read from private rows."""

    protect: str = "record"
    """What shall be protected."""
    several_owners: bool = False
    """The records stay with owners that do not pool them."""
    gradients: bool = True
    """Whether a model may be trained by gradients of single records."""
    units: bool = False
    """A person, or a household, may have several records."""
    account: bool = False
    """The run is charged to an account that other runs share."""
    streams: bool = False
    """The rows do not fit into memory."""
    for_teachers: bool = False
    """Something else is asked for that only teachers have."""
    margin: bool = True
    """Whether a margin is to be kept, in training or at thresholds by group."""
    of_decisions_alone: bool = True
    """Whether that margin is about how often a class is decided, which DP-SGD can train for."""
    of_true_classes: bool = False
    """Whether it reads true classes."""
    of_rates: bool = True
    """Whether it is about rates of decisions, and not about scores."""
    confident: bool = False
    """Whether it shall hold on new rows, with a confidence."""
    group_at_prediction: bool = False
    """Whether a decision may read the group."""
    two_classes: bool = True
    """Whether there are two classes."""
    public_groups: bool = True
    """Whether the groups of public rows are known, or of rows that are set aside as public."""
    public_labels: bool = False
    """Whether there are public rows whose true classes and groups are known."""
    private_groups: bool = True
    """Whether the groups of the private rows are known."""
    scaled: bool = True
    """Whether public rows, or declared bounds, scale the columns."""
    pays_for_counts: bool = False
    """Whether the budget is large enough that noisy counts of scores help thresholds."""

    def __post_init__(self) -> None:
        _checks.one_of("protect", self.protect, PROTECTED)

    @property
    def held_after(self) -> bool:
        """Whether DP-SGD keeps the margin after training, which then reads no private group."""
        return self.confident and self.public_groups

    @property
    def counts(self) -> bool:
        """Whether thresholds are set on noisy counts of scores too: DP-SGD can release them."""
        free = replace(self, margin=False)
        able = self.private_groups and self.pays_for_counts and self.two_classes
        by_labels = self.of_true_classes and self.public_labels
        return able and not by_labels and RULES[first_line(RULES, free) - 1].takes == "dpsgd"


TEACHERS: Final = "teachers"
TRAINING: Final = "in training"
THRESHOLDS: Final = "at thresholds by group"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A line of a decision rule: where it holds, what is taken, and why.

    Of ``RULES`` a method's name is taken, or ``TEACHERS``: fair-shares under a margin, and pate
    without; of ``MARGINS``, ``TRAINING`` or ``THRESHOLDS``.
    """

    when: str
    takes: str
    why: str
    holds: Callable[[Case], bool]

    @property
    def because(self) -> str:
        """Where the line holds, and why it takes what it takes."""
        return self.why if self.when == "otherwise" else f"{self.when}; {self.why}"


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        when="the sensitive attribute alone is to be protected",
        takes="sf-student",
        why="features and labels are public then, and only the groups need noise",
        holds=lambda case: case.protect == "attribute",
    ),
    Rule(
        when="the records stay with several owners",
        takes=TEACHERS,
        why="only votes leave an owner",
        holds=lambda case: case.several_owners,
    ),
    Rule(
        when="no gradients: trees, rules, vendors' models, people",
        takes=TEACHERS,
        why="a teacher only has to vote",
        holds=lambda case: not case.gradients,
    ),
    Rule(
        when="a person, or another unit, may have several records",
        takes=TEACHERS,
        why="all records of a unit go to one teacher, and DP-SGD protects a record",
        holds=lambda case: case.units,
    ),
    Rule(
        when="the run is charged to an account that other runs share",
        takes=TEACHERS,
        why="the cost of DP-SGD is known at one delta, and adds up with no other",
        holds=lambda case: case.account,
    ),
    Rule(
        when="the rows stream from files",
        takes=TEACHERS,
        why="DP-SGD reads its rows in memory",
        holds=lambda case: case.streams,
    ),
    Rule(
        when="the margin in training is about true classes",
        takes=TEACHERS,
        why="DP-SGD pulls rates of decisions together, and of nothing else",
        holds=lambda case: case.margin and not case.of_decisions_alone,
    ),
    Rule(
        when="training shall keep a margin, and the groups of the private rows are not known",
        takes=TEACHERS,
        why="their student keeps the margin by the groups of the public rows",
        holds=lambda case: case.margin and not (case.private_groups or case.held_after),
    ),
    Rule(
        when="neither public rows nor declared bounds scale the columns",
        takes=TEACHERS,
        why="they are asked about rows that are drawn from noisy counts",
        holds=lambda case: not case.scaled,
    ),
    Rule(
        when="something is asked for that only teachers have",
        takes=TEACHERS,
        why="DP-SGD would not read it",
        holds=lambda case: (
            case.for_teachers
            or (case.margin and (case.public_labels or (case.confident and not case.held_after)))
        ),
    ),
    Rule(
        when="otherwise",
        takes="dpsgd",
        why="one owner, a record for each person: it is more accurate at the same epsilon",
        holds=lambda case: True,
    ),
)
"""Which method: the first line that holds decides. ``docs/choosing.md`` shows it."""

MARGINS: Final[tuple[Rule, ...]] = (
    Rule(
        when="the group is not to be seen at prediction",
        takes=TRAINING,
        why="thresholds by group need the group of each person",
        holds=lambda case: not case.group_at_prediction,
    ),
    Rule(
        when="the sensitive attribute alone is to be protected",
        takes=TRAINING,
        why="the methods that protect it have a place of their own for the margin",
        holds=lambda case: case.protect == "attribute",
    ),
    Rule(
        when="the margin is about scores",
        takes=TRAINING,
        why="thresholds move decisions, and no score",
        holds=lambda case: not case.of_rates,
    ),
    Rule(
        when="more than two classes",
        takes=TRAINING,
        why="a threshold parts two classes",
        holds=lambda case: not case.two_classes,
    ),
    Rule(
        when="the margin is about true classes, and public rows have labels and groups",
        takes=THRESHOLDS,
        why="they have the least expected error within the margin among these true classes",
        holds=lambda case: case.of_true_classes and case.public_labels,
    ),
    Rule(
        when="no public rows have known groups, and no noisy counts of scores stand for them",
        takes=TRAINING,
        why="thresholds are set on such rows, or on such counts where there is no confidence",
        holds=lambda case: not case.public_groups and (case.confident or not case.counts),
    ),
    Rule(
        when="the margin is about true classes, with a confidence",
        takes=TRAINING,
        why="a confidence needs true classes, and no public row has one",
        holds=lambda case: case.of_true_classes and case.confident,
    ),
    Rule(
        when="the margin is about true classes",
        takes=THRESHOLDS,
        why="the model's own probabilities stand for true classes, as the claim warns",
        holds=lambda case: case.of_true_classes,
    ),
    Rule(
        when="otherwise",
        takes=THRESHOLDS,
        why="they have the least expected error within the margin",
        holds=lambda case: True,
    ),
)
"""Where a margin sits: the first line that holds decides. ``docs/choosing.md`` shows it too."""


def first_line(rules: tuple[Rule, ...], case: Case) -> int:
    """Return the first line, counted from 1, that holds."""
    return next(i for i, rule in enumerate(rules, start=1) if rule.holds(case))
