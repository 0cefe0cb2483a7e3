"""Sums with the owners' own noise: what is held, charged, said; and who may leave."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand
from evenhand import Budget, DemographicParity, FairPATEClassifier, FairSharesClassifier
from evenhand._signing import PrivateKey
from evenhand.owners.digests import PublicRows
from evenhand.owners.noisy_sums import (
    NoisySums,
    Round,
    in_one_place,
    noisy_share,
    plan_round,
)
from evenhand.owners.sum_files import RoundFile, ShareFile
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import BudgetExceeded, Ledger
from evenhand.privacy.noise import SeededNoise

BUDGET = Budget(epsilon=2.0, delta=1e-3)
MARGIN = DemographicParity(margin=0.1)
N_ROWS = 200


def scene(n_owners: int = 30, **more: object):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(N_ROWS, 2)), columns=list("ab"))
    truth = (rows.sum(axis=1) > 0).to_numpy()
    files = [
        VoteFile.cast(
            f"owner {i}",
            np.where(rng.random(N_ROWS) < 0.1, ~truth, truth),
            rows,
            classes=[False, True],
        )
        for i in range(n_owners)
    ]
    plan, ledger = plan_round(
        BUDGET, n_owners=n_owners, public=PublicRows.of(rows), classes=["False", "True"], **more
    )
    return rows, truth, files, plan, ledger


def test_the_aggregator_pays_before_anybody_is_asked_and_each_owner_pays_for_itself() -> None:
    _, _, files, plan, ledger = scene()
    assert ledger.spent > 0.99 * BUDGET.mu_squared
    own = plan.ledger()
    noisy_share(files[0], plan, own)
    assert own.spent == pytest.approx(ledger.spent)
    with pytest.raises(BudgetExceeded):  # who asks again asks for twice the price
        noisy_share(files[0], plan, own)
    large = plan.ledger(Budget(epsilon=9.0, delta=1e-3))
    for times in (1, 2):
        noisy_share(files[0], plan, large)
        assert large.spent == pytest.approx(times * ledger.spent)


def test_a_round_that_is_run_twice_is_charged_twice_to_the_account() -> None:
    account = Ledger(Budget(epsilon=6.0, delta=1e-3), unit="owner")
    spent = []
    for _ in range(2):
        scene(account=account)
        spent.append(account.spent)
    assert spent[1] == pytest.approx(2 * spent[0], rel=1e-6)
    with pytest.raises(ValueError, match="do not add up"):
        scene(account=Ledger(BUDGET, unit="record"))


def test_what_is_held_is_the_sum_of_votes_and_of_all_shares() -> None:
    _, _, files, plan, ledger = scene(n_colluding=3, n_dropouts=4)
    clean = np.sum([file.parts.sum(axis=0)[:, 1:] for file in files], axis=0)
    sums = in_one_place(files, plan, ledger)
    noise = sums.sums - clean
    # Every share has sigma^2 / 23, and thirty of them are in the sum; 6 spreads are 2e-9.
    wanted = plan.sigma**2 * 30 / 23
    assert abs(noise.var() - wanted) < 6 * wanted * np.sqrt(2 / N_ROWS)
    assert sums.shares.variance[0] == pytest.approx(wanted / 30**2)


def test_owners_that_drop_out_cost_their_votes_and_too_many_cost_the_round() -> None:
    _, _, files, plan, ledger = scene(n_dropouts=4)
    fewer = in_one_place(files[:26], plan, ledger)
    assert fewer.n_answered == 26
    assert fewer.shares.shares.shape == (N_ROWS, 2)
    # Twenty-six shares are exactly what is charged for.
    assert fewer.shares.variance[0] == pytest.approx(plan.sigma**2 / 26**2)
    with pytest.raises(ValueError, match="at most 4 may drop out"):
        in_one_place(files[:25], plan, ledger)


def test_a_model_of_sums_says_who_is_trusted_and_is_saved(tmp_path) -> None:
    rows, truth, files, plan, ledger = scene(n_colluding=3, n_dropouts=4)
    groups = np.arange(N_ROWS) % 2
    sums = in_one_place(files, plan, ledger)
    model = FairSharesClassifier.from_votes(sums, rows, groups, fairness=MARGIN, random_state=0)
    assert (model.predict(rows) == truth).mean() > 0.7  # .93, spread .04, over fits
    claim = str(model.guarantee_)
    assert "if the one party that read all votes and drew all shares" in claim
    assert "(2.0, 0.001)-differentially private for each owner" in claim
    assert "at least 23 owners drew their share honestly" in claim
    assert "at most 3 of 30 may side with the aggregator, and at most 4 not answer" in claim
    assert "1.14 times what is charged for" in claim
    assert "trusted with them" not in claim
    assert not any("did not finish" in words for words in model.fitted_.warnings)
    assert ledger.entries[0].settled, "others draw its noise, and all of it stays charged"
    assert ledger.spent > 0.99 * BUDGET.mu_squared
    assert evenhand.load(model.save(tmp_path / "m")).guarantee_ == model.guarantee_
    with pytest.raises(TypeError, match="does not take budget="):
        FairSharesClassifier.from_votes(sums, rows, groups, fairness=MARGIN, budget=BUDGET)
    with pytest.raises(ValueError, match="learns from labels"):
        FairPATEClassifier.from_votes(sums, rows, groups, fairness=MARGIN)


def test_an_owner_refuses_a_round_that_is_not_about_its_votes() -> None:
    rows, _, files, plan, _ = scene()
    others = [
        ({"public": PublicRows.of(rows + 1)}, "about other public rows"),
        ({"classes": ("no", "yes")}, "about other classes"),
        ({"unit": "record"}, "protects another unit"),
        ({"n_teachers": 2}, "expects 2 teachers"),
        ({"may_abstain": True}, "votes of another kind"),
    ]
    for change, words in others:
        other = Round(**(vars(plan) | change))
        with pytest.raises(ValueError, match=words):
            noisy_share(files[0], other, other.ledger())
    with pytest.raises(ValueError, match="The account draws"):
        noisy_share(files[0], plan, Ledger(BUDGET, noise=SeededNoise(0), unit="owner"))


def test_a_plan_is_read_as_it_was_told() -> None:
    plan = scene()[3]
    assert Round.from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    "change",
    [
        *({name: None} for name in ("n_owners", "n_teachers", "n_dropouts", "sigma", "delta")),
        *({"unit": True}, {"public": {"n_rows": 3, "digests": None}}, {"n_colluding": 30}),
    ],
)
def test_a_plan_that_cannot_be_is_refused_when_it_is_read(change: dict, tmp_path: Path) -> None:
    told = RoundFile(plan=scene()[3])
    told.write(tmp_path / "round.json")
    values = json.loads((tmp_path / "round.json").read_text())
    (tmp_path / "round.json").write_text(json.dumps(values | {"plan": values["plan"] | change}))
    with pytest.raises(ValueError, match="is no plan of a round"):
        RoundFile.read(tmp_path / "round.json")


def test_an_owner_that_lies_in_a_file_moves_a_sum_by_what_noise_could() -> None:
    _, _, files, plan, _ = scene()
    told, key = RoundFile(plan=plan), PrivateKey.make()
    known = {"owner 0": key.public}
    honest = noisy_share(files[0], plan, plan.ledger())
    for lie in (honest - 13 * int(plan.most_noise), honest + 13 * int(plan.most_noise)):
        assert "beyond all" in ShareFile.signed("owner 0", told, lie, key).wrong(told, known)
    assert ShareFile.signed("owner 0", told, honest, key).wrong(told, known) == ""


def test_colluding_and_absent_owners_cost_noise_and_not_privacy() -> None:
    noise = {}
    for many in (0, 10):
        _, _, files, plan, ledger = scene(n_colluding=many)
        shares = in_one_place(files, plan, ledger).shares
        noise[many] = shares.variance[0]
    assert noise[10] == pytest.approx(noise[0] * 30 / 20, rel=0.01)


def test_sums_of_another_shape_are_refused() -> None:
    _, _, _, plan, ledger = scene()
    with pytest.raises(ValueError, match="sums must have shape"):
        NoisySums(round=plan, sums=np.zeros((3, 1), int), n_answered=30, ledger=ledger)


@pytest.mark.parametrize("n_colluding", [0, 1])
def test_an_owner_that_reads_the_sums_takes_its_own_share_away(n_colluding: int) -> None:
    _, _, files, _, _ = scene()
    plan, ledger = plan_round(
        BUDGET,
        n_owners=3,
        public=files[0].public,
        classes=files[0].classes,
        n_colluding=n_colluding,
    )
    shares = [noisy_share(file, plan, plan.ledger()) for file in files[:3]]
    sums = NoisySums(round=plan, sums=np.sum(shares, axis=0), n_answered=3, ledger=ledger)
    others = np.sum([file.parts.sum(axis=0)[:, -1:] for file in files[1:3]], axis=0)
    left = (sums.sums - shares[0] - others).var()  # what protects the others from the first
    wanted = plan.sigma**2 * 2 / (3 - n_colluding)  # two of three shares, or two of two
    assert abs(left - wanted) < 6 * wanted * np.sqrt(2 / N_ROWS)
    assert "an owner that kept its share and reads what is released counts" in sums.vouched_for[-1]
