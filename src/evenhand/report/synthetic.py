"""The report on a generator of tables as a single HTML file that opens from disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
from plotly.offline import get_plotlyjs

from evenhand._version import __version__
from evenhand.generators import Evaluation, SignalToNoise, Synthesizer
from evenhand.privacy import Guarantee
from evenhand.report import claim, sections, synthetic_sections
from evenhand.report.columns import ColumnView, column_views
from evenhand.report.htmltext import items, text
from evenhand.report.onefile import asset, document, write_whole
from evenhand.report.spending import Spending
from evenhand.report.synthetic_sections import Generated

ROWS_SHOWN: Final = 5_000


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticReport:
    """What may be told of a fitted generator, and what was measured.

    Parameters
    ----------
    title : str
    method : str
        Name of the generator's class.
    guarantee : Guarantee
    spending : Spending
    snr : SignalToNoise
        As predicted.
    notes : tuple of str
        What the user must know.
    shares : tuple of (str, float)
        Share of each combination of label and group, by the noisy counts.
    columns : tuple of ColumnView
        Every column, drawn without balance, beside the real one where test rows were given.
    evaluation : Evaluation or None
        Measured on real rows, *not covered* by the guarantee.
    facts, settings : tuple of (str, str)
        What the writer says of the data; the generator's arguments.
    version : str

    Privacy
    -------
    All of it but ``evaluation``, ``facts`` and the real side of ``columns`` is released.
    """

    title: str
    method: str
    guarantee: Guarantee
    spending: Spending
    snr: SignalToNoise
    notes: tuple[str, ...]
    shares: tuple[tuple[str, float], ...]
    columns: tuple[ColumnView, ...]
    evaluation: Evaluation | None
    facts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    version: str

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
        method = type(generator).__name__
        return cls(
            title=title or f"Synthetic data by {method}",
            method=method,
            guarantee=generator.guarantee_,
            spending=Spending.of(generator.ledger_.to_dict()),
            snr=generator.snr_,
            notes=generator.notes_,
            shares=tuple((str(k), float(v)) for k, v in generator.shares_.items()),
            columns=column_views(drawn, test, generator.codec_.schema),
            evaluation=evaluation,
            facts=tuple((str(k), str(v)) for k, v in (dataset or {}).items()),
            settings=tuple((k, repr(v)) for k, v in generator.settings().items()),
            version=__version__,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before using the rows."""
        return (*self.guarantee.warnings, *self.notes)


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
    return assemble(report, SECTIONS, synthetic_sections.glance(report))


def assemble(
    report: Generated, parts: Iterable[tuple[str, str, Callable[[Any], str]]], glance: str
) -> str:
    """Return the page of these sections; one that says nothing is left out."""
    told = [(name, title, section(report)) for name, title, section in parts]
    told = [part for part in told if part[2]]
    body = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{at}. {text(title)}</h2>'
        f"{inside}</section>\n"
        for at, (name, title, inside) in enumerate(told, start=1)
    )
    links = sections.contents((name, title) for name, title, _ in told)
    return document(
        title=report.title,
        style=asset("evenhand.report", "page.css"),
        body=(
            '<a class="skip" href="#claim">Skip to the claim</a>\n'
            f"<header>{_head(report, glance)}{links}</header>\n<main>\n{body}</main>\n"
            f"<footer>Written by evenhand {text(report.version)}. This page is complete in "
            "itself: it loads nothing and sends nothing.</footer>\n"
        ),
        scripts=(get_plotlyjs(), asset("evenhand.report", "page.js")),
    )


def _head(report: Generated, glance: str) -> str:
    books = report.spending
    when = "" if books is None else f" · trained {text(books.last[:10])} (UTC)"
    parts = [
        f'<p class="kind">Report on synthetic data · evenhand {text(report.version)}{when}</p>',
        f"<h1>{text(report.title)}</h1>",
    ]
    if not report.guarantee.holds:
        parts.append(
            '<div class="banner" role="alert"><strong>Not private</strong>'
            f"<p>{text(claim.not_private(report.guarantee))}</p></div>"
        )
    if report.warnings:
        lines = items(f"{words[:1].upper()}{words[1:]}." for words in report.warnings)
        parts.append(
            '<section class="warnings" aria-labelledby="warnings">'
            f'<h2 id="warnings">Read this first</h2>{lines}</section>'
        )
    return "".join(parts) + glance
