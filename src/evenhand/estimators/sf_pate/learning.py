"""What the student of SF-PATE solves: problem (2) with estimated groups, or (5) with fair votes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.estimators.attribute_privacy import PeopleInputs
from evenhand.estimators.margins import Bound
from evenhand.estimators.sf_pate.bounds import bounds_of_student, bounds_of_teachers
from evenhand.estimators.sf_pate.groups import (
    QueriedRows,
    estimated_groups,
    groups_by_sums,
    one_hot_classes,
)
from evenhand.estimators.sf_pate.students import label_student, student_of_winners, vote_student
from evenhand.fairness.notion import Notion
from evenhand.privacy import GNMax, Ledger
from evenhand.students.learned_features import LearnedFeatures
from evenhand.students.module import ModuleStudent
from evenhand.students.network import TrainedStudent
from evenhand.typing import ArrayLike
from evenhand.voting.disparity import ExpectedRates, expected_rates


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """What the teachers answered, and what the student shall do with it."""

    people: PeopleInputs
    queried: QueriedRows
    """Noisy shares of groups, or of classes."""
    notion: Notion
    pull: float
    step: float
    """``pull`` and ``step``: as for ``SFPATEClassifier``."""
    student: TrainedStudent | None
    ledger: Ledger
    """Pays for sums and table."""
    sums: float
    """Squared mu to spend on sums over the true groups; 0 for none."""
    table: float
    """Squared mu to spend on the certificate's table; 0 for none."""
    unit_ids: ArrayLike | None
    """Shape (n,)."""
    rng: np.random.Generator


@dataclass(frozen=True, kw_only=True, eq=False)
class Learned:
    """A student, and what is known of it."""

    student: Any
    """A classifier of class codes."""
    violation: float
    """By the estimated groups; NaN if there are none."""
    bounds: tuple[Bound, ...]
    expected: ExpectedRates | None = None
    """Of the noisy vote on classes. **Private**."""


def first_network(
    student: ModuleStudent, people: PeopleInputs, rng: np.random.Generator
) -> LearnedFeatures:
    """Train theta* on pictures and their true classes, which are public."""
    X = people.X_encoded
    return LearnedFeatures.by_targets(student, X, one_hot_classes(people), rng, of=X)


def solved(
    problem: Problem,
    variant: str,
    answers: str,
    *,
    labels_are_public: bool,
    first: LearnedFeatures | None,
) -> Learned:
    """Solve the problem of a variant; of pictures for the last layer of a network.

    That is a linear student of what the last layer of ``first``, theta*, reads. Where labels are
    protected there is none: the network learns the released votes.
    """
    people = problem.people
    if not people.are_pictures:
        return _solved(problem, variant, answers, labels_are_public=labels_are_public)
    if first is None:
        assert isinstance(problem.student, ModuleStudent)
        queried = people.X_encoded[problem.queried.rows]
        first = LearnedFeatures.of(problem.student, queried, problem.queried.shares, problem.rng)
    people = replace(people, X_encoded=first.transform(people.X_encoded))
    flat = replace(problem, people=people, student=None)
    found = _solved(flat, variant, answers, labels_are_public=labels_are_public)
    return replace(found, student=first.classifier(found.student))


def _solved(problem: Problem, variant: str, answers: str, *, labels_are_public: bool) -> Learned:
    if variant == "student":
        return with_estimated_groups(problem, answers)
    return after_fair_votes(problem, answers, labels_are_public=labels_are_public)


def with_estimated_groups(problem: Problem, answers: str) -> Learned:
    """Solve problem (2): true labels, under the constraint with the estimated groups."""
    people, rng = problem.people, problem.rng
    student = label_student(problem.student, people, rng)
    estimated = estimated_groups(
        people,
        problem.queried,
        answers,
        probabilities=student.probabilities,
        ledger=problem.ledger,
        mu_squared=problem.sums,
        unit_ids=problem.unit_ids,
    )
    constraint = estimated.constraint(problem.notion, people)
    learned, violation = student.under(
        constraint, rng.spawn(1)[0], pull=problem.pull, step=problem.step
    )
    rows = people.X_encoded if estimated.rows is None else people.X_encoded[estimated.rows]
    by_likeliest = estimated.likeliest.constraint(problem.notion, people)
    bounds = bounds_of_student(
        alpha=violation,
        noisy_shares=estimated.weights.mean(axis=0),
        names=people.groups.names,
        certificate=(
            estimated.certificate(people, problem.ledger, problem.table) if problem.table else None
        ),
        alpha_of_likeliest=by_likeliest.violation(learned.predict_proba(rows)),
    )
    return Learned(student=learned, violation=violation, bounds=bounds)


def after_fair_votes(problem: Problem, answers: str, *, labels_are_public: bool) -> Learned:
    """Solve problem (5): the noisy vote, near theta*, under the constraint by noisy sums."""
    people, queried, rng = problem.people, problem.queried, problem.rng
    if answers == "labels":
        learned = student_of_winners(problem.student, people, queried, rng, pull=problem.pull)
        return _learned_of_votes(learned, math.nan, problem)
    student = vote_student(problem.student, people, queried, rng, pull=problem.pull)
    if problem.sums:
        estimated = groups_by_sums(
            people,
            probabilities=student.probabilities,
            reads_labels=labels_are_public,
            ledger=problem.ledger,
            mu_squared=problem.sums,
            unit_ids=problem.unit_ids,
        )
        constraint = estimated.constraint(problem.notion, people, reads_labels=labels_are_public)
        learned, violation = student.under(constraint, rng.spawn(1)[0], step=problem.step)
    else:
        learned, violation = student.free(rng.spawn(1)[0]), math.nan
    return _learned_of_votes(learned, violation, problem)


def _learned_of_votes(learned: Any, violation: float, problem: Problem) -> Learned:
    people, queried = problem.people, problem.queried
    # A share of two classes carries one noise, a noisy maximum two.
    doubled = math.sqrt(2.0) if people.data.n_classes == 2 else 1.0
    expected = expected_rates(
        queried.votes,
        people.groups.codes[queried.rows],
        GNMax(sigma=doubled * queried.sigma),
        n_groups=people.groups.n_groups,
    )
    return Learned(
        student=learned, violation=violation, bounds=bounds_of_teachers(), expected=expected
    )
