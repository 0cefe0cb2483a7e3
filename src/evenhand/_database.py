"""Reach a database: SQLite in one file, or PostgreSQL between machines."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.pool import NullPool, QueuePool

from evenhand._extras import MissingExtra
from evenhand._lock import lock

WAIT_S: Final = 60.0
"""How long one process waits for another's transaction before it gives up."""

SHORT_WAIT_S: Final = 5
"""As ``WAIT_S``, for a server whose clients wait."""

LOG_PAGES: Final = 8000
"""Pages of 4 KiB in SQLite's log before they are carried into its file.

A commit that has to do so takes several times as long. With single decisions, four pages each, it
is one in two thousand; with SQLite's own 1,000 it was one in 250, and those behind it wait as well.
"""

_NO_SECRETS: Final = (
    *("host", "hostaddr", "port", "dbname", "user", "service", "passfile"),
    *("sslmode", "sslcert", "sslkey", "sslrootcert", "connect_timeout", "application_name"),
    *("target_session_attrs", "mode", "cache", "uri", "timeout"),
)
"""Parts of a URL's query that may be shown; a password may stand in any other."""

_BEGIN_LOCK: Final = 0x6576656E68616E64  # one lock for tables and first rows, on PostgreSQL


class Database:
    """Where tables are kept. Each transaction opens a connection of its own, or takes a kept one.

    Parameters
    ----------
    where : str or Path
        A file for SQLite, or a SQLAlchemy URL of PostgreSQL.
    what : str
        Whose database it is, for messages: "A ledger's database".
    in_memory : str
        The way out for who names no file.
    keep_open : bool
        For a server that commits many times a second: connections stay open between transactions,
        and SQLite writes a log beside its file (``-wal``), synced at every commit.

    Notes
    -----
    Opening each time costs milliseconds, and a connection that crossed a fork or a server's restart
    is never used again. SQLite keeps its rollback journal: a file that is copied between two
    transactions is whole, which with a write-ahead log beside it is not.
    """

    def __init__(
        self, where: str | Path, *, what: str, in_memory: str, keep_open: bool = False
    ) -> None:
        self._url = _url(str(where), what=what, in_memory=in_memory)
        self._keep_open = keep_open
        self._connect()

    @property
    def dialect(self) -> str:
        """``"sqlite"`` or ``"postgresql"``."""
        return self._engine.dialect.name

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What is raised when it cannot be reached, read or written."""
        return sa.exc.SQLAlchemyError, _errors_of(self._engine.dialect)

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """Run statements that happen whole or not at all; a writer locks SQLite from its start."""
        with self._engine.execution_options(evenhand_write=write).begin() as db:
            yield db

    def prepared(self, statement: Any) -> Prepared:
        """Return a statement that is compiled for this database now, and not at each use."""
        return Prepared(statement, self._engine.dialect)

    def writer(self) -> Writer:
        """Return a writer that keeps its connection."""
        return Writer(self._engine)

    def is_new(self) -> bool:
        """Return whether its file is not there yet, in a folder where it can be made."""
        if self.dialect != "sqlite":
            return False
        file = Path(str(self._url.database))
        return not file.exists() and os.access(file.parent, os.W_OK | os.X_OK)

    def create(self, db: sa.Connection, tables: sa.MetaData) -> None:
        """Create the tables that are not there, also when two processes are the first at once."""
        self.in_turn(db)
        tables.create_all(db)

    def in_turn(self, db: sa.Connection) -> None:
        """Wait for others who begin a store, until they commit; SQLite's writers do already."""
        if self.dialect == "postgresql":
            db.execute(sa.select(sa.func.pg_advisory_xact_lock(_BEGIN_LOCK)))

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Give whether no other process is in such a block with the same file.

        A lock file stands beside it meanwhile, and one that a killed process left keeps nobody out.
        PostgreSQL is for several: nobody is kept out.
        """
        if self.dialect != "sqlite":
            yield True
            return
        place = f"{self._url.database}.lock"
        handle = _locked(place)
        if handle is None:
            yield False
            return
        try:
            yield True
        finally:
            with suppress(OSError):  # Windows keeps what is open
                os.unlink(place)
            os.close(handle)

    def close(self) -> None:
        """Let go of what the engine holds; a later transaction opens it again."""
        self._engine.dispose()

    def __str__(self) -> str:
        return shown(self._url)

    def __repr__(self) -> str:
        return f"Database({str(self)!r})"

    def __getstate__(self) -> dict[str, Any]:
        # A copy opens connections of its own.
        return {"_url": self._url, "_keep_open": self._keep_open}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._url, self._keep_open = state["_url"], state["_keep_open"]
        self._connect()

    def _connect(self) -> None:
        try:
            self._engine = sa.create_engine(
                self._url,
                poolclass=QueuePool if self._keep_open else NullPool,
                hide_parameters=True,
                connect_args=self._patience(),
                **(
                    {"pool_pre_ping": True, "pool_timeout": SHORT_WAIT_S} if self._keep_open else {}
                ),
            )
        except sa.exc.NoSuchModuleError:
            raise ValueError(
                f"There is no driver for {self._url.drivername}://. Write postgresql://."
            ) from None
        except ModuleNotFoundError as error:
            raise MissingExtra.of("PostgreSQL", f"the driver {error.name}", "postgres") from None
        if self.dialect == "sqlite":
            prepare = _prepare_kept_sqlite if self._keep_open else _prepare_sqlite
            sa.event.listen(self._engine, "connect", prepare)
            sa.event.listen(self._engine, "begin", _begin_sqlite)

    def _patience(self) -> dict[str, Any]:
        """Return how long a server waits for PostgreSQL before it says that it is away."""
        if self._url.get_backend_name() == "sqlite":
            return {}
        kept = {} if "connect_timeout" in self._url.query else {"connect_timeout": SHORT_WAIT_S}
        waits = f"-c lock_timeout={SHORT_WAIT_S}s"
        return kept | ({} if "options" in self._url.query else {"options": waits})


class Prepared:
    """A statement that runs many times a second: its text is made once, and its driver runs it.

    Errors are the driver's own (``Database.errors``).

    Parameters
    ----------
    statement : executable
        Its values are named as the columns; they reach the driver as they are given.
    dialect : Dialect
    """

    def __init__(self, statement: Any, dialect: sa.Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self._text = str(compiled)
        self._order: list[str] | None = compiled.positiontup  # None where values are named

    def __call__(self, db: sa.Connection, *rows: Mapping[str, Any]) -> Any:
        """Run it in a transaction that has begun, for each row once; returns the cursor."""
        cursor = db.connection.cursor()
        if len(rows) == 1:
            cursor.execute(self._text, self._sent(rows[0]))
        elif rows:
            cursor.executemany(self._text, [self._sent(row) for row in rows])
        else:
            cursor.execute(self._text)
        return cursor

    def _sent(self, row: Mapping[str, Any]) -> Any:
        return row if self._order is None else [row[name] for name in self._order]


class Writer:
    """A connection that stays open from one writing transaction to the next, one at a time.

    To take one from the engine each time costs as much as the statements of a small transaction.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine.execution_options(evenhand_write=True)
        self._kept: sa.Connection | None = None
        self._lock = Lock()

    @contextmanager
    def transaction(self, first: Prepared) -> Iterator[tuple[sa.Connection, Any]]:
        """Run statements that happen whole or not at all.

        Parameters
        ----------
        first : Prepared
            The first statement. Where the kept connection turns out to be gone it is run again on
            another; nothing was written by then.

        Yields
        ------
        connection, and the only row of what ``first`` found
        """
        with self._lock:
            try:
                db, row = self._begun(first)
                yield db, row
                db.commit()
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        """Let go of the connection; a later transaction opens another."""
        with self._lock:
            self._drop()

    def _begun(self, first: Prepared) -> tuple[sa.Connection, Any]:
        dialect = self._engine.dialect
        if self._kept is not None:
            kept = self._kept.connection.dbapi_connection
            try:
                return self._kept, _first_row(self._kept, first)
            except (sa.exc.DBAPIError, _errors_of(dialect)) as error:
                orig: Any = getattr(error, "orig", None) or error
                if kept is None or not dialect.is_disconnect(orig, kept, None):
                    raise
                self._drop()
        self._kept = self._engine.connect()
        return self._kept, _first_row(self._kept, first)

    def _drop(self) -> None:
        """Let go of the connection; what was not committed is undone with it."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.invalidate()  # it may be gone already, and could not be rolled back
            kept.close()


def _first_row(db: sa.Connection, first: Prepared) -> Any:
    db.begin()
    return first(db).fetchone()


def _errors_of(dialect: sa.Dialect) -> type[Exception]:
    found: type[Exception] = dialect.loaded_dbapi.Error
    return found


def cause(error: Exception) -> str:
    """Return the first line of what the database itself said."""
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


def shown(url: sa.URL) -> str:
    """Return a URL as others may see it: of its query only what is known to be no secret."""
    query = {name: value if name in _NO_SECRETS else "***" for name, value in url.query.items()}
    text = url.set(query=query).render_as_string(hide_password=True)
    return text.replace(quote("***"), "***")


def _locked(place: str) -> int | None:
    """Return the handle of the lock file, made and locked; None if another process has it."""
    while True:
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
        if not lock(handle, wait=False):
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(place)):
                return handle
        os.close(handle)  # its holder took it away after we had opened it


def _url(text: str, *, what: str, in_memory: str) -> sa.URL:
    url = _parsed(text, what) if "://" in text else sa.URL.create("sqlite", database=text)
    if url.get_backend_name() == "postgres":  # as PostgreSQL's own tools write it, too
        url = url.set(drivername="postgresql")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ValueError(f"{what} must be SQLite or PostgreSQL, got {url.get_backend_name()!r}.")
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")  # SQLAlchemy 2.0 would take psycopg2
    if url.get_backend_name() == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise ValueError(f"{shown(url)!r} would forget everything at once. {in_memory}")
        url = url.set(database=str(Path(str(url.database)).absolute()))  # whatever chdir does later
    return url


def _parsed(text: str, what: str) -> sa.URL:
    """Read a URL; what cannot be read may be a part of a password, and is not repeated."""
    try:
        url = sa.make_url(text)
    except (ValueError, sa.exc.ArgumentError):
        url = None
    if url is None or "@" in (url.host or ""):
        raise ValueError(
            f"{what} cannot be read from this URL. It is written postgresql://user@host:5432/name. "
            f"In a password @, : and / are written %40, %3A and %2F; better, leave the password "
            f"out and keep it in PGPASSWORD or a pgpass file."
        )
    return url


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, below
    # EXTRA: after a power failure FULL may undo the last commit, and so forget a charge.
    for pragma in (
        f"busy_timeout = {int(WAIT_S * 1000)}",
        "synchronous = EXTRA",
        "fullfsync = ON",
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _prepare_kept_sqlite(connection: Any, _: object) -> None:
    _prepare_sqlite(connection, _)
    for pragma in (
        f"busy_timeout = {SHORT_WAIT_S * 1000}",
        "journal_mode = WAL",
        "synchronous = FULL",  # with the log beside the file: synced at every commit
        f"wal_autocheckpoint = {LOG_PAGES}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(db: sa.Connection) -> None:
    # IMMEDIATE: a lock taken only at the first write would let two readers see the same remainder.
    write = db.get_execution_options().get("evenhand_write", False)
    db.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
