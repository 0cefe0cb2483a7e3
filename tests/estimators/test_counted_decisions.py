"""Margins that are read on drawn rows: what the release says, costs, and sets right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy import stats

from evenhand import Budget, DemographicParity, FairPATEClassifier, FairSharesClassifier
from evenhand._units import ids_of
from evenhand.estimators.counted_decisions import PURPOSE, CountedDecisions
from evenhand.estimators.synthetic_rows import SyntheticRows
from evenhand.estimators.within_margin import MarginClassifier
from evenhand.fairness import EqualizedOdds, ErrorParity, FalsePositiveParity, gap_of
from evenhand.fairness.tally import JointTally, Tally
from evenhand.privacy import FloatNoise, Ledger, SeededNoise
from evenhand.students.within import Within

PARITY = DemographicParity(margin=0.05, reference="pairwise")
ADDED, REPLACED = "add or remove one", "replace one"


def released(
    decided: Any, groups: Any, *, neighbors: str = ADDED, unit: str = "record", **more: Any
) -> tuple[CountedDecisions, Ledger]:
    noise = more.pop("noise", SeededNoise(0))
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-5), noise=noise, unit=unit, neighbors=neighbors)
    codes = np.asarray(decided, dtype=np.int64), np.asarray(groups, dtype=np.int64)
    return CountedDecisions.release(*codes, more.pop("shape", (2, 3)), ledger, **more), ledger


def test_decisions_are_counted_by_group_with_the_noise_that_the_ledger_pays_for(
    draws: Any,
) -> None:
    rng = np.random.default_rng(0)
    groups, decided = rng.integers(2, size=500), rng.integers(3, size=500)
    exact, left = Tally.of(groups, decided, 2, 3).counts, []
    for seed in range(300):
        found, ledger = released(decided, groups, noise=SeededNoise(seed))
        left.append((found.counts - exact).ravel() / found.sigma)
    assert ledger.spent_epsilon(1e-5) == pytest.approx(1.0)
    assert min(draws.spent) > 0.99  # when noise is drawn, all of it is charged
    # Adding a record moves one count by 1, and mu is 1 over sigma.
    assert found.sigma == pytest.approx(1.0 / ledger.budget.mu, rel=1e-6)
    drawn = np.concatenate(left)
    assert stats.kstest(drawn, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(drawn * 0.7, "norm").pvalue < FALSE_ALARM  # another scale would be seen


def test_who_is_replaced_is_in_two_cells_and_a_person_in_a_few() -> None:
    decided, groups = [0, 1, 2, 2], [0, 1, 0, 1]
    plain = released(decided, groups)[0].sigma
    replaced = released(decided, groups, neighbors=REPLACED)[0].sigma
    assert replaced == pytest.approx(2**0.5 * plain, rel=1e-6)
    units = ids_of(["ann", "ann", "ann", "bob"])
    quiet = FloatNoise()
    quiet.gaussian = lambda sigma, size: np.zeros(size)  # type: ignore[method-assign]
    found, _ = released(decided, groups, unit="person", units=units, per_unit=2, noise=quiet)
    assert found.counts.tolist() == [[1, 0, 0], [0, 1, 1]]  # of ann the first two
    assert found.sigma == pytest.approx(2 * plain, rel=1e-6)
    cells = np.array([0, 1, 1, 3])  # two groups, and two true classes of each
    found, _ = released([0, 1, 1, 0], cells, shape=(2, 2, 2), noise=quiet)
    assert found.counts.tolist() == [[[1, 0], [0, 2]], [[0, 0], [1, 0]]]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Any, Any]:
    """How many rows of each group are given each class: private ones, and drawn ones."""
    shape = draw(st.sampled_from([(2, 2), (3, 2), (2, 3), (4, 3)]))
    counts = st.lists(st.integers(0, 60), min_size=shape[0] * shape[1], max_size=99)
    private, drawn = (np.array(draw(counts)[: shape[0] * shape[1]]).reshape(shape) for _ in "ab")
    return private, drawn + 1


def rows_of(table: Any) -> tuple[Any, Any]:
    groups, decided = np.nonzero(table)
    times = table[groups, decided]
    return np.repeat(groups, times), np.repeat(decided, times)


@given(of=tables(), reference=st.sampled_from(["pairwise", "rest", "overall"]))
@settings(max_examples=60, deadline=None)
def test_the_gap_becomes_that_of_many_private_rows_whose_counts_have_no_noise(
    of: tuple[Any, Any], reference: str
) -> None:
    private, drawn = of
    groups, decided = rows_of(drawn)
    notion = DemographicParity(margin=0.05, reference=reference)
    within = Within(notion=notion, groups=groups, n_groups=len(drawn), X=np.zeros((len(groups), 1)))
    many = CountedDecisions(counts=(private + 1.0) * 1e9, sigma=1e-9)
    right = many.set_right(within, decided)
    # By hand: the rates of the private rows, with the weights of the groups that are drawn.
    rates = (private + 1) / (private + 1).sum(axis=1, keepdims=True)
    sizes = drawn.sum(axis=1)
    by_hand = 0.0
    for z in range(len(sizes)):
        others = np.delete(np.arange(len(sizes)), z)
        if reference == "pairwise":
            apart = rates[others] - rates[z]
        elif reference == "rest":
            apart = sizes[others] @ rates[others] / sizes[others].sum() - rates[z]
        else:
            apart = sizes @ rates / sizes.sum() - rates[z]
        by_hand = max(by_hand, float(np.abs(apart).max()))
    found = right.gap(decided, drawn.shape[1])
    assert found == pytest.approx(by_hand, abs=1e-6)
    assert right.source == "counted decisions"
    # Of another model the same is added.
    other = np.roll(decided, 1)
    plain, moved = (one.differences(drawn.shape[1]) for one in (within, right))
    hard, hard_other = (np.eye(drawn.shape[1])[one] for one in (decided, other))
    if drawn.shape[1] == 2:
        hard, hard_other = hard[:, 1:], hard_other[:, 1:]
    np.testing.assert_allclose(
        moved.apart(hard) - plain.apart(hard),
        moved.apart(hard_other) - plain.apart(hard_other),
        atol=1e-12,
    )


@pytest.mark.parametrize("notion", [EqualizedOdds, ErrorParity, FalsePositiveParity])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_gap_among_true_classes_becomes_that_of_many_private_rows(
    notion: Any, n_classes: int
) -> None:
    rng = np.random.default_rng(n_classes)
    private = rng.integers(1, 60, size=(3, n_classes, n_classes))
    groups, decided = rng.integers(3, size=400), rng.integers(n_classes, size=400)
    chances = rng.dirichlet(np.ones(n_classes), 400)
    fair = notion(margin=0.05, reference="pairwise")
    within = Within(notion=fair, groups=groups, n_groups=3, X=np.zeros((400, 1)), labels=chances)
    right = CountedDecisions(counts=private * 1e9, sigma=1e-9).set_right(within, decided)
    # Rates of decisions given the true class are the private ones, shares of classes are as drawn.
    rates = private / private.sum(axis=-1, keepdims=True)
    held = np.array([chances[groups == z].sum(axis=0) for z in range(3)])
    joint = held[:, :, None] * rates
    expected = fair.gap(np.round(joint * 1e12).astype(np.int64))
    assert right.gap(decided, n_classes) == pytest.approx(expected, abs=1e-6)
    assert within.gap(decided, n_classes) != pytest.approx(expected, abs=1e-3)


def test_what_noise_or_few_records_explain_moves_nothing() -> None:
    groups, decided = np.repeat([0, 1], 500), np.tile([0, 1], 500)
    within = Within(notion=PARITY, groups=groups, n_groups=2, X=np.zeros((1000, 1)))
    loud = CountedDecisions(counts=np.array([[400.0, 600.0], [900.0, 100.0]]), sigma=1e4)
    few = CountedDecisions(counts=np.array([[4.0, 6.0], [90_000.0, 10_000.0]]), sigma=0.01)
    lost = CountedDecisions(counts=np.array([[-40.0, -6.0], [90_000.0, 10_000.0]]), sigma=30.0)
    assert np.abs(loud.set_right(within, decided).moved).max() < 1e-3
    for one in (few, lost):
        moved = one.set_right(within, decided).moved
        assert moved is not None
        assert np.abs(moved[0]).max() < 0.01
        np.testing.assert_allclose(moved[1], [0.4, -0.4], atol=0.01)


def alike_columns(n: int, seed: int) -> tuple[pd.DataFrame, Any, Any]:
    """Return six columns that are one in group b, which counts of one column do not tell."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(2, size=n)
    x = rng.normal(size=(n, 6))
    x[groups == 1] = x[groups == 1][:, :1]
    age = rng.normal(size=n) - 0.5 * groups
    y = x.sum(axis=1) + 1.5 * age + 0.5 * rng.normal(size=n) > 4
    X = pd.DataFrame(x, columns=[f"x{i}" for i in range(6)]).assign(age=age)
    return X, y.astype(int), np.array(["a", "b"])[groups]


def kept(kind: Any, notion: Any, data: tuple[Any, Any, Any], **settings: Any) -> tuple[Any, float]:
    """Fit within .03 on drawn rows; return the model, and its gap on the private rows."""
    X, y, groups = data
    fair = notion(margin=0.03, reference="pairwise")
    model = kind(
        Budget(epsilon=8.0, delta=1e-6),
        fair,
        noise=SeededNoise(0),
        random_state=0,
        n_teachers=40,
        **settings,
    ).fit(X, y, sensitive_features=groups)
    assert model.within_margin_
    assert model.ledger_.spent_epsilon(1e-6) <= 8.0
    joint = JointTally.of((groups == "b").astype(int), y, model.predict(X), 2, 2)
    return model, gap_of(fair, joint).value


def n_releases(model: Any) -> int:
    return sum(PURPOSE in entry.purpose for entry in model.ledger_.entries)


@pytest.mark.slow
def test_a_margin_of_drawn_rows_is_kept_on_the_private_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, alone = alike_columns(12_000, 0), SyntheticRows(pairs=False)
    model, gap = kept(FairSharesClassifier, DemographicParity, data, public=alone)
    odds, gap_of_odds = kept(FairSharesClassifier, EqualizedOdds, data, public=alone)
    half = SyntheticRows(pairs=False, share=0.5)
    of_labels, _ = kept(
        FairPATEClassifier, DemographicParity, data, public=half, answer_margin=False
    )
    for counted in (model, odds, of_labels):
        assert n_releases(counted) == 1
        assert counted.margin_source_ == "counted decisions"
    monkeypatch.setattr(MarginClassifier, "_counts_decisions", lambda *_: False)
    plain, beyond = kept(FairSharesClassifier, DemographicParity, data, public=alone)
    assert n_releases(plain) == 0
    assert plain.margin_source_ == "drawn rows"
    # By drawn rows alone .03 becomes .076. Gaps vary by .006, those of odds by .01, by the draws.
    assert gap < 0.05 < beyond
    assert gap_of_odds < 0.06


def test_a_margin_of_1_holds_anyway_and_nothing_is_counted_for_it() -> None:
    X, y, groups = alike_columns(4000, 1)
    model = FairSharesClassifier(
        Budget(epsilon=3.0, delta=1e-6),
        DemographicParity(margin=1.0),
        public=SyntheticRows(pairs=False),
        noise=SeededNoise(0),
        random_state=0,
    ).fit(X, y, sensitive_features=groups)
    assert not any(PURPOSE in entry.purpose for entry in model.ledger_.entries)
    assert model.margin_source_ == "drawn rows"
