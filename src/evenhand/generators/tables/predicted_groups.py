"""Groups of rows that lack them, from a predictor that is trained on public rows alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from evenhand import _checks
from evenhand._numerals import text_of
from evenhand.datasets import PublicEncoder
from evenhand.datasets.columns import TypedTable
from evenhand.typing import Array

FOLDS: Final = 5
WHERE: Final = "reference table"


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupsFromReference:
    """Predict one sensitive column from the columns that private and public rows share.

    Privacy
    -------
    Everything is learnt from public rows, and a private row's group is a function of that row
    alone: one record changes its own group and no other. What the groups cost is what is released
    about them. That a predicted group is wrong is not a matter of privacy: the claim calls the
    reference public, and the generator's notes give ``accuracy``.
    """

    name: str
    """The sensitive column."""
    columns: tuple[str, ...]
    """What it is predicted from."""
    values: Array
    """The groups, as the reference names them."""
    model: Any
    """Encoder and logistic regression, fitted: from public rows to positions in ``values``."""
    accuracy: float
    """Share of right answers on the reference rows, each predicted by a model that did not see it.
    """
    baseline: float
    """Share of the most common group: what guessing would score."""
    dtype: Any
    """That of the reference's column."""

    @classmethod
    def fit(cls, reference: pd.DataFrame, name: str, columns: Sequence[str]) -> GroupsFromReference:
        """Learn from public rows; those without a group are left out.

        Raises
        ------
        ValueError
            If the column is not there, or holds fewer than two groups.
        """
        table = TypedTable.of(reference, WHERE)
        table.require([name], "from which missing groups are to be learnt")
        reference = table.frame
        shared = tuple(column for column in columns if column in reference.columns)
        if not shared:
            raise ValueError(
                f"The {WHERE} shares no column with the private table beside the sensitive ones, "
                f"so {name!r} cannot be predicted from it. Give both tables the same names."
            )
        known = reference[reference[name].notna()]
        codes, values = pd.factorize(known[name], sort=True)
        counts = np.bincount(codes, minlength=len(values))
        if len(values) < 2 or counts.min() < FOLDS:
            raise ValueError(
                f"The {WHERE} needs at least two groups of {FOLDS} rows in {name!r}, got "
                f"{ {text_of(v): int(n) for v, n in zip(values, counts, strict=True)} }."
            )
        model = make_pipeline(PublicEncoder(), LogisticRegression(max_iter=500))
        rows = known[list(shared)]
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of steps will do
            unseen = cross_val_predict(model, rows, codes, cv=folds)
            model.fit(rows, codes)
        return cls(
            name=name,
            columns=shared,
            values=np.asarray(values, dtype=object),
            model=model,
            accuracy=float((unseen == codes).mean()),
            baseline=float(counts.max() / counts.sum()),
            dtype=known[name].dtype,
        )

    def fill(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows with a group where there was none; the column is added if need be."""
        for column in self.columns:
            if column not in frame.columns:
                raise ValueError(f"Groups are predicted from {column!r}, which these rows lack.")
        dtype = frame[self.name].dtype if self.name in frame.columns else self.dtype
        said = pd.Series(self._predicted(frame), index=frame.index, name=self.name)
        if self.name not in frame.columns:
            return frame.assign(**{self.name: said.astype(dtype)})
        own: pd.Series[Any] = frame[self.name]
        if isinstance(dtype, pd.CategoricalDtype):
            own = own.cat.add_categories([v for v in self.values if v not in dtype.categories])
            dtype = own.dtype
        filled = own.astype(object).where(own.notna(), said)
        return frame.assign(**{self.name: filled.astype(dtype)})

    def _predicted(self, frame: pd.DataFrame) -> Array:
        if not len(frame):
            return np.zeros(0, dtype=object)
        said: Array = self.values[self.model.predict(frame[list(self.columns)])]
        return said

    @property
    def words(self) -> str:
        """What the user must know."""
        return (
            f"where {self.name} is missing it is predicted from public reference rows, right for "
            f"{self.accuracy:.1%} of those (the most common group: {self.baseline:.1%})"
        )


def groups_from_reference(
    frame: pd.DataFrame,
    reference: pd.DataFrame,
    *,
    sensitive: str | Sequence[str],
    away: Sequence[str] = (),
) -> tuple[pd.DataFrame, tuple[GroupsFromReference, ...]]:
    """Fill missing groups of private rows from public reference rows.

    Parameters
    ----------
    frame : DataFrame
        Private rows; groups may be missing for some or for all, or the column altogether.
    reference : DataFrame
        Public rows with the sensitive columns and at least one of the others.
    sensitive : str or sequence of str
        Columns.
    away : sequence of str
        Columns that are not read, such as an id; dates are not, either.

    Returns
    -------
    frame : DataFrame
        Without a missing group.
    predictors : tuple of GroupsFromReference
        One per sensitive column, with the accuracy of each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> public = pd.DataFrame({"height": rng.normal([160, 180], 5, (200, 2)).ravel(),
    ...                        "sex": ["F", "M"] * 200})
    >>> private = pd.DataFrame({"height": [158.0, 185.0, 170.0], "sex": [None, None, "M"]})
    >>> filled, (predictor,) = groups_from_reference(private, public, sensitive="sex")
    >>> filled["sex"].tolist(), bool(predictor.accuracy > 0.95)
    (['F', 'M', 'M'], True)
    """
    frame = TypedTable.of(frame, "private table").frame
    names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    _checks.at_least("number of sensitive columns", len(names), 1)
    dates = [column.name for column in TypedTable.of(frame).columns if column.is_date]
    others = [column for column in frame.columns if column not in (*names, *away, *dates)]
    predictors = tuple(GroupsFromReference.fit(reference, name, others) for name in names)
    for predictor in predictors:
        frame = predictor.fill(frame)
    return frame, predictors
