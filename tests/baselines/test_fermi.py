"""DPFERMIClassifier end to end: what it claims, whose shares it may know, refusals, saving."""

from typing import Any

import numpy as np
import pytest
from runs import falls_short

import evenhand
from evenhand import Budget, DemographicParity, DPFERMIClassifier, EqualizedOdds
from evenhand.baselines.fermi_descent import FERMI
from evenhand.estimators.ledgers import split_epsilon
from evenhand.privacy import SeededNoise
from evenhand.report.spending import Spending


def fit(parts: Any, model: Any, **changes: Any) -> Any:
    given = {
        "X_public": parts.X_public,
        "sensitive_features": parts.groups,
        "sensitive_features_public": parts.groups_public,
    }
    return model.fit(parts.X, parts.y, **(given | changes))


def test_it_learns_within_its_budget_and_says_what_it_claims(parts: Any) -> None:
    model = DPFERMIClassifier(Budget(epsilon=3.0, delta=1e-6), n_steps=100, batch_size=200)
    fit(parts, model)
    said = str(model.guarantee_)
    assert said.startswith("The release is (3.0, 1e-06)-differentially private for each record")
    for words in (
        "add or remove one record",
        "privacy loss distribution of the Poisson-subsampled Gaussian",
        "the groups of 300 public rows, and so their shares",
        "the features of the 300 public rows",
    ):
        assert words in said
    assert model.guarantee_.mu_squared is None  # it does not add up with Gaussian costs
    (entry,) = model.ledger_.entries
    assert entry.n_uses == 1
    assert 2.99 < model.ledger_.spent_epsilon(1e-6) <= 3.0
    assert (model.predict(parts.X) == parts.y).mean() > 0.75


@pytest.mark.slow
def test_more_weight_narrows_the_gap_without_groups_at_prediction(
    loose: dict[str, Any],
) -> None:
    def gap(weight: float, seed: int) -> float:
        rng = np.random.default_rng(seed)
        group = rng.choice(["a", "b"], 4000, p=[0.7, 0.3])
        X = rng.normal(size=(4000, 2)) + np.outer(group == "a", [0.8, 0.0])
        y = X.sum(axis=1) + rng.normal(size=4000) > 0.5
        given = loose | {"n_steps": 400, "noise": SeededNoise(seed), "random_state": seed}
        model = DPFERMIClassifier(**given, fairness_weight=weight)
        model.fit(
            X[:3000],
            y[:3000],
            sensitive_features=group[:3000],
            X_public=X[3000:],
            sensitive_features_public=group[3000:],
        )
        yes = model.predict(X)
        return float(abs(yes[group == "a"].mean() - yes[group == "b"].mean()))

    free, held = np.array([[gap(weight, seed) for weight in (0.0, 20.0)] for seed in range(10)]).T
    assert not falls_short(free - 2 * held)
    assert falls_short(free - 2 * free)  # a weight that does nothing


def seen_by(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the learner is given."""
    seen: dict[str, Any] = {}
    trained = FERMI.fit

    def watched(self: Any, network: Any, X: Any, y: Any, groups: Any, **given: Any) -> Any:
        given["noise"] = list(given["noise"])
        seen.update(X=X, y=y, groups=groups, **given)
        return trained(self, network, X, y, groups, **given)

    monkeypatch.setattr(FERMI, "fit", watched)
    return seen


def test_shares_come_from_public_rows_and_never_from_private_ones(
    parts: Any, loose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = seen_by(monkeypatch)
    fit(parts, DPFERMIClassifier(**loose))
    public = (parts.groups_public == "a").mean()
    np.testing.assert_allclose(seen["shares"], [[public, 1 - public]])
    # Other private groups, same public ones: what is known to everybody stays as it was.
    fit(parts, DPFERMIClassifier(**loose), sensitive_features=["a"] * 10 + ["b"] * 590)
    np.testing.assert_allclose(seen["shares"], [[public, 1 - public]])


def test_declared_shares_are_taken_by_name(
    parts: Any, loose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = seen_by(monkeypatch)
    model = DPFERMIClassifier(**loose, group_shares={"b": 0.4, "a": 0.6})
    fit(parts, model, sensitive_features_public=None)
    np.testing.assert_allclose(seen["shares"], [[0.6, 0.4]])
    assert "the declared shares of the groups" in str(model.guarantee_)
    odds = {"yes": {"a": 0.9, "b": 0.1}, "no": {"b": 0.5, "a": 0.5}}
    model = DPFERMIClassifier(**loose, group_shares=odds, fairness=EqualizedOdds(margin=0.0))
    fit(parts, model)
    np.testing.assert_allclose(seen["shares"], [[0.5, 0.5], [0.9, 0.1]])  # classes: no, yes
    assert model.multipliers_.shape == (2, 2, 2)


@pytest.mark.parametrize("notion", [DemographicParity(margin=0.0), EqualizedOdds(margin=0.0)])
def test_released_shares_are_noisy_charged_and_added_to_the_claim(
    parts: Any, notion: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = seen_by(monkeypatch)
    budget = Budget(epsilon=2.0, delta=1e-6)
    model = DPFERMIClassifier(
        budget,
        fairness=notion,
        group_shares="released",
        shares_budget=0.1,
        n_steps=50,
        batch_size=200,
        noise=SeededNoise(3),
    )
    fit(parts, model, sensitive_features_public=None)
    # The table by hand: labels by groups, plus the first draws of the seed at scale 1 / 0.2.
    y, g = (parts.y == "yes").to_numpy().astype(int), (parts.groups == "b").to_numpy().astype(int)
    strata, n_strata = (y, 2) if isinstance(notion, EqualizedOdds) else (0 * y, 1)
    counts = np.array([[np.sum((strata == s) & (g == k)) for k in (0, 1)] for s in range(n_strata)])
    noise = SeededNoise(3).laplace((1 + 1e-6) / 0.2, counts.shape)
    cells = counts + noise
    np.testing.assert_allclose(seen["shares"], cells / cells.sum(axis=1, keepdims=True))
    table, steps = model.ledger_.ledgers
    assert table.budget.epsilon + steps.budget.epsilon == 2.0
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (2.0, 1e-6)
    assert "the Laplace mechanism (delta 0)" in model.guarantee_.accounting
    assert "basic composition" in model.guarantee_.accounting
    assert [len(ledger.entries) for ledger in (table, steps)] == [1, 1]
    assert 1.98 < model.ledger_.spent_epsilon(1e-6) <= 2.0
    spending = Spending.of(model.ledger_.to_dict())
    assert [charge.purpose for charge in spending.charges] == [
        "shares of the groups",
        "DP-FERMI, all steps",
    ]
    assert all(charge.words for charge in spending.charges)


def test_the_steps_are_paid_with_what_the_table_left() -> None:
    pure, rest = split_epsilon(Budget(epsilon=1.1, delta=1e-6), 0.1)
    assert pure.epsilon + rest.epsilon <= 1.1
    assert pure.epsilon == pytest.approx(0.11)
    for share in np.linspace(0.01, 0.99, 197):
        pure, rest = split_epsilon(Budget(epsilon=3.3, delta=1e-6), float(share))
        assert 3.3 * (1 - 1e-15) <= pure.epsilon + rest.epsilon <= 3.3


def test_the_noise_in_the_model_is_that_of_its_mechanism(
    parts: Any, loose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = seen_by(monkeypatch)
    model = fit(parts, DPFERMIClassifier(**loose, clip_norm=2.0))
    drawn = np.array(seen["noise"])
    assert drawn.shape[0] == 150
    assert drawn.shape[1] == model.student_.coef_.size + 1 + model.multipliers_.size
    said = SeededNoise(1).gaussian(model.mechanism_.noise_multiplier * 2.0, drawn.shape)
    assert np.array_equal(drawn, said)
    assert model.mechanism_.clip_norm == 2.0


def test_rows_set_aside_give_their_groups_and_are_not_covered(
    loose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = seen_by(monkeypatch)
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)
    X = np.column_stack([group, rng.normal(size=400)])  # the first column is the group
    model = DPFERMIClassifier(**loose, public_fraction=0.25)
    model.fit(X, rng.integers(0, 2, 400), sensitive_features=group)
    n = len(seen["groups"])
    assert 200 < n < 380
    assert np.array_equal(seen["X"][:, 0] > 0, seen["groups"] == 1)
    aside = group.sum() - seen["groups"].sum()
    np.testing.assert_allclose(seen["shares"][0, 1], aside / (400 - n))
    assert f"the groups of {400 - n} rows of the table, set aside" in str(model.guarantee_)


@pytest.mark.slow
@pytest.mark.torch
def test_a_network_of_pictures_brings_the_groups_nearer_with_more_weight(tmp_path: Any) -> None:
    # Smoothed gap, by noise of six seeds; a weight that does nothing is convicted by the same runs.
    from evenhand.learners.nets.architectures import Convolutional

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    side = np.where(rng.random(500) < 0.8, y, 1 - y)
    X = rng.integers(0, 60, (500, 1, 8, 8), dtype=np.uint8)
    for i in range(500):
        X[i, 0, 4 * y[i] : 4 * y[i] + 4, 4 * side[i] : 4 * side[i] + 4] = 220

    def fitted(weight: float, seed: int) -> Any:
        return DPFERMIClassifier(
            Budget(epsilon=8.0, delta=1e-5),
            fairness_weight=weight,
            architecture=Convolutional(widths=(4, 8)),
            multiplier_rate=0.2,
            n_steps=60,
            batch_size=250,
            noise=SeededNoise(seed),
            random_state=seed,
            group_shares={0: 0.5, 1: 0.5},
        ).fit(X, y, sensitive_features=side)

    def gap(model: Any) -> float:
        p = model.predict_proba(X)[:, 1]
        return float(abs(p[side == 0].mean() - p[side == 1].mean()))

    models = [(fitted(0.0, seed), fitted(5.0, seed)) for seed in range(6)]
    free, held = np.array([[gap(one) for one in pair] for pair in models]).T
    assert not falls_short(0.75 * free - held)
    assert falls_short(0.75 * free - free)
    model = models[0][1]
    assert model.mechanism_.clip_norm == 1.0
    again = evenhand.load(model.save(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
