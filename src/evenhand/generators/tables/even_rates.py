"""Shares of the labels within groups under which models of the rows treat groups more alike.

With labels and groups spread evenly, a model that sees the group learns to separate the classes
inside every group. Where one group is easier to separate, or its features lie higher, its rates
still differ. Asking for more rows of one label in one group moves the log-odds of that group by
the logarithm of the odds asked for, and with them the rates: of a model that knows the odds. What
models make of such rows is tried on rows of the generator, and what does not help is not done. All
of it is read off the generator itself, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from evenhand import _checks, _values
from evenhand._random import as_generator
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.typing import BoolArray, FloatArray, IntArray, RandomState

NOTIONS_OR_BOTH: Final = ("equalized-odds", "demographic-parity", "both")
N_ROWS: Final = 10_000
FARTHEST: Final = 3.0
"""Log-odds by which a group is moved at most: a share of the label between .05 and .95."""

STEP: Final = 0.5  # in the log-odds of the label's share, on the way down
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
    rows drawn as they are learnt; every group is moved until its rate is that of all. Then it and
    gradient boosting are trained on rows that are drawn with the shares found, and tried on rows
    as they are learnt; what counts is the larger gap of the two. Where it is not below that of
    models of evenly spread labels, these stay even.

    Parameters
    ----------
    generator : TableSynthesizer
        Fitted, with two classes.
    fairness : {"equalized-odds", "demographic-parity", "both"}
        The rate of a group: the mean of its true and false positive rates, how often the second
        class is predicted, or, with "both", whichever mixture of these two leaves the larger of the
        two gaps smallest. "both" also asks for fewer rows of the rarer class, from its learnt
        share down to where both gaps are at most ``gap``: with groups whose labels differ, a
        model that says it less often has less room for either gap. Where none is, the most rows of
        it are kept with which the larger gap is within one standard error of the smallest found.
    amount : float
        How much of the way to go, in [0, 1]; the log-odds are multiplied by it. Not for "both".
    gap : float
        For "both": where to stop, in [0, 1], as measured on the generator's own rows.
    random_state : int, Generator or None

    Returns
    -------
    ndarray of float64, shape (n_conditions,)
        Groups alike, labels within a group as found. They sum to 1.

    Raises
    ------
    ValueError
        For other than two classes, and labels of a group of which no row could be drawn.

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
            f"{known.sizes[0]}. Use balance=('label', 'sensitive') (--balance label,sensitive)."
        )
    if unseen := generator.unseen_:
        raise ValueError(
            f"even_rates asks for rows of both classes in every group, and no record of "
            f"{_values.first(map(known.words, unseen), separator='; ')} can be told from the "
            f"noise: none could be drawn. Raise epsilon, join this group with another, leave it "
            f"out of the schema, or draw rows as they were learnt: balance=() (--fairness none "
            f"--balance none)."
        )
    trial = Trial.of(generator, as_generator(random_state))
    if fairness == "both":
        learnt = generator.shares_.to_numpy(dtype=np.float64)
        return _mildest(trial, _down(trial, float(learnt[known.labels() == 1].sum())), gap)
    of_all = fairness == "demographic-parity"
    odds = amount * trial.moved(0.0, float(of_all))
    ways = [trial.shares(found) for found in (odds, np.zeros(known.n_groups))]
    return min(ways, key=lambda shares: trial.gaps(shares)[0 if of_all else 1])


def _down(trial: Trial, learnt: float) -> Iterable[FloatArray]:
    """Log-odds of the second class per group, with fewer and fewer rows of the rarer one."""
    yield np.zeros(trial.n_groups)
    start = float(np.clip(logit(learnt), -FARTHEST, FARTHEST))
    way = -1.0 if learnt <= 0.5 else 1.0
    for far in np.arange(abs(start), FARTHEST + 1e-9, STEP):
        yield min((trial.moved(way * float(far), mix) for mix in MIXES), key=trial.larger_gap)


def _mildest(trial: Trial, ways: Iterable[FloatArray], gap: float) -> FloatArray:
    """Return the shares of the first of the ways whose larger gap is at most ``gap``.

    If there is none, of the first whose larger gap cannot be told from the smallest of all: within
    one standard error (Breiman et al. 1984), so that chance takes no way that costs much accuracy.
    """
    tried, found = [], []
    for odds in ways:
        tried.append(trial.shares(odds))
        found.append(max(trial.gaps(tried[-1])))
        if found[-1] <= gap:
            return tried[-1]
    return tried[int(np.argmax(np.array(found) <= min(found) + trial.standard_error))]


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Rows as they are learnt, of all groups alike, on which models of other rows are tried."""

    generator: TableSynthesizer
    states: IntArray
    """Shape (n, n_columns)."""
    truth: IntArray
    groups: IntArray
    """``truth`` and ``groups``: the label and the group that each row was drawn for. Shape (n,)."""
    scores: FloatArray
    """Of a model of evenly spread rows. Shape (n,)."""
    seed: int

    @classmethod
    def of(cls, generator: TableSynthesizer, rng: np.random.Generator) -> Trial:
        """Draw rows as they are learnt, and score them by a model of evenly spread rows."""
        known = generator.conditions_
        even = np.repeat(np.arange(known.n), N_ROWS // known.n)
        drawn = generator.states(even, rng)
        learnt = generator.shares_.to_numpy(dtype=np.float64)
        # Every group with as many rows as any other: a rare one would be all noise.
        within = learnt / np.bincount(known.groups(), learnt)[known.groups()]
        plain = rng.choice(known.n, N_ROWS, p=within / within.sum())
        states = generator.states(plain, rng)
        groups = known.groups()
        seen, own = _one_hot(_beside(drawn, groups[even]), _beside(states, groups[plain]))
        model = LogisticRegression(max_iter=300).fit(seen, known.labels()[even])
        return cls(
            generator=generator,
            states=states,
            truth=known.labels()[plain],
            groups=groups[plain],
            scores=model.decision_function(own),
            seed=int(rng.integers(2**32)),
        )

    @property
    def n_groups(self) -> int:
        """How many groups there are."""
        return self.generator.conditions_.n_groups

    def shares(self, odds: FloatArray) -> FloatArray:
        """Shares of label and group with these log-odds of the second class, groups alike."""
        known = self.generator.conditions_
        share = expit(odds)[known.groups()]
        shares: FloatArray = np.where(known.labels() == 1, share, 1.0 - share) / known.n_groups
        return shares

    @property
    def standard_error(self) -> float:
        """Of a gap, at most: of two rates among as many rows as the smallest group and label."""
        counts = np.bincount(2 * self.groups + self.truth, minlength=2 * self.n_groups)
        return float(np.sqrt(0.5 / max(counts.min(), 1)))

    def gaps(self, shares: FloatArray) -> tuple[float, float]:
        """Gap of decisions, and of equalized odds, the larger of the models of rows so drawn."""
        known, rng = self.generator.conditions_, np.random.default_rng(self.seed)
        codes = rng.choice(known.n, N_ROWS, p=shares / shares.sum())
        drawn = _beside(self.generator.states(codes, rng), known.groups()[codes])
        own, labels = _beside(self.states, self.groups), known.labels()[codes]
        seen, coded = _one_hot(drawn, own)
        linear = LogisticRegression(max_iter=300).fit(seen, labels)
        trees = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(drawn, labels)
        apart = []
        for said in (linear.predict(coded) == 1, trees.predict(own) == 1):
            apart.append(np.ptp([self.rates(said, z) for z in range(self.n_groups)], axis=0))
        of_all, true, false = np.max(apart, axis=0).tolist()
        return of_all, max(true, false)

    def rates(self, said: BoolArray, group: int) -> tuple[float, float, float]:
        """How often the second class is said: of all, of those it is true of, of the others."""
        own = self.groups == group
        said, label = said[own], self.truth[own] == 1
        every = float(said.mean())
        # Where a group has no row of a label, all its rows must do.
        true, false = (said[at].mean() if at.any() else every for at in (label, ~label))
        return every, float(true), float(false)

    def moved(self, base: float, mix: float) -> FloatArray:
        """Log-odds per group, so that its rate is the mean of all groups' rates at ``base``."""

        def rate(group: int, by: float) -> float:
            of_all, true, false = self.rates(self.scores + by > 0, group)
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
        """Return the larger gap, pairwise, of decisions and equalized odds if scores move so."""
        rates = np.array(
            [self.rates(self.scores + by > 0, group) for group, by in enumerate(odds.tolist())]
        )
        return float(np.ptp(rates, axis=0).max())


def _beside(states: IntArray, groups: IntArray) -> IntArray:
    """States of the features, with the group as a last column."""
    return np.column_stack([states, groups])


def _one_hot(*parts: IntArray) -> list[FloatArray]:
    """One column for each state, of several sets of rows."""
    rows = np.vstack(parts)
    coded = np.hstack([np.eye(column.max() + 1)[column] for column in rows.T])
    return np.split(coded, np.cumsum([len(part) for part in parts[:-1]]))
