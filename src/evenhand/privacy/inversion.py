"""Discrete Gaussian noise by inversion of its distribution function: exact, and many at once.

Notes
-----
Let U be uniform on [0, 1) and F the distribution function; the smallest k with ``U < F(k)`` has the
wanted distribution. Of U only as many bits are drawn as that takes. With the first 64 bits u and
``t(k) = floor(2^64 F(k))``,

- ``u < t(k)`` says ``U < F(k)``, as ``U < (u + 1) / 2^64 <= t(k) / 2^64 <= F(k)``;
- ``u > t(k)`` says ``U >= F(k)``, as ``U >= u / 2^64 >= (t(k) + 1) / 2^64 > F(k)``;
- ``u = t(k)`` says nothing: more bits are drawn, and F is computed to more digits.

So a search in a table of whole numbers settles all draws but one in about ``2^64 / table length``,
and those are settled too: nothing is rounded, and no tail is cut. The table is rigorous: its
entries are computed in decimals with a bound on their error, and to more digits where the bound
does not fix the integer part.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache
from typing import Final

import numpy as np

from evenhand._checks import positive
from evenhand.typing import Array, IntArray

WORD: Final = 64
"""Bits drawn at a time."""

LARGEST_TABLE: Final = 2.0**13
"""Largest sigma for which a table is made; it has about 25 sigma entries."""

GUARD_BITS: Final = 48
"""Bits beyond those that are compared, so that an entry's integer part is nearly always fixed."""

Bits = Callable[[int], bytes]
"""A source of random bytes, such as ``os.urandom``."""


def discrete_gaussian(sigma: float, n: int, *, source: Bits = os.urandom) -> IntArray:
    """Draw ``n`` independent values with ``P(k)`` proportional to ``exp(-k**2 / (2 sigma**2))``.

    Parameters
    ----------
    sigma : float
        Greater than 0, at most ``LARGEST_TABLE``; taken as the rational number that it is.
    n : int
        How many.
    source : callable, optional
        ``source(m)`` gives m random bytes. Default: those of the operating system.

    Returns
    -------
    ndarray of int64, shape (n,)

    References
    ----------
    Canonne, Kamath, Steinke 2020 (the distribution); Devroye 1986, Section III.2 (inversion).

    Examples
    --------
    >>> discrete_gaussian(40.0, 3).shape
    (3,)
    """
    sigma = positive("sigma", sigma, "Zero noise would release the counts as they are.")
    if sigma > LARGEST_TABLE:
        raise ValueError(
            f"sigma must be at most {LARGEST_TABLE:g} for noise by inversion, got {sigma!r}: its "
            f"table would be too long. Use DiscreteNoise(), which takes any sigma."
        )
    table = _table(sigma)
    u = np.frombuffer(source(WORD // 8 * n), dtype="<u8")
    place = np.searchsorted(table, u, side="right")
    # An entry before the place that equals u leaves the draw open; so does u beyond the last.
    open_ = table[np.maximum(place - 1, 0)] == u
    drawn: IntArray = place.astype(np.int64) - len(table) // 2
    for i in np.flatnonzero(open_):
        drawn[i] = _settled(sigma, int(u[i]), source)
    return drawn


@lru_cache(maxsize=32)
def _table(sigma: float) -> Array:
    """Return t(k) for k from -m to m - 1; t is 0 before and 2^64 - 1 after."""
    lower = _lower(sigma, WORD)
    upper = [(1 << WORD) - 1 - t for t in reversed(lower)]
    table = np.array(lower + upper, dtype=np.uint64)
    table.flags.writeable = False
    return table


@lru_cache(maxsize=8)
def _lower(sigma: float, bits: int) -> list[int]:
    """Return ``floor(2^bits F(k))`` for k from -m to -1; the first is 0, as are all before.

    ``1 - F(k) = F(-k - 1)`` gives the rest: F is no multiple of ``2^-bits``, as far as it was ever
    computed (if it were, no number of digits would do, and the loop would not end).
    """
    guard = GUARD_BITS
    while (found := _fixed(_tails(sigma, bits + guard), bits)) is None:
        guard *= 2
    return found


@dataclass(frozen=True, kw_only=True)
class _Tails:
    """Decimals F(-m), ..., F(-1), each nearer to the truth than ``error``."""

    values: tuple[Decimal, ...]
    error: Decimal
    context: Context


def _tails(sigma: float, bits: int) -> _Tails:
    """Compute F(k) for k < 0, to about ``bits`` bits.

    The terms ``e(k) = exp(-k^2 / (2 sigma^2))`` come from ``e(k + 1) = e(k) g(k)`` and
    ``g(k + 1) = g(k) h``: k^2 multiplications lie behind e(k), each with a relative error of at
    most 10^(1 - digits), and k stays below 10^6, so the 40 digits to spare leave ``2^-bits`` alone.
    Terms are left out from one below ``2^-bits / (4 + 4 sigma^2)`` on: ratios of terms are at most
    ``exp(-3 / (2 sigma^2))`` and fall, so all that is left out is at most ``1 + sigma^2`` times it.
    """
    small = Decimal(2) ** -bits
    digits = int(0.30103 * bits) + 40
    exact = Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)
    variance = exact.multiply(Decimal(sigma), Decimal(sigma))
    h = exact.exp(exact.divide(Decimal(-1), variance))
    g = exact.exp(exact.divide(Decimal(-1), exact.multiply(Decimal(2), variance)))
    terms, term = [], Decimal(1)
    floor = exact.divide(small, exact.add(Decimal(4), exact.multiply(Decimal(4), variance)))
    while True:
        term, g = exact.multiply(term, g), exact.multiply(g, h)
        terms.append(term)
        if term < floor:
            break
    sums, total = [], Decimal(0)
    for term in reversed(terms):
        total = exact.add(total, term)
        sums.append(total)
    whole = exact.add(Decimal(1), exact.multiply(Decimal(2), total))
    values = tuple(exact.divide(value, whole) for value in sums)
    return _Tails(values=values, error=exact.multiply(Decimal(4), small), context=exact)


def _fixed(tails: _Tails, bits: int) -> list[int] | None:
    """Return the integer parts of ``2^bits F``, or None where the error leaves one open."""
    exact = tails.context
    scale = Decimal(1 << bits)
    error = exact.multiply(tails.error, scale)
    found = []
    for value in tails.values:
        scaled = exact.multiply(value, scale)
        low = int(exact.subtract(scaled, error)) if scaled > error else 0
        if low != int(exact.add(scaled, error)):
            return None
        found.append(low)
    return found


def _settled(sigma: float, first: int, source: Bits) -> int:
    """Draw more bits until the value is known whose first word left it open."""
    u, bits = first, WORD
    while True:
        u, bits = (u << WORD) | int.from_bytes(source(WORD // 8), "little"), bits + WORD
        lower = _lower(sigma, bits)
        top = (1 << bits) - 1
        table = [*lower, *(top - t for t in reversed(lower))]
        place = bisect_right(table, u)
        if not (place and table[place - 1] == u):
            return place - len(lower)
