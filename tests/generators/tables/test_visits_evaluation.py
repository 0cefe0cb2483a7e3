"""Two drawn tables beside real ones: what lies between persons, and what is measured of visits."""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.datasets import Schema
from evenhand.generators import evaluate
from evenhand.generators.tables.evaluation import TableEvaluation
from evenhand.generators.tables.linked_tables import NUMBER
from evenhand.generators.tables.two_tables import TwoTableSynthesizer
from evenhand.generators.tables.visits_evaluation import TwoTableEvaluation, between_persons
from evenhand.privacy import Budget, SeededNoise
from evenhand.report import write_report

pytestmark = pytest.mark.filterwarnings("ignore:.*the predicted signal-to-noise")


@given(
    values=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 4.0, math.nan])), max_size=12
    )
)
def test_what_lies_between_persons_is_one_less_the_pooled_variance_within(
    values: list[tuple[str, float]],
) -> None:
    known = [(who, x) for who, x in values if not math.isnan(x)]
    by = {who: [x for w, x in known if w == who] for who, _ in known}
    n, left = len(known), len(known) - len(by)
    found = between_persons([x for _, x in values], [who for who, _ in values])
    if not left or n < 2 or np.var([x for _, x in known]) == 0:
        assert math.isnan(found)
        return
    within = sum((x - np.mean(own)) ** 2 for own in by.values() for x in own) / left
    assert found == pytest.approx(1.0 - within / np.var([x for _, x in known], ddof=1), abs=1e-9)


def town(n: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Persons whose visits have a weight that is nearly theirs, a mood, and an id of its own."""
    rng = np.random.default_rng(seed)
    roles = {name: rng.choice(["a", "b"], n) for name in ("ill", "sex")}
    persons = pd.DataFrame({"id": range(n), "age": rng.integers(20, 90, n), **roles})
    whose = np.repeat(np.arange(n), rng.integers(0, 4, n))
    weight = rng.normal(75, 12, n)[whose] + rng.normal(0, 3, len(whose))
    visits = pd.DataFrame({"id": whose, "weight": weight.clip(40, 120)})
    visits["mood"] = rng.choice(["good", "bad"], len(whose))
    visits["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(
        rng.integers(0, 90, len(whose)), "D"
    )
    return persons, visits.assign(ticket=np.arange(len(whose)))


@cache
def fitted() -> TwoTableSynthesizer:
    schema = {"age": {"bounds": (20, 90)}, "ill": ["a", "b"], "sex": ["a", "b"]}
    seen = {
        "weight": {"bounds": (40, 120)},
        "mood": ["bad", "good"],
        "day": {"kind": "date", "bounds": ("2020-01-01", "2020-03-31")},
        "ticket": {"kind": "id"},
    }
    return TwoTableSynthesizer(noise=SeededNoise(0), random_state=0).fit(
        *town(3000, 0),
        key="id",
        label="ill",
        sensitive="sex",
        budget=Budget(epsilon=6.0, delta=1e-6),
        most=3,
        schema=Schema.declared(schema),
        visits_schema=Schema.declared(seen),
    )


def measured(real: Any) -> TwoTableEvaluation:
    drawn = fitted().sample(500, random_state=0)
    found = evaluate(fitted(), drawn, real, models=("logistic regression",))
    assert isinstance(found, TwoTableEvaluation)
    return found


def test_visits_and_persons_are_measured_beside_those_that_were_held_out() -> None:
    persons, visits = town(1500, 1)
    found = measured((persons, visits))
    assert NUMBER in [column.name for column in found.fidelity.columns]
    assert {c.name for c in found.visits.columns} == {"weight", "mood", "day", "ill", "sex"}
    assert found.visits.column_score > 0.9
    assert found.n_visits == (len(visits) / 1500, pytest.approx(1.5, abs=0.2))
    assert list(found.between) == ["weight", "day"]
    assert found.between["weight"] == pytest.approx((0.94, 0.9), abs=0.08)
    assert found.between["day"] == pytest.approx((0.0, 0.0), abs=0.15)
    assert found.to_dict()["between_persons"]["weight"] == list(found.between["weight"])
    # Weights that are dealt anew to persons show, and nothing else changes.
    dealt = visits.assign(weight=np.random.default_rng(0).permutation(visits["weight"]))
    mixed = measured((persons, dealt))
    assert mixed.between["weight"][0] == pytest.approx(0.0, abs=0.15)
    assert mixed.between["weight"][1] == found.between["weight"][1]
    assert mixed.visits.columns == found.visits.columns


def test_the_page_shows_the_visits_alone_and_beside_real_ones(tmp_path: Any) -> None:
    real = town(400, 1)
    alone = write_report(fitted(), tmp_path / "alone.html").read_text(encoding="utf-8")
    beside = write_report(fitted(), tmp_path / "b.html", measured=measured(real), test=real)
    both = beside.read_text(encoding="utf-8")
    for page in (alone, both):
        assert "Share of the persons by value" in page
        visits = page[page.index('id="visits-chart"') : page.index('id="balance"')]
        assert [name for name in ("weight", "mood", "day") if name not in visits] == []
        assert "ticket" not in visits  # an id that is made anew
        assert "persons, visits = generator.sample" in page
    assert "real rows" not in alone
    assert "Not covered by the guarantee. These numbers" not in alone
    assert "Share of the variance of visits that lies between persons" in both
    assert both.count("Not covered by the guarantee. These numbers") == 4


def test_where_no_visit_is_drawn_there_is_nothing_to_compare() -> None:
    persons = measured(town(100, 1))
    found = TwoTableEvaluation.of(
        TableEvaluation(**{f.name: getattr(persons, f.name) for f in fields(TableEvaluation)}),
        *[town(100, seed)[1].set_index("id")[:n] for seed, n in ((0, 9), (1, 0))],
        n_persons=100,
        schema=fitted().codec_.visits.schema,
    )
    assert math.isnan(found.visits.column_score)
    assert found.n_visits == (0.09, 0.0)


def test_a_person_is_one_however_its_key_is_written() -> None:
    values = [1.0, 2.0, 3.0, 5.0]
    mixed = pd.Series([7, "7", 8.0, "8"], dtype=object)
    assert between_persons(values, mixed) == between_persons(values, ["7", "7", "8", "8"])
