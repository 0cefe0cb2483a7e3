"""GS-WGAN as published: one critic a step by a schedule, spectral norm, and a warm start."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

from evenhand import _checks
from evenhand._torch import torch
from evenhand.generators.budget_plan import BudgetPlan, Door, SignalToNoise
from evenhand.generators.images.adversarial import STEPS, Lesson
from evenhand.generators.images.codec import EncodedImages
from evenhand.generators.images.teacher_gan import GSWGANImages
from evenhand.generators.images.teachers import Teachers
from evenhand.generators.registry import register
from evenhand.learners.nets.picture_critics import SLOPE, CriticStack, CriticTraining
from evenhand.learners.nets.picture_generator import random_inputs
from evenhand.learners.nets.tensors import seeded
from evenhand.typing import IntArray

SCHEDULES: Final = ("all", "in turn")
HIDDEN: Final = 64  # width of the hidden layer of a private generator


class PrivateGenerators:
    """Small generators, one for each critic of a stack and read by nobody else.

    A hidden layer and a sigmoid, from random inputs and a one-hot condition. (Where no noise is
    added to its gradient a sigmoid does not die: these need not be cut as ``GrowingNetwork``.)

    Parameters
    ----------
    stack : CriticStack
        Their critics.
    n_pixels, n_heads, n_noise : int
        Numbers of a picture, conditions, and random inputs.
    latent : str
        Distribution of these, see ``GrowingNetwork``.
    stream : torch.Generator
        Seeds first weights and inputs; public.

    Privacy
    -------
    Generator t learns from critic t alone, critic t from its own rows and generator t: nothing
    crosses from teacher to teacher, and nothing is released. So the warm start costs nothing, and
    one record still moves one teacher.
    """

    def __init__(
        self,
        stack: CriticStack,
        *,
        n_pixels: int,
        n_heads: int,
        n_noise: int,
        latent: str = "normal",
        stream: Any,
    ) -> None:
        self._stack, self._stream, self._latent = stack, stream, latent
        self._n_heads, self._n_noise = n_heads, _checks.at_least("n_noise", n_noise, 1)
        self.weights = []
        for n_in, n_out in ((n_noise + n_heads, HIDDEN), (HIDDEN, n_pixels)):
            drawn = torch.randn(stack.n_critics, n_in, n_out, generator=stream)
            self.weights.append((drawn * math.sqrt(2.0 / n_in)).requires_grad_())
            self.weights.append(torch.zeros(stack.n_critics, 1, n_out).requires_grad_())
        rate = stack.training.learning_rate
        self._adam = torch.optim.Adam(self.weights, lr=rate, betas=(0.5, 0.9), fused=True)

    def draw(self, heads: IntArray) -> Any:
        """Every generator's pictures for the same conditions (n,): (n_critics, n, n_pixels)."""
        noise = random_inputs(self._latent, len(heads), self._n_noise, self._stream)
        given_heads = torch.nn.functional.one_hot(torch.as_tensor(heads), self._n_heads)
        given = torch.cat([noise, given_heads.to(noise.dtype)], dim=1)
        first, bias, last, offset = self.weights
        h = torch.baddbmm(bias, given.expand(len(first), *given.shape), first)
        return torch.baddbmm(offset, torch.nn.functional.leaky_relu(h, SLOPE), last).sigmoid()

    def learn(self, heads: IntArray, counts: Any) -> None:
        """Take one step of every generator against its own critic.

        ``counts`` (n_critics, n) is 0 for conditions of which a critic has no row: on these it says
        nothing.
        """
        drawn = self.draw(heads)
        asked = torch.as_tensor(heads).view(1, -1, 1).expand(len(drawn), -1, 1)
        loss = (self._stack.loss_of_drawn(drawn, asked) * counts).mean(dim=1).sum()
        gradients = torch.autograd.grad(loss, self.weights)
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient
        self._adam.step()


class WarmTeachers(Teachers):
    """Teachers that know their pictures from the first step, so that the first release says more.

    Privacy
    -------
    As before, a teacher reads its own rows and public randomness alone; see ``PrivateGenerators``.
    """

    def warm_up(
        self,
        n_steps: int,
        critic_steps: int,
        heads: Callable[[int], IntArray],
        n_noise: int,
        latent: str = "normal",
    ) -> Iterator[int]:
        """Train every critic against a generator of its own; see ``PrivateGenerators``.

        Parameters
        ----------
        n_steps, critic_steps : int
            Steps of the generators, and of the critics before each.
        heads : callable
            Gives so many conditions of a public distribution.
        n_noise, latent
            Random inputs of a generator, and their distribution.

        Yields
        ------
        int
            Teachers that are done, stack by stack.
        """
        for some, stack in self._parts(None):
            own = PrivateGenerators(
                stack,
                n_pixels=self._pixels.shape[1],
                n_heads=self._held.shape[1],
                n_noise=n_noise,
                latent=latent,
                stream=self._shared,
            )
            for _ in range(n_steps):
                for _ in range(critic_steps):
                    asked = heads(self.batch_size)
                    self._learn(some, stack, own.draw(asked).detach(), asked)
                asked = heads(self.batch_size)
                own.learn(asked, self._held[some][:, asked])
            yield some.start + stack.n_critics


@register
@dataclass(eq=False, repr=False, kw_only=True)
class PublishedGSWGANImages(GSWGANImages):
    """``GSWGANImages`` with what the paper has beside its loss, to compare with.

    Parameters
    ----------
    schedule : {"all", "in turn"}
        "in turn": one critic a step, in a fixed public order; with as many teachers and the same
        budget its signal to noise is lower by a factor of ``n_teachers``. "all": every critic
        answers at every step, as in ``GSWGANImages``.
    spectral : bool
        Whether every matrix of a critic is divided by its largest singular value.
    warm_steps : int
        Steps, each after ``critic_steps`` of the critics, in which every critic first learns
        against a generator of its own that never leaves; 0 for none. They are not released and
        cost nothing.
    **others
        See ``GSWGANImages``.

    Privacy
    -------
    Sensitivity : 2 per release, as in ``TeacherGANImages``. In turn, one round over all critics is
        one release: of its blocks one record moves one. (With a teacher for each group it moves
        two, each by 2: 4 is an upper bound there.)
    Cost : Gaussian; "in turn" pays for ``ceil(n_steps / n_teachers)`` rounds, each in full when it
        begins. The paper counts the 32 pictures of a step as independent subsampled queries, but
        one critic answers them all, and it keeps its state: its epsilon of 10 is 379 at the
        published noise with a fixed order.

    Notes
    -----
    A private generator of the warm start is a small dense network, where the paper's has the shape
    of the one that is released.
    """

    method: ClassVar[str] = "gs-wgan-published"
    words: ClassVar[str] = "noisy gradients of one Wasserstein critic a step"
    teachers: ClassVar[type[Teachers]] = WarmTeachers

    schedule: str = "in turn"
    spectral: bool = False
    warm_steps: int = 0

    def _training(self) -> CriticTraining:
        return replace(super()._training(), spectral=self.spectral)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        what, needed, lower = super()._memory(data)
        if self.warm_steps:
            n_numbers = HIDDEN * (self.n_noise + self.conditions_.n + data.pixels[0].size)
            stack = min(self._chunk, self.n_teachers)
            needed += 16.0 * n_numbers * stack  # weights, gradients and two moments
        return what, needed, lower

    @property
    def _rounds(self) -> int:
        return -(-self.n_steps // self.n_teachers)

    @property
    def _chunk(self) -> int:
        return 1 if self.schedule == "in turn" else super()._chunk

    def _train(self, teachers: Teachers, lesson: Lesson) -> None:
        learner, rng, progress = lesson.learner, lesson.rng, lesson.progress
        if self.warm_steps:
            assert isinstance(teachers, WarmTeachers)
            known = partial(self._even, rng=rng)
            inputs = (self.n_noise, self.latent)
            for done in teachers.warm_up(self.warm_steps, self.critic_steps, known, *inputs):
                progress("warm start", done, self.n_teachers)
        if self.schedule == "all":
            super()._train(teachers, lesson)
            return
        stream = seeded(rng)
        for step in range(self.n_steps):
            turn = step % self.n_teachers
            alone = range(turn, turn + 1)
            self._train_critics(teachers, lesson, alone)
            heads = self._even(self.n_rows, rng)
            drawn = learner.draw(heads)
            (gradients,) = teachers.pixel_gradients(drawn, heads, alone)
            learner.follow(drawn, lesson.release(self._said(gradients, None, stream)))
            progress("steps", step + 1, self.n_steps)

    def _release(self, plan: BudgetPlan, width: int) -> Door:
        if self.schedule == "all":
            return super()._release(plan, width)
        return plan.rounds(
            self._charged(width),
            STEPS,
            n_rounds=self._rounds,
            n_blocks=self.n_teachers,
            length=self.n_rows * width,
        )

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        if self.schedule == "all":
            return super()._snr(mu, width)
        return SignalToNoise(
            value=self.n_steps * mu**2 / (4 * self._rounds * self.n_rows * width),
            formula="steps times mu squared over four times the rounds and the numbers of a block",
        )

    def _check(self) -> None:
        super()._check()
        _checks.one_of("schedule", self.schedule, SCHEDULES)
        _checks.at_least("warm_steps", self.warm_steps, 0)
