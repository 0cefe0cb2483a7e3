"""Critics of many teachers as one stack: each learns from its own rows alone, in PyTorch.

Critics are no ``Architecture``. One of those names a network in a file, and what a critic learns is
private: it lives no longer than a fit. And generators of earlier versions would not come back from
their seeds: all critics of a stack are drawn from one stream, a layer at a time, and the scores of
``torch.nn.Linear`` with the same weights differ in their last bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._torch import torch
from evenhand.learners.nets.tensors import array

LOSSES: Final = ("logistic", "wasserstein")
SLOPE: Final = 0.2  # of the rectifiers below 0
FIRST_POWERS: Final = 15  # power iterations on the first weights, which are public; then one a step


class CriticNetwork(Protocol):
    """The shape of one critic; a stack holds the weights of many. See the head of this module."""

    def shapes(self, shape: tuple[int, int, int], n_heads: int) -> list[tuple[int, ...]]:
        """Shape of every weight of one critic: of each layer its matrix, then its bias."""

    def n_numbers(self, shape: tuple[int, int, int]) -> int:
        """Numbers of a picture and of all hidden layers that one critic makes of it."""

    def scores(self, weights: Sequence[Any], x: Any) -> Any:
        """Scores (n_critics, n, n_heads) of pictures (n_critics, n, n_pixels)."""


@dataclass(frozen=True, kw_only=True)
class DenseCritic:
    """Fully connected layers; the last has one score per condition."""

    hidden: tuple[int, ...] = (24,)
    """Widths of the hidden layers."""

    def __post_init__(self) -> None:
        _checks.each_at_least("hidden", self.hidden, 1)

    def shapes(self, shape: tuple[int, int, int], n_heads: int) -> list[tuple[int, ...]]:
        """Weight (n_in, n_out) and bias (1, n_out) of every layer."""
        widths = (math.prod(shape), *self.hidden, n_heads)
        return [side for a, b in pairwise(widths) for side in ((a, b), (1, b))]

    def n_numbers(self, shape: tuple[int, int, int]) -> int:
        """Numbers of a picture and of all hidden layers that one critic makes of it."""
        return math.prod(shape) + sum(self.hidden)

    def scores(self, weights: Sequence[Any], x: Any) -> Any:
        """Scores (n_critics, n, n_heads) of pictures (n_critics, n, n_pixels)."""
        h = x
        for i in range(0, len(weights), 2):
            h = torch.baddbmm(weights[i + 1], h, weights[i])
            if i + 2 < len(weights):
                h = torch.nn.functional.leaky_relu(h, SLOPE)
        return h


@dataclass(frozen=True, kw_only=True)
class ConvCritic:
    """Convolutions of stride 2, then class projection: a score, and more by the condition.

    Notes
    -----
    The score of a picture under a condition is ``(v + e) . h + b`` of the last maps ``h``, with one
    ``v`` for all conditions and an ``e`` and a ``b`` for each (Miyato and Koyama 2018): what makes
    a picture real is learnt from all of them. A layer of a stack is one grouped convolution: as
    fast as ``vmap``, and three times as fast as products of matrices over patches
    (``benchmarks/teachers_gan.py``).
    """

    shape: tuple[int, int, int]
    """Channels, height and width of a picture."""
    filters: tuple[int, ...] = (8, 16, 32)
    """Maps of every layer; (64, 128, 256) are those of GS-WGAN."""
    kernel: int = 5
    """Side of a filter, odd."""

    def __post_init__(self) -> None:
        _checks.each_at_least("filters", self.filters, 1)
        if _checks.at_least("kernel", self.kernel, 1) % 2 == 0:
            raise ValueError(f"kernel must be odd, got kernel={self.kernel}.")

    def shapes(self, shape: tuple[int, int, int], n_heads: int) -> list[tuple[int, ...]]:
        """Return filters and bias of every layer, then those of the scores, ``v`` first."""
        out: list[tuple[int, ...]] = []
        for a, b in pairwise((shape[0], *self.filters)):
            out += [(b, a, self.kernel, self.kernel), (1, b)]
        return [*out, (math.prod(self._maps(shape)[-1]), 1 + n_heads), (1, 1 + n_heads)]

    def n_numbers(self, shape: tuple[int, int, int]) -> int:
        """Numbers of a picture and of all hidden layers that one critic makes of it."""
        return sum(map(math.prod, self._maps(shape)))

    def _maps(self, shape: tuple[int, int, int]) -> list[tuple[int, int, int]]:
        """Channels, height and width of a picture, and of what every layer makes of it."""
        maps = [shape]
        for width in self.filters:
            maps.append((width, -(-maps[-1][1] // 2), -(-maps[-1][2] // 2)))
        return maps

    def scores(self, weights: Sequence[Any], x: Any) -> Any:
        """Scores (n_critics, n, n_heads); the critics are groups of one convolution."""
        n_critics, n, _ = x.shape
        h = x.reshape(n_critics, n, *self.shape).transpose(0, 1).flatten(1, 2)
        for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
            h = torch.nn.functional.conv2d(
                h,
                weight.flatten(0, 1),
                bias.flatten(),
                stride=2,
                padding=self.kernel // 2,
                groups=n_critics,
            )
            h = torch.nn.functional.leaky_relu(h, SLOPE)
        flat = h.reshape(n, n_critics, -1).transpose(0, 1)
        projected = torch.baddbmm(weights[-1], flat, weights[-2])
        return projected[..., :1] + projected[..., 1:]


@dataclass(frozen=True, kw_only=True)
class CriticTraining:
    """How a critic learns to tell real pictures from generated ones."""

    loss: str = "logistic"
    """``"wasserstein"`` has a gradient penalty (Gulrajani et al. 2017) and a drift term. One of
    "logistic", "wasserstein".
    """
    learning_rate: float = 1e-3
    """Of Adam with betas (0.5, 0.9)."""
    input_noise: float = 0.2
    """Standard deviation of noise on what a critic is shown while it learns; 0 for none."""
    penalty: float = 10.0
    drift: float = 1e-3
    """``penalty`` and ``drift``: weights of the gradient penalty and of the squared score; only
    "wasserstein" has them.
    """
    gold: bool = False
    """Weigh generated pictures by ``exp(score)``, normalised over a batch (GOLD, Mo et al. 2019):
    those that the critic takes for real count more.
    """
    spectral: bool = False
    """Divide every matrix of a critic by its largest singular value (Miyato et al. 2018), so that
    no layer stretches a picture's change; filters are read as (maps, inputs).
    """

    def __post_init__(self) -> None:
        _checks.one_of("loss", self.loss, LOSSES)
        _checks.positive("learning_rate", self.learning_rate)
        for name in ("input_noise", "penalty", "drift"):
            _checks.non_negative(name, getattr(self, name))


class CriticStack:
    """Critics with weights and optimizers of their own, moved together.

    Nothing in it reads across critics: every product is one matrix per critic, and the optimizer
    works on each number alone; under spectral norm each has power vectors of its own. So another
    critic's rows cannot move one bit of this one.

    Parameters
    ----------
    network : CriticNetwork
    training : CriticTraining
    shape : (int, int, int)
        Channels, height and width of a picture.
    n_heads, n_critics : int
    stream : torch.Generator
        Seeds the first weights.
    """

    def __init__(
        self,
        network: CriticNetwork,
        training: CriticTraining,
        *,
        shape: tuple[int, int, int],
        n_heads: int,
        n_critics: int,
        stream: Any,
    ) -> None:
        self.network, self.training = network, training
        self.n_critics = n_critics
        self.weights = []
        for i, side in enumerate(network.shapes(shape, n_heads)):
            drawn = torch.zeros(n_critics, *side)
            if i % 2 == 0:  # a bias starts at 0
                fan_in = side[0] if len(side) == 2 else math.prod(side[1:])
                drawn.normal_(0.0, math.sqrt(2.0 / fan_in), generator=stream)
            self.weights.append(drawn.requires_grad_())
        self._stream = stream
        self._adam = torch.optim.Adam(
            self.weights, lr=training.learning_rate, betas=(0.5, 0.9), fused=True
        )
        self._powers: list[Any] = []
        if training.spectral:
            for weight in self.weights[::2]:
                drawn = torch.randn(n_critics, weight.shape[1], 1, generator=stream)
                self._powers.append(_unit(drawn))
            for _ in range(FIRST_POWERS):
                self._turn_powers()

    def state(self, i: int) -> list[NDArray[np.float32]]:
        """Return what critic ``i`` has learnt: its weights, and its power vectors if it has any."""
        return [array(w[i]).copy() for w in (*self.weights, *self._powers)]

    def learn(
        self, real: Any, real_heads: Any, real_counts: Any, fake: Any, fake_heads: Any, counts: Any
    ) -> None:
        """Take one step of every critic.

        Parameters
        ----------
        real, fake : tensor, shape (n_critics, n, n_pixels)
        real_heads, fake_heads : tensor of int64, shape (n_critics, n, 1)
            Condition of each.
        real_counts : tensor, shape (n_critics, 1)
            0 where a critic has no rows: what stands for them then counts nothing.
        counts : tensor, shape (n_critics, n)
            0 for generated pictures of a condition that a critic has no row of.
        """
        self._turn_powers()
        self._adam.zero_grad()
        of_real = self._of(real, real_heads)
        of_fake = self._of(fake, fake_heads)
        weight = counts
        if self.training.gold:
            real_looking = (
                of_fake.detach() - of_fake.detach().amax(dim=1, keepdim=True)
            ).exp() * counts
            total = real_looking.sum(dim=1, keepdim=True).clamp(min=1e-30)
            weight = real_looking * counts.sum(dim=1, keepdim=True) / total
        if self.training.loss == "logistic":
            plus = torch.nn.functional.softplus
            loss = real_counts * plus(-of_real) + weight * plus(of_fake)
            summed = loss.mean(dim=1).sum()
        else:
            apart = weight * of_fake - real_counts * (of_real - self.training.drift * of_real**2)
            held = self._penalty(real, real_heads, fake) * real_counts[:, 0]
            summed = (apart.mean(dim=1) + held).sum()
        summed.backward()
        self._adam.step()

    def pixel_gradients(self, x: Any, heads: Any) -> Any:
        """Gradient of each critic's generator loss in the pictures x (n, n_pixels).

        Shape (n_critics, n, n_pixels).
        """
        shown = x.expand(self.n_critics, *x.shape).clone().requires_grad_()
        loss = self.loss_of_drawn(shown, heads.view(1, -1, 1).expand(self.n_critics, -1, 1))
        (gradient,) = torch.autograd.grad(loss.sum(), shown)
        return gradient

    def loss_of_drawn(self, x: Any, heads: Any) -> Any:
        """Return what a generator lowers, for pictures (n_critics, n, n_pixels): (n_critics, n)."""
        score = self._of(x, heads)
        if self.training.loss == "logistic":
            return torch.nn.functional.softplus(-score)
        return -score

    def _of(self, x: Any, heads: Any) -> Any:
        """Score of each picture under its own condition, (n_critics, n)."""
        return self.network.scores(self._used(), x).gather(2, heads)[..., 0]

    def _used(self) -> list[Any]:
        """Weights as the network reads them: under spectral norm no matrix stretches by over 1."""
        used = list(self.weights)
        for i, left in enumerate(self._powers):
            weight = self.weights[2 * i]
            flat = weight.flatten(2)
            with torch.no_grad():
                right = _unit(left.mT @ flat, dim=2)
            stretch = (left.mT @ flat @ right.mT).view(-1, *(1,) * (weight.ndim - 1))
            used[2 * i] = weight / stretch
        return used

    def _turn_powers(self) -> None:
        """Turn every critic's power vectors towards its largest singular ones, by one iteration."""
        with torch.no_grad():
            for i, left in enumerate(self._powers):
                flat = self.weights[2 * i].flatten(2)
                self._powers[i] = _unit(flat @ (flat.mT @ left))

    def _penalty(self, real: Any, heads: Any, fake: Any) -> Any:
        """Price of gradients that are not 1 between real and generated pictures, (n_critics,)."""
        n = min(real.shape[1], fake.shape[1])
        share = torch.rand(self.n_critics, n, 1, generator=self._stream)
        between = (share * real[:, :n] + (1.0 - share) * fake[:, :n]).requires_grad_()
        score = self._of(between, heads[:, :n])
        (gradient,) = torch.autograd.grad(score.sum(), between, create_graph=True)
        off = torch.linalg.vector_norm(gradient, dim=2) - 1.0
        return self.training.penalty * (off**2).mean(dim=1)


def _unit(vectors: Any, dim: int = 1) -> Any:
    """Vectors of length 1."""
    return vectors / torch.linalg.vector_norm(vectors, dim=dim, keepdim=True).clamp(min=1e-30)
