"""The array types and the two constants that every part of the package shares."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]

REJECTED: Final = -1
"""What stands in place of a label that was not given; the reason stands beside it."""

RandomState: TypeAlias = "int | np.random.Generator | np.random.RandomState | None"

__all__ = ["REJECTED", "Array", "ArrayLike", "BoolArray", "FloatArray", "IntArray", "RandomState"]
