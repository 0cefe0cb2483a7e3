"""What every generator shares: fit on a table under a budget, sample with exact conditions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.datasets import Schema
from evenhand.datasets.columns import kind_by_dtype
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.conditions import Conditions
from evenhand.generators.memory import require_rows
from evenhand.generators.synthesizer import ConditionalGenerator, Progress
from evenhand.generators.tables.bins import Bins, Cells
from evenhand.generators.tables.codec import ColumnCode, TableCodec
from evenhand.generators.tables.column_checks import ready
from evenhand.generators.tables.predicted_groups import groups_from_reference
from evenhand.generators.tables.records import Records, as_roles, read_records
from evenhand.generators.tables.released_schema import DELTA_SHARE, undeclared, without_unknown
from evenhand.generators.tables.released_schema import PURPOSE as SCHEMA
from evenhand.privacy import Budget, Guarantee, Ledger, Noise, Store
from evenhand.typing import Array, ArrayLike, IntArray, RandomState

BINS: Final = "counts along the numeric columns, for their bins"
SCHEMA_SHARE: Final = 0.1
BINS_SHARE: Final = 0.05


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoded:
    """The private rows as a method reads them.

    Parameters
    ----------
    codes : ndarray of int64, shape (n, n_features)
        State of each feature.
    condition : ndarray of int64, shape (n,)
        Combination of label and group of each row.
    sizes : tuple of int
        States of each feature.
    units : ndarray or None
        Whose row it is.
    per_unit : int
    """

    codes: IntArray
    condition: IntArray
    sizes: tuple[int, ...]
    units: Array | None
    per_unit: int


class Synthesizer(ConditionalGenerator):
    """A generator of tables under one claim.

    A method says how it spends the budget (``_shares``), learns (``_learn``), draws (``_draw``)
    and what of it is kept in a file (``_arrays``, ``_restore``). All else is here.

    Parameters
    ----------
    neighbors : str
        "add or remove one" (the number of records is then private) or "replace one".
    n_bins : int
        Bins into which a numeric column is cut at most. At least 2.
    noise : Noise, optional
        Source of privacy noise; exact discrete noise if not given.
    random_state : int, Generator or None
        Seeds what is drawn besides privacy noise.

    Attributes
    ----------
    guarantee_ : Guarantee
        The claim.
    ledger_ : Ledger
        What was spent on what.
    codec_ : TableCodec
        Columns, their states and dtypes.
    conditions_ : Conditions
        Label and groups.
    counts_ : ndarray of float64, shape (n_conditions,)
        Noisy number of records of each combination of label and group.
    counts_sigma_ : float
        Standard deviation of the noise on each of them.
    snr_ : SignalToNoise
        As predicted.
    notes_ : tuple of str
        What was released, and what the user must know.
    """

    codec_: TableCodec

    def __init__(
        self,
        *,
        neighbors: str = "add or remove one",
        n_bins: int = 16,
        noise: Noise | None = None,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(neighbors=neighbors, noise=noise, random_state=random_state)
        self.n_bins = n_bins

    def fit(
        self,
        frame: pd.DataFrame,
        *,
        label: str,
        sensitive: str | Sequence[str],
        budget: Budget,
        schema: Schema | None = None,
        unit: str | None = None,
        unit_name: str = "person",
        per_unit: int = 1,
        reference: pd.DataFrame | None = None,
        keep: Sequence[str] = (),
        store: Store | None = None,
        account: str = "default",
        progress: Progress | None = None,
    ) -> Self:
        """Learn from private rows.

        All that can be known to be wrong is refused before anything is charged, all columns at
        once. From the first draw of noise on what was charged stays charged.

        Parameters
        ----------
        frame : DataFrame
            Private rows. The names, the order and the dtypes of the columns are taken as public.
        label : str
            Column of the classes.
        sensitive : str or sequence of str
            Column or columns of the sensitive attribute.
        budget : Budget
            What may be spent in all.
        schema : Schema, optional
            Public kinds, categories and bounds of the columns. What it leaves out is released.
        unit : str, optional
            Column that says whose record a row is; the claim is then for each of these.
        unit_name : str
            What a unit is, in the claim.
        per_unit : int
            Rows of one unit that are read, its first ones; noise grows in proportion.
        reference : DataFrame, optional
            Public rows with the sensitive columns, from which groups that are missing in private
            rows are predicted; see ``groups_from_reference``.
        keep : sequence of str
            Columns to learn as they are although they look like identifiers, dates or numbers in
            text, see ``evenhand.datasets.inspect``; what the schema declares is not doubted.
        store, account : optional
            Where the account is kept; in memory if not given.
        progress : callable, optional
            Called with a stage, what is done and how much there is.

        Returns
        -------
        self
        """
        progress = progress or (lambda stage, done, total: None)
        rng = as_generator(self.random_state)
        roles = as_roles(label, sensitive, unit)
        neighbors = self._open(None if unit is None else "a unit column")
        filled: tuple[str, ...] = ()
        if reference is not None:
            frame, predictors = groups_from_reference(
                frame, reference, sensitive=roles.sensitive, away=[unit] if unit else []
            )
            filled = tuple(predictor.words for predictor in predictors)
        records = read_records(frame, roles, per_unit=per_unit)
        wanted = undeclared(records, schema)
        # Categories are named with a probability of failure of their own: the rest speaks at less.
        delta = budget.delta * DELTA_SHARE if wanted else 0.0
        ledger = Ledger(
            Budget(epsilon=budget.epsilon, delta=budget.delta - delta),
            noise=self._noise_source(),
            store=store,
            account=account,
            unit=unit_name if unit is not None else "record",
            neighbors=neighbors,
        )
        first = BudgetPlan(ledger=ledger, shares={SCHEMA: SCHEMA_SHARE})
        columns = ready(records, schema, first, delta, keep)
        _checks.at_least("n_bins", self.n_bins, 2)
        self._foresee(_least_states(records, schema, self.n_bins))
        plan = BudgetPlan(ledger=ledger, shares=self._all_shares(records, schema, bool(wanted)))
        plan.require_room()
        progress("columns", 0, 1)
        released = columns.release_schema(
            plan, delta
        )  # the first draw: from here on all stays charged
        if wanted:
            records = replace(
                records, frame=without_unknown(records.frame, released.schema, wanted)
            )
        codec = self._with_bins(TableCodec.of(released.schema, records.frame), records, plan)
        conditions = _conditions(roles.conditions, codec)
        encoded = _encode(records, codec, conditions)
        self.codec_, self.conditions_ = codec, conditions
        progress("columns", 1, 1)
        self._learn(encoded, plan, rng, progress)
        claim = self._table_claim(budget, ledger, schema, bool(wanted), bool(filled))
        self._close(ledger, claim, (*released.notes, *filled), released.warnings, released.doubts)
        return self

    def sample(
        self,
        n: int | None = None,
        *,
        conditions: Mapping[str, object] | pd.DataFrame | None = None,
        balance: Sequence[str] = ("label", "sensitive"),
        shares: ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> pd.DataFrame:
        """Draw rows with exact counts.

        Parameters
        ----------
        n : int, optional
            Number of rows. Not needed with a table of conditions.
        conditions : mapping or DataFrame, optional
            Values of the label and of sensitive columns that all rows have; or a table of these
            columns with one line per row that is asked for.
        balance : sequence of str
            What is spread evenly, with counts that differ by at most 1: "label", "sensitive", both
            or none. The rest is drawn as often as it is, by the noisy counts.
        shares : array of shape (n_conditions,), optional
            Share of each combination of label and group, instead of a balance; see
            ``even_rates``.
        random_state : int, Generator or None
            Seeds the rows. Drawing costs no privacy.

        Returns
        -------
        DataFrame
            Columns and dtypes of the table that was learnt, in random order; rows of a table of
            conditions stay where they are.
        """
        if n is not None:
            require_rows(n, len(self.codec_.names), lower="n, and sample several times")
        request = self._request(n=n, conditions=conditions, balance=balance, shares=shares)
        rng = as_generator(random_state)
        drawn = request.rows(rng)
        features = self._draw(drawn, rng)
        parts = self.conditions_.parts(drawn)
        place = {name: i for i, name in enumerate(self.conditions_.names)}
        others = iter(range(features.shape[1]))
        codes = [
            parts[place[name]] if name in place else features[:, next(others)]
            for name in self.codec_.names
        ]
        made = self.codec_.decode(np.stack(codes, axis=1), rng)
        return made if request.index is None else made.set_index(request.index)

    def states(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the states of the features, one row per combination of label and group.

        Shape (n, n_features), columns as ``features_``; what ``sample`` decodes.
        """
        self._require_fitted()
        return self._draw(_checks.codes("conditions", conditions, self.conditions_.n), rng)

    # What a method adds

    @abstractmethod
    def _learn(
        self, data: Encoded, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        """Learn, and set ``counts_``, ``counts_sigma_`` and ``snr_``."""

    @abstractmethod
    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the states of the features, one row per condition."""

    def _foresee(self, n_states: int) -> None:
        """Stop before anything is spent if the run cannot end, as by a wrong argument.

        ``n_states`` is a lower bound of the states of all columns.
        """

    # What is the same for all

    @property
    def features_(self) -> tuple[str, ...]:
        """Names of the columns other than label and sensitive ones, in the table's order."""
        return tuple(n for n in self.codec_.names if n not in self.conditions_.names)

    def _shape(self) -> dict[str, Any]:
        return {"codec": self.codec_.to_dict(), "conditions": list(self.conditions_.names)}

    def _restore_shape(self, head: Mapping[str, Any]) -> None:
        self.codec_ = TableCodec.from_dict(head["codec"])
        self.conditions_ = _conditions(head["conditions"], self.codec_)

    def _all_shares(self, records: Records, schema: Schema | None, buys: bool) -> dict[str, float]:
        """Return the public plan: what is not released leaves its part to the method."""
        first: dict[str, float] = {SCHEMA: SCHEMA_SHARE} if buys else {}
        declared = {} if schema is None else {c.name: c.kind for c in schema.columns}
        conditions = records.roles.conditions
        numeric = [
            name
            for name in records.frame.columns
            if name not in conditions
            and (declared.get(name) or kind_by_dtype(records.frame[name])) == "numeric"
        ]
        if numeric:
            first[BINS] = BINS_SHARE
        left = 1.0 - sum(first.values())
        return first | {purpose: left * part for purpose, part in self._shares().items()}

    def _with_bins(self, codec: TableCodec, records: Records, plan: BudgetPlan) -> TableCodec:
        """Join the cells of numeric columns by noisy counts."""
        numeric = [c for c in codec.columns if c.bins is not None]
        if not numeric:
            return codec
        widths = tuple((1, len(_cells(c)) + c.has_missing) for c in numeric)
        counter = TableCounts(shapes=widths, per_unit=records.per_unit)
        cells = [c.encode_cells(records.frame[c.name], "private table") for c in numeric]
        released = plan.release(counter, counter.total([(0 * c, c) for c in cells]), BINS)
        bins = {}
        for column, noisy in zip(numeric, counter.apart(released.values), strict=True):
            fine = _cells(column)
            bins[column.name] = Bins.from_noisy(
                fine, noisy[0, : len(fine)], sigma=released.sigma, n_bins=self.n_bins
            )
        return codec.with_bins(bins)

    def _table_claim(
        self,
        budget: Budget,
        ledger: Ledger,
        schema: Schema | None,
        released: bool,
        predicted: bool,
    ) -> Guarantee:
        public = ["the names, the order and the dtypes of the columns"]
        if schema is not None:
            public.append("the declared schema")
        if predicted:
            public.append("the reference rows from which missing groups are predicted")
        claim = self._claim(budget, ledger, public)
        if not released:
            return claim
        return replace(
            claim,
            delta=budget.delta,
            mu_squared=None,
            accounting=f"{claim.accounting}, with {DELTA_SHARE:.0%} of delta for naming categories",
        )


def _least_states(records: Records, schema: Schema | None, n_bins: int) -> int:
    """Return how many states all columns have at least, as far as it is public."""
    known = {} if schema is None else {c.name: c for c in schema.columns}
    return sum(
        max(2, len(known[name].categories) if name in known else 0)
        if name in records.roles.conditions
        or (known[name].kind if name in known else kind_by_dtype(records.frame[name])) != "numeric"
        else n_bins
        for name in records.frame.columns
    )


def _conditions(names: Sequence[str], codec: TableCodec) -> Conditions:
    return Conditions(
        names=tuple(names),
        categories=tuple(codec[name].schema.categories for name in names),
    )


def _encode(records: Records, codec: TableCodec, conditions: Conditions) -> Encoded:
    names = [name for name in codec.names if name not in conditions.names]
    columns = [codec[name] for name in names]
    where = "private table"
    states = [c.encode(records.frame[c.name], where) for c in columns]
    combined = conditions.code(
        [codec[name].encode(records.frame[name], where) for name in conditions.names]
    )
    return Encoded(
        codes=np.stack(states, axis=1),
        condition=combined,
        sizes=tuple(c.n_states for c in columns),
        units=records.units,
        per_unit=records.per_unit,
    )


def _cells(column: ColumnCode) -> Cells:
    assert column.bins is not None
    return column.bins.cells
