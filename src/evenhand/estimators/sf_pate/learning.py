"""What the student of SF-PATE solves: problem (2) with estimated groups, or (5) with fair votes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.estimators.attribute_privacy import PeopleInputs
from evenhand.estimators.margins import Bound
from evenhand.estimators.sf_pate.bounds import bounds_of_student, bounds_of_teachers
from evenhand.estimators.sf_pate.groups import QueriedRows, estimated_groups, groups_by_sums
from evenhand.estimators.sf_pate.students import label_student, vote_student
from evenhand.fairness.notion import Notion
from evenhand.privacy import GNMax, Ledger
from evenhand.students.network import TrainedStudent
from evenhand.typing import ArrayLike
from evenhand.voting.disparity import ExpectedRates, expected_rates


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """What the teachers answered, and what the student shall do with it.

    Parameters
    ----------
    people : PeopleInputs
    queried : QueriedRows
        Noisy shares of groups, or of classes.
    notion : Notion
    pull, step : float
        As for ``SFPATEClassifier``.
    student : NetworkStudent or None
    ledger : Ledger
        Pays for sums and table.
    sums : float
        Squared mu to spend on sums over the true groups; 0 for none.
    table : float
        Squared mu to spend on the certificate's table; 0 for none.
    unit_ids : array-like, shape (n,), optional
    rng : Generator
    """

    people: PeopleInputs
    queried: QueriedRows
    notion: Notion
    pull: float
    step: float
    student: TrainedStudent | None
    ledger: Ledger
    sums: float
    table: float
    unit_ids: ArrayLike | None
    rng: np.random.Generator


@dataclass(frozen=True, kw_only=True, eq=False)
class Learned:
    """A student, and what is known of it.

    Parameters
    ----------
    student : classifier of class codes
    violation : float
        By the estimated groups; NaN if there are none.
    bounds : tuple of Bound
    expected : ExpectedRates or None
        Of the noisy vote on classes. **Private**.
    """

    student: Any
    violation: float
    bounds: tuple[Bound, ...]
    expected: ExpectedRates | None = None


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
    bounds = bounds_of_student(
        alpha=violation,
        noisy_shares=estimated.weights.mean(axis=0),
        names=people.groups.names,
        certificate=(
            estimated.certificate(people, problem.ledger, problem.table) if problem.table else None
        ),
        of_labels=answers != "shares",
    )
    return Learned(student=learned, violation=violation, bounds=bounds)


def after_fair_votes(problem: Problem, *, labels_are_public: bool) -> Learned:
    """Solve problem (5): the noisy vote, near theta*, under the constraint by noisy sums."""
    people, queried, rng = problem.people, problem.queried, problem.rng
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
