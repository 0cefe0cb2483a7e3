"""Who called ``fit``: a pipeline that has read private rows before, or a search that fits often."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

REPEATS: Final = (
    "sklearn.model_selection",
    "sklearn.ensemble",
    "sklearn.calibration",
    "sklearn.multiclass",
    "sklearn.multioutput",
    "sklearn.semi_supervised",
    "sklearn.feature_selection",
)
"""Parts of scikit-learn that fit clones of what they are given on rows that overlap."""


class EachFitIsARelease(UserWarning):
    """A search or an ensemble fits many times, and the claim of each fit is about it alone."""


def check_callers(name: str, *, features_are_private: bool) -> None:
    """Look at the calls that led here, and stop or warn where the claim of a fit would mislead.

    A classifier sees the rows that it is given. What was done to them before, and how often it is
    fitted beside, stands in the calls above it alone.

    Parameters
    ----------
    name : str
        The classifier.
    features_are_private : bool
        Whether the claim is about the features of ``X``.

    Raises
    ------
    ValueError
        If a pipeline fitted a transformer on the private rows: one record then moves all of them.
    """
    repeated, charged = "", False
    for frame in _calls():
        module, caller = str(frame.f_globals.get("__name__", "")), frame.f_locals.get("self")
        if isinstance(caller, Pipeline) and features_are_private:
            _refuse_fitted_steps(caller, name)
        elif module.startswith("evenhand.") and frame.f_code.co_name == "fit":
            charged = charged or frame.f_locals.get("ledger") is not None
        elif not repeated and module.startswith(REPEATS):
            repeated = module
    if repeated and not charged:
        warnings.warn(
            f"{repeated.rpartition('._')[0] or repeated} fits {name} more than once on rows that "
            f"overlap. Each fit is a release of its own: the claim of one says nothing about the "
            f"others, about the choice between them, or about what is learnt from what they say of "
            f"these rows. Search on public rows, or charge every fit to one account with ledger= "
            f"(docs/estimators.md).",
            EachFitIsARelease,
            stacklevel=4,
        )


def _calls() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _refuse_fitted_steps(pipeline: Pipeline, name: str) -> None:
    for step, transformer in pipeline.steps[:-1]:
        if not _learns(transformer):
            continue
        kind = type(transformer).__name__
        raise ValueError(
            f"The step {step!r} ({kind}) in front of {name} was fitted on the private rows, so one "
            f"record moves all of them, and the claim would not hold for this pipeline. Fit it on "
            f"public rows and freeze it: FrozenEstimator({kind}(...).fit(X_public)); or leave it "
            f"out: {name} scales and encodes by public rows itself."
        )


def _learns(transformer: Any) -> bool:
    """Whether ``fit`` of a step takes something from its rows."""
    if transformer is None or isinstance(transformer, str | FrozenEstimator):
        return False
    return bool(get_tags(transformer).requires_fit)
