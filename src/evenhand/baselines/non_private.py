"""The reference without privacy and without a margin: what the same features allow."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from evenhand._random import as_generator
from evenhand.estimators.classifier import ClassifierWithClaim
from evenhand.estimators.encoded_inputs import read_encoded
from evenhand.estimators.inputs import FitArguments
from evenhand.estimators.spec import PUBLIC_ROWS, MethodSpec, registered
from evenhand.fairness import FairnessKind
from evenhand.fairness.groups import encode_groups
from evenhand.privacy.guarantee import no_guarantee

WHY: Final = "the model was trained on the private rows themselves, without noise"


@registered(
    MethodSpec(
        name="non-private",
        words="One model on the private rows: a reference that promises nothing.",
        reads=(*PUBLIC_ROWS, "group_thresholds"),
    )
)
@dataclass(eq=False, repr=False)
class NonPrivateClassifier(ClassifierWithClaim):
    """Train any scikit-learn classifier on the private rows, with no guarantee whatever.

    A reference point: same columns, same encoder fitted on public knowledge, same interface as the
    private classifiers. What it scores is what privacy and fairness are paid from.

    Parameters
    ----------
    learner : scikit-learn classifier, optional
        Cloned and fitted on class codes. Default: logistic regression.
    schema, classes, public_fraction
        As for ``DPSGDClassifier``.
    random_state : int, Generator or None
        Chooses the rows that ``public_fraction`` sets aside. A learner has a seed of its own.

    Attributes
    ----------
    guarantee_ : Guarantee
        Starts with NOT PRIVATE.
    ledger_ : None
        There is nothing to spend.
    groups_ : tuple of str or None
    classes_, student_, encoder_, fairness_kind_

    Privacy
    -------
    None. The weights, and every prediction, may tell about single private records.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(600, random_state=0)
    >>> clf = NonPrivateClassifier().fit(X[:400], y[:400], X_public=X[400:])
    >>> str(clf.guarantee_).partition(":")[0], clf.guarantee_.epsilon
    ('NOT PRIVATE', inf)
    """

    learner: Any = None
    _: KW_ONLY
    public_fraction: float | None = None

    def _learn(self, given: FitArguments) -> None:
        read = read_encoded(self, given, as_generator(self.random_state))
        groups = given.sensitive_features
        named = None if groups is None else encode_groups(groups).names
        learner = LogisticRegression(max_iter=1000) if self.learner is None else self.learner
        self.student_ = clone(learner).fit(read.X_encoded, read.data.y_private)
        self.encoder_ = read.encoder
        self.classes_ = read.data.classes
        self.groups_ = named
        self.ledger_ = None
        self.fairness_kind_ = FairnessKind.NONE
        self.guarantee_ = no_guarantee(WHY, public=read.data.made_by)
