"""What teachers of one owner learn from: each from its own part of the records alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets import read_table
from evenhand.owners.training import readable, train_teachers

N, TEACHERS = 80, 4


@pytest.mark.parametrize("cell", ["sixty", "007", "1,5", "", "-0.0", "12345678901234567890"])
@pytest.mark.parametrize("unit", [None, "person"])
def test_whatever_one_cell_holds_one_teacher_moves(
    cell: str, unit: str | None, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    cells = pd.DataFrame(rng.normal(50, 10, (N, 2)).round(2).astype(str), columns=["age", "dose"])
    label = np.where(rng.random(N) < 0.5, "no", "yes")
    public = pd.DataFrame(rng.normal(50, 10, (9, 2)), columns=["age", "dose"])
    whose = [f"p{i // 2}" for i in range(N)] if unit else None

    def said(frame: pd.DataFrame) -> np.ndarray:
        frame.to_csv(tmp_path / "own.csv", index=False)
        models, about = train_teachers(
            read_table(tmp_path / "own.csv"), label, n_teachers=TEACHERS, units=whose, seed=0
        )
        return np.array(
            [
                model.predict_proba(readable(public, own)[list(about.columns)])
                for model, own in zip(models, about.numeric, strict=True)
            ]
        )

    before = said(cells)
    cells.loc[17, "age"] = cell
    moved = (before != said(cells)).any(axis=(1, 2))
    assert moved.sum() == 1, "its own, and no other"


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["inf", "-1e999"])
def test_an_infinite_number_is_named_by_its_row_wherever_it_is_dealt(
    cell: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    cells = pd.DataFrame(rng.normal(50, 10, (N, 2)).round(2).astype(str), columns=["age", "dose"])
    cells.loc[17, "age"] = cell
    cells.to_csv(tmp_path / "own.csv", index=False)
    label = np.where(rng.random(N) < 0.5, "no", "yes")
    said = r"'age' of the private table must be finite, got an infinite number in row 18 \(counted"
    with pytest.raises(ValueError, match=said):
        train_teachers(read_table(tmp_path / "own.csv"), label, n_teachers=TEACHERS, seed=1)
    _, about = train_teachers(cells[["dose"]], label, seed=0)
    with pytest.raises(ValueError, match="'dose' of the table must be finite"):
        readable(cells[["age"]].iloc[:20].rename(columns={"age": "dose"}), about.numeric[0])


def test_a_label_of_amounts_is_refused_as_classes_stand_in_files_of_votes() -> None:
    income = 20_000 + np.arange(201)
    with pytest.raises(ValueError, match="more than 200 different values") as said:
        train_teachers(pd.DataFrame({"age": income % 50}), income)
    assert "20001" not in str(said.value)
