"""One HTML file to choose on: it opens from disk, loads nothing and sends nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evenhand.frontier.cost import ReleaseCost
from evenhand.frontier.page import parts
from evenhand.frontier.page.data import MOST_RUNS, page_data
from evenhand.frontier.run import Run
from evenhand.report.colours import colours
from evenhand.report.onefile import asset, data_element, document, write_whole

SHAPES: Final = ("circle", "square", "diamond", "triangle", "wedge", "cross", "plus")
"""As ``marks.js`` draws them: a method has a colour and a shape, so that either is enough."""

SCRIPTS: Final = ("choice.js", "scales.js", "marks.js", "charts.js", "page.js")
PAIRS: Final = (("epsilon", "accuracy"), ("gap", "accuracy"), ("epsilon", "gap"))
WITH_COVERAGE: Final = (
    ("coverage", "accuracy"),
    ("coverage", "gap"),
    ("epsilon", "coverage"),
)


def write_page(
    runs: Sequence[Run],
    path: str | Path,
    *,
    title: str,
    cost: ReleaseCost | None = None,
    stand_in: str | None = None,
    most: int = MOST_RUNS,
) -> Path:
    """Write the page on which one of many runs can be chosen.

    Parameters
    ----------
    runs : sequence of Run
        At least one. Runs that differ in nothing but the seed are shown as one setting.
    path : path
        The file to write. An earlier page there is replaced, whole or not at all.
    title : str
    cost : ReleaseCost, optional
        What publishing all the runs costs together; it stands at the top. Added up here if it is
        not given.
    stand_in : str, optional
        What the stand-in data are, where runs learned from some (their ``data_kind``). They are
        marked without it too.
    most : int
        Runs that are shown at most; see ``page_data``.

    Returns
    -------
    Path
        The file.

    Privacy
    -------
    A page of runs on private data publishes all of them. The page says so, and what it costs.
    """
    return write_whole(
        render(runs, title=title, cost=cost, stand_in=stand_in, most=most), Path(path)
    )


def render(
    runs: Sequence[Run],
    *,
    title: str,
    cost: ReleaseCost | None = None,
    stand_in: str | None = None,
    most: int = MOST_RUNS,
) -> str:
    """Return the page as text."""
    told = page_data(runs, most=most)
    cost = ReleaseCost.of(runs) if cost is None else cost
    styles = _styles(told)
    pairs, note = _pairs(told)
    body = (
        '<a class="skip" href="#field-epsilon">Skip to the limits</a>\n'
        f"<header>{parts.head(title, runs, told)}"
        f"{parts.notices(runs, told, cost=cost, stand_in=stand_in)}</header>\n"
        f'{parts.without_script(told)}<div class="board js">{parts.controls(told, styles)}<main>'
        '<p class="answer" role="status"><span id="count"></span><span id="count-words"></span></p>'
        f'<div id="nothing" role="status" hidden></div>'
        f"{parts.views(pairs, note)}{parts.choosing()}</main></div>\n"
        '<div id="tip" hidden></div>\n'
        "<footer>This page is complete in itself: it loads nothing and sends nothing. No metric "
        "makes a model fair: a gap is one kind of disparity, and whether it is the right kind is "
        "for people to decide.</footer>\n"
        f"{data_element('method-styles', styles)}{data_element('frontier-data', told)}\n"
    )
    here = "evenhand.frontier.page"
    script = "".join(asset(here, name) for name in SCRIPTS)
    return document(
        title=title,
        style=asset("evenhand.report", "page.css") + asset(here, "page.css"),
        body=body,
        scripts=(f'"use strict";\n(function () {{\n{script}}})();\n',),
    )


def _styles(told: Mapping[str, Any]) -> dict[int, dict[str, str]]:
    """Return a colour and a shape for each method, by the number of its text."""
    methods = sorted(set(told["settings"]["method"]), key=lambda i: str(told["texts"][i]))
    return {
        method: {"colour": colour, "shape": SHAPES[k % len(SHAPES)]}
        for k, (method, colour) in enumerate(zip(methods, colours(len(methods)), strict=True))
    }


def _pairs(told: Mapping[str, Any]) -> tuple[tuple[tuple[str, str], ...], str]:
    """Return the pairs to draw: those with coverage only where it tells settings apart."""
    known = {value for value in told["settings"]["coverage"] if value is not None}
    if len(known) > 1:
        return PAIRS + WITH_COVERAGE, ""
    if not known:
        return PAIRS, "Coverage is not defined for any of them, so it has no chart of pairs."
    return (
        PAIRS,
        f"Coverage is {known.pop():.4g} wherever it is defined, so it has no chart of pairs.",
    )
