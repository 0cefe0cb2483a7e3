"""Files of arrays, .npz: pictures with a label, groups and a unit each; nothing in them is run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from zipfile import BadZipFile

import numpy as np

from evenhand._checks import did_you_mean
from evenhand._words import ARRAYS
from evenhand.typing import Array

IMAGES: Final = "images"
"""The array that holds the pictures."""


def read_arrays(path: str | Path, names: Sequence[str]) -> dict[str, Array]:
    """Return arrays of a file, one entry per picture each.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it holds something else than numbers and text, an array is not
        there, or they have different lengths.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    no_array = ValueError(
        f"{path} is not a file of arrays of numbers or text ({ARRAYS}). Write it with "
        f"numpy.savez; objects are not read, for they could run code."
    )
    try:
        held = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError, BadZipFile):
        raise no_array from None
    if not isinstance(held, np.lib.npyio.NpzFile):
        raise no_array
    with held:
        for name in names:
            if name not in held.files:
                raise ValueError(
                    f"{path} has no array {name!r}; it has {', '.join(map(repr, held.files))}."
                    f"{did_you_mean(name, held.files)} Pictures are read from the array 'images'."
                )
        try:
            arrays: dict[str, Array] = {name: held[name] for name in names}
        except (OSError, EOFError, ValueError, BadZipFile):
            raise no_array from None
    lengths = {name: values.shape[:1] for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {n[0] if n else 'none'}" for name, n in lengths.items())
        raise ValueError(f"The arrays of {path} have different lengths: {said}.")
    return arrays
