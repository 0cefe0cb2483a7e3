"""RON-Gauss and FFPDG: the sensitivity that holds, means that stay, groups that are repaired."""

import math

import numpy as np
import pandas as pd
import pytest
from marks import FAINT
from scipy.linalg import hadamard

from evenhand.generators import FFPDGSynthesizer, RONGaussSynthesizer
from evenhand.generators.aggregators import OuterSums
from evenhand.generators.budget_plan import noisy_sum
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Budget, FloatNoise, SeededNoise, audit_epsilon_lower_bound
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.testing.generators import BUDGET, ROLES, SCHEMA, SynthesizerContract, table

pytestmark = FAINT


class TestRONGauss(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return RONGaussSynthesizer(noise=SeededNoise(0), random_state=0)


class TestFFPDG(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return FFPDGSynthesizer(noise=SeededNoise(0), random_state=0)


def test_no_rounding_turns_the_products_of_orthogonal_rows_farther_apart() -> None:
    # Unit vectors at right angles are the farthest; z is rounded before it is multiplied, so that
    # products of what is left are as far apart as products can be. Exactly, in whole numbers.
    products = OuterSums(n_features=2, n_conditions=1)
    here = np.zeros(1, dtype=np.int64)
    for x in np.random.default_rng(1).uniform(0.0, np.pi, 5000):
        one, other = (
            products.total(np.array([[np.cos(t), np.sin(t)]]), here) for t in (x, x + 0.5 * np.pi)
        )
        moved = sum(int(d) ** 2 for d in one - other)
        assert moved <= 2 * round(1 / products.unit) ** 2
        assert moved >= 1.998 * round(1 / products.unit) ** 2


def test_sums_of_products_are_exact() -> None:
    # The same in Python's whole numbers; a matrix product in doubles must not lose one of them.
    rng = np.random.default_rng(2)
    z = rng.normal(size=(300, 3))
    z /= np.linalg.norm(z, axis=1, keepdims=True) * rng.uniform(1.0, 2.0, (300, 1))
    whole = np.trunc(z * 2**14).astype(int).tolist()
    by_hand = [
        sum(row[i] * row[j] for row in whole) * (985 if i == j else 1393)
        for i in range(3)
        for j in range(i, 3)
    ]
    products = OuterSums(n_features=3, n_conditions=1)
    assert products.total(z, np.zeros(300, dtype=np.int64)).tolist() == by_hand
    assert 985 / products.unit**-1 == pytest.approx(2.0**-28)
    assert 1393**2 < 2 * 985**2


def test_products_come_back_as_the_matrices_they_were() -> None:
    z = np.random.default_rng(0).normal(size=(50, 4)) / 4
    z /= np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1.0)
    where = np.arange(50) % 2
    products = OuterSums(n_features=4, n_conditions=2)
    back = products.apart(products.total(z, where).astype(float) * products.unit)
    for c in (0, 1):
        assert back[c] == pytest.approx(z[where == c].T @ z[where == c], abs=25 * 2.0**-13)


def test_an_attack_on_the_products_stays_below_the_claim_and_convicts_half_the_noise() -> None:
    # As for the other aggregators; the bound is wrong with a probability of at most 1e-6.
    products = OuterSums(n_features=2, n_conditions=1)
    one = products.total(np.array([[0.6, 0.8]]), np.zeros(1, dtype=np.int64))
    claimed = epsilon_from_mu(1.0, 1e-3)
    step = noisy_sum(
        products, mu_squared=1.0, n_steps=1, neighbors="add or remove one", noise=FloatNoise()
    )
    rng = np.random.default_rng(3)

    def found(sigma: float) -> float:
        scores = []
        for sums in (one, 0 * one):
            drawn = rng.normal(0.0, sigma, (50_000, len(sums)))
            noisy = step.decide(np.broadcast_to(sums, drawn.shape), drawn)
            scores.append(noisy @ one / np.linalg.norm(one))
        return audit_epsilon_lower_bound(*scores, delta=1e-3, confidence=1 - 1e-6)

    assert 0.5 * claimed < found(step.sigma) < claimed
    assert found(step.sigma / 2) > claimed


@pytest.mark.parametrize("p", [4, 64, 128])
def test_the_published_bound_is_too_small_by_half_the_root_of_the_dimension(p: int) -> None:
    # Two rows of a Hadamard matrix, of norm 1: the L1 distance of their products is p.
    one, other = hadamard(p)[:2] / math.sqrt(p)
    moved = np.abs(np.outer(one, one) - np.outer(other, other)).sum()
    assert moved == pytest.approx(p)
    assert moved / (2 * math.sqrt(p)) == pytest.approx(math.sqrt(p) / 2)


def test_released_means_are_those_of_the_rows_and_dependence_survives() -> None:
    # At a generous budget: shares of states by label within .02, and a pair that always agrees.
    rng = np.random.default_rng(0)
    n = 8000
    a = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "a": np.array(["u", "v"])[a],
            "b": np.array(["x", "y"])[a],
            "c": rng.choice(["p", "q", "r"], n, p=[0.05, 0.15, 0.8]),
            "y": np.where(rng.random(n) < 0.3 + 0.4 * a, "yes", "no"),
            "s": rng.choice(["F", "M"], n),
        }
    )
    made = RONGaussSynthesizer(noise=SeededNoise(0), random_state=0).fit(
        frame, label="y", sensitive="s", budget=Budget(epsilon=50.0, delta=1e-5)
    )
    rows = made.sample(8000, balance=(), random_state=0)
    for label in ("no", "yes"):
        real, drawn = (t.loc[t["y"] == label, "c"] for t in (frame, rows))
        assert abs((real == "p").mean() - (drawn == "p").mean()) < 0.02
    assert ((rows["a"] == "u") == (rows["b"] == "x")).mean() > 0.75  # .5 if drawn apart


def test_repair_takes_the_group_out_of_the_features_within_a_label() -> None:
    def apart(repair: float) -> float:
        made = FFPDGSynthesizer(repair=repair, noise=SeededNoise(0), random_state=0).fit(
            table(), **ROLES, budget=BUDGET, schema=SCHEMA
        )
        rows = made.sample(8000, conditions={"rich": "no"}, random_state=0)
        hours = rows.groupby("sex", observed=True)["hours"].mean()
        return float(hours["M"] - hours["F"])

    assert apart(0.0) > 1.5
    # Equal distributions: 4000 rows of standard deviation 10 each differ by .22, five times is 1.1.
    assert abs(apart(1.0)) < 1.1


def test_settings_that_make_no_sense_are_refused() -> None:
    for made, message in (
        (RONGaussSynthesizer(n_dimensions=0), "n_dimensions must be at least 1"),
        (FFPDGSynthesizer(repair=1.5), r"repair must lie in \[0, 1\]"),
    ):
        with pytest.raises(ValueError, match=message):
            made.fit(table(), **ROLES, budget=BUDGET, schema=SCHEMA)
    with pytest.raises(ValueError, match="n_features must be at least 1"):
        OuterSums(n_features=0, n_conditions=1)
