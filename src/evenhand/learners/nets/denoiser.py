"""A small network that takes noise off pictures, and the clipped gradients of its records.

A network of patches
--------------------
A picture is cut into patches. One layer reads the noisy patch, what a known distribution expects of
it, the level of the noise, the condition and the place; each block reads the 3 x 3 patches around;
the last layer writes what is to be added to the known expectation, in units of how far off that is
at this level. Each layer is one matrix, used at every patch: with ``a[j]`` what it read in place j
and ``b[j]`` what was propagated back to what it put out there, a record's gradient is the product

    sum over draws k and places j of  a[k, j] b[k, j]'.

Many draws of noise of one record (noise multiplicity, Dockhorn et al. 2023) lengthen this product,
and neither its shape nor its largest norm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from evenhand import _checks
from evenhand._torch import torch
from evenhand.learners.gradients import TINY
from evenhand.learners.nets.tensors import array, floats
from evenhand.typing import Array, FloatArray, IntArray

SHORT: Final = 1.0 - 1e-4
"""A breath below the clip norm, for what rounds in float32."""

TOGETHER: Final = 64
"""Draws that pass together, and at most so many records."""

_WAVES: Final = 4  # of the logarithm of the noise level, that the network reads
_PLACES: Final = 3  # cosines along a side, that tell a patch where it is
_HEAD: Final = 3.0  # what a condition is as an input, beside inputs of size 1
_WARM: Final = 20  # steps in which the learning rate rises
_BETAS: Final = (0.9, 0.99)
_LAST: Final = 0.1  # of the learning rate, at the last step
_MEMORY: Final = 0.99  # of the running mean of the weights


@dataclass(frozen=True, kw_only=True)
class PatchNetwork:
    """Layers that are shared by all patches of a picture; see the module."""

    shape: tuple[int, int, int]
    """Channels, height and width. Pictures whose sides are no multiple of ``patch`` are filled up
    with zeros.
    """
    n_heads: int
    """Conditions."""
    width: int = 48
    """Numbers that stand for a patch inside."""
    n_blocks: int = 2
    """Layers that read the patches around."""
    patch: int = 4
    """Pixels along the side of a patch."""

    def __post_init__(self) -> None:
        for name in ("n_heads", "width", "n_blocks", "patch"):
            _checks.at_least(name, getattr(self, name), 1)

    @property
    def grid(self) -> tuple[int, int]:
        """Patches from top to bottom, and from left to right."""
        return -(-self.shape[1] // self.patch), -(-self.shape[2] // self.patch)

    @property
    def n_pixels(self) -> int:
        """Numbers of a picture."""
        return math.prod(self.shape)

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Of every layer, the bias as its last row."""
        values = self.shape[0] * self.patch**2
        first = 2 * values + 2 * _WAVES + self.n_heads + 2 * _PLACES
        blocks = ((9 * self.width + 1, self.width),) * self.n_blocks
        return ((first + 1, self.width), *blocks, (self.width + 1, values))

    @property
    def n_weights(self) -> int:
        """Numbers of all layers."""
        return sum(map(math.prod, self.shapes))

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Draw first weights, (n_weights,); the last layer is 0, and so is what is added."""
        drawn = [rng.normal(0.0, shape[0] ** -0.5, math.prod(shape)) for shape in self.shapes]
        drawn[-1][:] = 0.0
        return np.concatenate(drawn)

    def layers(self, weights: Array) -> list[Any]:
        """Return a flat vector as the layers, tensors of float32."""
        out, first = [], 0
        for shape in self.shapes:
            out.append(floats(weights[first : first + math.prod(shape)]).view(shape))
            first += math.prod(shape)
        return out

    def features(self, noisy: Any, expected: Any, sigma: Any, heads: Any) -> Any:
        """Return what the first layer reads, (n, n_patches, n_features).

        Parameters
        ----------
        noisy, expected : tensor, shape (n, n_pixels)
            Centred, in units in which they are of size 1.
        sigma : tensor, shape (n,)
            Level of the noise.
        heads : tensor of int64, shape (n,)
        """
        n, places = len(noisy), self._places()
        waves = sigma.log()[:, None] * 2.0 ** torch.arange(_WAVES)
        one_hot = _HEAD * torch.nn.functional.one_hot(heads, self.n_heads)
        of_all = torch.cat([waves.sin(), waves.cos(), one_hot.to(noisy.dtype)], dim=1)
        shared = of_all[:, None].expand(n, len(places), of_all.shape[1])
        where = places.expand(n, *places.shape)
        return _with_one(torch.cat([self._cut(noisy), self._cut(expected), shared, where], dim=2))

    def forward(
        self, layers: Sequence[Any], features: Any, probes: Sequence[Any] | None = None
    ) -> tuple[Any, list[Any]]:
        """Return what is added to each pixel, (n, n_pixels), and what every layer read.

        ``probes`` are added to what the layers put out: the gradient in them is what comes back.
        """
        nn, state, read = torch.nn.functional, None, []
        for i, layer in enumerate(layers):
            given = features
            if state is not None:
                given = nn.silu(nn.layer_norm(state, (self.width,)))
                given = self._around(given) if i < len(layers) - 1 else _with_one(given)
            out = given @ layer
            if probes is not None:
                out = out + probes[i]
            read.append(given)
            state = state + out if 0 < i < len(layers) - 1 else out
        return self._joined(state), read

    def gradients(self, layers: Sequence[Any], features: Any, target: Any, n: int) -> list[Any]:
        """Return the gradients of ``n`` records in every layer, each (n, size of the layer).

        The loss of a record is the mean square of what is added less ``target``, over the pixels
        and over its draws, which stand one after another.
        """
        shapes = [(len(features), math.prod(self.grid), layer.shape[1]) for layer in layers]
        probes = [torch.zeros(shape, requires_grad=True) for shape in shapes]
        added, read = self.forward(layers, features, probes)
        loss = ((added - target) ** 2).mean(dim=1).sum() * (n / len(features))
        with torch.no_grad():
            parts = []
            for given, back in zip(read, torch.autograd.grad(loss, probes), strict=True):
                a, b = (part.detach().reshape(n, -1, part.shape[2]) for part in (given, back))
                parts.append(torch.bmm(a.transpose(1, 2), b).flatten(1))
            return parts

    def _places(self) -> Any:
        """Where each patch is, (n_patches, 2 * _PLACES)."""
        sides = []
        for n in self.grid:
            angles = torch.pi * (torch.arange(n) + 0.5) / n
            sides.append(torch.cos(angles[:, None] * torch.arange(1, _PLACES + 1)))
        rows, columns = self.grid
        return torch.cat([sides[0].repeat_interleave(columns, 0), sides[1].repeat(rows, 1)], dim=1)

    def _cut(self, pictures: Any) -> Any:
        """Pictures (n, n_pixels) as patches, (n, n_patches, values)."""
        (rows, columns), p, (channels, height, width) = self.grid, self.patch, self.shape
        whole = pictures.view(-1, channels, height, width)
        whole = torch.nn.functional.pad(whole, (0, columns * p - width, 0, rows * p - height))
        apart = whole.reshape(-1, channels, rows, p, columns, p).permute(0, 2, 4, 1, 3, 5)
        return apart.reshape(-1, rows * columns, channels * p * p)

    def _joined(self, patches: Any) -> Any:
        """Patches as pictures, (n, n_pixels): undoes ``_cut``."""
        (rows, columns), p, (channels, height, width) = self.grid, self.patch, self.shape
        apart = patches.reshape(-1, rows, columns, channels, p, p).permute(0, 3, 1, 4, 2, 5)
        whole = apart.reshape(-1, channels, rows * p, columns * p)
        return whole[:, :, :height, :width].reshape(-1, self.n_pixels)

    def _around(self, state: Any) -> Any:
        """Beside each patch the eight around it, zeros beyond the edge, and a 1."""
        rows, columns = self.grid
        wide = torch.nn.functional.pad(
            state.view(-1, rows, columns, self.width), (0, 0, 1, 1, 1, 1)
        )
        near = [wide[:, i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
        return _with_one(torch.cat(near, dim=3).flatten(1, 2))


def _with_one(rows: Any) -> Any:
    return torch.cat([rows, torch.ones(*rows.shape[:2], 1, dtype=rows.dtype)], dim=2)


class Expectation(Protocol):
    """What a known distribution expects of a noisy picture. Nothing of it is private."""

    @property
    def level(self) -> tuple[float, float]:
        """Mean of all pixels, and their mean variance."""

    def mean(self, noisy: Any, sigma: Any, heads: Any) -> Any:
        """Return expected pictures, (n, n_pixels), for noise of deviations ``sigma`` (n,)."""

    def spread(self, sigma: Any) -> Any:
        """Return the root mean square, over pixels, of a picture less this, (n, 1)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Denoiser:
    """A network beside a known expectation, and how it learns."""

    network: PatchNetwork
    known: Expectation
    n_draws: int = 1
    """Noise levels with noise that a record is given in one step (noise multiplicity)."""
    level: float = 0.6
    spread: float = 0.9
    """``level`` and ``spread``: the median of the noise levels, in units of a pixel, and the
    standard deviation of their logarithm (Karras et al. 2022).
    """

    def clipped_sum(
        self,
        weights: FloatArray,
        pictures: Array,
        heads: IntArray,
        keys: IntArray,
        *,
        step: int,
        clip_norm: float,
    ) -> FloatArray:
        """Return the sum of the records' gradients, (n_weights,), each of at most ``clip_norm``.

        What a record adds is a function of the record, its key, the step and the weights. One
        whose gradient is not finite adds nothing.

        Parameters
        ----------
        pictures : ndarray, shape (n, n_pixels)
        heads : ndarray of int64, shape (n,)
        keys : ndarray of int64, shape (n,)
            Of each record a secret of its own, from which its draws follow.
        """
        layers, together = self.network.layers(weights), max(1, TOGETHER // self.n_draws)
        total = np.zeros(self.network.n_weights)
        for first in range(0, len(pictures), together):
            some = slice(first, first + together)
            # Filled up: how numbers are rounded shall not tell how many records there are.
            gradients = self._gradients(
                layers,
                _filled(pictures[some], together),
                _filled(heads[some], together),
                _filled(keys[some], together),
                step,
            )
            scale = _scales(gradients, clip_norm, len(pictures[some]))
            total += np.concatenate([array(scale @ part) for part in gradients])
        return total

    def denoise(self, layers: Sequence[Any], noisy: Any, sigma: Any, heads: Any) -> Any:
        """Return the pictures that are expected, (n, n_pixels)."""
        expected = self.known.mean(noisy, sigma, heads)
        added, _ = self.network.forward(layers, self._features(noisy, expected, sigma, heads))
        return expected + self.known.spread(sigma) * added

    def _gradients(
        self, layers: Sequence[Any], pictures: Array, heads: IntArray, keys: IntArray, step: int
    ) -> list[Any]:
        """Gradients of records in every layer, before they are clipped."""
        n, width = len(pictures), self.network.n_pixels
        drawn = np.stack(
            [
                np.random.default_rng([int(key), step]).standard_normal((self.n_draws, width + 1))
                for key in keys
            ]
        ).reshape(n * self.n_draws, width + 1)
        sigma = floats(self.level * np.exp(self.spread * drawn[:, 0]))
        clean = floats(pictures).repeat_interleave(self.n_draws, 0)
        of_each = torch.as_tensor(heads).repeat_interleave(self.n_draws)
        noisy = clean + sigma[:, None] * floats(drawn[:, 1:])
        expected = self.known.mean(noisy, sigma, of_each)
        target = (clean - expected) / self.known.spread(sigma)
        features = self._features(noisy, expected, sigma, of_each)
        return self.network.gradients(layers, features, target, n)

    def _features(self, noisy: Any, expected: Any, sigma: Any, heads: Any) -> Any:
        centre, variance = self.known.level
        size = (variance + sigma[:, None] ** 2).sqrt()
        return self.network.features(
            (noisy - centre) / size, (expected - centre) / variance**0.5, sigma, heads
        )


def _scales(gradients: Sequence[Any], clip_norm: float, n: int) -> Any:
    """Return by what the gradients of records are multiplied; 0 what is not finite, or no record.

    Gradients that are not finite are set to 0 in place: 0 times infinity is no number.
    """
    square = sum(torch.linalg.vector_norm(part, dim=1).double() ** 2 for part in gradients)
    fine = torch.isfinite(square)
    if not fine.all():
        for part in gradients:
            part[~fine] = 0.0
    fine[n:] = False
    scale = (SHORT * clip_norm / square.sqrt().clamp(min=TINY)).clamp(max=1.0)
    return torch.where(fine, scale, torch.zeros_like(scale)).float()


def _filled(rows: Array, n: int) -> Array:
    """Rows, and zeros up to ``n`` of them."""
    out: Array = np.zeros((n, *rows.shape[1:]), dtype=rows.dtype)
    out[: len(rows)] = rows
    return out


@dataclass(kw_only=True, eq=False)
class NoisyAdam:
    """Adam (Kingma and Ba 2015) along noisy gradients, and the running mean of the weights.

    It reads nothing private. The rate rises in the first 20 steps, and falls to a tenth.
    """

    weights: FloatArray
    """Shape (n_weights,)."""
    rate: float
    n_steps: int
    mean: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.mean = self.weights.copy()
        self._flat = torch.as_tensor(self.weights.copy(), device="cpu")  # in doubles
        self._adam = torch.optim.Adam([self._flat], lr=self.rate, betas=_BETAS, eps=TINY)
        self._taken = 0

    def follow(self, gradient: FloatArray) -> None:
        """Take a step against a gradient."""
        self._taken += 1
        t = self._taken
        left = 1.0 - (1.0 - _LAST) * (t - 1) / self.n_steps
        self._adam.param_groups[0]["lr"] = self.rate * min(1.0, t / _WARM) * left
        self._flat.grad = torch.as_tensor(gradient, device="cpu")
        self._adam.step()
        self.weights = array(self._flat).copy()
        self.mean += (1.0 - min(_MEMORY, t / (t + 9.0))) * (self.weights - self.mean)
