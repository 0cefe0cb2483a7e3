"""Runs in a database: SQLite in one file, or PostgreSQL when several machines write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from evenhand._checks import did_you_mean
from evenhand._database import Database, cause
from evenhand.frontier.run import FORMAT, OBJECTIVES, Run
from evenhand.typing import FloatArray

SCHEMA: Final = 1
"""Version of the tables below."""

RUNS_FILE: Final = "runs.db"
"""Name of the store in the folder of a frontier."""

BATCH: Final = 500
"""Runs per transaction of ``add_all``: so many are lost at most when a process is killed."""

_tables = sa.MetaData()
_about = sa.Table(
    "evenhand_frontier",
    _tables,
    sa.Column("only", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("run_version", sa.Integer, nullable=False),
)
# The columns are for questions in SQL; the run itself is the JSON. What is not finite is null.
_runs = sa.Table(
    "evenhand_runs",
    _tables,
    sa.Column("key", sa.String(32), primary_key=True),
    sa.Column("data", sa.Text, nullable=False),
    sa.Column("method", sa.Text, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("epsilon", sa.Double),
    sa.Column("delta", sa.Double),
    sa.Column("gap", sa.Double),
    sa.Column("error", sa.Double),
    sa.Column("coverage", sa.Double),
    sa.Column("mu_squared", sa.Double),
    sa.Column("run", sa.Text, nullable=False),
    # All that ``points`` reads, so that it need not read the JSON.
    sa.Index("evenhand_runs_points", "key", "data", "method", *OBJECTIVES),
)


class StoreOfAnotherVersion(ValueError):
    """The tables, or the runs in them, were written by another version of this package."""


class StoreGone(ConnectionError):
    """The store cannot be read or written now. What was added before is kept."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """The objectives of many runs, without the rest."""

    keys: tuple[str, ...]
    """The runs, in the order of ``RunStore.runs``."""
    values: FloatArray
    """In the order of ``OBJECTIVES``. Shape (n_runs, 4)."""


class RunStore:
    """The finished runs of a frontier; several processes and machines may add to it at once.

    Parameters
    ----------
    where : str or Path
        A file for SQLite, or a SQLAlchemy URL of PostgreSQL. The tables are made if they are not
        there.

    Raises
    ------
    StoreOfAnotherVersion
        If other tables, or runs of another format, are there.
    StoreGone
        If it cannot be reached; so does every method. What was added before stays.

    Notes
    -----
    A run is added whole or not at all, and once: of two writers of one setting the first wins.
    Runs come back in the order of their keys, whoever finished first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, RunStore(f"{folder}/runs.db") as store:
    ...     len(store), store.keys()
    (0, set())
    """

    def __init__(self, where: str | Path) -> None:
        self._database = Database(
            where, what="A store of runs", in_memory="Name a file that the runs can stay in."
        )
        with self._transaction("opened", write=True) as db:
            self._database.create(db, _tables)
            known = db.execute(sa.select(_about)).first()
            if known is None:
                db.execute(
                    _about.insert().values(only=1, schema_version=SCHEMA, run_version=FORMAT)
                )
                return
        if (known.schema_version, known.run_version) != (SCHEMA, FORMAT):
            raise StoreOfAnotherVersion(
                f"{self} is a store of version {known.schema_version}.{known.run_version}, and "
                f"this package writes {SCHEMA}.{FORMAT}. Give the runs a new file, or export them "
                f"to CSV with the version that wrote them; nothing was changed."
                + (
                    " What was called notion is now called fairness."
                    if known.run_version < 3
                    else ""
                )
            )

    @classmethod
    def in_folder(cls, folder: str | Path) -> RunStore:
        """Open the store that a sweep left in its folder, and make none."""
        file = Path(folder) / RUNS_FILE
        if not file.is_file():
            raise FileNotFoundError(
                f"{folder} holds no frontier: there is no {RUNS_FILE}. Make one with: "
                f"evenhand frontier SPEC.toml --out {folder}"
            )
        return cls(file)

    def add(self, run: Run) -> bool:
        """Keep a run; False if one with its key is there already."""
        with self._transaction("written", write=True) as db:
            return self._insert(db, [run]) == 1

    def add_all(self, runs: Iterable[Run]) -> int:
        """Keep runs, in batches of ``BATCH``, and return how many of them were new."""
        left, new = iter(runs), 0
        while batch := list(islice(left, BATCH)):
            with self._transaction("written", write=True) as db:
                new += self._insert(db, batch)
        return new

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other sweeps out of a file: they would train the same settings as this one.

        Machines that share PostgreSQL are given settings of their own.

        Raises
        ------
        BlockingIOError
            If another process, or another store of this one, is in such a block.
        """
        with self._database.alone() as alone:
            if not alone:
                raise BlockingIOError(
                    f"Another sweep is training for {self} now; two at once would train the same "
                    f"settings twice. Wait until it has ended and give the same command again: it "
                    f"goes on with the settings that are missing. For more processes stop it and "
                    f"start one sweep with more (--jobs)."
                )
            yield

    def keys(self) -> set[str]:
        """Keys of the finished settings: a sweep that is started again skips them."""
        with self._transaction("read") as db:
            return set(db.scalars(sa.select(_runs.c.key)))

    def runs(self, *, data: str | None = None, methods: Sequence[str] | None = None) -> list[Run]:
        """Return the runs in the order of their keys, of one data set or of some methods.

        Raises
        ------
        ValueError
            If no run is of that data set or method; the message names those that are there.
        """
        query = _chosen(sa.select(_runs.c.run), data, methods)
        with self._transaction("read") as db:
            self._check_names(db, data, methods)
            texts = list(db.scalars(query))
        return [Run.from_dict(json.loads(text)) for text in texts]

    def points(self, *, data: str | None = None, methods: Sequence[str] | None = None) -> Points:
        """Return the objectives of the same runs, which is much faster than the runs."""
        query = _chosen(sa.select(_runs.c.key, *(_runs.c[x] for x in OBJECTIVES)), data, methods)
        with self._transaction("read") as db:
            self._check_names(db, data, methods)
            rows = db.execute(query).all()
        values = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, len(OBJECTIVES))
        epsilon = values[:, OBJECTIVES.index("epsilon")]
        epsilon[np.isnan(epsilon)] = np.inf  # null, because JSON has no infinity
        return Points(keys=tuple(row[0] for row in rows), values=values)

    def get(self, keys: Iterable[str]) -> list[Run]:
        """Return the runs with these keys, in the order that was asked for."""
        asked = list(keys)
        found: dict[str, str] = {}
        with self._transaction("read") as db:
            for start in range(0, len(asked), BATCH):
                part = asked[start : start + BATCH]
                query = sa.select(_runs.c.key, _runs.c.run).where(_runs.c.key.in_(part))
                found.update((row.key, row.run) for row in db.execute(query))
        missing = [key for key in asked if key not in found]
        if missing:
            raise KeyError(
                f"{self} has no run {missing[0]!r}, nor {len(missing) - 1} others that were asked "
                f"for. keys() lists those it has."
            )
        return [Run.from_dict(json.loads(found[key])) for key in asked]

    def close(self) -> None:
        """Let go of the database. Every method has closed its connection before it returned."""
        self._database.close()

    def __len__(self) -> int:
        with self._transaction("read") as db:
            return int(db.scalar(sa.select(sa.func.count()).select_from(_runs)) or 0)

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self._database)

    def __repr__(self) -> str:
        return f"RunStore({str(self)!r})"

    def _insert(self, db: sa.Connection, runs: Sequence[Run]) -> int:
        insert = postgresql.insert if self._database.dialect == "postgresql" else sqlite.insert
        statement = insert(_runs).on_conflict_do_nothing().returning(_runs.c.key)
        # In one order: two writers of the same runs would else wait for each other for ever.
        rows = sorted((_row(run) for run in runs), key=lambda row: str(row["key"]))
        return len(db.execute(statement, rows).all())

    def _check_names(
        self, db: sa.Connection, data: str | None, methods: Sequence[str] | None
    ) -> None:
        for column, asked in (("data", [data] if data is not None else []), ("method", methods)):
            if not asked:
                continue
            known = sorted(db.scalars(sa.select(_runs.c[column]).distinct()))
            for name in asked:
                if name not in known:
                    there = ", ".join(map(repr, known)) or "none at all"
                    raise ValueError(
                        f"{self} has no runs whose {column} is {name!r}, only {there}."
                        f"{did_you_mean(name, known)}"
                    )

    @contextmanager
    def _transaction(self, doing: str, *, write: bool = False) -> Iterator[sa.Connection]:
        try:
            with self._database.transaction(write=write) as db:
                yield db
        except sa.exc.SQLAlchemyError as error:
            raise StoreGone(
                f"The runs in {self} could not be {doing}: {cause(error)}. Runs that were added "
                f"before are kept. Mend the database and give the same command again: it goes on "
                f"with the settings that are missing and trains none twice."
            ) from error


def _chosen(
    query: sa.Select[Any], data: str | None, methods: Sequence[str] | None
) -> sa.Select[Any]:
    if data is not None:
        query = query.where(_runs.c.data == data)
    if methods is not None:
        query = query.where(_runs.c.method.in_(list(methods)))
    return query.order_by(_runs.c.key)


def _row(run: Run) -> Mapping[str, Any]:
    plain = run.to_dict()
    kept = ("epsilon", "delta", "gap", "error", "coverage", "mu_squared")
    return {
        "key": run.key,
        "data": run.setting.data,
        "method": run.setting.method,
        "seed": run.setting.seed,
        **{name: plain[name] for name in kept},
        "run": json.dumps(plain, separators=(",", ":"), allow_nan=False),
    }
