"""A private folder for one process: what a killed one leaves can be read by nobody and is removed.

No process can clean up after ``kill -9``. So what is written here is encrypted with a key that is
in memory alone (``VotesCache.secret``), and each start removes the folders of the dead.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from evenhand.frontier.votes_cache import KEY_BYTES, VotesCache

if sys.platform != "win32":
    import fcntl

PREFIX: Final = "evenhand-votes-"


@contextmanager
def scratch_votes() -> Iterator[VotesCache]:
    """Give a place for votes that is gone at the end, whatever the end is."""
    remove_stale()
    folder, lock = _made()
    try:
        yield VotesCache(folder=folder, secret=secrets.token_bytes(KEY_BYTES))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_stale() -> int:
    """Remove the folders of processes that are gone; return how many there were."""
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # somebody else's, or already gone
            # The lock of a process ends with it, also when it is killed; a number may come back.
            lock = _locked(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
                removed += 1
    return removed


def _made() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))  # mode 0700
        if sys.platform == "win32":
            return folder, os.open(os.devnull, os.O_RDONLY)
        with suppress(FileNotFoundError):
            lock = _locked(folder)
            if lock is not None and folder.exists():
                return folder, lock
            # Another process took it for a dead one's in the moment before it was locked.
            if lock is not None:
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """Take the lock of our own folder, or return None if its process lives."""
    if sys.platform == "win32":  # no such lock: a killed run's folder stays, and stays unreadable
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid == os.getuid():
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
    except BlockingIOError:
        pass
    os.close(handle)
    return None
