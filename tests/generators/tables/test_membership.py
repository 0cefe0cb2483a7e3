"""Membership inference on drawn rows: it convicts copies, and finds nothing where nothing is."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import FAINT
from runs import FALSE_ALARM
from scipy.stats import norm
from sklearn.metrics import roc_curve

from evenhand import show_values
from evenhand.generators import MarginalSynthesizer, NonPrivateSynthesizer
from evenhand.generators.tables.membership import (
    Membership,
    PrivateMembership,
    attack_membership,
)
from evenhand.generators.utility import roc
from evenhand.privacy import SeededNoise
from evenhand.testing.generators import BUDGET, ROLES, SCHEMA, table

pytestmark = FAINT
ROWS = table(8000, seed=3)
PRIVATE, TEST, FRESH = ROWS[:2000], ROWS[2000:6000], ROWS[6000:]


@cache
def fitted() -> MarginalSynthesizer:
    return MarginalSynthesizer(random_state=0).fit(PRIVATE, budget=BUDGET, schema=SCHEMA, **ROLES)


def attacked(
    drawn: pd.DataFrame, private: pd.DataFrame = PRIVATE, test: pd.DataFrame = TEST
) -> Membership:
    return attack_membership(fitted(), drawn, private, test).reveal_to_curator()


def test_a_generator_that_draws_copies_is_convicted() -> None:
    found = attacked(PRIVATE.sample(frac=1.0, random_state=0))
    by_distance, by_density = found.attacks
    assert by_distance.auc.value > 0.95  # some rows of others are the same as a member's
    assert by_density.auc.low > found.allowed.auc
    assert by_distance.found[-1][1].low > 0.95
    assert found.above == ("distance", "density")
    assert (found.n_members, found.n_others, found.n_reference) == (2000, 2000, 2000)


@pytest.mark.filterwarnings("ignore:no category of 'code' stands out")
def test_a_column_that_is_drawn_as_other_does_not_hide_copies() -> None:
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 400, len(rows)).astype(str) for rows in (PRIVATE, TEST)]
    private, test = (rows.assign(code=c) for rows, c in zip((PRIVATE, TEST), codes, strict=True))
    made = MarginalSynthesizer(random_state=0).fit(
        private, budget=BUDGET, schema=SCHEMA, keep=["code"], **ROLES
    )
    assert set(made.sample(100, random_state=0)["code"]) == {"other"}
    found = attack_membership(made, PRIVATE.assign(code="other"), private, test)
    assert found.reveal_to_curator().above == ("distance", "density")


def test_copies_of_every_tenth_row_are_convicted_by_few_false_alarms() -> None:
    # Rows with a score are like nobody else's.
    members, test, drawn = (
        rows.dropna(subset="score")
        for rows in (PRIVATE, TEST, fitted().sample(2000, random_state=0))
    )
    found = attacked(pd.concat([drawn, members[::10]]), members, test)
    by_distance = found.attacks[0]
    assert by_distance.auc.value < 0.6  # as a mean over all rows it hardly shows
    share, own = by_distance.found[0]
    assert share == 0.01
    assert own.low > found.allowed.found(share)
    assert "distance" in found.above


def test_the_default_generator_stays_below_what_its_claim_allows() -> None:
    found = attacked(fitted().sample(3000, random_state=0))
    assert found.above == ()
    for attack in found.attacks:
        assert attack.auc.value < found.allowed.auc < 0.7
        assert (attack.curve <= found.allowed.found(attack.accused) + 0.03).all()
    # What is allowed is the ledger's mu, which is tighter than epsilon and delta.
    assert found.allowed.auc == pytest.approx(
        norm.cdf(fitted().ledger_.budget.mu_squared ** 0.5 / 2**0.5), abs=1e-6
    )


@pytest.mark.slow
def test_rows_that_know_no_member_find_none_and_copies_of_a_tenth_would_be_seen() -> None:
    def surprise(drawn: pd.DataFrame) -> float:
        n = len(PRIVATE), 2000
        # The variance of a rank sum without ties, which are fewer: it is an upper bound.
        spread = ((n[0] + n[1] + 1) / (12 * n[0] * n[1])) ** 0.5
        return float(attacked(drawn).attacks[0].auc.value - 0.5) / spread

    limit = norm.isf(FALSE_ALARM / 2)
    assert abs(surprise(FRESH)) < limit
    assert surprise(pd.concat([FRESH, PRIVATE[::5]])) > limit


def test_a_model_that_overfits_is_seen_by_density_before_it_is_by_distance() -> None:
    few = PRIVATE[:300]
    plain = NonPrivateSynthesizer(random_state=0).fit(few, schema=SCHEMA, **ROLES)
    found = attack_membership(
        plain, plain.sample(4000, balance=(), random_state=0), few, TEST
    ).reveal_to_curator()
    by_distance, by_density = found.attacks
    assert by_density.auc.low > 0.5
    assert by_density.auc.value > by_distance.auc.value
    # Without a claim everything is allowed, and nothing is above it.
    assert found.allowed.auc == 1.0
    assert found.above == ()


@pytest.mark.slow
def test_a_seeded_run_allows_everything_for_its_claim_does_not_hold() -> None:
    seeded = MarginalSynthesizer(noise=SeededNoise(0), random_state=0)
    seeded.fit(PRIVATE, budget=BUDGET, schema=SCHEMA, **ROLES)
    found = attack_membership(seeded, seeded.sample(300, random_state=0), PRIVATE, TEST)
    assert found.reveal_to_curator().allowed.found(0.01) == 1.0


@cache
def unseen() -> PrivateMembership:
    return attack_membership(fitted(), fitted().sample(300, random_state=0), PRIVATE, TEST)


SHOWS: dict[str, Callable[[object], object]] = {
    "float": float,  # type: ignore[arg-type]
    "array": np.asarray,
    "json": json.dumps,
    "pickle": pickle.dumps,
    "compare": lambda found: found == 1,
    "iterate": lambda found: list(found),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("way", SHOWS)
def test_what_was_found_is_private_and_has_one_door(way: str) -> None:
    found = unseen()
    assert (repr(found), str(found), f"{found}", str([found])) == (
        *["<private>"] * 3,
        "[<private>]",
    )
    assert copy.deepcopy(found) is found
    with pytest.raises(TypeError):
        SHOWS[way](found)
    assert isinstance(found.reveal_to_curator(), Membership)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers() -> None:
    drawn = fitted().sample(1000, random_state=0)
    one, again = (attacked(drawn).attacks[0].auc for _ in range(2))
    assert one == again


@given(
    scores=st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.9]), min_size=4, max_size=30),
    data=st.data(),
)
def test_the_roc_curve_is_scikit_learns(scores: list[float], data: st.DataObject) -> None:
    n = len(scores)
    truth = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    if truth.all() or not truth.any():
        truth[0] = not truth[0]
    accused, found, _ = roc_curve(truth, scores, drop_intermediate=False)
    mine = roc(truth, np.array(scores))(np.ones(n))
    assert mine[0] == pytest.approx(accused)
    assert mine[1] == pytest.approx(found)


def test_too_few_rows_and_missing_columns_are_refused_without_private_counts() -> None:
    drawn = fitted().sample(300, random_state=0)
    with pytest.raises(ValueError, match="the number of test rows must be"):
        attack_membership(fitted(), drawn, PRIVATE, TEST[:199])
    with pytest.raises(ValueError, match=r"at least 100 private rows.*got \(not shown\)"):
        attack_membership(fitted(), drawn, PRIVATE[:77], TEST)
    with show_values(), pytest.raises(ValueError, match="got 77"):
        attack_membership(fitted(), drawn, PRIVATE[:77], TEST)
    with pytest.raises(ValueError, match="test table has no column 'job'"):
        attack_membership(fitted(), drawn, PRIVATE, TEST.drop(columns="job"))


def test_what_is_above_goes_by_the_whole_interval() -> None:
    found = attacked(fitted().sample(500, random_state=0))
    attack = found.attacks[0]
    limit = found.allowed.auc
    touching = replace(attack.auc, value=0.99, low=limit, high=1.0)
    beyond = replace(attack.auc, value=0.99, low=limit + 1e-6, high=1.0)
    for auc, above in ((touching, ()), (beyond, ("distance",))):
        assert replace(found, attacks=(replace(attack, auc=auc),)).above == above
