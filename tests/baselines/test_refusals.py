"""What baselines that train by noisy gradients and read groups refuse, before anything is drawn."""

from typing import Any

import pytest

from evenhand import DPFERMIClassifier, DPPostProcessingClassifier
from evenhand.baselines.decoupled import DPDecoupledClassifier
from evenhand.baselines.dp2dp import DP2DPClassifier
from evenhand.baselines.fairdp import FairDPClassifier
from evenhand.fairness import DemographicParity, EqualizedOdds
from evenhand.privacy import DiscreteNoise

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
        ({"group_shares": {"a": 0.5, "c": 0.5}}, {}, "row 5 .* not among the known .*: 'a', 'c'"),
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
    rows = {"X_public": parts.X_public, "sensitive_features": parts.groups}
    if kind is DPFERMIClassifier:
        rows["sensitive_features_public"] = parts.groups_public
    with pytest.raises(ValueError, match=message):
        kind(**(loose | settings)).fit(parts.X, parts.y, **(rows | changes))
    assert not draws.spent
