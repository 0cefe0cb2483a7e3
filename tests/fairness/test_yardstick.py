"""The errors that a model's error is read beside, and when a model is no better."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, chi2, norm

from evenhand.fairness import fairness_report
from evenhand.fairness.yardstick import Yardstick
from evenhand.typing import REJECTED

codes = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=60)


@given(codes)
def test_it_counts_by_the_definition(rows: list[tuple[int, int]]) -> None:
    truth, predicted = np.array(rows).T
    found = Yardstick.of_truth(truth, predicted, 3)
    constants = [(truth != k).mean() for k in range(3)]
    assert found.majority_error.value == pytest.approx(min(constants))
    assert found.majority_error.value == pytest.approx(constants[found.majority])
    assert found.gain == pytest.approx(found.majority_error.value - found.error.value)
    low, high = found.gain_interval
    assert -1 <= low <= found.gain <= high <= 1


@given(codes)
def test_it_is_better_where_the_exact_sign_test_says_so(rows: list[tuple[int, int]]) -> None:
    # A second way: the sign test of SciPy on the rows where just one of the two is right, at what
    # the joint region of level .95 leaves to one of its two rates alone.
    truth, predicted = np.array(rows).T
    found = Yardstick.of_truth(truth, predicted, 3)
    model, constant = predicted == truth, truth == found.majority
    won, lost = int((model & ~constant).sum()), int((constant & ~model).sum())
    if won + lost == 0:
        assert found.no_better
        return
    p = binomtest(won, won + lost).pvalue
    assert found.no_better == (p > chi2.sf(chi2.isf(0.05, 2), 1) or won < lost)


def coverage_p_value(seed: int, *, narrowed: bool = False, n_repeats: int = 400) -> float:
    # The model differs from the majority class on a tenth of all people, and is right on nine
    # tenths of these. Exact limits miss with probability .05 at most.
    rng, n, q, p, covered = np.random.default_rng(seed), 100, 0.1, 0.9, 0
    for _ in range(n_repeats):
        apart, wins = rng.random(n) < q, rng.random(n) < p
        found = Yardstick.of_truth((apart & wins).astype(int), apart.astype(int), 2)
        low, high = found.gain_interval
        if narrowed:  # what is known of the share of wins, as if how often they differ were known
            m = int(apart.sum())
            ends = binomtest(int((apart & wins).sum()), m).proportion_ci(0.95) if m else (0, 1)
            low, high = ((2 * end - 1) * m / n for end in ends)
        covered += low <= q * (2 * p - 1) <= high
    return float(binom.cdf(covered, n_repeats, 0.95))


def test_the_interval_of_the_gain_covers_what_is_gained_on_new_rows() -> None:
    # FALSE_ALARM 1e-6; limits of the share of wins alone are convicted.
    assert coverage_p_value(0) > 1e-6
    assert coverage_p_value(0, narrowed=True) < 1e-6


def test_a_constant_model_is_announced_and_a_good_one_is_not() -> None:
    truth = np.repeat([0, 1], [70, 30])
    constant = Yardstick.of_truth(truth, np.zeros(100, dtype=np.int64), 2)
    assert constant.no_better
    assert constant.warning(["no", "yes"]) == (
        "on the 100 test rows, the model is no better than always predicting 'no', as far as they "
        "can tell: error 0.3000 against 0.3000 (gain 0.0000, 95% interval -0.0482 to 0.0482)"
    )
    assert Yardstick.of_truth(truth, truth, 2).warning(["no", "yes"]) == ""


def test_refused_rows_count_for_neither() -> None:
    truth = np.array([0, 0, 1, 1, 1])
    said = np.array([0, 0, REJECTED, 1, REJECTED])
    found = fairness_report(truth, said, list("aabba"), without_margin=np.zeros(5, int)).yardstick
    assert found is not None
    assert (found.error.n, found.error.value, found.majority_error.value) == (3, 0.0, 1 / 3)
    assert found.without_margin is not None
    assert found.without_margin.value == pytest.approx(1 / 3)


def test_noisy_shares_tell_the_errors_without_bias() -> None:
    # FALSE_ALARM 1e-6 per side: the mean over 400 repetitions is within 4.9 standard errors of
    # the errors by the clean shares; a yardstick that clipped the shares to [0, 1] is caught.
    rng = np.random.default_rng(0)
    clean = rng.dirichlet([2.0, 1.0], size=500)
    decided = (clean[:, 1] + rng.normal(0, 0.2, 500) > 0.5).astype(np.int64)
    exact = 1 - clean[np.arange(500), decided].mean()
    sigma, n = 0.8, 400

    def z(clip: bool) -> float:
        errors = []
        for _ in range(n):
            noisy = clean[:, 1] + rng.normal(0, sigma, 500)
            noisy = np.clip(noisy, 0, 1) if clip else noisy
            shares = np.stack([1 - noisy, noisy], axis=1)
            errors.append(Yardstick.of_shares(shares, decided).error.value)
        return float((np.mean(errors) - exact) / (sigma / np.sqrt(500 * n)))

    assert abs(z(clip=False)) < 4.9
    assert abs(z(clip=True)) > 4.9


@pytest.mark.parametrize("beyond", [-0.3, 1.2])
def test_an_error_that_noise_took_out_of_its_range_keeps_its_interval(beyond: float) -> None:
    noise = np.random.default_rng(2).normal(0, 0.5, 300)
    wrong = beyond + noise - noise.mean()
    shares = np.stack([1 - wrong, wrong], axis=1)
    error = Yardstick.of_shares(shares, np.zeros(300, dtype=np.int64)).error
    reach = norm.ppf(0.975) * noise.std(ddof=1) / np.sqrt(300)
    nearest = float(np.clip(beyond, 0, 1))
    ends = np.clip([nearest - reach, nearest + reach], 0, 1)
    assert (error.value, error.low, error.high) == pytest.approx((nearest, *ends))
    assert error.high - error.low > 0.05  # it does not pass for exact


def test_a_gain_by_noisy_shares_alone_is_seldom_called_better() -> None:
    # Decisions that do not depend on what the shares say: of 400, "better" falls outside the
    # one-sided 2.5 % with probability below 1e-6 beyond 27 (binomial); a build with half the
    # spread calls some 64 better.
    rng = np.random.default_rng(1)
    shares = [rng.normal([0.5, 0.5], 0.7, size=(300, 2)) for _ in range(400)]
    better = 0
    for table in shares:
        found = Yardstick.of_shares(table, rng.integers(0, 2, 300))
        better += not found.no_better
    assert better <= 27


def test_it_survives_json() -> None:
    truth = np.repeat([0, 1], [7, 3])
    found = Yardstick.of_truth(truth, truth, 2, without_margin=1 - truth)
    assert Yardstick.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_the_error_without_privacy_is_counted_on_the_same_rows_and_read_back() -> None:
    truth, said = [0, 1, 1, 0, 1], [0, 1, -1, 1, 1]  # one row has no answer
    found = fairness_report(truth, said, list("aabba"), without_privacy=[1, 1, 0, 0, 0]).yardstick
    assert found is not None
    assert found.without_privacy is not None
    assert found.without_privacy.value == pytest.approx(2 / 4)
    assert found.rows(("no", "yes"))[-1] == ("a model without privacy", found.without_privacy)
    saved = found.to_dict()
    assert Yardstick.from_dict(saved) == found
    del saved["without_privacy"]  # as earlier versions wrote it
    assert Yardstick.from_dict(saved).without_privacy is None
