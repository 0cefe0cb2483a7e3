"""Many classifiers from one training of their teachers: what a sweep over settings needs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from evenhand.estimators.base import Progress, TeacherEnsembleClassifier
from evenhand.estimators.calibration import Calibration, read_calibration
from evenhand.estimators.fair_shares import FairSharesClassifier
from evenhand.estimators.fairpate import FairPATEClassifier
from evenhand.estimators.inputs import FitInputs
from evenhand.estimators.pate import PATEClassifier
from evenhand.estimators.within_margin import MarginClassifier
from evenhand.fairness import DemographicParityGate
from evenhand.privacy import BudgetExceeded, Ledger
from evenhand.students.within import Within
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, FloatArray
from evenhand.voting import Answers, Rounds, Shares, Votes, aggregate_many

SHARED: Final = ("n_teachers", "teachers", "classes", "schema", "public_fraction", "unit")
"""Arguments that decide the teachers, and so must be those of every model."""

KINDS: Final = (FairPATEClassifier, FairSharesClassifier, PATEClassifier)
"""What ``fit_many`` fits."""

_READ: Final = ("classes_", "groups_", "encoder_", "n_features_in_", "feature_names_in_")


def fit_many(
    models: Sequence[TeacherEnsembleClassifier],
    X: Any,
    y: ArrayLike,
    *,
    sensitive_features: Any = None,
    X_public: Any = None,
    sensitive_features_public: Any = None,
    X_calibration: Any = None,
    y_calibration: ArrayLike | None = None,
    sensitive_features_calibration: Any = None,
    unit_ids: ArrayLike | None = None,
    progress: Progress | None = None,
    concluded: Callable[[int], None] | None = None,
) -> list[Exception | None]:
    """Fit models that differ in budget, margin, mechanism or student, but not in their teachers.

    Teachers are trained once, their votes are answered under all settings together, and each model
    is what its own ``fit`` would have made of the same noise (``tests/estimators/test_many.py``).

    Parameters
    ----------
    models : sequence of FairPATEClassifier, of FairSharesClassifier or of PATEClassifier
        All of one class, with the same arguments about teachers and the same whole number as
        ``random_state``. They are fitted in place.
    X, y, sensitive_features, X_public, sensitive_features_public, unit_ids, progress
        As for ``FairPATEClassifier.fit``; ``PATEClassifier`` reads no groups.
    X_calibration, y_calibration, sensitive_features_calibration : optional
        As there; read by the models whose margin is about true classes.
    concluded : callable, optional
        Called with the position of a model as soon as it is fitted.

    Returns
    -------
    list of Exception or None
        Per model: None, or why its setting cannot be fitted: ``BudgetExceeded`` where the budget
        does not cover one answer, ``ValueError`` where no answer was given.

    Raises
    ------
    ValueError
        If the models do not belong together, or for inputs that cannot be used.

    Privacy
    -------
    Cost : each model is a release of its own, with its own ledger and noise: publishing all of them
        costs the sum of their ``mu_squared``. Training teachers once saves time and no privacy.
    """
    first = _require_one_training(models)
    groups = {"sensitive_features": None, "sensitive_features_public": None, "needs_groups": False}
    if isinstance(first, MarginClassifier):
        groups = {
            "sensitive_features": sensitive_features,
            "sensitive_features_public": sensitive_features_public,
            "needs_groups": True,
        }
    data = first._read(X, y, X_public=X_public, unit_ids=unit_ids, **groups)
    partition = first._deal(data)
    opened = [_Opened.of(model, data, partition) for model in models]
    labelled = (X_calibration, y_calibration, sensitive_features_calibration)
    for each in opened:
        if each.within is not None and each.within.notion.needs_labels:
            notion = each.within.notion
            each.calibration = read_calibration(first, data, notion, *labelled)
    if all(each.refused for each in opened):
        return [each.refused for each in opened]
    votes, X_asked = first._teach(data, partition, progress)
    _answer_together([each for each in opened if each.refused is None], votes, data, progress)
    for i, (model, each) in enumerate(zip(models, opened, strict=True)):
        if each.refused is not None:
            continue
        for name in _READ:
            if hasattr(first, name):
                setattr(model, name, getattr(first, name))
        try:
            _conclude(model, each, votes, X_asked, data, partition)
        except (BudgetExceeded, ValueError) as error:
            each.refused = error
        else:
            if concluded is not None:
                concluded(i)
    return [each.refused for each in opened]


def train_teachers(
    model: TeacherEnsembleClassifier,
    X: Any,
    y: ArrayLike,
    *,
    X_public: Any = None,
    sensitive_features_public: Any = None,
    unit_ids: ArrayLike | None = None,
) -> None:
    """Train the teachers of a model and ask them nothing: for teachers that remember.

    Parameters
    ----------
    model : FairPATEClassifier, PATEClassifier or InterventionClassifier
        Not fitted by this.
    X, y, X_public, sensitive_features_public, unit_ids
        As for ``FairPATEClassifier.fit``. Teachers read no groups.

    Privacy
    -------
    Cost : nothing is released. What the teachers remember is private.
    """
    data = model._read(
        X,
        y,
        sensitive_features=None,
        X_public=X_public,
        sensitive_features_public=sensitive_features_public,
        unit_ids=unit_ids,
        needs_groups=False,
    )
    model._teach(data, model._deal(data), None)


class _Opened:
    """A model whose ledger is open: what it buys, from which account, past which gate."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.refused: Exception | None = None
        self.ledger: Ledger
        self.mechanism: Any = None
        self.gate: DemographicParityGate | None = None
        self.within: Within | None = None
        self.calibration: Calibration | None = None
        self.answers: Answers | Shares | None = None

    @classmethod
    def of(cls, model: Any, data: FitInputs, partition: Partition) -> _Opened:
        opened = cls(model)
        try:
            if isinstance(model, MarginClassifier):
                groups = data.required_groups
                notion = model._notion(data)
                opened.gate = model._open_gate(notion, groups.n_groups, data.n_classes)
                opened.within = model._within(data, notion, None)
            model._choose_teachers(data)
            opened.ledger, opened.mechanism = model._open_ledger(None, data, partition)
        except BudgetExceeded as error:
            opened.refused = error
            return opened
        if model.n_teachers_ != partition.n_teachers:
            raise ValueError(
                f"The default for n_teachers is {partition.n_teachers} for one of the models and "
                f"{model.n_teachers_} for another, as it follows from the budget. Give n_teachers."
            )
        return opened

    @property
    def is_gated(self) -> bool:
        """Whether its answers are labels past a gate, which many settings go through together."""
        return self.gate is not None and not isinstance(self.mechanism, Rounds)


def _answer_together(
    opened: Sequence[_Opened], votes: Votes, data: FitInputs, progress: Progress | None
) -> None:
    """Ask for the models with a gate, those of one rule at a time."""
    kinds: dict[tuple[object, ...], list[_Opened]] = {}
    for each in opened:
        if each.is_gated and each.gate is not None:
            kind = (each.gate.rule, each.gate.notion.reference, each.model.keep_order)
            kinds.setdefault(kind, []).append(each)
    for (_, _, keep_order), same in kinds.items():
        found = aggregate_many(
            votes,
            [each.mechanism for each in same],
            [each.ledger for each in same],
            [each.gate for each in same if each.gate is not None],
            groups=data.required_groups.codes,
            keep_order=bool(keep_order),
            progress=None
            if progress is None
            else lambda done, total: progress("answers", done, total),
        )
        for each, answers in zip(same, found, strict=True):
            each.answers = answers


def _conclude(
    model: Any,
    opened: _Opened,
    votes: Votes,
    X_asked: FloatArray,
    data: FitInputs,
    partition: Partition,
) -> None:
    model._rng = None  # everything that draws from it was drawn by the first model
    answers = opened.answers
    if answers is None:
        groups = None if data.groups_public is None else data.groups_public.codes
        answers = model._ask(votes, X_asked, opened.mechanism, opened.ledger, None, groups=groups)
    within = opened.within
    if isinstance(model, MarginClassifier):
        model.gate_ = opened.gate
        if within is not None and opened.calibration is not None:
            within = model._within(data, within.notion, opened.calibration)
    model._conclude(data, X_asked, answers, opened.ledger, opened.mechanism, partition, within)
    if isinstance(model, MarginClassifier):
        model._claim_calibration(opened.calibration)


def _require_one_training(models: Sequence[TeacherEnsembleClassifier]) -> Any:
    """Return a copy of the first model, which trains the teachers for all."""
    kinds = {type(model) for model in models}
    if kinds not in [{kind} for kind in KINDS]:
        listed = " or ".join(kind.__name__ for kind in KINDS)
        raise ValueError(
            f"fit_many takes models that are all of one class, {listed}, and at least one;"
            f" got {', '.join(sorted(kind.__name__ for kind in kinds)) or 'none'}."
        )
    first = models[0]
    for name in (*SHARED, "random_state"):
        values = [getattr(model, name) for model in models]
        # As scikit-learn prints them: equal teachers may be different objects.
        if len({repr(value) for value in values}) > 1:
            raise ValueError(
                f"Models that share their teachers need the same {name}, got "
                f"{', '.join(sorted({repr(value) for value in values})[:3])}. Fit them apart."
            )
    if not isinstance(first.random_state, int | np.integer):
        raise ValueError(
            f"random_state must be a whole number, got {first.random_state!r}: the models share "
            f"one deal of the records, and each could make it again by itself."
        )
    return copy.copy(first)
