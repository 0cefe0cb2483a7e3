"""Means and covariances in noise: what stands out of it, and how near to others they are moved."""

from __future__ import annotations

from typing import Final

import numpy as np

from evenhand.typing import BoolArray, FloatArray, IntArray

_STANDS_OUT: Final = 2.0  # length of a component's products over that of their noise, squared
_BEYOND: Final = 1.07  # times the edge of noise, which noise passes in fewer than one of 100 fits


def edge_of_noise(sigma: float, d: int) -> float:
    """Return the largest eigenvalue of symmetric noise, ``sigma**2`` on the diagonal, half beside.

    The edge of the semicircle, reached as d grows.
    """
    edge: float = sigma * (2.0 * d) ** 0.5
    return edge


def denoised(products: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, largest first, less what noise added to them, and their vectors.

    Noise of variance ``sigma**2`` on the diagonal and half of it beside has eigenvalues within
    ``sigma sqrt(2 d)`` of 0. A value v above this edge e comes from one of
    ``(v + sqrt(v**2 - e**2)) / 2`` (Benaych-Georges and Nadakuditi 2011); the others are set to 0.
    """
    values, vectors = np.linalg.eigh(products)
    values, vectors = values[::-1], vectors[:, ::-1]
    edge = edge_of_noise(sigma, len(values))
    under = np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return np.where(values > edge, (values + under) / 2.0, 0.0), vectors


def directions_of_means(
    steps: FloatArray, frame: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the directions beside a frame in which noisy means differ, and how much of that holds.

    Pictures of two labels may differ most where all pictures differ little, and directions of the
    largest variance say nothing of it.

    Parameters
    ----------
    steps : ndarray, shape (n, d)
        Means less the mean of all.
    frame : ndarray, shape (d, m)
        Orthonormal directions that are there already.
    noise : ndarray, shape (n,)
        Deviation of the noise on each number of a mean.

    Returns
    -------
    directions : ndarray, shape (d, k)
        Orthonormal, and at right angles to the frame.
    kept : ndarray, shape (k,)
        The part of the means' differences along each that is not noise: a direction that is found
        in noise is turned towards it. What is left of the squared length of the noise, d - m, over
        the squared length that was found is the part that is.

    Notes
    -----
    Singular values of noise alone end at ``sqrt(n) + sqrt(d - m)`` for numbers of deviation 1.
    """
    beside = (steps - (steps @ frame) @ frame.T) / noise[:, None]
    n, left = len(steps), frame.shape[0] - frame.shape[1]
    _, size, directions = np.linalg.svd(beside, full_matrices=False)
    told = size > _BEYOND * (n**0.5 + left**0.5)
    return directions[told].T, 1.0 - left / size[told] ** 2


def towards(found: FloatArray, centre: FloatArray, energy: float) -> FloatArray:
    """Move what was found in noise of this expected squared length towards a centre.

    The positive part of James and Stein's estimator: by the part of the squared distance that the
    noise explains, all of the way where it explains all.
    """
    step = found - centre
    kept = max(0.0, 1.0 - energy / max(float((step**2).sum()), 1e-300))
    moved: FloatArray = centre + kept * step
    return moved


def shrunk_by_scale(
    found: FloatArray, centre: FloatArray, scale: FloatArray, noise: FloatArray
) -> FloatArray:
    """Move each number towards its centre, by the part that the noise explains of what is usual.

    Parameters
    ----------
    found, centre : ndarray
        What was found, in noise, and where it would be if there were nothing to find.
    scale : ndarray
        To what the expected square of the true distance is proportional, number by number. By what
        factor is told by all distances together, as their noise is known (least squares).
    noise : ndarray
        Variances of the noise on what was found.

    Notes
    -----
    The mean of a normal distribution given what was found, with the factor of its variance read off
    the data (Efron and Morris 1973). ``towards`` moves all numbers by one part: where a few are
    large that leaves the noise of all others.
    """
    step = found - centre
    explained = float((scale * (step**2 - noise)).sum())
    factor = max(0.0, explained) / max(float((scale**2).sum()), 1e-300)
    moved: FloatArray = centre + step * (factor * scale) / (factor * scale + noise)
    return moved


def affordable(
    products: FloatArray, sigma: float, held: FloatArray, most: int, least: float = 0.0
) -> IntArray:
    """Return how many components of each label and group stand above the noise.

    Parameters
    ----------
    products : ndarray, shape (n_conditions, n_directions, n_directions)
        Noisy sums of products by label and group.
    sigma : float
        The noise with which the products of components will be released.
    held : ndarray, shape (n_conditions,)
        Noisy numbers of records, at least 1.
    most : int
        Not more than these; and at least one.
    least : float
        Records that a component shall have.

    Notes
    -----
    Products of a component are taken to be as long, for each of its records, as those of all are.
    Of a component with fewer records than returned here the squared length of the products would
    be below twice that of their noise.
    """
    n_conditions, m, _ = products.shape
    size, _ = denoised(products.sum(axis=0), sigma * n_conditions**0.5)
    noise = sigma * (m * (m + 1) / 2) ** 0.5
    each = float(np.linalg.norm(size)) / held.sum()
    if each == 0.0:
        return np.ones(n_conditions, dtype=np.int64)
    fewest = max(_STANDS_OUT**0.5 * noise / each, least)
    numbers: IntArray = np.clip(held / fewest, 1, most).astype(np.int64)
    return numbers


def pooled(
    products: FloatArray, sigma: float, held: FloatArray, labels: IntArray, used: BoolArray
) -> FloatArray:
    """Return for each row the covariance of its label, moved towards that of all.

    That of all is moved towards its own diagonal. ``used`` are the rows that are pooled; all of
    them where it names none.
    """
    used = used if used.any() else ~used

    def together(rows: BoolArray, centre: FloatArray | None) -> FloatArray:
        n, m = float(held[rows].sum()), products.shape[1]
        found = products[rows].sum(axis=0) / n
        centre = np.diag(np.maximum(np.diag(found), 0.0)) if centre is None else centre
        return _nearer(found, centre, _noise(sigma, m) * rows.sum() / n**2)

    whole = together(used, None)
    out = np.repeat(whole[None], len(held), axis=0)
    for label in np.unique(labels[used]):
        out[labels == label] = together(used & (labels == label), whole)
    return out


def shrunk_covariances(
    products: FloatArray, sigma: float, held: FloatArray, centres: FloatArray
) -> FloatArray:
    """Return the covariance of each row, moved towards its centre."""
    noise = _noise(sigma, products.shape[1])
    rows = zip(products, held, centres, strict=True)
    return np.stack([_nearer(own / n, centre, noise / n**2) for own, n, centre in rows])


def root(covariance: FloatArray) -> FloatArray:
    """Return R with R R' the covariance, without what noise took below zero.

    What is taken off the negative eigenvalues is taken off the others too, by the same amount of
    each: of all covariances with this trace the result is the nearest. Negative ones set to 0 alone
    would leave the positive half of the noise, and pictures that vary too much.
    """
    values, vectors = np.linalg.eigh(covariance)
    moved: FloatArray = vectors * np.sqrt(_on_simplex(values, max(0.0, float(values.sum()))))
    return moved


def _on_simplex(values: FloatArray, total: float) -> FloatArray:
    """Return the nearest numbers, none below 0, that add up to ``total`` (Duchi et al. 2008)."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    held = np.flatnonzero(falling > over)
    nearest: FloatArray = np.maximum(values - over[held[-1] if len(held) else 0], 0.0)
    return nearest


def _nearer(found: FloatArray, centre: FloatArray, noise: FloatArray) -> FloatArray:
    """Move a covariance towards another: numbers differ by what the variances there are."""
    variances = np.maximum(np.diag(centre), 0.0)
    return shrunk_by_scale(found, centre, np.outer(variances, variances), noise)


def _noise(sigma: float, m: int) -> FloatArray:
    """Return the variances of the noise on a sum of products: half as large beside the diagonal."""
    variances: FloatArray = sigma**2 * (np.eye(m) + 1.0) / 2.0
    return variances
