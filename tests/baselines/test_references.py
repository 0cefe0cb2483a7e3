"""The references that are not private: what they claim, what they learn, what they refuse."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import demographic_parity_difference
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import evenhand
from evenhand import (
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FairOnlyClassifier,
    NonPrivateClassifier,
)
from evenhand.datasets import Schema
from evenhand.fairness import FairnessKind
from evenhand.fairness.tally import JointTally, Tally
from evenhand.learners.mixture import Mixture

TIGHT = DemographicParity(margin=0.02)


def plain(parts: Any, **given: Any) -> NonPrivateClassifier:
    return NonPrivateClassifier(**given).fit(parts.X, parts.y, X_public=parts.X_public)


def fair(parts: Any, fairness: Any = TIGHT, **given: Any) -> FairOnlyClassifier:
    return FairOnlyClassifier(fairness, max_iter=20, random_state=0, **given).fit(
        parts.X, parts.y, sensitive_features=parts.groups, X_public=parts.X_public
    )


def gap(labels: Any, groups: Any) -> float:
    return float(demographic_parity_difference(labels, labels == "yes", sensitive_features=groups))


def test_without_privacy_the_model_is_the_learner_on_the_encoded_private_rows(parts: Any) -> None:
    model = plain(parts)
    X = model.encoder_.transform(parts.X)
    by_hand = LogisticRegression(max_iter=1000).fit(X, (parts.y == "yes").to_numpy())
    np.testing.assert_allclose(model.student_.coef_, by_hand.coef_)
    assert (model.predict(parts.X) == parts.y).mean() > 0.75


def test_the_encoder_knows_the_public_rows_alone(parts: Any) -> None:
    # Second derivation: scikit-learn's scaler on the public column, missing values left out.
    model = plain(parts)
    column = list(model.encoder_.feature_names_).index("income")
    scaler = StandardScaler().fit(parts.X_public[["income"]].dropna().to_numpy())
    row = pd.DataFrame({"income": [2.5], "job": ["cook"]})
    wanted = scaler.transform([[2.5]])[0, 0]
    assert model.encoder_.transform(row)[0, column] == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("make", [plain, fair])
def test_nothing_is_promised(parts: Any, make: Any, tmp_path: Any) -> None:
    model = make(parts)
    assert str(model.guarantee_).startswith("NOT PRIVATE: the model was trained on the private")
    assert model.guarantee_.epsilon == float("inf")
    assert not model.guarantee_.holds
    assert model.ledger_ is None
    claim = json.loads((model.save(tmp_path / "model") / "claim.json").read_text())
    assert claim["guarantee"]["epsilon"] is None
    assert claim["ledger"] is None
    assert claim["sentence"] == str(model.guarantee_)


@pytest.mark.parametrize("margin", [0.02, 0.08])
def test_the_margin_is_kept_on_the_private_rows_without_a_group(parts: Any, margin: float) -> None:
    model = fair(parts, DemographicParity(margin=margin))
    labels = model.predict(parts.X)
    assert model.training_gap_ == pytest.approx(gap(labels, parts.groups))
    # In expectation over which member answers which row the reduction misses by its slack only.
    X, group = model.encoder_.transform(parts.X), (parts.groups == "a").to_numpy()
    probability = model.student_.weights_ @ [
        member.predict(X) for member in model.student_.members_
    ]
    expected = probability[group].mean() - probability[~group].mean()
    assert abs(expected) <= margin + 0.01
    # The draws add a sampling error: 5.5 standard deviations are one in 1e7 for correct code.
    spread = sum(
        (probability[z] * (1 - probability[z])).sum() / z.sum() ** 2 for z in (group, ~group)
    )
    assert abs(model.training_gap_ - abs(expected)) <= 5.5 * spread**0.5
    assert gap(plain(parts).predict(parts.X), parts.groups) > margin + 0.05


@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
def test_three_groups_keep_the_margin_against_each_reference(reference: str) -> None:
    rng = np.random.default_rng(1)
    z = rng.choice(3, 3000, p=[0.6, 0.3, 0.1])
    X = np.column_stack([rng.normal(size=3000) + 0.7 * z, rng.normal(size=3000)])
    y = X[:, 0] + rng.normal(size=3000) / 2 > 0.5
    notion = DemographicParity(margin=0.06, reference=reference)
    model = FairOnlyClassifier(notion, max_iter=20, random_state=0)
    model.fit(X, y, sensitive_features=z, X_public=X)
    counts = Tally.of(z, model.predict(X).astype(int), 3, 2).counts
    assert model.training_gap_ == notion.gap(counts)
    # The margin is that of the mixture, whose rates are known without a draw; the solver stops
    # within .002. Decisions are draws: a group's rate is within 5.5 deviations, or one in 10**7.
    mixture = model.student_
    features = model.encoder_.transform(X)
    said = np.array([member.predict(features) for member in mixture.members_])
    probability = mixture.weights_ @ said
    rates = np.array([probability[z == k].mean() for k in range(3)])
    apart = {
        "rest": [abs(rates[k] - probability[z != k].mean()) for k in range(3)],
        "overall": [abs(rate - probability.mean()) for rate in rates],
        "pairwise": [rates.max() - rates.min()],
    }
    assert max(apart[reference]) <= 0.06 + 0.002
    spread = [np.sqrt((probability * (1 - probability))[z == k].sum()) for k in range(3)]
    drawn = [abs((model.predict(X) - probability)[z == k].sum()) for k in range(3)]
    assert all(d <= 5.5 * s + 1e-9 for d, s in zip(drawn, spread, strict=True))
    free = LogisticRegression().fit(X, y).predict(X)
    assert notion.gap(Tally.of(z, free.astype(int), 3, 2).counts) > 0.06 + 0.002


@pytest.mark.parametrize("kind", [EqualizedOdds, ErrorParity])
def test_margins_about_true_classes_are_kept_on_the_private_rows(kind: Any) -> None:
    rng = np.random.default_rng(1)
    z = rng.choice(2, 4000, p=[0.7, 0.3])
    X = np.column_stack([rng.normal(size=4000) + 0.9 * z, rng.normal(size=4000), z])
    y = (X[:, 0] + rng.normal(size=4000) * (0.3 + z) > 0.5).astype(int)

    def gap_on_rows(notion: Any) -> float:
        model = FairOnlyClassifier(notion, max_iter=30, random_state=0)
        model.fit(X, y, sensitive_features=z, X_public=X)
        decided = model.predict(X)
        assert model.training_gap_ == notion.gap(JointTally.of(z, y, decided, 2, 2).counts)
        return model.training_gap_

    # The draws of a mixture add at most 5.5 standard errors of a rate among 300 rows or more.
    assert gap_on_rows(kind(margin=1.0)) > 0.12
    assert gap_on_rows(kind(margin=0.02)) < 0.02 + 0.002 + 0.02


def test_the_same_row_gets_the_same_answer_always(parts: Any, tmp_path: Any) -> None:
    model = fair(parts)
    assert len(model.student_.members_) > 1
    labels = model.predict(parts.X)
    again = evenhand.load(model.save(tmp_path / "model"))
    assert np.array_equal(again.predict(parts.X[::-1]), labels[::-1])
    assert np.array_equal([model.predict(parts.X[i : i + 1])[0] for i in range(40)], labels[:40])
    # Sums of a product may be taken in another order where an array came from a file.
    np.testing.assert_allclose(
        again.predict_proba(parts.X), model.predict_proba(parts.X), rtol=1e-12
    )
    # Stated in the docstring: the larger probability is another question.
    likelier = model.classes_[model.predict_proba(parts.X).argmax(axis=1)]
    assert 0 < (likelier != labels).mean() < 0.5


@pytest.mark.parametrize(
    "learner", [DecisionTreeClassifier(max_depth=3, random_state=0), Perceptron(random_state=0)]
)
@pytest.mark.parametrize("make", [plain, fair])
def test_any_learner_serves_and_is_saved(
    parts: Any, learner: Any, make: Any, tmp_path: Any
) -> None:
    model = make(parts, learner=learner)
    path = model.save(tmp_path / "model")
    again = evenhand.load(path, trusted=["sklearn.tree._tree.Tree"])
    assert np.array_equal(again.predict(parts.X), model.predict(parts.X))
    assert hasattr(again, "predict_proba") == hasattr(learner, "predict_proba")
    for file in (tmp_path / "model").iterdir():
        assert file.suffix in {".json", ".safetensors", ".skops"}


def test_a_mixture_of_linear_models_is_kept_as_numbers(parts: Any, tmp_path: Any) -> None:
    model = fair(parts, DemographicParity(margin=0.0))
    path = model.save(tmp_path / "model")
    assert not list(path.glob("*.skops"))
    again = evenhand.load(path)
    assert type(again.student_) is Mixture
    assert np.array_equal(again.student_.weights_, model.student_.weights_)
    assert again.training_gap_ == model.training_gap_


@pytest.mark.pinned(reason="group decides class: at some draws fairlearn divides 0 by 0")
def test_a_constant_member_is_kept_as_numbers_too(parts: Any, tmp_path: Any) -> None:
    # Group decides class: the reduction needs "yes to nobody" or "yes to everybody".
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 400)
    X = np.column_stack([z, rng.normal(size=400) / 100])
    model = FairOnlyClassifier(DemographicParity(margin=0.0), max_iter=10, random_state=0)
    model.fit(X, z, sensitive_features=z, X_public=X)
    members = model.student_.members_
    assert all(type(member) is LogisticRegression for member in members)
    assert any(not member.coef_.any() for member in members)
    again = evenhand.load(model.save(tmp_path / "model"))
    assert np.array_equal(again.predict(X), model.predict(X))


def test_the_references_take_a_reject_option_and_thresholds(parts: Any) -> None:
    for model in (plain(parts), fair(parts)):
        cut = model.with_group_thresholds(parts.X_public, parts.groups_public, fairness=TIGHT)
        labels = cut.predict(parts.X_public, sensitive_features=parts.groups_public, random_state=0)
        assert gap(labels, parts.groups_public) <= 0.03
        assert str(cut.guarantee_).startswith("NOT PRIVATE")
        option = model.with_reject_option(0.05, groups=["a", "b"])
        said = option.predict(parts.X, sensitive_features=parts.groups)
        assert option.gap_ <= 0.05
        assert (said != evenhand.REJECTED).mean() > 0.5


def test_groups_given_without_a_margin_are_names_for_a_reject_option(parts: Any) -> None:
    model = NonPrivateClassifier().fit(
        parts.X, parts.y, sensitive_features=parts.groups, X_public=parts.X_public
    )
    assert model.groups_ == ("a", "b")
    assert model.with_reject_option(0.05).groups_ == ("a", "b")
    assert np.array_equal(model.predict(parts.X), plain(parts).predict(parts.X))


def test_a_schema_with_bounds_needs_no_public_row(parts: Any) -> None:
    income = {"kind": "numeric", "bounds": [-3, 3], "missing": True}
    schema = Schema.declared({"income": income, "job": ["clerk", "cook", "nurse"]})
    model = NonPrivateClassifier(schema=schema).fit(parts.X, parts.y)
    assert (model.predict(parts.X) == parts.y).mean() > 0.75


@pytest.mark.parametrize(
    ("settings_", "given", "message"),
    [
        ({"fairness": None}, {}, "fairness must be a DemographicParity, .* got None"),
        ({"fairness": 0.1}, {}, "got 0.1. Say how far apart"),
        ({"max_iter": 0}, {}, "max_iter must be at least 1"),
        ({"slack": 0.0}, {}, "slack must be finite and > 0"),
        ({}, {"sensitive_features": None}, "sensitive_features is missing"),
        ({}, {"sensitive_features": ["a"] * 600}, "one group only"),
        ({}, {"sensitive_features": ["a", "b"]}, "one row each"),
        ({}, {"y": np.arange(600) % 3}, "Only binary classification is supported"),
        ({}, {"X_public": None}, "FairOnlyClassifier scales its columns by public knowledge"),
    ],
)
def test_what_cannot_be_used_is_refused(
    parts: Any, settings_: dict[str, Any], given: dict[str, Any], message: str
) -> None:
    usual = {"X": parts.X, "y": parts.y, "X_public": parts.X_public}
    usual |= {"sensitive_features": parts.groups}
    with pytest.raises(ValueError, match=message):
        FairOnlyClassifier(**({"fairness": TIGHT} | settings_)).fit(**(usual | given))


def test_the_kind_is_said_and_restored(parts: Any, tmp_path: Any) -> None:
    assert plain(parts).fairness_kind_ is FairnessKind.NONE
    model = fair(parts)
    assert model.fairness_kind_ is FairnessKind.WEIGHTS
    assert not model.needs_group_at_prediction_
    assert evenhand.load(model.save(tmp_path / "m")).fairness_kind_ is FairnessKind.WEIGHTS
