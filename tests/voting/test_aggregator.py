"""The aggregator against a plain reading of the algorithm, its cost, and its traps."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from evenhand.fairness import DemographicParityGate
from evenhand.fairness.gate.published import PublishedGate
from evenhand.fairness.notions import exact_gap
from evenhand.privacy import (
    Budget,
    BudgetExceeded,
    ConfidentGNMax,
    GNMax,
    Ledger,
    LNMax,
    SeededNoise,
)
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.noisy_max import NoisyThreshold
from evenhand.typing import REJECTED, IntArray
from evenhand.voting import Answers, Reason, Votes, aggregate
from evenhand.voting import blocks as module
from evenhand.voting.blocks import Mechanism
from evenhand.voting.queue import QueryQueue

PLENTY = Budget(epsilon=5000.0, delta=1e-5)


def open_ledger(budget: Budget = PLENTY, seed: int = 0) -> Ledger:
    return Ledger(budget, noise=SeededNoise(seed))


def random_votes(
    rng: np.random.Generator, n: int, n_classes: int, n_teachers: int = 50
) -> tuple[Votes, IntArray]:
    shares = rng.dirichlet(np.full(n_classes, 0.7), size=n)
    counts = np.array([rng.multinomial(n_teachers, share) for share in shares])
    return Votes(counts=counts, n_teachers=n_teachers), rng.integers(0, 3, size=n)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [GNMax(sigma=3.0), LNMax(scale=2.0), ConfidentGNMax(threshold=30, sigma_check=4, sigma=3)],
)
def test_without_a_gate_it_is_confident_gnmax_read_line_by_line(mechanism: Mechanism) -> None:
    # The plain reading draws the same seeded noise in the same order: block by block.
    votes, _ = random_votes(np.random.default_rng(1), 200, 4)
    answers = aggregate(votes, mechanism, open_ledger(seed=5))
    noise = SeededNoise(5)
    check, answer = module.stages(mechanism)
    passed = np.ones(len(votes), dtype=bool)
    if check is not None:
        passed = votes.counts.max(axis=1) + noise.gaussian(check.sigma, (200,)) >= check.threshold
    drawn = (
        noise.laplace(answer.scale, (200, 4))
        if isinstance(answer, LNMax)
        else noise.gaussian(answer.sigma, (200, 4))
    )
    expected = np.full(200, REJECTED)
    expected[passed] = (votes.counts[passed] + drawn[: passed.sum()]).argmax(axis=1)
    assert np.array_equal(answers.labels, expected)
    assert answers.n_draws == passed.sum()
    assert answers.n_checks == (200 if check is not None else 0)


@settings(deadline=None)
@given(st.data())
def test_one_query_is_decided_as_many_are(data: st.DataObject) -> None:
    n_classes = data.draw(st.integers(2, 5))
    row = data.draw(st.lists(st.integers(0, 9), min_size=n_classes, max_size=n_classes))
    # Whole noise makes ties likely, which is where the two could differ.
    drawn = data.draw(st.lists(st.integers(-3, 3), min_size=n_classes, max_size=n_classes))
    open_classes = data.draw(st.sets(st.integers(0, n_classes - 1), min_size=1))
    mask = np.isin(np.arange(n_classes), list(open_classes))
    for answer in (GNMax(sigma=1.0), LNMax(scale=1.0)):
        assert answer.decide_row(row, drawn) == answer.decide([row], np.array([drawn]))[0]
    check = NoisyThreshold(threshold=6.0, sigma=1.0)
    noise = np.array(drawn[:1])
    assert check.decide_row(row, drawn[0]) == check.decide([row], noise)[0]
    assert (
        check.decide_row(row, drawn[0], sorted(open_classes))
        == check.decide([row], noise, admissible=mask)[0]
    )


@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
@pytest.mark.parametrize("keep_order", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_answered_set_is_within_the_margin_after_every_event(
    reference: str, keep_order: bool, n_classes: int
) -> None:
    rng = np.random.default_rng(3)
    margin = 0.05
    for seed in range(5):
        votes, groups = random_votes(rng, 600, n_classes)
        votes = lean(votes, groups)
        gate = DemographicParityGate(margin, 3, n_classes, cold_start=50, reference=reference)
        answers = aggregate(
            votes,
            GNMax(sigma=2.0),
            open_ledger(seed=seed),
            gate=gate,
            groups=groups,
            keep_order=keep_order,
        )
        table = [[0] * n_classes for _ in range(3)]
        steps = zip(answers.order.tolist(), answers.events.tolist(), strict=True)
        for _, event in itertools.groupby(steps, key=lambda step: step[1]):
            for row, _ in event:
                table[groups[row]][answers.labels[row]] += 1
            assert exact_gap(table, reference) <= Fraction("0.05")
        assert answers.n_answered > 150
        # Only the block of a late group is given together; all others are events of their own.
        sizes = np.bincount(answers.events)
        assert (sizes == 1).sum() > 50
        for event in np.flatnonzero(sizes > 1):
            assert len(set(groups[answers.order[answers.events == event]])) == 1
        assert {int(groups[row]) for row in answers.order} == {0, 1, 2}


def lean(votes: Votes, groups: IntArray) -> Votes:
    """Let group 0 win class 0 far more often than others, so that the margin binds."""
    counts = votes.counts.copy()
    half = (groups == 0) & (np.arange(len(groups)) % 2 == 0)
    counts[half] = 0
    counts[half, 0] = votes.n_teachers
    return Votes(counts=counts, n_teachers=votes.n_teachers)


def gated(votes: Votes, groups: IntArray, **kwargs: object) -> tuple[Answers, Ledger]:
    ledger = open_ledger()
    gate = DemographicParityGate(0.05, 3, votes.n_classes, cold_start=20)
    mechanism = ConfidentGNMax(threshold=25, sigma_check=4, sigma=3)
    return aggregate(votes, mechanism, ledger, gate=gate, groups=groups, **kwargs), ledger  # type: ignore[arg-type]


def test_the_ledger_holds_the_checks_and_draws_that_were_made_and_no_more() -> None:
    votes, groups = random_votes(np.random.default_rng(4), 600, 3)
    answers, ledger = gated(lean(votes, groups), groups)
    exact = answers.n_checks / 4**2 + 2 * answers.n_draws / 3**2
    assert ledger.spent == pytest.approx(exact, rel=1e-12)
    assert answers.n_asked == answers.n_checks
    assert answers.count(Reason.OUTSIDE_MARGIN) > 0
    # A refusal that looked at the noisy winner is paid for: it publishes a function of it.
    paid = (
        answers.n_answered + answers.count(Reason.OUTSIDE_MARGIN) + answers.count(Reason.WITHHELD)
    )
    assert answers.n_draws == paid


def test_fairness_refusals_of_a_close_vote_are_charged_what_they_tell() -> None:
    # The papers charge nothing for a refusal by the margin. With two classes it publishes the
    # label: here 1000 such queries at 126:124 against the neighbor's 125:125, whose exact epsilon
    # (the number of refusals is sufficient, and binomial) is the 3.83 of the closing comparison.
    votes = Votes(counts=np.tile([126, 124], (1000, 1)), n_teachers=250)
    gate = PublishedGate(0.05, 2, 2, cold_start=1)
    for group, label, times in ((0, 1, 100), (1, 0, 100), (0, 0, 900), (1, 1, 900)):
        gate.cold_start = 10_000  # fill the table untested: group 0 far above, group 1 far below
        for _ in range(times):
            gate.offer(group, label)
    gate.cold_start = 1
    ledger = Ledger(Budget(epsilon=6.0, delta=1e-5), noise=SeededNoise(0))
    groups = np.zeros(1000, dtype=np.int64)
    answers = aggregate(votes, GNMax(sigma=40.0), ledger, gate=gate, groups=groups)
    assert answers.count(Reason.OUTSIDE_MARGIN) > 400
    assert answers.n_draws == 1000
    charged = epsilon_from_mu(math.sqrt(ledger.spent), 1e-5)
    p, p_neighbor = norm.cdf([2 / (40 * math.sqrt(2)), 0.0])
    told = epsilon_of_pair(binom(1000, p), binom(1000, p_neighbor), delta=1e-5)
    assert 3.8 < told < charged < 5.0


def epsilon_of_pair(one: Any, other: Any, delta: float) -> float:
    """Smallest epsilon at ``delta`` between two laws on 0..1000, both ways, by bisection."""
    k = np.arange(1001)
    low, high = 0.0, 50.0
    while high - low > 1e-6:
        epsilon = (low + high) / 2
        loss = max(
            np.maximum(0, a.pmf(k) - np.exp(epsilon) * b.pmf(k)).sum()
            for a, b in ((one, other), (other, one))
        )
        low, high = (epsilon, high) if loss > delta else (low, epsilon)
    return high


def test_a_query_without_an_admissible_class_costs_nothing() -> None:
    # Margin 0 with one answer each: any further answer leaves the margin, so nobody is asked.
    votes = Votes(counts=np.tile([10, 0], (50, 1)), n_teachers=10)
    groups = np.array([0, 1] * 25)
    gate = DemographicParityGate(0.0, 2, 2, cold_start=1)
    for group, label in ((0, 0), (0, 1), (1, 0), (1, 1)):
        gate.offer(group, label)
    assert gate.admissible(0) == ()
    ledger = open_ledger()
    answers = aggregate(votes, GNMax(sigma=0.5), ledger, gate=gate, groups=groups)
    assert ledger.spent == 0
    assert answers.count(Reason.NO_CLASS_ADMISSIBLE) == 50
    assert answers.n_asked == 0


@pytest.mark.parametrize("n", [10, 3000])
def test_without_a_gate_every_check_and_draw_is_charged_too(n: int) -> None:
    votes, _ = random_votes(np.random.default_rng(5), n, 3)
    mechanism = ConfidentGNMax(threshold=30, sigma_check=4, sigma=3)
    ledger = open_ledger()
    answers = aggregate(votes, mechanism, ledger)
    assert 0 < answers.n_draws < answers.n_checks == n
    exact = answers.n_checks / 4**2 + 2 * answers.n_draws / 3**2
    assert ledger.spent == pytest.approx(exact, rel=1e-12)
    ledger = open_ledger()
    aggregate(votes, GNMax(sigma=3.0), ledger)
    assert ledger.spent == pytest.approx(2 * n / 3**2, rel=1e-12)


def test_a_query_whose_winner_is_inadmissible_dies_in_the_cheap_stage() -> None:
    # Group 0 stands far above in class 0, so only class 1 is admissible; every vote is for class 0.
    gate = PublishedGate(0.05, 2, 2, cold_start=10_000)
    for group, label, times in ((0, 1, 100), (1, 0, 100), (0, 0, 900), (1, 1, 900)):
        for _ in range(times):
            gate.offer(group, label)
    gate.cold_start = 1
    assert gate.admissible(0) == (1,)
    votes = Votes(counts=np.tile([50, 0], (40, 1)), n_teachers=50)
    ledger = open_ledger()
    mechanism = ConfidentGNMax(threshold=25.0, sigma_check=0.5, sigma=0.5)
    groups = np.zeros(40, dtype=np.int64)
    answers = aggregate(votes, mechanism, ledger, gate=gate, groups=groups)
    assert answers.count(Reason.NO_CONSENSUS) == 40
    assert answers.n_draws == 0
    assert ledger.spent == pytest.approx(40 / 0.5**2)


def test_blocks_change_nothing_that_is_charged_and_the_stop_is_the_filters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With noise far below a vote the outcome does not depend on which draw meets which query.
    rng = np.random.default_rng(8)
    votes, groups = random_votes(rng, 300, 2, n_teachers=51)
    mechanism = ConfidentGNMax(threshold=-1e9, sigma_check=0.02, sigma=0.02)
    each = mechanism.mu_squared(SeededNoise(0))
    mu = math.sqrt(each * 100.5)  # pays for 100 queries
    budget = Budget(epsilon=epsilon_from_mu(mu, 1e-5), delta=1e-5)
    results = []
    for block in (1, 7, 64, 5000):
        monkeypatch.setattr(module, "BLOCK", block)
        gate = DemographicParityGate(0.2, 3, 2, cold_start=10)
        ledger = Ledger(budget, noise=SeededNoise(1))
        answers = aggregate(votes, mechanism, ledger, gate=gate, groups=groups)
        results.append((answers.labels.tolist(), answers.reasons.tolist(), ledger.spent))
        assert answers.n_asked == 100
    assert all(result == results[0] for result in results)


class Tripwire(SeededNoise):
    """Noise that stops the test if it is drawn before its cost is on the books."""

    def __init__(self) -> None:
        super().__init__(0)
        self.ledger: Ledger | None = None
        self.n_draws = 0

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        assert self.ledger is not None
        open_charge = sum(e.mu_squared for e in self.ledger.entries if not e.settled)
        counts = 1 if len(shape) == 1 else 2
        assert open_charge >= shape[0] * counts / sigma**2 * (1 - 1e-9)
        self.n_draws += 1
        return super().gaussian(sigma, shape)


@pytest.mark.parametrize("with_gate", [False, True])
def test_noise_is_drawn_only_after_it_was_charged(with_gate: bool) -> None:
    votes, groups = random_votes(np.random.default_rng(2), 100, 2)
    noise = Tripwire()
    ledger = Ledger(PLENTY, noise=noise)
    noise.ledger = ledger
    gate = DemographicParityGate(0.3, 3, 2, cold_start=5) if with_gate else None
    mechanism = ConfidentGNMax(threshold=0.0, sigma_check=5.0, sigma=5.0)
    aggregate(votes, mechanism, ledger, gate=gate, groups=groups if with_gate else None)
    assert noise.n_draws >= 2


def test_a_budget_below_one_answer_draws_nothing() -> None:
    votes, _ = random_votes(np.random.default_rng(2), 10, 2)
    ledger = Ledger(Budget(epsilon=0.01, delta=1e-5), noise=SeededNoise(0))
    with pytest.raises(BudgetExceeded, match=r"GNMax\(sigma=1.0\)"):
        aggregate(votes, GNMax(sigma=1.0), ledger)
    assert ledger.spent == 0


def test_stopping_never_depends_on_the_votes() -> None:
    # MATHS 1.5: stopping on a data-dependent budget tells neighbors apart with certainty. Ours
    # stops at the same query for any votes when no public refusal intervenes.
    stops = set()
    for lead in (0, 60, 190, 250):
        counts = np.tile([lead, 250 - lead], (1000, 1))
        ledger = Ledger(Budget(epsilon=3.0, delta=1e-5), noise=SeededNoise(0))
        stops.add(
            aggregate(Votes(counts=counts, n_teachers=250), GNMax(sigma=40.0), ledger).n_asked
        )
    assert stops == {413}


def test_open_queries_are_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the groups that wait, one whose every class is admissible goes first, whoever came first.
    # The order follows from public groups and given answers, so it costs nothing.
    rng = np.random.default_rng(0)
    groups = (rng.random(6000) < 0.325).astype(np.int64)
    rate = np.where(groups == 0, 0.3125, 0.1136)
    label = rng.random(6000) < rate
    counts = np.where(label[:, None], [20, 230], [230, 20])
    votes = Votes(counts=counts, n_teachers=250)
    ledger = Ledger(Budget(epsilon=6.0, delta=1e-5), noise=SeededNoise(1))
    gate = DemographicParityGate(0.05, 2, 2)
    taken: list[tuple[bool, bool]] = []
    take = QueryQueue._most_open_first

    def watched(queue: QueryQueue, most: int) -> Any:
        waiting = [z for z, rows in enumerate(queue._lines) if rows]
        open_to_all = [z for z in waiting if len(gate.admissible(z)) == 2]
        found = take(queue, most)
        if found is not None:
            assert len(found[2]) == 2 or not open_to_all
            taken.append((len(found[2]) == 2, found[0] > min(queue.rest(), default=found[0])))
        return found

    monkeypatch.setattr(QueryQueue, "_most_open_first", watched)
    mechanism = ConfidentGNMax(threshold=150.0, sigma_check=60.0, sigma=40.0)
    aggregate(votes, mechanism, ledger, gate=gate, groups=groups)
    assert any(open_to_all and overtakes for open_to_all, overtakes in taken)


@pytest.mark.parametrize("keep_order", [True, False])
def test_a_late_group_with_fewer_queries_than_its_cold_start_is_never_asked(
    keep_order: bool,
) -> None:
    groups = np.array([0] + [0, 1] * 19 + [0] * 60)
    votes = Votes(counts=np.tile([50, 0], (len(groups), 1)), n_teachers=50)
    for cold_start, n_given in ((20, 80), (19, 99)):
        ledger = open_ledger()
        gate = DemographicParityGate(0.5, 2, 2, cold_start=cold_start)
        answers = aggregate(
            votes, GNMax(sigma=2.0), ledger, gate=gate, groups=groups, keep_order=keep_order
        )
        assert (answers.n_draws, answers.n_answered) == (n_given, n_given)
        assert answers.n_asked == n_given
        assert ledger.spent == pytest.approx(n_given * 2 / 2.0**2)


def test_a_late_group_that_the_budget_cannot_start_leaves_the_budget_to_others() -> None:
    # 60 answers are paid for, and 50 of a late group must be drawn before any is given. In turn it
    # is asked until 11 are withheld of 21; the last 39 then go to the group that has begun.
    groups = np.arange(400) % 2
    votes = Votes(counts=np.tile([30, 20], (400, 1)), n_teachers=50)
    mechanism = ConfidentGNMax(threshold=-1e9, sigma_check=0.05, sigma=0.05)
    mu = math.sqrt(mechanism.mu_squared(SeededNoise(0)) * 60.5)
    budget = Budget(epsilon=epsilon_from_mu(mu, 1e-5), delta=1e-5)
    gate = DemographicParityGate(0.05, 2, 2, cold_start=50)
    ledger = Ledger(budget, noise=SeededNoise(0))
    answers = aggregate(votes, mechanism, ledger, gate=gate, groups=groups)
    assert (answers.n_draws, answers.n_answered) == (60, 50)
    assert answers.count(Reason.WITHHELD) == 10


def test_which_queries_are_skipped_follows_from_what_was_released() -> None:
    # The votes differ, and what their noisy winners say does not: the same queries are asked.
    rng = np.random.default_rng(1)
    groups = rng.choice(3, size=300, p=[0.8, 0.15, 0.05])
    winners = rng.integers(0, 2, 300)
    asked = []
    for lead in (9, 40):
        counts = np.where(np.arange(2) == winners[:, None], 50 + lead, 50 - lead)
        gate = DemographicParityGate(0.1, 3, 2, cold_start=20)
        answers = aggregate(
            Votes(counts=counts, n_teachers=100),
            GNMax(sigma=1.0),
            open_ledger(),
            gate=gate,
            groups=groups,
        )
        assert answers.count(Reason.NO_CLASS_ADMISSIBLE) > 0
        asked.append((answers.reasons.tolist(), answers.order.tolist()))
    assert asked[0] == asked[1]


def test_a_gate_needs_groups_and_the_same_classes() -> None:
    votes, groups = random_votes(np.random.default_rng(0), 10, 2)
    gate = DemographicParityGate(0.1, 3, 2)
    with pytest.raises(ValueError, match="needs groups="):
        aggregate(votes, GNMax(sigma=1.0), open_ledger(), gate=gate)
    with pytest.raises(ValueError, match="3 classes"):
        aggregate(
            votes,
            GNMax(sigma=1.0),
            open_ledger(),
            gate=DemographicParityGate(0.1, 3, 3),
            groups=groups,
        )
    with pytest.raises(ValueError, match="groups has 9"):
        aggregate(votes, GNMax(sigma=1.0), open_ledger(), gate=gate, groups=groups[:9])


def test_progress_counts_up_to_the_number_of_queries() -> None:
    votes, _ = random_votes(np.random.default_rng(0), 3000, 2)
    seen: list[tuple[int, int]] = []
    aggregate(votes, GNMax(sigma=5.0), open_ledger(), progress=lambda a, b: seen.append((a, b)))
    assert seen == [(1024, 3000), (2048, 3000), (3000, 3000)]
