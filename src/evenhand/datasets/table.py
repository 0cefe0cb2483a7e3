"""A table of records: features and, where they are known, labels, groups and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand._checks import same_length
from evenhand.typing import ArrayLike


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Records in rows; each part has one row per record, under the same index.

    Parameters
    ----------
    X : DataFrame (n, n_columns)
        The features.
    y : Series (n,), optional
        The labels. None where they are not known, as in the public part of a split.
    groups : Series (n,) or DataFrame (n, n_sensitive), optional
        The sensitive attributes, in the form that ``sensitive_features=`` takes.
    units : Series (n,), optional
        Whose record this is, where one person (or household, or firm) holds several records.
    """

    X: pd.DataFrame
    y: pd.Series[Any] | None = None
    groups: pd.Series[Any] | pd.DataFrame | None = None
    units: pd.Series[Any] | None = None

    def __post_init__(self) -> None:
        known = {name: part for name, part in self._parts().items() if part is not None}
        same_length(**known)
        for name, part in known.items():
            if not part.index.equals(self.X.index):
                raise ValueError(
                    f"{name} must have the same index as X, in the same order. If row i of both "
                    f"is the same record, set it: {name}.index = X.index."
                )

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: ArrayLike) -> Table:
        """Return the records at these positions, in this order."""
        positions = np.asarray(rows, dtype=np.int64)

        def chosen(part: Any) -> Any:
            return None if part is None else part.take(positions)

        return Table(
            X=self.X.take(positions),
            y=chosen(self.y),
            groups=chosen(self.groups),
            units=chosen(self.units),
        )

    def without_labels(self) -> Table:
        """Return the same records with ``y=None``."""
        return Table(X=self.X, groups=self.groups, units=self.units)

    def _parts(self) -> dict[str, Any]:
        return {"X": self.X, "y": self.y, "groups": self.groups, "units": self.units}
