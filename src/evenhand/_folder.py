"""A folder of plain files: written whole or not at all, and it shows when it was edited."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

MANIFEST: Final = "manifest.json"
"""Digests of all other files."""

Damaged = type[ValueError]
"""The error that says that a folder of its kind is not what was saved."""


def write_folder(path: Path, write: Callable[[Path], None]) -> Path:
    """Make the new folder ``path`` of what ``write(folder)`` puts into it.

    It is written beside its place and moved there at the end, so that no half of one is ever found.

    Raises
    ------
    FileExistsError
        If something is there already.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(
            f"{path} exists and is not empty. Choose another folder, or remove this one first."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as scratch:
        folder = Path(scratch) / "folder"
        folder.mkdir()
        write(folder)
        if path.exists():
            path.rmdir()
        os.replace(folder, path)
    return path


def write_manifest(folder: Path, names: Iterable[str]) -> None:
    """Write down what the named files hold now."""
    write_json(folder / MANIFEST, {name: _digest(folder / name) for name in names})


def verify(path: Path, damaged: Damaged) -> None:
    """Refuse a folder that is not as it was saved: a file is missing, cut short or edited."""
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is not a folder. Name the folder that save() wrote.")
    if not (path / MANIFEST).is_file():
        raise damaged(f"{path} holds no {MANIFEST}: save() did not write it, or it is damaged.")
    for name, digest in read_json(path / MANIFEST, damaged).items():
        file = path / name
        if not file.is_file():
            raise damaged(f"{path} is damaged: {name} is missing. Copy the folder again.")
        if _digest(file) != digest:
            raise damaged(
                f"{path} is damaged or edited: {name} is not as it was saved, so neither what it "
                f"does nor its claim can be trusted. Copy the folder again, or train again."
            )


def read_json(file: Path, damaged: Damaged) -> dict[str, Any]:
    """Return the object that a file holds."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged(f"{file} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise damaged(f"{file} must hold a JSON object.")
    return found


def write_json(file: Path, values: Mapping[str, Any]) -> None:
    """Write an object in a fixed order, one entry a line."""
    file.write_text(
        json.dumps(values, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8"
    )


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
