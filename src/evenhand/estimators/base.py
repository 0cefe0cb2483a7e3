"""The steps of fit that every teacher-ensemble classifier takes: read, deal, teach, conclude."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self, TypeAlias

import numpy as np

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.datasets import PublicEncoder
from evenhand.estimators.calibration import calibration_gap, warn_of_unread
from evenhand.estimators.classifier import PrivateClassifier
from evenhand.estimators.fitted import FittedModel, StudentMargin
from evenhand.estimators.inputs import FitInputs, read_fit_inputs
from evenhand.estimators.ledgers import open_run
from evenhand.estimators.plan import (
    Purchase,
    choose_mechanism,
    choose_n_teachers,
    resolve_answers,
    warn_of_drowning,
)
from evenhand.estimators.shared_rows import refuse_shared_rows
from evenhand.estimators.small_groups import warn_of_small_groups
from evenhand.estimators.teaching import as_teachers
from evenhand.fairness import DemographicParityGate, FairnessKind, Yardstick
from evenhand.fairness.yardstick import RELEASED
from evenhand.privacy import Budget, Guarantee, Ledger, NoisyHistogram
from evenhand.privacy.guarantee import delta_warning
from evenhand.students.student import Student, fit_student, uncertainty
from evenhand.students.within import Within
from evenhand.teachers import by_position, by_unit
from evenhand.teachers.ensemble import Ensemble, Teachers
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, FloatArray, IntArray, RandomState
from evenhand.voting import (
    Answers,
    Mechanism,
    Rounds,
    Shares,
    Votes,
    aggregate,
    release_shares,
)

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``."""


class TeacherEnsembleClassifier(PrivateClassifier):
    """Base of the classifiers that learn from teachers; use one of its subclasses."""

    budget: Budget | None
    n_teachers: int | None
    teachers: Any
    answers: str | None
    mechanism: Mechanism | NoisyHistogram | Rounds | None
    student: Any = None
    n_teachers_: int
    choices_: tuple[str, ...]
    answers_: Answers | Shares
    public_yardstick_: Yardstick | None = None
    schema: Any
    classes: ArrayLike | None
    public_fraction: float | None
    unit: str
    random_state: RandomState

    def _read(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any,
        X_public: Any,
        sensitive_features_public: Any,
        unit_ids: Any,
        needs_groups: bool,
    ) -> FitInputs:
        """Check the arguments and part private from public; seeds the run."""
        if not isinstance(self.budget, Budget):
            raise ValueError(
                f"budget must be a Budget, got {self.budget!r}. Say how much privacy loss is "
                f"allowed, for example budget=Budget(epsilon=3.0, delta=1e-5)."
            )
        if self.n_teachers is not None:
            _checks.at_least("n_teachers", self.n_teachers, 1)
        self._rng = as_generator(self.random_state)
        data = read_fit_inputs(
            self,
            X,
            y,
            sensitive_features=sensitive_features,
            X_public=X_public,
            sensitive_features_public=sensitive_features_public,
            unit_ids=unit_ids,
            classes=self.classes,
            public_fraction=self.public_fraction,
            needs_groups=needs_groups,
            rng=self._rng,
        )
        if X_public is not None:
            refuse_shared_rows(data.X_private, data.X_public)
        self.classes_ = data.classes
        self.groups_ = None if data.groups_public is None else data.groups_public.names
        return data

    def _what_is_released(self) -> str:
        """Labels or shares; refuses a mechanism that releases the other."""
        return resolve_answers(self.answers, self.mechanism, wants_labels=self.student is not None)

    def _open_ledger(
        self, ledger: Ledger | None, data: FitInputs, partition: Partition
    ) -> tuple[Ledger, Purchase]:
        """Open this run's ledger, and choose the noise from public numbers."""
        assert self.budget is not None
        run = open_run(
            self.budget,
            ledger,
            self.noise,
            unit=partition.unit,
            neighbors=partition.neighbors,
            way_out="Pass unit_ids= for an account of units, leave it out for an account of "
            "records, or open another account.",
            purpose=type(self).__name__,
        )
        mechanism, why = choose_mechanism(
            self.mechanism,
            self._what_is_released(),
            run,
            n_teachers=partition.n_teachers,
            n_queries=data.n_public,
            n_classes=data.n_classes,
        )
        self.choices_ = (*self.choices_, why)
        return run, mechanism

    def _deal(self, data: FitInputs) -> Partition:
        """Assign records to teachers without looking at any other record."""
        seed = self._rng.spawn(1)[0]
        self._choose_teachers(data)
        if data.units is None:
            return by_position(data.n_private, self.n_teachers_, seed)
        return by_unit(data.units, self.n_teachers_, seed.bytes(32), unit=self.unit)

    def _choose_teachers(self, data: FitInputs) -> None:
        """Set the number of teachers, from public numbers, and say why."""
        assert self.budget is not None
        self.n_teachers_, why = choose_n_teachers(
            # Teachers that were trained elsewhere are as many as they are.
            getattr(self.teachers, "n_teachers", None)
            if self.n_teachers is None
            else self.n_teachers,
            n_private=data.n_private if data.units is None else None,
            mu=self.budget.mu,
        )
        self.choices_ = (why,)

    def _teach(
        self, data: FitInputs, partition: Partition, progress: Progress | None
    ) -> tuple[Votes, FloatArray]:
        """Train one teacher per part and let all of them vote; returns the encoded public rows."""
        self.encoder_ = PublicEncoder(self.schema).fit(data.X_public)
        X_public = self.encoder_.transform(data.X_public)
        X_private = self.encoder_.transform(data.X_private)
        teachers = self._teachers(X_private.shape[1], data.n_classes)
        given: dict[str, Any] = {}
        if getattr(teachers, "reads_groups", False):
            private = data.groups_private
            given = {"groups": private.codes, "n_groups": private.n_groups}
        ensemble = teachers.fit(
            X_private,
            data.y_private,
            partition,
            data.n_classes,
            self._rng.spawn(1)[0],
            progress=None if progress is None else _stage(progress, "teachers"),
            **given,
        )
        return Votes.of(self._vote(ensemble, X_public, data), data.n_classes), X_public

    def _teachers(self, n_features: int, n_classes: int) -> Teachers:
        """Return how teachers are trained."""
        return as_teachers(self.teachers, n_features=n_features, n_classes=n_classes, rng=self._rng)

    def _vote(self, ensemble: Ensemble, X_public: FloatArray, data: FitInputs) -> IntArray:
        """Let each teacher vote on each public row."""
        return ensemble.vote(X_public)

    def _ask(
        self,
        votes: Votes,
        X_public: FloatArray,
        mechanism: Purchase,
        ledger: Ledger,
        progress: Progress | None,
        *,
        gate: DemographicParityGate | None = None,
        groups: IntArray | None = None,
        keep_order: bool = False,
    ) -> Answers | Shares:
        """Buy labels or noisy shares from the ledger."""
        if isinstance(mechanism, Rounds):
            warn_of_drowning(
                mechanism, ledger.noise, n_teachers=votes.n_teachers, n_columns=X_public.shape[1]
            )
            return release_shares(
                votes,
                mechanism,
                ledger,
                unsure=lambda shares: uncertainty(X_public, shares),
                groups=groups,
            )
        return aggregate(
            votes,
            mechanism,
            ledger,
            gate=gate,
            groups=groups,
            keep_order=keep_order,
            progress=None if progress is None else _stage(progress, "answers"),
        )

    def _conclude(
        self,
        data: FitInputs,
        X_public: FloatArray,
        answers: Answers | Shares,
        ledger: Ledger,
        mechanism: Purchase,
        partition: Partition,
        within: Within | None = None,
    ) -> Self:
        """Fit the student on the answers, and write down what was claimed and spent."""
        self.answers_ = answers
        self.ledger_ = ledger
        self.mechanism_ = mechanism
        student = fit_student(self.student, X_public, answers, within)
        self.student_ = student.model
        self.student_margin_ = _student_margin(student, self.groups_)
        gated = isinstance(answers, Answers) and answers.groups is not None
        unbound = FairnessKind.ANSWERS if gated else FairnessKind.NONE
        self.fairness_kind_ = FairnessKind.WEIGHTS if student.bound else unbound
        self.student_without_margin_ = student.without_margin
        self.public_yardstick_ = _public_yardstick(student, X_public, answers)
        if student.held is not None:
            warn_of_small_groups(student, data.required_groups.names)
        if student.within is not None:
            warn_of_unread(student.within, data)
        self.guarantee_ = self._guarantee(data, ledger, partition)
        del self._rng
        return self

    @property
    def fitted_(self) -> FittedModel:
        """What this model tells of itself, as one value."""
        return replace(
            super().fitted_,
            n_teachers=self.n_teachers_,
            answers=self.answers_,
            choices=self.choices_,
            yardstick=self.public_yardstick_,
        )

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        assert fitted.n_teachers is not None
        assert fitted.answers is not None
        self.n_teachers_, self.answers_ = fitted.n_teachers, fitted.answers
        self.choices_, self.public_yardstick_ = fitted.choices, fitted.yardstick

    def without_margin(self) -> Self:
        """Return this model with its student as it would be without a margin; see the base."""
        model = super().without_margin()
        gated = isinstance(self.answers_, Answers) and self.answers_.groups is not None
        model.fairness_kind_ = FairnessKind.ANSWERS if gated else FairnessKind.NONE
        model.public_yardstick_ = None
        return model

    def _guarantee(self, data: FitInputs, ledger: Ledger, partition: Partition) -> Guarantee:
        public = [
            f"the features of the {data.n_public} public rows"
            + ("" if data.groups_public is None else " and their groups"),
            "the names of columns and classes",
            "all settings",
        ]
        if partition.neighbors == "replace one":
            public.append(f"the number of private records ({data.n_private})")
        not_covered = [
            "a choice of settings or of a model made by looking at private data",
            "measurements on private or test rows",
        ]
        if data.set_aside:
            aside = f"{data.set_aside} rows of the table, set aside as public"
            not_covered.insert(0, f"the features and groups of {aside}")
        budget = ledger.budget
        if partition.neighbors == "replace one":
            warning = delta_warning(budget.delta, data.n_private)
        else:
            # The number of units is private here: it may warn the curator, not enter the claim.
            warning = ""
            if to_curator := delta_warning(budget.delta, data.n_units):
                warnings.warn(to_curator, stacklevel=4)
        vouched = getattr(self.teachers, "vouched_for", "")
        return ledger.guarantee(
            public=tuple(public),
            not_covered=tuple(not_covered),
            warnings=tuple(words for words in (vouched, warning) if words),
        )


def _student_margin(student: Student, groups: tuple[str, ...] | None) -> StudentMargin | None:
    """Return how the student stands to its margin; None where it was not bound."""
    if student.within is None:
        return None
    assert student.met is not None
    return StudentMargin(
        notion=student.within.notion,
        gap=student.public_gap,
        met=student.met,
        source=student.within.source,
        calibration=calibration_gap(student),
        held=student.held,
        groups=groups or (),
    )


def _public_yardstick(
    student: Student, X_public: FloatArray, answers: Answers | Shares
) -> Yardstick:
    """Measure the student by the released answers, beside the majority class: free."""
    rows = answers.answered if isinstance(answers, Answers) else slice(None)
    X = X_public[rows]
    decided = student.model.predict(X).astype(np.int64)
    free: Any = student.without_margin
    others = {} if free is None else {"without_margin": free.predict(X).astype(np.int64)}
    if isinstance(answers, Shares):
        return Yardstick.of_shares(answers.shares, decided, **others)
    labels = answers.labels[rows]
    return Yardstick.of_truth(labels, decided, answers.n_classes, where=RELEASED, **others)


def _stage(progress: Progress, name: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(name, done, total)
