"""What a fitted object still holds of the private rows: looked for in its pickle."""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any, Final

import numpy as np
import pandas as pd

from evenhand.teachers.partition import Partition

CANARY_NUMBER: Final = 654321.0625
"""Plant it in a numeric column of private rows; exact as float32 too."""

CANARY_TEXT: Final = "canary-5f1c"
"""Plant it in a text column of private rows."""


def leftovers(made: Any, *, n_rows: int) -> tuple[str, ...]:
    """Return what a pickle of ``made`` holds of the private rows; empty is right.

    Parameters
    ----------
    made : object
        A fitted estimator or generator.
    n_rows : int
        Number of private rows; a prime that no setting shares. Whatever has that length has a
        value for every row: labels, groups, a partition, encoded rows, their order.

    Returns
    -------
    tuple of str
        Words for each kind of thing that was found, besides the canaries.

    Examples
    --------
    >>> leftovers({"weights": np.zeros(3), "order": np.arange(607)}, n_rows=607)
    ('ndarray of shape (607,)',)
    """
    file = io.BytesIO()
    finder = _Finder(file, n_rows)
    finder.dump(made)
    found, pickled = finder.found, file.getvalue()
    forms = {
        "the canary text": CANARY_TEXT.encode(),
        "the canary number as text": str(CANARY_NUMBER).encode(),
        **{
            f"the canary number ({form})": struct.pack(form, CANARY_NUMBER)
            for form in ("<d", ">d", "<f")
        },
    }
    found += [words for words, form in forms.items() if form in pickled]
    return tuple(dict.fromkeys(found))


class _Finder(pickle.Pickler):
    """Looks at each object on its way into a pickle."""

    def __init__(self, file: io.BytesIO, n_rows: int) -> None:
        super().__init__(file)
        self.found: list[str] = []
        self._n_rows = n_rows

    def persistent_id(self, obj: Any) -> None:
        """Note what is private; nothing is left out of the pickle."""
        kind = type(obj).__name__
        if isinstance(obj, Partition):
            self.found.append("a partition and its key" if obj.key else "a partition")
        shape = getattr(obj, "shape", None)
        if isinstance(obj, np.ndarray | pd.DataFrame | pd.Series) or kind == "Tensor":
            if self._n_rows in tuple(shape or ()):
                self.found.append(f"{kind} of shape {tuple(shape or ())}")
        elif isinstance(obj, list | tuple | dict | set | bytes) and len(obj) == self._n_rows:
            self.found.append(f"{kind} of length {self._n_rows}")
