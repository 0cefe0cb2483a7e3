"""Every generator: the claim, exact conditions, the same table shape, and files without code."""

import itertools
import math
import tracemalloc
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets import Schema
from evenhand.generators import MarginalSynthesizer, MeanEmbeddingSynthesizer, evaluate, load
from evenhand.generators.tables.codec import BYTES_PER_CELL
from evenhand.generators.tables.constraints import Constraint
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Guarantee, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import BUDGET, ROLES, SCHEMA, SynthesizerContract, table

pytestmark = pytest.mark.filterwarnings("ignore:the predicted signal-to-noise")


class TestMarginal(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return MarginalSynthesizer(noise=SeededNoise(0))


class TestMeanEmbedding(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return MeanEmbeddingSynthesizer(
            n_frequencies=60, n_parts=20, n_steps=60, noise=SeededNoise(0), random_state=0
        )


class Spendthrift(MarginalSynthesizer):
    """Its claim is half of what it spends."""

    def _claim(self, *asked):
        claim = super()._claim(*asked)
        return replace(claim, epsilon=claim.epsilon / 2, mu_squared=None)


class AlwaysTheFirst(MarginalSynthesizer):
    """It draws the first state of every column, whatever it learnt."""

    def _draw(self, conditions, rng):
        return super()._draw(conditions, rng) * 0


BROKEN = {
    Spendthrift: "the_ledger_sums_to_the_claim_and_never_passes_it",
    AlwaysTheFirst: "missing_values_come_at_the_learnt_rate",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_generator_fails_the_contract(broken: type[MarginalSynthesizer]) -> None:
    class Contract(SynthesizerContract):
        def new(self):
            return broken(noise=SeededNoise(0))

        def fitted(self):
            return self.new().fit(table(), **ROLES, budget=BUDGET, schema=SCHEMA)

    with pytest.raises(AssertionError):
        getattr(Contract(), f"test_{BROKEN[broken]}")()


@cache
def fitted() -> TableSynthesizer:
    return TestMarginal().fitted()


@pytest.mark.parametrize("relation", ["add or remove one", "replace one"])
def test_replacing_one_record_costs_more_noise_at_the_same_claim(relation: str) -> None:
    made = MarginalSynthesizer(neighbors=relation, noise=SeededNoise(0)).fit(
        table(), **ROLES, budget=BUDGET, schema=SCHEMA
    )
    named = {entry.purpose: entry.mechanism for entry in made.ledger_.entries}
    sensitivity = float(named["counts of each column by label and group"].split("=")[-1][:-1])
    tables = 4 * (1 if relation == "add or remove one" else 2)
    assert sensitivity == pytest.approx(math.sqrt(tables))
    public = made.guarantee_.public
    assert ("the number of records" in public) == (relation == "replace one")


def test_a_person_with_many_records_adds_only_those_that_are_paid_for() -> None:
    frame = table().assign(person=np.arange(4000) % 1000)
    made = MarginalSynthesizer(noise=SeededNoise(0)).fit(
        frame, **ROLES, budget=BUDGET, schema=SCHEMA, unit="person", per_unit=2
    )
    assert made.guarantee_.unit == "person"
    assert "person" not in made.sample(10).columns
    # 2 of the 4 records of each of 1000 people: the noisy total is that of 2000 records.
    sigma = made.counts_sigma_ * math.sqrt(len(made.counts_))
    assert abs(made.counts_.sum() - 2000) < 6 * sigma
    with pytest.raises(ValueError, match="replacing one is two such steps"):
        MarginalSynthesizer(neighbors="replace one").fit(
            frame, **ROLES, budget=BUDGET, schema=SCHEMA, unit="person"
        )


def test_noisy_counts_decide_the_shares_where_nothing_is_balanced() -> None:
    made = fitted()
    rows = made.sample(10_000, balance=(), random_state=0)
    share = rows.groupby(["rich", "sex", "old"], observed=False).size() / len(rows)
    assert np.abs(share.to_numpy() - made.shares_.to_numpy()).max() < 1e-4
    for n, columns in itertools.product((13, 1000, 10_000), (["rich"], ["sex", "old"])):
        rows = made.sample(n, balance="label" if columns == ["rich"] else "sensitive")
        sizes = rows.groupby(columns, observed=False).size()
        assert sizes.max() - sizes.min() <= 1


def test_a_group_without_a_record_is_not_made_up() -> None:
    declared = SCHEMA.to_dict()
    for column in declared["columns"]:
        if column["name"] == "sex":
            column["categories"] = ["F", "M", "X"]
    with pytest.warns(UserWarning, match=r"combinations of label and group cannot be told"):
        made = MarginalSynthesizer(noise=SeededNoise(1)).fit(
            table(), **ROLES, budget=BUDGET, schema=Schema.from_dict(declared)
        )
    with pytest.raises(ValueError, match=r"No record of .*sex=X.* can be told from the noise"):
        made.sample(100, conditions={"sex": "X"})
    assert len(made.sample(100, conditions={"sex": "F"})) == 100
    assert len(made.sample(100, balance=())) == 100


def test_dependence_between_columns_survives() -> None:
    # In the private table the score is about .5 higher for the old, and old chefs have no clerks.
    rows = fitted().sample(6000, random_state=0)
    assert rows.loc[rows["old"], "score"].mean() - rows.loc[~rows["old"], "score"].mean() > 0.3
    assert (rows.loc[rows["old"], "job"] == "clerk").mean() < 0.05


BAD = {
    "a label that is missing": (
        lambda f: f.assign(rich=f["rich"].where(f.index != 3)),
        r"label column 'rich' is missing in row 4 ",
    ),
    "a group that is missing": (
        lambda f: f.assign(sex=f["sex"].where(f.index != 5)),
        r"sensitive column 'sex' is missing in row 6 .*fillna",
    ),
    "a category that is not declared": (
        lambda f: f.assign(job=f["job"].where(f.index != 8, "cheff")),
        r"Column 'job' .* holds 'cheff' in row 9 .*Did you mean 'chef'",
    ),
    "a missing value that is not declared": (
        lambda f: f.assign(gain=f["gain"].where(f.index != 2)),
        r"Column 'gain' .* has no value in row 3 ",
    ),
    "text among numbers": (
        lambda f: f.assign(gain=f["gain"].astype(str).where(f.index != 6, "much")),
        r"Column 'gain' .* must hold numbers, got the text 'much' in row 7 ",
    ),
    "a column that is not there": (
        lambda f: f.rename(columns={"sex": "sexx"}),
        r"no column 'sex', which sensitive= names.*Did you mean 'sexx'",
    ),
    "no rows": (lambda f: f.iloc[:0], "The private table has no rows"),
}


@pytest.mark.usefixtures("values_shown")
@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_named_with_its_row_and_column_before_anything_is_spent(case: str) -> None:
    spoil, message = BAD[case]
    store = MemoryStore()
    with pytest.raises(ValueError, match=message):
        MarginalSynthesizer().fit(
            spoil(table()), **ROLES, budget=BUDGET, schema=SCHEMA, store=store
        )
    assert store.entries("default") == ()


def test_a_column_with_two_roles_is_refused() -> None:
    with pytest.raises(ValueError, match="'rich' is named by label and by sensitive"):
        MarginalSynthesizer().fit(table(), label="rich", sensitive="rich", budget=BUDGET)


def test_numbers_beyond_the_bounds_are_moved_to_the_end() -> None:
    frame = table()
    frame.loc[0, "gain"] = 1e12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = MarginalSynthesizer(noise=SeededNoise(0)).fit(
            frame, **ROLES, budget=BUDGET, schema=SCHEMA
        )
    assert made.sample(1000)["gain"].max() <= 20_000


def test_a_method_may_take_the_claim_back() -> None:
    class Published(MarginalSynthesizer):
        def _restate(self, claim: Guarantee) -> Guarantee:
            return replace(claim, holds=False, reason="it reads more")

    made = Published().fit(table(), **ROLES, budget=BUDGET, schema=SCHEMA)
    assert str(made.guarantee_).startswith("NOT PRIVATE: it reads more")
    assert not made.guarantee_.holds


def test_more_rows_than_there_is_memory_for_are_refused_and_a_table_of_them_fits() -> None:
    made = fitted()
    with pytest.raises(MemoryError, match=r"rows of \d+ columns need about .*sample several times"):
        made.sample(10**12)
    tracemalloc.start()
    rows = made.sample(20_000, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows.size * BYTES_PER_CELL  # the estimate is an upper one


def test_columns_that_are_called_by_numbers_come_back_by_the_same_names(tmp_path: Path) -> None:
    frame = table().rename(columns={"rich": 0, "hours": 1, "sex": 2})
    frame = frame.assign(person=np.arange(len(frame))).rename(columns={"person": 9})
    made = MarginalSynthesizer(noise=SeededNoise(0)).fit(
        frame, label=0, sensitive=2, unit=9, budget=BUDGET
    )
    made.save(tmp_path / "made")
    for generator in (made, load(tmp_path / "made")):
        rows = generator.sample(40, conditions={1: (20, 40), 2: "F"}, random_state=0)
        assert list(rows.columns) == [name for name in frame.columns if name != 9]
        assert rows[1].between(20, 40).all()
        again = generator.sample(conditions=rows[[0, 2]], random_state=0)
        assert again[0].tolist() == rows[0].tolist()
    rows = made.sample(400, random_state=0)
    found = evaluate(made, rows, frame[-400:], models=("logistic regression",))
    assert found.label == "0"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"budget": 1.0}, r"budget must be a Budget, got 1.0 .float.. For example Budget.epsilon="),
        ({"schema": {"job": ["chef"]}}, r"must be a Schema, got .* Schema.declared"),
        ({"keep": "job"}, r"keep must be a list .*, got 'job'. Write keep=.'job'."),
        ({"sensitive": None}, "sensitive must be a list of names of columns, got None"),
        ({"label": ["rich"]}, r"label must name one column, got .'rich'."),
        ({"per_unit": 3}, r"per_unit=3 bounds the rows of one unit, and without unit= each"),
    ],
)
def test_an_argument_that_cannot_be_is_said_by_its_name(given: dict, words: str) -> None:
    store = MemoryStore()
    with pytest.raises((TypeError, ValueError), match=words):
        MarginalSynthesizer().fit(table(), **{**ROLES, "budget": BUDGET, "store": store, **given})
    assert store.entries("default") == ()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"n": "10"}, "n must be a whole number, got '10'"),
        ({"conditions": ["job"]}, "conditions must be a mapping such as"),
        (
            {"n": 1, "conditions": pd.DataFrame([["F", "M"]], columns=["sex", "sex"])},
            "The table of conditions has more than one column named 'sex'",
        ),
        (
            {"constraints": Constraint.order("a", "b")},
            r"constraints must be a list, got the rule a <= b\. Give a list, such as",
        ),
        ({"constraints": "x"}, r"constraints must be a Constraint, got 'x' \(str\)\. Give a list"),
        *(
            ({"shares": shares}, "shares must be 8 finite numbers that are not negative")
            for shares in ([math.nan] * 8, [math.inf, *[0.0] * 7], [0.0] * 8, ["a"] * 8, 0.5)
        ),
    ],
)
def test_what_cannot_be_drawn_is_said_by_its_name(asked: dict, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        fitted().sample(**{"n": 10, **asked})
