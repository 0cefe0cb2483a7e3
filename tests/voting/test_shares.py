import numpy as np
import pytest

from evenhand.privacy import Budget, BudgetExceeded, Ledger, NoisyHistogram, SeededNoise
from evenhand.typing import FloatArray
from evenhand.voting import Shares, Votes
from evenhand.voting.shares import Rounds, release_shares

TWO = NoisyHistogram(sigma=6.0, n_classes=2)
AGAIN = NoisyHistogram(sigma=3.0, n_classes=2)


def test_shares_are_the_noisy_counts_over_the_teachers_and_all_rows_are_charged() -> None:
    counts = np.random.default_rng(0).multinomial(50, [0.2, 0.8], size=30)
    ledger = Ledger(Budget(epsilon=40.0, delta=1e-5), noise=SeededNoise(4))
    mechanism = NoisyHistogram(sigma=6.0, n_classes=2)
    shares = release_shares(Votes(counts=counts, n_teachers=50), mechanism, ledger)
    drawn = SeededNoise(4).gaussian(6.0, (30, 1))[:, 0]
    assert np.allclose(shares.shares[:, 1], (counts[:, 1] + drawn) / 50)
    assert shares.variance == pytest.approx(np.full(30, (6.0 / 50) ** 2))
    assert ledger.spent == pytest.approx(30 / 36)
    assert (shares.n_asked, shares.n_answered, shares.n_rejected, shares.coverage) == (30, 30, 0, 1)


def test_a_budget_that_does_not_cover_all_rows_releases_none() -> None:
    ledger = Ledger(Budget(epsilon=0.5, delta=1e-5), noise=SeededNoise(4))
    votes = Votes(counts=np.tile([10, 40], (30, 1)), n_teachers=50)
    with pytest.raises(BudgetExceeded):
        release_shares(votes, NoisyHistogram(sigma=1.0, n_classes=2), ledger)
    assert ledger.spent == 0


def some_votes(n: int = 30) -> Votes:
    counts = np.random.default_rng(0).multinomial(50, [0.3, 0.7], size=n)
    return Votes(counts=counts, n_teachers=50)


@pytest.mark.parametrize("second", [AGAIN, TWO], ids=["less noise", "equal noise"])
def test_rows_that_are_asked_again_have_the_mean_weighted_by_precision(
    second: NoisyHistogram,
) -> None:
    votes = some_votes()
    plan = Rounds(histograms=(TWO, second), n_rows=(30, 4))
    ledger = Ledger(Budget(epsilon=40.0, delta=1e-5), noise=SeededNoise(4))
    once: list[Shares] = []

    def middle(shares: Shares) -> FloatArray:
        once.append(shares)
        return -np.abs(shares.shares[:, 1] - 0.5)

    shares = release_shares(votes, plan, ledger, unsure=middle)
    assert ledger.spent == pytest.approx(30 / 36 + 4 / second.sigma**2)
    assert shares.n_asked == 34
    again = np.sort(np.argsort(-middle(once[0]), kind="stable")[:4])
    others = np.setdiff1d(np.arange(30), again)
    assert np.array_equal(shares.shares[others], once[0].shares[others])
    assert shares.variance[others] == pytest.approx((6.0 / 50) ** 2)
    weights = np.array([1 / 36, 1 / second.sigma**2])
    assert shares.variance[again] == pytest.approx(1 / weights.sum() / 50**2)
    # What the second round said is what takes the first to the mean.
    said = shares.shares[again, 1] * weights.sum() - once[0].shares[again, 1] * weights[0]
    noise = (said / weights[1] * 50) - votes.counts[again, 1]
    assert (np.abs(noise) < 5 * second.sigma).all()
    assert len(np.unique(noise.round(9))) == 4
    assert not np.allclose(noise, once[0].shares[again, 1] * 50 - votes.counts[again, 1])


def test_asking_in_rounds_is_unbiased_and_has_the_variance_it_states() -> None:
    # 400 runs, the rows to ask again chosen by what was released: mean and variance of the
    # standardised noise of rows asked once. Each bound is missed with a probability below 1e-4.
    votes = some_votes(50)
    plan = Rounds(histograms=(TWO, AGAIN, AGAIN), n_rows=(50, 10, 10))
    scores = []
    for seed in range(400):
        ledger = Ledger(Budget(epsilon=90.0, delta=1e-5), noise=SeededNoise(seed))
        shares = release_shares(
            votes, plan, ledger, unsure=lambda s: np.arange(50.0) + 0 * s.shares[:, 0]
        )
        truth = votes.counts[:, 1] / 50
        scores.append((shares.shares[:, 1] - truth) / np.sqrt(shares.variance))
    z = np.array(scores)
    for part in (z[:, :40], z[:, 40:]):
        assert abs(part.mean()) < 4 / np.sqrt(part.size)
        assert abs(part.var() - 1) < 4 * np.sqrt(2 / part.size)


def test_rounds_are_charged_in_full_before_the_first_noise_is_drawn() -> None:
    plan = Rounds(histograms=(TWO, AGAIN), n_rows=(30, 30))
    enough_for_one = Budget(epsilon=6.0, delta=1e-5)
    assert 30 / 36 < enough_for_one.mu_squared < 30 / 36 + 30 / 9
    ledger = Ledger(enough_for_one, noise=SeededNoise(0))
    with pytest.raises(BudgetExceeded):
        release_shares(some_votes(), plan, ledger, unsure=lambda s: s.shares[:, 0])
    assert ledger.spent == 0

    ledger = Ledger(Budget(epsilon=40.0, delta=1e-5), noise=SeededNoise(0))
    seen: list[float] = []

    def broken(_: Shares) -> FloatArray:
        seen.append(ledger.spent)
        raise RuntimeError("a defect between the rounds")

    with pytest.raises(RuntimeError):
        release_shares(some_votes(), plan, ledger, unsure=broken)
    # All of it was charged when the first round was seen, and stays so.
    assert seen == [ledger.spent] == [pytest.approx(30 / 36 + 30 / 9)]


def test_a_plan_that_cannot_be_followed_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one round; got 1 histograms and 2 numbers"):
        Rounds(histograms=(TWO,), n_rows=(3, 4))
    with pytest.raises(ValueError, match="first round asks all rows"):
        Rounds(histograms=(TWO, AGAIN), n_rows=(3, 4))
    with pytest.raises(ValueError, match="same number of classes"):
        Rounds(histograms=(TWO, NoisyHistogram(sigma=1.0, n_classes=3)), n_rows=(3, 3))
    ledger = Ledger(Budget(epsilon=40.0, delta=1e-5), noise=SeededNoise(0))
    with pytest.raises(ValueError, match=r"needs unsure="):
        release_shares(some_votes(), Rounds(histograms=(TWO, AGAIN), n_rows=(30, 3)), ledger)
    with pytest.raises(ValueError, match="must ask all 30 rows, the plan asks 29"):
        release_shares(some_votes(), Rounds.once(TWO, 29), ledger)
    assert ledger.spent == 0


def test_shares_are_finite_and_print_their_noise() -> None:
    even = np.full(3, 0.25**2)
    shares = Shares(shares=np.zeros((3, 2)), variance=even, n_asked=5, groups=None)
    assert repr(shares) == "Shares(n_queries=3, n_classes=2, n_asked=5, sigma=0.25)"
    assert shares.table() == {
        "answered with noisy shares": 3,
        "asked again where the student was unsure": 2,
    }
    with pytest.raises(ValueError, match="finite"):
        Shares(shares=np.array([[np.nan, 0.0]]), variance=even[:1], n_asked=1, groups=None)
    with pytest.raises(ValueError, match="variance must be one positive number"):
        Shares(shares=np.zeros((3, 2)), variance=even[:2], n_asked=3, groups=None)
