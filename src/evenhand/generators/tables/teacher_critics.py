"""Teachers that vote on generated rows: a stack of critics, each on its own partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.generators.conditions import Conditions
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.learners.nets.critics import StackedCritics
from evenhand.teachers.partition import Partition
from evenhand.typing import BoolArray, FloatArray, IntArray

CONDITIONED: Final = ("label+group", "label")
_BLOCK: Final = 30  # steps whose minibatches are drawn at once


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenRows:
    """Private rows as teachers read them: the states of the columns, then what was given.

    Parameters
    ----------
    codes : ndarray of int64, shape (n, n_columns + 1)
        The last column is the condition.
    sizes : tuple of int
        States of each; the last is the number of conditions.
    group : ndarray of int64, shape (n,)
    conditions : Conditions
    condition : {"label+group", "label"}
        What the generator is conditioned on. With "label" the group is a column before the last.
    """

    codes: IntArray
    sizes: tuple[int, ...]
    group: IntArray
    conditions: Conditions
    condition: str

    @classmethod
    def of(
        cls, codes: IntArray, sizes: Sequence[int], cell: IntArray, known: Conditions, given: str
    ) -> GivenRows:
        """Read encoded rows; ``cell`` is their combination of label and group."""
        group, label = known.groups()[cell], known.labels()[cell]
        last = (cell,) if _checks.one_of("condition", given, CONDITIONED) == "label+group" else ()
        more = (known.n,) if last else (known.n_groups, known.sizes[0])
        return cls(
            codes=np.column_stack([codes, *(last or (group, label))]).astype(np.int64),
            sizes=(*sizes, *more),
            group=group,
            conditions=known,
            condition=given,
        )

    @property
    def n_given(self) -> int:
        """Number of conditions."""
        return self.sizes[-1]

    @property
    def n_states(self) -> int:
        """States of all columns that are generated."""
        return sum(self.sizes[:-1])

    @property
    def balanced(self) -> tuple[IntArray, int]:
        """Code that a sampler balances, and how many there are: the condition, or the group."""
        if self.condition == "label":
            return self.group, self.conditions.n_groups
        return self.codes[:, -1], self.n_given

    def groups_of(self, rows: IntArray) -> IntArray:
        """Group of generated rows."""
        if self.condition == "label":
            return rows[..., -2]
        found: IntArray = self.conditions.groups()[rows[..., -1]]
        return found

    def by_condition(self, tables: Sequence[FloatArray]) -> list[FloatArray]:
        """Bring counts of each column by label and group to what is given, one table per column."""
        if self.condition != "label":
            return list(tables)
        shape = (self.conditions.sizes[0], self.conditions.n_groups)
        cells = np.mean([table.sum(axis=1) for table in tables], axis=0).reshape(shape)
        return [*(table.reshape(*shape, -1).sum(axis=1) for table in tables), cells]


@dataclass(kw_only=True, eq=False)
class VotingCritics:
    """Critics, their partitions, and how each draws its minibatches.

    Parameters
    ----------
    rows : GivenRows
    partition : Partition
    critics : StackedCritics
        One per teacher.
    sampler : GroupBalancedSampler or None
        None draws every row of a partition alike.
    streams : list of Generator
        One per teacher, for its minibatches.
    batch_size : int

    Privacy
    -------
    Teacher t reads its own partition, generated rows, its own streams and what the sampler was
    given: no other record.
    """

    rows: GivenRows
    partition: Partition
    critics: StackedCritics
    sampler: GroupBalancedSampler | None
    streams: list[np.random.Generator]
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
