"""Settings advanced together against the same settings asked one by one: bit for bit."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.fairness import DemographicParityGate
from evenhand.fairness.gate.published import PublishedGate
from evenhand.fairness.gate.runner import fits
from evenhand.privacy import (
    Budget,
    BudgetExceeded,
    ConfidentGNMax,
    DiscreteNoise,
    GNMax,
    Ledger,
    LNMax,
    SeededNoise,
)
from evenhand.typing import IntArray
from evenhand.voting import Answers, Votes, aggregate, blocks, lockstep
from evenhand.voting.blocks import Mechanism
from evenhand.voting.lockstep import aggregate_many

MECHANISMS: tuple[Mechanism, ...] = (
    GNMax(sigma=2.0),
    GNMax(sigma=9.0),
    LNMax(scale=3.0),
    ConfidentGNMax(threshold=14.0, sigma_check=3.0, sigma=2.0),
    ConfidentGNMax(threshold=19.0, sigma_check=1.0, sigma=5.0),
)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Votes that lean on the group, so that gates close, and settings of every kind."""
    n_groups, n_classes = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    n, rng = draw(st.integers(1, 90)), np.random.default_rng(draw(st.integers(0, 2**31)))
    lean = rng.dirichlet(np.full(n_classes, draw(st.sampled_from([0.2, 1.0]))), size=n_groups)
    # Late groups: some streams hold one group first.
    groups = rng.integers(0, n_groups, n)
    groups = np.sort(groups) if draw(st.booleans()) else groups
    counts = np.array([rng.multinomial(20, lean[z]) for z in groups])
    kind = draw(st.sampled_from([DemographicParityGate, PublishedGate]))
    reference = (
        "rest" if kind is PublishedGate else draw(st.sampled_from(["rest", "pairwise", "overall"]))
    )
    each = st.tuples(
        st.sampled_from([0.0, 0.05, 0.125, 0.3, 1.0, 0.1 + 0.2, 0.333]),
        st.integers(1, 12),
        st.sampled_from(MECHANISMS),
        st.sampled_from([4.0, 12.0, 900.0]),
        st.integers(0, 10**6),
    )
    return {
        "votes": Votes(counts=counts, n_teachers=20),
        "groups": groups,
        "shape": (n_groups, n_classes),
        "kind": kind,
        "reference": reference,
        "keep_order": draw(st.booleans()),
        "block": draw(st.sampled_from([3, 16, 1024])),
        "settings": draw(st.lists(each, min_size=1, max_size=6)),
    }


def opened(problem: dict[str, Any]) -> tuple[list[Any], list[Ledger], list[DemographicParityGate]]:
    """Ledgers and gates anew: equal seeds draw equal noise."""
    gates = [
        problem["kind"](
            margin, *problem["shape"], cold_start=cold_start, reference=problem["reference"]
        )
        for margin, cold_start, *_ in problem["settings"]
    ]
    ledgers = [
        Ledger(Budget(epsilon=epsilon, delta=1e-5), noise=SeededNoise(seed))
        for *_, epsilon, seed in problem["settings"]
    ]
    return [mechanism for _, _, mechanism, _, _ in problem["settings"]], ledgers, gates


def said(answers: Answers) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(answers).items()
    }


def booked(ledger: Ledger) -> list[tuple[Any, ...]]:
    return [(e.purpose, e.mechanism, e.n_uses, e.mu_squared, e.settled) for e in ledger.entries]


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(problem=problems())
def test_settings_advanced_together_are_bit_for_bit_those_asked_one_by_one(
    problem: dict[str, Any],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Small blocks: their borders lie inside the stream, at another query for each setting.
        patch.setattr(blocks, "BLOCK", problem["block"])
        patch.setattr(lockstep, "BLOCK", problem["block"])
        options = {"groups": problem["groups"], "keep_order": problem["keep_order"]}
        mechanisms, ledgers, gates = opened(problem)
        expected, refused = [], ""
        try:
            expected = [
                aggregate(problem["votes"], m, ledger, gate=gate, **options)
                for m, ledger, gate in zip(mechanisms, ledgers, gates, strict=True)
            ]
        except BudgetExceeded as error:
            refused = str(error)
        if refused:
            mechanisms, ledgers, gates = opened(problem)
            with pytest.raises(BudgetExceeded) as also:
                aggregate_many(problem["votes"], mechanisms, ledgers, gates, **options)
            assert str(also.value) == refused
            assert not any(ledger.entries for ledger in ledgers)
            return
        _, our_ledgers, our_gates = opened(problem)
        ours = aggregate_many(problem["votes"], mechanisms, our_ledgers, our_gates, **options)
    for i, answers in enumerate(ours):
        assert said(answers) == said(expected[i])
        assert our_gates[i].to_dict() == gates[i].to_dict()
        assert booked(our_ledgers[i]) == booked(ledgers[i])


def adult_like(n: int, seed: int) -> tuple[Votes, IntArray]:
    rng = np.random.default_rng(seed)
    groups = (rng.random(n) < 0.33).astype(np.int64)
    ones = rng.binomial(100, np.clip(rng.normal(np.where(groups, 0.2, 0.4), 0.25), 0, 1))
    return Votes(counts=np.column_stack([100 - ones, ones]), n_teachers=100), groups


def test_a_long_stream_of_many_settings_leaves_the_cold_start_and_still_agrees() -> None:
    votes, groups = adult_like(3000, seed=1)
    grid = [
        (margin, epsilon, mechanism)
        for margin in (0.02, 0.05, 0.1)
        for epsilon in (2.0, 40.0)
        for mechanism in (
            GNMax(sigma=20.0),
            ConfidentGNMax(threshold=70.0, sigma_check=30.0, sigma=15.0),
        )
    ]

    def make() -> tuple[list[Ledger], list[DemographicParityGate]]:
        return (
            [
                Ledger(Budget(epsilon=epsilon, delta=1e-5), noise=SeededNoise(i))
                for i, (_, epsilon, _) in enumerate(grid)
            ],
            [DemographicParityGate(margin, 2, 2, cold_start=50) for margin, _, _ in grid],
        )

    ledgers, gates = make()
    mechanisms = [mechanism for *_, mechanism in grid]
    ours = aggregate_many(votes, mechanisms, ledgers, gates, groups=groups)
    also_ledgers, also_gates = make()
    for i, mechanism in enumerate(mechanisms):
        expected = aggregate(votes, mechanism, also_ledgers[i], gate=also_gates[i], groups=groups)
        assert said(ours[i]) == said(expected)
        assert gates[i].to_dict() == also_gates[i].to_dict()
    # The case is worth something: gates refused answers, and several blocks were opened.
    assert (
        sum(
            answers.table().get("refused: the noisy winner would have left the margin", 0)
            for answers in ours
        )
        > 100
    )
    assert max(len(ledger.entries) for ledger in ledgers) > 3


def test_noise_of_the_operating_system_is_drawn_for_every_setting_anew() -> None:
    votes, groups = adult_like(400, seed=2)
    gates = [DemographicParityGate(0.5, 2, 2) for _ in range(2)]
    ledgers = [Ledger(Budget(epsilon=3.0, delta=1e-5), noise=DiscreteNoise()) for _ in gates]
    first, second = aggregate_many(votes, [GNMax(sigma=60.0)] * 2, ledgers, gates, groups=groups)
    assert not np.array_equal(first.labels, second.labels)
    assert all(ledger.spent > 0 for ledger in ledgers)


def test_a_margin_beyond_int64_is_asked_one_by_one_with_the_same_answers() -> None:
    votes, groups = adult_like(200, seed=3)
    odd = 0.1 + 0.2  # 0.30000000000000004: a fraction with a denominator of 17 digits
    gates = [DemographicParityGate(odd, 2, 2, cold_start=5) for _ in range(2)]
    assert not fits(gates[0], len(votes))
    ledgers = [Ledger(Budget(epsilon=9.0, delta=1e-5), noise=SeededNoise(4)) for _ in range(2)]
    alone = aggregate(votes, GNMax(sigma=5.0), ledgers[0], gate=gates[0], groups=groups)
    (ours,) = aggregate_many(votes, [GNMax(sigma=5.0)], ledgers[1:], gates[1:], groups=groups)
    assert said(ours) == said(alone)


class LastWins(GNMax):
    """Decides by a rule of its own: the last class, whatever the votes."""

    def decide_row(self, row: Any, drawn: Any) -> int:
        return len(row) - 1


def test_a_mechanism_with_a_rule_of_its_own_is_asked_by_that_rule() -> None:
    votes, groups = adult_like(60, seed=8)
    gates = [DemographicParityGate(1.0, 2, 2) for _ in range(2)]
    ledgers = [Ledger(Budget(epsilon=900.0, delta=1e-5), noise=SeededNoise(4)) for _ in gates]
    ours, own = aggregate_many(
        votes, [GNMax(sigma=5.0), LastWins(sigma=5.0)], ledgers, gates, groups=groups
    )
    assert 0 in ours.labels  # most teachers say so of most rows
    assert set(own.labels[own.answered]) == {1}


def test_settings_that_share_a_ledger_or_a_gate_are_refused() -> None:
    votes, groups = adult_like(20, seed=4)
    gate, other = DemographicParityGate(0.5, 2, 2), DemographicParityGate(0.5, 2, 2)
    ledger = Ledger(Budget(epsilon=3.0, delta=1e-5), noise=SeededNoise(0))
    for ledgers, gates in (
        ([ledger, ledger], [gate, other]),
        ([ledger, copy.copy(ledger)], [gate, gate]),
    ):
        with pytest.raises(ValueError, match="a ledger and a gate of its own"):
            aggregate_many(votes, [GNMax(sigma=5.0)] * 2, ledgers, gates, groups=groups)


def test_a_gate_of_another_number_of_classes_is_refused() -> None:
    votes, groups = adult_like(20, seed=5)
    ledger = Ledger(Budget(epsilon=3.0, delta=1e-5), noise=SeededNoise(0))
    with pytest.raises(ValueError, match="The gate counts 3 classes, the votes have 2"):
        aggregate_many(
            votes, [GNMax(sigma=5.0)], [ledger], [DemographicParityGate(0.5, 2, 3)], groups=groups
        )


def test_nothing_to_ask_is_answered_by_nothing() -> None:
    votes, groups = adult_like(20, seed=6)
    assert aggregate_many(votes, [], [], [], groups=groups * 0) == []
