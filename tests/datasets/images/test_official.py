"""Data sets that nobody may pass on, read in their owners' layout, from tiny ones made here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets.images import load_celeba, load_chexpert, load_fairface, load_utkface
from evenhand.datasets.images.files import UnreadableImages
from evenhand.datasets.retired_adult import load_retired_adult

PIL = pytest.importorskip("PIL.Image", reason="the extra images is not installed")


def picture(path: Path, value: int, mode: str = "RGB", size: tuple[int, int] = (10, 8)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.new(mode, size, value if mode == "L" else (value, 10, 20)).save(path, "JPEG", quality=95)


@pytest.fixture
def fairface(tmp_path: Path) -> Path:
    rows = {
        "train": [
            ("train/1.jpg", "50-59", "Male", "East Asian", "True"),
            ("train/2.jpg", "more than 70", "Female", "Indian", "False"),
            ("train/3.jpg", "0-2", "Female", "Latino_Hispanic", "True"),
        ],
        "val": [("val/1.jpg", "3-9", "Male", "Black", "True")],
    }
    for part, lines in rows.items():
        frame = pd.DataFrame(lines, columns=["file", "age", "gender", "race", "service_test"])
        frame.to_csv(tmp_path / f"fairface_label_{part}.csv", index=False)
        for i, (name, *_) in enumerate(lines):
            picture(tmp_path / name, 60 * i + 30)
    return tmp_path


def test_fairface_is_read_in_its_official_layout(fairface: Path) -> None:
    data = load_fairface(fairface, size=6)
    assert data.y.tolist() == ["Male", "Female", "Female", "Male"]
    assert data.sensitive_features.tolist() == ["East Asian", "Indian", "Latino_Hispanic", "Black"]
    assert data.X[:].shape == (4, 3, 6, 6)
    assert np.abs(data.X[:][:3, 0, 3, 3].astype(int) - [30, 90, 150]).max() < 8
    val = load_fairface(fairface, part="val", label="age", sensitive="gender")
    assert (val.y.tolist(), len(val)) == (["3-9"], 1)
    with pytest.raises(ValueError, match="label must be one of 'age', 'gender', 'race'"):
        load_fairface(fairface, label="service_test")
    (fairface / "train/2.jpg").write_bytes(b"no picture")
    with pytest.raises(UnreadableImages, match=r"1 of 4 pictures of FairFace .*'train/2\.jpg'"):
        load_fairface(fairface)
    (fairface / "train/2.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"1 of 4 pictures.*'train/2\.jpg'.*joojs/fairface"):
        load_fairface(fairface)
    (fairface / "fairface_label_val.csv").write_text("file,age\nval/1.jpg,3-9\n")
    with pytest.raises(ValueError, match="no column 'gender', 'race'"):
        load_fairface(fairface)


CHEXPERT = """Path,Sex,Age,Frontal/Lateral,AP/PA,No Finding,Edema
{root}/train/patient00001/study1/view1_frontal.jpg,Female,68,Frontal,AP,1.0,
{root}/train/patient00001/study1/view2_lateral.jpg,Female,68,Lateral,,1.0,
{root}/train/patient00002/study2/view1_frontal.jpg,Male,87,Frontal,AP,,-1.0
{root}/train/patient00003/study1/view1_frontal.jpg,Male,83,Frontal,PA,,1.0
{root}/train/patient00004/study1/view1_frontal.jpg,Unknown,41,Frontal,AP,,0.0
"""
RACES = """PATIENT,GENDER,AGE_AT_CXR,PRIMARY_RACE,ETHNICITY
patient00001,Female,68,"White, non-Hispanic",Non-Hispanic/Non-Latino
patient00002,Male,87,Asian,Non-Hispanic/Non-Latino
patient00003,Male,83,Black or African American,Not Hispanic
patient00004,Unknown,41,Unknown,Unknown
"""


@pytest.fixture
def chexpert(tmp_path: Path) -> Path:
    root = tmp_path / "CheXpert-v1.0-small"
    (root / "train").mkdir(parents=True)
    (root / "train.csv").write_text(CHEXPERT.format(root=root.name))
    for i, line in enumerate(CHEXPERT.splitlines()[1:]):
        name = line.partition(",")[0].format(root=root.name)
        picture(tmp_path / name, 40 * i + 20, "L")
    (root / "CHEXPERT DEMO.csv").write_text(RACES)
    return root


def test_chexpert_is_read_in_its_official_layout(chexpert: Path) -> None:
    data = load_chexpert(chexpert, size=6)
    assert data.X[:].shape == (3, 1, 6, 6)
    assert data.y.tolist() == ["yes", "no", "no"]
    assert data.sensitive_features.tolist() == ["White", "Asian", "Black"]
    assert data.units.tolist() == ["patient00001", "patient00002", "patient00003"]
    assert data.X[:][:, 0, 3, 3].tolist() == pytest.approx([20, 100, 140], abs=4)
    both = load_chexpert(chexpert, size=6, frontal=False)
    assert both.units.tolist()[:2] == ["patient00001"] * 2
    told = {
        rule: load_chexpert(chexpert, label="Edema", uncertain=rule, sensitive="sex").y.tolist()
        for rule in ("drop", "positive", "negative")
    }
    assert told == {
        "drop": ["no", "yes"],
        "positive": ["no", "yes", "yes"],
        "negative": ["no", "no", "yes"],
    }
    with pytest.raises(ValueError, match=r"'Edma'\. Did you mean 'Edema'"):
        load_chexpert(chexpert, label="Edma")
    (chexpert / "CHEXPERT DEMO.csv").unlink()
    assert len(load_chexpert(chexpert, sensitive="sex", label="Edema")) == 2
    with pytest.raises(
        FileNotFoundError, match=r"no CHEXPERT DEMO\.csv.*stanfordmlgroup.*192ada7c"
    ):
        load_chexpert(chexpert)


@pytest.mark.parametrize(
    ("load", "page"),
    [
        (load_celeba, "mmlab.ie.cuhk.edu.hk/projects/CelebA"),
        (load_fairface, "github.com/joojs/fairface"),
        (load_chexpert, "stanfordmlgroup.github.io/competitions/chexpert"),
        (load_utkface, "susanqq.github.io/UTKFace"),
        (load_retired_adult, "github.com/socialfoundations/folktables"),
    ],
)
def test_a_folder_without_the_data_says_where_to_get_them(
    load: Callable[[Path], object], page: str, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match=page):
        load(tmp_path)


def test_retired_adult_cuts_incomes_where_it_is_told(tmp_path: Path) -> None:
    n = 12
    pd.DataFrame(
        {
            "hours-per-week": [40] * n,
            "age": range(20, 20 + n),
            "race": ["White", "Black", "White"] * 4,
            "gender": ["Male", "Female"] * 6,
            "income": [10_000 * i for i in range(n)],
        }
    ).to_csv(tmp_path / "adult_reconstruction.csv", index=False)
    data = load_retired_adult(tmp_path)
    assert data.y.tolist() == [0] * 6 + [1] * 6
    assert list(data.X) == ["hours-per-week", "age", "race"]
    assert data.groups.tolist() == ["Male", "Female"] * 6
    other = load_retired_adult(tmp_path, threshold=20_000, sensitive="race")
    assert other.y.sum() == 9
    assert other.sensitive == ("race",)
