"""The report on a generator of tables as a single HTML file that opens from disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from evenhand.generators import Evaluation, Synthesizer
from evenhand.report import sections, synthetic_sections
from evenhand.report.columns import ColumnView, column_views
from evenhand.report.generated import KIND, GeneratorReport, told_of
from evenhand.report.layout import assemble
from evenhand.report.onefile import write_whole

ROWS_SHOWN: Final = 5_000


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticReport(GeneratorReport):
    """What may be told of a generator of tables, and what was measured.

    Parameters
    ----------
    columns : tuple of ColumnView
        Every column, drawn without balance, beside the real one where test rows were given.
    evaluation : Evaluation or None
        Measured on real rows, *not covered* by the guarantee.
    **others
        See ``GeneratorReport``.

    Privacy
    -------
    All of it but ``evaluation``, ``facts`` and the real side of ``columns`` is released.
    """

    columns: tuple[ColumnView, ...]
    evaluation: Evaluation | None

    @classmethod
    def of(
        cls,
        generator: Synthesizer,
        *,
        evaluation: Evaluation | None = None,
        test: pd.DataFrame | None = None,
        title: str | None = None,
        dataset: Mapping[str, object] | None = None,
    ) -> SyntheticReport:
        """Gather the report of a fitted or loaded generator."""
        n = ROWS_SHOWN if test is None else min(len(test), ROWS_SHOWN)
        drawn = generator.sample(n, balance=(), random_state=0)
        title = title or f"Synthetic data by {type(generator).__name__}"
        return cls(
            **told_of(generator, title, dataset),
            columns=column_views(drawn, test, generator.codec_.schema),
            evaluation=evaluation,
        )


SECTIONS: Final[tuple[tuple[str, str, Callable[[SyntheticReport], str]], ...]] = (
    ("claim", "The claim", sections.the_claim),
    ("spending", "What was spent on what", sections.what_was_spent),
    ("columns", "The columns", synthetic_sections.columns),
    ("balance", "Labels and groups", synthetic_sections.balance),
    ("utility", "Models trained on these rows", synthetic_sections.utility),
    ("fidelity", "How near the columns are", synthetic_sections.fidelity),
    ("settings", "Settings", synthetic_sections.settings),
    ("use", "Load and draw rows", synthetic_sections.how_to_use),
)


def write_synthetic_report(
    generator: Synthesizer,
    path: str | Path,
    *,
    evaluation: Evaluation | None = None,
    test: pd.DataFrame | None = None,
    title: str | None = None,
    dataset: Mapping[str, object] | None = None,
) -> Path:
    """Write the page of a fitted or loaded generator.

    Parameters
    ----------
    generator : Synthesizer
    path : path
        The file to write. An earlier report there is replaced, whole or not at all.
    evaluation : Evaluation, optional
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
    return write_whole(render(report), Path(path))


def render(report: SyntheticReport) -> str:
    """Return the page as text."""
    return assemble(report, SECTIONS, kind=KIND, glance=synthetic_sections.glance(report))
