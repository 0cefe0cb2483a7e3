"""DPEBMClassifier: what one record moves, what it costs, that it learns, refusals, saving."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file
from scipy.special import expit

import evenhand
from evenhand import Budget, DemographicParity
from evenhand._folder import seal
from evenhand.baselines.explainable_boosting import (
    UNIT,
    BinnedColumn,
    Boosting,
    DPEBMClassifier,
    binned_columns,
)
from evenhand.datasets import PublicEncoder, Schema
from evenhand.estimators import ModelDamaged
from evenhand.estimators.saving.fingerprint import fingerprint
from evenhand.privacy import BudgetExceeded, FloatNoise, Ledger, SeededNoise
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.noise import NoPrivacy

BUDGET = Budget(epsilon=3.0, delta=1e-5)


def fit(parts: Any, model: Any, **changes: Any) -> Any:
    return model.fit(**({"X": parts.X, "y": parts.y, "X_public": parts.X_public} | changes))


def boosting(residuals: str = "probability", rate: float = 0.2) -> Boosting:
    return Boosting(residuals=residuals, learning_rate=rate, max_leaves=3, fewest=1.0)


@pytest.mark.parametrize("residuals", ["probability", "label"])
def test_one_record_moves_the_sums_of_a_visit_by_at_most_one(residuals: str) -> None:
    # Brute force: every record of small tables removed, scores far outside [0, 1] included; the
    # leaves of all bins in all ways.
    rng = np.random.default_rng(0)
    largest, replaced = 0.0, 0.0
    for _ in range(60):
        n = int(rng.integers(2, 7))
        scores, y = rng.choice([-40.0, -0.6, 0.0, 0.3, 1.7, 40.0], n), rng.integers(0, 2, n)
        leaf = rng.integers(0, 3, n)
        whole = boosting(residuals).leaf_sums(scores, y, leaf)
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            apart = whole - boosting(residuals).leaf_sums(scores[rest], y[rest], leaf[rest])
            assert np.linalg.norm(apart) <= UNIT
            largest = max(largest, float(np.linalg.norm(apart)))
            other = boosting(residuals).leaf_sums(
                np.append(scores[rest], -scores[i]),
                np.append(y[rest], 1 - y[i]),
                np.append(leaf[rest], leaf[i]),
            )
            replaced = max(replaced, float(np.linalg.norm(whole - other)))
    assert largest == UNIT  # the bound is met: no smaller noise would do
    assert UNIT < replaced <= 2 * UNIT  # as the docstring says of replacing


def test_a_record_is_in_one_bin_of_each_column_whatever_it_holds() -> None:
    public = pd.DataFrame({"x": [0.0, 1.0, 2.0, None], "job": ["a", "b", "a", "b"]})
    encoder = PublicEncoder().fit(public)
    encoded = encoder.transform(public)
    columns = binned_columns(encoder, encoded, 4)
    assert [column.n_bins for column in columns] == [3, 2, 3]  # x, x is missing, job
    odd = pd.DataFrame({"x": [1e300, -np.inf, np.nan], "job": ["c", None, "b"]})
    for column in columns:
        codes = column.codes(encoder.transform(odd))
        assert codes.shape == (3,)
        assert ((codes >= 0) & (codes < column.n_bins)).all()
    assert columns[2].codes(encoder.transform(odd)).tolist() == [0, 0, 2]


def test_the_budget_is_spent_and_not_passed(parts: Any) -> None:
    # Second derivation: mu of the counts and of all visits, added up here, back to epsilon.
    model = fit(parts, DPEBMClassifier(BUDGET, n_rounds=7, noise=FloatNoise(), count_budget=0.25))
    counter, summer = model.mechanism_
    n_columns = 3  # income, income is missing, job
    of_counts = n_columns / counter.sigma**2
    of_visits = 7 * n_columns * UNIT**2 / summer.sigma**2
    epsilon = epsilon_from_mu(math.sqrt(of_counts + of_visits), BUDGET.delta)
    assert 3.0 * (1 - 1e-6) < epsilon <= 3.0
    assert of_counts / (of_counts + of_visits) == pytest.approx(0.25)
    assert model.ledger_.spent <= BUDGET.mu_squared
    assert model.guarantee_.mu_squared == BUDGET.mu_squared


def test_without_noise_it_is_the_algorithm_written_row_by_row(parts: Any) -> None:
    # An independent version, in loops over rows: same cuts, exact sums.
    settings = {"n_rounds": 4, "recalibrated": False, "random_state": 3}
    model = fit(parts, DPEBMClassifier(BUDGET, noise=NoPrivacy(), **settings))
    encoded = model.encoder_.transform(parts.X)
    columns = binned_columns(model.encoder_, model.encoder_.transform(parts.X_public), 32)
    y = (parts.y == "yes").to_numpy(dtype=int)
    rng = np.random.default_rng(3)
    scores = [0.0] * len(y)
    for _ in range(4):
        for column in columns:
            leaves, codes = boosting().leaves(column, rng), column.codes(encoded)
            for leaf in range(3):
                held = [i for i in range(len(y)) if leaves[codes[i]] == leaf]
                step = sum(y[i] - expit(scores[i]) for i in held) / max(len(held), 1)
                leaves_of = dict.fromkeys(held, 0.2 * step)
                # All leaves are disjoint, so one may be moved before the next is summed.
                for i, by in leaves_of.items():
                    scores[i] += by
    np.testing.assert_allclose(
        model.student_.decision_function(encoded), scores, atol=4 * 3 / UNIT * 4
    )


def test_the_cuts_and_bins_know_nothing_of_the_data(parts: Any) -> None:
    one = fit(parts, DPEBMClassifier(BUDGET, n_rounds=2, random_state=0))
    other = fit(
        parts,
        DPEBMClassifier(BUDGET, n_rounds=2, random_state=0),
        X=parts.X.assign(income=parts.X["income"] * 100 - 7),
    )
    for mine, theirs in zip(one.student_.edges, other.student_.edges, strict=True):
        assert np.array_equal(mine, theirs)
    column, rng = BinnedColumn(0, 5, None), np.random.default_rng(0)
    seen = {tuple(boosting().leaves(column, rng)) for _ in range(200)}
    assert len(seen) > 100  # categories are put in a new order each time
    assert all(set(leaves) == {0, 1, 2} for leaves in seen)


@pytest.mark.parametrize("residuals", ["probability", "label"])
def test_it_learns_a_function_that_no_line_follows(residuals: str) -> None:
    # y follows |x|: a linear model has an error of .5. Errors of 4000 test rows have a standard
    # deviation below .008, and the bound is 10 of these from what is expected (.1).
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (9000, 2))
    y = np.abs(X[:, 0]) > 1
    flip = rng.random(9000) < 0.1
    model = DPEBMClassifier(
        Budget(epsilon=1.0, delta=1e-5), residuals=residuals, n_rounds=100, learning_rate=0.2
    )
    model.fit(X[:4000], (y ^ flip)[:4000], X_public=X[4000:5000])
    assert ((model.predict(X[5000:]) != (y ^ flip)[5000:]).mean()) < 0.18
    # Six standard deviations: of 64 cells, each sqrt(2) / sqrt(mu^2 / 10), halved by two columns.
    off = 6 * math.sqrt(64 / 2) * model.mechanism_[0].sigma
    assert model.n_counted_ == pytest.approx(4000, abs=off)
    assert model.positive_share_ == pytest.approx((y ^ flip)[:4000].mean(), abs=2 * off / 4000)


def test_the_intercept_follows_the_noisy_share(parts: Any) -> None:
    settings = {"n_rounds": 5, "noise": SeededNoise(2), "random_state": 0}
    model = fit(parts, DPEBMClassifier(BUDGET, **settings))
    p = model.predict_proba(parts.X_public)[:, 1]
    assert p.mean() == pytest.approx(model.positive_share_, abs=1e-6)
    plain = fit(parts, DPEBMClassifier(BUDGET, recalibrated=False, **settings))
    apart = model.student_.decision_function(model.encoder_.transform(parts.X))
    apart = apart - plain.student_.decision_function(model.encoder_.transform(parts.X))
    assert np.ptp(apart) < 1e-9  # one number is added to every score
    assert abs(apart[0]) > 1e-3


def test_a_schema_with_bounds_stands_in_for_public_rows(parts: Any) -> None:
    schema = Schema.declared({"income": {"bounds": (-3, 4)}, "job": ["nurse", "clerk", "cook"]})
    model = DPEBMClassifier(BUDGET, n_rounds=20, schema=schema, max_bins=8)
    model.fit(parts.X, parts.y)
    assert len(model.student_.edges[0]) == 7
    np.testing.assert_allclose(np.diff(model.student_.edges[0], 2), 0, atol=1e-9)
    assert not any("public rows" in words for words in model.guarantee_.public)
    assert (model.predict(parts.X) == parts.y).mean() > 0.6


def test_a_shared_account_is_charged_and_can_refuse(parts: Any) -> None:
    account = Ledger(
        Budget(epsilon=4.0, delta=1e-5), noise=SeededNoise(0), neighbors="add or remove one"
    )
    fit(parts, DPEBMClassifier(BUDGET, n_rounds=3), ledger=account)
    assert account.spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    with pytest.raises(BudgetExceeded, match="Nothing was charged or drawn"):
        fit(parts, DPEBMClassifier(BUDGET, n_rounds=3), ledger=account)
    assert account.spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    other = Ledger(BUDGET, noise=SeededNoise(0))
    with pytest.raises(ValueError, match="counts for replace one record"):
        fit(parts, DPEBMClassifier(BUDGET), ledger=other)


def test_thresholds_and_blind_rules_go_around_it_and_all_is_saved(
    parts: Any, tmp_path: Any
) -> None:
    model = fit(parts, DPEBMClassifier(BUDGET, n_rounds=30, random_state=0))
    parity = DemographicParity(margin=0.02)
    cut = model.with_group_thresholds(parts.X_public, parts.groups_public, fairness=parity)
    rates = [
        cut.predict(parts.X_public, sensitive_features=parts.groups_public, random_state=0)[
            (parts.groups_public == group).to_numpy()
        ]
        for group in ("a", "b")
    ]
    assert abs((rates[0] == "yes").mean() - (rates[1] == "yes").mean()) < 0.05
    # The noise is the system's, and with some of it no rule is within .02 of so few public rows.
    wider = DemographicParity(margin=0.05)
    blind = model.with_blind_rule(parts.X_public, parts.groups_public, fairness=wider)
    assert blind.within_margin_
    for name, one in (("plain", model), ("blind", blind)):
        again = evenhand.load(one.save(tmp_path / name))
        assert np.array_equal(one.predict_proba(parts.X), again.predict_proba(parts.X))
        assert fingerprint(again) == fingerprint(one)
        assert again.n_counted_ == model.n_counted_
    assert np.array_equal(evenhand.load(cut.save(tmp_path / "cut")).thresholds_, cut.thresholds_)


@pytest.mark.parametrize(
    ("settings", "changes", "message"),
    [
        ({"residuals": "odds"}, {}, "'probability', 'label'"),
        ({"n_rounds": 0}, {}, "n_rounds must be at least 1"),
        ({"learning_rate": 0.0}, {}, "learning_rate must be finite and > 0"),
        ({"max_leaves": 1}, {}, "max_leaves must be at least 2"),
        ({"max_bins": 1}, {}, "max_bins must be at least 2"),
        ({"count_budget": 1.0}, {}, "count_budget must lie strictly between 0 and 1"),
        ({"budget": None}, {}, "budget must be a Budget"),
        ({}, {"X_public": None}, "scales its columns by public knowledge"),
        ({}, {"y": ["no", "maybe", "yes"] * 200}, "for two classes, got 3"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_drawn(
    parts: Any, draws: Any, settings: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fit(
            parts,
            DPEBMClassifier(**({"budget": BUDGET, "noise": SeededNoise(0)} | settings)),
            **changes,
        )
    assert not draws.spent
    rows = np.ones((50, 2))
    with pytest.raises(ValueError, match="No column has two bins"):
        DPEBMClassifier(BUDGET).fit(rows, np.arange(50) % 2, X_public=rows + 1)


def test_a_folder_whose_tables_do_not_fit_is_refused(parts: Any, tmp_path: Any) -> None:
    model = fit(parts, DPEBMClassifier(BUDGET, n_rounds=2))
    path = model.save(tmp_path / "model")
    head = json.loads((path / "model.json").read_text())
    for name, value in (("link", "probit"), ("intercept", "high")):
        changed = head | {"student": head["student"] | {name: value}}
        (path / "model.json").write_text(json.dumps(changed))
        seal(path, "model")
        with pytest.raises(ModelDamaged):
            evenhand.load(path)
    (path / "model.json").write_text(json.dumps(head))
    arrays = load_file(path / "student.safetensors")
    save_file(arrays | {"n_edges": arrays["n_edges"] + 1}, path / "student.safetensors")
    seal(path, "model")
    with pytest.raises(ModelDamaged):
        evenhand.load(path)
