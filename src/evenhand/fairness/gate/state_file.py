"""A JSON file that is replaced in one step, and only by whoever knows what stands in it."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand._lock import lock


class StateFile:
    """One state on disk. A crash leaves the old state or the new one, never a part.

    Two processes that both read the file and both decided would each lose the other's counts, so a
    file that changed since it was read is not replaced.

    Parameters
    ----------
    path : path
        The file; its folder must exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._known: str | None = None  # checksum of what we read or wrote; None: no file

    def read(self) -> dict[str, Any]:
        """Return the object in the file, and remember that we know it."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(
                f"There is no saved state {self.path}. Start without one: it is made by the first "
                "save."
            ) from None
        try:
            state = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} is not a saved state: {error}") from None
        if not isinstance(state, dict):
            raise ValueError(f"{self.path} is not a saved state: it must hold a JSON object.")
        self._known = hashlib.sha256(text).hexdigest()
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Put ``state`` in the place of what was there.

        Raises
        ------
        ValueError
            If the file is not the one that was read or written last; nothing is changed then.
        """
        text = (json.dumps(state, ensure_ascii=False, allow_nan=False) + "\n").encode()
        folder = self.path.absolute().parent
        with (
            _alone_in(folder),
            tempfile.TemporaryDirectory(dir=folder, prefix=f".{self.path.name}-") as scratch,
        ):
            self._refuse_a_change()
            made = Path(scratch) / "state"
            with made.open("wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())  # else a power cut could leave the name without content
            made.chmod(0o600)  # it holds labels that were not given
            os.replace(made, self.path)
        self._known = hashlib.sha256(text).hexdigest()

    def _refuse_a_change(self) -> None:
        try:
            found = hashlib.sha256(self.path.read_bytes()).hexdigest()
        except FileNotFoundError:
            found = None
        if found == self._known:
            return
        if self._known is None:
            raise ValueError(
                f"{self.path} exists and was not read: replacing it would forget the answers it "
                "counts. Load it first, or choose another name."
            )
        raise ValueError(
            f"{self.path} was {'removed' if found is None else 'changed'} by somebody else since "
            "it was read, so the answers counted there are not counted here. Load it again and "
            "decide anew; one process at a time may use a state."
        )


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep other processes from writing a state in ``folder`` between our look and our write."""
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder {folder} does not exist. Make it first.")
    if sys.platform == "win32":
        yield  # which opens no folder: two processes may still meet within the few microseconds
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        lock(handle, wait=True)
        yield
    finally:
        os.close(handle)  # also gives the lock back
