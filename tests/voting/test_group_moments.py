"""Sums of public features by private group: what one group moves, what it costs, what comes out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from runs import FALSE_ALARM
from scipy.stats import chi2

from evenhand.privacy import (
    Budget,
    BudgetExceeded,
    DiscreteNoise,
    Ledger,
    SeededNoise,
    attribute_of,
)
from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL
from evenhand.voting import group_moments
from evenhand.voting.group_moments import release_group_moments

BUDGET = Budget(epsilon=1.0, delta=1e-6)


def account(noise=None, neighbors: str = GROUP_LABEL) -> Ledger:
    unit = {
        GROUP_LABEL: attribute_of("person"),
        GROUP_AND_CLASS_LABEL: attribute_of("person", and_class_label=True),
    }.get(neighbors, "record")
    return Ledger(BUDGET, noise=noise or SeededNoise(0), unit=unit, neighbors=neighbors)


@pytest.fixture
def released(monkeypatch):
    """What would be noised, and by which mechanism."""
    seen: list[tuple[object, np.ndarray]] = []
    release = Ledger.release

    def watched(ledger, mechanism, counts, *, purpose):
        seen.append((mechanism, np.array(counts)))
        return release(ledger, mechanism, counts, purpose=purpose)

    monkeypatch.setattr(group_moments.Ledger, "release", watched)
    return seen


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("by_unit", [False, True])
def test_no_change_of_a_group_moves_the_sums_by_more_than_was_declared(
    n_groups, by_unit, released
) -> None:
    # Brute force: every person (of one row, or of two) in every group, and every other group.
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(6, 3))
    units = np.array([0, 0, 1, 1, 2, 2]) if by_unit else np.arange(6)
    z = rng.integers(n_groups, size=n_groups * 2 if n_groups == 3 else 6)
    settings = {"n_groups": n_groups, "mu_squared": 0.01, "units": units if by_unit else None}
    worst = 0.0
    for who, to in itertools.product(np.unique(units), range(n_groups)):
        other = np.where(units == who, to, z)
        for groups in (z, other):
            release_group_moments(groups, phi, ledger=account(), **settings)
        (mechanism, before), (_, after) = released[-2:]
        moved = float(np.sqrt(((before - after) ** 2).sum()))
        assert moved <= mechanism.l2_sensitivity * (1 + 1e-12)
        worst = max(worst, moved / mechanism.l2_sensitivity)
    if not by_unit:  # with units the declared one is by the triangle inequality
        assert worst > 0.5  # and not much more than what happens


@pytest.mark.parametrize("ids", [("17", "17.0"), (17, "17"), (17, 17.0)], ids=str)
def test_rows_of_one_person_move_together_however_the_id_is_written(ids, released) -> None:
    # So many spellings, one person, whom teachers know as one: half the norm would be moved unpaid.
    for units in (["17", "17"], np.array(ids, dtype=object)):
        release_group_moments(
            [0, 1], np.ones((2, 3)), n_groups=2, mu_squared=0.01, ledger=account(), units=units
        )
    (one, _), (spelled, _) = released
    assert spelled.l2_sensitivity == one.l2_sensitivity


@pytest.mark.parametrize("noise", [SeededNoise(1), DiscreteNoise()], ids=["float", "exact"])
def test_it_costs_what_it_may_and_the_noise_is_what_it_says(noise) -> None:
    rng = np.random.default_rng(1)
    phi, z = rng.uniform(-1, 1, size=(400, 200)), rng.integers(2, size=400)
    ledger = account(noise)
    told = release_group_moments(z, phi, n_groups=2, mu_squared=0.02, ledger=ledger)
    assert ledger.spent == pytest.approx(0.02, rel=1e-3)
    assert ledger.spent <= 0.02
    # 200 draws: chi-square. Half the standard deviation, a ratio of .25, is below the lower end.
    away = told.sums[1] - told.features[z == 1].sum(axis=0)
    low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 200) / 200
    assert 0.25 * 1.5 < low < (away**2).mean() / told.variance < high
    np.testing.assert_allclose(told.sums.sum(axis=0), told.features.sum(axis=0))
    np.testing.assert_allclose(told.features, phi, atol=1 / 64)
    assert (np.abs(told.features) <= np.abs(phi)).all()  # rounding raises no norm


def test_three_groups_add_up_to_the_public_total() -> None:
    rng = np.random.default_rng(2)
    phi, z = rng.uniform(-1, 1, size=(300, 5)), rng.integers(3, size=300)
    told = release_group_moments(z, phi, n_groups=3, mu_squared=0.02, ledger=account())
    np.testing.assert_allclose(told.sums.sum(axis=0), told.features.sum(axis=0))


def test_ledgers_of_records_are_refused_and_nothing_is_spent_beyond_a_budget() -> None:
    with pytest.raises(ValueError, match=r"taken as public.*neighbors are 'replace one'"):
        release_group_moments(
            [0, 1],
            np.ones((2, 1)),
            n_groups=2,
            mu_squared=0.01,
            ledger=account(neighbors="replace one"),
        )
    both = account(neighbors=GROUP_AND_CLASS_LABEL)
    release_group_moments([0, 1], np.ones((2, 1)), n_groups=2, mu_squared=0.01, ledger=both)
    assert 0.0 < both.spent <= 0.01
    ledger = account()
    with pytest.raises(BudgetExceeded):
        release_group_moments([0, 1], np.ones((2, 1)), n_groups=2, mu_squared=9.0, ledger=ledger)
    assert ledger.spent == 0.0
