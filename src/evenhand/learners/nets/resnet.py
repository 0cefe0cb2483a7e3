"""Residual networks: a small one with group normalisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from evenhand import _checks
from evenhand._stored import stored
from evenhand._torch import require_torch, torch
from evenhand.learners.nets.fairpate_networks import of_picture


@stored
@dataclass(frozen=True)
class SmallResNet:
    """A residual network with group normalisation, for small pictures.

    A 3 x 3 convolution, then stages of basic blocks (He et al. 2016), each stage after the first
    halving height and width; the mean over all pixels and one linear layer end it. Each convolution
    is followed by a group normalisation (Wu and He 2018), which reads one picture at a time: so it
    can be trained by DP-SGD too, and a stack of such networks is exact. With the defaults, three
    colours and two classes it has 77,522 weights.

    Parameters
    ----------
    widths : tuple of int
        Channels of each stage.
    blocks : int
        In each stage.
    groups : int
        Of the normalisation; divides every width.
    """

    widths: tuple[int, ...] = (16, 32, 64)
    blocks: int = 1
    groups: int = 8

    def __post_init__(self) -> None:
        _checks.at_least("blocks", self.blocks, 1)
        _checks.at_least("groups", self.groups, 1)
        for width in self.widths:
            _checks.at_least("widths", width, 1)
            if width % self.groups:
                raise ValueError(f"groups={self.groups} must divide every width, got {width}.")

    def build(self, shape: tuple[int, ...], n_outputs: int) -> Any:
        """Return the network; see ``Architecture.build``."""
        require_torch("A network")
        nn, first = torch.nn, self.widths[0]
        channels, _, _ = of_picture(shape, 4)
        layers = [*_conv(channels, first, 1, self.groups), nn.ReLU()]
        for n_in, n_out in pairwise((first, *self.widths)):
            for i in range(self.blocks):
                stride = 2 if n_in != n_out and i == 0 else 1
                layers.append(_block()(n_in if i == 0 else n_out, n_out, stride, self.groups))
        return nn.Sequential(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(self.widths[-1], n_outputs)
        )


def _conv(n_in: int, n_out: int, stride: int, groups: int) -> list[Any]:
    nn = torch.nn
    convolution = nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)
    return [convolution, nn.GroupNorm(groups, n_out)]


@cache
def _block() -> Any:
    """Return the class of a block, made when torch is there."""

    class Block(torch.nn.Module):  # type: ignore[misc]  # torch is imported late
        def __init__(self, n_in: int, n_out: int, stride: int, groups: int) -> None:
            super().__init__()
            nn = torch.nn
            self.inner = nn.Sequential(
                *(*_conv(n_in, n_out, stride, groups), nn.ReLU()), *_conv(n_out, n_out, 1, groups)
            )
            self.short: Any = nn.Identity()
            if stride > 1 or n_in != n_out:
                away = nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False)
                self.short = nn.Sequential(away, nn.GroupNorm(groups, n_out))

        def forward(self, x: Any) -> Any:
            return (self.inner(x) + self.short(x)).relu()

    return Block
