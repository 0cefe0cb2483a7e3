"""A released model with one threshold per group: fairness that needs the group at prediction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from evenhand._display import Shown
from evenhand._random import as_generator
from evenhand.estimators.fitted import FittedModel, columns_of
from evenhand.estimators.margins import Cuts
from evenhand.estimators.saving import model_folder
from evenhand.fairness import DemographicParity, FairnessKind, gap_of
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.tally import Tally
from evenhand.privacy import Guarantee
from evenhand.students.confident import (
    Candidate,
    check_confidence,
    choose,
    targets_of,
    warn_of,
)
from evenhand.students.inferred_groups import folds
from evenhand.students.thresholds import NEEDS_GROUP, GroupThresholds
from evenhand.students.within import Within
from evenhand.typing import Array, FloatArray, RandomState


class GroupThresholdClassifier(ClassifierMixin, Shown):  # type: ignore[misc]  # untyped base
    """A fitted classifier with a claim, whose decisions are taken at one threshold per group.

    Made by ``model.with_group_thresholds``. For two classes.

    Attributes
    ----------
    model_ : ClassifierWithClaim
        The model whose scores are cut.
    thresholds_ : GroupThresholds
    groups_ : tuple of str
        The groups that have a threshold.
    cross_fitted_ : Estimate or None
        The gap on rows that thresholds of this kind were not set on, where the notion has a
        confidence.
    margin_supported_ : float
    fairness_ : DemographicParity
        Kept on the public rows, in expectation; on other rows up to sampling error.
    guarantee_ : Guarantee
        The model's, and what this step adds to it.
    ledger_ : Ledger, SavedLedger or None
        The model's: this step spends nothing.
    fairness_kind_ : FairnessKind
        ``FairnessKind.THRESHOLDS``.
    classes_ : ndarray, shape (2,)

    Privacy
    -------
    Free: reads a released model and public rows (post-processing).
    """

    model_: Any
    thresholds_: GroupThresholds
    groups_: tuple[str, ...]
    fairness_: DemographicParity
    cross_fitted_: Estimate | None
    guarantee_: Guarantee
    fairness_kind_: FairnessKind

    def __init__(self, model: Any, fairness: DemographicParity) -> None:
        self.model = model
        self.fairness = fairness

    @classmethod
    def on_public_rows(
        cls,
        model: Any,
        X_public: Any,
        sensitive_features_public: Any,
        fairness: DemographicParity,
    ) -> GroupThresholdClassifier:
        """Set the thresholds; see ``ClassifierWithClaim.with_group_thresholds``."""
        if not isinstance(fairness, DemographicParity):
            raise ValueError(
                f"fairness must be a DemographicParity, got {fairness!r}. Say how far apart the "
                f"groups may be, for example fairness=DemographicParity(margin=0.05)."
            )
        if len(model.classes_) != 2:
            raise ValueError(
                f"Group thresholds are for two classes, and the model has {len(model.classes_)}. "
                f"Use a margin in training instead: FairSharesClassifier, or DPSGDClassifier with "
                f"fairness=."
            )
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"Group thresholds cut probabilities, and {type(model.student_).__name__} has no "
                f"predict_proba. Train with a student that has one."
            )
        groups = encode_groups(sensitive_features_public)
        scores, cross_fitted = model.predict_proba(X_public)[:, 1], None
        if fairness.confidence is None:
            thresholds = GroupThresholds.fit(
                scores, groups.codes, fairness=fairness, n_groups=groups.n_groups
            )
        else:
            thresholds, cross_fitted = confident_thresholds(scores, groups, fairness)
        cuts = Cuts(
            notion=fairness,
            label=str(model.classes_[1]),
            groups=groups.names,
            thresholds=thresholds,
            cross_fitted=cross_fitted,
        )
        return cls.of_cuts(model, cuts, _with_groups(model.guarantee_, len(groups)))

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
            cuts=Cuts(
                notion=self.fairness_,
                label=inside.class_names[1],
                groups=self.groups_,
                thresholds=self.thresholds_,
                cross_fitted=self.cross_fitted_,
            ),
            inside=inside,
        )

    @classmethod
    def of_cuts(cls, model: Any, cuts: Cuts, guarantee: Guarantee) -> Self:
        """Put thresholds around a model, and say what is claimed of both."""
        self = cls(model, cuts.notion)
        self.thresholds_, self.groups_ = cuts.thresholds, cuts.groups
        self.cross_fitted_ = cuts.cross_fitted
        self.guarantee_ = guarantee
        self.model_, self.fairness_, self.classes_ = model, self.fairness, model.classes_
        self.ledger_ = model.ledger_
        self.n_features_in_ = model.n_features_in_
        if columns_of(model):
            self.feature_names_in_ = model.feature_names_in_
        self.fairness_kind_ = FairnessKind.THRESHOLDS
        return self

    @property
    def margin_supported_(self) -> float:
        """Least margin that holds on new rows at the notion's confidence; NaN without one."""
        found = self.cross_fitted_
        return float("nan") if found is None else max(self.fairness_.margin, found.high)

    @property
    def needs_group_at_prediction_(self) -> bool:
        """True: ``predict`` needs the group of each row."""
        return self.fairness_kind_.needs_group

    def save(self, path: str | Path, *, sign: str | Path | None = None) -> Path:
        """Write the model, with its thresholds, to a new folder; see ``ClassifierWithClaim``."""
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
        if sensitive_features is None:
            raise ValueError(
                "This model needs the group of each row at prediction: pass sensitive_features=. "
                "For a model that needs none use a margin in training."
            )
        groups = encode_groups(sensitive_features, names=self.groups_)
        scores = self.predict_proba(X)[:, 1]
        decided = self.thresholds_.decide(scores, groups.codes, as_generator(random_state))
        labels: Array = self.classes_[decided]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the model's probabilities, which the thresholds cut; they know no group."""
        out: FloatArray = np.asarray(self.model_.predict_proba(X))
        return out


def confident_thresholds(
    scores: FloatArray, groups: GroupCodes, fairness: DemographicParity
) -> tuple[GroupThresholds, Estimate]:
    """Return thresholds that are chosen by rows they were not set on; see ``fit_confident``.

    Each part of the rows is decided by thresholds that were set on the others, for shares of the
    margin; of those whose upper limit is within the margin, that with the least expected error.
    """
    codes, n_groups = groups.codes, groups.n_groups
    within = Within(notion=fairness, groups=codes, n_groups=n_groups)
    check_confidence(within, groups.names)
    assert fairness.confidence is not None
    targets, rng = targets_of(within, np.ones(n_groups, dtype=bool)), as_generator(0)
    decided = np.zeros((len(targets), len(scores)), dtype=np.int64)
    held = [replace(fairness, margin=t * fairness.margin, confidence=None) for t in targets]
    for others, out in folds(codes):
        for i, notion in enumerate(held):
            rule = GroupThresholds.fit(
                scores[others], codes[others], fairness=notion, n_groups=n_groups
            )
            decided[i, out] = rule.decide(scores[out], codes[out], rng)
    candidates = [
        Candidate(
            target=target,
            gap=gap_of(fairness, Tally.of(codes, own, n_groups, 2), level=fairness.confidence),
            error=float(np.where(own == 1, 1.0 - scores, scores).mean()),
        )
        for target, own in zip(targets, decided, strict=True)
    ]
    chosen = choose(candidates, fairness.margin)
    rule = GroupThresholds.fit(
        scores, codes, fairness=held[targets.index(chosen.target)], n_groups=n_groups
    )
    warn_of(within, 0.0, chosen)  # on the rows themselves they keep their margin
    return rule, chosen.gap


def _with_groups(guarantee: Guarantee, n_rows: int) -> Guarantee:
    said = f"the features and groups of the {n_rows} public rows that set the thresholds"
    public = (*guarantee.public, said)
    return replace(guarantee, public=public).with_warning(NEEDS_GROUP)
