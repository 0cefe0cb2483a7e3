"""The combinations of label and sensitive values that a generator is conditioned on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand._checks import did_you_mean
from evenhand.typing import IntArray


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """The combinations of label and sensitive values that a generator is conditioned on.

    Parameters
    ----------
    names : tuple of str
        The label's column first, then the sensitive ones.
    categories : tuple of tuple of str
        Of each.

    Examples
    --------
    >>> cells = Conditions(names=("y", "s"), categories=(("no", "yes"), ("a", "b", "c")))
    >>> cells.n, cells.words(4)
    (6, 'y=yes, s=b')
    """

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each column."""
        return tuple(map(len, self.categories))

    @property
    def n(self) -> int:
        """Number of combinations."""
        return int(np.prod(self.sizes))

    @property
    def n_groups(self) -> int:
        """Number of groups: combinations of the sensitive values alone."""
        return self.n // self.sizes[0]

    def code(self, codes: Sequence[IntArray]) -> IntArray:
        """Return the combination of each row from the codes of its columns."""
        joined: IntArray = np.ravel_multi_index(tuple(codes), self.sizes).astype(np.int64)
        return joined

    def parts(self, combined: IntArray) -> tuple[IntArray, ...]:
        """Return the code of every column from the combination."""
        return tuple(part.astype(np.int64) for part in np.unravel_index(combined, self.sizes))

    def labels(self) -> IntArray:
        """Label code of each combination."""
        return self.parts(np.arange(self.n))[0]

    def groups(self) -> IntArray:
        """Group code of each combination."""
        return np.arange(self.n) % self.n_groups

    def words(self, combined: int) -> str:
        """Name a combination."""
        at = self.parts(np.array([combined]))
        named = zip(self.names, self.categories, at, strict=True)
        return ", ".join(f"{name}={values[int(i[0])]}" for name, values, i in named)

    def position(self, column: str, value: str) -> int:
        """Return the code of a value, or say that it was never seen."""
        categories = self.categories[self.names.index(column)]
        if value not in categories:
            raise ValueError(
                f"The condition {column}={value!r} is not a category of that column: "
                f"{', '.join(map(repr, categories))}.{did_you_mean(value, categories)}"
            )
        return categories.index(value)
