"""Public rows beside private ones: what the comparison costs, says, and does not say."""

import itertools
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runs import FALSE_ALARM
from scipy import stats

import evenhand
from evenhand import Budget, DemographicParity, FairSharesClassifier, PATEClassifier
from evenhand.datasets import Schema
from evenhand.datasets.parquet import ParquetRows
from evenhand.estimators import compared_rows, fit_many
from evenhand.estimators.compared_rows import RowsToCompare
from evenhand.estimators.drift import OF_DRIFT, PURPOSE, DriftCheck, DriftWarning
from evenhand.estimators.inputs import FitInputs
from evenhand.fairness.groups import encode_groups
from evenhand.generators.aggregators import TableCounts
from evenhand.owners.vote_file import VoteFile
from evenhand.privacy import BudgetExceeded, FloatNoise, Ledger, SeededNoise
from evenhand.report import write_report

pytestmark = pytest.mark.filterwarnings("ignore::evenhand.estimators.plan.NoiseDrownsAnswers")

BUDGET = Budget(epsilon=8.0, delta=1e-5)
MARGIN = DemographicParity(margin=0.1)
WIDE = DemographicParity(margin=1.0)


def people(n: int, seed: int, older: float = 0.0) -> tuple[pd.DataFrame, Any, Any]:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    X = pd.DataFrame(
        {
            "age": (rng.normal(40 + older, 10, n)).round(),
            "gain": np.where(rng.random(n) < 0.1, rng.uniform(1, 1000, n), 0.0).round(),
            "job": rng.choice(["chef", "clerk", "smith"], n, p=[0.5, 0.4, 0.1]),
        }
    )
    return X, np.where(X["age"] + 10 * (sex == "M") > 45, "yes", "no"), sex


def inputs(X: Any, X_public: Any, groups: Any = None, groups_public: Any = None, units: Any = None):
    return FitInputs(
        X_private=X,
        y_private=np.zeros(len(X), dtype=np.int64),
        X_public=X_public,
        classes=np.array([0, 1]),
        groups_public=None if groups_public is None else encode_groups(groups_public),
        units=units,
        set_aside=0,
        private_rows=np.arange(len(X)),
        sensitive_private=groups,
    )


def fitted(older: float = 12.0, method: Any = FairSharesClassifier, **changes: Any) -> Any:
    (X, y, sex), (X_public, _, sex_public) = people(3000, 0), people(800, 1, older)
    given: dict[str, Any] = {
        "budget": BUDGET,
        "fairness": MARGIN,
        "check_drift": True,
        "n_teachers": 60,
        "noise": SeededNoise(1),
        "random_state": 0,
    } | changes
    more = {"sensitive_features": sex, "sensitive_features_public": sex_public}
    if method is PATEClassifier:
        del given["fairness"]
        more = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        return method(**given).fit(X, y, X_public=X_public, **more)


# ---- what one record moves, by brute force ---------------------------------------------------


@pytest.mark.parametrize("relation", ["replace one", "add or remove one"])
def test_a_record_moves_what_is_charged_and_some_record_does(relation: str) -> None:
    public = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "job": ["a", "b", "a", "b"]})
    schema = Schema.declared({"x": "numeric", "job": ["a", "b"]})
    records = [
        *itertools.product((-1.0, 1.0, 9.0, math.nan), ("a", "b", "new", None), ("F", "M", "X"))
    ]

    def counted(rows: Any) -> Any:
        X = pd.DataFrame([row[:2] for row in rows], columns=["x", "job"]).astype({"x": float})
        sex = [row[2] for row in rows]
        read = inputs(X, public, sex, ["F", "M", "F", "M"])
        found = RowsToCompare.of(DriftCheck(n_bins=2), read, schema)
        shapes = tuple((1, len(part.words)) for part in found.parts)
        return found.private, TableCounts(shapes=shapes).l2_sensitivity(relation)

    base = [(1.0, "a", "F"), (2.0, "b", "M")]
    without, charged = counted(base)
    assert charged == pytest.approx(math.sqrt(3 if relation.startswith("add") else 6))
    tables = [counted([*base, one])[0] for one in records]
    others = tables if relation == "replace one" else [without]
    moved = [np.linalg.norm(one - other) for one in tables for other in others]
    assert max(moved) == pytest.approx(charged)


def test_of_a_unit_one_row_is_counted_whatever_others_it_adds() -> None:
    X, _, sex = people(40, 0)
    public, _, sex_public = people(100, 1)
    few = inputs(X, public, sex, sex_public, units=np.arange(40) // 2)
    check = DriftCheck()
    alone = RowsToCompare.of(check, few, None)
    more = pd.concat([X, X.iloc[[3, 3, 7]]], ignore_index=True)
    units = np.append(np.arange(40) // 2, [1, 1, 1])
    many = inputs(more, public, np.append(sex, sex[[3, 3, 7]]), sex_public, units=units)
    assert np.array_equal(alone.private, RowsToCompare.of(check, many, None).private)
    assert alone.private.sum() == 20 * 4
    assert alone.n_private is None


# ---- what it says ---------------------------------------------------------------------------


def run(check: DriftCheck, older: float, seed: int) -> Any:
    """A check of 900 private rows beside 900 public ones, on a ledger of its own."""
    (X, _, _), (X_public, _, _) = people(900, 2 * seed), people(900, 2 * seed + 1, older)
    ledger = Ledger(
        Budget(epsilon=0.4, delta=1e-5), noise=SeededNoise(seed), neighbors="replace one"
    )
    rows = RowsToCompare.of(check, inputs(X[["age", "job"]], X_public[["age", "job"]]), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)
        return rows.release(ledger, np.random.default_rng(seed))


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_said_and_a_shift_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of 60 checks of rows that are alike a fifth at most may say otherwise; correct code fails
    # this with probability FALSE_ALARM.
    check, runs = DriftCheck(level=0.2), 60
    alarms = sum(any(c.differs for c in run(check, 0.0, seed)) for seed in range(runs))
    assert alarms <= stats.binom.isf(FALSE_ALARM, runs, check.level)
    # Five years are half a standard deviation: seen in nearly all of 20, and in that column.
    seen = [run(check, 5.0, 1000 + seed)[0] for seed in range(20)]
    assert sum(c.differs and c.name == "age" for c in seen) >= 15
    # A build that forgets the noise in what chance may do cries wolf.
    alike = compared_rows._compared

    def deaf(part: Any, public: Any, noisy: Any, n: Any, about: int, sigma: float, *more: Any):
        return alike(part, public, noisy, n, about, 0.0, *more)

    monkeypatch.setattr(compared_rows, "_compared", deaf)
    alarms = sum(any(c.differs for c in run(check, 0.0, seed)) for seed in range(runs))
    assert alarms > stats.binom.isf(FALSE_ALARM, runs, check.level)


def test_the_distance_is_the_total_variation_where_noise_is_small() -> None:
    rows = pd.DataFrame({"job": ["a"] * 600 + ["b"] * 300 + ["c"] * 100})
    public = pd.DataFrame({"job": ["a"] * 300 + ["b"] * 700})
    compared = RowsToCompare.of(DriftCheck(), inputs(rows, public), None)
    ledger = Ledger(Budget(epsilon=500.0, delta=1e-5), noise=SeededNoise(0))
    with pytest.warns(DriftWarning, match="differ from the private ones in job"):
        (found,) = compared.release(ledger, np.random.default_rng(0))
    # |.6 - .3| + |.3 - .7| + .1, halved.
    assert found.distance == pytest.approx(0.4, abs=0.01)
    assert (found.most, found.public) == ("'b'", 0.7)
    assert found.private == pytest.approx(0.3, abs=0.01)


def test_a_value_that_nearly_all_have_is_a_part_of_its_own() -> None:
    X, _, _ = people(2000, 0)
    part = next(
        part
        for part in RowsToCompare.of(DriftCheck(), inputs(X, X), None).parts
        if part.name == "gain"
    )
    assert part.edges is not None
    assert part.edges[0] == X["gain"][X["gain"] > 0].min()


def test_claim_report_and_folder_say_what_was_found(tmp_path: Path) -> None:
    model = fitted()
    assert [column.name for column in model.drift_ if column.differs] == ["age"]
    assert {column.name for column in model.drift_} == {"age", "gain", "job", "the group"}
    assert "differ from the private ones in age" in str(model.guarantee_)
    assert model.guarantee_.epsilon == BUDGET.epsilon
    said = [words for words in model.choices_ if words.startswith(OF_DRIFT)]
    assert "5% of the budget" in said[0]
    assert "age" in said[1]
    spent = sum(e.mu_squared for e in model.ledger_.entries if PURPOSE in e.account)
    assert spent == pytest.approx(0.05 * BUDGET.mu_squared, rel=1e-5)
    assert model.ledger_.spent <= BUDGET.mu_squared
    loaded = evenhand.load(model.save(tmp_path / "model"))
    assert loaded.drift_ == model.drift_
    assert loaded.guarantee_ == model.guarantee_
    assert loaded.check_drift is True
    write_report(loaded, tmp_path / "report.html")
    assert "the public rows differ from the private ones in age" in (
        tmp_path / "report.html"
    ).read_text(encoding="utf-8")


def test_rows_that_are_alike_are_said_to_be_and_what_hides_in_the_noise() -> None:
    model = fitted(older=0.0, method=PATEClassifier)
    assert not any(column.differs for column in model.drift_)
    assert "no column differs beyond chance and noise, which hide distances up to" in " ".join(
        model.choices_
    )
    assert "differ" not in " ".join(model.guarantee_.warnings)
    assert fitted(check_drift=False).drift_ is None


def test_rows_that_stream_are_counted_as_those_in_memory(tmp_path: Path) -> None:
    (X, y, _), (X_public, _, _) = people(3000, 0), people(800, 1, 12.0)
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    found = []
    for rows, label in ((X, y), (ParquetRows(tmp_path / "rows.parquet", batch_rows=700), "y")):
        model = PATEClassifier(
            BUDGET, check_drift=True, n_teachers=60, noise=SeededNoise(1), random_state=0
        )
        with pytest.warns(DriftWarning, match="age"):
            found.append(model.fit(rows, label, X_public=X_public).drift_)
    assert found[0] == found[1]


# ---- what is refused ------------------------------------------------------------------------


def test_a_refused_comparison_spends_nothing(tmp_path: Path) -> None:
    (X, y, sex), (X_public, _, sex_public) = people(600, 0), people(200, 1)
    account = Ledger(BUDGET, noise=FloatNoise())

    def fit(X: Any = X, y: Any = y, **changes: Any) -> Any:
        names = ("X_public", "sensitive_features_public", "unit_ids")
        more = {"X_public": X_public, "sensitive_features_public": sex_public}
        more |= {name: changes.pop(name) for name in names if name in changes}
        given = {"check_drift": True, "fairness": WIDE, "random_state": 0, "n_teachers": 30}
        model = FairSharesClassifier(BUDGET, **(given | changes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)
            return model.fit(X, y, sensitive_features=sex, ledger=account, **more)

    none = {"X_public": None, "sensitive_features_public": None}
    for error, words, changes in (
        (ValueError, "set aside from the private table", {"public_fraction": 0.2, **none}),
        (ValueError, "drawn from noisy counts", {"public": "synthetic", **none}),
        (ValueError, "must hold numbers", {"X": X.assign(age="old")}),
        (TypeError, "check_drift must be True, False or", {"check_drift": "yes"}),
        (TypeError, "check_drift must be True, False or", {"check_drift": 0.1}),
    ):
        with pytest.raises(error, match=words):
            fit(**changes)
        assert account.spent == 0, words
    # Not vacuous: the same account pays for a fit that is in order, until it is spent.
    fit()
    assert account.spent == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    with pytest.raises(BudgetExceeded, match="left, less than a tenth of the mu="):
        fit()


def test_models_of_one_training_and_votes_of_owners_are_not_compared() -> None:
    (X, y, _), (X_public, _, sex_public) = people(300, 0), people(100, 1)
    models = [FairSharesClassifier(BUDGET, MARGIN, check_drift=True, random_state=0)] * 2
    with pytest.raises(ValueError, match="counts the private ones from the budget of each"):
        fit_many(models, X, y, X_public=X_public, sensitive_features_public=sex_public)
    cast = VoteFile.cast("a", np.arange(100) % 2, X_public, classes=[0, 1])
    with pytest.raises(TypeError, match="from_votes does not take check_drift="):
        FairSharesClassifier.from_votes([cast], X_public, sex_public, check_drift=True)


@pytest.mark.parametrize(
    ("name", "value"), [("share", 0.0), ("share", 1.0), ("n_bins", 1), ("level", 0.0)]
)
def test_settings_that_cannot_be_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        DriftCheck(**{name: value})
