"""Tables of picture files: decoded as they are read, bad ones named at once; colour MNIST."""

from __future__ import annotations

import csv
import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand import show_values
from evenhand.datasets import DataNotAvailable
from evenhand.datasets.images import ImageData, load_color_mnist, load_mnist
from evenhand.datasets.images.files import PictureFiles, UnreadableImages
from evenhand.typing import Array

PIL = pytest.importorskip("PIL.Image", reason="the extra images is not installed")


def saved(path: Path, pixels: Array, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.fromarray(pixels).save(path, **options)


def table(folder: Path, names: list[str], **columns: list[Any]) -> Path:
    n = len(names)
    given = {
        "path": names,
        "label": ["yes", "no"] * n,
        "group": ["a", "a", "b", "b"] * n,
    } | columns
    path = folder / "PICTURES.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(given)
        rows.writerows(zip(*(values[:n] for values in given.values()), strict=True))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for i in range(6):
        saved(tmp_path / "in" / f"{i}.png", rng.integers(0, 256, (8, 8, 3), dtype=np.uint8))
    return tmp_path


NAMES = [f"in/{i}.png" for i in range(6)]


def pixels(folder: Path) -> Array:
    return np.stack([np.asarray(PIL.open(folder / name)) for name in NAMES])


def test_a_table_of_files_is_pictures_that_are_decoded_where_they_are_read(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    data = ImageData.from_csv(table(folder, NAMES), progress=lambda *at: seen.append(at))
    assert seen[-1] == (6, 6)
    assert isinstance(data.images, PictureFiles)
    assert data.images.shape == (6, 8, 8, 3)
    assert data.X.shape == (6, 3, 8, 8)
    wanted = pixels(folder)
    assert np.array_equal(np.asarray(data.images), wanted)
    assert np.array_equal(data.X[1:4], wanted[1:4].transpose(0, 3, 1, 2))
    assert np.array_equal(data.X[[5, 0]], wanted[[5, 0]].transpose(0, 3, 1, 2))
    assert np.array_equal(data.images[2], wanted[2])
    assert np.array_equal(data.decoded().images, wanted)
    assert data.y.tolist() == ["yes", "no"] * 3
    assert data.sensitive_features.tolist() == ["a", "a", "b", "b", "a", "a"]
    part = data.take(np.array([True, False] * 3))
    assert isinstance(part.images, PictureFiles)
    assert np.array_equal(np.asarray(part.images), wanted[::2])
    (folder / NAMES[4]).unlink()
    with pytest.raises(UnreadableImages, match=r"not any more: .*4\.png \(no such file\)"):
        part.X[2:]


def test_size_and_mode_are_as_asked(folder: Path) -> None:
    path = table(folder, NAMES)
    assert ImageData.from_csv(path, size=4).X[:].shape == (6, 3, 4, 4)
    for name in NAMES:
        saved(folder / name, np.asarray(PIL.open(folder / name).convert("L")))
    grey = ImageData.from_csv(path, mode="L")
    assert grey.X[:].shape == (6, 1, 8, 8)
    assert grey.images[:].shape == (6, 8, 8)
    three = ImageData.from_csv(path).X[:]
    assert np.array_equal(three[:, :1], grey.X[:])
    with pytest.raises(ValueError, match=r"mode must be one of 'RGB', 'L'"):
        ImageData.from_csv(path, mode="CMYK")


def test_all_bad_pictures_are_named_at_once_by_their_rows(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    whole = (folder / NAMES[0]).read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    (folder / "words.jpg").write_text("no picture")
    saved(folder / "wide.png", rng.integers(0, 256, (8, 12, 3), dtype=np.uint8))
    saved(folder / "deep.png", rng.integers(0, 60000, (8, 8)).astype(np.uint16))
    print_colours = PIL.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).convert("CMYK")
    print_colours.save(folder / "print.jpg")
    clear = rng.integers(0, 256, (8, 8, 4), dtype=np.uint8)
    saved(folder / "clear.png", clear)
    clear[..., 3] = 255
    saved(folder / "opaque.png", clear)
    outside = tmp_path.parent / f"{tmp_path.name}-outside.png"
    outside.write_bytes(whole)
    (folder / "link.png").symlink_to(outside)
    names = [*NAMES, "cut.png", "gone.png", "words.jpg", "wide.png", "deep.png", "print.jpg"]
    names += ["clear.png", "opaque.png", f"../{outside.name}", str(outside), "link.png", "in", ""]
    path = table(folder, names)
    with pytest.raises(UnreadableImages) as caught:
        ImageData.from_csv(path)
    said = str(caught.value)
    for words in (
        "Cut, or no picture: rows 7, 9.",
        "No such file: rows 8, 18.",
        "Another size than 8 x 8 (say size=64 or --size 64, and all are resized): row 10.",
        "Of the mode I;16, which is neither 8-bit grey nor RGB: convert it: row 11.",
        "Of the mode CMYK",
        "Transparent in places: put it on a background: row 13.",
        "A path that leaves the folder of the table: rows 15, 16, 17.",
        "No path: row 19.",
    ):
        assert words in said, words
    assert "gone.png" not in said, "names of private files are not quoted"
    with show_values(), pytest.raises(UnreadableImages, match=r"rows 8, 18 \('gone\.png', 'in'\)"):
        ImageData.from_csv(path)


def test_a_table_without_what_is_needed_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="no column 'smiles', which label="):
        ImageData.from_csv(table(folder, NAMES), label="smiles")
    path = table(folder, NAMES, group=["a", "a", "", "b", "b", "b"])
    with pytest.raises(ValueError, match="'group' is missing in row 3 "):
        ImageData.from_csv(path)
    path.write_text(path.read_text().replace("path,", "file,"))
    with pytest.raises(ValueError, match=r"needs a column 'path'.*'file'"):
        ImageData.from_csv(path)


def test_copies_stay_on_one_side_and_a_unit_of_ones_own_too(folder: Path) -> None:
    for i in range(60):
        (folder / f"copy{i}.png").write_bytes((folder / NAMES[i % 6]).read_bytes())
    names = [f"copy{i}.png" for i in range(60)]
    people = [f"p{i // 10}" for i in range(60)]
    path = table(folder, names, person=people)
    for seed in range(20):
        data = ImageData.from_csv(path)
        try:
            parts = data.split(public=0.3, test=0.3, random_state=seed)
        except ValueError:
            continue  # six units: one side may be empty
        sides = [set(p.units) for p in (parts.private, parts.public, parts.test)]
        assert sum(map(len, sides)) == 6
        break
    owned = ImageData.from_csv(path, unit="person")
    assert owned.units.tolist() == people


def test_a_picture_is_turned_as_its_camera_says(folder: Path) -> None:
    picture = np.zeros((8, 8, 3), dtype=np.uint8)
    picture[:4] = 255
    exif = PIL.Exif()
    exif[0x0112] = 6  # a quarter turn
    out = io.BytesIO()
    PIL.fromarray(picture).save(out, "PNG", exif=exif)
    (folder / NAMES[0]).write_bytes(out.getvalue())
    found = ImageData.from_csv(table(folder, NAMES)).images[0]
    assert np.array_equal(found, np.rot90(picture, -1))


@pytest.mark.slow
def test_pictures_are_never_all_in_memory(tmp_path: Path) -> None:
    from tests.datasets.features.test_extraction import Corners

    from evenhand.datasets.features import extract

    class Bytes(Corners):
        def transform(self, pictures: Array) -> Array:
            return pictures[:, 0, 0, :2].astype(np.float32)

    content = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    n = 1500
    for i in range(n):
        content[0, 0] = i % 256, i // 256, 0
        saved(tmp_path / f"{i}.bmp", content)  # nothing to decompress: quick
    path = table(tmp_path, [f"{i}.bmp" for i in range(n)])
    tracemalloc.start()
    try:
        data = ImageData.from_csv(path)
        parts = data.split(random_state=0)
        features = [extract(p.X, Bytes(), cache=False) for p in (parts.private, parts.test)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(features[0]) + len(features[1]) + len(parts.public) == n
    assert peak < 0.7 * n * content.nbytes, f"{peak / 2**20:.0f} MiB"


def mnist() -> ImageData:
    try:
        return load_mnist("test")
    except DataNotAvailable as error:
        pytest.skip(str(error))


@pytest.mark.data
@pytest.mark.parametrize("bias", [0.5, 0.85, 1.0])
def test_colour_goes_with_the_half_of_the_digit_as_often_as_it_is_told(bias: float) -> None:
    grey = mnist()
    data = load_color_mnist("test", bias=bias, random_state=3)
    assert data.X.shape == (10_000, 3, 28, 28)
    assert np.array_equal(data.y, grey.y)
    assert np.array_equal(data.images.max(axis=3), grey.images)
    red = data.sensitive_features == "red"
    assert not data.images[red][..., 1:].any()
    assert not data.images[~red][..., [0, 2]].any()
    for small in (True, False):
        own = (red == small)[(grey.y < 5) == small]
        # Five standard deviations of a share of 4,800 digits.
        assert abs(own.mean() - bias) <= 5 * np.sqrt(bias * (1 - bias) / len(own))


@pytest.mark.data
def test_a_bias_below_a_half_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bias must lie in \[0.5, 1\]"):
        load_color_mnist("test", bias=0.3)
