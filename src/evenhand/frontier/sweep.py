"""A sweep: every setting of a grid trained once, wherever it was stopped, on as many processes."""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import joblib
from joblib.parallel import SequentialBackend
from threadpoolctl import threadpool_limits

from evenhand import _values
from evenhand.frontier.cluster import RayTasks
from evenhand.frontier.grid import Grid
from evenhand.frontier.run import Run, Setting
from evenhand.frontier.scratch import scratch_votes
from evenhand.frontier.subjects import SUBJECTS
from evenhand.frontier.train import Task, Trained, check, shared_with, teach, train
from evenhand.frontier.votes_cache import VotesCache

LARGEST_TASK: Final = 500
"""Settings that are trained together at most; what a process that is killed loses."""

TASKS_PER_JOB: Final = 4
"""From so many tasks for each process on, none waits long for the last, whatever they cost."""

ATTEMPTS: Final = 3
"""How often workers may be lost before a sweep gives up."""

Progress = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``."""


class WorkersLost(ConnectionError):
    """Workers went away again and again; what was finished is kept."""


class Store(Protocol):
    """What a sweep needs of the place where runs are kept: ``RunStore``."""

    def alone(self) -> AbstractContextManager[None]:
        """Keep other sweeps out, where they would train the same settings."""

    def keys(self) -> set[str]:
        """Return the keys of the settings that are finished."""

    def add_all(self, runs: Iterable[Run]) -> int:
        """Keep runs, each key once; return how many were new."""


@dataclass(frozen=True, kw_only=True)
class SweepSummary:
    """What a sweep did."""

    n_settings: int
    """Of the grid."""
    n_before: int
    """Finished by an earlier sweep into the same store."""
    n_new: int
    """Finished now."""
    skipped: tuple[tuple[Setting, str], ...]
    """Settings that cannot be trained, and why."""
    seconds: float
    """Wall clock of this sweep."""

    def __str__(self) -> str:
        said = f"{self.n_new} of {self.n_settings} settings trained in {self.seconds:.1f} s"
        if self.n_before:
            said += f"; {self.n_before} were there already"
        if self.skipped:
            said += f"; {len(self.skipped)} cannot be trained"
        return said


def sweep(
    grid: Grid,
    store: Store,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    cache: str | Path | None = None,
    spec: str = "SPEC.toml",
) -> SweepSummary:
    """Train the settings of ``grid`` that ``store`` does not hold yet.

    Parameters
    ----------
    grid : Grid
    store : RunStore
        Every run is added as soon as its task is done. A sweep that was stopped, in whatever way,
        goes on where it was when it is started again.
    n_jobs : int, optional
        Processes, each on one thread; -1 for one per core. Default: one. Inside ``on_ray()`` they
        are tasks on a cluster, by default one for each of its cores.
    progress : callable, optional
        ``progress(stage, done, total)``.
    cache : path, optional
        Private folder where teachers' votes are kept for later sweeps. Default: a temporary one,
        encrypted with a key that is in memory alone, and removed at the end; that of a sweep that
        was killed is removed by the next. On a cluster it is needed, and lies
        where every machine sees it.
    spec : str
        Name of the grid's file, for the command that trains a run again.

    Returns
    -------
    SweepSummary

    Raises
    ------
    ValueError
        On a cluster without ``cache``, and on a joblib backend that gives nothing before all is
        done.
    BlockingIOError
        If another sweep is at work for the same file.
    StoreGone, ClusterGone, WorkersLost
        If the store or the whole cluster goes away, or workers are lost again and again. What is
        finished stays in the store.

    Privacy
    -------
    On private data every setting is a release of its own and draws its own noise: m runs cost the
    sum of their ``mu_squared``. Votes are private; they stay in ``cache``.
    """
    started = time.perf_counter()
    _check_backend(cache)
    settings = grid.settings()
    skipped: dict[str, tuple[Setting, str]] = {}
    new = 0
    with store.alone(), _votes(cache) as kept:
        before = store.keys()
        missing = [setting for setting in settings if setting.key not in before]
        n_before = len(settings) - len(missing)
        if missing:
            grid.data.prepare(progress)
            check(grid.data, missing)
        for attempt in itertools.count(1):
            done = store.keys()
            left = [s for s in settings if s.key not in done and s.key not in skipped]
            if not left:
                break
            try:
                for trained in _trained(grid, left, kept, n_jobs, spec, progress):
                    new += store.add_all(trained.runs)
                    skipped |= {setting.key: (setting, why) for setting, why in trained.skipped}
                    if progress is not None:
                        finished = n_before + new + len(skipped)
                        progress("settings", finished, len(settings))
            except BrokenExecutor as error:
                # Workers are gone. What was added stays; the rest is dealt anew.
                if attempt >= ATTEMPTS:
                    raise WorkersLost(
                        f"Workers went away {ATTEMPTS} times, most likely for want of memory. What "
                        f"is finished is kept. Take fewer at once (--jobs) and give the same "
                        f"command again: it goes on with the settings that are missing."
                    ) from error
    return SweepSummary(
        n_settings=len(settings),
        n_before=n_before,
        n_new=new,
        skipped=tuple(skipped.values()),
        seconds=time.perf_counter() - started,
    )


def _trained(
    grid: Grid,
    settings: Sequence[Setting],
    cache: VotesCache,
    n_jobs: int | None,
    spec: str,
    progress: Progress | None,
) -> Iterator[Trained]:
    """Train teachers first, one process for each ensemble, and then the settings."""
    job = partial(_on_one_thread, shows_values=_values.are_shown(), folder=Path.cwd())
    # The size of a task follows from public numbers alone, and never from how long one took.
    workers = max(1, joblib.effective_n_jobs(n_jobs))
    sizes = list(Counter(shared_with(setting) for setting in settings).values())
    tasks = list(_tasks(grid, settings, cache, spec, _largest_task(sizes, workers)))
    ensembles = {shared_with(task.settings[0]): task for task in tasks if _shares_teachers(task)}
    if len(ensembles) < len(tasks):
        jobs = (joblib.delayed(job)(teach, task) for task in ensembles.values())
        for n, _ in enumerate(_as_done(jobs, n_jobs), start=1):
            if progress is not None:
                progress("ensembles of teachers", n, len(ensembles))
    yield from _as_done((joblib.delayed(job)(train, task) for task in tasks), n_jobs)


def _as_done(jobs: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """Run jobs in joblib and give their results as they are done."""
    yield from joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)


def _largest_task(families: Sequence[int], workers: int) -> int:
    """Return how many settings a task may have: as many as keep all workers busy to the end.

    What settings share is worked out once per task, so that few large tasks cost least; but with
    three of them two workers end apart.
    """
    for share in itertools.count(1):
        largest = max(1, min(LARGEST_TASK, -(-sum(families) // (share * workers))))
        n_tasks = sum(-(-n // largest) for n in families)
        if largest == 1 or n_tasks % workers == 0 or n_tasks >= TASKS_PER_JOB * workers:
            break
    return largest


def _tasks(
    grid: Grid, settings: Sequence[Setting], cache: VotesCache, spec: str, largest: int
) -> Iterator[Task]:
    """Deal settings into tasks: those that share their teachers together, none too large.

    They are dealt like cards: neighbors in a grid cost about the same, and so tasks do too.
    """
    families: dict[tuple[object, ...], list[Setting]] = {}
    for setting in settings:
        families.setdefault(shared_with(setting), []).append(setting)
    for family in families.values():
        n_tasks = -(-len(family) // largest)
        for first in range(n_tasks):
            yield Task(
                source=grid.data,
                settings=tuple(family[first::n_tasks]),
                cache=cache,
                spec=spec,
            )


def _shares_teachers(task: Task) -> bool:
    return SUBJECTS[task.settings[0].method].shares_votes


def _on_one_thread(
    job: Callable[[Task], Any], task: Task, *, shows_values: bool, folder: Path
) -> Any:
    """Run a job without threads of its own: processes times threads would crowd the cores.

    A process that an earlier sweep has left stands where that one was begun, and would read its
    files there; another machine may not have this folder.
    """
    shown = _values.show_values() if shows_values else nullcontext()
    if folder.is_dir():
        os.chdir(folder)
    with threadpool_limits(limits=1), shown:
        try:
            return job(task)
        except Exception as error:
            _values.vouched(error)
            raise


def _check_backend(cache: str | Path | None) -> None:
    """Refuse a joblib backend that a sweep cannot use, before anything is trained."""
    backend, _ = joblib.parallel.get_active_backend()
    if not (backend.supports_return_generator or isinstance(backend, SequentialBackend)):
        raise ValueError(
            f"The joblib backend {type(backend).__name__} gives no result before all are there, so "
            f"that a sweep that is stopped would lose them. On a Ray cluster use on_ray(); else "
            f"leave joblib's own backend."
        )
    if isinstance(backend, RayTasks) and cache is None:
        raise ValueError(
            "On a cluster a sweep needs cache (--votes): a private folder that all machines see, "
            "where the votes of teachers are kept. Without it every machine would train the "
            "teachers anew, and leave votes behind."
        )


@contextmanager
def _votes(cache: str | Path | None) -> Iterator[VotesCache]:
    """Give the place of the votes: the user's, or one that ends with this sweep."""
    if cache is not None:
        yield VotesCache(folder=Path(cache))
        return
    with scratch_votes() as own:
        yield own
