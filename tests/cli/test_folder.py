"""A model folder is put in its place whole; what fails on the way leaves the place as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import evenhand
from evenhand.cli.output import Training, require_free, whole_file, write_model_folder

TRAINING = Training(
    command="demo", label="loan", sensitive=("sex",), reference="rest", margin=0.1, positive=None
)


def broken(path: Path) -> None:
    """Fail half-way through the report."""
    path.write_text("half a page")
    raise RuntimeError("a defect")


def whole(path: Path) -> None:
    path.write_text("a page")


@pytest.fixture
def write(model: Path) -> Callable[..., None]:
    fitted = evenhand.load(model)

    def write(out: Path, write_report: Callable[[Path], None], **more: bool) -> None:
        write_model_folder(fitted, out, training=TRAINING, write_report=write_report, **more)

    return write


def test_a_report_that_fails_leaves_no_folder(town: Path, write: Callable[..., None]) -> None:
    before = set(town.iterdir())
    with pytest.raises(RuntimeError, match="a defect"):
        write(town / "new", broken)
    assert set(town.iterdir()) == before


def test_a_demo_that_fails_leaves_the_earlier_demo(town: Path, write: Callable[..., None]) -> None:
    write(town / "demo", whole)
    with pytest.raises(RuntimeError, match="a defect"):
        write(town / "demo", broken, replace_demo=True)
    assert (town / "demo" / "report.html").read_text() == "a page"
    assert evenhand.load(town / "demo").classes_.tolist() == ["granted", "refused"]


def test_a_folder_that_came_meanwhile_is_not_overwritten(
    town: Path, write: Callable[..., None]
) -> None:
    def intrude(path: Path) -> None:
        whole(path)
        (town / "new").mkdir()
        (town / "new" / "diary.txt").write_text("mine")

    with pytest.raises(FileExistsError, match="new exists and is not empty"):
        write(town / "new", intrude)
    assert [path.name for path in (town / "new").iterdir()] == ["diary.txt"]


def test_folders_above_are_made_and_an_empty_one_is_filled(
    town: Path, write: Callable[..., None]
) -> None:
    write(town / "a" / "b", whole)
    (town / "empty").mkdir()
    write(town / "empty", whole)
    assert (town / "a" / "b" / "claim.json").is_file()
    assert (town / "empty" / "claim.json").is_file()


def test_a_place_below_a_file_is_refused(town: Path) -> None:
    with pytest.raises(PermissionError, match="cannot be written"):
        require_free(town / "private.csv" / "model")


def test_a_file_that_fails_half_way_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="a defect"), whole_file(tmp_path / "out.csv") as made:
        broken(made)
    assert list(tmp_path.iterdir()) == []


def test_what_is_remembered_of_training_comes_back(tmp_path: Path) -> None:
    TRAINING.write(tmp_path)
    assert Training.read(tmp_path) == TRAINING
    assert Training.read(tmp_path / "elsewhere") is None
