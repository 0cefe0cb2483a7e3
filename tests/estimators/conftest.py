"""A small table with missing values and text columns, in three parts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from evenhand import Budget, DemographicParity, FairPATEClassifier
from evenhand._folder import seal
from evenhand.privacy import GNMax, Ledger, SeededNoise


class Parts(NamedTuple):
    X: pd.DataFrame
    y: pd.Series
    groups: pd.Series
    X_public: pd.DataFrame
    groups_public: pd.Series

    def fit(self, model: FairPATEClassifier, **changes: Any) -> FairPATEClassifier:
        given = {
            "X": self.X,
            "y": self.y,
            "X_public": self.X_public,
            "sensitive_features_public": self.groups_public,
        }
        return model.fit(**(given | changes))


Reseal = Callable[..., None]


@pytest.fixture
def reseal() -> Reseal:
    """Return ``reseal(path, change)``: change a JSON file of a folder, and its manifest anew."""

    def invoke(
        path: Path, change: Callable[[dict[str, Any]], object], file: str = "model.json"
    ) -> None:
        values = json.loads((path / file).read_text())
        change(values)
        (path / file).write_text(json.dumps(values))
        seal(path, "model")

    return invoke


class Draws(NamedTuple):
    """What was charged when noise was drawn."""

    ledgers: list[Ledger]
    spent: list[float]  # at each draw: what the newest ledger has spent, as a share of its budget


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    """Watch every draw of ``SeededNoise``, and the ledgers that are opened."""
    seen = Draws([], [])
    opened = Ledger.__init__

    def watched_open(self: Any, *args: Any, **given: Any) -> None:
        seen.ledgers.append(self)
        opened(self, *args, **given)

    monkeypatch.setattr(Ledger, "__init__", watched_open)
    for name in ("gaussian", "laplace"):
        draw = getattr(SeededNoise, name)

        def watched(self: Any, scale: float, shape: Any, draw: Any = draw) -> Any:
            ledger = seen.ledgers[-1]
            seen.spent.append(ledger.spent / ledger.budget.mu_squared)
            return draw(self, scale, shape)

        monkeypatch.setattr(SeededNoise, name, watched)
    return seen


@pytest.fixture(autouse=True)
def array_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let scikit-learn's checks of input through its array API run: without this they skip."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@pytest.fixture
def parts() -> Parts:
    return made_parts()


@pytest.fixture
def settings() -> dict[str, Any]:
    return made_settings()


def made_parts() -> Parts:
    rng = np.random.default_rng(0)
    n, n_public = 600, 300
    groups = pd.Series(rng.choice(["a", "b"], n + n_public, p=[0.7, 0.3]))
    X = pd.DataFrame(
        {
            "income": rng.normal(size=n + n_public) + (groups == "a") * 0.5,
            "job": rng.choice(["nurse", "clerk", "cook"], n + n_public),
        }
    )
    X.loc[rng.random(n + n_public) < 0.05, "income"] = np.nan
    signal = X["income"].fillna(0) + rng.normal(size=n + n_public) / 2
    y = pd.Series(np.where(signal > 0.3, "yes", "no"))
    return Parts(X[:n], y[:n], groups[:n], X[n:], groups[n:])


def made_settings() -> dict[str, Any]:
    return {
        "budget": Budget(epsilon=100.0, delta=1e-5),
        "fairness": DemographicParity(margin=0.1),
        "n_teachers": 20,
        "mechanism": GNMax(sigma=3.0),
        "noise": SeededNoise(1),
        "random_state": 0,
    }


@pytest.fixture
def loose() -> dict[str, Any]:
    """Settings of noisy gradient steps with next to no noise."""
    return {
        "budget": Budget(epsilon=50.0, delta=1e-5),
        "n_steps": 150,
        "batch_size": 200,
        "noise": SeededNoise(1),
        "random_state": 0,
    }
