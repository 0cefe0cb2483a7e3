"""What the steps of SF-PATE hand on to each other: those of ``base``, for one table of people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.estimators.attribute_privacy import PeopleInputs
from evenhand.estimators.rows_after import PublicRows
from evenhand.privacy import Ledger
from evenhand.students.learned_features import LearnedFeatures
from evenhand.teachers.coverage import GroupsOfTeachers
from evenhand.teachers.partition import Partition
from evenhand.typing import ArrayLike, IntArray
from evenhand.voting import Votes
from evenhand.voting.shares import Rounds


@dataclass(frozen=True, kw_only=True, eq=False)
class PeopleGiven:
    """What ``fit`` was given: checked, and dealt to teachers."""

    people: PeopleInputs
    partition: Partition
    """Which teacher reads which rows."""
    rows: IntArray
    """The rows that the teachers vote on. Public. Shape (n_queries,)."""
    unit_ids: ArrayLike | None
    """Whose row each is. Public. Shape (n,)."""
    rng: np.random.Generator
    """Draws what teachers and student need; partition and ``rows`` are drawn already."""
    held_out: PublicRows | None = None
    """Rows with known groups that the student has no part of, where the margin has a confidence."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PeoplePlan:
    """What will be released, chosen from public numbers before any teacher is trained."""

    ledger: Ledger
    """Pays for it."""
    mechanism: Rounds
    """One round: a noisy histogram of the votes on each row."""
    sums: float
    table: float
    """``sums`` and ``table``: squared mu to spend on sums over the true groups, and on the
    certificate's table; 0: none.
    """

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise, in votes."""
        return self.mechanism.histograms[0].sigma


@dataclass(frozen=True, kw_only=True, eq=False)
class PeopleTaught:
    """What the teachers say about the rows. Private."""

    given: PeopleGiven
    votes: Votes
    """On groups, or on classes."""
    groups_of_teachers: GroupsOfTeachers
    """Which teacher holds which groups."""
    first: LearnedFeatures | None = None
    """theta*, where it is a network that reads pictures. Public, as pictures and labels are."""
