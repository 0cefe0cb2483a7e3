"""The lock of an open file or folder, which the system gives back however its process ends."""

from __future__ import annotations

import sys

if sys.platform != "win32":
    import fcntl


def lock(handle: int, *, wait: bool) -> bool:
    """Take it until the handle is closed; return whether it is ours.

    Windows has no such lock: there it is everybody's.
    """
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
