"""``evenhand frontier``: train a whole grid of settings, and keep what came of each."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenhand.cli import options
from evenhand.cli.command import Options, command_of
from evenhand.cli.console import emit, note, progress_bars, show, table
from evenhand.cli.options import BACKENDS, choice, workers
from evenhand.cli.output import require_free
from evenhand.cli.results import warn_of_training_rows

if TYPE_CHECKING:
    from evenhand.frontier import Grid, Run
    from evenhand.frontier.cost import ReleaseCost
    from evenhand.frontier.material import DataSource
    from evenhand.frontier.sweep import SweepSummary


PAGE: Final = "page.html"
MOST_JOBS: Final = 4096

TRAINED_ANEW: Final = (
    "It was trained anew, with noise of its own: a release more, whose cost adds to that of the "
    "frontier, and whose numbers differ from the run's."
)


@dataclass(frozen=True, kw_only=True)
class FrontierOptions(Options):
    """What a run of ``evenhand frontier`` was asked to do."""

    spec: Annotated[
        Path,
        typer.Argument(metavar="SPEC", help="Grid of settings in TOML; see docs/frontier.md."),
    ]
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the frontier. One that is there already is gone on with. With --train: "
            "new folder for the model.",
        ),
    ]
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Processes, each on one thread; -1 for one on every core.",
            show_default="1; with --backend ray one on every core of the cluster",
        ),
    ] = None
    backend: Annotated[
        str,
        choice(
            BACKENDS,
            help="Where settings are trained: in processes of this machine, or on the Ray cluster "
            "that RAY_ADDRESS names (extra ray). On a cluster --votes is needed: a folder that all "
            "its machines see, as they must see the data.",
        ),
    ] = BACKENDS[0]
    store: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Where the runs are kept, such as a PostgreSQL URL when several machines write.",
            show_default="runs.db in the folder",
        ),
    ] = None
    votes: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Private folder in which the votes of teachers are kept for later sweeps. Never "
            "publish it.",
            show_default="a temporary one, removed at the end",
        ),
    ] = None
    train: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Train one setting of the grid, named by its key, and save the model.",
            show_default=False,
        ),
    ] = None
    show_values: options.ShowValues = False
    json: options.Json = False


@command_of(FrontierOptions)
def frontier(given: FrontierOptions) -> None:
    """Train every setting of a grid once and keep error, gap, coverage and claim of each.

    Stopped at any moment and started again, it goes on where it was. On private data every
    setting is a release of its own; the sum of them is printed.
    """
    with progress_bars(time_left=True) as bars:
        bars.begin(f"reading {given.spec}")
        from evenhand.frontier import Grid, RunStore, sweep
        from evenhand.frontier.cost import ReleaseCost
        from evenhand.frontier.store import RUNS_FILE

        grid = Grid.from_toml(given.spec)
        if given.train is not None:
            _train(grid, given.train, given.out, json=given.json)
            return
        if given.jobs is not None and not (given.jobs == -1 or 1 <= given.jobs <= MOST_JOBS):
            raise ValueError(
                f"--jobs must be at least 1, or -1 for one per core, and at most {MOST_JOBS:,}, "
                f"got {given.jobs}."
            )
        if given.out.exists() and not given.out.is_dir():
            raise ValueError(f"--out {given.out} is a file, and a frontier is a folder. Name one.")
        _warn_of_training_rows(grid.data)
        with _workers(given.backend, given.votes):
            given.out.mkdir(parents=True, exist_ok=True)
            with RunStore(given.out / RUNS_FILE if given.store is None else given.store) as runs:
                done = sweep(
                    grid,
                    runs,
                    n_jobs=given.jobs,
                    progress=bars,
                    cache=given.votes,
                    spec=str(given.spec),
                )
                every, where = runs.runs(), str(runs)
        keys = {setting.key for setting in grid.settings()}
        kept = [run for run in every if run.setting.data == grid.data.name]
        found = [run for run in kept if run.key in keys]
        # What the folder holds of other grids was released from the same data too.
        cost = ReleaseCost.of(kept)
        useless = sum(run.no_better is True for run in found)
        summary = _summary(done, cost, given.out) | {"n_no_better": useless}
        summary["choices"] = list(grid.choices)
        summary["other_grids"] = _grids_of(run for run in every if run.key not in keys)
        if found:
            bars.begin("writing the page")
            from evenhand.frontier.page.write import write_page

            title = grid.title or grid.data.name
            summary["page"] = str(write_page(found, given.out / PAGE, title=title, cost=cost))
    for reason, n in summary["skipped"].items():
        note(f"{n} setting{'s'[: n != 1]} cannot be trained: {reason}")
    if done.n_before and grid.data.has_files:
        note(
            "note: settings are told apart by names, columns and roles, never by rows: those that "
            "were there are of the tables as they were then. If one has changed since, take "
            "another --out."
        )
    for file, n in summary["other_grids"].items():
        note(
            f"note: the page shows this grid alone, and {where} holds {n:,} run{'s'[: n != 1]} of "
            f"{file} too. For their page give that grid, this store as --store, and an --out of "
            f"its own: what is there is not trained again."
        )
    if useless:
        note(
            f"warning: {useless:,} of {len(found):,} runs are no better than always predicting the "
            f"majority class of the rows they were measured on"
        )
    if given.json:
        emit(summary)
        return
    _show(summary, found, cost)


def _grids_of(runs: Iterable[Run]) -> dict[str, int]:
    """Return how many of the runs each grid has, by its file as the runs name it."""
    from collections import Counter

    words = (run.command.partition(" --train ")[0] for run in runs)
    start = "evenhand frontier "  # points of others have no such command
    return dict(Counter(word.removeprefix(start) for word in words if word.startswith(start)))


def _warn_of_training_rows(data: DataSource) -> None:
    """Say so where a file of the grid stands for training rows and for test rows."""
    named = {"private": data.private, "public": data.public, "calibration": data.calibration}
    files = {name: Path(file) for name, file in named.items() if isinstance(file, str)}
    if isinstance(data.test, str) and "private" in files:
        warn_of_training_rows(Path(data.test), option="[data] {} =", **files)


def _workers(backend: str, votes: Path | None) -> AbstractContextManager[None]:
    """Train in processes of this machine, or on a cluster."""
    if backend != BACKENDS[0] and votes is None:
        raise ValueError(
            "--backend ray needs --votes: a private folder that all machines of the cluster see."
        )
    return workers(backend)


def _summary(done: SweepSummary, cost: ReleaseCost, out: Path) -> dict[str, Any]:
    from collections import Counter

    return {
        "folder": str(out),
        "n_settings": done.n_settings,
        "n_before": done.n_before,
        "n_new": done.n_new,
        "skipped": dict(Counter(why for _, why in done.skipped)),
        "seconds": done.seconds,
        "cost": cost.to_dict(),
    }


def _show(summary: dict[str, Any], runs: list[Run], cost: ReleaseCost) -> None:
    from evenhand.privacy.guarantee import NOT_AS_CLAIMED

    show(
        f"{summary['n_new']} settings trained in {summary['seconds']:.1f} s, "
        f"{summary['n_before']} were there already; {len(runs)} of {summary['n_settings']} are in "
        f"{summary['folder']}."
    )
    show(*summary["choices"])
    if runs:
        _show_front(runs)
    if marked := sorted({run.setting.method for run in runs if run.as_printed}):
        show(f"{NOT_AS_CLAIMED}: the runs of {', '.join(marked)}. Their claims say why.")
    show(str(cost))
    if "page" in summary:
        show(f"The page to choose on is {summary['page']}.")


_SHOWN = 12


def _show_front(runs: list[Run]) -> None:
    from evenhand.frontier import front

    best = [run for run, on in zip(runs, front(runs), strict=True) if on]
    if not best:  # NaN is neither better nor worse
        show(
            "No run has both an error and a gap that are numbers, so none is listed: a reject "
            "option that refuses every row of a group has none. Raise reject_margin, or give more "
            "test and calibration rows."
        )
        return
    first = sorted(best, key=lambda run: (run.epsilon, run.gap))[:_SHOWN]
    apart = _apart(runs, first)
    rows = [
        {
            "": str(number) if any(apart) else "",
            "method": run.setting.method,
            "epsilon": "none" if run.as_printed else f"{run.epsilon:g}",
            "gap": f"{run.gap:.4f}",
            "error": f"{run.error:.4f}",
            "of the\nmajority\nclass": _known(run.majority_error),
            "without\nmargin": _known(run.error_without_margin),
            "coverage": f"{run.coverage:.1%}",
            "disparity": _known(run.disparity),
        }
        for number, run in enumerate(first, 1)
    ]
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    show(
        f"Not dominated in epsilon, gap, error and coverage: {len(best)} runs"
        + (f", the first {_SHOWN}:" if len(best) > _SHOWN else ":"),
        table(
            columns,
            [[row[name] for name in columns] for row in rows],
            text=columns.index("epsilon"),
        ),
    )
    if any(apart):
        show(
            table(
                ("", "setting"),
                [(row[""], words) for row, words in zip(rows, apart, strict=True)],
                text=2,
            )
        )


def _apart(runs: list[Run], shown: list[Run]) -> list[str]:
    """Return in what each of the shown runs differs from runs of its method, beside epsilon."""

    def words(run: Run) -> dict[str, str]:
        return run.setting.words() | {"seed": str(run.setting.seed)}

    told = [(run.setting.method, words(run)) for run in runs]
    seen: dict[tuple[str, str], set[str | None]] = {}
    for name in {name for _, known in told for name in known} - {"epsilon"}:
        for method, known in told:
            seen.setdefault((method, name), set()).add(known.get(name))
    varied = {key for key, values in seen.items() if len(values) > 1}
    return [
        ", ".join(f"{n}={v}" for n, v in words(run).items() if (run.setting.method, n) in varied)
        for run in shown
    ]


def _known(value: float) -> str:
    return "" if value != value else f"{value:.4f}"


def _train(grid: Grid, key: str, out: Path, *, json: bool) -> None:
    """Train one setting anew and save the model."""
    from evenhand.frontier.subjects import draws_rows
    from evenhand.frontier.train import train_one

    require_free(out)
    chosen = [setting for setting in grid.settings() if setting.key == key]
    if not chosen:
        raise ValueError(
            f"--train names the key {key!r}, which no setting of the grid has. The grid or the "
            f"data changed since, or the key is of another file."
        )
    model = train_one(grid.data, chosen[0])
    model.save(out)
    claim = str(model.fitted_.guarantee)
    if json:
        emit({"model": str(out), "guarantee": claim})
        return
    what = "generator" if draws_rows(chosen[0].method) else "model"
    show(claim, f"The {what} is in {out}.")
    if grid.data.kind == "private":
        show(TRAINED_ANEW)
