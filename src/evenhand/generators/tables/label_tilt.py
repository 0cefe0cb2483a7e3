"""What a tree of columns misses of the label: its odds, tilted by noisy gradients of the records.

A tree of columns under every label and group keeps the tables that were counted, and takes what
they do not show for independent. For one column that is slight; for the odds of the label given a
whole row, in which all columns speak together, it adds up. So on top of the tree stands a
logistic regression, exponential tilting (Efron 1981; Barron and Sheu 1991, log-linear families):

    q(y | x, z)  ~  p(y | x, z) exp(s_y(x, z)),

with p from the tree, by Bayes' rule, for label y, group z and states x. The scores s are sums of a
number per label of each column's state (of an ordered column a cubic in its rank, of one that is
merged each range, and as many states as the records can tell), of the group,
and of a matrix times the centred log-odds of p, which makes the tree less sure of itself. They
maximise the likelihood of the records' labels, given all the rest.

The gradient of one record is an outer product, (y - q) times what its scores read. Rows drawn from
the tree are free: they tell how these readings spread, so that a step along the noisy gradient is
about Newton's, and how long gradients are, where they are clipped. Where noise is large steps are
short. After a fixed number of steps, of which the second half is averaged, the mean is shrunk by
what its noise explains (James and Stein 1961): where that is all, the tree stays as it is. Slopes
of states that are read singly are pulled back meanwhile, for noise may have made a state, and no
record holds its slope: by noise alone odds of such a state are off by their usual deviation.
Clipped gradients leave the odds too sure, which their temperature mends (``label_temperature``).

Rows of a label and group are those of the tree, of which each is kept with a probability in
proportion to its weight q / p, cut at ``most``; so any balance of labels and groups stays exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.polynomial import legendre
from scipy.linalg import helmert, solve_triangular

from evenhand.generators.aggregators import ProductSums
from evenhand.generators.budget_plan import BudgetPlan, under
from evenhand.generators.payload import Progress
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.label_temperature import factor_of_odds, normed
from evenhand.generators.tables.merged_states import MergedTree
from evenhand.generators.tables.tree_distribution import BLOCK, TreeDistribution
from evenhand.typing import Array, BoolArray, FloatArray, IntArray

TILT: Final = "noisy gradients of the odds of labels"

STEPS: Final = 50
MOST_RECORDS: Final = 200_000
"""Of more, so many are read: by then others tell more of the noise than of the label."""

MOST_READINGS: Final = 500
"""What gained had 230 at most; with 640 pairs missed their part (``benchmarks/many_states.py``)."""

LEAST_SIGNAL: Final = 5.0
"""Records times ``mu`` for each number of a gradient; set on ACS-Income, Bank and German."""

STATE_SIGNAL: Final = 10.0
"""The same where states of merged columns are read singly; set on STAR."""

MOST_SINGLY: Final = 250
"""Numbers that are read of a row at most, where some are of such states."""

States: TypeAlias = TreeDistribution | MergedTree
"""A distribution over states."""

_DEGREE: Final = 3
_CLIPPED: Final = 0.1  # part of the gradients that are longer than the norm to which they are cut
_EVEN: Final = 0.3  # part of the largest curvature in that by which steps are scaled
_WALK: Final = 0.2  # squared length of what the noise of one step adds to slopes
_USUAL: Final = 1.0  # standard deviation of log-odds by a state, before anything is known
_LARGEST: Final = 8.0  # of a centred log-odds that the scores read
_RIDGE: Final = 1e-3
_MOST: Final = 4.0  # of the weight of a row: draws for one that is kept, at most, on average
_CUT: Final = 1e-3  # part of the rows of a label and group whose weight is cut
_FEWEST, _MOST_OF_EACH, _OF_ALL = 200, 4_000, 100_000  # rows from which means are estimated
_TRIES: Final = 4
_ROUNDS: Final = 100  # of tries for one row, of which each is kept with a chance of a tenth or so


@dataclass(frozen=True, kw_only=True, eq=False)
class Readings:
    """What scores read of a row, as rows of numbers."""

    n_labels: int
    n_groups: int
    columns: tuple[FloatArray, ...]
    """Of each column: what is read of each state. Shape (states, readings)."""
    by_state: frozenset[int] = frozenset()
    """Columns of which some states are read singly."""

    @classmethod
    def of(
        cls, n_labels: int, n_groups: int, sizes: Sequence[int], n_ordered: Sequence[int]
    ) -> Self:
        """Read curves of the ranks of each column's first ``n_ordered`` states, others singly."""
        read = [_curves(*of) for of in zip(sizes, n_ordered, strict=True)]
        return cls(n_labels=n_labels, n_groups=n_groups, columns=tuple(read))

    def of_known(self, counts: Sequence[FloatArray], hidden: Sequence[BoolArray]) -> Self:
        """Read of a state that the noise hides what is read of the others on average.

        A slope of its own would be noise alone, and no record would hold it back.

        Parameters
        ----------
        counts : sequence of ndarray, shape (states,)
            Records in each state of each column, as released.
        hidden : sequence of ndarray of bool, shape (states,)
        """
        of = zip(self.columns, counts, hidden, strict=True)
        return replace(self, columns=tuple(_of_known(*one) for one in of))

    def apart(
        self,
        ranges: Mapping[int, IntArray],
        singly: Mapping[int, BoolArray],
        told: Mapping[int, FloatArray],
    ) -> Self:
        """Read of a state what is read of its range, and of some states what is their own.

        Of a state of such a column that the noise may have made what is read of the others on
        average, as ``of_known`` has it: of its range all others may be read singly.

        Parameters
        ----------
        ranges : mapping of int to ndarray of int64, shape (states,)
            Of each merged column: in which range a state is.
        singly : mapping of int to ndarray of bool, shape (states,)
            Which states of these columns are read singly.
        told : mapping of int to ndarray, shape (states,)
            Records in each state, as released; 0 where noise may be all of them.
        """
        read = [one[ranges[i]] if i in ranges else one for i, one in enumerate(self.columns)]
        for i, own in singly.items():
            read[i] = np.hstack([read[i], np.eye(len(own))[:, own]])
            read[i][told[i] <= 0.0] = np.average(read[i], axis=0, weights=told[i])
        return replace(self, columns=tuple(read), by_state=frozenset(singly))

    @property
    def is_by_state(self) -> BoolArray:
        """Which numbers that are read of a row are of such columns, shape (``n``,)."""
        each = [np.full(one.shape[1], i in self.by_state) for i, one in enumerate(self.columns)]
        others = np.zeros(self.n_groups + self.n_labels - 1, dtype=np.bool_)
        return np.concatenate([others, *each])

    @property
    def n(self) -> int:
        """Numbers that are read of a row."""
        of_columns = sum(int(one.shape[1]) for one in self.columns)
        return self.n_groups + self.n_labels - 1 + of_columns

    @property
    def contrasts(self) -> FloatArray:
        """Directions in which scores of labels differ, shape (n_labels - 1, n_labels)."""
        rows: FloatArray = helmert(self.n_labels)
        return rows

    def read(self, odds: FloatArray, codes: IntArray, groups: IntArray) -> FloatArray:
        """Return them, shape (n, ``n``)."""
        of_columns = [one[codes[:, i]] for i, one in enumerate(self.columns)]
        group = np.eye(self.n_groups)[groups]
        group[:, 0] = 1.0  # every row has it: the constant
        return np.hstack([group, _centred(odds) @ self.contrasts.T, *of_columns])

    def tilt(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray, tuple[FloatArray, ...]]:
        """Return scores by group, by log-odds and by each column, of slopes (``n``, contrasts)."""
        lengths = (self.n_groups, self.n_labels - 1, *(one.shape[1] for one in self.columns))
        parts = np.split(slopes @ self.contrasts, np.cumsum(lengths)[:-1])
        group = np.vstack([parts[0][:1], parts[0][:1] + parts[0][1:]])
        by_column = tuple(one @ part for one, part in zip(self.columns, parts[2:], strict=True))
        return group, self.contrasts.T @ parts[1], by_column


@dataclass(frozen=True, kw_only=True, eq=False)
class _Scale:
    """What scales readings, so that a step along a gradient is about Newton's; and its cut."""

    root: FloatArray
    """Of the mean curvature of a row: lower triangular. Shape (readings, readings)."""
    clip: float
    """Norm to which a record's gradient in scaled readings is cut."""

    @classmethod
    def of(cls, read: FloatArray, p: FloatArray, labels: IntArray) -> Self:
        """Take them from rows that are drawn: readings, chances of labels, and the labels."""
        n_labels = p.shape[1]
        # Of two labels the curvature is v uu', and of more it is no larger.
        v = (1.0 - _EVEN) * (1.0 - (p**2).sum(axis=1)) + _EVEN * (1.0 - 1.0 / n_labels)
        curvature = (read * v[:, None]).T @ read / len(read)
        curvature += np.diag(_RIDGE * np.diag(curvature) + 1e-12)
        scale = cls(root=np.linalg.cholesky(curvature), clip=1.0)
        lengths = np.linalg.norm(np.eye(n_labels)[labels] - p, axis=1)
        lengths *= np.linalg.norm(scale.scaled(read), axis=1)
        return replace(scale, clip=max(float(np.quantile(lengths, 1.0 - _CLIPPED)), 1e-3))

    def scaled(self, read: FloatArray) -> FloatArray:
        """Return readings (n, readings), scaled."""
        scaled: FloatArray = solve_triangular(self.root, read.T, lower=True).T
        return scaled

    def of_readings(self, slopes: FloatArray) -> FloatArray:
        """Return slopes of readings as they are, of slopes of scaled ones."""
        of: FloatArray = solve_triangular(self.root, slopes, lower=True, trans=1)
        return of


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTilt:
    """How the odds of labels differ from those of a tree."""

    shares: FloatArray
    """Of the records, by which the tree's odds are. Shape (n_labels, n_groups)."""
    groups: FloatArray
    odds: FloatArray
    columns: tuple[FloatArray, ...]
    """``groups``, ``odds`` and ``columns``: the scores of each label, to be added up: by group, by
    centred log-odds of labels, by state. Shapes (n_groups, n_labels), (n_labels, n_labels), and, of
    each column, (states, n_labels).
    """
    most: FloatArray
    mean: FloatArray
    """``most`` and ``mean``: of the weight of a row of the tree, by label and group: the largest,
    and the mean. Shape (n_conditions,).
    """

    @classmethod
    def learn(
        cls,
        records: EncodedTable,
        tree: States,
        weights: FloatArray,
        readings: Readings,
        plan: BudgetPlan,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Self:
        """Fit to the labels of private records.

        Parameters
        ----------
        records : EncodedTable
        tree : TreeDistribution or MergedTree
        weights : ndarray, shape (n_conditions,)
            Expected number of these records with each label and group, as released.
        readings : Readings
        plan : BudgetPlan
            Of which the shares ``TILT`` and ``TEMPERATURE`` are spent.
        rng : Generator
            Draws rows of the tree.
        progress : callable

        Privacy
        -------
        Cost : ``STEPS`` Gaussian releases of one sum of clipped gradients each, and one of the
            temperature: the shares of the plan. Each is a function of what was released before.
        """
        shape = (readings.n_labels, readings.n_groups)
        shares = weights.reshape(shape) / weights.sum()
        drawn = rng.choice(len(weights), BLOCK, p=shares.reshape(-1))
        states = tree.sample(drawn, rng)
        of_drawn = label_odds(tree, shares, states, drawn % shape[1])
        scale = _Scale.of(
            readings.read(of_drawn, states, drawn % shape[1]), np.exp(of_drawn), drawn // shape[1]
        )
        y, z = records.condition // shape[1], records.condition % shape[1]
        odds = label_odds(tree, shares, records.codes, z)
        read = scale.scaled(readings.read(odds, records.codes, z))
        turn, clip = readings.contrasts, scale.clip
        aggregator = ProductSums(n_left=len(turn), n_right=read.shape[1], per_unit=records.per_unit)
        length = aggregator.n_left * aggregator.n_right
        door = plan.door(aggregator, TILT, n_steps=STEPS, length=length)
        own, read, n = np.eye(shape[0])[y], aggregator.on_grid(read), float(weights.sum())
        slopes = np.zeros((read.shape[1], len(turn)))
        mean, half = np.zeros_like(slopes), STEPS // 2
        sigma = plan.mechanism(aggregator, TILT, n_steps=STEPS).sigma * aggregator.unit * clip / n
        step = min(1.0, _WALK / (slopes.size * sigma**2))
        # A state without records has no curvature that would hold its slope back from the noise:
        # by this alone it has the usual deviation in the end.
        pull = step * sigma**2 / (2.0 * (_USUAL * np.diag(scale.root)) ** 2) * readings.is_by_state
        pull = np.minimum(pull, 1.0 / step)[:, None]
        for t in range(STEPS):
            scores = odds + read @ slopes @ turn
            norm = np.logaddexp.reduce(scores, axis=1, keepdims=True)
            apart = (own - np.exp(scores - norm)) @ turn.T
            released = door(aggregator.total(apart / clip, read)).reshape(slopes.shape[::-1]).T
            slopes = slopes + step * (released * clip / n - pull * slopes)
            mean += slopes * (t >= half) / (STEPS - half)
            progress("labels", t + 1, STEPS)
        noise = mean.size * sigma**2 * _noise_of_mean(step, half)
        mean *= max(0.0, 1.0 - noise / max(float((mean**2).sum()), 1e-300))
        group, of_odds, by_column = readings.tilt(scale.of_readings(mean))
        found = cls(
            shares=shares,
            groups=group,
            odds=of_odds,
            columns=by_column,
            most=np.full(len(weights), _MOST),
            mean=np.ones(len(weights)),
        )
        factor = factor_of_odds(
            found.tilted(odds, records.codes, z),
            y,
            found.tilted(of_drawn, states, drawn % shape[1]),
            plan,
            n=n,
            per_unit=records.per_unit,
        )
        return found._times(factor)._measured(tree, rng)

    def drawn(
        self,
        tree: States,
        held: States,
        mean: FloatArray,
        conditions: IntArray,
        rng: np.random.Generator,
    ) -> IntArray:
        """Draw one row of states per condition.

        A row of ``held`` is kept with a probability of ``min(1, w)``, for a weight w of mean 1, and
        drawn again else until one of ``(w - 1)+`` is: together w. So most rows stay as evenly
        spread as the tree draws them.

        Parameters
        ----------
        tree, held : TreeDistribution or MergedTree
            The tree, and what it is given an event, of which rows are drawn.
        mean : ndarray, shape (n_conditions,)
            Of the weights of these.
        """
        drawn = np.zeros((len(conditions), len(self.columns)), dtype=np.int64)
        for start in range(0, len(conditions), BLOCK):
            left = np.arange(start, min(start + BLOCK, len(conditions)))
            drawn[left] = held.sample(conditions[left], rng)
            weights = self.weights(tree, drawn[left], conditions[left]) / mean[conditions[left]]
            left = left[rng.random(len(left)) >= weights]
            for _ in range(_ROUNDS):
                at = np.tile(left, _TRIES)
                c = conditions[at]
                states = held.sample(c, rng, even=False)  # few are kept: they are not even anyway
                more = self.weights(tree, states, c) / mean[c] - 1.0
                most = np.maximum(self.most[c] / mean[c] - 1.0, 1e-9)
                kept = np.flatnonzero(rng.random(len(at)) * most < more)
                # The first that is kept: what was drawn before it does not bear on it.
                rows, first = np.unique(at[kept], return_index=True)
                drawn[rows] = states[kept[first]]
                left = np.setdiff1d(left, rows, assume_unique=True)
                if not len(left):
                    break
        return drawn

    def _times(self, factor: float) -> Self:
        """Return it with log-odds times a factor, those of the tree too as far as they are read."""
        of_tree = (factor - 1.0) * (np.eye(len(self.odds)) - 1.0 / len(self.odds))
        return replace(
            self,
            groups=factor * self.groups,
            odds=factor * self.odds + of_tree,
            columns=tuple(factor * column for column in self.columns),
        )

    def weights(self, tree: States, codes: IntArray, conditions: IntArray) -> FloatArray:
        """Return how often rows come for once that they come in the tree, shape (n,), cut."""
        label, group = conditions // self.shares.shape[1], conditions % self.shares.shape[1]
        odds = label_odds(tree, self.shares, codes, group)
        scores = self._scores(odds, codes, group)
        own = scores[np.arange(len(label)), label] - np.logaddexp.reduce(odds + scores, axis=1)
        weights: FloatArray = np.exp(np.minimum(own, np.log(self.most[conditions])))
        return weights

    def tilted(self, odds: FloatArray, codes: IntArray, groups: IntArray) -> FloatArray:
        """Return the logarithms of q(y | x, z) from those of p, shapes (n, n_labels)."""
        return normed(odds + self._scores(odds, codes, groups))

    def _scores(self, odds: FloatArray, codes: IntArray, groups: IntArray) -> FloatArray:
        """Return what is added to the log-odds of each label, shape (n, n_labels)."""
        scores: FloatArray = self.groups[groups] + _centred(odds) @ self.odds
        for i, column in enumerate(self.columns):
            scores += column[codes[:, i]]
        return scores

    def given(
        self, tree: States, held: States, chances: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean weight by label and group given an event, and the event's chance.

        Estimated from rows of each that the event may have.

        Parameters
        ----------
        tree, held : TreeDistribution or MergedTree
            The tree, and what it is given the event.
        chances : ndarray, shape (n_conditions,)
            Of the event in the tree.
        """
        mean, possible = np.ones(len(chances)), np.flatnonzero(chances > 0)
        if len(possible):
            c = np.repeat(possible, _rows_of_each(len(possible)))
            states = held.sample(c, np.random.default_rng(0))  # the same event has the same chance
            weights = self.weights(tree, states, c)
            mean[possible] = weights.reshape(len(possible), -1).mean(axis=1)
        return mean, np.minimum(chances * mean / self.mean, 1.0)

    def arrays(self) -> dict[str, Array]:
        """Return it as arrays by name."""
        own = {name: getattr(self, name) for name in _ARRAYS}
        return {**own, **{f"column_{i}": column for i, column in enumerate(self.columns)}}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], ranges: Mapping[int, IntArray]) -> Self:
        """Take back what ``arrays`` gave; of earlier versions that is one score for a range."""
        found, columns = under(arrays, "column_"), []
        for i in range(len(found)):
            column, of = found[str(i)], ranges.get(i)
            columns.append(column if of is None or len(column) == len(of) else column[of])
        own: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
        return cls(columns=tuple(columns), **own)

    def _measured(self, tree: States, rng: np.random.Generator) -> Self:
        """Return it with the largest and the mean weight of rows of the tree."""
        n = len(self.most)
        c = np.repeat(np.arange(n), _rows_of_each(n))
        weights = self.weights(tree, tree.sample(c, rng), c).reshape(n, -1)
        most = np.maximum(np.quantile(weights, 1.0 - _CUT, axis=1), 1.0)
        mean = np.minimum(weights, most[:, None]).mean(axis=1)
        return replace(self, most=most, mean=mean)


_ARRAYS: Final = ("shares", "groups", "odds", "most", "mean")


def label_odds(
    tree: States,
    shares: FloatArray,
    codes: IntArray,
    groups: IntArray,
    unknown: BoolArray | None = None,
) -> FloatArray:
    """Return the logarithms of p(y | x, z) in the tree, shape (n, n_labels).

    Parameters
    ----------
    tree : TreeDistribution or MergedTree
    shares : ndarray, shape (n_labels, n_groups)
        Of the records.
    codes : ndarray of int64, shape (n, n_columns)
        States x of rows.
    groups : ndarray of int64, shape (n,)
        Their groups z.
    unknown : ndarray of bool, shape (n, n_columns), optional
        States that are not read.
    """
    n_labels, n_groups = shares.shape
    joint = np.stack(
        [tree.log_density(codes, y * n_groups + groups, unknown) for y in range(n_labels)], axis=1
    )
    return normed(joint + np.log(shares.T)[groups])


def _rows_of_each(n_conditions: int) -> int:
    """Return from how many rows of a label and group its mean is estimated."""
    return int(np.clip(_OF_ALL // n_conditions, _FEWEST, _MOST_OF_EACH))


def _noise_of_mean(step: float, first: int) -> float:
    """Return the variance that noise of variance 1 on every gradient gives the mean of slopes.

    Of those from step ``first`` on, where the curvature is that by which steps are scaled.
    """
    t = np.arange(STEPS)
    ages = t[first:, None] - t
    each = np.where(ages >= 0, step * (1.0 - step) ** np.maximum(ages, 0), 0.0)
    return float((each.mean(axis=0) ** 2).sum())


def _curves(n_states: int, n_ordered: int) -> FloatArray:
    """Return what is read of each state, shape (n_states, readings)."""
    if n_ordered <= _DEGREE + 2:
        return np.eye(n_states)[:, 1:]
    others = n_states - n_ordered
    out = np.zeros((n_states, _DEGREE + others))
    ranks = np.linspace(-1.0, 1.0, n_ordered)
    out[:n_ordered, :_DEGREE] = legendre.legvander(ranks, _DEGREE)[:, 1:]
    out[n_ordered:, _DEGREE:] = np.eye(others)
    return out


def _of_known(read: FloatArray, counts: FloatArray, hidden: BoolArray) -> FloatArray:
    """Return what is read of each state, without what is read of one that is hidden alone."""
    alone = (read != 0.0).sum(axis=0) == 1
    hidden = hidden & (read[:, alone] != 0.0).any(axis=1)
    if not hidden.any() or hidden.all():
        return read
    others = np.average(read[~hidden], axis=0, weights=np.maximum(counts[~hidden], 1e-9))
    kept = ~(alone & (read[hidden] != 0.0).any(axis=0))
    return np.where(hidden[:, None], others, read)[:, kept]


def _centred(odds: FloatArray) -> FloatArray:
    centred: FloatArray = odds - odds.mean(axis=1, keepdims=True)
    return np.clip(centred, -_LARGEST, _LARGEST)
