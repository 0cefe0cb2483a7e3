"""Notions of fairness as constraints of fairlearn's reductions, with a bound for each group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import fairlearn.reductions as reductions
import numpy as np
import pandas as pd

from evenhand.fairness import (
    AnsweredGroups,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    JointTally,
    Notion,
    Tally,
)
from evenhand.typing import FloatArray, IntArray


class _Bounded:
    """A bound of its own for each event and group, in place of fairlearn's one for all.

    Fairlearn bounds the difference of a group's rate to everybody's. What a margin means there
    depends on the group: on its share, for the ``rest`` comparison, and on how noisy answers are.
    """

    index: pd.MultiIndex
    bounds: Mapping[str, FloatArray]

    def bound(self) -> pd.Series[float]:
        """Return the bounds in the order of the constraints."""
        of = zip(
            self.index.get_level_values("event"),
            self.index.get_level_values("group_id").astype(np.int64),
            strict=True,
        )
        return pd.Series([self.bounds[event][group] for event, group in of], index=self.index)

    def project_lambda(self, lambda_vec: pd.Series[float]) -> pd.Series[float]:
        """Leave multipliers as they are: fairlearn's shift is for bounds that are all equal."""
        return lambda_vec


class _Parity(_Bounded, reductions.DemographicParity):  # type: ignore[misc]  # untyped base
    pass


class _Odds(_Bounded, reductions.EqualizedOdds):  # type: ignore[misc]  # untyped base
    pass


class _Errors(_Bounded, reductions.ErrorRateParity):  # type: ignore[misc]  # untyped base
    pass


MOMENTS: Final[Mapping[type, Any]] = {
    DemographicParity: _Parity,
    EqualizedOdds: _Odds,
    ErrorParity: _Errors,
}
"""The notions that can be a constraint, each with its form in fairlearn."""


def require_constraint(fairness: object) -> Notion:
    """Return ``fairness`` if it is a notion that can be a constraint.

    Raises
    ------
    ValueError
        If it is not; the message lists those that can.
    """
    if type(fairness) not in MOMENTS:
        known = ", ".join(notion.__name__ for notion in MOMENTS)
        raise ValueError(
            f"fairness must be one of {known}, got {fairness!r}. Say how far apart the groups may "
            f"be, for example fairness=DemographicParity(margin=0.05); for no margin use "
            f"NonPrivateClassifier."
        )
    return fairness  # type: ignore[return-value]  # one of three types, each a Notion


def strata_of(notion: Notion, y: IntArray) -> IntArray:
    """Return among whom each row's rates are taken: those of its true class, or everybody."""
    return y if isinstance(notion, EqualizedOdds) else np.zeros_like(y)


def count_answers(
    notion: Notion, y: IntArray, groups: IntArray, n_groups: int, truth: float = 1.0
) -> AnsweredGroups:
    """Count people by stratum and group, or by the answer that stands for the group."""
    strata = strata_of(notion, y)
    n_strata = int(strata.max()) + 1
    cells = np.bincount(strata * n_groups + groups, minlength=n_strata * n_groups)
    return AnsweredGroups(counts=cells.reshape(n_strata, n_groups).astype(np.float64), truth=truth)


def moment_of(notion: Notion, answered: AnsweredGroups) -> Any:
    """Return fairlearn's constraint that keeps ``notion`` between the true groups."""
    margins = answered.margins(notion)
    made = MOMENTS[type(notion)](difference_bound=float(np.nanmax(margins)))
    by_label = isinstance(notion, EqualizedOdds)
    made.bounds = {
        (f"label={stratum}" if by_label else "all"): row for stratum, row in enumerate(margins)
    }
    return made


def estimated_gap(
    notion: Notion, decisions: IntArray, y: IntArray, answers: IntArray, answered: AnsweredGroups
) -> float:
    """Return the notion's gap of decisions between the true groups, as noisy answers tell it."""
    hit = decisions != y if isinstance(notion, ErrorParity) else decisions == 1
    cells = strata_of(notion, y) * answered.n_groups + answers
    hits = np.zeros(answered.counts.size)
    np.add.at(hits, cells, hit)
    return answered.gap(notion, hits.reshape(answered.counts.shape))


def gap_of_decisions(
    notion: Notion, decisions: IntArray, y: IntArray, groups: IntArray, n_groups: int
) -> float:
    """Return the notion's gap of decisions on rows whose groups are known."""
    if notion.needs_labels:
        return notion.gap(JointTally.of(groups, y, decisions, n_groups, 2).counts)
    return notion.gap(Tally.of(groups, decisions, n_groups, 2).counts)
