"""Rows of cells are encoded, and decided on, as a frame of them is: bit for bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand import Budget, PATEClassifier
from evenhand.datasets import PublicEncoder, Schema
from evenhand.datasets.cells import CellTable
from evenhand.privacy import SeededNoise

TEXTS = ("a", "b", "1", "True", "2.5", "")
NUMBERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
)
CELLS = st.one_of(NUMBERS, st.sampled_from((*TEXTS, "unheard-of")))
ROWS = st.lists(
    st.fixed_dictionaries({"n": NUMBERS, "m": NUMBERS, "c": CELLS, "d": CELLS}), max_size=6
)


def frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the rows as a data frame that says nothing about what its columns hold."""
    numbers = {
        name: np.array([math.nan if row[name] is None else float(row[name]) for row in rows])
        for name in ("n", "m")
    }
    texts = {name: pd.Series([row[name] for row in rows], dtype=object) for name in ("c", "d")}
    return pd.DataFrame(numbers | texts)


def encoder(*, missing: bool) -> PublicEncoder:
    of_kind: dict[str, Any] = {"kind": "numeric", "bounds": [-5.0, 100.0], "missing": missing}
    text = {"kind": "categorical", "categories": TEXTS, "missing": missing}
    return PublicEncoder(Schema.declared({"n": of_kind, "m": of_kind, "c": text, "d": text})).fit(
        None
    )


@pytest.mark.parametrize("missing", [False, True])
@settings(max_examples=150, deadline=None)
@given(rows=ROWS)
def test_cells_are_encoded_as_a_frame_of_them_is(missing: bool, rows: list[dict[str, Any]]) -> None:
    made = encoder(missing=missing)
    expected = made.transform(frame(rows))
    found = made.transform(CellTable(rows, ["d", "n", "c", "m"]))
    assert found.tobytes() == expected.tobytes()
    assert found.shape == expected.shape


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="have no column 'm'"):
        encoder(missing=False).transform(CellTable([{"n": 1}], ["n"]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_model_predicts_on_cells_as_on_a_frame(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=900), "c": rng.choice(["a", "b"], 900)})
    y = np.digitize(X["x"], np.linspace(-1, 1, n_classes - 1))
    budget = Budget(epsilon=50.0, delta=1e-5)
    model = PATEClassifier(budget, n_teachers=5, noise=SeededNoise(0), random_state=0)
    model.fit(X[:600], y[:600], X_public=X[600:])
    cells = CellTable(X.to_dict("records"), X.columns)
    assert model.predict(cells).tolist() == model.predict(X).tolist()
    assert model.predict_proba(cells).tobytes() == model.predict_proba(X).tobytes()
    assert len(set(model.predict(X).tolist())) == n_classes
