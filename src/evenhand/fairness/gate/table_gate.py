"""A table of given answers, and what becomes of each answer that is offered to it.

What every gate over one table shares: the first group is active at once, a later one is withheld
until a block of its answers fits, people's decisions are counted, and the state is saved. A case
says when the table is within its margin.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from evenhand import _checks
from evenhand.fairness.gate.activation import RETRY, nearly_all
from evenhand.fairness.gate.admission import GivenTable
from evenhand.fairness.gate.gate import Outcome
from evenhand.fairness.notion import RateNotion
from evenhand.typing import BoolArray, IntArray


class TableGate(ABC):
    """Base of the gates that keep one table; use one of its subclasses.

    Parameters
    ----------
    notions : tuple of RateNotion
        Whose margins are kept.
    table : GivenTable
        Empty; its size is that of the gate.
    cold_start : int, optional
        Default: 50, or ``2 / margin`` of the narrowest margin where that is more.
    """

    format: ClassVar[str]
    _keys: ClassVar[frozenset[str]] = frozenset(
        ["format", "cold_start", "counts", "held", "active", "first_held"]
    )
    _optional: ClassVar[frozenset[str]] = frozenset(["by_hand", "least_block"])
    _finds_blocks_fast: ClassVar[bool] = False

    def __init__(
        self, notions: tuple[RateNotion, ...], table: GivenTable, *, cold_start: int | None
    ) -> None:
        self.notions = notions
        self.n_groups, self.n_classes = len(table.sizes), len(table.classes)
        narrowest = min(notion.margin for notion in notions)
        known = default_cold_start(narrowest) if cold_start is None else cold_start
        self.cold_start = _checks.at_least("cold_start", known, 1)
        self.least_block = 1
        """Answers that a late group's block has at least, and every group it is compared with.

        Above 1 the first group waits for so many too: one that comes once and never again would
        hold up all others, whose rates would have to be near its 0 or 1.
        """
        exact = notions[0].exact_margin
        self._p, self._q = exact.numerator, exact.denominator
        self._table = table
        self._held = [[0] * self.n_classes for _ in range(self.n_groups)]
        self._first_held: list[tuple[int, int]] = []  # cells, by their first withheld answer
        self._all = tuple(range(self.n_classes))
        self._active = [False] * self.n_groups
        self._tried = [0] * self.n_groups  # given answers when a block was last looked for late
        self._n_by_hand = 0  # what people gave or took back; only then may the margin be left
        self._outside = False
        self._open: list[tuple[int, ...] | None] = [None] * self.n_groups
        nothing = (0,) * self.n_classes
        self._given = Outcome(True, False, nothing)
        self._refused = Outcome(False, False, nothing)
        self._withheld = Outcome(False, True, nothing)

    @property
    def notion(self) -> RateNotion:
        """The notion whose margin is kept among the given answers."""
        return self.notions[0]

    @abstractmethod
    def _within_after_one_more(self, group: int) -> tuple[int, ...]:
        """Return the classes of which one more answer to an active group leaves all within."""

    @abstractmethod
    def _excess(self) -> Fraction:
        """Return by how much the gap of the given table is above the margin; <= 0 is within."""

    def _excess_in_floats(self) -> float:
        """Return the same, rounded."""
        return float(self._excess())

    @abstractmethod
    def _settings(self) -> dict[str, object]:
        """Return what, beside ``cold_start``, a new gate of this kind is made of, for a state."""

    @classmethod
    @abstractmethod
    def _from_settings(cls, state: Mapping[str, Any], n_groups: int, n_classes: int) -> Self:
        """Return a new gate of the settings in a state."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """Largest difference in the given table now; 0.0 with fewer than two groups in it."""

    def admissible(self, group: int) -> tuple[int, ...]:
        """Return the classes whose answer would be given or withheld now; () means skip the query.

        Every class for a group that is not active yet. It depends on given answers only.
        """
        if not 0 <= group < self.n_groups:
            raise ValueError(
                f"group must be from 0 to {self.n_groups - 1}, got group={group!r}. The table "
                "has a fixed size: make the gate with n_groups for every group that may come."
            )
        classes = self._open[group]
        if classes is None:
            classes = self._compute_open(group)
            self._open[group] = classes
        return classes

    def can_start(self, group: int, n_more: int) -> bool:
        """Return False if this group waits, and no ``n_more`` further answers could let it start.

        Its answers are withheld until ``cold_start`` of them are there and a block of them fits.
        If neither the answers that can still be drawn nor their classes can bring that about,
        while the given answers stand as they are, then asking for them would be paid for nothing.
        """
        if self._active[group] or not self._table.groups:
            return True
        held = self._held[group]
        enough = n_more > 0 and sum(held) + n_more >= self.cold_start
        return enough and self._could_fit(held, n_more)

    def offer(self, group: int, label: int) -> Outcome:
        """Give the answer, withhold it, or refuse it, and record which."""
        classes = self._candidates(group, label)
        if not self._active[group] and (self._table.groups or self.least_block > 1):
            return self._withhold(int(group), int(label))
        if label not in classes:
            return self._refused
        self._give(group, label)
        return self._given

    def deliver(self) -> list[tuple[int, int]]:
        """Return withheld answers, as (group, label), that may be given now, each recorded.

        One by one, in order of the cells' first withholding, until nothing fits: every table on
        the way is within the margin. Groups that still wait keep what is withheld.
        """
        given: list[tuple[int, int]] = []
        found = True
        while found:
            found = False
            for group, label in self._first_held:
                held = self._held[group]
                if self._active[group] and held[label] and label in self.admissible(group):
                    held[label] -= 1
                    self._record(group, label)
                    given.append((group, label))
                    found = True
        return given

    def start_late(self, group: int) -> tuple[int, ...] | None:
        """Give a block of a waiting group's answers, per class, if one fits by now; else None.

        What others were given since the group was last offered an answer may have made room. Not
        looked for again while nothing more is given, or hardly more where it is slow to find.
        """
        total, tried = self._table.total, self._tried[group]
        more = 0 if self._finds_blocks_fast else tried // RETRY
        if self._active[group] or not any(self._held[group]) or total <= tried + more:
            return None
        self._tried[group] = total
        return self._release_block(group)

    def give_by_hand(self, group: int, label: int) -> None:
        """Record an answer that a person gave, whatever the margin."""
        self._candidates(group, label)  # refuses what is not in the table
        self._n_by_hand += 1
        self._give(int(group), int(label))
        self._outside = self._exceeds()

    def take_back(self, group: int, label: int) -> None:
        """Record that a given answer stands no longer; one that was never given is refused.

        A group whose last answer is taken back waits for its cold start again.
        """
        self._candidates(group, label)
        if not self._table.counts[group][label]:
            raise ValueError(
                f"No answer {label} of group {group} was given, so none can be taken back."
            )
        self._n_by_hand += 1
        self._table.remove(int(group), int(label))
        self._active[group] = int(group) in self._table.groups
        self._open = [None] * self.n_groups
        self._outside = self._exceeds()

    def forget(self, group: int, label: int) -> None:
        """Record that a withheld answer is no longer wanted; one that is not held is refused."""
        self._candidates(group, label)
        if not self._held[group][label]:
            raise ValueError(f"No answer {label} of group {group} is withheld.")
        self._held[group][label] -= 1

    @property
    def counts(self) -> IntArray:
        """Given answers, shape (n_groups, n_classes)."""
        return np.array(self._table.counts, dtype=np.int64)

    @property
    def held(self) -> IntArray:
        """Withheld answers, shape (n_groups, n_classes)."""
        return np.array(self._held, dtype=np.int64)

    @property
    def active(self) -> BoolArray:
        """Groups that are under comparison, shape (n_groups,)."""
        return np.array(self._active, dtype=np.bool_)

    @property
    def within(self) -> bool:
        """Whether the given table is within the margin now; people alone can leave it."""
        return not self._outside

    @property
    def locked(self) -> bool:
        """Whether no active group may receive any class: only a late group can move the table."""
        active = [z for z in range(self.n_groups) if self._active[z]]
        return bool(active) and not any(self.admissible(z) for z in active)

    def to_dict(self) -> dict[str, object]:
        """Return the whole state in JSON's types; it holds given and withheld labels, no more."""
        state: dict[str, object] = {
            "format": self.format,
            **self._settings(),
            "cold_start": self.cold_start,
            "counts": [list(row) for row in self._table.counts],
            "held": [list(row) for row in self._held],
            "active": list(self._table.groups),
            "first_held": [list(cell) for cell in self._first_held],
        }
        if self.least_block > 1:
            state["least_block"] = self.least_block
        return state | ({"by_hand": self._n_by_hand} if self._n_by_hand else {})

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return a gate that goes on where ``to_dict`` stopped; anything doubtful is refused."""
        cls._check_keys(state)
        counts, held = _rows("counts", state["counts"]), _rows("held", state["held"])
        if len(counts) != len(held) or len(counts[0]) != len(held[0]):
            raise ValueError("A gate's counts and held must have the same shape.")
        gate = cls._from_settings(state, len(counts), len(counts[0]))
        for group, row in enumerate(counts):
            for label, times in enumerate(row):
                gate._record(group, label, times)
        gate._held = held
        for group in state["active"]:
            known = _checks.at_least("active", group, 0) < len(counts)
            if not known or gate._active[group] or not any(counts[group]):
                raise ValueError(
                    f"A gate's active lists group {group}, which is unknown, listed twice, or has "
                    "no given answers."
                )
            gate._activate(group)
        gate._first_held = [(group, label) for group, label in state["first_held"]]
        gate.least_block = _checks.at_least("least_block", state.get("least_block", 1), 1)
        gate._n_by_hand = _checks.at_least("by_hand", state.get("by_hand", 0), 0)
        gate._check_consistent()
        gate._outside = gate._n_by_hand > 0 and gate._exceeds()
        return gate

    def catch_up(self, counts: list[list[int]]) -> None:
        """Take over what a ``GateStack`` counted for this gate since it was last asked."""
        self._table.replace(counts)
        self._open = [None] * self.n_groups

    @classmethod
    def _from_older(cls, state: Mapping[str, Any]) -> str:
        """Return how a state of an earlier version is brought up to date; "" where it is not."""
        return ""

    @classmethod
    def _check_keys(cls, state: Mapping[str, Any]) -> None:
        found = state.get("format")
        if found != cls.format:
            way_out = cls._from_older(state)
            raise ValueError(f"A gate's format must be {cls.format!r}, got {found!r}.{way_out}")
        missing = sorted(cls._keys - set(state))
        unknown = sorted(set(state) - cls._keys - cls._optional)
        if missing or unknown:
            raise ValueError(
                f"A gate's state must have exactly the keys {', '.join(sorted(cls._keys))}; "
                f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}."
            )

    def _check_consistent(self) -> None:
        cells = set(self._first_held)
        occupied = {
            (z, k) for z, row in enumerate(self._held) for k, times in enumerate(row) if times
        }
        grid = {(z, k) for z in range(self.n_groups) for k in self._all}
        if len(cells) < len(self._first_held) or not occupied <= cells <= grid:
            raise ValueError("A gate's first_held must list each cell of held that was used, once.")
        for group, row in enumerate(self._table.counts):
            if any(row) and not self._active[group]:
                raise ValueError(f"Group {group} has given answers but is not listed as active.")
        self._check_margin()

    def _check_margin(self) -> None:
        if not self._n_by_hand and self._exceeds():
            raise ValueError(
                f"The given answers have a gap of {self.gap:.6g}, above the margin of "
                f"{self.notion.margin}. A sound gate never gets there: the state is not its own."
            )

    def _compute_open(self, group: int) -> tuple[int, ...]:
        if not self._active[group]:
            return self._all
        if self._outside:
            return tuple(label for label in self._all if self._leads_no_further(group, label))
        return self._within_after_one_more(group)

    def _leads_no_further(self, group: int, label: int) -> bool:
        """Whether the gap, which people brought above the margin, is no larger with one more."""
        before = self._excess()
        self._table.add(group, label)
        after = self._excess()
        self._table.add(group, label, -1)
        return after <= max(before, Fraction(0))

    def _candidates(self, group: int, label: int) -> tuple[int, ...]:
        """Return the admissible classes of a group, for an answer that is in the table."""
        if not 0 <= label < self.n_classes:
            raise ValueError(
                f"label must be a class from 0 to {self.n_classes - 1}, got label={label!r}. An "
                "answer that was already rejected (-1) is not offered."
            )
        return self.admissible(group)

    def _give(self, group: int, label: int) -> None:
        self._record(group, label)
        if not self._active[group]:
            self._activate(group)

    def _record(self, group: int, label: int, times: int = 1) -> None:
        self._table.add(group, label, times)
        self._open = [None] * self.n_groups
        if self._outside:
            self._outside = self._exceeds()

    def _activate(self, group: int) -> None:
        self._active[group] = True
        self._table.groups.append(int(group))
        self._open = [None] * self.n_groups

    def _withhold(self, group: int, label: int) -> Outcome:
        held = self._held[group]
        if not held[label] and (group, label) not in self._first_held:
            self._first_held.append((group, label))
        held[label] += 1
        waits = not self._finds_blocks_fast and sum(held) % max(1, sum(held) // RETRY)
        block = None if waits else self._release_block(group)
        if block is None:
            return self._withheld
        # Oldest first, so the answer on offer is among the released only if its class is emptied.
        given = held[label] == 0
        earlier = list(block)
        earlier[label] -= given
        return Outcome(given, not given, tuple(earlier))

    def _release_block(self, group: int) -> tuple[int, ...] | None:
        held, least = self._held[group], self.least_block
        compared = [self._table.sizes[z] for z in self._table.groups]
        first = not compared
        if sum(held) < (least if first else max(self.cold_start, least)):
            return None
        if not first and min(compared) < least:
            return None
        block = tuple(held) if first else self._block(group, held)
        if block is not None and sum(block) < least:
            return None
        if block is not None:
            for label, times in enumerate(block):
                held[label] -= times
                self._record(group, label, times)
            self._activate(group)
        return block

    def _block(self, group: int, held: list[int]) -> tuple[int, ...] | None:
        """Return how many held answers of each class to release at once, or None if none fits."""
        return nearly_all(self._table, group, held, self._excess, self._excess_in_floats)

    def _could_fit(self, held: list[int], n_more: int) -> bool:
        """Whether a block may fit, were ``n_more`` further answers held; False only if none can."""
        return True

    def _order(self, group: int) -> list[int]:
        """Classes of a group by their first withheld answer, then the others."""
        order = [k for z, k in self._first_held if z == group]
        return order + [k for k in self._all if k not in order]

    def _exceeds(self) -> bool:
        return self._excess() > 0


def default_cold_start(margin: float) -> int:
    """Return how many answers of a late group are withheld before a block of them may go out.

    With few answers a single one moves a group's rate by a good part of the margin, and the gate
    can close for that group: 2 / margin answers leave room on both sides
    (``benchmarks/reject_option_coverage.py``: 1 / margin is too few).
    """
    return max(50, math.ceil(2 / max(margin, 0.001)))


def least_block(margin: float) -> int:
    """Return how many answers a group needs so that the gate cannot close for it, of two classes.

    One more answer moves a group's rate to one of two values, ``1 / (n + 1)`` apart, and its rate
    now lies between them. What the margin allows is ``2 * margin`` wide and holds the rate now, so
    it holds one of the two values where ``n + 1 >= 1 / (2 * margin)``. With fewer answers it may
    lie between them: no answer is admissible, and if those to others keep its ends where they are,
    none ever is.
    """
    return max(1, math.ceil(0.5 / max(margin, 0.001)) - 1)


def _rows(name: str, table: Any) -> list[list[int]]:
    """Copy a full table of whole numbers >= 0."""
    if (
        not isinstance(table, list)
        or not table
        or not all(isinstance(row, list) and len(row) == len(table[0]) for row in table)
    ):
        raise ValueError(f"A gate's {name} must be a list of equally long lists, got {table!r}.")
    return [[_checks.at_least(name, times, 0) for times in row] for row in table]
