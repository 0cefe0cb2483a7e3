"""The reference with a margin and without privacy: what fairness costs by itself."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

import numpy as np
from fairlearn.reductions import ExponentiatedGradient
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from evenhand import _checks
from evenhand._notions import OF_DECISIONS
from evenhand._random import as_generator
from evenhand.baselines.fairlearn_moments import (
    count_answers,
    gap_of_decisions,
    moment_of,
    require_constraint,
)
from evenhand.baselines.non_private import WHY
from evenhand.estimators.classifier import ClassifierWithClaim
from evenhand.estimators.encoded_inputs import read_encoded
from evenhand.estimators.inputs import FitArguments
from evenhand.estimators.spec import PUBLIC_ROWS, MethodSpec, registered
from evenhand.fairness import FairnessKind
from evenhand.fairness.notion import RateNotion
from evenhand.learners.mixture import Mixture
from evenhand.privacy.guarantee import no_guarantee
from evenhand.students.constrained import linear_model
from evenhand.typing import FloatArray, IntArray

_FEW: Final = 400  # columns up to which a Hessian is cheap; a fit is then several times faster
_SURE: Final = 40.0  # score of a constant member: its probability is 1 to the last digit


@registered(
    MethodSpec(
        name="fair-only",
        words="One model within a margin on the private rows: a reference without privacy.",
        reads=(*PUBLIC_ROWS, "group_thresholds", "margin", "reference"),
        needs=("margin",),
        notions=OF_DECISIONS,
        kind=FairnessKind.WEIGHTS,
        private_groups=True,
    )
)
@dataclass(eq=False, repr=False)
class FairOnlyClassifier(ClassifierWithClaim):
    """Train under a margin by the reductions approach (fairlearn), with no privacy whatever.

    A reference point: same columns, encoder and interface as the private classifiers. The model
    needs no group at prediction. For two classes.

    Parameters
    ----------
    fairness : RateNotion
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
        Gap of its decisions on the private rows, of the notion in ``fairness``. Not private.
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
    >>> from evenhand import DemographicParity
    >>> clf = FairOnlyClassifier(DemographicParity(margin=0.05), random_state=0)
    >>> clf = clf.fit(X[:700], y[:700], sensitive_features=X[:700, 0] > 0, X_public=X[700:])
    >>> print(clf.fairness_kind_)
    in the weights, no group needed
    """

    NUMBERS = ("training_gap_",)
    _two_classes = True

    fairness: RateNotion | None = None
    _: KW_ONLY
    learner: Any = None
    max_iter: int = 50
    slack: float = 0.002
    public_fraction: float | None = None

    def _learn(self, given: FitArguments) -> None:
        notion = self._notion()
        rng = as_generator(self.random_state)
        read = read_encoded(self, given, rng)
        if len(read.data.classes) != 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: "
                f"y has {len(read.data.classes)} classes. Use FairSharesClassifier or "
                f"DPSGDClassifier, which take any number."
            )
        if given.sensitive_features is None:
            raise ValueError(
                "The margin is kept between the groups of the private rows, and sensitive_features "
                "is missing. Pass it, or use NonPrivateClassifier for no margin."
            )
        groups = read.groups(given.sensitive_features)
        y, answered = read.data.y_private, groups.codes
        reduced = reduce_within(
            self.learner,
            read.X_encoded,
            y,
            answered,
            moment_of(notion, count_answers(notion, y, answered, groups.n_groups)),
            slack=self.slack,
            max_iter=self.max_iter,
            seed=int(rng.integers(2**62)),
        )
        self.student_, self.n_iter_ = reduced
        decided = self.student_.predict(read.X_encoded)
        self.training_gap_ = gap_of_decisions(notion, decided, y, answered, groups.n_groups)
        self.encoder_ = read.encoder
        self.classes_ = read.data.classes
        self.groups_ = groups.names
        self.ledger_ = None
        self.fairness_kind_ = FairnessKind.WEIGHTS
        self.guarantee_ = no_guarantee(WHY, public=read.data.made_by)

    def _notion(self) -> RateNotion:
        _checks.at_least("max_iter", self.max_iter, 1)
        _checks.positive("slack", self.slack)
        return require_constraint(self.fairness)


def reduce_within(
    learner: Any,
    X: FloatArray,
    y: IntArray,
    groups: IntArray,
    moment: Any,
    *,
    slack: float,
    max_iter: int,
    seed: int,
) -> tuple[Mixture, int]:
    """Run the reduction; return the mixture of its members, and the rounds that it took."""
    reduction = ExponentiatedGradient(
        _logistic(X.shape[1]) if learner is None else clone(learner),
        moment,
        eps=slack,
        max_iter=max_iter,
    )
    with warnings.catch_warnings():
        # Fairlearn 0.15 fills Series in ways that pandas 3 deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        reduction.fit(X, y, sensitive_features=groups)
    members = [_as_linear(member, X.shape[1]) for member in reduction.predictors_]
    weights = reduction.weights_.sort_index().to_numpy()
    return Mixture.of(members, weights, seed=seed), int(reduction.last_iter_) + 1


def _logistic(n_features: int) -> LogisticRegression:
    """Return logistic regression with the solver that suits many rows of so many columns."""
    solver = "newton-cholesky" if n_features <= _FEW else "lbfgs"
    return LogisticRegression(max_iter=1000, solver=solver)


def _as_linear(member: Any, n_features: int) -> Any:
    """Return a constant, with which the reduction stands in for one class, as a linear model."""
    if not isinstance(member, DummyClassifier):
        return member
    sure = np.array([_SURE if member.constant == 1 else -_SURE])
    return linear_model(np.zeros((1, n_features)), sure, np.array([0, 1]))
