"""Rows under conditions on any column and under constraints: exact counts, and the law."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runs import FALSE_ALARM
from scipy.stats import chi2_contingency

from evenhand.datasets import Schema
from evenhand.generators import MarginalSynthesizer, load
from evenhand.generators.tables.constraints import Constraint
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Budget, SeededNoise

ROLES = ["rich", "sex"]
JOBS = ["chef", "clerk", "nurse"]
SCHEMA = Schema.declared(
    {
        "begin": {"bounds": (0, 20)},
        "end": {"bounds": (0, 30)},
        "job": {"categories": JOBS, "missing": True},
        "place": ["bank", "clinic"],
        "gain": {"bounds": (0, 1000), "missing": True},
        "sex": ["F", "M"],
        "rich": ["no", "yes"],
    }
)
PLACES = pd.DataFrame(
    {"job": ["chef", "clerk", "nurse", None], "place": ["bank", "bank", "clinic", "clinic"]}
)


class ByTrial(MarginalSynthesizer):
    """A method that can do no better than to draw again."""

    _given = TableSynthesizer._given


@cache
def fitted(kind: type[MarginalSynthesizer] = MarginalSynthesizer) -> MarginalSynthesizer:
    rng = np.random.default_rng(0)
    n = 6000
    sex = rng.choice(["F", "M"], n, p=[0.3, 0.7])
    job = np.where(rng.random(n) < np.where(sex == "F", 0.6, 0.2), "nurse", "clerk")
    job = np.where(rng.random(n) < 0.1, "chef", job)
    begin = rng.integers(0, 21, n)
    frame = pd.DataFrame(
        {
            "begin": begin,
            "end": np.clip(begin + rng.normal(4, 4, n).round(), 0, 30).astype(int),
            "job": np.where(rng.random(n) < 0.1, None, job),
            "place": np.where((job == "nurse") == (rng.random(n) < 0.9), "clinic", "bank"),
            "gain": np.where(rng.random(n) < 0.5, 0.0, rng.exponential(200, n).clip(0, 1000)),
            "sex": sex,
            "rich": np.where(begin + rng.normal(0, 6, n) > 11, "yes", "no"),
        }
    )
    frame.loc[rng.random(n) < 0.1, "gain"] = np.nan
    # Wide bins: where a condition ends within one, a part of it is drawn.
    return kind(n_bins=5, noise=SeededNoise(0)).fit(
        frame, label="rich", sensitive="sex", schema=SCHEMA, budget=Budget(epsilon=4, delta=1e-6)
    )


def differ(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """P-value of a chi-squared test that columns, cut coarsely, have one law in both tables."""

    def cells(rows: pd.DataFrame) -> pd.Series:
        gain = np.select([rows["gain"].isna(), rows["gain"] == 0, rows["gain"] < 150], [0, 1, 2], 3)
        parts = [rows["rich"], rows["sex"], rows["job"].fillna("-"), rows["begin"] // 4, gain]
        return pd.Series(list(zip(*parts, rows["end"] // 6, strict=True)))

    both = pd.DataFrame({k: cells(t).value_counts() for k, t in enumerate((one, other))}).fillna(0)
    rare = both.sum(axis=1) < 30  # joined, so that the law of chi-squared holds in the tail
    both = pd.concat([both[~rare], both[rare].sum().to_frame().T])
    both = both[both.sum(axis=1) > 0]
    assert len(both) > 20
    return float(chi2_contingency(both.to_numpy()).pvalue)


def kept(rows: pd.DataFrame, low: float, high: float) -> pd.DataFrame:
    return rows[(rows["job"] == "nurse") & rows["gain"].between(low, high)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MarginalSynthesizer, ByTrial], ids=["tree", "by trial"])
def test_rows_given_a_condition_are_as_draws_that_were_filtered(kind: Any) -> None:
    made, plain = fitted(kind), fitted().sample(150_000, balance=(), random_state=1)
    asked = {"job": "nurse", "gain": (0, 130)}
    drawn = made.sample(15_000, conditions=asked, balance=(), random_state=2)
    assert len(kept(drawn, 0, 130)) == len(drawn) == 15_000
    expected = kept(plain, 0, 130)
    assert len(expected) > 10_000
    assert differ(drawn, expected) > FALSE_ALARM
    # The test would see shares of label and group that are those of all rows.
    shares = made.counts_ / made.counts_.sum()
    other = made.sample(15_000, conditions=asked, shares=shares, random_state=2)
    assert differ(other, expected) < FALSE_ALARM


@pytest.mark.slow
def test_rows_under_constraints_are_as_draws_that_were_filtered() -> None:
    rules = [Constraint.order("begin", "end"), Constraint.combinations(PLACES)]
    drawn = fitted().sample(15_000, constraints=rules, balance=(), random_state=3)
    plain = fitted().sample(60_000, balance=(), random_state=4)
    # Kept by the rules written out once more.
    places = set(PLACES.fillna("-").itertuples(index=False, name=None))

    def keep(rows: pd.DataFrame) -> pd.Series:
        jobs = zip(rows["job"].fillna("-"), rows["place"], strict=True)
        return (rows["begin"] <= rows["end"]) & np.array([pair in places for pair in jobs])

    assert keep(drawn).all()
    assert 0.3 < keep(plain).mean() < 0.95
    assert differ(drawn, plain[keep(plain)]) > FALSE_ALARM
    assert differ(drawn, plain) < FALSE_ALARM


@pytest.mark.parametrize("kind", [MarginalSynthesizer, ByTrial], ids=["tree", "by trial"])
def test_counts_by_label_and_group_are_exact_whatever_else_is_asked(kind: Any) -> None:
    rules = [Constraint.order("begin", "end"), Constraint.range("gain", 0, 500)]
    for balance in (("label", "sensitive"), "label", ["sensitive"], ()):
        rows = fitted(kind).sample(
            401, conditions={"job": "nurse"}, constraints=rules, balance=balance, random_state=0
        )
        assert len(rows) == 401
        assert set(rows["job"]) == {"nurse"}
        assert (rows["begin"] <= rows["end"]).all()
        assert (rows["gain"].isna() | rows["gain"].between(0, 500)).all()
        assert rows["gain"].isna().any()
        if balance:
            words = (balance,) if isinstance(balance, str) else balance
            by = [{"label": "rich", "sensitive": "sex"}[word] for word in words]
            assert np.ptp(rows.groupby(by).size()) <= 1
    shares = [0.5, 0, 0.25, 0.25]
    rows = fitted(kind).sample(200, conditions={"job": "clerk"}, shares=shares, random_state=0)
    assert rows.groupby(ROLES).size().tolist() == [100, 50, 50]
    women = fitted(kind).sample(50, conditions={"sex": "F", "end": (8, 11)}, random_state=0)
    assert women.groupby(ROLES).size().tolist() == [25, 25]
    assert set(women["end"]) == {8, 9, 10, 11}


@pytest.mark.filterwarnings("ignore:Few private records")
def test_a_table_of_conditions_may_name_any_column() -> None:
    asked = pd.DataFrame(
        {
            "job": ["nurse", None, "chef", "nurse"] * 10,
            "end": [(5, 9), 7, 12.0, (5, 9)] * 10,
            "sex": ["F", "M", "F", "M"] * 10,
        },
        index=np.arange(40)[::-1],
    )
    rule = Constraint.range("begin", 2, 18)
    rows = fitted().sample(conditions=asked, constraints=[rule], random_state=0)
    assert rows.index.tolist() == asked.index.tolist()
    assert rows["sex"].tolist() == asked["sex"].tolist()
    assert rows["job"].fillna("-").tolist() == asked["job"].fillna("-").tolist()
    ends = [e if isinstance(e, tuple) else (e, e) for e in asked["end"]]
    assert all(low <= e <= high for e, (low, high) in zip(rows["end"], ends, strict=True))
    assert rows["begin"].between(2, 18).all()
    assert rows["rich"].value_counts().tolist() == [20, 20]
    alone = fitted().sample(conditions=asked[["job"]], random_state=0)
    assert alone["job"].fillna("-").tolist() == asked["job"].fillna("-").tolist()
    with pytest.raises(ValueError, match="n=3 and a table of 40 conditions do not agree"):
        fitted().sample(3, conditions=asked)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_dates_are_asked_for_as_text_or_dates_and_have_an_order(zone: str | None) -> None:
    rng = np.random.default_rng(0)
    came = pd.Series(
        pd.Timestamp("2020-01-01", tz=zone) + pd.to_timedelta(rng.integers(0, 700, 3000), "D")
    )
    frame = pd.DataFrame(
        {
            "came": came,
            "left": came + pd.to_timedelta(rng.integers(-50, 300, 3000), "D"),
            "sex": rng.choice(["F", "M"], 3000),
            "rich": rng.choice(["no", "yes"], 3000),
        }
    )
    days = {"bounds": ("2020-01-01", "2022-12-31")}
    schema = Schema.declared({"came": days, "left": days, "sex": ["F", "M"], "rich": ["no", "yes"]})
    made = MarginalSynthesizer(noise=SeededNoise(0)).fit(
        frame, label="rich", sensitive="sex", schema=schema, budget=Budget(epsilon=4, delta=1e-6)
    )
    first, last = pd.Timestamp("2020-03-10", tz=zone), pd.Timestamp("2021-02-03", tz=zone)
    for asked in (("2020-03-10", "2021-02-03"), (first, last), (first.date(), last.date())):
        rules = [Constraint.order("came", "left"), Constraint.range("left", first, last)]
        rows = made.sample(80, conditions={"came": asked}, constraints=rules, random_state=0)
        assert rows["came"].between(first, last).all()
        assert rows["left"].between(first, last).all()
        assert (rows["came"] <= rows["left"]).all()
        assert rows.groupby(ROLES).size().tolist() == [20] * 4
    with pytest.raises(ValueError, match=r"came=18300 must be a date, or a range"):
        made.sample(4, conditions={"came": 18_300})
    with pytest.raises(ValueError, match=r"holds dates from 2020-01-01 to 2022-12-31"):
        made.sample(4, conditions={"came": ("2023-01-01", "2023-06-01")})


def test_a_generator_from_a_folder_draws_the_same(tmp_path: Path) -> None:
    again = load(fitted().save(tmp_path / "made"))
    how: dict[str, Any] = {
        "conditions": {"job": "clerk", "gain": (1, 300)},
        "constraints": [Constraint.order("begin", "end")],
        "random_state": 5,
    }
    pd.testing.assert_frame_equal(again.sample(50, **how), fitted().sample(50, **how))


NEVER = Constraint(words="none", columns=("end",), keeps=lambda rows: np.zeros(len(rows), bool))
BAD = {
    "no such columns": (
        {"conditions": {"jobb": "chef"}, "constraints": [Constraint.order("begin", "ende")]},
        r"no column 'jobb', 'ende'; it has 'begin'.*Did you mean 'job'",
    ),
    "two bad values": (
        {"conditions": {"job": "nurs", "end": "soon"}},
        r"(?s)job='nurs' is not a category.*end='soon' must be a number",
    ),
    "a rule without words": ({"constraints": [replace(NEVER, words="")]}, "0 of 50,000 draws"),
    "no such category": ({"conditions": {"job": "nurs"}}, "not a category.*mean 'nurse'"),
    "a range of text": ({"conditions": {"job": ("a", "b")}}, "not a category"),
    "no number": ({"conditions": {"end": "soon"}}, r"end='soon' must be a number, or a range"),
    "ends the wrong way": (
        {"conditions": {"end": (np.float64(5), np.int64(4))}},
        r"end=\(5\.0, 4\) must be .* with low <= high",
    ),
    "three ends": ({"conditions": {"end": (5, 6, 7)}}, r"a range \(low, high\)"),
    "beyond the bounds": ({"conditions": {"end": (31, 40)}}, r"whole numbers from 0\.0 to 30\.0"),
    "between whole numbers": ({"conditions": {"end": 4.5}}, r"whole numbers from 0\.0 to 30\.0"),
    "one real number": ({"conditions": {"gain": 3.21}}, r"Ask for a range"),
    "never missing": ({"conditions": {"end": None}}, "never missing"),
    "never kept": (
        {"constraints": [NEVER]},
        r"Too few .* with none \(rich=no, sex=F: 0 of 50,000 draws, a chance of at most 6e-05",
    ),
    "an order of text": ({"constraints": [Constraint.order("job", "end")]}, "numbers or dates"),
    "shares and groups": (
        {"conditions": {"sex": "F"}, "constraints": [NEVER], "shares": [1, 1, 1, 1]},
        "without conditions=",
    ),
}


@pytest.mark.parametrize(("how", "said"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_drawn_is_refused(how: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fitted().sample(4, random_state=0, **how)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Few private records")
def test_what_is_rare_is_drawn_in_small_numbers_and_refused_in_large_ones() -> None:
    # One row in 400, by a coin of the rule's own.
    coin = np.random.default_rng(1)
    rare = Constraint(words="rare", columns=(), keeps=lambda rows: coin.random(len(rows)) < 1 / 400)
    assert len(fitted().sample(40, constraints=[rare], random_state=0)) == 40
    with pytest.raises(ValueError, match=r"with rare .* a chance of about 0\.00[23].*fewer rows"):
        fitted().sample(4000, constraints=[rare], random_state=0)


def test_rows_that_noise_alone_could_make_are_told_so() -> None:
    asked = {"job": "chef", "begin": np.int64(3), "end": 29}
    with pytest.warns(UserWarning, match=r"Few private records have job='chef', begin=3, .*noise"):
        fitted().sample(20, conditions=asked, random_state=0)


@pytest.mark.parametrize("allowed", [PLACES[:0], PLACES[[]]], ids=["no line", "no column"])
def test_a_constraint_that_allows_nothing_is_refused(allowed: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="table of allowed combinations is empty"):
        Constraint.combinations(allowed)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (np.int64(5), 4, r"\(5, 4\)"),
        ("a", 4, r"\('a', 4\)"),
        (None, None, r"\(None, None\)"),
        (None, np.nan, r"\(None, nan\)"),
        (pd.NaT, None, r"\(NaT, None\)"),
    ],
)
def test_a_range_is_from_low_to_high(low: object, high: object, said: str) -> None:
    with pytest.raises(ValueError, match=rf"low <= high, and None for one end at most; got {said}"):
        Constraint.range("end", low, high)


def test_an_order_is_one_of_two_columns() -> None:
    with pytest.raises(ValueError, match="An order is one of two columns, got 'end' twice"):
        Constraint.order("end", "end")
