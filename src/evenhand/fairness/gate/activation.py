"""The part of a late group's withheld answers that is released at once, as it fits the table.

Under demographic parity it is the largest part there is (``largest_block``); under other margins
what is left once the answers that lead furthest from them are taken away (``nearly_all``).

For a block of ``s`` answers, ``n[k]`` of class k, every gap is within the margin exactly when each
``n[k]`` lies between bounds that depend on ``s`` alone. So a block of size s exists if and only if
every class has a whole number between its bounds, and s lies between the sums of the lower and of
the upper ones. Sizes are tried from the largest down.

Each bound is a straight line in s, so a size that fails shows a line below zero, and all sizes on
the same side of the line's root fail with it: they are jumped over, in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import floor
from typing import NamedTuple

from evenhand.fairness.gate.admission import GivenTable

RETRY = 10
"""While no block fits, and finding one is slow, it is looked for again with this part more."""

CLOSE = 1e-9
"""An excess in floats below it is decided again, in fractions."""


def nearly_all(
    table: GivenTable,
    group: int,
    held: Sequence[int],
    excess: Callable[[], Fraction],
    nearly: Callable[[], float],
) -> tuple[int, ...] | None:
    """Return held answers that fit together, found by taking away one after the other.

    From all that is held, the answer is taken away whose class leaves the least excess, until there
    is none. It finds a block wherever it meets one on the way, which need not be the largest.

    Parameters
    ----------
    table : GivenTable
        Answers of the active groups; as it was, in the end.
    group : int
        The late one, which has none in it.
    held : sequence of int
        Its withheld answers, per class.
    excess : callable
        By how much the gap of ``table`` is above the margin.
    nearly : callable
        The same in floats, which is faster: it says which answer is taken away.
    """
    block = list(held)
    for label, times in enumerate(block):
        table.add(group, label, times)
    over = nearly()
    while not (fits := over < CLOSE and excess() <= 0) and sum(block) > 1:
        found = []
        for label, times in enumerate(block):
            if times:
                table.add(group, label, -1)
                found.append((nearly(), label))
                table.add(group, label)
        over, label = min(found)
        table.add(group, label, -1)
        block[label] -= 1
    for label, times in enumerate(block):
        table.add(group, label, -times)
    return tuple(block) if fits else None


class Line(NamedTuple):
    """The line ``(slope * s + start) / over``, with ``over > 0``."""

    slope: int
    start: int
    over: int


Bounds = tuple[list[list[Line]], list[list[Line]]]
"""Lower and upper lines per class: n[k] is at least each of the first, at most each second."""


def largest_block(
    table: GivenTable,
    held: Sequence[int],
    order: Sequence[int],
    p: int,
    q: int,
    reference: str,
) -> tuple[int, ...] | None:
    """Return how many held answers of each class to release at once, or None if none fits.

    Parameters
    ----------
    table : GivenTable
        Answers of the active groups; the late group has none in it.
    held : sequence of int
        Withheld answers of the late group, per class.
    order : sequence of int
        All classes; among the largest blocks, the one with most of the first class is taken, then
        of the second, and so on.
    p, q : int
        The margin as a fraction.
    reference : {"rest", "pairwise", "overall"}
    """
    found = _largest(table, held, 0, p, q, reference)
    if found is None:
        return None
    size, low, high = found
    return _fill(low, [min(cap, n) for cap, n in zip(high, held, strict=True)], order, size)


def could_fit(
    table: GivenTable, held: Sequence[int], n_more: int, p: int, q: int, reference: str
) -> bool:
    """Whether a block would fit, were ``n_more`` further answers of the best classes held.

    The table stands as it is. Exact: if not, no outcome of so many further answers, or of fewer,
    leads to a block.
    """
    return _largest(table, held, n_more, p, q, reference) is not None


def _largest(
    table: GivenTable, held: Sequence[int], n_more: int, p: int, q: int, reference: str
) -> tuple[int, list[int], list[int]] | None:
    """Return the largest size of a block with at most ``n_more`` answers that are not held.

    With the size come the bounds on each class there. A block between them, of that size, has at
    least ``sum max(low - held, 0)`` answers that are not held, and at least
    ``size - sum min(high, held)``; one of the two is attained.
    """
    bounds = BOUNDS[reference]
    size = sum(held) + n_more
    none, all_of_it = [Line(0, 0, 1)] * len(held), [Line(0, size, 1)] * len(held)
    own, more = [Line(0, n, 1) for n in held], Line(0, n_more, 1)
    every = range(len(held))
    while size > 0:
        lower, upper = bounds(table, p, q, size)
        low, low_lines = _tightest(lower, size, none, lowest=True)
        high, high_lines = _tightest(upper, size, all_of_it, lowest=False)
        crossed = [k for k in every if low[k] > high[k]]
        short = [k for k in every if low[k] > held[k]]
        if crossed:
            k = crossed[0]
            size = _next_size(size, [high_lines[k]], [low_lines[k]], 0)
        elif sum(high) < size:
            size = _next_size(size, high_lines, [], -1)
        elif sum(low) > size:
            size = _next_size(size, [], low_lines, +1)
        elif sum(low[k] - held[k] for k in short) > n_more:
            size = _next_size(
                size, [more, *[own[k] for k in short]], [low_lines[k] for k in short], 0
            )
        elif size - sum(map(min, high, held)) > n_more:
            least = [high_lines[k] if high[k] < held[k] else own[k] for k in every]
            size = _next_size(size, [more, *least], [], -1)
        else:
            return size, low, high
    return None


def _tightest(
    lines: list[list[Line]], size: int, always: list[Line], *, lowest: bool
) -> tuple[list[int], list[Line]]:
    """Per class, the whole-number bound at this size and the line that set it."""
    values: list[int] = []
    setters: list[Line] = []
    for own, base in zip(lines, always, strict=True):
        best, setter = base.start, base
        for line in own:
            height = line.slope * size + line.start
            if lowest:
                value = -(-height // line.over)
                if value > best:
                    best, setter = value, line
            else:
                value = height // line.over
                if value < best:
                    best, setter = value, line
        values.append(best)
        setters.append(setter)
    return values, setters


def _next_size(size: int, plus: Sequence[Line], minus: Sequence[Line], own: int) -> int:
    """Return the next smaller size at which ``sum(plus) - sum(minus) + own * s`` is not below 0."""
    slope, start = Fraction(own), Fraction(0)
    for line in plus:
        slope += Fraction(line.slope, line.over)
        start += Fraction(line.start, line.over)
    for line in minus:
        slope -= Fraction(line.slope, line.over)
        start -= Fraction(line.start, line.over)
    if slope * size + start >= 0:
        return size - 1  # only rounding to whole answers failed here
    if slope >= 0:
        return 0  # falls further as s falls: no smaller block fits either
    return min(size - 1, floor(-start / slope))


def _fill(
    low: Sequence[int], high: Sequence[int], order: Sequence[int], size: int
) -> tuple[int, ...]:
    block = list(low)
    spare = size - sum(low)
    for k in order:
        more = min(spare, high[k] - low[k])
        block[k] += more
        spare -= more
    return tuple(block)


def _rest(table: GivenTable, p: int, q: int, largest: int) -> Bounds:
    return _pooled(table, p, q, largest, whole=False)


def _overall(table: GivenTable, p: int, q: int, largest: int) -> Bounds:
    return _pooled(table, p, q, largest, whole=True)


def _pooled(table: GivenTable, p: int, q: int, largest: int, *, whole: bool) -> Bounds:
    """Solve ``|m (N+s) - (c+n) size| <= (p/q) size (rest or whole)`` for n, per class and group."""
    total = table.total
    lower: list[list[Line]] = []
    upper: list[list[Line]] = []
    # The late group itself against "overall" has a term in s squared. Its line through 0 and the
    # largest size lies outside the true bound below that size and on it there, so it excludes
    # nothing too much and decides the largest size exactly.
    reach = p * (total + largest if whole else total)
    for k, given in enumerate(table.classes):
        low = [Line(q * given - reach, 0, q * total)]
        high = [Line(q * given + reach, 0, q * total)]
        for z in table.groups:
            size, own = table.sizes[z], table.counts[z][k]
            slack = p * size
            centre = q * (own * total - given * size)
            around = slack * (total if whole else total - size)
            low.append(Line(q * own - slack, centre - around, q * size))
            high.append(Line(q * own + slack, centre + around, q * size))
        lower.append(low)
        upper.append(high)
    return lower, upper


def _pairwise(table: GivenTable, p: int, q: int, largest: int) -> Bounds:
    """Solve ``|n size - m s| <= (p/q) s size`` for n, per class and group."""
    lower: list[list[Line]] = []
    upper: list[list[Line]] = []
    for k in range(len(table.classes)):
        rows = [
            (q * table.counts[z][k], p * table.sizes[z], q * table.sizes[z]) for z in table.groups
        ]
        lower.append([Line(own - slack, 0, over) for own, slack, over in rows])
        upper.append([Line(own + slack, 0, over) for own, slack, over in rows])
    return lower, upper


BOUNDS: dict[str, Callable[[GivenTable, int, int, int], Bounds]] = {
    "rest": _rest,
    "pairwise": _pairwise,
    "overall": _overall,
}
