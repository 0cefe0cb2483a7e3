"""Settings of every generator: wrong ones are refused in words, before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import pytest
from marks import FAINT

pytest.importorskip("torch", reason="needs the extra torch")

from evenhand.generators import MarginalSynthesizer
from evenhand.generators.registry import GENERATORS
from evenhand.generators.settings import types_of
from evenhand.generators.tables.two_tables import TwoTableSynthesizer
from evenhand.privacy import SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import BUDGET, ROLES, SCHEMA, pictures, table

pytestmark = [pytest.mark.torch, FAINT]

# A setting whose range is wider than what is refused here would train, and fail.
WRONG: dict[tuple[type, bool], tuple[Any, ...]] = {
    (bool, False): ("x", 1),
    (int, False): ("x", 1.5, True, -1),
    (float, False): ("x", True, math.nan, -1.0),
    (str, False): ("no such", 3),
    (int, True): (("x",), (-1,), 3, "64"),
    (float, True): (("x",), (math.nan,), 3),
}
OBJECTS = {"sampler": ("x", 3), "public": ("x",), "noise": ("x",), "random_state": ("x", 1.5)}
ONE_TABLE = [key for key in GENERATORS if key[0] != "two tables"]
ROWS, IMAGES = table(200), pictures(60)


def wrong_settings(kind: Any) -> list[tuple[str, Any]]:
    found = [
        (name, value)
        for name, known in types_of(kind).items()
        for value in (
            *WRONG[known.held, known.several],
            *(() if known.may_be_none else (None,)),
        )
    ]
    arguments = {setting.name for setting in fields(kind) if setting.init}
    return found + [(n, value) for n in OBJECTS if n in arguments for value in OBJECTS[n]]


def fit(key: tuple[str, str], settings: dict[str, Any], store: MemoryStore) -> None:
    kind = GENERATORS[key]
    known = {setting.name for setting in fields(kind) if setting.init}
    usual = {"noise": SeededNoise(0), "blocks": (0, 2, 4)}
    made = kind(**{name: usual[name] for name in usual if name in known} | settings)
    account = {"budget": BUDGET, "store": store} if "noise" in known else {}
    if key[0] == "images":
        made.fit(IMAGES[0], IMAGES[1], sensitive_features=IMAGES[2], **account)
    else:
        more = {"reference": ROWS} if key[1] == "reweighted" else {}
        made.fit(ROWS, **ROLES, schema=SCHEMA, **more, **account)


@pytest.mark.parametrize("key", ONE_TABLE, ids="/".join)
def test_every_wrong_setting_is_refused_by_its_name_before_anything_is_spent(key: Any) -> None:
    wrong = wrong_settings(GENERATORS[key])
    assert wrong
    for name, value in wrong:
        store = MemoryStore()
        with pytest.raises((ValueError, TypeError), match=name):
            fit(key, {name: value}, store)
        assert store.entries("default") == (), (name, value)


def test_a_class_whose_annotations_name_what_is_not_there_has_the_settings_that_it_inherits() -> (
    None
):
    @dataclass(eq=False, repr=False, kw_only=True)
    class Own(MarginalSynthesizer):
        mine: NotImportedHere | None = None  # type: ignore[name-defined]  # noqa: F821

    assert types_of(Own) == types_of(MarginalSynthesizer)


def test_settings_of_both_of_two_tables_are_looked_at() -> None:
    made = TwoTableSynthesizer(visits=MarginalSynthesizer(pairs="x"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="visits: pairs must be true or false, got 'x'"):
        made._check_types()
    with pytest.raises(TypeError, match="visits_share must be a number"):
        TwoTableSynthesizer(visits_share="x")._check_types()  # type: ignore[arg-type]


def test_a_balance_that_is_no_list_is_refused_with_the_way_out() -> None:
    made = MarginalSynthesizer(noise=SeededNoise(0), random_state=0)
    made.fit(table(200), **ROLES, schema=SCHEMA, budget=BUDGET)
    with pytest.raises(TypeError, match=r"balance must be a list of .*, got None.*balance=\(\)"):
        made.sample(5, balance=None)  # type: ignore[arg-type]
