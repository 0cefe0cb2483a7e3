"""Generators of tables on a frontier: the numbers of fit, draw and evaluate by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets import Schema
from evenhand.fairness import FairnessKind
from evenhand.frontier import Grid, Run, RunStore, arguments, read_runs, sweep, write_csv
from evenhand.frontier.cost import ReleaseCost
from evenhand.frontier.judged_rows import BALANCES, JudgedGenerator
from evenhand.frontier.material import DataSource
from evenhand.frontier.page.data import page_data
from evenhand.frontier.run import Setting
from evenhand.frontier.subjects import SUBJECTS, draws_rows
from evenhand.frontier.train import Task, train, train_one
from evenhand.generators import MarginalSynthesizer, evaluate, even_rates, load
from evenhand.generators.tables import even_rates as even_rates_module
from evenhand.generators.tables.utility import MODELS, Judge
from evenhand.methods import METHODS
from evenhand.privacy import Budget, SeededNoise

KNOWN = {"sex": ["F", "M"], "loan": ["granted", "refused"]}
SCHEMA = Schema.declared({"age": {"bounds": (10, 70)}, "hours": {"bounds": (10, 60)}} | KNOWN)


@pytest.fixture(scope="module")
def data(town: Path) -> DataSource:
    """Return the town with declared columns, so that noise leaves something to learn."""
    SCHEMA.save(town.parent / "schema.json")
    known = Grid.from_toml(town).data
    return DataSource(**{**vars(known), "schema": str(town.parent / "schema.json")})


def one(data: DataSource, **run: Any) -> Setting:
    listed = {name: value if isinstance(value, list) else [value] for name, value in run.items()}
    (setting,) = Grid(
        data=data, runs=({"method": ["marginal"], "epsilon": [20], **listed},)
    ).settings()
    return setting


def measured(data: DataSource, setting: Setting) -> Run:
    done = train(Task(source=data, settings=(setting,), cache=None, spec="grid.toml"))
    assert done.skipped == ()
    (run,) = done.runs
    return run


@pytest.mark.filterwarnings("ignore::evenhand.generators.NotedWarning")
@pytest.mark.parametrize(
    ("asked", "by_hand"),
    [
        ({}, {}),
        ({"balance": "none", "use_sensitive": False}, {"balance": ()}),
        ({"balance": "sensitive", "judge": "gradient boosting"}, {"balance": ("sensitive",)}),
        ({"balance": "even-rates", "amount": 0.5}, {"moved": ("demographic-parity", 0.5)}),
        (
            {"balance": "even-rates", "fairness": "equalized-odds"},
            {"moved": ("equalized-odds", 1.0)},
        ),
        ({"balance": "both-rates"}, {"moved": ("both", 1.0)}),
    ],
)
def test_a_run_has_the_numbers_of_fit_draw_and_evaluate_by_hand(
    town: Path,
    data: DataSource,
    monkeypatch: pytest.MonkeyPatch,
    asked: dict[str, Any],
    by_hand: dict[str, Any],
) -> None:
    monkeypatch.setattr(arguments, "InversionNoise", lambda: SeededNoise(5))
    monkeypatch.setattr(even_rates_module, "N_ROWS", 2000)
    notion = asked.get("fairness", "demographic-parity")
    setting = one(data, n_rows=2000, reference="pairwise", **asked)
    run = measured(data, setting)

    private, test = (
        pd.read_csv(town.parent / f"{part}.csv")[["age", "hours", "sex", "loan"]]
        for part in ("private", "test")
    )
    generator = MarginalSynthesizer(noise=SeededNoise(5), random_state=0).fit(
        private,
        label="loan",
        sensitive="sex",
        budget=Budget(epsilon=20.0, delta=1e-5),
        schema=SCHEMA,
    )
    if "moved" in by_hand:
        fairness, amount = by_hand["moved"]
        how: dict[str, Any] = {
            "shares": even_rates(generator, fairness, amount=amount, random_state=0)
        }
    else:
        how = by_hand
    rows = generator.sample(2000, random_state=0, **how)
    judge = asked.get("judge", "logistic regression")
    sees = asked.get("use_sensitive", True)
    found = evaluate(generator, rows, test, models=(judge,), use_sensitive=sees)
    assert run.error == pytest.approx(1 - found.mean("accuracy"), abs=1e-12)
    assert run.gap_name == f"{notion.replace('-', '_')}_pairwise"
    assert run.gap == pytest.approx(found.mean(run.gap_name), abs=1e-12)
    assert run.coverage == 1.0
    assert (run.epsilon, run.delta) == (generator.guarantee_.epsilon, 1e-5)
    kind = FairnessKind(run.fairness_kind)
    assert kind.needs_group is sees
    assert (kind is FairnessKind.NONE) is (asked.get("balance") == "none" and not sees)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::evenhand.generators.NotedWarning")
def test_a_sweep_runs_nothing_twice_and_its_runs_stand_beside_those_of_classifiers(
    data: DataSource, tmp_path: Path
) -> None:
    run = {
        "method": ["marginal", "ron-gauss", "non-private", "dpsgd"],
        "epsilon": [9],
        "balance": ["none", "even-rates"],
        "amount": [0.5, 1],
        "n_rows": [300],
    }
    grid = Grid(data=data, runs=(run,))
    with RunStore(tmp_path / "runs.db") as store:
        first = sweep(grid, store, n_jobs=1)
        assert (first.n_new, first.skipped) == (2 * 3 + 1 + 1, ())
        # amount is of even rates alone: natural rows are one setting
        assert first.n_settings == len(store)
        again = sweep(grid, store)
        assert (again.n_new, again.n_before) == (0, len(store))
        runs = store.runs()
    write_csv(runs, tmp_path / "runs.csv")
    exported = {run.key: run for run in read_runs(tmp_path / "runs.csv")}
    for found in runs:
        read = exported[found.key]
        assert (read.error, read.gap, read.epsilon) == (found.error, found.gap, found.epsilon)
        assert (read.setting, read.guarantee) == (found.setting, found.guarantee)
    drawn = [r for r in runs if draws_rows(r.setting.method)]
    for found in drawn:
        assert found.epsilon == found.setting.arguments["epsilon"] == found.guarantee["epsilon"]
        assert found.measured_on == "private holdout, not covered"
        assert found.guarantee["neighbors"] == "add or remove one"
        assert sum(group["rows"] for group in found.groups) == 200  # type: ignore[misc]
    (part,) = (p for p in ReleaseCost.of(drawn).parts)
    assert part.n_runs == len(drawn) == 6
    shown = page_data(runs)
    names = {shown["texts"][i] for i in shown["settings"]["method"]}
    assert names == {"marginal", "ron-gauss", "non-private", "dpsgd"}


@pytest.mark.filterwarnings("ignore::evenhand.generators.NotedWarning")
def test_the_ledger_of_the_generator_is_charged_and_it_is_what_is_saved(
    data: DataSource, tmp_path: Path
) -> None:
    setting = one(data, neighbors="replace one", epsilon=2)
    model = train_one(data, setting)
    assert isinstance(model, JudgedGenerator)
    spent = model.fitted_.epsilon_spent
    assert spent is not None
    assert 1.9 < spent <= 2.0
    claim = model.fitted_.guarantee
    assert (claim.epsilon, claim.neighbors, claim.holds) == (2.0, "replace one", True)
    model.save(tmp_path / "generator")
    again = load(tmp_path / "generator")
    assert again.sample(5, random_state=1).equals(model.generator_.sample(5, random_state=1))


@pytest.mark.filterwarnings("ignore::evenhand.generators.NotedWarning")
def test_settings_of_a_generator_are_what_it_is_made_with(data: DataSource) -> None:
    model = train_one(data, one(data, setting={"n_bins": 6, "width": 1}, n_rows=300))
    assert (model.generator_.n_bins, model.generator_.width) == (6, 1)
    setting = one(data, method=["pate-gan"], n_teachers=7, sampler="none")
    made = arguments.estimator_of(setting)._made()
    assert (made.n_teachers, made.sampler) == (7, None)
    with pytest.raises(ValueError, match=r"does not know\. Did you mean 'n_bins'"):
        one(data, setting={"n_bin": 6})


@pytest.mark.filterwarnings("ignore::evenhand.generators.NotedWarning")
def test_a_generator_counts_the_people_who_have_several_rows(town: Path, data: DataSource) -> None:
    rows = pd.read_csv(town.parent / "private.csv")
    rows.assign(person=np.arange(len(rows)) // 3).to_csv(town.parent / "people.csv", index=False)
    people = DataSource(
        **{**vars(data), "private": str(town.parent / "people.csv"), "unit": "person"}
    )
    run = measured(people, one(people, n_rows=300))
    assert run.guarantee["unit"] == "person"


@pytest.mark.filterwarnings("ignore::evenhand.generators.NotedWarning")
def test_a_reject_option_and_a_gap_of_scores_are_measured_of_drawn_rows_too(
    data: DataSource,
) -> None:
    run = measured(data, one(data, reject_margin=0.02, n_rows=300))
    assert run.coverage < 1
    assert not run.gap > 0.02 + 1e-12  # nan where a group waits for good
    scores = {"gap_of": "generalized-demographic-parity", "n_rows": 300}
    run = measured(data, one(data, **scores, use_sensitive=False))
    assert run.gap_name == "generalized_demographic_parity_rest"
    with pytest.raises(ValueError, match="decides by the group as well"):
        one(data, **scores)


def test_every_generator_of_tables_that_is_offered_can_be_named() -> None:
    drawing = [name for name in SUBJECTS if draws_rows(name)]
    assert {"marginal", "mean-embedding", "pate-gan"} <= set(drawing)
    assert not set(drawing) & set(METHODS)
    for name in drawing:
        assert SUBJECTS[name].private
        assert SUBJECTS[name].words


def test_what_a_run_does_not_read_makes_no_setting_of_its_own(data: DataSource) -> None:
    odds = {"gap_of": ["equalized-odds"]}
    run = {"method": ["marginal"], "epsilon": [1], "balance": list(BALANCES)}
    notions = {"fairness": ["demographic-parity", "equalized-odds"], "amount": [0.5, 1]}
    settings = Grid(data=data, runs=({**run, **notions, **odds},)).settings()
    assert len(settings) == len(BALANCES) - 1 + 4
    plain = one(data, gap_of="equalized-odds", epsilon=1)
    assert plain.key == one(data, fairness="equalized-odds", epsilon=1).key
    assert plain.key in {setting.key for setting in settings}


def test_all_that_is_wrong_with_a_grid_is_said_at_once(data: DataSource) -> None:
    run = {"method": ["marginal"], "epsilon": [-1], "n_rows": [0], "balance": ["evenly"]}
    with pytest.raises(ValueError, match="epsilon must be finite") as error:
        Grid(data=data, runs=(run, {"method": ["margnal"], "epsilon": [1]}))
    for words in ("n_rows must be at least 1", "balance must be one of", "mean 'marginal'"):
        assert words in str(error.value)
    even = {"balance": ["even-rates"], "fairness": ["error-parity"]}
    runs: tuple[dict[str, list[Any]], ...] = (
        {"method": ["marginal"], "epsilon": [1], **even},
        {"method": ["marginal"], "epsilon": [1], "blind_margin": [0.1]},
        {"method": ["ron-gauss"]},
    )
    with pytest.raises(ValueError, match="holds 'demographic-parity' or 'equalized-odds'") as error:
        Grid(data=data, runs=runs)
    assert "'ron-gauss' needs epsilon" in str(error.value)
    assert "'marginal' draws rows" in str(error.value)
    for more, words in (
        ({"amount": [0.5]}, "no balance is 'even-rates'"),
        ({"margin": [0.1]}, r"margin = 0\.1 is not read by method = 'marginal'"),
    ):
        with pytest.raises(ValueError, match=words):
            Grid(data=data, runs=({"method": ["marginal"], "epsilon": [1], **more},))


def test_generators_alone_need_no_public_rows(data: DataSource) -> None:
    without = DataSource(**{**vars(data), "public": None})
    how: dict[str, Any] = {"n_rows": 300}
    first, other = (measured(source, one(source, **how)) for source in (data, without))
    assert other.error > 0
    assert first.setting.arguments == other.setting.arguments
    with pytest.raises(
        ValueError, match=r"public is missing, and method = .*pate.* is a classifier"
    ):
        one(without, method=["marginal", "pate"], n_teachers=20)


def test_pictures_have_no_generator_of_tables() -> None:
    table = {"data": {"set": "utkface", "extractor": "none"}, "runs": [{"method": "marginal"}]}
    with pytest.raises(ValueError, match=r"draws rows of a table, and .* holds pictures"):
        Grid.from_dict(table)


@pytest.mark.filterwarnings("ignore::evenhand.generators.NotedWarning")
def test_files_are_read_as_the_schema_says_and_what_is_made_anew_teaches_no_model(
    town: Path, data: DataSource, tmp_path: Path
) -> None:
    columns = {"name": "id", "zip": {"prefix": 2}, "seen": {"bounds": ("2020-01-01", "2021-01-01")}}
    schema = Schema(columns=(*SCHEMA.columns, *Schema.declared(columns).columns))
    schema.save(tmp_path / "schema.json")
    files = {"schema": str(tmp_path / "schema.json")}
    for part in ("private", "public", "test"):
        frame = pd.read_csv(town.parent / f"{part}.csv")
        more = {"name": [f"p{i}" for i in frame.index], "zip": 10_115, "seen": "2020-05-01"}
        files[part] = str(tmp_path / f"{part}.csv")
        frame.assign(**more).to_csv(files[part], index=False)
    known = DataSource(**{**vars(data), **files})
    run = measured(known, one(known, n_rows=500))
    assert 0 < run.error < 0.5
    with RunStore(tmp_path / "runs.db") as store:
        model = {"method": ["fair-shares"], "epsilon": [1], "margin": [0.1], "n_teachers": [20]}
        with pytest.raises(ValueError, match="'seen' hold dates, which generators"):
            sweep(Grid(data=known, runs=(model,)), store)


def test_what_the_rows_do_not_allow_is_said_before_any_fit(town: Path, tmp_path: Path) -> None:
    """Three classes, for which no rates are evened, and a column of names."""
    files = {}
    for part in ("private", "public", "test"):
        frame = pd.read_csv(town.parent / f"{part}.csv")
        third = np.where(frame.index % 5 == 0, "later", frame["loan"])
        names = [f"person {i}" for i in range(len(frame))]
        files[part] = str(tmp_path / f"{part}.csv")
        frame.assign(loan=third, name=names).to_csv(files[part], index=False)
    three = DataSource(name="three", label="loan", sensitive=("sex",), drop=("name",), **files)
    runs = (
        {"method": ["marginal", "ron-gauss"], "epsilon": [1], "balance": ["even-rates"]},
        {"method": ["non-private"]},
    )
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ValueError, match="moves the odds of two classes, and 'loan' has 3"):
            sweep(Grid(data=three, runs=runs), store)
        named = DataSource(name="named", label="loan", sensitive=("sex",), **files)
        with pytest.raises(ValueError, match="name"):
            sweep(Grid(data=named, runs=({"method": ["marginal"], "epsilon": [1]},)), store)
        assert len(store) == 0


@pytest.mark.filterwarnings("ignore::evenhand.generators.NotedWarning")
def test_rows_that_cannot_be_spread_as_asked_are_drawn_as_learnt_for_the_fit_is_paid_for() -> None:
    # A run that was refused after its fit would be fitted again at each start of the sweep.
    rng = np.random.default_rng(0)
    n = 400
    X = pd.DataFrame({"age": rng.integers(20, 60, n).astype(float)})
    sex = pd.Series(np.where(rng.random(n) < 0.5, "F", "M"), name="sex")
    loan = pd.Series(np.where((sex == "F") & (X["age"] > 40), "granted", "refused"), name="loan")
    model = JudgedGenerator(
        generator="marginal",
        budget=Budget(epsilon=20.0, delta=1e-5),
        n_rows=300,
        declared=Schema.declared({"age": {"bounds": (10, 70)}} | KNOWN),
    )
    model.fit(X, loan, sensitive_features=sex.to_frame())  # no man was granted a loan
    (warning,) = model.fitted_.guarantee.warnings[-1:]
    assert warning.startswith("the rows could not be spread as asked, and were drawn as learnt: ")
    assert "loan=granted, sex=M" in warning
    assert model.generator_.ledger_.spent_epsilon(1e-5) == pytest.approx(20.0, rel=1e-3)
    assert set(model.predict(X, sex.to_frame())) <= {"granted", "refused"}


@pytest.mark.parametrize("judge", list(MODELS))
def test_drawn_rows_of_one_class_are_judged_by_the_model_that_says_this_class(judge: str) -> None:
    rows = pd.DataFrame({"age": [20.0, 30.0, 40.0], "sex": ["F", "M", "F"], "loan": ["no"] * 3})
    schema = Schema.declared(
        {"age": {"bounds": (10, 70)}, "sex": ["F", "M"], "loan": ["no", "yes"]}
    )
    how: dict[str, Any] = {"label": "loan", "sensitive": ["sex"], "model": judge}
    made = Judge.of(rows, **how, use_sensitive=True, schema=schema, random_state=0)
    assert made.probabilities(rows, ["no", "yes"]).tolist() == [[1.0, 0.0]] * 3
