"""A PostgreSQL server of one's own, on a Unix socket, for tests and benchmarks."""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import sqlalchemy as sa


class PostgresServer:
    """A real server in a temporary folder, reached through a Unix socket there.

    ``stop`` and ``start`` let a test take it away and bring it back with its data.
    """

    def __init__(self, programs: Path, *, fsync: bool = False) -> None:
        self._programs, self._fsync = programs, "on" if fsync else "off"
        # The path of a Unix socket has at most 107 characters: not under pytest's long folders.
        self._folder = Path(tempfile.mkdtemp(prefix="evenhand-pg-", dir="/tmp"))
        self._log = (self._folder / "log").open("wb")
        self._as: dict[str, object] = {"stdout": self._log, "stderr": self._log}
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            user = _somebody_else()
            shutil.chown(self._folder, user=user.pw_uid, group=user.pw_gid)
            self._as |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        data = str(self._folder / "data")
        self._run("initdb", "-D", data, "-U", "evenhand", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._server = subprocess.Popen(
            [
                str(self._programs / "postgres"),
                *("-D", str(self._folder / "data"), "-k", str(self._folder)),
                *(
                    "-c",
                    "listen_addresses=",
                    "-c",
                    f"fsync={self._fsync}",
                    "-c",
                    "max_connections=60",
                ),
            ],
            cwd="/",
            **self._as,
        )
        for _ in range(600):
            assert self._server.poll() is None, (self._folder / "log").read_text()
            try:
                self.run("SELECT 1")
                return
            except sa.exc.OperationalError:
                time.sleep(0.05)
        raise AssertionError((self._folder / "log").read_text())

    def stop(self) -> None:
        """Cut every connection and stop."""
        if self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(timeout=60)

    def close(self) -> None:
        """Stop for good and leave nothing behind."""
        self.stop()
        self._log.close()
        shutil.rmtree(self._folder)

    def url(self, database: str) -> str:
        """The SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://evenhand@/{database}?host={self._folder}"

    def ask_for_a_password(self, user: str, password: str) -> None:
        """Make a user who is let in by this password alone."""
        self.run(f"CREATE ROLE {user} LOGIN SUPERUSER PASSWORD '{password}'")
        rules = self._folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all {user} scram-sha-256\n" + rules.read_text())
        self.run("SELECT pg_reload_conf()")

    def run(self, statement: str) -> None:
        """Run one statement about databases, which knows no transaction."""
        engine = sa.create_engine(self.url("postgres"), poolclass=sa.pool.NullPool)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
            db.exec_driver_sql(statement)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run([str(self._programs / program), *arguments], cwd="/", **self._as)
        assert done.returncode == 0, (self._folder / "log").read_text()


def _somebody_else() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("root has no user to run PostgreSQL as")


@functools.cache
def postgres_programs() -> Path | None:
    """The newest installed server: Debian's folders, or where ``initdb`` is found."""
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda found: int(found.parts[-3]) if found.parts[-3].isdigit() else 0,
    )
    found = str(debian[-1]) if debian else shutil.which("initdb")
    return Path(found).parent if found else None
