"""What a fit promises, and that it reads no more of the private rows than it says."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import Budget, DemographicParity, FairPATEClassifier, PATEClassifier
from evenhand.privacy import (
    BudgetExceeded,
    ConfidentGNMax,
    DatabaseStore,
    GNMax,
    Ledger,
    SeededNoise,
)
from evenhand.students import ConstantStudentWarning
from evenhand.teachers import LogisticTeachers, OutsideVotes
from evenhand.typing import IntArray

from .conftest import Parts

few = pytest.mark.filterwarnings("ignore::evenhand.students.FewAnswersWarning")


class Recording(LogisticTeachers):
    """Logistic teachers that leave their votes where a test can see them."""

    seen: list[IntArray] = []  # noqa: RUF012  # shared on purpose: fit works on a clone

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        ensemble = super().fit(*args, **kwargs)
        vote = ensemble.vote

        class Watched:
            n_teachers = ensemble.n_teachers

            def vote(self, X: Any) -> IntArray:
                votes = vote(X)
                Recording.seen.append(votes)
                return votes

        return Watched()


def votes_of(parts: Parts, settings: dict[str, Any], **changes: Any) -> IntArray:
    Recording.seen.clear()
    parts.fit(FairPATEClassifier(**(settings | {"teachers": Recording()})), **changes)
    return Recording.seen[0]


def test_replacing_one_record_moves_the_votes_of_one_teacher(
    parts: Parts, settings: dict[str, Any]
) -> None:
    before = votes_of(parts, settings)
    movers = set()
    for row in (0, 17, 311, 599):
        # As wild as a record can be: an outlier, an unknown category, the other label.
        X, y = parts.X.copy(), parts.y.copy()
        X.iloc[row, 0], X.iloc[row, 1] = 1e9, "astronaut"
        y.iloc[row] = "no" if y.iloc[row] == "yes" else "yes"
        changed = np.flatnonzero((votes_of(parts, settings, X=X, y=y) != before).any(axis=1))
        assert len(changed) <= 1
        movers.update(changed.tolist())
    assert movers  # the change was large enough to be seen at all


def test_removing_one_person_moves_the_votes_of_one_teacher(
    parts: Parts, settings: dict[str, Any]
) -> None:
    people = np.arange(600) // 3
    before = votes_of(parts, settings, unit_ids=people)
    movers = set()
    for person in (0, 50, 199):
        keep = people != person
        after = votes_of(parts, settings, X=parts.X[keep], y=parts.y[keep], unit_ids=people[keep])
        changed = np.flatnonzero((after != before).any(axis=1))
        assert len(changed) <= 1
        movers.update(changed.tolist())
    assert movers


def test_private_rows_reach_the_model_only_through_the_answers(
    parts: Parts, settings: dict[str, Any]
) -> None:
    # Two private tables, the same votes: then everything that is published is the same.
    model = parts.fit(FairPATEClassifier(**settings))

    class Fixed(LogisticTeachers):
        def fit(self, *args: Any, **kwargs: Any) -> Any:
            class Same:
                n_teachers = 20

                def vote(self, X: Any) -> IntArray:
                    return np.tile(np.arange(len(X)) % 2, (20, 1))

            return Same()

    rng = np.random.default_rng(5)
    other = parts.X.assign(income=rng.normal(size=600) * 1e6)
    one = parts.fit(FairPATEClassifier(**(settings | {"teachers": Fixed()})))
    two = parts.fit(FairPATEClassifier(**(settings | {"teachers": Fixed()})), X=other)
    assert np.array_equal(one.answers_.labels, two.answers_.labels)
    assert np.array_equal(one.student_.coef_, two.student_.coef_)
    assert one.encoder_.to_dict() == two.encoder_.to_dict() == model.encoder_.to_dict()
    assert one.guarantee_ == two.guarantee_


@few
@pytest.mark.filterwarnings("ignore:The student predicts one class")  # nothing hangs on it
def test_the_budget_bounds_what_is_spent_and_the_claim_is_the_budget(
    parts: Parts, settings: dict[str, Any]
) -> None:
    for epsilon in (2.0, 8.0, 30.0):
        budget = Budget(epsilon=epsilon, delta=1e-5)
        mechanism = ConfidentGNMax(threshold=12.0, sigma_check=12.0, sigma=10.0)
        changes = {"budget": budget, "mechanism": mechanism}
        model = parts.fit(FairPATEClassifier(**(settings | changes)))
        answers = model.answers_
        spent = answers.n_checks / 12.0**2 + 2 * answers.n_draws / 10.0**2
        assert model.ledger_.spent == pytest.approx(spent, rel=1e-9)
        assert spent <= budget.mu_squared
        assert model.guarantee_.epsilon == epsilon


def test_the_default_noise_is_exact_and_the_claim_holds(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = parts.fit(FairPATEClassifier(**(settings | {"noise": None})))
    assert model.guarantee_.holds
    assert "discrete" in model.guarantee_.noise
    test_mode = parts.fit(FairPATEClassifier(**settings))
    assert not test_mode.guarantee_.holds
    assert str(test_mode.guarantee_).startswith("NOT PRIVATE")


def test_the_claim_names_the_unit_and_what_is_public(
    parts: Parts, settings: dict[str, Any]
) -> None:
    record = parts.fit(FairPATEClassifier(**(settings | {"noise": None}))).guarantee_
    assert (record.unit, record.neighbors) == ("record", "replace one")
    assert "the number of private records (600)" in record.public
    person = parts.fit(
        FairPATEClassifier(**(settings | {"noise": None, "unit": "patient"})),
        unit_ids=np.arange(600) // 3,
    ).guarantee_
    assert (person.unit, person.neighbors) == ("patient", "add or remove one")
    assert "600" not in str(person)  # under add/remove the number of records is private
    assert "200" not in str(person)
    aside = FairPATEClassifier(**(settings | {"noise": None, "public_fraction": 0.25})).fit(
        parts.X, parts.y, sensitive_features=parts.groups
    )
    assert any("150 rows" in words for words in aside.guarantee_.not_covered)


def test_a_delta_above_one_over_n_is_a_warning_in_the_claim(
    parts: Parts, settings: dict[str, Any]
) -> None:
    budget = Budget(epsilon=20.0, delta=0.01)
    model = parts.fit(FairPATEClassifier(**(settings | {"budget": budget, "noise": None})))
    assert any("600" in warning for warning in model.guarantee_.warnings)
    with pytest.warns(UserWarning, match="delta=0.01"):
        model = parts.fit(
            FairPATEClassifier(**(settings | {"budget": budget, "noise": None})),
            unit_ids=np.arange(600),
        )
    # The number of units is private there: the curator is warned, the claim does not print it.
    assert "600" not in str(model.guarantee_)


@pytest.mark.filterwarnings("ignore:The student predicts one class")  # nothing hangs on it
def test_votes_cast_elsewhere_are_a_warning_in_the_claim(
    parts: Parts, settings: dict[str, Any]
) -> None:
    # Whether a record reached one teacher only cannot be seen from votes: the claim must say so.
    cast = np.random.default_rng(0).integers(0, 2, (20, 300))
    model = parts.fit(FairPATEClassifier(**(settings | {"teachers": OutsideVotes(cast)})))
    assert any("cast elsewhere" in words for words in model.guarantee_.warnings)
    assert "one teacher only" in str(model.guarantee_)
    inside = parts.fit(FairPATEClassifier(**settings))
    assert "elsewhere" not in str(inside.guarantee_)


@pytest.mark.filterwarnings("ignore:The student learns from")  # few labels are enough here
@pytest.mark.filterwarnings("ignore:The student predicts one class")
def test_a_run_is_charged_to_the_account_of_its_data_set(
    parts: Parts, settings: dict[str, Any], tmp_path: Any
) -> None:
    def account() -> Ledger:
        return Ledger(
            Budget(epsilon=4.0, delta=1e-5),
            noise=SeededNoise(0),
            store=DatabaseStore(tmp_path / "ledger.sqlite"),
            account="census",
        )

    changes = {"budget": Budget(epsilon=2.5, delta=1e-5), "mechanism": GNMax(sigma=15.0)}
    model = FairPATEClassifier(**(settings | changes | {"noise": None}))
    first = parts.fit(model, ledger=account())
    assert account().spent == pytest.approx(first.ledger_.spent)
    second = parts.fit(model, ledger=account())
    assert account().spent == pytest.approx(first.ledger_.spent + second.ledger_.spent)
    assert account().spent <= Budget(epsilon=4.0, delta=1e-5).mu_squared
    left = account().affordable(model.mechanism)
    assert left < first.answers_.n_asked  # the second run took what the account had left
    with pytest.raises(BudgetExceeded, match="costs more"):
        parts.fit(model.set_params(mechanism=GNMax(sigma=0.5)), ledger=account())
    with pytest.raises(ValueError, match="do not add up"):
        parts.fit(model, ledger=account(), unit_ids=np.arange(600))


def test_a_student_of_your_own_learns_the_answers(parts: Parts, settings: dict[str, Any]) -> None:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(20, max_depth=5, random_state=0)
    model = parts.fit(FairPATEClassifier(**(settings | {"student": forest})))
    assert type(model.student_) is RandomForestClassifier
    assert not hasattr(forest, "classes_")  # a clone was fitted
    assert set(model.predict(parts.X)) == {"no", "yes"}


def test_without_a_margin_it_is_pate(parts: Parts, settings: dict[str, Any]) -> None:
    settings.pop("fairness")
    model = PATEClassifier(**settings).fit(parts.X, parts.y, X_public=parts.X_public)
    assert model.groups_ is None
    assert model.answers_.n_rejected == 0
    assert (model.predict(parts.X) == parts.y).mean() > 0.75


def test_the_gap_of_the_answers_is_within_the_margin_and_the_students_is_another(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = parts.fit(FairPATEClassifier(**settings))
    assert 0 < model.gate_.gap <= 0.1
    open_gate = parts.fit(
        FairPATEClassifier(**(settings | {"fairness": DemographicParity(margin=1.0)}))
    )
    assert open_gate.gate_.gap > 0.1  # the margin did bind


def test_classes_that_are_declared_need_not_occur(parts: Parts, settings: dict[str, Any]) -> None:
    model = parts.fit(FairPATEClassifier(**(settings | {"classes": ["maybe", "no", "yes"]})))
    assert model.classes_.tolist() == ["maybe", "no", "yes"]
    proba = model.predict_proba(parts.X)
    assert proba.shape == (600, 3)
    assert np.allclose(proba.sum(axis=1), 1)
    assert (proba[:, 0] < 1e-3).all()


def test_answers_of_one_class_make_a_constant_student_and_a_warning(
    parts: Parts, settings: dict[str, Any]
) -> None:
    rare = parts.y.where(np.arange(600) == 3, "no")
    rare.iloc[3] = "yes"
    with pytest.warns(ConstantStudentWarning, match="one class"):
        model = parts.fit(
            FairPATEClassifier(**(settings | {"mechanism": GNMax(sigma=1.0)})), y=rare
        )
    assert set(model.predict(parts.X)) == {"no"}


@few
@pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning")
def test_a_budget_too_small_names_epsilon_and_teachers(
    parts: Parts, settings: dict[str, Any]
) -> None:
    changes = {
        "budget": Budget(epsilon=0.2, delta=1e-9),
        "mechanism": None,
        "noise": None,
    }
    with pytest.raises(BudgetExceeded, match=r"Raise epsilon to at least .* teachers") as caught:
        parts.fit(FairPATEClassifier(**(settings | changes)))
    words = str(caught.value).replace(",", "").split()
    enough = float(words[words.index("least") + 1])
    teachers = int(words[words.index("teachers") - 1])
    parts.fit(
        FairPATEClassifier(**(settings | changes | {"budget": Budget(epsilon=enough, delta=1e-9)}))
    )
    if teachers <= 600:
        parts.fit(FairPATEClassifier(**(settings | changes | {"n_teachers": teachers})))


def test_progress_reports_teachers_and_answers(parts: Parts, settings: dict[str, Any]) -> None:
    seen: list[tuple[str, int, int]] = []
    parts.fit(
        FairPATEClassifier(**settings),
        progress=lambda stage, done, n: seen.append((stage, done, n)),
    )
    assert {stage for stage, _, _ in seen} == {"teachers", "answers"}
    assert ("teachers", 20, 20) in seen


def test_missing_values_and_unseen_categories_are_predicted(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = parts.fit(FairPATEClassifier(**settings))
    strange = pd.DataFrame({"income": [np.nan, math.pi], "job": ["astronaut", None]})
    assert set(model.predict(strange)) <= {"no", "yes"}
