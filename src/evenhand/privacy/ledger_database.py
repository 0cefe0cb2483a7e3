"""A ledger's account in a database: SQLite in one file, or PostgreSQL between machines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
    OverLimit,
    StoreUnavailable,
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
    the account may then show more than was released, never less. Whether lines belong to their
    accounts and add up to what was spent is checked when an account is opened and before each
    charge. Restoring an older copy of the database, all of it, undoes that promise.
    """

    def __init__(self, url_or_path: str | Path) -> None:
        self._database = Database(
            url_or_path,
            what="A ledger's database",
            in_memory="Name a file, or use MemoryStore().",
        )
        self._opened: dict[str, Account] = {}
        self._last_line: int | None = None

    def open(self, account: Account) -> None:
        """Create the tables and the account, or check that the one on record is the same."""
        with self._transaction("opened", write=True) as db:
            self._database.create(db, TABLES)
            bring_up_to_date(db, SCHEMA_VERSION)
            check_lines(db)
            row = db.execute(sa.select(ACCOUNTS).filter_by(name=account.name)).first()
            if row is None:
                around = None if account.within is None else chain_of(db, account.within)[-1].id
                db.execute(
                    ACCOUNTS.insert().values(
                        name=account.name,
                        inside=around,
                        limit_units=str(account.limit),
                        spent_units="0",
                        facts=_json(account.facts),
                    )
                )
            else:
                chain = chain_of(db, account.name, lock=True)  # nobody charges while we add up
                check_same(_account_of(chain), account, where=str(self))
                _check_sums(db, chain)
            self._opened[account.name] = replace(account, facts=dict(account.facts))

    def charge(self, account: str, charges: Sequence[Charge]) -> tuple[int, ...]:
        """Charge all or nothing here and in every account around it."""
        asked = sum(charge.n_uses * charge.units_each for charge in charges)
        with self._transaction("charged", write=True) as db:
            chain = self._checked_chain(db, account)
            for level in chain:
                spent, limit = int(level.spent_units), int(level.limit_units)
                if spent + asked > limit:
                    raise OverLimit(account=level.name, asked=asked, spent=spent, limit=limit)
            _add(db, chain, asked)
            ids = tuple(
                db.execute(
                    ENTRIES.insert()
                    .values(
                        account_id=chain[-1].id,
                        account=account,
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
        self._last_line = max(ids, default=self._last_line)
        return ids

    def settle(self, account: str, used: Mapping[int, int]) -> None:
        """Refund what was charged beyond ``used[entry]`` uses, and close those entries."""
        with self._transaction("settled", write=True) as db:
            chain = self._checked_chain(db, account)
            mine = {"account_id": chain[-1].id}
            refund = 0
            for entry, n in used.items():
                row = db.execute(sa.select(ENTRIES).filter_by(id=entry, **mine)).one()
                refund += refund_of(_charge_of(row), n, row.n_used is not None)
                db.execute(ENTRIES.update().filter_by(id=entry).values(n_used=n))
            _add(db, chain, -refund)

    def spent(self, account: str) -> int:
        """Units charged to this account and to the accounts within it."""
        with self._transaction("read") as db:
            return int(chain_of(db, account)[-1].spent_units)

    def remaining(self, account: str) -> int:
        """Units that can still be charged here."""
        with self._transaction("read") as db:
            return min(int(x.limit_units) - int(x.spent_units) for x in chain_of(db, account))

    def entries(self, account: str) -> tuple[Entry, ...]:
        """Lines of this account and of those within it, oldest first."""
        with self._transaction("read") as db:
            return tuple(
                entry_of(_charge_of(row), row.n_used, account=row.account, at=row.charged_at)
                for row in lines_of(db, chain_of(db, account)[-1].id)
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
            raise StoreUnavailable(
                f"The ledger in {self} could not be {doing}: {cause(error)}. No noise was drawn. "
                f"Mend the database and try again; a charge that was already written counts."
            ) from error
        except ChangedByHand as error:
            raise StoreUnavailable(
                f"The ledger in {self} was changed by hand or restored in part: {error}. Nothing "
                f"was charged and no noise was drawn. Start from a copy that is whole."
            ) from None

    def _checked_chain(self, db: sa.Connection, account: str) -> list[sa.Row[Any]]:
        """Lock the account and those around it; all must be what they were, and add up."""
        check_lines(db)
        last = self._last_line
        if last is not None and not db.scalar(sa.select(ENTRIES.c.id).filter_by(id=last)):
            raise ChangedByHand(f"line {last}, which this program wrote, is not there")
        chain = chain_of(db, account, lock=True)
        for i, level in enumerate(chain, 1):
            opened = self._opened.get(level.name)
            if opened is not None and _account_of(chain[:i]) != opened:
                raise ChangedByHand(f"account {level.name!r} is not the one that was opened")
        _check_sums(db, chain)
        return chain


def _json(facts: Mapping[str, Fact]) -> str:
    return json.dumps(dict(facts), sort_keys=True)


def _account_of(chain: Sequence[sa.Row[Any]]) -> Account:
    row = chain[-1]
    return Account(
        name=row.name,
        limit=int(row.limit_units),
        facts=json.loads(row.facts),
        within=chain[-2].name if len(chain) > 1 else None,
    )


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
