"""DPDecoupledClassifier: rates that meet halfway, the group as a feature, refusals, saving."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from evenhand import Budget, DemographicParity
from evenhand.baselines.decoupled import DPDecoupledClassifier, halfway
from evenhand.students.derived import DerivedRule

PARITY = DemographicParity(margin=0.0, reference="pairwise")


def fit(parts: Any, model: Any, **changes: Any) -> Any:
    told = {"X_public": parts.X_public, "sensitive_features": parts.groups}
    return model.fit(parts.X, parts.y, **(told | changes))


counts = st.lists(st.integers(0, 30), min_size=8, max_size=8).map(
    lambda cells: np.array(cells).reshape(2, 2, 2)
)


@given(table=counts)
def test_at_margin_0_two_groups_follow_the_rule_as_printed(table: np.ndarray) -> None:
    # Algorithm 2 of Ghoukasian and Asoodeh, in fractions: alpha is the higher rate.
    decided = table.sum(axis=1)
    rates = [
        Fraction(int(row[1]), int(row.sum())) if row.sum() else Fraction(1, 2) for row in decided
    ]
    high, low = (0, 1) if rates[0] >= rates[1] else (1, 0)
    alpha, beta = rates[high], rates[low]
    accepted = halfway(table, 0.0).probabilities[:, :, 1]
    kept = (alpha + beta) / (2 * alpha) if alpha else Fraction(1)
    raised = (alpha - beta) / (2 * (1 - beta)) if beta < 1 else Fraction(0)
    assert accepted[high].tolist() == pytest.approx([0.0, float(kept)])
    assert accepted[low].tolist() == pytest.approx([float(raised), 1.0])


@given(table=counts, margin=st.floats(0, 1))
def test_rates_stay_apart_by_the_margin_or_as_they_are(table: np.ndarray, margin: float) -> None:
    own = DerivedRule(probabilities=np.repeat(np.eye(2)[None], 2, axis=0))
    # A group without records has no rate; the two forms of the gap part there.
    table = table + 1
    before, after = own.gap(table, PARITY), halfway(table, margin).gap(table, PARITY)
    assert after == pytest.approx(min(before, margin), abs=1e-9)


def test_three_groups_meet_between_the_highest_and_the_lowest() -> None:
    table = np.zeros((3, 2, 2))
    table[:, 0, 0], table[:, 1, 1] = [90, 70, 20], [10, 30, 80]
    rates = halfway(table, 0.2).rates(table, PARITY)
    np.testing.assert_allclose(rates[:, -1], [0.35, 0.35, 0.55])


def test_the_model_below_the_rule_reads_the_group(parts: Any, loose: dict[str, Any]) -> None:
    budget = Budget(epsilon=1e6, delta=1e-5)
    model = fit(parts, DPDecoupledClassifier(**(loose | {"budget": budget, "n_steps": 400})))
    rows = model.encoder_.transform(parts.X)
    told = (parts.groups == "a").to_numpy(dtype=float)
    labels = parts.y == "yes"
    base = LogisticRegression(C=np.inf).fit(np.column_stack([rows, told]), labels)
    own = model._own_decisions(*model._encoded_with(parts.X, parts.groups))
    same = own == base.predict(np.column_stack([rows, told]))
    shifts = model.group_shifts_
    assert same.mean() > 0.97
    assert shifts.shape == (2,)
    assert np.sign(shifts[0] - shifts[1]) == np.sign(base.coef_[0, -1])
    other = np.where(parts.groups == "a", "b", "a")
    assert (model._own_decisions(*model._encoded_with(parts.X, other)) != own).any()


def test_rates_meet_among_the_private_rows_up_to_the_noise(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fit(parts, DPDecoupledClassifier(**loose))
    assert model.table_gap_ <= 1e-9
    accepted = model.predict_proba(parts.X, sensitive_features=parts.groups)[:, 1]
    encoded, groups = model._encoded_with(parts.X, parts.groups)
    own = model._own_decisions(encoded, groups)
    rates, before = (
        [values[groups.codes == g].mean() for g in range(2)] for values in (accepted, own)
    )
    assert abs(rates[0] - rates[1]) <= model.noise_bound_
    assert abs(before[0] - before[1]) > 0.05  # there was something to even
    assert np.mean(rates) == pytest.approx(np.mean(before), abs=model.noise_bound_)
    wide = model.with_fairness(DemographicParity(margin=0.1, reference="pairwise"))
    assert wide.table_gap_ == pytest.approx(0.1)


def test_three_classes_are_refused_before_anything_is_spent(
    parts: Any, loose: dict[str, Any], draws: Any
) -> None:
    y = np.where(np.arange(600) % 3 == 0, "maybe", parts.y)
    with pytest.raises(ValueError, match="for two classes, got 3"):
        DPDecoupledClassifier(**loose).fit(
            parts.X, y, X_public=parts.X_public, sensitive_features=parts.groups
        )
    assert not draws.spent
