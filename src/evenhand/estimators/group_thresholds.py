"""A released model with thresholds by group: fairness that needs the group at prediction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from evenhand._display import Shown
from evenhand._random import as_generator
from evenhand.estimators.fitted import FittedModel, columns_of
from evenhand.estimators.given_rows import checked_features, may_be_pictures
from evenhand.estimators.inputs import groups_to_decide, without_groups_of
from evenhand.estimators.margins import Cuts
from evenhand.estimators.saving import model_folder
from evenhand.estimators.scored_by_group import ScoredByGroup
from evenhand.estimators.threshold_rows import ThresholdRows, check_tightening
from evenhand.fairness import FairnessKind
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import RateNotion
from evenhand.privacy import Guarantee
from evenhand.students.thresholds import NEEDS_GROUP, GroupThresholds
from evenhand.typing import Array, ArrayLike, FloatArray, RandomState

BY_PROBABILITIES = (
    "rates among true classes are those that the model's own probabilities expect: no true class "
    "of a public row was read"
)


class GroupThresholdClassifier(ScoredByGroup, ClassifierMixin, Shown):  # type: ignore[misc]  # untyped base
    """A fitted classifier with a claim, whose decisions are taken at thresholds by group.

    Made by ``model.with_group_thresholds``. For two classes.

    Attributes
    ----------
    model_ : ModelWithClaim
        The model whose scores are cut.
    thresholds_ : GroupThresholds
    groups_ : tuple of str
        The groups that have thresholds.
    cross_fitted_ : Estimate or None
        The gap on rows that thresholds of this kind were not set on, where the notion has a
        confidence.
    margin_supported_ : float
    held_margin_ : float
        The margin that the thresholds were set to, at most that of ``fairness_``, and of more than
        two groups the least that a difference was held to: see ``tightening`` of
        ``with_group_thresholds``.
    fairness_ : RateNotion
        Kept in expectation where ``margin_source_`` says: on public rows exactly, by noisy counts
        up to noise and ranges; on other rows up to sampling error.
    margin_source_ : str
        Where it is: ``"public rows"`` for rates of decisions; for rates among true classes
        ``"calibration rows"``, public ones with labels, or ``"own probabilities"`` of the model.
        ``"noisy counts"`` and ``"expected counts"`` in place of the first and the last, where the
        model released counts of its scores, with public rows or without any.
    guarantee_ : Guarantee
        The model's, and what this step adds to it.
    ledger_ : Ledger, SavedLedger or None
        The model's: this step spends nothing.
    fairness_kind_ : FairnessKind
        ``FairnessKind.THRESHOLDS``.
    classes_ : ndarray, shape (2,)

    Privacy
    -------
    Free: reads a released model, counts that were released with it, and public rows, their groups
    and, where they are given, their labels (post-processing). Rows of the private table are not
    such rows.
    """

    model_: Any
    thresholds_: GroupThresholds
    groups_: tuple[str, ...]
    fairness_: RateNotion
    margin_source_: str
    held_margin_: float
    cross_fitted_: Estimate | None
    guarantee_: Guarantee
    fairness_kind_: FairnessKind

    def __init__(self, model: Any, fairness: RateNotion) -> None:
        self.model = model
        self.fairness = fairness

    @classmethod
    def on_public_rows(
        cls,
        model: Any,
        X_public: Any,
        sensitive_features_public: Any,
        fairness: RateNotion,
        y_public: ArrayLike | None = None,
        tightening: float = 0.0,
    ) -> GroupThresholdClassifier:
        """Set the thresholds; see ``ModelWithClaim.with_group_thresholds``."""
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"Group thresholds cut probabilities, and {type(model.student_).__name__} has no "
                f"predict_proba. Train with a student that has one."
            )
        check_tightening(tightening, fairness)
        if X_public is not None and not may_be_pictures(X_public):  # those are decoded once
            checked_features(model, X_public, reset=False, name="X_public")
        rows = ThresholdRows.of(model, X_public, sensitive_features_public, fairness, y_public)
        thresholds, held, cross_fitted = rows.thresholds(fairness, tightening)
        cuts = Cuts(
            notion=fairness,
            label=str(model.classes_[1]),
            groups=rows.names,
            thresholds=thresholds,
            cross_fitted=cross_fitted,
            source=rows.source(fairness),
            held=held,
        )
        return cls.of_cuts(model, cuts, _guarantee(model, cuts, rows.n_public))

    @property
    def fitted_(self) -> FittedModel:
        """What this model tells of itself, as one value."""
        inside: FittedModel = self.model_.fitted_
        return replace(
            inside,
            method=type(self).__name__,
            guarantee=self.guarantee_,
            groups=self.groups_,
            kind=self.fairness_kind_,
            fairness=self.fairness_,
            notion=self.fairness_.name,
            margin=float(self.fairness_.margin),
            cuts=replace(self._cuts, thresholds=self.thresholds_),
            inside=inside,
        )

    @classmethod
    def of_cuts(cls, model: Any, cuts: Cuts, guarantee: Guarantee) -> Self:
        """Put thresholds around a model, and say what is claimed of both."""
        self = cls(model, cuts.notion)
        self._cuts = cuts
        self.thresholds_, self.groups_ = cuts.thresholds, cuts.groups
        self.cross_fitted_, self.margin_source_ = cuts.cross_fitted, cuts.source
        self.held_margin_ = cuts.to
        self.guarantee_ = guarantee
        self.model_, self.fairness_, self.classes_ = model, self.fairness, model.classes_
        self.ledger_ = model.ledger_
        self.n_features_in_ = model.n_features_in_
        if columns_of(model):
            self.feature_names_in_ = model.feature_names_in_
        self.fairness_kind_ = FairnessKind.THRESHOLDS
        return self

    @property
    def choices_(self) -> tuple[str, ...]:
        """What was chosen for the model, and why."""
        choices: tuple[str, ...] = self.model_.choices_
        return choices

    @property
    def margin_supported_(self) -> float:
        """Least margin that holds on new rows at the notion's confidence; NaN without one."""
        supported = self._cuts.supported
        return float("nan") if supported is None else supported

    @property
    def needs_group_at_prediction_(self) -> bool:
        """True: ``predict`` needs the group of each row."""
        return self.fairness_kind_.needs_group

    def save(self, path: str | Path, *, sign: str | Path | None = None) -> Path:
        """Write the model, with its thresholds, to a new folder; see ``ModelWithClaim``."""
        if not hasattr(self, "thresholds_"):
            raise ValueError(
                "No thresholds are set, so there is nothing to save. Make this model by "
                "model.with_group_thresholds(X_public, sensitive_features_public, fairness=...)."
            )
        return model_folder.save(self, Path(path), sign)

    def predict(
        self, X: Any, *, sensitive_features: Any = None, random_state: RandomState = None
    ) -> Array:
        """Predict class labels; the group of every row is needed.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n, n_columns)
        sensitive_features : array-like or DataFrame, n rows
            A group without a threshold is an error.
        random_state : int, Generator or None
            Decides scores that equal a threshold, and nothing else.
        """
        groups = groups_to_decide(X, sensitive_features, self.groups_)
        scores = self.predict_proba(X)[:, 1]
        decided = self.thresholds_.decide(scores, groups.codes, as_generator(random_state))
        labels: Array = self.classes_[decided]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the model's probabilities, which the thresholds cut; they know no group."""
        out: FloatArray = np.asarray(self.model_.predict_proba(X))
        return out


def _guarantee(model: Any, cuts: Cuts, n_rows: int) -> Guarantee:
    """Return the claim with what is public of these rows, and what the thresholds go by."""
    out: Guarantee = model.guarantee_.with_warning(NEEDS_GROUP)
    if cuts.source in ("own probabilities", "expected counts"):
        out = out.with_warning(BY_PROBABILITIES)
    if not n_rows:
        return out
    labelled = cuts.source == "calibration rows"
    out = without_groups_of(out, model.rows_set_aside_, n_rows, labelled)
    what = "features, groups and labels" if labelled else "features and groups"
    said = f"the {what} of the {n_rows} public rows that set the thresholds"
    return replace(out, public=(*out.public, said))
