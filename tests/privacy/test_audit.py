"""An attack at the worst case, through the ledger: it must stay below the claim, and it convicts.

CONFIDENCE is that of each lower bound: correct code fails such a test with probability 1e-6.
"""

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.privacy import Budget, DiscreteNoise, FloatNoise, GNMax, Ledger, SeededNoise
from evenhand.privacy.audit import audit_epsilon_lower_bound, audit_mu_lower_bound
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.noisy_max import NoisyThreshold

CONFIDENCE = 1 - 1e-6
DELTA = 0.01
N = 20_000
PLENTY = Budget(epsilon=1e6, delta=1e-5)


class HalfNoise(FloatNoise):
    """Charges for sigma and draws half of it."""

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        return super().gaussian(sigma / 2, shape)


class HalfDiscrete(DiscreteNoise):
    """The same, in integers."""

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        return super().gaussian(sigma / 2, shape)


def attack(mechanism, votes, moved, noise) -> tuple[float, float]:
    """Lower bound from N releases on each side, and the claim for one release."""

    def released(counts: tuple[int, ...]) -> np.ndarray:
        ledger = Ledger(PLENTY, noise=noise)
        return ledger.release(mechanism, np.tile(counts, (N, 1)), purpose="audit").astype(float)

    bound = audit_epsilon_lower_bound(
        released(votes), released(moved), delta=DELTA, confidence=CONFIDENCE
    )
    return bound, epsilon_from_mu(math.sqrt(mechanism.mu_squared(noise)), DELTA)


# One released bit tells neighbors apart best when the leader stands about where the likelihood
# ratio is exp(epsilon); a little nearer, so that half the noise does not push it out of sight.
WORST = [
    pytest.param(GNMax(sigma=3.0), (56, 60), (57, 59), id="GNMax"),
    pytest.param(NoisyThreshold(threshold=61.5, sigma=2.0), (60, 3), (61, 2), id="NoisyThreshold"),
]


@pytest.mark.parametrize(("mechanism", "votes", "moved"), WORST)
@pytest.mark.parametrize("noise", [FloatNoise(), DiscreteNoise()], ids=["float", "discrete"])
def test_the_attack_stays_below_the_claim(mechanism, votes, moved, noise) -> None:
    bound, claim = attack(mechanism, votes, moved, noise)
    assert 0.1 * claim < bound < claim


@pytest.mark.parametrize(("mechanism", "votes", "moved"), WORST)
@pytest.mark.parametrize("noise", [HalfNoise(), HalfDiscrete()], ids=["float", "discrete"])
def test_the_same_attack_convicts_half_the_noise(mechanism, votes, moved, noise) -> None:
    bound, claim = attack(mechanism, votes, moved, noise)
    assert bound > claim


def test_the_bound_is_right_as_often_as_it_says() -> None:
    # 400 audits of randomized response, whose epsilon is known: at confidence 0.9 at most 10 % are
    # too high, and more than 77 of them by accident with probability below 1e-6.
    truth = math.log(0.75 / 0.25)
    bits = np.random.default_rng(1).random((400, 2, 400)) < np.array([[[0.25], [0.75]]])
    too_high = {
        confidence: sum(
            audit_epsilon_lower_bound(x, y, delta=0.0, confidence=confidence) > truth
            for x, y in bits.astype(float)
        )
        for confidence in (0.9, 1e-9)
    }
    assert stats.binom.sf(77, 400, 0.1) < 1e-6
    assert too_high[0.9] <= 77
    # It would see a bound that forgot its confidence: the plain ratio is too high half the time.
    assert too_high[1e-9] > 77


def test_choosing_the_event_costs_no_confidence() -> None:
    # Equal laws, so every bound above 0 is too high: at confidence 0.5 at most half of 400 are.
    # A build that judges an event on the samples that chose it is too high nearly always.
    pairs = np.random.default_rng(3).normal(size=(400, 2, 400))
    too_high = sum(audit_epsilon_lower_bound(x, y, delta=0.0, confidence=0.5) > 0 for x, y in pairs)
    assert stats.binom.sf(247, 400, 0.5) < 1e-6
    assert too_high <= 247


def test_equal_laws_show_nothing_and_the_roles_may_be_swapped() -> None:
    draw = SeededNoise(2).gaussian
    x, y = draw(1.0, (N,)), draw(1.0, (N,)) + 1.0
    assert audit_epsilon_lower_bound(x, x + 0.0, delta=0.0, confidence=0.999) < 0.15
    one = audit_epsilon_lower_bound(x, y, delta=DELTA, confidence=0.999)
    other = audit_epsilon_lower_bound(y, x, delta=DELTA, confidence=0.999)
    assert one == pytest.approx(other, rel=1e-9)


def test_what_cannot_be_audited_is_refused() -> None:
    good = np.zeros(200)
    with pytest.raises(ValueError, match="samples1 must be at least 100 finite numbers"):
        audit_epsilon_lower_bound(good, good[:99], delta=0.0, confidence=0.9)
    with pytest.raises(ValueError, match="samples0 must be at least 100 finite"):
        audit_epsilon_lower_bound(np.full(200, np.nan), good, delta=0.0, confidence=0.9)
    with pytest.raises(ValueError, match="confidence must lie strictly between 0 and 1"):
        audit_epsilon_lower_bound(good, good, delta=0.0, confidence=1.0)


@pytest.mark.slow
def test_the_bound_on_mu_is_right_as_often_as_it_says() -> None:
    # As above, for Gaussians one apart, whose mu is 1.
    pairs = np.random.default_rng(5).normal(size=(400, 2, 400)) + np.array([[0.0], [1.0]])
    shown = [audit_mu_lower_bound(x, y, confidence=0.9) for x, y in pairs]
    assert stats.binom.sf(77, 400, 0.1) < 1e-6
    assert sum(bound > 1.0 for bound in shown) <= 77
    assert np.median(shown) > 0.5


def test_mu_convicts_half_the_noise_in_runs_in_which_epsilon_at_a_small_delta_cannot() -> None:
    # A claim of mu = 2, kept with half its noise: the sides are 4 apart. 500 runs of each judge.
    x, y = np.random.default_rng(6).normal(size=(2, 1000)) + np.array([[0.0], [4.0]])
    assert audit_mu_lower_bound(x, y, confidence=CONFIDENCE) > 2.0
    shown = audit_epsilon_lower_bound(x, y, delta=1e-5, confidence=CONFIDENCE)
    assert shown < epsilon_from_mu(2.0, 1e-5)
