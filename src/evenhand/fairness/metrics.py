"""How far apart groups are treated, with intervals, for any number of groups and classes.

A gap is what a notion bounds: a maximum over groups and classes in [0, 1], 0 is best. The notion's
``reference`` says what a group is compared with:

============  ====================================================  =================
reference     compared with                                         key ends in
============  ====================================================  =================
"rest"        all other groups pooled, ``Z != z``                   ``_rest``
"pairwise"    every other group, so the largest minus the smallest  ``_pairwise``
"overall"     everybody                                             ``_overall``
============  ====================================================  =================

Predictions that are REJECTED (-1) are no answers and do not count. Cells without records are left
out of a value and widen its interval (``intervals``); a value with no cell at all is NaN, never 0.
Where a tally knows the units of its records, intervals take units as independent (``clusters``).
"""

from __future__ import annotations

import numpy as np

from evenhand import _checks
from evenhand.fairness.intervals import Estimate, estimate_gap, estimate_rate
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.tally import JointTally, Tally
from evenhand.typing import IntArray

LEVEL = 0.95


def gap_of(notion: RateNotion, counted: Tally | JointTally, *, level: float = LEVEL) -> Estimate:
    """Return the gap that ``notion`` bounds, with its interval; in [0, 1], best 0.

    Parameters
    ----------
    notion : RateNotion
        Its margin is not read; its ``reference`` is.
    counted : Tally or JointTally
        A tally of predictions serves where the notion reads no true classes.
    level : float
        Of the interval.

    Returns
    -------
    Estimate
        Named after notion and reference. The same as fairlearn's differences where both are
        defined: two classes, and ``"pairwise"`` (``"between_groups"``) or ``"overall"``.

    Examples
    --------
    >>> from evenhand.fairness import DemographicParity, EqualizedOdds
    >>> print(gap_of(DemographicParity(margin=0, reference="pairwise"),
    ...     Tally(counts=[[60, 40], [80, 20]])))
    demographic_parity_pairwise: 0.2000, 95% interval [0.0286, 0.3638], n = 200
    >>> joint = JointTally(counts=[[[90, 10], [20, 80]], [[80, 20], [50, 50]]])
    >>> print(gap_of(EqualizedOdds(margin=0.05), joint))
    equalized_odds_rest: 0.3000, 95% interval [0.1058, 0.4785], n = 400
    """
    if not isinstance(notion, RateNotion):
        raise TypeError(f"notion must be a notion of decisions, got {notion!r}.")
    if not isinstance(counted, Tally | JointTally):
        raise TypeError(
            f"counted must be a Tally or a JointTally, got {type(counted).__name__}. Of a table of "
            f"counts make one: Tally(counts=...), or JointTally(counts=...) with true classes."
        )
    rates = rates_of(notion, counted.n_classes)
    successes, trials = rates.counted(counted.counts)
    entered = counted.totals
    if isinstance(counted, JointTally):  # records of a true class that no rate is taken among
        entered = counted.counts[:, rates.among.any(axis=0)].sum(axis=(1, 2))
    return estimate_gap(
        successes,
        trials,
        reference=notion.reference,
        name=f"{notion.key}_{notion.reference}",
        definition=notion.definition,
        level=level,
        n=int(entered.sum()),
        clusters=None if counted.by_unit is None else counted.by_unit.clusters(rates.counted),
    )


def error_rate(joint: JointTally, *, level: float = LEVEL) -> Estimate:
    """Share of wrong predictions among the answered, ``P(Yhat != Y)``, in [0, 1], best 0."""
    return estimate_rate(
        int(joint.errors.sum()),
        int(joint.totals.sum()),
        name="error_rate",
        definition="P(Yhat!=Y) among the answered; in [0, 1], best 0",
        level=level,
        clusters=None if joint.by_unit is None else joint.by_unit.clusters(_errors),
    )


def selection_rates(tally: Tally, positive: int, *, level: float = LEVEL) -> tuple[Estimate, ...]:
    """How often each group is predicted ``positive``, one estimate per group.

    ``P(Yhat = positive | Z = z)``, in [0, 1]; no best value of its own. NaN for an empty group.
    Each interval covers with the level by itself, not all of them together.
    """
    k = _class_code("positive", positive, tally.n_classes)
    of = tally.by_unit

    def chosen(counts: IntArray) -> tuple[IntArray, IntArray]:
        return counts[:, k], counts.sum(axis=1)

    return tuple(
        estimate_rate(
            int(tally.counts[z, k]),
            int(tally.totals[z]),
            name="selection_rate",
            definition=f"P(Yhat={k} | Z=z); in [0, 1]",
            level=level,
            clusters=None if of is None else of.clusters(chosen, z),
        )
        for z in range(tally.n_groups)
    )


def group_error_rates(joint: JointTally, *, level: float = LEVEL) -> tuple[Estimate, ...]:
    """``P(Yhat != Y | Z = z)`` of each group, in [0, 1], best 0; NaN for an empty group."""
    of = joint.by_unit
    return tuple(
        estimate_rate(
            int(joint.errors[z]),
            int(joint.totals[z]),
            name="group_error_rate",
            definition="P(Yhat!=Y | Z=z) among the answered; in [0, 1], best 0",
            level=level,
            clusters=None if of is None else of.clusters(_errors, z),
        )
        for z in range(joint.n_groups)
    )


def _errors(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return wrong answers and answers of a table, by its first axis."""
    answers = counts.sum(axis=(1, 2))
    return answers - np.trace(counts, axis1=1, axis2=2), answers


def _class_code(name: str, value: int, n_classes: int) -> int:
    code = _checks.at_least(name, value, 0)
    if code >= n_classes:
        raise ValueError(f"{name} must be a class from 0 to {n_classes - 1}, got {name}={value!r}.")
    return code
