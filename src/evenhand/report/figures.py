"""The charts of the report: drawn from computed values only, with names escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evenhand.fairness import Estimate, Notion
from evenhand.report.disparity import Disparity
from evenhand.report.measured import NAMES, REFERENCES, Measured, known
from evenhand.report.outcomes import SHORT, Outcomes
from evenhand.report.spending import Spending
from evenhand.typing import FloatArray, IntArray
from evenhand.voting import Reason

# Okabe and Ito 2008 less their yellow (too pale) and pink (near green for some readers), with the
# wine and the navy of Tol 2021: of seven, each pair stays apart for red- and green-blind readers.
PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#882255", "#D55E00", "#332288")
INK, SOFT, GRID, MARGIN = "#1f2933", "#52606d", "#e4e7eb", "#B3261E"
NOT_USED, HATCH = "#eef1f4", "#52606d"
FONT: Final = (
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', sans-serif"
)
REFUSED: Final = {
    Reason.NO_CONSENSUS: ("#dfe4e9", "/"),
    Reason.OUTSIDE_MARGIN: ("#c9d0d7", "x"),
    Reason.WITHHELD: ("#dfe4e9", "\\"),
    Reason.NO_CLASS_ADMISSIBLE: ("#eef1f4", "."),
    Reason.NOT_ASKED: (NOT_USED, ""),
}
"""Colour and pattern of each reason: greys, told apart by the pattern, also in print."""

LEGEND_LINE: Final = 20  # pixels
MOST_POINTS: Final = 1500
MOST_JOINED: Final = 5  # groups up to which it is written when each got its first answers
LONGEST_LABEL: Final = 26
WIDEST_BAR: Final = 0.06  # share of the axis that a number needs, to be written into a bar


def label(name: str, longest: int = LONGEST_LABEL) -> str:
    """Return a name for a chart: cut to length, and without the markup that Plotly would read.

    Examples
    --------
    >>> label("<b>bold</b>")
    '&lt;b&gt;bold&lt;/b&gt;'
    """
    short = name if len(name) <= longest else f"{name[: longest - 1]}…"
    return escape(short, quote=False)


def colours(n: int) -> list[str]:
    """Return ``n`` colours that differ for colour-blind readers: a palette, or steps of Cividis."""
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    steps = np.linspace(0, 1, n)[:, None]
    dark, middle, light = np.array([0, 34, 78]), np.array([124, 123, 120]), np.array([253, 231, 55])
    mixed = np.where(
        steps < 0.5, dark + 2 * steps * (middle - dark), middle + (2 * steps - 1) * (light - middle)
    )
    return ["#" + "".join(f"{round(part):02x}" for part in row) for row in mixed.tolist()]


def ink_on(colour: str) -> str:
    """Return white or the ink of the page, whichever stands out more on ``colour`` (WCAG 2.2)."""
    there = _luminance(colour) + 0.05
    return INK if there / (_luminance(INK) + 0.05) >= 1.05 / there else "white"


def spending(books: Spending) -> go.Figure:
    """Draw the budget as one bar: what each purpose took of it, and what was left."""
    figure = go.Figure()
    words = [charge.words or charge.mechanism for charge in books.charges]
    alike = len(set(words)) < len(words)  # one mechanism for several purposes: name the purpose
    parts = [
        (charge.purpose if alike else name, charge.share, colour, charge.n_uses)
        for name, charge, colour in zip(words, books.charges, colours(len(words)), strict=True)
    ]
    for name, share, colour, n_uses in parts:
        _segment(figure, label(name, 70), [share], [0], colour, hover=[f"{n_uses:,} uses"])
    _segment(figure, "not spent", [max(0.0, 1 - books.share)], [0], NOT_USED, hover=[""])
    style(figure, height=150 + LEGEND_LINE * (len(parts) // 2), legend=True)
    _share_axis(figure, "share of the privacy budget (mu²), in percent")
    figure.update_yaxes(visible=False)
    return figure


def outcomes(table: Outcomes) -> go.Figure:
    """Draw a bar per group: its public rows by the label they got, or by why they got none."""
    figure = go.Figure()
    sizes = np.maximum(table.sizes, 1)
    rows = list(range(len(table.groups)))
    for k, colour in enumerate(colours(len(table.classes))):
        n = table.answered[:, k]
        name = f"answered {label(table.classes[k])}"
        _segment(figure, name, n / sizes, rows, colour, hover=_rows_in_words(n))
    for column, reason in enumerate(table.reasons):
        n = table.unlabelled[:, column]
        colour, shape = REFUSED[reason]
        _segment(
            figure, SHORT[reason], n / sizes, rows, colour, shape=shape, hover=_rows_in_words(n)
        )
    entries = len(table.classes) + len(table.reasons)
    style(figure, height=120 + 46 * len(rows) + LEGEND_LINE * (entries // 3), legend=True)
    whose = "the group’s public rows" if table.by_group else "all public rows"
    _share_axis(figure, f"share of {whose}, in percent")
    figure.update_yaxes(**_ticks(table.groups, table.sizes.tolist()))
    return figure


def disparity(trace: Disparity) -> go.Figure:
    """Draw the gap of the answered set after each answer, with the margin as a line."""
    x, y = thinned(trace.n_given, trace.gaps)
    margin = trace.notion.margin
    figure = go.Figure(
        go.Scatter(
            x=x.tolist(),
            y=y.tolist(),
            mode="lines",
            line={"color": PALETTE[0], "width": 1.3, "shape": "hv"},
            hovertemplate="after %{x:,} answers: %{y:.4f}<extra></extra>",
            showlegend=False,
        )
    )
    top = max(margin * 1.25, trace.largest * 1.08, 1e-3)
    figure.add_hline(y=margin, line={"color": MARGIN, "width": 1.6, "dash": "dash"})
    figure.add_annotation(
        x=1,
        xref="paper",
        xanchor="right",
        y=margin,
        yanchor="bottom",
        text=f"margin {margin:g}",
        showarrow=False,
        font={"color": MARGIN, "size": 13},
    )
    late = trace.joined[1:] if len(trace.joined) <= MOST_JOINED else ()
    for line, (group, at) in enumerate(reversed(late)):
        figure.add_vline(x=at, line={"color": SOFT, "width": 1, "dash": "dot"})
        figure.add_annotation(
            x=at,
            y=1,
            yref="paper",
            yanchor="bottom",
            yshift=17 * line,
            xanchor="left" if at < 0.6 * trace.n_given[-1] else "right",
            text=f"first answers to {label(group)}",
            showarrow=False,
            font={"color": SOFT, "size": 12},
        )
    style(figure, height=330 + 17 * len(late), legend=False, above=17 * len(late))
    figure.update_xaxes(
        title_text="answers given so far", range=[0, int(x[-1]) if len(x) else 1], tickformat=",d"
    )
    figure.update_yaxes(title_text="largest gap (difference of rates)", range=[0, top])
    return figure


def gaps(measured: Measured, notion: Notion | None) -> go.Figure:
    """Draw every measured gap with its interval; the margin only where it is defined alike."""
    kinds = list(dict.fromkeys(gap.kind for gap in measured.gaps))
    shown = [gap for gap in measured.gaps if known(gap.estimate)]
    references = [name for name in REFERENCES if any(gap.reference == name for gap in shown)]
    figure = go.Figure()
    for at, reference in enumerate(references):
        these = [gap for gap in shown if gap.reference == reference]
        rows = [kinds.index(gap.kind) + (at - (len(references) - 1) / 2) * 0.24 for gap in these]
        _dots(
            figure,
            [gap.estimate for gap in these],
            rows,
            PALETTE[at],
            name=f"against {REFERENCES[reference]}",
            symbol=("circle", "diamond", "square")[at],
        )
    largest = max([gap.estimate.high for gap in shown] + [0.05])
    style(figure, height=130 + 64 * len(kinds), legend=True)
    kind = "" if notion is None else notion.name.replace("-", "_")
    if notion is not None and kind in kinds:
        largest = max(largest, notion.margin)
        row = kinds.index(kind)
        figure.add_shape(
            type="line",
            x0=notion.margin,
            x1=notion.margin,
            y0=row - 0.46,
            y1=row + 0.46,
            line={"color": MARGIN, "width": 2, "dash": "dash"},
        )
        left = notion.margin < largest * 0.7
        figure.add_annotation(
            x=notion.margin,
            y=row - 0.46,
            yanchor="top",
            text=f" margin {notion.margin:g} ",
            showarrow=False,
            xanchor="left" if left else "right",
            font={"color": MARGIN, "size": 13},
        )
    figure.update_xaxes(
        title_text="largest difference of rates (0 is best)", range=[0, largest * 1.04]
    )
    figure.update_yaxes(**_ticks([NAMES.get(kind, kind) for kind in kinds], None))
    return figure


def by_group(measured: Measured) -> go.Figure:
    """Draw the groups side by side: the error, and the rate of each class, with intervals."""
    panels: list[tuple[str, tuple[Estimate, ...], float | None]] = []
    if measured.error is not None:
        panels.append(("wrong predictions", measured.errors, measured.error.value))
    panels += [
        (f"predicted {label(measured.classes[k])}", tuple(row[k] for row in measured.rates), None)
        for k in measured.shown
    ]
    columns = min(2 if len(panels) in (2, 4) else 3, len(panels))
    lines = -(-len(panels) // columns)
    tall = 34 * len(measured.groups) + 70
    figure = make_subplots(
        rows=lines,
        cols=columns,
        shared_yaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=0.0 if lines == 1 else min(0.9 / lines, 70 / (lines * tall)),
        subplot_titles=[name for name, _, _ in panels],
    )
    for at, (_, estimates, overall) in enumerate(panels):
        place: dict[str, Any] = {"row": at // columns + 1, "col": at % columns + 1}
        rows = list(range(len(estimates)))
        _dots(figure, estimates, rows, PALETTE[0 if overall is None else 5], **place)
        if overall is not None:
            figure.add_vline(x=overall, line={"color": SOFT, "width": 1, "dash": "dot"}, **place)
        figure.update_yaxes(**_ticks(measured.groups, measured.sizes), **place)
    # One scale for all panels, so that distances may be compared across them.
    high = max([e.high for _, estimates, _ in panels for e in estimates if known(e)] + [0.05])
    figure.update_xaxes(range=[0, min(1.02, high * 1.06)], tickformat=".0%")
    style(figure, height=40 + lines * tall, legend=False)
    figure.update_annotations(font={"size": 14, "color": INK})
    return figure


def thinned(x: IntArray, y: FloatArray, most: int = MOST_POINTS) -> tuple[IntArray, FloatArray]:
    """Return at most ``most`` points; each stretch keeps its *largest* value: no peak is lost."""
    if len(x) <= most:
        return x, y
    starts = np.linspace(0, len(x), most, endpoint=False).astype(np.int64)
    highest = np.maximum.reduceat(y, starts)
    ends = np.append(starts[1:], len(x)) - 1
    return x[ends], highest


def _segment(
    figure: go.Figure,
    name: str,
    shares: Any,
    rows: Sequence[int],
    colour: str,
    *,
    hover: Sequence[str],
    shape: str = "",
) -> None:
    """Add one part to stacked horizontal bars, with its share written in where it fits."""
    values = [float(share) for share in shares]
    figure.add_bar(
        x=values,
        y=list(rows),
        orientation="h",
        name=name,
        marker={
            "color": colour,
            "line": {"color": "white", "width": 1},
            "pattern": {
                "shape": shape,
                "fillmode": "overlay",
                "fgcolor": HATCH,
                "size": 8,
                "solidity": 0.12,
            },
        },
        text=[f"{share:.1%}" if share >= WIDEST_BAR else "" for share in values],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        constraintext="none",
        textfont={"color": ink_on(colour), "size": 13},
        hovertext=[
            f"{name}: {share:.1%} {words}".strip()
            for share, words in zip(values, hover, strict=True)
        ],
        hoverinfo="text",
    )


def _dots(
    figure: go.Figure,
    estimates: Sequence[Estimate],
    rows: Sequence[float],
    colour: str,
    *,
    name: str = "",
    symbol: str = "circle",
    **place: Any,
) -> None:
    """Add one mark with its interval for each row that was measured."""
    drawn = [(row, e) for row, e in zip(rows, estimates, strict=True) if known(e)]
    figure.add_trace(
        go.Scatter(
            x=[e.value for _, e in drawn],
            y=[row for row, _ in drawn],
            mode="markers",
            name=name,
            marker={"color": colour, "size": 9, "symbol": symbol},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [e.high - e.value for _, e in drawn],
                "arrayminus": [e.value - e.low for _, e in drawn],
                "color": colour,
                "thickness": 1.8,
                "width": 4,
            },
            hovertext=[f"{e.value:.4f} ({e.low:.4f} to {e.high:.4f})" for _, e in drawn],
            hoverinfo="text",
            showlegend=bool(name),
        ),
        **place,
    )


def _rows_in_words(n: IntArray) -> list[str]:
    return [f"({int(count):,} rows)" for count in n]


def _luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb"."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def style(figure: go.Figure, *, height: int, legend: bool, above: int = 0) -> None:
    """Set what all charts of a page have in common."""
    figure.update_layout(
        template="none",
        height=height,
        barmode="stack",
        bargap=0.35,
        font={"family": FONT, "size": 14, "color": INK},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 20, "r": 28, "t": 30 + above, "b": 8},
        dragmode=False,
        hoverlabel={"font": {"family": FONT, "size": 13}},
        showlegend=legend,
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.02,
            "yanchor": "bottom",
            "traceorder": "normal",
            "itemclick": False,
            "itemdoubleclick": False,
            "font": {"size": 13},
        },
    )
    figure.update_xaxes(
        automargin=True,
        fixedrange=True,
        gridcolor=GRID,
        zeroline=False,
        showline=True,
        linecolor=SOFT,
        ticks="outside",
        tickcolor=SOFT,
        title={"standoff": 8, "font": {"size": 13, "color": SOFT}},
        tickfont={"size": 13},
    )
    figure.update_yaxes(
        automargin=True,
        fixedrange=True,
        gridcolor=GRID,
        zeroline=False,
        showline=False,
        title={"standoff": 8, "font": {"size": 13, "color": SOFT}},
        tickfont={"size": 13},
    )


def _share_axis(figure: go.Figure, title: str) -> None:
    figure.update_xaxes(title_text=title, range=[0, 1], tickformat=".0%", dtick=0.2)


def _ticks(names: Sequence[str], sizes: Sequence[int] | None) -> dict[str, Any]:
    """Put names at whole numbers, the first on top: Plotly would read some names as numbers."""
    words = [label(name) for name in names]
    if sizes is not None:
        words = [f"{word} (n = {n:,})" for word, n in zip(words, sizes, strict=True)]
    return {
        "tickmode": "array",
        "tickvals": list(range(len(words))),
        "ticktext": [f"{word}  " for word in words],
        "range": [len(words) - 0.5, -0.5],
        "showgrid": False,
    }
