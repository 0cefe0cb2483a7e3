"""Calibration answers come from the mechanism and are paid for like any other."""

import numpy as np
import pytest

from evenhand.fairness import ErrorParity
from evenhand.fairness.calibration import CalibratedJoint
from evenhand.fairness.tally import JointTally, Tally
from evenhand.privacy import (
    Budget,
    BudgetExceeded,
    ConfidentGNMax,
    GNMax,
    Ledger,
    LNMax,
    NoisyHistogram,
    SeededNoise,
)
from evenhand.voting import Votes, aggregate
from evenhand.voting.blocks import Mechanism
from evenhand.voting.calibration import ask_calibration

MECHANISMS = [
    GNMax(sigma=8.0),
    LNMax(scale=8.0),
    ConfidentGNMax(threshold=30.0, sigma_check=8.0, sigma=8.0),
    NoisyHistogram(sigma=8.0, n_classes=2),
]


class Watched(SeededNoise):
    """Notes what the ledger had charged at every draw."""

    def __init__(self) -> None:
        super().__init__(3)
        self.ledger: Ledger | None = None
        self.seen: list[float] = []

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        self.note()
        return super().gaussian(sigma, shape)

    def laplace(self, scale: float, shape: tuple[int, ...]) -> np.ndarray:
        self.note()
        return super().laplace(scale, shape)

    def note(self) -> None:
        assert self.ledger is not None
        self.seen.append(self.ledger.spent)


def watched(epsilon: float) -> tuple[Ledger, Watched]:
    noise = Watched()
    noise.ledger = ledger = Ledger(Budget(epsilon=epsilon, delta=1e-5), noise=noise)
    return ledger, noise


def votes_of(n: int, seed: int = 0) -> tuple[Votes, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth, groups = rng.integers(0, 2, n), rng.integers(0, 3, n)
    ones = rng.binomial(40, np.where(truth == 1, 0.8, 0.3))
    return Votes(counts=np.stack([40 - ones, ones], axis=1), n_teachers=40), truth, groups


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_every_row_is_charged_in_full_before_any_noise_is_drawn(
    mechanism: Mechanism | NoisyHistogram,
) -> None:
    ledger, noise = watched(200.0)
    votes, truth, groups = votes_of(50)
    tally = ask_calibration(votes, truth, groups, mechanism, ledger, n_groups=3)
    assert noise.seen
    assert noise.seen == pytest.approx([50 * mechanism.mu_squared(noise)] * len(noise.seen))
    assert {entry.purpose for entry in ledger.entries} == {"answers to calibration rows"}
    if isinstance(mechanism, ConfidentGNMax):
        n = int(tally.counts.sum())
        assert 0 < n < 50  # what failed its check was refunded, and nothing else
        paid = 50 * mechanism.check.mu_squared(noise) + n * mechanism.answer.mu_squared(noise)
        assert ledger.spent == pytest.approx(paid)
    else:
        assert ledger.spent == pytest.approx(50 * mechanism.mu_squared(noise))
        assert tally.counts.sum() == 50


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_budget_that_is_one_row_short_spends_nothing_and_draws_nothing(
    mechanism: Mechanism | NoisyHistogram,
) -> None:
    ledger, noise = watched(20.0)
    n = int(ledger.budget.mu_squared / mechanism.mu_squared(noise)) + 1
    with pytest.raises(BudgetExceeded, match="Nothing was charged or drawn"):
        ask_calibration(*votes_of(n), mechanism, ledger, n_groups=3)
    assert (ledger.spent, noise.seen) == (0.0, [])
    ask_calibration(*votes_of(n - 1), mechanism, ledger, n_groups=3)


def test_answers_are_those_of_the_noisy_vote_and_are_counted_by_group_and_truth() -> None:
    votes, truth, groups = votes_of(600)
    ledger = Ledger(Budget(epsilon=200.0, delta=1e-5), noise=SeededNoise(5))
    tally = ask_calibration(votes, truth, groups, GNMax(sigma=8.0), ledger, n_groups=3)
    winners = (votes.counts + SeededNoise(5).gaussian(8.0, (600, 2))).argmax(axis=1)
    expected = JointTally.of(groups, truth, winners, n_groups=3, n_classes=2)
    assert (tally.counts == expected.counts).all()
    assert (winners != votes.counts.argmax(axis=1)).any()  # the noise is part of what is measured


def test_queries_and_calibration_share_one_budget() -> None:
    ledger = Ledger(Budget(epsilon=12.0, delta=1e-5), noise=SeededNoise(5))
    gnmax = GNMax(sigma=8.0)
    calibration, truth, groups = votes_of(60, seed=1)
    labelled = ask_calibration(calibration, truth, groups, gnmax, ledger, n_groups=3)
    queries, _, query_groups = votes_of(10_000, seed=2)
    answers = aggregate(queries, gnmax, ledger)
    assert 0 < answers.n_answered < 10_000
    assert ledger.spent == pytest.approx((60 + answers.n_answered) / 32)
    assert ledger.spent <= ledger.budget.mu_squared
    answered = Tally.of(query_groups, answers.labels, n_groups=3, n_classes=2)
    found = CalibratedJoint(answered=answered, labelled=labelled).gap(ErrorParity(margin=0.0))
    assert found.low <= found.value <= found.high


def test_rows_that_do_not_match_are_refused_before_anything_is_charged() -> None:
    ledger, noise = watched(20.0)
    votes, truth, groups = votes_of(5)
    for labels, z, message in (
        (truth[:4], groups, "one row each"),
        (truth + 1, groups, "labels must be at least 0 and below 2"),
        (truth, groups + 2, "groups must be at least 0 and below 3"),
    ):
        with pytest.raises(ValueError, match=message):
            ask_calibration(votes, labels, z, GNMax(sigma=8.0), ledger, n_groups=3)
    empty = Votes(counts=np.zeros((0, 2), dtype=np.int64), n_teachers=40)
    with pytest.raises(ValueError, match="labelled rows of every group"):
        ask_calibration(empty, truth[:0], groups[:0], GNMax(sigma=8.0), ledger, n_groups=3)
    assert (ledger.spent, noise.seen) == (0.0, [])
