"""Fairness functions against their definitions, and their gradients against differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

from evenhand import (
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    GeneralizedDemographicParity,
    TruePositiveRateParity,
)
from evenhand._notions import SHIPPED
from evenhand._probabilities import decided
from evenhand.fairness import FunctionParity, gap_of
from evenhand.fairness.functions import violations, worst_violation
from evenhand.fairness.notion import require_reference
from evenhand.fairness.notions import notion_named
from evenhand.fairness.score_parity import score_distance
from evenhand.fairness.tally import JointTally, Tally


def to_all(kind, **settings):
    return kind(margin=0.1, reference="overall", **settings)


BRIER = to_all(FunctionParity, h=lambda p, truth: ((p - truth) ** 2).sum(axis=1))
ALL = [
    *(to_all(notion_named(name)) for name in sorted(SHIPPED)),
    to_all(GeneralizedDemographicParity, order=3),
    BRIER,
]


def people(seed: int, n: int = 60, n_classes: int = 2, n_groups: int = 3):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(n_classes), size=n)
    return probabilities, rng.integers(n_classes, size=n), rng.integers(n_groups, size=n)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("function", ALL, ids=lambda f: f.name)
def test_the_gradient_is_the_derivative_of_the_values(function, n_classes: int) -> None:
    probabilities, y, _ = people(0, n=7, n_classes=n_classes)
    truth = np.eye(n_classes)[y]
    pull = np.random.default_rng(1).normal(size=function.values(probabilities, truth).shape)
    gradient = function.gradient(probabilities, truth, pull)
    for i in range(7):
        for k in range(n_classes):
            nudge = np.zeros_like(probabilities)
            nudge[i, k] = 1e-6
            rise = function.values(probabilities + nudge, truth) - function.values(
                probabilities - nudge, truth
            )
            assert gradient[i, k] == pytest.approx((pull * rise).sum() / 2e-6, abs=1e-8)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.name)
def test_a_stack_of_models_gets_what_each_gets_alone(function) -> None:
    parts = [people(seed, n=9) for seed in range(4)]
    probabilities = np.stack([part[0] for part in parts])
    truth = np.stack([np.eye(2)[part[1]] for part in parts])
    values, among = function.values(probabilities, truth), function.among(truth)
    gradient = function.gradient(probabilities, truth, values)
    for t in range(4):
        np.testing.assert_array_equal(values[t], function.values(probabilities[t], truth[t]))
        np.testing.assert_array_equal(among[t], function.among(truth[t]))
        np.testing.assert_allclose(
            gradient[t], function.gradient(probabilities[t], truth[t], values[t]), atol=1e-14
        )


@given(st.integers(0, 10_000), st.sampled_from([2, 3, 4]), st.sampled_from([2, 3, 4]))
def test_the_violation_of_decisions_is_the_gap_to_everybody(seed, n_classes, n_groups) -> None:
    probabilities, y, z = people(seed, n_classes=n_classes, n_groups=n_groups)
    said = probabilities.argmax(axis=1)
    joint = JointTally.of(z, y, said, n_groups, n_classes)
    tally = Tally.of(z, said, n_groups, n_classes)
    for kind in (DemographicParity, EqualizedOdds, ErrorParity, TruePositiveRateParity):
        notion = to_all(kind)
        found = worst_violation(notion, probabilities, y, z)
        known = gap_of(notion, joint).value
        assert found == pytest.approx(0.0 if np.isnan(known) else known, abs=1e-12)
        assert found == pytest.approx(notion.gap(joint.counts), abs=1e-12)
    notion = to_all(DemographicParity)
    assert notion.gap(tally.counts) == notion.gap(joint.counts)


def test_moments_are_those_of_the_scores_by_brute_force() -> None:
    probabilities, y, z = people(3)
    found = violations(to_all(GeneralizedDemographicParity, order=3), probabilities, y, z)
    assert found.shape == (3, 3)
    for a in range(3):
        for j in range(3):
            own = np.mean(
                [p ** (j + 1) for p, g in zip(probabilities[:, 1], z, strict=True) if g == a]
            )
            assert found[a, j] == pytest.approx(abs(own - np.mean(probabilities[:, 1] ** (j + 1))))


def test_one_moment_is_parity_of_mean_scores() -> None:
    probabilities, y, z = people(5)
    means = [abs(probabilities[z == a, 1].mean() - probabilities[:, 1].mean()) for a in range(3)]
    assert worst_violation(
        to_all(GeneralizedDemographicParity, order=1), probabilities, y, z
    ) == pytest.approx(max(means))


def test_a_group_without_such_rows_has_no_violation_rather_than_none() -> None:
    found = violations(
        to_all(EqualizedOdds), [[0.2, 0.8], [0.7, 0.3], [0.6, 0.4]], [1, 1, 0], [0, 1, 1]
    )
    assert np.isnan(found[0, 0])
    assert np.isfinite(found[1]).all()
    assert worst_violation(to_all(DemographicParity), [[0.2, 0.8]], [1], [0]) == 0.0


def test_decisions_take_the_first_of_equal_probabilities() -> None:
    np.testing.assert_array_equal(decided(np.array([[0.5, 0.5], [0.1, 0.9]])), [[1, 0], [0, 1]])


@pytest.mark.parametrize("reference", ["overall", "rest", "pairwise"])
def test_the_score_distance_is_the_largest_area_between_distribution_functions(reference) -> None:
    # A second derivation: W1 is the area between two empirical distribution functions.
    rng = np.random.default_rng(0)
    scores, z = rng.random(300).round(2), rng.integers(3, size=300)
    grid = np.linspace(0, 1, 101)

    def area(one, two) -> float:
        cdf = [np.searchsorted(np.sort(s), grid[:-1], side="right") / len(s) for s in (one, two)]
        return float(np.abs(cdf[0] - cdf[1]).sum() * 0.01)

    others = {
        "overall": lambda a: [scores],
        "rest": lambda a: [scores[z != a]],
        "pairwise": lambda a: [scores[z == b] for b in range(3) if b != a],
    }[reference]
    wanted = max(area(scores[z == a], other) for a in range(3) for other in others(a))
    assert score_distance(scores, z, reference=reference) == pytest.approx(wanted, abs=1e-9)


def test_the_score_distance_of_one_group_is_0_and_of_shifted_distributions_the_shift() -> None:
    assert score_distance([0.2, 0.9], ["a", "a"]) == 0.0
    rng = np.random.default_rng(1)
    one = rng.random(50)
    scores, z = np.concatenate([one, one + 0.25]), np.repeat(["a", "b"], 50)
    assert score_distance(scores, z, reference="pairwise") == pytest.approx(0.25)
    assert wasserstein_distance(one, one + 0.25) == pytest.approx(0.25)


def test_an_own_derivative_is_used_and_agrees_with_differences() -> None:
    probabilities, y, _ = people(2)
    truth = np.eye(2)[y]
    told = to_all(FunctionParity, h=BRIER.h, derivative=lambda p, t: 2.0 * (p - t))
    pull = np.ones((60, 1))
    np.testing.assert_allclose(
        told.gradient(probabilities, truth, pull),
        BRIER.gradient(probabilities, truth, pull),
        atol=1e-9,
    )


def test_what_is_no_notion_or_compares_with_others_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match=r"For a function of your own write FunctionParity\("):
        require_reference("equalized_odds", "overall", "A teacher")
    with pytest.raises(ValueError, match=r"A teacher compares each group with everybody, got Demo"):
        require_reference(DemographicParity(margin=0.1), "overall", "A teacher")
    assert require_reference(BRIER, "overall", "A teacher") is BRIER


@pytest.mark.parametrize(
    "bad",
    [lambda p, t: p.sum(), lambda p, t: p[:1], lambda p, t: p[:, 0] / 0.0 * np.nan],
    ids=["one number", "too few rows", "not finite"],
)
def test_an_own_function_must_return_a_finite_number_for_each_row(bad) -> None:
    probabilities, y, _ = people(4)
    with (
        np.errstate(divide="ignore", invalid="ignore"),
        pytest.raises(ValueError, match=r"h must return one finite number, or m of them, for each"),
    ):
        to_all(FunctionParity, h=bad).values(probabilities, np.eye(2)[y])
    with pytest.raises(TypeError, match="h must be a function of probabilities and true classes"):
        to_all(FunctionParity, h="parity")
