"""What every generator of tables shares: it is fitted to a frame, and draws frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand.datasets import Schema
from evenhand.generators.payload import Progress
from evenhand.generators.synthesizer import Synthesizer
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.evaluation import TableEvaluation, evaluate_rows
from evenhand.generators.tables.predicted_groups import groups_from_reference
from evenhand.generators.tables.private_table import PrivateTable
from evenhand.generators.tables.records import as_roles, read_records
from evenhand.privacy import Budget, Ledger
from evenhand.privacy.ledger_store import Store
from evenhand.typing import IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class TableSynthesizer(Synthesizer):
    """A generator of tables under one claim; see ``Synthesizer``.

    ``_learn`` is given an ``EncodedTable``, ``_draw`` returns the states of the features, one row
    per condition, and ``_foresee`` is given ``KnownOfTable``.

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
    """

    payload: ClassVar[str] = "tables"
    codec_type: ClassVar[type[TableCodec]] = TableCodec

    codec_: TableCodec = field(init=False)

    n_bins: int = 16

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
            Public kinds, categories and bounds of the columns. What it leaves out is released from
            the budget.
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
        frame: pd.DataFrame,
        *,
        label: str,
        sensitive: str | Sequence[str],
        schema: Schema | None = None,
        unit: str | None = None,
        per_unit: int = 1,
        reference: pd.DataFrame | None = None,
        keep: Sequence[str] = (),
        keep_rare: bool = False,
    ) -> PrivateTable:
        """Return the private rows, read and checked, for ``fit_within``; arguments as for ``fit``.

        Nothing is released. With ``keep_rare`` text columns pass of which no category can be named.
        """
        roles = as_roles(label, sensitive, unit)
        self._open(None if unit is None else "a unit column")
        filled: tuple[str, ...] = ()
        if reference is not None:
            frame, predictors = groups_from_reference(
                frame, reference, sensitive=roles.sensitive, away=[unit] if unit else []
            )
            filled = tuple(predictor.words for predictor in predictors)
        return PrivateTable(
            records=read_records(frame, roles, per_unit=per_unit),
            schema=schema,
            keep=keep,
            keep_rare=keep_rare,
            n_bins=self.n_bins,
            notes=filled,
        )

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
