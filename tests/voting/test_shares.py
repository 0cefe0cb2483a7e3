import numpy as np
import pytest

from evenhand.privacy import Budget, BudgetExceeded, Ledger, NoisyHistogram, SeededNoise
from evenhand.voting import Shares, Votes, release_shares


def test_shares_are_the_noisy_counts_over_the_teachers_and_all_rows_are_charged() -> None:
    counts = np.random.default_rng(0).multinomial(50, [0.2, 0.8], size=30)
    ledger = Ledger(Budget(epsilon=40.0, delta=1e-5), noise=SeededNoise(4))
    mechanism = NoisyHistogram(sigma=6.0, n_classes=2)
    shares = release_shares(Votes(counts=counts, n_teachers=50), mechanism, ledger)
    drawn = SeededNoise(4).gaussian(6.0, (30, 1))[:, 0]
    assert np.allclose(shares.shares[:, 1], (counts[:, 1] + drawn) / 50)
    assert shares.sigma == pytest.approx(6.0 / 50)
    assert ledger.spent == pytest.approx(30 / 36)
    assert (shares.n_asked, shares.n_answered, shares.n_rejected, shares.coverage) == (30, 30, 0, 1)


def test_a_budget_that_does_not_cover_all_rows_releases_none() -> None:
    ledger = Ledger(Budget(epsilon=0.5, delta=1e-5), noise=SeededNoise(4))
    votes = Votes(counts=np.tile([10, 40], (30, 1)), n_teachers=50)
    with pytest.raises(BudgetExceeded):
        release_shares(votes, NoisyHistogram(sigma=1.0, n_classes=2), ledger)
    assert ledger.spent == 0


def test_shares_are_finite_and_print_their_noise() -> None:
    shares = Shares(shares=np.zeros((3, 2)), sigma=0.25, groups=None)
    assert repr(shares) == "Shares(n_queries=3, n_classes=2, sigma=0.25)"
    with pytest.raises(ValueError, match="finite"):
        Shares(shares=np.array([[np.nan, 0.0]]), sigma=0.25, groups=None)
