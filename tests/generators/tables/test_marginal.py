"""What tables of pairs hold: interactions with the label, loops of columns; what they cost."""

from __future__ import annotations

import math
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenhand.datasets import Schema
from evenhand.generators import MarginalSynthesizer
from evenhand.generators.aggregators import TableDistances
from evenhand.generators.tables import marginal
from evenhand.generators.tables.chosen_pairs import choose_pairs
from evenhand.privacy import Budget, SeededNoise

N = 6000
BUDGET = Budget(epsilon=4.0, delta=1e-6)


def fit(frame: pd.DataFrame, **settings: Any) -> MarginalSynthesizer:
    """Fit with all columns declared as categories."""
    schema = Schema.declared({name: sorted(set(frame[name])) for name in frame})
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0, **settings)
    return made.fit(frame, label="y", sensitive="g", budget=BUDGET, schema=schema)


def binary(rng: np.random.Generator, p: Any = 0.5) -> np.ndarray:
    """Return letters, "b" with probability p."""
    return np.where(rng.random(N) < p, "b", "a")


def test_a_label_that_two_columns_decide_together_is_learnt() -> None:
    # Neither column alone says anything of the label. 95 % of 6,000 rows follow the rule; the noise
    # of a cell is below 20 records, so drawn rows follow it in more than 90 %. A table of the pair
    # over all labels, of which neither depends on the other, would give one half.
    rng = np.random.default_rng(0)
    one, two = binary(rng), binary(rng)
    y = np.where((one == two) ^ (rng.random(N) < 0.05), "yes", "no")
    frame = pd.DataFrame({"one": one, "two": two, "g": binary(rng), "y": y})
    rows = fit(frame).sample(4000, random_state=0)
    assert ((rows["one"] == rows["two"]) == (rows["y"] == "yes")).mean() > 0.9
    alone = fit(frame, pairs=False).sample(4000, random_state=0)
    assert ((alone["one"] == alone["two"]) == (alone["y"] == "yes")).mean() < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [True, False])
def test_missing_values_are_drawn_where_they_stand_out_of_the_noise(
    pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of two columns without gaps a count of noise alone is above two deviations in .023 of the
    # fits: three or more of 16 have a probability of .006, six of 1e-6. Of 2 % of 6,000 records,
    # 120, the noise is at most 14: seven deviations, and four fits miss one below 1e-6. Drawn are
    # 4,000 rows, .002 of sampling in each fit and as much of noise.
    rng = np.random.default_rng(0)
    day = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, N), "D"))
    frame = pd.DataFrame({"seen": day, "hours": rng.normal(40, 10, N), "g": binary(rng)})
    frame = frame.assign(y=binary(rng), gone=day.where(rng.random(N) >= 0.02))

    def shares(n_fits: int) -> pd.DataFrame:
        found = []
        for seed in range(n_fits):
            made = MarginalSynthesizer(noise=SeededNoise(seed), random_state=0, pairs=pairs)
            made.fit(frame, label="y", sensitive="g", budget=BUDGET)
            rows = made.sample(4000, balance=(), random_state=0)
            found.append(rows[["seen", "hours", "gone"]].isna().mean())
            said = " ".join(note for note in made.notes_ if "no missing values are drawn" in note)
            lacking = [name for name in ("seen", "hours", "gone") if found[-1][name] > 0]
            assert not any(repr(name) in said for name in lacking)
        return pd.DataFrame(found)

    held = shares(8)
    assert (held[["seen", "hours"]].to_numpy() > 0).sum() <= 5
    assert held["gone"].between(0.01, 0.03).all()
    # The test would see noise that is drawn.
    monkeypatch.setattr(marginal, "_HARDLY", 1.0)
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0, pairs=pairs)
    made.fit(frame, label="y", sensitive="g", budget=BUDGET)
    assert made.sample(4000, balance=(), random_state=0)[["seen", "hours"]].isna().any().all()


def test_three_columns_that_all_depend_on_each_other_keep_all_pairs() -> None:
    # Noisy copies of something that is not in the table agree in .68 of the rows, each pair of
    # them. A chain of two pairs leaves the third at .68**2 + .32**2 = .565. The noise of a cell is
    # below 20 of 6,000 records, drawn are 20,000: .62 lies five deviations and more from both.
    rng = np.random.default_rng(0)
    hidden = rng.random(N) < 0.5
    copies = {name: binary(rng, np.where(hidden, 0.8, 0.2)) for name in ("one", "two", "three")}
    frame = pd.DataFrame({**copies, "g": binary(rng), "y": binary(rng)})

    def least(made: MarginalSynthesizer) -> float:
        rows = made.sample(20_000, balance=(), random_state=0)
        return min((rows[a] == rows[b]).mean() for a, b in combinations(copies, 2))

    assert least(fit(frame)) > 0.62
    assert least(fit(frame, width=1)) < 0.62


def three_at_odds(n: int = N) -> pd.DataFrame:
    """Return a third column that says whether two others differ; each pair of them depends too."""
    rng = np.random.default_rng(0)
    one = rng.random(n) < 0.5
    two = rng.random(n) < np.where(one, 0.8, 0.4)
    three = (one != two) ^ (rng.random(n) < 0.05)
    other = rng.random((2, n)) < 0.5
    named = zip(("one", "two", "three", "g", "y"), (one, two, three, *other), strict=True)
    return pd.DataFrame({name: np.where(values, "b", "a") for name, values in named})


def test_what_three_columns_decide_together_is_learnt() -> None:
    # The rule holds in 95 % of 6,000 rows, and the noise of a cell is below 20 records. Of all
    # distributions with the same pairs, the one of largest entropy keeps it in .79 of the rows.
    frame = three_at_odds()

    def kept(made: MarginalSynthesizer) -> float:
        rows = made.sample(20_000, balance=(), random_state=0)
        return float(((rows["one"] != rows["two"]) == (rows["three"] == "b")).mean())

    assert kept(fit(frame)) > 0.92
    assert kept(fit(frame, width=1)) < 0.85


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.2, 4.0])
def test_threes_hide_at_most_half_of_the_records_and_every_pair_is_counted_once(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = three_at_odds()
    rng = np.random.default_rng(1)
    copied = np.where(rng.random(N) < 0.8, frame["one"], frame["two"])
    frame["many"] = copied + rng.integers(12, size=N).astype(str).astype(object)
    monkeypatch.setitem(globals(), "BUDGET", Budget(epsilon=epsilon, delta=1e-6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a budget that tells nothing
        made = fit(frame)
    tables = [table for table in made.distribution_.tables if len(table.columns) > 1]
    threes = [table for table in tables if len(table.columns) == 3]
    (entry,) = [e for e in made.ledger_.entries if e.purpose.startswith("counts of the chosen")]
    # At .3 the three with the column of 24 states would hide .7 of the records.
    sigma = math.sqrt(len(tables) / entry.mu_squared)
    for table in threes:
        hidden = table.values.size * sigma * math.sqrt(2 / math.pi)
        assert hidden <= 0.5 * 1.1 * N  # by noisy counts of all records
    assert threes or epsilon < 1.0
    within = [frozenset(two) for t in threes for two in combinations(t.columns, 2)]
    pairs = [frozenset(table.columns) for table in tables if len(table.columns) == 2]
    edges = {frozenset(edge) for edge in made.distribution_.tree.edges}
    assert edges == {*within, *pairs}
    assert not set(within) & set(pairs)
    assert len(set(pairs)) == len(pairs)


def test_tables_of_two_and_of_three_columns_carry_the_noise_that_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The charge gives the noise once more: sqrt(tables) / mu. Each side errs once in a million."""
    released: list[tuple[Any, ...]] = []
    release = marginal._released

    def spied(cliques: Any, counts: Any, *rest: Any) -> Any:
        found = release(cliques, counts, *rest)
        released.append((counts, found[0]))
        return found

    monkeypatch.setattr(marginal, "_released", spied)
    frame = three_at_odds()
    rng = np.random.default_rng(1)
    for name in ("many", "more"):  # a three with both of these is too large
        copied = np.where(rng.random(N) < 0.9, frame["one"], frame["two"])
        frame[name] = copied + rng.integers(30, size=N).astype(str).astype(object)
    made = fit(frame)
    ((counts, tables),) = released
    (entry,) = [e for e in made.ledger_.entries if e.purpose.startswith("counts of the chosen")]
    sigma = math.sqrt(len(tables) / entry.mu_squared)
    widths = {len(table.columns) for table in tables}
    assert widths == {2, 3}
    for width in widths:
        apart = [
            np.ravel(table.values - count)
            for table, count in zip(tables, counts, strict=True)
            if len(table.columns) == width
        ]
        for noise in apart:
            square = float((noise**2).sum()) / sigma**2
            assert stats.chi2.sf(square, noise.size) > 1e-6
            assert stats.chi2.cdf(square, noise.size) > 1e-6


@pytest.mark.parametrize("neighbors", ["add or remove one", "replace one"])
def test_both_distances_of_every_pair_are_charged_for(neighbors: str) -> None:
    # Three features have three pairs, each with a distance over all records and one by label.
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: binary(rng) for name in ("one", "two", "three", "g", "y")})
    made = fit(frame, neighbors=neighbors)
    found = [e for e in made.ledger_.entries if e.purpose.startswith("which pairs")]
    assert len(found) == 1
    moved = {"add or remove one": math.sqrt(6), "replace one": 2 * math.sqrt(6)}[neighbors]
    assert f"l2_sensitivity={moved!r}" in found[0].mechanism
    assert TableDistances(n_tables=6).l2_sensitivity(neighbors) == pytest.approx(moved)
    part = 0.05 * (1.0 - MarginalSynthesizer.tilt_share)
    assert found[0].mu_squared == pytest.approx(part * BUDGET.mu_squared, rel=1e-6)
    assert sum(e.mu_squared for e in made.ledger_.entries) == pytest.approx(BUDGET.mu_squared)


@pytest.mark.parametrize("width", [1, 2])
def test_the_counts_of_chosen_columns_are_those_of_these_in_their_order(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree hangs a column from a later one too: its counts are the same ones, turned over."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": binary(rng), "g": binary(rng), "last": rng.integers(4, size=N)})
    for states in (2, 3, 5):
        copied = frame["last"].to_numpy() % states
        kept = rng.random(N) < states / (states + 0.5)
        frame.insert(0, f"of {states}", np.where(kept, copied, 0))
    chosen: list[tuple[Any, Any, Any]] = []

    def spied(data: Any, *rest: Any) -> Any:
        found = choose_pairs(data, *rest)
        chosen.append((data, *found[1:]))
        return found

    monkeypatch.setattr(marginal, "choose_pairs", spied)
    fit(frame.astype(str), width=width)
    ((data, cliques, counts),) = chosen
    assert max(len(clique.columns) for clique in cliques) == width + 1
    assert any(clique.columns != tuple(sorted(clique.columns)) for clique in cliques)
    for clique, counted in zip(cliques, counts, strict=True):
        expected = np.zeros(counted.shape, dtype=np.int64)
        places = clique.parts[data.condition], *data.codes[:, clique.columns].T
        np.add.at(expected, places, 1)
        assert (counted == expected).all()


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_all_of_the_budget_is_spent_on_however_few_columns(n_columns: int, pairs: bool) -> None:
    rng = np.random.default_rng(0)
    columns = {f"x{i}": binary(rng) for i in range(n_columns)}
    made = fit(pd.DataFrame(columns | {"g": binary(rng), "y": binary(rng)}), pairs=pairs)
    assert made.ledger_.spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    assert made.ledger_.spent <= BUDGET.mu_squared


def test_width_is_checked_before_anything_is_spent() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: binary(rng) for name in ("one", "g", "y")})
    with pytest.raises(ValueError, match="width must be at least 1"):
        fit(frame, width=0)


def wide(n: int = 1500, m: int = 80) -> tuple[pd.DataFrame, Schema]:
    """Return eighty numbers, of which the first five say something of the label."""
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.5
    numbers = rng.random((n, m))
    numbers[:, :5] = np.where(y[:, None], numbers[:, :5] ** 0.4, numbers[:, :5] ** 2.5)
    frame = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(m)])
    frame["g"], frame["y"] = rng.choice(["a", "b"], n), np.where(y, "yes", "no")
    declared: dict[str, Any] = {name: {"bounds": (0, 1)} for name in frame.columns[:m]}
    return frame, Schema.declared({**declared, "g": ["a", "b"], "y": ["no", "yes"]})


def test_a_short_and_wide_table_keeps_states_and_spends_again_on_what_tells_the_label() -> None:
    frame, schema = wide()
    with pytest.warns(UserWarning, match="predicted signal-to-noise.*learn fewer columns, in few"):
        made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0).fit(
            frame, label="y", sensitive="g", budget=Budget(epsilon=1.0, delta=1e-6), schema=schema
        )
    assert min(c.n_states for c in made.codec_.columns if c.bins is not None) >= 4
    # 1,500 records in 4 conditions and 4 bins, under a noise of 50: less than LEAST_SNR by far,
    # which eighty columns in a single state each would not show.
    assert made.snr_.value < 10
    entry = next(e for e in made.ledger_.entries if e.purpose.startswith("counts of the chosen"))
    counted_again = float(entry.mechanism.split("l2_sensitivity=")[1].rstrip(")")) ** 2
    # Pairs are out of reach. Each of the five that tell passes the one deviation of noise that is
    # asked for in nine of ten cases or more, so none of them with a probability below 1e-5; of 75
    # others a sixth passes, 45 and more with a probability below 1e-6.
    assert 1 <= round(counted_again) < 45
    rows = made.sample(8000, balance=(), random_state=0)
    means = rows.groupby("y", observed=True)[[f"x{i}" for i in range(5)]].mean()
    assert (means.loc["yes"] - means.loc["no"]).mean() > 0.2  # .71 and .29 in truth


def test_drawn_rows_have_their_labels_as_often_as_their_chances_say() -> None:
    # Of a column in ranges, two sensitive ones and no tilt: within each cell a label is a coin with
    # its chance. Over all cells the squares of what is apart have the law of chi-squared.
    rng = np.random.default_rng(0)
    many, one = rng.integers(80, size=N), binary(rng)
    y = np.where(rng.random(N) < np.where((many > 40) == (one == "b"), 0.7, 0.3), "yes", "no")
    frame = pd.DataFrame({"many": many.astype(str).astype(object), "one": one, "y": y})
    frame = frame.assign(g=binary(rng), h=binary(rng))
    schema = Schema.declared({name: sorted(set(frame[name])) for name in frame})
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0, tilt=False)
    made.fit(frame, label="y", sensitive=["g", "h"], budget=BUDGET, schema=schema)
    assert made.merged_.ranges
    rows = made.sample(60_000, balance=(), random_state=1)
    rows["chance"] = made.label_chances(rows)[:, 1]
    cells = rows.assign(yes=rows["y"] == "yes").groupby(["one", "g", "h", "chance"])["yes"]
    found, n = cells.sum(), cells.size()
    p = found.index.get_level_values("chance").to_numpy()
    assert p.max() > 0.6 > 0.4 > p.min()
    apart = ((found - n * p) ** 2 / (n * p * (1.0 - p)))[(n * p > 5) & (n * (1.0 - p) > 5)]
    assert len(apart) > 10
    assert stats.chi2.sf(apart.sum(), len(apart)) > 1e-6


def test_chances_of_labels_need_every_column_and_known_values() -> None:
    frame = three_at_odds(2000)
    made = fit(frame)
    found = made.label_chances(frame.drop(columns="y"))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    with pytest.raises(ValueError, match=r"no column 'g', 'two'|no column 'two', 'g'"):
        made.label_chances(frame[["one", "three", "y"]])
    with pytest.raises(ValueError, match=r"'one' of the table of rows .*'a', 'b'"):
        made.label_chances(frame.assign(one="c"))
    by_id = frame.set_axis(range(70_001, 72_001)).assign(one="c")
    with pytest.raises(ValueError, match=r"in row 1 \(counted"):  # no message quotes an id
        made.label_chances(by_id)


def test_a_category_that_was_not_named_is_other_where_chances_are_asked_for() -> None:
    frame = three_at_odds(2000)
    frame["four"] = np.where(np.arange(2000) < 1990, frame["one"], "rare")
    schema = Schema.declared({name: ["a", "b"] for name in frame if name != "four"})
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0)
    made.fit(frame, label="y", sensitive="g", budget=BUDGET, schema=schema)
    assert made.codec_["four"].schema.categories == ("a", "b", "other")
    rare, new = (made.label_chances(frame.assign(four=name)) for name in ("other", "new"))
    np.testing.assert_array_equal(rare, new)
