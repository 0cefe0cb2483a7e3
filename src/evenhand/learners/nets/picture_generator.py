"""Generator networks: noise and a condition in, pictures out, in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._torch import torch
from evenhand.learners.nets.tensors import array, computing, seeded
from evenhand.learners.nets.training_state import state_of, take_state
from evenhand.typing import Array, FloatArray, IntArray

BASE: Final = 7
"""Side from which pictures are grown, at most: 7 -> 14 -> 28."""

PULL_INSIDE: Final = 0.05
"""Weight of how far a pixel lies outside [0, 1], which no gradient of a critic sees."""

CHUNK: Final = 1000  # pictures drawn at a time

LATENTS: Final = ("normal", "bernoulli")

_MEAN: Final = "mean of "

Weights = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class GrowingNetwork:
    """A linear layer to a small map, then convolutions that double it until it is a picture.

    Notes
    -----
    Two 3 x 3 convolutions or more, leaky rectifiers, and every pixel's features at the same root
    mean square (pixel norm, Karras et al. 2018), so that noise in the gradients cannot drive the
    layers apart. The output is cut to [0, 1] and the gradient goes straight through the cut: the
    gradient of a sigmoid dies where noise has pushed a pixel to an end, and never comes back.
    """

    shape: tuple[int, int, int]
    """Channels, height and width of a picture."""
    n_heads: int
    """Conditions; each is one of the inputs, one-hot."""
    n_noise: int = 16
    """Random inputs beside it."""
    latent: str = "normal"
    """Their distribution; "bernoulli" is 0 or 1, each as likely, as in GS-WGAN."""
    width: int = 48
    """Maps of the first layer; halved with every doubling."""
    residual: bool = False
    """Every doubling is a residual block (He et al. 2016) of two convolutions, beside one of 1 x 1,
    as in GS-WGAN; else it is one convolution.
    """

    def __post_init__(self) -> None:
        for side in self.shape:
            _checks.at_least("every side of shape", side, 1)
        _checks.at_least("n_heads", self.n_heads, 1)
        _checks.at_least("n_noise", self.n_noise, 1)
        _checks.one_of("latent", self.latent, LATENTS)
        _checks.at_least("width", self.width, 1)

    @property
    def sides(self) -> tuple[tuple[int, int], ...]:
        """Height and width of the maps, from the first to the picture's."""
        out = [self.shape[1:]]
        while max(out[0]) > BASE:
            out.insert(0, (-(-out[0][0] // 2), -(-out[0][1] // 2)))
        return tuple(out)

    @property
    def widths(self) -> tuple[int, ...]:
        """Maps of every layer; the last are the picture's channels."""
        return (*(max(8, self.width >> i) for i in range(len(self.sides))), self.shape[0])

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of every weight."""
        first = self.widths[0] * math.prod(self.sides[0])
        out: dict[str, tuple[int, ...]] = {
            "linear.weight": (first, self.n_noise + self.n_heads),
            "linear.bias": (first,),
        }
        for i, (n_in, n_out) in enumerate(zip(self.widths[:-1], self.widths[1:], strict=True)):
            out[f"conv{i}.weight"] = (n_out, n_in, 3, 3)
            out[f"conv{i}.bias"] = (n_out,)
            if self.residual and i + 2 < len(self.widths):
                out[f"inner{i}.weight"] = (n_out, n_out, 3, 3)
                out[f"inner{i}.bias"] = (n_out,)
                out[f"skip{i}.weight"] = (n_out, n_in, 1, 1)
        return out

    @property
    def n_parameters(self) -> int:
        """Number of weights."""
        return sum(map(math.prod, self.shapes.values()))

    def start(self, stream: Any) -> Weights:
        """Draw first weights (He et al. 2015); the last layer starts near mid grey."""
        weights = {}
        last = f"conv{len(self.widths) - 2}"
        for name, shape in self.shapes.items():
            if name.endswith("bias"):
                weights[name] = torch.full(shape, 0.5 if name.startswith(last) else 0.0)
            else:
                scale = math.sqrt(2.0 / math.prod(shape[1:])) * (0.1 if last in name else 1.0)
                weights[name] = scale * torch.randn(shape, generator=stream)
        return weights

    def inputs(self, n: int, stream: Any) -> Any:
        """Draw the random inputs of ``n`` pictures, (n, n_noise)."""
        return random_inputs(self.latent, n, self.n_noise, stream)

    def raw(self, weights: Mapping[str, Any], noise: Any, heads: Any) -> Any:
        """Pixels before they are cut to [0, 1]; (n, channels, height, width)."""
        nn = torch.nn.functional
        given = torch.cat([noise, nn.one_hot(heads, self.n_heads).to(noise.dtype)], dim=1)
        h = nn.linear(given, weights["linear.weight"], weights["linear.bias"])
        h = _level(nn.leaky_relu(h.view(len(h), self.widths[0], *self.sides[0]), 0.2))
        for i, (height, width) in enumerate(self.sides[1:]):
            wide = nn.interpolate(h, size=(height, width), mode="nearest")
            h = nn.conv2d(wide, weights[f"conv{i}.weight"], weights[f"conv{i}.bias"], padding=1)
            if self.residual:
                h = _level(nn.leaky_relu(h, 0.2))
                h = nn.conv2d(h, weights[f"inner{i}.weight"], weights[f"inner{i}.bias"], padding=1)
                h = h + nn.conv2d(wide, weights[f"skip{i}.weight"])
            h = _level(nn.leaky_relu(h, 0.2))
        i = len(self.sides) - 1
        return nn.conv2d(h, weights[f"conv{i}.weight"], weights[f"conv{i}.bias"], padding=1)


def random_inputs(latent: str, n: int, n_noise: int, stream: Any) -> Any:
    """Draw (n, n_noise) inputs of a distribution of ``LATENTS``."""
    if latent == "bernoulli":
        return torch.randint(0, 2, (n, n_noise), generator=stream).float()
    return torch.randn(n, n_noise, generator=stream)


def _level(h: Any) -> Any:
    """Bring the features of every pixel to root mean square 1."""
    return h * torch.rsqrt((h * h).mean(dim=1, keepdim=True) + 1e-8)


class GeneratorTraining:
    """A generator network that follows gradients in its pictures, and its running mean.

    Parameters
    ----------
    network : GrowingNetwork
    n_steps : int
        Updates that will be made: the rate falls from ``rates[0]`` to ``rates[1]`` along them.
    rng : Generator
        Seeds weights and inputs; nothing private decides them.
    """

    def __init__(
        self,
        network: GrowingNetwork,
        *,
        n_steps: int,
        rates: tuple[float, float] = (1e-3, 5e-5),
        memory: float = 0.97,
        rng: np.random.Generator,
    ) -> None:
        self.network = network
        self._stream = seeded(rng)
        self._weights = {
            name: weight.requires_grad_() for name, weight in network.start(self._stream).items()
        }
        self._mean = {name: weight.detach().clone() for name, weight in self._weights.items()}
        self._adam = torch.optim.Adam(list(self._weights.values()), lr=rates[0], betas=(0.5, 0.9))
        self._decay = (rates[1] / rates[0]) ** (1.0 / max(1, n_steps))
        self._memory = memory

    def draw(self, heads: IntArray) -> Any:
        """Pictures for conditions (n,): (n, channels, h, w), with a gradient if it is on."""
        noise = self.network.inputs(len(heads), self._stream)
        return self.network.raw(self._weights, noise, torch.as_tensor(heads))

    def follow(self, raw: Any, gradient: FloatArray) -> None:
        """Take a step that lowers ``sum(pixels * gradient)``; ``raw`` as ``draw`` gave it."""
        outside = raw - raw.detach().clamp(0.0, 1.0)
        pull = torch.as_tensor(gradient, dtype=raw.dtype).view_as(raw)
        loss = (raw * pull).sum() + PULL_INSIDE * (outside * outside).sum() / len(raw)
        self._adam.zero_grad()
        loss.backward()
        self._adam.step()
        for group in self._adam.param_groups:
            group["lr"] *= self._decay
        with torch.no_grad():
            for name, weight in self._weights.items():
                self._mean[name].lerp_(weight, 1.0 - self._memory)

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return the running means of the weights, as arrays."""
        return {name: array(weight).copy() for name, weight in self._mean.items()}

    def state(self) -> dict[str, Array]:
        """Return all that another training of the same network needs to go on from here."""
        return state_of(self._adam, self._stream) | {
            _MEAN + n: w for n, w in self.weights().items()
        }

    def take(self, state: Mapping[str, Array]) -> None:
        """Go on where ``state`` was."""
        take_state(self._adam, self._stream, state)
        self._mean = {n: torch.as_tensor(state[_MEAN + n]).clone() for n in self._mean}


def draw_pictures(
    network: GrowingNetwork, weights: Mapping[str, Any], heads: IntArray, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draw pictures in [0, 1] for conditions (n,), from saved weights."""
    loaded = {name: torch.as_tensor(weight) for name, weight in weights.items()}
    stream, parts = seeded(rng), []
    with computing(), torch.no_grad():
        for start in range(0, len(heads), CHUNK):
            some = torch.as_tensor(heads[start : start + CHUNK])
            noise = network.inputs(len(some), stream)
            parts.append(array(network.raw(loaded, noise, some).clamp(0.0, 1.0)))
    empty = np.zeros((0, *network.shape), dtype=np.float32)
    return np.concatenate([empty, *parts])
