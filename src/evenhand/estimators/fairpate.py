"""FairPATE: the vote of teachers, and a gate that keeps the answers within a fairness margin."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from evenhand._notions import OF_DECISIONS
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.inputs import FitInputs
from evenhand.estimators.plan import refuse_mechanism
from evenhand.estimators.spec import ACCOUNT, BUDGET, PUBLIC_ROWS, VOTES, MethodSpec, registered
from evenhand.estimators.steps import Plan, Taught
from evenhand.estimators.within_margin import MarginClassifier
from evenhand.fairness import FairnessKind
from evenhand.fairness.gate.gate import Gate, has_gate, open_gate
from evenhand.fairness.notion import RateNotion
from evenhand.students.within import Within
from evenhand.voting import Answers, Shares
from evenhand.voting.blocks import Mechanism


@registered(
    MethodSpec(
        name="fairpate",
        words="Teachers vote on public rows, and a gate keeps their labels within the margin.",
        reads=(
            *BUDGET,
            *VOTES,
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
class FairPATEClassifier(MarginClassifier):
    """Train a differentially private classifier on labels that stay within a fairness margin.

    FairPATE made sound: teachers vote on public rows, a gate stands before their noisy winners, and
    a refused row stays without a label. What differs from the paper is in ``docs/guarantees.md``.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    fairness : RateNotion
        The margin. Needed; such as ``DemographicParity`` or ``TruePositiveRateParity``. Demographic
        parity binds the answers and the student; the others, which are about true classes, bind the
        student alone.
    n_teachers : int, optional
        Each is trained on its own part of the private rows. At most the number of records.
        Default: ``n_teachers_``, chosen from public numbers; ``choices_`` says how.
    teachers : Teachers, classifier, torch.nn.Module or callable, optional
        How teachers are trained, or what each of them is; a callable makes it from
        ``(n_features, n_classes)``. Default ``LogisticTeachers()``.
    mechanism : GNMax, ConfidentGNMax or LNMax, optional
        How a noisy winner is drawn. Default: chosen from public numbers; ``choices_`` says how.
    student : scikit-learn classifier, optional
        Learns from the answered public rows, and knows of no margin. Default: a logistic
        regression whose own decisions on the public rows are held within the margin; it needs no
        group to predict.
    student_margin : bool, default True
        Whether the default student is held within the margin as well. False: it learns the answers
        as they are, as the paper's does, and may leave the margin that they keep.
    cold_start : int, optional
        Answers of a late group that are withheld before a block of them may be released. Default:
        50, or ``2 / margin`` where that is more.
    keep_order : bool, default False
        Ask the public rows strictly in the given order. By default those come first for which
        every class is admissible; the order is public, so this is free.
    schema, classes, public_fraction, unit, noise, random_state
        As for ``PATEClassifier``.
    small_groups : {"interval", "margin"}, default "interval"
        What a group is held to that has so few public rows that the 95 % interval of its rate is
        wider than the margin. ``"interval"``: that interval, where the margin would cost more than
        .01 of error by the released answers, beyond chance; ``held_`` and a ``SmallGroupsWarning``
        say which. With ``"margin"``, or where fewer than two groups are larger, the margin,
        whatever it costs.

    Attributes
    ----------
    guarantee_, answers_, ledger_, classes_, student_, encoder_, mechanism_
        As for ``PATEClassifier``.
    groups_ : tuple of str
        Names of the groups of the public rows.
    gate_ : Gate or None
        The table of given answers and its ``gap``; None for a notion that needs true
        classes.
    bound_, within_margin_, public_gap_ : bool, bool or None, float
        Whether the margin was a constraint on the student, whether it was met (if not, the best
        student found is kept, with a warning), and the student's gap where the margin is read. A
        student that reads no margin has None and NaN: nobody looked.
    held_ : Held or None
        The groups that are held to an interval wider than the margin; None if there are none.
        ``within_margin_`` is about all groups, so it may then be False.
    margin_source_ : str or None
        Where that is: ``"public rows"`` for demographic parity; else ``"calibration rows"``, or
        ``"released answers"``: the gap is then one with respect to what the teachers say, with
        noise, and not to the truth. None if the student was not bound.
    calibration_gap_ : Estimate or None
        The gap on the calibration rows with the interval that so many rows allow. The same rows
        chose the student, so the interval is likely too small.

    Privacy
    -------
    Neighbors : replace one record, or add or remove one unit, as for ``PATEClassifier``.
    Cost : at most the budget. A refusal that depends on a noisy winner is charged in full: with two
        classes it publishes the label. A query that could not be answered is never asked.

    Notes
    -----
    Two sets keep the margin: the *answers that the student learns from*, after every answer and
    for every group and class, and the *student's decisions on the public rows* (where
    ``within_margin_``). On new rows its gap is measured, not promised; it is near if they come from
    the population of the public rows. The gate as the paper printed it, which does not keep its
    margin, is in ``evenhand.baselines.published_fairpate``.

    References
    ----------
    Yaghini et al. 2024, "Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility", Algorithm 1; what differs and why: ``docs/guarantees.md``.
    """

    mechanism: Mechanism | None = None
    student: Any = None
    student_margin: bool = True
    cold_start: int | None = None
    keep_order: bool = False

    gate_: Gate | None = field(init=False)

    def _what_is_released(self) -> str:
        way_out = "use FairSharesClassifier, which learns from noisy shares"
        return refuse_mechanism(self.mechanism, "labels", way_out)

    def _describe(self) -> FittedModel:
        gap = None if self.gate_ is None else self.gate_.gap
        return replace(super()._describe(), answered_gap=gap)

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        self.gate_ = None

    @property
    def _gate_is_set(self) -> bool:
        """Whether a parameter of the gate was changed."""
        return self.cold_start is not None or self.keep_order

    def _notion(self, data: FitInputs) -> RateNotion:
        notion = super()._notion(data)
        if notion.confidence is not None and not self.student_margin:
            raise ValueError(
                f"confidence={notion.confidence:g} chooses among students that are held to the "
                f"margin, and student_margin=False leaves it to the gate. Leave one of them out."
            )
        if notion.needs_labels:
            if not self.student_margin:
                raise ValueError(
                    f"student_margin=False leaves the margin to the gate, and "
                    f"{type(notion).__name__} has none: it binds the student alone. Leave it out, "
                    f"or use DemographicParity."
                )
            if self._gate_is_set:
                raise ValueError(
                    f"cold_start and keep_order are about the gate, and {type(notion).__name__} "
                    f"has none: it binds the student alone. Leave them out, or use "
                    f"DemographicParity."
                )
        return notion

    def _within(self, taught: Taught) -> Within | None:
        return super()._within(taught) if self.student_margin else None

    def _open_gate(self, data: FitInputs) -> Gate | None:
        """Open the gate on labels; a notion that needs true classes has none."""
        notion = self._notion(data)
        if not has_gate(notion):
            return None
        size = data.required_groups.n_groups, data.n_classes
        return open_gate(notion, *size, cold_start=self.cold_start)

    def _conclude(self, taught: Taught, plan: Plan, answers: Answers | Shares) -> None:
        self.gate_ = plan.gate
        super()._conclude(taught, plan, answers)
