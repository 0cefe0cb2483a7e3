"""The frame of image generators that teachers train: their answers, summed under noise, move it.

``TeacherGANImages``, ``GSWGANImages``, ``DataLensImages`` and ``GPATEImages`` differ in what a
teacher says and how it is summed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand.generators.aggregators import Aggregator
from evenhand.generators.conditional import Progress
from evenhand.generators.images.base import COUNTS, ImageSynthesizer
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.critics import CriticNetwork, CriticTraining, DenseCritic
from evenhand.generators.images.networks import GrowingNetwork, Learner, one_thread, paint, seeded
from evenhand.generators.images.painter import require_torch, torch
from evenhand.generators.images.teachers import AHEAD, CHUNK, POOL, Teachers
from evenhand.generators.plan import Purse, SignalToNoise
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.privacy import FloatNoise, Guarantee, Noise
from evenhand.teachers import Partition, by_position, by_unit
from evenhand.typing import Array, FloatArray, IntArray, RandomState

STEPS: Final = "teachers' answers about drawn pictures"
SHARES: Final = "shares of the groups, for the sampler"
SMALL_SHARE: Final = 0.02
"""Of the budget for the counts by label and group, and for the sampler's shares if it buys them."""

FEW: Final = 5.0
"""Pictures of the rarest combination that a teacher should hold, on average."""

BALANCED: Final = GroupBalancedSampler()

Release = Callable[[IntArray], FloatArray]


class TeacherGAN(ImageSynthesizer):
    """A generator that learns from teachers on disjoint parts of the private pictures.

    1. Every picture goes to one teacher: by its position, or by a keyed hash of its unit.
    2. Every teacher trains its critic on its own rows, drawn by ``sampler``, against drawn
       pictures.
    3. Pictures are drawn for conditions of a public, even law. Each teacher says how they should
       change; the sum over teachers leaves under noise, and the generator follows it.
    4. After ``n_steps`` such releases the running mean of the weights is kept.

    Steps and noise are fixed by the budget before the first step, and nothing stops on data.

    Parameters
    ----------
    n_teachers : int
        Critics. Signal to noise grows with their square; each should hold some pictures of every
        label and group.
    n_steps : int
        Releases. Signal to noise of all of them together does not depend on it.
    n_rows : int
        Drawn pictures that the teachers judge in a step.
    critic_steps, critic_rows : int
        Updates of every critic between two releases, and pictures of each kind in one.
    hidden : sequence of int
        Widths of a critic's hidden layers.
    critic_rate, input_noise, gold
        See ``CriticTraining``.
    n_noise, width : int
        See ``GrowingNetwork``.
    rates : (float, float)
        Learning rate of the generator at the first and at the last step.
    sampler : GroupBalancedSampler or None
        How a teacher draws minibatches of its own rows: labels and groups evenly (default), or
        as they are (None). ``scope="global"`` is the published rule, under which no claim holds.
    condition, noise, random_state
        See ``ImageSynthesizer``. Noise is ``FloatNoise()`` by default, for slopes are real
        numbers; exact noise on every number of every step takes as long as the training.

    Privacy
    -------
    Neighbors : replace one picture; with ``unit_ids`` add or remove one unit with all its pictures
        (those that ``per_unit`` keeps).
    Sensitivity : what one teacher can change, for one record sits with one teacher; see the method.
        All rows of a step are one release, for the same teacher answers about all of them.
    Cost : ``n_steps`` Gaussian releases, and one of the counts by label and group. No
        amplification is claimed: teachers keep their state between steps.
    """

    network_: GrowingNetwork
    weights_: Mapping[str, Array]

    def __init__(
        self,
        *,
        n_teachers: int = 500,
        n_steps: int = 200,
        n_rows: int = 16,
        critic_steps: int = 2,
        critic_rows: int = 12,
        hidden: Sequence[int] = (24,),
        critic_rate: float = 1e-3,
        input_noise: float = 0.2,
        gold: bool = False,
        n_noise: int = 16,
        width: int = 48,
        rates: Sequence[float] = (1e-2, 3e-4),
        sampler: GroupBalancedSampler | Mapping[str, Any] | None = BALANCED,
        condition: str = "label+group",
        noise: Noise | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            condition=condition, neighbors="replace one", noise=noise, random_state=random_state
        )
        self.n_teachers = n_teachers
        self.n_steps = n_steps
        self.n_rows = n_rows
        self.critic_steps = critic_steps
        self.critic_rows = critic_rows
        self.hidden = hidden
        self.critic_rate = critic_rate
        self.input_noise = input_noise
        self.gold = gold
        self.n_noise = n_noise
        self.width = width
        self.rates = rates
        self.sampler = sampler

    # What a method adds

    @abstractmethod
    def _aggregator(self, width: int) -> Aggregator:
        """Return what a step releases; ``width`` is the number of pixels of a picture."""

    @abstractmethod
    def _said(self, slopes: Any, question: Any, stream: Any) -> IntArray:
        """Total of what these teachers say, from their slopes (n_some, n_rows, n_pixels).

        ``stream`` is for random answers; what is drawn from it may not depend on the slopes.
        """

    @abstractmethod
    def _direction(self, values: FloatArray, question: Any) -> FloatArray:
        """Gradient in the drawn pictures (n_rows, n_pixels), from what was released."""

    @abstractmethod
    def _snr(self, mu: float, width: int) -> SignalToNoise:
        """Signal to noise that all steps together predict, at this part of the budget."""

    def _question(self, stream: Any, width: int) -> Any:
        """Return what a step asks all teachers beside the pictures; public."""
        return None

    def _loss(self) -> str:
        """Return what the critics minimise."""
        return "logistic"

    def _critic(self) -> CriticNetwork:
        """One critic."""
        return DenseCritic(hidden=tuple(self.hidden))

    # What is the same for all

    def _open(self, named: str | None) -> str:
        # Rows dealt by position: how many there are is public. Units are hashed one by one.
        return "replace one" if named is None else "add or remove one"

    def _noise_source(self) -> Noise | None:
        return FloatNoise() if self.noise is None else self.noise

    def _shares(self) -> Mapping[str, float]:
        small = {COUNTS: SMALL_SHARE}
        sampler = self._own_sampler()
        if sampler is not None and sampler.scope == "noisy":
            small[SHARES] = SMALL_SHARE
        return small | {STEPS: 1.0 - math.fsum(small.values())}

    def _restate(self, claim: Guarantee) -> Guarantee:
        sampler = self._own_sampler()
        return claim if sampler is None else sampler.claim(claim)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        width, n_heads = data.pixels[0].size, self.conditions_.n
        shapes = self._critic().shapes(self.codec_.size, n_heads)
        each = sum(map(math.prod, shapes))
        # Weights, gradients and two moments; slopes and minibatches of one stack; noise.
        critics = 16.0 * each * self.n_teachers
        queue = 8.0 * self.n_teachers * AHEAD * self.critic_rows
        shown = 4.0 * CHUNK * width * (8 * self.n_rows + 12 * self.critic_rows) + 4.0 * POOL
        network = 64.0 * self._network(n_heads).n_parameters
        return (
            f"{self.n_teachers} critics of {each:,} numbers",
            critics + queue + shown + network + 2.0 * data.pixels.nbytes,
            "n_teachers or hidden",
        )

    def _learn(
        self, data: EncodedImages, purse: Purse, rng: np.random.Generator, tell: Progress
    ) -> None:
        # Whatever can be wrong is found before anything is spent.
        require_torch(type(self).__name__)
        self._check()
        width = data.pixels[0].size
        self._aggregator(width)
        self._critic()
        self._refuse_other_shares(data)
        partition = self._partition(data, rng)
        self._buy_counts(data, purse)
        sampler = self._ready_sampler(data, purse)
        mu = (purse.ledger.budget.mu_squared * purse.shares.get(STEPS, 0.0)) ** 0.5
        self.snr_ = self._snr(mu, width)
        with one_thread():
            teachers = self._teachers(data, partition, sampler, rng)
            self.network_ = self._network(self.conditions_.n)
            learner = Learner(
                self.network_,
                n_steps=self.n_steps,
                rates=(float(self.rates[0]), float(self.rates[1])),
                rng=rng,
            )
            self._train(teachers, learner, self._release(purse, width), rng, tell)
        self.weights_ = learner.weights()

    def _train(
        self,
        teachers: Teachers,
        learner: Learner,
        release: Release,
        rng: np.random.Generator,
        tell: Progress,
    ) -> None:
        """Take all steps; ``release`` is the only way from teachers to the generator."""
        stream = seeded(rng)
        for step in range(self.n_steps):
            self._train_critics(teachers, learner, rng, None)
            heads = self._even(self.n_rows, rng)
            drawn = learner.draw(heads)
            asked = self._question(stream, drawn[0].numel())
            said = [self._said(s, asked, stream) for s in teachers.slopes(drawn, heads)]
            released = release(np.sum(said, axis=0))
            learner.follow(drawn, self._direction(released, asked))
            tell("steps", step + 1, self.n_steps)

    def _train_critics(
        self,
        teachers: Teachers,
        learner: Learner,
        rng: np.random.Generator,
        stacks: range | None,
    ) -> None:
        for _ in range(self.critic_steps):
            heads = self._even(self.critic_rows, rng)
            with torch.no_grad():
                drawn = learner.draw(heads)
            teachers.learn(drawn, heads, stacks)

    def _release(self, purse: Purse, width: int) -> Release:
        """Return the door: it charges, draws noise, and gives what left."""
        aggregator = self._aggregator(width)
        mechanism = purse.mechanism(aggregator, STEPS, n_steps=self.n_steps)

        def release(total: IntArray) -> FloatArray:
            noisy = purse.ledger.release(mechanism, total[None, :], purpose=STEPS)
            values: FloatArray = noisy[0] * aggregator.unit
            return values

        return release

    def _even(self, n: int, rng: np.random.Generator) -> IntArray:
        """Conditions of a public, even law, among those that the noisy counts show."""
        unseen = self._unseen()
        seen = np.array([c for c in range(self.conditions_.n) if c not in unseen], dtype=np.int64)
        if not len(seen):
            seen = np.arange(self.conditions_.n)
        return rng.permutation(np.resize(rng.permutation(seen), n))

    def _partition(self, data: EncodedImages, rng: np.random.Generator) -> Partition:
        if data.units is None:
            return by_position(len(data), self.n_teachers, rng)
        return by_unit(data.units, self.n_teachers)

    def _teachers(
        self,
        data: EncodedImages,
        partition: Partition,
        sampler: GroupBalancedSampler | None,
        rng: np.random.Generator,
        chunk: int = CHUNK,
    ) -> Teachers:
        return Teachers(
            data.pixels,
            data.condition,
            _cells(data),
            n_heads=self.conditions_.n,
            partition=partition,
            network=self._critic(),
            training=CriticTraining(
                loss=self._loss(),
                learning_rate=self.critic_rate,
                input_noise=self.input_noise,
                gold=self.gold,
            ),
            sampler=sampler,
            batch_size=self.critic_rows,
            rng=rng,
            chunk=chunk,
        )

    def _network(self, n_heads: int) -> GrowingNetwork:
        return GrowingNetwork(
            shape=self.codec_.size, n_heads=n_heads, n_noise=self.n_noise, width=self.width
        )

    def _own_sampler(self) -> GroupBalancedSampler | None:
        if isinstance(self.sampler, Mapping):
            shares = self.sampler["shares"]
            return GroupBalancedSampler(
                scope=self.sampler["scope"], shares=None if shares is None else tuple(shares)
            )
        return self.sampler

    def _ready_sampler(self, data: EncodedImages, purse: Purse) -> GroupBalancedSampler | None:
        """Return the sampler with the shares that it needs, over labels and groups."""
        sampler = self._own_sampler()
        n = data.n_labels * data.n_groups
        if sampler is None:
            return None
        if sampler.scope == "noisy":
            mu_squared = purse.ledger.budget.mu_squared * purse.shares[SHARES] * (1.0 - 1e-9)
            return sampler.with_noisy_shares(_cells(data), n, purse.ledger, mu_squared=mu_squared)
        if sampler.scope == "global":
            return sampler.with_global_shares(_cells(data), n)
        return sampler

    def _refuse_other_shares(self, data: EncodedImages) -> None:
        sampler = self._own_sampler()
        n = data.n_labels * data.n_groups
        if sampler is not None and sampler.shares is not None and len(sampler.shares) != n:
            raise ValueError(
                f"The sampler has {len(sampler.shares)} shares, and there are {n} combinations of "
                f"{data.n_labels} labels and {data.n_groups} groups: give one for each, the groups "
                f"of the first label first."
            )

    def _check(self) -> None:
        for name in ("n_teachers", "n_steps", "n_rows", "critic_steps", "critic_rows"):
            _checks.at_least(name, getattr(self, name), 1)
        if len(self.rates) != 2:
            raise ValueError(f"rates are the first and the last one, got {self.rates!r}.")
        for rate in self.rates:
            _checks.positive("rates", float(rate))

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        return paint(self.network_, self.weights_, conditions, rng)

    def _arrays(self) -> dict[str, Array]:
        return dict(self.weights_)

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self.network_ = self._network(self.conditions_.n)
        self.weights_ = dict(arrays)

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor as plain values, less noise and seed."""
        names = ("n_teachers", "n_steps", "n_rows", "critic_steps", "critic_rows", "critic_rate")
        more = ("input_noise", "gold", "n_noise", "width", "condition")
        sampler = self._own_sampler()
        return {
            **{name: getattr(self, name) for name in (*names, *more)},
            "hidden": list(self.hidden),
            "rates": list(self.rates),
            "sampler": None
            if sampler is None
            else {"scope": sampler.scope, "shares": sampler.shares and list(sampler.shares)},
        }


def _cells(data: EncodedImages) -> IntArray:
    """Return the combination of label and group, which the sampler evens out."""
    return data.label * data.n_groups + data.group
