"""DPPostProcessingClassifier end to end: the table, the rule, the claim, refusals, saving."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand import (
    Budget,
    DemographicParity,
    DPPostProcessingClassifier,
    EqualizedOdds,
    TruePositiveRateParity,
)
from evenhand.estimators.saving.fingerprint import fingerprint
from evenhand.privacy import SeededNoise
from evenhand.report.spending import Spending
from evenhand.students.derived import DerivedRule, noise_bound


def odds(margin: float) -> EqualizedOdds:
    return EqualizedOdds(margin=margin, reference="pairwise")


NOTION = odds(0.05)


def fit(parts: Any, model: Any, **changes: Any) -> Any:
    given = {"X_public": parts.X_public, "sensitive_features": parts.groups}
    return model.fit(parts.X, parts.y, **(given | changes))


def counted(parts: Any, model: Any) -> np.ndarray:
    """Count group, label and the model's own decision by a loop over the private rows."""
    out = np.zeros((2, 2, 2))
    own = model.student_.predict(model.encoder_.transform(parts.X))
    for g, y, h in zip(parts.groups, parts.y, own, strict=True):
        out["ab".index(g), ["no", "yes"].index(y), int(h)] += 1
    return out


def test_the_table_is_that_of_the_private_rows_plus_the_noise_that_is_charged(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fit(parts, DPPostProcessingClassifier(**loose, table_budget=0.01))
    noise = SeededNoise(1).laplace((1 + 1e-6) / 0.5, (1, 8)).reshape(2, 2, 2)
    np.testing.assert_allclose(model.table_ - noise, counted(parts, model), atol=1e-9)
    steps, table = model.ledger_.ledgers
    assert table.budget.epsilon == 0.5
    assert steps.budget.epsilon == 49.5


def test_exact_noise_is_the_default_of_the_table(parts: Any, loose: dict[str, Any]) -> None:
    model = fit(parts, DPPostProcessingClassifier(**(loose | {"noise": None})))
    assert np.array_equal(model.table_, np.round(model.table_))  # whole numbers
    assert np.abs(model.table_ - counted(parts, model)).max() < 60  # scale 0.08
    assert "exact discrete noise (OpenDP)" in model.guarantee_.noise


def test_it_keeps_its_margin_on_the_private_rows_up_to_the_bound(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fit(parts, DPPostProcessingClassifier(**loose, fairness=odds(0.02)))
    assert model.table_gap_ <= 0.02 + 1e-9
    assert model.rule_.gap(counted(parts, model), NOTION) <= 0.02 + model.noise_bound_
    own = DerivedRule(probabilities=np.repeat(np.eye(2)[None], 2, axis=0))
    assert own.gap(counted(parts, model), NOTION) > 0.05  # there was something to even


def test_with_much_budget_it_is_what_hardt_derives_without_privacy(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fit(
        parts, DPPostProcessingClassifier(**(loose | {"budget": Budget(epsilon=1e6, delta=1e-5)}))
    )
    exact = DerivedRule.fit(counted(parts, model), odds(0.05))
    np.testing.assert_allclose(model.rule_.probabilities, exact.probabilities, atol=1e-3)
    base = LogisticRegression(C=np.inf).fit(model.encoder_.transform(parts.X), parts.y == "yes")
    same = base.predict(model.encoder_.transform(parts.X)) == model.student_.predict(
        model.encoder_.transform(parts.X)
    )
    assert same.mean() > 0.97


def test_predictions_are_drawn_with_the_probabilities_it_states(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fit(parts, DPPostProcessingClassifier(**loose, fairness=odds(0.0)))
    probabilities = model.predict_proba(parts.X, sensitive_features=parts.groups)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (
        (probabilities > 0.01) & (probabilities < 0.99)
    ).any()  # some rows are decided by chance
    drawn = np.mean(
        [
            model.predict(parts.X, sensitive_features=parts.groups, random_state=seed) == "yes"
            for seed in range(50)
        ]
    )
    # 30,000 draws: five standard errors.
    assert abs(drawn - probabilities[:, 1].mean()) < 5 * 0.5 / 30_000**0.5
    once, again = (
        model.predict(parts.X, sensitive_features=parts.groups, random_state=7) for _ in range(2)
    )
    assert np.array_equal(once, again)


def test_it_says_what_it_claims_and_how_the_budget_was_parted(parts: Any) -> None:
    model = DPPostProcessingClassifier(
        Budget(epsilon=2.0, delta=1e-6), n_steps=50, batch_size=200, table_budget=0.25
    )
    fit(parts, model)
    said = str(model.guarantee_)
    assert said.startswith("The release is (2.0, 1e-06)-differentially private for each record")
    for words in (
        "add or remove one record",
        "privacy loss distribution of the Poisson-subsampled Gaussian",
        "the Laplace mechanism (delta 0)",
        "basic composition of epsilon and delta",
        "needs the group of each person at prediction",
        "the names of the groups",
    ):
        assert words in said
    assert 1.98 < model.ledger_.spent_epsilon(1e-6) <= 2.0
    spending = Spending.of(model.ledger_.to_dict())
    assert [charge.purpose for charge in spending.charges] == [
        "DP-SGD, all steps",
        "table of group, label and decision",
    ]


def test_another_margin_reads_the_same_table_and_spends_nothing(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fit(parts, DPPostProcessingClassifier(**loose, fairness=odds(1.0)))
    even = model.with_fairness(odds(0.0))
    assert even.table_ is model.table_
    assert even.ledger_ is model.ledger_
    assert even.guarantee_ == model.guarantee_
    assert (model.fairness.margin, even.fairness.margin) == (1.0, 0.0)
    assert even.table_gap_ <= 1e-9 < model.table_gap_
    parity = model.with_fairness(DemographicParity(margin=0.01, reference="pairwise"))
    assert parity.rule_.gap(model.table_, parity.fairness) <= 0.01 + 1e-9
    assert fingerprint(even) != fingerprint(model)  # the rule is part of the model
    with pytest.raises(ValueError, match="margin must lie in"):
        model.with_fairness(odds(2.0))


def test_slack_widens_the_margin_and_none_is_that_of_the_paper(
    parts: Any, loose: dict[str, Any]
) -> None:
    loose["budget"] = Budget(epsilon=4.0, delta=1e-5)
    tight, wide = (
        fit(parts, DPPostProcessingClassifier(**loose, fairness=odds(0.0), slack=slack))
        for slack in (0.0, None)
    )
    assert tight.table_gap_ <= 1e-9
    assert 0.0 < wide.noise_bound_ == noise_bound(wide.table_, NOTION, scale=1 + 1e-6)
    assert 1e-3 < wide.table_gap_ <= wide.noise_bound_ + 1e-9
    assert wide.rule_.error(wide.table_) < tight.rule_.error(tight.table_)


def test_true_positive_rates_of_any_number_of_classes_are_held(
    parts: Any, loose: dict[str, Any]
) -> None:
    y = np.where(np.arange(600) % 3 == 0, "maybe", parts.y)
    notion = TruePositiveRateParity(margin=0.02, reference="pairwise")
    model = DPPostProcessingClassifier(**loose, fairness=notion)
    model.fit(parts.X, y, X_public=parts.X_public, sensitive_features=parts.groups)
    cells = np.maximum(model.table_, 0.0)
    kept = np.einsum("gyh,ghy->gy", cells, model.rule_.probabilities) / cells.sum(axis=2)
    assert np.ptp(kept, axis=0).max() == pytest.approx(model.table_gap_)
    assert model.table_gap_ <= 0.02 + 1e-9


def test_prediction_needs_known_groups_and_says_so(parts: Any, loose: dict[str, Any]) -> None:
    model = fit(parts, DPPostProcessingClassifier(**loose))
    for call in (model.predict, model.predict_proba):
        with pytest.raises(ValueError, match="needs the group of each row at prediction"):
            call(parts.X)
        with pytest.raises(ValueError, match=r"first in row 1 .* not among the known groups"):
            call(parts.X[:1], sensitive_features=["c"])
        with pytest.raises(ValueError, match="one row each"):
            call(parts.X, sensitive_features=["a"])
    with pytest.raises(ValueError, match="derived from the group already"):
        model.with_group_thresholds(parts.X_public, parts.groups_public)
    with pytest.raises(ValueError, match=r"Use DPSGDClassifier\(\).with_reject_option"):
        model.with_reject_option(0.1)
