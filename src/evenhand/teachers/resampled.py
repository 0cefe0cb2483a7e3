"""Teachers that drop some of their own records before they learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from evenhand import _checks
from evenhand._display import Shown
from evenhand._stored import stored
from evenhand.fairness import DemographicParity
from evenhand.fairness.gate.gate import open_gate
from evenhand.fairness.gate.runner import admitted
from evenhand.teachers.ensemble import Ensemble, FittedByRecords, PrivateRecords, Teachers
from evenhand.teachers.partition import Partition
from evenhand.teachers.stacked import LogisticTeachers
from evenhand.typing import IntArray

BALANCED: Final = ("classes", "cells")
"""What ``Undersample`` makes equally frequent: classes, or (group, class) cells."""


class Resample(Protocol):
    """Chooses records of *one* partition; it is shown no other.

    A share, a count or a weight over all private data cannot reach it, so a record that changes
    changes the training set of one teacher.
    """

    @property
    def reads_groups(self) -> bool:
        """Whether the group of every private record is needed."""

    def keep(
        self,
        labels: IntArray,
        groups: IntArray,
        rng: np.random.Generator,
        *,
        n_classes: int,
        n_groups: int,
    ) -> IntArray:
        """Return positions of the records to learn from, ascending.

        Parameters
        ----------
        labels, groups : ndarray of int64, shape (n_own,)
            Codes of the records of one teacher; all groups are 0 where none were given.
        rng : numpy Generator
            This teacher's own.
        n_classes, n_groups : int
            Public.
        """


@stored
@dataclass(frozen=True, kw_only=True)
class Undersample:
    """Keep as many records of every class as the teacher has of its rarest one (FairPATE, E.2).

    Parameters
    ----------
    balance : {"classes", "cells"}
        ``"cells"``: as many of every group *and* class; needs the groups of private records.

    Notes
    -----
    A class or cell that the teacher does not hold at all is left out of the comparison. Which
    records of a larger one are kept is drawn from the teacher's own seed. Balanced teachers vote
    for the rare class more often: overall error on unbalanced rows rises.

    Examples
    --------
    >>> rule = Undersample()
    >>> y, z = np.array([0, 0, 0, 0, 1, 1]), np.zeros(6, dtype=np.int64)
    >>> kept = rule.keep(y, z, np.random.default_rng(0), n_classes=2, n_groups=1)
    >>> y[kept].tolist()
    [0, 0, 1, 1]
    """

    balance: str = "classes"

    def __post_init__(self) -> None:
        _checks.one_of("balance", self.balance, BALANCED)

    @property
    def reads_groups(self) -> bool:
        """Whether the group of every private record is needed."""
        return self.balance == "cells"

    def keep(
        self,
        labels: IntArray,
        groups: IntArray,
        rng: np.random.Generator,
        *,
        n_classes: int,
        n_groups: int,
    ) -> IntArray:
        """Return positions of the records to learn from; see ``Resample.keep``."""
        cell = groups * n_classes + labels if self.reads_groups else labels
        found, size = np.unique(cell, return_counts=True)
        if not len(found):
            return np.zeros(0, dtype=np.int64)
        kept = [
            rng.choice(np.flatnonzero(cell == one), size=int(size.min()), replace=False)
            for one in found
        ]
        return np.sort(np.concatenate(kept)).astype(np.int64)


@stored
@dataclass(frozen=True, kw_only=True)
class KeepWithin:
    """Keep records whose labels a gate lets through: the teacher's own stay within the margin.

    Parameters
    ----------
    fairness : DemographicParity
        The margin between the groups' shares of every class among the kept records.

    Notes
    -----
    The preprocessor of FairPATE (Algorithm 3) with the sound gate, run over one partition. The
    records come in their own order. A late group is let in once half of its records have been
    seen: how many there are is read from the same partition, which is free. Run over *all* private
    data one record would change what many teachers keep (FairPATE's challenge C2).

    Examples
    --------
    >>> rule = KeepWithin(fairness=DemographicParity(margin=0.1))
    >>> y, z = np.array([1, 0, 1, 0, 0, 0, 0, 1]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> kept = rule.keep(y, z, np.random.default_rng(0), n_classes=2, n_groups=2)
    >>> y[kept].tolist(), z[kept].tolist()
    ([1, 0, 1, 0, 0, 1], [0, 0, 0, 0, 1, 1])
    """

    fairness: DemographicParity

    @property
    def reads_groups(self) -> bool:
        """Whether the group of every private record is needed: yes."""
        return True

    def keep(
        self,
        labels: IntArray,
        groups: IntArray,
        rng: np.random.Generator,
        *,
        n_classes: int,
        n_groups: int,
    ) -> IntArray:
        """Return positions of the records to learn from; see ``Resample.keep``."""
        sizes = np.bincount(groups, minlength=n_groups)
        smallest = int(sizes[sizes > 0].min()) if len(groups) else 1
        gate = open_gate(self.fairness, n_groups, n_classes, cold_start=max(1, smallest // 2))
        return admitted(gate, groups, labels)


@stored
class ResampledTeachers(FittedByRecords, Shown):
    """Teachers that each learn from a choice of their own records.

    Parameters
    ----------
    resample : Undersample, KeepWithin or any ``Resample``
        Chooses among the records of one partition.
    teachers : Teachers, optional
        Who learns from them. Default ``LogisticTeachers()``.

    Privacy
    -------
    The choice for teacher ``t`` is a function of its own records and of ``(rng, t)``, so replacing
    a record changes the training set and the vote of one teacher
    (``tests/teachers/test_resampled.py``, bit for bit). Shares of the whole private table cannot
    be given here: that is the published form for which one record reaches every teacher.

    Examples
    --------
    >>> from evenhand.teachers import by_position
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = (X[:, 0] > 1).astype(int)
    >>> balanced = ResampledTeachers(Undersample())
    >>> votes = balanced.fit(X, y, by_position(400, 10, 0), 2, rng).vote([[3.0, 0.0], [-3.0, 0.0]])
    >>> votes.sum(axis=0).tolist()
    [10, 0]
    """

    def __init__(self, resample: Resample, teachers: Teachers | None = None) -> None:
        self.resample = resample
        self.teachers = teachers

    @property
    def reads_groups(self) -> bool:
        """Whether ``fit`` needs the group of every private record."""
        return self.resample.reads_groups or getattr(self.teachers, "reads_groups", False)

    def _fit(self, given: PrivateRecords) -> Ensemble:
        """Choose within each part of the private data, then fit."""
        partition = given.partition
        choosing, learning = given.rng.spawn(2)
        kept = np.sort(
            np.concatenate(
                [
                    own[self._keep(given, own, own_rng)]
                    for own, own_rng in zip(
                        partition.all_rows, choosing.spawn(partition.n_teachers), strict=True
                    )
                ]
            )
        )
        part = Partition(
            teacher=partition.teacher[kept],
            n_teachers=partition.n_teachers,
            unit=partition.unit,
            neighbors=partition.neighbors,
        )
        teachers: Any = LogisticTeachers() if self.teachers is None else self.teachers
        more: dict[str, Any] = {}
        if getattr(teachers, "reads_groups", False):
            more = {"groups": given.groups[kept], "n_groups": given.n_groups}
        fitted: Ensemble = teachers.fit(
            given.X[kept],
            given.y[kept],
            part,
            given.n_classes,
            learning,
            given.progress,
            **more,
        )
        return fitted

    def _keep(self, given: PrivateRecords, own: IntArray, rng: np.random.Generator) -> IntArray:
        return self.resample.keep(
            given.y[own],
            given.groups[own],
            rng,
            n_classes=given.n_classes,
            n_groups=given.n_groups,
        )
