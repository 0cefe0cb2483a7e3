"""What mean embeddings of pictures share: one release of mean features, and a fit to them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.feature_means import MEANS, FeatureMeans
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.mirrored import MirroredImages
from evenhand.generators.payload import Progress
from evenhand.generators.synthesizer import TorchSynthesizer
from evenhand.typing import Array, FloatArray, IntArray

CHUNK: Final = 1024  # pictures whose features are held at once
JUDGED: Final = 200
"""Pictures of each label and group by which ``misfit_`` is estimated."""

FAR: Final = 10.0
"""Misfit from which the fit is the limit, and a note says so."""


class PictureFeatures(Protocol):
    """Public numbers of each picture by itself, whose private means are released.

    Every ``FeatureExtractor`` is one.

    Privacy
    -------
    Row i of ``transform`` reads picture i alone. Rows longer than 1 are shortened to 1 where they
    are added up, by ``FeatureSums``.
    """

    @property
    def dimension(self) -> int:
        """How many numbers a picture becomes."""

    def transform(self, pictures: FloatPixels) -> Array:
        """Return (n, dimension) features of pictures (n, c, h, w)."""


@dataclass(eq=False, repr=False, kw_only=True)
class EmbeddedImages(TorchSynthesizer, MirroredImages):
    """A generator whose pictures have the mean features of the private ones, plus noise.

    What is drawn is fitted to one Gaussian release, so the fit is free: how near it came is
    ``misfit_``, the squared distance of the mean features of what is drawn to the released ones,
    over what the noise alone would leave. It is 1 for draws from the private distribution itself;
    where it is much more, the fit is the limit, and more budget does not help.
    """

    misfit_: float = field(init=False)

    @abstractmethod
    def _features(self, size: tuple[int, int, int], rng: np.random.Generator) -> PictureFeatures:
        """Return the features, made without a look at a picture."""

    @abstractmethod
    def _fit_to(
        self,
        features: Any,
        released: FeatureMeans,
        seen: IntArray,
        rng: np.random.Generator,
        progress: Progress,
    ) -> None:
        """Fit what draws pictures to the released means of the combinations ``seen``."""

    def _shares(self) -> Mapping[str, float]:
        return {MEANS: 1.0}

    def _learn_turned(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        features = self._features(self.codec_.size, rng)

        def features_of(rows: slice) -> FloatArray:
            progress("features", rows.start, len(data))
            return features.transform(data.pixels[rows]).astype(np.float64, copy=False)

        released = FeatureMeans.release(
            data,
            features_of,
            n_features=features.dimension,
            n_conditions=self.conditions_.n,
            chunk=CHUNK,
            plan=plan,
            purpose=MEANS,
        )
        progress("features", len(data), len(data))
        self.counts_, self.counts_sigma_ = released.counts, released.sigma
        self.snr_ = released.snr
        seen = np.setdiff1d(np.arange(self.conditions_.n), self._unseen()).astype(np.int64)
        seen = seen if len(seen) else np.arange(self.conditions_.n)
        self._fit_to(features, released, seen, rng, progress)
        apart = 0.0
        for condition in seen:
            drawn = self._draw_turned(np.full(JUDGED, condition), np.random.default_rng(0))
            found = features.transform(np.clip(drawn, 0.0, 1.0)).astype(np.float64, copy=False)
            apart += float(squared_distance(found, released.means[condition]))
        self.misfit_ = apart / float(released.squared_noise[seen].sum())

    def _remarks(self) -> tuple[str, ...]:
        if self.misfit_ <= FAR:
            return ()
        return (
            f"the mean features of what is drawn are {self.misfit_:.0f} times as far from the "
            f"released ones, in squares, as noise explains: the fit is the limit. Before a larger "
            f"budget take more steps or a larger network, which cost no privacy",
        )

    def _arrays(self) -> dict[str, Array]:
        return {"misfit": np.array([self.misfit_])}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        # Generators of older files do not know it.
        self.misfit_ = float(arrays["misfit"][0]) if "misfit" in arrays else float("nan")


def squared_distance(found: Any, wanted: Any) -> Any:
    """Return the squared distance of a mean to ``wanted``, from a sample, without bias.

    That of the sample's mean is too large by the variance of a mean, which would reward what is
    drawn for being all alike.

    Parameters
    ----------
    found : array or tensor, shape (..., n, d)
        n independent draws, at least 2.
    wanted : array or tensor, shape (..., d)

    Returns
    -------
    array or tensor, shape (...)
        Sum over d. May be below 0.

    Examples
    --------
    >>> squared_distance(np.array([[0.0], [2.0]]), np.array([1.0]))
    np.float64(-1.0)
    """
    n = found.shape[-2]
    mean = found.sum(-2) / n
    spread = ((found - mean[..., None, :]) ** 2).sum((-2, -1)) / (n - 1)
    return ((mean - wanted) ** 2).sum(-1) - spread / n
