"""What every generator of tables shares: it is fitted to a frame, and draws frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable
from evenhand.datasets.parquet import ParquetRows
from evenhand.datasets.schema import HOW_TO_DECLARE
from evenhand.generators.conditions import BALANCES, require_conditions, require_lines
from evenhand.generators.payload import Progress
from evenhand.generators.registry import generators
from evenhand.generators.rounding import Rounding
from evenhand.generators.synthesizer import Synthesizer
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.constraints import Constraint
from evenhand.generators.tables.evaluation import TableEvaluation, evaluate_rows
from evenhand.generators.tables.made_columns import MadeColumn, made_columns
from evenhand.generators.tables.predicted_groups import GroupsFromReference, groups_from_reference
from evenhand.generators.tables.private_table import PrivateTable
from evenhand.generators.tables.records import StreamedRecords, as_roles, read_records
from evenhand.generators.tables.wanted_rows import Draw, Stock, Wanted
from evenhand.privacy import Budget, Ledger
from evenhand.privacy.ledger_store import Store
from evenhand.typing import ArrayLike, FloatArray, IntArray, RandomState


@dataclass(eq=False, repr=False, kw_only=True)
class TableSynthesizer(Synthesizer):
    """A generator of tables under one claim; see ``Synthesizer``.

    ``_learn`` is given an ``EncodedTable``, ``_draw`` returns the states of the features, one row
    per condition, and ``_foresee`` is given ``KnownOfTable``.

    Parameters
    ----------
    neighbors, noise, random_state
        See ``Synthesizer``.
    n_bins : int
        Bins into which a numeric column is cut at most. At least 2.
    """

    payload: ClassVar[str] = "tables"
    fewer_numbers: ClassVar[str] = (
        "learn fewer columns, in fewer bins; a schema that declares what is public of the columns "
        "leaves them more of the budget"
    )
    codec_type: ClassVar[type[TableCodec]] = TableCodec
    reads_streams: ClassVar[bool] = False
    """Whether it asks counts of the rows alone (``CountedRows``): they need not be in memory."""

    codec_: TableCodec = field(init=False)

    n_bins: int = 16

    def fit(
        self,
        frame: pd.DataFrame | ParquetRows,
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
        frame : DataFrame or ParquetRows
            Private rows. The names, the order and the dtypes of the columns are taken as public.
            Rows of files are read in batches, by generators that ask counts of them alone.
        label : str
            Column of the classes.
        sensitive : str or sequence of str
            Column or columns of the sensitive attribute.
        budget : Budget
            What may be spent in all.
        schema : Schema, optional
            Public kinds, categories and bounds of the columns. What it leaves out is released from
            the budget. Of columns that it says are made anew no value is learnt.
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
        payload = self.read(
            frame,
            label=label,
            sensitive=sensitive,
            schema=schema,
            unit=unit,
            per_unit=per_unit,
            reference=reference,
            keep=keep,
        )
        return self._fit(
            payload,
            budget=budget,
            neighbors=self.neighbors,
            unit="record" if unit is None else unit_name,
            store=store,
            account=account,
            progress=progress,
        )

    def read(
        self,
        frame: pd.DataFrame | ParquetRows,
        *,
        label: str,
        sensitive: str | Sequence[str],
        schema: Schema | None = None,
        unit: str | None = None,
        per_unit: int = 1,
        reference: pd.DataFrame | None = None,
        keep: Sequence[str] = (),
        keep_rare: bool = False,
        public_rows: TypedTable | None = None,
    ) -> PrivateTable:
        """Return the private rows, read and checked, for ``fit_within``; arguments as for ``fit``.

        Nothing is released. With ``keep_rare`` text columns pass of which no category can be named.
        By ``public_rows`` columns of numbers, which ``schema`` declares, are cut to bins at no
        cost.
        """
        roles = as_roles(label, sensitive, unit)
        unit, keep = roles.unit, _checks.listed_names("keep", keep)
        if schema is not None:
            _checks.of_type("schema", schema, Schema, HOW_TO_DECLARE)
        self._open(None if unit is None else "a unit column")
        _checks.per_unit(per_unit, unit is not None)
        if isinstance(frame, ParquetRows):
            self._refuse_stream(unit, reference)
            records = StreamedRecords.of(frame, roles, schema)
            return PrivateTable(
                records=records,
                schema=None if schema is None else schema.only_learnt,
                keep=keep,
                made=records.made,
                keep_rare=keep_rare,
                n_bins=self.n_bins,
                public_rows=public_rows,
            )
        predictors: tuple[GroupsFromReference, ...] = ()
        made: tuple[MadeColumn, ...] = ()
        own: Iterable[object] = frame.columns if isinstance(frame, pd.DataFrame) else ()
        away = {str(name) for name in own if not isinstance(name, Integral)} | {unit}
        if schema is not None and (schema.made or schema.shortened):
            given = TypedTable.of(frame, "private table")
            made = made_columns(given, schema, roles.conditions, unit)
            units = None if unit is None else given.frame.get(unit)
            frame = schema.learnt_of(given.frame, "private table")
            frame = frame if units is None else frame.assign(**{str(unit): units})
            if reference is not None:
                known = TypedTable.of(reference, "reference table").frame
                reference = schema.learnt_of(known, "reference table")
            schema = schema.only_learnt
        if reference is not None:
            frame, predictors = groups_from_reference(
                frame, reference, sensitive=roles.sensitive, away=[unit] if unit else []
            )
        return PrivateTable(
            records=read_records(frame, roles, per_unit=per_unit),
            schema=schema,
            keep=keep,
            made=made,
            keep_rare=keep_rare,
            n_bins=self.n_bins,
            predictors=predictors,
            public_rows=public_rows,
            numbered=tuple(str(name) for name in own if str(name) not in away),
        )

    def _refuse_stream(self, unit: str | None, reference: pd.DataFrame | None) -> None:
        """Refuse what needs the rows in memory."""
        if not self.reads_streams:
            kinds = generators("tables", offered=True).values()
            able = [kind.__name__ for kind in kinds if getattr(kind, "reads_streams", False)]
            raise TypeError(
                f"{type(self).__name__} learns from rows in memory, got ParquetRows, which "
                f"stream. Those that read a stream: {', '.join(able)}. Or read the rows with "
                f"pd.read_parquet."
            )
        if unit is not None:
            raise ValueError(
                f"Of a stream unit={unit!r} cannot be read: which rows of a unit are its first "
                f"ones, and count, only the whole table tells. Write one row for each unit, and "
                f"leave unit out: a record is a unit then. Or read the rows into memory."
            )
        if reference is not None:
            raise ValueError(
                "Groups that are missing in a stream are not predicted. Leave reference out, and "
                "write the rows with their groups, or read them into memory."
            )

    def check(self, frame: pd.DataFrame | ParquetRows, *, budget: Budget, **columns: Any) -> None:
        """Raise what ``fit`` would raise before its first draw; nothing is charged or released.

        Arguments as for ``fit``, less the names of units and accounts.
        """
        self._could_learn(self.read(frame, **columns), budget, self.neighbors)

    def fit_within(
        self,
        payload: PrivateTable,
        ledger: Ledger,
        *,
        delta: float,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from rows that were read, as a part of a fit whose ledger pays.

        Parameters
        ----------
        payload : PrivateTable
            From ``read``.
        ledger : Ledger
            Its budget is what may be spent, all of it; unit and neighbors are those of the rows.
        delta : float
            What the whole fit promises, of which the ledger speaks at what ``payload.delta_aside``
            leaves.

        Privacy
        -------
        Cost : the budget of ``ledger``, and of delta what the payload sets aside.
        """
        self._learn_under(
            payload, ledger, Budget(epsilon=ledger.budget.epsilon, delta=delta), progress
        )
        return self

    def sample(
        self,
        n: int | None = None,
        *,
        conditions: Mapping[str, object] | pd.DataFrame | None = None,
        balance: Sequence[str] = ("label", "sensitive"),
        shares: ArrayLike | None = None,
        constraints: Sequence[Constraint] = (),
        random_state: RandomState = None,
    ) -> pd.DataFrame:
        """Draw rows with exact counts; drawing costs no privacy.

        Given conditions on other columns than label and groups, or constraints, rows are those of
        the learnt distribution that are as asked for: within label and group, and in the shares of
        label and group as far as these are not balanced.

        Parameters
        ----------
        n : int, optional
            Number of rows. Not needed with a table of conditions.
        conditions : mapping or DataFrame, optional
            Values of columns that all rows have; or a table of these columns with one line per
            row that is asked for. Of a column of numbers or dates one of these, or a tuple
            ``(low, high)`` for all from low to high. None and NaN stand for a missing value.
        balance : sequence of str
            What is spread evenly, with counts that differ by at most 1: "label", "sensitive", both
            or none. The rest is drawn as often as it is, by the noisy counts.
        shares : array of shape (n_conditions,), optional
            Share of each combination of label and group, instead of a balance; see
            ``even_rates``.
        constraints : sequence of Constraint
            What every row keeps, by public knowledge; rows that do not are drawn again.
        random_state : int, Generator or None
            Seeds the rows.

        Returns
        -------
        DataFrame
            In random order; those of a table of conditions in its order. With the columns and
            dtypes that were learnt.

        Raises
        ------
        ValueError
            For what is never drawn, or so rarely that a bounded number of draws holds too few.
        """
        rows = self._rows(
            n,
            conditions=conditions,
            balance=balance,
            shares=shares,
            constraints=constraints,
            random_state=random_state,
        )
        return self.codec_.complete(rows)

    def sample_learnt(self, n: int, *, random_state: RandomState = None) -> pd.DataFrame:
        """Draw rows without balance, of the columns that are learnt: what is measured of rows.

        Columns that are made anew are left out, and so is the end of their patterns.
        """
        return self._rows(n, balance=(), random_state=random_state)

    def _rows(
        self,
        n: int | None,
        *,
        conditions: Mapping[str, object] | pd.DataFrame | None = None,
        constraints: Sequence[Constraint] = (),
        random_state: RandomState,
        **how: Any,
    ) -> pd.DataFrame:
        """Draw rows of the columns that are learnt; arguments as for ``sample``."""
        self._require_fitted()
        rng = as_generator(random_state)
        how = {"shares": None, **how}
        require_conditions(conditions)
        if not isinstance(conditions, pd.DataFrame):
            asked = {str(name): value for name, value in (conditions or {}).items()}
            wanted = Wanted.of(self.codec_, asked, constraints)
            roles = {name: asked[name] for name in asked if name in self.conditions_.names}
            how["rounding"] = Rounding(rng=rng)
            return self._sample(wanted, rng, n=n, conditions=roles or None, **how)
        require_lines(n, conditions)
        # Over all lines together, as each may be the only one of its values.
        how["rounding"] = Rounding(rng=rng, n_lines=len(conditions.drop_duplicates()))
        table = conditions.reset_index(drop=True).rename(columns=str)
        given = [name for name in table if name in self.conditions_.names]
        others = [name for name in table if name not in given]
        # Lines that ask the same of the features are drawn together.
        alike = (
            table.groupby(others, dropna=False, sort=False).ngroup().to_numpy()
            if others
            else np.zeros(len(table), dtype=np.int64)
        )
        parts, places = [], [np.flatnonzero(alike == k) for k in range(alike.max() + 1)]
        for lines in places:
            values = {str(name): table[name].iloc[lines[0]] for name in others}
            wanted = Wanted.of(self.codec_, values, constraints)
            n, left = (None, table.loc[lines, given]) if given else (len(lines), None)
            parts.append(self._sample(wanted, rng, n=n, conditions=left, **how))
        order = np.argsort(np.concatenate(places))
        return pd.concat(parts, ignore_index=True).iloc[order].set_axis(conditions.index)

    def _sample(self, wanted: Wanted, rng: np.random.Generator, **asked: Any) -> pd.DataFrame:
        """Draw rows that are as wanted; ``asked`` is of label and group alone."""
        if not wanted:
            drawn: pd.DataFrame = self._drawn(rng, **asked)
            return drawn
        draw, chances = self._given(wanted.likelihoods)
        stock = Stock(
            wanted=wanted,
            draw=draw or self._draw,
            likelihoods={} if draw else wanted.likelihoods,
            rng=rng,
        )
        request = self._request(**asked, chances=chances)
        even = {asked["balance"]} if isinstance(asked["balance"], str) else set(asked["balance"])
        if stock.rejects and asked["shares"] is None and even != set(BALANCES):
            # A first lot tells the shares of label and group among the rows that are kept.
            stock.add_lot(request)
            request = self._request(**asked, chances=chances * stock.chances)
        rows = stock.take(request.rows(rng))
        seen = self._known_counts() * chances * stock.chances
        thin = np.flatnonzero((request.counts > 0) & (seen < 2.0 * self.counts_sigma_))
        if request.counts[thin].sum() > 0.1 * len(rows):
            named = (f"{seen[c]:.0f} with {self.conditions_.words(int(c))}" for c in thin[:5])
            warnings.warn(
                f"Few private records have {wanted.words}: by the noisy counts (standard "
                f"deviation {self.counts_sigma_:.0f}) {'; '.join(named)}"
                f"{'; ...' if len(thin) > 5 else ''}. These rows may be noise alone.",
                stacklevel=3,
            )
        return rows

    def _given(self, likelihoods: Mapping[int, FloatArray]) -> tuple[Draw | None, FloatArray]:
        """Return what draws features given an event (see ``Wanted``), and its chance by condition.

        None where a method cannot do better than to draw again what does not fit.
        """
        return None, np.ones(self.conditions_.n)

    def states(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw the states of the features, one row per combination of label and group.

        Shape (n, n_features), columns as ``codec_.features``; what ``sample`` decodes.
        """
        self._require_fitted()
        states: IntArray = self._draw(
            _checks.codes("conditions", conditions, self.conditions_.n), rng
        )
        return states

    def _evaluate(self, synthetic: Any, test: Any, **options: Any) -> TableEvaluation:
        return evaluate_rows(self, synthetic, test, **options)
