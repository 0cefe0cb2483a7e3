"""fairlearn's reduction as a student: its margin in our terms, and its lottery."""

import warnings

import numpy as np
import pytest
from populations import within
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from evenhand.fairness import DemographicParity
from evenhand.fairness.notions import parity_gaps
from evenhand.fairness.tally import Tally
from evenhand.students import MarginNotMet, ReductionStudent
from evenhand.students.reduction import bound_to_everybody
from evenhand.students.student import fit_student
from evenhand.students.within import Within
from evenhand.typing import FloatArray, IntArray
from evenhand.voting import Answers


def population(n: int = 900, n_groups: int = 2) -> tuple[FloatArray, IntArray, IntArray]:
    rng = np.random.default_rng(0)
    groups = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += groups
    return X, (X[:, 0] + rng.normal(size=n) > 0.5).astype(np.int64), groups


@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
def test_the_bound_to_everybody_implies_the_margin(reference: str) -> None:
    # Brute force over tables: whoever is within the bound of everybody is within the margin.
    rng = np.random.default_rng(0)
    tight = 0
    for _ in range(400):
        sizes = rng.integers(5, 40, size=3)
        rule = within(0.2, np.repeat([0, 1, 2], sizes), reference)
        ones = np.array([rng.integers(0, n + 1) for n in sizes])
        counts = np.stack([sizes - ones, ones], axis=1)
        everybody = DemographicParity(margin=0.2, reference="overall").gap(counts)
        if everybody <= bound_to_everybody(rule):
            tight += 1
            assert rule.notion.gap(counts) <= 0.2 + 1e-12
    assert tight > 20


@pytest.mark.parametrize("reference", ["rest", "pairwise", "overall"])
def test_the_mixture_is_within_the_margin_on_its_rows(reference: str) -> None:
    X, y, groups = population(n_groups=3)
    rule = within(0.15, groups, reference)
    student = ReductionStudent().fit(X, y, within=rule)
    probability = student.predict_proba(X)[:, 1]
    rates = np.array([probability[groups == z].mean() for z in range(3)])
    free = DemographicParity(margin=0.15, reference=reference).gap(Tally.of(groups, y, 3, 2).counts)
    sizes = np.bincount(groups)
    counts = np.stack([sizes * (1 - rates), sizes * rates], axis=1)
    gap = float(np.abs(parity_gaps(counts, reference)).max())
    # fairlearn's own tolerance: it stops when its duality gap is below nu, about 0.01 here.
    assert gap <= 0.15 + 0.03 < free


def test_equalized_odds_bounds_the_rates_given_the_label() -> None:
    X, y, groups = population(2000)
    student = ReductionStudent(constraints="equalized_odds").fit(
        X, y, within=within(0.05, groups, "overall")
    )
    probability = student.predict_proba(X)[:, 1]
    for label in (0, 1):
        rows = y == label
        rates = [probability[rows & (groups == z)].mean() for z in (0, 1)]
        assert abs(rates[0] - rates[1]) <= 2 * 0.05 + 0.03


def test_a_row_gets_the_same_decision_in_any_company() -> None:
    X, y, groups = population()
    student = ReductionStudent().fit(X, y, within=within(0.02, groups))
    assert len(student.mixture_.members_) > 1
    whole = student.predict(X)
    assert np.array_equal(student.predict(X[::-1])[::-1], whole)
    assert np.array_equal(student.predict(X[5:6]), whole[5:6])
    zeros = np.where(np.abs(X) < 0.3, 0.0, X)
    negative = np.where(zeros == 0, -0.0, zeros)
    assert np.array_equal(student.predict(zeros), student.predict(negative))


def test_the_share_of_ones_is_the_probability() -> None:
    X, y, groups = population(4000)
    student = ReductionStudent().fit(X, y, within=within(0.02, groups))
    probability = student.predict_proba(X)[:, 1]
    spread = np.sqrt((probability * (1 - probability)).sum())
    # Five standard deviations: a probability of 6e-7.
    assert abs(student.predict(X).sum() - probability.sum()) <= 5 * spread
    assert spread > 0


def answers_of(y: IntArray) -> Answers:
    labels = y.copy()
    labels[::5] = -1
    rows = np.flatnonzero(labels >= 0)
    return Answers(
        labels=labels,
        reasons=np.where(labels >= 0, 0, 3),
        order=rows,
        events=np.arange(len(rows)),
        groups=None,
        n_checks=0,
        n_draws=len(rows),
        n_classes=2,
    )


def test_the_student_is_handed_the_margin_and_the_groups_of_the_answered_rows() -> None:
    X, y, groups = population()
    rule = within(0.2, groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginNotMet)  # one draw of the lottery may be outside
        fitted = fit_student(ReductionStudent(), X, answers_of(y), rule)
    rows = np.arange(len(y)) % 5 > 0
    own = Within(notion=rule.notion, groups=groups[rows], n_groups=2)
    direct = ReductionStudent().fit(X[rows], y[rows], within=own)
    assert fitted.bound
    assert np.array_equal(fitted.model.predict_proba(X), direct.predict_proba(X))
    assert fitted.public_gap == rule.gap(direct.predict(X), 2)
    assert fitted.met == (fitted.public_gap <= 0.2)


def test_a_gap_above_the_margin_is_said() -> None:
    X, y, groups = population(200)
    with pytest.warns(
        MarginNotMet, match=r"gap on the public rows is 0\..*Give ReductionStudent a"
    ):
        fitted = fit_student(ReductionStudent(max_iter=1), X, answers_of(y), within(0.0, groups))
    assert not fitted.met


def test_an_estimator_of_your_own_is_cloned_and_used() -> None:
    X, y, groups = population()
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    student = clone(ReductionStudent(tree)).fit(X, y, within=within(0.1, groups))
    assert any(isinstance(one, DecisionTreeClassifier) for one in student.mixture_.members_)
    assert not hasattr(tree, "tree_")


def test_three_classes_are_refused() -> None:
    X, y, groups = population()
    with pytest.raises(ValueError, match="two classes, coded 0 and 1, got codes up to 2"):
        ReductionStudent().fit(X, y + 1, within=within(0.1, groups))


def test_an_unknown_constraint_gets_the_nearest() -> None:
    X, y, groups = population(50)
    with pytest.raises(ValueError, match="Did you mean 'equalized_odds'"):
        ReductionStudent(constraints="equalised_odds").fit(X, y, within=within(0.1, groups))
