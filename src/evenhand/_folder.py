"""A folder of plain files that is exactly its manifest: written whole, read once, never run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evenhand._version import __version__
from evenhand.typing import Array

if TYPE_CHECKING:
    from evenhand._signing import PrivateKey

FORMAT: Final = 3
"""Of the folder and of what stands in it; format 1 had no list of all files, format 2 kept the
attributes of a model one by one."""

MANIFEST: Final = "manifest.json"
"""Names and digests of all other files."""

SIGNATURE: Final = "manifest.sig"
"""Signature of the manifest's bytes: the one file that the manifest cannot name."""

_WRITES: Final = {
    "model": "evenhand train --out (in Python: model.save)",
    "generator": "evenhand synthesize --save (in Python: generator.save)",
}
"""What writes a folder of each kind."""

_READS: Final = {"model": "evenhand.load", "generator": "evenhand.generators.load"}
"""What reads one in Python."""

Damaged = type[ValueError]
"""The error that says that a folder of its kind is not what was saved."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Folder:
    """The files of a folder, as they were when they were checked: none is read a second time."""

    path: Path
    """Where they stood, for messages."""
    kind: str
    """What it holds, such as "model"."""
    own_words: bool
    """Whether this version of evenhand wrote it."""
    manifest: bytes = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)
    """All that the manifest names."""
    signature: bytes | None = field(repr=False)
    damaged: Damaged
    """Raised where a file is not what it should be."""

    def content(self, name: Any) -> bytes:
        """Return the bytes of a file."""
        if not isinstance(name, str) or name not in self.files:
            raise self.damaged(f"{self.path} is damaged: it has no file {name!r}.")
        return self.files[name]

    def json(self, name: str) -> dict[str, Any]:
        """Return the object that a file holds."""
        return read_json(self.content(name), self.path / name, self.damaged)

    def arrays(self, name: Any) -> dict[str, Array]:
        """Return the arrays that a file holds; its numbers must be finite."""
        from safetensors.numpy import load

        content = self.content(name)
        try:
            arrays = {key: np.array(array) for key, array in load(content).items()}
        except Exception as error:  # its own kinds, and NumPy's for a dtype that is not there
            raise self.damaged(f"{self.path / name} cannot be read: {error}") from error
        for key, array in arrays.items():
            if array.dtype.kind in "fc" and not np.isfinite(array).all():
                raise self.damaged(
                    f"{self.path / name} is damaged: {key!r} holds numbers that are not finite."
                )
        return arrays


def require_replaceable(path: Path, kind: str | None) -> None:
    """Refuse a place that holds anything, or anything else than a folder of this kind.

    Raises
    ------
    FileExistsError
        Naming it.
    """
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if kind is None:
        raise FileExistsError(
            f"{path} exists and is not empty. Choose another folder, or remove this one first."
        )
    if kind_of(path) != kind:
        raise FileExistsError(
            f"{path} exists and holds no saved {kind}, so it is not replaced. Choose another "
            f"folder."
        )


def kind_of(path: Path) -> Any:
    """Return the kind that a folder says it is of, and None if it says none; nothing is checked."""
    try:
        return json.loads((path / MANIFEST).read_bytes())["kind"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write_folder(
    path: Path, write: Callable[[Path], None], *, instead_of: str | None = None
) -> Path:
    """Make the new folder ``path`` of what ``write(folder)`` puts into it.

    It is written beside its place and moved there at the end, so that no half of one is ever found.
    One of the kind ``instead_of`` that is there makes room; it is moved aside first, so that at
    each moment one of the two is whole.

    Raises
    ------
    FileExistsError
        If something else is there already.
    """
    require_replaceable(path, instead_of)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as scratch:
        folder = Path(scratch) / "folder"
        folder.mkdir()
        write(folder)
        require_replaceable(path, instead_of)  # somebody may have put something else there
        before = Path(scratch) / "before"
        if path.exists() and any(path.iterdir()):
            os.replace(path, before)
        elif path.exists():
            path.rmdir()
        try:
            os.replace(folder, path)
        except OSError:
            if before.exists():
                os.replace(before, path)
            raise
    return path


def seal(folder: Path, kind: str, key: PrivateKey | None = None) -> None:
    """Write down what all files of a folder hold now, and sign that if there is a key."""
    files = sorted(file.name for file in folder.iterdir() if file.name not in (MANIFEST, SIGNATURE))
    write_json(
        folder / MANIFEST,
        {
            "format": FORMAT,
            "evenhand": __version__,
            "kind": kind,
            "files": {name: _digest((folder / name).read_bytes()) for name in files},
        },
    )
    (folder / SIGNATURE).unlink(missing_ok=True)
    if key is not None:
        (folder / SIGNATURE).write_bytes(key.sign((folder / MANIFEST).read_bytes()))


def require_folder(path: Path, kinds: Sequence[str]) -> None:
    """Refuse a place that is no folder.

    Raises
    ------
    FileNotFoundError
        With what writes one of ``kinds``.
    """
    if not path.is_dir():
        raise FileNotFoundError(f"{path} is not a folder. {_wrote(kinds)}")


def _wrote(kinds: Sequence[str]) -> str:
    return f"Name a folder that {' or '.join(_WRITES[kind] for kind in kinds)} wrote."


def read_folder(path: Path, kinds: Sequence[str], damaged: Damaged) -> Folder:
    """Read a folder of one of ``kinds`` that is exactly its manifest, or refuse it.

    Raises
    ------
    FileNotFoundError
        If it is no folder.
    ValueError
        The ``damaged`` kind of it: a file is missing, edited, not named, or no plain file.
    """
    require_folder(path, kinds)
    if not (path / MANIFEST).is_file():
        raise damaged(
            f"{path} is no saved {' or '.join(kinds)}, or it is damaged: it holds no {MANIFEST}. "
            f"{_wrote(kinds)}"
        )
    manifest = _read(path / MANIFEST, damaged)
    head = read_json(manifest, path / MANIFEST, damaged)
    digests = _digests(path, kinds, head, damaged)
    there = {entry.name for entry in os.scandir(path)}
    strange = sorted(there - {*digests, MANIFEST, SIGNATURE})
    if strange:
        raise damaged(
            f"{path} holds {', '.join(map(repr, strange[:5]))}, which its manifest does not name: "
            f"this was not there when it was saved. Move it elsewhere."
        )
    files = {}
    for name, digest in digests.items():
        if name not in there:
            raise damaged(f"{path} is damaged: {name} is missing. Copy the folder again.")
        files[name] = _read(path / name, damaged)
        if _digest(files[name]) != digest:
            raise damaged(
                f"{path} is damaged or edited: {name} is not as it was saved, so neither what it "
                f"does nor its claim can be trusted. Copy the folder again, or train again."
            )
    signature = _read(path / SIGNATURE, damaged) if SIGNATURE in there else None
    return Folder(
        path=path,
        kind=head["kind"],
        own_words=head.get("evenhand") == __version__,
        manifest=manifest,
        files=files,
        signature=signature,
        damaged=damaged,
    )


def _digests(
    path: Path, kinds: Sequence[str], head: Mapping[str, Any], damaged: Damaged
) -> Mapping[str, str]:
    """Return the digest of every file, by its name."""
    if not head:
        raise damaged(f"{path} is damaged: its {MANIFEST} names no file.")
    if (found := head.get("format", 1)) != FORMAT:
        wrote = head.get("evenhand", "an early one")
        raise damaged(
            f"{path} has format {found!r}; this version of evenhand ({__version__}) reads format "
            f"{FORMAT}. Go on with the version that wrote it ({wrote!r}), or "
            f"train again and save: another release of the private data, with a cost of its own."
        )
    if (kind := head.get("kind")) not in kinds:
        other = f" {_READS[kind]} reads it." if kind in tuple(_READS) else ""
        raise damaged(f"{path} holds a {kind!r}, not a {' or a '.join(kinds)}.{other}")
    files = head.get("files")
    if not isinstance(files, dict) or not files:
        raise damaged(f"{path} is damaged: its {MANIFEST} names no file.")
    for name, digest in files.items():
        if not _NAME.fullmatch(name) or name in (MANIFEST, SIGNATURE):
            raise damaged(f"{path} is damaged: its {MANIFEST} names {name!r}, no plain file name.")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise damaged(f"{path} is damaged: its {MANIFEST} has no SHA-256 digest of {name!r}.")
    return files


def _read(file: Path, damaged: Damaged) -> bytes:
    """Return a plain file's bytes; a link, a device or a folder is none."""
    # Not blocking: a pipe of that name must not hold the reader up.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if file.is_symlink() or not file.is_file():
            raise OSError("it is not a plain file, but a link, a folder or a device")
        with os.fdopen(os.open(file, flags), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise OSError("it is not a plain file")
            return opened.read()
    except OSError as error:
        raise damaged(f"{file} cannot be read: {error.strerror or error}.") from None


class TypesNotTrusted(ValueError):
    """A file holds objects of types that nobody said to trust; nothing of it was made."""


@contextmanager
def reading(path: Path, damaged: Damaged, *passing: type[Exception]) -> Iterator[None]:
    """Turn whatever a damaged or forged file makes readers raise into one clear error.

    Digests tell only that whoever made the manifest saw these bytes, and anybody can make one:
    values of wrong types, sizes and depths reach every reader. This stands around reading alone,
    never around predictions, so that a defect elsewhere keeps its traceback; the cause stays
    attached. What is ``passing`` comes through as it is.
    """
    try:
        yield
    except (damaged, *passing):
        raise
    except KeyError as error:
        raise damaged(f"{path} is damaged: it lacks the entry {error}.") from error
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        raise damaged(f"{path} is damaged: {words or type(error).__name__}") from error


def read_json(content: bytes, file: Path, damaged: Damaged) -> dict[str, Any]:
    """Return the object that a file holds; what JSON does not say plainly is refused."""
    try:
        found = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_no_key_twice,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise damaged(f"{file} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise damaged(f"{file} must hold a JSON object.")
    return found


def write_json(file: Path, values: Mapping[str, Any]) -> None:
    """Write an object in a fixed order, one entry a line."""
    file.write_text(
        json.dumps(values, indent=2, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8"
    )


def write_arrays(file: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays as safetensors, with the mode that the umask says."""
    from safetensors.numpy import save

    file.write_bytes(save({name: np.ascontiguousarray(a) for name, a in arrays.items()}))


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object, so readers may see different values")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _finite(text: str) -> float:
    if not np.isfinite(value := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return value


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
