"""What mixtures of Gaussian distributions expect of a noisy picture, in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from evenhand._torch import torch
from evenhand.typing import Array, FloatArray, IntArray

BESIDE: Final = 0.01
"""Variance of a pixel that is taken to lie beside the directions of the mixture; public."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MixtureExpectation:
    """The expectation of a picture given the picture with noise; see ``learners.nets.denoiser``.

    Of a component with mean m and covariance V along the directions it is
    ``m + V (V + sigma^2)^-1 (z - m)``, and components count by their posterior probability.
    """

    frame: FloatArray
    """Orthonormal. Shape (n_pixels, n_directions)."""
    middle: FloatArray
    """Shape (n_pixels,)."""
    means: FloatArray
    """Shape (n_components, n_directions)."""
    vectors: FloatArray
    values: FloatArray
    """``vectors`` and ``values``: eigenvectors, in columns, and eigenvalues of the covariances.
    Shapes (n_components, n_directions, n_directions) and (n_components, n_directions).
    """
    weights: FloatArray
    """Part of its label and group that each is. Shape (n_components,)."""
    of: IntArray
    """Its label and group. Shape (n_components,)."""
    shares: FloatArray
    """Of labels and groups. Shape (n_conditions,)."""

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array], shares: FloatArray) -> MixtureExpectation:
        """Read the arrays of a ``GaussianImages``."""
        roots = arrays["roots"].astype(np.float64)
        values, vectors = np.linalg.eigh(roots @ roots.transpose(0, 2, 1))
        doubles = {
            name: arrays[name].astype(np.float64)
            for name in ("frame", "middle", "means", "weights")
        }
        return cls(
            **doubles,
            vectors=vectors,
            values=np.maximum(values, 0.0),
            of=arrays["of"],
            shares=shares,
        )

    @cached_property
    def level(self) -> tuple[float, float]:
        """Mean of all pixels, and their mean variance."""
        part = self._parts
        centre = part @ self.means
        between = float(part @ ((self.means - centre) ** 2).sum(axis=1))
        within = float(self._within.sum())
        return float(self.middle.mean()), (between + within) / len(self.middle) + BESIDE

    def mean(self, noisy: Any, sigma: Any, heads: Any) -> Any:
        """Return expected pictures, (n, n_pixels); in doubles inside."""
        frame, middle, means, vectors, values, weights = map(
            torch.as_tensor,
            (self.frame, self.middle, self.means, self.vectors, self.values, self.weights),
        )
        apart, variance = noisy.double() - middle, sigma.double() ** 2
        z = apart @ frame
        along = torch.empty_like(z)
        for head in torch.unique(heads).tolist():
            at = torch.nonzero(heads == head)[:, 0]
            own = torch.as_tensor(np.flatnonzero((self.of == head) & (self.weights > 0)))
            turned = torch.einsum("nkm,kmj->nkj", z[at][:, None] - means[own], vectors[own])
            total = values[own] + variance[at][:, None, None]
            fit = weights[own].log() - 0.5 * (turned**2 / total + total.log()).sum(dim=2)
            probability = fit.softmax(dim=1)[:, :, None]
            pulled = torch.einsum("nkj,kmj->nkm", turned * (values[own] / total), vectors[own])
            along[at] = (probability * (means[own] + pulled)).sum(dim=1)
        beside = (BESIDE / (BESIDE + variance))[:, None]
        expected = middle + beside * apart + (along - beside * z) @ frame.T
        return expected.to(noisy.dtype)

    def spread(self, sigma: Any) -> Any:
        """Return the root mean square over pixels of what is left unknown, (n, 1)."""
        within, variance = torch.as_tensor(self._within), sigma.double()[:, None] ** 2
        n_beside = len(self.middle) - len(within)
        known = (within * variance / (within + variance)).sum(dim=1, keepdim=True)
        beside = n_beside * BESIDE * variance / (BESIDE + variance)
        return ((known + beside) / len(self.middle)).sqrt().to(sigma.dtype)

    @cached_property
    def _parts(self) -> FloatArray:
        """Part of all pictures that each component is."""
        parts = self.weights * self.shares[self.of]
        found: FloatArray = parts / parts.sum()
        return found

    @cached_property
    def _within(self) -> FloatArray:
        """Variance along each direction, within components."""
        each = np.einsum("kmj,kj->km", self.vectors**2, self.values)
        found: FloatArray = self._parts @ each
        return found
