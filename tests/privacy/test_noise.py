"""Statistical tests state both error rates: FALSE_ALARM, and a build they must catch."""

import copy
import itertools
import math
import os
import pickle

import numpy as np
import pytest
import unseeded
from runs import FALSE_ALARM
from scipy import stats

from evenhand.privacy import Budget, DiscreteNoise, FloatNoise, Ledger, SeededNoise
from evenhand.privacy.noise import LARGEST_SCALE, InversionNoise, Noise, NoPrivacy

pytestmark = pytest.mark.fresh(reason="the sources of noise themselves, OpenDP's among them")

N = 15_000
N_EXACT = {"gaussian": 15_000, "laplace": 30_000}  # heavier tails show their scale less
N_FLOAT = 300_000  # a Kolmogorov-Smirnov test of the scale is weaker, and these draws are cheap

SOURCES = [DiscreteNoise(), InversionNoise(), FloatNoise(), SeededNoise(3)]
each_source = pytest.mark.parametrize("noise", SOURCES, ids=lambda n: type(n).__name__)


def exact_pmf(kind: str, scale: float, k: np.ndarray) -> np.ndarray:
    """The definitions, summed far into the tails."""
    far = np.arange(-60 * math.ceil(scale), 60 * math.ceil(scale) + 1, dtype=float)
    weight = {
        "gaussian": lambda t: np.exp(-(t**2) / (2 * scale**2)),
        "laplace": lambda t: np.exp(-np.abs(t) / scale),
    }[kind]
    return weight(k.astype(float)) / weight(far).sum()


def p_value_discrete(drawn: np.ndarray, kind: str, scale: float) -> float:
    """Chi-square of the draws against the exact probabilities, cells of 20 expected or more."""
    k = np.arange(-30 * math.ceil(scale), 30 * math.ceil(scale) + 1)
    below = np.cumsum(exact_pmf(kind, scale, k))
    n_cells = min(40, int(6 * scale) + 3)
    cuts = np.unique(np.searchsorted(below, np.linspace(0, 1, n_cells + 1)[1:-1]))
    expected = np.diff(np.concatenate([[0.0], below[cuts], [1.0]])) * drawn.size
    cell = np.searchsorted(k[cuts], drawn, side="left")
    observed = np.bincount(cell, minlength=expected.size)
    assert expected.min() > 20
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("scale", [1.5, 40.0])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("noise", [DiscreteNoise(), InversionNoise()], ids=["opendp", "inversion"])
def test_discrete_noise_has_the_probabilities_of_its_definition(
    noise: Noise, kind: str, scale: float
) -> None:
    draw = getattr(noise, kind)
    assert p_value_discrete(draw(scale, (N_EXACT[kind],)), kind, scale) > FALSE_ALARM
    # The test would see noise that is 10 % too small.
    assert p_value_discrete(draw(0.9 * scale, (N_EXACT[kind],)), kind, scale) < FALSE_ALARM


@pytest.mark.parametrize("scale", [1.5, 40.0, 400.0])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_what_other_tests_draw_in_place_of_opendp_has_its_distribution(
    kind: str, scale: float
) -> None:
    with unseeded.drawn_by(kind):
        test_discrete_noise_has_the_probabilities_of_its_definition(DiscreteNoise(), kind, scale)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("noise", [FloatNoise(), SeededNoise(8)], ids=["float", "seeded"])
def test_floating_noise_has_the_distribution_it_is_charged_for(noise: Noise, kind: str) -> None:
    exact = stats.norm(scale=7.0) if kind == "gaussian" else stats.laplace(scale=7.0)
    draw = getattr(noise, kind)
    assert stats.kstest(draw(7.0, (N_FLOAT,)), exact.cdf).pvalue > FALSE_ALARM
    assert stats.kstest(draw(0.9 * 7.0, (N_FLOAT,)), exact.cdf).pvalue < FALSE_ALARM


@each_source
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_draws_of_one_batch_do_not_hang_together(noise: Noise, kind: str) -> None:
    x = np.asarray(getattr(noise, kind)(10.0, (N,)), dtype=float)
    limit = stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(N)  # a correlation is about N(0, 1/N)
    for lag in (1, 2, N // 2):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < limit * math.sqrt(N / (N - lag)) * 1.1
    shared = x + np.roll(x, 1)  # a build in which neighbors share noise is caught
    assert abs(np.corrcoef(shared[:-1], shared[1:])[0, 1]) > limit


@each_source
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 4), (2, 0), (2, 3, 5)])
def test_noise_has_the_shape_that_was_asked(noise: Noise, shape: tuple[int, ...]) -> None:
    kind = np.int64 if isinstance(noise, DiscreteNoise) else np.float64
    for drawn in (noise.gaussian(2.0, shape), noise.laplace(2.0, shape)):
        assert drawn.shape == shape
        assert drawn.dtype == kind


@each_source
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_noise_without_a_scale_is_refused(noise: Noise, scale: float) -> None:
    for use in (noise.gaussian, noise.laplace):
        with pytest.raises(ValueError, match="must be finite and > 0"):
            use(scale, (2,))
    for price in (noise.gaussian_mu, noise.laplace_mu):
        with pytest.raises(ValueError, match="must be finite and > 0"):
            price(scale)


def test_discrete_noise_never_reaches_the_ends_of_int64() -> None:
    noise = DiscreteNoise()
    for drawn in (noise.gaussian(LARGEST_SCALE, (500,)), noise.laplace(LARGEST_SCALE, (500,))):
        assert np.abs(drawn).max() < 2**62
        assert np.abs(drawn).max() > LARGEST_SCALE
    for use in (noise.gaussian, noise.laplace):
        with pytest.raises(ValueError, match=r"at most 2\*\*50 .* FloatNoise"):
            use(2 * LARGEST_SCALE, (1,))


@each_source
def test_more_noise_never_costs_more(noise: Noise) -> None:
    for price in (noise.gaussian_mu, noise.laplace_mu):
        costs = [price(scale) for scale in (0.7, 1.0, 3.0, 10.0, 40.0, 200.0)]
        assert all(first > second > 0 for first, second in itertools.pairwise(costs))


def test_integer_noise_costs_at_least_what_real_noise_costs() -> None:
    for scale in (0.5, 2.0, 40.0):
        assert DiscreteNoise().gaussian_mu(scale) >= 1 / scale
    assert DiscreteNoise().gaussian_mu(40.0) == pytest.approx(1 / 40.0, rel=1e-4)


def test_only_a_seed_repeats_and_only_a_seed_does_not_protect() -> None:
    assert (SeededNoise(5).gaussian(9.0, (50,)) == SeededNoise(5).gaussian(9.0, (50,))).all()
    assert (SeededNoise(5).laplace(9.0, (50,)) != SeededNoise(6).laplace(9.0, (50,))).all()
    for secret in (DiscreteNoise, FloatNoise):
        assert not np.array_equal(secret().gaussian(1e6, (50,)), secret().gaussian(1e6, (50,)))
        assert secret().protects
    assert not SeededNoise(5).protects
    assert "test mode" in SeededNoise(5).name
    assert "floating-point" in FloatNoise().name
    assert "exact discrete" in DiscreteNoise().name


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))]
)
def test_a_copy_of_secret_noise_goes_its_own_way(copied) -> None:
    # scikit-learn's clone copies parameters: the same noise in two releases would cancel.
    noise = FloatNoise()
    noise.gaussian(1.0, (3,))
    assert not np.array_equal(copied(noise).gaussian(1.0, (20,)), noise.gaussian(1.0, (20,)))


@pytest.mark.parametrize("noise", [FloatNoise(), DiscreteNoise()], ids=["float", "discrete"])
def test_a_forked_process_draws_noise_of_its_own(noise: Noise) -> None:
    noise.gaussian(1e6, (3,))  # whatever state there is, exists before the fork
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, np.asarray(noise.gaussian(1e6, (20,)), dtype=float).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reader, 20 * 8))
    os.close(reader)
    os.close(writer)
    assert theirs.size == 20
    assert not np.array_equal(theirs, noise.gaussian(1e6, (20,)))


def test_no_privacy_adds_nothing_and_says_that_it_protects_nobody() -> None:
    none = NoPrivacy()
    assert not none.gaussian(5.0, (3, 2)).any()
    assert not none.laplace(5.0, (4,)).any()
    assert not none.protects
    assert (none.gaussian_mu(40.0), none.laplace_mu(3.0)) == (
        FloatNoise().gaussian_mu(40.0),
        FloatNoise().laplace_mu(3.0),
    )
    claim = Ledger(Budget(epsilon=1.0, delta=1e-6), noise=none).guarantee()
    assert str(claim).startswith("NOT PRIVATE")
    with pytest.raises(ValueError, match="NoPrivacy draws no coins"):
        none.random_words((2,))
    with pytest.raises(ValueError, match="sigma must be finite and > 0"):
        none.gaussian(0.0, (2,))
