"""A gate that lets answers through while the table of given answers stays within the margin."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from evenhand import _checks
from evenhand._words import REFERENCES
from evenhand.fairness.gate import admission
from evenhand.fairness.gate.activation import could_fit, largest_block
from evenhand.fairness.gate.gate import gate_of
from evenhand.fairness.gate.table_gate import TableGate
from evenhand.fairness.notions import DemographicParity, exact_gap, parity_gaps


@gate_of(DemographicParity)
class DemographicParityGate(TableGate):
    """Decide, answer by answer, which classes each group may receive.

    Parameters
    ----------
    margin : float
        Largest allowed difference of two rates, in [0, 1], itself allowed; 0.05 means 1/20.
    n_groups, n_classes : int
        Size of the table; at least 1 group and 2 classes.
    cold_start : int, optional
        Answers withheld for a late group before a block of them is released. Default: 50, or
        ``2 / margin`` where that is more.
    reference : {"rest", "pairwise", "overall"}
        What a group's rate is compared with, see ``DemographicParity``.

    Privacy
    -------
    Reads released labels and public groups only. ``admissible`` is a function of the given
    answers, so it may be asked before any teacher is, at no cost. A label that is withheld or
    refused has been computed by its mechanism and is charged by whoever computed it.

    Notes
    -----
    After every given answer *all* active groups are within the margin in *all* classes. The promise
    is about the set of given answers. It says nothing of the population they are drawn from, nor of
    a student trained on them. The first group is active at once; a later group's answers are
    withheld until a block of them fits (tested one by one, its first answer would have a rate of 1
    and never fit). How the queries are ordered decides who is first, and where the table goes; it
    must not depend on private data.

    What people give or take back is counted and not tested. While they have left the margin, an
    answer is admissible if the gap is no larger after it.

    Examples
    --------
    >>> gate = DemographicParityGate(0.2, n_groups=2, n_classes=2, cold_start=3)
    >>> [gate.offer(0, label).given for label in (0, 1)]
    [True, True]
    >>> [gate.offer(1, label).withheld for label in (0, 0)]
    [True, True]
    >>> gate.offer(1, 1)
    Outcome(given=True, withheld=False, released=(2, 0))
    >>> gate.counts, round(gate.gap, 4)
    (array([[1, 1], [2, 1]]), 0.1667)
    >>> gate.admissible(0), gate.admissible(1)
    ((0,), (1,))
    """

    format: ClassVar[str] = "evenhand demographic parity gate 2"
    _references: ClassVar[tuple[str, ...]] = REFERENCES
    _finds_blocks_fast: ClassVar[bool] = True
    _keys: ClassVar[frozenset[str]] = TableGate._keys | {"margin", "reference"}

    def __init__(
        self,
        margin: float,
        n_groups: int,
        n_classes: int,
        *,
        cold_start: int | None = None,
        reference: str = "rest",
    ) -> None:
        _checks.one_of("reference", reference, self._references)
        super().__init__(
            (DemographicParity(margin=margin, reference=reference),),
            admission.GivenTable(
                _checks.at_least("n_groups", n_groups, 1),
                _checks.at_least("n_classes", n_classes, 2),
            ),
            cold_start=cold_start,
        )
        self._admission = admission.ADMISSION[reference]

    @classmethod
    def of(
        cls,
        notion: DemographicParity,
        n_groups: int,
        n_classes: int,
        *,
        cold_start: int | None = None,
    ) -> Self:
        """Return a new gate that keeps the margin of a notion."""
        return cls(
            notion.margin, n_groups, n_classes, cold_start=cold_start, reference=notion.reference
        )

    @property
    def gap(self) -> float:
        """Largest difference in the given table now; 0.0 with fewer than two groups in it."""
        return float(exact_gap(self._table.counts, self.notion.reference))

    def _within_after_one_more(self, group: int) -> tuple[int, ...]:
        return self._admission(self._table, group, self._p, self._q)

    def _excess(self) -> Fraction:
        gap = exact_gap(self._table.counts, self.notion.reference)
        return gap - self.notion.exact_margin

    def _excess_in_floats(self) -> float:
        gaps = np.abs(parity_gaps(self._table.counts, self.notion.reference))
        return float(np.nan_to_num(gaps).max()) - float(self.notion.margin)

    def _block(self, group: int, held: list[int]) -> tuple[int, ...] | None:
        order = self._order(group)
        return largest_block(self._table, held, order, self._p, self._q, self.notion.reference)

    def _could_fit(self, held: list[int], n_more: int) -> bool:
        return could_fit(self._table, held, n_more, self._p, self._q, self.notion.reference)

    def _settings(self) -> dict[str, object]:
        return {"margin": self.notion.margin, "reference": self.notion.reference}

    @classmethod
    def _from_settings(cls, state: Mapping[str, Any], n_groups: int, n_classes: int) -> Self:
        return cls(
            state["margin"],
            n_groups,
            n_classes,
            cold_start=state["cold_start"],
            reference=state["reference"],
        )

    @classmethod
    def _from_older(cls, state: Mapping[str, Any]) -> str:
        former = state.get("format") == "evenhand demographic parity gate 1"
        if former and state.get("rule") == "sound":
            return " Leave out its rule and its violations, and call it that."
        return ""
