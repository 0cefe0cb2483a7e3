"""What a gate is, and which notion has which: the one place that an aggregator asks for one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, Self, TypeVar

from evenhand.fairness.notion import RateNotion
from evenhand.typing import IntArray

if TYPE_CHECKING:
    from evenhand.fairness.gate.calibrated import GateCalibration


class Outcome(NamedTuple):
    """What became of one offered answer."""

    given: bool
    """Whether the offered answer may be handed out now."""
    withheld: bool
    """Whether it is kept for later; if neither given nor withheld, it is refused for good."""
    released: tuple[int, ...]
    """Per class, how many *earlier* withheld answers of this group are given now, oldest first."""


class Gate(Protocol):
    """What decides, answer by answer, which classes each group may receive.

    Whoever asks teachers calls ``admissible`` and ``can_start`` before a query is asked, ``offer``
    with the answer that was drawn, and ``deliver`` when nothing more can be asked. The given
    answers are within the margin after each of these. ``testing.gates.GateContract`` checks a gate
    of your own.

    People may decide otherwise: ``give_by_hand``, ``take_back`` and ``forget`` record what they
    decided, whatever the margin. While they have left it (``within`` is False), the gate gives only
    answers after which the gap is no larger than it was before.

    Privacy
    -------
    Reads released labels and public groups only, so that asking it is free.
    """

    format: ClassVar[str]
    """The name of its saved state, with a number that rises when the state changes."""
    n_groups: int
    n_classes: int
    cold_start: int
    """Answers of a late group that are withheld before a block of them may be released."""

    @classmethod
    def of(
        cls, notion: Any, n_groups: int, n_classes: int, *, cold_start: int | None = None
    ) -> Self:
        """Return a new gate that keeps the margin of a notion.

        That of a notion about true classes takes ``calibration=`` as well.
        """

    @property
    def notion(self) -> RateNotion:
        """The notion whose margin is kept among the given answers.

        Of several at once the one whose gap is nearest to its margin, or furthest above it.
        """

    @property
    def notions(self) -> tuple[RateNotion, ...]:
        """All notions whose margins are kept."""

    def admissible(self, group: int) -> tuple[int, ...]:
        """Return the classes whose answer would be given or withheld; () means skip the query."""

    def can_start(self, group: int, n_more: int) -> bool:
        """Return False if this group waits, and no ``n_more`` further answers could let it start.

        Whatever their classes, and while the given answers stand as they are. A gate that withholds
        nothing says True.
        """

    def offer(self, group: int, label: int) -> Outcome:
        """Give the answer, withhold it, or refuse it, and record which."""

    def deliver(self) -> list[tuple[int, int]]:
        """Return withheld answers, as (group, label), that may be given now, each recorded."""

    def give_by_hand(self, group: int, label: int) -> None:
        """Record an answer that a person gave, whatever the margin."""

    def take_back(self, group: int, label: int) -> None:
        """Record that a given answer stands no longer; one that was never given is refused."""

    def forget(self, group: int, label: int) -> None:
        """Record that a withheld answer is no longer wanted; one that is not held is refused."""

    @property
    def counts(self) -> IntArray:
        """Given answers, shape (n_groups, n_classes)."""

    @property
    def held(self) -> IntArray:
        """Withheld answers, shape (n_groups, n_classes)."""

    @property
    def gap(self) -> float:
        """Largest difference in the given table now, by ``notion``."""

    @property
    def within(self) -> bool:
        """Whether the given table is within the margin now; people alone can leave it."""

    def to_dict(self) -> dict[str, object]:
        """Return the whole state in JSON's types, ``format`` among them."""

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """Return a gate that goes on where ``to_dict`` stopped; anything doubtful is refused."""


GATES: Final[dict[type[RateNotion], type[Gate]]] = {}
"""The gate of each notion that has one."""

_Kind = TypeVar("_Kind", bound=type[Gate])


def gate_of(notion: type[RateNotion]) -> Callable[[_Kind], _Kind]:
    """Register the gate of a notion; a class of gates stands below it."""

    def register(gate: _Kind) -> _Kind:
        GATES[notion] = gate
        return gate

    return register


_Class = TypeVar("_Class", bound=type)
_SEVERAL: Final[list[Any]] = []


def gate_of_several(gate: _Class) -> _Class:
    """Register the gate of several margins at once; it stands below their gates."""
    _SEVERAL.append(gate)
    return gate


def open_gate(
    fairness: RateNotion | Sequence[RateNotion],
    n_groups: int,
    n_classes: int,
    *,
    cold_start: int | None = None,
    calibration: GateCalibration | None = None,
) -> Gate:
    """Return a new gate that keeps given answers within the margin of a notion, or of several.

    Parameters
    ----------
    fairness : RateNotion or sequence of RateNotion
        Of several notions an answer is given if it keeps the margins of all.
    n_groups, n_classes : int
    cold_start : int, optional
        Default: 50, or ``2 / margin`` where that is more.
    calibration : GateCalibration, optional
        Labelled rows with answers, for notions about true classes, which need them; for no other.

    Raises
    ------
    ValueError
        If a notion has no gate, or needs calibration rows and there are none.

    Examples
    --------
    >>> from evenhand.fairness import DemographicParity, EqualizedOdds
    >>> open_gate(DemographicParity(margin=0.1), n_groups=2, n_classes=2).admissible(0)
    (0, 1)
    >>> open_gate(EqualizedOdds(margin=0.1), n_groups=2, n_classes=2)
    Traceback (most recent call last):
    ValueError: EqualizedOdds is about true classes, which answers alone do not tell. ...
    """
    notions = notions_of(fairness)
    if calibration is not None and not any(notion.needs_labels for notion in notions):
        kinds = " and ".join(type(notion).__name__ for notion in notions)
        verb = "is" if len(notions) == 1 else "are"
        raise ValueError(
            f"{kinds} {verb} about answers alone, so calibration rows would not be read. Leave "
            f"calibration out."
        )
    gates = [
        _one(notion, n_groups, n_classes, cold_start, calibration if notion.needs_labels else None)
        for notion in notions
    ]
    return gates[0] if len(gates) == 1 else _SEVERAL[0](gates, cold_start=cold_start)


def notions_of(fairness: RateNotion | Sequence[RateNotion]) -> tuple[RateNotion, ...]:
    """Return the notions, each once and at least one."""
    found = tuple(fairness) if isinstance(fairness, Sequence) else (fairness,)
    if not found or len(set(found)) < len(found):
        raise ValueError(
            f"fairness must be a notion, or several that differ from each other, got {fairness!r}."
        )
    return found


def _one(
    notion: RateNotion,
    n_groups: int,
    n_classes: int,
    cold_start: int | None,
    calibration: GateCalibration | None,
) -> Gate:
    for kind in type(notion).__mro__:
        if kind in GATES:
            more = {} if calibration is None else {"calibration": calibration}
            return GATES[kind].of(notion, n_groups, n_classes, cold_start=cold_start, **more)
    able = " or ".join(kind.__name__ for kind in GATES)
    raise ValueError(
        f"{type(notion).__name__} has no gate: answers can be held within a margin of {able}."
    )


def gate_from_dict(state: Mapping[str, Any]) -> Gate:
    """Return the gate whose ``to_dict`` wrote a state; anything doubtful is refused."""
    gate: Gate = gate_kind(state).from_dict(state)
    return gate


def gate_kind(state: Mapping[str, Any]) -> Any:
    """Return the class of gates that a state, or the settings of a gate, are of."""
    known = {_without_number(kind.format): kind for kind in (*GATES.values(), *_SEVERAL)}
    found = str(state.get("format"))
    if _without_number(found) not in known:
        able = " or ".join(repr(kind.format) for kind in known.values())
        raise ValueError(f"A gate's format must be {able}, got {found!r}.")
    return known[_without_number(found)]


def _without_number(name: str) -> str:
    return name.rstrip("0123456789")
