"""Margins about true classes: differences of rates, their gradient, the labels, and what is met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from populations import population
from runs import falls_short
from scipy.optimize import approx_fprime

from evenhand._words import REFERENCES
from evenhand.fairness import (
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FalsePositiveParity,
    gap_of,
)
from evenhand.fairness.tally import JointTally
from evenhand.students import MarginNotMet
from evenhand.students.constrained import _Problem, fit_linear
from evenhand.students.design import DesignMatrix
from evenhand.students.objective import LabelLoss
from evenhand.students.student import fit_student
from evenhand.students.within import Within
from evenhand.typing import FloatArray, IntArray
from evenhand.voting import Answers, Shares

LABELLED = (EqualizedOdds, ErrorParity, FalsePositiveParity)


@st.composite
def rows(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int, int]]]:
    """Groups, true and predicted classes of some rows; cells may be empty."""
    n_groups, n_classes = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    row = st.tuples(
        st.integers(0, n_groups - 1), st.integers(0, n_classes - 1), st.integers(0, n_classes - 1)
    )
    return n_groups, n_classes, draw(st.lists(row, min_size=2, max_size=40))


def columns(drawn: list[tuple[int, int, int]]) -> tuple[IntArray, IntArray, IntArray]:
    z, y, k = np.array(drawn, dtype=np.int64).T
    return z, y, k


def as_decisions(k: IntArray, n_classes: int) -> FloatArray:
    hard = np.eye(n_classes)[k]
    return hard[:, 1:] if n_classes == 2 else hard


@pytest.mark.parametrize("kind", LABELLED)
@pytest.mark.parametrize("reference", REFERENCES)
@given(drawn=rows())
@settings(max_examples=25, deadline=None)
def test_the_largest_difference_of_hard_decisions_is_the_metrics_gap(
    kind: type, reference: str, drawn: Any
) -> None:
    n_groups, n_classes, listed = drawn
    z, y, k = columns(listed)
    notion = kind(margin=0.1, reference=reference)
    measured = gap_of(notion, JointTally.of(z, y, k, n_groups, n_classes)).value
    for labels in (y, np.eye(n_classes)[y]):  # codes, and the same as weights
        within = Within(notion=notion, groups=z, n_groups=n_groups, labels=labels)
        apart = within.differences(n_classes).apart(as_decisions(k, n_classes))
        largest = np.abs(apart).max(initial=0.0)
        assert largest == pytest.approx(np.nan_to_num(measured), abs=1e-12)
        assert within.gap(k, n_classes) == pytest.approx(np.nan_to_num(measured), abs=1e-12)


@pytest.mark.parametrize("kind", LABELLED)
@given(drawn=rows(), seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_weights_and_probabilities_give_the_differences_of_expected_tables(
    kind: type, drawn: Any, seed: int
) -> None:
    # By the definition: expected joint tables from soft labels times soft decisions, rate by rate.
    n_groups, n_classes, listed = drawn
    z, _, _ = columns(listed)
    rng = np.random.default_rng(seed)
    labels = rng.dirichlet(np.ones(n_classes), len(z)) + 0.5  # so that every cell weighs a record
    probabilities = rng.dirichlet(np.ones(n_classes), len(z))
    notion = kind(margin=0.1, reference="pairwise")
    within = Within(notion=notion, groups=z, n_groups=n_groups, labels=labels)
    soft = probabilities[:, 1:] if n_classes == 2 else probabilities
    found = np.abs(within.differences(n_classes).apart(soft)).max(initial=0.0)
    rates = notion.rates(n_classes)
    worst = 0.0
    for among, hits in zip(rates.among, rates.hits, strict=True):
        values = []
        for g in range(n_groups):
            joint = sum(
                (np.outer(labels[i], probabilities[i]) for i in np.flatnonzero(z == g)),
                np.zeros((n_classes, n_classes)),
            )
            held = sum(labels[i][among].sum() for i in np.flatnonzero(z == g))
            if held >= 1:
                values.append(joint[hits].sum() / held)
        worst = max([worst] + [abs(a - b) for a in values for b in values])
    assert found == pytest.approx(worst, abs=1e-10)


def label_loss(y: IntArray, n_classes: int) -> LabelLoss:
    return LabelLoss(labels=y, rows=np.arange(len(y)), n_classes=n_classes, C=0.5)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", LABELLED)
@pytest.mark.parametrize("reference", REFERENCES)
def test_the_gradient_is_that_of_the_value(
    apart: bool, n_classes: int, kind: type, reference: str
) -> None:
    X, y, groups = population(60, n_groups=3, n_classes=n_classes, unlike=True)
    rng = np.random.default_rng(2)
    other = rng.normal(size=(45, 5))
    within = Within(
        notion=kind(margin=0.1, reference=reference),
        groups=groups[:45] if apart else groups,
        n_groups=3,
        X=other if apart else None,
        labels=y[:45] if apart else rng.dirichlet(np.ones(n_classes), 60),
    )
    problem = _Problem(DesignMatrix(X), label_loss(y, n_classes), within)
    problem.width = 0.3
    weights = np.random.default_rng(3).normal(0, 0.3, problem.n_weights)
    plain = problem._value(weights.reshape(problem.shape), None)[0]
    preconditioner = problem._preconditioner(0.0, weights.reshape(problem.shape))
    u = preconditioner.coordinates(weights.reshape(problem.shape)).ravel()
    assert problem._preconditioned(u, 0.0, preconditioner)[0] > plain + 1e-6  # the penalty is on
    numeric = approx_fprime(u, lambda w: problem._preconditioned(w, 0.0, preconditioner)[0], 1e-7)
    assert np.allclose(
        problem._preconditioned(u, 0.0, preconditioner)[1], numeric, rtol=2e-3, atol=2e-4
    )


@pytest.mark.parametrize("margin", [0.02, 0.06])
@pytest.mark.parametrize("kind", LABELLED)
@pytest.mark.parametrize(("n_groups", "n_classes"), [(2, 2), (4, 2), (3, 3)])
def test_decisions_are_within_the_margin_and_were_not_before(
    margin: float, kind: type, n_groups: int, n_classes: int
) -> None:
    X, y, groups = population(n_groups=n_groups, n_classes=n_classes, unlike=True)
    notion = kind(margin=margin)
    within = Within(
        notion=notion, groups=groups, n_groups=n_groups, labels=y, source="calibration rows"
    )
    objective = label_loss(y, n_classes)
    free = fit_linear(X, objective, None).classifier(n_classes).predict(X)
    bound = fit_linear(X, objective, within)
    decided = bound.classifier(n_classes).predict(X)
    before, after = (
        JointTally.of(groups, y, k, n_groups, n_classes).counts for k in (free, decided)
    )
    assert notion.gap(before) > 0.1  # the margin has something to do
    assert bound.met
    assert notion.holds(after)
    assert bound.gap == notion.gap(after)


def test_margins_are_read_on_rows_of_their_own() -> None:
    X, y, groups = population(3000, unlike=True)
    notion = EqualizedOdds(margin=0.05)
    small = np.arange(0, 3000, 5)
    within = Within(
        notion=notion,
        groups=groups[small],
        n_groups=2,
        X=X[small],
        labels=y[small],
        source="calibration rows",
    )
    fit = fit_linear(X, label_loss(y, 2), within)
    decided = fit.classifier(2).predict(X)
    assert fit.met
    assert notion.holds(JointTally.of(groups[small], y[small], decided[small], 2, 2).counts)
    free = fit_linear(X, label_loss(y, 2), None).classifier(2).predict(X)
    gaps = [notion.gap(JointTally.of(groups, y, k, 2, 2).counts) for k in (decided, free)]
    assert gaps[0] < gaps[1] / 2  # and it carries over to the others


@pytest.mark.parametrize("kind", LABELLED)
def test_a_margin_that_is_not_met_is_said_with_where_it_was_read(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.students.constrained.STIFFNESS", 1e-9)
    X, y, groups = population(n_classes=3, unlike=True)
    notion = kind(margin=0.01)
    for source, said in (
        ("calibration rows", "on the labelled calibration rows is within 0.01; the best has 0"),
        ("released answers", "with their classes as the released answers tell them is within"),
    ):
        within = Within(notion=notion, groups=groups, n_groups=2, labels=y, source=source)
        with pytest.warns(MarginNotMet, match=said):
            fit = fit_linear(X, label_loss(y, 3), within)
        assert not fit.met
        assert fit.gap > 0.01


def test_error_parity_that_no_linear_student_can_keep_is_not_claimed() -> None:
    # One feature that tells the class of group 0 exactly and of group 1 not at all: whatever the
    # threshold, group 1 is wrong about half of the time; group 0 less, unless wrong on purpose.
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 400)
    x = np.tile([0.0, 1.0], 400)
    y = np.where(groups == 0, x, rng.permutation(np.tile([0, 0, 0, 1], 200))).astype(np.int64)
    within = Within(
        notion=ErrorParity(margin=0.001),
        groups=groups,
        n_groups=2,
        labels=y,
        source="calibration rows",
    )
    with pytest.warns(MarginNotMet, match=r"within 0\.001; the best has 0\.\d+ and is kept"):
        fit = fit_linear(x[:, None], label_loss(y, 2), within)
    decided = fit.classifier(2).predict(x[:, None])
    joint = JointTally.of(groups, y, decided, 2, 2)
    assert not fit.met
    assert fit.gap == within.notion.gap(joint.counts) > 0.001


def noisy(votes: FloatArray, sigma: float, rng: np.random.Generator) -> FloatArray:
    """Noise as it is released: one column for two classes, else each of its own."""
    out = votes + rng.normal(0, sigma, votes.shape)
    if votes.shape[1] == 2:
        out[:, 0] = 1 - out[:, 1]
    return out


def shares_of(shares: FloatArray, sigma: float, groups: IntArray) -> Shares:
    n = len(shares)
    return Shares(shares=shares, variance=np.full(n, sigma**2), n_asked=n, groups=groups)


def test_a_student_learns_its_margin_from_shares() -> None:
    # Votes are the truth here, so only noise stands between the student's view and the true gap: in
    # the mean over its draws at most two thirds are left (correct code fails with probability
    # 1e-6). A student that ignores the margin keeps all of it, and the same runs convict that.
    X, y, groups = population(4000, unlike=True)
    notion = EqualizedOdds(margin=0.05)
    within = Within(notion=notion, groups=groups, n_groups=2)
    gaps = []
    for seed in range(8):
        answers = shares_of(noisy(np.eye(2)[y], 0.3, np.random.default_rng(seed)), 0.3, groups)
        student = fit_student(None, X, answers, within)
        assert student.bound
        assert student.met
        assert student.within is not None
        assert student.within.source == "released answers"
        gaps.append([
            notion.gap(JointTally.of(groups, y, fitted.model.predict(X), 2, 2).counts)
            for fitted in (student, fit_student(None, X, answers))
        ])  # fmt: skip
    held, free = np.transpose(gaps)
    assert not falls_short(2 / 3 * free - held)
    assert falls_short(2 / 3 * free - free)


def labels_of(given: IntArray, n_classes: int = 2) -> Answers:
    return Answers(
        labels=given,
        reasons=np.zeros(len(given), dtype=np.int64),
        order=np.arange(len(given)),
        events=np.arange(len(given)),
        groups=None,
        n_checks=0,
        n_draws=len(given),
        n_classes=n_classes,
    )


@pytest.mark.parametrize("bought", ["labels", "shares"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_answers_tell_the_classes_through_a_student_without_a_margin(
    bought: str, n_classes: int
) -> None:
    X, y, groups = population(3000, n_classes=n_classes, unlike=True)
    rng = np.random.default_rng(0)
    said = np.where(rng.random(3000) < 0.3, (y + 1) % n_classes, y)
    answers: Answers | Shares = labels_of(said, n_classes)
    if bought == "shares":
        answers = shares_of(noisy(np.eye(n_classes)[y], 0.4, rng), 0.4, groups)
    notion = EqualizedOdds(margin=0.08)
    within = Within(notion=notion, groups=groups, n_groups=2)
    student = fit_student(None, X, answers, within)
    told = fit_student(None, X, answers).model.predict_proba(X)
    assert student.met
    assert student.within is not None
    assert student.within.source == "released answers"
    assert np.allclose(student.within.labels, told)
    # By the definition: expected tables of the hard decisions under these probabilities.
    decided = np.eye(n_classes)[student.model.predict(X)]
    rates = [
        (told[groups == z].T @ decided[groups == z]) / told[groups == z].sum(axis=0)[:, None]
        for z in (0, 1)
    ]
    assert student.public_gap == pytest.approx(np.abs(rates[0] - rates[1]).max())
    assert student.public_gap <= 0.08


@pytest.mark.parametrize("kind", LABELLED)
@pytest.mark.parametrize("bought", ["labels", "shares", "noisy shares"])
def test_a_class_that_no_teacher_votes_for_has_no_part_in_the_margin(
    bought: str, kind: type
) -> None:
    X, y, groups = population(1500, unlike=True)
    rng = np.random.default_rng(0)
    answers: Answers | Shares = labels_of(y, 3)
    if bought != "labels":
        sigma = 0.05 if bought == "shares" else 0.5
        answers = shares_of(noisy(np.eye(3)[y], sigma, rng), sigma, groups)
    within = Within(notion=kind(margin=0.1), groups=groups, n_groups=2)
    student = fit_student(None, X, answers, within)
    assert student.met
    assert student.within is not None
    assert student.within.labels is not None
    assert (student.within.labels[:, 2] == 0).all()
    assert np.allclose(student.within.labels.sum(axis=1), 1.0)
    empty = {(0, (2,)), (1, (2,))}
    assert set(student.within.unread(3)) == (empty if kind is EqualizedOdds else set())


@pytest.mark.filterwarnings("ignore::evenhand.students.ConstantStudentWarning")
def test_a_class_counts_where_its_shares_are_clear_of_their_noise() -> None:
    # 100 rows a group, so the noise of a sum is 10 sigma, and three times that is asked for.
    groups = np.repeat([0, 1], 100)
    shares = np.zeros((200, 3))
    shares[:100, 1], shares[100:, 1] = 0.2, 0.5
    shares[:, 0] = 1 - shares[:, 1]
    X = np.random.default_rng(0).normal(size=(200, 2))
    within = Within(notion=EqualizedOdds(margin=0.9), groups=groups, n_groups=2)
    for sigma, unread in (
        (0.66, {(0, (2,)), (1, (2,))}),
        (0.67, {(0, (1,)), (0, (2,)), (1, (2,))}),
    ):
        student = fit_student(None, X, shares_of(shares, sigma, groups), within)
        assert student.within is not None
        assert set(student.within.unread(3)) == unread


def test_a_group_without_any_answer_keeps_the_students_word() -> None:
    X, y, groups = population(900, unlike=True)
    said = np.where(groups == 1, -1, y)
    answers = Answers(
        labels=said,
        reasons=(said < 0).astype(np.int64),
        order=np.flatnonzero(said >= 0),
        events=np.arange((said >= 0).sum()),
        groups=None,
        n_checks=900,
        n_draws=900,
        n_classes=2,
    )
    within = Within(notion=EqualizedOdds(margin=0.1), groups=groups, n_groups=2)
    student = fit_student(None, X, answers, within)
    assert student.within is not None
    assert np.allclose(student.within.labels, fit_student(None, X, answers).model.predict_proba(X))


def test_a_cell_below_one_record_is_not_read() -> None:
    groups = np.repeat([0, 1], 100)
    for held, unread in ((1.01, ()), (0.99, ((0, (1,)),))):
        weights = np.zeros((200, 2))
        weights[:100, 1], weights[100:, 1] = held / 100, 0.5
        weights[:, 0] = 1 - weights[:, 1]
        within = Within(notion=EqualizedOdds(margin=0.1), groups=groups, n_groups=2, labels=weights)
        assert within.unread(2) == unread
        overall = Within(notion=ErrorParity(margin=0.1), groups=groups, n_groups=2, labels=weights)
        assert overall.unread(2) == ()


def test_what_cannot_be_bound_is_refused() -> None:
    X, y, groups = population(50, unlike=True)
    within = Within(notion=EqualizedOdds(margin=0.1), groups=groups, n_groups=2)
    with pytest.raises(ValueError, match="labels is missing"):
        fit_linear(X, label_loss(y, 2), within)
    from sklearn.tree import DecisionTreeClassifier

    with pytest.raises(ValueError, match=r"student=DecisionTreeClassifier nothing would keep"):
        fit_student(DecisionTreeClassifier(), X, labels_of(y), within)
    with pytest.raises(ValueError, match="labels has 3, groups has 50"):
        Within(notion=within.notion, groups=groups, n_groups=2, labels=y[:3])
    with pytest.raises(ValueError, match="X has 3, groups has 50"):
        Within(notion=within.notion, groups=groups, n_groups=2, X=X[:3])
    with pytest.raises(ValueError, match=r"'calibration rows'.*Did you mean 'public rows'"):
        Within(notion=within.notion, groups=groups, n_groups=2, source="public row")


def test_memory_does_not_grow_with_groups() -> None:
    # 20 groups x 5 classes x 20,000 rows: what is kept per row is its classes, not the groups.
    rng = np.random.default_rng(0)
    n = 20_000
    within = Within(
        notion=EqualizedOdds(margin=0.1),
        groups=rng.integers(0, 20, n),
        n_groups=20,
        labels=rng.dirichlet(np.ones(5), n),
    )
    differences: Any = within.differences(5)
    assert differences._cells.nnz == differences._rows.nnz == 5 * n
    assert differences._combined.size < 20 * 5 * 5 * 25 * 20 + 1


# ---------------------------------------- how far off the widest difference may be


@pytest.mark.parametrize("notion", [DemographicParity, EqualizedOdds], ids=lambda n: n.name)
def test_the_standard_error_is_that_of_differences_over_samples(notion: Any) -> None:
    # Many samples of one population: the widest difference is that of the first cell by far, and
    # its standard deviation over samples is what one sample says, up to 15 % of both.
    rng = np.random.default_rng(0)
    chances, sizes = np.array([[0.85, 0.8], [0.25, 0.6]]), np.array([[90, 70], [150, 110]])
    z = np.repeat([0, 0, 1, 1], sizes.ravel())
    y = np.repeat([0, 1, 0, 1], sizes.ravel())
    margin = notion(margin=0.05, reference="pairwise")
    within = Within(notion=margin, groups=z, n_groups=2, labels=y if margin.needs_labels else None)
    gaps, said = [], []
    for _ in range(2000):
        decided = (rng.random(len(z)) < chances[z, y]).astype(float)
        gaps.append(within.gap(decided.astype(int), 2))
        said.append(within.standard_error(decided))
    assert np.mean(said) == pytest.approx(np.std(gaps), rel=0.15)


def test_rows_that_say_half_as_much_have_twice_the_variance_and_none_is_certain() -> None:
    z = np.repeat([0, 1], [40, 60])
    within = Within(
        notion=DemographicParity(margin=0.1, reference="pairwise"), groups=z, n_groups=2
    )
    decided = np.where(z == 0, np.arange(100) % 2, np.arange(100) % 3 == 0).astype(float)
    plain = within.standard_error(decided)
    assert within.standard_error(decided, np.array([20.0, 30.0])) == pytest.approx(plain * 2**0.5)
    assert within.standard_error(np.zeros(100)) > 0
    by_hand = (0.5**2 / 40 + (20.5 / 61) * (40.5 / 61) / 60) ** 0.5
    assert plain == pytest.approx(by_hand, rel=1e-9)
