"""Fits on Parquet: the same teachers as in memory, parts of bounded size, clear refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from sklearn.tree import DecisionTreeClassifier

from evenhand import (
    Budget,
    DemographicParity,
    DPSGDClassifier,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
)
from evenhand.datasets.parquet import ParquetRows
from evenhand.estimators.shared_rows import PrivateRowsAsPublic
from evenhand.privacy import Ledger, SeededNoise
from evenhand.teachers import MLPTeachers, SklearnTeachers

N, N_PUBLIC = 1200, 200
FEATURES = ["age", "hours", "town"]


def people(n: int, seed: int) -> pd.DataFrame:
    """Made rows: numbers with gaps, text, a group, two classes, and persons of about three rows."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, size=n).astype(float),
            "hours": rng.normal(40, 9, size=n),
            "town": rng.choice(["north", "south", "west"], size=n),
            "sex": rng.choice(["F", "M"], size=n),
            "person": rng.integers(n // 3, size=n),
        }
    )
    score = (frame["age"] - 48) / 18 + (frame["town"] == "west") + rng.normal(size=n)
    frame["income"] = np.where(score > 0.5, "high", "low")
    frame.loc[rng.random(n) < 0.05, "age"] = np.nan
    return frame


PRIVATE, PUBLIC = people(N, 0), people(N_PUBLIC, 1)
GIVEN: dict[str, Any] = {"X_public": PUBLIC[FEATURES]}
GROUPS: dict[str, Any] = {"sensitive_features_public": PUBLIC["sex"]}
MARGIN: dict[str, Any] = {"fairness": DemographicParity(margin=0.1)}
SETTINGS: dict[str, Any] = {
    "budget": Budget(epsilon=9.0, delta=1e-5),
    "n_teachers": 12,
    "random_state": 0,
    "noise": SeededNoise(5),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files of several row groups each, not written in the order of their names."""
    root = tmp_path_factory.mktemp("rows")
    for i, name in ((2, "c"), (0, "a"), (3, "d"), (1, "b")):
        part = PRIVATE.iloc[i * N // 4 : (i + 1) * N // 4]
        pq.write_table(
            pa.Table.from_pandas(part, preserve_index=False),
            root / f"{name}.parquet",
            row_group_size=150,
        )
    return root


def counts(model: Any) -> Any:
    """What the student learnt from: with the same noise, the same if the votes are."""
    answers = model.answers_
    return answers.shares if hasattr(answers, "shares") else answers.labels


TREES = SklearnTeachers(DecisionTreeClassifier(max_features=1))


@pytest.mark.parametrize(
    ("teachers", "unit"),
    [(None, True), (None, False), (TREES, True), (MLPTeachers((4,), epochs=1), False)],
    ids=["logistic, persons", "logistic, records", "trees that draw", "networks"],
)
@pytest.mark.filterwarnings("ignore::evenhand.students.student.ConstantStudentWarning")
def test_a_stream_gives_the_votes_that_memory_gives(
    folder: Path, tmp_path: Path, teachers: Any, unit: bool
) -> None:
    """A row goes to the teacher of its person; where it is a record of its own, of its number."""
    settings = SETTINGS | {"teachers": teachers}
    ids = PRIVATE["person"] if unit else np.arange(N)
    memory = PATEClassifier(**settings, unit="person").fit(
        PRIVATE[FEATURES], PRIVATE["income"], unit_ids=ids, **GIVEN
    )
    for more in ({}, {"batch_rows": 61}, {"scratch": tmp_path, "tasks": 5}):
        model = PATEClassifier(**settings).fit(
            ParquetRows(folder, **more), "income", unit_ids="person" if unit else None, **GIVEN
        )
        assert (counts(model) == counts(memory)).all()
        assert (model.predict(PUBLIC[FEATURES]) == memory.predict(PUBLIC[FEATURES])).all()
    assert not list(tmp_path.iterdir())  # nothing private is left behind
    assert model.classes_.tolist() == memory.classes_.tolist()


def test_the_claim_is_of_the_unit_or_of_the_record(folder: Path) -> None:
    rows = ParquetRows(folder)
    of_person = (
        PATEClassifier(Budget(epsilon=3.0, delta=1e-5), n_teachers=20, random_state=0)
        .fit(rows, "income", unit_ids="person", X_public=PUBLIC[FEATURES])
        .guarantee_
    )
    of_record = (
        PATEClassifier(Budget(epsilon=3.0, delta=1e-5), n_teachers=20, random_state=0)
        .fit(rows, "income", X_public=PUBLIC[FEATURES])
        .guarantee_
    )
    assert (of_person.unit, of_person.neighbors) == ("person", "add or remove one")
    assert (of_record.unit, of_record.neighbors) == ("record", "replace one")
    assert f"the number of private records ({N})" in of_record.public
    assert not any(str(N) in said for said in of_person.public)


@pytest.mark.parametrize("kind", [FairSharesClassifier, FairPATEClassifier])
def test_margins_and_gates_read_a_stream_too(folder: Path, kind: Any) -> None:
    settings = SETTINGS | MARGIN | {"n_teachers": 60}
    memory = kind(**settings).fit(
        PRIVATE[FEATURES], PRIVATE["income"], unit_ids=np.arange(N), **GIVEN, **GROUPS
    )
    model = kind(**settings).fit(ParquetRows(folder), "income", **GIVEN, **GROUPS)
    assert (counts(model) == counts(memory)).all()
    assert model.within_margin_ == memory.within_margin_


def test_parts_of_bounded_size_depend_on_no_order_of_the_rows(folder: Path, tmp_path: Path) -> None:
    """Persons in another order, in other files: the same rows stay, and nearly the same votes."""
    pq.write_table(
        pa.Table.from_pandas(PRIVATE.sample(frac=1, random_state=2), preserve_index=False),
        tmp_path / "shuffled.parquet",
    )
    found = [
        PATEClassifier(**SETTINGS).fit(
            ParquetRows(source, rows_per_teacher=40), "income", unit_ids="person", **GIVEN
        )
        for source in (folder, tmp_path / "shuffled.parquet")
    ]
    # Sums in another order differ in their last digits, which moves no vote but at a tie.
    assert np.abs(counts(found[0]) - counts(found[1])).max() < 1.5 / SETTINGS["n_teachers"]
    whole = PATEClassifier(**SETTINGS).fit(
        ParquetRows(folder), "income", unit_ids="person", **GIVEN
    )
    assert (counts(found[0]) != counts(whole)).any()


def test_a_url_a_file_system_a_file_and_a_list_are_read_alike(folder: Path) -> None:
    files = sorted(folder.iterdir())
    around = fs.SubTreeFileSystem(str(folder.parent), fs.LocalFileSystem())
    sources = (
        ParquetRows(folder.as_uri()),
        ParquetRows(folder.name, filesystem=around),
        ParquetRows(files),
    )
    for rows in sources:
        assert len(rows) == N
        assert rows.classes("income").tolist() == ["high", "low"]
    assert len(ParquetRows(files[0])) == N // 4


def test_columns_in_names_of_folders_are_columns(tmp_path: Path) -> None:
    for town, part in PRIVATE.groupby("town"):
        (tmp_path / f"town={town}").mkdir()
        pq.write_table(
            pa.Table.from_pandas(part.drop(columns="town"), preserve_index=False),
            tmp_path / f"town={town}" / "part.parquet",
        )
    rows = ParquetRows(tmp_path)
    model = PATEClassifier(**SETTINGS).fit(rows, "income", unit_ids="person", **GIVEN)
    memory = PATEClassifier(**SETTINGS).fit(
        PRIVATE[FEATURES], PRIVATE["income"], unit_ids=PRIVATE["person"], **GIVEN
    )
    assert np.abs(counts(model) - counts(memory)).max() < 1.5 / SETTINGS["n_teachers"]


def test_progress_tells_no_size_of_a_part(folder: Path) -> None:
    said: list[tuple[str, int, int]] = []
    PATEClassifier(**SETTINGS).fit(
        ParquetRows(folder), "income", progress=lambda *now: said.append(now), **GIVEN
    )
    n_pieces = len(ParquetRows(folder).pieces)
    assert said[:n_pieces] == [("teachers", i + 1, n_pieces) for i in range(n_pieces)]


def fitted(rows: Any, y: Any = "income", model: Any = None, **given: Any) -> Any:
    model = model or PATEClassifier(**SETTINGS)
    return model.fit(rows, y, **(GIVEN | given))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"y": PRIVATE["income"]}, TypeError, "y is the name of the column of labels"),
        ({"unit_ids": PRIVATE["person"]}, TypeError, "unit_ids is the name of a column"),
        ({"y": "incme"}, ValueError, "no column 'incme' .y.. Did you mean 'income'"),
        ({"y": "incme", "unit_ids": "persn"}, ValueError, "'incme' .y., 'persn' .unit_ids."),
        ({"X_public": None}, ValueError, "pass X_public="),
        ({"X_public": PUBLIC[FEATURES].to_numpy()}, (TypeError, ValueError), "DataFrame"),
        ({"X_public": PUBLIC[[*FEATURES, "income"]]}, ValueError, "X_public has it as a feature"),
        ({"X_public": PUBLIC[FEATURES].assign(new=1.0)}, ValueError, "no column 'new' .X_public"),
        (
            {"X_public": PUBLIC[FEATURES].assign(town=1.0)},
            ValueError,
            "'town' .* must hold numbers",
        ),
        (
            {
                "sensitive_features": PRIVATE["sex"],
                "model": FairSharesClassifier(**SETTINGS, **MARGIN),
            },
            TypeError,
            "sensitive_features_public",
        ),
        ({"y": "age", "X_public": PUBLIC[FEATURES[1:]]}, ValueError, "no label in row"),
        ({"y": "person"}, ValueError, "more than 200 different values"),
        ({"y": "hours", "X_public": PUBLIC[FEATURES[:1]]}, ValueError, "different values"),
        (
            {"model": PATEClassifier(**(SETTINGS | {"classes": ["low", "mid"]}))},
            ValueError,
            "not among classes",
        ),
        (
            {"model": PATEClassifier(**(SETTINGS | {"n_teachers": N + 1}))},
            ValueError,
            "at most the number of records",
        ),
        (
            {"model": DPSGDClassifier(Budget(epsilon=3.0, delta=1e-5))},
            TypeError,
            "DPSGDClassifier needs X in memory",
        ),
    ],
)
def test_what_a_stream_has_not_is_refused_before_anything_is_spent(
    folder: Path, given: dict[str, Any], error: Any, words: str
) -> None:
    given = dict(given)
    if isinstance(given.get("model"), DPSGDClassifier):
        with pytest.raises(error, match=words):
            given["model"].fit(ParquetRows(folder), PRIVATE["income"], X_public=PUBLIC[FEATURES])
        return
    with pytest.raises(error, match=words):
        fitted(ParquetRows(folder), **given)


def test_a_row_without_a_unit_is_named_and_nothing_is_spent(folder: Path, tmp_path: Path) -> None:
    frame = PRIVATE.assign(person=PRIVATE["person"].astype("Int64"))
    frame.loc[[834, 1000], "person"] = pd.NA
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "gaps.parquet")
    account = Ledger(Budget(epsilon=9.0, delta=1e-5), unit="person", neighbors="add or remove one")
    model = PATEClassifier(**(SETTINGS | {"noise": None}))
    with pytest.raises(ValueError, match="'person' is empty in row 835"):
        fitted(
            ParquetRows(tmp_path / "gaps.parquet"),
            model=model,
            unit_ids="person",
            ledger=account,
        )
    assert account.spent == 0


def test_ids_of_other_types_are_the_same_units(folder: Path, tmp_path: Path) -> None:
    """17, 17.0, "17" and "17.0" are one person, in a file as in memory."""
    found = []
    for i, kinds in enumerate((["int64"], ["float64"], ["str"], ["float64", "str"])):
        ids = PRIVATE["person"]
        for kind in kinds:
            ids = ids.astype(kind)
        frame = PRIVATE.assign(person=ids)
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / f"{i}.parquet")
        found.append(counts(fitted(ParquetRows(tmp_path / f"{i}.parquet"), unit_ids="person")))
    assert all((found[0] == other).all() for other in found[1:])


@pytest.mark.parametrize("what", ["nothing", "empty folder", "text", "cut", "other columns"])
def test_sources_that_are_no_table_are_named(folder: Path, tmp_path: Path, what: str) -> None:
    whole = (folder / "a.parquet").read_bytes()
    if what == "nothing":
        with pytest.raises(FileNotFoundError, match="There is nothing at"):
            len(ParquetRows(tmp_path / "absent"))
        return
    if what == "text":
        (tmp_path / "a.parquet").write_text("age,income\n3,low\n")
    elif what != "empty folder":
        (tmp_path / "a.parquet").write_bytes(whole)
        frame = PRIVATE[["age"]].assign(income=1)
        for name in "bc":
            if what == "cut":
                (tmp_path / f"{name}.parquet").write_bytes(whole[: len(whole) // 2])
            else:
                pq.write_table(pa.Table.from_pandas(frame), tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match=r"Parquet|same columns") as refused:
        len(ParquetRows(tmp_path))
    if what in ("cut", "other columns"):
        assert "b.parquet" in str(refused.value)
        assert "c.parquet" in str(refused.value)


def test_a_file_that_is_written_to_meanwhile_is_noticed(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes((folder / "a.parquet").read_bytes())
    rows = ParquetRows(file)
    assert len(rows) == N // 4
    pq.write_table(pa.Table.from_pandas(PRIVATE.head(100), preserve_index=False), file)
    with pytest.raises(ValueError, match="stays charged"):
        fitted(rows)


def test_a_private_table_that_is_passed_as_public_is_noticed(folder: Path) -> None:
    with pytest.raises(PrivateRowsAsPublic):
        fitted(
            ParquetRows(folder),
            X_public=PRIVATE[FEATURES].head(300),
        )


def test_settings_of_a_stream_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rows_per_teacher must be at least 1"):
        ParquetRows(tmp_path, rows_per_teacher=0)
    with pytest.raises(ValueError, match="scratch must be a folder"):
        ParquetRows(tmp_path, scratch=tmp_path / "absent")
