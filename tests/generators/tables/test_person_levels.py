"""Levels of persons: visits of one are alike as measured, and together distributed as without."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy import stats

from evenhand.datasets import Schema
from evenhand.generators import MeanEmbeddingSynthesizer, load
from evenhand.generators.aggregators import FeatureSums
from evenhand.generators.tables import marginal, person_levels, tree_distribution
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.linked_tables import VISITS
from evenhand.generators.tables.marginal import MarginalSynthesizer
from evenhand.generators.tables.person_levels import (
    ALIKE,
    PersonLevels,
    _Column,
    _columns,
    pairs_of,
)
from evenhand.generators.tables.tree_distribution import JunctionTree, Table, TreeDistribution
from evenhand.generators.tables.two_tables import TwoTableSynthesizer
from evenhand.privacy import Budget, SeededNoise

BUDGET = Budget(epsilon=4.0, delta=1e-6)
CODES = tuple(f"c{i:02}" for i in range(80))
SCHEMA = Schema.declared({"age": {"bounds": (20, 90)}, "sex": ["F", "M"], "ill": ["no", "yes"]})
SEEN = Schema.declared(
    {"pain": {"bounds": (0, 10)}, "ward": ["A", "B", "C"], "code": CODES, "day": {"bounds": (0, 6)}}
)


def town(n: int = 4000, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Persons with a usual pain, by whether they are ill, a usual ward, and always one code."""
    rng = np.random.default_rng(seed)
    ill = rng.choice(["no", "yes"], n)
    persons = pd.DataFrame(
        {"id": range(n), "age": rng.integers(20, 90, n), "sex": rng.choice(["F", "M"], n)}
    ).assign(ill=ill)
    whose = np.repeat(np.arange(n), rng.integers(0, 5, n))
    usual = (rng.normal(0, 2, n) + np.where(ill == "yes", 5, 3))[whose]
    ward, own = rng.choice(["A", "B", "C"], n)[whose], rng.random(len(whose)) < 0.6
    visits = pd.DataFrame(
        {
            "id": whose,
            "pain": (usual + rng.normal(0, 1, len(whose))).round().clip(0, 10).astype(int),
            "ward": np.where(own, ward, rng.choice(["A", "B", "C"], len(whose))),
            "code": rng.choice(CODES, n)[whose],
            "day": rng.integers(0, 7, len(whose)),
        }
    )
    return persons, visits


@cache
def fitted() -> TwoTableSynthesizer:
    made = TwoTableSynthesizer(noise=SeededNoise(0), random_state=0)
    return fit(made, *town())


def fit(made: TwoTableSynthesizer, *tables: pd.DataFrame) -> TwoTableSynthesizer:
    how: dict[str, Any] = {"schema": SCHEMA, "visits_schema": SEEN, "budget": BUDGET, "most": 4}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*signal-to-noise")
        return made.fit(*tables, key="id", label="ill", sensitive="sex", **how)


def learnt(made: TwoTableSynthesizer) -> MarginalSynthesizer:
    assert isinstance(made.visits_, MarginalSynthesizer)
    return made.visits_


def states_of(made: TwoTableSynthesizer, *tables: pd.DataFrame) -> EncodedTable:
    """Return visits, drawn or real, as states."""
    codec, visits = made.codec_.visits, tables[1].merge(tables[0])
    codes = codec.encode(visits)
    at = [codec.names.index(name) for name in codec.features]
    given = [codes[:, codec.names.index(name)] for name in codec.given]
    return EncodedTable(
        codes=codes[:, at],
        condition=codec.conditions.code(given),
        sizes=tuple(codec[name].n_states for name in codec.features),
        units=visits["id"].to_numpy(),
        per_unit=4,
    )


# What is released


@st.composite
def seen(draw: st.DrawFn) -> EncodedTable:
    n = draw(st.integers(0, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = (4, 3, 5)
    return EncodedTable(
        codes=np.stack([rng.integers(0, size, n) for size in sizes], axis=1),
        condition=np.zeros(n, dtype=np.int64),
        sizes=sizes,
        units=rng.integers(0, 4, n).astype(str),
        per_unit=14,
    )


SCORES = [np.array([-1.0, -0.3, 0.2, 1.0]), None, np.array([-1.0, -1.0, 0.0, 0.5, 1.0])]


def by_hand(data: EncodedTable, person: str) -> list[float] | None:
    """The definition: the mean over all pairs of visits of this person."""
    assert data.units is not None
    own = data.codes[data.units == person]
    if len(own) < 2:
        return None
    pairs = list(combinations(own, 2))
    return [
        float(np.mean([a[i] == b[i] if s is None else s[a[i]] * s[b[i]] for a, b in pairs]))
        for i, s in enumerate(SCORES)
    ]


@given(data=seen())
@settings(deadline=None)
def test_how_alike_visits_are_is_the_mean_over_their_pairs(data: EncodedTable) -> None:
    assert data.units is not None
    expected = [by_hand(data, person) for person in pd.unique(data.units)]
    kept = [row for row in expected if row is not None]
    found = pairs_of(data, SCORES)
    assert found.shape == (len(kept), 3)
    np.testing.assert_allclose(found, np.reshape(kept, (-1, 3)), atol=1e-12)
    assert np.abs(found).max(initial=0.0) <= 1.0 + 1e-12


def sums_of(data: EncodedTable) -> Any:
    phi = pairs_of(data, SCORES) / math.sqrt(3)
    return FeatureSums(n_features=3, n_conditions=1).total(phi, np.zeros(len(phi), dtype=np.int64))


def without(data: EncodedTable, person: str) -> EncodedTable:
    assert data.units is not None
    rows = data.units != person
    return replace(
        data, codes=data.codes[rows], condition=data.condition[rows], units=data.units[rows]
    )


@given(data=seen())
@settings(deadline=None)
def test_a_person_with_all_its_visits_moves_what_is_declared(data: EncodedTable) -> None:
    declared = FeatureSums(n_features=3, n_conditions=1).l2_sensitivity("add or remove one")
    assert data.units is not None
    for person in set(data.units):
        assert np.linalg.norm(sums_of(data) - sums_of(without(data, person))) <= declared


def test_visits_that_are_all_alike_move_all_that_is_declared() -> None:
    alike = EncodedTable(
        codes=np.tile([0, 1, 4], (9, 1)),
        condition=np.zeros(9, dtype=np.int64),
        sizes=(4, 3, 5),
        units=np.full(9, "a"),
        per_unit=14,
    )
    declared = FeatureSums(n_features=3, n_conditions=1).l2_sensitivity("add or remove one")
    assert np.linalg.norm(sums_of(alike)) == pytest.approx(declared, rel=1e-5)


def test_the_release_is_one_part_of_the_plan_of_the_visits() -> None:
    parts = {entry.purpose: entry.mu_squared for entry in fitted().ledger_.entries}
    assert parts[VISITS + ALIKE] == pytest.approx(0.5 * 0.95 * 0.04 * BUDGET.mu_squared, rel=1e-6)
    assert fitted().ledger_.spent <= BUDGET.mu_squared


# What a look is


def column(p: Any, ordered: bool) -> _Column:
    chances = np.atleast_2d(np.asarray(p, dtype=np.float64))
    return _Column(chances=chances, shares=np.full(len(chances), 1 / len(chances)), ordered=ordered)


@given(
    p=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=9).filter(lambda p: sum(p) > 0.1),
    r=st.floats(0.0, 1.0),
    ordered=st.booleans(),
)
def test_a_level_is_drawn_in_every_state(p: list[float], r: float, ordered: bool) -> None:
    made = column(np.array(p) / sum(p), ordered)
    look = made.look(r)
    assert (look >= 0).all()
    np.testing.assert_allclose(look.sum(axis=1), 1.0)
    np.testing.assert_allclose(made.look(0.0), np.tile(made.chances, (len(p), 1)), atol=1e-6)
    seen = made.chances[0] > 1e-3  # what is sharp shows each state that there is
    np.testing.assert_allclose(made.look(1.0)[seen][:, seen], np.eye(seen.sum()), atol=1e-6)


@pytest.mark.parametrize("r", [0.0, 0.3, 0.7, 0.9])
def test_visits_are_as_alike_as_normal_scores_and_categories_of_that_correlation(r: float) -> None:
    fine = column(np.full(128, 1 / 128), True)
    # Of normal scores of correlation c Spearman's is 6 / pi asin(c / 2); ranks have variance 1/3.
    assert fine.alike(r) == pytest.approx(2 / np.pi * np.arcsin(r**2 / 2), abs=2e-3)
    p = np.array([0.5, 0.3, 0.2])
    assert column(p, False).alike(r) == pytest.approx(r**2 + (1 - r**2) * (p**2).sum())
    for one in (fine, column(p, False), column([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], True)):
        assert one.sharpness(one.alike(r), -1.0) == pytest.approx(r, abs=2e-3)
    assert column(p, False).sharpness(1.1, 0.0) == 1.0
    assert column(p, False).sharpness((p**2).sum() + 0.1, 0.11) == 0.0
    assert column(np.full(20_000, 1 / 20_000), False).sharpness(1.0, 0.0) == 0.0  # too many


SIZES = (3, 2, 3)
STATES = np.array(list(product(*map(range, SIZES))))


def chances_of(made: TreeDistribution) -> Any:
    """Probability of all states together, by condition, from the formula of the tree."""
    with np.errstate(divide="ignore"):
        logs = sum(t.values[(t.parts[:, None], *STATES[:, list(t.columns)].T)] for t in made.tables)
    return np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)


@given(seed=st.integers(0, 2**32 - 1), r=st.floats(0.1, 0.99))
@settings(max_examples=25, deadline=None)
def test_levels_leave_the_distribution_of_a_visit_as_it_is(seed: int, r: float) -> None:
    # Over all states x of a typical visit, and all levels y of it in the first and last column.
    rng = np.random.default_rng(seed)
    columns = [(0,), (1,), (2,), (0, 1), (1, 2)]
    tree = TreeDistribution(
        tree=JunctionTree(parents=((), (0,), (1,)), order=(0, 1, 2)),
        tables=tuple(
            Table(
                columns=some,
                parts=np.arange(2),
                values=rng.normal(size=(2, *(SIZES[i] for i in some))),
            )
            for some in columns
        ),
    )
    before = chances_of(tree)
    p = [np.bincount(STATES[:, i], before.mean(axis=0)) for i in range(3)]
    looks = {0: column(p[0], True).look(r), 2: column(p[2], False).look(r)}
    levels = PersonLevels(sharpness=np.array([r, 0.0, r]), looks=looks)
    events = np.array(list(product(range(3), range(3))))
    for c in range(2):
        here = np.full(len(events), c)
        visit, chance = tree.given(levels.likelihoods(events), here)
        exact = looks[0][STATES[:, 0]][:, events[:, 0]] * looks[2][STATES[:, 2]][:, events[:, 1]]
        np.testing.assert_allclose(chance, before[c] @ exact, rtol=1e-9)
        np.testing.assert_allclose(chance @ chances_of(visit), before[c], rtol=1e-9)


# What is drawn

PAIN, WARD, CODE, DAY = range(4)


def deviations(made: TwoTableSynthesizer, *drawn: pd.DataFrame) -> Any:
    """How alike visits of one person are, less what the levels that were learnt say, in errors."""
    data, visits, look = states_of(made, *drawn), learnt(made), fitted().levels_.looks
    scores = [one.scores for one in _columns(visits)]
    condition = (
        pd.Series(data.condition).groupby(pd.factorize(data.units)[0]).agg(["first", "size"])
    )
    several = condition["first"][condition["size"] > 1].to_numpy()
    found, out = pairs_of(data, scores), []
    for i, (p, score) in enumerate(zip(visits.chances(), scores, strict=True)):
        joint = p[:, :, None] * look.get(i, np.full(p.shape[1:] * 2, 1 / p.shape[1]))
        level = joint.sum(axis=1)
        given = joint / np.where(level > 0, level, 1.0)[:, None, :]
        of_level = (given**2).sum(axis=1)
        if score is not None:
            of_level = np.einsum("s,csl->cl", score, given) ** 2
        apart = found[:, i] - (level * of_level).sum(axis=1)[several]
        out.append(apart.mean() / (max(apart.std(), 1e-6) / math.sqrt(len(apart))))
    return np.abs(out)


def quantile() -> float:
    return float(stats.norm.isf(FALSE_ALARM / 2))


def test_drawn_visits_of_one_person_are_as_alike_as_was_learnt() -> None:
    made = fitted()
    sharp = made.levels_.sharpness**2
    assert sharp[DAY] == 0.0
    # 4 / 5 of the variance of pain is of persons; .6 squared is how often two wards are the usual.
    assert sharp[[PAIN, WARD, CODE]] == pytest.approx([0.8, 0.36, 1.0], abs=0.1)
    drawn = made.sample(6000, balance=(), random_state=1)
    assert (deviations(made, *drawn) < quantile()).all()
    lost = TwoTableSynthesizer.__new__(TwoTableSynthesizer)
    lost.__dict__ |= made.__dict__ | {"levels_": replace(made.levels_, looks={})}
    without = deviations(made, *lost.sample(6000, balance=(), random_state=1))
    assert (without[[PAIN, WARD, CODE]] > quantile()).all()  # the test would see it


def test_visits_that_are_drawn_in_many_blocks_are_as_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marginal, "MOST_AT_ONCE", 20_000)
    monkeypatch.setattr(person_levels, "BLOCK", 700)
    monkeypatch.setattr(tree_distribution, "BLOCK", 900)
    drawn = fitted().sample(3000, balance=(), random_state=3)
    assert (deviations(fitted(), *drawn) < quantile()).all()


def test_visits_are_distributed_by_label_and_group_as_they_are_without_levels() -> None:
    made = fitted()
    data = states_of(made, *made.sample(8000, balance=(), random_state=2))
    # The first of each person: these are independent of each other.
    first = np.unique(pd.factorize(data.units)[0], return_index=True)[1]
    codes, condition = data.codes[first], data.condition[first]
    size = np.bincount(condition, minlength=4)

    def fits(chances: Any, i: int) -> bool:
        each = [np.bincount(codes[condition == c, i], minlength=chances.shape[1]) for c in range(4)]
        means = np.maximum(chances * size[:, None], 1e-9)
        statistic = float(((np.stack(each) - means) ** 2 / means).sum())
        return bool(stats.chi2.sf(statistic, means.size - 4) > FALSE_ALARM)

    chances = learnt(made).chances()
    assert all(fits(p, i) for i, p in enumerate(chances))
    assert not fits(chances[PAIN][::-1], PAIN)  # pain of those who are ill, of those who are not


def test_levels_come_back_from_a_folder(tmp_path: Path) -> None:
    made = fitted()
    again = load(made.save(tmp_path / "made"))
    assert isinstance(again, TwoTableSynthesizer)
    np.testing.assert_array_equal(again.levels_.sharpness, made.levels_.sharpness)
    for own, other in zip(
        made.sample(200, random_state=3), again.sample(200, random_state=3), strict=True
    ):
        pd.testing.assert_frame_equal(own, other)
    assert "visits: alike in one person are 'pain' (0." in "; ".join(made.notes_)


def test_visits_that_another_method_learns_have_no_levels_and_pay_for_none() -> None:
    embedding = MeanEmbeddingSynthesizer(n_frequencies=20, n_parts=10, n_steps=5)
    made = fit(
        TwoTableSynthesizer(visits=embedding, noise=SeededNoise(0), random_state=0), *town(600)
    )
    assert not any(entry.purpose.endswith(ALIKE) for entry in made.ledger_.entries)
    assert made.ledger_.spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    assert "alike" not in "; ".join(made.notes_)  # nobody has looked
    persons, visits = made.sample(50, random_state=0)
    assert visits["id"].isin(persons["id"]).all()


def test_persons_with_one_visit_show_no_levels() -> None:
    persons, visits = town()
    made = TwoTableSynthesizer(noise=SeededNoise(1), random_state=0)
    assert not fit(made, persons, visits.drop_duplicates("id")).levels_.looks
    assert "visits: no column is alike in one person" in made.notes_
