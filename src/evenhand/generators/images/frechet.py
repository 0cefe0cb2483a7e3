"""How near two sets of pictures are in the features of a network, group by group at equal n."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.datasets.features.extractor import FeatureExtractor
from evenhand.typing import Array, FloatArray

OVERALL: Final = "overall"
FID: Final = "FID"
_LEAST: Final = 10  # pictures per group below which no distance is given


@dataclass(frozen=True, kw_only=True)
class Distance:
    """Distance of synthetic pictures from real ones."""

    name: str
    """``"FD-"`` and the name of the extractor. "FID" where that is the name: it is that of the
    Inception network of Heusel et al. 2017, in a file of the user, and of no other.
    """
    group: str
    """``"overall"``, or the label and group."""
    n: int
    """Pictures on either side. Distances at different n must not be compared."""
    frechet: float
    """Between Gaussians with the features' means and covariances; at least 0, best 0; too large
    where n is small.
    """
    kid: float
    """Kernel distance, without that bias; around 0 where there is no difference."""


def frechet_distance(a: FloatArray, b: FloatArray) -> float:
    """Return ``|m_a - m_b|^2 + tr(S_a + S_b - 2 (S_a S_b)^(1/2))`` of rows of features.

    The trace of the root is the sum of the singular values of ``A B^T``, for centred rows A, B
    over ``sqrt(n - 1)``: exact with fewer rows than features, where roots of matrices are not.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> round(frechet_distance(rows, rows + 3.0), 6)
    18.0
    """
    a, b = _checks.matrix("features", a), _checks.matrix("features", b)
    for rows in (a, b):
        _checks.at_least("number of pictures", len(rows), 2)
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    a, b = (a - mean_a) / (len(a) - 1) ** 0.5, (b - mean_b) / (len(b) - 1) ** 0.5
    cross = float(np.linalg.svd(a @ b.T, compute_uv=False).sum())
    apart = float(((mean_a - mean_b) ** 2).sum())
    return max(0.0, apart + float((a**2).sum()) + float((b**2).sum()) - 2.0 * cross)


def kernel_distance(a: FloatArray, b: FloatArray) -> float:
    """Return the unbiased squared MMD with the kernel ``(x y / d + 1)^3`` (KID).

    May be below 0 by accident.

    References
    ----------
    Binkowski et al. 2018.
    """
    a, b = _checks.matrix("features", a), _checks.matrix("features", b)
    for rows in (a, b):
        _checks.at_least("number of pictures", len(rows), 2)

    def kernel(x: FloatArray, y: FloatArray) -> FloatArray:
        values: FloatArray = (x @ y.T / x.shape[1] + 1.0) ** 3
        return values

    def inside(rows: FloatArray) -> float:
        values = kernel(rows, rows)
        n = len(rows)
        return float(values.sum() - np.trace(values)) / (n * (n - 1))

    return inside(a) + inside(b) - 2.0 * float(kernel(a, b).mean())


def distances(
    real: Mapping[str, Array],
    made: Mapping[str, Array],
    extractor: FeatureExtractor,
    *,
    n: int,
    rng: np.random.Generator,
) -> tuple[Distance, ...]:
    """Compare pictures overall and group by group, all groups at the same n.

    Parameters
    ----------
    real, made : mapping of str to array
        Pictures of each combination of label and group. One that is missing on either side, or has
        fewer than ten pictures, is left out.
    extractor : FeatureExtractor
    n : int
        Pictures of each group on either side; fewer, for all alike, where one has not so many.
    rng : Generator
        Chooses which.

    Returns
    -------
    tuple of Distance
        Overall first: the same number of each group, whatever the shares of the groups are.
    """
    _checks.at_least("n", n, _LEAST)
    names = [name for name in real if min(len(real[name]), len(made.get(name, ()))) >= _LEAST]
    if not names:
        return ()
    n = min([n, *(len(real[name]) for name in names), *(len(made[name]) for name in names)])

    def features(pictures: Mapping[str, Array]) -> dict[str, FloatArray]:
        some = {
            name: pictures[name][rng.choice(len(pictures[name]), n, replace=False)]
            for name in names
        }
        return {
            name: np.asarray(extractor.transform(channels_first(rows)), dtype=np.float64)
            for name, rows in some.items()
        }

    seen, drawn = features(real), features(made)
    sets = {OVERALL: (np.concatenate([*seen.values()]), np.concatenate([*drawn.values()]))}
    sets |= {name: (seen[name], drawn[name]) for name in names}
    return tuple(
        Distance(
            name=FID if extractor.name == FID else f"FD-{extractor.name}",
            group=group,
            n=len(a),
            frechet=frechet_distance(a, b),
            kid=kernel_distance(a, b),
        )
        for group, (a, b) in sets.items()
    )


def channels_first(images: Array) -> Array:
    """Return pictures (n, h, w) or (n, h, w, 3) as (n, c, h, w)."""
    return images[:, None] if images.ndim == 3 else np.moveaxis(images, -1, 1)
