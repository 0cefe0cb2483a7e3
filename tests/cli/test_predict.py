"""``evenhand predict``: row order, what may be missing, and where the output goes."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand

Run = Callable[..., Any]


def test_predictions_keep_the_order_of_the_rows(model: Path, run: Run) -> None:
    new = pd.read_csv("test.csv")
    new.iloc[::-1].to_csv("reversed.csv", index=False)
    forward = pd.read_csv(io.StringIO(run("predict", "model", "test.csv").stdout))
    backward = pd.read_csv(io.StringIO(run("predict", "model", "reversed.csv").stdout))
    fitted = evenhand.load("model")
    expected = fitted.predict(new[list(fitted.feature_names_in_)])
    assert forward["prediction"].tolist() == expected.tolist()
    assert backward["prediction"].tolist() == expected[::-1].tolist()
    assert len(set(expected)) == 2


def test_missing_values_new_categories_and_other_columns_are_allowed(model: Path, run: Run) -> None:
    new = pd.DataFrame(
        {
            "notes": ["a", "b", "c"],
            "race": ["A", None, "Z"],
            "hours": [40, None, 20],
            "job": [None, "astronaut", "smith"],
            "age": [None, 30.5, 90],
        }
    )
    new.to_csv("new.csv", index=False)
    found = pd.read_csv(io.StringIO(run("predict", "model", "new.csv").stdout))
    assert len(found) == 3
    assert set(found["prediction"]) <= {"granted", "refused"}


def test_probabilities_have_a_column_for_each_class(model: Path, run: Run) -> None:
    found = pd.read_csv(io.StringIO(run("predict", "model", "test.csv", "--proba").stdout))
    shares = found[["probability of granted", "probability of refused"]].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    classes = np.array(["granted", "refused"])
    assert (classes[shares.argmax(axis=1)] == found["prediction"]).all()


def test_columns_of_the_table_are_written_before_the_predictions_if_they_are_named(
    model: Path, run: Run, refuse: Run
) -> None:
    new = pd.read_csv("test.csv", dtype=str).assign(id=lambda t: [f"{i:04}" for i in t.index])
    new.loc[3, "sex"] = None
    new.to_csv("new.csv", index=False)
    asked = ("predict", "model", "new.csv", "--keep", "id", "--keep", "sex")
    found = pd.read_csv(io.StringIO(run(*asked).stdout), dtype=str)
    assert list(found) == ["id", "sex", "prediction"]
    assert found[["id", "sex"]].equals(new[["id", "sex"]])
    plain = pd.read_csv(io.StringIO(run("predict", "model", "new.csv").stdout))
    assert found["prediction"].tolist() == plain["prediction"].tolist()
    said = json.loads(run(*asked, "--json").stdout)
    assert said["kept"]["id"] == new["id"].tolist()
    assert said["kept"]["sex"][2:5] == [new["sex"][2], None, new["sex"][4]]
    assert "'ide'" in refuse("predict", "model", "new.csv", "--keep", "ide")
    new.rename(columns={"id": "reason"}).to_csv("new.csv", index=False)
    line = refuse("predict", "model", "new.csv", "--keep", "reason")
    assert "predict writes one of that name itself" in line


def test_days_that_are_kept_stay_days(model: Path, run: Run) -> None:
    new = pa.Table.from_pandas(pd.read_csv("test.csv"), preserve_index=False)
    born = pa.array(np.datetime64("1960-01-01") + np.arange(len(new)))
    pq.write_table(new.append_column("born", born), "new.parquet")
    run("predict", "model", "new.parquet", "--keep", "born", "--out", "found.parquet")
    found = pq.read_table("found.parquet")
    assert found["born"].combine_chunks().equals(born)
    assert found.schema.field("born").type == pa.date32()


def test_json_holds_the_same(model: Path, run: Run) -> None:
    said = json.loads(run("predict", "model", "test.csv", "--proba", "--json").stdout)
    found = pd.read_csv(io.StringIO(run("predict", "model", "test.csv").stdout))
    assert said["predictions"] == found["prediction"].tolist()
    assert said["classes"] == ["granted", "refused"]
    assert np.shape(said["probabilities"]) == (said["n_rows"], 2) == (300, 2)


def test_a_file_is_written_whole_and_not_overwritten_by_probability(
    model: Path, run: Run, refuse: Run
) -> None:
    result = run("predict", "model", "test.csv", "--out", "found.csv")
    assert result.stdout == ""
    assert "300 predictions are in found.csv" in result.stderr
    assert Path("found.csv").read_text() == run("predict", "model", "test.csv").stdout
    assert "found.csv exists" in refuse("predict", "model", "test.csv", "--out", "found.csv")
    run("predict", "model", "test.csv", "--out", "found.csv", "--proba", "--overwrite")
    assert "probability" in Path("found.csv").read_text()
    assert not list(model.parent.glob(".*"))


def test_the_input_is_never_overwritten(model: Path, refuse: Run) -> None:
    before = Path("test.csv").read_bytes()
    line = refuse("predict", "model", "test.csv", "--out", "test.csv", "--overwrite")
    assert "is the table to predict on" in line
    assert Path("test.csv").read_bytes() == before


def test_a_misspelt_column_gets_the_nearest_name(model: Path, refuse: Run) -> None:
    pd.read_csv("test.csv").rename(columns={"hours": "Hours"}).to_csv("new.csv", index=False)
    line = refuse("predict", "model", "new.csv")
    assert "new.csv has no column 'hours', which the model was trained on." in line
    assert "The model reads 'age', 'job', 'hours', 'race'; values that nobody knows may be" in line
    assert "Did you mean 'Hours'?" in line


def test_text_where_the_model_knows_numbers_is_located(model: Path, refuse: Run) -> None:
    new = pd.read_csv("test.csv", dtype=object)
    new.loc[2, "hours"] = "many"
    new.to_csv("new.csv", index=False)
    line = refuse("predict", "model", "new.csv")
    assert "'hours' of new.csv must hold numbers" in line
    assert "(not shown) in row 3" in line
    assert "or leave it empty. A column of text is learnt where the schema of the training" in line
    assert "'many' in row 3" in refuse("predict", "model", "new.csv", "--show-values")


def test_dates_in_a_column_of_the_model_are_bad_input(model: Path, refuse: Run) -> None:
    new = pd.read_csv("test.csv")
    for column in ("hours", "job"):
        new.assign(**{column: pd.Timestamp("2020-01-01")}).to_parquet("new.parquet")
        line = refuse("predict", "model", "new.parquet")
        assert f"{column!r} of new.parquet holds dates or times" in line


@pytest.mark.parametrize(
    "name", ["model.json", "claim.json", "student.safetensors", "answers.safetensors"]
)
def test_an_edited_model_is_refused(model: Path, refuse: Run, name: str) -> None:
    file = model / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    line = refuse("predict", "model", "test.csv")
    assert f"{name} is not as it was saved" in line


def test_a_model_without_one_of_its_files_is_refused(model: Path, refuse: Run) -> None:
    (model / "claim.json").unlink()
    assert "claim.json is missing" in refuse("predict", "model", "test.csv")


def test_a_folder_that_is_no_model_is_refused(model: Path, refuse: Run) -> None:
    shutil.rmtree(model)
    way_out = "Name a folder that evenhand train --out (in Python: model.save) wrote."
    said = refuse("predict", "model", "test.csv")
    assert "model is not a folder" in said
    assert way_out in said
    model.mkdir()
    said = refuse("predict", "model", "test.csv")
    assert "model is no saved model, or it is damaged: it holds no manifest.json" in said
    assert way_out in said


def test_an_empty_table_is_refused(model: Path, refuse: Run) -> None:
    Path("new.csv").write_text("")
    assert "new.csv is empty" in refuse("predict", "model", "new.csv")
