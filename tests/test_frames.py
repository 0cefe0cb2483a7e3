"""Tables of pandas, polars and pyarrow are one table, whatever comes in through the door."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evenhand import (
    Budget,
    DemographicParity,
    DPSGDClassifier,
    FairSharesClassifier,
    NonPrivateClassifier,
    SFPATEClassifier,
)
from evenhand._frames import as_pandas
from evenhand.datasets import PublicEncoder, Schema
from evenhand.datasets.columns import Column
from evenhand.fairness.groups import encode_groups
from evenhand.generators import MarginalSynthesizer
from evenhand.privacy import SeededNoise

N = 400
JOBS = ("clerk", "cook", "nurse")


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": pd.array(rng.integers(18, 70, N), dtype="Int64"),
            "score": rng.normal(size=N),
            "job": pd.Categorical(rng.choice(JOBS, N), categories=JOBS),
            "town": pd.array(rng.choice(["north", "süd"], N), dtype="str"),
            "member": pd.array(rng.random(N) < 0.5, dtype="boolean"),
            "sex": pd.array(rng.choice(["F", "M"], N), dtype="str"),
        }
    )
    for name in ("age", "job", "town", "member"):
        frame.loc[rng.random(N) < 0.05, name] = None
    rich = frame["score"] + 0.3 * (frame["sex"] == "M") + rng.normal(0, 0.5, N) > 0
    return frame.assign(rich=np.where(rich, "yes", "no"))


def in_polars(frame: pd.DataFrame) -> pl.DataFrame:
    return pl.from_pandas(frame).with_columns(
        pl.col("job").cast(pl.Enum(JOBS)), pl.col("town").cast(pl.Categorical)
    )


LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": in_polars,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "numpy_nullable": lambda frame: frame.convert_dtypes(dtype_backend="numpy_nullable"),
    "pandas on arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
}
CLASSIFIERS: dict[str, Any] = {
    "FairShares": FairSharesClassifier(
        Budget(epsilon=8.0, delta=1e-5),
        DemographicParity(margin=0.2),
        n_teachers=10,
        noise=SeededNoise(0),
        random_state=0,
    ),
    "SF-PATE": SFPATEClassifier(
        Budget(epsilon=8.0, delta=1e-5), n_teachers=10, noise=SeededNoise(0), random_state=0
    ),
    "DP-SGD": DPSGDClassifier(
        Budget(epsilon=8.0, delta=1e-5), n_steps=5, noise=SeededNoise(0), random_state=0
    ),
    "nonprivate": NonPrivateClassifier(random_state=0),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_kinds_groups_and_numbers_are_those_of_pandas(library: str) -> None:
    frame = people()
    other = LIBRARIES[library](frame)
    assert Schema.of_public(other) == Schema.of_public(frame)
    encoder = PublicEncoder().fit(frame)
    assert np.array_equal(encoder.transform(other), encoder.transform(frame))
    one, two = as_pandas(other), frame
    for names in (["sex"], ["sex", "rich"]):
        found, wanted = encode_groups(one[names]), encode_groups(two[names])
        assert found.names == wanted.names
        assert np.array_equal(found.codes, wanted.codes)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("method", CLASSIFIERS)
@pytest.mark.filterwarnings("ignore::evenhand.estimators.plan.NoiseDrownsAnswers")
def test_a_model_is_the_same_from_every_library(method: str, library: str) -> None:
    from sklearn.base import clone

    def fitted(convert: Callable[[pd.DataFrame], Any]) -> Any:
        table = people()
        private, public = convert(table[:300]), convert(table[300:].reset_index(drop=True))
        columns = ["age", "score", "job", "town", "member"]
        given: dict[str, Any] = {"sensitive_features": _column(private, "sex")}
        if method == "FairShares":
            given["sensitive_features_public"] = _column(public, "sex")
        if method != "SF-PATE":
            given["X_public"] = _columns(public, columns)
        model = clone(CLASSIFIERS[method]).fit(
            _columns(private, columns), _column(private, "rich"), **given
        )
        need = {}
        if model.needs_group_at_prediction_:
            need = {"sensitive_features": _column(public, "sex")}
        return model.predict(_columns(public, columns), **need)

    assert np.array_equal(fitted(LIBRARIES[library]), fitted(lambda table: table))


def _column(table: Any, name: str) -> Any:
    return table[name]


def _columns(table: Any, names: list[str]) -> Any:
    return table.select(names) if hasattr(table, "select") else table[names]


@pytest.mark.parametrize("library", LIBRARIES)
def test_synthetic_rows_are_the_same_from_every_library(library: str) -> None:
    schema = Schema.of_public(people()[["job", "town", "sex", "rich"]])

    def drawn(table: Any) -> pd.DataFrame:
        model = MarginalSynthesizer(noise=SeededNoise(0), random_state=0)
        model.fit(
            _columns(table, ["job", "town", "sex", "rich"]),
            label="rich",
            sensitive="sex",
            budget=Budget(epsilon=3.0, delta=1e-5),
            schema=schema,
        )
        return model.sample(50, random_state=0).astype(str)

    assert drawn(LIBRARIES[library](people())).equals(drawn(people()))


@pytest.mark.parametrize("values", [[None, None], [True, None], [True, False]])
def test_the_kind_of_a_column_does_not_depend_on_what_is_missing(values: list[Any]) -> None:
    as_bool = as_pandas(pl.DataFrame({"x": pl.Series(values, dtype=pl.Boolean)}))["x"]
    as_text = as_pandas(pl.DataFrame({"x": pl.Series(values).cast(pl.String)}))["x"]
    as_whole = as_pandas(pl.DataFrame({"x": pl.Series(values).cast(pl.Int64)}))["x"]
    assert [str(c.dtype) for c in (as_bool, as_text, as_whole)] == ["boolean", "string", "Int64"]
    if values[0] is not None:
        assert [Column(c).kind for c in (as_bool, as_text, as_whole)] == [
            "categorical",
            "categorical",
            "numeric",
        ]


@pytest.mark.parametrize("truth", [True, False], ids=["truth values", "whole numbers"])
@pytest.mark.parametrize(
    "made",
    [
        pl.Series,
        lambda y: pa.chunked_array([y.tolist()]),
        lambda y: pd.Series(y).convert_dtypes(),
        lambda y: pd.Series(y, dtype="category"),
    ],
    ids=["polars", "pyarrow", "nullable", "categorical"],
)
def test_labels_come_back_as_what_they_were(made: Callable[[Any], Any], truth: bool) -> None:
    X = np.arange(100.0).reshape(50, 2)
    y = X[:, 0] > 45 if truth else (X[:, 0] > 45).astype(np.int64) + 3
    model = DPSGDClassifier(Budget(epsilon=3.0, delta=1e-5), random_state=0)
    found = model.fit(X, made(y), X_public=X + 0.5).predict(X)
    assert found.dtype == model.classes_.dtype == y.dtype


def test_a_lazy_frame_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"polars LazyFrame has no rows yet. Pass frame.collect"):
        as_pandas(pl.LazyFrame({"x": [1]}))


def test_what_is_no_frame_passes_as_it_is() -> None:
    for value in ([1, 2], "text", None, np.zeros((2, 2)), 3):
        assert as_pandas(value) is value
    frame = people()
    assert as_pandas(frame) is frame


@pytest.mark.parametrize("kind", ["int64", "uint64", "int8"])
@pytest.mark.parametrize("library", [pa.table, pl.DataFrame])
def test_whole_numbers_with_gaps_keep_every_digit(library: Callable[..., Any], kind: str) -> None:
    """As floats, two persons whose ids differ in the last digit would be one."""
    largest = int(np.iinfo(kind).max)
    ids: list[int | None] = [largest, None, largest - 1, 0]
    frame = library({"id": pa.array(ids, kind)} if library is pa.table else {"id": pl.Series(ids)})
    found = as_pandas(frame)["id"]
    assert pd.api.types.is_integer_dtype(found.dtype)
    assert [None if gone else int(i) for i, gone in zip(found, found.isna(), strict=True)] == ids
