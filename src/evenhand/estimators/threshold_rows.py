"""What thresholds by group are set on: public rows, and scores of private ones as counted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._frames import refuse_other_order
from evenhand._random import as_generator
from evenhand.estimators.calibration import CellsNotRead
from evenhand.estimators.rows_after import WAY_OUT, check_rows
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.notions import require_notion
from evenhand.students.confident import (
    Candidate,
    choose,
    held_out_gap,
    targets_of,
    warn_of,
)
from evenhand.students.inferred_groups import folds
from evenhand.students.score_counts import NO_COUNTS, certain_rows, count_scores, rows_of
from evenhand.students.thresholds import PLAIN, GroupThresholds, Steps, within_of
from evenhand.students.tightening import bounds_inside
from evenhand.students.within import SOURCES, Within
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray

UNSEEN: Final = ((PLAIN,), (0.0,), (1.0,))
"""Steps of a group of which there is no row: the threshold of all groups together."""

NO_CODES: Final = np.zeros(0, dtype=np.int64)


def confident_thresholds(
    scores: FloatArray,
    within: Within,
    rule: Callable[[RateNotion, IntArray], GroupThresholds],
) -> tuple[GroupThresholds, Estimate]:
    """Return thresholds that are chosen by rows they were not set on; see ``fit_confident``.

    Each part of the rows is decided by thresholds that were set on the others, for shares of the
    margin; of those whose upper limit is within the margin, that with the least error is taken: by
    the labels, or else as the scores expect it. ``rule(notion, rows)`` sets them on some rows.
    """
    codes, fairness = within.groups, within.notion
    everybody = np.ones(within.n_groups, dtype=bool)
    targets, rng = targets_of(within, everybody), as_generator(0)
    decided = np.zeros((len(targets), len(scores)), dtype=np.int64)
    held = [replace(fairness, margin=t * fairness.margin, confidence=None) for t in targets]
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


@dataclass(frozen=True, kw_only=True, eq=False)
class ThresholdRows:
    """What thresholds are set on: public rows, and counts of the scores of private ones."""

    names: tuple[str, ...]
    classes: Array
    """Shape (2,)."""
    scores: FloatArray
    codes: IntArray
    """``scores`` and ``codes``: of the public rows. Shape (n_public,)."""
    labels: IntArray | None
    """Their true classes; counts have none, and do not stand beside such rows. Shape (n_public,).
    """
    counts: FloatArray
    """Those that the model released. Shape (n_groups, N_RANGES) or (0,)."""
    noise: float
    """Standard deviation of the noise on each."""

    @classmethod
    def of(
        cls,
        model: Any,
        X_public: Any,
        sensitive_features_public: Any,
        fairness: object,
        y_public: ArrayLike | None,
    ) -> ThresholdRows:
        """Read the public rows, if any, and the counts that the model released, if any."""
        counts = model.score_counts_
        if X_public is None and sensitive_features_public is None and y_public is None:
            _check_counts(counts, fairness)
            names, scores, codes, labels = model.groups_, np.zeros(0), NO_CODES, None
        else:
            if X_public is None:
                raise ValueError(
                    "Groups of public rows were given, and X_public is missing. Pass the features "
                    "of these rows."
                )
            refuse_other_order(
                X_public=X_public,
                y_public=y_public,
                sensitive_features_public=sensitive_features_public,
            )
            counted = model.groups_ if len(counts) and y_public is None else ()
            groups, labels = check_rows(
                sensitive_features_public, fairness, y_public, model.classes_, counted=counted
            )
            scores = np.asarray(model.predict_proba(X_public)[:, 1])
            _checks.same_length(X_public=scores, sensitive_features_public=groups)
            names, codes = groups.names, groups.codes
            counts = counts if labels is None else NO_COUNTS
            if len(counts):
                names = (*model.groups_, *(n for n in names if n not in model.groups_))
                codes = np.array([names.index(name) for name in groups.names])[codes]
                counts = np.pad(counts, [(0, len(names) - len(counts)), (0, 0)])
        return cls(
            names=names,
            classes=model.classes_,
            scores=scores,
            codes=codes,
            labels=labels,
            counts=counts,
            noise=model.score_noise_,
        )

    @property
    def n_public(self) -> int:
        """Number of public rows."""
        return len(self.scores)

    def source(self, fairness: RateNotion) -> str:
        """Where the margin is read."""
        if fairness.needs_labels:
            by_labels = "own probabilities" if self.labels is None else "calibration rows"
            return "expected counts" if len(self.counts) else by_labels
        return "noisy counts" if len(self.counts) else "public rows"

    def fit(self, fairness: RateNotion, rows: IntArray | None = None) -> GroupThresholds:
        """Set the thresholds on some of the public rows, and on the counts."""
        return self._fit(fairness, slice(None) if rows is None else rows)[0]

    def thresholds(
        self, fairness: RateNotion, tightening: float
    ) -> tuple[GroupThresholds, float | None, Estimate | None]:
        """Set the thresholds; with a confidence they are chosen by rows they were not set on.

        Returns
        -------
        GroupThresholds
        float or None
            The margin that they were set to, see ``bounds_inside``: of more than two groups the
            least that a difference is held to. None where it is that of ``fairness``.
        Estimate or None
            The gap on rows that they were not set on, with a confidence.
        """
        if fairness.confidence is not None:
            within = within_of(fairness, self.scores, self.codes, len(self.names), self.labels)
            found, gap = confident_thresholds(self.scores, within, self.fit)
            return found, None, gap
        found, within, scores = self._fit(fairness, slice(None))
        _warn_of_unread(within, self.names, self.classes)
        if not tightening:
            return found, None, None
        certain, rates = None, np.nan_to_num(found.rates(scores, within.groups))
        if len(self.counts):
            public = count_scores(self.scores, self.codes, len(self.names))
            certain = certain_rows(self.counts, self.noise, public, rates)
        decided = found.probabilities(scores, within.groups)
        bounds = bounds_inside(within, decided, self.names, tightening=tightening, certain=certain)
        found, _, _ = self._fit(fairness, slice(None), bounds)
        held = float(bounds.min(initial=fairness.margin))
        return found, held if held < fairness.margin else None, None

    def _fit(
        self, fairness: RateNotion, known: slice | IntArray, bounds: FloatArray | None = None
    ) -> tuple[GroupThresholds, Within, FloatArray]:
        """Set the thresholds; also return the margin on the rows they are set on, and scores."""
        scores, codes, n_groups = self.scores[known], self.codes[known], len(self.names)
        if len(self.counts):
            scores, codes = rows_of(self.counts, self.noise, count_scores(scores, codes, n_groups))
        labels = None if self.labels is None else self.labels[known]
        within = within_of(fairness, scores, codes, n_groups, labels)
        seen, place = np.unique(codes, return_inverse=True)
        found = GroupThresholds.fit(
            scores, place, fairness=fairness, n_groups=len(seen), labels=labels, bounds=bounds
        )
        steps: list[Steps] = [UNSEEN] * n_groups
        for group, own in zip(seen.tolist(), found.steps, strict=True):
            steps[group] = own
        return GroupThresholds.of_steps(steps), within, scores


def check_tightening(tightening: float, fairness: object) -> None:
    """Refuse standard errors below 0, and any beside a confidence."""
    confidence = require_notion(fairness, WAY_OUT).confidence
    if _checks.non_negative("tightening", tightening) and confidence is not None:
        raise ValueError(
            f"tightening={tightening!r} was given, and confidence={confidence:g} chooses "
            f"by held-out rows how far inside the margin thresholds are set. Leave one of them out."
        )


def _check_counts(counts: FloatArray, fairness: object) -> None:
    """Refuse thresholds without a public row where the counts of scores cannot stand for them."""
    if not len(counts):
        raise ValueError(
            "Thresholds by group are set on public rows, or on scores of private rows that were "
            "counted by group and released with noise; there is neither. Pass X_public and "
            "sensitive_features_public, or fit with DPSGDClassifier(score_counts=True)."
        )
    notion = require_notion(fairness, WAY_OUT)
    if notion.confidence is not None:
        raise ValueError(
            f"confidence={notion.confidence:g} is about rows that thresholds were not set on, and "
            f"counts of scores have none. Pass X_public and sensitive_features_public, or leave "
            f"confidence out."
        )


def _warn_of_unread(within: Within, names: tuple[str, ...], classes: Array) -> None:
    """Warn of groups that noise, or the model itself, left without a record to set anything by.

    It follows from what was released, and a model that is paid for must not be lost to that.
    """
    sizes = np.bincount(within.groups, minlength=len(names))
    unseen = ", ".join(repr(names[z]) for z in np.flatnonzero(sizes == 0))
    way_out = "Give public rows of it, or merge it with another group."
    if unseen:
        warnings.warn(
            f"No row of group {unseen} is left by noisy counts or among the public rows: it is "
            f"decided at {PLAIN:g}, as the model itself decides for all together, and the margin "
            f"says nothing about it. {way_out}",
            CellsNotRead,
            stacklevel=5,
        )
    elif said := ", ".join(within.unread_in_words(names, classes.tolist())):
        warnings.warn(
            f"{SOURCES[within.source].capitalize()} there is less than one record of {said}: the "
            f"margin was not read there, and says nothing about it. {way_out}",
            CellsNotRead,
            stacklevel=5,
        )
