"""FairPATE's gate as printed: for comparison with the paper, for it does not keep its margin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from evenhand import _checks
from evenhand.fairness.gate.admission import GivenTable
from evenhand.fairness.gate.demographic_parity import DemographicParityGate
from evenhand.fairness.gate.gate import Outcome


class PublishedGate(DemographicParityGate):
    """Algorithm 1 of FairPATE, which looks only at the pair being answered.

    Beyond two groups and two classes it does not keep its own definition
    (``docs/gate.md``); ``violations`` counts the answers after which the table was outside the
    margin. It costs as much privacy as the sound gate.

    Parameters
    ----------
    margin, n_groups, n_classes
        As for ``DemographicParityGate``.
    cold_start : int, optional
        Answers that a group gets before it is tested at all (M in the paper). Default: as for
        ``DemographicParityGate``.
    reference : {"rest"}
        Algorithm 1 knows no other.

    Examples
    --------
    >>> gate = PublishedGate(0.05, n_groups=2, n_classes=2, cold_start=10)
    >>> sum(gate.offer(0, i % 2).given for i in range(50))  # the rate of "the rest" is 0/0
    10
    """

    format: ClassVar[str] = "evenhand published gate 1"
    _keys: ClassVar[frozenset[str]] = DemographicParityGate._keys | {"violations"}

    _references: ClassVar[tuple[str, ...]] = ("rest",)

    violations: int = 0
    """Answers after which the given table was outside the margin."""

    def can_start(self, group: int, n_more: int) -> bool:
        """Return True: nothing is withheld."""
        return True

    def offer(self, group: int, label: int) -> Outcome:
        """Give the answer or refuse it, and record which; nothing is withheld."""
        if label not in self._candidates(group, label):
            return self._refused
        self._give(group, label)
        self.violations += self._exceeds()
        return self._given

    @property
    def within(self) -> bool:
        """Whether the given table is within the margin now; this gate leaves it by itself."""
        return not self._exceeds()

    def to_dict(self) -> dict[str, object]:
        """Return the whole state in JSON's types."""
        return {**super().to_dict(), "violations": self.violations}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return a gate that goes on where ``to_dict`` stopped; anything doubtful is refused."""
        gate = super().from_dict(state)
        gate.violations = _checks.at_least("violations", state["violations"], 0)
        return gate

    def _check_margin(self) -> None:
        """Do nothing: any table may be the state of this gate."""

    def _compute_open(self, group: int) -> tuple[int, ...]:
        return algorithm_1(self._table, group, self._p, self._q, self.cold_start)


def algorithm_1(table: GivenTable, group: int, p: int, q: int, cold_start: int) -> tuple[int, ...]:
    """Apply the test of FairPATE, Algorithm 1, lines 3 to 11, as printed.

    Only the pair (group, k) being answered is looked at, on one side, with a strict ``< p / q``,
    and not at all while the group has fewer than ``cold_start`` answers. When no other group has
    an answer the rate of the rest is 0/0: not a number, hence not below the margin, hence refused.
    """
    size = table.sizes[group]
    row = table.counts[group]
    if size < cold_start:
        return tuple(range(len(row)))
    others = table.total - size
    if others == 0:
        return ()
    bound = p * (size + 1) * others
    return tuple(
        [
            k
            for k, own in enumerate(row)
            if q * ((own + 1) * others - (table.classes[k] - own) * (size + 1)) < bound
        ]
    )
