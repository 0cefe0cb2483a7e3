"""GaussianImages: mixtures of Gaussians over low frequencies by label and group, and a draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
from sklearn.cluster import KMeans

from evenhand import _checks, _values
from evenhand.generators.aggregators import OuterSums
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise
from evenhand.generators.feature_means import FeatureMeans, chunks
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.mirrored import MirroredImages
from evenhand.generators.images.noisy_moments import (
    affordable,
    denoised,
    directions_of_means,
    edge_of_noise,
    pooled,
    root,
    shrunk_covariances,
    towards,
)
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.typing import Array, FloatArray, IntArray

MEANS: Final = "sums of low frequencies by label and group, with the counts"
DIRECTIONS: Final = "products of low frequencies over all pictures"
SHAPES: Final = "products along the directions by label and group"
COMPONENTS: Final = "sums along the directions by component, with the counts"
COVARIANCES: Final = "products along the directions by component"

_SHARES: Final = {MEANS: 0.1, DIRECTIONS: 0.15, SHAPES: 0.15, COMPONENTS: 0.2, COVARIANCES: 0.4}
_GREY: Final = 0.5  # of a pixel: no picture is farther from it than half the root of its pixels
_CHUNK: Final = 2048  # pictures that are held as doubles at once
_ROOM: Final = 1.3  # times the typical length, beyond which a picture is shortened
_LEAST: Final = 0.1  # of the variance, that is taken to lie within labels, groups and components
_PASSES: Final = 3  # over all pixels
_TOLD: Final = 9.0  # times the noise of a count, that a component shall have: most stand out then
_SEEN: Final = 3.0  # times its noise, above which a count is not taken for noise
_KEPT: Final = ("frame", "middle", "means", "roots", "weights", "of")
_SKETCH: Final = 4000  # points of a Gaussian that are drawn to cut it into components


@register
@dataclass(eq=False, repr=False, kw_only=True)
class GaussianImages(MirroredImages):
    """Draw pictures from mixtures of Gaussian distributions, one mixture per label and group.

    1. Pictures become their lowest frequencies (``low_frequencies``). The sums by label and group,
       with the counts, are released: the means.
    2. Pictures less the mean of all are shortened to ``radius``; the sum of their products over all
       pictures is released. Its eigenvectors above the edge of the noise's own spectrum are the
       directions in which pictures are told apart; beside them stand those in which the means
       differ by more than noise.
    3. Along these, pictures less the mean of their label and group are shortened to 1.3 times their
       typical length; the sums of their products by label and group are released. Points that are
       drawn from this one Gaussian are cut into components by k-means, at no cost: as many as are
       to be expected to stand above the noise of step 5.
    4. Each picture is in the component whose centre is nearest; the sums by component, with the
       counts, are released: the means and weights of the components.
    5. Pictures less the mean of their component are shortened as in step 3; the sums of their
       products by component are released: the covariances.
    6. Means of a component are moved towards its centre, and those of a group towards those of its
       label, by the part of their distance that the noise explains (James-Stein); covariances of a
       component towards those of its label, these towards those of all, and these towards their
       diagonal, each number by the part that the noise explains of what is usual for its variances.
       Nothing is trained, and a picture is drawn in closed form.

    Parameters
    ----------
    n_frequencies : int
        Numbers that are read of a picture, evenly over its channels, at least 1 for each; of a
        small picture all are read.
    n_directions : int
        Of the most variance, along which covariances are released, at most; at least 1. Those in
        which means differ come beside.
    n_components : int
        Of one label and group, at most; at least 1.
    radius : float
        How far a picture may be from the mean of all, as the root of the mean square over pixels;
        greater than 0. Pictures that are farther are shortened.
    **others
        ``mirrored``, see ``MirroredImages``; ``condition``, ``neighbors``, ``noise`` and
        ``random_state``, see ``ImageSynthesizer``.

    Attributes
    ----------
    n_components_ : ndarray of int64, shape (n_conditions,)
        Components of each label and group.

    Privacy
    -------
    Neighbors : add or remove one picture or unit; or replace one picture.
    Sensitivity : ``sqrt(2)`` of either sums with counts (2 for "replace one"); 1 of either products
        in Frobenius norm (``sqrt(2)``).
    Cost : five Gaussian releases; all else reads what was released.

    References
    ----------
    Chanyaswad, Liu and Mittal 2019 (RON-Gauss; there directions are random). Dwork, Talwar,
    Thakurta and Zhang 2014 (products with Gaussian noise). Benaych-Georges and Nadakuditi 2011
    (eigenvalues of a matrix in noise). Efron and Morris 1973 (numbers moved by what noise
    explains). McLachlan and Peel 2000 (mixtures of Gaussians; here one step of hard assignments).
    """

    method: ClassVar[str] = "gaussian"
    words: ClassVar[str] = "noisy means and covariances of low frequencies"

    n_frequencies: int = 400
    n_directions: int = 64
    n_components: int = 16
    radius: float = 0.3

    def _shares(self) -> Mapping[str, float]:
        return _SHARES

    def _foresee(self, known: EncodedImages) -> None:
        _checks.at_least("n_frequencies", self.n_frequencies, known.pixels.shape[1])
        _checks.at_least("n_directions", self.n_directions, 1)
        _checks.at_least("n_components", self.n_components, 1)
        _checks.positive("radius", self.radius)
        super()._foresee(known)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        read = min(self.n_frequencies, data.pixels[0].size)
        held = 8.0 * read * (6.0 * read + data.pixels[0].size + 2.0 * _CHUNK)
        cells = self.conditions_.n * self.n_components
        along = min(self.n_directions + self.conditions_.n, read)
        covariances = 8.0 * along * (3.0 * cells * along + 2.0 * len(data))
        return (
            f"{_values.count(len(data))} pictures, {read} frequencies and {cells} components of "
            f"labels and groups",
            (2.0 + self.mirrored) * data.pixels.nbytes + held + covariances,
            "n_frequencies, n_components, or the size or the number of the pictures",
        )

    def _learn_turned(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        cosines = low_frequencies(self.codec_.size, self.n_frequencies)
        (n_pixels, n_read), n_conditions = cosines.shape, self.conditions_.n
        longest, passes = _GREY * n_pixels**0.5, 0

        def read(rows: slice) -> FloatArray:
            progress("pictures", passes * len(data) + rows.start, _PASSES * len(data))
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
        self.snr_ = _snr(size[0], edge_of_noise(sigma, n_read))
        m = max(1, min(self.n_directions, int((size > 0).sum())))
        noise = released.sigma * longest / held
        beside, kept = directions_of_means(means - middle, frame[:, :m], noise)
        spread = np.maximum(((products[0] @ beside) * beside).sum(axis=0), 0.0)
        frame = np.concatenate([frame[:, :m], beside], axis=1)
        own = (means - middle) @ frame * np.concatenate([np.ones(m), kept])
        own = self._towards_label(own, held, noise**2 * frame.shape[1])
        passes = 2
        points = np.concatenate(
            [(read(rows) - middle) @ frame for rows in chunks(len(data), _CHUNK)]
        )
        progress("pictures", _PASSES * len(data), _PASSES * len(data))
        self.frame_ = (cosines @ frame).astype(np.float32)
        self.middle_ = (cosines @ middle + _GREY).astype(np.float32)
        variance = radius**2 * float(size[:m].sum() + spread.sum()) / held.sum()
        cells, shapes = self._cut(points, own, data, variance, plan, rng)
        self._learn_components(points, own, cells, shapes, data, variance, plan)

    def _cut(
        self,
        points: FloatArray,
        own: FloatArray,
        data: EncodedImages,
        variance: float,
        plan: BudgetPlan,
        rng: np.random.Generator,
    ) -> tuple[Components, FloatArray]:
        """Release the covariances of labels and groups (step 3), and cut these into components.

        ``points`` are the pictures along the directions, ``own`` the means of labels and groups
        there, and ``variance`` is that of all points.
        """
        held, labels = np.maximum(self.counts_, 1.0), self.conditions_.labels()
        short = self._length(variance, own, held)
        products, sigma = _products(
            data,
            lambda rows: (points[rows] - own[data.condition[rows]]) / short,
            points.shape[1],
            plan,
            SHAPES,
            len(own),
        )
        seen = np.isin(np.arange(len(own)), self._unseen(), invert=True)
        centres = pooled(products, sigma, held, labels, seen)
        shapes = np.where(
            seen[:, None, None], shrunk_covariances(products, sigma, held, centres), centres
        )
        finer = sigma * (_SHARES[SHAPES] / _SHARES[COVARIANCES]) ** 0.5
        of_counts = self.counts_sigma_ * (_SHARES[MEANS] / _SHARES[COMPONENTS]) ** 0.5
        numbers = affordable(products, finer, held, self.n_components, least=_TOLD * of_counts)
        # What noise has left no spread to is one point, and cannot be cut.
        spread = np.array([root(shape).any() for shape in shapes])
        self.n_components_ = np.where(spread, numbers, 1)
        return Components.cut(own, shapes * short**2, self.n_components_, rng), shapes * short**2

    def _learn_components(
        self,
        points: FloatArray,
        own: FloatArray,
        cells: Components,
        shapes: FloatArray,
        data: EncodedImages,
        variance: float,
        plan: BudgetPlan,
    ) -> None:
        """Release means, weights and covariances of the components (steps 4 and 5)."""
        near, m = cells.nearest(points, data.condition), points.shape[1]
        by_cell = replace(data, condition=near)
        short = self._length(variance, cells.centres, cells.shares(self.counts_))
        released = FeatureMeans.release(
            by_cell,
            lambda rows: (points[rows] - cells.centres[near[rows]]) / short,
            n_features=m,
            n_conditions=len(cells.of),
            chunk=_CHUNK,
            plan=plan,
            purpose=COMPONENTS,
        )
        held = np.maximum(released.counts, 1.0)
        steps, at_rest = released.means * short, np.zeros(m)
        noise = (released.sigma * short / held) ** 2 * m
        self.means_ = cells.centres + np.stack(
            [towards(step, at_rest, energy) for step, energy in zip(steps, noise, strict=True)]
        )
        self.of_ = cells.of
        self.weights_ = cells.weights(released.counts, released.sigma)
        # What is one component keeps the length and the shape that it had, not those of parts.
        many = (self.n_components_ > 1)[cells.of]
        whole = self._length(variance, own, np.maximum(self.counts_, 1.0))
        lengths = np.where(many, self._length(variance, self.means_, held), whole)
        products, sigma = _products(
            by_cell,
            lambda rows: (points[rows] - self.means_[near[rows]]) / lengths[near[rows], None],
            m,
            plan,
            COVARIANCES,
            len(cells.of),
        )
        centres = pooled(products, sigma, held, self.conditions_.labels()[cells.of], many)
        centres[~many] = shapes[cells.of[~many]] / whole**2
        found = shrunk_covariances(products, sigma, held, centres) * lengths[:, None, None] ** 2
        self.roots_ = np.stack([root(covariance) for covariance in found])

    def _length(self, variance: float, centres: FloatArray, held: FloatArray) -> float:
        """Return the length to which points less their centre are shortened."""
        middle = held @ centres / held.sum()
        between = float(held @ ((centres - middle) ** 2).sum(axis=1)) / held.sum()
        typical: float = max(variance - between, _LEAST * variance) ** 0.5
        return max(_ROOM * typical, 1e-6)

    def _towards_label(self, own: FloatArray, held: FloatArray, energy: FloatArray) -> FloatArray:
        """Move the means of groups towards that of their label; what was not seen has that."""
        out = np.zeros_like(own)  # the mean of all, where no group of a label was seen
        labels, unseen = self.conditions_.labels(), self._unseen()
        seen = np.setdiff1d(np.arange(self.conditions_.n), unseen)
        for label in np.unique(labels[seen]):
            mine = seen[labels[seen] == label]
            middle = held[mine] @ own[mine] / held[mine].sum()
            out[labels == label] = middle
            if len(mine) > 1:
                for c in mine:
                    out[c] = towards(own[c], middle, energy[c])
        return out

    def _draw_turned(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        out = np.empty((len(conditions), len(self.middle_)), dtype=np.float32)
        cell = np.empty_like(conditions)
        for c in np.unique(conditions):
            own, at = np.flatnonzero(self.of_ == c), conditions == c
            cell[at] = rng.choice(own, int(at.sum()), p=self.weights_[own])
        drawn = rng.normal(size=(len(conditions), self.means_.shape[1]))
        for k in np.unique(cell):
            at = cell == k
            moved = (self.means_[k] + drawn[at] @ self.roots_[k].T).astype(np.float32)
            out[at] = moved @ self.frame_.T + self.middle_
        return out.reshape(-1, *self.codec_.size)

    def _arrays(self) -> dict[str, Array]:
        return {name: getattr(self, f"{name}_") for name in _KEPT}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        for name in _KEPT:
            setattr(self, f"{name}_", arrays[name])


@dataclass(frozen=True, kw_only=True, eq=False)
class Components:
    """Where the pictures of each label and group are cut; public."""

    centres: FloatArray
    """Shape (n, n_directions)."""
    of: IntArray
    """The combination of label and group that each belongs to, in order. Shape (n,)."""

    @classmethod
    def cut(
        cls, means: FloatArray, shapes: FloatArray, numbers: IntArray, rng: np.random.Generator
    ) -> Components:
        """Cut points that are drawn from each Gaussian by k-means."""
        centres = []
        for mean, shape, n in zip(means, shapes, numbers, strict=True):
            if n == 1:
                centres.append(mean[None])
                continue
            drawn = mean + rng.normal(size=(_SKETCH, len(mean))) @ root(shape).T
            found = KMeans(int(n), n_init=1, random_state=int(rng.integers(2**31))).fit(drawn)
            centres.append(found.cluster_centers_)
        of: IntArray = np.repeat(np.arange(len(means), dtype=np.int64), numbers)
        return cls(centres=np.concatenate(centres), of=of)

    def nearest(self, points: FloatArray, condition: IntArray) -> IntArray:
        """Return the component of each point: the nearest of its own label and group."""
        out = np.empty_like(condition)
        for c in np.unique(condition):
            own, at = np.flatnonzero(self.of == c), np.flatnonzero(condition == c)
            centres = self.centres[own]
            # The squared distance, less what does not depend on the centre.
            far = (centres**2).sum(axis=1) - 2.0 * points[at] @ centres.T
            out[at] = own[far.argmin(axis=1)]
        return out

    def shares(self, counts: FloatArray) -> FloatArray:
        """Return how many records each has, if those of a label and group have equally many."""
        held = np.maximum(counts, 1.0)
        shares: FloatArray = (held / np.bincount(self.of, minlength=len(held)))[self.of]
        return shares

    def weights(self, counts: FloatArray, sigma: float) -> FloatArray:
        """Return the part of its label and group that each is; 0 for what may be noise."""
        kept = np.where(counts > _SEEN * sigma, counts, 0.0)
        out = np.empty_like(kept)
        for c in np.unique(self.of):
            own = self.of == c
            total = kept[own].sum()
            out[own] = kept[own] / total if total > 0 else 1.0 / own.sum()
        return out


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


def _snr(largest: float, edge: float) -> SignalToNoise:
    """How far the direction in which pictures differ most stands above the noise."""
    return SignalToNoise(
        value=(largest / edge) ** 2,
        formula="largest eigenvalue of the products over the largest of their noise, squared",
    )


def _cosines(n: int) -> FloatArray:
    """Orthonormal cosines along n pixels, lowest first, as columns."""
    out: FloatArray = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(n)) / n)
    out *= (2.0 / n) ** 0.5
    out[:, 0] = n**-0.5
    return out
