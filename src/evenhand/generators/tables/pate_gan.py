"""PATEGANSynthesizer: teachers on partitions judge generated rows, a student learns their votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import require_torch
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise, snr_of_gradients
from evenhand.generators.memory import require_memory
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.generators.synthesizer import SamplingSynthesizer
from evenhand.generators.tables.adversary import RowGeneratorTraining, Student
from evenhand.generators.tables.private_table import EncodedTable
from evenhand.generators.tables.starting_counts import StartingCounts, starting_shares
from evenhand.generators.tables.state_network import StateNetwork, log_shares, pick
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.generators.tables.teacher_critics import CONDITIONED, GivenRows, VotingCritics
from evenhand.generators.teacher_sums import BinaryVotes
from evenhand.learners.nets.critics import StackedCritics, bytes_of_critics
from evenhand.teachers import by_position, by_unit
from evenhand.teachers.partition import Partition
from evenhand.typing import Array, FloatArray, IntArray

VOTES: Final = "votes of the teachers on generated rows"
RECORDS_PER_TEACHER: Final = 40
MOST_TEACHERS: Final = 1000

_POOL: Final = 4096  # rows from which those of a generated group are chosen


@register
@dataclass(eq=False, repr=False, kw_only=True)
class PATEGANSynthesizer(SamplingSynthesizer, TableSynthesizer):
    """Draw tables from a network that learnt from noisy votes of teachers.

    1. Records are counted by label and group, and every column within these (``start``).
    2. Each record goes to one teacher; a teacher learns to tell its own records from generated
       rows. All teachers are one stack of networks.
    3. A student judges generated rows. It learns from one thing only: whether most teachers took
       such a row for real, after noise.
    4. The generator moves to where the student takes its rows for real. Conditions are drawn evenly
       from a public distribution; no real label, group or row reaches student or generator.
    5. Steps 2 to 4 are repeated a fixed number of times; noise for all of them is fixed before.

    Parameters
    ----------
    n_teachers : int, optional
        If not given: one per 40 records by the noisy count, at most 1000.
    sampler : GroupBalancedSampler or None
        How a teacher draws its minibatches. None is PATE-GAN; with a sampler this is PFGuard.
    condition : {"label+group", "label"}
        What the generator is conditioned on. With "label" the group is a column that it
        generates, and the sampler balances groups; otherwise it balances combinations of label and
        group.
    start : float
        Part of the budget for counts of every column by label and group, from which the generator
        starts and to which its columns are brought back at the end. In [0, 1); 0 for PATE-GAN as
        published, whose generator starts from nothing.
    n_rounds, batch_size, teacher_steps, student_steps : int
        Rounds; rows in a minibatch; steps of the teachers, and of the student and the generator, in
        a round.
    hidden, student_hidden, generator_hidden : tuple of int
        Widths of hidden layers.
    learning_rate, generator_rate : float
        Of Adam, of teachers and student, and of the generator.
    **others
        ``neighbors``, ``n_bins``, ``noise`` and ``random_state``, see ``TableSynthesizer``.

    Attributes
    ----------
    n_teachers_ : int
    network_ : StateNetwork

    Privacy
    -------
    Neighbors : add or remove one record or unit; or replace one record.
    Sensitivity : one record sits with one teacher, whose vote on each of B rows may flip:
        ``sqrt(B)`` per release. The records of a unit sit with the same teacher. Records without
        a unit go where a keyed hash of their position says, with a secret key: as if by coins.
    Cost : ``n_rounds * student_steps`` Gaussian releases of B counts, reserved before the first.

    References
    ----------
    Jordon, Yoon and van der Schaar 2019 (PATE-GAN). Kim et al. 2025 (PFGuard).
    """

    method: ClassVar[str] = "pate-gan"
    words: ClassVar[str] = "noisy votes of teachers on generated rows"
    needs: ClassVar[tuple[str, ...]] = ("torch",)
    critics: ClassVar[type[VotingCritics]] = VotingCritics
    gold: ClassVar[bool] = False
    """See ``StackedCritics``."""

    n_teachers: int | None = None
    condition: str = "label+group"
    start: float = 0.25
    n_rounds: int = 150
    batch_size: int = 32
    teacher_steps: int = 5
    student_steps: int = 5
    hidden: tuple[int, ...] = (16,)
    student_hidden: tuple[int, ...] = (64,)
    generator_hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 1e-2
    generator_rate: float = 2e-3

    def _shares(self) -> Mapping[str, float]:
        return starting_shares(self.start, VOTES)

    def _learn(
        self, data: EncodedTable, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        rows = GivenRows.of(
            data.codes, data.sizes, data.condition, self.conditions_, self.condition
        )
        released = StartingCounts.release(data, self.conditions_.n, plan)
        self.counts_, self.counts_sigma_, tables = released.cells, released.sigma, released.tables
        self.n_teachers_ = self._number()
        self.snr_ = self._predicted(rows, plan)
        base = np.zeros((rows.n_given, rows.n_states))
        if tables:
            base = log_shares(rows.by_condition(tables))
        # Teachers hold the rows, the partition and its key: none of it may outlive the fit.
        teachers = self._teachers(data, rows, plan.ledger.noise.protects, rng)
        start = StateNetwork.start(
            rows.sizes[:-1],
            base,
            n_noise=max(1, rows.n_states // 4),
            hidden=self.generator_hidden,
            rng=rng,
        )
        made = self._play(rows, teachers, start, plan, rng, progress)
        self.network_ = made.towards(np.exp(base), rng) if tables else made
        self._own_groups(rng)

    def _foresee(self, n_states: int) -> None:
        require_torch(type(self).__name__)
        _checks.one_of("condition", self.condition, CONDITIONED)
        for name in ("n_rounds", "batch_size", "teacher_steps", "student_steps"):
            _checks.at_least(name, getattr(self, name), 1)
        for name in _WIDTHS:
            for width in getattr(self, name):
                _checks.at_least(name, width, 1)
        for name in ("learning_rate", "generator_rate"):
            _checks.positive(name, getattr(self, name))
        asked = MOST_TEACHERS if self.n_teachers is None else self.n_teachers
        most = _checks.at_least("n_teachers", asked, 1)
        needed = bytes_of_critics((n_states,), self.hidden, most)
        require_memory(
            f"{most:,} teachers on {n_states} states with hidden layers {self.hidden}",
            needed,
            "n_teachers, hidden or n_bins",
        )

    def _number(self) -> int:
        """Return the number of teachers: as it was asked for, or by the noisy count."""
        if self.n_teachers is not None:
            return _checks.at_least("n_teachers", self.n_teachers, 1)
        n = int(max(self.counts_.sum(), 0.0)) // RECORDS_PER_TEACHER
        return max(1, min(n, MOST_TEACHERS))

    def _predicted(self, rows: GivenRows, plan: BudgetPlan) -> SignalToNoise:
        share = plan.ledger.budget.mu_squared * plan.shares[VOTES]
        found = snr_of_gradients(self.n_teachers_, mu=share**0.5, n_values=rows.n_states)
        words = "teachers squared times mu squared of the votes over four times the states"
        return SignalToNoise(value=found.value, formula=words)

    def _teachers(
        self, data: EncodedTable, rows: GivenRows, secret: bool, rng: np.random.Generator
    ) -> VotingCritics:
        # What is drawn from random_state can be repeated; a key that protects cannot.
        partition = self._deal(data, self.n_teachers_, None if secret else rng.bytes(32), rng)
        weights, minibatches = (rng.spawn(1)[0].spawn(self.n_teachers_) for _ in range(2))
        return self.critics(
            rows=rows,
            partition=partition,
            critics=StackedCritics(
                sizes=rows.sizes,
                hidden=self.hidden,
                streams=weights,
                learning_rate=self.learning_rate,
                gold=self.gold,
            ),
            sampler=self._ready_sampler(rows),
            streams=list(minibatches),
            batch_size=self.batch_size,
        )

    def _deal(
        self, data: EncodedTable, n_teachers: int, key: bytes | None, rng: np.random.Generator
    ) -> Partition:
        """Send every record to a teacher that follows from itself, its unit and a key alone.

        Privacy
        -------
        "replace one": by position, in an order that depends on the number of records alone.
        "add or remove one": by a keyed hash of the unit. Records without units go by their
        position; under a key that nobody knows this is a coin of its own for each record, so the
        other records' teachers have the same distribution whether or not one record is there.
        """
        if self.neighbors == "replace one":
            return by_position(len(data.codes), n_teachers, rng)
        if data.units is None:
            return by_unit(np.arange(len(data.codes)), n_teachers, key, unit="record")
        return by_unit(data.units, n_teachers, key, unit="unit")

    def _ready_sampler(self, rows: GivenRows) -> GroupBalancedSampler | None:
        """Give the sampler the shares that its scope needs; noisy ones were released already."""
        sampler = self.sampler
        if sampler is None or sampler.shares is not None or sampler.scope == "partition":
            return sampler
        noisy = np.maximum(self.counts_, 1.0)
        if rows.balanced[1] == self.conditions_.n_groups:
            noisy = np.bincount(self.conditions_.groups(), noisy)
        return sampler.with_shares_of(noisy)

    def _play(
        self,
        rows: GivenRows,
        teachers: VotingCritics,
        start: StateNetwork,
        plan: BudgetPlan,
        rng: np.random.Generator,
        progress: Progress,
    ) -> StateNetwork:
        """Train teachers, student and generator in turn, all noise reserved before."""
        n = self.batch_size
        n_steps, n_answers, n_rounds = self.teacher_steps, self.student_steps, self.n_rounds
        votes = BinaryVotes(n_rows=n)
        step = plan.mechanism(votes, VOTES, n_steps=n_rounds * n_answers)
        student = Student(
            sizes=rows.sizes, hidden=self.student_hidden, learning_rate=self.learning_rate, rng=rng
        )
        training = RowGeneratorTraining(start, learning_rate=self.generator_rate)

        def given(size: int) -> IntArray:
            return rng.integers(
                0, rows.n_given, size
            )  # a public distribution: no real condition is read

        def made(conditions: IntArray) -> IntArray:
            return np.column_stack([training.network().draw(conditions, rng), conditions])

        with plan.ledger.reserve({step: n_rounds * n_answers}, purpose=VOTES) as grant:
            noise = grant.draw(step, n).reshape(n_rounds, n_answers, n)
            for at in range(n_rounds):
                progress("teachers and generator", at, n_rounds)
                teachers.learn(made(given(n_steps * n)).reshape(n_steps, n, -1))
                for drawn in noise[at]:
                    asked = made(given(n))
                    noisy = step.decide(votes.total(teachers.votes(asked)), drawn)
                    student.learn(asked, (noisy > teachers.half).astype(np.float64))
                    training.learn(given(n), student.loss, rng)
            progress("teachers and generator", n_rounds, n_rounds)
        return training.network()

    def _own_groups(self, rng: np.random.Generator) -> None:
        """With the label alone given, measure how often the generator makes each group."""
        known = self.conditions_
        self.made_groups_ = np.zeros((0, 0))
        if self.condition == "label":
            labels = np.repeat(np.arange(known.sizes[0]), _POOL)
            probabilities = self.network_.probabilities(labels, rng)[:, -known.n_groups :]
            shares: FloatArray = probabilities.reshape(known.sizes[0], _POOL, -1).mean(axis=1)
            self.made_groups_ = shares

    def _known_counts(self) -> FloatArray:
        """Noisy counts; where groups are generated, those of the labels spread as they are made."""
        noisy = super()._known_counts()
        if not self.made_groups_.size:
            return noisy
        of_label = noisy.reshape(self.made_groups_.shape).sum(axis=1, keepdims=True)
        made: FloatArray = np.maximum((of_label * self.made_groups_).ravel(), 1e-9)
        return made

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        if self.condition == "label+group":
            return self.network_.draw(conditions, rng)
        known = self.conditions_
        out = np.empty((len(conditions), len(self.codec_.features)), dtype=np.int64)
        for c in np.unique(conditions):
            # Given its noise a row's columns are independent of its group: noise is chosen by how
            # likely it makes this group, which is the distribution of rows with this group.
            probabilities = self.network_.probabilities(np.full(_POOL, known.labels()[c]), rng)
            likely = probabilities[:, -known.n_groups :][:, known.groups()[c]]
            at = np.flatnonzero(conditions == c)
            chosen = rng.choice(_POOL, len(at), p=likely / likely.sum())
            out[at] = pick(probabilities[chosen], self.network_.starts, rng)[:, :-1]
        return out

    def _arrays(self) -> dict[str, Array]:
        more: dict[str, Array] = {"made_groups": self.made_groups_}
        return self.network_.arrays() | more

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self.network_ = StateNetwork.from_arrays(arrays)
        self.made_groups_ = arrays["made_groups"]


_WIDTHS: Final = ("hidden", "student_hidden", "generator_hidden")
