"""Rows for students whose class leans on the group, and the margin that is read on them."""

import numpy as np

from evenhand.fairness import DemographicParity
from evenhand.students.within import Within
from evenhand.typing import FloatArray, IntArray


def population(
    n: int = 1500, n_groups: int = 2, n_classes: int = 2, *, unlike: bool = False
) -> tuple[FloatArray, IntArray, IntArray]:
    """Rows whose class leans on a feature that leans on the group.

    ``unlike``: the groups also differ in how well the features tell the class.
    """
    rng = np.random.default_rng(0)
    groups = rng.integers(0, n_groups, n)
    X = rng.normal(size=(n, 5))
    X[:, 0] += groups * 0.9
    scale = 0.3 + 1.2 * groups[:, None] if unlike else 1.0
    scores = X[:, :1] * np.arange(n_classes) + rng.normal(size=(n, n_classes)) * scale
    return X, scores.argmax(axis=1), groups


def within(margin: float, groups: IntArray, reference: str = "rest") -> Within:
    """Return a margin of demographic parity between all groups."""
    notion = DemographicParity(margin=margin, reference=reference)
    return Within(notion=notion, groups=groups, n_groups=int(groups.max()) + 1)


def people(n: int = 900, seed: int = 0) -> tuple[FloatArray, IntArray, IntArray]:
    """Rows, whose class leans on a feature that tells the group; class and group of each."""
    rng = np.random.default_rng(seed)
    z = rng.integers(2, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 1] += 1.5 * z
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=n) > 0.75).astype(int)
    return X, y, z


def unequal(n: int = 6000, seed: int = 3) -> tuple[FloatArray, IntArray, IntArray]:
    """Rows of three groups, their class and group; the largest group has class 1 more often."""
    rng = np.random.default_rng(seed)
    g = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, 4))
    X[:, 0] += 0.8 * (g == 0)
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.5).astype(np.int64), g
