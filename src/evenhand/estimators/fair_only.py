"""The reference with a margin and without privacy: what fairness costs by itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from fairlearn.reductions import DemographicParity as ParityMoment
from fairlearn.reductions import ExponentiatedGradient, Moment
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.estimators.fitted import ClassifierWithClaim
from evenhand.estimators.nonprivate import WHY
from evenhand.estimators.one_model import read_for_one_model
from evenhand.fairness import DemographicParity, FairnessKind, GroupCodes, Tally
from evenhand.learners import Mixture
from evenhand.privacy import no_guarantee
from evenhand.typing import ArrayLike, FloatArray, IntArray, RandomState

_SURE: Final = 40.0  # score of a constant member: its probability is 1 to the last digit


class FairOnlyClassifier(ClassifierWithClaim):
    """Train under a margin by the reductions approach (fairlearn), with no privacy whatever.

    A reference point: same columns, encoder and interface as the private classifiers. The model
    needs no group at prediction. For two classes.

    Parameters
    ----------
    fairness : DemographicParity
        The margin that training keeps on the private rows. Needed.
    learner : scikit-learn classifier, optional
        Anything whose ``fit`` takes ``sample_weight``. Default: logistic regression.
    max_iter : int
        Rounds of the reduction, each of which fits the learner once.
    slack : float
        By how much the constraint may be missed in training, in rates (``eps`` of fairlearn).
    schema, classes, public_fraction
        As for ``DPSGDClassifier``.
    random_state : int, Generator or None
        Chooses which member of the mixture answers which row, and the rows set aside.

    Attributes
    ----------
    student_ : Mixture
        The reduction ends in a randomised classifier: a few members with weights. Each row is
        answered by one of them, chosen by a hash of the row, so that ``predict`` gives the same
        row the same answer always. ``predict_proba`` is the members' weighted mean, and
        ``predict`` is *not* its larger column where the members disagree.
    training_gap_ : float
        Gap of its decisions on the private rows. Not private.
    n_iter_ : int
        Rounds that were made.
    groups_ : tuple of str
    guarantee_, ledger_, classes_, encoder_, fairness_kind_
        As for ``NonPrivateClassifier``.

    Privacy
    -------
    None.

    References
    ----------
    Agarwal et al. 2018, "A Reductions Approach to Fair Classification", Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(900, random_state=0)
    >>> clf = FairOnlyClassifier(DemographicParity(margin=0.05), random_state=0)
    >>> clf = clf.fit(X[:700], y[:700], sensitive_features=X[:700, 0] > 0, X_public=X[700:])
    >>> print(clf.fairness_kind_)
    in the weights, no group needed
    """

    def __init__(
        self,
        fairness: DemographicParity | None = None,
        *,
        learner: Any = None,
        max_iter: int = 50,
        slack: float = 0.002,
        schema: Any = None,
        classes: ArrayLike | None = None,
        public_fraction: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.fairness = fairness
        self.learner = learner
        self.max_iter = max_iter
        self.slack = slack
        self.schema = schema
        self.classes = classes
        self.public_fraction = public_fraction
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, *, sensitive_features: Any = None, X_public: Any = None
    ) -> Self:
        """Train on the private rows, within the margin between their groups.

        Parameters
        ----------
        X, y, X_public
            As for ``DPSGDClassifier.fit``.
        sensitive_features : array-like or DataFrame, n_private rows
            Groups of the private rows. Needed.

        Raises
        ------
        ValueError
            For inputs that cannot be used; the message names the way out.
        """
        moment = self._moment()
        rng = as_generator(self.random_state)
        read = read_for_one_model(self, X, y, X_public, rng)
        if len(read.data.classes) != 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: "
                f"y has {len(read.data.classes)} classes. Use FairPATEClassifier or "
                f"DPSGDClassifier, which take any number."
            )
        if sensitive_features is None:
            raise ValueError(
                "The margin is kept between the groups of the private rows, and sensitive_features "
                "is missing. Pass it, or use NonPrivateClassifier for no margin."
            )
        groups = read.groups(sensitive_features)
        learner = LogisticRegression(max_iter=1000) if self.learner is None else self.learner
        reduction = ExponentiatedGradient(
            clone(learner), moment(groups), eps=self.slack, max_iter=self.max_iter
        )
        with warnings.catch_warnings():
            # Fairlearn 0.15 fills Series in ways that pandas 3 deprecates.
            warnings.simplefilter("ignore", DeprecationWarning)
            reduction.fit(read.X_encoded, read.data.y_private, sensitive_features=groups.codes)
        weights = reduction.weights_.sort_index().to_numpy()
        self.student_ = Mixture.of(
            [_as_linear(member, read.X_encoded.shape[1]) for member in reduction.predictors_],
            weights,
            seed=int(rng.integers(2**62)),
        )
        self.n_iter_ = int(reduction.last_iter_) + 1
        self.training_gap_ = self._gap(self.student_.predict(read.X_encoded), groups)
        self.encoder_ = read.encoder
        self.classes_ = read.data.classes
        self.groups_ = groups.names
        self.ledger_ = None
        self.fairness_kind_ = FairnessKind.WEIGHTS
        self.guarantee_ = no_guarantee(WHY)
        return self

    def _moment(self) -> Callable[[GroupCodes], Moment]:
        """Return the constraint for a table of groups."""
        _checks.at_least("max_iter", self.max_iter, 1)
        _checks.positive("slack", self.slack)
        make = MOMENTS.get(type(self.fairness))
        if make is None:
            known = ", ".join(notion.__name__ for notion in MOMENTS)
            raise ValueError(
                f"fairness must be one of {known}, got {self.fairness!r}. Say how far apart the "
                f"groups may be, for example fairness=DemographicParity(margin=0.05); for no "
                f"margin use NonPrivateClassifier."
            )
        return lambda groups: make(self.fairness, groups)

    def _gap(self, decisions: IntArray, groups: GroupCodes) -> float:
        assert self.fairness is not None
        counts = Tally.of(groups.codes, decisions, groups.n_groups, 2).counts
        return self.fairness.gap(counts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class _Parity(ParityMoment):  # type: ignore[misc]  # untyped base
    """Fairlearn's moment with a bound of its own for each group.

    Fairlearn bounds ``P(1 | z) - P(1)``. The rate of all others is farther from a group's rate by
    ``1 / (1 - share of z)``, so the margin of the ``rest`` comparison becomes a bound per group.
    """

    def __init__(self, bounds: FloatArray) -> None:
        super().__init__(difference_bound=float(bounds.max()))
        self.bounds = bounds

    def bound(self) -> pd.Series[float]:
        of = self.index.get_level_values("group_id").astype(np.int64)
        return pd.Series(self.bounds[of], index=self.index)

    def project_lambda(self, lambda_vec: pd.Series[float]) -> pd.Series[float]:
        """Leave multipliers as they are: fairlearn's shift is for bounds that are all equal."""
        return lambda_vec


def _parity(fairness: DemographicParity, groups: GroupCodes) -> Moment:
    share = np.bincount(groups.codes, minlength=groups.n_groups) / len(groups.codes)
    if fairness.reference == "overall":
        widen = np.ones(groups.n_groups)
    elif fairness.reference == "rest" or groups.n_groups == 2:
        widen = 1.0 - share
    else:
        widen = np.full(groups.n_groups, 0.5)  # two groups half a margin from everybody
    return _Parity(fairness.margin * widen)


MOMENTS: Final[Mapping[type, Callable[[Any, GroupCodes], Moment]]] = {DemographicParity: _parity}
"""The notions that can be a constraint here, each with its form in fairlearn."""


def _as_linear(member: Any, n_features: int) -> Any:
    """Return a constant, with which the reduction stands in for one class, as a linear model."""
    if not isinstance(member, DummyClassifier):
        return member
    linear = LogisticRegression()
    linear.coef_ = np.zeros((1, n_features))
    linear.intercept_ = np.array([_SURE if member.constant == 1 else -_SURE])
    linear.classes_, linear.n_features_in_ = np.array([0, 1]), n_features
    return linear
