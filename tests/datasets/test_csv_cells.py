"""Cells that a spreadsheet would run are written so that it does not, and come back as they "
"were."""

import csv
import io
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.datasets import read_table
from evenhand.datasets.csv_cells import as_written, neutral, neutral_table

# The characters that OWASP names; and what Excel runs after an apostrophe was taken for text.
FORMULAS = ["=1+1", "+SUM(A1)", "-cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_an_apostrophe_in_front(text: str) -> None:
    assert neutral(text) == f"'{text}"
    assert as_written(neutral(text)) == text


@pytest.mark.parametrize("value", ["-5", "+3.25", "-1e5", "-.5", -5, 2.5, None, "", "a=b", "a-b"])
def test_numbers_and_other_text_stay_as_they_are(value: object) -> None:
    assert neutral(value) is value


@given(st.text(alphabet="'= -+@\ta5.\r", max_size=6))
def test_every_text_comes_back_and_none_that_is_written_is_run(text: str) -> None:
    written = neutral(text)
    assert as_written(written) == text
    is_number = text.strip() == text and _is_number(text)
    assert is_number or not written.lstrip().startswith(("=", "+", "-", "@"))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_names_of_columns_are_neutral_too_and_a_file_comes_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=name": ["=1+1", "plain", "'=1", None], "n": [-1.5, 2.0, 3.0, -4.0]})
    file = tmp_path / "made.csv"
    neutral_table(frame).to_csv(file, index=False)
    for row in csv.reader(io.StringIO(file.read_text())):
        assert not row[0].startswith(("=", "+", "-", "@"))
    pd.testing.assert_frame_equal(
        read_table(file), frame.fillna({"=name": pd.NA}), check_dtype=False
    )
