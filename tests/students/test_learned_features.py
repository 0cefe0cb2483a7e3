"""A network as a student: held to the margin as the linear one is, for labels and for shares."""

from __future__ import annotations

import importlib
import sys
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import evenhand
from evenhand import DemographicParity, EqualizedOdds
from evenhand._stored import STORED
from evenhand.learners.nets.architectures import Convolutional, Dense, registered
from evenhand.students import MarginNotMet, ModuleStudent, NetworkStudent
from evenhand.students.learned_features import LearnedFeatures
from evenhand.students.student import fit_student
from evenhand.students.within import Within
from evenhand.voting import Answers, Reason, Shares

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning"),
]


def people(n_groups: int, n_classes: int, n: int = 900, seed: int = 0) -> tuple[Any, Any, Any]:
    """Classes that follow the group closely, so that a student without a margin is far outside."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % n_groups
    X = rng.normal(size=(n, 4))
    X[:, 1] += 3.0 * z
    y = np.clip(np.floor((X[:, 0] + X[:, 1]) / 3.0 * n_classes / n_groups + 0.5), 0, n_classes - 1)
    return X, y.astype(np.int64), z


def answered(y: Any, n_classes: int, kind: str, rng: np.random.Generator) -> Any:
    if kind == "shares":
        shares = np.eye(n_classes)[y] + rng.normal(0, 0.2, size=(len(y), n_classes))
        return Shares(shares=shares, variance=np.full(len(y), 0.04), n_asked=len(y), groups=None)
    given = np.where(np.arange(len(y)) % 5 == 0, -1, y)  # one in five is refused
    order = np.flatnonzero(given >= 0)
    return Answers(
        labels=given,
        reasons=np.where(given >= 0, 0, int(Reason.NO_CONSENSUS)),
        order=order,
        events=np.arange(len(order)),
        groups=None,
        n_checks=len(given),
        n_draws=len(order),
        n_classes=n_classes,
    )


def gap(decided: Any, z: Any) -> float:
    """Largest difference of two groups' rates of any class, counted anew."""
    return max(
        abs((decided[z == a] == k).mean() - (decided[z == b] == k).mean())
        for a, b in combinations(np.unique(z), 2)
        for k in np.unique(decided)
    )


@pytest.mark.parametrize("kind", ["labels", "shares"])
@pytest.mark.parametrize(("n_groups", "n_classes"), [(2, 2), (3, 2), (3, 3)])
def test_the_margin_is_kept_on_public_rows_and_broken_without_it(
    n_groups: int, n_classes: int, kind: str
) -> None:
    X, y, z = people(n_groups, n_classes)
    margin = DemographicParity(margin=0.1, reference="pairwise")
    within = Within(notion=margin, groups=z, n_groups=n_groups)
    found = answered(y, n_classes, kind, np.random.default_rng(0))
    student = fit_student(NetworkStudent(hidden=(12,)), X, found, within)
    assert student.bound
    assert student.met
    assert student.public_gap == pytest.approx(gap(student.model.predict(X), z))
    assert student.public_gap <= 0.1
    free = student.without_margin.predict(X)
    assert gap(free, z) > 0.5
    assert (free == y).mean() > 0.8


def test_a_margin_about_true_classes_is_read_on_calibration_rows() -> None:
    X, y, z = people(2, 2)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(y)) < 0.2, 1 - y, y)  # each class occurs in each group
    own, other = slice(0, 500), slice(500, None)
    odds = EqualizedOdds(margin=0.1, reference="pairwise")
    within = Within(
        notion=odds, groups=z[other], n_groups=2, X=X[other], labels=y[other],
        source="calibration rows",
    )  # fmt: skip
    found = answered(y[own], 2, "shares", rng)
    student = fit_student(Dense(hidden=(12,)), X[own], found, within)
    assert student.met

    def apart(model: Any) -> float:
        decided = model.predict(X[other])
        return max(
            abs(np.diff([decided[(z[other] == a) & (y[other] == k)].mean() for a in (0, 1)])[0])
            for k in (0, 1)
        )

    assert apart(student.model) == pytest.approx(student.public_gap)
    assert apart(student.model) <= 0.1
    assert apart(student.without_margin) > 0.3


def test_the_network_and_its_last_layer_are_one_classifier() -> None:
    X, y, _ = people(3, 3)
    found = answered(y, 3, "labels", np.random.default_rng(0))
    settings = ModuleStudent(Dense(hidden=(8,)), batch_size=64)
    learned = LearnedFeatures.of(settings, X, found, np.random.default_rng(0))
    features = learned.transform(X)
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-6)
    student = fit_student(settings, X, found, rng=np.random.default_rng(0))
    by_hand = fit_student(None, features, found).model
    np.testing.assert_allclose(
        student.model.predict_proba(X), by_hand.predict_proba(features), atol=1e-9
    )
    again = fit_student(settings, X, found, rng=np.random.default_rng(0)).model
    np.testing.assert_array_equal(again.predict_proba(X), student.model.predict_proba(X))


OWN = """
from dataclasses import dataclass
import torch
from evenhand.learners.nets.architectures import registered

@registered
@dataclass(frozen=True)
class Narrow:
    width: int = 5

    def build(self, shape, n_outputs):
        inner = torch.nn.Linear(shape[0], self.width)
        return torch.nn.Sequential(inner, torch.nn.Tanh(), torch.nn.Linear(self.width, n_outputs))
"""


def test_a_network_of_ones_own_is_read_back_where_its_class_is_trusted(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_networks.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    kind = importlib.import_module("own_networks").Narrow
    X, y, z = people(2, 2)
    model = evenhand.FairSharesClassifier(
        evenhand.Budget(epsilon=8.0, delta=1e-5),
        DemographicParity(margin=0.1),
        n_teachers=5,
        student=ModuleStudent(kind(width=4)),
        random_state=0,
    ).fit(X[:600], y[:600], X_public=X[600:], sensitive_features_public=z[600:])
    model.save(tmp_path / "model")
    monkeypatch.delitem(STORED, "Narrow")  # as in a process that has not imported it
    monkeypatch.delitem(sys.modules, "own_networks")
    with pytest.raises(ValueError, match=r"own_networks:Narrow.*trusted="):
        evenhand.load(tmp_path / "model")
    assert "own_networks" not in sys.modules
    again = evenhand.load(tmp_path / "model", trusted=["own_networks:Narrow"])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="Dense is the name of"):
        registered(type("Dense", (), {}))


def test_a_network_without_a_last_linear_layer_is_refused() -> None:
    X, y, _ = people(2, 2)
    found = answered(y, 2, "labels", np.random.default_rng(0))
    scaled = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Hardtanh())
    with pytest.raises(ValueError, match=r"must end with a torch\.nn\.Linear"):
        fit_student(ModuleStudent(scaled), X, found)


def test_the_default_student_refuses_pictures() -> None:
    pictures = np.zeros((30, 1, 4, 4), dtype=np.uint8)
    found = answered(np.arange(30) % 2, 2, "shares", np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"pictures of shape \(1, 4, 4\).*ModuleStudent"):
        fit_student(None, pictures, found)
    fit_student(ModuleStudent(Convolutional(widths=(2, 2))), pictures, found)


class Draws(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
    """Adds noise to its rows, also where it predicts: as dropout does that is never turned off."""

    def forward(self, x: Any) -> Any:
        return x + 0.1 * torch.randn_like(x)


def test_a_network_whose_own_decisions_are_beyond_the_margin_says_so() -> None:
    beyond = 0
    for seed in range(4):  # nearly no gap at all is allowed, which noise gives one time in 20
        X, y, z = people(2, 2, n=600, seed=seed)
        within = Within(notion=DemographicParity(margin=0.002), groups=z, n_groups=2)
        found = answered(y, 2, "labels", np.random.default_rng(seed))
        network = ModuleStudent(torch.nn.Sequential(Draws(), torch.nn.Linear(4, 2)))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", MarginNotMet)
            student = fit_student(network, X, found, within)
        beyond += not student.met
        assert student.met == (student.public_gap <= 0.002)
        above = [str(one.message) for one in said if one.category is MarginNotMet]
        assert len(above) == (not student.met)
        assert all(f"gap on the public rows is {student.public_gap:.4f}" in one for one in above)
    assert beyond
