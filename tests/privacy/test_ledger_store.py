"""One contract for every store; then what only a shared store must keep: crashes and races."""

import copy
import os
import pickle
import signal
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from children import in_child
from sqlalchemy.dialects import postgresql

from evenhand.privacy import Budget, BudgetExceeded, DatabaseStore, FloatNoise, GNMax, Ledger
from evenhand.privacy import ledger_database as database_module
from evenhand.privacy.ledger_store import (
    UNITS_PER_ONE,
    Account,
    Charge,
    MemoryStore,
    OverLimit,
    Store,
    StoreUnavailable,
    mu_squared_of,
    units_down,
    units_up,
)
from evenhand.privacy.ledger_tables import chain_of
from evenhand.privacy.noisy_max import NoisyThreshold
from evenhand.testing.stores import LedgerStoreContract, account, charge

BUDGET = Budget(epsilon=3.0, delta=1e-5)
ANSWER = GNMax(sigma=40.0)
CHECK = NoisyThreshold(threshold=100.0, sigma=60.0)
UNITS = {m: units_up(m.mu_squared(FloatNoise())) for m in (ANSWER, CHECK)}


# ---------------------------------------------------------------- units


@pytest.mark.parametrize("value", [1e-60, 1.3e-9, 0.1, 1 / 3, 2.0, 1e9])
def test_floats_are_units_without_loss(value: float) -> None:
    assert units_up(value) == units_down(value)
    assert mu_squared_of(units_up(value)) == value


def test_what_is_finer_than_a_unit_is_rounded_to_the_safe_side() -> None:
    assert units_up(1e-300) == 1
    assert units_down(1e-300) == 0
    assert units_up(1.0) == units_down(1.0) == UNITS_PER_ONE


# ---------------------------------------------------------------- the contract


class TestStores(LedgerStoreContract):
    @pytest.fixture
    def store(self, store: Store) -> Store:
        return store


class Generous(MemoryStore):
    """It charges the part of a reservation that fits."""

    def charge(self, account: Account, charges: Sequence[Charge]) -> tuple[int, ...]:
        ids: list[int] = []
        for each in charges:
            try:
                ids += super().charge(account, [each])
            except OverLimit:
                if not ids:
                    raise
        return tuple(ids)


class Alone(MemoryStore):
    """Accounts within others do not charge those around."""

    def charge(self, account: Account, charges: Sequence[Charge]) -> tuple[int, ...]:
        return super().charge(replace(account, within=None), charges)


BROKEN = {
    Generous: "a_charge_is_taken_whole_or_not_at_all",
    Alone: "accounts_within_charge_those_around",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_store_fails_the_contract(broken: type[MemoryStore]) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(LedgerStoreContract(), f"test_{BROKEN[broken]}")(broken())


# ---------------------------------------------------------------- several processes


def released_units(log: Path) -> int:
    """What left, as the log of releases shows it: 'n_checks n_answers' in each line."""
    total = 0
    for line in log.read_text().splitlines():
        n_checks, n_answers = map(int, line.split())
        total += n_checks * UNITS[CHECK] + n_answers * UNITS[ANSWER]
    return total


def work(store: DatabaseStore, log: Path, *, charge_first: bool = True) -> None:
    """Release blocks until killed; each line of the log is written after the draw."""
    mine = Ledger(Budget(epsilon=1e4, delta=1e-5), store=store, noise=FloatNoise())
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    rng = np.random.default_rng(os.getpid())
    while True:
        n = int(rng.integers(1, 6))
        if charge_first:
            with mine.reserve({CHECK: n, ANSWER: n}, purpose="a block") as grant:
                grant.draw(CHECK, 2)
                grant.draw(ANSWER, 2)
                passed = int(rng.integers(0, n + 1))
                os.write(out, f"{n} {passed}\n".encode())
                grant.settle({CHECK: n, ANSWER: passed})
        else:  # the wrong order, to see that the test would convict it
            os.write(out, f"{n} {n}\n".encode())
            mine.reserve({CHECK: n, ANSWER: n}, purpose="a block")


def killed_at_random_instants(
    store: DatabaseStore, log: Path, *, rounds: int, charge_first: bool = True
) -> bool:
    """After each kill: is no less on record than what left?"""
    log.touch()
    Ledger(Budget(epsilon=1e4, delta=1e-5), store=store, noise=FloatNoise())
    rng = np.random.default_rng(11)
    for _ in range(rounds):
        before = log.stat().st_size
        child = in_child(lambda: work(store, log, charge_first=charge_first))
        while log.stat().st_size == before:  # however slow the machine: kill it while it works
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.001)
        time.sleep(0.03 * rng.random())
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        Ledger(Budget(epsilon=1e4, delta=1e-5), store=store, noise=FloatNoise())  # it adds up
        if store.spent("default") < released_units(log):
            return False
    return True


def test_a_process_killed_at_any_instant_never_leaves_less_on_record(database, tmp_path) -> None:
    # A kill falls between any two steps: the work repeats every few milliseconds.
    log = tmp_path / "released.log"
    assert killed_at_random_instants(database, log, rounds=25)
    assert released_units(log) > 0
    unsettled = [entry for entry in database.entries("default") if not entry.settled]
    assert unsettled  # some kill did fall between a charge and its settlement


def test_the_same_kills_convict_a_ledger_that_draws_first(database, tmp_path) -> None:
    # Probability to miss: each kill falls before the charge is written with probability about 1/2.
    log = tmp_path / "released.log"
    assert not killed_at_random_instants(database, log, rounds=25, charge_first=False)


@pytest.mark.parametrize("n_processes", [2, 4])
def test_processes_racing_for_one_budget_take_exactly_what_fits(
    database, tmp_path, n_processes: int
) -> None:
    budget = Budget(epsilon=0.9, delta=1e-5)
    fits = Ledger(budget, store=database, noise=FloatNoise()).affordable(ANSWER)
    log = tmp_path / "released.log"

    def race() -> None:
        mine = Ledger(budget, store=copy.deepcopy(database), noise=FloatNoise())
        out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        rng = np.random.default_rng(os.getpid())
        while True:
            try:
                mine.release(ANSWER, [[190, 60]], purpose=str(os.getpid()))
            except BudgetExceeded:
                return
            os.write(out, b"0 1\n")
            time.sleep(0.01 * rng.random())  # or one of them would take it all

    children = [in_child(race) for _ in range(n_processes)]
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    assert 40 < fits < 60
    assert len(log.read_text().splitlines()) == fits
    assert database.spent("default") == released_units(log)
    assert len({entry.purpose for entry in database.entries("default")}) > 1


def test_processes_that_open_a_new_database_together_make_one_account(database) -> None:
    def first() -> None:
        mine = Ledger(BUDGET, store=database, noise=FloatNoise())
        mine.reserve({ANSWER: 1}, purpose="x")

    children = [in_child(first) for _ in range(4)]
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    assert database.spent("default") == 4 * UNITS[ANSWER]


def test_a_copy_of_a_shared_store_spends_from_the_same_account(database) -> None:
    mine = Ledger(BUDGET, store=database, noise=FloatNoise())
    for twin in (copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
        before = mine.spent
        twin.reserve({ANSWER: 1}, purpose="x")
        assert mine.spent > before


# ---------------------------------------------------------------- when the database fails


def test_a_database_that_goes_away_stops_the_release_before_the_draw(tmp_path, tripwire) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    drawn = []
    store = DatabaseStore(folder / "ledger.db")
    mine = Ledger(BUDGET, store=store, noise=tripwire(lambda: drawn.append(1)))
    mine.release(ANSWER, [[3, 1]], purpose="x")
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable, match=r"could not be charged: unable to open.*No noise"):
        mine.release(ANSWER, [[3, 1]], purpose="x")
    assert drawn == [1]
    (tmp_path / "elsewhere").rename(folder)
    mine.release(ANSWER, [[3, 1]], purpose="x")
    assert [entry.n_uses for entry in mine.entries] == [1, 1]


def test_a_database_that_goes_away_after_the_draw_says_that_nothing_came_back(
    tmp_path, tripwire
) -> None:
    file = tmp_path / "ledger.db"
    noise = tripwire(lambda: file.write_bytes(b"no database" * 100))
    ledger = Ledger(BUDGET, store=DatabaseStore(file), noise=noise)
    with pytest.raises(StoreUnavailable, match=r"not be settled.*Nothing was given back") as raised:
        ledger.release(ANSWER, [[190, 60]], purpose="drawn")
    assert "No noise was drawn" not in str(raised.value)


def test_no_file_is_made_before_the_first_charge(tmp_path) -> None:
    store = DatabaseStore(tmp_path / "ledger.db")
    mine = Ledger(BUDGET, store=store, noise=FloatNoise())
    inner = mine.run(BUDGET, purpose="a model")
    assert (mine.spent, mine.entries, inner.remaining) == (0, (), mine.remaining)
    with pytest.raises(BudgetExceeded):
        inner.reserve({ANSWER: 10**9}, purpose="far too many")
    with pytest.raises(BudgetExceeded), mine.set_aside({"far too much": 1e9}):
        pass
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreUnavailable, match="could not be opened: unable to open"):
        Ledger(BUDGET, store=DatabaseStore(tmp_path / "nowhere" / "ledger.db"))


def test_a_file_that_was_deleted_is_not_taken_for_an_empty_account(tmp_path) -> None:
    store = DatabaseStore(tmp_path / "ledger.db")
    mine = Ledger(BUDGET, store=store, noise=FloatNoise())
    mine.reserve({ANSWER: 1}, purpose="x")
    (tmp_path / "ledger.db").unlink()
    with pytest.raises(StoreUnavailable, match="no such table"):
        mine.reserve({ANSWER: 1}, purpose="x")
    with pytest.raises(StoreUnavailable, match="could not be read"):
        _ = mine.spent


def test_a_crash_between_two_statements_leaves_the_account_as_it_was(database, monkeypatch) -> None:
    mine = Ledger(BUDGET, store=database, noise=FloatNoise())

    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    grant = mine.reserve({ANSWER: 5}, purpose="x")
    before = mine.entries
    with monkeypatch.context() as patch:
        patch.setattr(database_module, "_add", fails)
        with pytest.raises(KeyboardInterrupt):
            grant.settle({})
    assert mine.entries == before
    assert mine.spent == 5 * ANSWER.mu_squared(FloatNoise())


def test_an_account_that_was_changed_by_hand_is_not_opened(tmp_path) -> None:
    path = tmp_path / "ledger.db"
    mine = Ledger(BUDGET, store=DatabaseStore(path), noise=FloatNoise())
    mine.reserve({ANSWER: 5}, purpose="x")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE evenhand_accounts SET spent_units = '0'")
    db.close()
    with pytest.raises(
        StoreUnavailable, match=r"changed by hand.*account 'default' does not add up"
    ):
        Ledger(BUDGET, store=DatabaseStore(path), noise=FloatNoise())


def test_sqlite_waits_its_turn_and_writes_through(tmp_path) -> None:
    store = DatabaseStore(tmp_path / "ledger.db")
    with store._transaction("read", write=True) as db:
        assert db.exec_driver_sql("PRAGMA synchronous").scalar() == 3  # EXTRA
        assert db.exec_driver_sql("PRAGMA busy_timeout").scalar() == 60_000
        other = sqlite3.connect(tmp_path / "ledger.db", timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()


def test_postgresql_locks_the_accounts_row() -> None:
    # Compiled only; the races above run on a real server, where PostgreSQL is installed.
    seen = []

    class Connection:
        def scalar(self, query: sa.Select) -> int | None:
            seen.append(query)
            return 1 if len(seen) == 1 else None  # one account, and none around it

        def execute(self, query: sa.Select) -> "Connection":
            seen.append(query)
            return self

        def one(self) -> None:
            return None

    chain_of(Connection(), "a", lock=True)
    assert str(seen[-1].compile(dialect=postgresql.dialect())).endswith("FOR UPDATE")


@pytest.mark.parametrize("nowhere", [":memory:", "sqlite://", "sqlite:///:memory:", ""])
def test_a_database_in_memory_is_refused(nowhere: str) -> None:
    with pytest.raises(ValueError, match=r"would forget everything .* MemoryStore"):
        DatabaseStore(nowhere)


def test_other_databases_are_refused() -> None:
    with pytest.raises(ValueError, match="must be SQLite or PostgreSQL, got 'mysql'"):
        DatabaseStore("mysql://u:p@host/db")


def test_a_path_stays_where_it_was_when_the_program_moves(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = DatabaseStore("ledger.db")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    store.charge(account(), [charge(3)])
    assert DatabaseStore(tmp_path / "ledger.db").spent("a") == 3
    assert repr(store) == f"DatabaseStore('sqlite:///{tmp_path}/ledger.db')"
