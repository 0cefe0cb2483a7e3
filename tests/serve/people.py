"""People who ask, and a desk that decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand import DemographicParity, ErrorParity
from evenhand.serve.cases import Reader
from evenhand.serve.desk import Desk
from evenhand.serve.store import DecisionStore


def table(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw people: men have more income, so a model says yes to them more often."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["women", "men"], n)
    X = pd.DataFrame(
        {
            "income": rng.normal(45 + 10 * (groups == "men"), 15, n).round(1),
            "job": rng.choice(["nurse", "clerk", "cook"], n),
        }
    )
    return X, groups


def rows(n: int, seed: int) -> list[dict[str, Any]]:
    """Return rows as a client sends them."""
    X, groups = table(n, seed)
    return X.assign(sex=groups).to_dict("records")


def new_desk(option: Any, where: Any, **settings: Any) -> Desk:
    return Desk(option, DecisionStore(where), Reader.of(option, ("sex",)), **settings)


def calibrated(n: int = 4000, **settings: Any) -> dict[str, Any]:
    """Return two margins, and labelled rows for the one about true classes."""
    X, groups = table(n, 50)
    return {
        "margin": None,
        "fairness": [DemographicParity(margin=0.1), ErrorParity(margin=0.3)],
        "X_calibration": X,
        "y_calibration": np.where(X["income"] > 50, "yes", "no"),
        "sensitive_features_calibration": groups,
        **settings,
    }
