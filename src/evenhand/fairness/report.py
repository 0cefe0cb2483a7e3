"""All group metrics of one set of predictions, as one value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand import _checks, _values
from evenhand._frames import refuse_other_order
from evenhand._units import ids_of
from evenhand._words import REFERENCES
from evenhand.fairness import metrics
from evenhand.fairness.grouping import refuse_many_values
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notions import known_notions
from evenhand.fairness.score_parity import generalized_demographic_parity
from evenhand.fairness.tally import JointTally, Tally, answers
from evenhand.fairness.trace import Coverage, coverage_table
from evenhand.fairness.yardstick import Yardstick
from evenhand.typing import REJECTED, ArrayLike, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class FairnessReport:
    """Every gap with its definition and interval, and a row per group.

    Parameters
    ----------
    estimates : tuple of Estimate
        Metrics over all groups, found by name with ``report["equalized_odds_rest"]``; the report
        is a series of these names.
    groups, classes : tuple of str
        Names, in the order of every table here.
    tally : Tally
        The answers by group and class, by unit too where units were given.
    selection : tuple of Estimate
        Selection rate per group of the ``positive`` class; empty without one.
    errors : tuple of Estimate
        Error rate per group; empty without true labels.
    coverage : Coverage
        Answered per group and class: the true class, or one column "all" without true labels.
    positive : int or None
        Class for which being selected is the good outcome.
    yardstick : Yardstick or None
        The error of the majority class on the same answered rows, and of the same model without a
        margin where its predictions were given; None without true labels.
    """

    estimates: tuple[Estimate, ...]
    groups: tuple[str, ...]
    classes: tuple[str, ...]
    tally: Tally
    selection: tuple[Estimate, ...]
    errors: tuple[Estimate, ...]
    coverage: Coverage
    positive: int | None
    yardstick: Yardstick | None = None

    def __post_init__(self) -> None:
        shape = (len(self.groups), len(self.classes))
        if self.tally.counts.shape != shape:
            raise ValueError(f"tally must have shape {shape}, got {self.tally.counts.shape}.")

    @property
    def rates(self) -> FloatArray:
        """``P(Yhat = k' | Z = z)`` among the answered; NaN for a group without answers.

        Shape (n_groups, n_classes).
        """
        return self.tally.rates

    def __iter__(self) -> Iterator[str]:
        return (estimate.name for estimate in self.estimates)

    def __getitem__(self, name: str) -> Estimate:
        for estimate in self.estimates:
            if estimate.name == name:
                return estimate
        known = list(self)
        raise KeyError(
            f"No metric {name!r} here. There are: {', '.join(known)}."
            f"{_checks.did_you_mean(name, known)}"
        )

    def __str__(self) -> str:
        lines = [str(estimate) for estimate in self.estimates]
        lines.append(f"coverage: {_said(self.coverage.overall)}")
        for z, group in enumerate(self.groups):
            offered = int(self.coverage.offered[z].sum())
            given = int(self.coverage.given[z].sum())
            rates = ", ".join(
                f"{name} {_said(float(rate))}"
                for name, rate in zip(self.classes, self.rates[z], strict=True)
            )
            error = f"; error {_said(self.errors[z].value)}" if self.errors else ""
            lines.append(f"{group}: {given} of {offered} answered; {rates}{error}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """Return JSON's types; NaN becomes None."""
        return {
            "metrics": {estimate.name: estimate.to_dict() for estimate in self.estimates},
            "classes": list(self.classes),
            "positive": self.positive,
            "groups": [
                {
                    "name": group,
                    "n": int(self.coverage.offered[z].sum()),
                    "n_answered": int(self.coverage.given[z].sum()),
                    "rates": [_json(float(rate)) for rate in self.rates[z]],
                    "selection_rate": self.selection[z].to_dict() if self.selection else None,
                    "error_rate": self.errors[z].to_dict() if self.errors else None,
                }
                for z, group in enumerate(self.groups)
            ],
            "coverage": self.coverage.to_dict(),
            "yardstick": (
                None
                if (found := self.yardstick) is None
                else found.to_dict() | {"majority": self.classes[found.majority]}
            ),
        }


def fairness_report(
    y_true: ArrayLike | None,
    y_pred: ArrayLike,
    groups: object,
    *,
    classes: Sequence[object] | None = None,
    positive: int | None = None,
    level: float = metrics.LEVEL,
    group_names: tuple[str, ...] | None = None,
    probabilities: ArrayLike | None = None,
    without_margin: ArrayLike | None = None,
    without_privacy: ArrayLike | None = None,
    units: ArrayLike | None = None,
) -> FairnessReport:
    """Assess predictions per group.

    Parameters
    ----------
    y_true : array-like of int, shape (n,), or None
        True classes as codes in [0, n_classes). Without them only demographic parity is reported.
    y_pred : array-like of int, shape (n,)
        Predicted classes, or REJECTED (-1) where there is no answer. Metrics are over the answers.
    groups : GroupCodes, array, Series or DataFrame of n rows
        Anything that ``encode_groups`` takes.
    classes : sequence, optional
        Names of the classes, in code order; by default the codes that occur, at least two.
    positive : int, optional
        Code of the class for which per-group selection rates and false positives are reported.
    level : float
        Level of each interval *by itself*; all of them together cover with less.
    group_names : tuple of str, optional
        Groups known beforehand, see ``encode_groups``; one without records is reported as empty.
    probabilities : array-like of float, shape (n, n_classes), optional
        Probabilities of the classes. With them ``generalized_demographic_parity`` is reported.
    without_margin : array-like of int, shape (n,), optional
        What the same model predicts without its margin; its error stands in ``yardstick``.
    without_privacy : array-like of int, shape (n,), optional
        What a model that was trained without privacy predicts, where that may be known; its error
        stands there as well.
    units : array-like of ids, shape (n,), optional
        Whose record a row is. Intervals then take units as independent, and not records, of which
        one may have many; by an estimated design effect (``evenhand.fairness.clusters``), which is
        no exact step.

    Returns
    -------
    FairnessReport

    Examples
    --------
    >>> report = fairness_report([0, 1, 1, 0, 1, 0], [0, 1, 1, 1, 0, 0], list("aaabbb"))
    >>> print(report["error_rate"])
    error_rate: 0.3333, 95% interval [0.0433, 0.7772], n = 6
    >>> report["demographic_parity_rest"].definition
    "max over z, k' of |P(Yhat=k' | Z=z) - P(Yhat=k' | Z!=z)|; in [0, 1], best 0"
    """
    refuse_other_order(
        y_pred=y_pred, y_true=y_true, groups=groups, probabilities=probabilities, units=units
    )
    if group_names is None and not isinstance(groups, GroupCodes):
        refuse_many_values(groups)
    codes = encode_groups(groups, names=group_names or getattr(groups, "names", None))
    n_classes = len(classes) if classes is not None else _n_classes(y_true, y_pred)
    names = tuple(map(str, classes)) if classes is not None else tuple(map(str, range(n_classes)))
    if n_classes < 2:
        raise ValueError(f"classes must name at least two classes, got {names!r}.")
    predicted = answers("y_pred", y_pred, n_classes)
    whose = None if units is None else unit_codes(units, y_pred=predicted)
    size = (codes.n_groups, n_classes)
    tally = Tally.of(codes.codes, predicted, *size, units=whose)
    estimates = _gaps(tally, positive, level, needs_labels=False)
    if probabilities is not None:
        estimates += _score_gaps(probabilities, codes, n_classes, level, whose)
    errors: tuple[Estimate, ...] = ()
    truth = np.zeros(len(predicted), dtype=np.int64)
    given = predicted != REJECTED
    yardstick = None
    if y_true is not None:
        joint = JointTally.of(codes.codes, y_true, predicted, *size, units=whose)
        truth = _checks.codes("y_true", y_true, n_classes)
        estimates += _gaps(joint, positive, level, needs_labels=True)
        estimates.append(metrics.error_rate(joint, level=level))
        errors = metrics.group_error_rates(joint, level=level)
        if given.any():
            others = {"without_margin": without_margin, "without_privacy": without_privacy}
            beside: dict[str, Any] = {
                name: None if said is None else answers(name, said, n_classes)[given]
                for name, said in others.items()
            }
            beside["units"] = None if whose is None else whose[given]
            yardstick = Yardstick.of_truth(
                truth[given], predicted[given], n_classes, level=level, **beside
            )
    return FairnessReport(
        estimates=tuple(estimates),
        groups=codes.names,
        classes=names,
        tally=tally,
        selection=(
            () if positive is None else metrics.selection_rates(tally, positive, level=level)
        ),
        errors=errors,
        coverage=coverage_table(
            codes.codes,
            truth,
            given,
            names=codes.names,
            n_classes=n_classes if y_true is not None else 1,
        ),
        positive=positive,
        yardstick=yardstick,
    )


def _score_gaps(
    probabilities: ArrayLike,
    groups: GroupCodes,
    n_classes: int,
    level: float,
    units: IntArray | None,
) -> list[Estimate]:
    """Return gaps of the probabilities of each class."""
    if (columns := np.shape(probabilities)[1:]) != (n_classes,):
        raise ValueError(
            f"probabilities must have a column for each of the {n_classes} classes, got "
            f"{columns[0] if columns else 'one dimension'}. Pass what predict_proba returns."
        )
    about: dict[str, Any] = {"n_groups": groups.n_groups, "level": level, "units": units}
    return [
        generalized_demographic_parity(probabilities, groups.codes, reference=reference, **about)
        for reference in REFERENCES
    ]


def unit_codes(units: ArrayLike, **of: Sized) -> IntArray | None:
    """Return a code of its unit for each row (n,), as many as ``of``; None where none has two."""
    ids = ids_of(units)
    _checks.same_length(**of, units=ids)
    names, codes = np.unique(ids, return_inverse=True)
    return codes.astype(np.int64) if len(names) < len(codes) else None


def _gaps(
    counted: Tally | JointTally, positive: int | None, level: float, *, needs_labels: bool
) -> list[Estimate]:
    """Return the gaps of all notions that read true classes, or of all that read none."""
    return [
        metrics.gap_of(
            kind.of(margin=0.0, reference=reference, positive=positive), counted, level=level
        )
        for reference in REFERENCES
        for kind in known_notions().values()
        if kind.needs_labels == needs_labels
    ]


def _n_classes(y_true: ArrayLike | None, y_pred: ArrayLike) -> int:
    """Count classes up to the largest code; fails later, with a message, if these are no codes."""
    largest = 1
    for labels in (y_true, y_pred):
        array = np.asarray(labels if labels is not None else [0])
        if array.size and np.issubdtype(array.dtype, np.integer):
            largest = max(largest, int(array.max()))
    if largest >= _checks.MOST_CLASSES:  # such as years; tables of thousands of classes
        raise ValueError(
            f"y_true and y_pred hold codes up to {_values.quoted(largest)}, and a code is the "
            f"place of a class among all that there are, sorted: np.searchsorted(names, labels). "
            f"For more than {_checks.MOST_CLASSES} classes name them with classes=."
        )
    return largest + 1


def _said(value: float) -> str:
    return "no records" if math.isnan(value) else f"{value:.4f}"


def _json(value: float) -> float | None:
    return None if math.isnan(value) else value
