"""Architectures: what each builds, and that files hold them without code."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from marks import some_slow

from evenhand.estimators import parameters
from evenhand.learners.nets.architectures import (
    ARCHITECTURES,
    CelebANetwork,
    ColorMNISTNetwork,
    Convolutional,
    Dense,
    SmallResNet,
    is_architecture,
    restored,
    weights_of,
)
from evenhand.learners.nets.module import ModuleLearner, probabilities_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SHAPE = (3, 8, 8)
LARGER = {
    "CelebANetwork": (3, 16, 16),
    "ColorMNISTNetwork": (3, 16, 16),
    "DenseNet121": (3, 32, 32),
    "ResNet50": (3, 32, 32),
}


def pictures(n: int = 60, shape: tuple[int, ...] = SHAPE) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, *shape)), np.eye(3)[rng.integers(3, size=n)]


def shape_of(name: str) -> tuple[int, ...]:
    return LARGER.get(name, SHAPE)


@pytest.mark.parametrize("name", some_slow(sorted(ARCHITECTURES), {"ResNet50", "DenseNet121"}))
class TestEveryArchitecture:
    """A new one is checked here from the day that its line stands in the registry."""

    def test_maps_rows_to_one_score_per_output(self, name: str) -> None:
        X, _ = pictures(shape=shape_of(name))
        scores = ARCHITECTURES[name]().build(shape_of(name), 3)(
            torch.as_tensor(X, dtype=torch.float32)
        )
        assert scores.shape == (60, 3)

    def test_starts_from_what_the_generator_draws_and_from_nothing_else(self, name: str) -> None:
        X, y = pictures(shape=shape_of(name))
        fits = [
            ModuleLearner(module=ARCHITECTURES[name](), epochs=1).fit(
                X, y, rng=np.random.default_rng(seed)
            )
            for seed in (0, 0, 1)
        ]
        one, same, other = (probabilities_of(model, X) for model in fits)
        np.testing.assert_array_equal(one, same)
        assert np.abs(one - other).max() > 1e-4

    def test_is_read_back_from_json_and_arrays_to_the_last_bit(self, name: str) -> None:
        X, y = pictures(shape=shape_of(name))
        value = ARCHITECTURES[name]()
        model = ModuleLearner(module=value, epochs=1).fit(X, y, rng=np.random.default_rng(0))
        again = parameters.decode(json.loads(json.dumps(parameters.encode(value))))
        assert again == value
        assert is_architecture(again)
        read = restored(again, shape_of(name), 3, weights_of(model))
        np.testing.assert_array_equal(probabilities_of(read, X), probabilities_of(model, X))

    def test_weights_of_another_network_are_refused(self, name: str) -> None:
        weights = weights_of(ARCHITECTURES[name]().build(shape_of(name), 3))
        with pytest.raises(ValueError, match=f"not the weights of {name}"):
            restored(ARCHITECTURES[name](), shape_of(name), 2, weights)


N_WEIGHTS = [
    (Convolutional(), (3, 32, 32), 2, 9_186),
    (ColorMNISTNetwork(), (3, 28, 28), 10, 432_080),
    (CelebANetwork(), (3, 224, 224), 2, 104_575_362),
    (SmallResNet(), (3, 32, 32), 2, 77_522),
]


@pytest.mark.parametrize(("architecture", "shape", "n_outputs", "n_weights"), N_WEIGHTS)
def test_a_network_has_as_many_weights_as_its_layers_say(
    architecture, shape, n_outputs, n_weights
) -> None:
    # Tables 2 and 3 by hand: 3*20*25+20 + 20*50*25+50 + 800*500+500 + 500*10+10, and so on.
    with torch.device("meta"):  # shapes alone
        module = architecture.build(shape, n_outputs)
    assert sum(weight.numel() for weight in module.parameters()) == n_weights


def test_pictures_may_lie_flat_where_the_architecture_says_their_shape() -> None:
    X, y = pictures()
    rng = [np.random.default_rng(0) for _ in range(2)]
    shaped = ModuleLearner(module=Convolutional(), epochs=2).fit(X, y, rng=rng[0])
    flat = ModuleLearner(module=Convolutional(shape=SHAPE), epochs=2)
    lying = X.reshape(len(X), -1)
    model = flat.fit(lying, y, rng=rng[1])
    np.testing.assert_array_equal(probabilities_of(model, lying), probabilities_of(shaped, X))
    with pytest.raises(ValueError, match=r"got \(192,\).*Convolutional\(shape=\(3, 32, 32\)\)"):
        Convolutional().build((192,), 2)


def test_sizes_for_which_there_is_no_memory_are_refused_by_the_weights() -> None:
    # A file may say anything: nothing of that size is made before the weights are looked at.
    with pytest.raises(ValueError, match="not the weights"):
        restored(Dense(hidden=(10**9, 10**9)), (10,), 2, {})


def test_widths_are_checked() -> None:
    for wrong in (
        lambda: Dense(hidden=(0,)),
        lambda: Convolutional(widths=(0, 4)),
        lambda: SmallResNet(blocks=0),
    ):
        with pytest.raises(ValueError, match="at least 1"):
            wrong()
    assert asdict(Dense()) == {"hidden": (64, 64)}
