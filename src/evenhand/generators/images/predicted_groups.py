"""GroupReference: groups of private pictures predicted by a model of public ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from evenhand import _checks
from evenhand.generators.images.codec import refuse_bad_pictures
from evenhand.typing import Array, ArrayLike, FloatArray

LEAST: int = 10
"""Public pictures of every group that a model needs."""


class GroupReference:
    """A public set of pictures with groups, from which the groups of private ones are predicted.

    Pass it to ``fit`` as ``sensitive_features``, where the private pictures have no groups.

    Parameters
    ----------
    images : array of shape (n, h, w) or (n, h, w, 3)
        Public pictures: known to everybody, and nobody's privacy.
    groups : array-like, shape (n,)
        Group of each.
    model : scikit-learn classifier, optional
        Support vectors with a Gaussian kernel if not given.

    Privacy
    -------
    Trained on public pictures alone, so a private picture's group is a function of itself, and one
    record still moves one teacher. A density ratio or a clustering fitted on all private pictures
    would be a release.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> groups = np.array(["dark", "light"] * 20)
    >>> public = rng.random((40, 4, 4)) * 0.4 + 0.5 * (groups == "light")[:, None, None]
    >>> reference = GroupReference(public, groups)
    >>> reference.predict(np.zeros((1, 4, 4))).tolist(), reference.accuracy
    (['dark'], 1.0)
    """

    def __init__(self, images: ArrayLike, groups: ArrayLike, *, model: Any = None) -> None:
        given, named = np.asarray(images), np.asarray(groups)
        refuse_bad_pictures(given)
        _checks.same_length(images=given, groups=named)
        values, counts = np.unique(named, return_counts=True)
        if len(values) < 2 or counts.min() < LEAST:
            said = ", ".join(f"{v!s}: {n}" for v, n in zip(values, counts, strict=True))
            raise ValueError(
                f"A reference needs at least {LEAST} pictures of each of two groups, got {said}."
            )
        self._shape = given.shape[1:]
        untrained = SVC(C=10.0) if model is None else clone(model)
        self.accuracy = float(cross_val_score(untrained, _flat(given), named, cv=5).mean())
        self._model = untrained.fit(_flat(given), named)

    def predict(self, images: ArrayLike) -> Array:
        """Return the group of each picture, shape (n,)."""
        given = np.asarray(images)
        refuse_bad_pictures(given)
        if given.shape[1:] != self._shape:
            raise ValueError(
                f"The reference pictures have shape {self._shape}, these {given.shape[1:]}."
            )
        predicted: Array = self._model.predict(_flat(given))
        return predicted

    @property
    def note(self) -> str:
        """What the user must know."""
        return (
            f"groups were predicted by a model of public reference pictures, right for "
            f"{self.accuracy:.0%} of these in cross-validation"
        )


def _flat(images: Array) -> FloatArray:
    scale = 255.0 if images.dtype == np.uint8 else 1.0
    flat: FloatArray = images.reshape(len(images), -1) / scale
    return flat
