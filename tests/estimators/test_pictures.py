"""Pictures all the way: convolutional teachers, such a student within the margin, a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand
from evenhand import (
    Budget,
    DemographicParity,
    FairPATEClassifier,
    FairSharesClassifier,
    PFLDClassifier,
    SFPATEClassifier,
)
from evenhand.datasets.images import load_mnist
from evenhand.estimators.shared_rows import PrivateRowsAsPublic
from evenhand.fairness.functions import worst_violation
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


@pytest.mark.slow
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


# ---- where the group alone is private: pictures and labels are public ----------------------------

NOTION = DemographicParity(margin=MARGIN, reference="overall")
FREE = DemographicParity(margin=1.0, reference="overall")


@pytest.fixture(scope="module")
def doubtful(digits: Any) -> tuple[Any, Any, Any]:
    """Digits of which one label in seven is wrong, so that no network is sure."""
    X, y, color = digits
    wrong = np.random.default_rng(5).random(len(y)) < 1 / 7
    return X, np.where(wrong, np.where(y == "one", "zero", "one"), y), color


def sf_pate(variant: str, epsilon: float = 8.0, **settings: Any) -> Any:
    usual: dict[str, Any] = {
        "fairness": NOTION,
        "n_teachers": 20,
        "teachers": NetworkTeachers(NETWORK, epochs=10, batch_size=16, learning_rate=0.01),
        "student": ModuleStudent(NETWORK, batch_size=32, epochs=10),
        "noise": SeededNoise(0),
        "random_state": 0,
    }
    budget = Budget(epsilon=epsilon, delta=1e-5)
    return SFPATEClassifier(budget, variant, **{**usual, **settings})


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["student", "teachers"])
def test_sf_pate_holds_a_network_of_pictures_for_true_groups_and_is_read_back(
    variant: str, doubtful: Any, tmp_path: Path
) -> None:
    X, y, color = doubtful
    codes = np.unique(y, return_inverse=True)[1]
    own, new = slice(0, 2000), slice(2000, None)
    model = sf_pate(variant).fit(X[own], y[own], sensitive_features=color[own])
    assert any("pictures" in said for said in model.guarantee_.public)
    assert model.within_alpha_
    free = sf_pate(variant, fairness=FREE).fit(X[own], y[own], sensitive_features=color[own])
    assert (free.predict(X[new]) == y[new]).mean() > 0.75
    apart = {
        name: worst_violation(NOTION, m.predict_proba(X[new]), codes[new], color[new])
        for name, m in {"held": model, "free": free}.items()
    }
    assert apart["free"] > 2 * MARGIN  # color goes with the digit
    assert apart["held"] < (MARGIN + apart["free"]) / 2  # 600 new rows: a deviation of .02
    model.save(tmp_path / "model")
    again = evenhand.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X[new]), model.predict_proba(X[new]))
    assert str(again.guarantee_) == str(model.guarantee_)


@pytest.mark.slow
def test_where_labels_are_protected_a_network_learns_the_released_votes_alone(
    doubtful: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.estimators.sf_pate import classifier

    X, y, color = doubtful
    X, y, color = X[:1000], y[:1000], color[:1000]
    how: dict[str, Any] = {
        "epsilon": 50.0,
        "n_teachers": 15,
        "n_queries": 300,
        "pull": 0.0,
        "fairness": FREE,
    }
    how["calibration"] = None
    wanted = sf_pate("teachers", **how).fit(X, y, sensitive_features=color)
    assert wanted.guarantee_.unit == "sensitive attribute and class label of one person"
    assert (wanted.predict(X) == y).mean() > 0.7
    released = wanted.answers_
    monkeypatch.setattr(classifier, "release_shares", lambda *_: released)
    mixed = np.random.default_rng(9).permutation(len(y))
    wrong = sf_pate("teachers", **how).fit(X, y[mixed], sensitive_features=color[mixed])
    np.testing.assert_array_equal(wanted.predict_proba(X), wrong.predict_proba(X))


@pytest.mark.slow
def test_sf_pate_takes_architectures_as_they_are_and_many_groups(digits: Any) -> None:
    X, y, color = digits
    groups = np.where(np.arange(len(y)) % 3 == 0, "none", color)
    model = sf_pate("student", teachers=NETWORK, student=NETWORK, n_teachers=5, n_queries=100)
    model.fit(X[:600], y[:600], sensitive_features=groups[:600])
    assert model.groups_ == ("green", "none", "red")
    assert model.predict(X[600:]).shape == (len(y) - 600,)


def test_pictures_without_a_network_are_refused_with_the_way_out(digits: Any) -> None:
    X, y, color = digits
    with pytest.raises(ValueError, match=r"student=Convolutional\(\)"):
        sf_pate("student", student=None).fit(X, y, sensitive_features=color)
    with pytest.raises(ValueError, match="LogisticTeachers reads tables"):
        sf_pate("student", teachers=None).fit(X, y, sensitive_features=color)
    with pytest.raises(ValueError, match=r"PFLDClassifier reads rows of numbers.*extract"):
        PFLDClassifier(Budget(epsilon=1.0, delta=1e-5), NOTION).fit(X, y, sensitive_features=color)
