"""Seven points, one fit: what each changes, what each promises, and whom a teacher reads."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand import DemographicParity, FairPATEClassifier, PATEClassifier, load
from evenhand.baselines import InterventionClassifier
from evenhand.baselines.intervention_points import POINTS
from evenhand.fairness import FairnessKind
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.tally import Tally
from evenhand.students import MarginNotMet, ReductionStudent
from evenhand.students.thresholds import NEEDS_GROUP
from evenhand.teachers import (
    KeepWithin,
    LogisticTeachers,
    OutsideVotes,
    ParityTeachers,
    ResampledTeachers,
    Undersample,
)
from evenhand.typing import REJECTED, IntArray
from evenhand.voting import Answers, Reason

from .conftest import Parts

MARGIN = DemographicParity(margin=0.1)


def fitted(parts: Parts, settings: dict[str, Any], at: str, **changes: Any) -> Any:
    given = changes.pop("given", {})
    model = InterventionClassifier(at=at, **(settings | changes))
    return parts.fit(model, **({"sensitive_features": parts.groups} | given))


def pate(parts: Parts, settings: dict[str, Any], **changes: Any) -> Any:
    own = {k: v for k, v in settings.items() if k != "fairness"} | changes
    return PATEClassifier(answers="labels", **own).fit(parts.X, parts.y, X_public=parts.X_public)


def seen_votes(
    monkeypatch: pytest.MonkeyPatch, parts: Parts, settings: dict[str, Any], at: str, **given: Any
) -> IntArray:
    """The votes of all teachers at a point."""
    seen: list[IntArray] = []
    vote = InterventionClassifier._vote

    def watched(self: Any, *args: Any) -> IntArray:
        seen.append(vote(self, *args))
        return seen[-1]

    with monkeypatch.context() as patch:
        patch.setattr(InterventionClassifier, "_vote", watched)
        fitted(parts, settings, at, given=given)
    return seen[0]


@pytest.mark.parametrize("at", ["T_pre", "T_in", "T_post"])
def test_replacing_one_record_and_its_group_moves_the_votes_of_one_teacher(
    monkeypatch: pytest.MonkeyPatch, parts: Parts, settings: dict[str, Any], at: str
) -> None:
    before = seen_votes(monkeypatch, parts, settings, at)
    movers = set()
    for row in (0, 17, 311, 599):
        X, y, groups = parts.X.copy(), parts.y.copy(), parts.groups.copy()
        X.iloc[row, 0], X.iloc[row, 1] = 1e6, "astronaut"
        y.iloc[row] = "no" if y.iloc[row] == "yes" else "yes"
        groups.iloc[row] = "b" if groups.iloc[row] == "a" else "a"
        after = seen_votes(monkeypatch, parts, settings, at, X=X, y=y, sensitive_features=groups)
        moved = np.flatnonzero((before != after).any(axis=1))
        assert len(moved) <= 1
        movers |= set(moved.tolist())
    assert len(movers) > 1  # the records do reach their teachers


@pytest.mark.parametrize("at", POINTS)
def test_every_point_has_the_budget_of_pate_and_charges_no_more_than_it(
    parts: Parts, settings: dict[str, Any], at: str
) -> None:
    model, plain = fitted(parts, settings, at), pate(parts, settings)
    assert model.guarantee_.epsilon == plain.guarantee_.epsilon
    assert model.ledger_.spent <= plain.ledger_.spent
    # What the ledger charged is what the mechanism costs, for every draw that was made.
    cost = settings["mechanism"].mu_squared(settings["noise"])
    assert model.ledger_.spent == pytest.approx(model.answers_.n_draws * cost)


@pytest.mark.parametrize("at", POINTS)
def test_the_claim_says_what_the_point_promises(
    parts: Parts, settings: dict[str, Any], at: str
) -> None:
    model = fitted(parts, settings, at)
    said = str(model.guarantee_)
    assert f"a margin of 0.1 at {at}: {POINTS[at].promise}" in said
    assert (NEEDS_GROUP in said) == POINTS[at].needs_group == (at == "S_post")


def test_the_points_are_those_of_figure_1_in_its_order() -> None:
    names = ["T_pre", "T_in", "T_post", "aggregator", "S_pre", "S_in", "S_post"]
    assert list(POINTS) == names
    assert [POINTS[name].number for name in names] == list(range(1, 8))


def test_t_pre_is_pate_with_teachers_that_choose_their_records(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = fitted(parts, settings, "T_pre")
    teachers = ResampledTeachers(KeepWithin(fairness=settings["fairness"]))
    direct = fitted(
        parts, settings | {"fairness": DemographicParity(margin=1.0)}, "S_pre", teachers=teachers
    )
    assert np.array_equal(model.answers_.labels, direct.answers_.labels)
    assert not np.array_equal(model.answers_.labels, pate(parts, settings).answers_.labels)


def test_t_in_is_pate_with_teachers_under_the_margin(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = fitted(parts, settings, "T_in")
    own = fitted(parts, settings, "T_in", teachers=ParityTeachers(settings["fairness"]))
    assert np.array_equal(model.answers_.labels, own.answers_.labels)
    wide = fitted(parts, settings, "T_in", fairness=DemographicParity(margin=1.0))
    assert np.array_equal(wide.answers_.labels, pate(parts, settings).answers_.labels)


def test_t_post_puts_every_teacher_within_the_margin_on_the_public_rows(
    monkeypatch: pytest.MonkeyPatch, parts: Parts, settings: dict[str, Any]
) -> None:
    groups = encode_groups(parts.groups_public)

    def worst(at: str) -> float:
        votes = seen_votes(monkeypatch, parts, settings, at)
        return max(MARGIN.gap(Tally.of(groups.codes, own, 2, 2).counts) for own in votes)

    one_row = 2.0 / groups.sizes.min()
    assert worst("T_post") <= 0.1 + one_row < worst("S_pre")


def test_the_aggregator_is_fairpate_with_a_student_that_is_not_bound(
    parts: Parts, settings: dict[str, Any]
) -> None:
    model = fitted(parts, settings, "aggregator")
    fair = parts.fit(FairPATEClassifier(**settings))
    assert np.array_equal(model.answers_.labels, fair.answers_.labels)
    assert np.array_equal(model.answers_.reasons, fair.answers_.reasons)
    assert fair.bound_
    assert not model.bound_


def answered_gap(answers: Answers, groups: IntArray) -> float:
    rows = answers.answered
    return MARGIN.gap(Tally.of(groups[rows], answers.labels[rows], 2, 2).counts)


def test_s_pre_drops_answers_that_pate_paid_for(parts: Parts, settings: dict[str, Any]) -> None:
    model, plain = fitted(parts, settings, "S_pre"), pate(parts, settings)
    groups = encode_groups(parts.groups_public).codes
    assert answered_gap(plain.answers_, groups) > 0.1
    assert answered_gap(model.answers_, groups) <= 0.1
    # The same answers at the same cost; some are not handed on.
    kept = model.answers_.answered
    assert 0 < kept.sum() < plain.answers_.n_answered
    assert np.array_equal(model.answers_.labels[kept], plain.answers_.labels[kept])
    assert model.ledger_.spent == plain.ledger_.spent
    dropped = plain.answers_.answered & ~kept
    assert (model.answers_.reasons[dropped] == Reason.OUTSIDE_MARGIN).all()
    assert (model.answers_.labels[dropped] == REJECTED).all()


def test_s_in_binds_the_student_to_the_public_rows(parts: Parts, settings: dict[str, Any]) -> None:
    model, plain = fitted(parts, settings, "S_in"), pate(parts, settings)
    groups = encode_groups(parts.groups_public).codes

    def gap(one: Any) -> float:
        said = (one.predict(parts.X_public) == "yes").astype(int)
        return MARGIN.gap(Tally.of(groups, said, 2, 2).counts)

    assert np.array_equal(model.answers_.labels, plain.answers_.labels)
    assert model.bound_
    assert model.within_margin_
    assert gap(model) == pytest.approx(model.public_gap_)
    assert gap(model) <= 0.1 < gap(plain)


def test_s_in_by_reduction_is_a_student_of_its_own(parts: Parts, settings: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginNotMet)
        model = fitted(parts, settings, "S_in", student=ReductionStudent())
    assert isinstance(model.student_, ReductionStudent)
    assert model.bound_
    assert np.array_equal(model.answers_.labels, pate(parts, settings).answers_.labels)


def test_s_post_is_pate_with_group_thresholds(parts: Parts, settings: dict[str, Any]) -> None:
    model = fitted(parts, settings, "S_post")
    direct = pate(parts, settings).with_group_thresholds(
        parts.X_public, parts.groups_public, fairness=MARGIN
    )
    mine = model.predict(parts.X, sensitive_features=parts.groups, random_state=0)
    theirs = direct.predict(parts.X, sensitive_features=parts.groups, random_state=0)
    assert np.array_equal(mine, theirs)
    assert not np.array_equal(mine, pate(parts, settings).predict(parts.X))
    with pytest.raises(ValueError, match="At S_post this model needs the group of each row"):
        model.predict(parts.X)


@pytest.mark.parametrize("at", ["T_post", "S_in", "S_post"])
def test_shares_go_with_points_that_gate_no_label(
    parts: Parts, settings: dict[str, Any], at: str
) -> None:
    model = fitted(parts, settings, at, answers="shares", mechanism=None)
    assert model.answers_.n_answered == len(parts.X_public)


@pytest.mark.parametrize("at", ["aggregator", "S_pre"])
def test_shares_are_refused_where_labels_are_gated(
    parts: Parts, settings: dict[str, Any], at: str
) -> None:
    with pytest.raises(ValueError, match=f"at='{at}' gates labels, and noisy shares are not"):
        fitted(parts, settings, at, answers="shares", mechanism=None)


@pytest.mark.parametrize("at", ["T_pre", "T_in"])
def test_the_groups_of_private_rows_are_asked_for_where_they_are_read(
    parts: Parts, settings: dict[str, Any], at: str
) -> None:
    with pytest.raises(ValueError, match="the group of every private row, and sensitive_features"):
        fitted(parts, settings, at, given={"sensitive_features": None})
    strange = parts.groups.replace("b", "B2")
    with pytest.raises(ValueError, match=r"first in row \d+ .* not among the known groups"):
        fitted(parts, settings, at, given={"sensitive_features": strange})
    missing = parts.groups.where(parts.groups.index != 5)
    with pytest.raises(ValueError, match="missing values, in row 6 "):
        fitted(parts, settings, at, given={"sensitive_features": missing})


@pytest.mark.parametrize("at", ["T_post", "aggregator", "S_pre", "S_in", "S_post"])
def test_the_groups_of_private_rows_are_not_read_elsewhere(
    parts: Parts, settings: dict[str, Any], at: str
) -> None:
    with_them = fitted(parts, settings, at)
    without = fitted(parts, settings, at, given={"sensitive_features": None})
    assert np.array_equal(with_them.answers_.labels, without.answers_.labels)


@pytest.mark.parametrize("at", ["T_pre", "T_in"])
def test_rows_set_aside_take_their_groups_with_them(
    parts: Parts, settings: dict[str, Any], at: str
) -> None:
    given = {"X_public": None, "sensitive_features_public": None}
    model = fitted(parts, settings, at, public_fraction=0.3, given=given)
    assert "set aside as public" in str(model.guarantee_)


def test_fairpate_takes_teachers_that_read_groups(parts: Parts, settings: dict[str, Any]) -> None:
    teachers = ResampledTeachers(Undersample(balance="cells"))
    model = FairPATEClassifier(teachers=teachers, **settings)
    parts.fit(model, sensitive_features=parts.groups)
    with pytest.raises(ValueError, match="the group of every private row, and sensitive_features"):
        parts.fit(model)


def test_settings_that_do_not_go_with_the_point_are_refused(
    parts: Parts, settings: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"at must be one of .*Did you mean 'T_pre'"):
        fitted(parts, settings, "T-pre")
    with pytest.raises(ValueError, match="fairness must be a DemographicParity, got None"):
        fitted(parts, settings, "S_in", fairness=None)
    with pytest.raises(ValueError, match="trained towards the margin, and LogisticTeachers reads"):
        fitted(parts, settings, "T_in", teachers=LogisticTeachers())
    outside = OutsideVotes(np.zeros((20, len(parts.X_public)), dtype=int))
    with pytest.raises(ValueError, match="thresholds on the teachers' scores, and CastVotes has"):
        fitted(parts, settings, "T_post", teachers=outside)
    with pytest.raises(ValueError, match="has no predict_proba"):
        fitted(parts, settings, "S_post", student=NoScores())
    # It would promise decisions within the margin that nothing holds there.
    with pytest.raises(ValueError, match="under the margin, and LogisticRegression knows of none"):
        fitted(parts, settings, "S_in", student=LogisticRegression())


class NoScores(DecisionTreeClassifier):
    """A tree that only decides."""

    predict_proba = None

    def __getattribute__(self, name: str) -> Any:
        if name == "predict_proba":
            raise AttributeError(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize("at", POINTS)
def test_a_saved_model_decides_as_before(
    parts: Parts, settings: dict[str, Any], at: str, tmp_path: Any
) -> None:
    model = fitted(parts, settings, at)
    again = load(model.save(tmp_path / at))
    given = {"sensitive_features": parts.groups, "random_state": 0}
    assert np.array_equal(again.predict(parts.X, **given), model.predict(parts.X, **given))
    assert again.guarantee_ == model.guarantee_
    assert again.get_params()["at"] == at
    assert again.fairness_kind_ is model.fairness_kind_


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        ("T_pre", FairnessKind.NONE),
        ("T_in", FairnessKind.NONE),
        ("T_post", FairnessKind.NONE),
        ("aggregator", FairnessKind.ANSWERS),
        ("S_pre", FairnessKind.ANSWERS),
        ("S_in", FairnessKind.WEIGHTS),
        ("S_post", FairnessKind.THRESHOLDS),
    ],
)
def test_a_model_says_where_its_margin_sits(
    parts: Parts, settings: dict[str, Any], at: str, kind: FairnessKind
) -> None:
    model = fitted(parts, settings, at)
    assert model.fairness_kind_ is kind
    assert model.needs_group_at_prediction_ == POINTS[at].needs_group


def test_a_saved_reduction_decides_as_before(
    parts: Parts, settings: dict[str, Any], tmp_path: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginNotMet)
        model = fitted(parts, settings, "S_in", student=ReductionStudent())
    again = load(model.save(tmp_path / "model"))
    assert np.array_equal(again.predict(parts.X), model.predict(parts.X))
