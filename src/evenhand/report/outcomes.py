"""What became of the public rows: answers per group and class, and refusals per reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand.typing import IntArray
from evenhand.voting import Answers, Reason

SHORT: Final[Mapping[Reason, str]] = {
    Reason.NO_CONSENSUS: "refused: below the threshold",
    Reason.OUTSIDE_MARGIN: "refused: outside the margin",
    Reason.WITHHELD: "withheld",
    Reason.NO_CLASS_ADMISSIBLE: "skipped at no cost",
    Reason.NOT_ASKED: "not asked",
}
"""Reasons for which a row has no label, in the order of the charts, in two or three words."""

EVERY_ROW: Final = "all public rows"
"""The one line of the table where no groups were read."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """How many public rows of each group got which label, or none and why.

    Parameters
    ----------
    groups : tuple of str
        Names of the lines; ``(EVERY_ROW,)`` for a method without groups.
    classes : tuple of str
        Names of the classes.
    answered : ndarray of int64, shape (n_groups, n_classes)
        Rows that carry this label.
    unlabelled : ndarray of int64, shape (n_groups, n_reasons)
        Rows without a label, one column per ``reasons``.
    reasons : tuple of Reason
        Those that occurred, in the order of ``SHORT``.

    Privacy
    -------
    A function of the released answers and of public groups: covered by the guarantee.
    """

    groups: tuple[str, ...]
    classes: tuple[str, ...]
    answered: IntArray
    unlabelled: IntArray
    reasons: tuple[Reason, ...]

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
    def by_group(self) -> bool:
        """Whether the lines are groups, rather than all rows together."""
        return self.groups != (EVERY_ROW,)
