"""A gate on rates that need the true label: what calibration rows say of them binds the answers.

The table of given answers says how often each group was given each class. Labelled calibration rows
say what the truth is behind an answer, with limits. Together they say within which range each rate
of the given answers lies (``docs/theory.md``), and the gate tests the range.

Write ``c_j`` for the answers of a group with class j, ``v_j`` for the part of them whose truth
makes them count, ``m_j`` for the part that the rate is taken among without counting. A rate is
``sum c_j v_j / sum c_j (v_j + m_j)``, and its ends over the limits of v and m are

    sum c_j v_high / sum c_j (v_high + m_low),      sum c_j v_low / sum c_j (v_low + m_high).

Groups that are pooled are one such sum. The limits are fixed before the first answer, so they are
computed once, rounded outward to millionths, and all that follows is arithmetic in whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeVar

import numpy as np

from evenhand import _checks
from evenhand._words import ADMIT_BY
from evenhand.fairness.calibrated_range import Column, columns_of, n_truth_limits
from evenhand.fairness.calibration import CalibratedJoint
from evenhand.fairness.gate.admission import GivenTable
from evenhand.fairness.gate.gate import gate_of
from evenhand.fairness.gate.table_gate import TableGate
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.notions import notion_from_dict, notion_to_dict
from evenhand.fairness.rates import Rates
from evenhand.fairness.tally import JointTally, Tally
from evenhand.typing import FloatArray, IntArray

STEPS: Final = 10**6
"""Limits are rounded outward to this part of 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GateCalibration:
    """What a gate knows of the truth behind an answer, and how sure it has to be."""

    labelled: JointTally
    """Calibration rows by group, true class and answer. The answers must come from the mechanism,
    or the model, whose answers the gate meets.
    """
    level: float = 0.95
    """Confidence of the upper limit, in (0, 1): over the calibration rows, of all limits at once
    and at all times, for they are drawn once.
    """
    admit_by: str = "limit"
    """``"limit"``: an answer is admitted if the upper limit of the gap stays within the margin.
    ``"estimate"``: if the estimate does; the gap is then above the margin about as often as not
    where the margin binds.
    """

    def __post_init__(self) -> None:
        _checks.open_unit("level", self.level)
        _checks.one_of("admit_by", self.admit_by, ADMIT_BY)
        if not self.labelled.counts.sum():
            raise ValueError(
                "labelled holds no calibration row, so nothing is known about the truth. Give "
                "labelled rows with the answers to them."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        counts = self.labelled.counts.tolist()
        return {"labelled": counts, "level": self.level, "admit_by": self.admit_by}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what ``to_dict`` wrote; anything doubtful is refused."""
        if not isinstance(values, Mapping) or set(values) != {"labelled", "level", "admit_by"}:
            raise ValueError(
                "A calibration must have exactly the keys labelled, level and admit_by."
            )
        return cls(
            labelled=JointTally(counts=values["labelled"]),
            level=values["level"],
            admit_by=values["admit_by"],
        )


Sums: TypeAlias = list[int]
"""Of a rate: numerator and denominator of its upper end, of its lower end; the least and the most
that its denominator can be, where groups are weighed."""


def cells_of(
    rates: Rates, calibration: GateCalibration | None, n_groups: int
) -> list[list[list[Sums]]]:
    """Return what one answer adds to the sums: by group, rate and answered class."""
    shape = (n_groups, rates.n_classes, rates.n_classes)
    known = np.zeros(shape, np.int64) if calibration is None else calibration.labelled.counts
    kinds = columns_of(rates, known, known.sum(axis=1), sampled=False)
    if calibration is not None and calibration.admit_by == "estimate":
        totals = known.sum(axis=1)
        over = lcm(*totals[totals > 0].tolist())
        return _by_group([[_estimated(column, over) for column in kind] for kind in kinds])
    n_limits = n_truth_limits(kinds)
    error = 1.0 if calibration is None else (1.0 - calibration.level) / max(1, n_limits)
    return _by_group([[_limited(column, error) for column in kind] for kind in kinds])


def _by_group(kinds: list[list[list[Sums]]]) -> list[list[list[Sums]]]:
    return [list(of_group) for of_group in zip(*kinds, strict=True)]


def _limited(column: Column, error: float) -> list[Sums]:
    (hit_low, hit_high), (miss_low, miss_high) = (
        [
            [rounded(Fraction(limit) * STEPS) for limit in limits]
            for rounded, limits in zip(
                (floor, ceil), column.part_limits(members, error), strict=True
            )
        ]
        for members in (column.hits, column.misses)
    )
    return _ends(column, STEPS, hit_low, hit_high, miss_low, miss_high)


def _estimated(column: Column, over: int) -> list[Sums]:
    trials = column.labelled.sum(axis=0).tolist()
    parts: list[tuple[list[int], list[int]]] = []
    for members in (column.hits, column.misses):
        low, high = [], []
        hits = (column.labelled * members).sum(axis=0).tolist()
        for j, (hit, n) in enumerate(zip(hits, trials, strict=True)):
            if members[:, j].all() or not members[:, j].any():
                part = over * bool(members[:, j].all())
                low.append(part)
                high.append(part)
            else:  # of an answer that no calibration row got, nothing is known
                low.append(hit * (over // n) if n else 0)
                high.append(hit * (over // n) if n else over)
        parts.append((low, high))
    (hit_low, hit_high), (miss_low, miss_high) = parts
    return _ends(column, over, hit_low, hit_high, miss_low, miss_high)


def _ends(
    column: Column,
    one: int,
    hit_low: Sequence[int],
    hit_high: Sequence[int],
    miss_low: Sequence[int],
    miss_high: Sequence[int],
) -> list[Sums]:
    everybody = bool(column.among.all())  # then the denominator is the number of answers
    return [
        [v_high, one, v_low, one, one, one]
        if everybody
        else [
            v_high,
            v_high + m_low,
            v_low,
            v_low + m_high,
            min(one, v_low + m_low),
            min(one, v_high + m_high),
        ]
        for v_low, v_high, m_low, m_high in zip(hit_low, hit_high, miss_low, miss_high, strict=True)
    ]


class CalibratedTable(GivenTable):
    """The answers given so far, with the sums of every rate and group."""

    __slots__ = ("cells", "sums")

    def __init__(self, cells: list[list[list[Sums]]]) -> None:
        super().__init__(len(cells), len(cells[0][0]))
        self.cells = cells
        self.sums: list[list[Sums]] = [[[0] * 6 for _ in of_group] for of_group in cells]

    def add(self, group: int, label: int, times: int = 1) -> None:
        """Record ``times`` answers."""
        super().add(group, label, times)
        for sums, cells in zip(self.sums[group], self.cells[group], strict=True):
            cell = cells[label]
            for i in range(6):
                sums[i] += times * cell[i]


Range: TypeAlias = tuple[int, int, int, int]
"""Numerator and denominator of the upper end of a rate, and of its lower end."""


def _range(sums: Sums) -> Range | None:
    """Return the range of a rate; None where it is taken among no record for sure."""
    high, of_high, low, of_low, _, most = sums
    if not most:
        return None
    if not of_high:
        high = of_high = 1
    if not of_low:
        low, of_low = 0, 1
    return high, of_high, low, of_low


def _within(own: Sums, other: Sums, p: int, q: int, *, weighed: bool) -> bool:
    """Whether two rates are at most ``p / q`` apart, wherever in their ranges they are.

    ``weighed``: times the weight of the other among both, as the gap to everybody is.
    """
    one, two = _range(own), _range(other)
    if one is None or two is None:
        return True
    high, of_high, low, of_low = one
    high_2, of_high_2, low_2, of_low_2 = two
    part, whole = _weight(own, other) if weighed else (1, 1)
    above = (high * of_low_2 - low_2 * of_high) * q * part
    below = (high_2 * of_low - low * of_high_2) * q * part
    return above <= p * of_high * of_low_2 * whole and below <= p * of_high_2 * of_low * whole


def _weight(own: Sums, other: Sums) -> tuple[int, int]:
    """Return the most that the other can weigh among both, as a fraction."""
    part, whole = other[5], other[5] + own[4]
    return (part, whole) if whole else (1, 1)


def _apart(own: Sums, other: Sums, *, weighed: bool) -> Fraction:
    """Return how far two rates can be apart: ``_within`` in the open."""
    one, two = _range(own), _range(other)
    if one is None or two is None:
        return Fraction(0)
    above = Fraction(*one[:2]) - Fraction(*two[2:])
    below = Fraction(*two[:2]) - Fraction(*one[2:])
    return max(above, below) * (Fraction(*_weight(own, other)) if weighed else 1)


def _apart_in_floats(own: Sums, other: Sums, *, weighed: bool) -> float:
    one, two = _range(own), _range(other)
    if one is None or two is None:
        return 0.0
    above = one[0] / one[1] - two[2] / two[3]
    below = two[0] / two[1] - one[2] / one[3]
    part, whole = _weight(own, other) if weighed else (1, 1)
    return max(above, below) * part / whole


_Number = TypeVar("_Number", Fraction, float)


def _compared(rows: Sequence[Sums], reference: str) -> Iterator[tuple[Sums, Sums]]:
    """Yield each group's sums of one rate, with those of what it is compared with."""
    if reference == "pairwise" or (reference == "rest" and len(rows) == 2):
        for i, row in enumerate(rows):
            for other in rows[:i]:
                yield row, other
        return
    everybody = [sum(column) for column in zip(*rows, strict=True)]
    for row in rows:
        yield row, [total - own for total, own in zip(everybody, row, strict=True)]


def calibrated_gap(table: CalibratedTable, reference: str) -> Fraction:
    """Return the largest difference of a rate that the limits allow, between groups with answers.

    The definition itself, in the open, 0 with fewer than two groups.
    """
    return max(_gaps(table, reference, _apart), default=Fraction(0))


def _gaps(
    table: CalibratedTable, reference: str, apart: Callable[..., _Number]
) -> Iterator[_Number]:
    rows = [sums for sums, size in zip(table.sums, table.sizes, strict=True) if size]
    if len(rows) < 2:
        return
    for of_rate in zip(*rows, strict=True):
        for own, other in _compared(of_rate, reference):
            yield apart(own, other, weighed=reference == "overall")


def calibrated_trace(
    groups: IntArray,
    labels: IntArray,
    ends: IntArray,
    notion: RateNotion,
    n_groups: int,
    n_classes: int,
    calibration: GateCalibration | None,
) -> tuple[FloatArray, int]:
    """Return the gap after each event, and how many events left it above the margin.

    ``ends`` says after how many of the given answers each event ends.
    """
    table = CalibratedTable(cells_of(rates_of(notion, n_classes), calibration, n_groups))
    gaps: FloatArray = np.zeros(len(ends))
    n_outside, first = 0, 0
    for event, last in enumerate(ends.tolist()):
        for given in range(first, last):
            table.add(int(groups[given]), int(labels[given]))
        gap = calibrated_gap(table, notion.reference)
        gaps[event] = float(gap)
        n_outside += gap > notion.exact_margin
        first = last
    return gaps, n_outside


def admissible(
    table: CalibratedTable, group: int, p: int, q: int, reference: str
) -> tuple[int, ...]:
    """Return the classes whose addition keeps every gap at most ``p / q``."""
    others = [table.sums[z] for z in table.groups if z != group]
    if not others:
        return tuple(range(len(table.classes)))
    found = []
    for label in range(len(table.classes)):
        own = [
            [total + more for total, more in zip(sums, cells[label], strict=True)]
            for sums, cells in zip(table.sums[group], table.cells[group], strict=True)
        ]
        if _all_within(own, others, p, q, reference):
            found.append(label)
    return tuple(found)


def _all_within(own: list[Sums], others: list[list[Sums]], p: int, q: int, reference: str) -> bool:
    """Whether all gaps that ``own`` moves are within; stops at the first that is not."""
    for r, sums in enumerate(own):
        if reference == "pairwise":  # pairs of others do not move
            for other in others:
                if not _within(sums, other[r], p, q, weighed=False):
                    return False
            continue
        rows = [sums, *[other[r] for other in others]]
        for row, rest in _compared(rows, reference):
            if not _within(row, rest, p, q, weighed=reference == "overall"):
                return False
    return True


@gate_of(RateNotion)  # type: ignore[type-abstract]  # of every kind that has no other
class CalibratedGate(TableGate):
    """Keep answers within a margin on rates of true classes, which calibration rows tell of.

    Parameters
    ----------
    notion : RateNotion
        What is kept, and how far apart the groups may be.
    n_groups, n_classes : int
    calibration : GateCalibration, optional
        Needed by a notion that reads true classes.
    cold_start : int, optional
        Answers withheld for a late group before a block of them is released. Default: 50, or
        ``2 / margin`` where that is more.

    Privacy
    -------
    Reads released labels, public groups and the public table of calibration: free. The answers to
    the calibration rows are charged by whoever bought them (``ask_calibration``), refused and
    withheld answers by whoever drew them.

    Notes
    -----
    With the stated level, over the calibration rows, the following holds after every answer, for
    all groups and classes under comparison: the gap that is expected of the given answers, by the
    truth behind such an answer in the population, is within the margin. The limits are drawn once
    and bound every table at once, so nothing is lost by looking at each step. With
    ``admit_by="estimate"`` the estimate of the gap is within the margin, and nothing is promised of
    the gap itself. Conditions: ``evenhand.fairness.calibration.CONDITIONS``.

    A rate that an answer of one class says nothing about can be kept by giving that class alone:
    look at the coverage per group and class.

    Examples
    --------
    >>> from evenhand.fairness import ErrorParity
    >>> labelled = JointTally(counts=[[[900, 100], [100, 900]], [[900, 50], [100, 950]]])
    >>> gate = CalibratedGate(
    ...     ErrorParity(margin=0.08), 2, 2, calibration=GateCalibration(labelled=labelled),
    ...     cold_start=4)
    >>> [gate.offer(0, label).given for label in (0, 1)]
    [True, True]
    >>> [gate.offer(1, label).withheld for label in (0, 1, 1)]
    [True, True, True]
    >>> gate.offer(1, 0)
    Outcome(given=True, withheld=False, released=(1, 2))
    >>> round(gate.gap, 4), round(gate.estimate.value, 4)
    (0.07, 0.025)
    """

    format: ClassVar[str] = "evenhand calibrated gate 1"
    _keys: ClassVar[frozenset[str]] = TableGate._keys | {"notion", "calibration"}

    _table: CalibratedTable

    def __init__(
        self,
        notion: RateNotion,
        n_groups: int,
        n_classes: int,
        *,
        calibration: GateCalibration | None = None,
        cold_start: int | None = None,
    ) -> None:
        rates = rates_of(notion, _checks.at_least("n_classes", n_classes, 2))
        size = (_checks.at_least("n_groups", n_groups, 1), n_classes)
        if calibration is None and rates.reads_labels:
            raise ValueError(
                f"{type(notion).__name__} is about true classes, which answers alone do not tell. "
                f"Give calibration=GateCalibration(labelled=...): labelled rows of every group, "
                f"counted with the answers to them."
            )
        if calibration is not None and calibration.labelled.counts.shape[:2] != size:
            found = calibration.labelled.counts.shape[:2]
            raise ValueError(
                f"The calibration rows count {found[0]} groups and {found[1]} classes, the gate "
                f"{n_groups} and {n_classes}. Count both with the same codes."
            )
        if calibration is not None and not rates.reads_labels:
            raise ValueError(
                f"{type(notion).__name__} is about answers alone, so calibration rows would not be "
                f"read. Leave calibration out."
            )
        super().__init__(
            (notion,),
            CalibratedTable(cells_of(rates, calibration, n_groups)),
            cold_start=cold_start,
        )
        self.calibration = calibration
        self._margin = float(notion.margin)

    @classmethod
    def of(
        cls,
        notion: RateNotion,
        n_groups: int,
        n_classes: int,
        *,
        cold_start: int | None = None,
        calibration: GateCalibration | None = None,
    ) -> Self:
        """Return a new gate that keeps the margin of a notion."""
        return cls(notion, n_groups, n_classes, calibration=calibration, cold_start=cold_start)

    @property
    def gap(self) -> float:
        """What is held within the margin: the upper limit of the gap, or its estimate.

        0.0 with fewer than two groups in the table.
        """
        return float(calibrated_gap(self._table, self.notion.reference))

    @property
    def estimate(self) -> Estimate:
        """The gap of the given answers with its interval, as ``CalibratedJoint`` has it."""
        if self.calibration is None:
            raise ValueError(f"{type(self.notion).__name__} needs no calibration: see gap.")
        joint = CalibratedJoint(
            answered=Tally(counts=self.counts), labelled=self.calibration.labelled, sampled=False
        )
        return joint.gap(self.notion, level=self.calibration.level)

    def _within_after_one_more(self, group: int) -> tuple[int, ...]:
        return admissible(self._table, group, self._p, self._q, self.notion.reference)

    def _excess(self) -> Fraction:
        return calibrated_gap(self._table, self.notion.reference) - self.notion.exact_margin

    def _excess_in_floats(self) -> float:
        gaps = _gaps(self._table, self.notion.reference, _apart_in_floats)
        return max(gaps, default=0.0) - self._margin

    def _settings(self) -> dict[str, object]:
        calibration = None if self.calibration is None else self.calibration.to_dict()
        return {"notion": notion_to_dict(self.notion), "calibration": calibration}

    @classmethod
    def _from_settings(cls, state: Mapping[str, Any], n_groups: int, n_classes: int) -> Self:
        calibration = state["calibration"]
        return cls(
            notion_from_dict(state["notion"]),
            n_groups,
            n_classes,
            calibration=None if calibration is None else GateCalibration.from_dict(calibration),
            cold_start=state["cold_start"],
        )
