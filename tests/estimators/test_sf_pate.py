"""SF-PATE: what moves when one group changes, what is claimed, and what bad input gets."""

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fairlearn.reductions import DemographicParity as Parity
from fairlearn.reductions import ExponentiatedGradient
from runs import falls_short
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand import (
    EqualizedOdds,
    ErrorParity,
    GeneralizedDemographicParity,
    TruePositiveRateParity,
    load,
)
from evenhand.baselines import PFLDClassifier, RandomizedResponseClassifier
from evenhand.estimators import PATEClassifier, SFPATEClassifier
from evenhand.estimators.margins import Bound
from evenhand.fairness import DemographicParity, FunctionParity
from evenhand.fairness.functions import worst_violation
from evenhand.fairness.groups import encode_groups
from evenhand.fairness.score_parity import score_distance
from evenhand.privacy import Budget, BudgetExceeded, Ledger, SeededNoise, attribute_of
from evenhand.privacy.relation import GROUP_AND_CLASS_LABEL, GROUP_LABEL
from evenhand.students import MarginNotMet, NetworkStudent
from evenhand.teachers import (
    BlackBoxFairTeachers,
    GroupMissingInPartition,
    LogisticTeachers,
    MLPTeachers,
    SklearnTeachers,
)

BUDGET = Budget(epsilon=1.0, delta=1e-6)


def to_all(margin: float, kind: Any = DemographicParity, **settings: Any) -> Any:
    return kind(margin=margin, reference="overall", **settings)


PARITY = to_all(0.0)
BRIER = to_all(0.02, FunctionParity, h=lambda p, truth: ((p - truth) ** 2).sum(axis=1))


def people(seed: int = 0, n: int = 3000, n_groups: int = 2):
    """Rows that tell the group, and labels that lean on it; private groups by name."""
    rng = np.random.default_rng(seed)
    z = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 1] += 2.0 * z
    X[:, 2] -= 1.5 * z
    y = np.where(X[:, 0] + X[:, 1] + rng.logistic(size=n) > n_groups / 2, "yes", "no")
    return X, y, np.array(["a", "b", "c"])[z]


def made(variant: str = "student", **settings) -> SFPATEClassifier:
    usual = {"n_teachers": 40, "fairness": to_all(0.02), "noise": SeededNoise(0), "random_state": 0}
    return SFPATEClassifier(BUDGET, variant, **{**usual, **settings})


def fitted(variant: str = "student", *, n_groups: int = 2, n: int = 3000, **settings):
    X, y, z = people(n=n, n_groups=n_groups)
    return made(variant, **settings).fit(X, y, sensitive_features=z)


def proba_of(model, seed: int = 1, n_groups: int = 2):
    X, y, z = people(seed, n=6000, n_groups=n_groups)
    return model.predict_proba(X), encode_groups(y).codes, z


@pytest.fixture
def seen_votes(monkeypatch):
    """Votes as the teachers cast them, before they are counted; a tripwire at the boundary."""
    from evenhand.estimators.sf_pate import classifier as sf_pate

    cast: list[np.ndarray] = []

    class Watched(sf_pate.Votes):
        @classmethod
        def of(cls, votes, n_classes):
            cast.append(np.array(votes))
            return sf_pate_votes.of(votes, n_classes)

    sf_pate_votes = sf_pate.Votes
    monkeypatch.setattr(sf_pate, "Votes", Watched)
    return cast


# ---------------------------------------------------------------- privacy


@pytest.mark.parametrize("who", [0, 7, 123, 599])
@pytest.mark.parametrize("teachers", [None, MLPTeachers(hidden=(8,), epochs=3)], ids=["lr", "mlp"])
@pytest.mark.parametrize("variant", ["student", "teachers"])
def test_changing_one_persons_group_moves_one_teachers_votes_at_most(
    variant, teachers, who, seen_votes
) -> None:
    X, y, z = people(n=600)
    other = z.copy()
    other[who] = "b" if z[who] == "a" else "a"
    for groups in (z, other):
        made(variant, n_teachers=12, teachers=teachers, n_queries=200).fit(
            X, y, sensitive_features=groups
        )
    before, after = seen_votes
    moved = (before != after).any(axis=1)
    assert before.shape == (12, 200)
    assert moved.sum() <= 1  # bit for bit: every other teacher casts the very same votes


def test_some_change_of_a_group_does_move_a_vote(seen_votes) -> None:
    # The test above could otherwise pass because nothing reads the groups.
    X, y, z = people(n=600)
    for variant in ("student", "teachers"):
        for groups in (z, np.random.default_rng(9).permutation(z)):
            made(variant, n_teachers=12, n_queries=200).fit(X, y, sensitive_features=groups)
        before, after = seen_votes[-2:]
        assert (before != after).any()


def test_with_unit_ids_all_rows_of_a_person_sit_with_one_teacher(seen_votes) -> None:
    X, y, z = people(n=600)
    ids = np.arange(600) // 3
    z = z[ids * 3]
    other = np.where(ids == 50, "b", z)
    assert (other != z).sum() in (0, 3)
    z = np.where(ids == 50, "a", z)
    for groups in (z, other):
        model = made(n_teachers=12, n_queries=200, unit="patient").fit(
            X, y, sensitive_features=groups, unit_ids=ids
        )
    assert (seen_votes[0] != seen_votes[1]).any(axis=1).sum() <= 1
    assert model.guarantee_.unit == "sensitive attribute of one patient"
    assert "whose row each is (the patient of each row)" in model.guarantee_.public


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("variant", ["student", "teachers"])
def test_what_the_ledger_charged_is_the_claim_and_not_a_bit_more(variant, n_groups) -> None:
    model = fitted(variant, n_groups=n_groups, n_queries=500, fairness=to_all(1.0))
    budget = BUDGET.mu_squared
    assert sum(entry.mu_squared for entry in model.ledger_.entries) == pytest.approx(
        model.ledger_.spent
    )
    assert 0.999 * budget < model.ledger_.spent <= budget
    # A second derivation: one count of 500 rows for two groups (or classes), sqrt(2) for more.
    moved = 1.0 if n_groups == 2 or variant == "teachers" else 2.0
    sigma = model.mechanism_.histograms[0].sigma
    votes = budget * (1.0 - model.calibration)
    assert 500 * moved / sigma**2 == pytest.approx(votes, rel=1e-3)
    assert model.guarantee_.mu_squared == pytest.approx(budget)


def test_the_certificate_is_paid_from_the_same_budget() -> None:
    model = fitted(certificate=0.2, n=6000)
    assert 0.999 * BUDGET.mu_squared < model.ledger_.spent <= BUDGET.mu_squared
    table = [e for e in model.ledger_.entries if "table of true and noisy" in e.purpose]
    assert len(table) == 1
    assert table[0].mu_squared == pytest.approx(0.2 * BUDGET.mu_squared, rel=1e-3)
    certificate = model.bounds_[-1]
    # Measured on the very rows: the violation for true groups is below what was certified.
    X, y, z = people(n=6000)
    probabilities, labels = model.predict_proba(X), encode_groups(y).codes
    true = worst_violation(PARITY, probabilities, labels, z)
    assert certificate.says
    assert true <= certificate.value < 1.0


def test_a_certificate_holds_where_the_groups_that_bound_the_student_are_weights() -> None:
    # Of 1000 weak teachers the winner is right and the share is near one half: a student within
    # the margin by such weights is far beyond it by the likeliest groups, which the table counts.
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=6000)
    X = rng.normal(size=(6000, 20))
    X[:, 1] = np.where(z == 1, 2, -2) + 0.5 * X[:, 1]
    y = (X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=6000) > 0).astype(int)
    model = SFPATEClassifier(
        Budget(epsilon=4.0, delta=1e-5),
        fairness=to_all(0.02),
        n_teachers=1000,
        calibration=None,
        certificate=0.3,
        noise=SeededNoise(0),
        random_state=0,
    ).fit(X, y, sensitive_features=z)
    true = worst_violation(PARITY, model.predict_proba(X), y, z)
    table_alone = 0.02
    assert model.within_alpha_
    assert model.noisy_violation_ + table_alone < true <= model.bounds_[-1].value < 0.2


@pytest.mark.parametrize(
    ("notion", "message"),
    [
        (to_all(0.1, EqualizedOdds), "EqualizedOdds is about rows of some classes"),
        (BRIER, "FunctionParity is about rows of some classes, or about a function of unknown"),
        (to_all(0.1, confidence=0.9), "with confidence= a rule around it decides"),
    ],
    ids=["odds", "function", "confidence"],
)
def test_a_certificate_is_refused_where_its_table_says_nothing(notion, message) -> None:
    X, y, z = people(n=600)
    account = Ledger(BUDGET, unit=attribute_of("person"), neighbors=GROUP_LABEL)
    model = made(fairness=notion, certificate=0.1, noise=None)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sensitive_features=z, ledger=account)
    assert account.spent == 0.0


def test_numbers_by_noisy_groups_are_not_taken_for_those_of_a_rule_around_the_student() -> None:
    (X, y, z), (other, labels, groups) = people(n=1500), people(1, n=1500)
    model = made(fairness=to_all(0.3, confidence=0.9)).fit(
        X,
        y,
        sensitive_features=z,
        X_calibration=other,
        y_calibration=labels,
        sensitive_features_calibration=groups,
    )
    found = model.fitted_.true_groups
    assert found is not None
    assert found.beneath
    assert not fitted().fitted_.true_groups.beneath
    # A rule that is put around it later is no other case.
    later = fitted().with_blind_rule(other, groups, fairness=to_all(0.1), y_public=labels)
    assert later.fitted_.true_groups.beneath
    assert (later.fitted_.margin, later.fitted_.true_groups.margin) == (0.1, 0.02)


def test_the_claim_names_unit_neighbors_and_what_is_public() -> None:
    student, teachers = fitted(), fitted("teachers")
    for model in (student, teachers):
        claim = model.guarantee_
        assert (claim.unit, claim.neighbors) == (attribute_of("person"), GROUP_LABEL)
        assert "the features and class labels of all 3000 rows" in claim.public
        assert "that each row is another person" in claim.public
        assert "for the sensitive attribute of each person" in str(claim)
    hidden = fitted("teachers", pull=0.0).guarantee_
    assert hidden.unit == attribute_of("person", and_class_label=True)
    assert hidden.neighbors == GROUP_AND_CLASS_LABEL
    assert "the features of all 3000 rows" in hidden.public
    # Without labels outside the teachers, but with a fair student, they are public all the same.
    assert fitted("student", pull=0.0).guarantee_.neighbors == GROUP_LABEL


def test_with_lambda_0_a_changed_label_moves_one_teacher_and_nothing_else(seen_votes) -> None:
    X, y, z = people(n=600)
    other = y.copy()
    other[17] = "no" if y[17] == "yes" else "yes"
    shares = []
    for labels in (y, other):
        model = made("teachers", pull=0.0, n_teachers=12, n_queries=200)
        model.fit(X, labels, sensitive_features=z)
        shares.append(model.answers_.shares)
    assert (seen_votes[0] != seen_votes[1]).any(axis=1).sum() <= 1
    # With equal shares the students are equal: the labels have no other way to them.
    if np.array_equal(*shares):
        pytest.fail("the changed label moved no vote: choose another row for this test")


def test_the_student_reads_released_shares_and_public_values_only(monkeypatch) -> None:
    # The groups are exchanged behind the shares and sums: the student must not notice.
    from evenhand.estimators.sf_pate import classifier as sf_pate
    from evenhand.estimators.sf_pate import groups as sf_groups

    X, y, z = people()
    sums, release = [], sf_groups.release_group_moments
    monkeypatch.setattr(
        sf_groups,
        "release_group_moments",
        lambda *told, **how: sums.append(release(*told, **how)) or sums[0],
    )
    wanted = made().fit(X, y, sensitive_features=z)
    released = wanted.answers_
    monkeypatch.setattr(sf_pate, "release_shares", lambda *_: released)
    # Shuffled, not renamed: a constraint does not care what groups are called.
    wrong = made().fit(X, y, sensitive_features=np.random.default_rng(9).permutation(z))
    np.testing.assert_array_equal(wanted.student_.coef_, wrong.student_.coef_)
    assert wanted.noisy_violation_ == wrong.noisy_violation_
    assert (sums[0].sums != sums[1].sums).any()  # the groups did differ there


@pytest.mark.filterwarnings("ignore:No (network|student) with a violation")  # nothing hangs on it
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("pull", [None, 0.0], ids=["labels public", "labels protected"])
def test_the_student_of_fair_teachers_reads_what_was_released_and_no_more(
    pull, network, monkeypatch
) -> None:
    # Groups are exchanged behind the shares and the sums, and labels where they are protected.
    from evenhand.estimators.sf_pate import classifier as sf_pate
    from evenhand.estimators.sf_pate import groups as sf_groups

    X, y, z = people(n=900)
    settings = {"pull": pull, "n_teachers": 12, "fairness": to_all(0.05)}
    if network:
        settings |= {
            "student": NetworkStudent(hidden=(4,), epochs=2, fair_epochs=3),
            "fairness": to_all(0.2),
        }
    sums, release = [], sf_groups.release_group_moments
    monkeypatch.setattr(
        sf_groups,
        "release_group_moments",
        lambda *told, **how: sums.append(release(*told, **how)) or sums[0],
    )
    wanted = made("teachers", **settings).fit(X, y, sensitive_features=z)
    released = wanted.answers_
    monkeypatch.setattr(sf_pate, "release_shares", lambda *_: released)
    mixed = np.random.default_rng(9).permutation(len(y))
    labels = y if pull is None else y[mixed]
    wrong = made("teachers", **settings).fit(X, labels, sensitive_features=z[mixed])
    np.testing.assert_array_equal(wanted.predict_proba(X), wrong.predict_proba(X))
    assert wanted.noisy_violation_ == wrong.noisy_violation_
    np.testing.assert_array_equal(sums[0].features, sums[1].features)
    assert (sums[0].sums != sums[1].sums).any()  # the groups did differ there


@pytest.mark.parametrize("n_groups", [2, 3])
def test_with_lambda_0_no_change_of_a_group_and_label_moves_the_sums_beyond_what_is_declared(
    n_groups, monkeypatch
) -> None:
    # Behind the same released shares; each of some people in another group, with another label.
    from evenhand.estimators.sf_pate import classifier as sf_pate
    from evenhand.privacy.noisy_sum import NoisySum

    X, y, z = people(n=300, n_groups=n_groups)
    settings = {"pull": 0.0, "n_teachers": 5, "n_queries": 100, "fairness": to_all(1.0)}
    seen, charge = [], Ledger.release

    def watched(ledger, mechanism, counts, *, purpose):
        assert isinstance(mechanism, NoisySum)
        seen.append((mechanism, np.array(counts, dtype=np.float64)))
        return charge(ledger, mechanism, counts, purpose=purpose)

    shares = made("teachers", **settings).fit(X, y, sensitive_features=z).answers_
    monkeypatch.setattr(sf_pate, "release_shares", lambda *_: shares)
    monkeypatch.setattr(Ledger, "release", watched)
    made("teachers", **settings).fit(X, y, sensitive_features=z)
    most = 0.0
    for who in range(0, 300, 60):
        other_y, other_z = y.copy(), z.copy()
        other_y[who] = "no" if y[who] == "yes" else "yes"
        other_z[who] = "b" if z[who] == "a" else "a"
        made("teachers", **settings).fit(X, other_y, sensitive_features=other_z)
        (mechanism, before), (same, after) = seen[0], seen[-1]
        assert same == mechanism  # a declared sensitivity that moved with the data would tell
        moved = float(np.sqrt(((before - after) ** 2).sum()))
        assert moved <= mechanism.l2_sensitivity * (1 + 1e-12)
        most = max(most, moved / mechanism.l2_sensitivity)
    assert most > 0.5


def test_sums_that_the_groups_agree_with_are_paid_from_the_same_budget() -> None:
    for variant in ("student", "teachers"):
        votes, sums = fitted(variant, calibration=0.3, n_queries=500).ledger_.entries
        assert sums.purpose == "sums of features by group"
        assert sums.mu_squared == pytest.approx(0.3 * BUDGET.mu_squared, rel=1e-3)
        assert votes.mu_squared == pytest.approx(0.7 * BUDGET.mu_squared, rel=1e-3)
    (alone,) = fitted("teachers", calibration=None, n_queries=500).ledger_.entries
    assert alone.mu_squared == pytest.approx(BUDGET.mu_squared, rel=1e-3)
    for settings in ({"calibration": None}, {"answers": "labels"}):
        model = fitted(n_queries=500, **settings)
        (alone,) = model.ledger_.entries
        assert alone.mu_squared == pytest.approx(BUDGET.mu_squared, rel=1e-3)
        said = any("No sums over the groups are paid for" in words for words in model.choices_)
        assert said == ("answers" in settings)


@pytest.mark.parametrize(
    ("variant", "answers"),
    [("student", "labels"), ("student", "shares"), ("teachers", "labels")],
)
def test_a_share_of_the_budget_for_sums_that_nothing_reads_is_refused(variant, answers) -> None:
    with pytest.raises(ValueError, match=rf"calibration=0.3 .*answers='{answers}' nothing reads"):
        fitted(variant, answers=answers, calibration=0.3)


def test_teachers_that_know_little_do_not_hide_how_far_apart_the_groups_are() -> None:
    # 300 teachers of ten rows each are undecided, and by their votes the groups look alike; by sums
    # the student's violation, read with noisy groups, is that for the true ones.
    X, y, z = people(n=3000)
    found = {}
    for calibration in (None, 0.5):
        model = made(n_teachers=300, fairness=to_all(1.0), calibration=calibration)
        model.fit(X, y, sensitive_features=z)
        probabilities, labels = model.predict_proba(X), encode_groups(y).codes
        true = worst_violation(PARITY, probabilities, labels, z)
        found[calibration] = model.noisy_violation_ / true
    assert found[0.5] == pytest.approx(1.0, abs=0.15)
    assert abs(found[0.5] - 1.0) < abs(found[None] - 1.0)


@pytest.mark.filterwarnings("ignore:The student predicts one class")  # the noise has no seed
def test_guarantees_and_ledgers_of_records_are_refused() -> None:
    X, y, z = people(n=900)
    record = PATEClassifier(BUDGET, n_teachers=10, random_state=0)
    record.fit(X[:600], y[:600], X_public=X[600:])
    mine = made(n_teachers=10, noise=None).fit(X, y, sensitive_features=z)
    with pytest.raises(ValueError, match="Privacy of an attribute alone is not privacy of the rec"):
        record.guarantee_ + mine.guarantee_
    account = Ledger(Budget(epsilon=5.0, delta=1e-6))
    with pytest.raises(ValueError, match=r"this run for change one group label sensitive attribut"):
        made(noise=None).fit(X, y, sensitive_features=z, ledger=account)
    assert account.spent == 0.0
    own = Ledger(
        Budget(epsilon=1.2, delta=1e-6), unit=attribute_of("person"), neighbors=GROUP_LABEL
    )
    made(noise=None).fit(X, y, sensitive_features=z, ledger=own)
    assert own.spent > 0
    spent = own.spent
    with pytest.raises(BudgetExceeded, match=r"has epsilon=0\.\d+ left, and this run asks for eps"):
        made(noise=None).fit(X, y, sensitive_features=z, ledger=own)
    assert own.spent == spent
    with pytest.raises(ValueError, match="a ledger draws its own noise"):
        made().fit(X, y, sensitive_features=z, ledger=own)


@pytest.mark.filterwarnings("ignore:No student with a violation")  # it is about names
def test_declared_groups_may_be_empty_so_that_no_name_comes_from_the_data() -> None:
    X, y, z = people(n=900)
    model = made(groups=("a", "b", "c"), n_teachers=10).fit(X, y, sensitive_features=z)
    assert model.groups_ == ("a", "b", "c")
    assert model.answers_.n_classes == 3
    with pytest.raises(ValueError, match=r"row \d+ .*not among the known groups: 'a', 'c'"):
        made(groups=("a", "c")).fit(X, y, sensitive_features=z)


# ---------------------------------------------------------------- fairness


@pytest.mark.slow
@pytest.mark.parametrize("answers", ["smoothed", "shares", "labels"])
def test_a_fair_student_is_near_alpha_for_the_true_groups(answers: str) -> None:
    before, after = [], []
    for seed in range(10):
        X, y, z = people(seed, n=12_000)
        model = made(
            answers=answers,
            n_teachers=100,
            fairness=to_all(0.01),
            noise=SeededNoise(seed),
            random_state=seed,
        ).fit(X, y, sensitive_features=z)
        free = LogisticRegression().fit(X, y)
        new, labels, groups = people(100 + seed, n=6000)
        truth = encode_groups(labels).codes
        for found, scores in ((before, free), (after, model)):
            probabilities = scores.predict_proba(new)
            found.append(worst_violation(PARITY, probabilities, truth, groups))
        assert model.within_alpha_
        assert model.noisy_violation_ <= 0.01
    # Labels are wrong for a part of the rows, in both groups alike, which hides differences.
    times = 2 if answers == "labels" else 4
    assert not falls_short(np.array(before) - times * np.array(after))
    assert falls_short(np.array(before) - times * np.array(before))  # a free student


def test_fair_teachers_hand_their_fairness_on() -> None:
    X, y, z = people(n=12_000)
    model = made("teachers", n_teachers=60, fairness=to_all(0.01)).fit(X, y, sensitive_features=z)
    probabilities, labels, groups = proba_of(model)
    free = LogisticRegression().fit(X, y)
    before = worst_violation(PARITY, free.predict_proba(people(1, n=6000)[0]), labels, groups)
    assert worst_violation(PARITY, probabilities, labels, groups) < before / 2
    assert repr(model.expected_rates_) == "<private>"
    assert 0 <= model.expected_rates_.reveal_disparity_to_curator() <= 1
    assert model.noisy_violation_ <= 0.01
    blind = fitted("teachers", calibration=None)
    assert math.isnan(blind.noisy_violation_)
    assert blind.fitted_.to_dict()["within_alpha"] is None  # nobody looked, and not "true"
    assert fitted("teachers").fitted_.to_dict()["within_alpha"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pull", "times"), [(None, 4), (0.0, 2)], ids=["labels public", "labels protected"]
)
def test_a_vote_of_fair_teachers_is_not_fair_and_its_student_is(pull, times) -> None:
    # 200 teachers of 20 rows each: whatever they hold equal there is probability.
    found = []
    for seed in range(24):
        X, y, z = people(seed, n=4000)
        new, labels, groups = people(100 + seed, n=6000)
        truth = encode_groups(labels).codes
        for calibration in (None, 0.5):
            model = made(
                "teachers", n_teachers=200, fairness=to_all(0.01), pull=pull,
                calibration=calibration, noise=SeededNoise(seed), random_state=seed,
            ).fit(X, y, sensitive_features=z)  # fmt: skip
            probabilities = model.predict_proba(new)
            found.append(worst_violation(PARITY, probabilities, truth, groups))
    vote, student = np.reshape(found, (24, 2)).T
    assert falls_short(0.01 - vote)  # above alpha, and not by a draw
    assert not falls_short(vote - times * student)
    assert falls_short(vote - times * vote)  # a student that is held to nothing


@pytest.mark.filterwarnings("ignore:No student with a violation")  # then it says so itself
def test_a_notion_about_labels_is_not_held_where_labels_are_protected() -> None:
    model = fitted("teachers", pull=0.0, fairness=to_all(0.02, EqualizedOdds), n_queries=500)
    (alone,) = model.ledger_.entries
    assert alone.mu_squared == pytest.approx(BUDGET.mu_squared, rel=1e-3)
    assert math.isnan(model.noisy_violation_)
    assert "not held to the margin: the notion is about class labels" in model.choices_[-1]
    held = fitted("teachers", pull=0.1, fairness=to_all(0.05, EqualizedOdds))
    free = fitted("teachers", pull=0.1, fairness=to_all(1.0, EqualizedOdds))
    assert held.within_alpha_ == (held.noisy_violation_ <= 0.05)
    assert held.noisy_violation_ < free.noisy_violation_  # the best student found is kept
    assert len(held.choices_) == 1


@pytest.mark.parametrize(("pull", "shown"), [(0.0, False), (0.3, True)])
def test_a_student_shows_its_fairness_function_no_label_that_is_protected(
    pull: float, shown: bool
) -> None:
    class Curious(DemographicParity):
        """Looks at true classes, though it says that it needs none."""

        rows: list[np.ndarray] = []  # noqa: RUF012  # of this test alone

        def among(self, truth):
            if truth.ndim == 2:  # the student's rows; teachers are stacked
                self.rows.append(truth)
            return super().among(truth)

    fitted("teachers", fairness=to_all(0.02, Curious), pull=pull)
    seen = [truth for truth in Curious.rows if len(truth) == 3000]
    assert seen
    assert all(bool(truth.any()) is shown for truth in seen)


def test_parity_of_the_whole_score_brings_the_laws_together() -> None:
    whole = fitted(fairness=to_all(0.02, GeneralizedDemographicParity), n=12_000)
    free = fitted(fairness=to_all(1.0), n=12_000)
    apart = [score_distance(p[:, 1], z) for p, _, z in map(proba_of, (free, whole))]
    assert apart[1] < apart[0] / 3


@pytest.mark.parametrize("variant", ["student", "teachers"])
def test_a_function_of_ones_own_works_for_both_variants(variant: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginNotMet)
        model = fitted(variant, fairness=BRIER, n=6000)
    assert set(model.predict(people(2)[0])) == {"no", "yes"}
    assert model.guarantee_.epsilon == 1.0


@pytest.mark.parametrize("notion", [EqualizedOdds, ErrorParity, TruePositiveRateParity])
def test_notions_about_true_classes_use_the_public_labels(notion: Any) -> None:
    model = fitted(fairness=to_all(0.03, notion), n=6000)
    assert model.within_alpha_


def test_three_groups_are_held_to_the_population() -> None:
    model = fitted(n_groups=3, n=12_000, n_teachers=100, fairness=to_all(0.02))
    probabilities, labels, groups = proba_of(model, n_groups=3)
    free = fitted(n_groups=3, n=12_000, n_teachers=100, fairness=to_all(1.0))
    before = worst_violation(PARITY, *proba_of(free, n_groups=3))
    assert worst_violation(PARITY, probabilities, labels, groups) < before / 2


def test_networks_teach_and_learn_in_both_variants() -> None:
    student = NetworkStudent(hidden=(16,), epochs=4, fair_epochs=6)
    mlp = MLPTeachers(hidden=(8,), epochs=5)
    X, y, z = people(n=6000)
    free = LogisticRegression().fit(X, y)
    test, labels, groups = people(1, n=6000)[0], *proba_of_groups()
    before = worst_violation(PARITY, free.predict_proba(test), labels, groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginNotMet)
        fair = made(student=student, fairness=to_all(0.05)).fit(X, y, sensitive_features=z)
        taught = made("teachers", student=student, teachers=mlp).fit(X, y, sensitive_features=z)
    after = worst_violation(PARITY, fair.predict_proba(test), labels, groups)
    assert after < before / 2
    assert fair.score(test, people(1, n=6000)[1]) > 0.6
    assert taught.score(test, people(1, n=6000)[1]) > 0.6
    after = worst_violation(PARITY, taught.predict_proba(test), labels, groups)
    assert after < before / 2


def proba_of_groups():
    _, y, z = people(1, n=6000)
    return encode_groups(y).codes, z


@pytest.mark.slow
def test_any_classifier_tells_groups_and_any_fair_one_teaches() -> None:
    tree = SklearnTeachers(DecisionTreeClassifier(max_depth=3))
    assert fitted(teachers=tree, n_teachers=10).score(*people(1)[:2]) > 0.6
    fair = BlackBoxFairTeachers(
        ExponentiatedGradient(LogisticRegression(), Parity(difference_bound=0.02), max_iter=5)
    )
    model = fitted("teachers", teachers=fair, n_teachers=6, n=1200)  # and nothing is warned of
    assert model.score(*people(1)[:2]) > 0.5


# ---------------------------------------------------------------- persistence, bounds


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"certificate": 0.1},
        {"variant": "teachers"},
        {"fairness": to_all(0.02, GeneralizedDemographicParity, order=3)},
        {"student": NetworkStudent(hidden=(8,), epochs=2, fair_epochs=2), "fairness": to_all(0.5)},
    ],
    ids=["student", "certificate", "teachers", "moments", "network"],
)
def test_a_saved_model_comes_back_with_its_claim(settings, tmp_path) -> None:
    X, y, z = people(n=900)
    model = made(**{"n_teachers": 10, **settings}).fit(X, y, sensitive_features=z)
    found = load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(X), atol=1e-12)
    assert found.guarantee_ == model.guarantee_
    assert found.bounds_ == model.bounds_
    assert found.get_params()["variant"] == model.variant
    assert found.ledger_.spent == pytest.approx(model.ledger_.spent)
    np.testing.assert_array_equal(found.answers_.shares, model.answers_.shares)
    assert found.within_alpha_ == model.within_alpha_


def test_the_bounds_say_which_of_them_says_anything() -> None:
    names = [bound.name for bound in fitted().bounds_]
    assert "SF-PATE Theorem 1, as printed" in names
    assert "SF-PATE Corollary 1, as printed" in names
    assert not any(bound.says for bound in fitted().bounds_)
    assert "not released" in fitted().bounds_[-1].words
    bought = fitted(certificate=0.3, n=6000).bounds_[-1]
    assert isinstance(bought, Bound)
    assert bought.says
    taught = fitted("teachers").bounds_
    assert {bound.name for bound in taught} == {
        "SF-PATE Theorem 2",
        "Expected rates of the noisy vote by group, exact",
    }


def test_the_eta_that_is_shown_is_where_the_theorem_reaches_1() -> None:
    from evenhand.estimators.sf_pate.bounds import bounds_of_student
    from evenhand.fairness.bounds import alpha_from_eta

    alpha, p = 0.02, 0.3
    told = bounds_of_student(
        alpha=alpha,
        noisy_shares=np.array([p, 1 - p]),
        names=("a", "b"),
        certificate=None,
        alpha_of_likeliest=alpha,
    )
    eta = [float(bound.words.split("eta < ")[1].split(";")[0]) for bound in told[:3]]
    assert 2 * eta[0] / p**2 + alpha == pytest.approx(1.0, abs=0.003)
    assert 2 * eta[1] / (p * (p - eta[1])) + alpha == pytest.approx(1.0, abs=0.003)
    assert alpha_from_eta(alpha, eta[2], p, p) == pytest.approx(1.0, abs=0.003)


# ---------------------------------------------------------------- bad input


def test_groups_missing_for_some_rows_are_not_to_be_left_out() -> None:
    X, y, z = people(n=600)
    holes = pd.Series(z, dtype=object)
    holes[[3, 5]] = None
    with pytest.raises(ValueError, match=r"is missing in row 4 .* To leave these rows out"):
        made().fit(X, y, sensitive_features=holes)
    told = made(n_teachers=5).fit(X, y, sensitive_features=holes.fillna("unknown"))
    assert told.groups_ == ("a", "b", "unknown")


def test_a_teacher_without_some_group_is_told_to_the_curator_without_counts() -> None:
    X, y, z = people(n=600)
    z = np.where(np.arange(600) < 12, "b", "a")
    model = made("teachers", n_teachers=40)
    with pytest.warns(
        GroupMissingInPartition, match="At least one of 40 teachers holds no"
    ) as said:
        model.fit(X, y, sensitive_features=z)
    assert "12" not in str(said[0].message)
    assert repr(model.groups_of_teachers_) == "<private>"
    told = model.groups_of_teachers_.reveal_to_curator()
    assert len(told.missing["b"]) >= 28  # 12 records reach 12 of 40 teachers at most
    assert "a" not in told.missing
    assert told.enough == 1
    for forbidden in (bool, list, lambda held: held == held):
        with pytest.raises(TypeError, match="Which groups a teacher holds is private"):
            forbidden(model.groups_of_teachers_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(n_teachers=40).fit(X, y, sensitive_features=z)  # a fair student needs no such teacher


@pytest.mark.parametrize("kind", [SFPATEClassifier, RandomizedResponseClassifier, PFLDClassifier])
def test_the_attribute_among_the_public_features_is_refused_and_so_are_amounts(kind) -> None:
    X, y, z = people(n=400)
    table = pd.DataFrame(X, columns=list("klmn")).assign(sex=z)
    model = kind(BUDGET, fairness=to_all(0.02))
    with pytest.raises(ValueError, match=r"X has the column 'sex'.*would not be protected.*drop"):
        model.fit(table, y, sensitive_features=table["sex"])
    with pytest.raises(ValueError, match=r"X has the column 'sex'.*would not be protected.*drop"):
        model.fit(table, y, sensitive_features=table[["sex", "k"]])
    with pytest.raises(ValueError, match="has more than 50 values"):  # names of groups are public
        model.fit(X, y, sensitive_features=X[:, 0])
    two = np.random.default_rng(0).integers(0, 40, (400, 2))
    with pytest.raises(ValueError, match="have more than 200 combinations"):
        model.fit(X, y, sensitive_features=two)


def test_an_alpha_that_no_model_meets_keeps_the_best_and_says_so() -> None:
    fixed = to_all(0.001, FunctionParity, h=lambda p, truth: truth[:, 1] + 0.0 * p[:, 0])
    with pytest.warns(MarginNotMet, match=r"of one's own of at most 0\.001 was found"):
        model = fitted(fairness=fixed, n=900, n_teachers=10)
    assert not model.within_alpha_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": None}, "budget must be a Budget, got None"),
        ({"variant": "pupil"}, "variant must be one of 'student', 'teachers', got 'pupil'"),
        ({"fairness": DemographicParity(margin=0.1)}, "compares each group with everybody"),
        ({"fairness": "equal_odds"}, "fairness must be a notion such as"),
        ({"pull": -1.0}, "pull must be finite and >= 0"),
        ({"step": 0.0}, "step must be finite and > 0"),
        ({"answers": "votes"}, "answers must be one of 'smoothed', 'shares', 'labels'"),
        ({"n_teachers": 0}, "n_teachers must be at least 1"),
        ({"n_teachers": 5000}, "n_teachers must be at most the number of records"),
        ({"n_queries": 0}, "n_queries must be at least 1"),
        ({"calibration": 1.0}, "calibration must lie strictly between 0 and 1"),
        ({"certificate": 1.5}, "certificate must lie strictly between 0 and 1"),
        ({"variant": "teachers", "certificate": 0.1}, "Leave it out, or use variant='student'"),
        ({"student": LogisticRegression()}, "student must be a NetworkStudent"),
        (
            {"variant": "teachers", "teachers": SklearnTeachers()},
            "SklearnTeachers reads no groups, so nothing would make its teachers fair",
        ),
    ],
    ids=str,
)
def test_wrong_settings_are_refused_with_the_way_out(settings, message) -> None:
    X, y, z = people(n=600)
    model = made().set_params(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sensitive_features=z)


def test_missing_groups_one_group_and_certificates_of_units_are_refused() -> None:
    X, y, z = people(n=600)
    with pytest.raises(ValueError, match="and sensitive_features is missing"):
        made().fit(X, y)
    with pytest.raises(ValueError, match="hold one group only"):
        made().fit(X, y, sensitive_features=["a"] * 600)
    with pytest.raises(ValueError, match="one person may have many, whose counts would all move"):
        made(certificate=0.1).fit(X, y, sensitive_features=z, unit_ids=np.arange(600))


def test_constrained_teachers_take_over_the_settings_of_plain_ones() -> None:
    from evenhand.teachers.fair import constrained

    assert constrained(LogisticTeachers(C=7.0), to_all(0.1)).C == 7.0
    network = constrained(MLPTeachers(hidden=(5,), epochs=3), to_all(0.1))
    assert (network.hidden, network.epochs, network.fairness) == ((5,), 3, to_all(0.1))
    assert constrained(network, to_all(0.5)) is network
