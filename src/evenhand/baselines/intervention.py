"""PATE with a fairness intervention at one of seven places, for comparison: one ``fit`` for all."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.baselines.intervention_points import POINTS, InterventionPoint
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.group_thresholds import GroupThresholdClassifier
from evenhand.estimators.inputs import FitArguments, FitInputs, Progress, groups_to_decide
from evenhand.estimators.margins import Cuts
from evenhand.estimators.pate import PATEClassifier
from evenhand.estimators.rows_after import require_two_classes
from evenhand.estimators.scored_by_group import ScoredByGroup
from evenhand.estimators.spec import ACCOUNT, BUDGET, PUBLIC_ROWS, VOTES, MethodSpec, registered
from evenhand.estimators.steps import Given, Plan, Taught
from evenhand.fairness import DemographicParity, FairnessKind
from evenhand.fairness.gate.gate import Gate, open_gate
from evenhand.fairness.gate.runner import admitted
from evenhand.fairness.groups import GroupCodes
from evenhand.privacy import Guarantee, Ledger
from evenhand.students.learned_features import as_network
from evenhand.students.thresholds import GroupThresholds
from evenhand.students.within import Within
from evenhand.teachers import KeepWithin, ParityTeachers, ResampledTeachers
from evenhand.teachers.ensemble import Ensemble, Teachers
from evenhand.teachers.partition import Partition
from evenhand.teachers.postprocessed import level_votes
from evenhand.typing import REJECTED, Array, FloatArray, IntArray, RandomState
from evenhand.voting import Answers, Reason, Shares

GATED = ("aggregator", "S_pre")


_KINDS: Final = {
    "aggregator": FairnessKind.ANSWERS,
    "S_pre": FairnessKind.ANSWERS,
    "S_in": FairnessKind.WEIGHTS,
    "S_post": FairnessKind.THRESHOLDS,
}


@registered(
    MethodSpec(
        name="intervention",
        words="Teachers, labels and a student, with the margin at one of seven places (--at).",
        reads=(*BUDGET, *VOTES, *ACCOUNT, *PUBLIC_ROWS, "at", "margin", "reference"),
        needs=("epsilon", "margin", "at"),
        notions=("demographic-parity",),
        kind=lambda settings: _KINDS.get(settings["at"], FairnessKind.NONE),
        public_groups=True,
        private_groups=lambda settings: POINTS[settings["at"]].reads_private_groups,
    )
)
@dataclass(eq=False, repr=False)
class InterventionClassifier(ScoredByGroup, PATEClassifier):
    """Train a differentially private classifier with fairness put in at one named point.

    All seven points of FairPATE's Figure 1 are variants of one ``fit`` with one cost in privacy, so
    that they can be compared. For use, ``FairPATEClassifier`` (which binds answers and student) is
    the better choice; see ``docs/intervention-points.md`` for numbers.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    fairness : DemographicParity
        The margin. What keeps it depends on the point. Needed.
    at : {"T_pre", "T_in", "T_post", "aggregator", "S_pre", "S_in", "S_post"}
        The point: before, in, after the teachers; at the aggregator; before, in, after the student.
    n_teachers : int, optional
    teachers : Teachers, classifier, torch.nn.Module or callable, optional
        How teachers are trained, or what each of them is; a callable makes it from
        ``(n_features, n_classes)``. Default ``LogisticTeachers()``; at ``"T_in"``
        ``ParityTeachers``.
    answers : {"labels", "shares"}, default "labels"
        As for ``PATEClassifier``; a gate (``"aggregator"``, ``"S_pre"``) needs labels.
    mechanism : GNMax, ConfidentGNMax, LNMax or NoisyHistogram, optional
    student : scikit-learn classifier, optional
        Default: logistic regression; at ``"S_in"`` one under the margin on the public rows.
        ``ReductionStudent()`` is fairlearn's, as in the paper. One that knows of no margin is
        refused there.
    schema, classes, public, public_fraction, check_drift, unit, neighbors, noise, random_state
        As for ``PATEClassifier``.

    Attributes
    ----------
    guarantee_, answers_, ledger_, classes_, student_, encoder_, mechanism_, groups_
        As for ``FairPATEClassifier``. The guarantee also says what the point promises.
    point_ : InterventionPoint
        What was done and is promised.
    group_thresholds_ : GroupThresholds or None
        At ``"S_post"``: the model then needs the group of each row to predict.
    bound_, within_margin_, public_gap_
        Of the student at ``"S_in"``, as for ``FairPATEClassifier``.

    Privacy
    -------
    Neighbors : as for ``PATEClassifier``. At ``"T_pre"`` and ``"T_in"`` teachers read the groups of
        their own records, which are part of the record that is replaced; teacher i reads
        partition i alone, so one vote moves and the cost is that of PATE. (The published
        preprocessor reads all private records, and has no such cost: FairPATE's challenge C2.)
    Cost : at most the budget, at every point.

    References
    ----------
    Yaghini et al. 2024, Section 3 and Figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Budget, DemographicParity
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(2, size=900)
    >>> X = rng.normal(size=(900, 3)) + groups[:, None] * [[1.0, 0.0, 0.0]]
    >>> y = X.sum(axis=1) + rng.normal(size=900) > 0.5
    >>> clf = InterventionClassifier(
    ...     Budget(epsilon=4.0, delta=1e-5), DemographicParity(margin=0.05), at="T_pre",
    ...     n_teachers=30, random_state=0,
    ... )
    >>> clf = clf.fit(X[:600], y[:600], sensitive_features=groups[:600], X_public=X[600:],
    ...               sensitive_features_public=groups[600:])
    >>> print(clf.point_)
    1 T_pre: each teacher drops records of its own that a gate refuses; promised are the labels
    each teacher learns from; of answers and student nothing is promised
    """

    fairness: DemographicParity | None = None
    at: str = "aggregator"
    _: KW_ONLY
    answers: str | None = "labels"

    group_thresholds_: GroupThresholds | None = field(init=False)

    _needs_groups = True
    _reads_streams = False

    def read(self, given: FitArguments) -> Given:
        """Check the point and the arguments; see the base."""
        self._check_point()
        read = super().read(given)
        if self.at == "S_post":
            require_two_classes(read.data.classes)
        return read

    # Steps 1 T_pre and 2 T_in are kinds of teachers (see _teachers), 3 T_post is in their _vote,
    # 4 is the gate of the aggregator (_open_gate), 6 S_in the margin of the student (_within).

    def ask(self, taught: Taught, plan: Plan, progress: Progress | None = None) -> Answers | Shares:
        """Release labels or shares, and drop labels that were paid for (step 5)."""
        answers, data = super().ask(taught, plan, progress), taught.given.data
        return self._sift(answers, data.required_groups, self._gate("S_pre", data))

    def _conclude(self, taught: Taught, plan: Plan, answers: Answers | Shares) -> None:
        """Fit the student (step 6), and cut its scores by group (step 7)."""
        super()._conclude(taught, plan, answers)
        self.group_thresholds_ = self._thresholds(taught.given.data)

    def _describe(self) -> FittedModel:
        fitted = super()._describe()
        if self.group_thresholds_ is None:
            return fitted
        assert self.fairness is not None
        assert self.groups_ is not None
        cuts = Cuts(
            notion=self.fairness,
            label=fitted.class_names[1],
            groups=self.groups_,
            thresholds=self.group_thresholds_,
        )
        return replace(fitted, cuts=cuts)

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        self.group_thresholds_ = None if fitted.cuts is None else fitted.cuts.thresholds

    def predict(
        self, X: Any, *, sensitive_features: Any = None, random_state: RandomState = None
    ) -> Array:
        """Predict class labels.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n, n_columns)
        sensitive_features : array-like or DataFrame, n rows, optional
            The group of every row: needed at ``"S_post"``, not read elsewhere.
        random_state : int, Generator or None
            At ``"S_post"``: decides scores that equal a threshold.
        """
        check_is_fitted(self, "_fitted")
        if self.group_thresholds_ is None:
            return super().predict(X)
        groups = groups_to_decide(
            X,
            sensitive_features,
            self.groups_,
            "At S_post this model needs the group of each row at prediction: pass "
            "sensitive_features=. For a model that needs none choose another point.",
        )
        scores = self.predict_proba(X)[:, 1]
        decided = self.group_thresholds_.decide(scores, groups.codes, as_generator(random_state))
        labels: Array = self.classes_[decided]
        return labels

    def _check_point(self) -> None:
        self.point_: InterventionPoint = POINTS[_checks.one_of("at", self.at, POINTS)]
        if not isinstance(self.fairness, DemographicParity):
            raise ValueError(
                f"fairness must be a DemographicParity, got {self.fairness!r}. Say how far apart "
                f"the groups may be, for example fairness=DemographicParity(margin=0.05)."
            )
        if self.at in GATED and self.answers == "shares":
            raise ValueError(
                f"at={self.at!r} gates labels, and noisy shares are not labels. Use "
                f"answers='labels', or another point."
            )
        taken = self.student is None or as_network(self.student) is not None
        if self.at == "S_post" and not (taken or hasattr(self.student, "predict_proba")):
            raise ValueError(
                f"at='S_post' cuts probabilities, and {type(self.student).__name__} has no "
                f"predict_proba. Train with a student that has one."
            )
        if self.at == "S_in" and not (taken or getattr(self.student, "reads_margin", False)):
            raise ValueError(
                f"at='S_in' trains the student under the margin, and {type(self.student).__name__} "
                f"knows of none. Leave student=None, give a network or ReductionStudent(), or "
                f"choose another point."
            )

    @property
    def no_labels_beside(self) -> str:
        """Also where the margin is kept before the student: these labels are no answers."""
        if self.at in ("S_in", "S_post"):
            return super().no_labels_beside
        return f"at={self.at!r} keeps the margin before the student. Take S_in or S_post"

    def _teachers(self, n_features: int, n_classes: int, rng: np.random.Generator) -> Teachers:
        """Return teachers that choose their records (step 1) or train under the margin (2)."""
        assert self.fairness is not None
        if self.at == "T_pre":
            learners = super()._teachers(n_features, n_classes, rng)
            return ResampledTeachers(KeepWithin(fairness=self.fairness), learners)
        if self.at != "T_in":
            return super()._teachers(n_features, n_classes, rng)
        if self.teachers is None:
            return ParityTeachers(self.fairness)
        if not getattr(self.teachers, "reads_groups", False):
            raise ValueError(
                f"at='T_in' needs teachers that are trained towards the margin, and "
                f"{type(self.teachers).__name__} reads no groups. Leave teachers=None, or use "
                f"ParityTeachers."
            )
        trained_within: Teachers = self.teachers
        return trained_within

    def _vote(self, ensemble: Ensemble, X_public: FloatArray, data: FitInputs) -> IntArray:
        """Let each teacher vote at one threshold per group (step 3)."""
        if self.at != "T_post":
            return super()._vote(ensemble, X_public, data)
        assert self.fairness is not None
        if not hasattr(ensemble, "scores"):
            raise ValueError(
                f"at='T_post' sets thresholds on the teachers' scores, and "
                f"{type(ensemble).__name__} has none. Use LogisticTeachers, or SklearnTeachers of "
                f"a classifier with predict_proba."
            )
        groups = data.required_groups
        return level_votes(
            ensemble.scores(X_public),
            groups.codes,
            n_groups=groups.n_groups,
            fairness=self.fairness,
        )

    def _open_gate(self, data: FitInputs) -> Gate | None:
        return self._gate("aggregator", data)

    def _gate(self, at: str, data: FitInputs) -> Gate | None:
        """Return a new gate if this is the point (step 4 or 5)."""
        if self.at != at:
            return None
        assert self.fairness is not None
        return open_gate(self.fairness, data.required_groups.n_groups, data.n_classes)

    def _sift(
        self, answers: Answers | Shares, groups: GroupCodes, gate: Gate | None
    ) -> Answers | Shares:
        """Drop answers that were paid for, in the order in which they were given (step 5)."""
        if gate is None or isinstance(answers, Shares):
            return answers
        offered = answers.order
        given = offered[admitted(gate, groups.codes[offered], answers.labels[offered])]
        dropped = np.setdiff1d(offered, given)
        labels, reasons = answers.labels.copy(), answers.reasons.copy()
        labels[dropped], reasons[dropped] = REJECTED, Reason.OUTSIDE_MARGIN
        # One event: the student is handed all of them together.
        return replace(
            answers,
            labels=labels,
            reasons=reasons,
            order=given,
            events=np.zeros(len(given), dtype=np.int64),
            groups=groups.codes,
        )

    def _within(self, taught: Taught) -> Within | None:
        """Return the margin of the student (step 6)."""
        if self.at != "S_in":
            return None
        assert self.fairness is not None
        groups = taught.given.data.required_groups
        return Within(notion=self.fairness, groups=groups.codes, n_groups=groups.n_groups)

    def _thresholds(self, data: FitInputs) -> GroupThresholds | None:
        """Cut the student's scores at one threshold per group (step 7)."""
        if self.at != "S_post":
            return None
        assert self.fairness is not None
        cut = GroupThresholdClassifier.on_public_rows(
            self, data.X_public, data.required_groups, self.fairness
        )
        self.guarantee_, self.fairness_kind_ = cut.guarantee_, cut.fairness_kind_
        thresholds: GroupThresholds = cut.thresholds_
        return thresholds

    def _guarantee(self, data: FitInputs, ledger: Ledger, partition: Partition) -> Guarantee:
        assert self.fairness is not None
        said = f"a margin of {self.fairness.margin:g} at {self.point_.name}: {self.point_.promise}"
        return super()._guarantee(data, ledger, partition).with_warning(said)
