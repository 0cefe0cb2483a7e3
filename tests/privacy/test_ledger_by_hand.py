"""What a shared ledger does when somebody changes its tables by hand, and with older tables."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from evenhand.privacy import Budget, DatabaseStore, FloatNoise, GNMax, Ledger
from evenhand.privacy.gaussian import SLACK
from evenhand.privacy.ledger_store import StoreUnavailable, units_down

BUDGET = Budget(epsilon=3.0, delta=1e-5)
ANSWER = GNMax(sigma=40.0)
COST = ANSWER.mu_squared(FloatNoise())


def opened(store: DatabaseStore, account: str = "default") -> Ledger:
    return Ledger(BUDGET, store=store, noise=FloatNoise(), account=account)


def by_hand(store: DatabaseStore, *statements: str) -> None:
    with store._database.transaction(write=True) as db:
        for statement in statements:
            db.exec_driver_sql(statement)


EDITS = {
    "spent nothing": ("UPDATE evenhand_accounts SET spent_units = '0'",),
    "fewer uses": ("UPDATE evenhand_entries SET n_uses = 1",),
    "settled with none": ("UPDATE evenhand_entries SET n_used = 0",),
    "a cheaper line": ("UPDATE evenhand_entries SET units_each = '1'",),
    "no lines": ("DELETE FROM evenhand_entries",),
    "as if new": (
        "DELETE FROM evenhand_entries",
        "UPDATE evenhand_accounts SET spent_units = '0'",
    ),
    "a larger limit": ("UPDATE evenhand_accounts SET limit_units = limit_units || '0'",),
    "other facts": ("UPDATE evenhand_accounts SET facts = '{}'",),
    "another name": ("UPDATE evenhand_accounts SET name = 'other' WHERE name = 'default'",),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_open_ledger_stops_once_its_tables_are_edited(
    database: DatabaseStore, edit: tuple[str, ...]
) -> None:
    mine = opened(database)
    grant = mine.reserve({ANSWER: 5}, purpose="before")
    by_hand(database, *edit)
    for use in (
        lambda: mine.reserve({ANSWER: 1}, purpose="after"),
        lambda: mine.run(BUDGET, purpose="a model").reserve({ANSWER: 1}, purpose="after"),
        lambda: grant.settle({}),
    ):
        with pytest.raises((StoreUnavailable, ValueError), match=r"by hand|is a ledger of another"):
            use()
    assert sum(entry.purpose == "after" for entry in entries(database)) == 0


def entries(store: DatabaseStore) -> list[object]:
    with store._database.transaction() as db:
        return list(db.exec_driver_sql("SELECT purpose FROM evenhand_entries").all())


def test_a_ledger_that_nobody_touched_goes_on(database: DatabaseStore) -> None:
    mine = opened(database)
    mine.run(BUDGET, purpose="a model").reserve({ANSWER: 2}, purpose="inside").settle({})
    mine.reserve({ANSWER: 5}, purpose="outside")
    again = opened(database)
    again.reserve({ANSWER: 1}, purpose="by another")
    mine.reserve({ANSWER: 1}, purpose="and again")
    assert mine.spent == again.spent == 7 * COST


@pytest.mark.parametrize("name", ["default", "other", "a third"])
def test_an_account_renamed_by_hand_opens_under_no_name(database: DatabaseStore, name: str) -> None:
    opened(database).reserve({ANSWER: 5}, purpose="x")
    by_hand(database, "UPDATE evenhand_accounts SET name = 'other' WHERE name = 'default'")
    with pytest.raises(StoreUnavailable, match=r"charged to the account 'default', which is cal"):
        opened(database, account=name)


def test_lines_without_an_account_stop_every_opening(tmp_path: Path) -> None:
    opened(DatabaseStore(tmp_path / "ledger.db")).reserve({ANSWER: 5}, purpose="x")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db, db:  # checks no foreign keys
        db.execute("DELETE FROM evenhand_accounts")
    for name in ("default", "another"):
        with pytest.raises(StoreUnavailable, match=r"line 1 was charged to .*'default', which is"):
            opened(DatabaseStore(tmp_path / "ledger.db"), account=name)


VERSION_1 = (
    """CREATE TABLE evenhand_accounts (name TEXT NOT NULL, inside TEXT, limit_units TEXT NOT NULL,
    spent_units TEXT NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (name),
    FOREIGN KEY(inside) REFERENCES evenhand_accounts (name))""",
    """CREATE TABLE evenhand_entries (id BIGINT NOT NULL, account TEXT NOT NULL, mechanism TEXT
    NOT NULL, n_uses BIGINT NOT NULL, n_used BIGINT, units_each TEXT NOT NULL, purpose TEXT NOT
    NULL, charged_at DOUBLE PRECISION NOT NULL, PRIMARY KEY (id), FOREIGN KEY(account) REFERENCES
    evenhand_accounts (name))""",
)


def of_version_1(store: DatabaseStore) -> None:
    """Write the tables as they were before lines knew the number of their account."""
    facts = {
        "epsilon": 3.0,
        "delta": 1e-5,
        "unit": "record",
        "neighbors": "replace one",
        "test_mode": False,
        "schema_version": 1,
    }
    limit = units_down(BUDGET.mu_squared * (1.0 - SLACK))
    each = units_down(COST)
    account = "INSERT INTO evenhand_accounts VALUES (:name, :inside, :limit, :spent, :facts)"
    line = (
        "INSERT INTO evenhand_entries VALUES "
        "(:id, :account, 'GNMax(sigma=40.0)', :n, :used, :each, 'pilot', 1e9)"
    )
    by_hand(store, *VERSION_1)
    with store._database.transaction(write=True) as db:
        for name, inside, n in (("default", None, 5), ("default/a model#1", "default", 2)):
            values = {"name": name, "inside": inside, "limit": str(limit), "spent": str(n * each)}
            db.execute(sa.text(account), values | {"facts": json.dumps(facts)})
        for number, (name, n, used) in {
            7: ("default", 3, None),
            9: ("default/a model#1", 9, 2),
        }.items():
            values = {"id": number, "account": name, "n": n, "used": used, "each": str(each)}
            db.execute(sa.text(line), values)


def test_tables_of_version_1_are_carried_over(database: DatabaseStore) -> None:
    of_version_1(database)
    mine = opened(database)
    assert mine.spent == 5 * COST
    assert [(e.account, e.n_uses, e.settled) for e in mine.entries] == [
        ("default", 3, False),
        ("default/a model#1", 2, True),
    ]
    mine.reserve({ANSWER: 1}, purpose="now")
    assert opened(database).spent == 6 * COST


def test_tables_of_version_1_that_were_renamed_by_hand_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    of_version_1(DatabaseStore(path))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE evenhand_accounts SET name = 'other' WHERE name = 'default'")
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match=r"'default', which is not there"):
        opened(DatabaseStore(path))
    assert path.read_bytes() == before


def test_who_may_charge_may_also_erase(postgres: str) -> None:
    # What docs/security.md says of rights in PostgreSQL: to insert is not enough for a run, and
    # with updates, which are, an account can be made to look as if nothing was spent.
    owner = DatabaseStore(postgres)
    opened(owner).reserve({ANSWER: 0}, purpose="an account")
    user = f"trains_{sa.make_url(postgres).database}"
    by_hand(
        owner,
        f"CREATE ROLE {user} LOGIN",
        f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO {user}",
    )
    theirs = DatabaseStore(sa.make_url(postgres).set(username=user).render_as_string(False))
    with pytest.raises(StoreUnavailable, match="permission denied"):
        opened(theirs)
    by_hand(owner, f"GRANT UPDATE ON ALL TABLES IN SCHEMA public TO {user}")
    opened(theirs).reserve({ANSWER: 5}, purpose="answers")
    assert opened(owner).spent == pytest.approx(5 * COST)
    by_hand(
        theirs,
        "UPDATE evenhand_entries SET n_used = 0",
        "UPDATE evenhand_accounts SET spent_units = '0'",
    )
    assert opened(owner).spent == 0
    by_hand(owner, f"DROP OWNED BY {user}", f"DROP ROLE {user}")
