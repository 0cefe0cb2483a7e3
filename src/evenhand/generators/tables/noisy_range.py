"""A range of numbers, read off noisy counts over a grid of cells."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import ndtri

from evenhand.typing import BoolArray, FloatArray

MISTAKE: Final = 0.01
"""Probability with which cells of a grid without records stand out."""

LOUD: Final = 2.5
"""Deviations, .0062: a false alarm of a warning does less harm than silence."""

FEW: Final = 0.05
"""Share of the numbers that may be hidden or left out without a word."""

_MISTAKE_TOGETHER: Final = 1e-3  # probability that a range is taken from noise alone
_MISTAKE_BEYOND: Final = 1e-4  # probability that noise alone moves an end beyond a gap
_WIDEST: Final = 8  # cells: values from 1 to 256, or 100 to 25,600
_EVERYDAY: Final = 2.0**20  # a range is guessed below that
_PER_STEP: Final = 0.2  # deviations: a gap of 10 empty cells makes noise a thousandth as likely
_MOST_FAR: Final = 2.0


def bounds_of(
    noisy: FloatArray, sigma: float, edges: FloatArray, n: float = 0.0
) -> tuple[float, float, bool]:
    """Return smallest and largest value, and whether they stand out of the noise.

    The range grows outward from the cells that stand out most. A cell behind a gap of empty ones
    has to stand out further: a single cell that noise alone lifts would else make the range of an
    age end at a million, and all records fall into one bin. So have several cells together; less
    far where more of the ``n`` records than noise explains, which all have a value, lie beyond.
    """
    low, high, sure = _heart(noisy, sigma, edges)
    if not sure:
        return float(edges[low]), float(edges[high + 1]), False
    at, least = np.arange(len(noisy)), -sigma * float(ndtri(MISTAKE / len(noisy)))
    seen = np.flatnonzero(noisy > least)
    while True:
        for i in seen[seen > high]:
            if noisy[i] > least + sigma * _farther(edges[high + 1 : i + 1]):
                high = int(i)
        for i in seen[seen < low][::-1]:
            if noisy[i] > least + sigma * _farther(edges[i + 1 : low + 1]):
                low = int(i)
        score, first, last = _window(noisy, (at < low) | (at > high))
        mistake = MISTAKE if left_beyond(noisy[low : high + 1], sigma, n) else _MISTAKE_BEYOND
        if score <= -sigma * float(ndtri(mistake / (_WIDEST * len(noisy)))):
            return float(edges[low]), float(edges[high + 1]), True
        low, high = min(low, first), max(high, last)


def left_beyond(held: FloatArray, sigma: float, n: float) -> float:
    """Return how many of n records are beside those of the cells held; 0 where noise may be all."""
    left, spread = n - float(held.sum()), sigma * math.sqrt(1.0 + len(held))
    return left if left > max(LOUD * spread, FEW * n) else 0.0


def _heart(noisy: FloatArray, sigma: float, edges: FloatArray) -> tuple[int, int, bool]:
    """Return first and last of the neighboring cells that stand out most, and whether they do.

    Records that no cell shows by itself, in a small table, may stand out together. Where nothing
    does, the guess is among amounts of everyday size, which is a guess of anybody's.
    """
    score, low, high = _window(noisy, np.ones(len(noisy), dtype=np.bool_))
    if score > -sigma * float(ndtri(_MISTAKE_TOGETHER / (_WIDEST * len(noisy)))):
        return low, high, True
    everyday = np.abs(edges) <= _EVERYDAY
    _, low, high = _window(noisy, everyday[:-1] & everyday[1:])
    return low, high, False


def _window(noisy: FloatArray, among: BoolArray) -> tuple[float, int, int]:
    """Return the neighboring cells that stand out most, as first and last, and how far they do.

    That is their sum over the root of their number, which has the deviation of one cell.
    """
    sums, others = (np.concatenate([[0.0], np.cumsum(x)]) for x in (noisy, ~among))
    best = (-math.inf, 0, 0)
    for width in range(1, _WIDEST + 1):
        score = (sums[width:] - sums[:-width]) / math.sqrt(width)
        score = np.where(others[width:] == others[:-width], score, -math.inf)
        i = int(score.argmax())
        best = max(best, (float(score[i]), i, i + width - 1))
    return best


def _farther(between: FloatArray) -> float:
    """Return the deviations that a cell needs on top, by the edges between it and the range.

    Steps below 1 do not count: a column of zeros and whole numbers has twenty of them empty.
    """
    return min(_PER_STEP * max(int((np.abs(between) >= 1.0).sum()) - 1, 0), _MOST_FAR)
