"""FairPATE with its gate as printed: for comparison with the paper, for it leaves its margin."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand.estimators.fairpate import FairPATEClassifier
from evenhand.estimators.inputs import FitInputs
from evenhand.estimators.spec import REGISTERED, registered
from evenhand.fairness.gate.gate import Gate
from evenhand.fairness.gate.published import PublishedGate
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.notions import DemographicParity

_SOUND = REGISTERED["fairpate"]
_OF_SOUND = ("calibration", "reference", "answer_margin", "admit_by", "gate_level")


@registered(
    replace(
        _SOUND,
        name="fairpate-published",
        words="FairPATE with its gate as printed, which leaves the margin: to compare with.",
        reads=tuple(one for one in _SOUND.reads if one not in _OF_SOUND),
        notions=(DemographicParity.name,),
        reference="rest",
    )
)
@dataclass(eq=False, repr=False, kw_only=True)
class PublishedFairPATEClassifier(FairPATEClassifier):
    """``FairPATEClassifier`` with the gate of the paper's Algorithm 1, to compare with.

    The printed gate tests only the group and class that are being answered, and does not keep its
    own definition beyond two groups and two classes (``docs/gate.md``). A model whose answers left
    the margin says so in a warning of its report. All else is that of ``FairPATEClassifier``.

    Parameters
    ----------
    fairness : DemographicParity
        With ``reference="rest"``, the only one that Algorithm 1 knows. Needed.
    cold_start : int, optional
        Answers that a group gets before it is tested at all (M in the paper). Default: 50, or
        ``2 / margin`` where that is more.
    student_margin : bool, default True
        As for ``FairPATEClassifier``; the paper's student has none.

    Attributes
    ----------
    gate_ : PublishedGate
        Its ``violations`` count the answers after which the table was outside the margin.

    Privacy
    -------
    Cost : that of ``FairPATEClassifier``, and charged alike: at most the budget. The paper charges
        nothing for a refusal that reads the noisy winner, which does not hold.

    References
    ----------
    Yaghini et al. 2024, "Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility", Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Budget, DemographicParity
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(2, size=900)
    >>> X = rng.normal(size=(900, 3)) + groups[:, None] * [[1.0, 0.0, 0.0]]
    >>> y = X.sum(axis=1) + rng.normal(size=900) > 0.5
    >>> clf = PublishedFairPATEClassifier(
    ...     budget=Budget(epsilon=8.0, delta=1e-5), fairness=DemographicParity(margin=0.2),
    ...     n_teachers=30, random_state=0,
    ... )
    >>> clf = clf.fit(X[:600], y[:600], X_public=X[600:], sensitive_features_public=groups[600:])
    >>> type(clf.gate_).__name__, clf.guarantee_.epsilon, clf.guarantee_.holds
    ('PublishedGate', 8.0, True)
    """

    def _notion(self, data: FitInputs) -> RateNotion:
        notion = super()._notion(data)
        if not isinstance(notion, DemographicParity) or notion.reference != "rest":
            raise ValueError(
                f"fairness must be a DemographicParity with reference='rest', which is all that "
                f"Algorithm 1 as printed knows, got {notion!r}. Use FairPATEClassifier."
            )
        return notion

    def _open_gate(self, data: FitInputs) -> Gate | None:
        size = data.required_groups.n_groups, data.n_classes
        return PublishedGate(self._notion(data).margin, *size, cold_start=self.cold_start)
