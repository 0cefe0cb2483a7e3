"""What every store must keep, of a ledger's account and of a sweep's runs: subclass, name your own.

Both contracts ask for a fixture ``store`` that gives a new, empty store.
"""

# ruff: noqa: D102 -- a test's name is its sentence

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from evenhand.privacy import FloatNoise, Ledger, SeededNoise
from evenhand.privacy.budget import Budget
from evenhand.privacy.ledger_store import Account, Charge, OtherAccount, OverLimit, Store
from evenhand.privacy.noisy_max import GNMax
from evenhand.testing.frontier import synthetic_runs


def charge(n_uses: int, units_each: int = 1, purpose: str = "x") -> Charge:
    """Return a charge of some mechanism."""
    return Charge(mechanism="m", n_uses=n_uses, units_each=units_each, purpose=purpose)


def account(
    name: str = "a", limit: int = 100, within: Account | None = None, **facts: Any
) -> Account:
    """Return the description of an account."""
    return Account(name=name, limit=limit, facts=facts, within=within)


class LedgerStoreContract:
    """What holds of every store of ledgers; subclass it and write the fixture ``store``."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError("Return a new store, for example MemoryStore().")

    def test_a_charge_is_kept_until_it_is_settled(self, store: Store) -> None:
        first, second = store.charge(account(), [charge(10, 3), charge(5, 4)])
        assert (store.spent("a"), store.remaining(account())) == (50, 50)
        assert [(e.n_uses, e.settled) for e in store.entries("a")] == [(10, False), (5, False)]
        store.settle("a", {first: 10, second: 2})
        assert (store.spent("a"), store.remaining(account())) == (38, 62)
        assert [(e.n_uses, e.settled) for e in store.entries("a")] == [(10, True), (2, True)]

    def test_a_charge_is_taken_whole_or_not_at_all(self, store: Store) -> None:
        store.charge(account(), [charge(60)])
        with pytest.raises(OverLimit) as over:
            store.charge(account(), [charge(30), charge(11)])
        assert (over.value.account, over.value.asked, over.value.spent) == ("a", 41, 60)
        assert store.spent("a") == 60
        assert len(store.entries("a")) == 1
        store.charge(account(), [charge(30), charge(10)])  # exactly full
        assert store.remaining(account()) == 0

    def test_a_settlement_is_taken_whole_or_not_at_all(self, store: Store) -> None:
        first, second = store.charge(account(), [charge(10), charge(10)])
        with pytest.raises(ValueError, match=r"m was reserved for 10 uses, got used=11"):
            store.settle("a", {first: 0, second: 11})
        assert store.spent("a") == 20
        assert [entry.settled for entry in store.entries("a")] == [False, False]
        store.settle("a", {first: 0})
        with pytest.raises(ValueError, match="was settled before"):
            store.settle("a", {first: 0})
        assert store.spent("a") == 10

    def test_accounts_within_charge_those_around(self, store: Store) -> None:
        outer, other = account("a", 100), account("other", 7)
        middle = account("a/b", 1000, within=outer)
        inner = account("a/b/c", 50, within=middle)
        [entry] = store.charge(inner, [charge(40, purpose="deep")])
        store.charge(middle, [charge(30, purpose="middle")])
        assert [store.spent(name) for name in ("a", "a/b", "a/b/c", "other")] == [70, 70, 40, 0]
        assert [store.remaining(one) for one in (outer, middle, inner)] == [30, 30, 10]
        assert store.remaining(other) == 7
        with pytest.raises(OverLimit) as over:
            store.charge(middle, [charge(31)])
        assert over.value.account == "a"
        with pytest.raises(OverLimit) as over:
            store.charge(inner, [charge(11)])
        assert over.value.account == "a/b/c"
        store.settle("a/b/c", {entry: 1})
        assert [store.spent(name) for name in ("a", "a/b", "a/b/c")] == [31, 31, 1]
        assert [entry.purpose for entry in store.entries("a")] == ["deep", "middle"]
        assert [entry.account for entry in store.entries("a")] == ["a/b/c", "a/b"]
        assert [entry.purpose for entry in store.entries("a/b/c")] == ["deep"]
        assert store.entries("other") == ()

    def test_opening_again_finds_the_account_as_it_was(self, store: Store) -> None:
        store.charge(account(n_records=10, columns="age,sex", epsilon=0.1), [charge(10)])
        store.open(account(n_records=10, columns="age,sex", epsilon=0.1))
        assert store.spent("a") == 10

    def test_an_account_comes_to_be_with_its_first_charge(self, store: Store) -> None:
        one, other = account(limit=10), account(limit=100, columns="age")
        for described in (one, other):  # whoever was refused before any charge left nothing
            store.open(described)
            with pytest.raises(OverLimit):
                store.charge(described, [charge(101)])
            assert store.remaining(described) == described.limit
        assert (store.spent("a"), store.entries("a")) == (0, ())
        store.charge(other, [charge(50)])
        for use in (
            lambda: store.open(one),
            lambda: store.charge(one, [charge(1)]),
            lambda: store.charge(account("b", within=one), [charge(1)]),
        ):
            with pytest.raises(OtherAccount, match="columns is 'age' on record and 'not stated'"):
                use()
        assert (store.spent("a"), store.spent("b")) == (50, 0)

    @pytest.mark.parametrize(
        ("again", "said"),
        [
            (account(n_records=11), "n_records is 10 on record and 11 here"),
            (account(), "n_records is 10 on record and 'not stated' here"),
            (account(n_records=10, more="x"), "more is 'not stated' on record and 'x' here"),
            (account(limit=99, n_records=10), "mu_squared differs"),
            (account(n_records=10, within=account("z")), "within is None on record and 'z' here"),
        ],
    )
    def test_opening_another_data_sets_account_says_what_differs(
        self, store: Store, again: Account, said: str
    ) -> None:
        store.charge(account(n_records=10), [charge(1)])
        with pytest.raises(
            OtherAccount, match=r"Account 'a' in .* another data set or budget"
        ) as error:
            store.open(again)
        assert said in str(error.value)

    def test_a_ledger_opens_only_what_it_describes(self, store: Store) -> None:
        def open_(**options: Any) -> Ledger:
            usual: dict[str, Any] = {
                "budget": Budget(epsilon=3.0, delta=1e-5),
                "noise": FloatNoise(),
                "account": "adult",
                "facts": {"n_records": 5},
            }
            return Ledger(store=store, **{**usual, **options})

        open_().reserve({GNMax(sigma=40.0): 2}, purpose="x")
        assert open_().entries[0].n_uses == 2
        for options, said in (
            ({"facts": {"n_records": 6}}, "n_records is 5 on record and 6 here"),
            ({"budget": Budget(epsilon=4.0, delta=1e-5)}, "epsilon is 3.0 on record and 4.0 here"),
            ({"unit": "person"}, "unit is 'record' on record and 'person' here"),
            ({"neighbors": "add or remove one"}, "neighbors is 'replace one' on record"),
            ({"noise": SeededNoise(0)}, "test_mode is False on record and True here"),
        ):
            with pytest.raises(OtherAccount) as error:
                open_(**options)
            assert said in str(error.value)

    def test_threads_that_race_for_one_account_take_exactly_what_fits(self, store: Store) -> None:
        def take(_: int) -> int:
            try:
                store.charge(account(limit=40), [charge(1, 3)])
            except OverLimit:
                return 0
            return 1

        with ThreadPoolExecutor(4) as pool:
            taken = sum(pool.map(take, range(40)))
        assert taken == 13
        assert store.spent("a") == 39
        assert len(store.entries("a")) == 13


class RunStoreContract:
    """What holds of the protocol ``Store`` of runs; subclass it and write the fixture ``store``."""

    @pytest.fixture
    def store(self) -> Any:
        raise NotImplementedError("Return a new store, for example RunStore('runs.db').")

    def test_runs_come_back_as_they_were_in_the_order_of_their_keys(self, store: Any) -> None:
        runs = synthetic_runs(5, n_seeds=2)
        assert store.keys() == set()
        assert store.add_all(iter(runs)) == 10
        assert store.keys() == {run.key for run in runs}
        in_order = sorted(runs, key=lambda run: run.key)
        assert [run.to_dict() for run in store.runs()] == [run.to_dict() for run in in_order]

    def test_what_one_sweep_had_alone_the_next_has_when_it_has_ended(self, store: Any) -> None:
        with pytest.raises(KeyboardInterrupt), store.alone():
            raise KeyboardInterrupt
        with store.alone():
            assert store.add_all(synthetic_runs(2)) == 2

    def test_of_two_runs_of_one_setting_the_first_stays(self, store: Any) -> None:
        *first, new = synthetic_runs(4)
        again = [replace(run, error=1.0) for run in first]
        assert store.add_all(first) == 3
        assert store.add_all([*again, new, replace(new, error=1.0)]) == 1
        kept = {run.key: run.to_dict() for run in store.runs()}
        assert all(kept[run.key] == run.to_dict() for run in first)
        assert len(kept) == 4

    def test_what_was_added_before_an_interruption_is_whole(self, store: Any) -> None:
        runs = synthetic_runs(6)

        def interrupted() -> Any:
            yield from runs[:4]
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.add_all(interrupted())
        kept = {run.key: run.to_dict() for run in store.runs()}
        assert set(kept) == store.keys() <= {run.key for run in runs[:4]}
        assert store.add_all(runs) == 6 - len(kept)

    def test_writers_at_once_keep_every_run_once(self, store: Any) -> None:
        runs = synthetic_runs(40)
        with ThreadPoolExecutor(4) as pool:
            new = sum(pool.map(lambda at: store.add_all(runs[at : at + 20]), (0, 10, 20, 20, 0)))
        assert new == 40
        assert len(store.runs()) == 40
