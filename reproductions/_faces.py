"""Faces of UTKFace as public features, and the splits of all scripts about them.

23,314 faces, one copy of each picture, so no copy of a test face is among the others. A face is
the 128 numbers of ``DlibFace``, a public extractor; these are turned into the first principal
components of the *public* rows of a split, which is free. A pair of numbers of components is about
``DlibFace`` and ``EfficientNetLite0``, side by side.

Half of the faces are *choice rows*: settings are chosen on splits of these alone, and they never
stand in a test part. The test part of a seed is a fifth of all faces, drawn from the other half;
public are the first rows of what is left, private the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA

from evenhand.datasets.features import DlibFace, EfficientNetLite0, extract
from evenhand.datasets.images import load_utkface

DP_FERMI_AGES = (11, 16, 21, 26, 31, 41, 51, 61)
"""Where the nine classes of age begin in DP-FERMI's public code."""

U_PUBLISHED, U_ALL = 1500, 3730
"""Public faces: FairPATE's number, and a fifth of all training faces."""

N_CHOICE_TEST = 3500

AS_THEY_ARE = 0
"""Components, where there are none: the 128 features."""

Components = int | tuple[int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Faces:
    """Features, a label and the race of every face, or its gender where that is the group."""

    X: Any
    y: Any
    race: Any


class Part(NamedTuple):
    """Rows of one role: features, labels, races. Labels of public rows only measure."""

    X: Any
    y: Any
    race: Any

    @property
    def groups(self) -> Any:
        """What the parts of tables call it."""
        return self.race


class Split(NamedTuple):
    """Private, public and test rows."""

    private: Part
    public: Part
    test: Part


@cache
def faces(label: str = "gender", group: str = "race") -> Faces:
    """Return all faces, with gender or DP-FERMI's nine classes of age as the label."""
    data = load_utkface(label=label, sensitive=group, ages=DP_FERMI_AGES)
    X = np.asarray(extract(data.X, DlibFace.load()), dtype=np.float64)
    return Faces(X=X, y=data.y, race=data.sensitive_features)


@cache
def by_efficientnet() -> Any:
    """Return the features of all faces by an extractor of any pictures."""
    return np.asarray(extract(load_utkface().X, EfficientNetLite0.load()), dtype=np.float64)


def split(data: Faces, seed: int, n_public: int, n_components: Components) -> Split:
    """Return the split of a seed."""
    choice, other = halves(len(data.y))
    rng = np.random.default_rng(seed)
    other = rng.permutation(other)
    n_test = len(data.y) // 5
    rest = rng.permutation(np.concatenate([choice, other[n_test:]]))
    return _parts(data, rest[n_public:], rest[:n_public], other[:n_test], n_components)


def choice_split(data: Faces, seed: int, n_components: Components) -> Split:
    """Return a split of the choice rows alone."""
    rows = np.random.default_rng(seed).permutation(halves(len(data.y))[0])
    n = N_CHOICE_TEST + U_PUBLISHED
    return _parts(data, rows[n:], rows[N_CHOICE_TEST:n], rows[:N_CHOICE_TEST], n_components)


def halves(n: int) -> tuple[Any, Any]:
    """Return the choice rows and the others."""
    order = np.random.default_rng(2026).permutation(n)
    return order[: n // 2], order[n // 2 :]


def _parts(data: Faces, private: Any, public: Any, test: Any, n_components: Components) -> Split:
    X = data.X
    if n_components != AS_THEY_ARE:
        first, second = (n_components, 0) if isinstance(n_components, int) else n_components
        X = _turned(X, public, first)
        if second:
            X = np.hstack([X, _turned(by_efficientnet(), public, second)])
    return Split(
        *(Part(X[rows], data.y[rows], data.race[rows]) for rows in (private, public, test))
    )


def _turned(X: Any, public: Any, n: int) -> Any:
    solver = "full" if X.shape[1] < 1000 else "arpack"  # the same components, sooner
    return PCA(n, svd_solver=solver, random_state=0).fit(X[public]).transform(X)
