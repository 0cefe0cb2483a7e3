"""How far apart groups are treated: one function per definition, any number of groups and classes.

Write z for a group, k for a true class, k' for a predicted one. Each gap is a maximum over groups
and classes in [0, 1], 0 is best; ``reference`` says what a group is compared with:

============  ====================================================  =================
reference     compared with                                         key ends in
============  ====================================================  =================
"rest"        all other groups pooled, ``Z != z``                   ``_rest``
"pairwise"    every other group, so the largest minus the smallest  ``_pairwise``
"overall"     everybody                                             ``_overall``
============  ====================================================  =================

Predictions that are REJECTED (-1) are no answers and do not count. Cells without records are left
out of a value and widen its interval (``intervals``); a value with no cell at all is NaN, never 0.
"""

from __future__ import annotations

import numpy as np

from evenhand import _checks
from evenhand.fairness.intervals import Estimate, estimate_gap, estimate_rate
from evenhand.fairness.notions import (
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FalsePositiveParity,
    Notion,
)
from evenhand.fairness.tally import JointTally, Tally
from evenhand.typing import IntArray

LEVEL = 0.95


def demographic_parity(tally: Tally, *, reference: str = "rest", level: float = LEVEL) -> Estimate:
    """Largest difference in how often a class is predicted.

    ``max over z, k' of |P(Yhat = k' | Z = z) - P(Yhat = k' | reference)|``, in [0, 1], best 0.
    With ``"pairwise"`` and two classes it is fairlearn's ``demographic_parity_difference``; with
    ``"rest"`` it is what FairPATE's Definition 1 bounds.

    Examples
    --------
    >>> tally = Tally(counts=[[60, 40], [80, 20]])
    >>> print(demographic_parity(tally, reference="pairwise"))
    demographic_parity_pairwise: 0.2000, 95% interval [0.0286, 0.3638], n = 200
    """
    columns = _needed(tally.n_classes)
    successes = tally.counts[:, columns]
    return _gap(
        "demographic_parity",
        "max over z, k' of |P(Yhat=k' | Z=z) - {}|",
        "P(Yhat=k' | {})",
        successes,
        np.broadcast_to(tally.totals[:, None], successes.shape),
        reference,
        level,
        int(tally.totals.sum()),
    )


def equalized_odds(joint: JointTally, *, reference: str = "rest", level: float = LEVEL) -> Estimate:
    """Largest difference in how often a class is predicted to records of one true class.

    ``max over z, k, k' of |P(Yhat = k' | Y = k, Z = z) - P(Yhat = k' | Y = k, reference)|``, in
    [0, 1], best 0. With ``"pairwise"`` and two classes it is fairlearn's
    ``equalized_odds_difference``.
    """
    columns = _needed(joint.n_classes)
    successes = joint.counts[:, :, columns]
    trials = np.broadcast_to(joint.counts.sum(axis=2, keepdims=True), successes.shape)
    return _gap(
        "equalized_odds",
        "max over z, k, k' of |P(Yhat=k' | Y=k, Z=z) - {}|",
        "P(Yhat=k' | Y=k, {})",
        successes.reshape(joint.n_groups, -1),
        trials.reshape(joint.n_groups, -1),
        reference,
        level,
        int(joint.totals.sum()),
    )


def error_parity(joint: JointTally, *, reference: str = "rest", level: float = LEVEL) -> Estimate:
    """Largest difference in how often a prediction is wrong.

    ``max over z of |P(Yhat != Y | Z = z) - P(Yhat != Y | reference)|``, in [0, 1], best 0. Also
    called accuracy parity, or error disparity.
    """
    return _gap(
        "error_parity",
        "max over z of |P(Yhat!=Y | Z=z) - {}|",
        "P(Yhat!=Y | {})",
        joint.errors[:, None],
        joint.totals[:, None],
        reference,
        level,
        int(joint.totals.sum()),
    )


def false_positive_parity(
    joint: JointTally,
    *,
    positive: int | None = None,
    reference: str = "rest",
    level: float = LEVEL,
) -> Estimate:
    """Largest difference in how often a class is predicted to records that are not of it.

    ``max over z, k of |P(Yhat = k | Y != k, Z = z) - P(Yhat = k | Y != k, reference)|``, in
    [0, 1], best 0. With ``positive`` given, k is that class alone.
    """
    classes = (
        list(range(joint.n_classes))
        if positive is None
        else [_class_code("positive", positive, joint.n_classes)]
    )
    predicted = joint.counts.sum(axis=1)
    hits = np.diagonal(joint.counts, axis1=1, axis2=2)
    not_of_class = joint.totals[:, None] - joint.counts.sum(axis=2)
    subject = "k" if positive is None else str(positive)
    over = "z, k" if positive is None else "z"
    return _gap(
        "false_positive_parity",
        f"max over {over} of |P(Yhat={subject} | Y!={subject}, Z=z) - {{}}|",
        f"P(Yhat={subject} | Y!={subject}, {{}})",
        (predicted - hits)[:, classes],
        not_of_class[:, classes],
        reference,
        level,
        int(not_of_class[:, classes[0]].sum() if positive is not None else joint.totals.sum()),
    )


def gap_of(notion: Notion, joint: JointTally, *, level: float = LEVEL) -> Estimate:
    """Return the gap that ``notion`` bounds, with its interval.

    Examples
    --------
    >>> joint = JointTally(counts=[[[90, 10], [20, 80]], [[80, 20], [50, 50]]])
    >>> print(gap_of(EqualizedOdds(margin=0.05), joint))
    equalized_odds_rest: 0.3000, 95% interval [0.1058, 0.4785], n = 400
    """
    if isinstance(notion, EqualizedOdds):
        return equalized_odds(joint, reference=notion.reference, level=level)
    if isinstance(notion, ErrorParity):
        return error_parity(joint, reference=notion.reference, level=level)
    if isinstance(notion, FalsePositiveParity):
        return false_positive_parity(
            joint, positive=notion.positive, reference=notion.reference, level=level
        )
    if isinstance(notion, DemographicParity):
        return demographic_parity(joint.predicted, reference=notion.reference, level=level)
    raise TypeError(f"notion must be one of this package's notions, got {notion!r}.")


def error_rate(joint: JointTally, *, level: float = LEVEL) -> Estimate:
    """Share of wrong predictions among the answered, ``P(Yhat != Y)``, in [0, 1], best 0."""
    return estimate_rate(
        int(joint.errors.sum()),
        int(joint.totals.sum()),
        name="error_rate",
        definition="P(Yhat!=Y) among the answered; in [0, 1], best 0",
        level=level,
    )


def selection_rates(tally: Tally, positive: int, *, level: float = LEVEL) -> tuple[Estimate, ...]:
    """How often each group is predicted ``positive``, one estimate per group.

    ``P(Yhat = positive | Z = z)``, in [0, 1]; no best value of its own. NaN for an empty group.
    Each interval covers with the level by itself, not all of them together.
    """
    k = _class_code("positive", positive, tally.n_classes)
    return tuple(
        estimate_rate(
            int(tally.counts[z, k]),
            int(tally.totals[z]),
            name="selection_rate",
            definition=f"P(Yhat={k} | Z=z); in [0, 1]",
            level=level,
        )
        for z in range(tally.n_groups)
    )


def group_error_rates(joint: JointTally, *, level: float = LEVEL) -> tuple[Estimate, ...]:
    """``P(Yhat != Y | Z = z)`` of each group, in [0, 1], best 0; NaN for an empty group."""
    return tuple(
        estimate_rate(
            int(errors),
            int(total),
            name="group_error_rate",
            definition="P(Yhat!=Y | Z=z) among the answered; in [0, 1], best 0",
            level=level,
        )
        for errors, total in zip(joint.errors, joint.totals, strict=True)
    )


_CONDITION = {"rest": "Z!=z", "pairwise": "Z=z'", "overall": ""}


def _gap(
    key: str,
    difference: str,
    other: str,
    successes: IntArray,
    trials: IntArray,
    reference: str,
    level: float,
    n: int,
) -> Estimate:
    condition = _CONDITION[_checks.one_of("reference", reference, _CONDITION)]
    compared = other.format(condition).replace(" | )", ")").replace(", )", ")")
    return estimate_gap(
        successes,
        trials,
        reference=reference,
        name=f"{key}_{reference}",
        definition=f"{difference.format(compared)}; in [0, 1], best 0",
        level=level,
        n=n,
    )


def _needed(n_classes: int) -> list[int]:
    """With two classes one rate is one minus the other: a second column would only cost level."""
    return [1] if n_classes == 2 else list(range(n_classes))


def _class_code(name: str, value: int, n_classes: int) -> int:
    code = _checks.at_least(name, value, 0)
    if code >= n_classes:
        raise ValueError(f"{name} must be a class from 0 to {n_classes - 1}, got {name}={value!r}.")
    return code
