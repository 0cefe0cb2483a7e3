"""Torch modules of one's own as students and as teachers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from runs import falls_short
from sklearn.base import clone

import evenhand
from evenhand import DemographicParity
from evenhand.estimators import SFPATEClassifier
from evenhand.fairness.functions import worst_violation
from evenhand.learners.nets.architectures import Convolutional, Dense
from evenhand.learners.nets.mlp import StackedMLP
from evenhand.learners.nets.module import ModuleLearner, probabilities_of
from evenhand.privacy import Budget, SeededNoise
from evenhand.students import ModuleClassifier, ModuleStudent
from evenhand.teachers import BlackBoxFairTeachers, SklearnTeachers, by_position

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def people(n: int = 1500, seed: int = 0):
    rng = np.random.default_rng(seed)
    z = rng.integers(2, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 1] += 2.0 * z
    X[:, 2] -= 1.5 * z
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=n) > 1).astype(np.int64)
    return X, y, z


def network(n_in: int = 4, seed: int = 0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(n_in, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
        )


def parity(margin: float) -> DemographicParity:
    return DemographicParity(margin=margin, reference="overall")


def violation(model, X, y, z) -> float:
    return worst_violation(parity(0.0), model.predict_proba(X), y, z)


def test_one_full_step_is_that_of_the_stacked_network_by_hand() -> None:
    # A second derivation: gradients by autograd against those written out in StackedMLP, from the
    # same weights, guided and pulled; one batch of all rows, so that no order of rows enters.
    from evenhand.learners.nets.regularizer import Regularizer

    X, y, z = people(256)
    module = network()
    layers = [
        (part.weight.detach().numpy().T.astype(float), part.bias.detach().numpy().astype(float))
        for part in module
        if isinstance(part, torch.nn.Linear)
    ]
    how = {"epochs": 3, "batch_size": 256, "learning_rate": 0.01, "weight_decay": 0.0}
    fair = {
        "function": parity(0.01),
        "alpha": 0.01,
        "weights": np.eye(2)[z],
        "step": 3.0,
        "pull": 0.1,
    }
    targets, rng = np.eye(2)[y], np.random.default_rng(0)
    near = Regularizer(start=module, **fair)
    ours = ModuleLearner(module=module, regularizer=near, **how).fit(X, targets, rng=rng)
    by_hand = StackedMLP(hidden=(16,), regularizer=Regularizer(start=layers, **fair), **how)
    wanted = by_hand.fit(X, targets, [np.arange(256)], n_classes=2, rng=rng).network(0)
    linear = [part for part in ours if isinstance(part, torch.nn.Linear)]
    for part, (weight, bias) in zip(linear, wanted, strict=True):
        np.testing.assert_allclose(part.weight.detach().numpy().T, weight, atol=2e-4)
        np.testing.assert_allclose(part.bias.detach().numpy(), bias, atol=2e-4)
    before = layers[0][0]
    assert np.abs(linear[0].weight.detach().numpy().T - before).max() > 1e-2  # it did move


def test_the_module_that_is_given_and_torchs_generator_stay_as_they_were() -> None:
    X, y, _ = people(200)
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), network())
    before = [weight.clone() for weight in module.parameters()]
    state = torch.random.get_rng_state()
    made = [
        ModuleLearner(module=module, epochs=2).fit(X, np.eye(2)[y], rng=np.random.default_rng(s))
        for s in (1, 1, 2)
    ]
    assert all(map(torch.equal, module.parameters(), before))
    assert torch.equal(torch.random.get_rng_state(), state)
    said = [probabilities_of(model, X) for model in made]
    np.testing.assert_array_equal(said[0], said[1])
    assert (said[0] != said[2]).any()


def test_a_module_is_held_to_the_constraint_as_a_student() -> None:
    X, y, z = people(1500)
    names = np.array(["a", "b"])[z]
    new = people(3000, seed=1)
    found = {}
    for margin in (1.0, 0.05):
        model = SFPATEClassifier(
            Budget(epsilon=1.0, delta=1e-6),
            fairness=parity(margin),
            n_teachers=40,
            student=ModuleStudent(network(), batch_size=64, learning_rate=0.01),
            noise=SeededNoise(0),
            random_state=0,
        ).fit(X, y, sensitive_features=names)
        found[margin] = violation(model, *new)
        assert model.score(new[0], new[1]) > 0.6
    assert found[0.05] < found[1.0] / 2


def test_modules_are_teachers_of_both_variants() -> None:
    X, y, z = people(1200)
    settings = {
        "n_teachers": 6,
        "noise": SeededNoise(0),
        "random_state": 0,
        "fairness": parity(0.02),
        "n_queries": 300,
    }
    budget = Budget(epsilon=8.0, delta=1e-6)
    tell = SklearnTeachers(
        ModuleClassifier(network(), epochs=20, batch_size=32, learning_rate=0.01)
    )
    student = SFPATEClassifier(budget, teachers=tell, **settings).fit(X, y, sensitive_features=z)
    assert ((student.answers_.shares[:, 1] > 0.5).mean()) == pytest.approx(0.5, abs=0.15)


@pytest.mark.slow
def test_students_of_fair_modules_are_fairer() -> None:
    """Takes 30 seconds."""
    found = []
    for seed, notion in itertools.product(range(15), (None, parity(0.02))):
        X, y, z = people(1200, seed=seed)
        fair = BlackBoxFairTeachers(
            ModuleClassifier(
                network(), fairness=notion, epochs=20, batch_size=32, learning_rate=0.01
            )
        )
        # Without sums over groups, which would hold the student whatever its teachers say.
        model = SFPATEClassifier(
            Budget(epsilon=8.0, delta=1e-6), "teachers", teachers=fair, pull=0.0, calibration=None,
            n_teachers=6, noise=SeededNoise(seed), random_state=seed, fairness=parity(0.02),
            n_queries=300,
        ).fit(X, y, sensitive_features=z)  # fmt: skip
        found.append(violation(model, *people(3000, seed=100 + seed)))
    plain, held = np.reshape(found, (15, 2)).T
    assert not falls_short(plain - 1.2 * held)
    assert falls_short(plain - 1.2 * plain)  # modules that ignore their notion


def test_a_classifier_of_a_module_is_cloned_with_its_weights() -> None:
    X, y, _ = people(300)
    teachers = SklearnTeachers(ModuleClassifier(network(), epochs=1))
    again = clone(teachers)
    votes = [
        t.fit(X, y, by_position(300, 3, 0), 2, np.random.default_rng(0)).vote(X)
        for t in (teachers, again)
    ]
    np.testing.assert_array_equal(*votes)


def test_a_small_conv_net_reads_pictures_that_lie_flat() -> None:
    # A bright upper or lower half: what a linear map of shifted pictures would need many rows for.
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    pictures = rng.normal(size=(400, 3, 8, 8))
    for i, k in enumerate(y):
        pictures[i, :, 4 * k : 4 * k + 4] += 1.0
    X = pictures.reshape(400, -1)
    model = ModuleClassifier(Convolutional(shape=(3, 8, 8)), epochs=5, batch_size=32).fit(
        X[:300], y[:300]
    )
    assert model.score(X[300:], y[300:]) > 0.9
    assert sum(w.numel() for w in Convolutional().build((3, 32, 32), 2).parameters()) == 9_186


def test_what_is_no_module_or_has_other_scores_is_refused() -> None:
    X, y, _ = people(300)
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module .* Pass an object"):
        ModuleClassifier("a network").fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(256, 2\), one per class, got \(256, 3\)"):
        ModuleClassifier(torch.nn.Linear(4, 3), batch_size=300).fit(X[:256], y[:256])
    with pytest.raises(ValueError, match=r"4 x 4 pixels at least, got \(1, 2, 9\)"):
        Convolutional(shape=(1, 2, 9))


@pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning")  # of one epoch
@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"student": ModuleStudent(network(), epochs=1, fair_epochs=1)}, "student"),
        (
            {"teachers": SklearnTeachers(ModuleClassifier(network(), epochs=1))},
            r"teachers\.estimator",
        ),
    ],
)
def test_a_model_with_a_module_is_not_saved(settings, name, tmp_path) -> None:
    X, y, z = people(300)
    model = SFPATEClassifier(
        Budget(epsilon=1.0, delta=1e-6),
        n_teachers=5,
        fairness=parity(1.0),
        random_state=0,
        **settings,
    ).fit(X, y, sensitive_features=z)
    with pytest.raises(ValueError, match=rf"^{name} holds a torch module, .* Keep the weights by"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_model_of_architectures_is_saved_and_answers_the_same(tmp_path) -> None:
    X, y, z = people(300)
    dense = Dense(hidden=(6,))
    model = SFPATEClassifier(
        Budget(epsilon=1.0, delta=1e-6),
        n_teachers=5,
        fairness=parity(1.0),
        random_state=0,
        student=ModuleStudent(dense, epochs=5, fair_epochs=5),
        teachers=SklearnTeachers(ModuleClassifier(dense, epochs=5)),
    ).fit(X, y, sensitive_features=z)
    model.save(tmp_path / "model")
    names = {path.suffix for path in (tmp_path / "model").iterdir()}
    assert ".safetensors" in names
    assert ".skops" not in names
    again = evenhand.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.student.module == dense
    assert again.teachers.estimator.module == dense
