"""A notion of fairness as a constraint of fairlearn's reductions, with a bound for each group."""

from __future__ import annotations

from typing import Any

import fairlearn.reductions as reductions
import numpy as np
import pandas as pd

from evenhand.fairness.noisy_groups import AnsweredGroups
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.notions import require_notion
from evenhand.fairness.rates import Rates
from evenhand.fairness.tally import JointTally
from evenhand.typing import FloatArray, IntArray


class RateMoment(reductions.UtilityParity):  # type: ignore[misc]  # untyped base
    """The rates of a notion, for two classes, as fairlearn's parity of utilities.

    For demographic parity, equalized odds, true positive rates and errors it is what fairlearn has
    a class for. A bound of its own for each event and group stands in place of fairlearn's one for
    all: fairlearn bounds the difference of a group's rate to everybody's, and what a margin means
    there depends on the group: on its share, for the ``rest`` comparison, and on how noisy answers
    are.

    Parameters
    ----------
    rates : Rates
        Of two classes.
    bounds : ndarray of float64, shape (n_strata, n_groups)
    """

    short_name = "RateMoment"

    def __init__(self, rates: Rates, bounds: FloatArray) -> None:
        super().__init__(difference_bound=float(np.nanmax(bounds)))
        self.rates, self.bounds = rates, bounds

    def load_data(
        self, X: Any, y: Any, *, sensitive_features: Any, control_features: Any = None
    ) -> None:
        """Read class codes 0 and 1 and group codes, as fairlearn's own moments do."""
        labels = np.asarray(y).ravel().astype(np.int64)
        strata = self.rates.stratum_of(labels)
        super().load_data(
            X,
            pd.Series(labels),
            sensitive_features=pd.Series(np.asarray(sensitive_features).ravel()),
            event=pd.Series(strata).where(strata >= 0).map(lambda s: f"{s:03.0f}", "ignore"),
            utilities=_hits(self.rates)[strata, labels],
        )

    def bound(self) -> pd.Series[float]:
        """Return the bounds in the order of the constraints."""
        of = zip(
            self.index.get_level_values("event").astype(np.int64),
            self.index.get_level_values("group_id").astype(np.int64),
            strict=True,
        )
        return pd.Series([self.bounds[event, group] for event, group in of], index=self.index)

    def project_lambda(self, lambda_vec: pd.Series[float]) -> pd.Series[float]:
        """Leave multipliers as they are: fairlearn's shift is for bounds that are all equal."""
        return lambda_vec


def require_constraint(fairness: object) -> RateNotion:
    """Return ``fairness`` if it is a notion that can be a constraint for two classes.

    Raises
    ------
    ValueError
        If it is not.
    """
    notion = require_notion(
        fairness,
        "Say how far apart the groups may be, for example fairness=DemographicParity(margin=0.05); "
        "for no margin use NonPrivateClassifier.",
    )
    _hits(rates_of(notion, 2))
    return notion


def count_answers(
    notion: RateNotion, y: IntArray, groups: IntArray, n_groups: int, truth: float = 1.0
) -> AnsweredGroups:
    """Count people by stratum and group, or by the answer that stands for the group."""
    hits = _summed(notion, y, groups, n_groups, np.ones(len(y)))
    return AnsweredGroups(counts=hits, truth=truth)


def moment_of(notion: RateNotion, answered: AnsweredGroups) -> RateMoment:
    """Return fairlearn's constraint that keeps ``notion`` between the true groups."""
    return RateMoment(rates_of(notion, 2), answered.margins(notion))


def estimated_gap(
    notion: RateNotion,
    decisions: IntArray,
    y: IntArray,
    answers: IntArray,
    answered: AnsweredGroups,
) -> float:
    """Return the notion's gap of decisions between the true groups, as noisy answers tell it."""
    rates = rates_of(notion, 2)
    hit = _hits(rates)[rates.stratum_of(y), y, decisions]
    return answered.gap(notion, _summed(notion, y, answers, answered.n_groups, hit))


def gap_of_decisions(
    notion: RateNotion, decisions: IntArray, y: IntArray, groups: IntArray, n_groups: int
) -> float:
    """Return the notion's gap of decisions on rows whose groups are known."""
    return notion.gap(JointTally.of(groups, y, decisions, n_groups, 2).counts)


def _summed(
    notion: RateNotion, y: IntArray, groups: IntArray, n_groups: int, values: FloatArray
) -> FloatArray:
    """Sum values of rows by stratum and group, (n_strata, n_groups)."""
    rates = rates_of(notion, 2)
    strata = rates.stratum_of(y)
    counted = strata >= 0
    sums = np.zeros((int(rates.strata.max()) + 1, n_groups))
    np.add.at(sums, (strata[counted], groups[counted]), values[counted])
    return sums


def _hits(rates: Rates) -> FloatArray:
    """Return what counts, by stratum, true class and decision: one rate a stratum."""
    if len(np.unique(rates.strata)) < rates.n_rates:
        raise ValueError(
            "The notion compares two rates among the same rows, and the reduction bounds one. Of "
            "rates that add up to 1 leave one out."
        )
    return rates.hits[np.argsort(rates.strata)].astype(np.float64)
