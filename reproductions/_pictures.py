"""Small pictures as SVG: panels of points with their intervals, joined by lines or not.

Written by hand, digit by digit the same for the same numbers, so that a test can compare what is
saved with what is drawn from the saved rows. Each series has a colour and a shape of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

import _table

from evenhand.report.colours import GRID, INK, PALETTE, SOFT, colours

FONT: Final = "Helvetica, Arial, 'Liberation Sans', sans-serif"
SHAPES: Final = (
    "M-4,0 a4,4 0 1,0 8,0 a4,4 0 1,0 -8,0 Z",
    "M-3.6,-3.6 H3.6 V3.6 H-3.6 Z",
    "M0,-5 L5,0 L0,5 L-5,0 Z",
    "M0,-4.8 L4.6,3.6 H-4.6 Z",
    "M0,4.8 L4.6,-3.6 H-4.6 Z",
    "M-1.5,-4.8 H1.5 V-1.5 H4.8 V1.5 H1.5 V4.8 H-1.5 V1.5 H-4.8 V-1.5 H-1.5 Z",
    "M0,-5 L4.8,-1.6 L3,4.2 H-3 L-4.8,-1.6 Z",
)
WIDTH, HEIGHT = 264, 216  # of a panel, labels of its axes included
LEFT, RIGHT, TOP, BOTTOM = 50, 10, 26, 40
STEPS: Final = 64
HUES: Final = colours(STEPS)


@dataclass(frozen=True, kw_only=True)
class Series:
    """Points of one name; intervals are half widths, ``hue`` lies in [0, 1], ``size`` scales."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    x_pm: Sequence[float] = ()
    y_pm: Sequence[float] = ()
    hue: Sequence[float] = ()
    size: Sequence[float] = ()
    joined: bool = True


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What stands along an axis; ``ticks`` are the numbers that are written."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    log: bool = False

    def at(self, value: float) -> float:
        """Return where a value stands, from 0 to 1; beyond the axis, at its end."""
        low, high, own = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, own = math.log(low), math.log(high), math.log(own)
        return (own - low) / (high - low)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One drawing; a series that stands in several panels has one look in all of them."""

    title: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    line: float | None = None  # a dashed line upwards, at the margin that was asked for


def axis(title: str, values: Sequence[float], *, zero: bool = True, n: int = 5) -> Axis:
    """Return a linear axis that holds all values, with round ticks."""
    low, high = (0.0 if zero else min(values)), max(values)
    high = max(high, low + 1e-3)  # values that are all alike still need an axis
    raw = (high - low) / n
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * k for k in (1, 2, 5, 10) if unit * k >= raw)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [round(step * k, 10) for k in range(first, last + 1)]
    return Axis(title=title, low=ticks[0], high=ticks[-1], ticks=ticks)


def around(values: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return both ends of all intervals, for an axis to hold."""
    pairs = list(zip(values, widths, strict=True))
    return [v - w for v, w in pairs] + [v + w for v, w in pairs]


def draw(
    name: str,
    about: str,
    panels: Sequence[Panel],
    columns: int,
    hue: tuple[str, float, float] | None = None,
    folder: Path | None = None,
) -> str:
    """Write ``<name>.svg`` into ``results``, or a folder, and return the line that shows it.

    ``about`` says what is drawn, for who cannot see it. ``hue`` is the name of the scale of
    colours, and the values at its two ends.
    """
    names = list(dict.fromkeys(s.name for panel in panels for s in panel.series))
    rows = -(-len(panels) // columns)
    legend, lines = _legend(names, columns * WIDTH, coloured=hue is None)
    head = 8 + 20 * lines
    foot = 40 if hue else 6
    wide, high = columns * WIDTH + 6, head + rows * HEIGHT + foot
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" role="img" font-family="{FONT}" font-size="11" fill="{INK}">',
        f"<title>{escape(about)}</title>",
        f'<rect width="{wide}" height="{high}" fill="white"/>',
        *legend,
    ]
    for i, panel in enumerate(panels):
        left, top = (i % columns) * WIDTH, head + (i // columns) * HEIGHT
        parts.append(f'<g transform="translate({left},{top})">')
        parts += _panel(panel, names, coloured=hue is None)
        parts.append("</g>")
    if hue:
        parts += _scale(hue, high - foot + 8)
    parts.append("</svg>")
    folder = folder or _table.RESULTS
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.svg").write_text("\n".join(parts) + "\n", encoding="utf-8")
    return f"![{about}]({name}.svg)"


def _legend(names: Sequence[str], wide: int, *, coloured: bool) -> tuple[list[str], int]:
    parts, x, line = [], 12, 0
    for i, name in enumerate(names):
        width = 30 + round(6.2 * len(name))
        if x + width > wide and x > 12:
            x, line = 12, line + 1
        parts.append(_mark(i, x + 6, 14 + 20 * line, PALETTE[i % 7] if coloured else SOFT))
        parts.append(f'<text x="{x + 16}" y="{18 + 20 * line}">{escape(name)}</text>')
        x += width
    return parts, line + 1


def _panel(panel: Panel, names: Sequence[str], *, coloured: bool) -> list[str]:
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def to_x(value: float) -> float:
        return LEFT + wide * panel.x.at(value)

    def to_y(value: float) -> float:
        return TOP + high * (1 - panel.y.at(value))

    out = [f'<text x="{LEFT}" y="16" font-weight="bold">{escape(panel.title)}</text>']
    for tick in panel.x.ticks:
        x = f"{to_x(tick):.1f}"
        out.append(f'<path d="M{x},{TOP} V{TOP + high}" stroke="{GRID}"/>')
        out.append(f'<text x="{x}" y="{TOP + high + 14}" text-anchor="middle">{tick:g}</text>')
    for tick in panel.y.ticks:
        y = to_y(tick)
        out.append(f'<path d="M{LEFT},{y:.1f} H{LEFT + wide}" stroke="{GRID}"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    middle = TOP + high / 2
    out += [
        f'<path d="M{LEFT},{TOP} V{TOP + high} H{LEFT + wide}" fill="none" stroke="{SOFT}"/>',
        f'<text x="{LEFT + wide / 2:.1f}" y="{TOP + high + 30}" text-anchor="middle" '
        f'fill="{SOFT}">{escape(panel.x.title)}</text>',
        f'<text x="12" y="{middle:.1f}" text-anchor="middle" fill="{SOFT}" '
        f'transform="rotate(-90 12 {middle:.1f})">{escape(panel.y.title)}</text>',
    ]
    if panel.line is not None:
        out.append(
            f'<path d="M{to_x(panel.line):.1f},{TOP} V{TOP + high}" stroke="{SOFT}" '
            f'stroke-dasharray="4 3"/>'
        )
    for series in panel.series:
        i = names.index(series.name)
        ink = PALETTE[i % 7] if coloured else SOFT
        xs, ys = [to_x(v) for v in series.x], [to_y(v) for v in series.y]
        bars = [
            f"M{to_x(v - pm):.1f},{y:.1f} H{to_x(v + pm):.1f}"
            for v, pm, y in zip(series.x, series.x_pm, ys, strict=False)
        ]
        bars += [
            f"M{x:.1f},{to_y(v - pm):.1f} V{to_y(v + pm):.1f}"
            for v, pm, x in zip(series.y, series.y_pm, xs, strict=False)
        ]
        if bars:
            out.append(f'<path d="{" ".join(bars)}" stroke="{ink}" opacity="0.55"/>')
        if series.joined and len(xs) > 1:
            line = " L".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
            out.append(f'<path d="M{line}" fill="none" stroke="{ink}" stroke-width="1.3"/>')
        for k, (x, y) in enumerate(zip(xs, ys, strict=True)):
            fill = HUES[round(series.hue[k] * (STEPS - 1))] if series.hue else ink
            size = series.size[k] if series.size else 1.0
            out.append(_mark(i, x, y, fill, size, edge=INK if series.hue else "white"))
    return out


def _mark(i: int, x: float, y: float, fill: str, size: float = 1.0, edge: str = "white") -> str:
    scale = "" if size == 1 else f" scale({size:.2f})"
    return (
        f'<path d="{SHAPES[i % 7]}" transform="translate({x:.1f},{y:.1f}){scale}" '
        f'fill="{fill}" stroke="{edge}" stroke-width="0.8"/>'
    )


def _scale(hue: tuple[str, float, float], top: int) -> list[str]:
    title, low, high = hue
    steps = [
        f'<rect x="{130 + 3 * k}" y="{top}" width="3.2" height="12" fill="{colour}"/>'
        for k, colour in enumerate(HUES)
    ]
    return [
        f'<text x="12" y="{top + 10}">{escape(title)}</text>',
        f'<text x="124" y="{top + 10}" text-anchor="end">{low:g}</text>',
        *steps,
        f'<text x="{136 + 3 * STEPS}" y="{top + 10}">{high:g}</text>',
    ]
