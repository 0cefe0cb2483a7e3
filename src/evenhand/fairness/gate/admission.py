"""Which classes a group may still receive, given the public table of answers so far.

All arithmetic is in whole numbers: a margin ``p / q`` and counts, so "within" has no rounding.
Write ``m[z][k]`` for the answers, ``n[z]`` and ``c[k]`` for its sums, ``N`` for the total. The
gap to the rest is ``m[z][k] / n[z] - (c[k] - m[z][k]) / (N - n[z])``, which is within the margin
when ``|m[z][k] N - c[k] n[z]| <= (p/q) n[z] (N - n[z])``; likewise for the other references.

One more answer (z, j) changes column k in one of two ways: its class was chosen (k = j) or not.
So each column is checked twice and not once per candidate, and the cost is that of one table.
"""

from __future__ import annotations

from collections.abc import Callable


class GivenTable:
    """The answers given so far, with the sums that every check needs kept up to date."""

    __slots__ = ("classes", "counts", "groups", "sizes", "total")

    def __init__(self, n_groups: int, n_classes: int) -> None:
        self.counts = [[0] * n_classes for _ in range(n_groups)]
        self.sizes = [0] * n_groups
        self.classes = [0] * n_classes
        self.total = 0
        self.groups: list[int] = []  # those under comparison, in order of activation

    def add(self, group: int, label: int, times: int = 1) -> None:
        """Record ``times`` answers."""
        self.counts[group][label] += times
        self.sizes[group] += times
        self.classes[label] += times
        self.total += times

    def remove(self, group: int, label: int) -> None:
        """Forget one answer; a group with none left is no longer under comparison."""
        self.add(group, label, -1)
        if not self.sizes[group] and group in self.groups:
            self.groups.remove(group)

    def replace(self, counts: list[list[int]]) -> None:
        """Count anew from ``counts``; the groups under comparison stay."""
        self.counts = counts
        self.sizes = [sum(row) for row in counts]
        self.classes = [sum(column) for column in zip(*counts, strict=True)]
        self.total = sum(self.sizes)


Admission = Callable[[GivenTable, int, int, int], tuple[int, ...]]
"""(table, group, p, q) -> classes whose addition keeps every gap at most p / q."""


def rest(table: GivenTable, group: int, p: int, q: int) -> tuple[int, ...]:
    """Keep every active group within the margin of all others pooled."""
    return _pooled(table, group, p, q, whole=False)


def overall(table: GivenTable, group: int, p: int, q: int) -> tuple[int, ...]:
    """Keep every active group within the margin of the whole table."""
    return _pooled(table, group, p, q, whole=True)


def _pooled(table: GivenTable, group: int, p: int, q: int, *, whole: bool) -> tuple[int, ...]:
    total = table.total + 1
    classes = table.classes
    labels = range(len(classes))
    unchosen_fails = [False] * len(classes)
    chosen_fails = [False] * len(classes)
    for z in table.groups:
        if z == group:
            size = table.sizes[z] + 1
            step = total - size  # what one more answer of class k adds to the difference
        else:
            size = table.sizes[z]
            step = -size
        bound = p * size * (total if whole else total - size) // q
        row = table.counts[z]
        for k in labels:
            difference = row[k] * total - classes[k] * size
            if not -bound <= difference <= bound:
                unchosen_fails[k] = True
            if not -bound <= difference + step <= bound:
                chosen_fails[k] = True
    return _candidates(unchosen_fails, chosen_fails)


def pairwise(table: GivenTable, group: int, p: int, q: int) -> tuple[int, ...]:
    """Keep every pair of active groups within the margin; pairs without ``group`` do not move."""
    size = table.sizes[group] + 1
    row = table.counts[group]
    labels = range(len(row))
    unchosen_fails = [False] * len(row)
    chosen_fails = [False] * len(row)
    for z in table.groups:
        if z == group:
            continue
        other_size = table.sizes[z]
        other = table.counts[z]
        bound = p * size * other_size // q
        for k in labels:
            difference = row[k] * other_size - other[k] * size
            if not -bound <= difference <= bound:
                unchosen_fails[k] = True
            if not -bound <= difference + other_size <= bound:
                chosen_fails[k] = True
    return _candidates(unchosen_fails, chosen_fails)


def _candidates(unchosen_fails: list[bool], chosen_fails: list[bool]) -> tuple[int, ...]:
    """Class j is open if column j holds with it and every other column holds without it."""
    failing = [k for k, fails in enumerate(unchosen_fails) if fails]
    if not failing:
        return tuple([k for k, fails in enumerate(chosen_fails) if not fails])
    if len(failing) == 1 and not chosen_fails[failing[0]]:
        return (failing[0],)
    return ()


ADMISSION: dict[str, Admission] = {"rest": rest, "pairwise": pairwise, "overall": overall}
