"""Groups of private pictures that lack them: predicted by a model of public ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from evenhand import _checks
from evenhand.datasets.columns import Column
from evenhand.generators.images.codec import checked_pictures
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

    public = "the reference pictures with their groups"
    """What the claim takes as public."""

    def __init__(self, images: ArrayLike, groups: ArrayLike, *, model: Any = None) -> None:
        given, named = self._read(images), np.asarray(groups)
        _checks.same_length(images=given, groups=named)
        if named.dtype == object:  # by their texts, as groups of private pictures are
            column = Column(pd.Series(named, name="groups"), "reference pictures")
            column.refuse_missing("group", "Leave these pictures out.")
            named = np.array(column.texts)[column.codes]
        values, counts = np.unique(named, return_counts=True)
        if len(values) < 2 or counts.min() < LEAST:
            said = ", ".join(f"{v!s}: {n}" for v, n in zip(values, counts, strict=True))
            raise ValueError(
                f"A reference needs at least {LEAST} pictures of each of two groups, got {said}."
            )
        untrained = SVC(C=10.0) if model is None else clone(model)
        self.accuracy = float(cross_val_score(untrained, _flat(given), named, cv=5).mean())
        self._model = untrained.fit(_flat(given), named)

    def predict(self, images: ArrayLike) -> Array:
        """Return the group of each picture, shape (n,)."""
        given = checked_pictures(images)
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

    def _read(self, images: ArrayLike) -> Array:
        given = checked_pictures(images)
        self._shape = given.shape[1:]
        return given


class ClusterReference(GroupReference):
    """Clusters that K-means finds in public pictures, for where no picture has a group.

    They take the place of groups (PFGuard, Section C.3). Clusters are what pictures differ in most,
    which need not be the groups: nobody can tell without one picture whose group is known.

    Parameters
    ----------
    images : array of shape (n, h, w) or (n, h, w, 3)
        Public pictures, at least ten for each cluster.
    n_groups : int
        Clusters, at least 2. They are called 0, 1 and so on.
    random_state : int
        Seeds the first centers.

    Privacy
    -------
    As ``GroupReference``: a private picture's cluster depends on itself and on public pictures.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> light = np.repeat([False, True], 20)
    >>> public = rng.random((40, 4, 4)) * 0.4 + 0.5 * light[:, None, None]
    >>> found = ClusterReference(public, 2).predict(public)
    >>> [len(set(found[light == one])) for one in (False, True)]
    [1, 1]
    """

    public = "the reference pictures, and the number of their clusters"

    def __init__(self, images: ArrayLike, n_groups: int, *, random_state: int = 0) -> None:
        given = self._read(images)
        least = LEAST * _checks.at_least("n_groups", n_groups, 2)
        if len(given) < least:
            raise ValueError(
                f"{n_groups} clusters need at least {least} public pictures, got {len(given)}."
            )
        self.accuracy = math.nan
        self._model = KMeans(n_groups, n_init=10, random_state=random_state).fit(_flat(given))

    @property
    def note(self) -> str:
        """What the user must know."""
        return "groups are clusters of public reference pictures, which need not be the groups"


def _flat(images: Array) -> FloatArray:
    scale = 255.0 if images.dtype == np.uint8 else 1.0
    flat: FloatArray = images.reshape(len(images), -1) / scale
    return flat
