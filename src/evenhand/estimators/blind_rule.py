"""Decisions within a margin that never read the group, around any probabilistic classifier."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from evenhand import _checks
from evenhand._display import Shown
from evenhand._frames import as_pandas, refuse_other_order
from evenhand.datasets import PublicEncoder
from evenhand.estimators.fitted import FittedModel, columns_of
from evenhand.estimators.inputs import without_groups_of
from evenhand.estimators.margins import StudentMargin
from evenhand.estimators.rows_after import PublicRows, read_public_rows
from evenhand.fairness import FairnessKind
from evenhand.fairness.notion import RateNotion
from evenhand.students.blind_rule import BlindFit, BlindRule
from evenhand.students.confident import confident_rule, warn_of
from evenhand.students.constrained import MarginNotMet
from evenhand.students.inferred_groups import GroupModel, Recalibrated, SoftmaxRegression
from evenhand.students.score_counts import NO_COUNTS
from evenhand.students.within import SOURCES
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray


def set_rule(
    scores: Any,
    rows: PublicRows,
    fairness: RateNotion,
    n_classes: int,
    *,
    groups: GroupModel | None = None,
    randomised: bool = False,
) -> tuple[BlindRule, StudentMargin]:
    """Return the best rule around ``scores`` within a margin, and how it stands to it.

    Parameters
    ----------
    scores : fitted classifier
        On class codes; reads encoded rows.
    rows : PublicRows
    fairness : RateNotion
        With ``confidence`` the rule is chosen by rows that it was not set on.
    n_classes : int
    groups : function, optional
        Fits the model of the groups. Default: a softmax regression, whose ridge is chosen.
    randomised : bool
        Whether several rules may share the rows.
    """
    within = rows.within(fairness)
    if rows.labels is not None:
        scores = Recalibrated.if_better(
            scores, rows.X, rows.labels, n_classes, decides=not fairness.needs_labels
        )
    cross_fitted = None
    if fairness.confidence is None:
        groups = SoftmaxRegression.chosen(rows.X, within, n_classes) if groups is None else groups
        rule = BlindFit.of(scores, rows.X, within, n_classes, groups=groups).rule(
            randomised=randomised
        )
    else:
        p = scores.predict_proba(rows.X)

        def error(decided: IntArray) -> float:
            if rows.labels is not None:
                return float((decided != rows.labels).mean())
            return float(1.0 - p[np.arange(len(p)), decided].mean())

        rule, chosen, _ = confident_rule(
            scores, rows.X, within, n_classes, error=error, groups=groups, randomised=randomised
        )
        cross_fitted = chosen.gap
    gap = within.gap(rule.predict(rows.X), n_classes)
    if cross_fitted is not None:
        warn_of(within, gap, chosen)
    elif gap > fairness.margin and not rule.randomised:
        warnings.warn(
            f"No rule within the margin of {fairness.margin:g} was found "
            f"{SOURCES[within.source]}; the gap of the best one there is {gap:.4f}, and it is "
            f"kept. Widen the margin, give more public rows, or allow randomised=True.",
            MarginNotMet,
            stacklevel=4,
        )
    return rule, StudentMargin(
        notion=fairness,
        gap=gap,
        met=gap <= fairness.margin,
        source=within.source,
        groups=rows.groups.names,
        cross_fitted=cross_fitted,
    )


def ruled(
    model: Any,
    X_public: Any,
    sensitive_features_public: Any,
    fairness: RateNotion,
    *,
    y_public: ArrayLike | None,
    groups: Any,
    randomised: bool,
) -> Any:
    """Return a copy of a classifier with a claim; see ``ModelWithClaim.with_blind_rule``."""
    if model.fairness_kind_.needs_group:
        raise ValueError(
            f"{type(model).__name__} decides by the group already, and a blind rule is for models "
            f"that do not. Put it around the model without it."
        )
    # The rule takes the place of a margin: around it, rates would be moved twice.
    free = model.student_without_margin_
    scores = model.student_ if free is None else free
    _require_probabilities(scores, model.classes_)
    if X_public is None:
        raise ValueError("A blind rule is set on public rows, and X_public is missing. Pass them.")
    refuse_other_order(
        X_public=X_public, y_public=y_public, sensitive_features_public=sensitive_features_public
    )
    rows = read_public_rows(
        model._encode(X_public, "X_public"),
        sensitive_features_public,
        y_public,
        fairness,
        model.classes_,
    )
    out = model._copied()
    put_around(out, scores, rows, fairness, groups=_fits(groups), randomised=randomised)
    out._fitted = out._describe()
    return out


def put_around(
    model: Any,
    scores: Any,
    rows: PublicRows,
    fairness: RateNotion,
    *,
    groups: GroupModel | None = None,
    randomised: bool = False,
) -> None:
    """Make the best rule around ``scores`` the student of a model, and say so in its claim."""
    model.student_, model.student_margin_ = set_rule(
        scores, rows, fairness, len(model.classes_), groups=groups, randomised=randomised
    )
    model.student_without_margin_ = scores
    model.score_counts_ = NO_COUNTS  # they are of the scores without the rule
    if model.groups_ is None:
        model.groups_ = rows.groups.names
    model.fairness_kind_ = FairnessKind.BLIND_RULE
    claim = without_groups_of(
        model.guarantee_, model.rows_set_aside_, len(rows.X), rows.labels is not None
    )
    model.guarantee_ = replace(claim, public=(*claim.public, rows.said))


class BlindRuleClassifier(ClassifierMixin, Shown):  # type: ignore[misc]  # untyped base
    """Any fitted probabilistic classifier, with the best decisions that keep a margin blindly.

    Among all decisions that do not read the group, these have the least expected error within the
    margin, as the model's probabilities and a model of the groups see it: each row gets the class
    with the largest probability, after what the groups that the row may be of pay for it. The
    prices are the solution of a linear program over public rows.

    Parameters
    ----------
    model : fitted classifier
        With ``predict_proba``: of this package, of scikit-learn, or any other that has
        ``classes_``. It is not fitted again.
    fairness : RateNotion
        The margin. One about true classes needs ``y``. With ``confidence`` the rule is chosen by
        rows that it was not set on, and ``margin_supported_`` is the least margin they support.
    groups : unfitted classifier, optional
        Infers the group from the encoded features and, around a model of others, its
        probabilities. Default: a softmax regression, whose ridge is
        chosen by rows that were held out.
    randomised : bool
        Whether several rules may share the rows, by a function of the row alone. This keeps
        margins that one rule cannot, where few scores occur.

    Attributes
    ----------
    rule_ : BlindRule
    classes_ : ndarray, shape (n_classes,)
    groups_ : tuple of str
    student_margin_ : StudentMargin
        How the rule stands to the margin on the public rows.
    margin_supported_ : float
        Least margin that holds on new rows at the notion's confidence; NaN without one.
    fairness_kind_ : FairnessKind
        ``FairnessKind.BLIND_RULE``: no prediction needs the group.
    guarantee_ : Guarantee
        The model's, and what this step adds to it; of a model of others, none.

    Privacy
    -------
    Free: reads a released model, and public rows, their groups and, where they are given, their
    labels (post-processing). Rows of the private table are not such rows: a rule that is set on
    them is a release of its own, for which this class has no mechanism.

    References
    ----------
    Xian and Zhao 2024, "A Unified Post-Processing Framework for Group Fairness in Classification"
    (LinearPost); Ghoukasian and Asoodeh 2024. The program and its dual stand in
    ``evenhand.students.blind_rule``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from evenhand.fairness import DemographicParity
    >>> rng = np.random.default_rng(0)
    >>> X, group = rng.normal(size=(2000, 3)), np.where(rng.random(2000) < 0.5, "a", "b")
    >>> X[:, 0] += group == "a"
    >>> y = (X[:, 0] + X[:, 1] + rng.normal(size=2000) > 0.5).astype(int)
    >>> model = LogisticRegression().fit(X[:1000], y[:1000])
    >>> fair = BlindRuleClassifier(model, DemographicParity(margin=0.05))
    >>> fair = fair.fit(X[1000:], sensitive_features=group[1000:])
    >>> fair.student_margin_.met, fair.needs_group_at_prediction_
    (True, False)
    """

    def __init__(
        self, model: Any, fairness: RateNotion, *, groups: Any = None, randomised: bool = False
    ) -> None:
        self.model = model
        self.fairness = fairness
        self.groups = groups
        self.randomised = randomised

    def fit(
        self, X: Any, y: ArrayLike | None = None, *, sensitive_features: Any = None
    ) -> BlindRuleClassifier:
        """Set the rule on public rows.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n, n_columns)
            Public rows, as the model reads them. Not those that a model was fitted on without
            privacy, of which it is too sure.
        y : array-like, shape (n,), optional
            Their true classes, also public. Needed by notions about true classes; for others they
            recalibrate the model's probabilities, where held-out rows say that this helps.
        sensitive_features : array-like or DataFrame, n rows
            Their groups, also public.
        """
        refuse_other_order(X=X, y=y, sensitive_features=sensitive_features)
        _checks.flag("randomised", self.randomised)
        self.model_ = None
        if hasattr(type(self.model), "with_blind_rule"):
            self.model_ = self.model.with_blind_rule(
                X,
                sensitive_features,
                fairness=self.fairness,
                y_public=y,
                groups=self.groups,
                randomised=self.randomised,
            )
            self.rule_, self.student_margin_ = self.model_.student_, self.model_.student_margin_
            self.encoder_, self.guarantee_ = self.model_.encoder_, self.model_.guarantee_
            self.classes_ = self.model_.classes_
        else:
            self._fit_around(X, y, sensitive_features)
        self.groups_ = self.student_margin_.groups
        self.n_features_in_ = FittedModel.of(self.model).n_columns or int(np.shape(X)[1])
        if columns_of(self.model):
            self.feature_names_in_ = self.model.feature_names_in_
        self.fairness_kind_ = FairnessKind.BLIND_RULE
        return self

    def _fit_around(self, X: Any, y: ArrayLike | None, sensitive_features: Any) -> None:
        """Set the rule around a model of others, whose rows an encoder of public rows reads."""
        check_is_fitted(self.model)
        self.classes_ = np.asarray(self.model.classes_)
        _require_probabilities(self.model, self.classes_)
        self.guarantee_ = FittedModel.of(self.model).guarantee
        table = as_pandas(X)
        self.encoder_ = PublicEncoder().fit(table)
        self._scored = scored = _Scored(self.model, len(self.classes_))
        rows = read_public_rows(
            scored.joined(X, self.encoder_.transform(table)),
            sensitive_features,
            y,
            self.fairness,
            self.classes_,
            name="y",
        )
        self.rule_, self.student_margin_ = set_rule(
            scored,
            rows,
            self.fairness,
            len(self.classes_),
            groups=_fits(self.groups),
            randomised=self.randomised,
        )

    @property
    def needs_group_at_prediction_(self) -> bool:
        """False: ``predict`` reads no group."""
        return self.fairness_kind_.needs_group

    @property
    def margin_supported_(self) -> float:
        """Least margin that holds on new rows at the notion's confidence; NaN without one."""
        supported = self.student_margin_.supported
        return float("nan") if supported is None else supported

    @property
    def fitted_(self) -> FittedModel:
        """What this model tells of itself, as one value."""
        check_is_fitted(self, "rule_")
        if self.model_ is not None:
            inside: FittedModel = self.model_.fitted_
            return inside
        return replace(
            FittedModel.of(self.model),
            method=type(self).__name__,
            classes=self.classes_,
            groups=self.groups_,
            kind=self.fairness_kind_,
            fairness=self.fairness,
            notion=self.fairness.name,
            margin=float(self.fairness.margin),
            student_margin=self.student_margin_,
            student=self.rule_,
        )

    def predict(self, X: Any) -> Array:
        """Predict class labels; no group is read."""
        labels: Array = self.classes_[self.rule_.predict(self._encoded(X))]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities that put the class that is decided first; see ``BlindRule``."""
        out: FloatArray = self.rule_.predict_proba(self._encoded(X))
        return out

    def save(self, path: str | Path, *, sign: str | Path | None = None) -> Path:
        """Write the model and its rule to a new folder, where the model is one of this package."""
        check_is_fitted(self, "rule_")
        if self.model_ is None:
            raise ValueError(
                f"A model folder holds a claim, and {type(self.model).__name__} has none. Keep "
                f"this object as scikit-learn's are kept (skops), or put the rule around a "
                f"classifier of evenhand: model.with_blind_rule(...).save(path)."
            )
        out: Path = self.model_.save(path, sign=sign)
        return out

    def _encoded(self, X: Any) -> FloatArray:
        check_is_fitted(self, "rule_")
        if self.model_ is not None:
            encoded: FloatArray = self.model_._encode(X)
            return encoded
        table = as_pandas(X)
        return self._scored.joined(X, self.encoder_.transform(table))


class _Scored:
    """A model of others, as one that reads its own probabilities in the first columns of rows.

    So rows are numbers throughout, whatever the model reads.
    """

    def __init__(self, model: Any, n_classes: int) -> None:
        self.model, self.n_classes = model, n_classes
        self.classes_ = np.arange(n_classes)

    def joined(self, X: Any, encoded: FloatArray) -> FloatArray:
        """Return rows: the probabilities of the classes, then the encoded features."""
        p = np.asarray(self.model.predict_proba(X), dtype=np.float64)
        if p.shape != (len(encoded), self.n_classes) or not np.isfinite(p).all():
            raise ValueError(
                f"predict_proba of {type(self.model).__name__} gave shape {p.shape} for "
                f"{len(encoded)} rows and {self.n_classes} classes, or numbers that are not finite."
            )
        return np.concatenate([p, encoded], axis=1)

    def predict_proba(self, rows: FloatArray) -> FloatArray:
        """Return the first columns."""
        return rows[:, : self.n_classes]


def _fits(groups: Any) -> GroupModel | None:
    """Return how the model of the groups is fitted, by a scikit-learn classifier."""
    if groups is None:
        return None
    if not (hasattr(groups, "fit") and hasattr(groups, "predict_proba")):
        raise TypeError(
            f"groups must be an unfitted classifier with predict_proba, or None, got {groups!r}."
        )
    return lambda rows, codes: clone(groups).fit(rows, codes)


def _require_probabilities(model: Any, classes: Array) -> None:
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"A blind rule moves probabilities, and {type(model).__name__} has no predict_proba. "
            f"Train with a model that has one."
        )
    if len(classes) < 2:
        raise ValueError(f"A blind rule chooses between classes, and the model has {len(classes)}.")
