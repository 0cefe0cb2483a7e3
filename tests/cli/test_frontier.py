"""``evenhand frontier``: a folder of runs, gone on with, and what all of it costs."""

import json
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from marks import some_slow
from typer.testing import CliRunner, Result

from evenhand import load
from evenhand.cli import app
from evenhand.cli.frontier import TRAINED_ANEW
from evenhand.frontier import RunStore, front, sweep
from evenhand.frontier.train import Task, Trained, train
from evenhand.methods import METHODS
from evenhand.privacy.gaussian import epsilon_from_mu

from .conftest import TABLES

RUNS = """[[runs]]
method = ["fairpate", "pate"]
epsilon = [4, 8]
margin = 0.1
n_teachers = 30
"""
GRID = TABLES + RUNS


def write_tables() -> None:
    rng = np.random.default_rng(3)
    for part, n in (("private", 500), ("public", 200), ("test", 150)):
        sex, age = rng.choice(["F", "M"], n), rng.normal(40, 10, n)
        loan = np.where(age + 5 * (sex == "M") + rng.normal(0, 4, n) > 42, "yes", "no")
        pd.DataFrame({"age": age, "sex": sex, "loan": loan}).to_csv(f"{part}.csv", index=False)


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_tables()
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def run(*words: str, exit_code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["frontier", *words])
    assert done.exit_code == exit_code, done.output
    return done


def test_a_grid_is_trained_kept_and_gone_on_with(spec: Path) -> None:
    first = run("grid.toml", "--out", "front", "--json")
    said = json.loads(first.stdout)
    assert (said["n_settings"], said["n_new"], said["n_before"]) == (4, 4, 0)
    with RunStore("front/runs.db") as store:
        runs = store.runs()
    total = sum(run.mu_squared or 0 for run in runs)
    (part,) = said["cost"]["parts"]
    assert part["mu_squared"] == pytest.approx(total)
    assert part["epsilon"] == pytest.approx(epsilon_from_mu(total**0.5, 1e-5))
    assert part["epsilon"] > 8  # four releases cost more than the dearest of them
    assert sorted(p.name for p in Path("front").iterdir()) == [
        "page.html",
        "runs.db",
    ]  # and no votes

    page = Path(said["page"]).read_text(encoding="utf-8")
    assert runs[0].key in page

    again = run("grid.toml", "--out", "front")
    words = " ".join(again.stdout.split())
    assert "0 settings trained" in words
    assert "4 were there already" in words
    assert "If one has changed since, take another --out" in again.stderr
    assert "changed since" not in first.stderr
    assert said["cost"]["sentence"] in words
    assert " setting " not in words  # nothing but epsilon differs within a method
    assert "Publishing 4 runs on" in words
    assert "measurements of 4 on private rows are not covered" in words
    assert said["cost"]["sentence"].split(";")[0] in page


@pytest.mark.slow
def test_rows_of_the_front_say_in_what_settings_of_a_method_differ(spec: Path) -> None:
    spec.write_text(
        ("seeds = [0, 3]\n" + GRID)
        .replace('"fairpate", "pate"', '"dpsgd"')
        .replace("margin = 0.1", "margin = [0.1, 0.5]")
        .replace("n_teachers = 30", "degree = 0\nhidden = [[], [2]]")
    )
    said = run("grid.toml", "--out", "front")
    with RunStore("front/runs.db") as store:
        runs = store.runs()
    rows = [line.split() for line in said.stdout.splitlines() if line.split()[1:2] == ["dpsgd"]]
    settings = [line.strip() for line in said.stdout.splitlines() if "seed=" in line]
    found = [
        f"{epsilon} {gap} {setting.removeprefix(number).strip()}"
        for (number, _, epsilon, gap, *_), setting in zip(rows, settings, strict=True)
    ]
    best = [run for run, on in zip(runs, front(runs), strict=True) if on]
    # Many have one gap, and which are best is chance; a dozen are shown.
    best = sorted(best, key=lambda run: (run.epsilon, run.gap))[:12]
    assert sorted(found) == sorted(
        f"{run.epsilon:g} {run.gap:.4f} "
        + ", ".join(
            f"{name}={value:g}" if name == "margin" else f"{name}={value}"
            for name, value in {**run.setting.arguments, "seed": run.setting.seed}.items()
            if name in ("hidden", "margin", "seed")
        )
        for run in best
    )


def test_runs_without_a_gap_stand_on_no_front_and_that_is_said(spec: Path) -> None:
    # So few calibration rows: the reject option refuses everybody, and no rate is left.
    pd.read_csv("test.csv").head(20).to_csv("labelled.csv", index=False)
    spec.write_text(
        TABLES + 'calibration = "labelled.csv"\n[[runs]]\n'
        'method = "non-private"\nfairness = "equalized-odds"\nreject_margin = 0.01\n'
    )
    result = run("grid.toml", "--out", "out")
    assert "No run has both an error and a gap that are numbers" in " ".join(result.output.split())


def test_a_method_that_was_chosen_is_said_with_the_reason(spec: Path) -> None:
    chosen = '[[runs]]\nmethod = "auto"\nepsilon = 2\nneighbors = "add or remove one"\n'
    spec.write_text(TABLES + chosen)
    why = "Method dpsgd, chosen by public numbers and wishes alone: "
    assert why in " ".join(run("grid.toml", "--out", "front").stdout.split())
    (said,) = json.loads(run("grid.toml", "--out", "front", "--json").stdout)["choices"]
    assert said.startswith(why)


def test_a_grid_without_private_rows_releases_nothing(spec: Path) -> None:
    spec.write_text(GRID.replace("[data]", '[data]\nkind = "public stand-in"'))
    result = run("grid.toml", "--out", "front")
    assert "No run here was trained on private data" in " ".join(result.stdout.split())


def test_a_model_without_privacy_among_them_is_said(spec: Path) -> None:
    spec.write_text(GRID + '[[runs]]\nmethod = "non-private"\n')
    result = run("grid.toml", "--out", "front")
    words = " ".join(result.stdout.split())
    assert "Publishing 5 runs on" in words
    assert "has no bound on its cost: 1 of them promises nothing" in words


def test_the_cost_counts_what_the_folder_holds_of_other_grids(spec: Path) -> None:
    first = json.loads(run("grid.toml", "--out", "front", "--json").stdout)["cost"]
    only = spec.with_name("only.toml")
    only.write_text(TABLES + '[[runs]]\nmethod = "dpsgd"\nepsilon = 2\n')
    result = json.loads(run("only.toml", "--out", "front", "--json").stdout)
    # Steps are charged for adding or removing a record, votes for replacing one: two sums.
    (steps,) = [p for p in result["cost"]["parts"] if p["n_basic"]]
    assert (steps["n_runs"], steps["epsilon"]) == (1, pytest.approx(2.0))
    assert [p for p in result["cost"]["parts"] if p != steps] == first["parts"]
    page = Path("front/page.html").read_text(encoding="utf-8")
    # The page shows one run, and says what all of them cost.
    assert first["sentence"].split(";")[0].lower() in page.lower()


def test_a_folder_with_several_grids_says_which_the_page_leaves_out_and_how_to_see_them(
    spec: Path,
) -> None:
    first = run("grid.toml", "--out", "front", "--json")
    assert "the page shows this grid alone" not in first.stderr
    summary = json.loads(first.stdout)
    assert summary["other_grids"] == {}
    other = spec.with_name("my grid.toml")
    other.write_text(TABLES + '[[runs]]\nmethod = "dpsgd"\nepsilon = 2\n')
    result = run("my grid.toml", "--out", "front", "--json")
    said = " ".join(result.stderr.split())
    n = summary["n_settings"]
    assert f"front/runs.db holds {n} runs of grid.toml too" in said
    assert json.loads(result.stdout)["other_grids"] == {"grid.toml": n}
    # What the note says to do shows them, and trains nothing.
    again = run("grid.toml", "--store", "front/runs.db", "--out", "seen", "--json")
    assert json.loads(again.stdout)["n_new"] == 0
    assert "holds 1 run of 'my grid.toml' too" in " ".join(again.stderr.split())
    assert Path("seen/page.html").stat().st_size > 0
    with RunStore("front/runs.db") as store:
        (chosen,) = store.runs(methods=["dpsgd"])
    assert shlex.split(chosen.command)[2] == "my grid.toml"


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a frontier of one run of each method."""
    folder = tmp_path_factory.mktemp("every")
    more = {"record": 'at = "S_in"\nfairness_weight = 2\n', "attribute": ""}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_tables()
        for what, arguments in more.items():  # the two cannot stand on one frontier
            methods = [name for name, method in METHODS.items() if method.protects == what]
            Path(f"{what}.toml").write_text(
                f"{TABLES}[[runs]]\nmethod = {json.dumps(methods)}\n"
                f"epsilon = 4\nmargin = 0.3\nn_teachers = 30\n{arguments}"
            )
            result = run(f"{what}.toml", "--out", "front", "--json")
            assert json.loads(result.stdout)["skipped"] == {}
    return folder


@pytest.mark.parametrize("method", some_slow(METHODS, {"fair-shares"}))
def test_the_command_of_a_run_trains_it(
    every: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.chdir(every)
    with RunStore("front/runs.db") as store:
        (chosen,) = store.runs(methods=[method])
    program, *words = chosen.command.split()
    assert (program, words[0], words[-1]) == ("evenhand", "frontier", "model")
    result = CliRunner().invoke(app, [*words[:-1], str(tmp_path / "model")])
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "model")
    assert type(model).__name__ == METHODS[method].estimator.__name__
    holds = METHODS[method].private and METHODS[method].claim_holds
    assert model.guarantee_.holds is holds
    if holds:
        assert model.guarantee_.epsilon == chosen.epsilon == 4
        assert TRAINED_ANEW in " ".join(result.stdout.split())
    assert str(model.fairness_kind_) == chosen.fairness_kind
    assert model.fairness_kind_ is METHODS[method].kind_for(chosen.setting.arguments)
    kept = getattr(model, "fairness", None)
    assert (kept.margin if kept else 0) == chosen.setting.arguments.get("margin", 0)
    assert getattr(model, "fairness_weight", 1) == chosen.setting.arguments.get(
        "fairness_weight", 1
    )


def test_a_reject_option_is_said_to_need_the_group(spec: Path) -> None:
    only = spec.with_name("only.toml")
    only.write_text(TABLES + '[[runs]]\nmethod = "pate"\nepsilon = 4\nreject_margin = 0.1\n')
    run("only.toml", "--out", "front")
    with RunStore("front/runs.db") as store:
        assert {r.fairness_kind for r in store.runs()} == {"reject option, group needed"}


def test_settings_that_cannot_be_trained_are_counted_with_their_reason(spec: Path) -> None:
    spec.write_text(GRID + '[[runs]]\nmethod = "pate"\nepsilon = 0.01\nsigma = 1\n')
    result = run("grid.toml", "--out", "front", "--json")
    ((reason, n),) = json.loads(result.stdout)["skipped"].items()
    assert n == 1
    assert "costs more for one answer" in reason
    assert "1 setting cannot be trained" in result.stderr


@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        (("margin", "margn"), (), "does not know the key 'margn'. Did you mean 'margin'?"),
        (("private.csv", "privat.csv"), (), "privat.csv"),
        (("", ""), ("--jobs", "0"), "--jobs must be at least 1, or -1"),
        (("", ""), ("--out", "grid.toml"), "--out grid.toml is a file, and a frontier is a folder"),
        (("", ""), ("--backend", "rai"), "--backend must be one of 'processes', 'ray', got 'rai'"),
        (("", ""), ("--backend", "ray"), "--backend ray needs --votes: a private folder that all"),
        (("", ""), ("--train", "0" * 32), "which no setting of the grid has"),
        (('"loan"', '"lone"'), (), "private.csv: The table has no column 'lone'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    spec: Path, change: tuple[str, str], words: tuple[str, ...], said: str
) -> None:
    spec.write_text(GRID.replace(*change, 1) if change[0] else GRID)
    result = run("grid.toml", "--out", "front", *words, exit_code=2)
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_store_of_another_version_is_refused_and_left_alone(spec: Path) -> None:
    run("grid.toml", "--out", "front")
    with closing(sqlite3.connect("front/runs.db")) as db, db:
        db.execute("UPDATE evenhand_frontier SET schema_version = 7")
    before = Path("front/runs.db").read_bytes()
    for words in (["frontier", "grid.toml", "--out", "front"], ["check", "spec.toml", "front"]):
        Path("spec.toml").write_text("epsilon = 4\n")
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2, result.output
        assert "is a store of version 7.3, and this package writes 1.3" in result.stderr
        assert "Give the runs a new file" in result.stderr
        assert result.stderr.count("\n") == 1
    assert Path("front/runs.db").read_bytes() == before


@pytest.fixture(params=["sqlite", "postgresql"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[str, Callable[[], object], Callable[[], object]]:
    """Return where a store is, and how to take it away and to bring it back."""
    if request.param == "sqlite":
        file, away = tmp_path / "disk" / "runs.db", tmp_path / "away"
        file.parent.mkdir()
        return (
            str(file),
            lambda: shutil.move(file.parent, away),
            lambda: shutil.move(away, file.parent),
        )
    url: str = request.getfixturevalue("postgres")
    server = request.getfixturevalue("postgres_server")
    return url, server.stop, server.start


@pytest.mark.slow
def test_a_database_that_goes_away_keeps_what_is_finished_and_the_run_says_how_to_go_on(
    spec: Path,
    place: tuple[str, Callable[[], object], Callable[[], object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where, take_away, bring_back = place
    tasks: list[Task] = []

    def takes_the_store_away(task: Task) -> Trained:
        tasks.append(task)
        if len(tasks) == 2:
            take_away()
        return train(task)

    words = ("grid.toml", "--out", "front", "--store", where)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[sweep.__module__], "train", takes_the_store_away)
        result = run(*words, exit_code=2)
    bring_back()
    assert len(tasks) == 2
    assert "could not be" in result.stderr
    assert "Runs that were added before are kept" in result.stderr
    assert "give the same command again" in result.stderr
    assert result.stderr.count("\n") == 1
    finished = {setting.key for setting in tasks[0].settings}
    with RunStore(where) as store:
        before = {found.key: found for found in store.runs()}
    assert set(before) == finished
    again = json.loads(run(*words, "--json").stdout)
    assert (again["n_before"], again["n_new"]) == (len(finished), 4 - len(finished))
    with RunStore(where) as store:
        assert len(store) == 4
        assert store.get(sorted(before)) == [before[key] for key in sorted(before)]


def test_votes_that_do_not_belong_to_the_data_stop_the_command(spec: Path) -> None:
    run("grid.toml", "--out", "front", "--votes", "votes")
    frame = pd.read_csv("private.csv")
    frame.loc[0, "age"] += 1
    frame.to_csv("private.csv", index=False)
    result = run("grid.toml", "--out", "again", "--votes", "votes", exit_code=2)
    assert "were made from other rows than those at hand" in result.stderr
    assert "Give the sweep another cache folder, or remove this one" in result.stderr
    assert result.stderr.count("\n") == 1
    with RunStore("again/runs.db") as store:
        assert len(store) == 0
    run("grid.toml", "--out", "again", "--votes", "more")


def test_a_folder_of_votes_that_others_may_read_is_refused(spec: Path) -> None:
    Path("votes").mkdir(mode=0o755)
    result = run("grid.toml", "--out", "front", "--votes", "votes", exit_code=2)
    assert "may be read by others (mode 755), and votes are private. Run chmod 700" in result.stderr
