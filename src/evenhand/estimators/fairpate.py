"""FairPATE: the vote of teachers, and a gate that keeps the answers within a fairness margin."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evenhand import _checks
from evenhand._notions import OF_DECISIONS
from evenhand._words import ADMIT_BY
from evenhand.estimators.calibration import rows_to_ask, warn_of_wide_limits
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.inputs import FitInputs
from evenhand.estimators.plan import refuse_mechanism
from evenhand.estimators.spec import ACCOUNT, BUDGET, PUBLIC_ROWS, VOTES, MethodSpec, registered
from evenhand.estimators.steps import Given, Plan, Taught
from evenhand.estimators.within_margin import MarginClassifier
from evenhand.fairness import FairnessKind
from evenhand.fairness.gate.calibrated import CalibratedGate, GateCalibration
from evenhand.fairness.gate.gate import Gate, open_gate
from evenhand.fairness.notion import RateNotion
from evenhand.privacy import Ledger
from evenhand.students.within import Within
from evenhand.voting import Answers, Shares, Votes
from evenhand.voting.blocks import Mechanism
from evenhand.voting.calibration import ask_calibration
from evenhand.voting.shares import Rounds


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
            "answer_margin",
            "admit_by",
            "gate_level",
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
        The margin. Needed; such as ``DemographicParity`` or ``TruePositiveRateParity``. It binds
        the answers and the student. One about true classes needs calibration rows: the teachers
        are asked about them too, at a cost, and what is true behind their answers tells the gate.
    n_teachers, teachers
        As for ``PATEClassifier``.
    mechanism : GNMax, ConfidentGNMax or LNMax, optional
        How a noisy winner is drawn. Default: chosen from public numbers; ``choices_`` says how.
    student : scikit-learn classifier, optional
        Learns from the answered public rows, and knows of no margin. Default: a logistic
        regression whose own decisions on the public rows are held within the margin; it needs no
        group to predict. Under a margin about true classes one of your own needs
        ``student_margin=False``.
    student_margin : bool, default True
        Whether the default student is held within the margin as well. False: it learns the answers
        as they are, as the paper's does, and may leave the margin that they keep.
    answer_margin : bool, default True
        Whether the answers are held within the margin, by the gate. False: the margin binds the
        student alone, and no answer is refused for it.
    admit_by : {"limit", "estimate"}
        What of a gap about true classes must be within the margin for an answer to be given: its
        upper limit at ``gate_level``, or its estimate, of which nothing is promised.
    gate_level : float, default 0.95
        Confidence of that limit, over the calibration rows, in (0, 1).
    cold_start : int, optional
        Answers of a late group that are withheld before a block of them may be released. Default:
        50, or ``2 / margin`` where that is more.
    keep_order : bool, default False
        Ask the public rows strictly in the given order. By default those come first for which
        every class is admissible; the order is public, so this is free.
    schema, classes, public, public_fraction, check_drift, unit, neighbors, noise, random_state
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
        The table of given answers and its ``gap``; None with ``answer_margin=False``. A gate about
        true classes has the ``estimate`` of the gap too, and as ``gap`` what it holds within the
        margin.
    calibration_ : GateCalibration or None
        What it knew of true classes: answers to calibration rows, counted.
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
    Neighbors : replace one record, or add or remove one record or unit, as for ``PATEClassifier``.
    Cost : at most the budget. A refusal that depends on a noisy winner is charged in full: with two
        classes it publishes the label. A query that could not be answered is never asked. Answers
        to calibration rows are charged as any others, before the queries: to as many rows as half
        of the budget pays for, the same number of each group where there are enough.

    Notes
    -----
    Two sets keep the margin: the *answers that the student learns from*, after every answer and
    for every group and class, and the *student's decisions on the public rows* (where
    ``within_margin_``). About true classes the first is kept by the upper limit of the gap, given
    what the answers to calibration rows say of the truth, and the second on the calibration rows.
    On new rows the gap is measured, not promised; it is near if they come from the population of
    the public rows. The gate as the paper printed it, which does not keep its
    margin, is in ``evenhand.baselines.published_fairpate``.

    References
    ----------
    Yaghini et al. 2024, "Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility", Algorithm 1; what differs and why: ``docs/guarantees.md``.
    """

    mechanism: Mechanism | None = None
    student: Any = None
    student_margin: bool = True
    answer_margin: bool = True
    admit_by: str = "limit"
    gate_level: float = 0.95
    cold_start: int | None = None
    keep_order: bool = False

    gate_: Gate | None = field(init=False)
    calibration_: GateCalibration | None = field(init=False)

    def _what_is_released(self) -> str:
        way_out = "use FairSharesClassifier, which learns from noisy shares"
        return refuse_mechanism(self.mechanism, "labels", way_out)

    def _describe(self) -> FittedModel:
        gate = self.gate_
        return replace(
            super()._describe(),
            answered_gap=None if gate is None else gate.gap,
            calibration=self.calibration_,
        )

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        self.gate_, self.calibration_ = None, fitted.calibration

    def _notion(self, data: FitInputs) -> RateNotion:
        notion = super()._notion(data)
        for name in ("student_margin", "answer_margin", "keep_order"):
            _checks.flag(name, getattr(self, name))
        _checks.one_of("admit_by", self.admit_by, ADMIT_BY)
        _checks.open_unit("gate_level", self.gate_level)
        if notion.confidence is not None and not self.student_margin:
            raise ValueError(
                f"confidence={notion.confidence:g} chooses among students that are held to the "
                f"margin, and student_margin=False leaves it to the gate. Leave one of them out."
            )
        if not (self.answer_margin or self.student_margin):
            raise ValueError(
                "answer_margin=False and student_margin=False leave nothing that is held to the "
                "margin. Leave one of them out, or use PATEClassifier."
            )
        changed = _changed(self)
        if not self.answer_margin and changed:
            raise ValueError(
                f"{' and '.join(changed)} {'is' if len(changed) == 1 else 'are'} about the gate, "
                f"and answer_margin=False opens none. Leave one of them out."
            )
        useless = [name for name in changed if name in OF_TRUE_CLASSES]
        if useless and not notion.needs_labels:
            raise ValueError(
                f"{' and '.join(useless)} {'is' if len(useless) == 1 else 'are'} about true "
                f"classes, and {type(notion).__name__} is about answers alone. Leave it out."
            )
        return notion

    def plan(self, given: Given, ledger: Ledger | None = None) -> Plan:
        """Refuse a gate without the rows that it needs, and plan; see the base."""
        notion = self._notion(given.data)
        if self._gate_reads_truth(notion) and given.calibration is None:
            kind = type(notion).__name__
            raise ValueError(
                f"{kind} is about true classes, and nothing tells the gate of them. Pass "
                f"X_calibration, y_calibration and sensitive_features_calibration: public rows "
                f"with labels and groups, hundreds of each group. Without such rows, hold the "
                f"student alone to the margin, by the released answers: answer_margin=False, or "
                f"FairSharesClassifier."
            )
        if self._gate_reads_truth(notion) and given.data.cast is not None:
            raise ValueError(
                f"The owners' files hold votes on the public rows alone, and a gate about "
                f"{notion.title} needs votes on the calibration rows. Hold the student alone to "
                f"the margin: answer_margin=False, or FairSharesClassifier."
            )
        return super().plan(given, ledger)

    def calibrate(self, taught: Taught, plan: Plan) -> Plan:
        """Buy answers to calibration rows, and open the gate that knows what they say."""
        votes, calibration = taught.calibration_votes, taught.given.calibration
        if not self.asks_calibration(taught.given):
            return plan
        assert votes is not None
        assert calibration is not None
        data = taught.given.data
        notion, groups = self._notion(data), data.required_groups
        mechanism = plan.mechanism
        assert not isinstance(mechanism, Rounds)  # labels are released, not shares
        seed = copy.deepcopy(taught.given.rng).spawn(2)[1]
        rows = rows_to_ask(calibration.groups, mechanism, plan.ledger, seed)
        known = GateCalibration(
            labelled=ask_calibration(
                Votes(counts=votes.counts[rows], n_teachers=votes.n_teachers),
                calibration.labels[rows],
                calibration.groups[rows],
                mechanism,
                plan.ledger,
                n_groups=groups.n_groups,
            ),
            level=self.gate_level,
            admit_by=self.admit_by,
        )
        warn_of_wide_limits(known, notion, groups.names)
        gate = open_gate(
            notion, groups.n_groups, data.n_classes, cold_start=self.cold_start, calibration=known
        )
        said = (
            f"{len(rows):,} of the {len(calibration):,} calibration rows are asked, and paid for "
            f"as the public rows are: as many as half of the budget pays for."
        )
        return replace(plan, gate=gate, choices=(*plan.choices, said))

    def asks_calibration(self, given: Given) -> bool:
        """Whether the gate is about true classes, and there are rows that tell of them."""
        rows = given.calibration
        return rows is not None and self._gate_reads_truth(self._notion(given.data))

    def _gate_reads_truth(self, notion: RateNotion) -> bool:
        return self.answer_margin and notion.needs_labels

    @property
    def _binds_student(self) -> bool:
        return self.student_margin

    @property
    def no_labels_beside(self) -> str:
        """Also where the margin is kept by answers alone: these labels are none."""
        if self.student_margin:
            return super().no_labels_beside
        return (
            "student_margin=False leaves the margin to the gate, which sees answers alone. Leave "
            "one of them out"
        )

    def _within(self, taught: Taught) -> Within | None:
        return super()._within(taught) if self.student_margin else None

    def _open_gate(self, data: FitInputs) -> Gate | None:
        """Open the gate on labels; one about true classes is opened by ``calibrate``."""
        notion = self._notion(data)
        if not self.answer_margin or notion.needs_labels:
            return None
        size = data.required_groups.n_groups, data.n_classes
        return open_gate(notion, *size, cold_start=self.cold_start)

    def _conclude(self, taught: Taught, plan: Plan, answers: Answers | Shares) -> None:
        self.gate_ = plan.gate
        gate = plan.gate
        self.calibration_ = gate.calibration if isinstance(gate, CalibratedGate) else None
        super()._conclude(taught, plan, answers)


OF_TRUE_CLASSES: Final = ("admit_by", "gate_level")
OF_GATE: Final = (*OF_TRUE_CLASSES, "cold_start", "keep_order")


def _changed(model: FairPATEClassifier) -> list[str]:
    """Return the parameters of the gate that are not as they were."""
    return [name for name in OF_GATE if getattr(model, name) != getattr(type(model), name)]
