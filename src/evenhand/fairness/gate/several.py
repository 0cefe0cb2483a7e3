"""Several margins at once: an answer is given if it keeps all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Self

from evenhand.fairness.gate.admission import GivenTable
from evenhand.fairness.gate.gate import gate_kind, gate_of_several
from evenhand.fairness.gate.table_gate import TableGate
from evenhand.fairness.notion import RateNotion


class SharedTable(GivenTable):
    """A table whose every change the tables of several gates take part in."""

    __slots__ = ("_others",)

    def __init__(self, tables: Sequence[GivenTable]) -> None:
        super().__init__(len(tables[0].sizes), len(tables[0].classes))
        self._others = tuple(tables)
        for table in tables:
            table.groups = self.groups  # one list of the groups under comparison

    def add(self, group: int, label: int, times: int = 1) -> None:
        """Record ``times`` answers, here and there."""
        super().add(group, label, times)
        for table in self._others:
            table.add(group, label, times)


@gate_of_several
class SeveralGate(TableGate):
    """Keep several margins among one set of answers.

    Parameters
    ----------
    gates : sequence of TableGate
        New ones, of one size, one for each margin; asked by nobody else from now on.
    cold_start : int, optional
        As for each of them. Default: 50, or ``2 / margin`` of the narrowest margin.

    Notes
    -----
    A class is admissible if it is for every gate, and a late group's block fits all of them. That
    each margin can be kept does not say that all can be kept together: look at the coverage.

    Examples
    --------
    >>> from evenhand.fairness import DemographicParity
    >>> from evenhand.fairness.gate.gate import open_gate
    >>> gate = open_gate(
    ...     [DemographicParity(margin=0.2), DemographicParity(margin=0.2, reference="overall")],
    ...     n_groups=2, n_classes=2, cold_start=2)
    >>> [gate.offer(z, k).given for z, k in ((0, 0), (0, 1), (1, 0), (1, 1))]
    [True, True, False, True]
    >>> gate.gaps
    (0.0, 0.0)
    """

    format: ClassVar[str] = "evenhand several margins 1"
    _keys: ClassVar[frozenset[str]] = TableGate._keys | {"gates"}

    def __init__(self, gates: Sequence[TableGate], *, cold_start: int | None = None) -> None:
        strangers = [type(gate).__name__ for gate in gates if not isinstance(gate, TableGate)]
        if strangers:
            raise ValueError(
                f"{' and '.join(strangers)} keeps no table that others could share. Derive it from "
                f"TableGate (evenhand.fairness.gate.table_gate), or keep its margin alone."
            )
        sizes = {(gate.n_groups, gate.n_classes) for gate in gates}
        if len(sizes) != 1:
            raise ValueError(
                f"Several margins are kept by gates of one size, and at least one; got "
                f"{len(gates)} gates of {len(sizes)} sizes."
            )
        super().__init__(
            tuple(gate.notion for gate in gates),
            SharedTable([gate._table for gate in gates]),
            cold_start=cold_start,
        )
        self.gates = tuple(gates)

    @property
    def notion(self) -> RateNotion:
        """The notion whose gap is nearest to its margin, or furthest above it."""
        return max(self.gates, key=lambda gate: gate._excess()).notion

    @property
    def gap(self) -> float:
        """The gap by ``notion``: nearest to its margin, or furthest above it."""
        return max(self.gates, key=lambda gate: gate._excess()).gap

    @property
    def gaps(self) -> tuple[float, ...]:
        """The gap by each of ``notions``."""
        return tuple(gate.gap for gate in self.gates)

    @property
    def withins(self) -> tuple[bool, ...]:
        """Whether the given table is within the margin of each of ``notions``."""
        return tuple(gate._excess() <= 0 for gate in self.gates)

    def _within_after_one_more(self, group: int) -> tuple[int, ...]:
        found = set(self._all)
        for gate in self.gates:
            found &= set(gate._within_after_one_more(group))
        return tuple(sorted(found))

    def _excess(self) -> Fraction:
        return max(gate._excess() for gate in self.gates)

    def _excess_in_floats(self) -> float:
        return max(gate._excess_in_floats() for gate in self.gates)

    def _could_fit(self, held: list[int], n_more: int) -> bool:
        return all(gate._could_fit(held, n_more) for gate in self.gates)

    def _settings(self) -> dict[str, object]:
        return {"gates": [{"format": gate.format, **gate._settings()} for gate in self.gates]}

    @classmethod
    def _from_settings(cls, state: Mapping[str, Any], n_groups: int, n_classes: int) -> Self:
        gates: list[TableGate] = []
        for settings in state["gates"]:
            kind = gate_kind(settings)
            if not issubclass(kind, TableGate) or issubclass(kind, SeveralGate):
                raise ValueError(f"{kind.__name__} is none of several gates over one table.")
            own = {"cold_start": state["cold_start"], **settings}
            gates.append(kind._from_settings(own, n_groups, n_classes))
        return cls(gates, cold_start=state["cold_start"])
