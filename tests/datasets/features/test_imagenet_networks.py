"""ResNet-50 and DenseNet-121: the published names and sizes, files of weights, and their use."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import save_file

from evenhand.datasets.features import extract
from evenhand.datasets.features.imagenet_networks import DenseNet121, ResNet50
from evenhand.learners.nets.architectures import ARCHITECTURES, restored, weights_of
from evenhand.testing.extractors import FeatureExtractorContract, pictures

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytestmark = pytest.mark.torch

KINDS = [ResNet50, DenseNet121]


@cache
def network(kind: Any, n_outputs: int = 1000, seed: int = 0) -> Any:
    """The network with random weights, and statistics as training leaves them."""
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(seed)
        made = kind.fresh(n_outputs)
        for name, value in made.state_dict().items():
            if name.endswith("running_mean"):
                value.normal_(0.0, 0.1)
            elif name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
    return made.eval()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Path]:
    folder = tmp_path_factory.mktemp("weights")
    out = {}
    for kind in KINDS:
        out[kind] = folder / f"{kind.__name__}.pth"
        torch.save(network(kind).state_dict(), out[kind])
    return out


def norm(name: str, n: int) -> dict[str, tuple[int, ...]]:
    ends = ("weight", "bias", "running_mean", "running_var")
    return {**{f"{name}.{end}": (n,) for end in ends}, f"{name}.num_batches_tracked": ()}


def published(kind: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes from the papers' tables, by torchvision's names."""
    if kind is ResNet50:
        out = {"conv1.weight": (64, 3, 7, 7), **norm("bn1", 64)}
        n = 64
        for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)], start=1):
            for i in range(blocks):
                at = f"layer{stage}.{i}"
                out |= {f"{at}.conv1.weight": (width, n, 1, 1), **norm(f"{at}.bn1", width)}
                out |= {f"{at}.conv2.weight": (width, width, 3, 3), **norm(f"{at}.bn2", width)}
                out |= {f"{at}.conv3.weight": (4 * width, width, 1, 1)}
                out |= norm(f"{at}.bn3", 4 * width)
                if i == 0:
                    out |= {f"{at}.downsample.0.weight": (4 * width, n, 1, 1)}
                    out |= norm(f"{at}.downsample.1", 4 * width)
                n = 4 * width
        return out | {"fc.weight": (1000, 2048), "fc.bias": (1000,)}
    out = {"features.conv0.weight": (64, 3, 7, 7), **norm("features.norm0", 64)}
    n = 64
    for block, layers in enumerate([6, 12, 24, 16], start=1):
        for i in range(1, layers + 1):
            at = f"features.denseblock{block}.denselayer{i}"
            out |= {**norm(f"{at}.norm1", n), f"{at}.conv1.weight": (128, n, 1, 1)}
            out |= {**norm(f"{at}.norm2", 128), f"{at}.conv2.weight": (32, 128, 3, 3)}
            n += 32
        if block < 4:
            at = f"features.transition{block}"
            out |= {**norm(f"{at}.norm", n), f"{at}.conv.weight": (n // 2, n, 1, 1)}
            n //= 2
    out |= norm("features.norm5", n)
    return out | {"classifier.weight": (1000, 1024), "classifier.bias": (1000,)}


@pytest.mark.parametrize(
    ("kind", "n_weights", "n_names"), [(ResNet50, 25_557_032, 320), (DenseNet121, 7_978_856, 727)]
)
def test_names_shapes_and_sizes_are_the_published_ones(
    kind: Any, n_weights: int, n_names: int
) -> None:
    state = network(kind).state_dict()
    assert {name: tuple(value.shape) for name, value in state.items()} == published(kind)
    assert len(state) == n_names
    assert sum(value.numel() for value in network(kind).parameters()) == n_weights
    assert ARCHITECTURES[kind.__name__] is kind


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_layer_reads_the_features(kind: Any, files: dict[Any, Path]) -> None:
    extractor = kind.load(files[kind], side=64)
    X = pictures(2)
    features = extractor.transform(X)
    assert features.shape == (2, kind.n_features)
    assert extractor.dimension == kind.n_features
    assert np.ptp(features, axis=0).max() > 0  # the pictures differ
    # By hand: pixels in [0, 1], resized, normalised as ImageNet's, through the whole network.
    mean = np.array([0.485, 0.456, 0.406], dtype=np.float32)[:, None, None]
    sd = np.array([0.229, 0.224, 0.225], dtype=np.float32)[:, None, None]
    larger = np.random.default_rng(0).integers(0, 256, (2, 3, 64, 64), dtype=np.uint8)
    head = getattr(network(kind), kind.head)
    with torch.no_grad():
        whole = network(kind)(torch.from_numpy((larger / np.float32(255) - mean) / sd))
        ours = head(torch.from_numpy(extractor.transform(larger)))
    np.testing.assert_allclose(ours, whole, rtol=1e-3, atol=1e-3)


def test_a_residual_block_halves_in_its_three_by_three_convolution() -> None:
    block = network(ResNet50).layer2[0]
    assert (block.conv1.stride, block.conv2.stride) == ((1, 1), (2, 2))
    assert network(ResNet50).layer1[0].conv2.stride == (1, 1)


class TestDenseNetFeatures(FeatureExtractorContract):
    @pytest.fixture(autouse=True)
    def _file(self, files: dict[Any, Path]) -> None:
        self.file = files[DenseNet121]

    def extractor(self) -> Any:
        return DenseNet121.load(self.file, side=32, trained_on="noise", licence="none needed")


def renamed(state: dict[str, Any]) -> dict[str, Any]:
    """As files of 2017 have a DenseNet's layers, without the counters of batches."""
    old = re.compile(r"(denselayer\d+\.(?:norm|conv))([12])")
    return {
        old.sub(r"\1.\2", name): value
        for name, value in state.items()
        if not name.endswith("num_batches_tracked")
    }


@pytest.mark.slow
def test_old_names_other_files_and_other_last_layers_give_the_same_weights(
    tmp_path: Path, files: dict[Any, Path]
) -> None:
    state = network(DenseNet121).state_dict()
    old = renamed(state)
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    torch.save(old, tmp_path / "old.pth")
    save_file(state, tmp_path / "new.safetensors")
    headless = {name: value for name, value in state.items() if "classifier" not in name}
    torch.save(headless, tmp_path / "headless.pt")
    made = [
        DenseNet121.load(path, side=32)
        for path in (files[DenseNet121], *(tmp_path / n for n in ("old.pth", "headless.pt")))
    ]
    made.append(DenseNet121.load(tmp_path / "new.safetensors", side=32))
    assert len({one.digest for one in made}) == len({one.version for one in made}) == 1
    changed = dict(state)
    changed["features.norm5.bias"] = state["features.norm5.bias"] + 1e-3
    torch.save(changed, tmp_path / "changed.pth")
    other = DenseNet121.load(tmp_path / "changed.pth", side=32)
    assert other.version != made[0].version
    assert re.fullmatch("[0-9a-f]{12}", other.version)
    rows = extract(pictures(2), other, cache=False)
    assert other.version in str(rows.made_by)


def test_everything_wrong_with_a_file_is_said_at_once(tmp_path: Path) -> None:
    state = dict(network(DenseNet121).state_dict())
    del state["features.norm5.weight"], state["features.norm0.bias"]
    state["features.conv0.weight"] = torch.zeros(64, 1, 7, 7)
    state["features.transition1.conv.weight"] = torch.full((128, 256, 1, 1), torch.nan)
    state["extra"] = torch.zeros(1)
    torch.save(state, tmp_path / "bad.pth")
    with pytest.raises(ValueError, match="does not hold the weights of DenseNet121") as error:
        DenseNet121.load(tmp_path / "bad.pth")
    for words in (
        "missing (2): features.norm0.bias, features.norm5.weight",
        "not of this network (1): extra",
        "features.conv0.weight has (64, 1, 7, 7) and not (64, 3, 7, 7)",
        "not finite (1): features.transition1.conv.weight",
    ):
        assert words in str(error.value)


class Harmful:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("harm"),)


def test_files_that_hold_something_else_are_refused_and_nothing_in_them_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"a": Harmful()}, "code.pth")
    torch.save([1, 2], "list.pth")
    torch.save({"state_dict": {}}, "nested.pth")
    Path("text.pth").write_text("weights")
    Path("text.safetensors").write_text("weights")
    for name, message in {
        "code.pth": "code in it is not run",
        "text.pth": "cannot be read as weights alone",
        "list.pth": "holds no tensors by name",
        "nested.pth": "take the entry that holds the weights",
        "text.safetensors": "is no file of safetensors",
    }.items():
        with pytest.raises(ValueError, match=message):
            ResNet50.load(name)
    assert not Path("harm").exists()
    with pytest.raises(FileNotFoundError, match="Weights are not downloaded"):
        ResNet50.load("nowhere.pth")
    with pytest.raises(ValueError, match="side must be at least 32"):
        ResNet50.load("nowhere.pth", side=16)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_architecture_starts_from_the_file_with_a_new_last_layer(
    kind: Any, files: dict[Any, Path]
) -> None:
    architecture = kind.pretrained(files[kind])
    module = architecture.build((3, 64, 64), 3).eval()
    own, given = module.network.state_dict(), network(kind).state_dict()
    assert all(torch.equal(own[n], given[n]) for n in own if not n.startswith(kind.head))
    assert getattr(module.network, kind.head).out_features == 3
    # It takes pixels in [0, 1], and its features are those of the extractor.
    X = np.random.default_rng(0).integers(0, 256, (2, 3, 64, 64), dtype=np.uint8)
    features = torch.from_numpy(kind.load(files[kind], side=64).transform(X))
    with torch.no_grad():
        scores = module(torch.from_numpy(X / np.float32(255)))
        np.testing.assert_allclose(
            scores, getattr(module.network, kind.head)(features), rtol=1e-3, atol=1e-3
        )
    # A saved network has weights of its own, and needs no file.
    plain = kind(start=architecture.start)
    again = restored(plain, (3, 64, 64), 3, weights_of(module))
    with torch.no_grad():
        assert torch.equal(again(torch.from_numpy(X / np.float32(255))), scores)
    with pytest.raises(ValueError, match="not at hand any more"):
        plain.build((3, 64, 64), 3)


def test_pictures_that_it_cannot_read_are_refused() -> None:
    for shape in ((1, 64, 64), (3, 16, 16), (12,)):
        with pytest.raises(ValueError, match="reads pictures of 3 channels"):
            ResNet50().build(shape, 2)


def test_dp_sgd_refuses_their_batch_normalisation() -> None:
    from evenhand.learners import DPSGD

    with pytest.raises(ValueError, match="keep statistics of all records"):
        DPSGD(architecture=ResNet50()).network((3, 32, 32), 2, np.random.default_rng(0))
