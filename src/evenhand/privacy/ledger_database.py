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
    Account,
    Charge,
    Entry,
    OverLimit,
    StoreUnavailable,
    check_same,
    entry_of,
    refund_of,
)

_tables = sa.MetaData()

# Units are decimal text: they have up to 260 bits, more than any integer column.
_accounts = sa.Table(
    "evenhand_accounts",
    _tables,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("inside", sa.Text, sa.ForeignKey("evenhand_accounts.name")),
    sa.Column("limit_units", sa.Text, nullable=False),
    sa.Column("spent_units", sa.Text, nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
)
_entries = sa.Table(
    "evenhand_entries",
    _tables,
    sa.Column(
        "id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity(), primary_key=True
    ),
    sa.Column("account", sa.Text, sa.ForeignKey("evenhand_accounts.name"), nullable=False),
    sa.Column("mechanism", sa.Text, nullable=False),
    sa.Column("n_uses", sa.BigInteger, nullable=False),
    sa.Column("n_used", sa.BigInteger),  # null until the entry is settled
    sa.Column("units_each", sa.Text, nullable=False),
    sa.Column("purpose", sa.Text, nullable=False),
    sa.Column("charged_at", sa.Double, nullable=False),
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
    the account may then show more than was released, never less. Restoring an older copy of the
    database undoes that promise.
    """

    def __init__(self, url_or_path: str | Path) -> None:
        self._database = Database(
            url_or_path,
            what="A ledger's database",
            in_memory="Name a file, or use MemoryStore().",
        )

    def open(self, account: Account) -> None:
        """Create the tables and the account, or check that the one on record is the same."""
        with self._transaction("opened", write=True) as db:
            self._database.create(db, _tables)
            row = db.execute(sa.select(_accounts).filter_by(name=account.name)).first()
            if row is None:
                db.execute(
                    _accounts.insert().values(
                        name=account.name,
                        inside=account.within,
                        limit_units=str(account.limit),
                        spent_units="0",
                        facts=json.dumps(dict(account.facts), sort_keys=True),
                    )
                )
                return
            known = Account(
                name=row.name,
                limit=int(row.limit_units),
                facts=json.loads(row.facts),
                within=row.inside,
            )
            check_same(known, account, where=str(self))
            locked = _chain(db, account.name, lock=True)[-1]  # nobody charges while we add up
            self._check_sum(db, account.name, int(locked.spent_units))

    def charge(self, account: str, charges: Sequence[Charge]) -> tuple[int, ...]:
        """Charge all or nothing here and in every account around it."""
        asked = sum(charge.n_uses * charge.units_each for charge in charges)
        with self._transaction("charged", write=True) as db:
            chain = _chain(db, account, lock=True)
            for level in chain:
                spent, limit = int(level.spent_units), int(level.limit_units)
                if spent + asked > limit:
                    raise OverLimit(account=level.name, asked=asked, spent=spent, limit=limit)
            _add(db, chain, asked)
            return tuple(
                db.execute(
                    _entries.insert()
                    .values(
                        account=account,
                        mechanism=charge.mechanism,
                        n_uses=charge.n_uses,
                        units_each=str(charge.units_each),
                        purpose=charge.purpose,
                        charged_at=time.time(),
                    )
                    .returning(_entries.c.id)
                ).scalar_one()
                for charge in charges
            )

    def settle(self, account: str, used: Mapping[int, int]) -> None:
        """Refund what was charged beyond ``used[entry]`` uses, and close those entries."""
        with self._transaction("settled", write=True) as db:
            chain = _chain(db, account, lock=True)
            refund = 0
            for entry, n in used.items():
                row = db.execute(sa.select(_entries).filter_by(id=entry, account=account)).one()
                refund += refund_of(_charge_of(row), n, row.n_used is not None)
                db.execute(_entries.update().filter_by(id=entry).values(n_used=n))
            _add(db, chain, -refund)

    def spent(self, account: str) -> int:
        """Units charged to this account and to the accounts within it."""
        with self._transaction("read") as db:
            return int(_chain(db, account)[-1].spent_units)

    def remaining(self, account: str) -> int:
        """Units that can still be charged here."""
        with self._transaction("read") as db:
            return min(int(x.limit_units) - int(x.spent_units) for x in _chain(db, account))

    def entries(self, account: str) -> tuple[Entry, ...]:
        """Lines of this account and of those within it, oldest first."""
        with self._transaction("read") as db:
            return tuple(
                entry_of(_charge_of(row), row.n_used, account=row.account, at=row.charged_at)
                for row in _lines(db, account)
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

    def _check_sum(self, db: sa.Connection, account: str, spent: int) -> None:
        total = sum(
            (row.n_uses if row.n_used is None else row.n_used) * int(row.units_each)
            for row in _lines(db, account)
        )
        if total != spent:
            raise StoreUnavailable(
                f"Account {account!r} in {self} does not add up: its lines come to "
                f"{total / max(1, spent):.6g} times what it says was spent. It was changed by hand "
                f"or restored in part; start from a copy that is whole."
            )


def _chain(db: sa.Connection, account: str, *, lock: bool = False) -> list[sa.Row[Any]]:
    """Read the account and those around it, outermost first, so that locks have one order."""
    names = [account]
    while (around := db.scalar(sa.select(_accounts.c.inside).filter_by(name=names[0]))) is not None:
        names.insert(0, around)
    rows = []
    for name in names:
        query = sa.select(_accounts).filter_by(name=name)
        rows.append(db.execute(query.with_for_update() if lock else query).one())
    return rows


def _add(db: sa.Connection, chain: list[sa.Row[Any]], units: int) -> None:
    for level in chain:
        db.execute(
            _accounts.update()
            .filter_by(name=level.name)
            .values(spent_units=str(int(level.spent_units) + units))
        )


def _lines(db: sa.Connection, account: str) -> Sequence[sa.Row[Any]]:
    names = sa.select(_accounts.c.name).filter_by(name=account).cte(recursive=True)
    names = names.union_all(
        sa.select(_accounts.c.name).join(names, _accounts.c.inside == names.c.name)
    )
    query = sa.select(_entries).where(_entries.c.account.in_(sa.select(names.c.name)))
    return db.execute(query.order_by(_entries.c.id)).all()


def _charge_of(row: sa.Row[Any]) -> Charge:
    return Charge(
        mechanism=row.mechanism,
        n_uses=row.n_uses,
        units_each=int(row.units_each),
        purpose=row.purpose,
    )
