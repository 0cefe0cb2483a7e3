"""What is alike of baselines with a budget: when noise is drawn, what a folder keeps, refusals."""

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import evenhand
from evenhand import DPFERMIClassifier, DPPostProcessingClassifier, DPSGDClassifier
from evenhand.baselines.barycenter import DPBarycenterClassifier
from evenhand.baselines.decoupled import DPDecoupledClassifier
from evenhand.baselines.dp2dp import DP2DPClassifier
from evenhand.baselines.explainable_boosting import DPEBMClassifier
from evenhand.baselines.fairdp import FairDPClassifier
from evenhand.baselines.pfld import PFLDClassifier
from evenhand.baselines.randomized_response import RandomizedResponseClassifier
from evenhand.estimators.saving.fingerprint import fingerprint
from evenhand.fairness import DemographicParity, EqualizedOdds
from evenhand.privacy import Budget, DiscreteNoise, FloatNoise, Ledger, attribute_of

ODDS = EqualizedOdds(margin=0.1, reference="pairwise")
NO_GROUPS = {"sensitive_features": None}
OF_ALL = (
    ({"budget": 1.0}, {}, "budget must be a Budget"),
    ({"batch_size": 0}, {}, "batch_size must be at least 1"),
    ({"noise": DiscreteNoise()}, {}, "Use FloatNoise"),
    ({}, {"X_public": None}, "scales its columns by public knowledge"),
)
OF_A_MARGIN = (
    *OF_ALL,
    ({"fairness": DemographicParity(margin=0.1)}, {}, "compares each group with each other"),
    ({}, {"sensitive_features": ["a"] * 600}, "There is one group only"),
    ({}, {"sensitive_features": ["a", "b"]}, "one row each"),
)
REFUSED: dict[type, tuple[Any, ...]] = {
    DPDecoupledClassifier: (
        *OF_A_MARGIN,
        ({"fairness": ODDS}, {}, "a DemographicParity"),
        ({}, NO_GROUPS, "counts the groups of the private rows"),
    ),
    DP2DPClassifier: (
        *OF_A_MARGIN,
        ({"fairness": ODDS}, {}, "a DemographicParity"),
        ({"temperature": 0.0}, {}, "temperature must be finite and > 0"),
        ({"n_rule_steps": 1}, {}, "n_rule_steps must be at least 2"),
        ({"rule_rate": -1.0}, {}, "rule_rate must be finite and > 0"),
        ({"rule_budget": 1.0}, {}, "rule_budget must lie strictly between 0 and 1"),
        ({}, NO_GROUPS, "sensitive_features is missing"),
    ),
    DPBarycenterClassifier: (
        *OF_A_MARGIN,
        ({"fairness": ODDS}, {}, "a DemographicParity"),
        ({"n_bins": 0}, {}, "n_bins must be at least 2"),
        ({"n_bins": 7}, {}, "n_bins must be even"),
        ({"table_budget": 1.0}, {}, "table_budget must lie strictly between 0 and 1"),
        ({}, {"y": ["no", "yes", "maybe"] * 200}, "of two classes, got 3"),
        ({}, NO_GROUPS, "counts the groups of the private rows"),
    ),
    FairDPClassifier: (
        *OF_A_MARGIN,
        ({"fairness": 0.1}, {}, "fairness must be"),
        ({"certificate_budget": 0.0}, {}, "certificate_budget must lie strictly between 0 and 1"),
        ({"count_share": 1.0}, {}, "count_share must lie strictly between 0 and 1"),
        ({}, NO_GROUPS, "sensitive_features is missing"),
    ),
    DPPostProcessingClassifier: (
        *OF_A_MARGIN,
        ({"fairness": "EqualizedOdd"}, {}, "Did you mean 'EqualizedOdds'"),
        ({"slack": -0.1}, {}, "slack must be finite and >= 0"),
        ({"table_budget": 1.0}, {}, "table_budget must lie strictly between 0 and 1"),
        ({}, NO_GROUPS, "counts the groups of the private rows"),
    ),
    DPFERMIClassifier: (
        *OF_ALL,
        ({"fairness_weight": -1.0}, {}, "fairness_weight must be finite and >= 0"),
        ({"multiplier_share": 0.0}, {}, "multiplier_share must lie strictly between 0 and 1"),
        ({"fairness": EqualizedOdds(margin=0.1)}, {}, "DP-FERMI keeps no margin"),
        ({"fairness": "equalized_odds"}, {}, "must be a DemographicParity or EqualizedOdds"),
        ({"fairness": EqualizedOdds(margin=0.0)}, {}, "public rows have no labels"),
        ({"group_shares": "relased"}, {}, "Did you mean 'released'"),
        ({"group_shares": {"a": 0.6, "b": 0.6}}, {}, r"together 1, got .* \(together 1.2\)"),
        ({"group_shares": {"a": 1.2, "b": -0.2}}, {}, "a share in group_shares must lie strictly"),
        ({"group_shares": {"a": 0.5, "c": 0.5}}, {}, r"row \d .* not among the known .*: 'a', 'c'"),
        (
            {"group_shares": {"a": 0.5, "b": 0.5}, "fairness": EqualizedOdds(margin=0.0)},
            {},
            r"for each label; for \(not shown\) it holds None",
        ),
        ({}, NO_GROUPS, "needs the group of every private row"),
        ({}, {"sensitive_features_public": None}, "shares of the groups that everybody may know"),
        ({}, {"sensitive_features_public": ["a"] * 300}, "There is one group only"),
        ({}, {"sensitive_features_public": ["a", "b"]}, "one row each"),
        ({}, {"sensitive_features": ["a", "c"] * 300}, "row 2 .* not among the known groups"),
    ),
}
OF_ATTRIBUTES = (
    ({"budget": 1.0}, {}, "budget must be a Budget, got 1.0"),
    ({"fairness": None}, {}, "fairness must be a DemographicParity, .* got None"),
    ({}, NO_GROUPS, "sensitive_features is missing"),
    ({}, {"sensitive_features": ["a"] * 600}, "one group only"),
    ({}, {"sensitive_features": ["a", "b"]}, "one row each"),
    ({}, {"sensitive_features": ["a", None] * 300}, "missing"),
)
ATTRIBUTES = (PFLDClassifier, RandomizedResponseClassifier)
UNIT = {"unit": attribute_of("person"), "neighbors": "change one group label"}
REFUSED |= {
    PFLDClassifier: (
        *OF_ATTRIBUTES,
        ({"n_steps": 0}, {}, "n_steps must be at least 1"),
        ({"dual_share": 0.0}, {}, "dual_share must lie strictly between 0 and 1"),
        ({"dual_share": 0.98}, {}, "dual_share must be below 0.98, got dual_share=0.98: 0.02 of"),
        ({"clip_norm": 0.0}, {}, "clip_norm must be finite and > 0"),
        ({"noise": DiscreteNoise()}, {}, r"draws whole numbers. Use FloatNoise\(\)"),
        ({}, {"ledger": Ledger(Budget(epsilon=9.0, delta=1e-5), **UNIT)}, "noise= and ledger="),
    ),
    RandomizedResponseClassifier: (
        *OF_ATTRIBUTES,
        ({"max_iter": 0}, {}, "max_iter must be at least 1"),
        ({"slack": 0.0}, {}, "slack must be finite and > 0"),
        ({}, {"y": [0, 1, 2] * 200}, "Only binary classification is supported"),
        (
            {},
            {"ledger": Ledger(Budget(epsilon=1e6, delta=1e-5))},
            "cannot be charged to a shared account",
        ),
    ),
}


def fit(kind: Any, parts: Any, settings: dict[str, Any], **changes: Any) -> Any:
    """Fit on all of the rows that a classifier takes."""
    if kind in ATTRIBUTES:
        settings = {"fairness": DemographicParity(margin=0.1)} | settings
    rows = {"X": parts.X, "y": parts.y, "X_public": parts.X_public}
    rows |= {"sensitive_features": parts.groups, "sensitive_features_public": parts.groups_public}
    taken = {name: rows[name] for name in rows if name in ("X", "y", *kind.TAKES)}
    known = inspect.signature(kind).parameters
    settings = {name: value for name, value in settings.items() if name in known}
    return kind(**settings).fit(**(taken | changes))


@pytest.mark.parametrize(
    ("kind", "settings", "n_ledgers"),
    [
        (DPSGDClassifier, {}, 1),
        (DPFERMIClassifier, {}, 1),
        (DPFERMIClassifier, {"group_shares": "released"}, 2),
        (DPPostProcessingClassifier, {}, 2),
        (DP2DPClassifier, {}, 2),
        (FairDPClassifier, {}, 2),
        (PFLDClassifier, {}, 1),
        (DPEBMClassifier, {"n_rounds": 3}, 1),
    ],
)
def test_noise_is_drawn_after_it_is_charged_and_a_seed_for_it_is_no_guarantee(
    parts: Any,
    loose: dict[str, Any],
    draws: Any,
    kind: Any,
    settings: dict[str, Any],
    n_ledgers: int,
) -> None:
    model = fit(kind, parts, loose | {"n_steps": 20} | settings)
    assert len(draws.ledgers) == n_ledgers
    assert len(draws.spent) >= 2
    assert min(draws.spent) > 1 - 1e-5
    assert str(model.guarantee_).startswith("NOT PRIVATE")
    assert not model.ledger_.to_dict()["protects"]


@pytest.mark.parametrize(
    ("kind", "settings", "n_classes"),
    [
        *((DPSGDClassifier, {"hidden": h}, n) for h in ((), (5, 4)) for n in (2, 3)),
        *((DPFERMIClassifier, {"group_shares": s}, n) for s in (None, "released") for n in (2, 3)),
        (DPPostProcessingClassifier, {}, 2),
        (DPPostProcessingClassifier, {}, 3),
        (DPDecoupledClassifier, {}, 2),
        (DPBarycenterClassifier, {"n_bins": 6}, 2),
        (DP2DPClassifier, {}, 2),
        (FairDPClassifier, {"hidden": (4,)}, 2),
        (PFLDClassifier, {}, 2),
        (PFLDClassifier, {"hidden": (5,)}, 2),
        (RandomizedResponseClassifier, {"fairness": ODDS, "max_iter": 3}, 2),
        (
            RandomizedResponseClassifier,
            {"learner": DecisionTreeClassifier(max_depth=3, random_state=0), "max_iter": 3},
            2,
        ),
    ],
)
def test_a_saved_model_predicts_and_claims_the_same(
    parts: Any,
    loose: dict[str, Any],
    tmp_path: Any,
    kind: Any,
    settings: dict[str, Any],
    n_classes: int,
) -> None:
    y = parts.y if n_classes == 2 else np.where(np.arange(600) % 3 == 0, "maybe", parts.y)
    model = fit(kind, parts, loose | {"noise": FloatNoise(), "n_steps": 20} | settings, y=y)
    again = evenhand.load(model.save(tmp_path / "model"), trusted=["sklearn.tree._tree.Tree"])
    assert type(again) is kind
    assert again.needs_group_at_prediction_ == model.needs_group_at_prediction_
    told = {"sensitive_features": parts.groups} if model.needs_group_at_prediction_ else {}
    drawn = told and told | {"random_state": 3}
    assert np.array_equal(again.predict(parts.X, **drawn), model.predict(parts.X, **drawn))
    if hasattr(model, "predict_proba"):
        assert np.array_equal(
            again.predict_proba(parts.X, **told), model.predict_proba(parts.X, **told)
        )
    assert again.guarantee_ == model.guarantee_
    assert again.ledger_.to_dict() == model.ledger_.to_dict()
    assert again.groups_ == model.groups_
    assert again.fairness_kind_ is model.fairness_kind_
    assert fingerprint(again) == fingerprint(model)
    numbers = {name: of for name, of in vars(model).items() if isinstance(of, float | np.ndarray)}
    kept = {name: of for name, of in vars(again).items() if name in numbers}
    assert kept.keys() >= set(kind.NUMBERS)
    np.testing.assert_equal(kept, {name: numbers[name] for name in kept})
    for name in kind.NUMBERS if told else ():
        before = fingerprint(again)
        setattr(again, name, numbers[name] + 1.0)
        again._fitted = again._describe()
        assert fingerprint(again) != before


@pytest.mark.parametrize(
    ("kind", "settings", "changes", "message"),
    [(kind, *case) for kind, cases in REFUSED.items() for case in cases],
)
def test_what_cannot_be_used_is_refused_before_anything_is_drawn(
    parts: Any,
    loose: dict[str, Any],
    draws: Any,
    kind: Any,
    settings: dict[str, Any],
    changes: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        fit(kind, parts, loose | settings, **changes)
    assert not draws.spent


@pytest.mark.parametrize(
    "kind", [DPSGDClassifier, *(kind for kind in REFUSED if kind is not PFLDClassifier)]
)
def test_a_shared_account_is_refused_and_stays_untouched(
    parts: Any, loose: dict[str, Any], kind: Any
) -> None:
    account = Ledger(Budget(epsilon=10.0, delta=1e-5), neighbors="add or remove one")
    with pytest.raises(ValueError, match="cannot be charged to a shared account"):
        fit(kind, parts, loose, ledger=account)
    assert account.spent == 0
