"""The reject option around any classifier: labels, groups, errors, and states of one model only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import evenhand
from evenhand import REJECTED, FairPATEClassifier, PATEClassifier, RejectOptionClassifier
from evenhand.estimators.saving.fingerprint import fingerprint
from evenhand.fairness import DemographicParity
from evenhand.fairness.gate.reject_option import StateOfAnotherModel, Verdict

rng = np.random.default_rng(0)
OF_THE_USER = ["sklearn.svm._classes.SVC", "sklearn.tree._tree.Tree"]
N = 1200
GROUPS = np.where(rng.random(N) < 0.4, "F", "M")
X = np.column_stack([rng.normal(size=N) + (GROUPS == "M"), rng.normal(size=N)])
Y = np.where(X[:, 0] + rng.normal(size=N) / 2 > 0.7, "yes", "no")
PARITY = DemographicParity(margin=0.05)


class Says:
    """A model that is no estimator: it says what stands in the rows."""

    def __init__(self, classes: list[Any]) -> None:
        self.classes_ = np.array(classes)

    def predict(self, rows: Any) -> Any:
        return np.asarray(rows)[:, 0]


class Weighs:
    """A model with probabilities only."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows: Any) -> Any:
        return np.asarray(rows)


def table(labels: Any, groups: Any) -> list[list[int]]:
    return [[int(((groups == z) & (labels == k)).sum()) for k in ("no", "yes")] for z in ("F", "M")]


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        DecisionTreeClassifier(max_depth=3),
        Perceptron(),  # no probabilities
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_any_fitted_classifier_keeps_the_margin_over_its_answers(model: Any) -> None:
    model.fit(X, Y)
    option = RejectOptionClassifier(model, margin=0.05, groups=["F", "M"])
    labels = option.predict(X, sensitive_features=GROUPS)
    said = model.predict(X)
    given = labels != REJECTED
    assert (labels[given] == said[given]).all()
    assert PARITY.gap(table(said, GROUPS)) > 0.1  # without the option it is far outside
    counts = np.array(table(labels, GROUPS))
    assert PARITY.holds(counts)
    assert option.gap_ == PARITY.gap(counts)
    assert 0.3 < option.coverage_.overall < 1
    assert option.coverage_.given.tolist() == counts.tolist()
    assert option.coverage_.offered.tolist() == table(said, GROUPS)


def test_row_by_row_and_in_batches_the_same_labels_are_given() -> None:
    model = LogisticRegression().fit(X, Y)
    whole = RejectOptionClassifier(model, 0.05, groups=["F", "M"])
    by_row = RejectOptionClassifier(model, 0.05, groups=["F", "M"])
    expected = whole.predict(X[:400], sensitive_features=GROUPS[:400])
    found = np.array(
        [by_row.predict(X[[i]], sensitive_features=GROUPS[[i]])[0] for i in range(400)],
        dtype=object,
    )
    for number, label in by_row.deliver().items():
        assert found[number] == REJECTED
        found[number] = label
    for number, label in whole.deliver().items():
        expected[number] = label
    assert (found == expected).all()


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        (["no", "yes"], object),
        ([False, True], object),
        ([0, 1], np.int64),
        (np.array([3, 7], dtype=np.uint8), np.int64),
        ([0.0, 1.0], np.float64),
    ],
)
def test_labels_keep_their_kind_and_a_refusal_is_rejected(classes: Any, dtype: Any) -> None:
    option = RejectOptionClassifier(Says(classes), 0.0, groups=["F", "M"], cold_start=9)
    said = np.array([[classes[0]], [classes[1]], [classes[1]]], dtype=option.classes_.dtype)
    labels = option.predict(said, sensitive_features=["F", "F", "M"])
    assert labels.dtype == dtype
    assert labels.tolist() == [*said[:2, 0].tolist(), REJECTED]
    assert (labels == REJECTED).tolist() == [False, False, True]


def test_a_decision_says_why_and_which_request_it_is() -> None:
    option = RejectOptionClassifier(Says(["no", "yes"]), 0.1, groups=["F", "M"], cold_start=2)
    first = option.decide([["yes"], ["yes"]], sensitive_features=["F", "M"])
    assert first.labels.tolist() == ["yes", REJECTED]
    assert first.reasons.tolist() == [Verdict.ANSWERED, Verdict.WITHHELD]
    assert first.answered.tolist() == [True, False]
    second = option.decide([["yes"], ["no"]], sensitive_features=["M", "M"])
    assert second.reasons.tolist() == [Verdict.ANSWERED, Verdict.OUTSIDE_MARGIN]
    assert second.ids.tolist() == [2, 3]
    assert second.n_released == 1
    assert option.deliver() == {1: "yes"}
    assert option.deliver() == {}
    assert second.coverage.to_dict()["coverage"] == [[None, 1.0], [0.0, 1.0]]


def test_a_threshold_refuses_labels_the_model_is_not_sure_of() -> None:
    shares = [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]]
    option = RejectOptionClassifier(Weighs(), 1.0, groups=["F"], threshold=0.8)
    found = option.decide(shares, sensitive_features=["F"] * 4)
    assert found.labels.tolist() == ["no", REJECTED, "yes", REJECTED]
    unsure = Verdict.UNSURE
    assert found.reasons.tolist() == [Verdict.ANSWERED, unsure, Verdict.ANSWERED, unsure]
    assert found.coverage.offered.tolist() == [[2, 2]]


def test_a_threshold_judges_the_label_that_predict_gives() -> None:
    model = LogisticRegression().fit(X, Y)
    option = RejectOptionClassifier(model, 1.0, groups=["F", "M"], threshold=0.9)
    labels = option.predict(X, sensitive_features=GROUPS)
    sure = model.predict_proba(X).max(axis=1) >= 0.9
    assert ((labels != REJECTED) == sure).all()
    assert 0 < sure.sum() < N
    assert (labels[sure] == model.predict(X)[sure]).all()


def test_several_sensitive_columns_are_combined() -> None:
    names = ["sex=F, race=A", "sex=F, race=B", "sex=M, race=A", "sex=M, race=B"]
    option = RejectOptionClassifier(Says(["no", "yes"]), 0.1, groups=names, cold_start=1)
    frame = pd.DataFrame({"sex": ["F", "M"], "race": ["B", "A"]})
    option.predict([["yes"], ["yes"]], sensitive_features=frame)
    assert option.coverage_.offered.sum(axis=1).tolist() == [0, 1, 1, 0]


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no predict": ({"estimator": object()}, TypeError, "with predict or predict_proba, got"),
    "a class": ({"estimator": SVC}, TypeError, "must be a fitted classifier"),
    "not fitted": ({"estimator": SVC()}, ValueError, "SVC has no classes_: it is not fitted"),
    "no groups": ({"groups": None}, ValueError, "groups is missing, and Says knows none"),
    "text": ({"groups": "FM"}, ValueError, "must be a list with the name of every group"),
    "empty": ({"groups": []}, ValueError, "must be a list with the name of every group"),
    "twice": ({"groups": ["F", "F"]}, ValueError, "groups must differ"),
    "margin": ({"margin": -0.1}, ValueError, r"margin must lie in \[0, 1\]"),
    "threshold": ({"threshold": 0.9}, ValueError, "Says has no predict_proba"),
    "high": ({"estimator": Weighs(), "threshold": 2}, ValueError, r"threshold must lie in \[0, 1"),
    "minus one": ({"estimator": Says([-1, 1])}, ValueError, "classes holds -1 as a class"),
    "reference": ({"reference": "all"}, ValueError, "reference must be one of 'rest'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_wrapped_is_refused(case: str) -> None:
    changes, kind, message = REFUSED[case]
    good = {"estimator": Says(["no", "yes"]), "margin": 0.1, "groups": ["F", "M"]}
    with pytest.raises(kind, match=message):
        RejectOptionClassifier(**(good | changes))


def test_rows_that_cannot_be_decided_are_refused_and_not_counted() -> None:
    option = RejectOptionClassifier(Says(["no", "yes"]), 0.1, groups=["F", "M"])
    for said, groups, message in (
        ([["yes"]], None, "sensitive_features is missing"),
        ([["yes"]], ["Male"], r"first in row 1 .* is not among the known groups: 'F', 'M'"),
        ([["yes"]], [None], "missing value"),
        ([["yes"]], ["F", "F"], "labels has 1, sensitive_features has 2|X has 1"),
        ([["yes"], ["maybe"]], ["F", "M"], "predicted 'maybe', which is not among the classes"),
    ):
        with pytest.raises(ValueError, match=message):
            option.predict(said, sensitive_features=groups)
    wide = RejectOptionClassifier(Weighs(), 0.1, groups=["F"])
    with pytest.raises(ValueError, match="gives 3 probabilities a row for 2 classes"):
        wide.predict([[0.2, 0.3, 0.5]], sensitive_features=["F"])
    assert option.coverage_.offered.sum() == 0


def test_a_saved_state_goes_on_where_it_stopped(tmp_path: Path) -> None:
    model = LogisticRegression().fit(X, Y)
    whole, first, second = (
        RejectOptionClassifier(model, 0.05, groups=["F", "M"]) for _ in range(3)
    )
    for start in (0, 300):
        whole.predict(X[start : start + 300], sensitive_features=GROUPS[start : start + 300])
    first.predict(X[:300], sensitive_features=GROUPS[:300])
    first.save_state(tmp_path / "state.json")
    second.load_state(tmp_path / "state.json")
    second.predict(X[300:600], sensitive_features=GROUPS[300:600])
    second.save_state(tmp_path / "state.json")
    whole.save_state(tmp_path / "whole.json")
    assert (tmp_path / "state.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    with pytest.raises(ValueError, match="changed by somebody else"):
        first.save_state(tmp_path / "state.json")


def test_the_state_of_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    one, other = LogisticRegression().fit(X, Y), LogisticRegression().fit(X[:600], Y[:600])
    RejectOptionClassifier(one, 0.05, groups=["F", "M"]).save_state(path)
    with pytest.raises(StateOfAnotherModel, match=r"belongs to the model '[0-9a-f]{64}', not to"):
        RejectOptionClassifier(other, 0.05, groups=["F", "M"]).load_state(path)
    RejectOptionClassifier(one, 0.05, groups=["F", "M"]).load_state(path)
    path.write_text(json.dumps({"format": 3}))
    with pytest.raises(ValueError, match="format must be"):
        RejectOptionClassifier(one, 0.05, groups=["F", "M"]).load_state(path)


def test_a_name_of_your_own_stands_for_the_model(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    named = {"margin": 0.05, "groups": ["F", "M"], "model_id": "loans 3"}
    RejectOptionClassifier(Says(["no", "yes"]), **named).save_state(path)
    RejectOptionClassifier(Says(["no", "yes"]), **named).load_state(path)
    assert json.loads(path.read_text())["model"] == "loans 3"


@pytest.mark.parametrize(
    "student",
    [None, RandomForestClassifier(5, random_state=0), make_pipeline(StandardScaler(), SVC())],
    ids=lambda student: type(student).__name__,
)
def test_a_private_model_is_the_same_model_after_saving(
    parts: Any, settings: dict[str, Any], tmp_path: Path, student: Any
) -> None:
    model = parts.fit(FairPATEClassifier(**(settings | {"student": student})))
    rows, groups = parts.X_public, parts.groups_public
    option = model.with_reject_option(margin=0.05)
    labels = option.predict(rows[:200], sensitive_features=groups[:200])
    assert set(labels) <= {"yes", "no", REJECTED}
    option.save_state(tmp_path / "state.json")
    loaded = evenhand.load(model.save(tmp_path / "model"), trusted=OF_THE_USER)
    again = loaded.with_reject_option(margin=0.05)
    again.load_state(tmp_path / "state.json")
    expected = option.predict(rows[200:], sensitive_features=groups[200:])
    assert (again.predict(rows[200:], sensitive_features=groups[200:]) == expected).all()
    assert again.gap_ == option.gap_ <= 0.05


def test_with_reject_option_takes_groups_and_reference_from_the_fit(
    parts: Any, settings: dict[str, Any]
) -> None:
    model = parts.fit(
        FairPATEClassifier(
            **(settings | {"fairness": DemographicParity(margin=0.2, reference="pairwise")})
        )
    )
    option = model.with_reject_option(margin=0.02, threshold=0.6)
    assert option.groups_ == model.groups_ == ("a", "b")
    assert option._option.to_dict()["gate"]["reference"] == "pairwise"
    assert option.threshold == 0.6
    with pytest.raises(ValueError, match="not fitted"):
        FairPATEClassifier().with_reject_option(0.02)


def test_a_model_that_knows_no_groups_needs_them_named(
    parts: Any, settings: dict[str, Any]
) -> None:
    kept = {"budget", "n_teachers", "noise", "random_state", "mechanism"} & set(settings)
    model = PATEClassifier(**{name: settings[name] for name in kept})
    model.fit(parts.X, parts.y, X_public=parts.X_public)
    with pytest.raises(ValueError, match="groups is missing, and PATEClassifier knows none"):
        model.with_reject_option(0.05)
    option = model.with_reject_option(0.05, groups=["a", "b"])
    option.predict(parts.X_public, sensitive_features=parts.groups_public)
    assert option.gap_ <= 0.05


def test_a_fingerprint_sees_one_changed_parameter_and_nothing_else() -> None:
    model = RandomForestClassifier(5, random_state=0).fit(X, Y)
    before = fingerprint(model)
    model.predict(X)
    assert fingerprint(model) == before
    assert fingerprint(RandomForestClassifier(5, random_state=0).fit(X, Y)) == before
    assert fingerprint(RandomForestClassifier(5, random_state=1).fit(X, Y)) != before
    model.estimators_[3].tree_.value[0, 0, 0] += 1e-9
    assert fingerprint(model) != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [12]),
        ("1", 1),
        ({"a": [1], "b": []}, {"a": [], "b": [1]}),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros(2), np.zeros(2, dtype=np.int64)),
        (np.array(["a", 1], dtype=object), np.array(["a", "1"], dtype=object)),
        ([["a"], "b"], ["a", ["b"]]),
        (len, max),
        ({1, 2}, {1, 3}),
    ],
)
def test_different_values_have_different_fingerprints(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


def test_bytes_between_the_fields_of_a_record_do_not_count() -> None:
    kind = np.dtype({"names": ["a"], "formats": ["u1"], "offsets": [0], "itemsize": 8})
    one, other = (np.frombuffer(bytes([7, *rest]), kind) for rest in (b"0000000", b"1111111"))
    assert fingerprint(one) == fingerprint(other)


def test_a_value_that_holds_itself_has_a_fingerprint() -> None:
    model = Says(["no", "yes"])
    model.self = model  # type: ignore[attr-defined]  # a cycle, as in some callbacks
    assert len(fingerprint(model)) == 64
