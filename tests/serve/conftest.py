"""A model, a store, and a server in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # people, crashes
pytest.importorskip("fastapi", reason="the extra serve is not installed")

from people import new_desk, table

from evenhand import Budget, DemographicParity, FairSharesClassifier
from evenhand.serve.app import create_app
from evenhand.serve.desk import Desk
from evenhand.serve.tokens import Role


@pytest.fixture(scope="session")
def model() -> Any:
    X, groups = table(1500, 0)
    y = np.where(X["income"] > 50, "yes", "no")
    return FairSharesClassifier(
        budget=Budget(epsilon=20.0, delta=1e-5),
        fairness=DemographicParity(margin=0.5),
        n_teachers=20,
        random_state=0,
    ).fit(X[:1000], y[:1000], X_public=X[1000:], sensitive_features_public=groups[1000:])


@pytest.fixture
def option(model: Any) -> Callable[..., Any]:
    def make(**settings: Any) -> Any:
        given = {"margin": 0.05, "cold_start": 20} | settings
        return model.with_reject_option(given.pop("margin"), **given)

    return make


@pytest.fixture
def desk(option: Callable[..., Any], tmp_path: Path) -> Iterator[Desk]:
    made = new_desk(option(), tmp_path / "store.db")
    yield made
    made.close()


@pytest.fixture
def client(desk: Desk) -> Iterator[Any]:
    from starlette.testclient import TestClient

    tokens = {role: desk.store.add_token(f"the {role}", role) for role in Role}
    with TestClient(create_app(desk, claim="the claim")) as made:
        made.tokens = tokens
        yield made
