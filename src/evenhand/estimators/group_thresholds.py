"""A released model with thresholds by group: fairness that needs the group at prediction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from evenhand import _checks
from evenhand._display import Shown
from evenhand._random import as_generator
from evenhand.estimators.fair_tuned import class_codes
from evenhand.estimators.fitted import FittedModel, columns_of
from evenhand.estimators.margins import Cuts
from evenhand.estimators.saving import model_folder
from evenhand.fairness import FairnessKind
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.notions import require_notion
from evenhand.privacy import Guarantee
from evenhand.students.confident import (
    Candidate,
    check_confidence,
    choose,
    held_out_gap,
    targets_of,
    warn_of,
)
from evenhand.students.inferred_groups import folds
from evenhand.students.thresholds import NEEDS_GROUP, GroupThresholds, within_of
from evenhand.students.within import SOURCES, Within
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray, RandomState

BY_PROBABILITIES = (
    "rates among true classes are those that the model's own probabilities expect: no true class "
    "of a public row was read"
)
WAY_OUT = "Say how far apart the groups may be, for example fairness=EqualizedOdds(margin=0.05)."


class GroupThresholdClassifier(ClassifierMixin, Shown):  # type: ignore[misc]  # untyped base
    """A fitted classifier with a claim, whose decisions are taken at thresholds by group.

    Made by ``model.with_group_thresholds``. For two classes.

    Attributes
    ----------
    model_ : ClassifierWithClaim
        The model whose scores are cut.
    thresholds_ : GroupThresholds
    groups_ : tuple of str
        The groups that have thresholds.
    cross_fitted_ : Estimate or None
        The gap on rows that thresholds of this kind were not set on, where the notion has a
        confidence.
    margin_supported_ : float
    fairness_ : RateNotion
        Kept on the public rows, in expectation; on other rows up to sampling error.
    margin_source_ : str
        Where it is: ``"public rows"`` for rates of decisions; for rates among true classes
        ``"calibration rows"``, public ones with labels, or ``"own probabilities"`` of the model.
    guarantee_ : Guarantee
        The model's, and what this step adds to it.
    ledger_ : Ledger, SavedLedger or None
        The model's: this step spends nothing.
    fairness_kind_ : FairnessKind
        ``FairnessKind.THRESHOLDS``.
    classes_ : ndarray, shape (2,)

    Privacy
    -------
    Free: reads a released model, and public rows, their groups and, where they are given, their
    labels (post-processing). Rows of the private table are not such rows.
    """

    model_: Any
    thresholds_: GroupThresholds
    groups_: tuple[str, ...]
    fairness_: RateNotion
    margin_source_: str
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
    ) -> GroupThresholdClassifier:
        """Set the thresholds; see ``ClassifierWithClaim.with_group_thresholds``."""
        groups, labels = check_rows(sensitive_features_public, fairness, y_public, model.classes_)
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"Group thresholds cut probabilities, and {type(model.student_).__name__} has no "
                f"predict_proba. Train with a student that has one."
            )
        scores, cross_fitted = model.predict_proba(X_public)[:, 1], None
        within = within_of(fairness, scores, groups.codes, groups.n_groups, labels)
        if within.source == "own probabilities":
            _require_records(within, groups.names, model.classes_)
        if fairness.confidence is None:
            thresholds = GroupThresholds.fit(
                scores, groups.codes, fairness=fairness, n_groups=groups.n_groups, labels=labels
            )
        else:
            thresholds, cross_fitted = confident_thresholds(scores, within, groups.names)
        cuts = Cuts(
            notion=fairness,
            label=str(model.classes_[1]),
            groups=groups.names,
            thresholds=thresholds,
            cross_fitted=cross_fitted,
            source=within.source,
        )
        return cls.of_cuts(model, cuts, _guarantee(model.guarantee_, cuts, len(groups)))

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
                source=self.margin_source_,
            ),
            inside=inside,
        )

    @classmethod
    def of_cuts(cls, model: Any, cuts: Cuts, guarantee: Guarantee) -> Self:
        """Put thresholds around a model, and say what is claimed of both."""
        self = cls(model, cuts.notion)
        self.thresholds_, self.groups_ = cuts.thresholds, cuts.groups
        self.cross_fitted_, self.margin_source_ = cuts.cross_fitted, cuts.source
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


def check_rows(
    sensitive_features_public: Any, fairness: object, y_public: ArrayLike | None, classes: Array
) -> tuple[GroupCodes, IntArray | None]:
    """Check what is public of the rows that thresholds are set on; it needs no model yet.

    Returns
    -------
    GroupCodes, ndarray of int64 or None
        The groups of the rows, and the codes of their labels where there are any.

    Raises
    ------
    ValueError
        For more than two classes, labels that the notion does not read or whose confidence misses
        them, and a group of which the labels have no record that a rate is taken among.
    """
    notion = require_notion(fairness, WAY_OUT)
    if len(classes) != 2:
        raise ValueError(
            f"Group thresholds are for two classes, and the model has {len(classes)}. Use a margin "
            f"in training instead: FairSharesClassifier, or DPSGDClassifier with fairness=."
        )
    groups = encode_groups(sensitive_features_public)
    labels = _labels(y_public, classes, notion)
    if labels is not None:
        _checks.same_length(sensitive_features_public=groups, y_public=labels)
        nothing = np.zeros(len(groups))  # labels say what the scores would
        within = within_of(notion, nothing, groups.codes, groups.n_groups, labels)
        _require_records(within, groups.names, classes)
    return groups, labels


def confident_thresholds(
    scores: FloatArray, within: Within, names: tuple[str, ...]
) -> tuple[GroupThresholds, Estimate]:
    """Return thresholds that are chosen by rows they were not set on; see ``fit_confident``.

    Each part of the rows is decided by thresholds that were set on the others, for shares of the
    margin; of those whose upper limit is within the margin, that with the least error is taken: by
    the labels, or else as the scores expect it.
    """
    codes, n_groups, fairness = within.groups, within.n_groups, within.notion
    check_confidence(within, names)
    everybody = np.ones(n_groups, dtype=bool)
    targets, rng = targets_of(within, everybody), as_generator(0)
    decided = np.zeros((len(targets), len(scores)), dtype=np.int64)
    held = [replace(fairness, margin=t * fairness.margin, confidence=None) for t in targets]

    def rule(notion: RateNotion, rows: IntArray) -> GroupThresholds:
        labels = None if within.labels is None else within.labels[rows]
        return GroupThresholds.fit(
            scores[rows], codes[rows], fairness=notion, n_groups=n_groups, labels=labels
        )

    for others, out in folds(codes):
        for i, notion in enumerate(held):
            decided[i, out] = rule(notion, others).decide(scores[out], codes[out], rng)
    truth = scores if within.labels is None else within.labels
    candidates = [
        Candidate(
            target=target,
            gap=held_out_gap(within, own, everybody[codes], 2),
            error=float(np.where(own == 1, 1.0 - truth, truth).mean()),
        )
        for target, own in zip(targets, decided, strict=True)
    ]
    chosen = choose(candidates, fairness.margin)
    warn_of(within, 0.0, chosen)  # on the rows themselves they keep their margin
    return rule(held[targets.index(chosen.target)], np.arange(len(codes))), chosen.gap


def _labels(y_public: ArrayLike | None, classes: Array, fairness: RateNotion) -> IntArray | None:
    """Return the codes of the labels of public rows, where the notion and the rows have any."""
    if y_public is not None and not fairness.needs_labels:
        raise ValueError(
            f"y_public are true classes, and {type(fairness).__name__} is about decisions alone. "
            f"Leave it out, or take a notion about true classes: EqualizedOdds(margin=0.05)."
        )
    if y_public is None and fairness.needs_labels and fairness.confidence is not None:
        raise ValueError(
            f"confidence={fairness.confidence:g} of {type(fairness).__name__} needs true classes, "
            f"and y_public is missing. Give the labels of the public rows, or leave confidence out."
        )
    return None if y_public is None else class_codes(y_public, classes)


def _require_records(within: Within, names: tuple[str, ...], classes: Array) -> None:
    """Refuse rows of which a group has less than one record that a rate is taken among."""
    for group, among in within.unread(2)[:1]:
        said = " or ".join(repr(label) for label in classes[list(among)].tolist())
        raise ValueError(
            f"{SOURCES[within.source].capitalize()} there is less than one record of "
            f"{names[group]!r} among class {said}, and {within.notion.title} compares a rate among "
            f"these. Give more public rows, or merge the group with another one."
        )


def _guarantee(guarantee: Guarantee, cuts: Cuts, n_rows: int) -> Guarantee:
    """Return the claim with what is public of these rows, and what the thresholds go by."""
    labelled = cuts.source == "calibration rows"
    what = "features, groups and labels" if labelled else "features and groups"
    said = f"the {what} of the {n_rows} public rows that set the thresholds"
    out = replace(guarantee, public=(*guarantee.public, said)).with_warning(NEEDS_GROUP)
    return out if cuts.source != "own probabilities" else out.with_warning(BY_PROBABILITIES)
