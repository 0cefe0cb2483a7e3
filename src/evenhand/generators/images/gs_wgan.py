"""GSWGANImages: Wasserstein critics with a gradient penalty, one a step by a schedule, or all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise
from evenhand.generators.images.adversarial import STEPS, Release
from evenhand.generators.images.codec import EncodedImages
from evenhand.generators.images.rounds import Rounds
from evenhand.generators.images.teacher_gan import TeacherGANImages
from evenhand.generators.images.teachers import CHUNK, Teachers
from evenhand.generators.images.warm_start import HIDDEN
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.learners.nets.picture_critics import ConvCritic, CriticNetwork, CriticTraining
from evenhand.learners.nets.picture_generator import GeneratorTraining
from evenhand.learners.nets.tensors import seeded
from evenhand.teachers.partition import Partition

SCHEDULES: Final = ("all", "in turn")


@register
@dataclass(eq=False, repr=False, kw_only=True)
class GSWGANImages(TeacherGANImages):
    """Train a generator by sanitised gradients of Wasserstein critics (Chen et al. 2020).

    Parameters
    ----------
    schedule : {"all", "in turn"}
        "all": every critic answers at every step, as in ``TeacherGANImages``. "in turn": one critic
        a step, in a fixed public order; with as many teachers and the same budget its signal to
        noise is lower by a factor of ``n_teachers``.
    filters : sequence of int, optional
        Maps of convolutional critics; fully connected ones with ``hidden`` if not given.
    spectral : bool
        Whether every matrix of a critic is divided by its largest singular value.
    warm_steps : int
        Steps, each after ``critic_steps`` of the critics, in which every critic first learns
        against a generator of its own that never leaves; 0 for none. They are not released and
        cost nothing.
    critic_steps, critic_rate, input_noise
        As in ``TeacherGAN``, at the paper's values.
    **others
        See ``TeacherGAN``.

    Privacy
    -------
    Sensitivity : 2 per release, as in ``TeacherGANImages``, and 4 with ``strata``. In turn, one
        pass over all critics is one release: of its blocks one record moves one. (With ``strata``
        it moves two, each by 2: 4 is an upper bound there.)
    Cost : Gaussian; "in turn" pays for ``ceil(n_steps / n_teachers)`` rounds, each in full when it
        begins. The paper counts the 32 pictures of a step as independent subsampled queries, but
        one critic answers them all, and it keeps its state: its epsilon of 10 is 379 at the
        published noise with a fixed order.

    Notes
    -----
    The penalty holds gradients near norm 1 where the paper clips them; here each block is brought
    to norm 1 as a whole. A private generator of the warm start is a small dense network, where the
    paper's has the shape of the one that is released.
    """

    method: ClassVar[str] = "gs-wgan"
    words: ClassVar[str] = "noisy gradients of Wasserstein critics"

    schedule: str = "all"
    filters: Sequence[int] | None = None
    spectral: bool = False
    warm_steps: int = 0
    critic_steps: int = 5
    critic_rate: float = 1e-3
    input_noise: float = 0.0

    def _critic(self) -> CriticNetwork:
        if self.filters is None:
            return super()._critic()
        return ConvCritic(shape=self.codec_.size, widths=tuple(self.filters))

    def _training(self) -> CriticTraining:
        return replace(super()._training(), loss="wasserstein", spectral=self.spectral)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        what, needed, lower = super()._memory(data)
        if self.warm_steps:
            n_numbers = HIDDEN * (self.n_noise + self.conditions_.n + data.pixels[0].size)
            stack = 1 if self.schedule == "in turn" else min(CHUNK, self.n_teachers)
            needed += 16.0 * n_numbers * stack  # weights, gradients and two moments
        return what, needed, lower

    @property
    def _rounds(self) -> int:
        return -(-self.n_steps // self.n_teachers)

    def _teachers(
        self,
        data: EncodedImages,
        partition: Partition,
        sampler: GroupBalancedSampler | None,
        rng: np.random.Generator,
        chunk: int = CHUNK,
    ) -> Teachers:
        alone = 1 if self.schedule == "in turn" else chunk
        return super()._teachers(data, partition, sampler, rng, alone)

    def _train(
        self,
        teachers: Teachers,
        learner: GeneratorTraining,
        release: Release,
        rng: np.random.Generator,
        progress: Progress,
    ) -> None:
        if self.warm_steps:
            known = partial(self._even, rng=rng)
            for done in teachers.warm_up(self.warm_steps, self.critic_steps, known, self.n_noise):
                progress("warm start", done, self.n_teachers)
        if self.schedule == "all":
            super()._train(teachers, learner, release, rng, progress)
            return
        stream = seeded(rng)
        for step in range(self.n_steps):
            turn = step % self.n_teachers
            alone = range(turn, turn + 1)
            self._train_critics(teachers, learner, rng, alone)
            heads = self._even(self.n_rows, rng)
            drawn = learner.draw(heads)
            (gradients,) = teachers.pixel_gradients(drawn, heads, alone)
            learner.follow(drawn, release(self._said(gradients, None, stream)))
            progress("steps", step + 1, self.n_steps)

    def _release(self, plan: BudgetPlan, width: int) -> Release:
        if self.schedule == "all":
            return super()._release(plan, width)
        aggregator = self._charged(width)
        mechanism = plan.mechanism(aggregator, STEPS, n_steps=self._rounds)
        return Rounds(
            plan.ledger, mechanism, STEPS, self.n_teachers, self.n_rows * width, aggregator.unit
        )

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        if self.schedule == "all":
            return super()._snr(mu, width)
        return SignalToNoise(
            value=self.n_steps
            * self._mu_of_one(mu) ** 2
            / (4 * self._rounds * self.n_rows * width),
            formula="steps times mu squared over four times the rounds and the numbers of a block",
        )

    def _check(self) -> None:
        super()._check()
        _checks.one_of("schedule", self.schedule, SCHEDULES)
        _checks.at_least("warm_steps", self.warm_steps, 0)
