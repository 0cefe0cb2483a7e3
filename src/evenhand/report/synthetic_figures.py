"""The charts of the report on synthetic data: drawn from computed values only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from evenhand.fairness import Estimate
from evenhand.generators import ModelUtility
from evenhand.report.columns import ColumnView
from evenhand.report.figures import INK, PALETTE, label, style

SYNTHETIC, REAL = PALETTE[0], PALETTE[1]
_PER_ROW = 3
_PANEL = 190


def columns(views: Sequence[ColumnView]) -> go.Figure:
    """Draw every column in a panel of its own, synthetic beside real."""
    lines = -(-len(views) // _PER_ROW)
    figure = make_subplots(
        rows=lines,
        cols=_PER_ROW,
        horizontal_spacing=0.07,
        vertical_spacing=0.0 if lines == 1 else min(0.9 / lines, 105 / (lines * _PANEL)),
        subplot_titles=[label(view.name) for view in views],
    )
    for at, view in enumerate(views):
        place = {"row": at // _PER_ROW + 1, "col": at % _PER_ROW + 1}
        x = list(range(len(view.at))) if not view.numeric else list(view.at)
        words = [label(str(v), 12) if not view.numeric else f"{v:,.6g}" for v in view.at]
        for name, shares, colour in (
            ("real rows", view.real, REAL),
            ("synthetic rows", view.synthetic, SYNTHETIC),
        ):
            if shares is None:
                continue
            figure.add_trace(
                go.Bar(
                    x=x,
                    y=list(shares),
                    name=name,
                    marker={"color": colour},
                    legendgroup=name,
                    showlegend=at == 0,
                    hovertext=[
                        f"{word}: {share:.1%} of the {name}"
                        for word, share in zip(words, shares, strict=True)
                    ],
                    hoverinfo="text",
                ),
                **place,
            )
        if not view.numeric:
            figure.update_xaxes(tickmode="array", tickvals=x, ticktext=words, **place)
    style(figure, height=90 + lines * _PANEL, legend=True)
    figure.update_layout(barmode="group", bargap=0.12, bargroupgap=0.0)
    figure.update_layout(legend={"y": 1.0 + 34 / (90 + lines * _PANEL)})
    figure.update_yaxes(tickformat=".0%", nticks=4, rangemode="tozero", tickfont={"size": 11})
    figure.update_xaxes(tickfont={"size": 10}, tickangle=40, nticks=6)
    figure.update_annotations(font={"size": 13, "color": INK})
    return figure


def shares(rows: Sequence[tuple[str, float, float | None, float | None]]) -> go.Figure:
    """Draw the share of every combination of label and group: learnt, synthetic and real."""
    names = [name for name, *_ in rows]
    figure = go.Figure()
    for at, (words, colour) in enumerate(
        (
            ("real test rows", REAL),
            ("learnt, by noisy counts", PALETTE[2]),
            ("synthetic rows", SYNTHETIC),
        )
    ):
        values = [row[(3, 1, 2)[at]] for row in rows]
        if all(value is None for value in values):
            continue
        figure.add_bar(
            y=list(range(len(names))),
            x=[0.0 if value is None else value for value in values],
            orientation="h",
            name=words,
            marker={"color": colour},
            hovertext=[f"{words}: {0.0 if v is None else v:.1%}" for v in values],
            hoverinfo="text",
        )
    style(figure, height=120 + 62 * len(names), legend=True)
    figure.update_layout(barmode="group", bargap=0.25)
    figure.update_xaxes(title_text="share of the rows", tickformat=".0%", rangemode="tozero")
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=[f"{label(name, 40)}  " for name in names],
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
    )
    return figure


def utility(found: Sequence[ModelUtility], on: str = "rows") -> go.Figure:
    """Draw the AUROC and two gaps of every model, trained on synthetic or on real ``on``."""
    models = list(dict.fromkeys(u.model for u in found))
    panels: tuple[tuple[str, Callable[[ModelUtility], Estimate]], ...] = (
        ("AUROC", lambda u: u.auroc),
        ("equalized odds gap", lambda u: u.gaps["equalized_odds_pairwise"]),
        ("demographic parity gap", lambda u: u.gaps["demographic_parity_pairwise"]),
    )
    figure = make_subplots(
        rows=1,
        cols=3,
        shared_yaxes=True,
        horizontal_spacing=0.05,
        subplot_titles=[name for name, _ in panels],
    )
    for source, colour, shift in (("synthetic", SYNTHETIC, -0.12), ("real", REAL, 0.12)):
        mine = [u for u in found if u.trained_on == source]
        for at, (_, get) in enumerate(panels):
            if not mine:
                continue
            estimates: list[Estimate] = [get(u) for u in mine]
            figure.add_trace(
                go.Scatter(
                    x=[e.value for e in estimates],
                    y=[models.index(u.model) + shift for u in mine],
                    mode="markers",
                    name=f"trained on {source} {on}",
                    legendgroup=source,
                    showlegend=at == 0,
                    marker={"color": colour, "size": 9},
                    error_x={
                        "type": "data",
                        "symmetric": False,
                        "array": [e.high - e.value for e in estimates],
                        "arrayminus": [e.value - e.low for e in estimates],
                        "color": colour,
                        "thickness": 1.8,
                        "width": 4,
                    },
                    hovertext=[f"{e.value:.4f} ({e.low:.4f} to {e.high:.4f})" for e in estimates],
                    hoverinfo="text",
                ),
                row=1,
                col=at + 1,
            )
    style(figure, height=150 + 44 * len(models), legend=True, above=20)
    figure.update_layout(legend={"y": 1.16})
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(models))),
        ticktext=[f"{label(name)}  " for name in models],
        range=[len(models) - 0.5, -0.5],
        showgrid=False,
    )
    figure.update_xaxes(nticks=5)
    figure.update_xaxes(rangemode="tozero", row=1, col=2)
    figure.update_xaxes(rangemode="tozero", row=1, col=3)
    figure.update_annotations(font={"size": 13, "color": INK})
    return figure
