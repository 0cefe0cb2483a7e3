"""Random Fourier features of all pixels of a picture: of norm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evenhand import _checks
from evenhand.typing import FloatArray

BANDWIDTHS: Final = (0.1, 0.2, 0.4)
"""Of the kernels, as shares of the distance between a black picture and a white one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomFeatures:
    """Map pictures to ``cos(w x), sin(w x)``, the random Fourier features of Gaussian kernels.

    Three public bandwidths share the frequencies w evenly (Rahimi and Recht 2007; the sum of
    kernels sees likeness at three scales).

    Parameters
    ----------
    frequencies : ndarray of float64, shape (n_pixels, n_frequencies)

    Privacy
    -------
    Drawn without looking at a picture. Every picture's features have norm 1.
    """

    frequencies: FloatArray

    @classmethod
    def draw(cls, n_pixels: int, n_frequencies: int, rng: np.random.Generator) -> RandomFeatures:
        """Draw frequencies for pictures of so many numbers."""
        _checks.at_least("n_frequencies", n_frequencies, 1)
        widths = np.resize(BANDWIDTHS, n_frequencies) * n_pixels**0.5
        return cls(frequencies=rng.normal(size=(n_pixels, n_frequencies)) / widths)

    @property
    def n_features(self) -> int:
        """Two per frequency."""
        return 2 * int(self.frequencies.shape[1])

    def of(self, pixels: NDArray[np.float32]) -> FloatArray:
        """Features of pictures (n, ...), shape (n, n_features)."""
        turned = pixels.reshape(len(pixels), -1).astype(np.float64) @ self.frequencies
        features = np.hstack([np.cos(turned), np.sin(turned)])
        scaled: FloatArray = features / self.frequencies.shape[1] ** 0.5
        return scaled
