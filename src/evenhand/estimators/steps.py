"""What the steps of a fit by teachers hand on to each other."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.datasets import PublicEncoder
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators.calibration import Calibration
from evenhand.estimators.compared_rows import RowsToCompare
from evenhand.estimators.drift import ColumnDrift
from evenhand.estimators.inputs import FitInputs
from evenhand.estimators.plan import Release
from evenhand.fairness.gate.gate import Gate
from evenhand.owners.collection import OwnerVotes
from evenhand.privacy import Ledger
from evenhand.teachers.partition import Partition
from evenhand.typing import Array
from evenhand.voting import Votes


@dataclass(frozen=True, kw_only=True, eq=False)
class Given:
    """What ``fit`` was given: checked, parted into private and public, and dealt to teachers."""

    data: FitInputs
    partition: Partition
    """Which teacher learns from which record."""
    rng: np.random.Generator
    """Draws what the teachers need; partition and set-aside rows are drawn already."""
    n_columns: int
    """Columns of ``X``."""
    columns: Array | None
    """Their names, where they have names."""
    calibration: Calibration | None = None
    """Public rows with labels, on which a margin about true classes is read."""
    to_compare: RowsToCompare | None = field(default=None, repr=False)
    """Private rows, counted to be compared with the public ones, where that was asked for."""

    @property
    def student_rng(self) -> np.random.Generator:
        """Draws of a student that draws: the same for every model of these teachers."""
        return copy.deepcopy(self.rng).spawn(1)[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What will be released, chosen from public numbers before any teacher is trained."""

    ledger: Ledger
    """Pays for the answers."""
    mechanism: Release
    gate: Gate | None
    """Stands before the labels. One that reads true classes is opened by ``calibrate``."""
    n_teachers: int
    choices: tuple[str, ...]
    """What was chosen by default, and why."""
    counts: Ledger | None = None
    """Pays for noisy counts, where rows are drawn from such."""
    decisions: Ledger | None = None
    """Pays for decisions of the private rows, counted, where a margin is read on drawn rows."""
    compared: Ledger | None = None
    """Pays for noisy counts, where public rows are compared with private ones."""
    around: Ledger | None = None
    """The ledger of the whole fit, where it is around the others."""
    drift: tuple[ColumnDrift, ...] | None = None
    """What a comparison found, once ``compare`` has paid for it."""

    @property
    def whole(self) -> Ledger:
        """The ledger of the whole fit."""
        return self.ledger if self.around is None else self.around


@dataclass(frozen=True, kw_only=True, eq=False)
class Taught:
    """What the teachers say about the public rows. Private, but for encoder and rows."""

    given: Given
    votes: Votes | None
    """None where nobody holds them, and noisy sums alone are known."""
    encoder: PublicEncoder | PixelEncoder
    """Fitted on public rows."""
    X_public: Any
    """The public rows, encoded. Shape (n_public, n_encoded); or pictures."""
    calibration_votes: Votes | None = None
    """What they say about the calibration rows, where a gate reads true classes."""

    @property
    def n_speakers(self) -> int:
        """The votes over those that one unit moves: how many units speak at the least."""
        assert self.votes is not None
        cast = self.given.data.cast
        return self.votes.n_teachers // (cast.moves if isinstance(cast, OwnerVotes) else 1)
