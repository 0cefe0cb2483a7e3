"""What the reports on generators have in common, whatever these generate: facts, and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from plotly.offline import get_plotlyjs

from evenhand._version import __version__
from evenhand.generators import SignalToNoise
from evenhand.generators.conditional import ConditionalGenerator
from evenhand.privacy import Guarantee
from evenhand.report import claim, sections
from evenhand.report.htmltext import items, text
from evenhand.report.onefile import asset, document
from evenhand.report.spending import Spending


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratorReport:
    """What may be told of any fitted generator.

    Parameters
    ----------
    title : str
    method : str
        Name of the generator's class.
    guarantee : Guarantee
    spending : Spending or None
        None where nothing was spent.
    snr : SignalToNoise
        As predicted.
    notes : tuple of str
        What the user must know.
    shares : tuple of (str, float)
        Share of each combination of label and group, by the noisy counts.
    facts, settings : tuple of (str, str)
        What the writer says of the data; the generator's arguments.
    version : str
    """

    title: str
    method: str
    guarantee: Guarantee
    spending: Spending | None
    snr: SignalToNoise
    notes: tuple[str, ...]
    shares: tuple[tuple[str, float], ...]
    facts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    version: str

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before using what was generated."""
        return (*self.guarantee.warnings, *self.notes)


def told_of(
    generator: ConditionalGenerator, title: str, dataset: Mapping[str, object] | None
) -> dict[str, Any]:
    """Return the fields of a ``GeneratorReport``, from a fitted or loaded generator."""
    books = generator.ledger_
    return {
        "title": title,
        "method": type(generator).__name__,
        "guarantee": generator.guarantee_,
        "spending": None if books is None else Spending.of(books.to_dict()),
        "snr": generator.snr_,
        "notes": generator.notes_,
        "shares": tuple((str(k), float(v)) for k, v in generator.shares_.items()),
        "facts": tuple((str(k), str(v)) for k, v in (dataset or {}).items()),
        "settings": tuple((k, repr(v)) for k, v in generator.settings().items()),
        "version": __version__,
    }


def assemble(
    report: GeneratorReport, parts: Iterable[tuple[str, str, Callable[[Any], str]]], glance: str
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


def _head(report: GeneratorReport, glance: str) -> str:
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
