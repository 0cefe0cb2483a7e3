"""References without privacy: what the same model makes of the rows themselves."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from evenhand._random import as_generator
from evenhand.datasets import PublicEncoder
from evenhand.datasets.columns import TypedTable, some
from evenhand.datasets.parquet import ParquetRows
from evenhand.generators.registry import register
from evenhand.generators.tables.marginal import MarginalSynthesizer
from evenhand.privacy import Budget
from evenhand.privacy.noise import Noise, NoPrivacy
from evenhand.typing import FloatArray

_AS_IF: Final = Budget(epsilon=1000.0, delta=1e-6)  # by which the model weighs its tables
_LARGEST: Final = 100.0  # ratio of densities; beyond it the classifier is only sure of itself


@register
@dataclass(eq=False, repr=False, kw_only=True)
class NonPrivateSynthesizer(MarginalSynthesizer):
    """Draw tables from exact counts, with no guarantee whatever.

    A reference point: the model of ``MarginalSynthesizer``, the same tables, no noise. Rows drawn
    as they are (``balance=()``) are what the field calls vanilla; rows with labels and groups
    balanced, or with the shares of ``even_rates``, are what it calls fair-only.

    Parameters
    ----------
    pairs, n_bins, random_state
        See ``MarginalSynthesizer``.

    Attributes
    ----------
    guarantee_ : Guarantee
        Starts with NOT PRIVATE, and has no bound.
    ledger_ : Ledger
        What was read; its costs are of noise that was not added, and bound nothing.

    Privacy
    -------
    None. Rows may tell about single private records.
    """

    method: ClassVar[str] = "non-private"
    words: ClassVar[str] = "exact counts, without privacy"
    not_private: ClassVar[str] = (
        "the generator was trained on the private rows themselves, without noise"
    )

    neighbors: str = field(default="add or remove one", init=False)
    noise: Noise | None = field(default_factory=NoPrivacy, init=False)

    def fit(self, frame: pd.DataFrame | ParquetRows, **given: Any) -> Self:
        """Learn from the rows; takes what ``MarginalSynthesizer.fit`` takes, and no budget.

        Raises
        ------
        ValueError
            If a budget is given: nothing would be kept within it.
        """
        if given.pop("budget", None) is not None:
            raise ValueError(
                f"{type(self).__name__} adds no noise, so no budget holds it. Leave budget= out, "
                f"or use MarginalSynthesizer."
            )
        return super().fit(frame, budget=_AS_IF, **given)


@register
@dataclass(eq=False, repr=False, kw_only=True)
class ReweightedSynthesizer(NonPrivateSynthesizer):
    """Draw tables from private rows weighted towards a public reference, with no guarantee.

    A classifier tells reference rows (p) from private ones; a private row is drawn again with a
    probability in proportion to ``p / (1 - p)``, the ratio of the densities, and the model is
    fitted to what was drawn. The reference is small and balanced, and the groups need not be known.

    Parameters
    ----------
    pairs, n_bins, random_state
        See ``MarginalSynthesizer``.

    Attributes
    ----------
    effective_ : float
        Effective number of private rows, ``(sum w)**2 / sum w**2``.

    Privacy
    -------
    None. A ratio of densities that is fitted to all private rows is a release by itself: one
    record moves the weights of all others.

    References
    ----------
    Choi et al. 2020.
    """

    method: ClassVar[str] = "reweighted"
    words: ClassVar[str] = "rows weighted towards a public reference, without privacy"
    reads_streams: ClassVar[bool] = False

    def fit(self, frame: pd.DataFrame | ParquetRows, **given: Any) -> Self:
        """Learn; ``reference=`` is needed, and is not used for missing groups.

        Raises
        ------
        ValueError
            Without a reference, or if it shares no column with the private rows.
        """
        if isinstance(frame, ParquetRows):
            return super().fit(frame, **given)  # which refuses it
        reference = given.pop("reference", None)
        if reference is None:
            raise ValueError(
                "ReweightedSynthesizer weighs private rows by a public reference: pass reference=."
            )
        table = TypedTable.of(frame, "private table")
        names = frame.columns if isinstance(frame, pd.DataFrame) else table.names
        frame, reference = table.frame, TypedTable.of(reference, "reference").frame
        away = {c.name for c in table.columns if c.is_date} | {str(given.get("unit"))}
        shared = [c for c in frame.columns if c in reference.columns and c not in away]
        if not shared:
            raise ValueError(
                f"The reference shares no column with the private table: it has "
                f"{some(reference.columns, 30)}."
            )
        weights = density_ratio(frame[shared], reference[shared], shared)
        self.effective_ = float(weights.sum() ** 2 / (weights**2).sum())
        rng = as_generator(self.random_state)
        drawn = rng.choice(len(frame), len(frame), p=weights / weights.sum())
        again = frame.iloc[drawn].reset_index(drop=True)
        return super().fit(again.set_axis(list(names), axis=1), **given)


def density_ratio(
    frame: pd.DataFrame, reference: pd.DataFrame, columns: Sequence[str]
) -> FloatArray:
    """Return ``p / (1 - p)`` for each row, from a classifier of reference (p) against these rows.

    Classes weigh alike, so that 1 means "as common in both"; at most 100.
    """
    encoder = PublicEncoder().fit(reference[list(columns)])
    ours, theirs = (encoder.transform(rows[list(columns)]) for rows in (frame, reference))
    model = LogisticRegression(max_iter=500, class_weight="balanced")
    said = np.repeat([0, 1], [len(ours), len(theirs)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of steps will do
        model.fit(np.vstack([ours, theirs]), said)
    odds: FloatArray = np.minimum(np.exp(model.decision_function(ours)), _LARGEST)
    return odds
