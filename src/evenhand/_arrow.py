"""PyArrow, an extra: what reads and writes Parquet, imported when it is first used."""

from __future__ import annotations

from typing import Any, Final

from evenhand._extras import MissingExtra, OnUse, installed

_WORDS: Final = ("Parquet", "pyarrow", "parquet")

pa: Any = OnUse("pyarrow", *_WORDS)
pc: Any = OnUse("pyarrow.compute", *_WORDS)
ds: Any = OnUse("pyarrow.dataset", *_WORDS)
fs: Any = OnUse("pyarrow.fs", *_WORDS)
pq: Any = OnUse("pyarrow.parquet", *_WORDS)


def require_arrow() -> None:
    """Say how to install it where it is missing."""
    if not installed("pyarrow"):
        raise MissingExtra.of(*_WORDS)
