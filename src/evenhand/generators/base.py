"""What every generator shares: fit on a table under a budget, sample with exact conditions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column, kind_of
from evenhand.generators import saved
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.bought import (
    DELTA_SHARE,
    buy_schema,
    to_buy,
    without_unknown,
)
from evenhand.generators.bought import PURPOSE as SCHEMA
from evenhand.generators.cells import Bins, Cells
from evenhand.generators.codec import ColumnCode, Conditions, TableCodec
from evenhand.generators.plan import Purse, SignalToNoise
from evenhand.generators.records import Records, as_roles, read_records
from evenhand.generators.request import Request
from evenhand.privacy import Budget, Guarantee, Ledger, Noise, Store, delta_warning
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray, RandomState

BINS: Final = "counts along the numeric columns, for their bins"
SCHEMA_SHARE: Final = 0.1
BINS_SHARE: Final = 0.05

NOT_COVERED: Final = (
    "a choice of settings or of a generator made by looking at private data",
    "measurements on private or test rows",
)

Progress = Callable[[str, int, int], None]


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


class Synthesizer(ABC):
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
        What was bought, and what the user must know.
    """

    method: ClassVar[str]

    guarantee_: Guarantee
    ledger_: Any
    codec_: TableCodec
    conditions_: Conditions
    counts_: FloatArray
    counts_sigma_: float
    snr_: SignalToNoise
    notes_: tuple[str, ...]

    def __init__(
        self,
        *,
        neighbors: str = "add or remove one",
        n_bins: int = 16,
        noise: Noise | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.neighbors = neighbors
        self.n_bins = n_bins
        self.noise = noise
        self.random_state = random_state

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
        store: Store | None = None,
        account: str = "default",
        progress: Progress | None = None,
    ) -> Self:
        """Learn from private rows.

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
            Public kinds, categories and bounds of the columns. What it leaves out is bought.
        unit : str, optional
            Column that says whose record a row is; the claim is then for each of these.
        unit_name : str
            What a unit is, in the claim.
        per_unit : int
            Rows of one unit that are read, its first ones; noise grows in proportion.
        store, account : optional
            Where the account is kept; in memory if not given.
        progress : callable, optional
            Called with a stage, what is done and how much there is.

        Returns
        -------
        self
        """
        tell = progress or (lambda stage, done, total: None)
        rng = as_generator(self.random_state)
        roles = as_roles(label, sensitive, unit)
        neighbors = self._neighbors(unit)
        records = read_records(frame, roles, per_unit=per_unit)
        wanted = to_buy(records, schema)
        # Categories are named with a chance of failure of their own: the rest speaks at less.
        delta = budget.delta * DELTA_SHARE if wanted else 0.0
        ledger = Ledger(
            Budget(epsilon=budget.epsilon, delta=budget.delta - delta),
            noise=self.noise,
            store=store,
            account=account,
            unit=unit_name if unit is not None else "record",
            neighbors=neighbors,
        )
        purse = Purse(ledger=ledger, shares=self._all_shares(records, schema, bool(wanted)))
        tell("columns", 0, 1)
        known, notes = buy_schema(records, schema, purse, delta)
        if wanted:
            records = replace(records, frame=without_unknown(records.frame, known, wanted))
        codec = TableCodec.of(known, records.frame)
        codec.encode(records.frame)  # what the schema does not allow is found before it costs
        codec = self._with_bins(codec, records, purse)
        conditions = Conditions(
            names=roles.conditions,
            categories=tuple(codec[name].schema.categories for name in roles.conditions),
        )
        encoded = _encode(records, codec, conditions)
        self.codec_, self.conditions_ = codec, conditions
        tell("columns", 1, 1)
        self._learn(encoded, purse, rng, tell)
        self.ledger_ = ledger
        self.guarantee_ = self._restate(self._claim(budget, ledger, schema, bool(wanted)))
        told = [*notes, *([self.snr_.warning] if self.snr_.warning else []), *self._thin()]
        self.notes_ = tuple(told)
        for words in told[len(notes) :]:
            warnings.warn(words, UserWarning, stacklevel=2)
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
        self._require_fitted()
        rng = as_generator(random_state)
        request = Request.of(
            self.conditions_,
            self._known_counts(),
            n=n,
            conditions=conditions,
            balance=balance,
            shares=shares,
        )
        self._refuse_unseen(request)
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

    def save(self, path: str | Path) -> Path:
        """Write a new folder of JSON and arrays; no code is in it."""
        self._require_fitted()
        return saved.save(self, Path(path))

    @property
    def shares_(self) -> pd.Series[float]:
        """Share of each combination of label and group, by the noisy counts."""
        known = self._known_counts()
        names = [self.conditions_.words(c) for c in range(self.conditions_.n)]
        return pd.Series(known / known.sum(), index=names, name="share")

    # What a method adds

    @abstractmethod
    def _shares(self) -> Mapping[str, float]:
        """Purposes of the method with their parts; the parts sum to 1."""

    @abstractmethod
    def _learn(self, data: Encoded, purse: Purse, rng: np.random.Generator, tell: Progress) -> None:
        """Learn, and set ``counts_``, ``counts_sigma_`` and ``snr_``."""

    @abstractmethod
    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the states of the features, one row per condition."""

    @abstractmethod
    def _arrays(self) -> dict[str, Array]:
        """Return what is learnt, as arrays by name."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what ``_arrays`` gave; ``codec_`` and ``conditions_`` are set."""

    def _restate(self, claim: Guarantee) -> Guarantee:
        """Return the claim of this method: the ledger's, unless something takes it back."""
        return claim

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Arguments of the constructor as plain values, less noise and seed."""

    # What is the same for all

    @property
    def features_(self) -> tuple[str, ...]:
        """Names of the columns other than label and sensitive ones, in the table's order."""
        return tuple(n for n in self.codec_.names if n not in self.conditions_.names)

    def _neighbors(self, unit: str | None) -> str:
        allowed = ("add or remove one", "replace one")
        named = _checks.one_of("neighbors", self.neighbors, allowed)
        if unit is not None and named == "replace one":
            raise ValueError(
                "With a unit column the claim is for adding or removing one unit; replacing one "
                "is two such steps. Leave neighbors at 'add or remove one'."
            )
        return named

    def _all_shares(self, records: Records, schema: Schema | None, buys: bool) -> dict[str, float]:
        """Return the public plan: what is not bought leaves its part to the method."""
        first: dict[str, float] = {SCHEMA: SCHEMA_SHARE} if buys else {}
        declared = {} if schema is None else {c.name: c.kind for c in schema.columns}
        conditions = records.roles.conditions
        numeric = [
            name
            for name in records.frame.columns
            if name not in conditions
            and (declared.get(name) or _kind_by_dtype(records.frame[name])) == "numeric"
        ]
        if numeric:
            first[BINS] = BINS_SHARE
        left = 1.0 - sum(first.values())
        return first | {purpose: left * part for purpose, part in self._shares().items()}

    def _with_bins(self, codec: TableCodec, records: Records, purse: Purse) -> TableCodec:
        """Join the cells of numeric columns by noisy counts."""
        _checks.at_least("n_bins", self.n_bins, 2)
        numeric = [c for c in codec.columns if c.bins is not None]
        if not numeric:
            return codec
        widths = tuple((1, len(_cells(c)) + c.has_missing) for c in numeric)
        counter = TableCounts(shapes=widths, per_unit=records.per_unit)
        cells = [c.encode_cells(records.frame[c.name], "private table") for c in numeric]
        released = purse.release(counter, counter.total([(0 * c, c) for c in cells]), BINS)
        bins = {}
        for column, noisy in zip(numeric, counter.apart(released.values), strict=True):
            fine = _cells(column)
            bins[column.name] = Bins.from_noisy(
                fine, noisy[0, : len(fine)], sigma=released.sigma, n_bins=self.n_bins
            )
        return codec.with_bins(bins)

    def _claim(
        self, budget: Budget, ledger: Ledger, schema: Schema | None, bought: bool
    ) -> Guarantee:
        public = ["the names, the order and the dtypes of the columns"]
        if schema is not None:
            public.append("the declared schema")
        if ledger.neighbors == "replace one":
            public.append("the number of records")
        # The number of records is private under add or remove: the warning reads the noisy one.
        n = max(1, round(float(self.counts_.sum())))
        claim = ledger.guarantee(
            public=tuple(public),
            not_covered=NOT_COVERED,
            warnings=tuple(filter(None, (delta_warning(budget.delta, n),))),
        )
        if not bought:
            return claim
        return replace(
            claim,
            delta=budget.delta,
            mu_squared=None,
            accounting=f"{claim.accounting}, with {DELTA_SHARE:.0%} of delta for naming categories",
        )

    def _known_counts(self) -> FloatArray:
        """Noisy counts without what noise alone put below zero."""
        return np.maximum(self.counts_, 1e-9)

    def _unseen(self) -> list[int]:
        """Return the combinations that cannot be told from none at all."""
        return np.flatnonzero(self.counts_ < 2.0 * self.counts_sigma_).tolist()

    def _thin(self) -> list[str]:
        unseen = self._unseen()
        if not unseen:
            return []
        named = "; ".join(self.conditions_.words(c) for c in unseen[:5])
        return [
            f"{len(unseen)} of {self.conditions_.n} combinations of label and group cannot be told "
            f"from empty ones ({named}): rows of theirs cannot be drawn"
        ]

    def _refuse_unseen(self, request: Request) -> None:
        for c in self._unseen():
            if request.chances[c] > 0 and not request.as_it_is:
                raise ValueError(
                    f"No record of {self.conditions_.words(c)} can be told from the noise (noisy "
                    f"count {self.counts_[c]:.0f}, noise {self.counts_sigma_:.0f}), so there is "
                    f"nothing to draw its rows from. Raise epsilon, join this group with another, "
                    f"or ask for other rows with conditions= or balance=()."
                )

    def _require_fitted(self) -> None:
        if not hasattr(self, "guarantee_"):
            raise ValueError(f"This {type(self).__name__} is not fitted. Call fit first.")

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({said})"


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


def _kind_by_dtype(column: Column) -> str:
    return kind_of(column, "private table") or "categorical"
