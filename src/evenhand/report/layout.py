"""What every report on one model or generator looks like: its head, its sections, its foot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from evenhand.privacy import Guarantee
from evenhand.report import claim
from evenhand.report.htmltext import items, text
from evenhand.report.onefile import asset, document
from evenhand.report.spending import Spending


class Headed(Protocol):
    """What the head and the foot of a page read."""

    @property
    def title(self) -> str:
        """What the page is called."""

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""

    @property
    def spending(self) -> Spending | None:
        """The ledger, added up."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know first."""

    @property
    def version(self) -> str:
        """Of evenhand."""


Report = TypeVar("Report", bound=Headed)


def assemble(
    report: Report,
    parts: Iterable[tuple[str, str, Callable[[Report], str]]],
    *,
    kind: str,
    glance: str,
) -> str:
    """Return the page of these sections; one that says nothing is left out.

    Parameters
    ----------
    report : ModelReport or GeneratorReport
    parts : iterable of (anchor, title, function)
        The function returns the section's HTML, empty where it does not apply.
    kind : str
        What the page is, in its first line.
    glance : str
        HTML below the title: the few numbers to see first.
    """
    told = [(name, title, section(report)) for name, title, section in parts]
    told = [part for part in told if part[2]]
    body = "".join(
        f'<section aria-labelledby="{name}"><h2 id="{name}">{at}. {text(title)}</h2>'
        f"{inside}</section>\n"
        for at, (name, title, inside) in enumerate(told, start=1)
    )
    links = "".join(f'<li><a href="#{name}">{text(title)}</a></li>' for name, title, _ in told)
    return document(
        title=report.title,
        style=asset("evenhand.report", "page.css") + asset("evenhand.report", "dark.css"),
        body=(
            '<a class="skip" href="#claim">Skip to the claim</a>\n'
            f"<header>{_head(report, kind)}{glance}"
            f'<nav aria-label="Contents"><ol>{links}</ol></nav></header>\n<main>\n{body}</main>\n'
            f"<footer>Written by evenhand {text(report.version)}. This page is complete in "
            "itself: it loads nothing and sends nothing.</footer>\n"
        ),
        scripts=(),
    )


def _head(report: Headed, kind: str) -> str:
    """Return the title, the banner where nothing is promised, and warnings."""
    last = "" if report.spending is None else report.spending.last
    when = f" · trained {text(last[:10])} (UTC)" if last else ""
    parts = [
        f'<p class="kind">{text(kind)} · evenhand {text(report.version)}{when}</p>',
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
    return "".join(parts)
