"""One critic of pictures, moved by gradients that others computed, in PyTorch.

It is a ``CriticNetwork`` of ``picture_critics``, which says why that is no ``Architecture``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evenhand._torch import torch
from evenhand.learners.nets.picture_critics import CriticNetwork
from evenhand.learners.nets.tensors import array, seeded
from evenhand.typing import FloatArray, IntArray

BOUND: Final = 0.1
"""Weights of the critic are cut to it after every update (Arjovsky et al. 2017)."""


class SingleCritic:
    """A Wasserstein critic with Adam, whose weights are cut after every move.

    Parameters
    ----------
    network : CriticNetwork
    shape : (int, int, int)
        Channels, height and width of a picture.
    n_heads : int
    rate : float
        Of Adam with betas (0.5, 0.9).
    rng : Generator
        Seeds the first weights.
    """

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

    @property
    def n_weights(self) -> int:
        """Numbers of a gradient."""
        return sum(weight.numel() for weight in self._weights)

    def gradients(self, pixels: Any, heads: IntArray) -> NDArray[np.float32]:
        """Gradient of the score of each picture (n, n_pixels) under its condition, by itself.

        Shape (n, n_weights).
        """
        if not len(pixels):
            return np.zeros((0, self.n_weights), dtype=np.float32)
        of_one = torch.func.grad(lambda weights, x, head: self._score(weights, x, head)[0])
        each = torch.func.vmap(of_one, in_dims=(None, 0, 0))(
            tuple(self._weights), pixels.unsqueeze(1), torch.as_tensor(heads).unsqueeze(1)
        )
        flat: NDArray[np.float32] = array(torch.cat([g.flatten(1) for g in each], dim=1))
        return flat

    def climb(self, gradient: FloatArray) -> None:
        """Move up along a gradient (n_weights,), and cut the weights."""
        parts = np.split(gradient, np.cumsum([w.numel() for w in self._weights])[:-1])
        for weight, part in zip(self._weights, parts, strict=True):
            weight.grad.copy_(torch.as_tensor(-part).view_as(weight))
        self._adam.step()
        for weight in self._weights:
            weight.clamp_(-BOUND, BOUND)

    def pixel_gradients(self, drawn: Any, heads: IntArray) -> FloatArray:
        """Gradient of ``-score`` in generated pictures (n, n_pixels), of norm 1 together."""
        shown = drawn.detach().flatten(1).requires_grad_()
        score = self._score(tuple(self._weights), shown, torch.as_tensor(heads))
        (gradient,) = torch.autograd.grad(-score.sum(), shown)
        unit = gradient / gradient.norm().clamp(min=1e-30)
        away: FloatArray = array(unit).astype(np.float64)
        return away

    def _score(self, weights: Any, pixels: Any, heads: Any) -> Any:
        """Score of pictures (n, n_pixels), each under its own condition."""
        stacked = [w.unsqueeze(0) for w in weights]
        of_all = self._network.scores(stacked, pixels.unsqueeze(0))[0]
        return of_all.gather(1, heads.unsqueeze(1))[:, 0]
