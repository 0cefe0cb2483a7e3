"""Random features of pictures, and a small network whose pictures have given mean features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand._torch import torch
from evenhand.learners.nets.layers import Layers, arrays_of, layers_of, named_layers, through
from evenhand.learners.nets.tensors import seeded
from evenhand.learners.nets.training_state import state_of, take_state
from evenhand.typing import Array, FloatArray, IntArray

BANDWIDTHS: Final = (0.1, 0.2, 0.4)
"""Of the kernels, as shares of the distance between a black picture and a white one."""

N_NOISE: Final = 8  # random numbers behind one picture, beside its condition
RATE: Final = 1e-2
DECAY: Final = 0.9
DECAYS: Final = 20  # times that the rate decays over the fit
_ROWS: Final = 2048  # pictures that are drawn at once
_FAR: Final = 1e-4  # weight of a pixel in a blur, below which it has none


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomFeatures:
    """Map pictures to ``cos(w x), sin(w x)``, the random Fourier features of Gaussian kernels.

    Three public bandwidths share the frequencies w evenly (Rahimi and Recht 2007; the sum of
    kernels sees likeness at three scales).

    Privacy
    -------
    Drawn without looking at a picture. Every picture's features have norm 1.
    """

    frequencies: FloatArray
    """Shape (n_pixels, n_frequencies)."""

    @classmethod
    def draw(cls, n_pixels: int, n_frequencies: int, rng: np.random.Generator) -> RandomFeatures:
        """Draw frequencies for pictures of so many numbers."""
        _checks.at_least("n_frequencies", n_frequencies, 1)
        widths = np.resize(BANDWIDTHS, n_frequencies) * n_pixels**0.5
        return cls(frequencies=rng.normal(size=(n_pixels, n_frequencies)) / widths)

    @property
    def dimension(self) -> int:
        """Two numbers per frequency."""
        return 2 * int(self.frequencies.shape[1])

    def transform(self, pictures: NDArray[np.float32]) -> FloatArray:
        """Return features (n, dimension) of pictures (n, ...)."""
        turned = pictures.reshape(len(pictures), -1).astype(np.float64) @ self.frequencies
        features = np.hstack([np.cos(turned), np.sin(turned)])
        scaled: FloatArray = features / self.frequencies.shape[1] ** 0.5
        return scaled


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddingNetwork:
    """Layers of a network from random numbers and a condition to pixels."""

    layers: Layers
    """A sigmoid follows the last."""
    n_conditions: int
    size: tuple[int, int, int]
    """Channels, height and width."""

    def draw(self, conditions: IntArray, rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw one picture per condition, shape (n, channels, height, width)."""
        out = np.empty((len(conditions), *self.size), dtype=np.float32)
        for start in range(0, len(conditions), _ROWS):
            part = conditions[start : start + _ROWS]
            rows = np.hstack(
                [rng.normal(size=(len(part), N_NOISE)), np.eye(self.n_conditions)[part]]
            )
            pixels = 1.0 / (1.0 + np.exp(-np.clip(through(self.layers, rows), -30.0, 30.0)))
            out[start : start + len(part)] = pixels.reshape(-1, *self.size)
        return out

    def arrays(self) -> dict[str, Array]:
        """Return the layers by name."""
        own: dict[str, Array] = {"size": np.array([self.n_conditions, *self.size])}
        return own | named_layers(self.layers, "weight")

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> EmbeddingNetwork:
        """Read what ``arrays`` gave."""
        n, channels, height, width = arrays["size"].tolist()
        layers = layers_of(arrays, "weight")
        return cls(layers=layers, n_conditions=n, size=(channels, height, width))


class EmbeddingFit:
    """The fit of a network whose pictures of every condition have the mean features ``aims``.

    Adam on the squared distance, summed over the conditions ``seen``, each of which counts alike:
    balance after the noise. A ``PictureFit``.

    Parameters
    ----------
    features : RandomFeatures
    aims : ndarray of float64, shape (n_conditions, n_features)
    seen : ndarray of int64
        Conditions that are fitted; the others stay as they began.
    size : tuple of int
        Channels, height and width.
    hidden : tuple of int
        Widths between input and pixels.
    n_steps, n_samples : int
        Of the fit, and pictures of a step over all conditions.
    rng : Generator
        Seeds the network and its draws.
    smooth : float
        Standard deviation, in pixels, of a blur of what enters the sigmoid; 0 for none. The blur is
        fixed and linear, so the network holds it in its last layer.
    """

    def __init__(
        self,
        features: RandomFeatures,
        aims: FloatArray,
        seen: IntArray,
        size: tuple[int, int, int],
        *,
        hidden: tuple[int, ...],
        n_steps: int,
        n_samples: int,
        rng: np.random.Generator,
        smooth: float = 0.0,
    ) -> None:
        self.n_steps, self.done = n_steps, 0
        self._size, self._n_conditions, self._smooth = size, len(aims), smooth
        self._stream = seeded(rng)
        widths = (N_NOISE + len(aims), *hidden, int(np.prod(size)))
        self._layers = []
        for n_in, n_out in pairwise(widths):
            bound = n_in**-0.5
            made = [torch.empty(n_in, n_out), torch.empty(n_out)]
            drawn = [t.uniform_(-bound, bound, generator=self._stream) for t in made]
            self._layers.append(tuple(t.requires_grad_() for t in drawn))
        self._frequencies = torch.as_tensor(features.frequencies, dtype=torch.float32)
        self._wanted = torch.as_tensor(aims[seen], dtype=torch.float32)
        each = max(1, n_samples // len(seen))
        named = torch.eye(len(aims))[torch.as_tensor(seen)]
        self._named = named.repeat_interleave(each, dim=0)
        self._adam = torch.optim.Adam([t for layer in self._layers for t in layer], lr=RATE)
        self._kernels = [torch.as_tensor(_blur(n, smooth), dtype=torch.float32) for n in size[1:]]

    @property
    def ended(self) -> bool:
        """Whether no step is left."""
        return self.done >= self.n_steps

    def step(self) -> None:
        """Draw, and follow the gradient of the distance."""
        noise = torch.randn(len(self._named), N_NOISE, generator=self._stream)
        rows = torch.cat([noise, self._named], dim=1)
        drawn = torch.sigmoid(self._blurred(through(self._layers, rows)))
        turned = drawn @ self._frequencies
        found = torch.cat([turned.cos(), turned.sin()], dim=1) * self._frequencies.shape[1] ** -0.5
        apart = found.view(len(self._wanted), -1, found.shape[1]).mean(dim=1) - self._wanted
        self._adam.zero_grad()
        (apart**2).sum().backward()
        self._adam.step()
        self.done += 1
        if self.done % max(1, self.n_steps // DECAYS) == 0:
            for group in self._adam.param_groups:
                group["lr"] *= DECAY

    def learnt(self) -> dict[str, Array]:
        """Return the layers by name, as ``EmbeddingNetwork.of`` reads them."""
        weight, bias = self._layers[-1]
        last = (self._blurred(weight), self._blurred(bias[None])[0])
        return EmbeddingNetwork(
            layers=arrays_of([*self._layers[:-1], last]),
            n_conditions=self._n_conditions,
            size=self._size,
        ).arrays()

    def state(self) -> dict[str, Array]:
        """Return copies of what a new fit needs to go on from here, bit for bit."""
        return {"done": np.array([self.done])} | state_of(self._adam, self._stream)

    def take(self, state: Mapping[str, Array]) -> None:
        """Go on where ``state`` was."""
        take_state(self._adam, self._stream, state)
        self.done = int(state["done"].item())

    def _blurred(self, flat: Any) -> Any:
        if not self._smooth:
            return flat
        down, across = self._kernels
        return (down @ flat.view(-1, *self._size) @ across.T).flatten(1)


def _blur(n: int, smooth: float) -> FloatArray:
    """Gaussian weights of n pixels in a row for each of them, shape (n, n); rows sum to 1."""
    at = np.arange(n)
    if not smooth:
        return np.eye(n)
    near: FloatArray = np.exp(-0.5 * ((at[:, None] - at) / smooth) ** 2)
    near[near < _FAR] = 0.0
    weights: FloatArray = near / near.sum(axis=1, keepdims=True)
    return weights
