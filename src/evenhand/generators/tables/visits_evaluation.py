"""What is measured of two drawn tables: the persons as one table, and their visits beside these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand._units import ids_of
from evenhand.datasets import Schema
from evenhand.generators.tables.evaluation import TableEvaluation
from evenhand.generators.tables.fidelity import Fidelity, fidelity
from evenhand.typing import ArrayLike


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoTableEvaluation(TableEvaluation):
    """What was measured of persons with their number of visits, as of one table; and of visits."""

    visits: Fidelity
    """Of visits of persons who are drawn as they are, with label and groups, against the real test
    visits. Without columns where no visit is drawn.
    """
    n_visits: tuple[float, float]
    """Mean number of a person, real and synthetic."""
    between: Mapping[str, tuple[float, float]]
    """Share of the variance of each column of numbers that lies between persons, real and
    synthetic; see ``between_persons``.
    """

    @classmethod
    def of(
        cls,
        persons: TableEvaluation,
        real: pd.DataFrame,
        synthetic: pd.DataFrame,
        *,
        n_persons: int,
        schema: Schema,
    ) -> TwoTableEvaluation:
        """Compare visits of as many persons, whose keys are the index of both tables."""
        test, made = schema.as_measured(real), schema.as_measured(synthetic)
        numbers = [c.name for c in schema.columns if c.kind == "numeric" and c.name in made]
        return cls(
            **vars(persons),
            visits=fidelity(test[list(made.columns)], made, schema=schema)
            if len(made)
            else Fidelity(columns=(), pairs=()),
            n_visits=(len(test) / n_persons, len(made) / n_persons),
            between={
                name: (
                    between_persons(test[name], test.index),
                    between_persons(made[name], made.index),
                )
                for name in numbers
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN stays NaN."""
        return {
            **super().to_dict(),
            "visits": self.visits.to_dict(),
            "n_visits": list(self.n_visits),
            "between_persons": {name: list(shares) for name, shares in self.between.items()},
        }


def between_persons(values: ArrayLike, persons: ArrayLike) -> float:
    """Return the share of the variance of visits that lies between persons: 1 less that within.

    At most 1, which it is where all visits of a person are alike; near 0, perhaps below, where two
    of one person are as different as those of two. NaN if nobody has two visits, or all are alike.

    Examples
    --------
    >>> between_persons([1.0, 1.0, 3.0, 3.0], ["a", "a", "b", "b"])
    1.0
    """
    number = pd.Series(np.asarray(values, dtype=np.float64))
    by = number.groupby(ids_of(persons))
    n, variance = int(number.count()), float(number.var())
    left = n - int((by.count() > 0).sum())
    if not left or not variance > 0:
        return float("nan")
    within = float(((number - by.transform("mean")) ** 2).sum()) / left
    return 1.0 - within / variance
