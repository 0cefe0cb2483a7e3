import copy
import json
import math
import os
import pickle
import threading
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from evenhand.privacy import (
    Budget,
    BudgetExceeded,
    DiscreteNoise,
    FloatNoise,
    GNMax,
    Guarantee,
    Ledger,
    LNMax,
    SeededNoise,
)
from evenhand.privacy.gaussian import SLACK, epsilon_from_mu, sigma_for
from evenhand.privacy.grant import Grant
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.privacy.noisy_max import NoisyThreshold

BUDGET = Budget(epsilon=3.0, delta=1e-5)
ANSWER = GNMax(sigma=40.0)
CHECK = NoisyThreshold(threshold=100.0, sigma=60.0)
VOTES = np.array([[190, 60], [20, 230], [125, 125]])


def exact(mechanism) -> Fraction:
    return Fraction(mechanism.mu_squared(SeededNoise(0)))


LIMIT = Fraction(BUDGET.mu_squared * (1 - SLACK))


def ledger(budget: Budget = BUDGET, **options) -> Ledger:
    return Ledger(budget, **{"noise": SeededNoise(0), **options})


@pytest.mark.parametrize(
    "given", [{"budget": 3.0}, {"noise": "exact"}, {"noise": DiscreteNoise}, {"unit": 3}]
)
def test_a_number_or_a_name_in_place_of_an_object_is_refused_in_words(given) -> None:
    with pytest.raises(
        TypeError, match=rf"{next(iter(given))} must be a .*(Budget\(|DiscreteNoise\(|got 3)"
    ):
        Ledger(**{"budget": BUDGET, **given})


@pytest.mark.parametrize(
    "given", [{"store": "x.db"}, {"account": None}, {"facts": [("n", 1)]}, {"account": "a\0b"}]
)
def test_what_no_database_can_keep_is_refused_in_words(given) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"^{next(iter(given))} must be a "):
        ledger(**given)


@pytest.mark.parametrize("purpose", [None, 3, "\ud800", "a\0b"])
def test_a_purpose_is_a_text_before_anything_is_charged(store, purpose) -> None:
    mine = ledger(store=store)
    with pytest.raises((TypeError, ValueError), match=r"^purpose must be a text"):
        mine.release(ANSWER, VOTES, purpose=purpose)
    with pytest.raises((TypeError, ValueError), match=r"^purpose must be a text"):
        mine.run(Budget(epsilon=1.0, delta=1e-5), purpose=purpose)
    with pytest.raises(TypeError, match=r"^uses must be a Mapping"):
        mine.reserve([ANSWER], purpose="x")
    assert mine.spent == 0


# ---------------------------------------------------------------- charge, then draw


def test_the_charge_is_on_record_at_the_moment_of_the_draw(store, tripwire) -> None:
    seen = []
    mine = Ledger(
        BUDGET, store=store, noise=tripwire(lambda: seen.append((mine.spent, mine.entries)))
    )
    mine.release(ANSWER, VOTES, purpose="answers")
    [(spent, entries)] = seen
    assert spent == pytest.approx(3 * 2 / 40**2)
    assert [entry.n_uses for entry in entries] == [3]


def test_nothing_is_drawn_or_charged_when_the_budget_refuses(store, tripwire) -> None:
    seen = []
    mine = Ledger(BUDGET, store=store, noise=tripwire(lambda: seen.append("drawn")))
    many = np.tile(VOTES, (200, 1))
    with pytest.raises(BudgetExceeded):
        mine.release(ANSWER, many, purpose="too many")
    with pytest.raises(BudgetExceeded):
        mine.reserve({CHECK: 1, ANSWER: 600}, purpose="too many of one kind")
    assert seen == []
    assert mine.spent == 0
    assert mine.entries == ()


def test_a_refusal_says_what_was_asked_what_is_allowed_and_the_way_out() -> None:
    mine = ledger(Budget(epsilon=2.0, delta=1e-5))
    with pytest.raises(BudgetExceeded) as refused:
        mine.reserve({GNMax(sigma=40.0): 500}, purpose="answers")
    reached = epsilon_from_mu(math.sqrt(500 * 2 / 40**2), 1e-5)
    assert str(refused.value) == (
        f"GNMax(sigma=40.0) on 500 queries would bring epsilon to {reached:.3f}, above the budget "
        f"of 2.0 at delta=1e-05. Ask fewer queries, or raise sigma. Nothing was charged or drawn."
    )


def test_a_release_is_the_decision_on_counts_and_the_noise_of_the_source() -> None:
    for mechanism in (ANSWER, LNMax(scale=30.0), CHECK):
        drawn = mechanism.draw_noise(SeededNoise(4), 3, 2)
        released = ledger(noise=SeededNoise(4)).release(mechanism, VOTES, purpose="x")
        assert (released == mechanism.decide(VOTES, drawn)).all()


def test_the_default_noise_is_exact_and_discrete() -> None:
    mine = Ledger(BUDGET)
    assert isinstance(mine.noise, DiscreteNoise)
    assert mine.reserve({ANSWER: 2}, purpose="x").draw(ANSWER, 3).dtype == np.int64


# ---------------------------------------------------------------- the sum is exact


costs = st.lists(
    st.tuples(st.sampled_from([0.37, 3.0, 41.7, 1e4, 1e9]), st.integers(0, 30)), max_size=12
)


@given(costs, st.randoms(use_true_random=False))
def test_the_order_of_charges_and_refunds_leaves_no_trace(uses, rnd) -> None:
    big = Budget(epsilon=1e5, delta=1e-5)
    one, other, shuffled = ledger(big), ledger(big), list(uses)
    rnd.shuffle(shuffled)
    for mine, order in ((one, uses), (other, shuffled)):
        for sigma, n in order:
            mine.reserve({GNMax(sigma=sigma): n}, purpose="x")
    for sigma, n in uses:  # charge and refund in full
        other.reserve({GNMax(sigma=sigma): n}, purpose="x").settle({})
    spent = sum((n * exact(GNMax(sigma=sigma)) for sigma, n in uses), Fraction(0))
    assert one.store.spent("default") == other.store.spent("default") == spent * 2**256
    assert one.spent == float(spent)


@given(st.floats(0.5, 500.0), st.floats(0.05, 20.0))
def test_what_is_affordable_fits_and_one_more_does_not(sigma: float, epsilon: float) -> None:
    mine = ledger(Budget(epsilon=epsilon, delta=1e-6))
    pair = GNMax(sigma=sigma), NoisyThreshold(threshold=1.0, sigma=2 * sigma)
    n = mine.affordable(*pair)
    with pytest.raises(BudgetExceeded):
        mine.reserve(dict.fromkeys(pair, n + 1), purpose="one more")
    mine.reserve(dict.fromkeys(pair, n), purpose="all")
    assert mine.affordable(*pair) == 0
    total = n * sum(exact(mechanism) for mechanism in pair)
    assert total <= Fraction(mine.budget.mu_squared)


@pytest.mark.parametrize("noise", [DiscreteNoise(), FloatNoise()], ids=["discrete", "float"])
@pytest.mark.parametrize("n", [1, 7, 1000])
def test_noise_made_for_n_releases_affords_n_of_them(noise, n: int) -> None:
    sigma = sigma_for(BUDGET.mu_squared, n, math.sqrt(2.0), gaussian_mu=noise.gaussian_mu)
    mine = Ledger(BUDGET, noise=noise)
    for _ in range(n):  # one at a time, so that each could add a rounding
        mine.reserve({GNMax(sigma=sigma): 1}, purpose="x")
    assert mine.affordable(GNMax(sigma=sigma)) == 0


def test_the_guarantee_of_all_that_is_affordable_is_the_budget() -> None:
    # Second derivation: the exact epsilon of the sum of what was charged.
    mine = ledger()
    mine.reserve({ANSWER: mine.affordable(ANSWER)}, purpose="x")
    assert BUDGET.epsilon - 0.01 < mine.spent_epsilon(1e-5) <= BUDGET.epsilon
    assert mine.spent + mine.remaining == pytest.approx(BUDGET.mu_squared)


# ---------------------------------------------------------------- grants


def test_what_was_not_used_comes_back_exactly() -> None:
    mine = ledger()
    with mine.reserve({CHECK: 10, ANSWER: 10}, purpose="a block") as grant:
        assert mine.spent == float(10 * exact(CHECK) + 10 * exact(ANSWER))
        assert grant.draw(CHECK, 2).shape == (10,)
        assert grant.draw(ANSWER, 2).shape == (10, 2)
        grant.settle({CHECK: 10, ANSWER: 4})
    assert mine.spent == float(10 * exact(CHECK) + 4 * exact(ANSWER))
    assert [(entry.n_uses, entry.settled) for entry in mine.entries] == [(10, True), (4, True)]


def test_leaving_a_grant_keeps_what_was_drawn_and_refunds_what_was_not() -> None:
    mine = ledger()
    with mine.reserve({CHECK: 10, ANSWER: 10}, purpose="a block") as grant:
        grant.draw(CHECK, 2)
    assert mine.spent == float(10 * exact(CHECK))


def test_after_an_exception_everything_stays_charged() -> None:
    mine = ledger()

    def fails() -> None:
        with mine.reserve({CHECK: 10, ANSWER: 10}, purpose="a block") as grant:
            grant.draw(CHECK, 2)
            raise RuntimeError("a crash in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fails()
    assert mine.spent == float(10 * exact(CHECK) + 10 * exact(ANSWER))
    assert [entry.settled for entry in mine.entries] == [False, False]


def test_noise_that_others_draw_is_counted_and_drawn_no_more() -> None:
    ledger = Ledger(Budget(epsilon=3.0, delta=1e-5))
    with ledger.reserve({GNMax(sigma=40.0): 2}, purpose="shares") as grant:
        grant.drawn_elsewhere(GNMax(sigma=40.0), 2)
        with pytest.raises(RuntimeError, match="drawn before"):
            grant.draw(GNMax(sigma=40.0), 2)
    assert ledger.spent == pytest.approx(2 * 2 / 40.0**2, rel=1e-3)
    assert ledger.entries[0].settled


def test_a_grant_draws_once_and_only_what_it_holds() -> None:
    grant = ledger().reserve({ANSWER: 3}, purpose="x")
    grant.draw(ANSWER, 2)
    with pytest.raises(RuntimeError, match=r"noise of GNMax\(sigma=40.0\) was drawn before"):
        grant.draw(ANSWER, 2)
    with pytest.raises(KeyError, match=r"GNMax\(sigma=41.0\) is not part .* Did you mean 'GNMax"):
        grant.draw(GNMax(sigma=41.0), 2)
    grant.settle({ANSWER: 3})
    with pytest.raises(RuntimeError, match="settled: reserve again"):
        grant.draw(ANSWER, 2)
    with pytest.raises(RuntimeError, match="settled: what was refunded"):
        grant.settle({ANSWER: 0})


def test_settling_more_than_was_reserved_or_drawn_is_an_error() -> None:
    mine = ledger()
    grant = mine.reserve({ANSWER: 3, CHECK: 3}, purpose="x")
    grant.draw(ANSWER, 2)
    before = mine.spent
    with pytest.raises(ValueError, match="must be at most 3, got 4"):
        grant.settle({ANSWER: 4})
    with pytest.raises(ValueError, match=r"at most 0 \(its noise was never drawn\), got 1"):
        grant.settle({ANSWER: 3, CHECK: 1})
    with pytest.raises(ValueError, match=r"missing: GNMax\(sigma=40.0\)"):
        grant.settle({CHECK: 0})
    with pytest.raises(ValueError, match="used must be at least 0"):
        grant.settle({ANSWER: -1})
    with pytest.raises(KeyError, match="not part of this grant"):
        grant.settle({ANSWER: 1, LNMax(scale=1.0): 0})
    assert mine.spent == before


def test_uses_are_whole_and_not_negative() -> None:
    with pytest.raises(ValueError, match="uses must be at least 0, got uses=-1"):
        ledger().reserve({ANSWER: -1}, purpose="x")
    with pytest.raises(TypeError, match="uses must be a whole number"):
        ledger().reserve({ANSWER: 1.5}, purpose="x")
    assert ledger().release(ANSWER, np.zeros((0, 2), int), purpose="none").shape == (0,)


def test_a_mechanism_without_a_price_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must cost a finite mu_squared > 0, got 0.0"):
        ledger().reserve({GNMax(sigma=1e200): 1}, purpose="x")
    with pytest.raises(ValueError, match="must cost a finite mu_squared > 0, got inf"):
        ledger().affordable(GNMax(sigma=1e-200))
    with pytest.raises(ValueError, match="Name at least one mechanism"):
        ledger().affordable()


def test_counts_are_read_before_anything_is_charged() -> None:
    mine = ledger()
    with pytest.raises(ValueError, match=r"counts must have shape \(n, n_classes\), got \(2,\)"):
        mine.release(ANSWER, [190, 60], purpose="x")
    with pytest.raises(ValueError, match=r"counts must have shape.*got \(1, 0\)"):
        mine.release(ANSWER, np.zeros((1, 0), int), purpose="x")
    assert mine.spent == 0
    for counts in ([[1.5, 2.0]], [["3", "4"]], [[True, False]], [[np.nan, 1.0]]):
        with pytest.raises(TypeError, match=r"whole numbers of votes.*Nothing was charged"):
            mine.release(ANSWER, counts, purpose="x")
    assert mine.spent == 0


# ---------------------------------------------------------------- runs


def test_the_charges_of_a_run_count_twice(store) -> None:
    whole = ledger(store=store)
    run = whole.run(Budget(epsilon=1.0, delta=1e-5), purpose="model A")
    run.release(ANSWER, VOTES, purpose="answers")
    whole.release(CHECK, VOTES, purpose="checks")
    assert run.spent == float(3 * exact(ANSWER))
    assert whole.spent == float(3 * exact(ANSWER) + 3 * exact(CHECK))
    assert [entry.purpose for entry in run.entries] == ["answers"]
    assert [entry.purpose for entry in whole.entries] == ["answers", "checks"]
    assert whole.entries[0].account == run.account != whole.account


def test_a_run_stops_at_its_own_budget_and_leaves_the_rest(store) -> None:
    whole = ledger(store=store)
    small = Budget(epsilon=1.0, delta=1e-5)
    run = whole.run(small, purpose="model A")
    n = run.affordable(ANSWER)
    assert n == ledger(small).affordable(ANSWER)
    run.reserve({ANSWER: n}, purpose="x")
    with pytest.raises(BudgetExceeded, match=r"above the budget of 1.0 at"):
        run.reserve({ANSWER: 1}, purpose="x")
    assert whole.affordable(ANSWER) == ledger().affordable(ANSWER) - n


def test_a_run_stops_when_the_account_around_it_is_full(store) -> None:
    whole = ledger(store=store, account="hospital")
    run = whole.run(Budget(epsilon=50.0, delta=1e-5), purpose="model A")
    inner = run.run(Budget(epsilon=40.0, delta=1e-5), purpose="tuning")
    assert inner.affordable(ANSWER) == whole.affordable(ANSWER)
    with pytest.raises(BudgetExceeded, match=r"\d\.\d{3} that the account 'hospital'"):
        inner.reserve({ANSWER: whole.affordable(ANSWER) + 1}, purpose="x")
    assert inner.spent == run.spent == whole.spent == 0
    inner.reserve({ANSWER: 3}, purpose="x").settle({})
    assert inner.spent == run.spent == whole.spent == 0


def test_a_run_inside_a_private_account_has_noise_that_protects() -> None:
    whole, small = Ledger(BUDGET), Budget(epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match=r"SeededNoise\(0\) protects nobody.*Open a test account"):
        whole.run(small, purpose="model", noise=SeededNoise(0))
    with pytest.raises(TypeError, match="noise must be a source of noise, got 3"):
        whole.run(small, purpose="model", noise=3)
    with pytest.raises(TypeError, match="budget must be a Budget, got 1"):
        whole.run(1, purpose="model")
    assert not ledger().run(small, purpose="model", noise=SeededNoise(1)).guarantee().holds
    assert ledger().run(small, purpose="model", noise=DiscreteNoise()).guarantee().holds


def test_two_runs_of_one_name_are_two_runs() -> None:
    whole = ledger()
    small = Budget(epsilon=1.0, delta=1e-5)
    first, second = whole.run(small, purpose="model"), whole.run(small, purpose="model")
    first.reserve({ANSWER: 5}, purpose="x")
    assert second.spent == 0
    assert first.account != second.account


# ---------------------------------------------------------------- copies, threads, forks


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_shows_what_was_spent_and_can_charge_nothing(copied) -> None:
    mine = ledger()
    mine.release(ANSWER, VOTES, purpose="x")
    twin = copied(mine)
    assert twin.spent == mine.spent
    assert twin.entries == mine.entries
    with pytest.raises(RuntimeError, match=r"is a copy of one .* can charge nothing"):
        twin.release(ANSWER, VOTES, purpose="again")
    mine.release(ANSWER, VOTES, purpose="again")
    assert len(twin.entries) == 1


def test_a_forked_process_cannot_spend_the_same_budget_again() -> None:
    mine = ledger()
    child = os.fork()
    if child == 0:
        try:
            mine.reserve({ANSWER: 1}, purpose="x")
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_threads_racing_for_one_budget_never_pass_it() -> None:
    mine = ledger()
    fits = mine.affordable(ANSWER)
    won = []

    def race() -> None:
        while True:
            try:
                mine.release(ANSWER, VOTES[:1], purpose="x")
            except BudgetExceeded:
                return
            won.append(1)

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == fits


# ---------------------------------------------------------------- what others read


def test_the_report_is_plain_and_complete() -> None:
    mine = ledger(account="adult", facts={"n_records": np.int64(45222)}, unit="person")
    mine.release(ANSWER, VOTES, purpose="answers")
    report = json.loads(json.dumps(mine.to_dict()))
    assert report["facts"] == {"n_records": 45222}
    assert (report["unit"], report["neighbors"]) == ("person", "replace one")
    assert report["mu_squared_spent"] == mine.spent
    assert report["epsilon_spent"] == pytest.approx(mine.spent_epsilon(1e-5))
    [entry] = report["entries"]
    assert entry["mechanism"] == "GNMax(sigma=40.0)"
    assert entry["n_uses"] == 3
    assert entry["mu_squared"] == mine.spent
    assert "GNMax" not in repr(mine)
    assert "of mu_squared=" in repr(mine)


def test_the_guarantee_is_the_budget_whatever_was_spent() -> None:
    mine = Ledger(BUDGET, unit="person", neighbors="add or remove one")
    mine.reserve({ANSWER: 1}, purpose="x")
    said = mine.guarantee(public=("the schema",), not_covered=("tuning",), warnings=("small",))
    assert said == Guarantee(
        epsilon=3.0,
        delta=1e-5,
        unit="person",
        neighbors="add or remove one",
        noise="exact discrete noise (OpenDP)",
        accounting="exact Gaussian DP accounting",
        public=("the schema",),
        not_covered=("tuning",),
        warnings=("small",),
        mu_squared=BUDGET.mu_squared,
    )


def test_repeatable_noise_promises_nothing() -> None:
    said = ledger().guarantee()
    assert not said.holds
    assert str(said).startswith("NOT PRIVATE: the noise protects nobody (repeatable noise from")


def test_facts_are_public_and_plain() -> None:
    with pytest.raises(TypeError, match=r"facts must be texts or whole numbers, got mean=0.5"):
        ledger(facts={"mean": 0.5})
    with pytest.raises(TypeError, match="got flag=True"):
        ledger(facts={"flag": True})
    with pytest.raises(ValueError, match="own names, got delta, unit"):
        ledger(facts={"unit": "x", "delta": 1})
    with pytest.raises(ValueError, match="Did you mean 'replace one'"):
        ledger(neighbors="replace-one")


# ---------------------------------------------------------------- against a plain model


class Story(RuleBasedStateMachine):
    """Reservations, settlements, crashes and runs, beside a model that adds up fractions."""

    grants = Bundle("grants")
    ledgers = Bundle("ledgers")

    @initialize(target=ledgers)
    def begin(self):
        self.whole = ledger()
        self.charged = {self.whole.account: Fraction(0)}
        self.limit = {self.whole.account: LIMIT}
        self.around = {self.whole.account: (self.whole.account,)}
        return self.whole

    @rule(target=ledgers, inside=ledgers, epsilon=st.sampled_from([0.5, 1.0, 5.0]))
    def open_run(self, inside: Ledger, epsilon: float):
        budget = Budget(epsilon=epsilon, delta=1e-5)
        run = inside.run(budget, purpose="run")
        self.charged[run.account] = Fraction(0)
        self.limit[run.account] = Fraction(budget.mu_squared * (1 - SLACK))
        self.around[run.account] = (run.account, *self.around[inside.account])
        return run

    @rule(
        target=grants,
        mine=ledgers,
        n_checks=st.integers(0, 40),
        n_answers=st.integers(0, 40),
        sigma=st.sampled_from([9.0, 17.3]),
    )
    def reserve(self, mine: Ledger, n_checks: int, n_answers: int, sigma: float):
        check, answer = NoisyThreshold(threshold=1.0, sigma=sigma), GNMax(sigma=sigma)
        asked = n_checks * exact(check) + n_answers * exact(answer)
        chain = self.around[mine.account]
        fits = all(self.charged[name] + asked <= self.limit[name] for name in chain)
        try:
            grant = mine.reserve({check: n_checks, answer: n_answers}, purpose="x")
        except BudgetExceeded:
            assert not fits
            return multiple()
        assert fits
        for name in chain:
            self.charged[name] += asked
        return mine, grant, (check, n_checks), (answer, n_answers)

    @rule(taken=consumes(grants), part=st.floats(0, 1))
    def settle(self, taken, part: float) -> None:
        mine, grant, (check, n_checks), (answer, n_answers) = taken
        grant.draw(check, 2)
        grant.draw(answer, 2)
        used = math.floor(part * n_answers)
        grant.settle({check: n_checks, answer: used})
        for name in self.around[mine.account]:
            self.charged[name] -= (n_answers - used) * exact(answer)

    @rule(taken=consumes(grants))
    def leave_without_drawing(self, taken) -> None:
        mine, grant, (check, n_checks), (answer, n_answers) = taken
        with grant:
            pass
        for name in self.around[mine.account]:
            self.charged[name] -= n_checks * exact(check) + n_answers * exact(answer)

    @rule(taken=consumes(grants), drawn=st.booleans())
    def crash(self, taken, drawn: bool) -> None:
        _, grant, (check, _), _ = taken

        def fails(grant: Grant) -> None:
            with grant:
                if drawn:
                    grant.draw(check, 2)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fails(grant)

    @invariant()
    def the_books_agree(self) -> None:
        store = self.whole.store if hasattr(self, "whole") else MemoryStore()
        for name, charged in getattr(self, "charged", {}).items():
            assert store.spent(name) == charged * 2**256
            lines = sum(Fraction(entry.mu_squared) for entry in store.entries(name))
            assert float(lines) == pytest.approx(float(charged), abs=1e-12)
            assert charged <= self.limit[name]


TestStory = Story.TestCase
TestStory.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


# ---------------------------------------------------------------- plans


def test_a_plan_is_charged_whole_or_not_at_all_and_holds_no_more() -> None:
    outer = ledger()
    whole = outer.budget.mu_squared
    with outer.set_aside({"first": 0.25 * whole, "rest": 0.5 * whole}) as inner:
        assert outer.remaining == pytest.approx(0.25 * whole)
        assert [entry.purpose for entry in outer.entries] == ["first", "rest"]
        assert inner.remaining == pytest.approx(0.75 * whole)
        mechanism = GNMax(sigma=(2.0 / (0.6 * whole)) ** 0.5)  # its cost is .6 of the budget
        inner.release(mechanism, [[5, 3]], purpose="first")
        with pytest.raises(BudgetExceeded):
            inner.release(mechanism, [[5, 3]], purpose="rest")
        with pytest.raises(BudgetExceeded, match="Nothing was charged"):
            outer.set_aside({"more": 0.5 * whole}).__enter__()
    assert outer.spent == pytest.approx(0.75 * whole)


@pytest.mark.parametrize("drawn", [False, True])
def test_a_plan_that_fails_is_given_back_unless_something_was_drawn(drawn: bool) -> None:
    outer = ledger()
    whole = outer.budget.mu_squared

    def fail() -> None:
        with outer.set_aside({"all": whole}) as inner:
            if drawn:
                inner.release(GNMax(sigma=1e3), [[5, 3]], purpose="all")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert outer.spent == pytest.approx(whole if drawn else 0.0)
    assert [entry.settled for entry in outer.entries] == [not drawn]
