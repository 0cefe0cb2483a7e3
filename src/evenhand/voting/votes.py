"""Votes: what the teachers say about each query, counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand import _checks
from evenhand.typing import ArrayLike, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Votes:
    """How many teachers chose each class, for every query. **Private**: it prints no count.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_queries, n_classes)
        Votes per class. Every row sums to ``n_teachers``.
    n_teachers : int
        Number of teachers that voted, at least 1.

    Privacy
    -------
    A record sits in one partition, so it moves at most one teacher's vote: between neighbors a row
    of ``counts`` loses 1 in one class and gains 1 in another (L2 sensitivity sqrt(2), and the
    largest count moves by at most 1). Nothing here may leave the curator but through the ledger.

    Examples
    --------
    >>> votes = Votes.of([[0, 1], [1, 1], [1, 0]], n_classes=2)
    >>> votes
    Votes(n_queries=2, n_classes=2, n_teachers=3, counts=<private>)
    """

    counts: IntArray
    n_teachers: int

    def __post_init__(self) -> None:
        counts = _checks.histograms(self.counts)
        if not np.issubdtype(counts.dtype, np.integer):
            raise TypeError(f"counts must hold whole numbers, got dtype {counts.dtype}.")
        _checks.at_least("n_teachers", self.n_teachers, 1)
        wrong = np.flatnonzero((counts.sum(axis=1) != self.n_teachers) | (counts < 0).any(axis=1))
        if wrong.size:
            raise ValueError(
                f"Every query needs one vote of each of the {self.n_teachers} teachers; query "
                f"{wrong[0] + 1} (counted from 1) has not. A teacher that abstains breaks the "
                f"sensitivity: give its vote to a fixed class."
            )
        object.__setattr__(self, "counts", counts.astype(np.int64))

    @classmethod
    def of(cls, votes: ArrayLike, n_classes: int) -> Votes:
        """Count ``votes``, an array of class codes of shape (n_teachers, n_queries)."""
        array = _checks.rectangle("votes", votes)
        if array.ndim != 2 or not array.shape[0]:
            raise ValueError(
                f"votes must have shape (n_teachers, n_queries), got shape {array.shape}."
            )
        _checks.codes("votes", array.ravel(), n_classes)
        counts = np.stack([(array == k).sum(axis=0) for k in range(n_classes)], axis=1)
        return cls(counts=counts.astype(np.int64), n_teachers=int(array.shape[0]))

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.counts.shape[1])

    def __repr__(self) -> str:
        return (
            f"Votes(n_queries={len(self)}, n_classes={self.n_classes}, "
            f"n_teachers={self.n_teachers}, counts=<private>)"
        )
