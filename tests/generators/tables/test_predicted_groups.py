"""Unknown groups: predicted from public rows alone, row by row, and said so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from marks import FAINT

from evenhand.datasets import Schema
from evenhand.generators import MarginalSynthesizer
from evenhand.generators.tables.predicted_groups import GroupsFromReference, groups_from_reference
from evenhand.privacy import SeededNoise
from evenhand.testing.generators import BUDGET, ROLES, SCHEMA, table

pytestmark = FAINT

PUBLIC = table(1500, seed=9).drop(columns="rich")


def test_a_predicted_group_depends_on_the_row_and_on_public_rows_alone() -> None:
    frame = table(300).assign(sex=pd.Series([None] * 300, dtype=object))
    filled, _ = groups_from_reference(frame, PUBLIC, sensitive="sex")
    changed = frame.copy()
    changed.loc[7, "hours"] = 80 - changed.loc[7, "hours"]
    changed.loc[7, "score"] = None
    again, _ = groups_from_reference(changed, PUBLIC, sensitive="sex")
    others = filled.index != 7
    assert filled.loc[others, "sex"].equals(again.loc[others, "sex"])
    alone, _ = groups_from_reference(frame.iloc[[12]], PUBLIC, sensitive="sex")
    assert alone["sex"].tolist() == [filled.loc[12, "sex"]]


def test_known_groups_stay_and_dtypes_too() -> None:
    frame = table(400)
    gone = frame.assign(sex=frame["sex"].where(frame.index % 3 > 0))
    filled, (predictor,) = groups_from_reference(gone, PUBLIC, sensitive="sex")
    kept = frame.index % 3 > 0
    assert filled.loc[kept, "sex"].equals(frame.loc[kept, "sex"])
    assert filled["sex"].notna().all()
    assert filled["sex"].dtype == frame["sex"].dtype
    # Without the column altogether it is added.
    added, _ = groups_from_reference(frame.drop(columns="sex"), PUBLIC, sensitive="sex")
    assert set(added["sex"]) <= {"F", "M"}
    assert "where sex is missing it is predicted" in predictor.words


def test_the_accuracy_is_that_on_rows_that_were_not_learnt() -> None:
    # A second derivation: the same kind of rows, drawn anew.
    predictor = GroupsFromReference.fit(PUBLIC, "old", ("job", "hours", "score"))
    fresh = table(6000, seed=77)
    said, _ = groups_from_reference(
        fresh[["job", "hours", "score"]], PUBLIC[["job", "hours", "score", "old"]], sensitive="old"
    )
    right = (said["old"].to_numpy() == fresh["old"].to_numpy()).mean()
    # 1500 rows: the standard error is .011, and five of them are .055.
    assert abs(predictor.accuracy - right) < 0.055
    assert predictor.accuracy > predictor.baseline + 0.2
    # Pure noise is not called a success, though a model can learn 100 rows by heart.
    rng = np.random.default_rng(0)
    noise = pd.DataFrame(rng.normal(size=(100, 40)), columns=[f"x{i}" for i in range(40)])
    blind = GroupsFromReference.fit(
        noise.assign(s=rng.choice(["a", "b"], 100)), "s", tuple(noise.columns)
    )
    assert abs(blind.accuracy - 0.5) < 0.25  # five standard errors; by heart it is .9


def test_a_generator_takes_missing_groups_from_a_reference_and_its_claim_says_so() -> None:
    frame = table()
    frame["sex"] = frame["sex"].where(frame.index % 2 == 0)
    made = MarginalSynthesizer(noise=SeededNoise(0)).fit(
        frame, **ROLES, budget=BUDGET, schema=SCHEMA, reference=PUBLIC
    )
    assert "the reference rows from which missing groups are predicted" in made.guarantee_.public
    (told,) = (note for note in made.notes_ if note.startswith("where sex is missing"))
    assert "right for" in told
    # How many private rows lacked a group is private: nothing says it.
    assert "2000" not in "".join(made.notes_)
    assert set(made.sample(80).groupby(["sex", "old"], observed=False).size()) == {20}
    without = MarginalSynthesizer(noise=SeededNoise(0)).fit(
        table(), **ROLES, budget=BUDGET, schema=SCHEMA
    )
    assert without.guarantee_.public == tuple(
        said for said in made.guarantee_.public if "reference" not in said
    )


def test_a_group_of_which_the_reference_has_no_row_is_named() -> None:
    frame = table().assign(sex=lambda rows: rows["sex"].where(rows.index % 2 == 0))
    wider = Schema(
        columns=tuple(
            replace(column, categories=("F", "M", "X")) if column.name == "sex" else column
            for column in SCHEMA.columns
        )
    )
    with pytest.warns(UserWarning, match="no reference row has sex=X: rows whose group is missing"):
        made = MarginalSynthesizer(noise=SeededNoise(0)).fit(
            frame, **ROLES, budget=BUDGET, schema=wider, reference=PUBLIC
        )
    (told,) = (words for words in made.warnings_ if words.startswith("no reference row"))
    assert told in made.notes_


BAD = {
    "no such column": (PUBLIC.drop(columns="sex"), "reference table has no column 'sex'"),
    "one group": (PUBLIC[PUBLIC["sex"] == "F"], "at least two groups of 5 rows in 'sex'"),
    "nothing shared": (PUBLIC[["sex", "old"]], "shares no column with the private table"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_reference_that_cannot_teach_is_refused(case: str) -> None:
    reference, message = BAD[case]
    frame = table(100).drop(columns="sex").drop(columns="old")
    with pytest.raises(ValueError, match=message):
        groups_from_reference(frame, reference, sensitive="sex")


def test_groups_that_are_missing_without_a_reference_are_an_error_with_both_ways_out() -> None:
    frame = table()
    frame.loc[5, "sex"] = None
    with pytest.raises(ValueError, match=r"missing in row 6 .*reference="):
        MarginalSynthesizer().fit(frame, **ROLES, budget=BUDGET, schema=SCHEMA)
