"""The charts of every report: drawn from computed values only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from markupsafe import Markup

from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import Notion
from evenhand.generators.tables.membership import Membership
from evenhand.generators.utility import ModelUtility
from evenhand.report.colours import NOT_USED, PALETTE, colours
from evenhand.report.columns import ColumnView
from evenhand.report.measured import REFERENCES, Measured, known, name_of
from evenhand.report.spending import Spending
from evenhand.report.svg import (
    AXIS,
    Rows,
    Scale,
    bar,
    beside,
    curve,
    dot,
    drawing,
    hatching,
    legend,
    line,
    panels,
    segments,
    short_names,
    shortened,
    steps,
    upright,
    words,
)
from evenhand.typing import FloatArray, IntArray
from evenhand.voting import Reason
from evenhand.voting.outcomes import SHORT, Disparity, Outcomes

REFUSED: Final = {
    Reason.NO_CONSENSUS: ("#dfe4e9", "/"),
    Reason.OUTSIDE_MARGIN: ("#c9d0d7", "x"),
    Reason.WITHHELD: ("#dfe4e9", "\\"),
    Reason.NO_CLASS_ADMISSIBLE: ("#eef1f4", "."),
    Reason.NOT_ASKED: (NOT_USED, ""),
}
"""Colour and pattern of each reason: greys that differ by the pattern, also in print."""

MOST_POINTS: Final = 1500
MOST_JOINED: Final = 5  # groups up to which it is written when each got its first answers
TRACE: Final = 280  # pixels of the trace
ABOVE: Final = 14  # pixels for a number above its highest line

SYNTHETIC: Final = PALETTE[0]
REAL: Final = PALETTE[1]
TALL: Final = 120  # pixels of the bars of a column
WRITTEN: Final = 90  # pixels below them, for categories
ROOM_BELOW: Final = 26  # characters that have room below the bars of a column, side by side
NUMBERED: Final = 0.12  # share of the width left of them, for the numbers of their axis


def spending(found: Spending) -> Markup:
    """Draw the budget as one bar: what each purpose took of it, and what was left."""
    named = [charge.words or charge.mechanism for charge in found.charges]
    alike = len(set(named)) < len(named)  # one mechanism for several purposes: name the purpose
    parts: list[tuple[str, str, str, Sequence[float], Sequence[str]]] = [
        (
            shortened(charge.purpose if alike else name, 70),
            colour,
            "",
            [charge.share],
            [f"({charge.n_uses:,} uses)"],
        )
        for name, charge, colour in zip(named, found.charges, colours(len(named)), strict=True)
    ]
    parts.append(("not spent", NOT_USED, "", [max(0.0, 1.0 - found.share)], [""]))
    rows = Rows(names=[""], scale=Scale(high=1.0, percent=True), tall=36)
    return legend(part[:3] for part in parts) + rows.drawn(
        segments(rows, parts), title="share of the privacy budget (mu²), in percent"
    )


def outcomes(table: Outcomes) -> Markup:
    """Draw a bar per group: its rows by the label they got, or by why they got none."""
    sizes = np.maximum(table.sizes, 1)
    parts: list[tuple[str, str, str, Sequence[float], Sequence[str]]] = []
    classes = short_names(table.classes)
    for k, colour in enumerate(colours(len(classes))):
        n = table.answered[:, k]
        name = f"answered {classes[k]}"
        parts.append((name, colour, "", (n / sizes).tolist(), _rows_in_words(n)))
    for column, reason in enumerate(table.reasons):
        n = table.unlabelled[:, column]
        colour, hatch = REFUSED[reason]
        parts.append((SHORT[reason], colour, hatch, (n / sizes).tolist(), _rows_in_words(n)))
    rows = Rows(
        names=_sized(table.groups, table.sizes.tolist()), scale=Scale(high=1.0, percent=True)
    )
    whose = "the group’s rows" if table.by_group else "all rows"
    return (
        hatching(REFUSED[reason][1] for reason in table.reasons)
        + legend(part[:3] for part in parts)
        + rows.drawn(segments(rows, parts), title=f"share of {whose}, in percent")
    )


def disparity(trace: Disparity) -> Markup:
    """Draw the gap of the answered set after each answer, with the margin as a line."""
    x, y = thinned(trace.n_given, trace.gaps)
    margin, last = trace.notion.margin, int(x[-1]) if len(x) else 1
    up = Scale(high=max(margin * 1.25, trace.largest * 1.08, 1e-3))
    across = Scale(high=last)

    def height(value: float) -> float:
        return ABOVE + TRACE * (1.0 - up.share(value))

    late = trace.joined[1:] if len(trace.joined) <= MOST_JOINED else ()
    named = short_names([group for group, _ in late], 18)
    parts = []
    for value in up.ticks():
        parts.append(line(0, height(value), 1, height(value), "grid"))
        parts.append(words(0, height(value) - 3, up.words(value), kind="tick"))
    for value in across.ticks()[1:]:
        at = across.share(value)
        anchor = "end" if at > 0.95 else "middle"
        parts.append(words(at, ABOVE + TRACE + 17, across.words(value), anchor, "tick"))
    parts.append(line(0, height(0), 1, height(0), "axis"))
    parts.append(steps(x, y, last, up.high, TRACE, below=ABOVE))
    for at, (_, n) in enumerate(late):
        where = across.share(n)
        parts.append(line(where, 0, where, height(0), "joined"))
        parts.append(beside(where, 12 + 17 * at, named[at], "tick"))
    parts.append(line(0, height(margin), 1, height(margin), "margin"))
    parts.append(words(1, height(margin) - 5, f"margin {margin:g}", "end", "margin-words"))
    title = "answers given so far" + (" (a name: its group's first)" if late else "")
    parts.append(words(0, ABOVE + TRACE + 36, title, kind="tick"))
    return drawing(ABOVE + TRACE + 40, parts)


def gaps(measured: Measured, notion: Notion | None) -> Markup:
    """Draw every measured gap with its interval; the margin only where it is defined alike."""
    kinds = list(dict.fromkeys(gap.kind for gap in measured.gaps))
    shown = [gap for gap in measured.gaps if known(gap.estimate)]
    references = [name for name in REFERENCES if any(gap.reference == name for gap in shown)]
    kind = "" if notion is None else notion.name.replace("-", "_")
    bound = notion.margin if notion is not None and kind in kinds else None
    largest = max([gap.estimate.high for gap in shown] + [0.05, bound or 0.0])
    scale = Scale(high=largest * 1.04)
    rows = Rows(names=[name_of(kind) for kind in kinds], scale=scale, tall=48)
    shapes = ("circle", "diamond", "square")
    marks = []
    if bound is not None:
        top = rows.top(kinds.index(kind))
        at = scale.share(bound)
        marks.append(line(at, top - 3, at, top + rows.tall + 3, "margin"))
        marks.append(words(1, top - 6, f"margin {bound:g} (dashed)", "end", "margin-words"))
    for place, reference in enumerate(references):
        shift = 0.3 * (place - (len(references) - 1) / 2)
        marks += [
            dot(
                scale,
                gap.estimate,
                rows.middle(kinds.index(gap.kind), shift),
                PALETTE[place],
                shapes[place],
            )
            for gap in shown
            if gap.reference == reference
        ]
    entries = [
        (f"against {REFERENCES[name]}", PALETTE[at], shapes[at])
        for at, name in enumerate(references)
    ]
    return legend(entries) + rows.drawn(marks, title="largest difference of rates (0 is best)")


def by_group(measured: Measured) -> Markup:
    """Draw the groups side by side: the error, and the rate of each class, with intervals."""
    drawn: list[tuple[str, tuple[Estimate, ...], float | None]] = []
    classes = short_names(measured.classes)
    if measured.error is not None:
        drawn.append(("wrong predictions", measured.errors, measured.error.value))
    drawn += [
        (
            f"predicted {classes[k]}",
            tuple(row[k] for row in measured.rates),
            None,
        )
        for k in measured.shown
    ]
    # One scale for all panels, so that distances may be compared across them.
    high = max([e.high for _, estimates, _ in drawn for e in estimates if known(e)] + [0.05])
    scale = Scale(high=min(1.02, high * 1.06), percent=True)
    rows = Rows(names=_sized(measured.groups, measured.sizes), scale=scale, tall=14)
    return panels(
        (title, rows.drawn(_of_groups(rows, estimates, overall), ticks=5))
        for title, estimates, overall in drawn
    )


def _of_groups(rows: Rows, estimates: Sequence[Estimate], overall: float | None) -> list[Markup]:
    marks = []
    if overall is not None:
        at = rows.scale.share(overall)
        marks.append(line(at, 0, at, rows.height, "joined"))
    colour = PALETTE[0 if overall is None else 5]
    marks += [
        dot(rows.scale, estimate, rows.middle(row), colour)
        for row, estimate in enumerate(estimates)
        if known(estimate)
    ]
    return marks


def columns(views: Sequence[ColumnView]) -> Markup:
    """Draw every column in a panel of its own, synthetic beside real."""
    entries = [("synthetic rows", SYNTHETIC, "")]
    if any(view.real is not None for view in views):
        entries.insert(0, ("real rows", REAL, ""))
    return legend(entries) + panels((shortened(view.name), _column(view)) for view in views)


def _column(view: ColumnView) -> Markup:
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
    parts = [line(NUMBERED, y, 1, y, "grid") for _, y in heights]
    each = (1.0 - NUMBERED) / n
    wide = 0.88 * each / len(both)
    for at, said in enumerate(view.words):
        for place, (name, shares, colour) in enumerate(both):
            tall = TALL * up.share(shares[at])
            hover = f"{said}: {shares[at]:.1%} of the {name}"
            x = NUMBERED + (at + 0.06) * each + place * wide
            parts.append(bar(x, wide, TALL + 12 - tall, tall, colour, hover=hover))
        if not view.numeric:
            x = NUMBERED + (at + 0.5) * each
            parts.append(upright(x, TALL + 18, shortened(said, 13), "tick"))
    parts.append(line(NUMBERED, TALL + 12, 1, TALL + 12, "axis"))
    parts += [words(0, y + 4, up.words(tick), kind="tick") for tick, y in heights]
    if view.numeric and view.at:
        for at, anchor, said in _below(view.words):
            x = {"start": NUMBERED, "middle": NUMBERED + (at + 0.5) * each, "end": 1.0}[anchor]
            parts.append(words(x, TALL + 29, said, anchor, "tick"))
    return drawing(TALL + 12 + (AXIS + 4 if view.numeric else WRITTEN), parts)


def _below(said: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return what stands below the bars of numbers or dates: place, anchor and words.

    Both ends, and the middle one where there is room; of times the day, where that changes.
    """
    days, hours = ([words.partition("T")[part] for words in said] for part in (0, 2))
    shown = days if days[0] != days[-1] or not hours[0] else hours
    last = len(said) - 1
    at = {0: "start", len(said) // 2: "middle", last: "end"} if last else {0: "middle"}
    if sum(len(shown[i]) for i in at) > ROOM_BELOW:
        at = {0: "start", last: "end"}
    return [(i, anchor, shown[i]) for i, anchor in at.items()]


def shares(rows: Sequence[tuple[str, float | None, float | None, float | None]]) -> Markup:
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


def utility(found: Sequence[ModelUtility], on: str = "rows") -> Markup:
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

    def panel(get: Callable[[ModelUtility], Estimate]) -> Markup:
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


def membership(found: Membership) -> Markup:
    """Draw how many members attacks find by how many others they accuse, and what is allowed."""
    named = list(zip(found.attacks, PALETTE, strict=False))
    shares = found.attacks[0].accused

    def panel(last: float) -> Markup:
        near = shares <= last
        lines = [(found.allowed.found(shares[near]), "margin", "")]
        lines += [(attack.curve[near], "trace", colour) for attack, colour in named]
        across = Scale(high=last, percent=True)
        up = Scale(high=max(float(y.max()) for y, _, _ in lines), percent=True)
        parts = []
        for value in up.ticks(5)[1:]:
            y = ABOVE + TRACE * (1.0 - up.share(value))
            parts.append(line(0, y, 1, y, "grid"))
            parts.append(words(0, y - 3, up.words(value), kind="tick"))
        for value in across.ticks():
            x = across.share(value)
            anchor = "start" if x < 0.02 else "end" if x > 0.94 else "middle"
            parts.append(words(x, ABOVE + TRACE + 17, across.words(value), anchor, "tick"))
        base = ABOVE + TRACE
        parts.append(line(0, base, 1, base, "axis"))
        parts.append(line(0, base, 1, base - TRACE * up.share(last), "joined"))
        parts += [
            curve(shares[near] / last, y / up.high, TRACE, below=ABOVE, kind=kind, colour=colour)
            for y, kind, colour in lines
        ]
        return drawing(base + AXIS, parts)

    entries = [(f"by {attack.name}", colour, "") for attack, colour in named]
    return legend(entries) + panels(
        [("members found, by others accused", panel(1.0)), ("the same at its left end", panel(0.1))]
    )


def thinned(x: IntArray, y: FloatArray, most: int = MOST_POINTS) -> tuple[IntArray, FloatArray]:
    """Return at most ``most`` points; each stretch keeps its *largest* value: no peak is lost."""
    if len(x) <= most:
        return x, y
    starts = np.linspace(0, len(x), most, endpoint=False).astype(np.int64)
    highest = np.maximum.reduceat(y, starts)
    ends = np.append(starts[1:], len(x)) - 1
    return x[ends], highest


def _rows_in_words(n: IntArray) -> list[str]:
    return [f"({int(count):,} rows)" for count in n]


def _sized(names: Sequence[str], sizes: Sequence[int]) -> list[str]:
    return [f"{name} (n = {n:,})" for name, n in zip(short_names(names), sizes, strict=True)]
