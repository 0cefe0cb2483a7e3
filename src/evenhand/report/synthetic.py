"""The report on a generator of tables: what it says as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import pandas as pd

from evenhand.generators.tables.evaluation import TableEvaluation
from evenhand.generators.tables.fidelity import PairFidelity, worst_pairs
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.report.columns import ColumnView, column_views
from evenhand.report.generated import GeneratorReport, fields_of
from evenhand.report.page import Section, render, write_whole

ROWS_SHOWN: Final = 5_000


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticReport(GeneratorReport):
    """What may be published of a generator of tables, and what was measured.

    Parameters
    ----------
    columns : tuple of ColumnView
        Every column, drawn without balance, beside the real one where test rows were given.
    evaluation : TableEvaluation or None
        Measured on real rows, *not covered* by the guarantee.
    **others
        See ``GeneratorReport``.

    Privacy
    -------
    All of it but ``evaluation``, ``facts`` and the real side of ``columns`` is released.
    """

    glance: ClassVar[str] = "rows/glance.html"

    columns: tuple[ColumnView, ...]
    evaluation: TableEvaluation | None

    @classmethod
    def of(
        cls,
        generator: TableSynthesizer,
        *,
        evaluation: TableEvaluation | None = None,
        test: pd.DataFrame | None = None,
        title: str | None = None,
        dataset: Mapping[str, object] | None = None,
    ) -> SyntheticReport:
        """Gather the report of a fitted or loaded generator."""
        n = ROWS_SHOWN if test is None else min(len(test), ROWS_SHOWN)
        drawn = generator.sample(n, balance=(), random_state=0)
        title = title or f"Synthetic data by {type(generator).__name__}"
        return cls(
            **fields_of(generator, title, dataset),
            columns=column_views(drawn, test, generator.codec_.schema),
            evaluation=evaluation,
        )

    @property
    def sections(self) -> tuple[Section, ...]:
        """What the page is made of; what was not measured is left out."""
        found = self.evaluation
        there = (
            (True, "claim", "The claim", "claim.html"),
            (self.spending, "spending", "What was spent on what", "spending.html"),
            (True, "columns", "The columns", "rows/columns.html"),
            (True, "balance", "Labels and groups", "rows/balance.html"),
            (found, "utility", "Models trained on these rows", "rows/utility.html"),
            (found, "fidelity", "How near the columns are", "rows/fidelity.html"),
            (True, "settings", "Settings", "settings.html"),
            (True, "use", "Load and sample rows", "rows/use.html"),
        )
        return tuple(Section(*named) for found, *named in there if found is not None)

    @property
    def cells(self) -> tuple[tuple[str, float | None, float | None, float | None], ...]:
        """Each combination of label and group: its share as learnt, synthetic and real."""
        found = self.evaluation
        learnt = dict(self.shares)
        made = {} if found is None else dict(found.balance.cells)
        real = {} if found is None else dict(found.real_balance.cells)
        names = dict.fromkeys([*learnt, *made, *real])
        return tuple((name, learnt.get(name), made.get(name), real.get(name)) for name in names)

    @property
    def worst_pairs(self) -> list[PairFidelity]:
        """The pairs of columns that differ most from the real ones."""
        return [] if self.evaluation is None else list(worst_pairs(self.evaluation.fidelity))


def write_synthetic_report(
    generator: TableSynthesizer,
    path: str | Path,
    *,
    evaluation: TableEvaluation | None = None,
    test: pd.DataFrame | None = None,
    title: str | None = None,
    dataset: Mapping[str, object] | None = None,
) -> Path:
    """Write the page of a fitted or loaded generator.

    Parameters
    ----------
    generator : TableSynthesizer
    path : path
        The file to write. An earlier report there is replaced, whole or not at all.
    evaluation : TableEvaluation, optional
        What ``evaluate`` measured on real rows; printed as not covered.
    test : DataFrame, optional
        Real rows whose columns are drawn beside the synthetic ones; not covered either.
    title : str, optional
    dataset : mapping, optional
        What to say about the data; printed as it is.

    Returns
    -------
    Path
        The file.
    """
    report = SyntheticReport.of(
        generator, evaluation=evaluation, test=test, title=title, dataset=dataset
    )
    return write_whole(render(report), path)
