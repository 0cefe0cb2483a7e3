"""Where requests are decided: one after the other, many in one transaction, none before it ends.

One thread works behind the server. It takes all requests that came while the last ones were kept,
asks the model about all their rows in one call, locks the counts, decides the requests in the order
in which they came, keeps decisions and counts in one transaction, and hands the answers out when it
has ended. So the price of a call to the model, and of a commit, is shared by whoever asks at the
same time; and a single request is handed over once, not from thread to thread.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evenhand import _checks
from evenhand.fairness import RejectOption
from evenhand.fairness.gate.decisions import After, Verdict
from evenhand.fairness.gate.review import DecidedAlready, PassesMargin, Request
from evenhand.serve.cases import MOST_ROWS, Reader
from evenhand.serve.store import Counts, Decision, DecisionStore, StoreAway, Turn
from evenhand.typing import REJECTED, BoolArray, IntArray

if TYPE_CHECKING:
    from evenhand.estimators import RejectOptionClassifier

MOST_WAITING: Final = 20_000
"""Rows that may wait to be decided before further requests are turned away."""
KEYS_KEPT_S: Final = 7 * 86_400.0
"""How long an idempotency key stands for its answer."""
_FORGETS_EVERY_S: Final = 10.0
REASONS: Final = {int(verdict): verdict.name.lower() for verdict in Verdict}
"""Verdicts as they are written."""
DELIVER, OVERRULE, WITHDRAW = "deliver", "overrule", "withdraw"


class KeyOfAnotherBody(ValueError):
    """An idempotency key that stands for another request."""


class NoSuchDecision(ValueError):
    """A number that no decision has."""


class BadReview(ValueError):
    """An action and a label that do not go together."""


class TooBusy(RuntimeError):
    """More requests wait than can be answered soon."""


REFUSED: Final = (KeyOfAnotherBody, NoSuchDecision, BadReview, DecidedAlready, PassesMargin)
"""Errors after which nothing has been counted for the one who asked."""


@dataclass(kw_only=True, eq=False)
class Asked:
    """A request for decisions."""

    rows: Sequence[Mapping[str, Any]]
    by: str
    key: str | None
    body_digest: str
    answer: Future[str] = field(default_factory=Future)
    groups: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    said: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sure: BoolArray = field(default_factory=lambda: np.empty(0, dtype=np.bool_))


@dataclass(kw_only=True, eq=False)
class Reviewed:
    """What a person decides about one decision."""

    id: int
    action: str
    label: int | None
    force: bool
    reason: str
    by: str
    answer: Future[Decision] = field(default_factory=Future)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What a person's decision would do."""

    action: str
    """``deliver``, ``overrule`` or ``withdraw``."""
    label: int
    """Class code that would be given; ``REJECTED`` for none."""
    after: After
    """How the given labels would stand to the margins."""


class Desk:
    """Decides requests within the margin and keeps each decision before its answer leaves.

    Parameters
    ----------
    model : RejectOptionClassifier
        Whose labels are given. Its own counts are not used.
    store : DecisionStore
    reader : Reader
    keys_kept_s : float
        So long an idempotency key stands for its answer. Default: a week.
    """

    def __init__(
        self,
        model: RejectOptionClassifier,
        store: DecisionStore,
        reader: Reader,
        *,
        keys_kept_s: float = KEYS_KEPT_S,
    ) -> None:
        self.model, self.store, self.reader = model, store, reader
        self.keys_kept_s = _checks.positive("keys_kept_s", keys_kept_s)
        self._keys_looked_at = 0.0
        self.labels: list[Any] = model.classes_.tolist()
        self.unknown: Counter[str] = Counter()
        """Values that the model did not know, of this server, by their column."""
        self._option = model.reject_option_
        store.begin(self._option, reader)
        self._version: int | None = None  # of the store, that our counts are
        self._view: tuple[Counts, RejectOption] | None = None
        self._view_lock = threading.Lock()
        self._jobs: queue.SimpleQueue[Asked | Reviewed | None] = queue.SimpleQueue()
        self._n_waiting = 0
        self._waiting_lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="evenhand-desk", daemon=True)
        self._thread.start()

    def decide(self, asked: Asked) -> Future[str]:
        """Decide on rows that the reader has checked; the answer is JSON, made when it is kept.

        Raises
        ------
        TooBusy
            If too many rows wait.
        """
        with self._waiting_lock:
            if self._n_waiting + len(asked.rows) > MOST_WAITING:
                raise TooBusy(f"More than {MOST_WAITING:,} rows wait to be decided. Ask later.")
            self._n_waiting += len(asked.rows)
        self._jobs.put(asked)
        return asked.answer

    def review(self, reviewed: Reviewed) -> Future[Decision]:
        """Take a person's decision; the answer is the decision as it stands now."""
        self._jobs.put(reviewed)
        return reviewed.answer

    def view(self) -> tuple[Counts, RejectOption]:
        """Return the counts as they stand in the store, and as the reject option reads them."""
        with self._view_lock:
            if self._view is None or self._view[0].version != self.store.version():
                counts = self.store.counts()
                self._view = (counts, RejectOption.from_dict(json.loads(counts.reject_option)))
            return self._view

    def waiting(self, *, withheld: bool = False) -> dict[str, Any]:
        """Return what of the store's queue waits for people, or for the model, as its arguments.

        Withheld labels of a group that has no label yet are the model's: a person who takes one
        keeps the first block of the group from being filled. They wait beside the queue until the
        block is given; what is then left of them is in it.
        """
        _, option = self.view()
        late = [z for z, given in enumerate(option.counts.sum(axis=1).tolist()) if not given]
        return {"late": late, "withheld": withheld}

    def effects(self, request: Request) -> list[Effect]:
        """Return what a person may decide about a request, and what it does to the gap."""
        _, option = self.view()
        return effects(option, request)

    def close(self) -> None:
        """Answer what has come, stop, and let go of the store: SQLite's log is then in its file."""
        self._jobs.put(None)
        self._thread.join(timeout=30)
        self.store.close()

    def _work(self) -> None:
        while (jobs := _batch(self._jobs)) is not None:
            asked = [job for job in jobs if isinstance(job, Asked)]
            try:
                self._say(asked)
            except Exception:  # one request must not spoil the others'
                spoilt = {id(job) for job in asked if not self._say_alone(job)}
                jobs = [job for job in jobs if id(job) not in spoilt]
            if jobs:
                self._keep(jobs)

    def _say(self, jobs: Sequence[Asked]) -> None:
        """Ask the model about the rows of all requests at once."""
        if not jobs:
            return
        for job in jobs:
            job.groups = self.reader.group_codes(job.rows)
        rows = jobs[0].rows if len(jobs) == 1 else [row for job in jobs for row in job.rows]
        said, sure = self.model.said(self.reader.cells(rows))
        start = 0
        for job in jobs:
            end = start + len(job.rows)
            job.said, job.sure = said[start:end], sure[start:end]
            start = end

    def _say_alone(self, job: Asked) -> bool:
        try:
            self._say([job])
        except Exception as error:
            self._answered(job, error)
            return False
        return True

    def _keep(self, jobs: Sequence[Asked | Reviewed]) -> None:
        """Decide the jobs in one transaction, and answer when it has ended."""
        answers: list[tuple[Asked | Reviewed, Any]] = []
        try:
            with self.store.turn() as turn:
                answers = self._decided(turn, jobs)
        except Exception as error:  # nothing was kept, or nobody knows: read the store again
            self._version = None
            if len(jobs) > 1 and not isinstance(error, StoreAway):
                for job in jobs:  # one must not spoil the others'
                    self._keep([job])
                return
            answers = [(job, error) for job in jobs]
        for job, answer in answers:
            self._answered(job, answer)

    def _answered(self, job: Asked | Reviewed, answer: Any) -> None:
        if isinstance(job, Asked):
            with self._waiting_lock:
                self._n_waiting -= len(job.rows)
        future: Future[Any] = job.answer
        if not future.set_running_or_notify_cancel():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _decided(
        self, turn: Turn, jobs: Sequence[Asked | Reviewed]
    ) -> list[tuple[Asked | Reviewed, Any]]:
        if self._version != turn.version:
            self._option.resume(turn.reject_option())
        n_forced = turn.n_forced
        answers: list[tuple[Asked | Reviewed, Any]] = []
        for job in jobs:
            try:
                if isinstance(job, Asked):
                    answers.append((job, self._ask(turn, job)))
                else:
                    decision, forced = self._review(turn, job)
                    answers.append((job, decision))
                    n_forced += forced
            except REFUSED as error:  # before anything was counted
                answers.append((job, error))
        now = time.time()
        if now - self._keys_looked_at > _FORGETS_EVERY_S:
            turn.forget_keys(now - self.keys_kept_s)
            self._keys_looked_at = now
        self._version = turn.save(self._option, n_forced=n_forced)
        return answers

    def _ask(self, turn: Turn, job: Asked) -> str:
        since = time.time() - self.keys_kept_s
        if job.key is not None and (before := turn.answer_to(job.by, job.key, since)) is not None:
            if before[0] != job.body_digest:
                raise KeyOfAnotherBody(
                    "This Idempotency-Key stands for another request of yours. Use a new key for "
                    "a new request."
                )
            return before[1]
        decided = self._option.decide(job.said, job.groups, sure=job.sure)
        first = int(decided.ids[0])
        given, verdicts = decided.labels.tolist(), decided.reasons.tolist()
        turn.add(self._rows(job, first, given, verdicts))
        ids, labels = (column.tolist() for column in self._option.deliver())
        turn.released(list(zip(ids, labels, strict=True)))
        for number, label in zip(ids, labels, strict=True):
            if number >= first:  # withheld within this request, and given by now
                given[number - first], verdicts[number - first] = label, int(Verdict.ANSWERED)
        unknown = self.reader.unknown(job.rows)
        for names in unknown:
            self.unknown.update(names)
        answer = self._written(first, given, verdicts, unknown)
        if job.key is not None:
            turn.remember(job.by, job.key, job.body_digest, answer)
        return answer

    def _rows(
        self, job: Asked, first: int, given: Sequence[int], verdicts: Sequence[int]
    ) -> list[dict[str, Any]]:
        now, kept = time.time(), self.reader.kept
        unknown = int(Verdict.UNKNOWN_GROUP)
        columns = (job.groups.tolist(), job.said.tolist(), given, verdicts, job.rows)
        return [
            {
                "id": first + i,
                "group_code": group,
                "said": said,
                "given": label,
                "verdict": verdict,
                "by_person": False,
                "features": json.dumps({name: row[name] for name in kept})
                if label == REJECTED and verdict != unknown
                else None,
                "asked_by": job.by,
                "asked_at": now,
            }
            for i, (group, said, label, verdict, row) in enumerate(zip(*columns, strict=True))
        ]

    def _written(
        self,
        first: int,
        given: Sequence[int],
        verdicts: Sequence[int],
        unknown: Sequence[Sequence[str]],
    ) -> str:
        return json.dumps(
            {
                "decisions": [
                    {
                        "id": first + i,
                        "rejected": label == REJECTED,
                        "label": None if label == REJECTED else self.labels[label],
                        "reason": REASONS[verdict],
                        "unknown": names,
                    }
                    for i, (label, verdict, names) in enumerate(
                        zip(given, verdicts, unknown, strict=True)
                    )
                ]
            }
        )

    def _review(self, turn: Turn, job: Reviewed) -> tuple[Decision, bool]:
        decision = turn.decision(job.id)
        if decision is None or decision.request is None:
            what = "is of a group that is not known, and counts" if decision else "is not there: it"
            raise NoSuchDecision(
                f"Decision {job.id} {what} cannot be reviewed. GET /queue lists those that wait."
            )
        request = decision.request
        label = _label_of(job, request)
        before = self._option.gap
        try:
            after, forced = self._option.review(request, label), False
        except PassesMargin:
            if not job.force:
                raise
            after, forced = self._option.review(request, label, force=True), True
        turn.review(
            job.id,
            after,
            action=job.action,
            given_before=request.given,
            given=after.given,
            forced=forced,
            reason=job.reason,
            gap_before=before,
            gap_after=self._option.gap,
            by=job.by,
        )
        ids, labels = self._option.deliver()  # what a person decided may make room for others
        turn.released(list(zip(ids.tolist(), labels.tolist(), strict=True)))
        found = turn.decision(job.id)
        assert found is not None
        return found, forced


def effects(option: RejectOption, request: Request) -> list[Effect]:
    """Return what a person may decide about a request, and what it does to the gap."""
    found = []
    for label in range(REJECTED, len(option.classes)):
        action = DELIVER if label == request.said else OVERRULE if label != REJECTED else WITHDRAW
        try:
            after = option.after(request, label)
        except ValueError:
            continue  # decided already, or stands so
        found.append(Effect(action=action, label=label, after=after))
    order = (DELIVER, OVERRULE, WITHDRAW)
    return sorted(found, key=lambda effect: order.index(effect.action))


def _label_of(job: Reviewed, request: Request) -> int:
    """Return the class code that an action gives."""
    if job.action == WITHDRAW:
        return REJECTED
    if job.action == DELIVER:
        return request.said
    if job.label is None:
        raise BadReview("overrule needs a label: the class that is given instead.")
    if job.label == request.said:
        raise BadReview("This is what the model said: deliver it, rather than overrule it.")
    return job.label


def _batch(
    jobs: queue.SimpleQueue[Asked | Reviewed | None],
) -> list[Asked | Reviewed] | None:
    """Wait for a job, and take those that wait behind it; None when there will be no more."""
    first = jobs.get()
    if first is None:
        return None
    found, rows = [first], _n_rows(first)
    while rows < MOST_ROWS and len(found) < 1000:
        try:
            job = jobs.get_nowait()
        except queue.Empty:
            break
        if job is None:
            jobs.put(None)  # for the next call
            break
        found.append(job)
        rows += _n_rows(job)
    return found


def _n_rows(job: Asked | Reviewed) -> int:
    return len(job.rows) if isinstance(job, Asked) else 1
