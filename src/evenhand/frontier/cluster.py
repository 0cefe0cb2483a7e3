"""Joblib on a Ray cluster: tasks that survive the loss of a machine, given as they are done."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any, Final

import joblib
from joblib.parallel import ParallelBackendBase

from evenhand import _checks
from evenhand._extras import MissingExtra

RETRIES: Final = 3
"""How often Ray starts a task anew whose machine or process went away."""

PATIENCE_S: Final = 60.0
"""How long a sweep waits for a cluster in which no machine is left."""

_LOOK_S: Final = 0.2  # so long, at most, a new task waits to be looked at


class ClusterLost(BrokenExecutor):
    """A task lost its machine more often than ``RETRIES``; the work itself did not go wrong."""


class ClusterGone(ConnectionError):
    """No machine of the cluster is left to work on."""


@contextmanager
def on_ray(address: str | None = None, *, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Let joblib, and so ``sweep`` and fits on ``ParquetRows``, run its tasks on a Ray cluster.

    Parameters
    ----------
    address : str, optional
        Of the cluster, such as "10.0.0.1:6379". Default: ``RAY_ADDRESS``, or the cluster that this
        machine is part of. A connection that is there already is used, and left open.
    patience_s : float
        Seconds to wait for a cluster without any core before ``ClusterGone`` is raised.

    Raises
    ------
    MissingExtra
        If Ray is not installed.
    ClusterGone
        If there is no cluster at the address, or, while tasks wait, no core in it any more.

    Notes
    -----
    Every task takes one core. When a machine is lost, the tasks it had begun start anew on others
    (``RETRIES`` times each) and the rest go on meanwhile; their results come back once. The joblib
    backend that Ray itself brings holds its tasks in actors, which such a loss ends for good, and
    gives results only when all are there.

    Examples
    --------
    >>> def on_the_cluster(grid, store):
    ...     with on_ray("10.0.0.1:6379"):
    ...         return sweep(grid, store, cache="/shared/private/votes")
    """
    patience = _checks.non_negative("patience_s", patience_s)
    ray = _ray()
    ours = not ray.is_initialized()
    if ours:
        where = address or os.environ.get("RAY_ADDRESS") or "auto"
        try:
            ray.init(address=where, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError) as error:
            raise ClusterGone(
                f"There is no Ray cluster at {where!r}: {str(error).splitlines()[0]} Start one "
                f"with ray start --head, or name one by RAY_ADDRESS. The cores of this machine "
                f"alone need no cluster."
            ) from error
    try:
        with joblib.parallel_config(backend=RayTasks(patience_s=patience)):
            yield
    finally:
        if ours:
            ray.shutdown()


class RayTasks(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """A joblib backend in which each job is one Ray task.

    Parameters
    ----------
    patience_s : float
        See ``on_ray``.
    """

    supports_retrieve_callback = True  # so that results can be given as they are done
    default_n_jobs = -1

    def __init__(self, *, patience_s: float = PATIENCE_S, **rest: Any) -> None:
        super().__init__(**rest)
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._under_way: dict[Any, Callable[[Any], Any]] = {}
        self._collector: threading.Thread | None = None
        self._ended = False
        self._task: Any = None

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many tasks are run at once: as asked, or one for each core."""
        if n_jobs == 0:
            raise ValueError("n_jobs must be at least 1, or -1 for one per core, got n_jobs=0.")
        # Not 1: joblib would run a single job at a time here, and not on the cluster.
        return max(2, n_jobs if n_jobs is not None and n_jobs > 0 else _cores())

    def start_call(self) -> None:
        """Start to collect what is done."""
        options = {"num_cpus": 1, "max_retries": RETRIES, "scheduling_strategy": "SPREAD"}
        self._task = _ray().remote(_run).options(**options)
        self._ended = False
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()

    def stop_call(self) -> None:
        """Stop to collect."""
        if self._collector is not None:
            with self._changed:
                self._ended = True
                self._changed.notify()
            self._collector.join()
            self._collector = None

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], Any]) -> Any:
        """Send a job to the cluster; ``callback`` takes its result, or what went wrong."""
        task = self._task.remote(func)
        with self._changed:
            self._under_way[task] = callback
            self._changed.notify()
        return task

    def retrieve_result_callback(self, out: Any) -> Any:
        """Return a result, or raise what the job raised."""
        if isinstance(out, BaseException):
            raise out
        return out

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Take back what has not been done; a later call starts afresh."""
        self.stop_call()
        for task in self._under_way:
            _ray().cancel(task, force=True)
        self._under_way.clear()

    def _collect(self) -> None:
        """Hand over each task as it is done, in a thread of its own."""
        ray = _ray()
        alone_since: float | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._under_way)
                if self._ended:
                    return
                waiting = list(self._under_way)
            ready, _ = ray.wait(waiting, timeout=_LOOK_S)
            for task in ready:
                self._hand_over(task, _outcome(task))
            if ready or _cores():
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > self._patience_s:
                self._hand_over(
                    waiting[0],
                    ClusterGone(
                        f"No machine of the Ray cluster is left, for {self._patience_s:g} s now. "
                        f"Start machines and give the same command again: a sweep keeps what is "
                        f"finished, and goes on with the settings that are missing; a fit, which "
                        f"spends nothing before all teachers have voted, begins anew."
                    ),
                )

    def _hand_over(self, task: Any, out: Any) -> None:
        with self._changed:
            callback = self._under_way.pop(task)
        callback(out)  # it may submit the next job


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtra.of("A Ray cluster", "Ray", "ray") from None
    return ray


def _run(func: Callable[[], Any]) -> Any:
    return func()


def _cores() -> int:
    """Cores of all machines that are up now."""
    return int(_ray().cluster_resources().get("CPU", 0))


def _outcome(task: Any) -> Any:
    """Return the result of a task that is done, or the error it ended with."""
    ray = _ray()
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        return error.cause
    except ray.exceptions.RayError as error:
        lost = ClusterLost(f"A task lost its machine or process too often: {error}")
        lost.__cause__ = error
        return lost
