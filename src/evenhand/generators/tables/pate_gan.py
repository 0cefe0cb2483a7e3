"""PATEGANSynthesizer: teachers on partitions judge generated rows, a student learns their votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise, snr_of_gradients
from evenhand.generators.memory import require_memory
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.generators.synthesizer import SamplingSynthesizer
from evenhand.generators.tables.adversarial import AdversarialTables, GivenRows, Lesson
from evenhand.generators.tables.adversary import RowGeneratorTraining, Student
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.private_table import KnownOfTable
from evenhand.generators.tables.state_network import pick
from evenhand.generators.tables.teacher_critics import VotingCritics
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
class PATEGANSynthesizer(SamplingSynthesizer, AdversarialTables):
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
        What the generator is conditioned on. With "label" the group is a column that it generates,
        and the sampler balances groups; otherwise it balances combinations of label and group.
    n_rounds, batch_size, teacher_steps, student_steps : int
        Rounds; rows in a minibatch; steps of the teachers, and of the student and the generator, in
        a round.
    hidden, student_hidden : tuple of int
        Widths of hidden layers.
    learning_rate : float
        Of Adam, of teachers and student.
    **others
        See ``AdversarialTables``.

    Attributes
    ----------
    n_teachers_ : int

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
    purpose: ClassVar[str] = VOTES
    numbers: ClassVar[tuple[str, ...]] = (
        *("n_rounds", "batch_size", "teacher_steps", "student_steps"),
    )
    widths: ClassVar[tuple[str, ...]] = ("hidden", "student_hidden", "generator_hidden")
    critics: ClassVar[type[VotingCritics]] = VotingCritics
    gold: ClassVar[bool] = False
    """See ``StackedCritics``."""

    n_teachers: int | None = None
    condition: str = "label+group"
    n_rounds: int = 150
    teacher_steps: int = 5
    student_steps: int = 5
    hidden: tuple[int, ...] = (16,)
    student_hidden: tuple[int, ...] = (64,)

    def _learn(
        self, data: EncodedTable, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        super()._learn(data, plan, rng, progress)
        self._own_groups(rng)

    def _foresee(self, known: KnownOfTable) -> None:
        super()._foresee(known)
        asked = MOST_TEACHERS if self.n_teachers is None else self.n_teachers
        most = _checks.at_least("n_teachers", asked, 1)
        needed = bytes_of_critics((known.n_states,), self.hidden, most)
        require_memory(
            f"{most:,} teachers on {known.n_states} states with hidden layers {self.hidden}",
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

    def _opponent(self, lesson: Lesson) -> VotingCritics:
        data, rows, rng = lesson.data, lesson.rows, lesson.rng
        self.n_teachers_ = self._number()
        self.snr_ = self._predicted(rows, lesson.plan)
        # What is drawn from random_state can be repeated; a key that protects cannot.
        key = None if lesson.plan.ledger.noise.protects else rng.bytes(32)
        partition = self._deal(data, self.n_teachers_, key, rng)
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
                device=self.device,
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
        self, opponent: VotingCritics, training: RowGeneratorTraining, lesson: Lesson
    ) -> None:
        rows, plan, rng, progress = lesson.rows, lesson.plan, lesson.rng, lesson.progress
        n = self.batch_size
        n_steps, n_answers, n_rounds = self.teacher_steps, self.student_steps, self.n_rounds
        votes = BinaryVotes(n_rows=n)
        step = plan.mechanism(votes, VOTES, n_steps=n_rounds * n_answers)
        student = Student(
            sizes=rows.sizes, hidden=self.student_hidden, learning_rate=self.learning_rate, rng=rng
        )

        def given(size: int) -> IntArray:
            return rng.integers(
                0, rows.n_given, size
            )  # a public distribution: no real condition is read

        with plan.ledger.reserve({step: n_rounds * n_answers}, purpose=VOTES) as grant:
            noise = grant.draw(step, n).reshape(n_rounds, n_answers, n)
            for at in range(n_rounds):
                progress("teachers and generator", at, n_rounds)
                fake = training.rows(given(n_steps * n), rng)
                opponent.learn(fake.reshape(n_steps, n, -1))
                for drawn in noise[at]:
                    asked = training.rows(given(n), rng)
                    noisy = step.decide(votes.total(opponent.votes(asked)), drawn)
                    student.learn(asked, (noisy > opponent.half).astype(np.float64))
                    training.learn(given(n), student.loss, rng)
            progress("teachers and generator", n_rounds, n_rounds)

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
            return super()._draw(conditions, rng)
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
        return super()._arrays() | more

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        super()._restore(arrays)
        self.made_groups_ = arrays["made_groups"]
