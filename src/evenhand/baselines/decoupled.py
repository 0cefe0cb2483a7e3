"""Ghoukasian and Asoodeh 2024: a private model for each group, whose rates meet halfway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand.baselines.post_processing import DPPostProcessingClassifier
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.inputs import FitInputs
from evenhand.estimators.spec import BUDGET, PUBLIC_ROWS, MethodSpec, registered
from evenhand.fairness import DemographicParity, FairnessKind
from evenhand.fairness.groups import GroupCodes
from evenhand.fairness.notion import RateNotion
from evenhand.students.derived import DerivedRule
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray

EXACT: Final = DemographicParity(margin=0.0, reference="pairwise")


@registered(
    MethodSpec(
        name="dp-decoupled",
        words="A private model that reads the group; by a noisy table, rates meet halfway.",
        reads=(*BUDGET, *PUBLIC_ROWS, "margin"),
        needs=("epsilon", "margin"),
        notions=("demographic-parity",),
        kind=FairnessKind.DERIVED,
        reference="pairwise",
        private_groups=True,
    )
)
@dataclass(eq=False, repr=False)
class DPDecoupledClassifier(DPPostProcessingClassifier):
    """Train privately with the group as a feature, and move the rates of all groups halfway.

    Three steps: logistic regression by DP-SGD that reads the group beside the features, so that
    each group has a threshold of its own; a noisy table of group, true label and decision; in each
    group just so many decisions are changed, at random, that the rates of acceptance meet in the
    middle between the highest and the lowest. For two classes.

    Parameters
    ----------
    fairness : DemographicParity
        How far apart the rates may stay, pairwise. Default, and in the paper: a margin of 0.
    budget, slack, table_budget, clip_norm, n_steps, batch_size, learning_rate, n_records
        As for ``DPPostProcessingClassifier``.
    schema, classes, public_fraction, noise, random_state
        As for ``DPPostProcessingClassifier``.

    Attributes
    ----------
    group_shifts_ : ndarray, shape (n_groups,)
        What the group of a row adds to its score.
    rule_, table_, table_gap_, noise_bound_, guarantee_, ledger_, mechanism_, groups_, classes_
        As for ``DPPostProcessingClassifier``; ``student_`` is the model without the group's part.

    Privacy
    -------
    Neighbors, sensitivity and cost are those of ``DPPostProcessingClassifier``: the group is one
    more part of a record, within the same clipping norm.

    Notes
    -----
    *Of the paper*: the rule of Algorithm 2 for two groups, at margin 0, and its experiments' model,
    one logistic regression with the group as a feature. *Different here*: the paper adds Laplace
    noise to each rate, scaled by the size of its group, which is thereby taken as public; here
    the counts are noisy, and nothing is. The paper counts on a third of the records that it does
    not train on; here all of them train and are counted, by basic composition. A margin above 0
    and more than two groups are ours.

    References
    ----------
    Ghoukasian and Asoodeh 2024, "Differentially Private Fair Binary Classifications", ISIT,
    Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import Budget
    >>> X, y = make_classification(3000, random_state=0)
    >>> group = np.where(X[:, 0] > 0, "a", "b")
    >>> clf = DPDecoupledClassifier(Budget(epsilon=2.0, delta=1e-6), n_steps=200, batch_size=256)
    >>> clf = clf.fit(X[:2500], y[:2500], sensitive_features=group[:2500], X_public=X[2500:])
    >>> clf.guarantee_.epsilon, round(clf.table_gap_, 9)
    (2.0, 0.0)
    """

    NUMBERS: ClassVar[tuple[str, ...]] = ("group_shifts_",)

    _reads_group: ClassVar[bool] = True
    _default: ClassVar[RateNotion] = EXACT

    def _checked_parts(self) -> float:
        if not isinstance(self.notion, DemographicParity):
            raise ValueError(
                f"Rates of acceptance meet halfway: fairness must be a DemographicParity, got "
                f"{self.fairness!r}. Use DPPostProcessingClassifier for other notions."
            )
        return super()._checked_parts()

    def _counted_groups(self, sensitive_features: object, data: FitInputs) -> GroupCodes:
        if data.n_classes != 2:
            raise ValueError(
                f"Rates meet halfway for two classes, got {data.n_classes}: "
                f"{data.classes.tolist()}. Use DPPostProcessingClassifier."
            )
        return super()._counted_groups(sensitive_features, data)

    def _take_group_weights(self, weights: FloatArray) -> None:
        self.group_shifts_: FloatArray = weights[:, 0].copy()

    def _own_decisions(self, encoded: Array, groups: GroupCodes) -> IntArray:
        scores = self.student_.decision_function(encoded) + self.group_shifts_[groups.codes]
        decided: IntArray = (scores > 0).astype(np.int64)
        return decided

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        if self.group_shifts_.shape != (len(self.groups_ or ()),):
            raise ValueError("the shifts of the score are not one for each group.")

    def _rule_within(self, fairness: RateNotion) -> DerivedRule:
        return halfway(self.table_, fairness.margin)


def halfway(table: ArrayLike, margin: float) -> DerivedRule:
    """Return the rule that moves each group's rate of class 1 towards the middle of all.

    Parameters
    ----------
    table : array-like, shape (n_groups, 2, 2)
        Records by group, true label and the model's decision. May be noisy: a cell below 0 counts
        as 0, and of a group without records every second one counts as accepted.
    margin : float
        How far apart the rates may stay, in [0, 1].

    Returns
    -------
    DerivedRule
        A rate above its aim is lowered by taking acceptances back at random, one below is raised by
        accepting at random.

    Examples
    --------
    >>> rule = halfway([[[50, 0], [0, 50]], [[90, 0], [0, 10]]], margin=0.0)
    >>> rule.probabilities[:, :, 1].round(3).tolist()
    [[0.0, 0.6], [0.222, 1.0]]
    """
    decided = np.maximum(np.asarray(table, dtype=np.float64), 0.0).sum(axis=1)
    totals = decided.sum(axis=1)
    rates = np.where(totals > 0, decided[:, 1] / np.maximum(totals, 1e-300), 0.5)
    middle = (rates.max() + rates.min()) / 2
    half = _checks.closed_unit("margin", margin) / 2
    aims = np.clip(rates, middle - half, middle + half)
    accepted = np.zeros((len(rates), 2))  # probability of class 1, by the model's own decision
    falls, rises = aims < rates, aims > rates
    accepted[:, 1] = np.where(falls, aims / np.where(falls, rates, 1.0), 1.0)
    accepted[:, 0] = np.where(rises, (aims - rates) / np.where(rises, 1.0 - rates, 1.0), 0.0)
    return DerivedRule(probabilities=np.stack([1.0 - accepted, accepted], axis=2))
