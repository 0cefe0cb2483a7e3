"""Many classifiers from one training of their teachers: what a sweep over settings needs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from evenhand.estimators.base import TeacherEnsembleClassifier
from evenhand.estimators.calibration import read_calibration
from evenhand.estimators.inputs import FitArguments, Progress
from evenhand.estimators.ledgers import own_noise
from evenhand.estimators.spec import REGISTERED
from evenhand.estimators.steps import Given, Plan, Taught
from evenhand.estimators.within_margin import MarginClassifier
from evenhand.privacy import BudgetExceeded
from evenhand.typing import ArrayLike
from evenhand.voting import Answers
from evenhand.voting.lockstep import aggregate_many

SHARED: Final = (
    "n_teachers",
    "teachers",
    "classes",
    "schema",
    "public",
    "public_fraction",
    "check_drift",
    "unit",
    "neighbors",
)
"""Arguments that decide the teachers, and so must be those of every model."""


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
    is what its own ``fit`` would have made of the same noise
    (``tests/estimators/test_shared_teachers.py``).

    Parameters
    ----------
    models : sequence of FairPATEClassifier, of FairSharesClassifier or of PATEClassifier
        All of one class, whose record says ``shares_votes``, with the same arguments about teachers
        and the same whole number as ``random_state``. They are fitted in place.
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
    first = _require_one_training(models, X_public)
    tables = FitArguments(X=X, y=y, X_public=X_public, unit_ids=unit_ids)
    if isinstance(first, MarginClassifier):
        tables = replace(
            tables,
            sensitive_features=sensitive_features,
            sensitive_features_public=sensitive_features_public,
        )
    labelled = replace(
        tables,
        X_calibration=X_calibration,
        y_calibration=y_calibration,
        sensitive_features_calibration=sensitive_features_calibration,
    )
    given = first.read(tables)
    refused: list[Exception | None] = [None] * len(models)
    plans: dict[int, Plan] = {}
    own: dict[int, Given] = {}  # with calibration rows for those that read them
    for i, model in enumerate(models):
        own[i] = given
        if isinstance(model, MarginClassifier) and model.fairness and model.fairness.needs_labels:
            rows = read_calibration(first, given.data, model.fairness, labelled)
            own[i] = replace(given, calibration=rows)
        try:
            plans[i] = model.plan(own[i])
        except BudgetExceeded as error:
            refused[i] = error
            continue
        if given.data.to_draw is not None:  # which is read once, and by each of them
            to_draw = copy.deepcopy(given.data.to_draw)
            own[i] = replace(own[i], data=replace(own[i].data, to_draw=to_draw))
            own[i] = model.draw_rows(own[i], plans[i])
        _require_same_number(plans[i], given)
    if not plans:
        return refused
    reader = next((i for i in plans if models[i].asks_calibration(own[i])), next(iter(plans)))
    taught = copy.copy(models[reader]).teach(own[reader], progress)
    for i in list(plans):
        try:
            plans[i] = models[i].calibrate(replace(taught, given=own[i]), plans[i])
        except BudgetExceeded as error:
            refused[i] = error
            del plans[i]
    asked = _ask_together(models, plans, taught, progress)
    for i, plan in plans.items():
        here = replace(taught, given=own[i])
        try:
            answers = asked[i] if i in asked else models[i].ask(here, plan)
            models[i].conclude(here, plan, answers)
        except (BudgetExceeded, ValueError) as error:
            refused[i] = error
        else:
            if concluded is not None:
                concluded(i)
    return refused


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
    given = FitArguments(
        X=X,
        y=y,
        X_public=X_public,
        sensitive_features_public=sensitive_features_public,
        unit_ids=unit_ids,
    )
    model.teach(model.read(given))


def _ask_together(
    models: Sequence[TeacherEnsembleClassifier],
    plans: Mapping[int, Plan],
    taught: Taught,
    progress: Progress | None,
) -> dict[int, Answers]:
    """Ask for the models with a gate before labels, those of one order at a time."""
    orders: dict[bool, list[int]] = {}
    for i, plan in plans.items():
        if plan.gate is not None and models[i].asked_in_lockstep:
            orders.setdefault(models[i].keep_order, []).append(i)
    found: dict[int, Answers] = {}
    assert taught.votes is not None
    for keep_order, same in orders.items():
        answers = aggregate_many(
            taught.votes,
            [plans[i].mechanism for i in same],  # type: ignore[misc]  # a gate is for labels
            [plans[i].ledger for i in same],
            [gate for i in same if (gate := plans[i].gate) is not None],
            groups=taught.given.data.required_groups.codes,
            keep_order=keep_order,
            progress=None
            if progress is None
            else lambda done, total: progress("answers", done, total),
        )
        found |= dict(zip(same, answers, strict=True))
    return found


def _require_same_number(plan: Plan, given: Given) -> None:
    """Refuse models whose own default would be another number of teachers."""
    if plan.n_teachers != given.partition.n_teachers:
        raise ValueError(
            f"The default for n_teachers is {given.partition.n_teachers} for one of the models and "
            f"{plan.n_teachers} for another, as it follows from the budget. Give n_teachers."
        )


def _require_one_training(models: Sequence[TeacherEnsembleClassifier], X_public: Any) -> Any:
    """Return a copy of the first model, which trains the teachers for all."""
    kinds = {type(model) for model in models}
    sharing = {spec.estimator for spec in REGISTERED.values() if spec.shares_votes}
    if len(kinds) != 1 or not kinds <= sharing:
        listed = " or ".join(sorted(kind.__name__ for kind in sharing))
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
    if first.public is not None and X_public is None:
        raise ValueError(
            f"Models that share their teachers share the public rows, and public={first.public!r} "
            f"draws them from the budget of each. Fit them apart, or give X_public=."
        )
    if first.check_drift:
        raise ValueError(
            "Models that share their teachers share the public rows, and check_drift= counts the "
            "private ones from the budget of each. Fit one of them with it, and the others without."
        )
    if not isinstance(first.random_state, int | np.integer):
        raise ValueError(
            f"random_state must be a whole number, got {first.random_state!r}: the models share "
            f"one deal of the records, and each could make it again by itself."
        )
    first = copy.copy(first)
    # Coins that deal the records protect all of the models, or are repeated for none.
    protecting = (model.noise for model in models if own_noise(model.noise).protects)
    first.noise = next(protecting, first.noise)
    return first
