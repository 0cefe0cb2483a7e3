"""One call that measures synthetic rows: balance, utility, fairness and fidelity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand import _values
from evenhand._checks import together
from evenhand.datasets import Schema
from evenhand.datasets.columns import Column, TypedTable, the
from evenhand.datasets.schema import ColumnSchema
from evenhand.fairness.groups import encode_groups
from evenhand.generators.balance import Balance, balance_of
from evenhand.generators.evaluation import Evaluation
from evenhand.generators.tables.fidelity import Fidelity, fidelity
from evenhand.generators.tables.utility import MODELS, utility
from evenhand.typing import ArrayLike

if TYPE_CHECKING:
    from evenhand.generators.tables.synthesizer import TableSynthesizer


@dataclass(frozen=True, kw_only=True, eq=False)
class TableEvaluation(Evaluation):
    """What was measured of synthetic rows, beside what ``Evaluation`` holds."""

    balance: Balance
    """Of the synthetic rows: all of them have groups."""
    label: str
    sensitive: tuple[str, ...]
    use_sensitive: bool
    """Whether the models saw the sensitive columns."""
    fidelity: Fidelity
    """Of rows drawn as they are, without balance, against the real test rows."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN stays NaN."""
        return {
            **super().to_dict(),
            "label": self.label,
            "sensitive": list(self.sensitive),
            "use_sensitive": self.use_sensitive,
            "fidelity": self.fidelity.to_dict(),
        }


def evaluate_rows(
    generator: TableSynthesizer,
    synthetic: pd.DataFrame,
    test: pd.DataFrame,
    *,
    train: pd.DataFrame | None = None,
    models: Sequence[str] = tuple(MODELS),
    use_sensitive: bool = True,
    random_state: int = 0,
    units: ArrayLike | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> TableEvaluation:
    """Measure synthetic rows on real ones that the generator has not seen.

    Parameters
    ----------
    generator : TableSynthesizer
        Fitted; it draws as many rows as ``test`` has without balance, to compare columns with.
    synthetic : DataFrame
        The rows that are to be used, as ``generator.sample`` gave them.
    test : DataFrame
        Real rows with the columns that were learnt; others are passed over.
    train : DataFrame, optional
        Real rows on which the same models are trained, to compare with.
    models : sequence of str
        Names of ``MODELS``.
    use_sensitive : bool
        Whether the models see the sensitive columns; see ``utility``.
    units : array-like of ids, shape (n_test,), optional
        Whose record a test row is; see ``fairness_report``.
    random_state : int
        Seeds models, draws and bootstrap.

    Privacy
    -------
    Reads real rows without noise: not covered. Publishing the numbers says something about the
    people in ``test`` and ``train``.
    """
    label, *sensitive = generator.conditions_.names
    schema: Schema = generator.codec_.schema
    # A table without rows is refused below, by its name.
    plain = generator.sample_learnt(max(1, len(test)), random_state=random_state)
    names = list(plain.columns)
    plain = schema.as_measured(plain)
    measured = partial(_measured, names=names, schema=schema, conditions=(label, *sensitive))
    synthetic = measured(synthetic, where="table of synthetic rows")
    test = measured(test, where="table of test rows")
    train = None if train is None else measured(train, where="table of train rows")
    return TableEvaluation(
        label=label,
        sensitive=tuple(sensitive),
        n_synthetic=len(synthetic),
        n_test=len(test),
        balance=balance_of(synthetic, label=label, sensitive=sensitive, groups=_groups(generator)),
        real_balance=balance_of(test, label=label, sensitive=sensitive),
        utility=utility(
            synthetic,
            test,
            label=label,
            sensitive=sensitive,
            train=train,
            models=models,
            use_sensitive=use_sensitive,
            schema=schema,
            random_state=random_state,
            units=units,
            progress=progress,
        ),
        use_sensitive=use_sensitive,
        fidelity=fidelity(test, plain, schema=schema),
    )


def _measured(
    rows: pd.DataFrame,
    *,
    names: Sequence[str],
    schema: Schema,
    conditions: Sequence[str],
    where: str,
) -> pd.DataFrame:
    """Return the columns that were learnt, as they are measured, or name those that are absent."""
    table = TypedTable.of(rows, where)
    table.require(names, "which the generator has learnt")
    require_measurable(table, [c for c in schema.columns if c.name in names], conditions)
    return schema.as_measured(table.frame[list(names)])


def columns_like(private: TypedTable, schema: Schema | None) -> tuple[ColumnSchema, ...]:
    """Return what rows to measure on must hold where private ones hold numbers or dates."""
    known = {} if schema is None else {column.name: column for column in schema.columns}
    return tuple(
        known.get(c.name) or ColumnSchema(name=c.name, kind="numeric", date_unit=c.date_unit)
        for c in private.columns
        if c.name in known or c.is_number or c.is_date
    )


def require_measurable(
    rows: TypedTable, columns: Iterable[ColumnSchema], conditions: Sequence[str]
) -> None:
    """Raise ValueError for rows on which models cannot be measured, with all their columns at once.

    Label and groups (``conditions``) must be there, numbers be numbers, and finite.
    """
    if not len(rows):
        raise ValueError(f"{the(rows.where, 'The')} has no rows, so there is nothing to measure.")
    numeric = [c for c in columns if c.kind == "numeric" and c.name in rows]
    checks: list[Callable[[], object]] = [
        *(
            partial(rows[name].refuse_missing, "label or group", "Leave these rows out.")
            for name in conditions
        ),
        *(partial(_require_finite, c, rows[c.name]) for c in numeric if c.name not in conditions),
    ]
    together(checks)


def _require_finite(declared: ColumnSchema, column: Column) -> None:
    endless = np.flatnonzero(np.isinf(declared.numbers(column)))
    if endless.size:
        raise ValueError(
            f"Column {column.name!r} of {the(column.where)} holds an infinite number in "
            f"{_values.rows(endless)}. Make it missing, or finite."
        )


def _groups(generator: TableSynthesizer) -> tuple[str, ...]:
    """Names of all groups that the generator knows, as tables of rows name them."""
    names, categories = generator.conditions_.names[1:], generator.conditions_.categories[1:]
    every = pd.DataFrame(list(product(*categories)), columns=list(names))
    return encode_groups(every if len(names) > 1 else every[names[0]]).names
