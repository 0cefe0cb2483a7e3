from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand.fairness import DemographicParity
from evenhand.students import ConstantStudentWarning, FewAnswersWarning
from evenhand.students.constrained import fit_linear
from evenhand.students.objective import LabelLoss, ShareLoss
from evenhand.students.soft_labels import DRAWN_AS, SoftLabels
from evenhand.students.student import (
    SMOOTHED_VARIANCE,
    fit_student,
    uncertainty,
)
from evenhand.students.within import Within
from evenhand.typing import FloatArray, IntArray
from evenhand.voting import Answers, Reason, Shares


def answers(labels: list[int], reasons: list[int] | None = None) -> Answers:
    given = np.array(labels)
    why = np.where(given >= 0, 0, int(Reason.NO_CONSENSUS)) if reasons is None else reasons
    order = np.flatnonzero(given >= 0)
    return Answers(
        labels=given,
        reasons=np.array(why),
        order=order,
        events=np.arange(len(order)),
        groups=None,
        n_checks=len(labels),
        n_draws=len(order),
        n_classes=2,
    )


few = pytest.mark.filterwarnings("ignore::evenhand.students.FewAnswersWarning")


@few
def test_it_learns_from_answered_rows_only() -> None:
    X = np.array([[0.0], [1.0], [np.nan], [2.0]])  # a row without answer may not be touched
    student = fit_student(DecisionTreeClassifier(random_state=0), X, answers([0, 1, -1, 1])).model
    direct = DecisionTreeClassifier(random_state=0).fit(X[[0, 1, 3]], [0, 1, 1])
    grid = np.linspace(-1, 3, 50)[:, None]
    assert np.array_equal(student.predict(grid), direct.predict(grid))


def test_the_default_student_is_a_logistic_regression() -> None:
    X = np.arange(6.0)[:, None]
    student = fit_student(None, X, answers([0, 0, 0, 1, 1, 1])).model
    assert type(student) is LogisticRegression
    assert student.predict([[0.0], [5.0]]).tolist() == [0, 1]


@few
def test_one_class_makes_a_constant_and_says_so() -> None:
    with pytest.warns(ConstantStudentWarning, match="one class for all 2 answered public rows"):
        student = fit_student(None, np.zeros((3, 1)), answers([1, -1, 1])).model
    assert type(student) is DummyClassifier
    assert student.predict(np.zeros((4, 1))).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("own", [None, DecisionTreeClassifier(random_state=0)])
def test_of_a_student_that_reads_no_margin_nobody_says_that_it_met_one(own: object) -> None:
    X = np.arange(6.0)[:, None]
    assert fit_student(own, X, answers([0, 0, 0, 1, 1, 1])).met is None


def test_a_student_that_decides_nothing_is_announced_also_where_answers_differ() -> None:
    X, groups, shares = some_shares()
    share = np.random.default_rng(0).uniform(0.7, 0.9, len(X))  # every row leans to class 1
    leaning = Shares(
        shares=np.stack([1 - share, share], axis=1),
        variance=shares.variance,
        n_asked=len(X),
        groups=groups,
    )
    within = Within(notion=DemographicParity(margin=0.05), groups=groups, n_groups=2)
    with pytest.warns(ConstantStudentWarning, match="for all 400 answered public rows. The margin"):
        fit_student(None, X, leaning, within)


def test_labels_so_few_that_any_could_be_followed_are_announced() -> None:
    # Cover (1965): of 2 (p + 1) points in general position half of all labellings are separable.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 14))
    labels = rng.integers(0, 2, 60)
    with pytest.warns(FewAnswersWarning, match="29 labels, and has 14 columns: fewer than 30"):
        fit_student(None, X[:29], answers(labels[:29].tolist()))
    fit_student(None, X[:30], answers(labels[:30].tolist()))


def test_no_answer_at_all_is_an_error_that_counts_the_reasons() -> None:
    with pytest.raises(ValueError, match="2 refused: the noisy vote fell below the threshold"):
        fit_student(None, np.zeros((2, 1)), answers([-1, -1]))


def some_shares(n_classes: int = 2) -> tuple[FloatArray, IntArray, Shares]:
    """Rows of two groups that differ, shares of unequal precision."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 3)) + groups[:, None] * [[0.8, 0.0, 0.0]]
    votes = np.exp(X @ rng.normal(size=(3, n_classes)))
    variance = np.where(np.arange(400) % 5 == 0, 0.001, 0.2)
    noise = rng.normal(size=votes.shape) * np.sqrt(variance)[:, None]
    shares = votes / votes.sum(axis=1, keepdims=True) + noise
    if n_classes == 2:
        shares[:, 0] = 1 - shares[:, 1]
    return X, groups, Shares(shares=shares, variance=variance, n_asked=480, groups=groups)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_student_is_least_sure_at_its_own_boundary(n_classes: int) -> None:
    X, _, shares = some_shares(n_classes)
    p = fit_student(None, X, shares).model.predict_proba(X)
    unsure = uncertainty(X, shares)
    # The probability that two draws from the probabilities differ, by the definition.
    differ = sum(p[:, a] * p[:, b] for a in range(n_classes) for b in range(n_classes) if a != b)
    assert np.allclose(unsure, differ)
    assert np.argsort(unsure)[-40:].tolist() == np.argsort(differ)[-40:].tolist()
    if n_classes == 2:
        nearest = np.argsort(np.abs(p[:, 1] - 0.5))[:40]
        assert set(nearest) == set(np.argsort(-unsure)[:40])


def test_under_a_margin_the_student_follows_the_smoothed_shares_each_row_once() -> None:
    X, groups, shares = some_shares()
    within = Within(notion=DemographicParity(margin=0.05), groups=groups, n_groups=2)
    free = fit_student(None, X, shares)
    gap = within.gap(free.model.predict(X), 2)
    assert gap > 0.05
    bound = fit_student(None, X, shares, within)
    assert bound.met
    assert bound.public_gap <= 0.05
    # A second way to the same student: the free one's probabilities, all rows alike.
    smooth = ShareLoss(
        shares=free.model.predict_proba(X), variance=np.full(len(X), SMOOTHED_VARIANCE)
    )
    assert np.array_equal(bound.model.coef_, fit_linear(X, smooth, within).coef)
    released = ShareLoss(shares=shares.shares, variance=shares.variance)
    assert not np.allclose(bound.model.coef_, fit_linear(X, released, within).coef, atol=1e-3)
    # Where the free student is within the margin it is kept as it is.
    wide = Within(notion=DemographicParity(margin=gap), groups=groups, n_groups=2)
    kept = fit_student(None, X, shares, wide)
    assert np.array_equal(kept.model.coef_, free.model.coef_)
    assert kept.public_gap == gap


@pytest.mark.parametrize("n_classes", [2, 3])
def test_soft_labels_beside_shares_weigh_what_is_said(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    X, own = rng.normal(size=(80, 2)), rng.normal(size=(50, 2))
    shares = rng.dirichlet(np.ones(n_classes), 80) + rng.normal(0, 0.1, (80, n_classes))
    if n_classes == 2:
        shares[:, 0] = 1.0 - shares[:, 1]
    given = Shares(
        shares=shares, variance=rng.uniform(0.01, 0.2, 80), n_asked=80, groups=np.zeros(80, int)
    )
    chances, weight = rng.dirichlet(np.ones(n_classes), 50), 2.5
    _, loss = SoftLabels.of(own, chances, weight).joined(X, given)
    # From the definition: each mean squared distance by itself, the chances weighed 2.5 to 1.
    scores = rng.normal(size=(130, loss.n_columns))
    p = softmax(np.c_[np.zeros(130), scores] if n_classes == 2 else scores, axis=1)
    columns = slice(1, 2) if n_classes == 2 else slice(None)
    far = ((p[:80] - shares)[:, columns] ** 2).sum(axis=1)
    wrong = ((p[80:] - chances)[:, columns] ** 2).sum(axis=1)
    answered = np.average(far, weights=1 / given.variance)
    expected = (answered + weight * wrong.mean()) / (1 + weight)
    assert loss.loss(scores)[0] == pytest.approx(expected)


def test_under_a_margin_a_student_follows_itself_on_the_rows_beside_the_answers() -> None:
    # 60 answered rows of 20 columns leave open what is given up for the margin; 4,000 do not.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    groups = (X[:, 0] + rng.normal(0, 0.5, 4000) > 0).astype(np.int64)
    yes = 1.0 / (1.0 + np.exp(-X @ rng.normal(1.0, 0.5, 20)))
    chances = np.column_stack([1.0 - yes, yes])
    within = Within(notion=DemographicParity(margin=0.02), groups=groups, n_groups=2, X=X)

    def of(n: int) -> Shares:
        return Shares(shares=chances[:n], variance=np.ones(n), n_asked=n, groups=groups[:n])

    best = fit_student(None, X, of(4000), within)
    beside = SoftLabels.of(X, chances, 1e6)
    found = fit_student(None, X[:60], of(60), within, beside=beside)
    assert found.met
    assert within.gap(found.without_margin.predict(X), 2) > 0.1
    right = [(model.predict(X) == (yes > 0.5)).mean() for model in (best.model, found.model)]
    assert right[1] > right[0] - 0.01


@pytest.mark.parametrize("n_classes", [2, 3])
def test_chances_beside_released_labels_weigh_what_is_said(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    X, own, real = (rng.normal(size=(n, 2)) for n in (30, 50, 20))
    labels = np.where(rng.random(30) < 0.5, rng.integers(n_classes, size=30), -1)
    given = replace(answers(labels.tolist()), n_classes=n_classes)
    drawn, seen = (rng.dirichlet(np.ones(n_classes), n) for n in (50, 20))
    beside = SoftLabels.of(own, drawn, 2.5).with_rows(real, seen)
    rows, loss = beside.joined(X, given)
    # From the definition: cross-entropies; of all chances real rows have 20 parts, drawn ones 1000.
    scores = (rows @ rng.normal(size=(2, loss.n_columns))).reshape(len(rows), -1)
    logs = log_softmax(np.c_[np.zeros(len(rows)), scores] if n_classes == 2 else scores, axis=1)
    answered = -logs[:30][labels >= 0][np.arange((labels >= 0).sum()), labels[labels >= 0]].mean()
    of_real = -(seen * logs[30:50]).sum(axis=1).sum()
    of_drawn = -(drawn * logs[50:100]).sum(axis=1).mean() * DRAWN_AS
    expected = (answered + 2.5 * (of_real + of_drawn) / (20 + DRAWN_AS)) / 3.5
    assert loss.loss(scores)[0] == pytest.approx(expected)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_row_with_chances_is_a_row_of_each_class_that_weighs_as_much(n_classes: int) -> None:
    # A second way to the same student: rows once for each class, which are sure of it.
    rng = np.random.default_rng(n_classes)
    X, own = rng.normal(size=(60, 3)), rng.normal(size=(200, 3))
    labels = np.where(rng.random(60) < 0.5, rng.integers(n_classes, size=60), -1)
    given = replace(answers(labels.tolist()), n_classes=n_classes)
    chances = softmax(own @ rng.normal(size=(3, n_classes)), axis=1)
    rows, loss = SoftLabels.of(own, chances, 2.5).joined(X, given)
    assert isinstance(loss, LabelLoss)
    assert len(rows) == 260
    answered = np.flatnonzero(labels >= 0)
    each = 2.5 * len(answered) * chances.T / len(own)
    repeated = LabelLoss(
        labels=np.concatenate([labels, np.repeat(np.arange(n_classes), len(own))]),
        rows=np.concatenate([answered, len(X) + np.arange(n_classes * len(own))]),
        n_classes=n_classes,
        C=loss.C,
        weights=np.concatenate([np.ones(len(answered)), each.reshape(-1)]),
    )
    copies = np.concatenate([X, *[own] * n_classes])
    W = rng.normal(size=(3, loss.n_columns))
    (value, slope), (other, slopes) = loss.loss(rows @ W), repeated.loss(copies @ W)
    assert value == pytest.approx(other, rel=1e-12)
    np.testing.assert_allclose(rows.T @ slope, copies.T @ slopes, atol=1e-13)
    curved, other = (
        Z.T @ (one.curvature(Z @ W)[:, None] * Z) for Z, one in ((rows, loss), (copies, repeated))
    )
    np.testing.assert_allclose(curved, other, atol=1e-13)
    assert loss.ridge == pytest.approx(repeated.ridge, rel=1e-12)
    found = [fit_linear(*one, None) for one in ((rows, loss), (copies, repeated))]
    np.testing.assert_allclose(found[0].coef, found[1].coef, atol=1e-3)


def test_a_student_between_shares_and_labels_goes_from_one_to_the_other() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    votes = (X[:, 0] > 0).astype(np.int64)
    shares = Shares(
        shares=np.eye(2)[votes],
        variance=np.full(400, 0.01),
        n_asked=400,
        groups=np.zeros(400, dtype=np.int64),
    )
    labels = (X[:, 1] > 0).astype(np.int64)
    right = []
    for weight in (1e-6, 0.3, 3.0, 1e6):
        beside = SoftLabels.of(X, np.eye(2)[labels], weight)
        told = fit_student(None, X, shares, beside=beside).model.predict(X)
        right.append((told == votes).mean() - (told == labels).mean())
    assert np.all(np.diff(right) < 0)
    alone = fit_student(None, X, shares).model.predict(X)
    nearly = SoftLabels.of(X, np.eye(2)[labels], 1e-6)
    assert (fit_student(None, X, shares, beside=nearly).model.predict(X) == alone).mean() > 0.99
