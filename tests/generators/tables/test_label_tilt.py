"""The tilt of labels: its law against every combination, its likelihood, its cost, its noise."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runs import FALSE_ALARM
from scipy.special import logsumexp
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from evenhand.datasets import Schema
from evenhand.generators import MarginalSynthesizer, load
from evenhand.generators.aggregators import ProductSums
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.tables import label_tilt, marginal, tree_distribution
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.label_temperature import TEMPERATURE
from evenhand.generators.tables.label_tilt import STEPS, TILT, LabelTilt, Readings, label_odds
from evenhand.generators.tables.tree_distribution import JunctionTree, Table, TreeDistribution
from evenhand.generators.tables.two_tables import TwoTableSynthesizer
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.privacy.noise import Noise

SIZES, N_LABELS, N_GROUPS = (2, 3, 2), 3, 2
CONDITIONS = np.arange(N_LABELS * N_GROUPS)
STATES = np.array(list(itertools.product(*(range(size) for size in SIZES))))
CHAIN = JunctionTree(parents=((), (0,), (1,)), order=(0, 1, 2))
BUDGET = Budget(epsilon=4.0, delta=1e-6)


def some_tree(seed: int = 0) -> TreeDistribution:
    rng = np.random.default_rng(seed)
    each = [
        Table(columns=(i,), parts=CONDITIONS, values=rng.normal(0, 1, (len(CONDITIONS), size)))
        for i, size in enumerate(SIZES)
    ]
    pairs = [
        Table(
            columns=(a, b), parts=0 * CONDITIONS, values=rng.normal(0, 1, (1, SIZES[a], SIZES[b]))
        )
        for a, b in CHAIN.edges
    ]
    return TreeDistribution(tree=CHAIN, tables=(*each, *pairs))


def densities(tree: TreeDistribution) -> np.ndarray:
    """Chance of every combination of states, one by one from the formula; by condition."""
    logs = np.zeros((len(CONDITIONS), len(STATES)))
    for table in tree.tables:
        logs += table.values[(table.parts[:, None], *(STATES[:, i] for i in table.columns))]
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


def some_tilt(seed: int = 1, most: float = 50.0) -> LabelTilt:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(len(CONDITIONS), 5.0)).reshape(N_LABELS, N_GROUPS)
    return LabelTilt(
        shares=shares,
        groups=rng.normal(0, 0.5, (N_GROUPS, N_LABELS)),
        odds=rng.normal(0, 0.2, (N_LABELS, N_LABELS)),
        columns=tuple(rng.normal(0, 0.7, (size, N_LABELS)) for size in SIZES),
        most=np.full(len(CONDITIONS), most),
        mean=np.ones(len(CONDITIONS)),
    )


def weights_by_hand(tilt: LabelTilt, tree: TreeDistribution) -> np.ndarray:
    """Weight of every combination under each condition, by Bayes' rule, row by row."""
    p = densities(tree)
    found = np.zeros_like(p)
    for at, states in enumerate(STATES):
        for z in range(N_GROUPS):
            joint = np.array([tilt.shares[y, z] * p[y * N_GROUPS + z, at] for y in range(N_LABELS)])
            odds = np.log(joint / joint.sum())
            scores = tilt.groups[z] + (odds - odds.mean()) @ tilt.odds
            for i, state in enumerate(states):
                scores = scores + tilt.columns[i][state]
            q = np.exp(odds + scores) / np.exp(odds + scores).sum()
            for y in range(N_LABELS):
                c = y * N_GROUPS + z
                found[c, at] = min(q[y] / np.exp(odds[y]), tilt.most[c])
    return found


def rows_of(conditions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every combination of states under each of these conditions."""
    return np.tile(STATES, (len(conditions), 1)), np.repeat(conditions, len(STATES))


def test_the_density_of_a_row_is_that_of_the_formula() -> None:
    tree = some_tree()
    states, c = rows_of(CONDITIONS)
    found = np.exp(tree.log_density(states, c)).reshape(len(CONDITIONS), -1)
    np.testing.assert_allclose(found, densities(tree), rtol=1e-10)


def test_the_density_of_what_is_known_is_the_sum_over_what_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree, every = some_tree(), densities(some_tree())
    monkeypatch.setattr(tree_distribution, "MOST_AT_ONCE", 3 * tree.n_cells)  # three rows at once
    states, c = rows_of(CONDITIONS)
    unknown = np.random.default_rng(0).random(states.shape) < 0.5
    found = np.exp(tree.log_density(states, c, unknown))
    alike = (states[:, None, :] == STATES) | unknown[:, None, :]  # (rows, combinations, columns)
    np.testing.assert_allclose(found, (every[c] * alike.all(axis=2)).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("even", [True, False])
def test_rows_of_the_tree_have_its_densities(even: bool) -> None:
    tree, conditions = some_tree(), np.repeat(CONDITIONS, 8000)
    drawn = tree.sample(conditions, np.random.default_rng(0), even=even)
    assert differ(drawn, conditions, densities(tree)) > FALSE_ALARM
    assert differ(drawn, conditions, densities(some_tree(seed=1))) < FALSE_ALARM
    # Among rows of one condition each state of a root is as often as it should be, or by chance so.
    expected = 8000 * densities(tree)[:, STATES[:, 0] == 0].sum(axis=1)
    counted = np.array([(drawn[conditions == c, 0] == 0).sum() for c in CONDITIONS])
    assert (np.abs(counted - expected).max() < 2) == even


@pytest.mark.parametrize("most", [50.0, 1.3])
def test_weights_are_odds_over_those_of_the_tree(most: float) -> None:
    tree, tilt = some_tree(), some_tilt(most=most)
    states, c = rows_of(CONDITIONS)
    found = tilt.weights(tree, states, c).reshape(len(CONDITIONS), -1)
    expected = weights_by_hand(tilt, tree)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (found.max() == pytest.approx(most)) == (most < 2)


def test_tilted_odds_are_those_of_the_tree_times_the_weights() -> None:
    tree, tilt = some_tree(), some_tilt()
    odds = np.zeros((N_GROUPS * len(STATES), N_LABELS))
    for y in range(N_LABELS):
        states, c = rows_of(y * N_GROUPS + np.arange(N_GROUPS))
        odds[:, y] = np.log(tilt.shares[y, c % N_GROUPS]) + tree.log_density(states, c)
    odds -= logsumexp(odds, axis=1, keepdims=True)
    np.testing.assert_allclose(label_odds(tree, tilt.shares, states, c % N_GROUPS), odds)
    weights = weights_by_hand(tilt, tree).reshape(N_LABELS, -1).T
    found = tilt.tilted(odds, states, c % N_GROUPS)
    np.testing.assert_allclose(np.exp(found), np.exp(odds) * weights, rtol=1e-9)


def differ(drawn: np.ndarray, c: np.ndarray, expected: np.ndarray) -> float:
    """p-value of drawn states by condition, of chances (n_conditions, combinations)."""
    code = np.ravel_multi_index(tuple(drawn.T), SIZES)
    found = np.zeros_like(expected)
    np.add.at(found, (c, code), 1.0)
    means = expected * found.sum(axis=1, keepdims=True)
    used = means > 0
    assert not found[~used].any()
    statistic = ((found[used] - means[used]) ** 2 / means[used]).sum()
    return float(chi2.sf(statistic, used.sum() - len(np.unique(c))))


@pytest.mark.parametrize("likelihoods", [{}, {1: np.array([0.2, 0.0, 1.0])}], ids=["all", "event"])
def test_rows_are_those_of_the_tree_by_their_weights(likelihoods: Any) -> None:
    # By chance alone correct code fails once in a million seeds: draws are spread more evenly than
    # those of a chi-squared law, which only makes its p-value larger.
    tree, tilt = some_tree(), some_tilt(most=3.0)
    held, before = tree.given(likelihoods)
    law, event = densities(tree), np.ones(len(STATES))
    for i, likelihood in likelihoods.items():
        event = event * likelihood[STATES[:, i]]
    weighted = law * weights_by_hand(tilt, tree)
    tilt = tilt_with(tilt, mean=weighted.sum(axis=1))
    mean, chances = tilt.given(tree, held, before)
    exact = (weighted * event).sum(axis=1) / (law * event).sum(axis=1)
    # Means of 4,000 weights of at most 3: five deviations.
    np.testing.assert_allclose(mean, exact, atol=5 * 3 / math.sqrt(4000))
    expected = (weighted * event).sum(axis=1) / weighted.sum(axis=1)
    np.testing.assert_allclose(chances, expected, rtol=0.15)
    conditions = np.repeat(CONDITIONS, 8000)
    drawn = tilt.drawn(tree, held, exact, conditions, np.random.default_rng(0))
    weighted = weighted * event
    assert differ(drawn, conditions, weighted / weighted.sum(axis=1, keepdims=True)) > FALSE_ALARM
    plain = law * event
    assert differ(drawn, conditions, plain / plain.sum(axis=1, keepdims=True)) < FALSE_ALARM


def tilt_with(tilt: LabelTilt, **changed: Any) -> LabelTilt:
    return label_tilt.replace(tilt, **changed)


def test_a_row_that_is_drawn_alone_has_the_same_law() -> None:
    # Of one row several tries are drawn at once: that the first that is kept counts must not favour
    # any. 100,000 groups with one row each, of a column whose three states are alike in the tree.
    chance = np.array([0.1, 0.6, 0.8])  # of the first label in each state; in the tree .5
    n = 100_000
    own = Table(columns=(0,), parts=np.arange(2 * n), values=np.zeros((2 * n, 3)))
    tree = TreeDistribution(tree=JunctionTree.alone(1), tables=(own,))
    tilt = LabelTilt(
        shares=np.full((2, n), 0.5 / n),
        groups=np.zeros((n, 2)),
        odds=np.zeros((2, 2)),
        columns=(np.log(np.column_stack([chance, 1.0 - chance])),),
        most=np.full(2 * n, 1.6),
        mean=np.ones(2 * n),
    )
    drawn = tilt.drawn(tree, tree, tilt.mean, np.arange(n), np.random.default_rng(0))
    found, expected = np.bincount(drawn[:, 0]), n * chance / chance.sum()
    assert chi2.sf(((found - expected) ** 2 / expected).sum(), 2) > FALSE_ALARM


# What is learnt


def copies(n: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Return noisy copies of two traits, in a loop that no tree holds, and a label of both."""
    rng = np.random.default_rng(seed)
    trait = rng.normal(size=(n, 2))
    columns = {f"x{i}": trait[:, int(i > 5)] + rng.normal(0, 0.7, n) for i in range(8)}
    y = trait.sum(axis=1) + rng.normal(0, 0.7, n) > 0
    frame = pd.DataFrame({name: np.clip(np.round(x * 2), -4, 4) for name, x in columns.items()})
    return frame.assign(g=rng.choice(["a", "b"], n), y=np.where(y, "yes", "no"))


def schema_of(frame: pd.DataFrame) -> Schema:
    numbers = {c: {"bounds": (-4, 4)} for c in frame if c.startswith("x")}
    return Schema.declared({**numbers, "g": ["a", "b"], "y": sorted(set(frame["y"]))})


def fit(frame: pd.DataFrame, budget: Budget = BUDGET, **settings: Any) -> MarginalSynthesizer:
    settings = {"noise": SeededNoise(0), "random_state": 0, **settings}
    made = MarginalSynthesizer(**settings)
    schema = schema_of(frame)
    return made.fit(frame, label="y", sensitive="g", budget=budget, schema=schema)


def auroc(made: MarginalSynthesizer, test: pd.DataFrame) -> float:
    rows = made.sample(20_000, balance=(), random_state=0)
    x = [name for name in test if name.startswith("x")]
    model = LogisticRegression().fit(rows[x], rows["y"] == "yes")
    return float(roc_auc_score(test["y"] == "yes", model.decision_function(test[x])))


def test_models_of_drawn_rows_learn_what_a_tree_cannot_hold() -> None:
    # Columns independent given the label: a naive Bayes model, whose odds count every copy anew.
    frame, test = copies(), copies(20_000, 1)
    plain, tilted = (fit(frame, pairs=False, tilt=tilt) for tilt in (False, True))
    assert plain.tilt_ is None
    assert tilted.tilt_ is not None
    assert auroc(tilted, test) > auroc(plain, test) + 0.01
    # The tilt of independent columns is a logistic regression: as good as that of the rows.
    odds = scores_of(tilted, test)
    x = [name for name in test if name.startswith("x")]
    best = LogisticRegression().fit(frame[x], frame["y"] == "yes").predict_proba(test[x])[:, 1]
    truth = (test["y"] == "yes").to_numpy()
    loss = {name: cross_entropy(truth, p) for name, p in (("best", best), ("tilted", odds))}
    loss["plain"] = cross_entropy(truth, scores_of(plain, test))
    assert loss["tilted"] < loss["best"] + 0.03
    assert loss["plain"] > loss["best"] + 0.1


@pytest.mark.slow
def test_drawn_labels_are_as_sure_as_real_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    # A slope of 1: log-odds of models of drawn rows hold on real ones. Six fits had .954 to .989,
    # with a deviation of .012, and without temperature .847 to .859.
    frame, test = copies(), copies(20_000, 1)
    x = [name for name in test if name.startswith("x")]

    def slope() -> float:
        rows = fit(frame).sample(60_000, balance=(), random_state=0)
        scores = LogisticRegression().fit(rows[x], rows["y"]).decision_function(test[x])
        model = LogisticRegression(C=1e6).fit(scores[:, None], test["y"])
        return float(model.coef_[0, 0])

    assert slope() == pytest.approx(1.0, abs=0.09)
    monkeypatch.setattr(label_tilt, "factor_of_odds", lambda *_, **__: 1.0)
    assert slope() < 0.9


@pytest.mark.parametrize("tilt", [True, False])
def test_the_chances_of_labels_are_those_by_tree_and_tilt(tilt: bool) -> None:
    made, rows = fit(copies(6000), tilt=tilt), copies(500, 1)
    found = made.label_chances(rows.drop(columns="y").sample(frac=1.0, random_state=0))
    expected = scores_of(made, rows.sample(frac=1.0, random_state=0))
    np.testing.assert_allclose(found, np.column_stack([1.0 - expected, expected]), atol=1e-9)


@pytest.mark.slow
def test_states_that_no_record_is_in_say_nothing_of_the_label(tmp_path: Path) -> None:
    # Every record has a value of x0, and none has "z" in x1; all the rest tells of the label. The
    # entropy of a coin is .69, and slopes of noise alone made it 2 to 4, a mean over six.
    frame = copies(4000)
    frame["x1"] = np.where(frame["x1"] > 0, "b", "a")
    own = {"x0": {"bounds": (-4, 4), "missing": True}, "x1": ["a", "b", "z"]}
    known = [column for column in schema_of(frame).columns if column.name not in own]
    schema = Schema(columns=(*Schema.declared(own).columns, *known))
    found = []
    for seed in range(3):
        made = MarginalSynthesizer(noise=SeededNoise(seed), random_state=0, width=1)
        made.fit(frame, label="y", sensitive="g", budget=BUDGET, schema=schema)
        assert made.tilt_ is not None
        for rows in (frame.assign(x0=np.nan), frame.assign(x1="z")):
            truth, p = rows["y"] == "yes", made.label_chances(rows)[:, 1]
            found.append(cross_entropy(truth.to_numpy(), np.clip(p, 1e-12, 1 - 1e-12)))
    assert np.mean(found) < 0.5  # .39 by all of the row
    again = load(made.save(tmp_path / "made")).label_chances(rows)[:, 1]
    np.testing.assert_array_equal(again, p)


def test_of_a_state_that_noise_hides_is_read_what_is_read_of_the_others() -> None:
    read = Readings.of(2, 2, (4, 8), (0, 7))  # the second: a curve of seven ranges, and missing
    counts, some = [np.array([30.0, 10.0, 1.0, 10.0]), np.ones(8)], np.arange(8) > 6
    known = read.of_known(counts, [counts[0] < 5, ~some & some])
    np.testing.assert_allclose(known.columns[0], [[0, 0], [1, 0], [0.2, 0.2], [0, 1]])
    np.testing.assert_array_equal(known.columns[1], read.columns[1])
    assert read.of_known(counts, [counts[0] < 5, some]).n == read.n - 2


def cross_entropy(truth: np.ndarray, p: np.ndarray) -> float:
    return float(-np.log(np.where(truth, p, 1.0 - p)).mean())


def scores_of(made: MarginalSynthesizer, frame: pd.DataFrame) -> np.ndarray:
    """Chance of "yes" of each row, by tree and tilt."""
    data = encoded(made, frame)
    tree, n_groups = made.distribution_, 2
    groups = data.condition % n_groups
    shares = (made.counts_ / made.counts_.sum()).reshape(2, n_groups)
    joint = np.stack(
        [tree.log_density(data.codes, y * n_groups + groups) for y in range(2)], axis=1
    ) + np.log(shares.T[groups])
    if made.tilt_ is not None:
        tilt = made.tilt_
        odds = joint - logsumexp(joint, axis=1, keepdims=True)
        joint = (
            odds
            + tilt.groups[groups]
            + np.clip(odds - odds.mean(1, keepdims=True), -8, 8) @ tilt.odds
        )
        for i, column in enumerate(tilt.columns):
            joint = joint + column[data.codes[:, i]]
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))[:, 1]


def encoded(made: MarginalSynthesizer, frame: pd.DataFrame) -> EncodedTable:
    from evenhand.datasets.columns import TypedTable

    return EncodedTable.of(TypedTable.of(frame), made.codec_, ())


def learnt(records: EncodedTable, weights: np.ndarray, epsilon: float, noise: Noise) -> LabelTilt:
    """Learn what is beside ``some_tree``."""
    ledger = Ledger(Budget(epsilon=epsilon, delta=1e-6), noise=noise)
    plan = BudgetPlan(ledger=ledger, shares={TILT: 0.95, TEMPERATURE: 0.05})
    readings, rng = Readings.of(N_LABELS, N_GROUPS, SIZES, (0, 0, 0)), np.random.default_rng(0)
    return LabelTilt.learn(records, some_tree(), weights, readings, plan, rng, lambda *_: None)


def test_odds_beside_those_of_a_tree_are_found() -> None:
    # 40,000 records of a known tilt, and next to no noise.
    tree, truth, rng = some_tree(), some_tilt(), np.random.default_rng(0)
    joint = truth.shares.reshape(-1, 1) * densities(tree) * weights_by_hand(truth, tree)
    shares = joint / joint.sum()
    condition, at = np.divmod(rng.choice(joint.size, 40_000, p=shares.reshape(-1)), len(STATES))
    records = EncodedTable(
        codes=STATES[at], condition=condition, sizes=SIZES, units=None, per_unit=1
    )
    weights = truth.shares.reshape(-1) * 40_000
    tilt = learnt(records, weights, 3000.0, SeededNoise(0))
    tilt = tilt_with(tilt, most=truth.most)
    found, expected = (np.log(weights_by_hand(one, tree)) for one in (tilt, truth))
    off = (shares * np.abs(found - expected)).sum()
    assert off < 0.5 * (shares * np.abs(expected)).sum()  # which is how far the tree is off


@pytest.mark.slow
def test_balance_is_exact_and_three_labels_will_do() -> None:
    frame = copies(12_000)
    third = np.where(frame["x0"] > 2, "maybe", frame["y"])
    made = fit(frame.assign(y=third))
    assert made.tilt_ is not None
    rows = made.sample(6000, random_state=0)
    assert set(rows.groupby(["y", "g"]).size()) == {1000}
    shown = made.sample(30_000, balance=(), random_state=0)
    real, drawn = (
        pd.crosstab(rows["x1"] > 0, rows["y"], normalize=True)
        for rows in (frame.assign(y=third), shown)
    )
    assert (real - drawn).abs().to_numpy().sum() / 2 < 0.05


@pytest.mark.slow
def test_columns_are_drawn_as_often_as_the_tree_says() -> None:
    made = fit(copies())
    rows = made.sample(100_000, balance=(), random_state=0)
    data = encoded(made, rows)
    weights = np.maximum(made.counts_, 0.0)
    p = made.distribution_.expected(weights / weights.sum())
    for i, size in enumerate(data.sizes):
        drawn = np.bincount(data.codes[:, i], minlength=size) / len(rows)
        assert np.abs(drawn - p[i].sum(axis=0)).sum() / 2 < 0.02


@pytest.mark.slow
def test_conditions_on_any_column_keep_the_tilted_law() -> None:
    made = fit(copies())
    every = made.sample(60_000, balance=(), random_state=0)
    asked = made.sample(6000, conditions={"x1": (1, 4)}, balance=(), random_state=0)
    assert asked["x1"].between(1, 4).all()
    of_all = (every.loc[every["x1"].between(1, 4), "y"] == "yes").mean()
    # 6,000 rows: five deviations, and a chance that is estimated from 4,000 of each.
    assert (asked["y"] == "yes").mean() == pytest.approx(of_all, abs=0.05)


@pytest.mark.slow
def test_means_over_many_labels_and_groups_are_of_fewer_rows_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = []
    draw = TreeDistribution.sample

    def counted(
        self: TreeDistribution, conditions: np.ndarray, *more: Any, **settings: Any
    ) -> np.ndarray:
        lengths.append(len(conditions))
        return draw(self, conditions, *more, **settings)

    frame = copies(8000)[["x0", "x1", "y"]]
    groups = [f"g{i}" for i in range(100)]
    frame = frame.assign(g=np.random.default_rng(1).choice(groups, len(frame)))
    known = {"x0": {"bounds": (-4, 4)}, "x1": {"bounds": (-4, 4)}, "y": ["no", "yes"], "g": groups}
    monkeypatch.setattr(TreeDistribution, "sample", counted)
    made = MarginalSynthesizer(tilt=True, noise=SeededNoise(0), random_state=0)
    budget, schema = Budget(epsilon=100.0, delta=1e-6), Schema.declared(known)
    made.fit(frame, label="y", sensitive="g", budget=budget, schema=schema)
    made.sample(100, conditions={"x1": (1, 4)}, balance=(), random_state=0)
    # 4,000 rows of each of 200 would be 800,000: a fit of minutes and gigabytes for 720 of them.
    assert max(lengths) <= 100_000


def test_a_saved_generator_draws_the_same_rows(tmp_path: Path) -> None:
    made = fit(copies(6000))
    again = load(made.save(tmp_path / "made"))
    assert isinstance(again, MarginalSynthesizer)
    assert again.tilt_ is not None
    pd.testing.assert_frame_equal(
        again.sample(500, random_state=3), made.sample(500, random_state=3)
    )


# What it costs


@pytest.mark.parametrize("settings", [{}, {"tilt_share": 0.5}])
def test_the_odds_are_charged_their_share_before_their_noise(settings: dict[str, Any]) -> None:
    made = fit(copies(6000), **settings)
    share = settings.get("tilt_share", 0.2)
    steps, temperature = [e for e in made.ledger_.entries if e.purpose in marginal.ODDS]
    assert (steps.purpose, steps.n_uses) == (TILT, STEPS)
    assert (temperature.purpose, temperature.n_uses) == (TEMPERATURE, 1)
    own = (marginal.OWN, marginal.CHOICE, marginal.PAIRS, *marginal.ODDS)
    learnt = sum(e.mu_squared for e in made.ledger_.entries if e.purpose in own)
    odds = steps.mu_squared + temperature.mu_squared
    assert odds == pytest.approx(share * learnt, rel=1e-6)
    assert temperature.mu_squared == pytest.approx(odds / 20, rel=1e-6)
    assert made.ledger_.spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, "half"])
def test_a_share_that_is_none_is_refused_before_anything_is_spent(share: Any) -> None:
    ledger = Ledger(BUDGET, noise=SeededNoise(0))
    made = MarginalSynthesizer(tilt_share=share)
    frame = copies(300)
    payload = made.read(frame, label="y", sensitive="g", schema=schema_of(frame))
    with pytest.raises((ValueError, TypeError), match=f"tilt_share.*{share!r}"):
        made.fit_within(payload, ledger, delta=1e-6)
    assert ledger.spent == 0.0


@pytest.mark.parametrize(
    ("n", "settings", "tilted"),
    [
        (6000, {}, True),
        (6000, {"tilt": False}, False),
        (6000, {"pairs": False}, False),
        (300, {}, False),
        (300, {"tilt": True}, True),
    ],
)
@pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")
def test_without_the_tilt_pairs_have_its_part(
    n: int, settings: dict[str, Any], tilted: bool
) -> None:
    made = fit(copies(n), Budget(epsilon=1.0, delta=1e-6), **settings)
    assert (made.tilt_ is not None) == tilted
    assert any(e.purpose in marginal.ODDS for e in made.ledger_.entries) == tilted
    assert made.ledger_.spent == pytest.approx(made.ledger_.budget.mu_squared, rel=1e-6)


@pytest.mark.parametrize("pairs", [True, False])
def test_of_one_label_or_too_many_readings_pairs_or_columns_have_its_part(
    pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(frame: pd.DataFrame) -> tuple[Any, float]:
        made = fit(frame, pairs=pairs, tilt=True)
        purpose = marginal.PAIRS if pairs else marginal.OWN
        (entry,) = [e for e in made.ledger_.entries if e.purpose == purpose]
        said = any("labels were not tilted, as tilt=True asks" in note for note in made.notes_)
        assert said == (made.tilt_ is None)
        return made.tilt_, entry.mu_squared

    frame = copies(6000)
    tilt, least = counted(frame)
    assert tilt is not None
    found = [counted(frame.assign(y="yes"))]
    monkeypatch.setattr(marginal, "MOST_READINGS", 10)
    found.append(counted(frame))
    assert [tilt for tilt, _ in found] == [None, None]
    assert all(more > 1.2 * least for _, more in found)


@pytest.mark.parametrize("relation", ["add or remove one", "replace one"])
def test_what_is_released_is_the_clipped_sum_with_the_noise_of_the_charge(
    relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each side errs once in a million: the noise is that which mu and the sensitivity give."""
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    door = BudgetPlan.door

    def spied(self: BudgetPlan, aggregator: Any, purpose: str, **given: Any) -> Any:
        release = door(self, aggregator, purpose, **given)

        def watched(total: np.ndarray) -> np.ndarray:
            released = release(total)
            seen.append((total * aggregator.unit, released))
            return released

        return watched

    monkeypatch.setattr(BudgetPlan, "door", spied)
    made = fit(copies(6000), neighbors=relation)
    (entry,) = [e for e in made.ledger_.entries if e.purpose == TILT]
    moved = 1.0 if relation == "add or remove one" else 2.0
    sigma = moved * math.sqrt(STEPS / entry.mu_squared)
    noise = np.concatenate([released - total for total, released in seen]) / sigma
    low, high = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], noise.size)
    assert low < (noise**2).sum() < high
    assert not low < ((noise / 2) ** 2).sum() < high


@pytest.mark.slow
@pytest.mark.parametrize("per_unit", [1, 3])
def test_no_record_moves_a_sum_further_than_is_charged_given_what_was_released(
    per_unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 60 records each is left out, and of units each with its three, along the same releases."""
    rng = np.random.default_rng(0)
    tree, n = some_tree(), 60
    condition = np.repeat(rng.choice(len(CONDITIONS), n // per_unit), per_unit)
    codes = np.repeat(tree.sample(condition[::per_unit], rng), per_unit, axis=0)
    codes[:per_unit] = (1, 2, 1)
    weights = np.full(len(CONDITIONS), 40.0)
    released: list[np.ndarray] = []

    def along(rows: np.ndarray, *, first: bool) -> list[np.ndarray]:
        totals: list[np.ndarray] = []

        def door(self: BudgetPlan, aggregator: Any, purpose: str, **given: Any) -> Any:
            def release(total: np.ndarray) -> np.ndarray:
                totals.append(total)
                if first:
                    noisy = total * aggregator.unit + rng.normal(0, 3.0, total.shape)
                    released.append(noisy)
                return released[len(totals) - 1]

            return release

        monkeypatch.setattr(BudgetPlan, "door", door)
        records = EncodedTable(
            codes=codes[rows],
            condition=condition[rows],
            sizes=SIZES,
            units=None,
            per_unit=per_unit,
        )
        learnt(records, weights, 30.0, SeededNoise(0))
        return totals

    whole, far = along(np.arange(n), first=True), []
    for at in range(0, n, per_unit):
        left = np.delete(np.arange(n), np.arange(at, at + per_unit))
        apart = [one - other for one, other in zip(whole, along(left, first=False), strict=True)]
        far += [float(np.linalg.norm(some.astype(float))) for some in apart]
    sums = ProductSums(n_left=N_LABELS - 1, n_right=1, per_unit=per_unit)
    declared = sums.l2_sensitivity("add or remove one")
    assert max(far) <= declared
    assert max(far) > 0.98 * declared


def test_of_many_records_some_are_read_by_a_coin_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marginal, "MOST_RECORDS", 3000)
    read: list[int] = []
    learn = LabelTilt.learn

    def spied(records: EncodedTable, *given: Any) -> LabelTilt:
        read.append(len(records.codes))
        return learn(records, *given)

    monkeypatch.setattr(LabelTilt, "learn", spied)
    frame = copies(12_000)
    made = fit(frame)
    assert made.tilt_ is not None
    # One in four or five of 12,000, by a noisy count: six deviations of the coins.
    assert any(abs(read[0] - 12_000 / k) < 6 * math.sqrt(12_000 / k) for k in (4, 5))


def test_coins_are_independent_of_each_other_and_of_the_keys() -> None:
    data = EncodedTable(
        codes=np.arange(20_000)[:, None],
        condition=np.zeros(20_000, dtype=np.int64),
        sizes=(20_000,),
        units=None,
        per_unit=1,
    )
    one, other = (set(data.one_in(4, bytes([k] * 32)).codes[:, 0]) for k in (1, 2))
    for kept, chance in ((one, 1 / 4), (other, 1 / 4), (one & other, 1 / 16)):
        spread = math.sqrt(20_000 * chance * (1 - chance))
        assert abs(len(kept) - 20_000 * chance) < 5 * spread
    assert data.one_in(1, bytes(32)) is data


def test_two_tables_refuse_it_before_anything_is_read() -> None:
    with pytest.raises(ValueError, match="leave tilt out"):
        TwoTableSynthesizer(visits=MarginalSynthesizer(tilt=True))
    made = TwoTableSynthesizer()
    assert isinstance(made.persons, MarginalSynthesizer)
    assert made.persons.tilt is False


def test_where_noise_is_all_there_is_the_tree_stays() -> None:
    # 4,000 records of the tree itself at epsilon .05. Without what shrinks slopes, logarithms of
    # weights are .25 in the mean, at least .17 on each of eight seeds; with it .05, below .16.
    tree = some_tree()
    states, c = rows_of(CONDITIONS)
    off = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        condition = rng.choice(len(CONDITIONS), 4000)
        records = EncodedTable(
            codes=tree.sample(condition, rng),
            condition=condition,
            sizes=SIZES,
            units=None,
            per_unit=1,
        )
        weights = np.full(len(CONDITIONS), 4000 / len(CONDITIONS))
        tilt = learnt(records, weights, 0.05, SeededNoise(seed))
        off.append(np.abs(np.log(tilt.weights(tree, states, c))).mean())
    assert np.mean(off) < 0.13
