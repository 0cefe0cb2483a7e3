"""The tables of a ledger's database: what belongs to what, and how older ones are brought here."""

from __future__ import annotations

import json
from typing import Any, Final

import sqlalchemy as sa

TABLES: Final = sa.MetaData()

_id = sa.BigInteger().with_variant(sa.Integer, "sqlite")

# Units are decimal text: they have up to 260 bits, more than any integer column.
ACCOUNTS: Final = sa.Table(
    "evenhand_accounts",
    TABLES,
    sa.Column("id", _id, sa.Identity(), primary_key=True),
    sa.Column("name", sa.Text, unique=True, nullable=False),
    sa.Column("inside", _id, sa.ForeignKey("evenhand_accounts.id")),
    sa.Column("limit_units", sa.Text, nullable=False),
    sa.Column("spent_units", sa.Text, nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
)
# A line says twice whose it is: an account that was renamed no longer has the name in its lines.
ENTRIES: Final = sa.Table(
    "evenhand_entries",
    TABLES,
    sa.Column("id", _id, sa.Identity(), primary_key=True),
    sa.Column("account_id", _id, sa.ForeignKey("evenhand_accounts.id"), nullable=False, index=True),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("mechanism", sa.Text, nullable=False),
    sa.Column("n_uses", sa.BigInteger, nullable=False),
    sa.Column("n_used", sa.BigInteger),  # null until the entry is settled
    sa.Column("units_each", sa.Text, nullable=False),
    sa.Column("purpose", sa.Text, nullable=False),
    sa.Column("charged_at", sa.Double, nullable=False),
)


class ChangedByHand(Exception):
    """The tables contradict themselves; the message says where."""


def check_lines(db: sa.Connection) -> None:
    """Refuse lines of no account, and of an account that is called otherwise now.

    Raises
    ------
    ChangedByHand
        A new account of the old name would begin with its whole budget.
    """
    joined = ENTRIES.outerjoin(ACCOUNTS, ENTRIES.c.account_id == ACCOUNTS.c.id)
    query = sa.select(ENTRIES.c.id, ENTRIES.c.account, ACCOUNTS.c.name).select_from(joined)
    wrong = ACCOUNTS.c.name.is_(None) | (ACCOUNTS.c.name != ENTRIES.c.account)
    row = db.execute(query.where(wrong).order_by(ENTRIES.c.id).limit(1)).first()
    if row is not None:
        now = "which is not there" if row.name is None else f"which is called {row.name!r} now"
        raise ChangedByHand(f"line {row.id} was charged to the account {row.account!r}, {now}")


def lines_of(db: sa.Connection, account_id: int) -> Any:
    """Return the lines of an account and of those within it, oldest first."""
    ids = sa.select(ACCOUNTS.c.id).filter_by(id=account_id).cte(recursive=True)
    ids = ids.union_all(sa.select(ACCOUNTS.c.id).join(ids, ACCOUNTS.c.inside == ids.c.id))
    query = sa.select(ENTRIES).where(ENTRIES.c.account_id.in_(sa.select(ids.c.id)))
    return db.execute(query.order_by(ENTRIES.c.id)).all()


def chain_of(db: sa.Connection, account: str, *, lock: bool = False) -> list[sa.Row[Any]]:
    """Read the account and those around it, outermost first, so that locks have one order.

    Nothing where it is not on record.
    """
    ids = [db.scalar(sa.select(ACCOUNTS.c.id).filter_by(name=account))]
    if ids == [None]:
        return []
    while (around := db.scalar(sa.select(ACCOUNTS.c.inside).filter_by(id=ids[0]))) is not None:
        ids.insert(0, around)
    rows = []
    for one in ids:
        query = sa.select(ACCOUNTS).filter_by(id=one)
        rows.append(db.execute(query.with_for_update() if lock else query).one())
    return rows


def bring_up_to_date(db: sa.Connection, version: int) -> None:
    """Carry tables of version 1, whose lines knew their account by its name alone, over to these.

    Everything happens in the transaction that opens an account, or nothing.
    """
    if "account_id" in {c["name"] for c in sa.inspect(db).get_columns(ENTRIES.name)}:
        return
    before = sa.MetaData()
    before.reflect(db, only=[ACCOUNTS.name, ENTRIES.name])
    old = before.tables[ENTRIES.name]
    accounts = db.execute(sa.select(before.tables[ACCOUNTS.name])).mappings().all()
    lines = db.execute(sa.select(old).order_by(old.c.id)).mappings().all()
    names = {row["name"] for row in accounts}
    lost = [row for row in lines if row["account"] not in names]
    if lost:
        raise ChangedByHand(
            f"line {lost[0]['id']} was charged to the account {lost[0]['account']!r}, which is not "
            f"there"
        )
    before.drop_all(db)
    TABLES.create_all(db)
    ids = {}
    for row in accounts:
        facts = json.dumps({**json.loads(row["facts"]), "schema_version": version}, sort_keys=True)
        values = {**row, "facts": facts, "inside": None}
        ids[row["name"]] = db.scalar(ACCOUNTS.insert().values(values).returning(ACCOUNTS.c.id))
    for row in accounts:
        if row["inside"] is not None:
            inside = {"inside": ids[row["inside"]]}
            db.execute(ACCOUNTS.update().filter_by(name=row["name"]).values(inside))
    for row in lines:
        kept = {key: value for key, value in row.items() if key != "id"}
        db.execute(ENTRIES.insert().values(**kept, account_id=ids[row["account"]]))
