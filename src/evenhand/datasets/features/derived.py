"""Extractors made of others: several joined, or the principal components of one."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from evenhand import _checks
from evenhand.datasets.features.extractor import FeatureExtractor, Float32Array
from evenhand.typing import Array, FloatArray

if TYPE_CHECKING:
    from evenhand.datasets.features.extraction import Features

AND = " + "
"""Between the names of extractors that are joined."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DerivedExtractor(ABC):
    """Base of extractors that compute with the features of others.

    ``extract`` finds the features of the parts in its cache, so nothing is computed again.
    """

    parts: tuple[FeatureExtractor, ...]
    """At least one."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many numbers a picture becomes."""

    @property
    @abstractmethod
    def trained_on(self) -> str:
        """What data made it, in words for a claim."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """Of the digests of the parts, and of what is done with them."""

    @abstractmethod
    def combined(self, features: list[Float32Array]) -> Float32Array:
        """Return its features, from those that each part gives of the same pictures."""

    @property
    def name(self) -> str:
        """That of the parts."""
        return AND.join(part.name for part in self.parts)

    @property
    def version(self) -> str:
        """That of the parts."""
        return AND.join(part.version for part in self.parts)

    @property
    def licence(self) -> str:
        """That of the parts."""
        return AND.join(part.licence for part in self.parts)

    def transform(self, pictures: Array) -> Float32Array:
        """Return (n, dimension) features of pictures (n, c, h, w)."""
        return self.combined([part.transform(pictures) for part in self.parts])


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinedFeatures(DerivedExtractor):
    """The features of several extractors side by side. Make it with ``of``.

    Examples
    --------
    >>> from evenhand.datasets.features import DlibFace, EfficientNetLite0
    >>> both = JoinedFeatures.of(DlibFace.load(), EfficientNetLite0.load())  # doctest: +SKIP
    """

    @classmethod
    def of(cls, *extractors: FeatureExtractor) -> Self:
        """Join extractors, at least two and all different.

        Raises
        ------
        ValueError
            If there are fewer, or one is named twice.
        """
        digests = [extractor.digest for extractor in extractors]
        if len(digests) < 2 or len(set(digests)) < len(digests):
            names = ", ".join(extractor.name for extractor in extractors) or "none"
            raise ValueError(
                f"Joined are two extractors or more, all different, got {names}. Use one alone as "
                f"it is."
            )
        return cls(parts=extractors)

    @property
    def dimension(self) -> int:
        """Of all parts together."""
        return sum(part.dimension for part in self.parts)

    @property
    def trained_on(self) -> str:
        """What data made each part."""
        return AND.join(part.trained_on for part in self.parts)

    @property
    def digest(self) -> str:
        """Of the digests of the parts, in their order."""
        digests = repr(tuple(part.digest for part in self.parts))
        return hashlib.sha256(f"joined {digests}".encode()).hexdigest()

    def combined(self, features: list[Float32Array]) -> Float32Array:
        """Return the columns of all."""
        return np.concatenate(features, axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrincipalComponents(DerivedExtractor):
    """The first principal components of an extractor's features. Make it with ``of``.

    Parameters
    ----------
    parts : tuple of FeatureExtractor
        The one whose features are projected.
    mean : ndarray, shape (d,)
    directions : ndarray, shape (n_components, d)
    n_public : int
        Pictures that both are of.

    Privacy
    -------
    Mean and directions are of public pictures, and row i is still a function of picture i alone:
    free. Of private pictures they would not be public.
    """

    block: ClassVar[int] = 1024

    mean: FloatArray = field(repr=False)
    directions: FloatArray = field(repr=False)
    n_public: int

    @classmethod
    def of(cls, extractor: FeatureExtractor, public: Features, n_components: int) -> Self:
        """Find the components of the features of public pictures.

        Parameters
        ----------
        extractor : FeatureExtractor
        public : Features
            What ``extract`` makes by it of *public* pictures.
        n_components : int
            At most as many as there are pictures, and as the extractor gives numbers.

        Raises
        ------
        ValueError
            For features of another extractor, and for another number of components.
        """
        if public.extractor.digest != extractor.digest:
            raise ValueError(
                f"Components of {extractor.name} are found in features by it, and these are of "
                f"{public.extractor}. Pass extract(pictures, extractor) of public pictures."
            )
        most = min(public.shape)
        if _checks.at_least("n_components", n_components, 1) > most:
            raise ValueError(
                f"{public.shape[0]} public pictures of {extractor.dimension} features each have at "
                f"most {most} principal components, got n_components={n_components!r}."
            )
        values = public.values.astype(np.float64)
        mean = values.mean(axis=0)
        turn = np.linalg.svd(values - mean, full_matrices=False)[2][:n_components]
        # A direction and its opposite are the same component: the largest number is above zero.
        sign = np.sign(turn[np.arange(len(turn)), np.abs(turn).argmax(axis=1)])
        directions = turn * sign[:, None]
        return cls(parts=(extractor,), mean=mean, directions=directions, n_public=len(public))

    @property
    def name(self) -> str:
        """That of the extractor, and how many components."""
        return f"{self.parts[0].name}, {self.dimension} principal components"

    @property
    def dimension(self) -> int:
        """How many components."""
        return len(self.directions)

    @property
    def trained_on(self) -> str:
        """What data made the extractor, and how many public pictures the components."""
        return f"{self.parts[0].trained_on}; the components on {self.n_public} public pictures"

    @property
    def digest(self) -> str:
        """Of the extractor's digest, the mean and the directions."""
        made = hashlib.sha256(f"components {self.parts[0].digest} ".encode())
        made.update(self.mean.tobytes() + self.directions.tobytes())
        return made.hexdigest()

    def combined(self, features: list[Float32Array]) -> Float32Array:
        """Return the projections; each is summed in its own row, so no row depends on others."""
        (values,) = features
        out = np.empty((len(values), self.dimension), dtype=np.float32)
        for start in range(0, len(values), self.block):
            apart = values[start : start + self.block] - self.mean
            for k, direction in enumerate(self.directions):
                out[start : start + self.block, k] = (apart * direction).sum(axis=1)
        return out
