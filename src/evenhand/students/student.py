"""The student: a model fitted on public rows and what was released about them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import Notion
from evenhand.students.confident import fit_confident
from evenhand.students.constrained import DEFAULT_C, fit_linear, warn_if_above
from evenhand.students.estimated_classes import with_estimated_classes
from evenhand.students.learned_features import LearnedFeatures, as_network
from evenhand.students.module import ModuleStudent
from evenhand.students.objective import LabelLoss, ShareLoss
from evenhand.students.small_groups import Held, fit_with_small_groups
from evenhand.students.soft_labels import SoftLabels
from evenhand.students.within import Within
from evenhand.typing import Array, FloatArray, IntArray
from evenhand.voting import Answers, Shares

SMOOTHED_VARIANCE: Final = 0.1
"""Sets the ridge of a student that follows smoothed shares (``reproductions/choices.py``)."""


class ConstantStudentWarning(UserWarning):
    """The student predicts one class for every public row: it decides nothing."""


class FewAnswersWarning(UserWarning):
    """So few labels were released that a student could follow them whatever they were."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Student:
    """A fitted student, and how it stands to the margin on the public rows."""

    model: Any
    """Fitted scikit-learn classifier on class codes."""
    public_gap: float = float("nan")
    """Gap of its decisions where the margin is read; NaN if it was not bound."""
    met: bool | None = None
    """False if it was bound and no student within the margin was found; None if it was not bound,
    for then nobody looked.
    """
    within: Within | None = None
    """The margin as it was read: on which rows, and with which classes."""
    without_margin: Any = None
    """The same student without the margin, where it was bound."""
    held: Held | None = None
    """The groups that are held to the interval of their size and not to the margin, if any."""
    cross_fitted: Estimate | None = None
    """The gap on rows that students of this kind were not fitted on, with its interval, where the
    notion has a confidence.
    """

    @property
    def bound(self) -> bool:
        """Whether the margin was a constraint of the fit."""
        return self.within is not None


def fit_student(
    student: Any,
    X_public: Array,
    answers: Answers | Shares,
    within: Within | None = None,
    rng: np.random.Generator | None = None,
    beside: SoftLabels | None = None,
) -> Student:
    """Fit a student on the public rows.

    Parameters
    ----------
    student : ModuleStudent, torch module, architecture, scikit-learn classifier or None
        None: a logistic regression that knows the noise of shares, and that ``within`` binds. A
        network: the same on the features that it learns from the answers (``LearnedFeatures``).
        Anything else with ``fit`` and ``predict`` is cloned, learns released labels, and knows of
        no margin, unless it says ``reads_margin`` (``ReductionStudent``).
    X_public : ndarray, shape (n_queries, n_features)
        Encoded public rows, all of them; for a network also pictures (n_queries, channels, height,
        width).
    answers : Answers or Shares
        What was released about these rows.
    within : Within, optional
        The margin that the student's decisions shall keep. For a notion that needs true classes
        and brings none they are taken from the answers: see ``with_estimated_classes``.
    rng : Generator, optional
        Draws first weights and the order of rows of a network. Default: a fixed public seed.
    beside : SoftLabels, optional
        Labelled rows to learn beside the answers. A student of one's own does not read them.

    Returns
    -------
    Student
        Trained on class codes. Where all labels are of one class: a constant classifier. A student
        that predicts one class for all public rows comes with a :class:`ConstantStudentWarning`,
        one of very few labels with a :class:`FewAnswersWarning`.

    Raises
    ------
    ValueError
        If no row was answered, if a scikit-learn student is to learn from shares, or if nothing
        but a student of one's own is there to keep a margin that needs true classes.

    Privacy
    -------
    Free: reads released answers, public rows, and what is public of them: groups, and the labels
    of calibration rows (post-processing).
    """
    if within is not None:
        refuse_unbound(student, within.notion)
    if (network := as_network(student)) is not None:
        return _of_network(network, X_public, answers, within, rng, beside)
    _require_table(X_public)
    require_student(student, answers.n_classes, shares=isinstance(answers, Shares))
    if isinstance(answers, Shares):
        return _warned(_linear(X_public, answers, within, beside), X_public)
    if beside is None:
        _warn_of_few(answers, X_public.shape[1])
    if student is None:
        fitted = _linear(X_public, answers, within, beside)
    else:
        fitted = _of_labels(student, X_public, answers, within)
    return _warned(fitted, X_public[answers.answered] if beside is None else X_public)


def _linear(
    X: FloatArray,
    answers: Answers | Shares,
    within: Within | None,
    beside: SoftLabels | None = None,
) -> Student:
    """Fit the linear student, chosen by rows that were held out if the notion asks for it."""
    if within is not None and within.notion.confidence is not None:
        once = partial(_linear_once, beside=beside)
        fitted: Student = fit_confident(X, answers, within, once)
        return fitted
    return _linear_once(X, answers, within, beside)


def _linear_once(
    X: FloatArray,
    answers: Answers | Shares,
    within: Within | None,
    beside: SoftLabels | None = None,
) -> Student:
    if isinstance(answers, Shares):
        return _of_shares(X, answers, within, beside)
    return _of_labels(None, X, answers, within, beside)


def _of_network(
    network: ModuleStudent,
    X_public: Array,
    answers: Answers | Shares,
    within: Within | None,
    rng: np.random.Generator | None,
    beside: SoftLabels | None,
) -> Student:
    """Learn features from the answers, and fit a linear student on them: the last layer."""
    if isinstance(answers, Answers) and (constant := _constant(answers)) is not None:
        return _warned(Student(model=constant), X_public[answers.answered])
    learned = LearnedFeatures.of(network, X_public, answers, rng)
    features, read = learned.transform(X_public), within
    if within is not None and within.X is not None:
        read = replace(within, X=learned.transform(within.X))
    rows = slice(None) if isinstance(answers, Shares) else answers.answered
    if beside is not None:
        beside = replace(beside, X=learned.transform(beside.X))
    linear = _warned(_linear(features, answers, read, beside), features[rows])
    model, read, gap, met = learned.classifier(linear.model), linear.within, linear.public_gap, None
    if read is not None and within is not None:
        read = replace(read, X=within.X)
        # The same decisions but for rounding, which is looked at: what leaves is the network.
        decided = model.predict(X_public if within.X is None else within.X).astype(np.int64)
        gap = read.gap(decided, answers.n_classes)
        met = gap <= read.notion.margin
        if linear.met and linear.held is None:  # else it was said of the linear one
            warn_if_above(read, gap, _UNSTEADY)
    free = linear.without_margin
    return replace(
        linear,
        model=model,
        within=read,
        public_gap=gap,
        met=met,
        without_margin=None if free is None else learned.classifier(free),
    )


_UNSTEADY: Final = (
    "Its last layer kept it on the features that the network gave before: a network that draws, or "
    "computes in few digits, gives others each time. Let it do neither when it predicts."
)


def _require_table(X_public: Array) -> None:
    if X_public.ndim > 2:
        raise ValueError(
            f"The public rows are pictures of shape {X_public.shape[1:]}, which this student does "
            f"not read. Give one that does, for example student=ModuleStudent(Convolutional()), or "
            f"train on features of the pictures."
        )


def _of_labels(
    student: Any,
    X_public: FloatArray,
    answers: Answers,
    within: Within | None,
    beside: SoftLabels | None = None,
) -> Student:
    """Fit a student of one's own, or the linear one, on the rows that carry a label."""
    rows = np.flatnonzero(answers.answered)
    constant = _constant(answers)
    if constant is not None and beside is None:
        return Student(model=constant)
    if student is not None and within is not None and getattr(student, "reads_margin", False):
        return _under_margin(student, X_public, answers, rows, within)
    if student is not None:
        return Student(model=clone(student).fit(X_public[rows], answers.labels[rows]))
    X, read_on = X_public, None
    objective: LabelLoss | ShareLoss = LabelLoss(
        labels=answers.labels, rows=rows, n_classes=answers.n_classes, C=DEFAULT_C
    )
    if beside is not None:  # these rows have labels to learn, and no group to compare
        (X, objective), read_on = beside.joined(X_public, answers), X_public
    if within is not None and within.notion.needs_labels and within.labels is None:
        free = fit_linear(X, objective, None)
        smooth = free.classifier(answers.n_classes).predict_proba(X_public)
        within = with_estimated_classes(answers, smooth, within)
    if within is None:
        free = fit_linear(X, objective, None)
        return Student(model=free.classifier(answers.n_classes))
    fit, held = fit_with_small_groups(
        lambda read, quiet: fit_linear(
            X,
            objective,
            read if read.X is not None else replace(read, X=read_on),
            quiet=quiet,
        ),
        within,
        X_public,
        np.eye(answers.n_classes)[answers.labels[rows]],
        rows,
    )
    assert fit.free is not None
    return Student(
        model=fit.classifier(answers.n_classes),
        public_gap=fit.gap,
        met=fit.met,
        within=within,
        without_margin=fit.free.classifier(answers.n_classes),
        held=held,
    )


def _of_shares(
    X_public: FloatArray,
    answers: Shares,
    within: Within | None,
    beside: SoftLabels | None = None,
) -> Student:
    """Fit the student that knows the noise; where its gap is too large, one that follows it.

    Rows that were queried again weigh more in the loss, and should: their shares are more precise.
    But which errors a margin is worth is a question about all rows alike. So the shares
    are smoothed first, by the student without a margin; the one under the margin follows what it
    says, each row once. Chances of labels beside the shares enter by the student without a margin;
    the one under it then follows that on their rows, which are more, and more alike the records.
    """
    X = X_public
    loss: LabelLoss | ShareLoss = ShareLoss(shares=answers.shares, variance=answers.variance)
    if beside is not None:
        X, loss = beside.joined(X, answers)
    free = fit_linear(X, loss, None).classifier(answers.n_classes)
    if within is None:
        return Student(model=free)
    if within.notion.needs_labels and within.labels is None:
        within = with_estimated_classes(answers, free.predict_proba(X_public), within)
    measured = X_public if within.X is None else within.X
    gap = within.gap(free.predict(measured).astype(np.int64), answers.n_classes)
    if gap <= within.notion.margin:
        return Student(
            model=free,
            public_gap=gap,
            met=True,
            within=within,
            without_margin=free,
        )
    rows, read_on, each = X_public, None, np.ones(len(X_public))
    if beside is not None:
        rows, read_on, each = beside.X, X_public, len(beside.X) * beside.parts
    smooth: FloatArray = free.predict_proba(rows)
    follow = ShareLoss(shares=smooth, variance=SMOOTHED_VARIANCE / each)
    fit, held = fit_with_small_groups(
        lambda read, quiet: fit_linear(
            rows,
            follow,
            read if read.X is not None else replace(read, X=read_on),
            quiet=quiet,
        ),
        within,
        X_public,
        answers.shares,
        np.arange(len(X_public)),
    )
    return Student(
        model=fit.classifier(answers.n_classes),
        public_gap=fit.gap,
        met=fit.met,
        within=within,
        without_margin=free,
        held=held,
    )


def _under_margin(
    student: Any, X_public: FloatArray, answers: Answers, rows: IntArray, within: Within
) -> Student:
    """Fit a student that takes the margin with its rows, and measure it on all public rows."""
    own = replace(within, groups=within.groups[rows])
    model = clone(student).fit(X_public[rows], answers.labels[rows], within=own)
    gap = within.gap(model.predict(X_public).astype(np.int64), answers.n_classes)
    way_out = f"Give {type(student).__name__} a smaller margin, or leave student=None."
    warn_if_above(within, gap, way_out, stacklevel=5)
    return Student(model=model, public_gap=gap, met=gap <= within.notion.margin, within=within)


def uncertainty(
    X_public: Array,
    shares: Shares,
    student: Any = None,
    rng: np.random.Generator | None = None,
    beside: SoftLabels | None = None,
) -> FloatArray:
    """Probability that two draws from the student's probabilities differ: largest at its boundary.

    Parameters
    ----------
    X_public : ndarray of float64, shape (n_queries, n_features)
        Encoded public rows.
    shares : Shares
        What was released about them so far.
    student, rng, beside
        As for ``fit_student``.

    Returns
    -------
    ndarray of float64, shape (n_queries,)
        ``1 - sum_k p_k^2``, from 0 (sure) to ``1 - 1 / n_classes``. For two classes it is twice
        the link's derivative, so a released share says most about the boundary where it is large.

    Privacy
    -------
    Free: reads public rows and released shares only (post-processing).
    """
    rows = X_public
    if (network := as_network(student)) is not None:
        learned = LearnedFeatures.of(network, X_public, shares, rng)
        rows = learned.transform(X_public)
        beside = None if beside is None else replace(beside, X=learned.transform(beside.X))
    _require_table(rows)
    p: FloatArray = _of_shares(rows, shares, None, beside).model.predict_proba(rows)
    unsure: FloatArray = 1.0 - (p * p).sum(axis=1)
    return unsure


def smoothed(X: FloatArray, shares: Shares, of: FloatArray | None = None) -> FloatArray:
    """Return the probabilities of the student that follows the shares of rows ``X``.

    They are those of rows ``of``, by default of ``X`` itself. Free (post-processing).
    """
    out: FloatArray = _of_shares(X, shares, None).model.predict_proba(X if of is None else of)
    return out


def require_student(student: Any, n_classes: int, *, shares: bool) -> None:
    """Refuse a student of one's own that cannot learn what is released; before it is paid for.

    Raises
    ------
    TypeError
        If it is no scikit-learn classifier.
    ValueError
        If noisy shares are released, which it does not read, or more classes than it is for.
    """
    if student is None or as_network(student) is not None:
        return
    needed = ("fit", "predict", "get_params")
    if isinstance(student, type) or not all(hasattr(student, name) for name in needed):
        raise TypeError(
            f"student must be a scikit-learn classifier, a network, or None, got {student!r}."
        )
    if shares:
        raise ValueError(
            f"Noisy shares are not labels, and {type(student).__name__} learns labels. Leave "
            f"student=None for the student that knows the noise, give a network, or use "
            f"answers='labels'."
        )
    if (check := getattr(student, "check_settings", None)) is not None:
        check(n_classes)


def refuse_unbound(student: Any, notion: Notion) -> None:
    """Refuse a student of one's own where nothing else would keep what was asked for."""
    if student is None or as_network(student) is not None:
        return
    if (confidence := getattr(notion, "confidence", None)) is not None:
        raise ValueError(
            f"confidence={confidence:g} chooses among linear students, and "
            f"student={type(student).__name__} is another. Leave student=None, give a network, or "
            f"leave confidence out."
        )
    if notion.needs_labels:
        raise ValueError(
            f"{type(notion).__name__} binds a linear student or a network alone: with "
            f"student={type(student).__name__} nothing would keep the margin. Leave student=None, "
            f"give a network, hold the answers alone to the margin (FairPATEClassifier with "
            f"student_margin=False), or use PATEClassifier and measure the gap."
        )


def _constant(answers: Answers) -> DummyClassifier | None:
    """Return a constant classifier if the answers hold one class only."""
    rows = answers.answered
    if not rows.any():
        reasons = "; ".join(f"{n} {words}" for words, n in answers.table().items())
        raise ValueError(
            f"No public row was answered, so there is nothing to learn from ({reasons}). Lower the "
            f"threshold, raise epsilon, or widen the margin."
        )
    labels = answers.labels[rows]
    if len(np.unique(labels)) > 1:
        return None
    # One row of another class would make most learners raise; a constant says what is known.
    nothing = np.zeros((len(labels), 1))  # it reads nothing of the rows
    return DummyClassifier(strategy="constant", constant=int(labels[0])).fit(nothing, labels)


def _warned(student: Student, X: Array) -> Student:
    """Return the student; warn if it decides nothing on the public rows that were answered."""
    if len(np.unique(student.model.predict(X))) > 1:
        return student
    why = (
        f"The margin of {student.within.notion.margin:g} may leave no other: widen it, merge small "
        f"groups, or raise epsilon."
        if student.within is not None
        else "Raise epsilon, or give more records."
    )
    warnings.warn(
        f"The student predicts one class for all {len(X):,} answered public rows. {why}",
        ConstantStudentWarning,
        stacklevel=5,
    )
    return student


def _warn_of_few(answers: Answers, n_columns: int) -> None:
    """Warn where labels of pure noise could be followed without an error (Cover 1965).

    Half of all labellings of ``2 (n_columns + 1)`` rows in general position are linearly separable,
    and nearly all of fewer: how well a student follows so few says nothing.
    """
    n, enough = int(answers.answered.sum()), 2 * (n_columns + 1)
    if 0 < n < enough:
        warnings.warn(
            f"The student learns from {n:,} labels, and has {n_columns:,} columns: fewer than "
            f"{enough:,} labels could be followed whatever they are. Raise epsilon, lower sigma, "
            f"or learn from shares: FairSharesClassifier, or PATEClassifier(answers='shares').",
            FewAnswersWarning,
            stacklevel=5,
        )
