"""Where on this machine the files of a data set can lie, and how they come there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

import pooch

FOLDER_VARIABLE: Final = "EVENHAND_DATA"


def cache_folder() -> Path:
    """Return the folder of this user's cache."""
    return Path(pooch.os_cache("evenhand"))


def named_folder(name: str) -> Path | None:
    """Return the folder of a data set below EVENHAND_DATA, or None if that is not set."""
    root = os.environ.get(FOLDER_VARIABLE)
    return Path(root) / name if root else None


def local_folders(name: str, installed: str) -> tuple[Path, ...]:
    """Return all places on this machine where a data set can lie, in the order they are asked.

    ``installed`` is the folder of a package of the operating system, or empty.
    """
    named = named_folder(name)
    return (
        *(() if named is None else (named,)),
        *((Path(installed),) if installed else ()),
        cache_folder() / name,
    )


def present(folder: Path, file_name: str) -> Path | None:
    """Return the path of the file in ``folder``, plain or compressed, or None."""
    for path in (folder / file_name, folder / f"{file_name}.gz"):
        if path.is_file():
            return path
    return None


def write_whole(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a whole file or none: readers at the same time see the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
