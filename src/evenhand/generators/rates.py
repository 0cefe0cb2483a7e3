"""Shares of the labels within groups under which models of the rows treat groups more alike.

With labels and groups spread evenly, a model that sees the group learns to separate the classes
inside every group. Where one group is easier to separate, or its features lie higher, its rates
still differ. Asking for more rows of one label in one group moves the log-odds of that group by
the logarithm of the odds asked for, and with them the rates. How far to move is read off the
generator itself, so it costs no privacy.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.generators.base import Synthesizer
from evenhand.typing import FloatArray, IntArray, RandomState

NOTIONS: Final = ("equalized_odds", "demographic_parity")
N_ROWS: Final = 10_000
FARTHEST: Final = 3.0
"""Log-odds by which a group is moved at most: a share of the label between .05 and .95."""


def even_rates(
    generator: Synthesizer,
    notion: str = "equalized_odds",
    *,
    amount: float = 1.0,
    random_state: RandomState = None,
) -> FloatArray:
    """Return shares of label and group for ``generator.sample(n, shares=...)``.

    A logistic regression is trained on rows with labels and groups spread evenly, and decides on
    rows drawn as they are learnt; every group is moved until its rate is that of all.

    Parameters
    ----------
    generator : Synthesizer
        Fitted, with two classes.
    notion : {"equalized_odds", "demographic_parity"}
        The rate of a group: the mean of its true and false positive rates, or how often the second
        class is predicted.
    amount : float
        How much of the way to go, in [0, 1]; the log-odds are multiplied by it.
    random_state : int, Generator or None

    Returns
    -------
    ndarray of float64, shape (n_conditions,)
        Groups alike, labels within a group as found. They sum to 1.

    Privacy
    -------
    Reads released values only: post-processing. The gaps of a model on real rows are not promised.
    """
    _checks.one_of("notion", notion, NOTIONS)
    _checks.closed_unit("amount", amount)
    known = generator.conditions_
    if known.sizes[0] != 2:
        raise ValueError(
            f"even_rates moves the odds of two classes, and {known.names[0]!r} has "
            f"{known.sizes[0]}. Use balance=('label', 'sensitive')."
        )
    rng = as_generator(random_state)
    spread = np.repeat(np.arange(known.n), N_ROWS // known.n)
    even = generator.states(spread, rng)
    learnt = generator.shares_.to_numpy(dtype=np.float64)
    # Every group with as many rows as any other: a rare one would be all noise.
    within = learnt / np.bincount(known.groups(), learnt)[known.groups()]
    plain = rng.choice(known.n, N_ROWS, p=within / within.sum())
    as_it_is = generator.states(plain, rng)
    sizes = [int(max(a.max(), b.max())) + 1 for a, b in zip(even.T, as_it_is.T, strict=True)]
    groups = known.groups()
    seen = _one_hot(even, sizes, groups[spread], known.n_groups)
    model = LogisticRegression(max_iter=300).fit(seen, known.labels()[spread])
    scores = model.decision_function(_one_hot(as_it_is, sizes, groups[plain], known.n_groups))
    odds = _moved(scores, known.labels()[plain], groups[plain], known.n_groups, notion)
    share = expit(amount * odds)[groups]
    shares: FloatArray = np.where(known.labels() == 1, share, 1.0 - share) / known.n_groups
    return shares


def _moved(
    scores: FloatArray, truth: IntArray, groups: IntArray, n_groups: int, notion: str
) -> FloatArray:
    """Log-odds to add per group, so that its rate is the mean of all groups' rates."""

    def rate(group: int, by: float) -> float:
        own = groups == group
        said = scores[own] + by > 0
        if notion == "demographic_parity":
            return float(said.mean())
        label = truth[own] == 1
        return 0.5 * float(said[label].mean()) + 0.5 * float(said[~label].mean())

    aim = float(np.mean([rate(group, 0.0) for group in range(n_groups)]))
    found = np.zeros(n_groups)
    for group in range(n_groups):
        low, high = -FARTHEST, FARTHEST
        for _ in range(30):  # rates rise with what is added
            middle = 0.5 * (low + high)
            low, high = (middle, high) if rate(group, middle) < aim else (low, middle)
        found[group] = 0.5 * (low + high)
    return found


def _one_hot(codes: IntArray, sizes: list[int], groups: IntArray, n_groups: int) -> FloatArray:
    """States of the features and the group, one column each."""
    parts = [np.eye(size)[column] for size, column in zip(sizes, codes.T, strict=True)]
    return np.hstack([*parts, np.eye(n_groups)[groups]])
