"""Teachers that vote on generated rows: a stack of critics, each on its own partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.generators.tables.adversarial import GivenRows
from evenhand.learners.nets.critics import StackedCritics
from evenhand.teachers.partition import Partition
from evenhand.typing import BoolArray, IntArray

_BLOCK: Final = 30  # steps whose minibatches are drawn at once


@dataclass(kw_only=True, eq=False)
class VotingCritics:
    """Critics, their partitions, and how each draws its minibatches.

    Privacy
    -------
    Teacher t reads its own partition, generated rows, its own streams and what the sampler was
    given: no other record.
    """

    rows: GivenRows
    partition: Partition
    critics: StackedCritics
    """One per teacher."""
    sampler: GroupBalancedSampler | None
    """None draws every row of a partition alike."""
    streams: list[np.random.Generator]
    """One per teacher, for its minibatches."""
    batch_size: int
    _drawn: list[IntArray] = field(default_factory=list)

    def learn(self, generated: IntArray) -> None:
        """Take one step per minibatch of generated rows, (n_steps, n_rows, n_columns + 1)."""
        while len(self._drawn) < len(generated):
            self._draw()
        steps = np.stack([self._drawn.pop(0) for _ in generated], axis=1)
        real = self.rows.codes[np.maximum(steps, 0)]
        present = steps[:, 0, 0] >= 0
        self.critics.train(real, present, generated, self._judged(generated))

    def votes(self, generated: IntArray) -> IntArray:
        """Return 1 where a teacher takes a row for real, (n_teachers, n_rows)."""
        said = self.critics.judge(generated)
        judged = self._judged(generated)
        return said if judged is None else said * judged

    @property
    def half(self) -> float:
        """Half the number of teachers that judge a row."""
        return self.partition.n_teachers / 2

    def _judged(self, generated: IntArray) -> BoolArray | None:
        """Which teachers judge which rows; None if all judge all."""
        return None

    def _draw(self) -> None:
        """Draw minibatches for some steps ahead: rows (n_teachers, batch_size), -1 for none."""
        codes, _ = self.rows.balanced
        size = _BLOCK * self.batch_size
        drawn = np.full((self.partition.n_teachers, size), -1, dtype=np.int64)
        for t, (own, rng) in enumerate(zip(self.partition.all_rows, self.streams, strict=True)):
            if not len(own):
                continue
            if self.sampler is None:
                drawn[t] = own[rng.integers(0, len(own), size)]
            else:
                drawn[t] = own[self.sampler.draw(codes[own], size, rng)]
        self._drawn += list(drawn.reshape(len(drawn), _BLOCK, -1).transpose(1, 0, 2))
