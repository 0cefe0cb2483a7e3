"""A model of the votes of owners: claim, price and what it learns."""

import numpy as np
import pandas as pd
import pytest

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.owners.collection import OwnerVotes, VotesRefused
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import BudgetExceeded, Ledger

BUDGET = Budget(epsilon=3.0, delta=1e-3)
MARGIN = DemographicParity(margin=0.1)


def scene(n_owners: int = 40, k: int = 1, unit: str = "owner", seed: int = 0, **more: object):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.normal(size=(600, 3)), columns=list("abc"))
    groups = rng.integers(2, size=600)
    truth = (rows.sum(axis=1) > 0).to_numpy()
    said = [
        VoteFile.cast(
            f"owner {i}",
            np.where(rng.random((k, 600)) < 0.15, ~truth, truth).astype(int),
            rows,
            classes=[0, 1],
            unit=unit,
            **more,
        )
        for i in range(n_owners)
    ]
    return OwnerVotes.of(said, signed=False), rows, groups, truth.astype(int)


@pytest.mark.parametrize("method", [FairSharesClassifier, FairPATEClassifier])
def test_a_model_of_votes_learns_keeps_its_margin_and_is_saved(method: type, tmp_path) -> None:
    votes, rows, groups, truth = scene()
    model = method.from_votes(votes, rows, groups, budget=BUDGET, fairness=MARGIN, random_state=0)
    # 40 owners that are right in .85: by Hoeffding the majority is wrong on hardly a row.
    assert (model.predict(rows) == truth).mean() > 0.8
    assert model.within_margin_
    assert model.ledger_.spent <= BUDGET.mu_squared
    loaded = evenhand.load(model.save(tmp_path / "m"))
    assert loaded.guarantee_ == model.guarantee_
    assert (loaded.predict(rows) == model.predict(rows)).all()


def test_the_claim_names_the_unit_and_who_is_trusted() -> None:
    for unit in ("owner", "record"):
        votes, rows, _, _ = scene(unit=unit, k=2)
        claim = str(PATEClassifier.from_votes(votes, rows, budget=BUDGET).guarantee_)
        assert f"for each {unit} (neighbors: replace one {unit})" in claim
        assert "trusted with them" in claim
        assert "the names of the 40 owners, the number of their teachers (2 each)" in claim
        assert ("reached one of its teachers only" in claim) == (unit == "record")


def test_the_noise_of_a_unit_grows_with_the_votes_that_it_moves() -> None:
    found = {}
    for unit, k, more in (
        ("owner", 1, {}),
        ("owner", 3, {}),
        ("record", 3, {}),
        ("owner", 3, {"may_abstain": True}),
    ):
        votes, rows, groups, _ = scene(unit=unit, k=k, **more)
        model = FairSharesClassifier.from_votes(
            votes, rows, groups, budget=BUDGET, fairness=MARGIN, random_state=0
        )
        sigma = model.mechanism_.histograms[0].sigma
        # In votes.
        found[unit, k, bool(more)] = sigma / votes.scale
    assert found["owner", 3, False] == pytest.approx(3 * found["owner", 1, False], rel=1e-3)
    assert found["record", 3, False] == pytest.approx(found["owner", 1, False], rel=1e-3)
    # To say beforehand that a row may be left out costs no noise: withheld votes are divided.
    assert found["owner", 3, True] == pytest.approx(found["owner", 3, False], rel=1e-3)


def test_a_second_round_is_charged_as_the_first_and_an_account_of_records_is_refused() -> None:
    votes, rows, groups, _ = scene(n_owners=20)
    account = Ledger(Budget(epsilon=5.0, delta=1e-3), unit="owner")
    settings = {"budget": BUDGET, "fairness": MARGIN, "ledger": account, "random_state": 0}
    FairSharesClassifier.from_votes(votes, rows, groups, **settings)
    once = account.spent
    FairSharesClassifier.from_votes(votes, rows, groups, **settings)
    assert account.spent == pytest.approx(2 * once, rel=1e-6)
    with pytest.raises(ValueError, match="their costs do not add up"):
        FairSharesClassifier.from_votes(
            votes, rows, groups, **(settings | {"ledger": Ledger(BUDGET, unit="record")})
        )


def test_what_cannot_be_is_refused_before_anything_is_spent() -> None:
    votes, rows, groups, _ = scene(n_owners=5)
    account = Ledger(BUDGET, unit="owner")
    settings = {"budget": BUDGET, "fairness": MARGIN, "ledger": account}
    with pytest.raises(VotesRefused, match="about other public rows than X_public"):
        FairSharesClassifier.from_votes(votes, rows + 1, groups, **settings)
    with pytest.raises(TypeError, match="from_votes does not take n_teachers="):
        FairSharesClassifier.from_votes(votes, rows, groups, n_teachers=3, **settings)
    with pytest.raises(ValueError, match="sensitive_features_public is missing"):
        FairSharesClassifier.from_votes(votes, rows, **settings)
    with pytest.raises(ValueError, match="classes= names"):
        FairSharesClassifier.from_votes(votes, rows, groups, classes=["x", "y"], **settings)
    tiny = Budget(epsilon=1e-3, delta=1e-9)
    with pytest.raises(BudgetExceeded):
        FairPATEClassifier.from_votes(votes, rows, groups, budget=tiny, fairness=MARGIN)
    assert account.spent == 0
