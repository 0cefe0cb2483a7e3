"""Objects of the user's own in skops' format: every type that could run code is named first."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_STORED, ZipFile

from evenhand._folder import Folder, TypesNotTrusted
from evenhand._stored import STORED
from evenhand.learners.mixture import Mixture

CAREFUL: Final = (
    "scipy.sparse.",
    "sklearn.cluster.",
    "sklearn.neighbors.",
    "sklearn.semi_supervised.",
    "sklearn.svm.",
)
"""Types that skops trusts and we do not: their compiled code follows indices and sizes of the file
without a check, so that forged numbers read, or write, memory that is not theirs."""

_SPARSE: Final = "SparseMatrixNode"  # whatever class it names, it makes a sparse matrix


def dump_skops(value: Any, file: Path) -> None:
    """Write any scikit-learn object."""
    import skops.io  # where torch is installed it imports torch: seconds, so only when needed

    file.write_bytes(skops.io.dumps(value))


def load_skops(folder: Folder, name: Any, trusted: Iterable[str]) -> Any:
    """Read it back, if all of its types are known to be harmless or are trusted by name.

    Raises
    ------
    TypesNotTrusted
        Naming every other type; then nothing was imported, made or called.
    """
    way_out = (
        "If you trust whoever made this folder, name them: evenhand.load(path, trusted={strange}), "
        "or --trust TYPE for each."
    )
    return read_skops(folder.content(name), folder.path / name, trusted, way_out)


def read_skops(content: bytes, where: Path, trusted: Iterable[str], way_out: str) -> Any:
    """Make the object in a file, if all of its types are harmless or trusted by name.

    ``way_out`` ends the message; ``{strange}`` in it stands for the list of the types.

    Raises
    ------
    TypesNotTrusted
        Naming every other type; then nothing was imported, made or called.
    """
    allowed = _own_types() | {str(one) for one in trusted}
    strange = sorted(not_trusted(content) - allowed)
    if strange:
        raise TypesNotTrusted(
            f"{where} holds objects of types that can run code or reach memory that "
            f"is not theirs: {', '.join(strange)}. Nothing was loaded. "
            f"{way_out.format(strange=strange)}"
        )
    import skops.io

    return skops.io.loads(content, trusted=sorted(allowed))


def not_trusted(content: bytes) -> set[str]:
    """Return the names of all types in a skops file that are not harmless by themselves.

    They are those that skops does not trust by default (it trusts numbers, containers, arrays,
    ufuncs, and scikit-learn's estimators), and those in ``CAREFUL``.

    Raises
    ------
    ValueError
        If the file is packed: it could grow beyond all bounds, and ``save`` does not pack.
    """
    import skops.io

    with ZipFile(io.BytesIO(content)) as packed:
        for entry in packed.infolist():
            if entry.compress_type != ZIP_STORED or entry.file_size > len(content):
                raise ValueError(f"{entry.filename!r} in it is packed, which save() does not do.")
        schema = json.loads(packed.read("schema.json"))
    ours = {
        name for loader, name in _nodes(schema) if loader == _SPARSE or name.startswith(CAREFUL)
    }
    return ours | set(skops.io.get_untrusted_types(data=content))


def _nodes(schema: Any) -> Iterator[tuple[Any, str]]:
    """Yield the loader and the type of everything that a schema describes, however deep."""
    left = [schema]
    while left:
        at = left.pop()
        if isinstance(at, dict):
            if "__loader__" in at:
                yield at["__loader__"], f"{at.get('__module__')}.{at.get('__class__')}"
            left.extend(at.values())
        elif isinstance(at, list):
            left.extend(at)


def _own_types() -> frozenset[str]:
    """Return the types of this package that may hold one of the user's own."""
    return frozenset(
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in (*STORED.values(), Mixture)
        if kind.__module__.startswith("evenhand.")
    )
