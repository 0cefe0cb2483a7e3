"""Counts of scores beside DP-SGD: what is released, at which price, and thresholds set on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import FALSE_ALARM
from scipy import stats

import evenhand
from evenhand import Budget, DemographicParity, DPSGDClassifier, EqualizedOdds
from evenhand.datasets import Schema
from evenhand.estimators.calibration import CellsNotRead
from evenhand.estimators.dpsgd import COUNTS_SHARE
from evenhand.estimators.group_thresholds import BY_PROBABILITIES
from evenhand.estimators.threshold_rows import ThresholdRows
from evenhand.privacy import SeededNoise
from evenhand.students.score_counts import N_RANGES, count_scores

PARITY = DemographicParity(margin=0.05, reference="pairwise")
BOUNDS = Schema.declared({"income": {"bounds": (-3, 4)}, "job": ["nurse", "clerk", "cook"]})


def fitted(parts: Any, loose: dict[str, Any], **changes: Any) -> Any:
    rows = {"X_public": parts.X_public, "sensitive_features": parts.groups}
    given = {name: changes.pop(name) for name in tuple(changes) if name in rows}
    model = DPSGDClassifier(**{**loose, "score_counts": True, **changes})
    return model.fit(parts.X, parts.y, **{**rows, **given})


def test_the_counts_are_those_of_the_private_rows_scores_and_noise_of_the_stated_scale(
    parts: Any, loose: dict[str, Any]
) -> None:
    left = []
    for seed in range(30):
        model = fitted(parts, loose, n_steps=5, noise=SeededNoise(seed))
        codes = (parts.groups == "b").to_numpy().astype(int)
        exact = count_scores(model.predict_proba(parts.X)[:, 1], codes, 2)
        left.append((model.score_counts_ - exact).ravel() / model.score_noise_)
    assert model.groups_ == ("a", "b")
    drawn = np.concatenate(left)
    assert stats.kstest(drawn, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(drawn * 0.7, "norm").pvalue < FALSE_ALARM  # another scale would be seen


@pytest.mark.slow
def test_steps_and_counts_are_charged_together_before_anything_is_drawn(
    parts: Any, draws: Any
) -> None:
    budget = Budget(epsilon=3.0, delta=1e-6)
    settings = {"budget": budget, "n_steps": 20, "batch_size": 200, "noise": SeededNoise(0)}
    model = fitted(parts, settings)
    (entry,) = model.ledger_.entries
    assert entry.purpose.endswith("scores by group, counted")
    assert entry.settled
    assert model.mechanism_.beside == COUNTS_SHARE * budget.mu_squared
    assert model.mechanism_.epsilon(1e-6) <= 3.0
    assert "with Gaussian releases beside it" in str(model.guarantee_)
    # The counts cost what stands beside, and no less: the noise is that of this price.
    assert model.score_noise_ == pytest.approx(model.mechanism_.beside**-0.5, rel=1e-6)
    assert model.score_noise_ >= model.mechanism_.beside**-0.5
    assert min(draws.spent) > 0.99
    alone = fitted(parts, settings, score_counts=False, sensitive_features=None)
    assert alone.mechanism_.beside == 0
    ratio = model.mechanism_.noise_multiplier / alone.mechanism_.noise_multiplier
    assert 1.0 < ratio < 1 / np.sqrt(1 - 2 * COUNTS_SHARE)


@pytest.mark.slow
def test_thresholds_need_no_public_row_and_keep_the_margin_on_the_rows_that_were_counted(
    parts: Any, loose: dict[str, Any], tmp_path: Path
) -> None:
    model = fitted(parts, {**loose, "schema": BOUNDS}, X_public=None)
    fair = model.with_group_thresholds(fairness=PARITY)
    assert fair.margin_source_ == "noisy counts"
    codes = (parts.groups == "b").to_numpy().astype(int)
    p = model.predict_proba(parts.X)[:, 1]
    free = [(p[codes == z] > 0.5).mean() for z in (0, 1)]
    held = fair.thresholds_.rates(p, codes)
    assert abs(free[0] - free[1]) > 0.15
    # Noise: sd .7 of ten counts of 170 rows. Ranges: a threshold is off by less than the rows of
    # half of one.
    assert abs(held[0] - held[1]) < 0.05 + 5 * model.score_noise_ * np.sqrt(10) / 170 + 0.05
    said = str(fair.guarantee_)
    assert "needs the group of each person" in said
    assert "that set the thresholds" not in said
    assert "the names of the groups" in said
    again = evenhand.load(fair.save(tmp_path / "fair"))
    assert again.margin_source_ == "noisy counts"
    assert again.thresholds_ == fair.thresholds_
    bare = evenhand.load(model.save(tmp_path / "bare"))
    assert bare.score_noise_ == model.score_noise_
    assert bare.with_group_thresholds(fairness=PARITY).thresholds_ == fair.thresholds_


def test_public_rows_stand_beside_the_counts_and_bring_groups_of_their_own(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fitted(parts, loose)
    public = parts.groups_public.to_numpy(dtype=object).copy()
    public[:40] = "c"
    rows = (parts.X_public, public)
    both = model.with_group_thresholds(*rows, fairness=PARITY)
    assert both.groups_ == ("a", "b", "c")
    assert both.margin_source_ == "noisy counts"
    assert "features and groups of the 300 public rows that set" in str(both.guarantee_)
    # Drowned counts change nothing, but that rows are known by their range.
    model.score_noise_ = 1e9
    drowned = model.with_group_thresholds(*rows, fairness=PARITY)
    model.score_counts_ = np.zeros(0)
    bare = model.with_group_thresholds(*rows, fairness=PARITY)
    assert bare.margin_source_ == "public rows"
    p = model.predict_proba(parts.X_public)[:, 1]
    z = np.searchsorted(["a", "b", "c"], public)
    np.testing.assert_allclose(
        drowned.thresholds_.rates(p, z), bare.thresholds_.rates(p, z), atol=0.08
    )


def test_odds_by_counts_go_by_the_models_own_probabilities_unless_rows_have_labels(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fitted(parts, loose)
    odds = EqualizedOdds(margin=0.1)
    expected = model.with_group_thresholds(fairness=odds)
    assert expected.margin_source_ == "expected counts"
    assert BY_PROBABILITIES in expected.guarantee_.warnings
    y = np.where(parts.X_public["income"].fillna(0) > 0.3, "yes", "no")
    rows = (parts.X_public, parts.groups_public)
    labelled = model.with_group_thresholds(*rows, fairness=odds, y_public=y)
    assert labelled.margin_source_ == "calibration rows"
    plain = fitted(parts, loose, score_counts=False, sensitive_features=None)
    plain.student_ = model.student_
    bare = plain.with_group_thresholds(*rows, fairness=odds, y_public=y)
    assert bare.thresholds_ == labelled.thresholds_  # the counts have no labels, and stay out


def test_a_confidence_is_about_public_rows_that_thresholds_were_not_set_on(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fitted(parts, loose)
    sure = DemographicParity(margin=0.3, confidence=0.9)
    fair = model.with_group_thresholds(parts.X_public, parts.groups_public, fairness=sure)
    assert fair.cross_fitted_ is not None
    assert fair.cross_fitted_.n == 300
    with pytest.raises(ValueError, match=r"confidence=0.9 is about rows .* counts of scores have"):
        model.with_group_thresholds(fairness=sure)


def test_a_folder_of_before_there_were_counts_is_read(
    parts: Any, loose: dict[str, Any], tmp_path: Path, reseal: Any
) -> None:
    model = fitted(parts, loose, score_counts=False, sensitive_features=None)
    path = model.save(tmp_path / "model")

    def forget(values: dict[str, Any]) -> None:
        for name in ("score_counts_", "score_noise_"):
            del values["numbers"][name]
        del values["arguments"]["score_counts"]

    reseal(path, forget)
    again = evenhand.load(path)
    assert len(again.score_counts_) == 0
    assert np.array_equal(again.predict(parts.X), model.predict(parts.X))


def test_counts_do_not_outlive_the_scores_that_they_are_of(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fitted(parts, loose)
    ruled = model.with_blind_rule(parts.X_public, parts.groups_public, fairness=PARITY)
    assert len(ruled.score_counts_) == 0
    with pytest.raises(ValueError, match="there is neither"):
        ruled.with_group_thresholds(fairness=PARITY)
    assert len(model.score_counts_) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sensitive_features": None}, "Scores are counted by group, and sensitive_features is"),
        ({"sensitive_features": ["a"] * 600}, "one group only"),
        (
            {"fairness": DemographicParity(margin=0.1, confidence=0.9)},
            "score_counts=True is for thresholds by group, and a margin with confidence=0.9",
        ),
        ({"sensitive_features": ["a", "b"]}, "600"),
    ],
)
def test_what_cannot_be_counted_is_refused_before_anything_is_spent(
    changes: dict[str, Any], words: str, parts: Any, loose: dict[str, Any], draws: Any
) -> None:
    with pytest.raises(ValueError, match=words):
        fitted(parts, loose, **changes)
    assert not draws.spent


def test_scores_of_three_classes_are_not_counted(
    parts: Any, loose: dict[str, Any], draws: Any
) -> None:
    y = np.where(np.arange(600) % 3 == 0, "maybe", parts.y)
    model = DPSGDClassifier(**loose, score_counts=True)
    with pytest.raises(ValueError, match="of two classes, and y has 3"):
        model.fit(parts.X, y, X_public=parts.X_public, sensitive_features=parts.groups)
    assert not draws.spent


def test_thresholds_that_nothing_can_set_say_what_is_missing(
    parts: Any, loose: dict[str, Any]
) -> None:
    plain = fitted(parts, loose, score_counts=False, sensitive_features=None)
    with pytest.raises(
        ValueError, match=r"there is neither. Pass X_public .*\(score_counts=True\)"
    ):
        plain.with_group_thresholds(fairness=PARITY)


def test_rows_on_which_nothing_can_be_set_are_refused_in_words(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fitted(parts, loose, score_counts=False, sensitive_features=None)
    X, groups = parts.X_public, parts.groups_public
    for rows, words in (
        ((X, None), "sensitive_features_public is missing"),
        ((None, groups), "X_public is missing"),
        ((X, ["a"] * len(X)), "one group only"),
    ):
        with pytest.raises(ValueError, match=words):
            model.with_group_thresholds(*rows, fairness=PARITY)
    for rows, words in (
        ((None, groups), "X_public is missing"),
        ((X[:3], ["a", "b", "a"]), r"needs two groups with 2 public rows or more, got 'a' \(2\)"),
    ):
        with pytest.raises(ValueError, match=words):
            model.with_blind_rule(*rows, fairness=PARITY)


@pytest.mark.filterwarnings("ignore::evenhand.students.confident.MarginNotSupported")
def test_a_group_that_noise_left_without_a_row_has_the_threshold_of_all(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fitted(parts, loose)
    model.score_counts_ = model.score_counts_.copy()
    model.score_counts_[1] = -1.0
    rows = (parts.X_public[:50], ["a"] * 25 + ["c"] * 25)
    for public, own in (((), ("a", "b")), (rows, ("a", "b", "c"))):
        with pytest.warns(CellsNotRead, match="No row of group 'b' is left by noisy counts"):
            cut = model.with_group_thresholds(*public, fairness=PARITY, tightening=1.0)
        assert cut.groups_ == own
        assert cut.thresholds_.steps[1] == ((0.5,), (0.0,), (1.0,))
        assert 0 <= cut.held_margin_ <= PARITY.margin


def test_rows_that_are_set_aside_are_not_counted(parts: Any, loose: dict[str, Any]) -> None:
    model = fitted(parts, loose, X_public=None, public_fraction=0.5, n_steps=5)
    n_private = 600 - len(model.rows_set_aside_)
    wide = model.score_noise_ * np.sqrt(2 * N_RANGES)
    assert abs(model.score_counts_.sum() - n_private) < 5 * wide < 200


class Given:
    """A fitted model whose probabilities are the one column of its rows."""

    classes_ = np.array(["no", "yes"])
    guarantee_ = None
    score_counts_, score_noise_ = np.zeros(0), 0.0
    groups_: tuple[str, ...] | None = None

    def predict_proba(self, X: Any) -> Any:
        return np.stack([1 - X[:, 0], X[:, 0]], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("counted", [False, True])
def test_a_tightened_margin_holds_in_the_population_in_five_of_six_models(counted: bool) -> None:
    # Scores of two groups with known laws, so the gap in the population is known. With one
    # standard error one model in six is beyond the margin; without, every second. Of 500 models,
    # five standard errors of a share are .11 and .08.
    rng, laws = np.random.default_rng(0), (stats.beta(2, 2), stats.beta(2, 4))
    margin, beyond = DemographicParity(margin=0.15, reference="pairwise"), []
    for _ in range(500):
        p = [law.rvs(n, random_state=rng) for law, n in zip(laws, (200, 150), strict=True)]
        X, z = np.concatenate(p)[:, None], np.repeat([0, 1], (200, 150))
        model = Given()
        if counted:
            private = np.stack(
                [
                    count_scores(law.rvs(900, random_state=rng), np.zeros(900, dtype=int), 1)[0]
                    for law in laws
                ]
            )
            model.score_noise_, model.groups_ = 6.0, ("0", "1")
            model.score_counts_ = private + rng.normal(0, 6.0, private.shape)
        rows = ThresholdRows.of(model, X, z, margin, None)
        gaps = []
        for tightening in (0.0, 1.0):
            found, held, _ = rows.thresholds(margin, tightening)
            assert held is None if tightening == 0 else 0 < held < 0.15
            gaps.append(_gap(found, laws))
        beyond.append(np.array(gaps) > 0.15)
    plain, tightened = np.mean(beyond, axis=0)
    assert 0.39 < plain < 0.61
    assert 0.08 < tightened < 0.24


def _gap(found: Any, laws: Any) -> float:
    """Return the gap in the population of one threshold for each group."""
    rates = []
    for law, (cuts, _, above) in zip(laws, found.steps, strict=True):
        assert above[-1] == 1.0
        rates.append(float(law.sf(cuts[0])))
    return abs(rates[0] - rates[1])


def test_tightening_is_refused_where_held_out_rows_decide(
    parts: Any, loose: dict[str, Any]
) -> None:
    model = fitted(parts, loose)
    rows = (parts.X_public, parts.groups_public)
    with pytest.raises(ValueError, match=r"tightening=1.0 was given, and confidence=0.9"):
        model.with_group_thresholds(
            *rows, fairness=DemographicParity(margin=0.1, confidence=0.9), tightening=1.0
        )
    with pytest.raises(ValueError, match="tightening must be finite and >= 0"):
        model.with_group_thresholds(*rows, fairness=PARITY, tightening=-1)
    tight = model.with_group_thresholds(*rows, fairness=PARITY, tightening=1.0)
    assert 0 <= tight.held_margin_ < PARITY.margin
    assert model.with_group_thresholds(*rows, fairness=PARITY).held_margin_ == PARITY.margin
