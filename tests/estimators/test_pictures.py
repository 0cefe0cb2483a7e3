"""Pictures all the way: convolutional teachers, such a student within the margin, a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand
from evenhand import Budget, DemographicParity, FairPATEClassifier, FairSharesClassifier
from evenhand.datasets.images import load_mnist
from evenhand.estimators.shared_rows import PrivateRowsAsPublic
from evenhand.learners.nets.architectures import Convolutional
from evenhand.privacy import SeededNoise
from evenhand.students import ModuleStudent
from evenhand.teachers.stacked import NetworkTeachers

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning"),
]

MARGIN = 0.1
NETWORK = Convolutional(widths=(4, 8))


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, Any]:
    """Zeros and ones on 7 x 7 bytes, of two colours; four in five ones are of the second."""
    data = load_mnist().pooled(4)
    rows = np.flatnonzero(np.isin(data.y, [data.y[data.y == k][0] for k in np.unique(data.y)[:2]]))
    rows = np.random.default_rng(0).permutation(rows)[:2600]
    y = (data.y[rows] == np.unique(data.y)[1]).astype(np.int64)
    color = np.where(np.random.default_rng(1).random(len(y)) < 0.8, y, 1 - y)
    X = np.zeros((len(y), 2, 7, 7), dtype=np.uint8)
    X[np.arange(len(y)), color] = data.images[rows]
    return X, np.array(["zero", "one"])[y], np.array(["red", "green"])[color]


def gap(decided: Any, groups: Any) -> float:
    """Largest difference of the two groups' rates, counted anew."""
    return max(
        abs((decided[groups == "red"] == k).mean() - (decided[groups == "green"] == k).mean())
        for k in ("zero", "one")
    )


@pytest.mark.parametrize("method", [FairSharesClassifier, FairPATEClassifier])
def test_digits_are_learned_within_the_margin_saved_and_read_back(
    method: Any, digits: Any, tmp_path: Path
) -> None:
    X, y, color = digits
    private, public, new = slice(0, 1600), slice(1600, 2100), slice(2100, None)
    model = method(
        Budget(epsilon=8.0, delta=1e-5),
        DemographicParity(margin=MARGIN, reference="pairwise"),
        n_teachers=20,
        teachers=NetworkTeachers(NETWORK, epochs=10, batch_size=16, learning_rate=0.01),
        student=ModuleStudent(NETWORK, batch_size=32, epochs=10),
        noise=SeededNoise(0),
        random_state=0,
    ).fit(X[private], y[private], X_public=X[public], sensitive_features_public=color[public])
    decided = model.predict(X[public])
    assert model.within_margin_
    assert gap(decided, color[public]) == pytest.approx(model.public_gap_)
    assert model.public_gap_ <= MARGIN
    if method is FairSharesClassifier:
        # Without the margin it is right, and far outside: color goes with the digit. A gate lets
        # other labels through, so students of labels are nearer to the margin without it.
        free = model.without_margin().predict(X[public])
        assert gap(free, color[public]) > 0.4
        assert (free == y[public]).mean() > 0.9
    model.save(tmp_path / "model")
    again = evenhand.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X[new]), model.predict(X[new]))
    np.testing.assert_array_equal(again.predict_proba(X[new]), model.predict_proba(X[new]))
    np.testing.assert_array_equal(
        again.without_margin().predict(X[new]), model.without_margin().predict(X[new])
    )
    with pytest.raises(ValueError, match="must be uint8 of shape"):
        again.predict((X[new] / 255).astype(np.float32))


def test_what_stops_pictures_is_said_before_anything_is_learnt(digits: Any) -> None:
    X, y, color = digits
    budget, margin = Budget(epsilon=8.0, delta=1e-5), DemographicParity(margin=MARGIN)

    def fit(X: Any, X_public: Any, **settings: Any) -> Any:
        settings = {"teachers": NetworkTeachers(NETWORK, epochs=1), "n_teachers": 4} | settings
        model = FairSharesClassifier(budget, margin, **settings)
        n, m = len(X), len(X_public)
        return model.fit(X, y[:n], X_public=X_public, sensitive_features_public=color[n : n + m])

    private, public = X[:200], X[200:300]
    with pytest.raises(ValueError, match=r"X must be a table .* or pictures .* got float64"):
        fit(private / 255, public)
    with pytest.raises(ValueError, match="must be uint8 of shape"):
        fit(private[..., :6], public, student=NETWORK)
    with pytest.raises(ValueError, match="resize pictures to one size"):
        fit([*private[:199], private[199][:, :6]], public)
    with pytest.raises(ValueError, match=r"this student does not read.*ModuleStudent"):
        fit(private, public)
    with pytest.raises(ValueError, match="LogisticTeachers reads tables"):
        fit(private, public, teachers=None, student=NETWORK)
    with pytest.raises(PrivateRowsAsPublic):
        fit(private, private[:100])
