"""The frame of generators of tables that learn against critics: from counts, in a fixed plan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.conditions import Conditions
from evenhand.generators.payload import Progress
from evenhand.generators.synthesizer import TorchSynthesizer
from evenhand.generators.tables.adversary import RowGeneratorTraining
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.marginal import OWN, joint_totals
from evenhand.generators.tables.private_table import KnownOfTable
from evenhand.generators.tables.state_network import StateNetwork, log_shares
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.learners.nets.tensors import computing
from evenhand.typing import Array, FloatArray, IntArray

CONDITIONED: Final = ("label+group", "label")
CELLS: Final = "counts of label and group"
CELLS_SHARE: Final = 0.05


def starting_shares(start: float, rest: str) -> Mapping[str, float]:
    """Return the plan: ``start`` for the counts of all columns, or a little for label and group.

    Examples
    --------
    >>> dict(starting_shares(0.25, "votes"))
    {'counts of each column by label and group': 0.25, 'votes': 0.75}
    """
    if not 0 <= start < 1:
        raise ValueError(f"start must lie in [0, 1), got start={start!r}.")
    first = {OWN: start} if start else {CELLS: CELLS_SHARE}
    return first | {rest: 1.0 - sum(first.values())}


@dataclass(frozen=True, kw_only=True, eq=False)
class StartingCounts:
    """What was released."""

    cells: FloatArray
    """Noisy number of records of each combination of label and group. Shape (n_conditions,)."""
    sigma: float
    """Standard deviation of the noise on each."""
    tables: tuple[FloatArray, ...]
    """Empty if only the cells were released. Shape (n_conditions, states of a column)."""

    @classmethod
    def release(cls, data: EncodedTable, n_conditions: int, plan: BudgetPlan) -> StartingCounts:
        """Release what the plan has a share for, in one Gaussian release."""
        if OWN not in plan.shares:
            released = plan.release_counts(
                data.condition, n_conditions, CELLS, per_unit=data.per_unit
            )
            return cls(cells=released.values, sigma=released.sigma, tables=())
        counter = TableCounts(
            shapes=tuple((n_conditions, size) for size in data.sizes), per_unit=data.per_unit
        )
        counted = counter.total([(data.condition, column) for column in data.codes.T])
        released = plan.release(counter, counted, OWN)
        tables = counter.apart(released.values)
        cells, sigma = joint_totals(tables, released.sigma)
        return cls(cells=cells, sigma=sigma, tables=tuple(tables))


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenRows:
    """Private rows as teachers read them: the states of the columns, then what was given."""

    codes: IntArray
    """The last column is the condition. Shape (n, n_columns + 1)."""
    sizes: tuple[int, ...]
    """States of each; the last is the number of conditions."""
    group: IntArray
    """Shape (n,)."""
    conditions: Conditions
    condition: str
    """What the generator is conditioned on. With "label" the group is a column before the last. One
    of "label+group", "label".
    """

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """What critics and generator are trained with; lives no longer than a fit."""

    data: EncodedTable
    rows: GivenRows
    """Its rows, with what the generator is conditioned on."""
    plan: BudgetPlan
    rng: np.random.Generator
    progress: Progress


@dataclass(eq=False, repr=False, kw_only=True)
class AdversarialTables(TorchSynthesizer, TableSynthesizer):
    """A generator network of rows that learns against critics.

    Records are counted by label and group, and every column within these (``start``); the network
    starts there, and at the end its columns are brought back to these counts. Steps and noise are
    fixed by the budget before the first step. A method has parameters of its own beside these.

    Parameters
    ----------
    start : float
        Part of the budget for counts of every column by label and group. In [0, 1); at 0 the
        generator starts from nothing, as published.
    batch_size : int
        Generated rows in a step.
    generator_hidden : tuple of int
        Widths of the generator's hidden layers.
    learning_rate, generator_rate : float
        Of the critics, and of Adam for the generator.
    **others
        ``device``, ``neighbors``, ``n_bins``, ``noise`` and ``random_state``, see
        ``TorchSynthesizer`` and ``TableSynthesizer``.

    Attributes
    ----------
    network_ : StateNetwork
    """

    purpose: ClassVar[str]
    """Of what is released beside the counts."""
    widths: ClassVar[tuple[str, ...]] = ("generator_hidden",)
    rates: ClassVar[tuple[str, ...]] = ("learning_rate", "generator_rate")
    """Settings that are widths of at least 1, and positive numbers."""

    condition: str = field(default="label+group", init=False)
    start: float = 0.25
    batch_size: int = 32
    generator_hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 1e-2
    generator_rate: float = 2e-3

    # What a method adds

    @abstractmethod
    def _opponent(self, lesson: Lesson) -> Any:
        """Return the critics, before they have seen a row; the counts are released."""

    @abstractmethod
    def _play(self, opponent: Any, training: RowGeneratorTraining, lesson: Lesson) -> None:
        """Train critics and generator in turn, all noise reserved before."""

    # What is the same for all

    def _shares(self) -> Mapping[str, float]:
        return starting_shares(self.start, self.purpose)

    def _foresee(self, known: KnownOfTable) -> None:
        super()._foresee(known)
        _checks.one_of("condition", self.condition, CONDITIONED)
        for name in self.widths:
            _checks.each_at_least(name, getattr(self, name), 1)
        for name in self.rates:
            _checks.positive(name, getattr(self, name))

    def _learn(
        self, data: EncodedTable, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        rows = GivenRows.of(
            data.codes, data.sizes, data.condition, self.conditions_, self.condition
        )
        released = StartingCounts.release(data, self.conditions_.n, plan)
        self.counts_, self.counts_sigma_, tables = released.cells, released.sigma, released.tables
        base = np.zeros((rows.n_given, rows.n_states))
        if tables:
            base = log_shares(rows.by_condition(tables))
        # Critics hold rows, partitions and their keys: none of it may outlive the fit.
        lesson = Lesson(data=data, rows=rows, plan=plan, rng=rng, progress=progress)
        with computing(self.device):
            opponent = self._opponent(lesson)
            start = StateNetwork.start(
                rows.sizes[:-1],
                base,
                n_noise=max(1, rows.n_states // 4),
                hidden=self.generator_hidden,
                rng=rng,
            )
            training = RowGeneratorTraining(start, learning_rate=self.generator_rate)
            self._play(opponent, training, lesson)
        made = training.network()
        self.network_ = made.towards(np.exp(base), rng) if tables else made

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        return self.network_.draw(conditions, rng)

    def _arrays(self) -> dict[str, Array]:
        return self.network_.arrays()

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self.network_ = StateNetwork.from_arrays(arrays)
