"""Measurements of synthetic rows: each against its definition, by hand or by another library."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import FAINT
from runs import FALSE_ALARM
from scipy.stats import ks_2samp, ttest_1samp
from sklearn.metrics import roc_auc_score

from evenhand.generators import MarginalSynthesizer, evaluate, even_rates
from evenhand.generators.balance import balance_of, distribution_disparity, kl_to_uniform
from evenhand.generators.tables import even_rates as even_rates_module
from evenhand.generators.tables.fidelity import fidelity
from evenhand.generators.tables.utility import utility
from evenhand.generators.utility import ModelUtility, auroc
from evenhand.privacy import Budget, SeededNoise
from evenhand.testing.generators import BUDGET, ROLES, SCHEMA, table

pytestmark = FAINT


def test_the_distances_from_even_groups_are_their_formulas() -> None:
    p = np.array([0.5, 0.3, 0.2])
    by_hand = sum(x * math.log(x / (1 / 3)) for x in p)
    assert kl_to_uniform(p) == pytest.approx(by_hand)
    assert kl_to_uniform(np.array([1.0, 0.0])) == pytest.approx(math.log(2))
    assert kl_to_uniform(np.full(4, 0.25)) == 0.0
    assert distribution_disparity(np.array([1.0, 0.0])) == pytest.approx(math.sqrt(0.5))


def test_a_group_without_a_row_counts_against_the_balance() -> None:
    frame = pd.DataFrame({"y": ["a", "b"] * 50, "s": ["u"] * 100})
    found = balance_of(frame, label="y", sensitive=["s"], groups=("u", "v"))
    assert found.kl.value == pytest.approx(math.log(2))
    assert found.groups == (("u", 1.0), ("v", 0.0))
    assert [share for _, share in found.cells] == [0.5, 0.5]
    assert balance_of(frame, label="y", sensitive=["s"]).kl.value == 0.0


@given(
    scores=st.lists(st.sampled_from([0.1, 0.2, 0.5, 0.9]), min_size=4, max_size=30),
    data=st.data(),
)
def test_the_auroc_is_scikit_learns_with_ties_and_weights(
    scores: list[float], data: st.DataObject
) -> None:
    n = len(scores)
    truth = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), float)
    area = auroc(truth, np.array(scores))(weights)
    if not (weights[truth].sum() and weights[~truth].sum()):
        assert math.isnan(area)
    else:
        assert area == pytest.approx(roc_auc_score(truth, scores, sample_weight=weights))


def test_columns_and_pairs_are_compared_as_they_are_defined() -> None:
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"x": rng.normal(size=500), "w": rng.normal(size=500)})
    real["z"] = rng.choice(["a", "b", "c"], 500, p=[0.5, 0.3, 0.2])
    made = pd.DataFrame({"x": rng.normal(0.5, 1, 400), "w": rng.normal(size=400)})
    made["w"] += made["x"]
    made["z"] = rng.choice(["a", "b"], 400)
    found = fidelity(real, made)
    scores = {column.name: column.score for column in found.columns}
    assert scores["x"] == pytest.approx(1 - ks_2samp(real["x"], made["x"]).statistic)
    shares = [frame["z"].value_counts(normalize=True) for frame in (real, made)]
    apart = sum(abs(shares[0].get(k, 0) - shares[1].get(k, 0)) for k in "abc")
    assert scores["z"] == pytest.approx(1 - apart / 2)
    pairs = {(pair.first, pair.second): pair.score for pair in found.pairs}
    correlation = abs(real["x"].corr(real["w"]) - made["x"].corr(made["w"]))
    assert pairs["x", "w"] == pytest.approx(1 - correlation / 2)
    edges = np.linspace(real["x"].min(), real["x"].max(), 11)
    edges[0], edges[-1] = -np.inf, np.inf
    tables = [
        pd.crosstab(pd.cut(f["x"], edges, right=False), f["z"], normalize=True)
        .reindex(columns=list("abc"), fill_value=0)
        .reindex(pd.cut(real["x"], edges, right=False).cat.categories, fill_value=0)
        for f in (real, made)
    ]
    joint = float((tables[0] - tables[1]).abs().to_numpy().sum())
    assert pairs["x", "z"] == pytest.approx(1 - joint / 2)


@given(st.data())
def test_numbers_are_compared_by_the_largest_distance_of_their_distributions(
    data: st.DataObject,
) -> None:
    numbers = st.lists(st.integers(-3, 3), min_size=1, max_size=12)  # one row, and ties
    real, made = (np.array(data.draw(numbers)) for _ in range(2))
    (column,) = fidelity(pd.DataFrame({"x": real}), pd.DataFrame({"x": made})).columns
    apart = max(abs((real <= v).mean() - (made <= v).mean()) for v in range(-3, 4))
    assert column.score == pytest.approx(1.0 - apart)


def test_a_table_is_like_itself_and_missing_values_are_counted() -> None:
    frame = table(600)
    found = fidelity(frame, frame)
    assert {column.score for column in found.columns} == {1.0}
    assert all(pair.score == pytest.approx(1.0) for pair in found.pairs)
    named = {column.name: column for column in found.columns}
    assert named["score"].missing_real == frame["score"].isna().mean()
    with pytest.raises(ValueError, match="has no column 'job'"):
        fidelity(frame, frame.drop(columns="job"))


@pytest.mark.slow
def test_models_of_the_real_rows_themselves_are_the_ceiling_and_of_noise_the_floor() -> None:
    frame = table(3000, seed=1)
    train, test = frame[:2000], frame[2000:]

    def model_of(rows: pd.DataFrame) -> ModelUtility:
        (found,) = utility(
            rows,
            test,
            label="rich",
            sensitive=["sex", "old"],
            models=("logistic regression",),
            schema=SCHEMA,
        )
        return found

    def shuffled(share: float, seed: int) -> float:
        """AUROC of a model of rows of which a share has somebody else's label, less one half."""
        rng, labels = np.random.default_rng(seed), train["rich"].to_numpy(copy=True)
        at = rng.random(len(labels)) < share
        labels[at] = rng.permutation(labels[at])
        return model_of(train.assign(rich=labels)).auroc.value - 0.5

    # Labels without a tie to the rows point a model one way as easily as the other: the mean over
    # shuffles is one half. A model that saw half of the labels as they are is told apart.
    floor = [shuffled(1.0, seed) for seed in range(12)]
    seen = [shuffled(0.5, seed) for seed in range(12)]
    assert ttest_1samp(floor, 0.0).pvalue > FALSE_ALARM
    assert ttest_1samp(seen, 0.0).pvalue < FALSE_ALARM
    real = model_of(train)
    assert real.auroc.value - 0.5 > max(floor)
    assert real.auroc.low < real.auroc.value < real.auroc.high
    assert set(real.gaps) == {
        f"{gap}_{reference}"
        for gap in ("demographic_parity", "equalized_odds", "error_parity")
        for reference in ("pairwise", "overall")
    }
    with pytest.raises(ValueError, match="models must be one of 'logistic regression'"):
        utility(train, test, label="rich", sensitive=["sex"], models=("tree",))


def test_test_rows_that_are_repeated_tell_as_much_as_once() -> None:
    frame = table(900, seed=1)
    test = frame[600:]

    def measured(rows: pd.DataFrame, **more: object) -> ModelUtility:
        (found,) = utility(
            frame[:600],
            rows,
            label="rich",
            sensitive=["sex"],
            models=("logistic regression",),
            schema=SCHEMA,
            **more,  # type: ignore[arg-type]
        )
        return found

    once, often = measured(test), pd.concat([test] * 4, ignore_index=True)
    whose = [f"{person:03}" for person in [*range(300)] * 4]
    rows, persons = measured(often), measured(often, units=whose)
    # Units are drawn by the same numbers as rows that stand once: the intervals are the same.
    for name in ("auroc", "accuracy"):
        alone, of_rows, of_persons = (getattr(u, name) for u in (once, rows, persons))
        assert (of_persons.value, of_persons.low, of_persons.high) == pytest.approx(
            (alone.value, alone.low, alone.high)
        )
        assert (of_persons.n, of_persons.n_units) == (1200, 300)
        assert of_rows.high - of_rows.low < 0.7 * (of_persons.high - of_persons.low)
    for name, gap in persons.gaps.items():
        assert gap.value == rows.gaps[name].value
        assert gap.high - gap.low > rows.gaps[name].high - rows.gaps[name].low
    assert measured(test, units=np.arange(300)).to_dict() == once.to_dict()
    with pytest.raises(ValueError, match="test has 300, units has 299"):
        measured(test, units=np.arange(299))


def test_one_call_measures_all_of_it_as_plain_values() -> None:
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0).fit(
        table(), **ROLES, budget=BUDGET, schema=SCHEMA
    )
    rows, test = made.sample(800, random_state=0), table(900, seed=3)
    found = evaluate(made, rows, test, train=table(800, seed=4), models=("gradient boosting",))
    assert [u.trained_on for u in found.utility] == ["synthetic", "real"]
    assert found.balance.kl.value == pytest.approx(0.0)
    assert found.real_balance.kl.value > 0.01
    assert found.mean("auroc") == found.utility[0].auroc.value
    assert found.mean("auroc", "real") == found.utility[1].auroc.value
    assert found.fidelity.column_score > 0.85
    plain = found.to_dict()
    assert plain["covered"] is False
    json.dumps(plain)


@pytest.mark.slow
def test_even_rates_share_the_rows_out_evenly_between_groups() -> None:
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0).fit(
        table(), **ROLES, budget=BUDGET, schema=SCHEMA
    )
    shares = even_rates(made, "demographic-parity", random_state=0)
    assert shares.sum() == pytest.approx(1.0)
    assert np.bincount(made.conditions_.groups(), shares) == pytest.approx(np.full(4, 0.25))
    still = even_rates(made, "demographic-parity", amount=0.0, random_state=0)
    assert still == pytest.approx(np.full(8, 0.125))


@pytest.mark.slow
def test_even_rates_halve_the_gap_of_a_model() -> None:
    # The men work longer, so a model of evenly spread rows still calls them rich more often.
    # Each run has its own table, noise, rows and test rows. Correct code: the mean of
    # (gap before - 2 gap after) is at least 0, and Student's test of it is below FALSE_ALARM in
    # one of a million seeds at most. Wrong code: the odds are not moved, and it is all but sure.
    def excess(seed: int) -> tuple[float, float]:
        made = MarginalSynthesizer(noise=SeededNoise(seed), random_state=seed).fit(
            table(8000, seed=seed), label="rich", sensitive="sex", schema=SCHEMA,
            budget=Budget(epsilon=20.0, delta=1e-6),
        )  # fmt: skip
        test = table(4000, seed=1000 + seed)

        def gap(shares: object) -> float:
            rows = made.sample(6000, shares=shares, random_state=seed)  # type: ignore[arg-type]
            (found,) = utility(rows, test, label="rich", sensitive=["sex"], schema=SCHEMA,
                               models=("logistic regression",))  # fmt: skip
            return found.gaps["demographic_parity_pairwise"].value

        moved, unmoved = (
            even_rates(made, "demographic-parity", amount=amount, random_state=seed)
            for amount in (1.0, 0.0)
        )
        before = gap(None)
        return before - 2 * gap(moved), before - 2 * gap(unmoved)

    moved, unmoved = np.transpose([excess(seed) for seed in range(14)])
    assert ttest_1samp(moved, 0.0, alternative="less").pvalue > FALSE_ALARM
    assert ttest_1samp(unmoved, 0.0, alternative="less").pvalue < FALSE_ALARM


@pytest.mark.slow
def test_both_gaps_shrink_where_fewer_rows_of_the_second_class_are_asked_for() -> None:
    # Half of the rich women are left out: equal rates among all and among the rich disagree.
    # The error rates are those of the test above, for (3/4 gap before - gap after).
    def unlike(n: int, seed: int) -> pd.DataFrame:
        frame = table(n, seed=seed)
        return frame[~((frame["rich"] == "yes") & (frame["sex"] == "F")) | (frame.index % 2 == 0)]

    def excess(seed: int) -> tuple[float, float]:
        made = MarginalSynthesizer(noise=SeededNoise(seed), random_state=seed).fit(
            unlike(8000, seed), label="rich", sensitive="sex", schema=SCHEMA,
            budget=Budget(epsilon=20.0, delta=1e-6),
        )  # fmt: skip
        test = unlike(8000, 1000 + seed)

        def larger_gap(shares: object) -> float:
            rows = made.sample(6000, shares=shares, random_state=seed)  # type: ignore[arg-type]
            (found,) = utility(rows, test, label="rich", sensitive=["sex"], schema=SCHEMA,
                               models=("logistic regression",))  # fmt: skip
            names = ("demographic_parity_pairwise", "equalized_odds_pairwise")
            return max(found.gaps[name].value for name in names)

        known = made.conditions_
        rich = known.labels() == 1
        moved = even_rates(made, "both", gap=0.06, random_state=seed)
        unmoved = even_rates(made, "demographic-parity", amount=0.0, random_state=seed)
        assert np.bincount(known.groups(), moved) == pytest.approx([0.5, 0.5])
        before = larger_gap(None)
        assert moved[rich].sum() < 0.5
        return 0.75 * before - larger_gap(moved), 0.75 * before - larger_gap(unmoved)

    moved, unmoved = np.transpose([excess(seed) for seed in range(8)])
    assert ttest_1samp(moved, 0.0, alternative="less").pvalue > FALSE_ALARM
    assert ttest_1samp(unmoved, 0.0, alternative="less").pvalue < FALSE_ALARM


@pytest.mark.slow
def test_shares_whose_models_treat_groups_less_alike_are_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0).fit(
        table(), label="rich", sensitive="sex", budget=BUDGET, schema=SCHEMA
    )
    even = np.full(4, 0.25)
    right = even_rates(made, "demographic-parity", random_state=0)
    assert np.abs(right - even).max() > 0.01
    wrong = np.log(right[made.conditions_.labels() == 0] / right[made.conditions_.labels() == 1])
    monkeypatch.setattr(even_rates_module.Trial, "moved", lambda self, base, mix: wrong)
    assert even_rates(made, "demographic-parity", random_state=0) == pytest.approx(even)


@pytest.mark.parametrize(
    ("gaps", "gap", "taken"),
    [
        ((0.3, 0.1, 0.05, 0.02), 0.1, 1),  # the first that is small enough, and no more are tried
        ((0.3, 0.2, 0.15, 0.12), 0.1, 2),  # within a standard error of the smallest
        ((0.3, 0.12, 0.25, 0.11), 0.1, 1),
        ((0.3, 0.31, 0.4), 0.1, 0),  # nothing helps
    ],
)
def test_of_several_ways_down_the_mildest_that_serves_is_taken(
    gaps: tuple[float, ...], gap: float, taken: int
) -> None:
    tried: list[int] = []

    def both(way: int) -> tuple[float, float]:
        tried.append(way)
        return 0.0, gaps[way]

    trial = SimpleNamespace(shares=lambda way: way, gaps=both, standard_error=0.04)
    found = even_rates_module._mildest(trial, range(len(gaps)), gap)  # type: ignore[arg-type]
    assert found == taken
    assert len(tried) == (taken + 1 if gaps[taken] <= gap else len(gaps))


@pytest.mark.parametrize("learnt", [0.02, 0.24, 0.5])
def test_both_asks_for_fewer_rows_of_the_rarer_class_whatever_its_name(learnt: float) -> None:
    trial = SimpleNamespace(n_groups=2, moved=lambda base, mix: base, larger_gap=lambda odds: 0.0)
    _, *rare = even_rates_module._down(trial, learnt)  # type: ignore[arg-type]
    _, *frequent = even_rates_module._down(trial, 1 - learnt)  # type: ignore[arg-type]
    first = max(np.log(learnt / (1 - learnt)), -even_rates_module.FARTHEST)
    assert rare == pytest.approx([first - 0.5 * i for i in range(len(rare))])
    assert -even_rates_module.FARTHEST <= rare[-1] < 0.5 - even_rates_module.FARTHEST
    if learnt < 0.5:
        assert frequent == pytest.approx([-base for base in rare])


def test_a_group_without_a_row_has_no_rates_to_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    made = MarginalSynthesizer(noise=SeededNoise(0), pairs=False).fit(
        table(), label="rich", sensitive="sex", budget=BUDGET, schema=SCHEMA
    )
    made.counts_[[1, 2]] = 0.0
    monkeypatch.setattr(even_rates_module, "Trial", None)  # before any row is drawn
    with pytest.raises(ValueError, match=r"no record of rich=no, sex=M; rich=yes, sex=F can be"):
        even_rates(made)


def test_what_cannot_be_moved_is_refused() -> None:
    frame = table().fillna({"job": "none"})
    made = MarginalSynthesizer(noise=SeededNoise(0)).fit(
        frame, label="job", sensitive="sex", budget=BUDGET, schema=SCHEMA
    )
    with pytest.raises(ValueError, match="moves the odds of two classes, and 'job' has 3"):
        even_rates(made)
    with pytest.raises(ValueError, match="fairness must be one of"):
        even_rates(made, "demographic_parity")
    with pytest.raises(ValueError, match="for 'both' say where to stop with gap="):
        even_rates(made, "both", amount=0.5)
    with pytest.raises(ValueError, match="shares must be 6 finite numbers"):
        made.sample(10, shares=[1.0, 2.0])
    with pytest.raises(ValueError, match="shares= goes with n"):
        made.sample(10, shares=np.ones(6), conditions={"sex": "F"})


def test_columns_that_were_not_learnt_are_passed_over_and_absent_ones_are_named() -> None:
    frame = table()
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0)
    made.fit(frame, **{**ROLES, "schema": SCHEMA, "budget": BUDGET})
    drawn, test = made.sample(300, random_state=0), table(400, seed=1)
    models = ("logistic regression",)
    usual = evaluate(made, drawn, test, train=frame, models=models)
    more = evaluate(made, drawn, test.assign(pid=1), train=frame.assign(k="a"), models=models)
    assert json.dumps(more.to_dict()) == json.dumps(usual.to_dict())
    lost = next(name for name in frame if name not in made.conditions_.names)
    for where, rows in (("test", [drawn, test]), ("synthetic", [test, drawn])):
        given = [r if r is rows[0] else r.drop(columns=lost) for r in (drawn, test)]
        with pytest.raises(ValueError, match=f"The table of {where} rows has no column '{lost}'"):
            evaluate(made, *given, models=models)
    with pytest.raises(ValueError, match=f"The table of train rows has no column '{lost}'"):
        evaluate(made, drawn, test, train=frame.drop(columns=lost), models=models)


@pytest.mark.parametrize("n", [3, 8, 19, 40])
def test_a_network_judges_rows_too_few_to_set_any_of_each_class_aside(n: int) -> None:
    frame = table(400)
    few = pd.concat([frame[frame["rich"] == "yes"][: n - 1], frame[frame["rich"] == "no"][:1]])
    how = {"label": "rich", "sensitive": ["sex"], "schema": SCHEMA}
    (found,) = utility(few, frame, models=("neural network",), **how)
    assert 0.0 <= found.accuracy.value <= 1.0


def test_rows_of_one_class_have_no_auroc_and_tables_without_rows_are_refused() -> None:
    frame = table(800)
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0)
    made.fit(frame, **{**ROLES, "schema": SCHEMA, "budget": BUDGET})
    drawn, models = made.sample(300, random_state=0), ("logistic regression",)
    (found,) = evaluate(made, drawn, frame[frame["rich"] == "no"], models=models).utility
    assert np.isnan(found.auroc.value)  # and no warning of NumPy, which is an error in tests
    assert 0.0 <= found.accuracy.value <= 1.0
    with pytest.raises(ValueError, match="The table of test rows has no rows"):
        evaluate(made, drawn, frame[:0], models=models)
    with pytest.raises(ValueError, match="The table of synthetic rows has no rows"):
        evaluate(made, drawn[:0], frame, models=models)
