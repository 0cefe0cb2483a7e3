"""The last layer of a student: with its own weights it is the same student, and others show."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from evenhand.learners.nets.architectures import Convolutional
from evenhand.students.last_layer import last_layer
from evenhand.students.module import ModuleClassifier


def rows(n_classes: int) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) * [1.0, 5.0, 0.1, 1.0]
    y = (X[:, :n_classes] + rng.normal(size=(120, n_classes))).argmax(axis=1)
    return X, y


def fitted(kind: str, n_classes: int) -> Any:
    X, y = rows(n_classes)
    if kind == "linear":
        return LogisticRegression().fit(X, y), X
    if kind == "layers":
        network = MLPClassifier((6, 5), activation="tanh", max_iter=300, random_state=0)
        with pytest.warns(UserWarning, match="converged"):
            return network.fit(X, y), X
    pytest.importorskip("torch")
    pictures = np.random.default_rng(1).random((120, 2, 6, 6), dtype=np.float32)
    return ModuleClassifier(Convolutional(widths=(3, 4)), epochs=1).fit(pictures, y), pictures


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "kind", ["linear", "layers", pytest.param("module", marks=pytest.mark.torch)]
)
def test_its_own_weights_make_the_same_student_and_others_another(
    kind: str, n_classes: int
) -> None:
    student, X = fitted(kind, n_classes)
    before = student.predict_proba(X)
    layer = last_layer(student)
    assert layer is not None
    assert layer.coef.shape[0] == (1 if n_classes == 2 else n_classes)
    for one in (layer, layer.scaled(X)):
        same = one.with_weights(one.coef, one.intercept)
        np.testing.assert_allclose(same.predict_proba(X), before, atol=1e-5)
        turned = one.with_weights(-one.coef, -one.intercept)
        assert not np.allclose(turned.predict_proba(X), before, atol=1e-2)
    # With other weights of the last layer the scores are linear in what it reads.
    seen = layer.scaled(X).reads(X)
    np.testing.assert_allclose(seen.mean(axis=0), 0.0, atol=1e-6)
    again = last_layer(layer.with_weights(2.0 * layer.coef, layer.intercept))
    assert again is not None
    np.testing.assert_allclose(again.coef, 2.0 * layer.coef, rtol=1e-6)
    np.testing.assert_array_equal(student.predict_proba(X), before)


def test_a_student_without_a_linear_layer_has_none() -> None:
    X, y = rows(2)
    assert last_layer(DecisionTreeClassifier().fit(X, y)) is None


@pytest.mark.torch
def test_a_module_that_ends_otherwise_is_refused() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Tanh())
    X, y = rows(2)
    student = ModuleClassifier(module, epochs=1).fit(X, y)
    with pytest.raises(ValueError, match=r"must end with a torch\.nn\.Linear"):
        last_layer(student)
