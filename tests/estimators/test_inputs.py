"""Bad input gets one clear line that names the value and the way out."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import (
    Budget,
    DemographicParity,
    DPSGDClassifier,
    FairPATEClassifier,
    FairSharesClassifier,
    PATEClassifier,
    SFPATEClassifier,
)
from evenhand.estimators.given_rows import UnknownCategories
from evenhand.privacy import FloatNoise, Ledger

from .conftest import Parts


def bad(message: str) -> Any:
    return pytest.raises((ValueError, TypeError), match=message)


@pytest.mark.parametrize("method", [DPSGDClassifier, FairSharesClassifier])
def test_rows_in_another_order_by_their_index_are_refused(parts: Parts, method: Any) -> None:
    model = method(Budget(epsilon=3.0, delta=1e-5), DemographicParity(margin=0.1))
    order = np.random.default_rng(0).permutation(600)
    X, y = parts.X.iloc[order], pd.Series(np.asarray(parts.y)).iloc[order]
    groups = pd.Series(["a", "b"] * 300).iloc[order]
    with bad(r"index of y has the labels of that of X in another order.*y.loc\[X.index\]"):
        parts.fit(model, X=X, y=y.sort_index(), sensitive_features=groups)
    with bad(r"index of sensitive_features has .*sensitive_features.to_numpy\(\)"):
        parts.fit(model, X=X, y=y, sensitive_features=groups.sort_index())
    parts.fit(model, X=X, y=y, sensitive_features=groups.reset_index(drop=True))  # by position
    parts.fit(model, X=X.set_axis(order % 7), y=y, sensitive_features=groups.tolist())


@pytest.mark.usefixtures("values_shown")
def test_the_parts_of_fit_that_are_missing_are_named(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = FairPATEClassifier(**settings)
    with bad("X_public is missing.*public_fraction"):
        model.fit(parts.X, parts.y)
    with bad("sensitive_features_public is missing.*PATEClassifier"):
        parts.fit(model, sensitive_features_public=None)
    with bad("one group only, 'a':"):
        parts.fit(model, sensitive_features_public=pd.Series(["a"] * 300))
    with bad("one class only"):
        parts.fit(model, y=pd.Series(["yes"] * 600))
    with bad("y has no label in row 5 .* and 1 more"):
        parts.fit(model, y=parts.y.where(~np.isin(np.arange(600), (4, 9)), None))
    with bad("budget must be a Budget.*Budget.epsilon=3.0"):
        parts.fit(FairPATEClassifier(**(settings | {"budget": None})))
    with bad("fairness must be a DemographicParity.*PATEClassifier"):
        parts.fit(FairPATEClassifier(**(settings | {"fairness": None})))
    with bad("X_public has 0 rows"):
        parts.fit(model, X_public=parts.X_public[:0], sensitive_features_public=[])


@pytest.mark.parametrize("fitted", [False, True], ids=["fit", "predict"])
def test_no_message_quotes_rows_and_labels_that_have_the_wrong_shape(
    settings: dict[str, Any], fitted: bool
) -> None:
    X, y, said = np.arange(1800.0).reshape(600, 3) + 0.123, np.arange(600) > 300, []
    model = PATEClassifier(settings["budget"], n_teachers=20, random_state=0)
    model.fit(X, y, X_public=X[::2] + 0.5)
    for rows in (X[:, 0], X[:, 0].tolist(), X * 1j):
        with bad("^X: (Expected 2D array|Complex data not supported).*") as caught:
            model.predict(rows) if fitted else model.fit(rows, y, X_public=X)
        said.append(str(caught.value))
    assert "Reshape your data" in said[0]
    with bad("^y: Complex data not supported") as caught:
        model.fit(X, np.arange(600) % 2 * 0.123j, X_public=X)
    assert not any(".123" in words for words in [*said, str(caught.value)])


def test_an_array_is_not_read_where_columns_have_names(
    parts: Parts, settings: dict[str, Any]
) -> None:
    numbers, public = parts.X[["income"]], parts.X_public[["income"]]
    model = PATEClassifier(settings["budget"], n_teachers=20, random_state=0)
    with bad("X_public is an array, and PATEClassifier knows its columns by name, 'income'.*Data"):
        model.fit(numbers, parts.y, X_public=public.to_numpy())
    model.fit(numbers, parts.y, X_public=public)
    with bad("^X is an array.*'income'"):
        model.predict(numbers.to_numpy())
    with bad("^X has 0 columns"):
        model.fit(numbers[[]], parts.y, X_public=public[[]])


def test_rows_are_not_set_aside_beside_public_ones(parts: Parts, settings: dict[str, Any]) -> None:
    for fraction in (0.2, "much"):
        with bad("X_public= and public_fraction=.* were both given.*gives them away"):
            parts.fit(FairPATEClassifier(**(settings | {"public_fraction": fraction})))


def test_a_ledger_and_a_progress_that_are_none_are_refused_before_anything_is_charged(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = FairPATEClassifier(**(settings | {"noise": None}))
    account = Ledger(Budget(epsilon=30.0, delta=1e-5))
    with bad(r"progress must be a function progress\(stage, done, total\), got 'yes'"):
        parts.fit(model, ledger=account, progress="yes")
    assert account.spent == 0
    with bad(r"ledger must be a Ledger, got Budget.*Ledger\(budget\)"):
        parts.fit(model, ledger=account.budget)


def test_labels_of_which_each_would_be_a_class_are_refused(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = PATEClassifier(settings["budget"], n_teachers=20, random_state=0)
    with bad("y has more than 200 different values.*published.*classes="):
        parts.fit(model, y=np.arange(600) % 201, sensitive_features_public=None)


@pytest.mark.parametrize("name", ["student_margin", "answer_margin", "keep_order"])
def test_a_word_is_no_yes_and_what_is_no_mechanism_no_default(
    parts: Parts, settings: dict[str, Any], name: str
) -> None:
    with bad(f"{name} must be true or false, got 'no'"):
        parts.fit(FairPATEClassifier(**(settings | {name: "no"})))
    with bad("0 does not state 'neighbors'"):
        parts.fit(FairPATEClassifier(**(settings | {"mechanism": 0})))
    with bad("random_state must be an int, .* got bool"):
        parts.fit(FairPATEClassifier(**(settings | {"random_state": True})))


def test_groups_under_the_name_of_other_rows_get_the_name_that_was_meant(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = FairPATEClassifier(**settings)
    groups = ["a", "b"] * 300
    with bad(r"was given.* did you mean sensitive_features_public=\?"):
        parts.fit(model, sensitive_features=groups, sensitive_features_public=None)
    with bad("X_public is missing.*sensitive_features_public="):
        model.fit(parts.X, parts.y, sensitive_features=groups)
    model.set_params(public_fraction=0.5)
    with bad(r"without X_public=.* did you mean sensitive_features=\?"):
        model.fit(parts.X, parts.y, sensitive_features_public=groups)


def test_rows_that_do_not_match_are_counted(parts: Parts, settings: dict[str, Any]) -> None:
    model = FairPATEClassifier(**settings)
    with bad("X has 600, y has 599"):
        parts.fit(model, y=parts.y[:-1])
    with bad("X_public has 300, sensitive_features_public has 299"):
        parts.fit(model, sensitive_features_public=parts.groups_public[:-1])
    with bad("unit_ids has 3"):
        parts.fit(model, unit_ids=[1, 2, 3])
    with bad("sensitive_features has 5"):
        parts.fit(model, sensitive_features=list("abcde"))


def test_a_column_written_in_other_words_than_in_training_is_named(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = parts.fit(FairPATEClassifier(**settings))
    jobs = sorted(set(parts.X["job"]))
    other = parts.X.assign(job=parts.X["job"].map(jobs.index))
    with pytest.warns(UnknownCategories, match=f"column 'job' .* knows, '{jobs[0]}', "):
        model.predict(other)
    with pytest.warns(UnknownCategories, match="column 'job'"):
        model.predict_proba(other)
    # A few rows may all have a category that is new, and of many some may.
    model.predict(other[:19])
    model.predict(pd.concat([other, parts.X[-1:]]))
    model.predict(parts.X.assign(job=None))


def test_a_misspelt_column_gets_the_nearest_name(parts: Parts, settings: dict[str, Any]) -> None:
    model = FairPATEClassifier(**settings)
    with bad("Did you mean 'income'"):
        parts.fit(model, X_public=parts.X_public.rename(columns={"income": "incme"}))
    fitted = parts.fit(model)
    with bad("Did you mean 'job'"):
        fitted.predict(parts.X.rename(columns={"job": "jobb"}))
    with bad("job"):
        fitted.predict(parts.X[["income"]])


@pytest.mark.usefixtures("values_shown")
def test_text_where_numbers_were_names_column_and_value(
    parts: Parts, settings: dict[str, Any]
) -> None:
    text = parts.X.astype({"income": str})
    text.iloc[7, 0] = "a lot"
    with bad("income.*a lot|a lot.*income"):
        parts.fit(FairPATEClassifier(**settings), X=text)


def test_more_teachers_than_records_is_refused(parts: Parts, settings: dict[str, Any]) -> None:
    with bad("601|n_teachers"):
        parts.fit(FairPATEClassifier(**(settings | {"n_teachers": 601})))


@pytest.mark.usefixtures("values_shown")
def test_an_undeclared_class_is_named(parts: Parts, settings: dict[str, Any]) -> None:
    with bad("holds 'yes', which is not among classes.*Did you mean 'yess'"):
        parts.fit(FairPATEClassifier(**(settings | {"classes": ["no", "yess"]})))


@pytest.mark.parametrize(("no", "yes"), [(False, True), (0, 1), (0.0, 1), ("n", "y")], ids=str)
def test_labels_that_came_as_objects_are_what_they_are(
    parts: Parts, settings: dict[str, Any], no: Any, yes: Any
) -> None:
    y = [yes if label == "yes" else no for label in parts.y]
    model = parts.fit(FairPATEClassifier(**settings), y=pd.Series(y, dtype=object))
    assert model.classes_.tolist() == [no, yes]
    assert model.predict(parts.X_public).dtype == model.classes_.dtype


@pytest.mark.parametrize(
    ("odd", "said"),
    [(True, "type bool beside texts"), (7, "type int beside texts"), (b"no", "type bytes beside")],
)
def test_labels_of_several_types_are_refused_in_words(
    parts: Parts, settings: dict[str, Any], odd: object, said: str
) -> None:
    y = parts.y.astype(object)
    y.iloc[3] = odd
    with bad(rf"y holds values of {said}.*write them alike"):
        parts.fit(FairPATEClassifier(**settings), y=y)
    with bad("type bool and int. Labels are"):
        parts.fit(FairPATEClassifier(**settings), y=pd.Series([True, 0] * 300, dtype=object))


def test_a_ledger_and_a_noise_together_are_refused(parts: Parts, settings: dict[str, Any]) -> None:
    with bad("noise= and ledger= were both given"):
        parts.fit(FairPATEClassifier(**settings), ledger=Ledger(Budget(epsilon=1.0, delta=1e-5)))


@pytest.mark.parametrize(
    ("settings_of", "said"),
    [
        ({"noise": "exact"}, r"noise must be a source of noise, got 'exact'.* DiscreteNoise\(\)"),
        ({"noise": FloatNoise}, r"noise must be a source of noise, got <class .*FloatNoise\(\)"),
        ({"schema": {"age": "numeric"}}, r"must be a Schema, got .* Schema.declared"),
        ({"schema": "schema.json"}, r"must be a Schema, got 'schema.json'.* Schema.load"),
    ],
)
@pytest.mark.parametrize("method", [DPSGDClassifier, FairSharesClassifier])
def test_a_name_in_place_of_an_object_is_refused_in_words(
    parts: Parts, method: Any, settings_of: dict[str, Any], said: str
) -> None:
    fairness = DemographicParity(margin=0.1)
    model = method(Budget(epsilon=3.0, delta=1e-5), fairness, **settings_of)
    with pytest.raises(TypeError, match=said):
        parts.fit(model, sensitive_features=["a", "b"] * 300)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5])
def test_the_share_set_aside_lies_between_none_and_all(parts: Parts, share: float) -> None:
    with bad("public_fraction must lie strictly between 0 and 1"):
        PATEClassifier(Budget(epsilon=1.0, delta=1e-5), public_fraction=share).fit(parts.X, parts.y)


def test_the_name_of_a_column_in_place_of_its_ids_is_refused(
    parts: Parts, settings: dict[str, Any]
) -> None:
    with bad("one id for each record, got the text 'person'. Pass the column itself"):
        parts.fit(FairPATEClassifier(**settings), unit_ids="person")
    with bad("X has 600, unit_ids has 5"):
        parts.fit(FairPATEClassifier(**settings), unit_ids=range(5))
    people = SFPATEClassifier(settings["budget"], n_teachers=20)
    with bad("Pass the column itself, not its name"):
        people.fit(parts.X, parts.y, sensitive_features=parts.groups, unit_ids="person")


def test_groups_of_public_rows_are_called_what_they_are_called(
    parts: Parts, settings: dict[str, Any]
) -> None:
    gone = pd.Series(parts.groups_public).where(np.arange(300) != 3)
    of_public = r"^sensitive_features_public has missing values, in row 4 \("
    margin = DemographicParity(margin=0.1)
    with bad(of_public):
        parts.fit(FairPATEClassifier(**settings), sensitive_features_public=gone)
    with bad("^sensitive_features_public must hold one value per record, got the text 'sex'"):
        parts.fit(FairPATEClassifier(**settings), sensitive_features_public="sex")
    within = DPSGDClassifier(
        settings["budget"], DemographicParity(margin=0.1, confidence=0.9), random_state=0
    )
    given = {"sensitive_features": ["a", "b"] * 300, "sensitive_features_public": gone}
    with bad(of_public):
        parts.fit(within, **given)
    free = parts.fit(
        DPSGDClassifier(settings["budget"], n_steps=5, random_state=0),
        sensitive_features_public=None,
    )
    for around in (free.with_group_thresholds, free.with_blind_rule):
        with bad(of_public):
            around(parts.X_public, gone, fairness=margin)
        with bad("sensitive_features_public is missing"):
            around(parts.X_public, None, fairness=margin)
    labels = ["yes", "no"] * 150
    with bad(of_public):
        free.fair_tuned(parts.X_public, labels, gone, fairness=margin)
    other = parts.X_public.rename(columns=lambda name: f"{name}s")
    for columns, said in ((other, "^X_public: The feature names"), (other.to_numpy(), "^X_public")):
        for around in (free.with_group_thresholds, free.with_blind_rule):
            with bad(said):
                around(columns, parts.groups_public, fairness=margin)
        with bad(said):
            free.fair_tuned(columns, labels, parts.groups_public, fairness=margin)


def test_a_group_that_is_missing_of_rows_set_aside_is_found_where_it_was_given(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = FairPATEClassifier(**settings, public_fraction=0.5)
    model.fit(parts.X, parts.y, sensitive_features=["a", "b"] * 300)
    row = int(model.rows_set_aside_[-1])
    groups = pd.Series(["a", "b"] * 300).where(np.arange(600) != row)
    with bad(rf"^sensitive_features has missing values, in row {row + 1} \("):
        model.fit(parts.X, parts.y, sensitive_features=groups)


def test_rows_of_one_person_are_set_aside_together(parts: Parts, settings: dict[str, Any]) -> None:
    from evenhand._random import as_generator
    from evenhand.estimators.inputs import FitArguments
    from evenhand.estimators.reading import read_fit_inputs

    people = np.arange(600) // 4
    data = read_fit_inputs(
        FairPATEClassifier(**settings),
        FitArguments(X=parts.X, y=parts.y, sensitive_features=parts.groups, unit_ids=people),
        public_fraction=0.3,
        needs_groups=True,
        rng=as_generator(0),
    )
    assert data.n_public % 4 == 0
    aside = set(people[data.X_public.index])
    assert not aside & set(people[data.X_private.index])
    assert data.n_public + data.n_private == 600
    assert 100 < data.n_public < 260
    # What is known of a row goes where the row goes.
    own, others = data.private_rows, data.X_public.index
    assert (data.X_private.index == own).all()
    assert (data.classes[data.y_private] == parts.y[own]).all()
    assert (data.units == people[own].astype(str)).all()
    assert (np.asarray(data.sensitive_private) == np.asarray(parts.groups)[own]).all()
    groups = data.required_groups
    assert (np.array(groups.names)[groups.codes] == np.asarray(parts.groups)[others]).all()
