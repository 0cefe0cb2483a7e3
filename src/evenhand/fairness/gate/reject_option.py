"""A reject option at inference: a model's labels are given while the given set stays in a margin.

This is FairPATE's inference-time post-processor (section 4.3) on the gate that tests its whole
table. It reads label codes and group codes, whatever model made the labels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from evenhand import _checks, _values
from evenhand.fairness.gate.calibrated import CalibratedGate, GateCalibration
from evenhand.fairness.gate.decisions import (
    UNKNOWN,
    After,
    Decisions,
    Delivery,
    KeptMargin,
    Verdict,
    gates_of,
    kept_margins,
)
from evenhand.fairness.gate.gate import Gate, gate_from_dict, open_gate
from evenhand.fairness.gate.review import PassesMargin, Request
from evenhand.fairness.gate.runner import GateRun
from evenhand.fairness.gate.table_gate import TableGate, least_block
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.tally import Tally
from evenhand.fairness.trace import Coverage
from evenhand.typing import REJECTED, ArrayLike, IntArray

__all__ = ["RejectOption", "StateOfAnotherModel", "Verdict"]

_FORMAT = "evenhand reject option 1"
_KEYS = ("format", "model", "groups", "classes", "gate", "offered", "unsure", "held", "released")
_BY_PEOPLE = ("given_by_hand", "taken_back")  # only when people decided something
_UNKNOWN = "unknown"  # only when somebody of an unknown group came


class StateOfAnotherModel(ValueError):
    """A saved state that counts the answers of another model, or under other settings."""


class RejectOption:
    """Give labels or REJECTED, so that the given set stays within a fairness margin.

    Parameters
    ----------
    fairness : RateNotion or sequence of RateNotion
        What is kept among the given labels; several are all kept.
    groups, classes : sequence of str
        Every group and every class that may come, in the order of their codes. Public.
    calibration : GateCalibration, optional
        Labelled rows with what the model says of them: needed by notions about true classes.
    cold_start : int, optional
        Labels of a late group that are withheld before a block of them may be given. Default: 50,
        or ``2 / margin`` where that is more, and until this block, and every group that it is
        compared with, has ``1 / (2 margin) - 1`` of them: with fewer the gate can close for good.
        The first group waits for so many too. A ``cold_start`` that is given stands alone.
    model : str, optional
        What the labels are from, for example a checksum of its parameters. It is written into the
        state, so that counts are not carried over to another model.

    Privacy
    -------
    Reads labels that a model has already given; for a released private model this is
    post-processing and costs nothing. It protects nobody who is *asked about*: see Notes.

    Notes
    -----
    The promise is about the set of given labels: what ``decide`` returned and what waits for, or
    was fetched by, ``deliver``. A released answer that is never handed out is still counted. A
    refusal tells something: with two classes, whoever knows the counts knows the label. Under a
    margin about true classes it is about the gap that calibration expects of these labels
    (``CalibratedGate``); a label that a person gave is counted as if the model had said it.

    Examples
    --------
    >>> from evenhand.fairness import DemographicParity
    >>> within = DemographicParity(margin=0.1)
    >>> option = RejectOption(within, ["F", "M"], ["no", "yes"], cold_start=3)
    >>> option.decide([0, 1, 0, 0], groups=[0, 0, 1, 1]).labels
    array([ 0, 1, -1, -1])
    >>> option.decide([1], groups=[1])
    Decisions(ids=array([4]), labels=array([1]), reasons=array([0]), n_released=1)
    >>> option.deliver()
    Delivery(ids=array([2]), labels=array([0]))
    >>> option.gap, option.coverage.rates
    (0.0, array([[1. , 1. ], [0.5, 1. ]]))
    """

    def __init__(
        self,
        fairness: RateNotion | Sequence[RateNotion],
        groups: Sequence[str],
        classes: Sequence[str],
        *,
        calibration: GateCalibration | None = None,
        cold_start: int | None = None,
        model: str = "",
    ) -> None:
        size = len(_names("groups", groups)), len(_names("classes", classes))
        gate = open_gate(fairness, *size, cold_start=cold_start, calibration=calibration)
        if cold_start is None and isinstance(gate, TableGate):
            gate.least_block = least_block(min(notion.margin for notion in gate.notions))
        self._begin(gate, groups, classes, model)

    def _begin(self, gate: Gate, groups: Sequence[str], classes: Sequence[str], model: str) -> None:
        self.groups = _names("groups", groups)
        self.classes = _names("classes", classes)
        self.model = model
        shape = (len(self.groups), len(self.classes))
        self._offered = np.zeros(shape, dtype=np.int64)
        self._unsure = np.zeros(shape, dtype=np.int64)
        self._given_by_hand = np.zeros(shape, dtype=np.int64)
        self._taken_back = np.zeros(shape, dtype=np.int64)
        self._unknown: IntArray = np.zeros(shape[1], dtype=np.int64)
        self._run = GateRun(gate)
        # Numbers and labels of the requests to be fetched.
        self._released: list[tuple[int, int]] = []
        self._lock = Lock()

    def decide(
        self, labels: ArrayLike, groups: ArrayLike, *, sure: ArrayLike | None = None
    ) -> Decisions:
        """Decide on requests, one after the other in the given order.

        Parameters
        ----------
        labels : array-like of int, shape (n,)
            Class codes: what the model says.
        groups : array-like of int, shape (n,)
            Group codes; ``UNKNOWN`` (-1) where the group is none of the known ones: the label is
            refused as ``UNKNOWN_GROUP``, and counted by itself.
        sure : array-like of bool, shape (n,), optional
            Where False, the label is refused as ``UNSURE``, whatever the margin. Default: all True.

        Returns
        -------
        Decisions
            A label that was withheld and released within this call counts as given by it. So many
            calls with one row each give the same answers as one call, only some of them by
            ``deliver``.
        """
        k = _checks.codes("labels", labels, len(self.classes))
        z = _codes_or_unknown(groups, len(self.groups))
        n = _checks.same_length(labels=k, groups=z)
        stands = np.ones(n, dtype=np.bool_) if sure is None else np.asarray(sure)
        if stands.dtype != np.bool_:
            raise TypeError(f"sure must hold True and False, got dtype {stands.dtype}.")
        _checks.same_length(labels=k, sure=stands)
        with self._lock:
            first = self.n_requests
            given, verdicts = self._offer_all(k.tolist(), z.tolist(), stands.tolist(), first)
            known = z != UNKNOWN
            unsure = known & ~stands
            np.add.at(self._offered, (z[known], k[known]), 1)
            np.add.at(self._unsure, (z[unsure], k[unsure]), 1)
            np.add.at(self._unknown, k[~known], 1)
            return Decisions(
                ids=np.arange(first, first + n),
                labels=np.array(given, dtype=np.int64),
                reasons=np.array(verdicts, dtype=np.int64),
                n_released=len(self._released),
            )

    def deliver(self) -> Delivery:
        """Return the earlier requests that are answered now, each once.

        These are the answers that were released since the last time, and those withheld ones that
        fit the margin by now, a block of a group that still waits included. They belong to the
        given set: hand them out.
        """
        with self._lock:
            while found := self._run.start_late() + self._run.deliver():
                self._released += found
            released, self._released = self._released, []
        return Delivery(
            ids=np.array([number for number, _ in released], dtype=np.int64),
            labels=np.array([label for _, label in released], dtype=np.int64),
        )

    def review(self, request: Request, label: int, *, force: bool = False) -> Request:
        """Record what a person decided about a request, and count it.

        Parameters
        ----------
        request : Request
            As it stands; whoever keeps the requests keeps what is returned in its place.
        label : int
            Class code that is given from now on: what the model said (delivered) or another
            (overruled). ``REJECTED`` withdraws a given label, and closes a request without one.
        force : bool
            Take it also if it leaves the margin, or leads further out.

        Returns
        -------
        Request
            As it stands now.

        Raises
        ------
        DecidedAlready
            If a person has decided it before.
        PassesMargin
            If it leaves the margin, or leads further out, and is not forced. Nothing is counted.
        """
        with self._lock:
            after, gate = request.decided(label), self._after(request, label)
            if not force and self._beyond(gate):
                raise PassesMargin(gate.gap, gate.notion.margin)
            if self._waits(request):
                self._run.forget(request.number, request.group, request.said)
            self._run.gate = gate
            if request.given != REJECTED:
                self._taken_back[request.group, request.given] += 1
            if label != REJECTED:
                self._given_by_hand[request.group, label] += 1
            return after

    def after(self, request: Request, label: int) -> After:
        """Return how the given labels would stand if ``label`` were decided."""
        with self._lock:
            request.decided(label)
            gate = self._after(request, label)
            beyond = self._beyond(gate)
        return After(gap=gate.gap, within=gate.within, beyond=beyond, kept=kept_margins(gate))

    @property
    def notions(self) -> tuple[RateNotion, ...]:
        """What is kept among the given labels."""
        return self._gate.notions

    @property
    def margin(self) -> float:
        """The margin, a difference of two rates in [0, 1]; of several that of ``gap``."""
        return self._gate.notion.margin

    @property
    def gaps(self) -> dict[str, float]:
        """The gap by each notion, as ``gap`` has it, by name and reference."""
        return {f"{one.notion.key}_{one.notion.reference}": one.gap for one in self.kept}

    @property
    def kept(self) -> tuple[KeptMargin, ...]:
        """Each margin, with its gap and what this is."""
        return kept_margins(self._gate)

    @property
    def calibration(self) -> GateCalibration | None:
        """What is known of true classes; None where no notion needs it."""
        found = [one.calibration for one in gates_of(self._gate) if isinstance(one, CalibratedGate)]
        return next((known for known in found if known is not None), None)

    @property
    def n_requests(self) -> int:
        """Requests decided so far; the number of the next one."""
        return int(self._offered.sum() + self._unknown.sum())

    @property
    def counts(self) -> IntArray:
        """Given labels, shape (n_groups, n_classes)."""
        return self._gate.counts

    @property
    def held(self) -> IntArray:
        """Withheld labels, shape (n_groups, n_classes)."""
        return self._gate.held

    @property
    def gap(self) -> float:
        """Largest difference of rates in the given set; 0.0 with fewer than two groups in it.

        Of rates of true classes its upper limit, or the estimate, as the gate holds it within the
        margin; of several margins the gap that is nearest to its own.
        """
        return self._gate.gap

    @property
    def within(self) -> bool:
        """Whether the given set is within the margin; people alone can leave it."""
        return self._gate.within

    @property
    def given_by_hand(self) -> IntArray:
        """Labels that people gave, shape (n_groups, n_classes), those withdrawn later included."""
        return self._given_by_hand.copy()

    @property
    def taken_back(self) -> IntArray:
        """Labels that people withdrew or replaced, shape (n_groups, n_classes)."""
        return self._taken_back.copy()

    @property
    def unknown(self) -> IntArray:
        """Requests of unknown groups by what the model said, shape (n_classes,)."""
        return self._unknown.copy()

    @property
    def coverage(self) -> Coverage:
        """How many labels of each group and class the model said, and how many it gave itself."""
        return Coverage(offered=self._offered.copy(), given=self._by_itself, names=self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole state in JSON's types. It holds withheld labels: keep it private."""
        with self._lock:
            by_people = {
                "given_by_hand": self._given_by_hand.tolist(),
                "taken_back": self._taken_back.tolist(),
            }
            decided = self._given_by_hand.any() or self._taken_back.any()
            return {
                "format": _FORMAT,
                "model": self.model,
                "groups": list(self.groups),
                "classes": list(self.classes),
                "gate": self._gate.to_dict(),
                "offered": self._offered.tolist(),
                "unsure": self._unsure.tolist(),
                "held": self._held,
                "released": [list(pair) for pair in self._released],
                **(by_people if decided else {}),
                **({_UNKNOWN: self._unknown.tolist()} if self._unknown.any() else {}),
            }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> RejectOption:
        """Return a reject option that goes on where ``to_dict`` stopped; doubtful ones are refused.

        Raises
        ------
        ValueError
            If the state is not one that a reject option can have reached.
        """
        found = state.get("format")
        if found != _FORMAT:
            raise ValueError(f"A reject option's format must be {_FORMAT!r}, got {found!r}.")
        if set(state) - {_UNKNOWN} not in (set(_KEYS), {*_KEYS, *_BY_PEOPLE}):
            raise ValueError(
                f"A reject option's state must have exactly the keys {', '.join(_KEYS)}; got "
                f"{', '.join(sorted(map(str, state)))}."
            )
        try:
            gate = gate_from_dict(dict(state["gate"]))
            option = cls.__new__(cls)
            option._begin(gate, state["groups"], state["classes"], state["model"])
            option._offered = Tally(counts=state["offered"]).counts.copy()
            option._unsure = Tally(counts=state["unsure"]).counts.copy()
            nothing = np.zeros_like(option._offered)
            given, back = (Tally(counts=state.get(key, nothing)) for key in _BY_PEOPLE)
            option._given_by_hand, option._taken_back = given.counts.copy(), back.counts.copy()
            option._unknown = (
                Tally(counts=np.array([state.get(_UNKNOWN, nothing[0])])).counts[0].copy()
            )
            held = [[list(map(int, cell)) for cell in row] for row in state["held"]]
            option._run.held = {
                (z, k): deque(cell) for z, row in enumerate(held) for k, cell in enumerate(row)
            }
            option._released = [(int(number), int(label)) for number, label in state["released"]]
            option._check_consistent(held)
        except (TypeError, IndexError, OverflowError) as error:
            raise ValueError(
                f"A reject option's state has the wrong shape: {_values.said_by(error)}"
            ) from None
        return option

    def resume(self, state: Mapping[str, Any]) -> None:
        """Take over the counts of a saved state of this very model, with these very settings.

        Raises
        ------
        StateOfAnotherModel
            If the model, groups, classes, notion, margin, reference or cold start differ; the
            message names what does. Nothing is changed then.
        """
        other = RejectOption.from_dict(state)
        theirs = other._identity()
        for name, ours in self._identity().items():
            if theirs[name] != ours:
                raise StateOfAnotherModel(
                    f"The saved state of the reject option belongs to {name} {theirs[name]!r}, not "
                    f"to {ours!r}. Its counts say nothing of this one: take the state that was "
                    f"saved with it, or begin a new one."
                )
        with self._lock:
            if isinstance(self._gate, TableGate) and isinstance(other._gate, TableGate):
                other._gate.least_block = self._gate.least_block  # of groups that are to come
            self._run = other._run
            self._offered, self._unsure = other._offered, other._unsure
            self._given_by_hand, self._taken_back = other._given_by_hand, other._taken_back
            self._unknown = other._unknown
            self._released = other._released

    def _after(self, request: Request, label: int) -> Gate:
        """Return a copy of the gate on which a person's decision is counted."""
        if any(request.number == number for number, _ in self._released):
            raise ValueError(
                f"Request {request.number} is answered by now and waits to be fetched: call "
                f"deliver() first."
            )
        gate = type(self._gate).from_dict(self._gate.to_dict())
        if self._waits(request):
            gate.forget(request.group, request.said)
        if request.given != REJECTED:
            gate.take_back(request.group, request.given)
        if label != REJECTED:
            gate.give_by_hand(request.group, label)
        return gate

    def _waits(self, request: Request) -> bool:
        waiting = self._run.held.get((request.group, request.said), ())
        return request.given == REJECTED and request.number in waiting

    def _offer_all(
        self, labels: list[int], groups: list[int], sure: list[bool], first: int
    ) -> tuple[list[int], list[int]]:
        """Offer each label to the gate; labels and verdicts, those released within included."""
        offer = self._run.offer
        answered, outside = int(Verdict.ANSWERED), int(Verdict.OUTSIDE_MARGIN)
        withheld, unsure = int(Verdict.WITHHELD), int(Verdict.UNSURE)
        unknown = int(Verdict.UNKNOWN_GROUP)
        given = [REJECTED] * len(labels)
        verdicts = [outside] * len(labels)
        for i, (label, group, stands) in enumerate(zip(labels, groups, sure, strict=True)):
            if group == UNKNOWN:
                verdicts[i] = unknown
                continue
            if not stands:
                verdicts[i] = unsure
                continue
            pairs, waits = offer(first + i, group, label)
            if waits:
                verdicts[i] = withheld
            for number, k in pairs if len(pairs) < 2 else sorted(pairs):
                if number < first:
                    self._released.append((number, k))
                else:
                    given[number - first], verdicts[number - first] = k, answered
        return given, verdicts

    @property
    def _gate(self) -> Gate:
        return self._run.gate

    def _beyond(self, gate: Gate) -> bool:
        """Whether a person's decision, counted on ``gate``, leaves the margin or leads away."""
        outward = self._gate.within or _excess(gate) >= _excess(self._gate)
        return not gate.within and outward

    @property
    def _by_itself(self) -> IntArray:
        """Labels given without a person, those that people took back later included."""
        return self._gate.counts - self._given_by_hand + self._taken_back

    @property
    def _held(self) -> list[list[list[int]]]:
        """Numbers of the withheld requests per group and class, oldest first."""
        held, size = self._run.held, range(len(self.classes))
        return [[list(held.get((z, k), ())) for k in size] for z in range(len(self.groups))]

    def _identity(self) -> dict[str, object]:
        """Return what a state must share, in the order in which a difference is named."""
        notions, known = self.notions, self.calibration
        return {
            "the model": self.model,
            "the classes": self.classes,
            "the groups": self.groups,
            "the notion": _one_or_all([notion.name for notion in notions]),
            "the margin": _one_or_all([notion.margin for notion in notions]),
            "the reference": _one_or_all([notion.reference for notion in notions]),
            "the notions": tuple(repr(notion) for notion in notions),
            "the calibration rows": None if known is None else known.to_dict(),
            "the cold start": self._gate.cold_start,
        }

    def _check_consistent(self, held: list[list[list[int]]]) -> None:
        shape = (len(self.groups), len(self.classes))
        tables = (
            *(self._gate.counts, self._offered, self._unsure),
            *(self._given_by_hand, self._taken_back),
        )
        numbers = [
            *(number for row in held for cell in row for number in cell),
            *(number for number, _ in self._released),
        ]
        sizes = [[len(cell) for cell in row] for row in held]
        waiting = np.zeros(shape[1], dtype=np.int64)
        for _, label in self._released:
            waiting[label] += 1
        if (
            any(table.shape != shape for table in tables)
            or self._unknown.shape != shape[1:]
            or sizes != self._gate.held.tolist()
            or (self._by_itself < 0).any()
            or (self._offered < self._by_itself + self._gate.held + self._unsure).any()
            or (waiting > self._gate.counts.sum(axis=0)).any()
            or any(label < 0 for _, label in self._released)
        ):
            raise ValueError(
                "A reject option's counts of offered, given, withheld and released labels do not "
                "fit together: the state is damaged or was edited."
            )
        ordered = all(list(cell) == sorted(cell) for row in held for cell in row)
        in_range = all(0 <= number < self.n_requests for number in numbers)
        if not ordered or not in_range or len(set(numbers)) < len(numbers):
            raise ValueError(
                "A reject option's withheld and released requests must be numbered once each, in "
                f"order, from 0 to {self.n_requests - 1}: the state is damaged or was edited."
            )


def _codes_or_unknown(groups: ArrayLike, n_groups: int) -> IntArray:
    array = np.asarray(groups)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer) or not array.size:
        return _checks.codes("groups", groups, n_groups)
    known = array != UNKNOWN
    if known.any():  # names what is wrong in the whole
        _checks.codes("groups", np.where(known, array, array[known][0]), n_groups)
    codes: IntArray = array.astype(np.int64)
    return codes


def _excess(gate: Gate) -> float:
    return gate.gap - gate.notion.margin


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise TypeError(f"{what} must be a list of names, got the text {names!r}.")
    found = tuple(str(name) for name in names)
    if len(set(found)) < len(found):
        raise ValueError(f"{what} must differ from each other, got {found!r}.")
    return found
