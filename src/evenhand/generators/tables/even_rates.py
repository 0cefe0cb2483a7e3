"""Shares of the labels within groups under which models of the rows treat groups more alike.

With labels and groups spread evenly, a model that sees the group learns to separate the classes
inside every group. Where one group is easier to separate, or its features lie higher, its rates
still differ. Asking for more rows of one label in one group moves the log-odds of that group by
the logarithm of the odds asked for, and with them the rates. How far to move is read off the
generator itself, so it costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.typing import FloatArray, IntArray, RandomState

NOTIONS_OR_BOTH: Final = ("equalized-odds", "demographic-parity", "both")
N_ROWS: Final = 10_000
FARTHEST: Final = 3.0
"""Log-odds by which a group is moved at most: a share of the label between .05 and .95."""

STEP: Final = 0.25  # in the log-odds of the label's share, on the way down
MIXES: Final = tuple(np.linspace(0.0, 1.0, 11).tolist())


def even_rates(
    generator: TableSynthesizer,
    fairness: str = "equalized-odds",
    *,
    amount: float = 1.0,
    gap: float = 0.08,
    random_state: RandomState = None,
) -> FloatArray:
    """Return shares of label and group for ``generator.sample(n, shares=...)``.

    A logistic regression is trained on rows with labels and groups spread evenly, and decides on
    rows drawn as they are learnt; every group is moved until its rate is that of all.

    Parameters
    ----------
    generator : TableSynthesizer
        Fitted, with two classes.
    fairness : {"equalized-odds", "demographic-parity", "both"}
        The rate of a group: the mean of its true and false positive rates, how often the second
        class is predicted, or, with "both", whichever mixture of these two leaves the larger of the
        two gaps smallest. "both" also asks for fewer rows of the second class, from its learnt
        share down to where both gaps are at most ``gap``: with groups whose labels differ, a
        model that says yes less often has less room for either gap.
    amount : float
        How much of the way to go, in [0, 1]; the log-odds are multiplied by it. Not for "both".
    gap : float
        For "both": where to stop, in [0, 1], as measured on the generator's own rows.
    random_state : int, Generator or None

    Returns
    -------
    ndarray of float64, shape (n_conditions,)
        Groups alike, labels within a group as found. They sum to 1.

    Privacy
    -------
    Reads released values only: post-processing. The gaps of a model on real rows are not promised.
    """
    _checks.one_of("fairness", fairness, NOTIONS_OR_BOTH)
    _checks.closed_unit("amount", amount)
    _checks.closed_unit("gap", gap)
    if fairness == "both" and amount != 1.0:
        raise ValueError("amount goes with one notion; for 'both' say where to stop with gap=.")
    known = generator.conditions_
    if known.sizes[0] != 2:
        raise ValueError(
            f"even_rates moves the odds of two classes, and {known.names[0]!r} has "
            f"{known.sizes[0]}. Use balance=('label', 'sensitive')."
        )
    return evened(generator, Trial.of(generator, as_generator(random_state)), fairness, amount, gap)


def evened(
    generator: TableSynthesizer, trial: Trial, fairness: str, amount: float, gap: float
) -> FloatArray:
    """Return the shares under which the rates of a trial come together; see ``even_rates``."""
    known = generator.conditions_
    if fairness == "both":
        learnt = generator.shares_.to_numpy(dtype=np.float64)
        odds = _both(trial, float(learnt[known.labels() == 1].sum()), gap)
    else:
        odds = amount * trial.moved(0.0, 1.0 if fairness == "demographic-parity" else 0.0)
    share = expit(odds)[known.groups()]
    shares: FloatArray = np.where(known.labels() == 1, share, 1.0 - share) / known.n_groups
    return shares


def _both(trial: Trial, learnt: float, gap: float) -> FloatArray:
    """Log-odds of the second class per group, under which neither gap is large."""
    best, least = np.zeros(trial.n_groups), np.inf
    start = float(np.clip(logit(learnt), -FARTHEST, 0.0))
    for base in np.arange(start, -FARTHEST - 1e-9, -STEP):
        for mix in MIXES:
            odds = trial.moved(float(base), mix)
            found = trial.larger_gap(odds)
            if found < least:
                best, least = odds, found
        if least <= gap:
            break
    return best


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Scores of a model of evenly spread rows, on rows as they are learnt, of all groups alike."""

    scores: FloatArray
    """Shape (n,)."""
    truth: IntArray
    groups: IntArray
    """``truth`` and ``groups``: the label and the group that each row was drawn for. Shape (n,)."""
    n_groups: int

    @classmethod
    def of(cls, generator: TableSynthesizer, rng: np.random.Generator) -> Trial:
        """Train the model on evenly spread rows, and score rows as they are learnt."""
        known = generator.conditions_
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
        plain_rows = _one_hot(as_it_is, sizes, groups[plain], known.n_groups)
        return cls(
            scores=model.decision_function(plain_rows),
            truth=known.labels()[plain],
            groups=groups[plain],
            n_groups=known.n_groups,
        )

    def rates(self, group: int, by: float) -> tuple[float, float, float]:
        """How often the second class is said: of all, of those it is true of, of the others."""
        own = self.groups == group
        said = self.scores[own] + by > 0
        label = self.truth[own] == 1
        every = float(said.mean())
        # Where a group has no row of a label, all its rows must do.
        true, false = (said[at].mean() if at.any() else every for at in (label, ~label))
        return every, float(true), float(false)

    def moved(self, base: float, mix: float) -> FloatArray:
        """Log-odds per group, so that its rate is the mean of all groups' rates at ``base``."""

        def rate(group: int, by: float) -> float:
            of_all, true, false = self.rates(group, by)
            return mix * of_all + (1.0 - mix) * 0.5 * (true + false)

        aim = float(np.mean([rate(group, base) for group in range(self.n_groups)]))
        found = np.zeros(self.n_groups)
        for group in range(self.n_groups):
            low, high = base - FARTHEST, base + FARTHEST
            for _ in range(30):  # rates rise with what is added
                middle = 0.5 * (low + high)
                low, high = (middle, high) if rate(group, middle) < aim else (low, middle)
            found[group] = 0.5 * (low + high)
        return found

    def larger_gap(self, odds: FloatArray) -> float:
        """Return the larger of the demographic and the equalized-odds gap, pairwise."""
        rates = np.array([self.rates(group, float(by)) for group, by in enumerate(odds)])
        return float((rates.max(axis=0) - rates.min(axis=0)).max())


def _one_hot(codes: IntArray, sizes: list[int], groups: IntArray, n_groups: int) -> FloatArray:
    """States of the features and the group, one column each."""
    parts = [np.eye(size)[column] for size, column in zip(sizes, codes.T, strict=True)]
    return np.hstack([*parts, np.eye(n_groups)[groups]])
