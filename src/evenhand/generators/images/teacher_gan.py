"""The frame of image generators that teachers train: their answers, summed under noise, move it.

``TeacherGANImages``, ``GSWGANImages``, ``DataLensImages`` and ``GPATEImages`` differ in what a
teacher says and how it is summed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import torch
from evenhand.generators.aggregators import Aggregator
from evenhand.generators.budget_plan import BudgetPlan, Door, SignalToNoise, snr_of_gradients
from evenhand.generators.images.adversarial import STEPS, AdversarialImages, Lesson
from evenhand.generators.images.codec import EncodedImages
from evenhand.generators.images.teachers import AHEAD, CHUNK, POOL, Teachers
from evenhand.generators.registry import register
from evenhand.generators.teacher_sums import GradientSum
from evenhand.learners.nets.picture_critics import CriticTraining
from evenhand.learners.nets.tensors import array, seeded
from evenhand.typing import FloatArray, IntArray

FEW: Final = 5.0
"""Pictures of the rarest combination that a teacher should hold, on average."""


@dataclass(eq=False, repr=False, kw_only=True)
class TeacherGAN(AdversarialImages):
    """A generator that learns from teachers on disjoint parts of the private pictures.

    1. Every picture goes to one teacher: by its position, or by a keyed hash of its unit.
    2. Every teacher trains its critic on its own rows, drawn by ``sampler``, against drawn
       pictures.
    3. Pictures are drawn for conditions of a public, uniform distribution. Each teacher says how
       they should change; the sum over teachers leaves under noise, and the generator follows it.
    4. After ``n_steps`` such releases the running mean of the weights is kept.

    Steps and noise are fixed by the budget before the first step, and nothing stops on data.

    Parameters
    ----------
    n_teachers : int
        Critics. Signal to noise grows with their square; each should hold some pictures of every
        label and group.
    input_noise : float
        See ``CriticTraining``.
    **others
        See ``AdversarialImages``.

    Privacy
    -------
    Neighbors : replace one picture; with ``unit_ids`` add or remove one unit with all its pictures
        (those that ``per_unit`` keeps).
    Sensitivity : what one teacher can change, for one record sits with one teacher; see the method.
        All rows of a step are one release, for the same teacher answers about all of them.
    Cost : ``n_steps`` Gaussian releases, and one of the counts by label and group. No
        amplification is claimed: teachers keep their state between steps.
    """

    numbers: ClassVar[tuple[str, ...]] = (*AdversarialImages.numbers, "n_teachers")
    teachers: ClassVar[type[Teachers]] = Teachers
    gold: ClassVar[bool] = False
    """See ``CriticTraining``."""

    n_teachers: int = 500
    input_noise: float = 0.2

    # What a method adds

    @abstractmethod
    def _aggregator(self, width: int) -> Aggregator:
        """Return what a step releases; ``width`` is the number of pixels of a picture."""

    @abstractmethod
    def _said(self, gradients: Any, question: Any, stream: Any) -> IntArray:
        """Total of what these teachers say, from their gradients (n_some, n_rows, n_pixels).

        ``stream`` is for random answers; what is drawn from it may not depend on the gradients.
        """

    @abstractmethod
    def _direction(self, values: FloatArray, question: Any) -> FloatArray:
        """Gradient in the generated pictures (n_rows, n_pixels), from what was released."""

    def _question(self, stream: Any, width: int) -> Any:
        """Return what a step asks all teachers beside the pictures; public."""
        return None

    def _training(self) -> CriticTraining:
        """How a critic learns."""
        return CriticTraining(
            learning_rate=self.critic_rate, input_noise=self.input_noise, gold=self.gold
        )

    # What is the same for all

    @property
    def _n_parts(self) -> int:
        return self.n_teachers

    @property
    def _chunk(self) -> int:
        """Critics of one stack."""
        return CHUNK

    @property
    def _n_answering(self) -> float:
        """Teachers that are asked about one generated picture."""
        return self.n_teachers

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        critic, n_heads = self._critic(), self.conditions_.n
        each = sum(map(math.prod, critic.shapes(self.codec_.size, n_heads)))
        # Weights, gradients and two moments; gradients and minibatches of one stack; noise.
        critics = 16.0 * each * self.n_teachers
        queue = 8.0 * self.n_teachers * AHEAD * self.critic_rows
        width = critic.n_numbers(self.codec_.size)
        shown = 4.0 * CHUNK * width * (8 * self.n_rows + 12 * self.critic_rows) + 4.0 * POOL
        network = 64.0 * self._network(n_heads).n_parameters
        return (
            f"{self.n_teachers} critics of {each:,} numbers",
            critics + queue + shown + network + 2.0 * data.pixels.nbytes,
            f"n_teachers or {self._critic_sizes}",
        )

    def _teach(self, lesson: Lesson) -> None:
        self._train(self._teachers(lesson), lesson)

    def _train(self, teachers: Teachers, lesson: Lesson) -> None:
        """Take all steps; ``lesson.release`` is the only way from teachers to the generator."""
        learner, stream = lesson.learner, seeded(lesson.rng)
        for step in range(self.n_steps):
            self._train_critics(teachers, lesson, None)
            heads = self._even(self.n_rows, lesson.rng)
            drawn = learner.draw(heads)
            asked = self._question(stream, drawn[0].numel())
            said = [self._said(s, asked, stream) for s in teachers.pixel_gradients(drawn, heads)]
            released = lesson.release(np.sum(said, axis=0))
            learner.follow(drawn, self._direction(released, asked))
            lesson.progress("steps", step + 1, self.n_steps)

    def _train_critics(self, teachers: Teachers, lesson: Lesson, stacks: range | None) -> None:
        for _ in range(self.critic_steps):
            heads = self._even(self.critic_rows, lesson.rng)
            with torch.no_grad():
                drawn = lesson.learner.draw(heads)
            teachers.learn(drawn, heads, stacks)

    def _release(self, plan: BudgetPlan, width: int) -> Door:
        return plan.door(self._charged(width), STEPS, n_steps=self.n_steps)

    def _charged(self, width: int) -> Aggregator:
        """Return what a step releases, with the sensitivity of all teachers that one moves."""
        return self._aggregator(width)

    def _teachers(self, lesson: Lesson) -> Teachers:
        data = lesson.data
        return self.teachers(
            data.pixels,
            data.condition,
            data.balanced[0],
            n_heads=self.conditions_.n,
            partition=lesson.partition,
            network=self._critic(),
            training=self._training(),
            sampler=lesson.sampler,
            batch_size=self.critic_rows,
            rng=lesson.rng,
            chunk=self._chunk,
        )

    def _remarks(self) -> tuple[str, ...]:
        seen = [c for c in range(self.conditions_.n) if c not in self._unseen()]
        if not seen:
            return ()
        rarest = min(seen, key=lambda c: float(self.counts_[c]))
        each = float(self.counts_[rarest]) / self._n_answering
        if each >= FEW:
            return ()
        return (
            f"of about {self.counts_[rarest]:.0f} pictures with {self.conditions_.words(rarest)} "
            f"each of {self._n_answering:g} teachers holds {each:.1f} on average, and one without "
            f"any is silent on them; {FEW:g} or more are better",
        )

    def _check(self) -> None:
        super()._check()
        _checks.non_negative("input_noise", self.input_noise)
        self._aggregator(math.prod(self.codec_.size))


@register
class TeacherGANImages(TeacherGAN):
    """Train a generator by the gradients of many small critics, each on pictures of its own.

    At every step the gradients of one teacher's critic in all generated pictures are one block,
    brought to norm 1 as a whole. The blocks of all teachers are added; the sum leaves under noise.

    Parameters
    ----------
    See ``TeacherGAN``.

    Privacy
    -------
    Sensitivity : a teacher's block has norm at most 1 and may turn into any other: 2 per release.

    Notes
    -----
    Signal to noise over all steps is ``n_teachers**2 mu**2 / (4 n_rows n_pixels)``.
    """

    method: ClassVar[str] = "teacher-gan"
    words: ClassVar[str] = "noisy sums of the gradients of teachers"

    def _aggregator(self, width: int) -> GradientSum:
        return GradientSum(clip_norm=1.0)

    def _said(self, gradients: Any, question: Any, stream: Any) -> IntArray:
        norms = torch.linalg.vector_norm(gradients, dim=(1, 2), keepdim=True)
        blocks: FloatArray = array(gradients / norms.clamp(min=1e-30))
        return GradientSum(clip_norm=1.0).total(blocks)

    def _direction(self, values: FloatArray, question: Any) -> FloatArray:
        return values / self._n_answering

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        return snr_of_gradients(self.n_teachers, mu, self.n_rows * width)


@register
@dataclass(eq=False, repr=False, kw_only=True)
class GSWGANImages(TeacherGANImages):
    """Train a generator by the gradients of Wasserstein critics (Chen et al. 2020).

    The critics learn with a gradient penalty, and all of them answer at every step. The schedule
    and the warm start of the paper are in ``evenhand.baselines.gs_wgan``.

    Parameters
    ----------
    critic_steps, critic_rate, input_noise
        As in ``TeacherGAN``, at the paper's values.
    **others
        See ``TeacherGAN``.

    Privacy
    -------
    That of ``TeacherGANImages``.

    Notes
    -----
    The penalty holds gradients near norm 1 where the paper clips them; here each block is brought
    to norm 1 as a whole.
    """

    method: ClassVar[str] = "gs-wgan"
    words: ClassVar[str] = "noisy gradients of Wasserstein critics"

    critic_steps: int = 5
    critic_rate: float = 1e-3
    input_noise: float = 0.0

    def _training(self) -> CriticTraining:
        return replace(super()._training(), loss="wasserstein")
