"""Which method for which case, by public numbers and wishes alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Final, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from evenhand import _checks
from evenhand.datasets import Schema
from evenhand.datasets.parquet import ParquetRows
from evenhand.estimators.classifier import Arguments, checked_budget
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.inputs import (
    NOT_TAKEN,
    Progress,
    calibration_given,
    coded_labels,
    may_be_pictures,
)
from evenhand.estimators.nested import NestedValues
from evenhand.estimators.rows_after import WAY_OUT, RowsAfter
from evenhand.estimators.spec import CALIBRATION, MethodSpec
from evenhand.estimators.synthetic_rows import SYNTHETIC
from evenhand.fairness import DemographicParity
from evenhand.fairness.notion import Notion, RateNotion
from evenhand.fairness.notions import require_notion
from evenhand.methods import METHODS
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.privacy.noise import Noise
from evenhand.teachers import OutsideVotes
from evenhand.typing import Array, ArrayLike, RandomState

PROTECTED: Final = ("record", "attribute")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is public of a task, and what is wished. Nothing of it is read from private rows.

    Parameters
    ----------
    protect : {"record", "attribute"}
        What shall be protected.
    several_owners : bool
        The records stay with owners that do not pool them.
    gradients : bool
        Whether a model may be trained by gradients of single records.
    units : bool
        A person, or a household, may have several records.
    account : bool
        The run is charged to an account that other runs share.
    streams : bool
        The rows do not fit into memory.
    for_teachers : bool
        Something else is asked for that only teachers have.
    margin : bool
        Whether a margin is to be kept, in training or at thresholds by group.
    of_decisions_alone : bool
        Whether that margin is about how often a class is decided, which DP-SGD can train for.
    of_true_classes : bool
        Whether it reads true classes.
    of_rates : bool
        Whether it is about rates of decisions, and not about scores.
    confident : bool
        Whether it shall hold on new rows, with a confidence.
    group_at_prediction : bool
        Whether a decision may read the group.
    two_classes : bool
        Whether there are two classes.
    public_groups : bool
        Whether the groups of public rows are known, or of rows that are set aside as public.
    public_labels : bool
        Whether there are public rows whose true classes and groups are known.
    private_groups : bool
        Whether the groups of the private rows are known.
    scaled : bool
        Whether public rows, or declared bounds, scale the columns.
    pays_for_counts : bool
        Whether the budget is large enough that noisy counts of scores help thresholds.
    """

    protect: str = "record"
    several_owners: bool = False
    gradients: bool = True
    units: bool = False
    account: bool = False
    streams: bool = False
    for_teachers: bool = False
    margin: bool = True
    of_decisions_alone: bool = True
    of_true_classes: bool = False
    of_rates: bool = True
    confident: bool = False
    group_at_prediction: bool = False
    two_classes: bool = True
    public_groups: bool = True
    public_labels: bool = False
    private_groups: bool = True
    scaled: bool = True
    pays_for_counts: bool = False

    def __post_init__(self) -> None:
        _checks.one_of("protect", self.protect, PROTECTED)

    @property
    def held_after(self) -> bool:
        """Whether DP-SGD keeps the margin after training, which then reads no private group."""
        return self.confident and self.public_groups

    @property
    def counts(self) -> bool:
        """Whether thresholds are set on noisy counts of scores too: DP-SGD can release them."""
        free = replace(self, margin=False)
        able = self.private_groups and self.pays_for_counts and self.two_classes
        by_labels = self.of_true_classes and self.public_labels
        return able and not by_labels and RULES[_first(RULES, free) - 1].takes == "dpsgd"


LEAST_MU_FOR_COUNTS: Final = 0.25
"""Of the budget; epsilon 1 at delta 1e-5 has .27, at 1e-6 .24. With less, noise leaves the counts
no more to say than public rows do."""

TIGHTENED: Final = (
    "Thresholds are set inside the margin by one standard error of the gap, for what they are set "
    "on is a sample: people in general then keep a margin that is wider than this error in some "
    "five of six models, or seven of ten where rates of two classes are held, and not in every "
    "second."
)

OF_COUNTS: Final = (
    "The scores of the private rows are counted by group and released with noise, for a tenth of "
    "the budget's mu squared, and the thresholds are set on these counts as well: the groups are "
    "known and the budget pays for it."
)

TEACHERS: Final = "teachers"
TRAINING: Final = "in training"
THRESHOLDS: Final = "at thresholds by group"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A line of a decision rule: where it holds, what is taken, and why.

    Of ``RULES`` a method's name is taken, or ``TEACHERS``: fair-shares under a margin, and pate
    without; of ``MARGINS``, ``TRAINING`` or ``THRESHOLDS``.
    """

    when: str
    takes: str
    why: str
    holds: Callable[[Case], bool]


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        when="the sensitive attribute alone is to be protected",
        takes="sf-student",
        why="features and labels are public then, and only the groups need noise",
        holds=lambda case: case.protect == "attribute",
    ),
    Rule(
        when="the records stay with several owners",
        takes=TEACHERS,
        why="only votes leave an owner",
        holds=lambda case: case.several_owners,
    ),
    Rule(
        when="no gradients: trees, rules, vendors' models, people",
        takes=TEACHERS,
        why="a teacher only has to vote",
        holds=lambda case: not case.gradients,
    ),
    Rule(
        when="a person, or another unit, may have several records",
        takes=TEACHERS,
        why="all records of a unit go to one teacher, and DP-SGD protects a record",
        holds=lambda case: case.units,
    ),
    Rule(
        when="the run is charged to an account that other runs share",
        takes=TEACHERS,
        why="the cost of DP-SGD is known at one delta, and adds up with no other",
        holds=lambda case: case.account,
    ),
    Rule(
        when="the rows stream from files",
        takes=TEACHERS,
        why="DP-SGD reads its rows in memory",
        holds=lambda case: case.streams,
    ),
    Rule(
        when="the margin in training is about true classes",
        takes=TEACHERS,
        why="DP-SGD pulls rates of decisions together, and of nothing else",
        holds=lambda case: case.margin and not case.of_decisions_alone,
    ),
    Rule(
        when="training shall keep a margin, and the groups of the private rows are not known",
        takes=TEACHERS,
        why="their student keeps the margin by the groups of the public rows",
        holds=lambda case: case.margin and not (case.private_groups or case.held_after),
    ),
    Rule(
        when="neither public rows nor declared bounds scale the columns",
        takes=TEACHERS,
        why="they are asked about rows that are drawn from noisy counts",
        holds=lambda case: not case.scaled,
    ),
    Rule(
        when="something is asked for that only teachers have",
        takes=TEACHERS,
        why="DP-SGD would not read it",
        holds=lambda case: (
            case.for_teachers
            or (case.margin and (case.public_labels or (case.confident and not case.held_after)))
        ),
    ),
    Rule(
        when="otherwise",
        takes="dpsgd",
        why="one owner, a record for each person: it is more accurate at the same epsilon",
        holds=lambda case: True,
    ),
)
"""Which method: the first line that holds decides. ``docs/choosing.md`` shows it."""

MARGINS: Final[tuple[Rule, ...]] = (
    Rule(
        when="the group is not to be seen at prediction",
        takes=TRAINING,
        why="thresholds by group need the group of each person",
        holds=lambda case: not case.group_at_prediction,
    ),
    Rule(
        when="the sensitive attribute alone is to be protected",
        takes=TRAINING,
        why="the methods that protect it have a place of their own for the margin",
        holds=lambda case: case.protect == "attribute",
    ),
    Rule(
        when="the margin is about scores",
        takes=TRAINING,
        why="thresholds move decisions, and no score",
        holds=lambda case: not case.of_rates,
    ),
    Rule(
        when="more than two classes",
        takes=TRAINING,
        why="a threshold parts two classes",
        holds=lambda case: not case.two_classes,
    ),
    Rule(
        when="the margin is about true classes, and public rows have labels and groups",
        takes=THRESHOLDS,
        why="they have the least expected error within the margin among these true classes",
        holds=lambda case: case.of_true_classes and case.public_labels,
    ),
    Rule(
        when="no public rows have known groups, and no noisy counts of scores stand for them",
        takes=TRAINING,
        why="thresholds are set on such rows, or on such counts where there is no confidence",
        holds=lambda case: not case.public_groups and (case.confident or not case.counts),
    ),
    Rule(
        when="the margin is about true classes, with a confidence",
        takes=TRAINING,
        why="a confidence needs true classes, and no public row has one",
        holds=lambda case: case.of_true_classes and case.confident,
    ),
    Rule(
        when="the margin is about true classes",
        takes=THRESHOLDS,
        why="the model's own probabilities stand for true classes, as the claim warns",
        holds=lambda case: case.of_true_classes,
    ),
    Rule(
        when="otherwise",
        takes=THRESHOLDS,
        why="they have the least expected error within the margin",
        holds=lambda case: True,
    ),
)
"""Where a margin sits: the first line that holds decides. ``docs/choosing.md`` shows it too."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The method that was chosen, and the lines of ``RULES`` and ``MARGINS`` that decided.

    Lines are counted from 1; without a margin none of ``MARGINS`` did, and ``margin_line`` is None.
    ``counts`` says whether thresholds are set on noisy counts of the private rows' scores too, and
    ``tightening`` by how many standard errors inside the margin: see ``with_group_thresholds``.
    """

    method: str
    line: int
    margin_line: int | None = None
    counts: bool = False
    tightening: float = 0.0

    @property
    def rule(self) -> Rule:
        """The line that decided on the method."""
        return RULES[self.line - 1]

    @property
    def margin_rule(self) -> Rule | None:
        """The line that decided where the margin sits."""
        return None if self.margin_line is None else MARGINS[self.margin_line - 1]

    @property
    def thresholds(self) -> bool:
        """Whether the margin is kept by thresholds around the fitted model."""
        return self.margin_rule is not None and self.margin_rule.takes == THRESHOLDS

    @property
    def spec(self) -> MethodSpec:
        """The record of the method."""
        return METHODS[self.method]

    @property
    def said(self) -> str:
        """The choice of the method in a sentence, for people."""
        return (
            f"Method {self.method}, chosen by public numbers and wishes alone: "
            f"{_because(self.rule)}."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The whole choice: also where the margin sits, if the group may be seen at prediction."""
        rule = self.margin_rule
        if rule is None or rule is MARGINS[0]:
            return (self.said,)
        kept = f"The margin is kept {rule.takes}: {_because(rule)}."
        counted = (OF_COUNTS,) if self.counts else ()
        return (self.said, kept, *counted, *((TIGHTENED,) if self.tightening == 1 else ()))

    def kept_in(self, model: Any) -> Any:
        """Write the choice down in a fitted model and its claim, and return it."""
        public = f"the choice of the method {self.method}, made without any private row"
        model.choices_ = (*self.sentences, *model.choices_)
        claim = model.guarantee_
        model.guarantee_ = replace(claim, public=(*claim.public, public))
        model._fitted = model._describe()
        return model


def _because(rule: Rule) -> str:
    """Say where a line holds, and why it takes what it takes."""
    return rule.why if rule.when == "otherwise" else f"{rule.when}; {rule.why}"


def choose(case: Case) -> Choice:
    """Return the method for a case, and where its margin sits, by the first lines that hold.

    Examples
    --------
    >>> choose(Case()).method, choose(Case(units=True)).method
    ('dpsgd', 'fair-shares')
    >>> choose(Case(units=True, margin=False)).method
    'pate'
    >>> choose(Case(of_true_classes=True, group_at_prediction=True)).sentences[1]
    "The margin is kept at thresholds by group: the margin is about true classes; the model's own \
probabilities stand for true classes, as the claim warns."
    """
    margin_line = _first(MARGINS, case) if case.margin else None
    if margin_line is not None and MARGINS[margin_line - 1].takes == THRESHOLDS:
        case = replace(case, margin=False)  # training then keeps none
    line = _first(RULES, case)
    method = RULES[line - 1].takes
    if method == TEACHERS:
        method = "fair-shares" if case.margin else "pate"
    thresholds = not case.margin and margin_line is not None
    return Choice(
        method=method,
        line=line,
        margin_line=margin_line,
        counts=thresholds and case.counts,
        tightening=float(thresholds and not case.confident),
    )


def _first(rules: tuple[Rule, ...], case: Case) -> int:
    """Return the first line, counted from 1, that holds."""
    return next(i for i, rule in enumerate(rules, start=1) if rule.holds(case))


def counts_pay(asked: bool | None, budget: Budget | None) -> bool:
    """Whether noisy counts of scores were asked for or, where nobody said, the budget has room."""
    if asked is not None or budget is None:
        return bool(asked)
    return budget.mu >= LEAST_MU_FOR_COUNTS


def scales(schema: Schema | None) -> bool:
    """Whether a declared schema alone scales the columns: it bounds every number."""
    return schema is not None and all(
        column.bounds is not None for column in schema.columns if column.kind == "numeric"
    )


@dataclass(eq=False, repr=False)
class AutoClassifier(Arguments, ClassifierMixin, NestedValues):  # type: ignore[misc]  # untyped base
    """Train by the method that fits the case, chosen by public numbers and wishes alone.

    Which one that is, and why, stands in ``docs/choosing.md``, in ``choices_``, in the report and
    in the claim. A fitted model has all attributes and methods of the one that was chosen; saving
    writes that one, and :func:`evenhand.load` returns it.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    fairness : Notion, optional
        The margin. Default: none is kept.
    group_at_prediction : bool
        Whether a prediction may read the group. Two classes then have thresholds by group, set on
        the public rows and their groups, or on the calibration rows for a notion about true
        classes, which is the least error at a given gap; ``predict`` needs ``sensitive_features``.
    gradients : bool
        Whether a model may be trained by gradients of single records.
    protect : {"record", "attribute"}
        What is protected: the whole record, or the sensitive attribute alone.
    teachers : Teachers, classifier or callable, optional
        Teachers of a kind of your own, or votes of other owners (``OutsideVotes``): DP-SGD is then
        not chosen.
    public_fraction : float, optional
        Share of ``X`` to set aside as public rows, whose features the guarantee does not cover;
        nor their groups, where a margin is kept on them.
    unit : str
        What a ``unit_ids`` entry stands for.
    noise : Noise, optional
        Default: that of the method.
    score_counts : bool, optional
        Whether DP-SGD releases counts of its scores by group, for the thresholds; see
        ``DPSGDClassifier``. Default: where the group may be read, the groups of the private rows
        are known and the budget's mu is at least .25.
    schema, classes, random_state
        As for ``PATEClassifier``.

    Attributes
    ----------
    model_ : classifier
        The fitted model of the method that was chosen.
    choice_ : Choice
        Its name, and the line of the decision rule that decided.
    guarantee_, ledger_, choices_, classes_, ...
        Those of ``model_``.

    Privacy
    -------
    The choice reads which arguments are given, the notion and the declared columns, and no row.
    Neighbors, sensitivity and cost are those of the method that was chosen.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import Budget
    >>> X, y = make_classification(3000, random_state=0)
    >>> clf = AutoClassifier(Budget(epsilon=2.0, delta=1e-6))
    >>> clf = clf.fit(X[:2500], y[:2500], X_public=X[2500:])
    >>> type(clf.model_).__name__, clf.guarantee_.epsilon
    ('DPSGDClassifier', 2.0)
    """

    TAKES: ClassVar[tuple[str, ...]] = tuple(NOT_TAKEN)

    budget: Budget | None = None
    fairness: Notion | None = None
    _: KW_ONLY
    group_at_prediction: bool = False
    gradients: bool = True
    protect: str = "record"
    teachers: Any = None
    public_fraction: float | None = None
    unit: str = "person"
    noise: Noise | None = None
    score_counts: bool | None = None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: Any = None,
        X_public: Any = None,
        sensitive_features_public: Any = None,
        X_calibration: Any = None,
        y_calibration: ArrayLike | None = None,
        sensitive_features_calibration: Any = None,
        unit_ids: ArrayLike | None = None,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Choose a method, and train by it; arguments are those of every other classifier."""
        given = {
            "sensitive_features": sensitive_features,
            "X_public": X_public,
            "sensitive_features_public": sensitive_features_public,
            "X_calibration": X_calibration,
            "y_calibration": y_calibration,
            "sensitive_features_calibration": sensitive_features_calibration,
            "unit_ids": unit_ids,
            "ledger": ledger,
            "progress": progress,
        }
        self._check_arguments()
        known = self._classes(X, y)
        case = self._case(X, given, two_classes=len(known) == 2)
        choice = choose(case)
        if self.score_counts and not choice.counts:
            raise ValueError(
                "score_counts=True counts scores for thresholds by group, and here nothing would "
                "read the counts: it takes group_at_prediction=True, a margin, two classes, "
                "sensitive_features and DP-SGD, and no calibration rows. Leave it out."
            )
        model = self._estimator(choice, given)
        after = self._rows_after(X, given, case, choice)
        if after is not None:
            after.check(
                X,
                self.fairness,
                known,
                X_public=X_public,
                schema=self.schema,
                counted=choice.counts,
                private_groups=sensitive_features,
            )
        # Groups and progress may be given whatever the method reads; anything else is refused.
        spare = ["progress", "sensitive_features", "sensitive_features_public"]
        if after is not None and after.y is not None:
            given = {name: value for name, value in given.items() if name not in CALIBRATION}
        read = {k: given[k] for k in given if k in model.TAKES or k not in spare}
        model = choice.kept_in(model.fit(X, y, **read))
        if after is not None:
            model = after.around(model, self.fairness, choice.tightening)
        elif choice.thresholds:
            model = model.with_group_thresholds(
                fairness=self.fairness, tightening=choice.tightening
            )
        # Last: a fit that was refused leaves the one before as it was.
        self.model_, self.choice_ = model, choice
        return self

    def _check_arguments(self) -> None:
        """Refuse values that the choice would misread."""
        checked_budget(self.budget)
        fairness: object = self.fairness
        if not isinstance(fairness, Notion | None):
            require_notion(fairness, WAY_OUT)
        _checks.flag("group_at_prediction", self.group_at_prediction)
        _checks.flag("gradients", self.gradients)
        if self.score_counts is not None:
            _checks.flag("score_counts", self.score_counts)

    def _classes(self, X: Any, y: ArrayLike) -> Array:
        """Return the classes; none where a stream names the column that has them."""
        if not isinstance(X, ParquetRows):
            return coded_labels(self, y)[1]
        return np.zeros(0) if self.classes is None else np.unique(np.asarray(self.classes))

    def _rows_after(
        self, X: Any, given: Mapping[str, Any], case: Case, choice: Choice
    ) -> RowsAfter | None:
        """Return the rows that thresholds are set on; None where counts alone set them, or none."""
        if not choice.thresholds or (choice.counts and not case.public_groups):
            return None
        if case.of_true_classes and case.public_labels:
            rows, labels, groups = (given[name] for name in CALIBRATION)
            return RowsAfter(X=rows, groups=groups, y=labels)
        if given["X_public"] is not None:
            return RowsAfter(X=given["X_public"], groups=given["sensitive_features_public"])
        return RowsAfter(
            X=X, groups=given["sensitive_features"], public_fraction=self.public_fraction
        )

    def _case(self, X: Any, given: Mapping[str, Any], *, two_classes: bool) -> Case:
        fairness = self.fairness
        public = given["X_public"], given["sensitive_features_public"]
        if given["X_public"] is None:  # groups of all rows, of which some may be set aside
            public = self.public_fraction, given["sensitive_features"]
        return Case(
            protect=self.protect,
            several_owners=isinstance(self.teachers, OutsideVotes),
            gradients=self.gradients and self.teachers is None,
            units=given["unit_ids"] is not None,
            account=given["ledger"] is not None,
            streams=isinstance(X, ParquetRows),
            margin=fairness is not None,
            of_decisions_alone=fairness is None or fairness.name == DemographicParity.name,
            of_true_classes=getattr(fairness, "needs_labels", False),
            of_rates=fairness is None or isinstance(fairness, RateNotion),
            confident=getattr(fairness, "confidence", None) is not None,
            group_at_prediction=self.group_at_prediction,
            two_classes=two_classes,
            public_groups=all(known is not None for known in public),
            public_labels=calibration_given(given),
            private_groups=given["sensitive_features"] is not None,
            scaled=self._is_scaled(X, given["X_public"]),
            pays_for_counts=counts_pay(self.score_counts, self.budget),
        )

    def _is_scaled(self, X: Any, X_public: Any) -> bool:
        known = X_public is not None or self.public_fraction is not None
        return known or scales(self.schema) or may_be_pictures(X)

    def _estimator(self, choice: Choice, given: Mapping[str, Any]) -> Any:
        """Return the unfitted classifier of the method that was chosen."""
        spec, fairness = choice.spec, None if choice.thresholds else self.fairness
        if fairness is not None and spec.reference is not None:
            fairness = replace(fairness, reference=spec.reference)
        values = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        if spec.draws_rows and given["X_public"] is None and self.public_fraction is None:
            values["public"] = SYNTHETIC
        values |= {"fairness": fairness, "score_counts": choice.counts, **spec.fixed}
        takes = inspect.signature(spec.estimator).parameters
        return spec.estimator(**{k: v for k, v in values.items() if k in takes})

    def predict(
        self, X: Any, *, sensitive_features: Any = None, random_state: RandomState = None
    ) -> Array:
        """Predict class labels; with thresholds per group the group of every row is needed.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n, n_columns)
        sensitive_features : array-like or DataFrame, n rows, optional
        random_state : int, Generator or None
            Decides scores that equal a threshold.
        """
        check_is_fitted(self, "model_")
        if not self.model_.needs_group_at_prediction_:
            return np.asarray(self.model_.predict(X))
        return np.asarray(
            self.model_.predict(X, sensitive_features=sensitive_features, random_state=random_state)
        )

    @property
    def fitted_(self) -> FittedModel:
        """What the model tells of itself, as one value."""
        check_is_fitted(self, "model_")
        fitted: FittedModel = self.model_.fitted_
        return fitted

    def __getattr__(self, name: str) -> Any:
        """Return what the model that was chosen has: fitted attributes, and what it can do."""
        if name.startswith("__") or "model_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.model_, name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = not isinstance(self.noise, SeededNoise)
        return tags
