"""References without privacy: exact counts, and a claim that has no bound."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.generators import NonPrivateSynthesizer, ReweightedSynthesizer, load
from evenhand.generators.tables.nonprivate import density_ratio
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.testing.generators import BUDGET, ROLES, SCHEMA, table

pytestmark = pytest.mark.filterwarnings("ignore:.*cannot be told from empty ones")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "more"),
    [
        (NonPrivateSynthesizer(random_state=0), {}),
        (ReweightedSynthesizer(random_state=0), {"reference": table(800, seed=3)}),
    ],
    ids=["non-private", "reweighted"],
)
def test_there_is_no_bound_and_the_claim_says_so(
    made: TableSynthesizer, more: dict[str, object], tmp_path: Path
) -> None:
    made.fit(table(), **ROLES, schema=SCHEMA, **more)  # type: ignore[call-arg]
    claim = made.guarantee_
    assert str(claim).startswith("NOT PRIVATE: the generator was trained on the private rows")
    assert math.isinf(claim.epsilon)
    assert not claim.holds
    again = load(made.save(tmp_path / "made"))
    assert again.guarantee_ == claim
    assert again.sample(50, random_state=0).equals(made.sample(50, random_state=0))
    with pytest.raises(ValueError, match=r"adds no noise, so no budget holds it"):
        made.fit(table(), **ROLES, schema=SCHEMA, budget=BUDGET, **more)


def test_counts_are_those_of_the_rows() -> None:
    made = NonPrivateSynthesizer().fit(table(), **ROLES, schema=SCHEMA)
    frame = table()
    real = frame.groupby(["rich", "sex", "old"], observed=False).size().to_numpy()
    assert made.counts_ == pytest.approx(real)


def test_the_ratio_of_densities_is_found_where_it_is_known() -> None:
    # Two normal distributions one apart: p / q = exp(x - 1/2), increasing in x.
    rng = np.random.default_rng(0)
    ours = pd.DataFrame({"x": rng.normal(0, 1, 4000)})
    theirs = pd.DataFrame({"x": rng.normal(1, 1, 1000)})
    found = np.log(density_ratio(ours, theirs, ["x"]))
    # Slope and intercept of a logistic fit to 1000 rows: standard errors below .06.
    slope, intercept = np.polyfit(ours["x"], found, 1)
    assert abs(slope - 1.0) < 0.25
    assert abs(intercept + 0.5) < 0.25


@pytest.mark.slow
def test_a_balanced_reference_balances_groups_that_nobody_names() -> None:
    private = table()
    sizes = private["sex"].value_counts()
    other = table(4000, seed=8)
    even = other.groupby("sex", observed=True).head(600)[["sex", "hours", "job"]]
    made = ReweightedSynthesizer(random_state=0).fit(
        private, **ROLES, schema=SCHEMA, reference=even
    )
    rows = made.sample(4000, balance=(), random_state=0)
    before = sizes["F"] / len(private)
    after = (rows["sex"] == "F").mean()
    assert before < 0.37
    assert 0.44 < after < 0.56
    assert 0.3 * 4000 < made.effective_ < 4000
    with pytest.raises(ValueError, match="pass reference="):
        ReweightedSynthesizer().fit(private, **ROLES, schema=SCHEMA)
    with pytest.raises(ValueError, match="shares no column"):
        ReweightedSynthesizer().fit(
            private, **ROLES, schema=SCHEMA, reference=even.rename(columns=str.upper)
        )


def test_columns_that_frames_call_by_numbers_are_weighed_and_come_back_so() -> None:
    frame = table().assign(person=range(len(table())))
    whole = {"rich": 0, "sex": 1, "hours": 2, "person": 3}
    given = {"label": "rich", "sensitive": "sex", "unit": "person", "reference": frame[:900]}
    by_text = ReweightedSynthesizer(random_state=0).fit(frame, **given)
    given = {"label": 0, "sensitive": 1, "unit": 3}
    by_number = ReweightedSynthesizer(random_state=0).fit(
        frame.rename(columns=whole), **given, reference=frame[:900].rename(columns=whole)
    )
    assert by_number.effective_ == by_text.effective_
    rows = by_number.sample(50, random_state=0)
    assert rows.equals(by_text.sample(50, random_state=0).rename(columns=whole))
