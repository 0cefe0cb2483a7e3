"""A margin that holds on new rows: the student is chosen by rows that it was not fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand.fairness.intervals import Estimate
from evenhand.fairness.metrics import gap_of
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.tally import JointTally, Tally
from evenhand.students.blind_rule import BlindFit, BlindRule
from evenhand.students.constrained import warn_if_above
from evenhand.students.inferred_groups import FOLDS, GroupModel, SoftmaxRegression, folds
from evenhand.students.small_groups import COSTLY, Held, HeldGroup, limits_of
from evenhand.students.within import Within
from evenhand.typing import BoolArray, FloatArray, IntArray
from evenhand.voting import Answers, Shares

TARGETS: Final = (1.0, 0.75, 0.5, 0.25)
"""What the student may be held to on the rows of its fit, in units of the margin.

Less than one record of the smallest group is never asked for: decisions come in records.
"""


class MarginNotSupported(UserWarning):
    """So many rows cannot say, at the confidence that was asked for, that the margin holds."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A student held to ``target``, with its gap and its error on rows that it was not fitted on.

    The error is by the released answers, or by the labels of the calibration rows.
    """

    target: float
    gap: Estimate
    error: float


def fit_confident(
    X: FloatArray,
    answers: Answers | Shares,
    within: Within,
    fit: Callable[[FloatArray, Answers | Shares, Within | None], Any],
) -> Any:
    """Fit a student whose gap on rows that it was not fitted on is within the margin.

    Each of ``FOLDS`` parts of the rows on which the margin is read is decided by students that were
    fitted on the others; their decisions together give a gap with an interval for each target. Of
    the targets whose upper limit, at the notion's confidence, is within the margin, that with the
    least error is taken, and the student is fitted anew on all rows. Where there is none, so many
    rows cannot say that the margin holds: the target with the smallest upper limit is then taken
    among those that cost at most ``COSTLY`` of error more than the best, those whose gap itself is
    within the margin first, with a :class:`MarginNotSupported` warning that says the limit.

    Parameters
    ----------
    X : ndarray of float64, shape (n, n_features)
        All public rows.
    answers : Answers or Shares
        What was released about them.
    within : Within
        The margin, of a notion with ``confidence``.
    fit : callable
        ``fit(X, answers, within)`` fits a linear student, within the margin or free (None).

    Returns
    -------
    Student
        A :class:`BlindRule`, with ``cross_fitted``; a constant if the answers hold one class.

    Privacy
    -------
    Free: reads released answers, public rows and what is public of them (post-processing).

    Notes
    -----
    The interval is that of the gap of ``FOLDS`` students, each fitted on fewer rows than the one
    that is returned, and the least of several was chosen: no proof covers the gap of that one. In
    simulations it was above in fewer fits than the confidence allows.
    """
    free = fit(X, answers, None)
    if not isinstance(free.model, LogisticRegression):
        return fit(X, answers, within)

    def scores_without(others: IntArray) -> Any:
        if within.X is not None:
            return free.model
        return fit(X[others], _some(answers, others), None).model

    rule, chosen, held = confident_rule(
        free.model,
        X if within.X is None else within.X,
        within,
        answers.n_classes,
        scores_without=scores_without,
        error=lambda decided: _error(decided, within, answers),
    )
    rows = X if within.X is None else within.X
    gap = within.gap(rule.predict(rows), answers.n_classes)
    warn_of(within, gap, chosen)
    return replace(
        free,
        model=rule,
        public_gap=gap,
        met=gap <= within.notion.margin,
        within=within,
        without_margin=free.model,
        held=held,
        cross_fitted=chosen.gap,
    )


def confident_rule(
    scores: Any,
    rows: FloatArray,
    within: Within,
    n_classes: int,
    *,
    error: Callable[[IntArray], float],
    scores_without: Callable[[IntArray], Any] | None = None,
    groups: GroupModel | None = None,
    randomised: bool = False,
) -> tuple[BlindRule, Candidate, Held | None]:
    """Return the blind rule that is kept, what is known of it, and what small groups it spares.

    See ``fit_confident``.

    Parameters
    ----------
    scores : fitted classifier
        The model without a margin, on class codes.
    rows : ndarray of float64, shape (n, n_features)
        Public rows, on which the margin is read.
    within : Within
        The margin, of a notion with ``confidence``.
    n_classes : int
    error : callable
        What decisions about these rows cost.
    scores_without : callable, optional
        ``scores_without(others)`` is that model without the rows that are not ``others``. Default:
        the rows had no part in it.
    groups : function, optional
        Fits the model of the groups. Default: a softmax regression, whose ridge is chosen.
    randomised : bool
        Whether several rules may share the rows.
    """
    limits = limits_of(within) if within.hold_small else None
    small = np.zeros(within.n_groups, bool) if limits is None else limits > within.notion.margin
    use = ~small[within.groups]
    groups = SoftmaxRegression.chosen(rows, within, n_classes) if groups is None else groups
    targets = targets_of(within, ~small)
    decided = np.zeros((len(targets), len(rows)), dtype=np.int64)
    for others, out in folds(within.groups):
        own = scores if scores_without is None else scores_without(others)
        if scores_without is not None and not isinstance(own, LogisticRegression):
            decided[:, out] = own.predict(rows[out])  # answers of one class: a constant
            continue
        kept = within.of_rows(others)
        made = BlindFit.of(own, rows[others], kept, n_classes, groups=groups)
        for i, target in enumerate(targets):
            rule = made.rule(_narrowed(kept, limits, target), randomised=randomised, own=False)
            decided[i, out] = rule.predict(rows[out])
    candidates = [
        Candidate(target=target, gap=held_out_gap(within, each, use, n_classes), error=error(each))
        for target, each in zip(targets, decided, strict=True)
    ]
    chosen = choose(candidates, within.notion.margin)
    whole = BlindFit.of(scores, rows, within, n_classes, groups=groups)
    rule = whole.rule(_narrowed(within, limits, chosen.target), randomised=randomised)
    if limits is None:
        return rule, chosen, None
    strict = whole.rule(_narrowed(within, None, chosen.target), randomised=randomised)
    return rule, chosen, _held(within, limits, rule.predict(rows), error, strict.predict(rows))


def _held(
    within: Within,
    limits: FloatArray,
    decided: IntArray,
    error: Callable[[IntArray], float],
    by_margin: IntArray,
) -> Held | None:
    """Return the groups that are beyond the margin and held to their intervals; None for none."""
    gaps = within.gaps(decided, int(max(decided.max(), by_margin.max(), 1)) + 1)
    spared = np.flatnonzero((limits > within.notion.margin) & (gaps > within.notion.margin))
    if not spared.size:
        return None
    sizes = np.bincount(within.groups, minlength=within.n_groups)
    return Held(
        groups=tuple(
            HeldGroup(
                group=int(z), n_rows=int(sizes[z]), limit=float(limits[z]), gap=float(gaps[z])
            )
            for z in spared
        ),
        error_by_margin=float(np.clip(error(by_margin), 0.0, 1.0)),
        error=float(np.clip(error(decided), 0.0, 1.0)),
    )


def choose(candidates: list[Candidate], margin: float) -> Candidate:
    """Return the one that is kept; see ``fit_confident``."""
    if supported := [one for one in candidates if one.gap.high <= margin]:
        return min(supported, key=lambda one: one.error)
    near = [one for one in candidates if one.gap.value <= margin] or candidates
    least = min(one.error for one in near)
    affordable = [one for one in near if one.error <= least + COSTLY]
    return min(affordable, key=lambda one: one.gap.high)


def check_confidence(within: Within, names: tuple[str, ...]) -> None:
    """Look at public sizes before anything is spent: what so many rows can say of the margin.

    Raises
    ------
    ValueError
        If the notion is about true classes and nobody brought any, or if fewer than two groups
        have a row for each of the parts.

    Warns
    -----
    MarginNotSupported
        If not even a gap of 0 on so many rows would have an upper limit within the margin.
    """
    notion, sizes = within.notion, np.bincount(within.groups, minlength=within.n_groups)
    if notion.needs_labels and within.labels is None:
        raise ValueError(
            f"confidence={notion.confidence:g} of {type(notion).__name__} needs true classes, and "
            f"the released answers are none. Give X_calibration, y_calibration and "
            f"sensitive_features_calibration, or leave confidence out."
        )
    if (sizes >= FOLDS).sum() < 2:
        said = ", ".join(f"{name!r} ({n})" for name, n in zip(names, sizes.tolist(), strict=True))
        raise ValueError(
            f"confidence={notion.confidence:g} needs two groups with {FOLDS} rows or more on which "
            f"the margin is read, got {said}. Give more public rows, or leave confidence out."
        )
    limits = limits_of(within) if within.hold_small else None
    large = sizes > 0 if limits is None else (sizes > 0) & (limits <= notion.margin)
    least = supported_by(sizes[large], notion)
    if least > notion.margin:
        smallest = int(np.where(large, sizes, sizes.max()).argmin())
        warnings.warn(
            f"{sizes.sum():,} rows, of which {names[smallest]!r} has {sizes[smallest]:,}, may not "
            f"be able to say with {notion.confidence:.0%} confidence that the margin of "
            f"{notion.margin:g} holds on new rows: where two rates of one half are equal, the "
            f"upper limit of their difference is {least:.3f}. The least margin that the rows "
            f"support will be in margin_supported_. Widen the margin, give more public rows, or "
            f"merge small groups.",
            MarginNotSupported,
            stacklevel=6,
        )


def supported_by(sizes: IntArray, notion: RateNotion) -> float:
    """Return the upper limit of a gap of 0 among groups of these sizes, for rates of one half."""
    counts = np.stack([sizes - sizes // 2, sizes // 2], axis=-1)
    tally: Tally | JointTally = Tally(counts=counts)
    if notion.needs_labels:  # half of each group is of each class, and half of that is predicted
        counts = np.stack([counts - counts // 2, counts // 2], axis=-1)
        tally = JointTally(counts=counts)
    assert notion.confidence is not None
    return gap_of(notion, tally, level=notion.confidence).high


def targets_of(within: Within, counted: BoolArray) -> tuple[float, ...]:
    """Return the targets that the smallest of the groups ``counted`` can tell apart."""
    sizes = np.bincount(within.groups, minlength=within.n_groups)[counted]
    least = 1.0 / max(1, sizes[sizes > 0].min(initial=len(within.groups)))
    return tuple(t for t in TARGETS if t * within.notion.margin >= least) or TARGETS[:1]


def _narrowed(within: Within, limits: FloatArray | None, target: float) -> Within:
    """Return the margin at a target; a small group is held to its interval, as before."""
    notion = replace(within.notion, margin=target * within.notion.margin, confidence=None)
    if limits is None:
        return replace(within, notion=notion, hold_small=False)
    wide = np.where(limits > within.notion.margin, limits, notion.margin)
    return replace(within, notion=notion, limits=wide)


def _some(answers: Answers | Shares, rows: IntArray) -> Answers | Shares:
    """Return the answers to some of the queries."""
    groups = None if answers.groups is None else answers.groups[rows]
    if isinstance(answers, Shares):
        return Shares(
            shares=answers.shares[rows],
            variance=answers.variance[rows],
            n_asked=len(rows),
            groups=groups,
        )
    labels = answers.labels[rows]
    order = np.flatnonzero(answers.answered[rows])
    return replace(
        answers,
        labels=labels,
        reasons=answers.reasons[rows],
        order=order,
        events=np.arange(len(order)),
        groups=groups,
    )


def held_out_gap(within: Within, decided: IntArray, use: BoolArray, n_classes: int) -> Estimate:
    """Return the gap of decisions about rows that were held out, with its interval."""
    groups, confidence = within.groups[use], within.notion.confidence
    assert confidence is not None
    shape = (within.n_groups, n_classes)
    if within.labels is None:
        counts = Tally.of(groups, decided[use], *shape).counts
        return gap_of(within.notion, Tally(counts=counts[counts.sum(axis=1) > 0]), level=confidence)
    joint = JointTally.of(groups, within.labels[use].astype(np.int64), decided[use], *shape).counts
    filled = joint.sum(axis=(1, 2)) > 0
    return gap_of(within.notion, JointTally(counts=joint[filled]), level=confidence)


def _error(decided: IntArray, within: Within, answers: Answers | Shares) -> float:
    if within.X is not None and within.labels is not None:
        return float((decided != within.labels).mean())
    if isinstance(answers, Shares):
        return float(1.0 - answers.shares[np.arange(len(decided)), decided].mean())
    rows = answers.answered
    return float((decided[rows] != answers.labels[rows]).mean())


def warn_of(within: Within, gap: float, chosen: Candidate) -> None:
    """Warn where so many rows cannot say that the margin holds, or where it does not there."""
    margin = within.notion.margin
    if chosen.gap.high > margin:
        warnings.warn(
            f"So many rows cannot say with {chosen.gap.level:.0%} confidence that the margin of "
            f"{margin:g} holds on new rows: on rows that the student was not fitted on its gap is "
            f"{chosen.gap.value:.4f}, at most {chosen.gap.high:.4f}. Widen the margin, give more "
            f"public rows, or merge small groups.",
            MarginNotSupported,
            stacklevel=4,
        )
    warn_if_above(within, gap)
