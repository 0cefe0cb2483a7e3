"""Still pictures of a frontier, for a paper or a report: two objectives against each other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._extras import OnUse
from evenhand.frontier.page.estimates import Estimates, of_runs, of_settings, setting_numbers
from evenhand.frontier.pareto import front_of
from evenhand.frontier.run import Run
from evenhand.report.colours import GRID, INK, SOFT, colours
from evenhand.report.svg import shortened
from evenhand.typing import BoolArray

go: Any = OnUse("plotly.graph_objects", "A still picture of a frontier", "Plotly", "plot")

FONT: Final = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif"
)
SYMBOLS: Final = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "x",
    "cross",
)
TITLES: Final = {
    "epsilon": "epsilon",
    "gap": "gap between groups",
    "error": "error on test rows",
    "coverage": "coverage",
    "disparity": "disparity of drawn groups",
}
"""What can be drawn: the objectives, and the disparity of drawn pictures."""


def pair_figure(runs: Sequence[Run], x: str = "epsilon", y: str = "error") -> Any:
    """Draw settings by two numbers: means over seeds, intervals, each method's front as steps.

    Parameters
    ----------
    runs : sequence of Run
        Seeds of one setting are drawn as one point, with the 95 % interval of their mean; a
        setting with one seed gets the interval of its test rows.
    x, y : str
        Of ``OBJECTIVES``, or "disparity" (``Run.disparity``). Epsilon is drawn on a logarithmic
        axis.

    Returns
    -------
    plotly Figure
        One trace of points and one of steps per method, in the order of their names. A point
        that lacks one of the two, or whose epsilon has no bound, is left out.
    """
    _checks.one_of("x", x, TITLES)
    _checks.one_of("y", y, TITLES)
    if x == y:
        raise ValueError(f"x and y must be two objectives, got {x!r} twice.")
    methods = sorted({run.setting.method for run in runs})
    figure = go.Figure()
    for at, (method, colour) in enumerate(zip(methods, colours(len(methods)), strict=True)):
        own = [run for run in runs if run.setting.method == method]
        found = of_settings(of_runs(own), setting_numbers(own))
        known = np.isfinite(found.of(x)) & np.isfinite(found.of(y))
        symbol = SYMBOLS[at % len(SYMBOLS)]
        figure.add_trace(
            _points(found, known, x, y, escape(shortened(method), quote=False), colour, symbol)
        )
        figure.add_trace(_steps(found, known, x, y, colour))
    figure.update_layout(
        template="none",
        width=720,
        height=460,
        font={"family": FONT, "size": 14, "color": INK},
        margin={"l": 70, "r": 24, "t": 48, "b": 60},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    )
    for axis, name in ((figure.update_xaxes, x), (figure.update_yaxes, y)):
        axis(title_text=TITLES[name], gridcolor=GRID, zeroline=False, linecolor=SOFT, showline=True)
        if name == "epsilon":
            axis(type="log", title_text="epsilon (log scale)", dtick="D2")
    return figure


def _points(
    found: Estimates, known: BoolArray, x: str, y: str, name: str, colour: str, symbol: str
) -> Any:
    bars = {
        f"error_{axis}": {
            "type": "data",
            "symmetric": False,
            "array": (found.high[of] - found.value[of])[known].tolist(),
            "arrayminus": (found.value[of] - found.low[of])[known].tolist(),
            "thickness": 1,
            "width": 0,
            "color": colour,
        }
        for axis, of in (("x", x), ("y", y))
        if of != "epsilon"
    }
    return go.Scatter(
        x=found.of(x)[known].tolist(),
        y=found.of(y)[known].tolist(),
        mode="markers",
        name=name,
        legendgroup=name,
        marker={
            "color": colour,
            "symbol": symbol,
            "size": 7,
            "line": {"color": "white", "width": 1},
        },
        **bars,
    )


def _steps(found: Estimates, known: BoolArray, x: str, y: str, colour: str) -> Any:
    """Join what no other point of the method beats in these two."""
    both = np.column_stack([found.of(x)[known], found.of(y)[known]])
    costs = both * [-1.0 if name == "coverage" else 1.0 for name in (x, y)]
    best = both[front_of(costs)] if len(both) else both
    best = best[np.lexsort((best[:, 1], best[:, 0]))]
    if x == "coverage":  # from the best coverage on, so that a step never promises too much
        best = best[::-1]
    return go.Scatter(
        x=best[:, 0].tolist(),
        y=best[:, 1].tolist(),
        mode="lines",
        line={"color": colour, "width": 1.4, "shape": "hv"},
        showlegend=False,
        hoverinfo="skip",
    )
