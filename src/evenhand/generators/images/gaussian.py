"""GaussianImages: means and covariances of low frequencies by label and group, and a draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand.generators.aggregators import OuterSums
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise
from evenhand.generators.feature_means import FeatureMeans, chunks
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.typing import Array, FloatArray, IntArray

MEANS: Final = "sums of low frequencies by label and group, with the counts"
DIRECTIONS: Final = "products of low frequencies over all pictures"
COVARIANCES: Final = "products along the directions by label and group"

_SHARES: Final = {MEANS: 0.15, DIRECTIONS: 0.25, COVARIANCES: 0.6}
_GREY: Final = 0.5  # of a pixel: no picture is farther from it than half the root of its pixels
_CHUNK: Final = 2048  # pictures that are held as doubles at once
_ROOM: Final = 1.3  # times the typical length, beyond which a picture is shortened
_LEAST: Final = 0.1  # of the variance, that is taken to lie within labels and groups


@register
@dataclass(eq=False, repr=False, kw_only=True)
class GaussianImages(ImageSynthesizer):
    """Draw pictures from Gaussian distributions, one per label and group.

    1. Pictures become their lowest frequencies (``low_frequencies``). The sums by label and group,
       with the counts, are released: the means.
    2. Pictures less the mean of all are shortened to ``radius``; the sum of their products over all
       pictures is released. Its eigenvectors above the edge of the noise's own spectrum are the
       directions in which pictures are told apart.
    3. Along these, pictures less the mean of their label and group are shortened to 1.3 times their
       typical length; the sums of their products by label and group are released: the covariances.
    4. Means and covariances of a group are moved towards those of its label, and covariances of a
       label towards those of all, by the part of their distance that the noise explains
       (James-Stein). Nothing is trained, and a picture is drawn in closed form.

    Parameters
    ----------
    n_frequencies : int
        Numbers that are read of a picture, evenly over its channels, at least 1 for each; of a
        small picture all are read.
    n_directions : int
        Along which covariances are released, at most; at least 1.
    radius : float
        How far a picture may be from the mean of all, as the root of the mean square over pixels;
        greater than 0. Pictures that are farther are shortened.
    **others
        ``condition``, ``neighbors``, ``noise`` and ``random_state``, see ``ImageSynthesizer``.

    Privacy
    -------
    Neighbors : add or remove one picture or unit; or replace one picture.
    Sensitivity : ``sqrt(2)`` of the means with counts (2 for "replace one"); 1 of either products
        in Frobenius norm (``sqrt(2)``).
    Cost : three Gaussian releases; all else reads what was released.

    References
    ----------
    Chanyaswad, Liu and Mittal 2019 (RON-Gauss; there directions are random). Dwork, Talwar,
    Thakurta and Zhang 2014 (products with Gaussian noise). Benaych-Georges and Nadakuditi 2011
    (eigenvalues of a matrix in noise).
    """

    method: ClassVar[str] = "gaussian"
    words: ClassVar[str] = "noisy means and covariances of low frequencies"

    n_frequencies: int = 400
    n_directions: int = 64
    radius: float = 0.3

    def _shares(self) -> Mapping[str, float]:
        return _SHARES

    def _foresee(self, known: EncodedImages) -> None:
        _checks.at_least("n_frequencies", self.n_frequencies, known.pixels.shape[1])
        _checks.at_least("n_directions", self.n_directions, 1)
        _checks.positive("radius", self.radius)
        super()._foresee(known)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        read = min(self.n_frequencies, data.pixels[0].size)
        held = 8.0 * read * (6.0 * read + data.pixels[0].size + 2.0 * _CHUNK)
        covariances = 24.0 * self.conditions_.n * min(self.n_directions, read) ** 2
        return (
            f"{len(data)} pictures and {read} frequencies for {self.conditions_.n} combinations "
            f"of label and group",
            2.0 * data.pixels.nbytes + held + covariances,
            "n_frequencies, or the size or the number of the pictures",
        )

    def _learn(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        cosines = low_frequencies(self.codec_.size, self.n_frequencies)
        (n_pixels, n_read), n_conditions = cosines.shape, self.conditions_.n
        longest, passes = _GREY * n_pixels**0.5, 0

        def read(rows: slice) -> FloatArray:
            progress("pictures", passes * len(data) + rows.start, 3 * len(data))
            flat = data.pixels[rows].reshape(-1, n_pixels).astype(np.float64)
            points: FloatArray = (flat - _GREY) @ cosines
            return points

        released = FeatureMeans.release(
            data,
            lambda rows: read(rows) / longest,
            n_features=n_read,
            n_conditions=n_conditions,
            chunk=_CHUNK,
            plan=plan,
            purpose=MEANS,
        )
        self.counts_, self.counts_sigma_ = released.counts, released.sigma
        held = np.maximum(self.counts_, 1.0)
        means = released.sums * longest / held[:, None]
        middle = held @ means / held.sum()

        passes, radius = 1, self.radius * n_pixels**0.5
        products, sigma = _products(
            data, lambda rows: (read(rows) - middle) / radius, n_read, plan, DIRECTIONS
        )
        size, frame = denoised(products[0], sigma)
        m = max(1, min(self.n_directions, int((size > 0).sum())))
        frame = frame[:, :m]
        own = (means - middle) @ frame
        noise = released.sigma * longest / held
        own = self._towards_label(own, held, noise**2 * m)
        total = radius**2 * float(size[:m].sum()) / held.sum()
        between = float(held @ (own**2).sum(axis=1)) / held.sum()
        typical = max(total - between, _LEAST * total) ** 0.5
        passes, short = 2, max(_ROOM * typical, 1e-6)
        products, sigma = _products(
            data,
            lambda rows: ((read(rows) - middle) @ frame - own[data.condition[rows]]) / short,
            m,
            plan,
            COVARIANCES,
            n_conditions,
        )
        progress("pictures", 3 * len(data), 3 * len(data))
        self.snr_ = _snr(products, sigma)
        covariances = self._covariances(products, sigma, held) * short**2
        self.frame_ = (cosines @ frame).astype(np.float32)
        self.middle_ = (cosines @ middle + _GREY).astype(np.float32)
        self.means_ = own
        self.roots_ = np.stack([_root(covariance) for covariance in covariances])

    def _covariances(self, products: FloatArray, sigma: float, held: FloatArray) -> FloatArray:
        """Covariances of all, of the labels moved towards them, and of the groups towards those."""
        n_conditions, m, _ = products.shape
        size, vectors = denoised(products.sum(axis=0), sigma * n_conditions**0.5)
        out = np.broadcast_to((vectors * size) @ vectors.T / held.sum(), products.shape).copy()
        energy = sigma**2 * m * (m + 1) / 2  # of the noise on one block, in squared Frobenius norm
        for mine in self._seen_by_label():
            found = products[mine].sum(axis=0) / held[mine].sum()
            noise = energy * len(mine) / held[mine].sum() ** 2
            out[self._same_label(mine)] = towards(found, out[mine[0]], noise)
            for c in mine:
                out[c] = towards(products[c] / held[c], out[c], energy / held[c] ** 2)
        return out

    def _towards_label(self, own: FloatArray, held: FloatArray, energy: FloatArray) -> FloatArray:
        """Move the means of groups towards that of their label; what was not seen has that."""
        out = np.zeros_like(own)  # the mean of all, where no group of a label was seen
        for mine in self._seen_by_label():
            middle = held[mine] @ own[mine] / held[mine].sum()
            out[self._same_label(mine)] = middle
            if len(mine) > 1:
                for c in mine:
                    out[c] = towards(own[c], middle, energy[c])
        return out

    def _seen_by_label(self) -> list[IntArray]:
        """Return the combinations that were seen, in a list for each label that has any."""
        labels, unseen = self.conditions_.labels(), self._unseen()
        seen = np.setdiff1d(np.arange(self.conditions_.n), unseen)
        return [seen[labels[seen] == label] for label in np.unique(labels[seen])]

    def _same_label(self, mine: IntArray) -> IntArray:
        """Return all combinations of their label."""
        labels = self.conditions_.labels()
        return np.flatnonzero(labels == labels[mine[0]])

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        out = np.empty((len(conditions), len(self.middle_)), dtype=np.float32)
        drawn = rng.normal(size=(len(conditions), self.means_.shape[1]))
        for c in np.unique(conditions):
            at = conditions == c
            moved = (self.means_[c] + drawn[at] @ self.roots_[c].T).astype(np.float32)
            out[at] = moved @ self.frame_.T + self.middle_
        return out.reshape(-1, *self.codec_.size)

    def _arrays(self) -> dict[str, Array]:
        return {name: getattr(self, f"{name}_") for name in ("frame", "middle", "means", "roots")}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        for name, values in arrays.items():
            setattr(self, f"{name}_", values)


def low_frequencies(size: tuple[int, int, int], n: int) -> FloatArray:
    """Return the lowest cosines of pictures, orthonormal, shape (n_pixels, n or all there are).

    Parameters
    ----------
    size : tuple of int
        Channels, height and width.
    n : int
        Cosines of all channels together, at least one each; every channel has as many.

    Examples
    --------
    >>> low_frequencies((1, 2, 2), 2)
    array([[ 0.5,  0.5],
           [ 0.5, -0.5],
           [ 0.5,  0.5],
           [ 0.5, -0.5]])
    """
    channels, height, width = size
    rows, columns = _cosines(height), _cosines(width)
    i, j = (at.ravel() for at in np.indices((height, width)))
    lowest = np.argsort((i / height) ** 2 + (j / width) ** 2, kind="stable")[
        : max(1, n // channels)
    ]
    one = np.einsum("hk,wk->hwk", rows[:, i[lowest]], columns[:, j[lowest]])
    return np.kron(np.eye(channels), one.reshape(height * width, -1))


def denoised(products: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, largest first, less what noise added to them, and their vectors.

    Noise of variance ``sigma**2`` on the diagonal and half of it beside has eigenvalues within
    ``sigma sqrt(2 d)`` of 0. A value v above this edge e comes from one of
    ``(v + sqrt(v**2 - e**2)) / 2`` (Benaych-Georges and Nadakuditi 2011); the others are set to 0.
    """
    values, vectors = np.linalg.eigh(products)
    values, vectors = values[::-1], vectors[:, ::-1]
    edge = sigma * (2.0 * len(values)) ** 0.5
    under = np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return np.where(values > edge, (values + under) / 2.0, 0.0), vectors


def towards(found: FloatArray, centre: FloatArray, energy: float) -> FloatArray:
    """Move what was found in noise of this expected squared length towards a centre.

    The positive part of James and Stein's estimator: by the part of the squared distance that the
    noise explains, all of the way where it explains all.
    """
    apart = found - centre
    kept = max(0.0, 1.0 - energy / max(float((apart**2).sum()), 1e-300))
    moved: FloatArray = centre + kept * apart
    return moved


def _products(
    data: EncodedImages,
    points: Callable[[slice], FloatArray],
    n_features: int,
    plan: BudgetPlan,
    purpose: str,
    n_conditions: int = 0,
) -> tuple[FloatArray, float]:
    """Release sums of products by condition, or of all pictures if that is 0; with the noise.

    The noise is that on the diagonal; beside it, it is ``sqrt(2)`` times smaller.
    """
    by, n_conditions = n_conditions > 0, max(1, n_conditions)
    sums = OuterSums(n_features=n_features, n_conditions=n_conditions, per_unit=data.per_unit)
    total = np.zeros(n_conditions * n_features * (n_features + 1) // 2, dtype=np.int64)
    for rows in chunks(len(data), _CHUNK):
        total += sums.total(points(rows), data.condition[rows] * by)
    released = plan.release(sums, total, purpose)
    return sums.apart(released.values), released.sigma


def _snr(products: FloatArray, sigma: float) -> SignalToNoise:
    """How far the covariances stand above their noise."""
    n_conditions, m, _ = products.shape
    size, _ = denoised(products.sum(axis=0), sigma * n_conditions**0.5)
    noise = sigma * (m * (m + 1) / 2) ** 0.5
    return SignalToNoise(
        value=(float(np.linalg.norm(size)) / n_conditions / noise) ** 2,
        formula="length of the products of one label and group over that of their noise, squared",
    )


def _cosines(n: int) -> FloatArray:
    """Orthonormal cosines along n pixels, lowest first, as columns."""
    out: FloatArray = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(n)) / n)
    out *= (2.0 / n) ** 0.5
    out[:, 0] = n**-0.5
    return out


def _root(covariance: FloatArray) -> FloatArray:
    """Return R with R R' the covariance, without what noise took below zero."""
    values, vectors = np.linalg.eigh(covariance)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
