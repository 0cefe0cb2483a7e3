"""PFLDClassifier end to end: claim, charges, noise, margins, accounts, refusals, saving."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from runs import falls_short

from evenhand import (
    Budget,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    PFLDClassifier,
)
from evenhand.baselines.pfld_descent import PFLD, TABLE_SENSITIVITY
from evenhand.fairness import FairnessKind
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.tally import JointTally
from evenhand.privacy import (
    BudgetExceeded,
    FloatNoise,
    Ledger,
    SeededNoise,
    attribute_of,
)

UNIT = {"unit": attribute_of("person"), "neighbors": "change one group label"}


def people(n: int = 3000, k: int = 2, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    group = np.array(["a", "b", "c"])[rng.choice(k, n, p=[0.6, 0.4] if k == 2 else [0.5, 0.3, 0.2])]
    X = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.1] + 1.0
    X[:, 0] += 0.9 * (group == "a")
    y = np.where(X[:, 0] + X[:, 1] / 2 + rng.normal(size=n) > 2.0, "yes", "no")
    return X, y, group


def made(X: Any, y: Any, group: Any, **changes: Any) -> PFLDClassifier:
    given = {
        "budget": Budget(epsilon=2.0, delta=1e-6),
        "fairness": DemographicParity(margin=0.02),
        "noise": SeededNoise(4),
        "random_state": 0,
    }
    return PFLDClassifier(**(given | changes)).fit(X, y, sensitive_features=group)


def gap(model: Any, X: Any, y: Any, group: Any, notion: Any) -> float:
    groups = encode_groups(group)
    classes = model.classes_
    codes = np.searchsorted(classes, y), np.searchsorted(classes, model.predict(X))
    table = JointTally.of(groups.codes, *codes, groups.n_groups, len(classes))
    return float(notion.gap(table.counts if notion.needs_labels else table.predicted.counts))


@pytest.mark.parametrize(
    ("notion", "k"),
    [
        (DemographicParity(margin=0.01), 2),
        (DemographicParity(margin=0.02, reference="pairwise"), 3),
        (EqualizedOdds(margin=0.01, reference="overall"), 2),
    ],
)
def test_a_margin_narrows_the_gap_without_groups_at_prediction(notion: Any, k: int) -> None:
    X, y, group = people(6000, k)
    before = gap(made(X, y, group, fairness=type(notion)(margin=1.0)), X, y, group, notion)
    model = made(X, y, group, fairness=notion, multiplier_rate=0.6)
    assert gap(model, X, y, group, notion) < 0.5 * before
    assert (model.predict(X) == y).mean() > 0.6
    assert model.fairness_kind_ is FairnessKind.WEIGHTS


@pytest.mark.slow
def test_a_network_and_three_classes_are_trained_too() -> None:
    # In the mean over seeds the gap falls by a fifth and more (correct code fails with probability
    # 1e-6); a build whose multipliers do nothing keeps it, and the same runs convict that.
    notion = DemographicParity(margin=0.02)
    for several, hidden in ((False, (8,)), (True, ()), (True, (8, 8))):
        before, after = [], []
        for seed in range(6):
            X, y, group = people(4000, seed=seed)
            labels = np.where(X[:, 1] > 3.0, "maybe", y) if several else y
            for margin, gaps in ((0.02, after), (1.0, before)):
                model = made(
                    X,
                    labels,
                    group,
                    hidden=hidden,
                    n_steps=120,
                    fairness=DemographicParity(margin=margin),
                    noise=SeededNoise(seed),
                    random_state=seed,
                )
                gaps.append(gap(model, X, labels, group, notion))
                assert model.classes_.size == (3 if several else 2)
            assert model.multipliers_.shape == (1, 2, 3 if several else 1)
        free = np.array(before)
        assert not falls_short(0.8 * free - after)
        assert falls_short(0.8 * free - free)


def test_it_says_what_it_claims_and_spends_exactly_its_budget() -> None:
    X, y, group = people(800)
    model = made(X, y, group, noise=None, n_steps=20)
    said = str(model.guarantee_)
    for words in (
        "The release is (2.0, 1e-06)-differentially private for the sensitive attribute of each",
        "change the group label of one person",
        "exact Gaussian DP accounting",
        "the features and class labels of all 800 rows",
        "that each row is another person",
        "what the public features and labels tell of the attribute",
    ):
        assert words in said
    assert model.guarantee_.mu_squared == model.budget.mu_squared
    assert [entry.n_uses for entry in model.ledger_.entries] == [20, 20, 1]
    assert model.budget.mu_squared * (1 - 2e-6) < model.ledger_.spent <= model.budget.mu_squared
    primal, dual, sizes = model.mechanism_
    by_hand = 20 * (primal.l2_sensitivity / primal.sigma) ** 2
    by_hand += 20 * 2 / dual.sigma**2 + 2 / sizes.sigma**2
    assert model.ledger_.spent == pytest.approx(by_hand, rel=1e-9)
    # It adds up with its own kind, and with nothing else.
    both = model.guarantee_ + model.guarantee_
    assert both.epsilon < 2 * 2.0
    with pytest.raises(ValueError, match="Privacy of an attribute alone is not privacy of the"):
        model.guarantee_ + replace(model.guarantee_, unit="record", neighbors="replace one")


def seen_by(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the learner is given."""
    seen: dict[str, Any] = {}
    trained = PFLD.fit

    def watched(self: Any, X: Any, y: Any, groups: Any, **given: Any) -> Any:
        seen.update(X=X, y=y, groups=groups, learner=self, **given)
        return trained(self, X, y, groups, **given)

    monkeypatch.setattr(PFLD, "fit", watched)
    return seen


@pytest.mark.parametrize("notion", [DemographicParity(margin=0.1), EqualizedOdds(margin=0.1)])
def test_the_noise_in_the_steps_is_that_of_their_mechanisms(
    notion: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = seen_by(monkeypatch)
    X, y, group = people(600)
    model = made(X, y, group, fairness=notion, clip_norm=3.0, n_steps=10)
    primal, dual, sizes = model.mechanism_
    strata = 2 if isinstance(notion, EqualizedOdds) else 1
    again = SeededNoise(4)
    of_sizes = again.gaussian(sizes.sigma, (1, 2 * strata))
    assert np.array_equal(seen["primal_noise"], again.gaussian(primal.sigma, (10, 4)))
    assert np.array_equal(seen["dual_noise"], again.gaussian(dual.sigma, (10, 2 * strata)))
    assert primal.l2_sensitivity == seen["learner"].clip_norm == 3.0
    assert dual.l2_sensitivity == sizes.l2_sensitivity == TABLE_SENSITIVITY
    # The sizes by hand: noise added, and what breaks the public sums taken away again.
    codes = (y == "yes").astype(int) if strata == 2 else np.zeros(600, dtype=int)
    for s in range(strata):
        true = np.array([((codes == s) & (group == g)).sum() for g in ("a", "b")])
        noisy = true + of_sizes[0, 2 * s : 2 * s + 2]
        noisy += ((codes == s).sum() - noisy.sum()) / 2
        np.testing.assert_allclose(seen["sizes"][s], noisy)
    np.testing.assert_allclose(model.estimated_shares_.sum(axis=1), 1.0)


def test_the_sizes_that_noise_hides_are_not_divided_by() -> None:
    X, y, _ = people(600)
    rare = np.where(np.arange(600) < 2, "rare", "a")
    model = made(X, y, rare, budget=Budget(epsilon=0.1, delta=1e-6), n_steps=10)
    assert np.isfinite(model.student_.coef_).all()
    assert (model.estimated_shares_ > 0).all()


def test_equal_mechanisms_are_charged_apart() -> None:
    # A clip norm of sqrt(2) and equal shares: two mechanisms of the same value, but for a bit.
    model = made(*people(400), n_steps=5, clip_norm=TABLE_SENSITIVITY, dual_share=0.49)
    assert len(set(model.mechanism_)) == 3
    assert len(model.ledger_.entries) == 3


def test_an_account_of_the_same_unit_can_be_charged_and_another_one_cannot() -> None:
    X, y, group = people(400)
    rows = {"X": X, "y": y, "sensitive_features": group}
    budget = Budget(epsilon=1.0, delta=1e-6)
    account = Ledger(Budget(epsilon=1.2, delta=1e-6), noise=FloatNoise(), **UNIT)
    model = PFLDClassifier(budget, DemographicParity(margin=0.1), n_steps=5)
    first = model.fit(**rows, ledger=account)
    assert account.spent == first.ledger_.spent > 0
    before = account.spent
    with pytest.raises(BudgetExceeded):
        model.fit(**rows, ledger=account)
    assert account.spent == before
    other = Ledger(Budget(epsilon=9.0, delta=1e-6), noise=FloatNoise())
    with pytest.raises(ValueError, match="Privacy of an attribute alone is not privacy of the rec"):
        model.fit(**rows, ledger=other)
    assert other.spent == 0


def test_error_parity_is_about_wrong_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = seen_by(monkeypatch)
    made(*people(300), fairness=ErrorParity(margin=0.1), n_steps=5)
    assert seen["learner"].wrong
    made(*people(300), n_steps=5)
    assert not seen["learner"].wrong
