"""The warm start of critics: each first learns against a generator of its own, which never leaves.

A critic that knows its pictures from the first step says something useful at the first release.
"""

from __future__ import annotations

import math
from typing import Any, Final

from evenhand import _checks
from evenhand._torch import torch
from evenhand.learners.nets.picture_critics import SLOPE, CriticStack
from evenhand.typing import IntArray

HIDDEN: Final = 64  # width of the hidden layer of a private generator


class PrivateGenerators:
    """Small generators, one for each critic of a stack and read by nobody else.

    A hidden layer and a sigmoid, from normal inputs and a one-hot condition. (Where no noise is
    added to its gradient a sigmoid does not die: these need not be cut as ``GrowingNetwork``.)

    Parameters
    ----------
    stack : CriticStack
        Their critics.
    n_pixels, n_heads, n_noise : int
        Numbers of a picture, conditions, and normal inputs.
    stream : torch.Generator
        Seeds first weights and inputs; public.

    Privacy
    -------
    Generator t learns from critic t alone, critic t from its own rows and generator t: nothing
    crosses from teacher to teacher, and nothing is released. So the warm start costs nothing, and
    one record still moves one teacher.
    """

    def __init__(
        self, stack: CriticStack, *, n_pixels: int, n_heads: int, n_noise: int, stream: Any
    ) -> None:
        self._stack, self._stream = stack, stream
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
        noise = torch.randn(len(heads), self._n_noise, generator=self._stream)
        told = torch.nn.functional.one_hot(torch.as_tensor(heads), self._n_heads)
        given = torch.cat([noise, told.to(noise.dtype)], dim=1)
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
