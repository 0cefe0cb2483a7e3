"""Small real models: hostile names and test mode, the default noise, and plain PATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.baselines import DPPostProcessingClassifier, FairOnlyClassifier
from evenhand.estimators import (
    DPSGDClassifier,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.fairness import DemographicParity, FairnessReport, fairness_report
from evenhand.privacy import Budget, ConfidentGNMax, SeededNoise

GROUPS = np.array(["<script>window.hit = 1</script>", "R&D <b>x</b>", "Île-de-France"])
CLASSES = np.array(["</script><i>deny</i>", '<img src="x" onerror="window.hit = 1">', "refer"])


@dataclass(frozen=True, kw_only=True)
class Case:
    """A fitted model with what was measured on test rows."""

    model: Any
    measured: FairnessReport | None
    predicted: Any = None
    truth: Any = None
    groups: Any = None


def _table(n: int = 3600, seed: int = 0) -> tuple[pd.DataFrame, Any, Any]:
    rng = np.random.default_rng(seed)
    z = rng.choice(3, n, p=[0.5, 0.35, 0.15])
    x = rng.normal(size=(n, 3))
    x[:, 0] += 0.6 * z
    y = np.digitize(x[:, 0] + 0.7 * x[:, 1], [0.0, 1.0])
    return pd.DataFrame(x, columns=["a", "b", "<i>c</i>"]), y, z


def _two(seed: int) -> tuple[pd.DataFrame, Any, Any]:
    """Two classes and two groups."""
    X, y, z = _table(seed=seed)
    return X, y > 0, np.array(["north", "south"])[(z > 0).astype(int)]


def _measured(model: Any, y: Any, groups: Any, predicted: Any, **more: Any) -> Case:
    truth, said = y.astype(int), predicted.astype(int)
    measured = fairness_report(truth, said, groups, classes=model.classes_, positive=1, **more)
    return Case(model=model, measured=measured, predicted=said, truth=truth, groups=groups)


@pytest.fixture(scope="session")
def hostile() -> Case:
    """Three groups and three classes, all named to do harm; noise from a seed (test mode)."""
    X, y, z = _table()
    model = FairPATEClassifier(
        Budget(epsilon=6.0, delta=1e-5),
        DemographicParity(margin=0.1),
        n_teachers=60,
        mechanism=ConfidentGNMax(threshold=35.0, sigma_check=20.0, sigma=10.0),
        student=LogisticRegression(C=0.3),  # knows of no margin
        noise=SeededNoise(0),
        cold_start=20,
        random_state=0,
    )
    model.fit(
        X[:2000],
        CLASSES[y[:2000]],
        X_public=X[2000:2800],
        sensitive_features_public=GROUPS[z[2000:2800]],
    )
    truth, groups = np.searchsorted(model.classes_, CLASSES[y[2800:]]), GROUPS[z[2800:]]
    predicted = np.searchsorted(model.classes_, model.predict(X[2800:]))
    measured = fairness_report(truth, predicted, groups, classes=model.classes_)
    return Case(model=model, measured=measured, predicted=predicted, truth=truth, groups=groups)


@pytest.fixture(scope="session")
def protected() -> Case:
    """Two groups and two classes, with the default noise and a student under the margin."""
    X, y, groups = _two(1)
    model = FairPATEClassifier(
        Budget(epsilon=4.0, delta=1e-5),
        DemographicParity(margin=0.08),
        n_teachers=60,
        random_state=0,
    )
    model.fit(
        X[:2000], y[:2000], X_public=X[2000:2800], sensitive_features_public=groups[2000:2800]
    )
    return _measured(model, y[2800:], groups[2800:], model.predict(X[2800:]))


@pytest.fixture(scope="session")
def plain() -> Case:
    """PATE: no groups, no gate, nothing measured, arrays instead of a table."""
    X, y, _ = _table(seed=2)
    model = PATEClassifier(
        Budget(epsilon=4.0, delta=1e-5), n_teachers=60, answers="labels", random_state=0
    )
    return Case(
        model=model.fit(X[:2000].to_numpy(), y[:2000], X_public=X[2000:2800].to_numpy()),
        measured=None,
    )


@pytest.fixture(scope="session")
def shares() -> Case:
    """FairShares: no label is released, and no gate stands."""
    X, y, groups = _two(3)
    model = FairSharesClassifier(
        Budget(epsilon=8.0, delta=1e-5),
        DemographicParity(margin=0.1),
        n_teachers=60,
        random_state=0,
    )
    model.fit(
        X[:2000], y[:2000], X_public=X[2000:2800], sensitive_features_public=groups[2000:2800]
    )
    plain = LogisticRegression().fit(X[:2000], y[:2000]).predict(X[2800:]).astype(int)
    return _measured(
        model,
        y[2800:],
        groups[2800:],
        model.predict(X[2800:]),
        without_margin=model.without_margin().predict(X[2800:]).astype(int),
        without_privacy=plain,
    )


@pytest.fixture(scope="session")
def steps() -> Case:
    """DP-SGD: no teachers, no answers."""
    X, y, _ = _two(4)
    model = DPSGDClassifier(
        Budget(epsilon=4.0, delta=1e-5), n_steps=20, batch_size=200, random_state=0
    )
    return Case(model=model.fit(X[:2000], y[:2000], X_public=X[2000:2800]), measured=None)


@pytest.fixture(scope="session")
def cut(steps: Case) -> Case:
    """The same under group-aware thresholds: the group is needed."""
    X, y, groups = _two(4)
    model = steps.model.with_group_thresholds(
        X[2000:2800], groups[2000:2800], fairness=DemographicParity(margin=0.05)
    )
    predicted = model.predict(X[2800:], sensitive_features=groups[2800:], random_state=0)
    return _measured(model, y[2800:], groups[2800:], predicted)


@pytest.fixture(scope="session")
def derived() -> Case:
    """Probabilities per group, from a noisy table: two ledgers, and the group is needed."""
    X, y, groups = _two(6)
    model = DPPostProcessingClassifier(
        Budget(epsilon=4.0, delta=1e-5), n_steps=20, batch_size=200, random_state=0
    )
    model.fit(X[:2000], y[:2000], sensitive_features=groups[:2000], X_public=X[2000:2800])
    predicted = model.predict(X[2800:], sensitive_features=groups[2800:], random_state=0)
    return _measured(model, y[2800:], groups[2800:], predicted)


@pytest.fixture(scope="session")
def unprotected() -> Case:
    """Fair and not private: a mixture, no ledger, no bound."""
    X, y, groups = _two(5)
    model = FairOnlyClassifier(DemographicParity(margin=0.05), max_iter=10, random_state=0)
    model.fit(X[:2000], y[:2000], sensitive_features=groups[:2000], X_public=X[2000:2800])
    return _measured(model, y[2800:], groups[2800:], model.predict(X[2800:]))
