"""The frame of image generators that learn against critics, whoever trains these.

Deal the pictures, release the counts, fix the noise, take a fixed number of steps, keep the running
mean of the weights.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand.generators.budget_plan import BudgetPlan, Door, SignalToNoise
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.synthesizer import COUNTS, ImageSynthesizer
from evenhand.generators.payload import Progress
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.generators.synthesizer import SamplingSynthesizer, TorchSynthesizer
from evenhand.learners.nets.picture_critics import ConvCritic, CriticNetwork, DenseCritic
from evenhand.learners.nets.picture_generator import (
    LATENTS,
    GeneratorTraining,
    GrowingNetwork,
    draw_pictures,
)
from evenhand.learners.nets.tensors import computing
from evenhand.privacy import FloatNoise
from evenhand.privacy.noise import Noise
from evenhand.teachers import by_position, by_unit
from evenhand.teachers.partition import Partition
from evenhand.typing import Array, IntArray

STEPS: Final = "answers of the critics, step by step"
SHARES: Final = "shares of the groups, for the sampler"
NETWORKS: Final = ("dense", "convolutional")
SMALL_SHARE: Final = 0.02
"""Of the budget, for the counts by label and group, and for the shares of a noisy sampler."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """What a generator is trained with; lives no longer than a fit."""

    data: EncodedImages
    """The private pictures."""
    partition: Partition
    """Whose critic, or which batch, each of them goes to."""
    sampler: GroupBalancedSampler | None
    """With the shares that it needs."""
    learner: GeneratorTraining
    release: Door
    """The only way from the pictures to ``learner``."""
    rng: np.random.Generator
    progress: Progress


@dataclass(eq=False, repr=False, kw_only=True)
class AdversarialImages(SamplingSynthesizer, TorchSynthesizer, ImageSynthesizer):
    """A generator network that learns against one critic or many.

    Steps and noise are fixed by the budget before the first step, and nothing stops on data. A
    method has parameters of its own beside these.

    Parameters
    ----------
    n_steps : int
        Updates of the generator, each a release. Signal to noise of all of them together does not
        depend on it.
    n_rows : int
        Generated pictures from which it learns in a step.
    critic_steps, critic_rows : int
        Updates of every critic between two of the generator, and pictures of each kind in one.
    network : {"dense", "convolutional"}
        "convolutional": critics of strided convolutions with class projection, and residual blocks
        in the generator. "dense": fully connected critics, and a generator of a convolution for
        each doubling.
    hidden : sequence of int
        Widths of a dense critic's hidden layers.
    filters : sequence of int
        Maps of every layer of a convolutional critic.
    critic_rate : float
        Learning rate of a critic's Adam.
    n_noise, width : int
        See ``GrowingNetwork``.
    latent : {"normal", "bernoulli"}
        Distribution of the generator's ``n_noise`` random inputs. "bernoulli": 0 or 1, as GS-WGAN
        has ten of; a condition has at most ``2**n_noise`` different pictures then.
    rates : (float, float)
        Learning rate of the generator at the first and at the last step.
    sampler : GroupBalancedSampler or None
        How a critic's minibatches are drawn: labels and groups evenly (default), or as they are
        (None). A mapping of its settings will do.
    device
        See ``TorchSynthesizer``.
    condition, noise, random_state
        See ``ImageSynthesizer``. Noise is ``FloatNoise()`` by default, for what leaves is made of
        real numbers; exact noise on every number of every step takes as long as the training.
    """

    numbers: ClassVar[tuple[str, ...]] = (
        *("n_steps", "n_rows", "critic_steps", "critic_rows"),
        *("n_noise", "width"),
    )
    default_noise: ClassVar[type[Noise]] = FloatNoise

    n_steps: int = 200
    n_rows: int = 16
    critic_steps: int = 2
    critic_rows: int = 12
    network: str = "dense"
    hidden: Sequence[int] = (24,)
    filters: Sequence[int] = (8, 16, 32)
    rates: Sequence[float] = (1e-2, 3e-4)
    critic_rate: float = 1e-3
    n_noise: int = 16
    latent: str = "normal"
    width: int = 48
    neighbors: str = field(default="replace one", init=False)

    # What a method adds

    @property
    @abstractmethod
    def _n_parts(self) -> int:
        """Disjoint parts into which the pictures are dealt."""

    @abstractmethod
    def _release(self, plan: BudgetPlan, width: int) -> Door:
        """Return the door: it charges, draws noise, and gives what left.

        ``width`` is the number of pixels of a picture.
        """

    @abstractmethod
    def _teach(self, lesson: Lesson) -> None:
        """Take all steps."""

    @abstractmethod
    def _snr(self, mu: float, width: int) -> SignalToNoise:
        """Signal to noise that all steps together predict, at this part of the budget."""

    def _critic(self) -> CriticNetwork:
        """One critic."""
        if self.network == "convolutional":
            return ConvCritic(shape=self.codec_.size, filters=tuple(self.filters))
        return DenseCritic(hidden=tuple(self.hidden))

    @property
    def _critic_sizes(self) -> str:
        """Parameter that sets the size of a critic."""
        return "filters" if self.network == "convolutional" else "hidden"

    # What is the same for all

    def _open(self, named: str | None) -> str:
        # Rows dealt by position: how many there are is public. Units are hashed one by one.
        return "replace one" if named is None else "add or remove one"

    def _shares(self) -> Mapping[str, float]:
        small = {COUNTS: SMALL_SHARE}
        sampler = self.sampler
        if sampler is not None and sampler.scope == "noisy":
            small[SHARES] = SMALL_SHARE
        return small | {STEPS: 1.0 - math.fsum(small.values())}

    def _foresee(self, data: EncodedImages) -> None:
        self._check()
        self._critic()
        self._refuse_other_shares(data)
        super()._foresee(data)

    def _learn(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        width = data.pixels[0].size
        partition = self._partition(data, rng)
        self._release_counts(data, plan)
        sampler = self._ready_sampler(data, plan)
        mu = (plan.ledger.budget.mu_squared * plan.shares.get(STEPS, 0.0)) ** 0.5
        self.snr_ = self._snr(mu, width)
        self.network_ = self._network(self.conditions_.n)
        with computing(self.device):
            learner = GeneratorTraining(
                self.network_,
                n_steps=self.n_steps,
                rates=(float(self.rates[0]), float(self.rates[1])),
                rng=rng,
            )
            lesson = Lesson(
                data=data,
                partition=partition,
                sampler=sampler,
                learner=learner,
                release=self._release(plan, width),
                rng=rng,
                progress=progress,
            )
            self._teach(lesson)
        self.weights_: Mapping[str, Array] = learner.weights()

    def _release_counts(self, data: EncodedImages, plan: BudgetPlan) -> None:
        """Set ``counts_`` and ``counts_sigma_``."""
        released = plan.release_counts(
            data.condition, self.conditions_.n, COUNTS, per_unit=data.per_unit
        )
        self.counts_, self.counts_sigma_ = released.values, released.sigma

    def _even(self, n: int, rng: np.random.Generator) -> IntArray:
        """Conditions of a public, uniform distribution, among those that the noisy counts show."""
        unseen = self._unseen()
        seen = np.array([c for c in range(self.conditions_.n) if c not in unseen], dtype=np.int64)
        if not len(seen):
            seen = np.arange(self.conditions_.n)
        return rng.permutation(np.resize(rng.permutation(seen), n))

    def _partition(self, data: EncodedImages, rng: np.random.Generator) -> Partition:
        if data.units is None:
            return by_position(len(data), self._n_parts, rng)
        return by_unit(data.units, self._n_parts)

    def _network(self, n_heads: int) -> GrowingNetwork:
        return GrowingNetwork(
            shape=self.codec_.size,
            n_heads=n_heads,
            n_noise=self.n_noise,
            latent=self.latent,
            width=self.width,
            residual=self.network == "convolutional",
        )

    def _ready_sampler(self, data: EncodedImages, plan: BudgetPlan) -> GroupBalancedSampler | None:
        """Return the sampler with the shares that it needs, over labels and groups."""
        sampler = self.sampler
        if sampler is not None and sampler.scope == "noisy":
            mu_squared = plan.ledger.budget.mu_squared * plan.shares[SHARES] * (1.0 - 1e-9)
            return sampler.with_noisy_shares(
                *data.balanced, plan.ledger, mu_squared=mu_squared, per_unit=data.per_unit
            )
        return sampler

    def _refuse_other_shares(self, data: EncodedImages) -> None:
        sampler, (_, n) = self.sampler, data.balanced
        if sampler is not None and sampler.shares is not None and len(sampler.shares) != n:
            raise ValueError(
                f"The sampler has {len(sampler.shares)} shares, and there are {n} combinations of "
                f"{data.n_labels} labels and {data.n_groups} groups: give one for each, the groups "
                f"of the first label first."
            )

    def _check(self) -> None:
        _checks.one_of("network", self.network, NETWORKS)
        _checks.one_of("latent", self.latent, LATENTS)
        if len(self.rates) != 2:
            raise ValueError(f"rates are the first and the last one, got {self.rates!r}.")
        for rate in self.rates:
            _checks.positive("rates", rate)
        for name in ("hidden", "filters"):
            _checks.each_at_least(name, getattr(self, name), 1)
        _checks.positive("critic_rate", self.critic_rate)

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        return draw_pictures(self.network_, self.weights_, conditions, rng)

    def _arrays(self) -> dict[str, Array]:
        return dict(self.weights_)

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self.network_ = self._network(self.conditions_.n)
        self.weights_ = dict(arrays)
