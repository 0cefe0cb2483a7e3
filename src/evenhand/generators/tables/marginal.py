"""MarginalSynthesizer: noisy tables of counts, explained by a distribution of largest entropy."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand.datasets.columns import TypedTable, some
from evenhand.generators.aggregators import ProductSums, TableCounts
from evenhand.generators.budget_plan import BudgetPlan, snr_of_counts, under
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.tables.chosen_pairs import (
    CHOICE,
    MEAN_ABS,
    NARROW,
    PAIRS,
    PublicNumbers,
    choose_pairs,
)
from evenhand.generators.tables.encoded import Clique, CountedRows
from evenhand.generators.tables.label_temperature import TEMPERATURE
from evenhand.generators.tables.label_tilt import (
    LEAST_SIGNAL,
    MOST_READINGS,
    MOST_RECORDS,
    MOST_SINGLY,
    STATE_SIGNAL,
    TILT,
    LabelTilt,
    Readings,
    label_odds,
)
from evenhand.generators.tables.merged_states import (
    LEAST_RANGES,
    MOST_STATES,
    MergedStates,
    MergedTree,
    by_ranges,
    most_held,
)
from evenhand.generators.tables.private_table import PrivateTable
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.generators.tables.tree_distribution import (
    MOST_AT_ONCE,
    JunctionTree,
    Table,
    TreeDistribution,
    fit_tree,
)
from evenhand.generators.tables.wanted_rows import Draw
from evenhand.privacy import Ledger
from evenhand.typing import Array, BoolArray, FloatArray, IntArray

OWN: Final = "counts of each column by label and group"
ODDS: Final = frozenset({TILT, TEMPERATURE})

_OF_TEMPERATURE: Final = 0.05  # of ``tilt_share``
_SURELY: Final = 3.0  # deviations of a noisy count from which on it is not of noise alone
_LIKELY: Final = 1.0  # those from which on a state may be read singly, and its slope pulled back
_GAPS: Final = 2.0  # those from which on missing values are drawn: noise alone has them in .023
_HARDLY: Final = 1e-9  # of what noise says: 0 would have no law where it is asked for


@register
@dataclass(eq=False, repr=False, kw_only=True)
class MarginalSynthesizer(TableSynthesizer):
    """Draw tables from noisy counts, conditioned on label and group.

    1. Every column is counted by label and group; all these tables are one Gaussian release.
    2. For every pair of columns: how far is its table from what step 1 alone explains, over all
       records and label by label? These distances are released. Of what stands above the noise a
       junction tree is built, in which a column hangs from up to ``width`` others.
       Columns of more than 64 states stand here, and in step 3, in ranges of neighboring ones
       (``MergedStates``), within which a state depends on label and group alone; step 5 reads as
       many of their states, those with most records first, as it can tell from its noise.
    3. The tables of the tree's pairs are one more release, each over all records or label by
       label, whichever explains more than its noise hides. Three columns of a clique stand in one
       table, and not in pairs, where the noise on all its cells hides at most half of the records.
       With them a column is counted again that is in no pair and can be told to depend on label
       or group.
    4. The distribution of largest entropy that explains the tables, each within its noise, is
       fitted; it is a junction tree under each label and group, so rows are drawn exactly.
    5. The odds of the labels of a whole row, to which many columns add a little, are tilted by
       noisy gradients of the records (``LabelTilt``): of the rows of the tree some are kept. How
       sure they are, which gradients that are clipped overdo, is one more release.

    The counts by label and group make every balance a matter of how often a condition is asked
    for: it is set after the noise, costs nothing and is exact.

    Parameters
    ----------
    pairs : bool
        Steps 2 and 3. Without them columns are independent given label and group.
    width : int, optional
        Columns from which one column may hang. With 1 the pairs are a forest; with more, loops of
        columns that depend on each other are kept, and fits take longer. At least 1. Default: 3
        where three columns of the usual number of states stand in one table by step 3, else 2.
    tilt : bool, optional
        Step 5. Default: with ``pairs``, where the records are enough for the numbers of a gradient,
        by the noisy count; else steps 2 and 3 have its budget. Of one label, one column, or more
        than 500 numbers that are read of a row none is tilted.
    tilt_share : float, default 0.2
        Share of the budget (of ``mu**2``) that step 5 costs, in (0, 1). More serves linear models
        of the drawn rows, less the likeness of pairs of columns.
    **others
        ``neighbors``, ``n_bins``, ``noise`` and ``random_state``, see ``TableSynthesizer``.

    Privacy
    -------
    Neighbors : add or remove one record, or one unit with all of its records that are read; or
        replace one record.
    Sensitivity : ``sqrt(m)`` for m tables of counts; ``sqrt(m (m - 1))`` for the two distances
        of all pairs; of gradients, and of the temperature, what they are clipped to. Replacing
        costs ``sqrt(2)``, 2 and 2 times that.
    Cost : every release is Gaussian and their ``mu**2`` sum to the budget's.

    References
    ----------
    McKenna, Miklau and Sheldon 2021 (a tree of noisy marginals, MST; the choice there is by the
    exponential mechanism). McKenna, Mullins, Sheldon and Miklau 2022 (AIM: a table is chosen by
    its distance less the noise to come). McKenna, Sheldon and Miklau 2019 (graphical models from
    noisy tables).

    Examples
    --------
    >>> import pandas as pd
    >>> from evenhand.datasets import Schema
    >>> from evenhand.privacy import Budget
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 20_000, p=[0.3, 0.7])
    >>> hours = np.clip(rng.normal(np.where(sex == "M", 44, 38), 8), 0, 80).round().astype(int)
    >>> rich = np.where(hours + rng.normal(0, 6, 20_000) > 44, "yes", "no")
    >>> frame = pd.DataFrame({"hours": hours, "sex": sex, "rich": rich})
    >>> schema = Schema.declared(
    ...     {"hours": {"bounds": (0, 80)}, "sex": ["F", "M"], "rich": ["no", "yes"]}
    ... )
    >>> made = MarginalSynthesizer(random_state=0).fit(
    ...     frame, label="rich", sensitive="sex", budget=Budget(epsilon=1.0, delta=1e-6),
    ...     schema=schema,
    ... )
    >>> made.sample(1000, random_state=0).groupby(["rich", "sex"]).size().tolist()
    [250, 250, 250, 250]
    """

    method: ClassVar[str] = "marginal"
    words: ClassVar[str] = "noisy tables of counts on a junction tree of columns"
    reads_streams: ClassVar[bool] = True

    tilt_: LabelTilt | None = field(init=False)
    merged_: MergedStates = field(init=False)
    _gaps: list[float] = field(init=False)
    """Of each feature, how far the count of its last state stands above 0, in deviations."""
    _sigma_of_state: float = field(init=False)
    """Deviation of the first released count of a state, over all labels and groups."""

    pairs: bool = True
    width: int | None = None
    tilt: bool | None = None
    tilt_share: float = 0.2  # set on ACS-Income, Bank and Credit

    def _foresee(self, known: Any) -> None:
        if self.width is not None:
            _checks.at_least("width", self.width, 1)

    def _shares(self) -> Mapping[str, float]:
        of_tilt = _checks.open_unit("tilt_share", self.tilt_share)
        shares = {OWN: 0.5, CHOICE: 0.05, PAIRS: 0.45} if self.pairs else {OWN: 1.0}
        if not (self.pairs if self.tilt is None else self.tilt):
            return shares
        rest = {name: (1.0 - of_tilt) * share for name, share in shares.items()}
        of_odds = {TILT: 1.0 - _OF_TEMPERATURE, TEMPERATURE: _OF_TEMPERATURE}
        return {**rest, **{name: of_tilt * share for name, share in of_odds.items()}}

    def least_sigma(self, payload: PrivateTable, ledger: Ledger) -> float:
        """Return how loud ``counts_`` will be at the least, by the ledger and what is public."""
        shares = payload.shares(self._shares(), ledger.budget.mu_squared)
        plan, sizes = BudgetPlan(ledger=ledger, shares=shares), payload.least_states
        if len(sizes) == 1 or not self.pairs:
            plan = plan.joined(OWN, {CHOICE, PAIRS, *ODDS} & shares.keys())
        per_unit = payload.records.per_unit
        counter = TableCounts(shapes=tuple((1, size) for size in sizes), per_unit=per_unit)
        sigma = plan.mechanism(counter, OWN).sigma
        return joint_totals([np.zeros(shape) for shape in counter.shapes], sigma)[1]

    def _learn(
        self, data: CountedRows, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        self.tilt_ = None
        most = MOST_STATES if self.pairs else max(data.sizes)
        sizes = [min(size, most) for size in data.sizes]
        readings = self._readings(sizes)
        if TILT in plan.shares and (readings.n_labels < 2 or readings.n > MOST_READINGS):
            plan = plan.joined(PAIRS if self.pairs else OWN, ODDS)
        plan = self._learn_tree(data, plan, progress)
        self._draw_no_noise()
        if TILT not in plan.shares:
            return
        weights = self._known_counts()
        readings = self._readings_by_state(self._signal(data, plan), weights)
        # Known to nobody, which records are read is a coin for each; see ``CountedRows.one_in``.
        key = secrets.token_bytes(32) if plan.ledger.noise.protects else rng.bytes(32)
        one_in = max(1, math.ceil(weights.sum() / MOST_RECORDS))
        self.tilt_ = LabelTilt.learn(
            data.one_in(one_in, key),
            self._states,
            weights / one_in,
            readings,
            plan,
            rng,
            progress,
        )

    def _readings_by_state(self, signal: float, weights: FloatArray) -> Readings:
        """Return what the odds of labels read, of merged columns as many states as can be told.

        Within its range such a state then depends on the group alone: the odds tell of the label.
        """
        features = self.codec_.features
        tables = self.distribution_.expected(weights)[: len(features)]
        known = self._readings([table.shape[1] for table in tables])
        known = known.of_known([table.sum(axis=0) for table in tables], self.hidden_)
        by_state, ranges = self.merged_.apart(tables), self.merged_.ranges
        unordered = [i for i in sorted(ranges) if self.codec_[features[i]].bins is None]
        n_told = int(min(signal / STATE_SIGNAL / (known.n_labels - 1), MOST_SINGLY)) - known.n
        counts = {i: by_state[i].sum(axis=0) for i in unordered}
        least = _LIKELY * self._sigma_of_state
        told = {i: np.where(held > least, held, 0.0) for i, held in counts.items()}
        singly = most_held(told, n_told)
        self.merged_ = self.merged_.alike_by_label(by_state, singly, known.n_labels)
        return known.apart(ranges, singly, told)

    def _readings(self, sizes: Sequence[int]) -> Readings:
        """Return what the odds of labels read of columns of so many states, or ranges of these."""
        columns = [self.codec_[name] for name in self.codec_.features]
        ordered = [0 if column.bins is None else column.n_values for column in columns]
        n_labels, n_groups = self.conditions_.sizes[0], self.conditions_.n_groups
        return Readings.of(n_labels, n_groups, sizes, np.minimum(ordered, sizes).tolist())

    def _learn_tree(self, data: CountedRows, plan: BudgetPlan, progress: Progress) -> BudgetPlan:
        """Learn tree and tables; return what is left of the plan."""
        n_conditions, n_columns = self.conditions_.n, len(data.sizes)
        counter = TableCounts(
            shapes=tuple((n_conditions, size) for size in data.sizes), per_unit=data.per_unit
        )
        progress("counts", 0, 4)
        by_condition = np.arange(n_conditions)
        alike = [Clique(columns=(i,), parts=by_condition) for i in range(n_columns)]
        counted = data.counts(alike)
        if n_columns == 1:  # there is no pair to choose
            plan = plan.joined(OWN, {CHOICE, PAIRS, *ODDS} & plan.shares.keys())
        own = plan.release(counter, _joint(counted), OWN)
        tables = counter.apart(own.values)
        self.counts_, self.counts_sigma_ = joint_totals(tables, own.sigma)
        self._sigma_of_state = own.sigma * math.sqrt(n_conditions)
        # A column in one state tells nothing, and is none of those that could be learnt.
        told = [size for size in data.sizes if size > 1] or [1]
        cells = n_conditions * round(float(np.median(told)))
        self.snr_ = snr_of_counts(float(self.counts_.sum()), cells, own.sigma)
        weights = self._known_counts()
        progress("counts", 1, 4)
        alone, sigmas = JunctionTree.alone(n_columns), [own.sigma] * n_columns

        def each_of(values: Sequence[FloatArray]) -> list[Table]:
            return [
                Table(columns=clique.columns, parts=clique.parts, values=table)
                for clique, table in zip(alike, values, strict=True)
            ]

        each = each_of(tables)
        self.distribution_ = fit_tree(alone, each, sigmas, weights)
        self.merged_, self.hidden_ = MergedStates(ranges={}, within={}), _hidden(each, sigmas)
        self._gaps = _above_noise(each, sigmas)
        if not self.pairs or n_columns < 2:
            return plan
        if TILT in plan.shares and not (self.tilt or self._tells(data, plan)):
            plan = plan.joined(PAIRS, ODDS)
        known = PublicNumbers(
            n_columns=n_columns, per_unit=data.per_unit, plan=plan, weights=weights
        )
        if max(data.sizes) > MOST_STATES:
            stand_out = known.most_cells(self.width or NARROW) ** 0.5
            n_ranges = int(np.clip(stand_out, LEAST_RANGES, MOST_STATES))
            self.merged_ = MergedStates.of(self.distribution_.expected(weights), n_ranges)
            data, counted = data.merged(self.merged_.ranges), self.merged_.tables(counted)
            each = each_of(self.merged_.tables(tables))
            sigmas = [sigma * self.merged_.spread(i) for i, sigma in enumerate(sigmas)]
            self.distribution_ = fit_tree(alone, each, sigmas, weights)
        expected, labels = self.distribution_.expected(weights), self.conditions_.labels()
        width = self.width or known.usual_width(data.sizes, len(np.unique(labels)))
        tree, pairs, counts_of_pairs = choose_pairs(data, known, expected, labels, width)
        progress("counts", 2, 4)
        again = self._to_count_again(each, sigmas, weights, pairs)
        # All of these were counted for what was released before: the rows are not read again.
        counts = [*counts_of_pairs, *(counted[clique.columns[0]] for clique in again)]
        fresh, sigma = _released([*pairs, *again], counts, data.per_unit, plan)
        progress("counts", 3, 4)
        columns, sigmas = _joined(each, sigmas, fresh[len(pairs) :], sigma)
        self.hidden_ = _hidden(columns, sigmas)
        better = _above_noise(columns, sigmas)  # of merged columns it is of a range
        self._gaps = [
            old if i in self.merged_.ranges else new
            for i, (old, new) in enumerate(zip(self._gaps, better, strict=True))
        ]
        sigmas += [sigma] * len(pairs)
        self.distribution_ = fit_tree(tree, [*columns, *fresh[: len(pairs)]], sigmas, weights)
        progress("counts", 4, 4)
        return plan

    def _draw_no_noise(self) -> None:
        """Draw no missing values of columns whose count of them does not stand out of the noise."""
        likelihoods = {}
        for i in self._without_gaps:
            likelihoods[i] = np.ones(self.codec_[self.codec_.features[i]].n_states)
            likelihoods[i][-1] = _HARDLY
        self.merged_, by_range = self.merged_.given(likelihoods)
        self.distribution_, _ = self.distribution_.given(by_range)

    @property
    def _without_gaps(self) -> list[int]:
        """Features with a state for missing values of which noise hides if there are any."""
        gaps = zip(self.codec_.features, self._gaps, strict=True)
        return [
            i for i, (name, far) in enumerate(gaps) if self.codec_[name].has_missing and far < _GAPS
        ]

    def _tells(self, data: CountedRows, plan: BudgetPlan) -> bool:
        """Whether there are enough records for the gradients of the odds of labels."""
        readings = self._readings(np.minimum(data.sizes, MOST_STATES).tolist())
        return self._signal(data, plan) >= LEAST_SIGNAL * (readings.n_labels - 1) * readings.n

    def _signal(self, data: CountedRows, plan: BudgetPlan) -> float:
        """Return records times the ``mu`` of one number of the gradients of the odds of labels."""
        aggregator = ProductSums(n_left=1, n_right=1, per_unit=data.per_unit)
        moved = aggregator.l2_sensitivity(plan.ledger.neighbors) * aggregator.unit
        mu = math.sqrt(plan.ledger.budget.mu_squared * plan.shares[TILT]) / moved
        return min(float(self._known_counts().sum()), MOST_RECORDS) * mu

    def _remarks(self) -> tuple[str, ...]:
        names = [self.codec_.features[i] for i in self._without_gaps]
        gaps = (
            f"no missing values are drawn of {some(names, 30)}: noise hides if there are any",
        ) * bool(names)
        if not self.tilt or self.tilt_ is not None:
            return gaps
        return (
            *gaps,
            f"the odds of labels were not tilted, as tilt=True asks: that needs two labels, two "
            f"columns, and at most {MOST_READINGS} numbers that are read of a row",
        )

    def _to_count_again(
        self,
        each: Sequence[Table],
        sigmas: Sequence[float],
        weights: FloatArray,
        pairs: Sequence[Clique],
    ) -> list[Clique]:
        """Return the columns in no pair that can be told to depend on label or group.

        If there is neither a pair nor such a column, all of them.
        """
        shares = weights / weights.sum()
        paired = {i for pair in pairs for i in pair.columns}
        left = [table for table in each if table.columns[0] not in paired]
        telling = [t for t in left if _dependence(t.values, shares, sigmas[t.columns[0]]) > 0]
        again = telling or ([] if pairs else left)
        return [Clique(columns=table.columns, parts=table.parts) for table in again]

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        tree, tilt = self._states, self.tilt_
        if tilt is None:
            return tree.sample(conditions, rng)
        return tilt.drawn(tree, tree, tilt.mean, conditions, rng)

    @property
    def _states(self) -> MergedTree:
        return MergedTree(tree=self.distribution_, merged=self.merged_)

    def _given(self, likelihoods: Mapping[int, FloatArray]) -> tuple[Draw, FloatArray]:
        tree, tilt = self._states, self.tilt_
        held, chances = tree.given(likelihoods)
        if tilt is None:
            return held.sample, chances
        mean, chances = tilt.given(tree, held, chances)
        return lambda c, rng: tilt.drawn(tree, held, mean, c, rng), chances

    def label_chances(self, rows: pd.DataFrame) -> FloatArray:
        """Return the chance of each label of rows, given all else of them, by what was released.

        Parameters
        ----------
        rows : DataFrame
            With the features and the sensitive columns; of anybody, for nothing of them is kept.

        Returns
        -------
        ndarray, shape (n, n_labels)
            Each row sums to 1. Labels are in the order of ``conditions_.categories[0]``.

        Raises
        ------
        ValueError
            For a column that is missing, and a value that the schema does not allow; a category
            that was not named is "other", where the column has that.

        Privacy
        -------
        Cost : none; post-processing of what was released.

        Notes
        -----
        A value that the noise hides, if any record has it, says nothing: the rest of its row does.
        """
        self._require_fitted()
        codec, (n_labels, *_) = self.codec_, self.conditions_.sizes
        given = (*codec.features, *codec.given[1:])
        # Rows are counted from the first one: an index may hold ids, and no message may.
        frame = TypedTable.of(rows, where := "table of rows").frame
        table = TypedTable.of(frame.reset_index(drop=True), where)
        if absent := [name for name in given if name not in table]:
            raise ValueError(
                f"The chances of labels are those given all features and groups, and the rows have "
                f"no column {some(absent)}. They need {some(given, 30)}."
            )
        codes = codec.encode(table, codec.features)
        ranges = by_ranges(codes, self.merged_.ranges)
        sensitive = codec.encode(table, codec.given[1:]).T
        groups = self.conditions_.code([np.zeros_like(sensitive[0]), *sensitive])
        shares = (self._known_counts() / self._known_counts().sum()).reshape(n_labels, -1)
        unknown = np.column_stack([one[ranges[:, i]] for i, one in enumerate(self.hidden_)])
        odds = label_odds(self._states, shares, codes, groups, unknown)
        return np.exp(odds if self.tilt_ is None else self.tilt_.tilted(odds, codes, groups))

    def chances(self) -> list[FloatArray]:
        """Return the chance of each state of each feature, shapes (n_conditions, states)."""
        every = self.distribution_.expected(np.ones(self.conditions_.n))
        return self.merged_.apart(every[: len(self.distribution_.tree.order)])

    def states_given(
        self,
        conditions: IntArray,
        likelihoods: Callable[[slice], Mapping[int, FloatArray]],
        at: IntArray,
        strata: IntArray,
        rng: np.random.Generator,
    ) -> IntArray:
        """Draw the states of rows of which each is given an event.

        Parameters
        ----------
        conditions : ndarray of int64, shape (n_events,)
            Combination of label and group that goes with each event.
        likelihoods : callable
            Returns of a stretch of the events, by feature, the probability of each event in each
            state, shape (events, states); those of features are independent.
        at : ndarray of int64, shape (n,)
            Which event a row is given.
        strata : ndarray of int64, shape (n,)
            See ``TreeDistribution.sample``.
        """
        n_cells = self.distribution_.n_cells + sum(map(len, self.merged_.ranges.values()))
        drawn = np.zeros((len(at), len(self.distribution_.tree.order)), dtype=np.int64)
        step = max(1, MOST_AT_ONCE // n_cells)
        for start in range(0, len(conditions), step):
            here = slice(start, start + step)
            rows = np.flatnonzero((at >= start) & (at < start + step))
            held, _ = self._states.given(likelihoods(here), conditions[here])
            drawn[rows] = held.sample(at[rows] - start, rng, strata[rows])
        return drawn

    def _arrays(self) -> dict[str, Array]:
        out = self.distribution_.arrays() | self.merged_.arrays()
        out |= {f"hidden_{i}": hidden for i, hidden in enumerate(self.hidden_)}
        if self.tilt_ is not None:
            out |= {f"tilt_{name}": array for name, array in self.tilt_.arrays().items()}
        return out

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        if arrays["parents"].ndim != 2:
            raise ValueError(
                "it was saved by an earlier version, with a forest of columns. Fit the generator "
                "again and save it, or read the folder with the version that wrote it."
            )
        self.distribution_ = TreeDistribution.restored(arrays)
        self.merged_ = MergedStates.restored(arrays)
        hidden = under(arrays, "hidden_")  # folders of earlier versions have none
        self.hidden_ = tuple(
            hidden.get(str(i), np.zeros(table.values.shape[1], dtype=bool))
            for i, table in enumerate(self.distribution_.tables[: len(arrays["parents"])])
        )
        tilt = under(arrays, "tilt_")
        self.tilt_ = LabelTilt.restored(tilt, self.merged_.ranges) if tilt else None


def _hidden(columns: Sequence[Table], sigmas: Sequence[float]) -> tuple[BoolArray, ...]:
    """Return of the states of each column whether noise hides if any record is there."""
    of = zip(columns, sigmas, strict=True)
    return tuple(
        table.values.sum(axis=0) < _SURELY * sigma * len(table.values) ** 0.5 for table, sigma in of
    )


def _above_noise(columns: Sequence[Table], sigmas: Sequence[float]) -> list[float]:
    """Return how far the count of the last state of each column stands above 0, in deviations."""
    return [
        float(table.values[:, -1].sum()) / (sigma * len(table.values) ** 0.5)
        for table, sigma in zip(columns, sigmas, strict=True)
    ]


def _joint(counts: Sequence[IntArray]) -> IntArray:
    """Return all counts as one vector."""
    return np.concatenate([count.reshape(-1) for count in counts])


def _released(
    cliques: Sequence[Clique], counts: Sequence[IntArray], per_unit: int, plan: BudgetPlan
) -> tuple[list[Table], float]:
    """Release the tables of these cliques together."""
    counter = TableCounts(
        shapes=tuple((math.prod(count.shape[:-1]), count.shape[-1]) for count in counts),
        per_unit=per_unit,
    )
    released = plan.release(counter, _joint(counts), PAIRS)
    tables = [
        Table(columns=clique.columns, parts=clique.parts, values=values.reshape(count.shape))
        for clique, values, count in zip(
            cliques, counter.apart(released.values), counts, strict=True
        )
    ]
    return tables, released.sigma


def _joined(
    each: Sequence[Table], sigmas: Sequence[float], again: Sequence[Table], other: float
) -> tuple[list[Table], list[float]]:
    """Return the tables of all columns, with the mean of two counts weighed by their noise."""
    tables, better = list(each), list(sigmas)
    for table in again:
        (i,) = table.columns
        weight = other**2 / (sigmas[i] ** 2 + other**2)
        values = weight * each[i].values + (1.0 - weight) * table.values
        tables[i], better[i] = replace(each[i], values=values), sigmas[i] * math.sqrt(weight)
    return tables, better


def _dependence(table: FloatArray, shares: FloatArray, sigma: float) -> float:
    """How far a noisy table is from one that is the same in every condition, less its noise."""
    same = np.outer(shares, np.maximum(table.sum(axis=0), 0.0))
    noise = MEAN_ABS * float(np.sqrt(sigma**2 + same).sum())
    spread = sigma * math.sqrt(table.size * (1.0 - 2.0 / math.pi))
    return float(np.abs(table - same).sum()) - noise - spread


def joint_totals(tables: list[FloatArray], sigma: float) -> tuple[FloatArray, float]:
    """Add up the records per condition from all tables, each weighed by its noise."""
    weights = np.array([1.0 / table.shape[1] for table in tables])
    sums = np.stack([table.sum(axis=1) for table in tables])
    return weights @ sums / weights.sum(), sigma / math.sqrt(weights.sum())
