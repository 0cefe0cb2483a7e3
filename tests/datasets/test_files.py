import gzip
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand._frames import as_pandas
from evenhand.datasets import read_table
from evenhand.datasets.columns import Column
from evenhand.datasets.files import tables_written

TEXT = "age,city,score\n30,Bonn,1.5\n41,,NA\n?,Ulm,2\n"


def written(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_numbers_are_numbers_and_missing_is_missing(tmp_path: Path) -> None:
    frame = read_table(written(tmp_path, TEXT))
    assert frame["age"].tolist()[:2] == [30, 41]
    assert frame.isna().to_numpy().tolist() == [
        [False, False, False],
        [False, True, True],
        [True, False, False],
    ]
    assert frame["score"].dropna().tolist() == [1.5, 2.0]
    assert frame["city"].dropna().tolist() == ["Bonn", "Ulm"]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("compressed", [False, True])
def test_separator_and_compression_make_no_difference(
    tmp_path: Path, separator: str, compressed: bool
) -> None:
    content = TEXT.replace(",", separator).encode()
    path = written(tmp_path, gzip.compress(content) if compressed else content)
    pd.testing.assert_frame_equal(read_table(path), read_table(written(tmp_path, TEXT, "b.csv")))


def test_parquet_is_read_as_stored(tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [1, 2], "city": ["a", "b"]})
    frame.to_parquet(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.parquet"), frame)


def test_whole_numbers_with_gaps_stay_whole(tmp_path: Path) -> None:
    cells = [
        ("7", "3.0", "2.5", "9007199254740993", "18446744073709551615", "1e300", "x"),
        ("",) * 7,
    ]
    text = "\n".join(map(",".join, [tuple("abcdefg"), *cells, ("1",) * 7])) + "\n"
    frame = read_table(written(tmp_path, text))
    assert frame.dtypes.astype(str).tolist() == [
        *("Int64", "Int64", "float64", "Int64", "UInt64", "float64", "str")
    ]
    assert frame.loc[0].tolist() == [7, 3, 2.5, 2**53 + 1, 2**64 - 1, 1e300, "x"]
    assert frame.loc[1].isna().all()


def test_a_parquet_column_is_what_it_is_stored_as_whether_or_not_values_miss(
    tmp_path: Path,
) -> None:
    stored = pa.table({"n": pa.array([1, None], "int8"), "b": [None, True], "x": [0.5, None]})
    pq.write_table(stored, tmp_path / "t.parquet")
    frame = read_table(tmp_path / "t.parquet")
    assert frame.dtypes.astype(str).tolist() == ["Int8", "boolean", "float64"]
    assert frame["n"].tolist() == [1, pd.NA]
    assert frame["b"].tolist() == [pd.NA, True]


def test_decimals_of_parquet_are_numbers_as_far_as_floats_hold_them(tmp_path: Path) -> None:
    amounts = [Decimal("12.30"), None, Decimal("-0.07")]
    stored = pa.table(
        {f"d{n}": pa.array(amounts, pa.decimal128(n, 2)) for n in (6, 15, 16, 38)}
        | {"largest": pa.array([Decimal("9999999999999.99")] * 3, pa.decimal128(15, 2))}
    )
    pq.write_table(stored, tmp_path / "t.parquet")
    frame = read_table(tmp_path / "t.parquet")
    assert frame.dtypes.astype(str).tolist() == [*["float64"] * 2, *["object"] * 2, "float64"]
    assert frame["d15"].tolist()[::2] == [12.3, -0.07]
    assert frame["d15"].isna().tolist() == [False, True, False]
    assert frame["d38"].tolist() == amounts
    assert repr(frame["largest"].tolist()[0]) == "9999999999999.99"
    assert as_pandas(stored).dtypes.tolist() == frame.dtypes.tolist()
    for read in (frame, as_pandas(stored), frame[["d6", "d15", "d38", "largest"]].head(1)):
        assert [Column(read[name]).scale for name in ("d6", "d38", "largest")] == [2, None, 2]
    assert Column(frame["d6"].astype("float32")).scale is None


def test_text_among_numbers_leaves_the_column_as_written(tmp_path: Path) -> None:
    frame = read_table(written(tmp_path, "a,b\n1,1.50\nx,2\n"))
    assert frame["a"].tolist() == ["1", "x"]
    assert frame["b"].tolist() == [1.5, 2.0]


def test_codes_with_a_leading_zero_stay_text(tmp_path: Path) -> None:
    frame = read_table(written(tmp_path, "zip,x\n01234,0.5\n99999,0\n"))
    assert frame["zip"].tolist() == ["01234", "99999"]
    assert frame["x"].tolist() == [0.5, 0.0]


def test_quoted_separators_spaces_and_a_byte_order_mark_are_understood(tmp_path: Path) -> None:
    frame = read_table(written(tmp_path, '\ufeffcity, note\nUlm, "a, b"\n Bonn, c \n'))
    assert list(frame) == ["city", "note"]
    assert frame["note"].tolist() == ["a, b", "c"]


def test_words_that_pandas_would_take_for_missing_are_kept(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, "a\nNone\nnull\n"))["a"].tolist() == ["None", "null"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.csv"):
        read_table(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"a,b\n", "has a header and no rows"),
        (b"a,b\n1,2\n1,2,3\n", "line 3 has 3 values, the header has 2"),
        (b"a,b\n1,2\n1\n", "line 3 has 1 values, the header has 2"),
        (b",a\n0,1\n", r"Column 1 of .* has no name.*index=False"),
        (b"a,b,\n1,2,\n", r"ends with a separator .','., so that column 3 has no name"),
        (b"a,b\n1," + b"x" * 200_000 + b"\n", "line 2 is longer than 131,072 characters"),
        (b"a,a\n1,2\n", "more than one column named 'a'"),
        (b"a,b\n\xff\xfe,1\n", "is not text in UTF-8"),
        (b"a\0b,c\n1,2\n", "is not a text file"),
        (b"PK\x03\x04abc", r"a workbook \(.xlsx\) or another zip archive. Save"),
        (b"\xd0\xcf\x11\xe0abc", r"a workbook of Excel \(.xls\). Save"),
        (b'[{"a": 1}, {"a": 2}]', "holds JSON. Save the table as CSV or Parquet"),
        (b'{"a": 1}\n{"a": 2}\n', "holds JSON"),
        (b"a;b\nM\xfcnchen;1\n", r"byte 5 cannot be read. Name its encoding \(--encoding latin-1"),
        (b"\x1f\x8b\x08\x00abc", "is not a whole gzip file"),
        (b"PAR1 and nothing more", "is not a Parquet file"),
        (b'a,b\n1,"2\n', "is not a table"),
    ],
)
def test_what_is_no_table_is_one_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(written(tmp_path, content))


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_lines_separators_and_encodings_are_found_or_named(
    tmp_path: Path, ending: str, separator: str, encoding: str
) -> None:
    rows = [["city", "n"], ["München", "1"], ["Ulm", "2"]]
    text = ending.join(separator.join(row) for row in rows) + ending
    file = written(tmp_path, text.encode(encoding))
    named = {"encoding": encoding} if encoding == "latin-1" else {}
    for frame in (
        read_table(file, **named),
        read_table(file, separator=separator, encoding=encoding),
    ):
        assert list(frame) == ["city", "n"]
        assert frame["city"].tolist() == ["München", "Ulm"]
        assert frame["n"].tolist() == [1, 2]


def test_a_separator_that_is_named_is_taken_and_a_wrong_one_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "a:b,c\n1:2,3\n")
    assert list(read_table(file, separator=":")) == ["a", "b,c"]
    with tables_written(separator=":", encoding="ascii"):
        assert list(read_table(file)) == ["a", "b,c"]
    assert list(read_table(file)) == ["a:b", "c"]
    with pytest.raises(ValueError, match=r"one character between two values, got '::'"):
        read_table(file, separator="::")
    with pytest.raises(ValueError, match=r"such as utf-8, latin-1, .* got 'latin-one'"):
        read_table(file, encoding="latin-one")


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_first_line_of_excel_names_the_separator(tmp_path: Path, end: str) -> None:
    content = end.join(["sep=|", "a,b|c", "1,5|2", ""])
    frame = read_table(written(tmp_path, content))
    assert frame.to_dict("list") == {"a,b": ["1,5"], "c": [2]}
    with pytest.raises(ValueError, match="line 4 has 1 values"):
        read_table(written(tmp_path, content + "3"))
    assert list(read_table(written(tmp_path, "sep=x,b\n1,2\n"))) == ["sep=x", "b"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "head",
    [
        ["#made by x,y"],
        ["# made by x"],
        ["# a, b"],
        ["## x", "## y"],
        ["#x"],
        ["#x,y", "#z"],
        ["", "#x"],
        ["# a,b"],
    ],
)
def test_lines_of_comment_before_the_header_are_refused(
    head: list[str], end: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"begins with a comment \(#\).*Remove all lines"):
        read_table(written(tmp_path, end.join([*head, "a,b", "1,2", ""])))
    for name in ("#", "#a", "a#", "#a ", "a# b"):  # of a header
        frame = read_table(written(tmp_path, end.join([f"{name},b", "1,2", "#3,4"])))
        assert list(frame) == [name.strip(), "b"]
