"""What a student minimises that follows noisy votes on some rows and a first model on all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenhand import _checks
from evenhand.students.objective import ShareLoss
from evenhand.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ProximalLoss:
    """``ShareLoss`` on the queried rows, plus ``pull`` times the distance to a first model.

    It is the mean, over all rows, of the squared difference of the scores: a difference of weights
    alone would weigh a column that hardly varies like one that decides.
    """

    answers: ShareLoss
    """Of the queried rows."""
    queried: IntArray
    """Which of all rows these are."""
    first: FloatArray | None = None
    """Scores of the first model, theta*, for all rows; None if there is none. Shape (n, n_columns).
    """
    pull: float = 0.0
    """lambda, at least 0; 0 without a first model."""

    def __post_init__(self) -> None:
        _checks.non_negative("pull", self.pull)
        _checks.same_length(queried=self.queried, answers=self.answers.shares)
        if bool(self.pull) != (self.first is not None):
            raise ValueError(
                f"A pull needs a first model to pull to, and a first model a pull > 0; got "
                f"pull={self.pull:g} {'with' if self.pull else 'and'} first="
                f"{'None' if self.first is None else 'scores'}."
            )

    @property
    def n_columns(self) -> int:
        """Columns of scores: 1 for two classes, else one per class."""
        return self.answers.n_columns

    @property
    def ridge(self) -> float:
        """Of the answers; none beside a first model, which says more than that weights are few."""
        return 0.0 if self.pull else self.answers.ridge

    @property
    def rows(self) -> IntArray | None:
        """Rows that the loss reads; None for all."""
        return None if self.pull else self.queried

    def loss(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Mean loss at ``scores`` (n, n_columns) of all rows, and its gradient."""
        value, of_answers = self.answers.loss(scores[self.queried])
        gradient = np.zeros_like(scores)
        gradient[self.queried] = of_answers
        if self.first is not None:
            away = scores - self.first
            value += self.pull * float(np.einsum("ij,ij->", away, away)) / len(scores)
            gradient += (2.0 * self.pull / len(scores)) * away
        return value, gradient

    def curvature(self, scores: FloatArray) -> FloatArray:
        """Of the answers as Gauss and Newton have it, and of the pull."""
        out = np.full(len(scores), 2.0 * self.pull / len(scores))
        out[self.queried] += self.answers.curvature(scores[self.queried])
        return out

    def alone(self) -> ProximalLoss:
        """Return the same loss as one of scores of ``rows`` only."""
        if self.pull:
            return self
        return replace(self, queried=np.arange(len(self.queried)))
