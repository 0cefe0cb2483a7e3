"""FairShares: noisy shares of the votes of teachers, and a student within a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand._notions import OF_DECISIONS
from evenhand.estimators.plan import refuse_mechanism
from evenhand.estimators.spec import ACCOUNT, BUDGET, PUBLIC_ROWS, TEACHERS, MethodSpec, registered
from evenhand.estimators.within_margin import MarginClassifier
from evenhand.fairness import FairnessKind
from evenhand.privacy import NoisyHistogram
from evenhand.voting.shares import Rounds


@registered(
    MethodSpec(
        name="fair-shares",
        words="Teachers vote on public rows; a student learns noisy shares within the margin.",
        reads=(
            *BUDGET,
            *TEACHERS,
            *ACCOUNT,
            *PUBLIC_ROWS,
            "calibration",
            "group_thresholds",
            "margin",
            "reference",
            "confidence",
        ),
        needs=("epsilon", "margin"),
        notions=OF_DECISIONS,
        kind=FairnessKind.WEIGHTS,
        public_groups=True,
        shares_votes=True,
    )
)
@dataclass(eq=False, repr=False, kw_only=True)
class FairSharesClassifier(MarginClassifier):
    """Train a differentially private classifier on noisy shares of votes, within a fairness margin.

    Teachers vote as in PATE. Released about each public row is the whole noisy histogram of the
    votes, and a linear student that knows the noise learns from it, held within the margin. At the
    same budget it measures better than labels past a gate (``docs/students.md``). This is not an
    algorithm of the FairPATE paper, which is ``FairPATEClassifier``.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    fairness : DemographicParity, EqualizedOdds, ErrorParity or FalsePositiveParity
        The margin. Needed. It binds the student.
    n_teachers, teachers
        As for ``PATEClassifier``.
    mechanism : NoisyHistogram or Rounds, optional
        How shares are drawn. Default: chosen from public numbers; ``choices_`` says how.
    schema, classes, public, public_fraction, check_drift, unit, neighbors, noise, random_state
        As for ``PATEClassifier``.
    student : ModuleStudent, architecture or torch.nn.Module, optional
        A network that learns features from the shares and ends with the student described above,
        held within the margin: for pictures, and for tables. Default: no network.
    small_groups : {"interval", "margin"}, default "interval"
        As for ``FairPATEClassifier``.

    Attributes
    ----------
    guarantee_, answers_, ledger_, classes_, student_, encoder_, mechanism_
        As for ``PATEClassifier``.
    groups_, bound_, within_margin_, public_gap_, held_, margin_source_, calibration_gap_
        As for ``FairPATEClassifier``.

    Privacy
    -------
    Neighbors : replace one record, or add or remove one record or unit, as for ``PATEClassifier``.
    Cost : the budget, charged before the first noise is drawn. What a noisy winner costs covers the
        whole histogram.

    Notes
    -----
    The *student's decisions on the public rows* keep the margin (where ``within_margin_``). No
    answer is refused: a share decides about nobody. On new rows the gap is measured, not promised;
    it is near if they come from the population of the public rows.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Budget, DemographicParity
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(2, size=900)
    >>> X = rng.normal(size=(900, 3)) + groups[:, None] * [[1.0, 0.0, 0.0]]
    >>> y = X.sum(axis=1) + rng.normal(size=900) > 0.5
    >>> clf = FairSharesClassifier(
    ...     Budget(epsilon=4.0, delta=1e-5), DemographicParity(margin=0.05), n_teachers=30,
    ...     random_state=0,
    ... )
    >>> clf = clf.fit(X[:600], y[:600], X_public=X[600:], sensitive_features_public=groups[600:])
    >>> clf.within_margin_, clf.answers_.coverage
    (True, 1.0)
    """

    mechanism: NoisyHistogram | Rounds | None = None
    student: Any = None

    def _what_is_released(self) -> str:
        way_out = "use FairPATEClassifier, which learns from labels"
        return refuse_mechanism(self.mechanism, "shares", way_out)
