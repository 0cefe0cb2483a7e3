"""A unit is one unit however its id is written: what it moves is what was declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import PATEClassifier, show_values
from evenhand.datasets import Schema
from evenhand.estimators.drift import DriftCheck
from evenhand.generators import MarginalSynthesizer
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.images.gaussian import GaussianImages
from evenhand.generators.tables.two_tables import TwoTableSynthesizer
from evenhand.privacy import Budget

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*the predicted signal-to-noise"),
    pytest.mark.filterwarnings("ignore:.*cannot be told from"),
    pytest.mark.filterwarnings("ignore::evenhand.estimators.plan.NoiseDrownsAnswers"),
    pytest.mark.filterwarnings("ignore::evenhand.estimators.drift.DriftWarning"),
    pytest.mark.filterwarnings("ignore:delta="),
]

BUDGET = Budget(epsilon=4.0, delta=1e-5)
SCHEMA = Schema.declared({"x": ["a", "b"], "y": ["no", "yes"], "s": ["F", "M"]})
ONE_UNIT: list[Any] = [17, "17", 17.0, np.int64(17)]
N = 400
OTHERS = range(100, 100 + N)
BITS, SIDES = np.random.default_rng(0).integers(0, 2, (2, N))


def moved(monkeypatch: pytest.MonkeyPatch, fit: Callable[[list[Any]], object]) -> dict[str, float]:
    """Return by how much of what is declared one more unit moves each exact total, at most."""
    seen: list[tuple[str, Any, float]] = []
    release = BudgetPlan.release

    def spied(self: BudgetPlan, aggregator: Any, total: Any, purpose: str, **more: Any) -> Any:
        declared = aggregator.l2_sensitivity(self.ledger.neighbors)
        seen.append((self.prefix + purpose, np.array(total, dtype=float), declared))
        return release(self, aggregator, total, purpose, **more)

    monkeypatch.setattr(BudgetPlan, "release", spied)
    fit([])
    before, _ = list(seen), seen.clear()
    fit(ONE_UNIT)
    found: dict[str, float] = {}
    for (name, total, declared), (again, other, _) in zip(before, seen, strict=True):
        assert name == again
        if total.shape == other.shape:  # tables may be chosen by what was released before
            found[name] = float(np.linalg.norm(total - other) / declared)
    return found


def test_a_unit_moves_counts_of_a_table_by_what_is_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fit(ids: list[Any]) -> object:
        frame = pd.DataFrame(
            {
                "id": pd.Series([*OTHERS, *ids], dtype=object),
                "x": [*np.array(["a", "b"])[BITS], *["a"] * len(ids)],
                "y": [*np.array(["no", "yes"])[SIDES], *["no"] * len(ids)],
                "s": [*["F", "M"] * (N // 2), *["F"] * len(ids)],
            }
        )
        made = MarginalSynthesizer(random_state=0, pairs=False)
        return made.fit(frame, label="y", sensitive="s", unit="id", schema=SCHEMA, budget=BUDGET)

    found = moved(monkeypatch, fit)
    assert found
    assert max(found.values()) == pytest.approx(1.0)


def test_a_person_moves_counts_of_visits_by_what_is_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fit(ids: list[Any]) -> object:
        known: list[Any] = [*OTHERS, *ids[:1]]
        even = np.arange(len(known)) % 2
        persons = pd.DataFrame(
            {
                "id": pd.Series(known, dtype=object),
                "y": np.array(["no", "yes"])[even],
                "s": np.array(["F", "M"])[even],
            }
        )
        whose: list[Any] = [*OTHERS, *OTHERS, *ids[:2], *ids[:2]]  # two visits by each spelling
        ward = [*np.array(["A", "B"])[[*BITS, *SIDES]], *["A"] * len(ids)]
        visits = pd.DataFrame({"id": pd.Series(whose, dtype=object), "ward": ward})
        return TwoTableSynthesizer(random_state=0).fit(
            persons,
            visits,
            key="id",
            label="y",
            sensitive="s",
            most=4,
            schema=Schema.declared({"y": ["no", "yes"], "s": ["F", "M"]}),
            visits_schema=Schema.declared({"ward": ["A", "B"]}),
            budget=BUDGET,
        )

    found = moved(monkeypatch, fit)
    assert any(name.startswith("visits: ") for name in found)
    assert max(found.values()) <= 1.0 + 1e-9


def test_a_unit_moves_sums_of_pictures_by_what_is_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fit(ids: list[Any]) -> object:
        images = np.random.default_rng(0).integers(0, 255, (N, 4, 4)).astype(np.uint8)
        images = np.concatenate([images, np.full((len(ids), 4, 4), 255, dtype=np.uint8)])
        return GaussianImages(n_frequencies=4, random_state=0).fit(
            images,
            [*BITS, *[0] * len(ids)],
            unit_ids=pd.Series([*OTHERS, *ids], dtype=object),
            budget=BUDGET,
        )

    found = moved(monkeypatch, fit)
    first = next(iter(found))  # what is summed after it follows from its noisy sums
    assert 0.9 <= found[first] <= 1.0 + 1e-9


def test_a_unit_moves_counts_of_drift_by_what_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, X_public = (pd.DataFrame({"a": rng.normal(size=n)}) for n in (N, 200))

    def fit(ids: list[Any]) -> object:
        rows = pd.concat([X, pd.DataFrame({"a": [5.0] * len(ids)})], ignore_index=True)
        model = PATEClassifier(
            BUDGET, n_teachers=20, check_drift=DriftCheck(share=0.1), random_state=0, unit="person"
        )
        units = pd.Series([*OTHERS, *ids], dtype=object)
        return model.fit(rows, (rows["a"] > 0).to_numpy(), X_public=X_public, unit_ids=units)

    found = moved(monkeypatch, fit)
    assert max(found.values()) == pytest.approx(1.0)


def test_a_delta_too_large_for_the_units_warns_without_their_number() -> None:
    rng = np.random.default_rng(0)
    X, X_public = (pd.DataFrame({"a": rng.normal(size=n)}) for n in (N, 200))
    model = PATEClassifier(
        Budget(epsilon=4.0, delta=0.01), n_teachers=20, random_state=0, unit="person"
    )

    def words() -> str:
        with pytest.warns(UserWarning, match="delta=0.01 is not below") as caught:
            model.fit(X, (X["a"] > 0).to_numpy(), X_public=X_public, unit_ids=list(OTHERS))
        return " ".join(str(each.message) for each in caught)

    assert "1 / (not shown) records" in words()
    assert "this is for the curator, and not to be published" in words()
    assert str(N) not in words()
    assert "is not below" not in str(model.guarantee_)
    with show_values():
        assert f"1 / {N} records" in words()


def test_ids_that_are_neither_whole_numbers_nor_text_are_refused() -> None:
    frame = pd.DataFrame({"id": [0.5, 1.5], "x": ["a", "b"], "y": ["no", "yes"], "s": ["F", "M"]})
    with pytest.raises(TypeError, match=r"units must be whole numbers or strings.*\(float\)"):
        MarginalSynthesizer().fit(frame, label="y", sensitive="s", unit="id", budget=BUDGET)
