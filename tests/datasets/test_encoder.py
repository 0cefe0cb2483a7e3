import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from evenhand import show_values
from evenhand.datasets import PublicEncoder, Schema
from evenhand.datasets.encoder import Scale
from evenhand.typing import FloatArray

PUBLIC = pd.DataFrame(
    {
        "age": [20.0, 30.0, 40.0, 70.0],
        "income": [1000.0, None, 3000.0, 8000.0],
        "city": ["Bonn", "Ulm", "Ulm", "Ulm"],
        "job": ["cook", None, "nurse", "cook"],
        "member": [True, False, True, True],
    }
)
NAMES = (
    "age",
    "income",
    "income is missing",
    "city=Bonn",
    "city=Ulm",
    "job=cook",
    "job=nurse",
    "job is missing",
    "member=False",
    "member=True",
)


def row(**changes: Any) -> pd.DataFrame:
    values = {"age": 40.0, "income": 3000.0, "city": "Ulm", "job": "cook", "member": True}
    return pd.DataFrame({k: pd.Series([v], dtype=object) for k, v in {**values, **changes}.items()})


def coded(**changes: Any) -> dict[str, float]:
    values = PublicEncoder().fit(PUBLIC).transform(row(**changes))[0]
    return dict(zip(NAMES, values, strict=True))


# Rows as a private table may hold them, with everything that can be strange about a value.
wild_numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.integers(-5, 90), st.none()
)
wild_rows = st.lists(
    st.tuples(
        wild_numbers,
        wild_numbers,
        st.sampled_from(["Bonn", "Ulm", "Rom", "", None]),
        st.sampled_from(["cook", "nurse", "clown", None]),
        st.sampled_from([True, False, None]),
    ),
    min_size=1,
    max_size=12,
)


def wild_frame(rows: list[Any]) -> pd.DataFrame:
    columns = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=dtype)
            for name, values, dtype in zip(
                PUBLIC, columns, ("float64", "float64", "object", "object", "object"), strict=True
            )
        }
    )


# --- what it computes ---------------------------------------------------------------------------


def test_numbers_are_standardised_and_categories_one_hot_as_scikit_learn_does_it() -> None:
    # A second derivation: the plain transformers, on rows without gaps or strangers.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(5, 3, 50), "b": rng.choice(list("xyz"), 50)})
    public, other = frame.head(30), frame.tail(20)
    ours = PublicEncoder(clip=1e9).fit(public).transform(other)
    numbers = StandardScaler().fit(public[["a"]]).transform(other[["a"]])
    texts = OneHotEncoder(sparse_output=False).fit(public[["b"]]).transform(other[["b"]])
    assert_allclose(ours, np.hstack([numbers, texts]), atol=1e-12)


def test_features_are_named() -> None:
    encoder = PublicEncoder().fit(PUBLIC)
    assert encoder.feature_names_ == NAMES
    assert encoder.n_features_out_ == len(NAMES)
    assert encoder.get_feature_names_out().tolist() == list(NAMES)
    assert encoder.feature_names_in_.tolist() == list(PUBLIC)


def test_a_known_row_by_hand() -> None:
    sd = np.std([1000, 3000, 8000])
    assert coded(age=70.0, income=8000.0) == {
        **dict.fromkeys(NAMES, 0.0),
        "age": (70 - 40) / np.std([20, 30, 40, 70]),
        "income": (8000 - 4000) / sd,
        "city=Ulm": 1.0,
        "job=cook": 1.0,
        "member=True": 1.0,
    }


def test_a_missing_number_is_the_public_median_and_marked_where_public_rows_had_gaps() -> None:
    assert coded(income=None)["income"] == coded(income=3000.0)["income"]
    assert coded(income=None)["income is missing"] == 1.0
    assert coded(income=3000.0)["income is missing"] == 0.0
    assert coded(age=None)["age"] == coded(age=35.0)["age"]
    assert "age is missing" not in NAMES


def test_an_unseen_category_is_all_zeros() -> None:
    out = coded(city="Rom", job="clown")
    assert [out[name] for name in NAMES if name[:3] in ("cit", "job")] == [0.0] * 5


def test_a_missing_category_is_zeros_and_marked_where_public_rows_had_gaps() -> None:
    out = coded(city=None, job=None)
    assert [out["city=Bonn"], out["city=Ulm"]] == [0.0, 0.0]
    assert [out["job=cook"], out["job=nurse"], out["job is missing"]] == [0.0, 0.0, 1.0]


def test_one_wild_value_is_held_at_the_clip() -> None:
    for value, ends in ((1e300, 10.0), (np.inf, 10.0), (-np.inf, -10.0), (-1e12, -10.0)):
        assert coded(age=value)["age"] == ends
    assert PublicEncoder(clip=2.5).fit(PUBLIC).transform(row(age=1e9))[0, 0] == 2.5


def test_a_huge_value_does_not_overflow_a_tiny_scale() -> None:
    encoder = PublicEncoder().fit(np.array([[0.0], [1e-6]]))
    assert_array_equal(encoder.transform(np.array([[1e308], [-1e308]])), [[10.0], [-10.0]])


def test_bounds_hold_a_value_before_it_is_scaled() -> None:
    schema = Schema.declared({"age": {"bounds": (0, 50)}})
    encoder = PublicEncoder(schema).fit(PUBLIC[["age"]])
    assert encoder.scales_["age"].mean == np.mean([20, 30, 40, 50])
    high, end = encoder.transform(pd.DataFrame({"age": [80.0, 50.0]}))[:, 0]
    assert high == end


def test_a_declared_schema_with_bounds_needs_no_public_rows() -> None:
    schema = Schema.declared({"age": {"bounds": (0, 60)}, "sex": ["F", "M"]})
    encoder = PublicEncoder(schema).fit(None)
    assert encoder.scales_["age"] == Scale(mean=30.0, sd=60 / np.sqrt(12), median=30.0)
    frame = pd.DataFrame({"age": [0.0, 30.0], "sex": ["M", "F"]})
    assert_allclose(encoder.transform(frame), [[-np.sqrt(3), 0, 1], [0, 1, 0]])


def test_a_constant_public_column_does_not_blow_up() -> None:
    encoder = PublicEncoder().fit(pd.DataFrame({"a": [0.1] * 7}))
    out = encoder.transform(pd.DataFrame({"a": [0.1, 0.6]}))[:, 0]
    assert_allclose(out, [0.0, 0.5], atol=1e-12)


def test_one_and_one_point_zero_and_the_text_one_are_one_category() -> None:
    encoder = PublicEncoder(Schema.declared({"code": [1, 2]})).fit(pd.DataFrame({"code": ["1"]}))
    for values in ([1, 2], [1.0, 2.0], ["1", "2"], pd.array([1, 2], dtype="Int64")):
        assert_array_equal(encoder.transform(pd.DataFrame({"code": values})), np.eye(2))


def test_arrays_are_columns_by_position() -> None:
    X = np.array([[1.0, 2.0], [3.0, 6.0]])
    encoder = PublicEncoder().fit(X)
    assert encoder.feature_names_ == ("x0", "x1")
    assert_array_equal(encoder.transform(X), [[-1, -1], [1, 1]])
    with pytest.raises(ValueError, match=r"does not name: 'x2'"):
        encoder.transform(np.ones((1, 3)))
    with pytest.raises(TypeError, match=r"sparse matrix.*X\.toarray\(\)"):
        encoder.transform(sparse.eye_array(2))


# --- laws: private rows teach it nothing --------------------------------------------------------


@given(rows=wild_rows)
def test_encoding_rows_changes_nothing_in_the_encoder(rows: list[Any]) -> None:
    encoder = PublicEncoder().fit(PUBLIC)
    before = pickle.dumps(vars(encoder))
    encoder.transform(wild_frame(rows))
    assert pickle.dumps(vars(encoder)) == before


@pytest.mark.slow
@given(rows=wild_rows, data=st.data())
def test_the_code_of_a_row_depends_on_no_other_row(rows: list[Any], data: Any) -> None:
    frame = wild_frame(rows)
    encoder = PublicEncoder().fit(PUBLIC)
    together = encoder.transform(frame)
    order = np.array(data.draw(st.permutations(range(len(frame)))), dtype=np.int64)
    assert_array_equal(encoder.transform(frame.take(order)), together[order])
    alone = [encoder.transform(frame.iloc[[i]])[0] for i in range(len(frame))]
    assert_array_equal(np.vstack(alone), together)


def test_a_scaler_fitted_on_the_private_rows_would_be_seen_by_that_law() -> None:
    frame = wild_frame([(20, 1, "Ulm", "cook", True), (60, 2, "Ulm", "cook", True)])
    together = PublicEncoder().fit(frame).transform(frame)
    alone = np.vstack(
        [PublicEncoder().fit(frame.iloc[[i]]).transform(frame.iloc[[i]]) for i in (0, 1)]
    )
    assert not np.array_equal(together[:, 0], alone[:, 0])


@given(rows=wild_rows)
def test_every_private_row_gives_finite_numbers_within_the_clip(rows: list[Any]) -> None:
    out = PublicEncoder(clip=3.0).fit(PUBLIC).transform(wild_frame(rows))
    assert out.dtype == np.float64
    assert out.shape == (len(rows), len(NAMES))
    assert np.isfinite(out).all()
    numbers = np.isin(NAMES, ["age", "income"])
    assert np.abs(out[:, numbers]).max() <= 3.0
    assert np.isin(out[:, ~numbers], [0.0, 1.0]).all()


@given(order=st.permutations(list(PUBLIC)))
def test_the_order_of_columns_does_not_matter(order: list[str]) -> None:
    encoder = PublicEncoder().fit(PUBLIC)
    assert_array_equal(encoder.transform(PUBLIC[order]), encoder.transform(PUBLIC))


@given(rows=wild_rows, clip=st.floats(0.1, 50), degree=st.integers(0, 4))
def test_json_keeps_every_bit(rows: list[Any], clip: float, degree: int) -> None:
    encoder = PublicEncoder(clip=clip, degree=degree).fit(PUBLIC.assign(age=PUBLIC.age / 3))
    text = json.dumps(encoder.to_dict(), sort_keys=True, allow_nan=False)
    again = PublicEncoder.from_dict(json.loads(text))
    frame = wild_frame(rows)
    assert again.transform(frame).tobytes() == encoder.transform(frame).tobytes()
    assert again.feature_names_ == encoder.feature_names_


def test_the_input_is_left_as_it_was() -> None:
    frame = PUBLIC.copy(deep=True)
    PublicEncoder().fit(frame).transform(frame)
    pd.testing.assert_frame_equal(frame, PUBLIC)
    X = np.array([[1.0, np.nan], [np.inf, 2.0], [0.0, 1.0]])
    before = X.copy()
    PublicEncoder().fit(X[2:]).transform(X)
    assert_array_equal(X, before)


def test_no_rows_are_encoded_as_no_rows() -> None:
    assert PublicEncoder().fit(PUBLIC).transform(PUBLIC.head(0)).shape == (0, len(NAMES))


# --- curves -------------------------------------------------------------------------------------


def bent(column: Any, values: Any, degree: int = 3, clip: float = 3.0) -> FloatArray:
    """Return a numeric column and its curves, in full size."""
    frame = pd.DataFrame({"x": np.asarray(column, dtype=float)})
    encoder = PublicEncoder(clip=clip, degree=degree).fit(frame)
    found = encoder.transform(pd.DataFrame({"x": np.asarray(values, dtype=float)}))
    return found * np.array([4.0] + [8.0] * degree)


@given(
    column=st.lists(st.integers(-5, 5), min_size=3, max_size=60).filter(lambda v: len(set(v)) > 3)
)
def test_curves_are_legendre_polynomials_of_the_rank_among_public_values(column: list[int]) -> None:
    known, found = np.array(column), bent(column, column)
    # The rank by its definition: what is below, and half of what is equal.
    rank = ((known < known[:, None]).mean(axis=1) + (known <= known[:, None]).mean(axis=1)) / 2
    t = 2 * rank - 1
    expected = [t, (3 * t**2 - 1) / 2, (5 * t**3 - 3 * t) / 2]
    for k, polynomial in enumerate(expected, start=1):
        assert_allclose(found[:, k], np.sqrt(2 * k + 1) * polynomial, atol=1e-9)
    assert_allclose(found[:, 0], np.clip((known - known.mean()) / known.std(), -3, 3), atol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    atom=st.floats(0.02, 0.9),
    far=st.floats(allow_nan=False, allow_infinity=False),
)
def test_the_rank_of_many_values_is_near_and_that_of_an_atom_exact(
    seed: int, atom: float, far: float
) -> None:
    rng = np.random.default_rng(seed)
    column = np.where(rng.random(3000) < atom, 0.25, rng.normal(size=3000))
    new = np.sort(np.append(rng.normal(size=200), [0.25, far]))
    found = bent(column, new, degree=1)[:, 1] / np.sqrt(3)
    rank = ((column < new[:, None]).mean(axis=1) + (column <= new[:, None]).mean(axis=1)) / 2
    exact = new == 0.25
    assert_allclose(found[exact], 2 * rank[exact] - 1, atol=1e-9)
    # Two known values, but for an atom and its neighbor, are a hundredth of the rows apart.
    within = (new > column.min()) & (new < column.max())
    around = [column[column < 0.25].max(), column[column > 0.25].min()]
    within &= (new <= around[0]) | (new >= around[1])
    assert np.abs(found - (2 * rank - 1))[within].max() <= 2 * 0.011
    assert (np.diff(found) >= -1e-12).all()
    assert np.abs(found).max() <= 1


def test_columns_of_few_values_and_words_are_not_bent_and_all_have_half_their_size() -> None:
    public = pd.DataFrame(
        {
            "two": [0.0, 1.0, 1.0, 1.0],
            "three": [0.0, 1.0, 5.0, 5.0],
            "word": ["a", "b", "b", "a"],
            "gaps": [1.0, None, 2.0, 4.0],
        }
    )
    straight, encoder = PublicEncoder().fit(public), PublicEncoder(degree=3).fit(public)
    assert encoder.feature_names_ == (
        *("two", "three", "three, curve 1", "three, curve 2", "word=a", "word=b"),
        *("gaps", "gaps, curve 1", "gaps, curve 2", "gaps is missing"),
    )
    found = dict(zip(encoder.feature_names_, encoder.transform(public).T, strict=True))
    usual = dict(zip(straight.feature_names_, straight.transform(public).T, strict=True))
    for name, values in usual.items():
        part = 4 if name in ("two", "three", "gaps") else 2
        assert_allclose(found[name] * part, values, atol=1e-12)


def test_bounds_alone_stand_for_a_uniform_distribution() -> None:
    schema = Schema.from_dict(
        {"format": 1, "columns": [{"name": "x", "kind": "numeric", "bounds": [2.0, 6.0]}]}
    )
    encoder = PublicEncoder(schema, degree=2).fit(None)
    t = np.array([-1.0, -0.5, 0.0, 0.3, 1.0])
    found = encoder.transform(pd.DataFrame({"x": 4 + 2 * t})) * [4, 8, 8]
    assert_allclose(found[:, 0], found[:, 1], atol=1e-9)  # of a uniform number, both are one line
    assert_allclose(found[:, 2], np.sqrt(5) * (3 * t**2 - 1) / 2, atol=1e-9)


def test_a_file_of_before_there_were_curves_is_read() -> None:
    encoder = PublicEncoder().fit(PUBLIC)
    values = encoder.to_dict() | {"format": 1}
    del values["degree"], values["ranks"]
    again = PublicEncoder.from_dict(values)
    assert_array_equal(again.transform(PUBLIC), encoder.transform(PUBLIC))


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ([[1.0, 2.0], [0.5]], "one rank for each"),
        ([[1.0, float("nan")], [0.2, 0.5]], "finite values"),
        ([[2.0, 1.0], [0.2, 0.5]], "must increase"),
        ([[1.0, 2.0], [0.5, 0.2]], "must increase"),
        ([[1.0, 2.0], [0.5, 1.2]], "must increase"),
    ],
)
def test_damaged_ranks_are_refused(pair: Any, words: str) -> None:
    values = PublicEncoder(degree=2).fit(PUBLIC).to_dict()
    with pytest.raises(ValueError, match=words):
        PublicEncoder.from_dict(values | {"ranks": values["ranks"] | {"age": pair}})


def test_a_degree_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="degree must be at least 0, got degree=-1"):
        PublicEncoder(degree=-1).fit(PUBLIC)


# --- scikit-learn's manners ---------------------------------------------------------------------


def test_it_can_be_cloned_and_fitted_in_one_go() -> None:
    encoder = clone(PublicEncoder(clip=4.0, ignore_extra=True))
    asked = {"schema": None, "clip": 4.0, "ignore_extra": True, "degree": 0}
    assert encoder.get_params() == asked
    assert_array_equal(encoder.fit_transform(PUBLIC), encoder.transform(PUBLIC))


def test_extra_columns_are_passed_over_only_if_asked() -> None:
    frame = PUBLIC.assign(name="x")
    with pytest.raises(ValueError, match="does not name: 'name'"):
        PublicEncoder().fit(PUBLIC).transform(frame)
    lax = PublicEncoder(ignore_extra=True).fit(PUBLIC)
    assert_array_equal(lax.transform(frame), lax.transform(PUBLIC))


# --- errors -------------------------------------------------------------------------------------


def test_an_encoder_that_saw_nothing_encodes_nothing() -> None:
    for use in (lambda e: e.transform(PUBLIC), lambda e: e.to_dict()):
        with pytest.raises(NotFittedError, match=r"Call fit\(X_public\) first"):
            use(PublicEncoder())


@pytest.mark.parametrize(
    ("encoder", "public", "message"),
    [
        (PublicEncoder(), None, "Without public rows the encoder needs a schema"),
        (
            PublicEncoder(Schema.declared({"a": "numeric"})),
            None,
            "Without public values the numeric column 'a' needs bounds",
        ),
        (
            PublicEncoder(Schema.declared({"a": "numeric"})),
            pd.DataFrame({"a": []}),
            "The public table has no rows",
        ),
        (
            PublicEncoder(Schema.declared({"a": "numeric"})),
            pd.DataFrame({"a": [None, None]}),
            "'a' has no value in the public rows",
        ),
        (
            PublicEncoder(),
            pd.DataFrame({"a": [1.0, np.inf]}),
            "'a' of the public table must be finite, got an infinite number in row 2 ",
        ),
        (
            PublicEncoder(),
            pd.DataFrame({"a": [1.0, 1e308, 3.0]}),
            r"'a' of the public rows holds a number beyond 1e\+150 in row 2 .*declare the column's",
        ),
        (PublicEncoder(clip=0.0), PUBLIC, r"clip must be finite and > 0, got clip=0\.0"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    encoder: PublicEncoder, public: pd.DataFrame, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        encoder.fit(public)


def test_text_where_numbers_were_is_named() -> None:
    with (
        pytest.raises(
            ValueError, match=r"'age' of the table to encode.*got the text 'old' in row 1 "
        ),
        show_values(),
    ):
        coded(age="old")


def test_a_file_of_another_format_or_damaged_is_refused() -> None:
    values = PublicEncoder().fit(PUBLIC).to_dict()
    with pytest.raises(ValueError, match="format 1 or 2 is needed, got format=3"):
        PublicEncoder.from_dict({**values, "format": 3})
    with pytest.raises(ValueError, match=r"numeric columns are \['age', 'income'\].*damaged"):
        PublicEncoder.from_dict({**values, "scales": {"age": [0, 1, 0]}})
    with pytest.raises(ValueError, match="finite with sd > 0"):
        PublicEncoder.from_dict({**values, "scales": {"age": [0, 0, 0], "income": [0, 1, 0]}})
