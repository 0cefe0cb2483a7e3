"""DPWGANImages: one critic trained by clipped gradients of single pictures under noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import torch
from evenhand.generators.aggregators import ClippedSums
from evenhand.generators.conditional import Progress
from evenhand.generators.images.adversarial import STEPS, AdversarialImages, Release, cells
from evenhand.generators.images.codec import EncodedImages
from evenhand.generators.images.critics import CriticNetwork
from evenhand.generators.images.networks import Learner, seeded
from evenhand.generators.images.passes import Passes
from evenhand.generators.plan import Purse, SignalToNoise
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.privacy import Noise
from evenhand.teachers import Partition
from evenhand.typing import FloatArray, IntArray, RandomState

BOUND: Final = 0.1
"""Weights of the critic are cut to it after every update (Arjovsky et al. 2017)."""


class DPWGANImages(AdversarialImages):
    """Train one Wasserstein critic by DP-SGD, and a generator against it (Xie et al. 2018).

    The pictures are dealt once into ``n_batches`` parts. Each update of the critic asks the next
    part: the gradients of its single pictures are clipped to ``clip_norm`` and added up, and the
    sum leaves under noise. The gradient of the drawn pictures, and everything the generator learns,
    follows from what has left.

    Parameters
    ----------
    n_batches : int
        Parts of the pictures.
    clip_norm : float
        Largest norm of what one picture adds. Greater than 0.
    critic_rows : int
        Drawn pictures in an update of the critic.
    sampler : GroupBalancedSampler or None
        With ``scope="public"`` or ``"noisy"`` pictures of a label and group weigh in proportion to
        one over its share, the rarest ones 1 (reweighting, Choi et al. 2020). A balance "in the
        partition" is refused: there one picture would move the weights of others.
    **others
        See ``TeacherGAN``.

    Privacy
    -------
    Neighbors : as in ``TeacherGAN``.
    Sensitivity : one picture is in one part; added it moves that part's sum by ``clip_norm``,
        replaced by twice that; with r pictures per unit r times as much.
    Cost : a pass over all parts is one Gaussian release. Nothing is subsampled.
    """

    method: ClassVar[str] = "dp-wgan"

    def __init__(
        self,
        *,
        n_batches: int = 100,
        n_steps: int = 400,
        n_rows: int = 64,
        clip_norm: float = 1.0,
        critic_steps: int = 3,
        critic_rows: int = 64,
        hidden: Sequence[int] = (64,),
        critic_rate: float = 1e-3,
        n_noise: int = 16,
        width: int = 48,
        rates: Sequence[float] = (3e-3, 3e-4),
        sampler: GroupBalancedSampler | Mapping[str, Any] | None = None,
        condition: str = "label+group",
        noise: Noise | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            n_steps=n_steps,
            n_rows=n_rows,
            critic_steps=critic_steps,
            critic_rows=critic_rows,
            hidden=hidden,
            critic_rate=critic_rate,
            n_noise=n_noise,
            width=width,
            rates=rates,
            sampler=sampler,
            condition=condition,
            noise=noise,
            random_state=random_state,
        )
        self.n_batches = n_batches
        self.clip_norm = clip_norm

    @property
    def _n_parts(self) -> int:
        return self.n_batches

    @property
    def _passes(self) -> int:
        return -(-self.n_steps * self.critic_steps // self.n_batches)

    @property
    def _n_weights(self) -> int:
        return sum(map(math.prod, self._critic().shapes(self.codec_.size, self.conditions_.n)))

    def _sums(self) -> ClippedSums:
        return ClippedSums(clip_norm=self.clip_norm, per_unit=self._per_unit)

    def _learn(
        self, data: EncodedImages, purse: Purse, rng: np.random.Generator, tell: Progress
    ) -> None:
        self._per_unit = data.per_unit
        self._moved = 2.0 if purse.ledger.neighbors == "replace one" else 1.0
        super()._learn(data, purse, rng, tell)

    def _release(self, purse: Purse, width: int) -> Release:
        sums = self._sums()
        mechanism = purse.mechanism(sums, STEPS, n_steps=self._passes)
        return Passes(purse.ledger, mechanism, STEPS, self.n_batches, self._n_weights, sums.unit)

    def _teach(
        self,
        data: EncodedImages,
        partition: Partition,
        sampler: GroupBalancedSampler | None,
        learner: Learner,
        release: Release,
        rng: np.random.Generator,
        tell: Progress,
    ) -> None:
        critic = _Critic(
            self._critic(), self.codec_.size, self.conditions_.n, self.critic_rate, rng
        )
        weights, mass, law = np.ones(len(data)), 1.0, self._known_counts()
        if sampler is not None and sampler.shares is not None:
            shares = np.array(sampler.shares)
            each = shares.min() / shares
            # Drawn pictures weigh what the real ones do together, and are as even as these.
            weights, mass = each[cells(data)], float((shares * each).sum())
            law = np.ones(self.conditions_.n)
        law = law / law.sum()
        size = max(1.0, float(self.counts_.sum())) / self.n_batches
        pixels = torch.as_tensor(data.pixels.reshape(len(data), -1))
        heads = torch.as_tensor(data.condition)
        sums, turn = self._sums(), 0
        for step in range(self.n_steps):
            for _ in range(self.critic_steps):
                rows = partition.all_rows[turn]
                said = critic.gradients(pixels[rows], heads[rows]) * weights[rows, None]
                drawn_heads = rng.choice(len(law), size=self.critic_rows, p=law)
                with torch.no_grad():
                    drawn = learner.draw(drawn_heads)
                critic.follow(release(sums.total(said)) / size, drawn, drawn_heads, mass)
                turn = (turn + 1) % self.n_batches
            asked = self._even(self.n_rows, rng)
            drawn = learner.draw(asked)
            learner.follow(drawn, critic.slopes(drawn, asked))
            tell("steps", step + 1, self.n_steps)

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        n_releases = self.n_steps * self.critic_steps
        size = max(0.0, float(self.counts_.sum())) / self.n_batches
        moved = self._moved * self._per_unit
        return SignalToNoise(
            value=n_releases * (size * mu / moved) ** 2 / (self._passes * self._n_weights),
            formula="updates of the critic times the squared pictures of one times mu squared, "
            "over the passes and the critic's numbers",
        )

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        each = self._n_weights
        batch = max(1.0, len(data) / self.n_batches)
        # Gradients of the pictures of a batch, in single and in double; noise of a pass.
        needed = 40.0 * each * batch + 16.0 * each * self.n_batches
        return (
            f"gradients of {each:,} numbers for {batch:,.0f} pictures and {self.n_batches} batches",
            needed + 2.0 * data.pixels.nbytes,
            "hidden, or change n_batches",
        )

    def _check(self) -> None:
        super()._check()
        _checks.at_least("n_batches", self.n_batches, 1)
        _checks.positive("clip_norm", self.clip_norm)
        sampler = self._own_sampler()
        if sampler is not None and sampler.scope == "partition":
            raise ValueError(
                "DPWGANImages weighs pictures by shares that are known: scope='partition' would "
                "let one picture move the weights of others in its batch. Use scope='noisy' or "
                "'public'."
            )

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor as plain values, less noise and seed."""
        names = ("n_batches", "clip_norm")
        return super().settings() | {name: getattr(self, name) for name in names}


class _Critic:
    """One critic that is moved by gradients that others computed, and cut after every move."""

    def __init__(
        self,
        network: CriticNetwork,
        shape: tuple[int, int, int],
        n_heads: int,
        rate: float,
        rng: np.random.Generator,
    ) -> None:
        stream = seeded(rng)
        self._network = network
        self._weights = [
            torch.empty(side).uniform_(-BOUND, BOUND, generator=stream)
            for side in network.shapes(shape, n_heads)
        ]
        for weight in self._weights:
            weight.grad = torch.zeros_like(weight)
        self._adam = torch.optim.Adam(self._weights, lr=rate, betas=(0.5, 0.9))

    def gradients(self, pixels: Any, heads: Any) -> FloatArray:
        """Gradient of each picture's ``-score``, (n, n_weights)."""
        if not len(pixels):
            return np.zeros((0, sum(w.numel() for w in self._weights)))
        of_one = torch.func.grad(lambda weights, x, head: -self._score(weights, x, head)[0])
        each = torch.func.vmap(of_one, in_dims=(None, 0, 0))(
            tuple(self._weights), pixels.unsqueeze(1), heads.unsqueeze(1)
        )
        flat: FloatArray = torch.cat([g.flatten(1) for g in each], dim=1).numpy()
        return flat.astype(np.float64)

    def follow(self, real: FloatArray, drawn: Any, heads: IntArray, mass: float) -> None:
        """Move by what left about real pictures, and by the mean of drawn ones times ``mass``."""
        pixels, asked = drawn.detach().flatten(1), torch.as_tensor(heads)
        of_drawn = torch.func.grad(lambda weights: self._score(weights, pixels, asked).mean())
        parts = np.split(real, np.cumsum([w.numel() for w in self._weights])[:-1])
        for weight, part, own in zip(
            self._weights, parts, of_drawn(tuple(self._weights)), strict=True
        ):
            weight.grad.copy_(torch.as_tensor(part).view_as(weight)).add_(own, alpha=mass)
        self._adam.step()
        for weight in self._weights:
            weight.clamp_(-BOUND, BOUND)

    def slopes(self, drawn: Any, heads: IntArray) -> FloatArray:
        """Gradient of ``-score`` in drawn pictures (n, n_pixels), of norm 1 together."""
        shown = drawn.detach().flatten(1).requires_grad_()
        score = self._score(tuple(self._weights), shown, torch.as_tensor(heads))
        (slope,) = torch.autograd.grad(-score.sum(), shown)
        away: FloatArray = (slope / slope.norm().clamp(min=1e-30)).numpy().astype(np.float64)
        return away

    def _score(self, weights: Any, pixels: Any, heads: Any) -> Any:
        """Score of pictures (n, n_pixels), each under its own condition."""
        stacked = [w.unsqueeze(0) for w in weights]
        of_all = self._network.scores(stacked, pixels.unsqueeze(0))[0]
        return of_all.gather(1, heads.unsqueeze(1))[:, 0]
