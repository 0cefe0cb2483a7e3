"""What publishing costs is the sum of all releases, and never less."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from claims import a_claim
from hypothesis import given
from hypothesis import strategies as st

from evenhand.frontier import Run
from evenhand.frontier.cost import ReleaseCost, choosing_cost
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.selection import (
    NegativeBinomialRepetitions,
    PoissonRepetitions,
    gaussian_curve,
)

Make = Callable[..., Run]


@given(st.lists(st.floats(0.001, 3.0), min_size=1, max_size=6))
def test_gaussian_runs_cost_what_their_guarantees_add_up_to(
    run_of: Make, costs: list[float]
) -> None:
    # A second derivation: Guarantee + Guarantee, as one model after another would report it.
    claims = [
        a_claim(epsilon=epsilon_from_mu(math.sqrt(mu2), 1e-5), mu_squared=mu2) for mu2 in costs
    ]
    runs = [
        run_of(seed=i, mu_squared=c.mu_squared, epsilon=c.epsilon, guarantee=c.to_dict())
        for i, c in enumerate(claims)
    ]
    together = sum(claims[1:], claims[0])
    cost = ReleaseCost.of(runs)
    assert cost.epsilon == pytest.approx(together.epsilon)
    assert cost.epsilon >= max(c.epsilon for c in claims) * (1 - 1e-9)
    assert cost.parts[0].mu_squared == pytest.approx(sum(costs))


def test_runs_known_at_one_delta_only_are_added_by_basic_composition(run_of: Make) -> None:
    runs = [
        run_of(mu_squared=0.3),
        run_of(seed=1, mu_squared=0.2),
        run_of(method="dpsgd", mu_squared=None, epsilon=2.0, delta=1e-6),
        run_of(method="dpsgd", seed=1, mu_squared=None, epsilon=1.0, delta=2e-6),
    ]
    (part,) = ReleaseCost.of(runs).parts
    assert part.delta == pytest.approx(1e-5 + 3e-6)
    assert part.epsilon == pytest.approx(3.0 + epsilon_from_mu(math.sqrt(0.5), 1e-5))
    assert "2 are added by basic composition" in str(part)
    (part,) = ReleaseCost.of(runs, delta=1e-4).parts
    assert part.delta == pytest.approx(1e-4 + 3e-6)
    assert part.epsilon == pytest.approx(3.0 + epsilon_from_mu(math.sqrt(0.5), 1e-4))


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": math.inf},
        {"guarantee": {"unit": "record", "neighbors": "replace one", "holds": False}},
        {"guarantee": {}},
    ],
)
def test_one_run_without_a_promise_makes_the_price_infinite(run_of: Make, changes: dict) -> None:
    cost = ReleaseCost.of([run_of(), run_of(seed=1, **changes)])
    assert cost.epsilon == math.inf
    assert "has no bound on its cost: 1 of them promises nothing" in str(cost)
    assert json.loads(json.dumps(cost.to_dict(), allow_nan=False))["parts"][0]["epsilon"] is None


def test_deltas_that_add_up_to_one_promise_nothing(run_of: Make) -> None:
    runs = [run_of(seed=i, mu_squared=None, delta=0.5) for i in range(2)]
    assert ReleaseCost.of(runs).epsilon == math.inf
    assert "promises nothing: the deltas add up to 1" in str(ReleaseCost.of(runs))


def test_costs_of_two_units_or_data_sets_stand_side_by_side(run_of: Make) -> None:
    person = {"unit": "person", "neighbors": "add or remove one", "holds": True}
    runs = [
        run_of(mu_squared=0.3),
        run_of(seed=1, mu_squared=0.4, guarantee=person),
        run_of(data="credit", mu_squared=0.2),
    ]
    cost = ReleaseCost.of(runs)
    assert [(p.data, p.unit, p.mu_squared) for p in cost.parts] == [
        ("adult", "person", 0.4),
        ("adult", "record", 0.3),
        ("credit", "record", 0.2),
    ]
    assert cost.epsilon == cost.parts[0].epsilon
    assert "each person (neighbors: add or remove one)" in str(cost)
    # Who is in adult pays for both.
    more = "the 2 prices of adult are for different neighbors or units and do not add up"
    assert more in str(cost)
    assert more in cost.to_dict()["sentence"]
    assert "do not add up" not in str(ReleaseCost.of(runs[1:]))


def test_the_sentence_says_what_is_left_out(run_of: Make) -> None:
    free = [
        run_of(data_kind="public stand-in"),
        run_of(data_kind="published", guarantee={}, epsilon=1.0),
    ]
    cost = ReleaseCost.of(free)
    assert cost.epsilon == 0.0
    assert str(cost).startswith("No run here was trained on private data")
    assert "1 run on stand-in data cost nothing" in str(cost)
    assert "1 published by others are not counted" in str(cost)
    paid = [
        *free,
        run_of(seed=1, measured_on="private holdout, not covered"),
        run_of(seed=2, measured_on="private holdout, with noise"),
    ]
    said = str(ReleaseCost.of(paid))
    assert said.startswith("Publishing 2 runs on adult is (")
    assert "measurements of 1 on private rows are not covered" in said
    assert "measurements of 1 on private rows carry noise, charged to a ledger of its own" in said
    assert "sharing teachers makes no run cheaper" in said
    assert "choosing one of these runs because its numbers on private rows are the best" in said


def test_choosing_is_priced_at_the_dearest_setting_and_its_score(run_of: Make) -> None:
    runs = [run_of(mu_squared=0.1), run_of(seed=1, mu_squared=0.3)]
    law = NegativeBinomialRepetitions.of_mean(5, shape=1)
    price = choosing_cost(runs, law, delta=1e-5, score_mu_squared=0.05)
    assert price == law.cost(gaussian_curve(0.35)).epsilon(1e-5)
    assert price > choosing_cost(runs, law, delta=1e-5, score_mu_squared=0.0)
    # What it is for: a grid of hundreds costs far more when all of it is published.
    grid = [run_of(seed=i, mu_squared=0.3) for i in range(300)]
    all_of_it = ReleaseCost.of(grid).epsilon
    assert (
        choosing_cost(grid, PoissonRepetitions(mean=20), delta=1e-5, score_mu_squared=0.0)
        < 0.1 * all_of_it
    )


def test_a_choice_that_cannot_be_priced_is_refused(run_of: Make) -> None:
    law = PoissonRepetitions(mean=3)
    with pytest.raises(ValueError, match="not covered: mu_squared is not known for 1 of 2 runs"):
        choosing_cost(
            [run_of(), run_of(seed=1, mu_squared=None)], law, delta=1e-5, score_mu_squared=0
        )
    with pytest.raises(ValueError, match="got 2 runs in 2 such groups"):
        choosing_cost([run_of(), run_of(data="b")], law, delta=1e-5, score_mu_squared=0)
    with pytest.raises(ValueError, match="delta must lie strictly between"):
        ReleaseCost.of([run_of()], delta=0)
