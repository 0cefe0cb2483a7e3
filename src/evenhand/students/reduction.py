"""A student trained under the margin by fairlearn's reduction; it decides by a public lottery."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from fairlearn.reductions import DemographicParity as ParityMoment
from fairlearn.reductions import EqualizedOdds as OddsMoment
from fairlearn.reductions import ExponentiatedGradient
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from evenhand import _checks
from evenhand._display import Shown
from evenhand._stored import stored
from evenhand.learners.mixture import Mixture
from evenhand.students.constrained import DEFAULT_C
from evenhand.students.within import Within
from evenhand.typing import FloatArray, IntArray

CONSTRAINTS: Final = ("demographic_parity", "equalized_odds")
"""What the reduction bounds."""


@stored
class ReductionStudent(ClassifierMixin, Shown):  # type: ignore[misc]  # untyped base
    """A mixture of classifiers found by exponentiated gradient (Agarwal et al. 2018).

    Pass it as ``student=``; the estimator hands it the margin and the groups of the answered rows.
    For two classes.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Learns weighted labels. Default ``LogisticRegression(C=0.3)``.
    constraints : {"demographic_parity", "equalized_odds"}
        ``"equalized_odds"`` takes the released labels for the truth: with noisy labels it bounds
        the decisions given the *answers*.
    max_iter : int
        Rounds of the reduction.

    Attributes
    ----------
    mixture_ : Mixture
        The classifiers that the reduction found, each with its share of all rows.
    classes_ : ndarray, shape (2,)

    Notes
    -----
    The margin holds for the *mixture*, so a decision is a draw, which ``Mixture`` makes a function
    of the row: the same row always gets the same decision, whichever rows are asked about with it,
    and the draw is public. The bound is the
    reduction's own, met up to its tolerance on the answered rows, and given in its terms: it
    compares a group with everybody, so the margin is translated (halved for ``"pairwise"``).

    References
    ----------
    Agarwal et al. 2018, "A Reductions Approach to Fair Classification". FairPATE's PATE-S_in.
    """

    reads_margin = True

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraints: str = "demographic_parity",
        max_iter: int = 50,
    ) -> None:
        self.estimator = estimator
        self.constraints = constraints
        self.max_iter = max_iter

    def fit(self, X: FloatArray, y: IntArray, *, within: Within) -> ReductionStudent:
        """Learn class codes under the margin.

        Parameters
        ----------
        X : ndarray, shape (n, n_features)
            Answered rows.
        y : ndarray of int64, shape (n,)
            Their labels, 0 or 1.
        within : Within
            The margin, and the groups of these rows.
        """
        self.check_settings(int(y.max(initial=0)) + 1)
        moment = ParityMoment if self.constraints == CONSTRAINTS[0] else OddsMoment
        base = LogisticRegression(C=DEFAULT_C, max_iter=1000)
        if self.estimator is not None:
            base = clone(self.estimator)
        reduction = ExponentiatedGradient(
            base,
            moment(difference_bound=bound_to_everybody(within)),
            max_iter=self.max_iter,
        )
        with warnings.catch_warnings():
            # fairlearn writes to pandas objects in a way that pandas is about to drop.
            warnings.filterwarnings("ignore", module=r"fairlearn\.")
            reduction.fit(X, y, sensitive_features=within.groups)
        weights = reduction.weights_.sort_index().to_numpy()
        self.mixture_ = Mixture.of(reduction.predictors_, weights, seed=0)
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = X.shape[1]
        return self

    def check_settings(self, n_classes: int) -> None:
        """Refuse wrong settings, and more than two classes; asked before labels are paid for."""
        _checks.one_of("constraints", self.constraints, CONSTRAINTS)
        _checks.at_least("max_iter", self.max_iter, 1)
        if n_classes > 2:
            raise ValueError(
                f"The reduction is for two classes, coded 0 and 1, got codes up to "
                f"{n_classes - 1}. Leave student=None for the student with a margin for any number "
                f"of classes."
            )

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Return the probability with which each class is decided for each row, shape (n, 2)."""
        check_is_fitted(self, "mixture_")
        drawn = self.mixture_
        said = np.stack([np.asarray(one.predict(X), dtype=float) for one in drawn.members_])
        probability = np.clip(drawn.weights_ @ said, 0.0, 1.0)
        return np.stack([1.0 - probability, probability], axis=1)

    def predict(self, X: FloatArray) -> IntArray:
        """Return class 0 or 1 for each row, as the classifier says that is drawn for the row."""
        check_is_fitted(self, "mixture_")
        return self.mixture_.predict(X)


def bound_to_everybody(within: Within) -> float:
    """Return the largest difference to the overall rate that implies the margin."""
    margin = within.notion.margin
    if within.notion.reference == "overall":
        return margin
    if within.notion.reference == "pairwise":
        return margin / 2
    # P(k|z) - P(k|not z) = (P(k|z) - P(k)) n / n_(not z): the largest group binds.
    sizes = np.bincount(within.groups, minlength=within.n_groups)
    return margin * float(sizes.sum() - sizes.max()) / float(sizes.sum())
