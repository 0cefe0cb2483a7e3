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

from evenhand._lock import lock
from evenhand.frontier.votes_cache import KEY_BYTES, VotesCache

PREFIX: Final = "evenhand-votes-"


@contextmanager
def scratch_votes() -> Iterator[VotesCache]:
    """Give a place for votes that is gone at the end, whatever the end is."""
    remove_stale()
    folder, held = _made()
    try:
        yield VotesCache(folder=folder, secret=secrets.token_bytes(KEY_BYTES))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def remove_stale() -> int:
    """Remove the folders of processes that are gone; return how many there were."""
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # somebody else's, or already gone
            # The lock of a process ends with it, also when it is killed; a number may come back.
            held = _locked(folder)
            if held is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)
                removed += 1
    return removed


def _made() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))  # mode 0700
        if sys.platform == "win32":
            return folder, os.open(os.devnull, os.O_RDONLY)
        with suppress(FileNotFoundError):
            held = _locked(folder)
            if held is not None and folder.exists():
                return folder, held
            # Another process took it for a dead one's in the moment before it was locked.
            if held is not None:
                os.close(held)


def _locked(folder: Path) -> int | None:
    """Take the lock of our own folder, or return None if its process lives."""
    if sys.platform == "win32":  # no such lock: a killed run's folder stays, and stays unreadable
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    if os.fstat(handle).st_uid == os.getuid() and lock(handle, wait=False):
        return handle
    os.close(handle)
    return None
