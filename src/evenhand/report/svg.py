"""Charts as inline SVG: shares of the width across and pixels down, so that any window fits them.

Nothing runs: a mark carries its numbers as a ``title``, which a pointer shows, and a table beside
the chart has them all. Lines and letters have the colours of the page, in dark mode too.

Drawings are ``Markup``, which a template prints as it is. Texts join it by ``+`` or ``%``, which
escape them; what stands in an f-string is a number or a constant of this package.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from markupsafe import Markup

from evenhand.fairness.intervals import Estimate
from evenhand.report.colours import ink_on
from evenhand.typing import FloatArray, IntArray

NAME: Final = 20  # pixels of the line that a row's name has
GAP: Final = 12  # pixels between rows
AXIS: Final = 20  # pixels of the numbers below an axis
TITLE: Final = 20  # pixels of its title
LONGEST_NAME: Final = 26
WIDEST_SLIM: Final = 0.15  # share below which a number does not fit into a bar on a small screen
NARROWEST_NAMED: Final = 0.06  # share below which it fits nowhere
HATCHES: Final = {
    "/": "M-2 2 2-2M0 8 8 0M6 10 10 6",
    "\\": "M-2 6 2 10M0 0 8 8M6-2 10 2",
    "x": "M0 0 8 8M0 8 8 0",
    ".": "M3 4h2",
}
SYMBOLS: Final = {"diamond": "M0-6 6 0 0 6-6 0z", "square": "M-4.5-4.5h9v9h-9z"}


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name as a chart has room for it.

    Examples
    --------
    >>> shortened("a name that is longer than there is room")
    'a name that is longer tha…'
    """
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def short_names(names: Sequence[str], longest: int = LONGEST_NAME) -> list[str]:
    """Return names as a chart has room for them, each unlike the others.

    Intersections begin alike: those that do are cut in the middle, and numbered if need be.

    Examples
    --------
    >>> short_names(["sex=F, race=White, age=young", "sex=F, race=White, age=old"], 24)
    ['sex=F, race…e, age=young', 'sex=F, race…ite, age=old']
    """
    for end in (0, longest // 2, longest - 2):
        found = [
            f"{name[: longest - 1 - end]}…{name[len(name) - end :]}"
            if len(name) > longest
            else name
            for name in names
        ]
        if len(set(found)) == len(set(names)):
            return found
    return [shortened(f"{i}: {name}", longest) for i, name in enumerate(names, 1)]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A horizontal axis from 0 to ``high``, of numbers or of shares in percent."""

    high: float
    percent: bool = False

    def share(self, value: float) -> float:
        """Return how far along the axis a value stands, in [0, 1]."""
        return min(max(value / self.high, 0.0), 1.0)

    def ticks(self, most: int = 6) -> list[float]:
        """Return round numbers on the axis, 0 first.

        Examples
        --------
        >>> Scale(high=0.27).ticks()
        [0.0, 0.05, 0.1, 0.15, 0.2, 0.25]
        """
        rough = self.high / (most - 1)
        unit = 10.0 ** math.floor(math.log10(rough))
        steps = (k * unit for k in (1, 2, 2.5, 5, 10))
        step, n = next(
            (step, n) for step in steps if (n := int(self.high / step + 1e-9) + 1) <= most
        )
        return [round(i * step, 12) for i in range(n)]

    def words(self, value: float) -> str:
        """Return a number of the axis as it is written below it."""
        return f"{100 * value:.6g}%" if self.percent else f"{value:,.6g}"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Named rows, one below the other, over one axis; each has its name above its marks."""

    names: Sequence[str]
    """An empty name takes no room."""
    scale: Scale
    tall: int = 24
    """Pixels for the marks of one row."""

    @property
    def height(self) -> int:
        """Pixels down to the axis."""
        return len(self.names) * self._pitch

    def top(self, row: int) -> float:
        """Where the marks of a row begin, in pixels."""
        return row * self._pitch + (NAME if any(self.names) else 4)

    def middle(self, row: int, shift: float = 0.0) -> float:
        """Middle of a row's marks in pixels, moved by a share of their height."""
        return self.top(row) + (0.5 + shift) * self.tall

    def drawn(self, marks: Iterable[Markup], *, title: str = "", ticks: int = 6) -> Markup:
        """Return the chart: names, axis and marks."""
        base = self.height
        parts = []
        for value in self.scale.ticks(ticks):
            x = self.scale.share(value)
            anchor = "start" if x < 0.02 else "end" if x > 0.94 else "middle"
            parts.append(line(x, 0, x, base + 4, "grid"))
            parts.append(words(x, base + AXIS - 3, self.scale.words(value), anchor, "tick"))
        parts.append(line(0, base, 1, base, "axis"))
        parts += [
            words(0, self.top(row) - 6, name, kind="name")
            for row, name in enumerate(self.names)
            if name
        ]
        if title:
            parts.append(words(0, base + AXIS + TITLE - 5, title, kind="tick"))
        return drawing(base + AXIS + (TITLE if title else 0), [*parts, *marks])

    @property
    def _pitch(self) -> int:
        return self.tall + GAP + (NAME if any(self.names) else 4)


def drawing(height: float, parts: Iterable[Markup]) -> Markup:
    """Return one SVG element as wide as its place."""
    head = Markup(f'<svg class="drawing" width="100%" height="{height:g}">')
    return head + Markup("").join(parts) + Markup("</svg>")


def panels(each: Iterable[tuple[str, Markup]]) -> Markup:
    """Return titled drawings beside each other, as many as the window is wide enough for."""
    inside = Markup("").join(Markup("<div><p>%s</p>%s</div>") % pair for pair in each)
    return Markup('<div class="panels">%s</div>') % inside


def legend(entries: Iterable[tuple[str, str, str]]) -> Markup:
    """Return what colours mean: (name, colour, hatch or symbol), each with a swatch."""
    inside = Markup("").join(
        Markup('<li><svg width="16" height="12">%s</svg>%s</li>') % (_swatch(colour, shape), name)
        for name, colour, shape in entries
    )
    return Markup('<ul class="legend">%s</ul>') % inside


def _swatch(colour: str, shape: str) -> Markup:
    if shape == "circle" or shape in SYMBOLS:
        return symbol(0.5, 6, colour, shape, "")
    return bar(0, 1, 0, 12, colour, hatch=shape)


def hatching(shapes: Iterable[str]) -> Markup:
    """Return the patterns that bars of a page refer to; once on a page."""
    inside = "".join(
        f'<pattern id="{_hatch_id(shape)}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<path class="hatch" d="{HATCHES[shape]}"/></pattern>'
        for shape in dict.fromkeys(shapes)
        if shape
    )
    return Markup(
        f'<svg class="hidden" width="0" height="0"><defs>{inside}</defs></svg>' if inside else ""
    )


def words(x: float, y: float, value: str, anchor: str = "start", kind: str = "") -> Markup:
    """Return text that stands at ``x``."""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    head = Markup(f'<text class="{kind}" x="{_at(x)}" y="{y:g}"{where}>')
    return head + value + Markup("</text>")


def line(x0: float, y0: float, x1: float, y1: float, kind: str, colour: str = "") -> Markup:
    """Return a straight line, in a colour of its own or in that of its kind."""
    own = f' style="stroke:{colour}"' if colour else ""
    return Markup(
        f'<line class="{kind}" x1="{_at(x0)}" y1="{y0:g}" x2="{_at(x1)}" y2="{y1:g}"{own}></line>'
    )


def bar(
    x: float,
    width: float,
    y: float,
    height: float,
    colour: str,
    *,
    hover: str = "",
    hatch: str = "",
) -> Markup:
    """Return a bar, hatched if that is what it differs by."""
    place = f'x="{_at(x)}" y="{y:g}" width="{_at(width)}" height="{height:g}"'
    over = f'<rect {place} fill="url(#{_hatch_id(hatch)})"></rect>' if hatch else ""
    shape = Markup(f'<rect {place} fill="{colour}"></rect>{over}</g>')
    return Markup('<g class="bar">') + _about(hover) + shape


def segments(
    rows: Rows, parts: Iterable[tuple[str, str, str, Sequence[float], Sequence[str]]]
) -> list[Markup]:
    """Return bars that are stacked in each row, with their shares written in where they fit.

    Parameters
    ----------
    rows : Rows
        Over an axis of shares from 0 to 1.
    parts : iterable of (name, colour, hatch, shares, more)
        One part: its share of each row, and more words for who points at it.
    """
    starts = [0.0] * len(rows.names)
    drawn = []
    for name, colour, hatch, shares, more in parts:
        for row, (share, about) in enumerate(zip(shares, more, strict=True)):
            hover = f"{name}: {share:.1%} {about}".strip()
            x, y = starts[row], rows.top(row)
            drawn.append(bar(x, share, y, rows.tall, colour, hover=hover, hatch=hatch))
            if share >= NARROWEST_NAMED:
                kind = "share slim" if share < WIDEST_SLIM else "share"
                own = f"fill:{ink_on(colour)};stroke:{colour}"
                at = Markup(
                    f'<text class="{kind}" x="{_at(x + share / 2)}" '
                    f'y="{rows.middle(row) + 4.5:g}" text-anchor="middle" style="{own}">'
                    f"{share:.1%}</text>"
                )
                drawn.append(at)
            starts[row] += share
    return drawn


def dot(scale: Scale, estimate: Estimate, y: float, colour: str, shape: str = "circle") -> Markup:
    """Return a mark at an estimate, and a whisker over its interval."""
    low, high = scale.share(estimate.low), scale.share(estimate.high)
    hover = f"{estimate.value:.4f} ({estimate.low:.4f} to {estimate.high:.4f})"
    return (
        line(low, y, high, y, "whisker", colour)
        + line(low, y - 4, low, y + 4, "whisker", colour)
        + line(high, y - 4, high, y + 4, "whisker", colour)
        + symbol(scale.share(estimate.value), y, colour, shape, hover)
    )


def symbol(x: float, y: float, colour: str, shape: str, hover: str) -> Markup:
    """Return a small mark: a circle, a diamond or a square."""
    if shape == "circle":
        head = Markup(f'<circle cx="{_at(x)}" cy="{y:g}" r="5" fill="{colour}">')
        return head + _about(hover) + Markup("</circle>")
    head = Markup(f'<path d="{SYMBOLS[shape]}" fill="{colour}">')
    return _placed(x, y, head + _about(hover) + Markup("</path>"))


def beside(x: float, y: float, value: str, kind: str) -> Markup:
    """Return text a little beside a line at ``x``, on the side where there is more room."""
    anchor, step = ("start", 5) if x < 0.5 else ("end", -5)
    head = Markup(f'<text class="{kind}" x="{step}" text-anchor="{anchor}">')
    return _placed(x, y, head + value + Markup("</text>"))


def upright(x: float, y: float, value: str, kind: str) -> Markup:
    """Return text that is read from below and ends at ``y``."""
    turned = Markup('<g transform="rotate(-90)">%s</g>') % words(0, 4, value, "end", kind)
    return _placed(x, y, turned)


def steps(
    x: IntArray, y: FloatArray, last: int, top: float, height: float, *, below: float = 0.0
) -> Markup:
    """Return a line of steps from (0, 0) to (``last``, ``top``): each value holds until the next.

    It stretches with the window, and its stroke does not. It begins ``below`` pixels down.
    """
    across = [f"{1000.0 * value / last:.2f}".rstrip("0").rstrip(".") for value in x.tolist()]
    up = [
        f"{height * (1.0 - min(value / top, 1.0)):.2f}".rstrip("0").rstrip(".")
        for value in y.tolist()
    ]
    moves = "".join(
        f"H{here}" + (f"V{level}" if level != before else "")
        for here, (before, level) in zip(across[1:], pairwise(up), strict=True)
    )
    return _stretched(f"M{across[0]} {up[0]}{moves}", height, below) if across else Markup("")


def curve(
    x: FloatArray,
    y: FloatArray,
    height: float,
    *,
    below: float = 0.0,
    kind: str = "trace",
    colour: str = "",
) -> Markup:
    """Return a line through points of shares across and up, which stretches like ``steps``."""
    places = (
        f"{1000.0 * across:.1f} {height * (1.0 - up):.2f}"
        for across, up in zip(x.tolist(), y.tolist(), strict=True)
    )
    return _stretched("M" + "L".join(places), height, below, kind, colour)


def _stretched(
    path: str, height: float, below: float, kind: str = "trace", colour: str = ""
) -> Markup:
    """Return a path over a thousand units across, as wide as its place; its stroke is not wider."""
    own = f' style="stroke:{colour}"' if colour else ""
    return Markup(
        f'<svg y="{below:g}" width="100%" height="{height:g}" viewBox="0 0 1000 {height:g}" '
        f'preserveAspectRatio="none"><path class="{kind}" d="{path}"{own}/></svg>'
    )


def _about(hover: str) -> Markup:
    """Return the words that a pointer on a mark shows."""
    return Markup("<title>%s</title>") % hover if hover else Markup("")


def _placed(x: float, y: float, mark: Markup) -> Markup:
    """Return a mark whose own coordinates are pixels, at a share of the width."""
    return Markup(f'<svg class="mark" x="{_at(x)}" y="{y:g}">') + mark + Markup("</svg>")


def _at(share: float) -> str:
    return f"{100.0 * share:.3f}".rstrip("0").rstrip(".") + "%"


def _hatch_id(shape: str) -> str:
    return f"hatch-{list(HATCHES).index(shape)}"
