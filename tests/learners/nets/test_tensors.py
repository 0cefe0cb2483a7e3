"""Where networks compute: one thread, one device, and the same networks on each."""

import numpy as np
import pytest

from evenhand.learners.nets.architectures import Dense
from evenhand.learners.nets.critics import StackedCritics
from evenhand.learners.nets.mlp import StackedMLP
from evenhand.learners.nets.module import ModuleLearner, probabilities_of
from evenhand.learners.nets.tensors import array, computing, floats, seeded

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_numbers_are_float32_and_shared_on_the_processor() -> None:
    values = np.arange(3.0)
    assert floats(values).dtype is torch.float32
    tensor = torch.zeros(2)
    array(tensor)[0] = 5.0
    assert float(tensor[0]) == 5.0


def test_threads_come_back_after_an_error_too() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with computing():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with pytest.raises(KeyError), computing():
            raise KeyError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("device", ["cuda:63", "a fast one"])
def test_a_device_that_is_not_here_is_refused_in_words(device: str) -> None:
    learner = ModuleLearner(module=Dense(hidden=(2,)), device=device)
    with pytest.raises(ValueError, match=f"such as 'cpu', got '{device}'"):
        learner.fit(np.zeros((4, 2)), np.eye(2)[[0, 1, 0, 1]], rng=np.random.default_rng(0))


def test_new_tensors_are_made_on_the_device() -> None:
    # "meta" is the one other device that every machine has; it holds shapes and no numbers.
    with computing("meta"):
        assert torch.zeros(3).device.type == "meta"
        assert floats(np.zeros(3)).device.type == "meta"
    assert torch.zeros(3).device.type == "cpu"


def test_seeds_touch_no_global_generator() -> None:
    before = torch.random.get_rng_state()
    draws = [torch.randn(3, generator=seeded(np.random.default_rng(s))) for s in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_graphics_card_trains_the_same_networks_but_for_rounding() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + X[:, 1] ** 2 > 1.0).astype(np.int64)
    rows = np.array_split(np.arange(400), 4)
    real, fake = rng.integers(3, size=(4, 1, 8, 2)), rng.integers(3, size=(1, 8, 2))

    def results(device: str) -> list[np.ndarray]:
        stack = StackedMLP(hidden=(16,), epochs=3, device=device).fit(
            X, y, rows, n_classes=2, rng=np.random.default_rng(0)
        )
        learner = ModuleLearner(module=_Fixed(), epochs=3, device=device)
        model = learner.fit(X, np.eye(2)[y], rng=np.random.default_rng(0))
        critics = StackedCritics(
            sizes=(3, 3),
            hidden=(4,),
            streams=np.random.default_rng(0).spawn(4),
            learning_rate=0.01,
            device=device,
        )
        critics.train(real, np.ones(4, dtype=bool), fake)
        layers = [part for t in range(4) for layer in stack.network(t) for part in layer]
        return [*layers, probabilities_of(model, X), *(critics.state(t) for t in range(4))]

    for here, there in zip(results("cpu"), results("cuda"), strict=True):
        np.testing.assert_allclose(here, there, atol=2e-3)


class _Fixed:
    """The same first weights on every device, whose generators differ."""

    def build(self, shape: tuple[int, ...], n_outputs: int):
        module = torch.nn.Linear(shape[0], n_outputs)
        torch.nn.init.constant_(module.weight, 0.1)
        torch.nn.init.zeros_(module.bias)
        return module
