"""Every method of a frontier: trained, measured as it decides, and priced; on users' files too."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets import Dataset, Schema, german
from evenhand.estimators.drawn_rows import COUNTS
from evenhand.fairness import fairness_report
from evenhand.frontier import Grid, Run, RunStore, loaded_rows, sweep
from evenhand.frontier.cost import ReleaseCost
from evenhand.frontier.material import DataSource
from evenhand.frontier.run import Setting
from evenhand.frontier.train import _Trial, train_one
from evenhand.methods import METHODS

Tables: TypeAlias = tuple[dict[str, list[Any]], ...]

EVERY: Tables = (
    {
        "method": ["fair-shares", "fairpate", "pate"],
        "epsilon": [9],
        "margin": [0.1],
        "n_teachers": [30],
    },
    {
        "method": ["fair-shares"],
        "epsilon": [9],
        "margin": [0.1],
        "n_teachers": [30],
        "fairness": ["equalized-odds", "error-parity", "false-positive-parity"],
    },
    {
        "method": ["fairpate"],
        "epsilon": [9],
        "margin": [0.1],
        "n_teachers": [30],
        "sigma": [6],
        "threshold": [20],
        "sigma_check": [8],
        "reference": ["pairwise"],
    },
    {
        "method": ["intervention"],
        "epsilon": [9],
        "margin": [0.01],
        "n_teachers": [30],
        "at": ["aggregator", "S_post"],
    },
    {"method": ["dpsgd"], "epsilon": [3], "margin": [0.1]},
    {
        "method": ["dp-fermi"],
        "epsilon": [3],
        "fairness_weight": [0.5],
        "fairness": ["demographic-parity", "equalized-odds"],
    },
    {
        "method": ["dp-post-processing"],
        "epsilon": [3],
        "margin": [0.1],
        "fairness": ["demographic-parity", "equalized-odds"],
    },
    {"method": ["dp-decoupled", "dp2dp", "dp-barycenter"], "epsilon": [3], "margin": [0.1]},
    {
        "method": ["fairdp"],
        "epsilon": [3],
        "margin": [0.1],
        "fairness": ["demographic-parity", "true-positive-rate-parity"],
    },
    {"method": ["non-private", "fair-only"], "margin": [0.1]},
    {"method": ["pate"], "epsilon": [9], "n_teachers": [30], "gap_of": ["equalized-odds"]},
    {
        "method": ["non-private", "fair-only", "dpsgd", "pate"],
        "epsilon": [3],
        "margin": [0.1],
        "gap_of": ["generalized-demographic-parity"],
        "reference": ["overall"],
    },
)
OF_AN_ATTRIBUTE: Tables = (
    {"method": ["randomized-response"], "epsilon": [3], "margin": [0.1]},
    {
        "method": ["sf-student", "sf-teachers"],
        "epsilon": [3],
        "margin": [0.1],
        "n_teachers": [20],
        "fairness": ["demographic-parity", "equalized-odds", "generalized-demographic-parity"],
    },
    {
        "method": ["pf-ld"],
        "epsilon": [3],
        "margin": [0.1],
        "fairness": ["demographic-parity", "equalized-odds", "error-parity"],
    },
)  # a frontier of its own: privacy of an attribute is not privacy of the record


def promises(method: str) -> bool:
    """Whether it promises privacy, and the promise is one that holds."""
    return METHODS[method].private and METHODS[method].claim_holds


def tables_of(protects: str, named: Tables) -> Tables:
    """Return the tables above, and one run of each further method, as its record asks for."""
    known = {method for table in named for method in table["method"]}
    values = {"epsilon": [3], "margin": [0.1], "at": ["S_in"]}
    more = [
        {"method": [name]} | {need: values[need] for need in spec.needs}
        for name, spec in METHODS.items()
        if spec.protects == protects and name not in known
    ]
    return (*named, *more)


@pytest.fixture(scope="module")
def grid(town: Path) -> Grid:
    return Grid(data=Grid.from_toml(town).data, runs=EVERY)


@pytest.fixture(scope="module")
def swept_models(
    grid: Grid, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[Run], dict[str, Any]]:
    """Return the runs of all methods, and the models that were measured, by the keys of runs."""
    models: dict[str, Any] = {}
    measure = _Trial.run

    def remember(trial: _Trial, setting: Setting, model: Any, spec: str) -> dict[str, Any]:
        models[setting.key] = model
        return measure(trial, setting, model, spec)

    found = []
    for tables in (tables_of("record", EVERY), tables_of("attribute", OF_AN_ATTRIBUTE)):
        of_one_kind = Grid(data=grid.data, runs=tables)
        folder = tmp_path_factory.mktemp("methods")
        with pytest.MonkeyPatch.context() as patch, RunStore(folder / "runs.db") as store:
            patch.setattr(_Trial, "run", remember)
            summary = sweep(of_one_kind, store)
            assert summary.skipped == ()
            assert summary.n_new == len(of_one_kind.settings())
            found += store.runs()
    assert {run.key for run in found} == set(models)
    return found, models


@pytest.fixture(scope="module")
def runs(swept_models: tuple[list[Run], dict[str, Any]]) -> list[Run]:
    return swept_models[0]


@pytest.mark.slow
def test_every_method_is_among_the_runs_and_claims_what_was_asked_for(runs: list[Run]) -> None:
    assert {run.setting.method for run in runs} == set(METHODS)
    for run in runs:
        if promises(run.setting.method):
            assert run.epsilon == run.guarantee["epsilon"] == run.setting.arguments["epsilon"]
            pure = run.setting.method == "randomized-response"
            assert run.delta == run.guarantee["delta"] == (0.0 if pure else 1e-5)
            assert run.guarantee["holds"] is True
        else:
            assert run.epsilon == math.inf
            assert run.guarantee["holds"] is False


def test_a_gap_is_that_of_the_notion_that_the_run_holds_or_that_was_asked_for(
    runs: list[Run],
) -> None:
    for run in runs:
        given = run.setting.arguments
        notion = str(given.get("gap_of", given.get("fairness", "demographic-parity")))
        of = run.setting.arguments.get("reference", "rest")
        assert run.gap_name == f"{notion.replace('-', '_')}_{of}"


def test_the_price_of_publishing_them_is_the_sum_of_the_private_ones(runs: list[Run]) -> None:
    private = [run for run in runs if promises(run.setting.method)]
    for method in METHODS:
        own = [run for run in private if run.setting.method == method]
        if own:
            (part,) = ReleaseCost.of(own).parts
            assert part.n_runs == part.n_gaussian + part.n_basic == len(own)
            # Votes add up without loss, so two cost less than twice; the others add plainly.
            most = sum(run.epsilon for run in own)
            least = max(run.epsilon for run in own)
            assert least * (1 - 1e-9) <= part.epsilon <= most * (1 + 1e-9)
    by_kind = {part.neighbors: part for part in ReleaseCost.of(private).parts}
    assert set(by_kind) == {"replace one", "add or remove one", "change one group label"}
    assert all(math.isfinite(part.epsilon) for part in by_kind.values())


@pytest.mark.parametrize("method", [name for name in METHODS if not promises(name)])
def test_one_that_promises_nothing_leaves_the_price_without_bound(
    runs: list[Run], method: str
) -> None:
    shown = [run for run in runs if promises(run.setting.method)]
    shown += [run for run in runs if run.setting.method == method][:1]
    cost = ReleaseCost.of(shown)
    assert cost.epsilon == math.inf
    assert "has no bound on its cost: 1 of them promises nothing" in str(cost)


def test_what_is_measured_is_what_the_model_decides(
    grid: Grid, swept_models: tuple[list[Run], dict[str, Any]]
) -> None:
    # Also where the decisions are not those of the model's own student: derived ones, thresholds.
    rows, (runs, models) = grid.data.load(0), swept_models
    asked_for_groups = set()
    for run in runs:
        model, told = models[run.key], {}
        if model.needs_group_at_prediction_:
            told = {"sensitive_features": rows.groups_test, "random_state": 0}
            asked_for_groups.add(run.setting.method)
        names = list(model.classes_)
        of_scores = run.gap_name.startswith("generalized")
        report = fairness_report(
            np.searchsorted(names, rows.y_test),
            np.searchsorted(names, model.predict(rows.X_test, **told)),
            rows.groups_test,
            classes=names,
            positive=None,  # as the notion of a setting: false positives of every class
            probabilities=model.predict_proba(rows.X_test) if of_scores else None,
        )
        assert run.error == report["error_rate"].value
        assert run.gap == report[run.gap_name].value
    assert asked_for_groups == {
        "intervention",
        "dp-post-processing",
        "dp-decoupled",
        "dp2dp",
        "dp-barycenter",
    }


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"method": ["dp-post-processing"]}, "the method 'dp-post-processing' decides by the"),
        ({"method": ["intervention"], "at": ["S_post"]}, "'intervention' at 'S_post' decides by"),
        ({"method": ["dpsgd"], "reject_margin": [0.1]}, r"\(reject_margin = 0.1\) decides by"),
    ],
)
def test_laws_of_scores_are_not_compared_where_more_than_the_score_decides(
    grid: Grid, run: dict[str, list[Any]], said: str
) -> None:
    asked = {"epsilon": [3], "margin": [0.1], "gap_of": ["generalized-demographic-parity"]}
    with pytest.raises(ValueError, match=said):
        Grid(data=grid.data, runs=({**asked, **run},))


def test_who_holds_the_law_of_the_score_is_told(grid: Grid) -> None:
    asked = {"epsilon": [3], "margin": [0.1], "fairness": ["generalized-demographic-parity"]}
    with pytest.raises(ValueError, match=r"or take 'sf-student', which knows it\."):
        Grid(data=grid.data, runs=({**asked, "method": ["fairpate"]},))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder of a user's files: visits of patients, and a few with public labels."""
    rng = np.random.default_rng(4)
    for part, n in (("private", 600), ("public", 150), ("test", 150), ("labelled", 200)):
        sex, age = rng.choice(["F", "M"], n), rng.normal(40, 10, n).round()
        ill = np.where(age + 5 * (sex == "M") + rng.normal(0, 4, n) > 42, "yes", "no")
        frame = pd.DataFrame({"age": age, "sex": sex, "ill": ill, "visit": np.arange(n)})
        if part == "private":
            frame["patient"] = np.arange(n) // 3
        if part == "public":
            frame = frame.drop(columns=["ill", "visit"])
        frame.to_csv(tmp_path / f"{part}.csv", index=False)
    Schema.declared({"age": {"bounds": (18, 90)}, "ill": ["no", "yes"]}).save(
        tmp_path / "schema.json"
    )
    return tmp_path


FILES = """
[data]
name = "visits"
private = "private.csv"
public = "public.csv"
test = "test.csv"
label = "ill"
sensitive = "sex"
drop = {drop}
"""
NO_UNIT = '["visit", "patient"]'


def swept(folder: Path, data: str, runs: str, *, drop: str = NO_UNIT) -> list[Run]:
    path = folder / "grid.toml"
    path.write_text(
        FILES.format(drop=drop) + data + "\n[[runs]]\nepsilon = 9\nn_teachers = 30\n" + runs
    )
    with RunStore(folder / "runs.db") as store:
        summary = sweep(Grid.from_toml(path), store, cache=folder / "votes")
        assert summary.skipped == ()
        return store.runs()


def test_with_a_unit_the_claim_is_for_all_of_its_records(files: Path) -> None:
    found = swept(
        files,
        'unit = "patient"\nunit_name = "patient"',
        'method = ["fairpate", "pate", "intervention", "non-private"]\nmargin = 0.1\nat = "S_in"\n',
        drop='"visit"',
    )
    private = [run for run in found if run.setting.method != "non-private"]
    assert len(private) == 3
    for run in private:
        assert run.guarantee["unit"] == "patient"
        assert run.guarantee["neighbors"] == "add or remove one"
    (part,) = ReleaseCost.of(private).parts
    assert (part.unit, part.neighbors) == ("patient", "add or remove one")
    model = train_one(
        Grid.from_toml(files / "grid.toml").data,
        next(run.setting for run in found if run.setting.method == "non-private"),
    )
    assert list(model.feature_names_in_) == ["age"]  # neither whose a row is nor what was dropped


def test_test_rows_of_one_patient_tell_less(files: Path) -> None:
    found = []
    for repeats in (1, 4):
        rows = pd.read_csv(files / "test.csv").assign(patient=range(150))
        pd.concat([rows] * repeats).to_csv(files / "test.csv", index=False)
        runs = swept(
            files, 'unit = "patient"', 'method = ["pate", "non-private"]\n', drop='"visit"'
        )
        found.append(next(run for run in runs if run.setting.method == "non-private"))
        (files / "runs.db").unlink()
    one, many = found
    assert (many.error, many.gap) == pytest.approx((one.error, one.gap))
    assert many.error_interval == pytest.approx(one.error_interval, abs=5e-3)
    assert many.gap_interval == pytest.approx(one.gap_interval, abs=5e-3)


@pytest.mark.filterwarnings("ignore::evenhand.estimators.calibration.LimitsTooWide")
def test_calibration_rows_are_read_by_the_notions_about_true_classes_alone(files: Path) -> None:
    found = swept(
        files,
        'calibration = "labelled.csv"',
        'method = ["fairpate", "pate"]\nmargin = 0.1\n'
        'fairness = ["demographic-parity", "equalized-odds"]\n',
    )
    said = "the 200 calibration rows with their labels and groups"
    assert {
        (run.setting.method, run.setting.arguments.get("fairness"), said in run.guarantee["public"])
        for run in found
    } == {
        ("fairpate", None, False),
        ("fairpate", "equalized-odds", True),
        ("pate", None, False),
    }


def test_a_rule_around_a_student_that_reads_no_sparse_rows_is_measured_beside_it(
    files: Path,
) -> None:
    # Curves of explainable boosting read dense rows; the student inside the rule is measured too.
    found = swept(files, "", 'method = ["dp-ebm", "pate"]\nblind_margin = [0.05]\n')
    assert {run.setting.method for run in found} == {"dp-ebm", "pate"}
    assert all(0 <= run.error_without_margin <= 1 for run in found)


def test_a_share_for_counts_beside_the_public_rows_is_an_argument(files: Path) -> None:
    found = swept(
        files,
        "",
        'method = ["fair-shares", "pate"]\nmargin = 0.1\nsynthetic_share = [0.2, 0.5]\n',
    )
    said = {
        (run.setting.method, run.setting.arguments["synthetic_share"], share)
        for run in found
        for share in ("20%", "50%")
        if f"{COUNTS} ({share} of the budget)" in run.guarantee["accounting"]
    }
    assert said == {
        (method, share, f"{share:.0%}")
        for method in ("fair-shares", "pate")
        for share in (0.2, 0.5)
    }


def test_the_change_that_a_claim_is_about_is_an_argument(files: Path) -> None:
    both = 'neighbors = ["replace one", "add or remove one"]\n'
    found = swept(files, "", f'method = ["pate"]\n{both}')
    found += swept(files, "", f'method = ["pate"]\nsynthetic_share = 0.5\n{both}')
    for run in found:
        assert run.guarantee["neighbors"] == run.setting.arguments["neighbors"]
    assert len({run.key for run in found}) == 4


def test_hidden_layers_are_an_argument(files: Path) -> None:
    found = swept(files, "", 'method = ["dpsgd", "pate"]\nhidden = [[], 8, [6, 4]]\n')
    data = Grid.from_toml(files / "grid.toml").data
    models = {
        run.setting.arguments.get("hidden", "0"): train_one(data, run.setting).student_
        for run in found
        if run.setting.method == "dpsgd"
    }
    assert len(found) == len(models) + 1
    assert hasattr(models["0"], "coef_")
    two = 2  # units of each layer carry what skips them
    assert [len(bias) for bias in models["8"].intercepts_] == [8 + two, 1]
    assert [len(bias) for bias in models["6,4"].intercepts_] == [6 + two, 4 + two, 1]


def test_a_built_in_set_deals_calibration_rows_from_its_public_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 400
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"row": np.arange(n), "sex": rng.choice(["F", "M"], n)})
    frame["y"] = frame["row"] % 2  # so that a row tells its label
    made = Dataset.from_frame(frame, label="y", sensitive="sex")
    monkeypatch.setattr(german, "load_german", lambda: made)
    for cache in (loaded_rows._built_in, loaded_rows.loaded):
        cache.cache_clear()
    plain = DataSource(name="german").load(3)
    dealt = DataSource(name="german", calibration_fraction=0.25).load(3)
    for cache in (loaded_rows._built_in, loaded_rows.loaded):
        cache.cache_clear()
    labelled = dealt.calibration["X_calibration"]
    assert plain.calibration == {}
    assert len(labelled) == round(0.25 * len(plain.X_public)) == 15
    assert sorted([*labelled["row"], *dealt.X_public["row"]]) == sorted(plain.X_public["row"])
    assert (dealt.calibration["y_calibration"] == labelled["row"] % 2).all()
    groups = dealt.calibration["sensitive_features_calibration"]
    assert (groups == frame["sex"].loc[labelled["row"]]).all()
    assert dealt.X.equals(plain.X)
    assert dealt.X_test.equals(plain.X_test)


def test_a_declared_schema_is_what_rows_are_encoded_by(files: Path) -> None:
    found = swept(
        files, 'schema = "schema.json"', 'method = ["fairpate", "non-private"]\nmargin = 0.1\n'
    )
    for run in found:
        model = train_one(Grid.from_toml(files / "grid.toml").data, run.setting)
        assert model.encoder_.schema_.columns[0].bounds == (18, 90)
        assert model.encoder_.schema_.names == ("age",)


@pytest.mark.parametrize(
    ("data", "change", "words"),
    [
        (
            'unit = "patiant"',
            None,
            r"private.csv: .*no column 'patiant', which unit= names.*Did you mean 'patient'",
        ),
        ("", ("test.csv", "sex", "sax"), r"test.csv: .*no column 'sex', .*Did you mean 'sax'"),
        ("", ("public.csv", ",M", ","), r"public.csv: .* 'sex' is missing in row "),
        (
            "",
            ("public.csv", "age", "ege"),
            r"public.csv has no column 'age', which the private rows have. Did you mean 'ege'\?",
        ),
        ('calibration = "labeled.csv"', None, "There is no file .*labeled.csv"),
        (
            'calibration = "labelled.csv"',
            ("labelled.csv", "yes", "yess"),
            r"labelled.csv holds the class \(not shown\), which no private row has",
        ),
        (
            'schema = "schema.json"',
            ("schema.json", '"numeric"', '"numerical"'),
            "kind of column 'age' must be one of 'numeric'",
        ),
        ('schema = "schema.json"', ("schema.json", "{", ""), "schema.json is not a JSON file"),
        (
            'schema = "schema.json"',
            ("schema.json", '"columns"', '"colums"'),
            "schema.json: A schema is written as",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_told(
    files: Path, data: str, change: tuple[str, str, str] | None, words: str
) -> None:
    if change is not None:
        file = files / change[0]
        file.write_text(file.read_text().replace(change[1], change[2], 1))
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        swept(files, data, 'method = "fairpate"\nmargin = 0.1\n')
