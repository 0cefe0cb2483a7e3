"""A ledger's account in a database: SQLite in one file, or PostgreSQL between machines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from evenhand._database import Database, cause
from evenhand.privacy.ledger_store import (
    SCHEMA_VERSION,
    Account,
    Charge,
    Entry,
    Fact,
    StoreUnavailable,
    check_room,
    check_same,
    entry_of,
    refund_of,
)
from evenhand.privacy.ledger_tables import (
    ACCOUNTS,
    ENTRIES,
    TABLES,
    ChangedByHand,
    bring_up_to_date,
    chain_of,
    check_lines,
    lines_of,
)


class DatabaseStore:
    """A store that several processes and machines share, and that outlives them.

    Parameters
    ----------
    url_or_path : str or Path
        A file for SQLite, or a SQLAlchemy URL of PostgreSQL.

    Notes
    -----
    Each method is one transaction that holds the account from its first read to its commit, so
    two processes cannot both take the last of a budget. A process that is killed leaves its charge:
    the account may then show more than was released, never less. No file and no account is made
    before the first charge. Whether lines belong to their
    accounts and add up to what was spent is checked when an account is opened and before each
    charge. Restoring an older copy of the database, all of it, undoes that promise.
    """

    def __init__(self, url_or_path: str | Path) -> None:
        self._database = Database(
            url_or_path,
            what="A ledger's database",
            in_memory="Name a file, or use MemoryStore().",
        )
        self._on_record: dict[str, Account] = {}  # as this program found or made them
        self._last_line: int | None = None

    def open(self, account: Account) -> None:
        """Check that what is on record of it and of those around is the same."""
        with self._tables("opened", write=True) as db:
            if db is None:
                return
            bring_up_to_date(db, SCHEMA_VERSION)
            check_lines(db)
            chain = self._chain(db, account, lock=True)
        self._remember(chain)

    def charge(self, account: Account, charges: Sequence[Charge]) -> tuple[int, ...]:
        """Charge all or nothing here and in every account around it; make those that are new."""
        asked = sum(charge.n_uses * charge.units_each for charge in charges)
        new = account.name not in self._on_record
        if new and self._database.is_new():
            check_room(asked, [(level, 0) for level in account.levels])  # before there is a file
        with self._transaction("charged", write=True) as db:
            if new:
                self._database.create(db, TABLES)
                bring_up_to_date(db, SCHEMA_VERSION)
            self._check_lines(db)
            chain = self._chain(db, account, lock=True)
            for level in reversed(account.levels[: len(account.levels) - len(chain)]):
                chain.append(_put(db, level, chain))
            spent = [int(row.spent_units) for row in reversed(chain)]
            check_room(asked, zip(account.levels, spent, strict=True))
            _add(db, chain, asked)
            ids = tuple(
                db.execute(
                    ENTRIES.insert()
                    .values(
                        account_id=chain[-1].id,
                        account=account.name,
                        mechanism=charge.mechanism,
                        n_uses=charge.n_uses,
                        units_each=str(charge.units_each),
                        purpose=charge.purpose,
                        charged_at=time.time(),
                    )
                    .returning(ENTRIES.c.id)
                ).scalar_one()
                for charge in charges
            )
        self._remember(chain)
        self._last_line = max(ids, default=self._last_line)
        return ids

    def settle(self, account: str, used: Mapping[int, int]) -> None:
        """Refund what was charged beyond ``used[entry]`` uses, and close those entries."""
        with self._transaction("settled", write=True) as db:
            self._check_lines(db)
            chain = self._found(db, account, lock=True)
            mine = {"account_id": chain[-1].id}
            refund = 0
            for entry, n in used.items():
                row = db.execute(sa.select(ENTRIES).filter_by(id=entry, **mine)).one()
                refund += refund_of(_charge_of(row), n, row.n_used is not None)
                db.execute(ENTRIES.update().filter_by(id=entry).values(n_used=n))
            _add(db, chain, -refund)

    def spent(self, account: str) -> int:
        """Units charged to this account and to the accounts within it; 0 before any charge."""
        with self._tables("read") as db:
            chain = [] if db is None else self._found(db, account)
            return int(chain[-1].spent_units) if chain else 0

    def remaining(self, account: Account) -> int:
        """Units that can still be charged here."""
        with self._tables("read") as db:
            chain = [] if db is None else self._chain(db, account)
            spent = {row.name: int(row.spent_units) for row in chain}
            return min(level.limit - spent.get(level.name, 0) for level in account.levels)

    def entries(self, account: str) -> tuple[Entry, ...]:
        """Lines of this account and of those within it, oldest first; none before any charge."""
        with self._tables("read") as db:
            if db is None or not (chain := self._found(db, account)):
                return ()
            return tuple(
                entry_of(_charge_of(row), row.n_used, account=row.account, at=row.charged_at)
                for row in lines_of(db, chain[-1].id)
            )

    def __str__(self) -> str:
        return str(self._database)

    def __repr__(self) -> str:
        return f"DatabaseStore({str(self)!r})"

    @contextmanager
    def _transaction(self, doing: str, *, write: bool = False) -> Iterator[sa.Connection]:
        try:
            with self._database.transaction(write=write) as db:
                yield db
        except sa.exc.SQLAlchemyError as error:
            left = "No noise was drawn" if doing != "settled" else "Nothing was given back"
            raise StoreUnavailable(
                f"The ledger in {self} could not be {doing}: {cause(error)}. {left}. "
                f"Mend the database and try again; a charge that was already written counts."
            ) from error
        except ChangedByHand as error:
            raise StoreUnavailable(
                f"The ledger in {self} was changed by hand or restored in part: {error}. Nothing "
                f"was charged and no noise was drawn. Start from a copy that is whole."
            ) from None

    @contextmanager
    def _tables(self, doing: str, *, write: bool = False) -> Iterator[sa.Connection | None]:
        """Begin a transaction; None where nothing was ever charged: no file, or no tables."""
        if not self._on_record and self._database.is_new():
            yield None
            return
        with self._transaction(doing, write=write) as db:
            there = self._on_record or sa.inspect(db).has_table(ACCOUNTS.name)
            yield db if there else None

    def _check_lines(self, db: sa.Connection) -> None:
        check_lines(db)
        last = self._last_line
        if last is not None and not db.scalar(sa.select(ENTRIES.c.id).filter_by(id=last)):
            raise ChangedByHand(f"line {last}, which this program wrote, is not there")

    def _found(self, db: sa.Connection, name: str, *, lock: bool = False) -> list[sa.Row[Any]]:
        """Read what is on record of an account and those around it; it must be what it was."""
        chain = chain_of(db, name, lock=lock)
        if not chain and name in self._on_record:
            raise ChangedByHand(f"account {name!r} is not there any more")
        for known in _account_of(chain).levels if chain else ():
            if self._on_record.get(known.name, known) != known:
                raise ChangedByHand(f"account {known.name!r} is not the one that was opened")
        if lock:  # nobody charges while we add up
            _check_sums(db, chain)
        return chain

    def _chain(
        self, db: sa.Connection, account: Account, *, lock: bool = False
    ) -> list[sa.Row[Any]]:
        """Read what is on record of an account and those around it; it must be as described."""
        for level in account.levels:
            if chain := self._found(db, level.name, lock=lock):
                for known, described in zip(_account_of(chain).levels, level.levels, strict=False):
                    check_same(known, described, where=str(self))
                return chain
        return []

    def _remember(self, chain: Sequence[sa.Row[Any]]) -> None:
        if chain:
            self._on_record |= {known.name: known for known in _account_of(chain).levels}


def _json(facts: Mapping[str, Fact]) -> str:
    return json.dumps(dict(facts), sort_keys=True)


def _account_of(chain: Sequence[sa.Row[Any]]) -> Account:
    row = chain[-1]
    return Account(
        name=row.name,
        limit=int(row.limit_units),
        facts=json.loads(row.facts),
        within=_account_of(chain[:-1]) if len(chain) > 1 else None,
    )


def _put(db: sa.Connection, account: Account, around: Sequence[sa.Row[Any]]) -> sa.Row[Any]:
    """Put an account on record, within the last of those around it."""
    row = ACCOUNTS.insert().values(
        name=account.name,
        inside=around[-1].id if around else None,
        limit_units=str(account.limit),
        spent_units="0",
        facts=_json(account.facts),
    )
    return db.execute(row.returning(ACCOUNTS)).one()


def _check_sums(db: sa.Connection, chain: Sequence[sa.Row[Any]]) -> None:
    """Compare what each account says was spent with its lines and those of accounts within."""
    for level in chain:
        spent = int(level.spent_units)
        total = sum(
            (row.n_uses if row.n_used is None else row.n_used) * int(row.units_each)
            for row in lines_of(db, level.id)
        )
        if total != spent:
            raise ChangedByHand(
                f"account {level.name!r} does not add up, its lines come to "
                f"{total / max(1, spent):.6g} times what it says was spent"
            )


def _add(db: sa.Connection, chain: list[sa.Row[Any]], units: int) -> None:
    for level in chain:
        db.execute(
            ACCOUNTS.update()
            .filter_by(id=level.id)
            .values(spent_units=str(int(level.spent_units) + units))
        )


def _charge_of(row: sa.Row[Any]) -> Charge:
    return Charge(
        mechanism=row.mechanism,
        n_uses=row.n_uses,
        units_each=int(row.units_each),
        purpose=row.purpose,
    )
