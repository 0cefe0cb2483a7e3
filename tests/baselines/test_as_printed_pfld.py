"""PF-LD as printed: what its minibatches cost, that they can be told, and where it says so."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import evenhand
from evenhand import Budget, DemographicParity, EqualizedOdds, PFLDClassifier
from evenhand.baselines.as_printed_pfld import (
    AsPrintedPFLDClassifier,
    printed_multiplier,
)
from evenhand.baselines.pfld_descent import PFLD, PFLDState
from evenhand.privacy import DiscreteNoise, Ledger, SeededNoise, SubsampledGaussian, attribute_of
from evenhand.privacy.gaussian import delta_from_mu, epsilon_from_mu
from evenhand.privacy.guarantee import NOT_AS_CLAIMED
from evenhand.privacy.known_samples import KnownSamples
from evenhand.report.content import ModelReport
from evenhand.report.page import render as page_of
from evenhand.report.summary import summary_lines

CLAIMED = Budget(epsilon=1.0, delta=1e-5)


def rows(n: int = 1500, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.6, "a", "b")
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.9 * (group == "a")
    return X, X[:, 0] + rng.normal(size=n) > 0.5, group


def made(**changes: Any) -> AsPrintedPFLDClassifier:
    X, y, group = rows()
    given: dict[str, Any] = {
        "budget": CLAIMED,
        "fairness": DemographicParity(margin=0.02),
        "noise": SeededNoise(4),
        "n_steps": 200,
        "random_state": 0,
    }
    return AsPrintedPFLDClassifier(**(given | changes)).fit(X, y, sensitive_features=group)


def known(z: float, q: float, steps: int, beside: float = 0.0) -> KnownSamples:
    return KnownSamples(
        noise_multiplier=z, sampling_rate=q, n_steps=steps, beside=beside, delta=1e-5
    )


def divergence(q: float, z: float, away: float, epsilon: float) -> float:
    """Delta of one step by quadrature, of a row whose public part is ``away`` noises long."""
    x = np.linspace(-12.0 * z, (away + 14.0) * z, 400_001)

    def density(moved: float) -> Any:
        return (1 - q) * norm.pdf(x, 0, z) + q * norm.pdf(x, away * z + moved, z)

    return float(np.trapezoid(np.maximum(density(0.5) - np.exp(epsilon) * density(-0.5), 0), x))


@pytest.mark.parametrize(("q", "z"), [(0.05, 0.7), (0.3, 1.5), (1.0, 2.0)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.8])
def test_one_step_costs_at_most_its_known_sample_and_just_that_where_the_row_stands_out(
    q: float, z: float, epsilon: float
) -> None:
    bound = known(z, q, 1).delta_at(epsilon)
    for away in (0.0, 1.0, 4.0):
        assert divergence(q, z, away, epsilon) <= bound + 1e-9
    assert divergence(q, z, 30.0, epsilon) == pytest.approx(bound, abs=1e-7)
    assert bound == pytest.approx(q * delta_from_mu(1 / z, epsilon), rel=1e-9)


def test_several_steps_cost_what_their_losses_add_up_to() -> None:
    # By drawing: the loss of K Gaussian steps is normal with mean mu^2 / 2 and variance mu^2.
    rng, n = np.random.default_rng(0), 400_000
    one = known(1.2, 0.2, 9, beside=0.3)
    mu = np.sqrt(rng.binomial(9, 0.2, n) / 1.2**2 + 0.3)
    loss = mu**2 / 2 + mu * rng.normal(size=n)
    for epsilon in (0.2, 1.0, 2.5):
        paid = np.maximum(-np.expm1(epsilon - loss), 0.0)
        surely = 5.0 * paid.std() / math.sqrt(n)  # wrong for correct code with probability 6e-7
        assert abs(paid.mean() - one.delta_at(epsilon)) < surely
        more = known(1.2, 0.25, 9, beside=0.3)  # the test would see samples a quarter larger
        assert abs(paid.mean() - more.delta_at(epsilon)) > surely


def test_epsilon_is_where_delta_is_and_lies_between_all_rows_and_what_is_claimed() -> None:
    one = known(5.0, 0.05, 1000, beside=0.02)
    epsilon = one.epsilon(1e-5)
    assert one.delta_at(epsilon) <= 1e-5
    assert one.delta_at(epsilon * (1 - 1e-6)) > 1e-5
    assert epsilon < epsilon_from_mu(math.sqrt(1000 / 25.0 + 0.02), 1e-5)
    hidden = SubsampledGaussian(
        noise_multiplier=5.0, sampling_rate=0.05, n_steps=1000, clip_norm=1.0, delta=1e-5
    )
    assert epsilon > 3 * hidden.epsilon(1e-5)
    everybody = known(5.0, 1.0, 1000, beside=0.02)
    mu = math.sqrt(1000 / 25.0 + 0.02)
    assert everybody.epsilon(1e-5) == pytest.approx(epsilon_from_mu(mu, 1e-5), rel=1e-6)
    assert known(1e6, 0.01, 1).epsilon(1e-5) == 0.0


def test_the_noise_is_that_of_the_published_account() -> None:
    # A second derivation: the privacy loss distribution is tighter than the moments accountant, by
    # a tenth here, and cannot be above it.
    z = printed_multiplier(1.0, 1e-5, 0.05, 500, 1e-9)
    exact = SubsampledGaussian(
        noise_multiplier=z, sampling_rate=0.05, n_steps=500, clip_norm=1.0, delta=1e-5
    )
    assert 0.8 < exact.epsilon(1e-5) <= 1.0
    assert printed_multiplier(1.0, 1e-5, 0.05, 500, 0.03) > z  # what is beside it takes its share


def test_whether_a_row_that_stands_out_was_in_a_minibatch_can_be_told_from_one_step() -> None:
    # The published noise is that of the groups' part; the public loss of the row is far longer.
    X, y, _ = rows(400)
    X[7], truth = [60.0, -60.0, 60.0], y.astype(np.int64)
    sizes = np.array([[240.0, 160.0]])
    strata = np.zeros(400, dtype=np.int64)
    state = PFLDState.start(
        PFLD(), X, truth, strata, sizes, np.zeros((1, 2)), 2, np.random.default_rng(0)
    )
    state.above[0, 0, 0] = 0.5
    groups = np.random.default_rng(1).integers(2, size=400)
    batch = np.array([3, 7, 11, 200])
    q, without = 0.01, batch[batch != 7]
    there, gone = (state.on(some).gradient(groups[some]) for some in (batch, without))
    z = printed_multiplier(1.0, 1e-5, q, 1000, 1e-9)
    noise = z * state.unit * state.learner.clip_norm
    assert np.linalg.norm(there - gone) > 10 * noise  # wrong once in 3 million
    groups[7] = 1 - groups[7]
    moved = np.linalg.norm(state.on(batch).gradient(groups[batch]) - there)
    assert moved <= state.unit * state.learner.clip_norm * (1 + 1e-9)


def test_a_minibatch_is_a_sum_over_its_rows_and_all_of_them_are_the_whole() -> None:
    X, y, group = rows(300)
    strata = y.astype(np.int64)
    sizes = np.array([[90.0, 60.0], [80.0, 70.0]])
    state = PFLDState.start(
        PFLD(hidden=(5,)), X, strata, strata, sizes, np.ones((2, 2)), 2, np.random.default_rng(0)
    )
    state.above[:, 0, 0] = [0.7, 0.2]
    groups = (group == "b").astype(np.int64)
    state.forward()
    whole = state.gradient(groups)
    parts = [state.on(some).gradient(groups[some]) for some in np.split(np.arange(300), [40, 41])]
    assert np.allclose(sum(parts), whole, atol=1e-12)


def test_it_says_so_wherever_a_claim_is_shown(tmp_path: Path) -> None:
    model = made()
    claim, fitted = model.guarantee_, model.fitted_
    assert claim.epsilon == math.inf
    assert not claim.holds
    assert claim.as_printed
    (steps,) = model.mechanism_
    sound = steps.epsilon(1e-5)
    assert fitted.epsilon_spent == pytest.approx(sound, rel=1e-5)
    assert sound > 2 * CLAIMED.epsilon
    assert f"cost epsilon={sound:.4g} at" in str(claim)
    assert "claims (1.0, 1e-05)" in str(claim)
    report = ModelReport.of(model)
    shown = {
        "sentence": str(claim),
        "page": page_of(report),
        "terminal": "\n".join(summary_lines(report)),
        "claim.json": (model.save(tmp_path / "model") / "claim.json").read_text(),
    }
    for where, text in shown.items():
        assert NOT_AS_CLAIMED in text or NOT_AS_CLAIMED.capitalize() in text, where
    assert json.loads(shown["claim.json"])["guarantee"]["epsilon"] is None
    again = evenhand.load(tmp_path / "model")
    assert isinstance(again, AsPrintedPFLDClassifier)
    assert str(again.guarantee_) == str(claim)


@pytest.mark.parametrize("fairness", [DemographicParity(margin=0.02), EqualizedOdds(margin=0.05)])
def test_minibatches_with_all_rows_are_the_fit_without_them(
    fairness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    trained = PFLD.fit

    def watched(self: Any, *data: Any, **given: Any) -> Any:
        if not seen:
            seen.append(given)
        else:  # the same noise, which the two accounts scale differently
            given |= {name: seen[0][name] for name in ("primal_noise", "dual_noise", "sizes")}
            given["margins"] = seen[0]["margins"]
        return trained(self, *data, **given)

    monkeypatch.setattr(PFLD, "fit", watched)
    settings = {"n_steps": 40, "fairness": fairness}
    batched = made(sampling_rate=1.0, **settings)
    X, y, group = rows()
    whole = PFLDClassifier(CLAIMED, noise=SeededNoise(4), random_state=0, **settings)
    whole.fit(X, y, sensitive_features=group)
    assert np.allclose(batched.multipliers_, whole.multipliers_)
    assert np.allclose(batched.predict_proba(X), whole.predict_proba(X))


@pytest.mark.slow
def test_a_margin_narrows_the_gap() -> None:
    X, y, group = rows(6000)

    def gap(margin: float) -> float:
        model = AsPrintedPFLDClassifier(
            Budget(epsilon=8.0, delta=1e-5),
            DemographicParity(margin=margin),
            noise=SeededNoise(1),
            multiplier_rate=1.0,
            n_steps=1000,
            random_state=0,
        ).fit(X, y, sensitive_features=group)
        told = model.predict(X)
        return abs(float(told[group == "a"].mean() - told[group == "b"].mean()))

    assert gap(0.01) < 0.5 * gap(1.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sampling_rate": 1.5}, "sampling_rate must be at most 1, got sampling_rate=1.5"),
        ({"sampling_rate": 0.0}, "sampling_rate must be finite and > 0"),
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"noise": DiscreteNoise()}, "Gradients are real numbers"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made(**settings)


def test_an_account_of_costs_that_hold_is_not_charged() -> None:
    X, y, group = rows()
    account = Ledger(
        Budget(epsilon=9.0, delta=1e-5),
        noise=SeededNoise(0),
        unit=attribute_of("person"),
        neighbors="change one group label",
    )
    model = AsPrintedPFLDClassifier(CLAIMED, DemographicParity(margin=0.02))
    with pytest.raises(ValueError, match="ledger= is an account of costs that hold"):
        model.fit(X, y, sensitive_features=group, ledger=account)
    assert account.spent == 0
