"""What a learner of many models offers: fit each on its own rows, let all predict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from evenhand.typing import IntArray

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) as work proceeds."""


class FittedModels(Protocol):
    """Fitted models that answer together."""

    @property
    def n_models(self) -> int:
        """Number of models."""

    def predict(self, X: Any) -> IntArray:
        """Return the class of each row by each model, shape (n_models, n_rows)."""


class Learner(Protocol):
    """Trains one model on each of many sets of rows.

    Privacy
    -------
    Model ``t`` is a function of its own rows (their groups included), the settings and
    ``(rng, t)``. Nothing else about the data reaches it, not the size of another partition: another
    partition cannot change one bit of it.
    """

    def fit(
        self,
        X: Any,
        y: IntArray,
        rows: Sequence[IntArray],
        *,
        n_classes: int,
        rng: np.random.Generator,
        progress: Progress | None = None,
        groups: IntArray | None = None,
        n_groups: int = 1,
    ) -> FittedModels:
        """Fit model ``t`` on ``X[rows[t]]`` and ``y[rows[t]]``, codes in [0, n_classes).

        A learner that is held to a fairness constraint reads ``groups[rows[t]]`` as well, codes in
        [0, n_groups); any other leaves them unread.
        """


def needed(learner: Any, groups: IntArray | None) -> IntArray:
    """Return the groups; refuse that they are missing."""
    if groups is None:
        raise ValueError(f"{type(learner).__name__} compares groups, and groups= is missing.")
    return groups


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedRows:
    """What a learner that compares groups reads; see ``Learner.fit``."""

    X: Any
    y: IntArray
    groups: IntArray
    rows: Sequence[IntArray]
    n_classes: int
    n_groups: int


class GroupLearner(ABC):
    """Base of a ``Learner`` that reads the group of each row."""

    def fit(
        self,
        X: Any,
        y: IntArray,
        rows: Sequence[IntArray],
        *,
        n_classes: int,
        rng: np.random.Generator,
        progress: Progress | None = None,
        groups: IntArray | None = None,
        n_groups: int = 1,
    ) -> Any:
        """Fit model ``t`` on the rows ``rows[t]`` and their groups; see ``Learner.fit``."""
        given = GroupedRows(
            X=X,
            y=y,
            groups=needed(self, groups),
            rows=rows,
            n_classes=n_classes,
            n_groups=n_groups,
        )
        return self._fit(given, rng, progress)

    @abstractmethod
    def _fit(
        self, given: GroupedRows, rng: np.random.Generator, progress: Progress | None
    ) -> FittedModels:
        """Fit all models."""
