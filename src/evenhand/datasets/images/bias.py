"""The biased settings in which generators of images are compared (PFGuard, Section D.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._checks import did_you_mean
from evenhand._numerals import text_of
from evenhand._random import as_generator
from evenhand.datasets.images.data import ImageData
from evenhand.typing import Array, BoolArray, RandomState

UPRIGHT: Final = "upright"
ROTATED: Final = "rotated"


def binary_classes(
    data: ImageData,
    majority: Any,
    minority: Any,
    *,
    ratio: float = 2.0,
    random_state: RandomState = None,
) -> ImageData:
    """Keep two classes, the minority ``ratio`` times smaller; its class is each picture's group.

    PFGuard: digits 3 and 1, or sneakers and trousers, with ratio 2. The groups are to measure by:
    a generator that is conditioned on the class alone is fitted without them.

    Raises
    ------
    ValueError
        If the minority has too few pictures for that ratio.
    """
    large, small = (np.flatnonzero(_is(data, value)) for value in (majority, minority))
    n = round(len(large) / _ratio(ratio))
    if n > len(small):
        raise ValueError(
            f"{len(large)} pictures of {majority!r} with ratio {ratio:g} need {n} of {minority!r}, "
            f"and there are {len(small)}. Raise ratio, or exchange the two."
        )
    kept = _some(small, n, random_state)
    out = data.take(np.sort(np.concatenate([large, kept])))
    return replace(out, sensitive_features=out.y)


def rare_class(
    data: ImageData, rare: Any = 8, *, ratio: float = 5.0, random_state: RandomState = None
) -> ImageData:
    """Keep one in ``ratio`` pictures of a class and all others; the class is each picture's group.

    PFGuard: the digit 8, with ratios 1 to 10. As in ``binary_classes``, the groups are to measure
    by.
    """
    mine = _is(data, rare)
    rows = np.flatnonzero(mine)
    kept = _some(rows, round(len(rows) / _ratio(ratio)), random_state)
    out = data.take(np.sort(np.concatenate([np.flatnonzero(~mine), kept])))
    return replace(out, sensitive_features=out.y)


def rotated(
    data: ImageData,
    *,
    classes: tuple[Any, Any] | None = None,
    ratio: float = 4.0,
    random_state: RandomState = None,
) -> ImageData:
    """Turn some pictures of every class by 90 degrees: the groups "upright" and "rotated".

    Parameters
    ----------
    data : ImageData
        Square pictures.
    classes : tuple, optional
        Keep these classes only; PFGuard: 3 and 1.
    ratio : float
        Upright pictures for each rotated one, in every class; PFGuard: 4. With 1 the groups are
        even, as test pictures are.
    random_state : int, Generator or None
        Chooses which.

    Notes
    -----
    PFGuard augments what it has cut away; here no picture occurs twice. Copies of one picture in
    several teachers' partitions would break the claim.
    """
    if data.images.shape[1] != data.images.shape[2]:
        raise ValueError(f"Pictures must be square to be turned, got {data.images.shape[1:3]}.")
    if classes is not None:
        data = data.take(np.logical_or.reduce([_is(data, value) for value in classes]))
    rng = as_generator(random_state)
    turned = np.zeros(len(data), dtype=np.bool_)
    for value in np.unique(data.y):
        rows = np.flatnonzero(data.y == value)
        turned[_some(rows, round(len(rows) / (1.0 + _ratio(ratio))), rng)] = True
    images = data.images.copy()
    images[turned] = np.rot90(images[turned], axes=(1, 2))
    return replace(data, images=images, sensitive_features=np.where(turned, ROTATED, UPRIGHT))


@dataclass(frozen=True, kw_only=True, eq=False)
class UnknownGroups:
    """Private pictures without groups, and a public reference set that has them."""

    private: ImageData
    """Without groups."""
    reference: ImageData
    """With them, the groups evenly spread."""
    truth: Array
    """The groups of ``private``, to measure by and for nothing else."""


def unknown_groups(
    data: ImageData, *, reference: float = 0.1, random_state: RandomState = None
) -> UnknownGroups:
    """Set a public reference set aside and forget the groups of the rest.

    Parameters
    ----------
    data : ImageData
        With groups, such as ``rotated`` gives.
    reference : float
        Size of the reference set, as a share of the rest. Its groups are even, up to one picture.
    random_state : int, Generator or None

    Raises
    ------
    ValueError
        If a group has too few pictures for an even reference set.
    """
    _checks.positive("reference", reference)
    groups = data.sensitive_features
    if not isinstance(groups, np.ndarray):
        raise ValueError("The groups of the pictures must be one array, as rotated() gives them.")
    rng = as_generator(random_state)
    names = np.unique(groups)
    n = round(reference / (1.0 + reference) * len(data) / len(names))
    chosen = []
    for name in names:
        rows = np.flatnonzero(groups == name)
        if len(rows) < n:
            raise ValueError(
                f"An even reference set of {reference:g} times the rest needs {n} pictures of "
                f"{str(name)!r}, and there are {len(rows)}. Lower reference."
            )
        chosen.append(_some(rows, n, rng))
    public = np.zeros(len(data), dtype=np.bool_)
    public[np.concatenate(chosen)] = True
    return UnknownGroups(
        private=replace(data.take(~public), sensitive_features=None),
        reference=data.take(public),
        truth=groups[~public],
    )


def _is(data: ImageData, value: Any) -> BoolArray:
    mine: BoolArray = np.array(data.y == value)
    if mine.shape != data.y.shape or not mine.any():
        known = [text_of(v) for v in np.unique(data.y)]
        raise ValueError(
            f"No picture of {data.name} has the label {value!r}; there are {', '.join(known[:12])}."
            f"{did_you_mean(value, known)}"
        )
    return mine


def _ratio(ratio: float) -> float:
    if _checks.positive("ratio", ratio) < 1:
        raise ValueError(f"ratio must be at least 1, got {ratio!r}: how many times smaller it is.")
    return float(ratio)


def _some(rows: Array, n: int, random_state: RandomState) -> Array:
    return as_generator(random_state).choice(rows, size=n, replace=False)
