"""The charts of the report on synthetic data: drawn from computed values only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from evenhand.fairness import Estimate
from evenhand.generators import ModelUtility
from evenhand.report.colours import PALETTE
from evenhand.report.columns import ColumnView
from evenhand.report.svg import (
    AXIS,
    Rows,
    Scale,
    bar,
    dot,
    drawing,
    legend,
    line,
    panels,
    shortened,
    upright,
    words,
)

SYNTHETIC: Final = PALETTE[0]
REAL: Final = PALETTE[1]
TALL: Final = 120  # pixels of the bars of a column
WRITTEN: Final = 90  # pixels below them, for categories


def columns(views: Sequence[ColumnView]) -> str:
    """Draw every column in a panel of its own, synthetic beside real."""
    entries = [("synthetic rows", SYNTHETIC, "")]
    if any(view.real is not None for view in views):
        entries.insert(0, ("real rows", REAL, ""))
    return legend(entries) + panels((shortened(view.name), _column(view)) for view in views)


def _column(view: ColumnView) -> str:
    n = max(len(view.at), 1)
    both = [
        (name, shares, colour)
        for name, shares, colour in (
            ("real rows", view.real, REAL),
            ("synthetic rows", view.synthetic, SYNTHETIC),
        )
        if shares is not None
    ]
    up = Scale(
        high=max([share for _, shares, _ in both for share in shares] + [0.01]), percent=True
    )
    heights = [(tick, TALL * (1.0 - up.share(tick)) + 12) for tick in up.ticks(4)]
    parts = [line(0, y, 1, y, "grid") for _, y in heights]
    wide = 0.88 / n / len(both)
    for at, value in enumerate(view.at):
        said = f"{value:,.6g}" if view.numeric else str(value)
        for beside, (name, shares, colour) in enumerate(both):
            tall = TALL * up.share(shares[at])
            hover = f"{said}: {shares[at]:.1%} of the {name}"
            x = (at + 0.06) / n + beside * wide
            parts.append(bar(x, wide, TALL + 12 - tall, tall, colour, hover=hover))
        if not view.numeric:
            parts.append(upright((at + 0.5) / n, TALL + 18, shortened(said, 13), "tick"))
    parts.append(line(0, TALL + 12, 1, TALL + 12, "axis"))
    parts += [words(0, y - 2, up.words(tick), kind="tick over") for tick, y in heights[1:]]
    if view.numeric and view.at:
        for at, anchor in ((0, "start"), (len(view.at) // 2, "middle"), (len(view.at) - 1, "end")):
            x = {"start": 0.0, "middle": (at + 0.5) / n, "end": 1.0}[anchor]
            parts.append(words(x, TALL + 29, f"{view.at[at]:,.6g}", anchor, "tick"))
    return drawing(TALL + 12 + (AXIS + 4 if view.numeric else WRITTEN), parts)


def shares(rows: Sequence[tuple[str, float, float | None, float | None]]) -> str:
    """Draw the share of every combination of label and group: learnt, synthetic and real."""
    kinds: list[tuple[str, str, list[float | None]]] = [
        ("real test rows", REAL, [row[3] for row in rows]),
        ("learnt, by noisy counts", PALETTE[2], [row[1] for row in rows]),
        ("synthetic rows", SYNTHETIC, [row[2] for row in rows]),
    ]
    drawn = [kind for kind in kinds if any(value is not None for value in kind[2])]
    largest = max([value or 0.0 for _, _, values in drawn for value in values] + [0.01])
    scale = Scale(high=largest * 1.02, percent=True)
    chart = Rows(names=[shortened(row[0], 40) for row in rows], scale=scale, tall=12 * len(drawn))
    marks = [
        bar(
            0,
            scale.share(value or 0.0),
            chart.top(row) + 12 * at,
            11,
            colour,
            hover=f"{said}: {value or 0.0:.1%}",
        )
        for at, (said, colour, values) in enumerate(drawn)
        for row, value in enumerate(values)
    ]
    return legend((said, colour, "") for said, colour, _ in drawn) + chart.drawn(
        marks, title="share of the rows"
    )


def utility(found: Sequence[ModelUtility], on: str = "rows") -> str:
    """Draw the AUROC and two gaps of every model, trained on synthetic or on real ``on``."""
    models = list(dict.fromkeys(u.model for u in found))
    sources = [
        (source, colour, shape, shift)
        for source, colour, shape, shift in (
            ("synthetic", SYNTHETIC, "circle", -0.25),
            ("real", REAL, "diamond", 0.25),
        )
        if any(u.trained_on == source for u in found)
    ]
    measures: tuple[tuple[str, Callable[[ModelUtility], Estimate]], ...] = (
        ("AUROC", lambda u: u.auroc),
        ("equalized odds gap", lambda u: u.gaps["equalized_odds_pairwise"]),
        ("demographic parity gap", lambda u: u.gaps["demographic_parity_pairwise"]),
    )

    def panel(get: Callable[[ModelUtility], Estimate]) -> str:
        high = max([get(u).high for u in found] + [0.05])
        rows = Rows(names=[shortened(m) for m in models], scale=Scale(high=high * 1.04), tall=26)
        return rows.drawn(
            [
                dot(rows.scale, get(u), rows.middle(models.index(u.model), shift), colour, shape)
                for source, colour, shape, shift in sources
                for u in found
                if u.trained_on == source
            ],
            ticks=5,
        )

    return legend(
        (f"trained on {source} {on}", colour, shape) for source, colour, shape, _ in sources
    ) + panels((title, panel(get)) for title, get in measures)
