"""The definitions again, spelled out slowly: what the tests of this folder compare with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import pytest

Counts = list[list[int]]


def naive_gap(counts: Sequence[Sequence[int]], reference: str) -> Fraction:
    """Remember the slow answer: brute force meets the same small tables again and again."""
    return _naive_gap(tuple(map(tuple, counts)), reference)


@cache
def _naive_gap(counts: tuple[tuple[int, ...], ...], reference: str) -> Fraction:
    """Largest |P(k|z) - P(k|reference)| among groups with answers, from one list of answers."""
    rows = [(z, k) for z, row in enumerate(counts) for k, n in enumerate(row) for _ in range(n)]
    groups = sorted({z for z, _ in rows})
    gaps = [Fraction(0)]

    def rate(k: int, members: list[int]) -> Fraction:
        inside = [label for z, label in rows if z in members]
        return Fraction(inside.count(k), len(inside))

    for z in groups:
        others = {
            "rest": [[g for g in groups if g != z]],
            "pairwise": [[g] for g in groups if g != z],
            "overall": [groups],
        }[reference]
        for k in range(len(counts[0])):
            gaps += [abs(rate(k, [z]) - rate(k, members)) for members in others if members]
    return max(gaps)


class NaiveGate:
    """The sound rule of the gate, recomputed from nothing at each step."""

    def __init__(
        self, margin: Fraction, n_groups: int, n_classes: int, cold_start: int, reference: str
    ) -> None:
        self.margin, self.cold_start, self.reference = margin, cold_start, reference
        self.counts: Counts = [[0] * n_classes for _ in range(n_groups)]
        self.queue: list[tuple[int, int]] = []
        self.active: set[int] = set()
        self.n_classes = n_classes

    def _fits(self, group: int, block: Sequence[int]) -> bool:
        table = [list(row) for row in self.counts]
        table[group] = [a + b for a, b in zip(table[group], block, strict=True)]
        return naive_gap(table, self.reference) <= self.margin

    def _one(self, label: int) -> list[int]:
        return [int(k == label) for k in range(self.n_classes)]

    def admissible(self, group: int) -> tuple[int, ...]:
        if group not in self.active:
            return tuple(range(self.n_classes))
        return tuple(k for k in range(self.n_classes) if self._fits(group, self._one(k)))

    def offer(self, group: int, label: int) -> tuple[bool, bool, int]:
        """Return given, withheld, and how many answers the table grew by."""
        if group in self.active or not self.active:
            fits = not self.active or label in self.admissible(group)
            self.active |= {group} if fits else set()
            self.counts[group][label] += fits
            return fits, False, int(fits)
        self.queue.append((group, label))
        held = [k for z, k in self.queue if z == group]
        blocks = [
            block
            for block in itertools.product(
                *[range(held.count(k) + 1) for k in range(self.n_classes)]
            )
            if sum(block) and len(held) >= self.cold_start and self._fits(group, block)
        ]
        if not blocks:
            return False, True, 0
        seen_first = list(dict.fromkeys(held))
        order = seen_first + [k for k in range(self.n_classes) if k not in seen_first]
        best = max(blocks, key=lambda b: (sum(b), [b[k] for k in order]))
        for k, times in enumerate(best):
            for _ in range(times):
                self.queue.remove((group, k))  # the oldest of its class
                self.counts[group][k] += 1
        self.active.add(group)
        given = best[label] == held.count(label)
        return given, not given, sum(best)


@pytest.fixture(scope="session")
def naive_gate() -> type[NaiveGate]:
    return NaiveGate


@pytest.fixture(scope="session")
def definition() -> object:
    return naive_gap
