"""A gate run over labels that are there already: which of them it lets through."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np

from evenhand import _checks
from evenhand.fairness.gate.demographic_parity import DemographicParityGate
from evenhand.typing import ArrayLike, IntArray


def admitted(gate: DemographicParityGate, groups: ArrayLike, labels: ArrayLike) -> IntArray:
    """Offer labels to a gate one by one, and return the rows that it gave.

    Parameters
    ----------
    gate : DemographicParityGate
        A new one; its table is filled.
    groups, labels : array-like of int, shape (n,)
        Group and class codes, in the order in which they are offered.

    Returns
    -------
    ndarray of int64
        Rows whose label was given, ascending; those withheld to the end are not among them.

    Privacy
    -------
    Reads the labels that it is handed and nothing else: free on released answers, private on
    private labels.

    Examples
    --------
    >>> gate = DemographicParityGate(0.2, n_groups=2, n_classes=2, cold_start=1)
    >>> admitted(gate, [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 1, 0]).tolist(), round(gate.gap, 4)
    ([0, 1, 2, 3, 5], 0.1667)
    """
    z = _checks.codes("groups", groups, gate.n_groups)
    k = _checks.codes("labels", labels, gate.n_classes)
    _checks.same_length(groups=z, labels=k)
    given: list[int] = []
    held: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    for row, (group, label) in enumerate(zip(z.tolist(), k.tolist(), strict=True)):
        outcome = gate.offer(group, label)
        for earlier, times in enumerate(outcome.released):
            given.extend(held[group, earlier].popleft() for _ in range(times))
        if outcome.given:
            given.append(row)
        elif outcome.withheld:
            held[group, label].append(row)
    given.extend(held[cell].popleft() for cell in gate.deliver())
    return np.sort(np.array(given, dtype=np.int64))
