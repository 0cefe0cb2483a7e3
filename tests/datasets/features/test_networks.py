"""A user's torch module and file of ONNX keep the contract, and are refused where they cannot."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.datasets.features.networks import OnnxFeatures, TorchFeatures
from evenhand.testing.extractors import FeatureExtractorContract, pictures

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytestmark = pytest.mark.torch
SAID = {"trained_on": "nothing", "licence": "none needed", "shape": (3, 16, 16)}


def module(seed: int = 0) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 5, 3, stride=2), torch.nn.BatchNorm2d(5), torch.nn.ReLU()
        )


class TestTorchFeatures(FeatureExtractorContract):
    def extractor(self) -> TorchFeatures:
        return TorchFeatures.of(module(), name="conv", mean=(0.5,), sd=(0.2,), **SAID)


class Training(TorchFeatures):
    """What must not be: a batch is normalised by all of its pictures."""

    def run(self, inputs: Any) -> Any:
        self.module.train()
        with torch.no_grad():
            return self.module(torch.from_numpy(inputs)).mean(dim=(2, 3)).numpy()


def test_the_contract_refuses_a_network_in_training_mode() -> None:
    contract = FeatureExtractorContract()
    contract.extractor = lambda: Training.of(module(), name="bad", **SAID)  # type: ignore[method-assign]
    with pytest.raises(AssertionError):
        contract.test_a_row_reads_its_own_picture_alone()


def test_a_module_that_was_left_in_training_mode_is_run_in_evaluation_mode() -> None:
    made = TorchFeatures.of(module(), name="conv", **SAID)
    before = made.transform(pictures())
    made.module.train()
    assert np.array_equal(before, made.transform(pictures()))


def test_weights_and_preparation_are_in_the_digest() -> None:
    one = TorchFeatures.of(module(), name="conv", **SAID)
    others = [
        TorchFeatures.of(module(seed=1), name="conv", **SAID),
        TorchFeatures.of(module(), name="conv", **SAID | {"shape": (3, 20, 20)}),
        TorchFeatures.of(module(), name="conv", **SAID, mean=(0.1,)),
    ]
    assert one.dimension == 5
    assert len({one.digest, *(other.digest for other in others)}) == 4


@pytest.mark.parametrize("out", [lambda x: x.sum(), lambda x: x[:3].flatten(1)])
def test_a_module_that_gives_no_row_for_each_picture_is_refused(out: Any) -> None:
    class Odd(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return out(x)

    with pytest.raises(ValueError, match="odd gives an array of shape"):
        TorchFeatures.of(Odd(), name="odd", **SAID)


@cache
def network() -> bytes:
    """Return a file of ONNX: means of each channel, times a matrix."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    make, numpy_helper = onnx.helper, onnx.numpy_helper
    weights = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    graph = make.make_graph(
        [
            make.make_node("GlobalAveragePool", ["x"], ["means"]),
            make.make_node("Flatten", ["means"], ["rows"]),
            make.make_node("MatMul", ["rows", "w"], ["out"]),
        ],
        "features",
        [make.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["b", 3, 16, 16])],
        [make.make_tensor_value_info("out", onnx.TensorProto.FLOAT, ["b", 4])],
        [numpy_helper.from_array(weights, "w")],
    )
    made = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)])
    made.ir_version = 9
    return bytes(made.SerializeToString())


class TestOnnxFeatures(FeatureExtractorContract):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
        self.path = tmp_path / "means.onnx"
        self.path.write_bytes(network())

    def extractor(self) -> OnnxFeatures:
        return OnnxFeatures.load(self.path, **SAID)

    def test_it_computes_what_the_file_says(self) -> None:
        made = self.extractor()
        assert (made.name, made.dimension) == ("means", 4)
        weights = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
        wanted = made.prepared(pictures()).mean(axis=(2, 3)) @ weights
        assert np.abs(made.transform(pictures()) - wanted).max() < 1e-5

    def test_what_is_no_network_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"no network that takes floats .*3, 9, 9"):
            OnnxFeatures.load(self.path, **SAID | {"shape": (3, 9, 9)})
        self.path.write_bytes(b"no network")
        with pytest.raises(ValueError, match=r"means\.onnx is no network"):
            self.extractor()
        with pytest.raises(FileNotFoundError, match="There is no file"):
            OnnxFeatures.load(self.path.parent / "gone.onnx", **SAID)


def test_without_onnxruntime_the_message_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evenhand.datasets.features.networks.installed", lambda _: False)
    with pytest.raises(ImportError, match=r'pip install "evenhand\[onnx\]"'):
        OnnxFeatures.load("x.onnx", **SAID)
