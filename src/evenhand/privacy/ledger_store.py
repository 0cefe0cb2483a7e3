"""Where a ledger keeps its account: the interface, exact units, and the store in memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Final, Protocol, TypeAlias

UNITS_PER_ONE: Final = 1 << 256
"""Costs are added as whole numbers of 2**-256.

Every float of at least 2**-204 is such a number exactly. So sums do not depend on the order of
charges, refunds leave no residue, and no rounding lets a filter pass more than its budget.
"""

SCHEMA_VERSION: Final = 2
"""Of what a database keeps; a fact of every account. Tables of version 1 are carried over."""

Fact: TypeAlias = str | int | float | bool


def units_up(mu_squared: float) -> int:
    """Return ``mu_squared`` in units, rounded up: for charges."""
    return -((-Fraction(mu_squared) * UNITS_PER_ONE) // 1)


def units_down(mu_squared: float) -> int:
    """Return ``mu_squared`` in units, rounded down: for limits."""
    return (Fraction(mu_squared) * UNITS_PER_ONE) // 1


def mu_squared_of(units: int) -> float:
    """Return the nearest float."""
    return units / UNITS_PER_ONE


@dataclass(frozen=True, kw_only=True)
class Account:
    """What an account is: its limit, and public facts that say whose data it guards."""

    name: str
    """Unique in its store."""
    limit: int
    """Most that may be spent, in units."""
    facts: Mapping[str, Fact]
    """Compared whenever the account is opened again. They must be public: a hash of private data is
    itself a release and has no place here.
    """
    within: Account | None = None
    """Account whose limit every charge must also fit."""

    @property
    def levels(self) -> tuple[Account, ...]:
        """The account and those around it, outermost last."""
        return (self, *(() if self.within is None else self.within.levels))


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """One mechanism's share of a reservation: ``n_uses`` at ``units_each``."""

    mechanism: str
    n_uses: int
    units_each: int
    purpose: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger."""

    mechanism: str
    """The mechanism in words."""
    n_uses: int
    """Uses that are charged: those reserved, and after settling those that were made."""
    mu_squared: float
    """What they cost together."""
    purpose: str
    """Why."""
    settled: bool
    """False while a reservation is open, and for ever after a crash: the charge then stays."""
    account: str
    """Account it was charged to."""
    charged_at: str
    """UTC, ISO 8601."""


class OverLimit(Exception):
    """A charge does not fit; nothing was charged."""

    def __init__(self, *, account: str, asked: int, spent: int, limit: int) -> None:
        super().__init__(f"account {account!r}: {asked} units asked, {spent} of {limit} spent")
        self.account = account
        self.asked = asked
        self.spent = spent
        self.limit = limit


class OtherAccount(ValueError):
    """The account on record is not the one that was described."""


class StoreUnavailable(ConnectionError):
    """The store cannot be read or written now; what was charged there counts."""


class Store(Protocol):
    """Keeps accounts. Every method is one transaction: it happens whole or not at all.

    An account comes to be with its first charge: a run that is refused before leaves none.
    """

    def open(self, account: Account) -> None:
        """Check that what is on record of it and of those around is the same (OtherAccount)."""

    def charge(self, account: Account, charges: Sequence[Charge]) -> tuple[int, ...]:
        """Charge all or nothing here and in every account around it; OverLimit if one is full.

        What is on record of them must be the same (OtherAccount); the others are put on record.
        """

    def settle(self, account: str, used: Mapping[int, int]) -> None:
        """Refund what was charged beyond ``used[entry]`` uses, and close those entries."""

    def spent(self, account: str) -> int:
        """Units charged to this account and to the accounts within it; 0 before any charge."""

    def remaining(self, account: Account) -> int:
        """Units that can still be charged here: the least over this account and those around it."""

    def entries(self, account: str) -> tuple[Entry, ...]:
        """Lines of this account and of those within it, oldest first; none before any charge."""


@dataclass(kw_only=True, slots=True)
class _Line:
    charge: Charge
    account: str
    at: float
    n_used: int | None = None


@dataclass(kw_only=True)
class _Kept:
    account: Account
    spent: int = 0
    lines: list[int] = field(default_factory=list)


class MemoryStore:
    """A store that lives as long as its process, safe to share between threads.

    A copy, a pickle or a forked process can read it and can charge nothing: two ledgers with the
    same remaining budget would spend it twice. Processes share a ``DatabaseStore``.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pid: int | None = os.getpid()
        self._accounts: dict[str, _Kept] = {}
        self._lines: list[_Line] = []

    def open(self, account: Account) -> None:
        """Check that what is on record of it and of those around is the same."""
        with self._lock:
            self._only_here()
            self._levels(account)

    def charge(self, account: Account, charges: Sequence[Charge]) -> tuple[int, ...]:
        """Charge all or nothing here and in every account around it; make those that are new."""
        asked = sum(charge.n_uses * charge.units_each for charge in charges)
        now = time.time()
        with self._lock:
            self._only_here()
            levels = self._levels(account)
            check_room(asked, [(level.account, level.spent) for level in levels])
            first = len(self._lines)
            self._lines += [
                _Line(charge=charge, account=account.name, at=now) for charge in charges
            ]
            ids = tuple(range(first, len(self._lines)))
            for level in levels:
                self._accounts[level.account.name] = level
                level.spent += asked
                level.lines += ids
        return ids

    def settle(self, account: str, used: Mapping[int, int]) -> None:
        """Refund what was charged beyond ``used[entry]`` uses, and close those entries."""
        with self._lock:
            self._only_here()
            lines = [(self._lines[entry], n) for entry, n in used.items()]
            refund = sum(refund_of(line.charge, n, line.n_used is not None) for line, n in lines)
            for line, n in lines:
                line.n_used = n
            for level in self._accounts[account].account.levels:
                self._accounts[level.name].spent -= refund

    def spent(self, account: str) -> int:
        """Units charged to this account and to the accounts within it; 0 before any charge."""
        kept = self._accounts.get(account)
        return 0 if kept is None else kept.spent

    def remaining(self, account: Account) -> int:
        """Units that can still be charged here."""
        with self._lock:
            return min(x.account.limit - x.spent for x in self._levels(account))

    def entries(self, account: str) -> tuple[Entry, ...]:
        """Lines of this account and of those within it, oldest first; none before any charge."""
        with self._lock:
            kept = self._accounts.get(account)
            lines = [] if kept is None else [self._lines[entry] for entry in kept.lines]
            return tuple(
                entry_of(line.charge, line.n_used, account=line.account, at=line.at)
                for line in lines
            )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {"_pid": None, "_accounts": self._accounts, "_lines": list(self._lines)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def _levels(self, account: Account) -> list[_Kept]:
        """Return the account and those around it; what is not on record yet is not put there."""
        levels = []
        for described in account.levels:
            kept = self._accounts.get(described.name)
            if kept is None:
                kept = _Kept(account=replace(described, facts=dict(described.facts)))
            check_same(kept.account, described, where="this store")
            levels.append(kept)
        return levels

    def _only_here(self) -> None:
        if self._pid != os.getpid():
            raise RuntimeError(
                "This ledger is a copy of one in another process or object: it shows what was "
                "spent and can charge nothing, or the same budget would be spent twice. Give "
                "processes one DatabaseStore to share."
            )


def refund_of(charge: Charge, n_used: int, settled: bool) -> int:
    """Units to give back when ``n_used`` of a charge's uses were made."""
    if settled:
        raise ValueError(f"{charge.mechanism} for {charge.purpose!r} was settled before.")
    if not 0 <= n_used <= charge.n_uses:
        raise ValueError(
            f"{charge.mechanism} was reserved for {charge.n_uses} uses, got used={n_used}. "
            f"Reserve the worst case first."
        )
    return (charge.n_uses - n_used) * charge.units_each


def entry_of(charge: Charge, n_used: int | None, *, account: str, at: float) -> Entry:
    """Make the line that a reader sees."""
    n = charge.n_uses if n_used is None else n_used
    return Entry(
        mechanism=charge.mechanism,
        n_uses=n,
        mu_squared=mu_squared_of(n * charge.units_each),
        purpose=charge.purpose,
        settled=n_used is not None,
        account=account,
        charged_at=datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
    )


def check_room(asked: int, levels: Iterable[tuple[Account, int]]) -> None:
    """Refuse a charge that does not fit one of these accounts, each with what was spent of it."""
    for account, spent in levels:
        if spent + asked > account.limit:
            raise OverLimit(account=account.name, asked=asked, spent=spent, limit=account.limit)


def check_same(known: Account, described: Account, *, where: str) -> None:
    """Refuse an account under another description than on record, and say what differs."""
    before, now = (
        {**account.facts, "within": None if account.within is None else account.within.name}
        for account in (known, described)
    )
    differ = [
        f"{key} is {before.get(key, 'not stated')!r} on record and "
        f"{now.get(key, 'not stated')!r} here"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key) or (key in before) != (key in now)
    ]
    if not differ and known.limit != described.limit:
        differ = ["the budget's mu_squared differs"]
    if differ:
        raise OtherAccount(
            f"Account {known.name!r} in {where} is a ledger of another data set or budget: "
            f"{'; '.join(differ)}. Open it as it is on record, or give a new account a name of "
            f"its own."
        )
