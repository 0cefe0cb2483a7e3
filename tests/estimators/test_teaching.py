"""What may be given as teachers: a classifier, a module, its maker; nothing else."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

import evenhand
from evenhand import Budget, PATEClassifier, SFPATEClassifier
from evenhand.baselines import InterventionClassifier
from evenhand.estimators.teaching import as_teachers
from evenhand.fairness import DemographicParity
from evenhand.learners.nets.architectures import Dense
from evenhand.privacy import SeededNoise
from evenhand.students import ModuleClassifier
from evenhand.teachers import LogisticTeachers, SklearnTeachers
from evenhand.teachers.stacked import NetworkTeachers

# With some seeds the few public rows get one class: what is tested is who teaches, not how well.
pytestmark = pytest.mark.filterwarnings("ignore::evenhand.students.student.ConstantStudentWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(260, 3))
Y = (X[:, 0] + RNG.normal(0, 0.3, 260) > 0).astype(int)
GROUPS = np.where(X[:, 1] > 0, "a", "b")


def pate(teachers: Any, **changes: Any) -> PATEClassifier:
    settings: dict[str, Any] = {
        "budget": Budget(epsilon=20.0, delta=1e-5),
        "n_teachers": 6,
        "noise": SeededNoise(0),
        "random_state": 0,
    }
    return PATEClassifier(teachers=teachers, **(settings | changes))


def fitted(teachers: Any, **changes: Any) -> PATEClassifier:
    return pate(teachers, **changes).fit(X[:200], Y[:200], X_public=X[200:])


@pytest.mark.parametrize(
    "classifier", [DecisionTreeClassifier(max_depth=3), RandomForestClassifier(5)], ids=repr
)
def test_a_classifier_is_as_good_as_its_wrapped_form(classifier: Any) -> None:
    bare, wrapped = fitted(classifier), fitted(SklearnTeachers(classifier))
    assert np.array_equal(bare.answers_.shares, wrapped.answers_.shares)
    assert bare.set_params(teachers__max_depth=2).teachers is classifier


@pytest.mark.parametrize("at", ["T_pre", "S_in"])
def test_a_classifier_teaches_at_other_points_of_intervention(at: str) -> None:
    def answered(teachers: Any) -> Any:
        model = InterventionClassifier(
            Budget(epsilon=1e5, delta=1e-5),
            DemographicParity(margin=0.9),
            at=at,
            n_teachers=4,
            teachers=teachers,
            noise=SeededNoise(0),
            random_state=0,
        )
        model.fit(
            X[:200],
            Y[:200],
            sensitive_features=GROUPS[:200],
            X_public=X[200:],
            sensitive_features_public=GROUPS[200:],
        )
        return model.answers_.labels

    tree = DecisionTreeClassifier(max_depth=3)
    assert np.array_equal(answered(tree), answered(SklearnTeachers(tree)))


def test_a_classifier_teaches_about_groups() -> None:
    def shares(teachers: Any) -> Any:
        model = SFPATEClassifier(
            Budget(epsilon=20.0, delta=1e-5),
            n_teachers=4,
            teachers=teachers,
            noise=SeededNoise(0),
            random_state=0,
        )
        return model.fit(X, Y, sensitive_features=GROUPS).answers_.shares

    tree = DecisionTreeClassifier(max_depth=3)
    assert np.array_equal(shares(tree), shares(SklearnTeachers(tree)))


def test_a_module_and_a_maker_of_modules_are_trained_as_classifiers() -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Sequential):  # type: ignore[misc]  # torch is imported late
        def __init__(self, n_features: int, n_classes: int, hidden: int = 4) -> None:
            super().__init__(
                torch.nn.Linear(n_features, hidden),
                torch.nn.ReLU(),
                torch.nn.Linear(hidden, n_classes),
            )

    module = torch.nn.Linear(3, 2)
    bare, wrapped = fitted(module), fitted(SklearnTeachers(ModuleClassifier(module)))
    assert np.array_equal(bare.answers_.shares, wrapped.answers_.shares)
    before = torch.random.get_rng_state()
    for maker in (Net, partial(Net, hidden=2), lambda d, k: torch.nn.Linear(d, k)):
        one, two = fitted(maker), fitted(maker)
        assert np.array_equal(one.answers_.shares, two.answers_.shares)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_an_architecture_is_trained_as_one_stack_and_is_saved(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    bare, wrapped = fitted(Dense(hidden=(4,))), fitted(NetworkTeachers(Dense(hidden=(4,))))
    assert np.array_equal(bare.answers_.shares, wrapped.answers_.shares)
    wrapped.save(tmp_path / "model")
    again = evenhand.load(tmp_path / "model")
    assert again.teachers.architecture == Dense(hidden=(4,))


def test_a_model_of_modules_is_not_saved_and_says_why(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    bare = torch.nn.Linear(3, 2), lambda d, k: torch.nn.Linear(d, k)
    for teachers in (*bare, *(NetworkTeachers(one, epochs=1) for one in bare[:1])):
        with pytest.raises(ValueError, match="holds a torch module, or what makes one"):
            fitted(teachers).save(tmp_path / "model")


def test_a_maker_learns_how_many_features_and_classes_there_are() -> None:
    seen: list[tuple[int, int]] = []

    def maker(n_features: int, n_classes: int) -> Any:
        seen.append((n_features, n_classes))
        return DecisionTreeClassifier(max_features=n_features)

    fitted(maker)
    assert seen == [(3, 2)]


def test_nothing_given_and_teachers_given_stay_what_they_are() -> None:
    own = LogisticTeachers(C=3.0)
    rng = np.random.default_rng(0)
    assert as_teachers(own, n_features=3, n_classes=2, rng=rng) is own
    default = as_teachers(None, n_features=3, n_classes=2, rng=rng)
    assert isinstance(default, LogisticTeachers)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("forest", "got 'forest'"),
        (RandomForestClassifier, "Pass an object, for example RandomForestClassifier"),
        (LinearRegression(), "got LinearRegression"),
        (lambda width: None, r"called with \(n_features, n_classes\)"),
        (lambda d, k: None, "got None"),
    ],
    ids=["text", "a class", "a regressor", "another signature", "a maker of nothing"],
)
def test_anything_else_is_refused_with_what_may_be_given(given: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        fitted(given)
