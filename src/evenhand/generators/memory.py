"""Memory that a run will need, compared with what there is before it begins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_MEMINFO: Final = Path("/proc/meminfo")
_SHARE: Final = 0.8  # the rest is for everything that an estimate forgets


def available_bytes() -> int | None:
    """Return the memory that can be had without swapping, or None where nobody says."""
    try:
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def require_memory(what: str, needed: float, lower: str) -> None:
    """Stop before a run that would run out of memory.

    Parameters
    ----------
    what : str
        What needs it, with its sizes, e.g. "1000 critics of 4,900 parameters".
    needed : float
        Bytes, an upper estimate.
    lower : str
        What the user can lower, e.g. "n_teachers or hidden".

    Raises
    ------
    MemoryError
        If it is more than four fifths of what is available.
    """
    there = available_bytes()
    if there is not None and needed > _SHARE * there:
        raise MemoryError(
            f"{what} need about {needed / 2**30:,.1f} GiB, and {there / 2**30:,.1f} GiB are free. "
            f"Lower {lower}. Nothing was spent."
        )
