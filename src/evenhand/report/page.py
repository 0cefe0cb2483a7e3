"""A page from Jinja2 templates: one file, complete in itself, written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from evenhand._version import __version__
from evenhand.datasets import places
from evenhand.fairness.intervals import Estimate
from evenhand.privacy import Guarantee
from evenhand.privacy.relation import each
from evenhand.privacy.trade_off import TradeOff
from evenhand.report import claim, figures
from evenhand.report.measured import REFERENCES, known, name_of
from evenhand.report.spending import Spending
from evenhand.voting.outcomes import SHORT

HERE: Final = "evenhand.report"


class Section(NamedTuple):
    """One section of a report."""

    anchor: str
    title: str
    template: str
    """In the folder ``templates``; it reads the report."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What every report tells, whatever was fitted."""

    heading: ClassVar[str]
    """What the page is, in its first line."""
    glance: ClassVar[str]
    """The template of the few numbers to see first."""

    first: ClassVar[str] = ""
    """The template of the first page, for people who know none of the terms; none if empty."""

    title: str
    method: str
    """Name of the fitted object's class."""
    guarantee: Guarantee
    spending: Spending | None
    """What was spent on what; None where there was nothing to spend."""
    facts: tuple[tuple[str, str], ...]
    """What the report's writer says about the data."""
    settings: tuple[tuple[str, str], ...]
    """Every argument in words."""
    choices: tuple[str, ...] = ()
    """What was chosen where an argument was left out, and why. Public numbers only."""
    allowed: TradeOff | None = None
    """What the claim and the ledger behind it leave an attacker. None: what the claim does."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know first, the claim's own warnings before others."""
        return self.guarantee.cautions

    @property
    def private(self) -> str:
        """Why nobody but the curator may read this page; empty where it may be passed on."""
        return ""

    @property
    def sections(self) -> tuple[Section, ...]:
        """What the page is made of, in the order in which it is read."""
        raise NotImplementedError


def render(report: Report) -> str:
    """Return the page of a report as text."""
    return fill("report.html", report=report)


def fill(template: str, *, package: str = HERE, script: str = "", **values: Any) -> str:
    """Return a template filled with values: a whole page, on which only ``script`` may run.

    Every value is escaped where it stands; charts of ``evenhand.report.svg`` are printed as they
    are. A name that a template reads and nobody gave is an error.

    Parameters
    ----------
    template : str
        A file of the folder ``templates`` of ``package``, or of this one.
    package : str
        The module whose templates are looked at first.
    script : str
        JavaScript of the project's own, for the end of the page.
    **values
        What the template reads.
    """
    return environment(package).get_template(template).render(script=script, **values)


@cache
def environment(package: str = HERE) -> Environment:
    """Return the templates of a package and of this one, with what all of them may use."""
    found = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, HERE))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        optimized=False,  # most pages are the only one of their process: half the time to compile
    )
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    found.filters |= {
        "between": between,
        "capital": capital,
        "checksum": checksum,
        "count": lambda n: f"{n:,}",
        "fixed": lambda value, digits: f"{value:.{digits}f}",
        "percent": lambda value, digits=1: "" if value is None else f"{value:.{digits}%}",
        "rounded": lambda value: f"{value:,.0f}" if value >= 10 else f"{value:.2g}",
        "score": lambda value: "none" if math.isnan(value) else f"{value:.3f}",
        "short": lambda value: f"{value:g}",
    }
    found.globals |= {
        "cells": cells,
        "name_of": name_of,
        "each": each,
        "REFERENCES": REFERENCES,
        "SHORT": SHORT,
        "claim": claim,
        "figures": figures,
        "version": __version__,
    }
    found.globals["m"] = found.get_template("macros.html").module
    return found


def cells(estimate: Estimate) -> list[str]:
    """Return the two cells of a table that an estimate has: its value and its interval."""
    if not known(estimate):
        return ["no data", ""]
    return [f"{estimate.value:.4f}", between(estimate, 4)]


def between(estimate: Estimate, digits: int) -> str:
    """Return an interval in words."""
    return f"{estimate.low:.{digits}f} to {estimate.high:.{digits}f}"


def capital(words: object) -> str:
    """Return words as a sentence begins."""
    return f"{str(words)[:1].upper()}{str(words)[1:]}"


def checksum(script: str) -> str:
    """Return the checksum by which a content security policy names a script."""
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def asset(package: str, name: str) -> str:
    """Return the text of a file that lies in a package of this project."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def write_whole(html: str, path: str | Path, *, mode: int = 0o644) -> Path:
    """Write a page: all of it, or nothing, so that an earlier page survives a failure."""
    path = Path(path)
    # Bytes, not text: a changed line ending would no longer match the page's own checksums.
    places.write_whole(path, html.encode("utf-8"), mode=mode)
    return path
