"""Persons and their visits: one claim, one plan, keys that fit, and numbers of visits as learnt."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy import stats

from evenhand._frames import DAYS, OF_DAYS
from evenhand.baselines.pfguard import GlobalSharesPATEGANSynthesizer
from evenhand.datasets import Schema
from evenhand.datasets.columns import TypedTable
from evenhand.generators import MarginalSynthesizer, MeanEmbeddingSynthesizer, evaluate, load
from evenhand.generators.tables import person_levels, released_schema, two_tables
from evenhand.generators.tables.linked_tables import NUMBER, PERSONS, VISITS, link
from evenhand.generators.tables.nonprivate import NonPrivateSynthesizer
from evenhand.generators.tables.pate_gan import PATEGANSynthesizer
from evenhand.generators.tables.person_levels import pairs_of
from evenhand.generators.tables.private_table import PrivateTable
from evenhand.generators.tables.records import as_roles
from evenhand.generators.tables.two_tables import TwoTableSynthesizer
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.audit import audit_sensitivity
from evenhand.testing.cases import cases

pytestmark = [
    pytest.mark.filterwarnings("ignore:the predicted signal-to-noise"),
    pytest.mark.filterwarnings("ignore:.*the predicted signal-to-noise"),
]

BUDGET = Budget(epsilon=4.0, delta=1e-6)
ROLES: dict[str, Any] = {"key": "id", "label": "ill", "sensitive": "sex"}
SCHEMA = Schema.declared({"age": {"bounds": (20, 90)}, "sex": ["F", "M"], "ill": ["no", "yes"]})
SEEN = Schema.declared({"pain": {"bounds": (0, 10)}, "ward": ["A", "B"]})
MOST = 4


def town(n: int = 4000, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Persons with the number of their visits, and pain, by whether they are ill."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, n)
    ill = np.where(rng.random(n) < age / 120, "yes", "no")
    persons = pd.DataFrame(
        {
            "age": age,
            "id": [f"real-{i}" for i in rng.permutation(n)],
            "sex": rng.choice(["F", "M"], n, p=[0.4, 0.6]),
            "ill": ill,
        }
    )
    whose = np.repeat(np.arange(n), rng.poisson(np.where(ill == "yes", 2.5, 0.8)))
    pain = rng.poisson(np.where(ill[whose] == "yes", 5, 1)).clip(0, 10)
    ward = rng.choice(["A", "B"], len(whose))
    visits = pd.DataFrame({"ward": ward, "id": persons["id"].to_numpy()[whose], "pain": pain})
    return persons, visits.sample(frac=1, random_state=seed)


def fit(
    persons: pd.DataFrame | None = None, visits: pd.DataFrame | None = None, **given: Any
) -> TwoTableSynthesizer:
    first, second = town()
    made = given.pop("made", None) or TwoTableSynthesizer(noise=SeededNoise(0), random_state=0)
    how = {**ROLES, "budget": BUDGET, "most": MOST, "schema": SCHEMA, "visits_schema": SEEN}
    return made.fit(
        first if persons is None else persons,
        second if visits is None else visits,
        **{**how, **given},
    )


@cache
def fitted() -> TwoTableSynthesizer:
    return fit()


# The claim


def test_one_plan_pays_for_both_tables_and_sums_to_the_budget() -> None:
    made = fit(made=TwoTableSynthesizer(visits_share=0.3, noise=SeededNoise(0)))
    parts = {
        name: sum(e.mu_squared for e in made.ledger_.entries if e.purpose.startswith(name))
        for name in (PERSONS, VISITS)
    }
    assert parts[VISITS] == pytest.approx(0.3 * BUDGET.mu_squared, rel=1e-6)
    assert sum(parts.values()) == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    assert made.ledger_.spent == pytest.approx(sum(parts.values()))
    assert made.ledger_.spent <= BUDGET.mu_squared
    claim = made.guarantee_
    assert (claim.epsilon, claim.delta, claim.mu_squared) == (4.0, 1e-6, BUDGET.mu_squared)
    assert (claim.unit, claim.neighbors) == ("person", "add or remove one")
    assert "at most 4 visits of a person" in str(claim)
    assert made.persons_.guarantee_ == made.visits_.guarantee_ == claim


@pytest.mark.parametrize("undeclared", [(), (PERSONS,), (VISITS,), (PERSONS, VISITS)])
def test_what_both_tables_set_aside_of_delta_adds_up_to_the_promise(
    undeclared: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[float] = []
    of_schema = released_schema.UndeclaredColumns.release_schema

    def noted(columns: Any, plan: Any, delta: float) -> Any:
        used.append(delta)
        return of_schema(columns, plan, delta)

    monkeypatch.setattr(released_schema.UndeclaredColumns, "release_schema", noted)
    # Of the persons a column alone is left to the budget.
    schema = Schema.declared({"sex": ["F", "M"], "ill": ["no", "yes"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = fit(
            schema=schema if PERSONS in undeclared else SCHEMA,
            visits_schema=None if VISITS in undeclared else SEEN,
        )
    aside = 0.1 * len(undeclared)
    assert made.ledger_.budget.delta == pytest.approx(BUDGET.delta * (1 - aside), rel=1e-12)
    assert sum(used) + made.ledger_.budget.delta == pytest.approx(BUDGET.delta, rel=1e-12)
    assert [share > 0 for share in used] == [name in undeclared for name in (PERSONS, VISITS)]
    assert made.guarantee_.delta == BUDGET.delta
    said = f"with {aside:.0%} of delta for naming values"
    assert (said in str(made.guarantee_)) == bool(undeclared)
    assert made.ledger_.spent == pytest.approx(made.ledger_.budget.mu_squared, rel=1e-6)


def test_single_numbers_of_both_tables_are_named_and_nothing_is_left_unspent() -> None:
    persons, visits = town()
    rng = np.random.default_rng(1)
    for frame, special in ((persons, 12_345), (visits, 777)):
        others = rng.integers(0, 20_000, len(frame))
        frame["amount"] = np.where(rng.random(len(frame)) < 0.3, special, others)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = fit(
            persons, visits, schema=None, visits_schema=None, budget=Budget(epsilon=30, delta=1e-6)
        )
    told = [note for note in made.notes_ if "single numbers" in note]
    assert [note.split(":")[0] for note in told] == ["persons", "visits"]
    assert made.ledger_.spent == pytest.approx(made.ledger_.budget.mu_squared, rel=1e-6)
    for drawn, special in zip(made.sample(4000, random_state=0), (12_345, 777), strict=True):
        assert abs((drawn["amount"] == special).mean() - 0.3) < 0.1


def problems() -> list[str]:
    return [p for found in audit_sensitivity(cases()["two-table"]) for p in found.problems]


@pytest.mark.slow
def test_a_person_with_all_its_visits_moves_what_is_declared_and_forgotten_visits_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [one for one in audit_sensitivity(cases()["two-table"]) if not one.skipped]
    assert [one.problems for one in found] == [()] * 5
    # The bound is reached by somebody whose visits are all alike, but for distances of tables,
    # a twentieth of mu squared, whose movements depend on the noise before.
    assert max(one.mu_moved for one in found) > 0.97 * found[0].mu_claimed
    encode = PrivateTable.encode

    def forgetful(table: PrivateTable, *given: Any) -> Any:
        encoded = encode(table, *given)
        return replace(encoded, data=replace(encoded.data, per_unit=1))

    monkeypatch.setattr(PrivateTable, "encode", forgetful)
    assert any("(NoisySum) moves 2 times" in problem for problem in problems())


def test_a_person_who_counts_twice_in_how_alike_visits_are_is_convicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def twice(*given: Any) -> Any:
        return np.repeat(pairs_of(*given), 2, axis=0)

    monkeypatch.setattr(person_levels, "pairs_of", twice)
    assert any("(NoisySum) moves 1." in problem for problem in problems())


def test_visits_chosen_by_their_places_in_the_whole_table_are_convicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seeded(units: pd.Series, most: int) -> Any:
        order = pd.Series(np.random.default_rng(0).permutation(len(units)))
        return (order.groupby(units.to_numpy()).rank() <= most).to_numpy()

    monkeypatch.setattr(two_tables, "chosen_records", seeded)
    assert any("moves" in problem for problem in problems())


@pytest.mark.torch
def test_a_table_whose_claim_does_not_hold_takes_that_of_both_back() -> None:
    pytest.importorskip("torch")
    shares = GlobalSharesPATEGANSynthesizer(n_teachers=20, n_rounds=3, batch_size=16)
    made = fit(made=TwoTableSynthesizer(visits=shares, noise=SeededNoise(0)))
    assert not made.guarantee_.holds
    assert str(made.persons_.guarantee_).startswith("NOT PRIVATE: every teacher")


# What is drawn


def numbers_of(persons: pd.DataFrame, visits: pd.DataFrame) -> pd.DataFrame:
    number = visits["id"].value_counts().reindex(persons["id"], fill_value=0).to_numpy()
    return persons.assign(n=number)


def differ(table: pd.DataFrame, expected: pd.DataFrame) -> float:
    """p-value of the drawn numbers of visits, given label and group, under these chances."""
    found = table.groupby(["ill", "sex", "n"]).size().unstack(fill_value=0)
    found = found.reindex(columns=range(MOST + 1), fill_value=0)
    means = expected.mul(found.sum(axis=1), axis=0)
    statistic = float(((found - means) ** 2 / means).to_numpy().sum())
    return float(stats.chi2.sf(statistic, means.size - len(means)))


def test_numbers_of_visits_are_those_that_were_released() -> None:
    # By chance alone correct code fails once in a million seeds.
    made = fitted()
    codec, at = made.codec_.persons[NUMBER], made.codec_.persons.features.index(NUMBER)
    assert codec.bins is not None
    states = made.persons_.distribution_.expected(np.ones(made.conditions_.n))  # type: ignore[attr-defined]
    tables = made.persons_.distribution_.tables  # type: ignore[attr-defined]
    (own,) = [
        e.sum(axis=tuple(1 + i for i, c in enumerate(t.columns) if c != at))
        for t, e in zip(tables, states, strict=True)
        if at in t.columns and len(t.parts) == made.conditions_.n and len(set(t.parts)) > 2
    ][:1]
    chance = own[:, codec.bins.bin_of_cell] * codec.bins.weights
    names = pd.MultiIndex.from_product(made.conditions_.categories, names=made.conditions_.names)
    expected = pd.DataFrame(chance / chance.sum(axis=1, keepdims=True), index=names)
    persons, visits = made.sample(20_000, random_state=1)
    table = numbers_of(persons, visits)
    assert differ(table, expected) > FALSE_ALARM
    mixed = table.assign(n=np.random.default_rng(0).permutation(table["n"]))
    assert differ(mixed, expected) < FALSE_ALARM  # numbers that no label and no group decides
    assert differ(table.assign(n=(table["n"] + 1).clip(upper=MOST)), expected) < FALSE_ALARM


def test_numbers_of_visits_and_visits_are_near_the_private_ones_given_label_and_group() -> None:
    private, real = town()
    persons, visits = fitted().sample(8000, balance=(), random_state=2)
    own, true = (numbers_of(*of) for of in ((persons, visits), (private, real)))
    true["n"] = true["n"].clip(upper=MOST)
    numbers = own.groupby("ill")["n"].mean() - true.groupby("ill")["n"].mean()
    drawn = ((persons, visits), (private, real))
    pains = [seen.merge(of).groupby("ill")["pain"].mean() for of, seen in drawn]
    assert numbers.abs().max() < 0.15
    assert (pains[0] - pains[1]).abs().max() < 0.4


@pytest.mark.filterwarnings("ignore:Few private records")  # have so many visits
@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 300),
    seed=st.integers(0, 2**32 - 1),
    balance=st.sampled_from([(), ("label",), ("label", "sensitive")]),
    low=st.integers(0, MOST),
)
def test_every_visit_belongs_to_a_drawn_person(
    n: int, seed: int, balance: tuple[str, ...], low: int
) -> None:
    asked = {NUMBER: (low, MOST)} if low else None
    persons, visits = fitted().sample(n, balance=balance, conditions=asked, random_state=seed)
    assert len(persons) == n
    assert persons["id"].is_unique
    assert visits["id"].isin(persons["id"]).all()
    assert numbers_of(persons, visits)["n"].between(low, MOST).all()
    private, real = town(10)
    assert persons.dtypes.equals(private.dtypes)
    assert visits.dtypes.equals(real.dtypes)
    assert list(visits.index) == list(range(len(visits)))


KEYS = {
    "int64": range(4000),
    "int16": range(4000),
    "Int64": range(4000),
    "float64": range(4000),
    "str": map(str, range(4000)),
    "object": [f"p{i}" for i in range(4000)],
    "string": map(str, range(4000)),
}


@pytest.mark.parametrize("dtype", KEYS)
def test_the_key_keeps_its_place_and_its_dtype(dtype: str) -> None:
    persons, visits = town()
    anew = pd.Series(list(KEYS[dtype]), index=persons["id"], dtype=dtype)
    persons["id"] = anew.array
    visits["id"] = anew.loc[visits["id"]].array
    drawn, seen = fit(persons, visits).sample(50, random_state=0)
    assert drawn.dtypes.equals(persons.dtypes)
    assert seen.dtypes.equals(visits.dtypes)
    assert seen["id"].isin(drawn["id"]).all()


def test_the_key_is_made_by_the_pattern_that_is_declared() -> None:
    declared = {"id": {"kind": "id", "pattern": "P-####"}, "sex": ["F", "M"], "ill": ["no", "yes"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        persons, visits = fit(schema=Schema.declared(declared)).sample(30, random_state=0)
    assert persons["id"].tolist()[:2] == ["P-0001", "P-0002"]
    assert set(visits["id"]) <= set(persons["id"])


def test_it_comes_back_from_its_folder_as_it_was(tmp_path: Path) -> None:
    made = fitted()
    again = load(made.save(tmp_path / "made"))
    assert isinstance(again, TwoTableSynthesizer)
    for own, other in zip(
        made.sample(200, random_state=3), again.sample(200, random_state=3), strict=True
    ):
        pd.testing.assert_frame_equal(own, other)
    assert again.guarantee_ == again.visits_.guarantee_ == made.guarantee_
    assert again.settings() == made.settings()
    assert again.visits_.counts_sigma_ == made.visits_.counts_sigma_


def test_any_method_of_tables_learns_either_table(tmp_path: Path) -> None:
    embedding = MeanEmbeddingSynthesizer(n_frequencies=40, n_parts=10, n_steps=20)
    made = fit(
        made=TwoTableSynthesizer(
            persons=embedding,
            visits={"method": "marginal", "pairs": False},
            noise=SeededNoise(0),
            random_state=0,
        )
    )
    assert made.ledger_.spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    again = load(made.save(tmp_path / "made"))
    assert isinstance(again.persons_, MeanEmbeddingSynthesizer)
    persons, visits = again.sample(100, random_state=0)
    assert visits["id"].isin(persons["id"]).all()
    assert not hasattr(embedding, "guarantee_")  # what was given stays as it was


def test_persons_drawn_where_no_visit_stands_out_have_none() -> None:
    persons, visits = town()
    ill = persons.loc[persons["ill"] == "yes", "id"]
    with pytest.warns(UserWarning, match="ill=yes, sex=F; ill=yes, sex=M.* without visits"):
        made = fit(persons, visits[~visits["id"].isin(ill)])
    drawn, seen = made.sample(1000, random_state=0)
    assert set(seen.merge(drawn)["ill"]) == {"no"}
    none = made.sample(20, conditions={"ill": "yes"}, random_state=0)[1]
    assert none.shape == (0, 3)
    assert none.dtypes.equals(visits.dtypes)


@pytest.mark.filterwarnings("ignore:.* without visits", "ignore:Few private records")
def test_visits_that_are_asked_for_where_none_were_learnt_are_refused() -> None:
    persons, visits = town()
    ill = persons.loc[persons["ill"] == "yes", "id"]
    made = fit(persons, visits[~visits["id"].isin(ill)])
    words = r"'number of visits', and visits of ill=yes.* Ask for"
    for asked in (2, (2, 3)):
        with pytest.raises(ValueError, match=words):
            made.sample(40, conditions={NUMBER: asked}, random_state=0)
    lines = pd.DataFrame({"ill": ["no", "yes", "no"], NUMBER: [2, 0, 1]})
    asked_persons, asked_visits = made.sample(conditions=lines, random_state=0)
    counted = asked_visits["id"].value_counts().reindex(asked_persons["id"], fill_value=0)
    assert counted.tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match="cannot be told from none"):
        made.sample(conditions=lines.assign(ill="yes"), random_state=0)
    assert len(made.sample(40, conditions={NUMBER: (0, 3)}, random_state=0)[0]) == 40
    persons_, seen_ = made.sample(40, conditions={NUMBER: (2, 3), "ill": "no"}, random_state=0)
    assert seen_["id"].value_counts().reindex(persons_["id"], fill_value=0).between(2, 3).all()


def test_visits_depend_on_what_is_carried_and_on_no_other_column(tmp_path: Path) -> None:
    persons, visits = town()
    persons["smokes"] = np.random.default_rng(1).choice(["no", "yes"], len(persons))
    smokes = persons.set_index("id")["smokes"].loc[visits["id"]].to_numpy() == "yes"
    visits["ward"] = np.where(smokes, "A", "B")
    (more,) = Schema.declared({"smokes": ["no", "yes"]}).columns
    schema = Schema(columns=(*SCHEMA.columns, more))
    shares = []
    for carry in ([], ["smokes"]):
        made = load(fit(persons, visits, schema=schema, carry=carry).save(tmp_path / str(carry)))
        drawn, seen = made.sample(2000, random_state=0)
        assert list(seen.columns) == list(visits.columns)
        both = seen.merge(drawn)
        shares.append(((both["ward"] == "A") == (both["smokes"] == "yes")).mean())
        assert list(made.joined(drawn, seen)[1].columns[2:]) == ["ill", "sex", *carry]
    assert shares[0] == pytest.approx(0.5, abs=0.05)
    # Without noise 1; the noise on one of its 16 cells of some 350 visits hides a few of them.
    assert shares[1] > 0.9


def test_visits_of_persons_whose_group_is_not_named_are_left_out() -> None:
    persons, visits = town()
    persons.loc[:2, "sex"] = "X"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = fit(persons, visits, schema=None, visits_schema=None)
    assert made.conditions_.categories == made.visits_.conditions_.categories
    assert made.conditions_.categories[1] == ("F", "M")
    drawn, seen = made.sample(100, random_state=0)
    assert seen["id"].isin(drawn["id"]).all()


def test_drawn_tables_are_measured_beside_real_ones() -> None:
    made, test = fitted(), town(1000, seed=1)
    drawn = made.sample(1000, balance=(), random_state=0)
    found = evaluate(made, drawn, test, train=town(500, seed=2), models=("logistic regression",))
    assert found.fidelity.column_score > 0.9
    assert NUMBER in {c.name for c in made.persons_.codec_.columns}
    seen = evaluate(
        made.visits_,
        made.joined(*drawn)[1],
        made.joined(*test)[1],
        models=("logistic regression",),
    )
    assert seen.mean("auroc") > 0.8  # pain tells who is ill


# What is refused, before anything is charged


def changed(which: int, **columns: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    tables = list(town())
    tables[which] = tables[which].assign(**columns)
    return tables[0], tables[1]


def doubled() -> tuple[pd.DataFrame, pd.DataFrame]:
    persons, visits = town()
    return pd.concat([persons, persons[:1]]), visits


def gap(which: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    tables = town()
    tables[which].iloc[4, tables[which].columns.get_loc("id")] = None
    return tables


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a key with a typo": (
        town,
        {"key": "idd"},
        "table of persons has no column 'idd', which a role names.*of visits has no column 'idd'",
    ),
    "a label with a typo": (town, {"label": "il"}, "no column 'il', .*Did you mean 'ill'"),
    "a person without a key": (lambda: gap(0), {}, "persons' key 'id' is missing in row 5"),
    "a visit without a key": (lambda: gap(1), {}, "visits' key 'id' is missing in row 5"),
    "a person twice": (doubled, {}, "key 'id' of the persons has a person again in row 4001"),
    "a visit of nobody": (
        lambda: (town()[0][9:], town()[1]),
        {},
        "key 'id' of the visits names nobody of the persons in row",
    ),
    "no visits at all": (
        lambda: (town()[0], town()[1][:0]),
        {},
        "visits: The private table has no rows",
    ),
    "no visit to be read": (town, {"most": 0}, "most must be at least 1, got most=0"),
    "a key that is the label": (town, {"key": "ill"}, "'ill' is named by label and by unit"),
    "a key that is a feature to keep": (town, {"keep": ["id"]}, "persons: .* has no column 'id'"),
    "a label in the visits": (lambda: changed(1, ill="yes"), {}, "The visits have 'ill'"),
    "a number of visits": (
        lambda: changed(0, **{NUMBER: 1}),
        {},
        "have a column 'number of visits', which is counted anew",
    ),
    "keys of two dtypes": (
        lambda: changed(1, id=1),
        {},
        "is str in the persons and int64 in the visits",
    ),
    "a category that is not declared": (
        lambda: changed(1, ward="C"),
        {},
        "visits: Column 'ward' of the private table holds .* which is not a category",
    ),
    "a schema of another table": (
        town,
        {"visits_schema": SCHEMA},
        "visits: The private table has no column 'age', which the schema names",
    ),
    "carried and not declared": (
        town,
        {"carry": ["age"]},
        "carry= names 'age', which the schema of the persons must declare, as categories",
    ),
    "carried twice": (town, {"carry": ["sex"]}, "'sex' is named by sensitive and by sensitive"),
    "too large a share": (
        town,
        {"made": TwoTableSynthesizer(visits_share=1.0)},
        "visits_share must lie strictly between 0 and 1",
    ),
    "replacing a person": (
        town,
        {"made": TwoTableSynthesizer(neighbors="replace one")},
        "replacing one is two such steps",
    ),
    "a setting of one table": (
        town,
        {"made": TwoTableSynthesizer(visits=MarginalSynthesizer(width=0))},
        "visits: width must be at least 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_before_anything_is_charged(case: str) -> None:
    tables, how, words = BAD[case]
    store = MemoryStore()
    with pytest.raises((ValueError, TypeError), match=words):
        fit(*tables(), store=store, **how)
    assert not store._lines


def test_odd_columns_of_both_tables_are_refused_in_one_error() -> None:
    persons, visits = town()
    store = MemoryStore()
    with pytest.raises(ValueError, match="looks like") as refused:
        fit(
            persons.assign(mail=[f"a{i}@firm.com" for i in range(len(persons))]),
            visits.assign(number=[f"V-{i}" for i in range(len(visits))], day="2020-01-31"),
            store=store,
            schema=None,
            visits_schema=None,
        )
    said = str(refused.value)
    assert re.search(r"persons: .*'mail'.*visits: .*'number'", said)
    assert not store._lines


def test_noise_and_seed_are_given_to_the_whole() -> None:
    with pytest.raises(ValueError, match=r"those of both tables: .*leave them out of Marginal"):
        TwoTableSynthesizer(persons=MarginalSynthesizer(random_state=0))
    with pytest.raises(TypeError, match="learnt by generators of tables"):
        TwoTableSynthesizer(visits=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="NonPrivateSynthesizer has no claim"):
        TwoTableSynthesizer(visits=NonPrivateSynthesizer())


@pytest.mark.torch
def test_teachers_learn_from_persons_and_from_visits() -> None:
    pytest.importorskip("torch")
    small = PATEGANSynthesizer(n_teachers=20, n_rounds=3, batch_size=16)
    made = fit(made=TwoTableSynthesizer(persons=small, visits=small, noise=SeededNoise(0)))
    persons, visits = made.sample(40, random_state=0)
    assert visits["id"].isin(persons["id"]).all()


def test_the_claim_says_that_a_schema_is_public_where_one_was_declared_alone() -> None:
    """The fit itself declares key and number of visits: no knowledge of the user's."""
    said = "the declared schema"
    assert said in fit().guarantee_.public
    assert said in fit(visits_schema=None).guarantee_.public
    alone = fit(schema=None, visits_schema=None).guarantee_
    assert said not in alone.public
    assert f"that at most {MOST} visits of a person are read" in alone.public


def test_days_of_visits_stay_days() -> None:
    persons, visits = town(40)
    visits["day"] = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(len(visits)), "D")
    visits["day"] = visits["day"].astype(OF_DAYS)
    visits.attrs[DAYS] = ["day"]
    _, linked = link(persons, visits, as_roles("ill", "sex", "id"), 3)
    assert TypedTable.of(linked)["day"].date_unit == "day"
