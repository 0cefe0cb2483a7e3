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
from evenhand.estimators.classifier import Arguments
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.inputs import NOT_TAKEN, Progress, may_be_pictures
from evenhand.estimators.nested import NestedValues
from evenhand.estimators.spec import MethodSpec
from evenhand.estimators.synthetic_rows import SYNTHETIC
from evenhand.fairness import DemographicParity
from evenhand.fairness.notion import Notion
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
        Whether training shall keep a margin.
    of_decisions_alone : bool
        Whether that margin is about decisions, and not about true classes too.
    private_groups : bool
        Whether the groups of the private rows are known.
    scaled : bool
        Whether public rows, or declared bounds, scale the columns.
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
    private_groups: bool = True
    scaled: bool = True

    def __post_init__(self) -> None:
        _checks.one_of("protect", self.protect, PROTECTED)


TEACHERS: Final = "teachers"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A line of the decision rule: where it holds, what is taken, and why.

    ``method`` is a method's name, or ``TEACHERS``: fair-shares under a margin, and pate without.
    """

    when: str
    method: str
    why: str
    holds: Callable[[Case], bool]


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        when="the sensitive attribute alone is to be protected",
        method="sf-student",
        why="features and labels are public then, and only the groups need noise",
        holds=lambda case: case.protect == "attribute",
    ),
    Rule(
        when="the records stay with several owners",
        method=TEACHERS,
        why="only votes leave an owner",
        holds=lambda case: case.several_owners,
    ),
    Rule(
        when="no gradients: trees, rules, vendors' models, people",
        method=TEACHERS,
        why="a teacher only has to vote",
        holds=lambda case: not case.gradients,
    ),
    Rule(
        when="a person, or another unit, may have several records",
        method=TEACHERS,
        why="all records of a unit go to one teacher, and DP-SGD protects a record",
        holds=lambda case: case.units,
    ),
    Rule(
        when="the run is charged to an account that other runs share",
        method=TEACHERS,
        why="the cost of DP-SGD is known at one delta, and adds up with no other",
        holds=lambda case: case.account,
    ),
    Rule(
        when="the rows stream from files",
        method=TEACHERS,
        why="DP-SGD reads its rows in memory",
        holds=lambda case: case.streams,
    ),
    Rule(
        when="the margin in training is about true classes",
        method=TEACHERS,
        why="DP-SGD pulls rates of decisions together, and of nothing else",
        holds=lambda case: case.margin and not case.of_decisions_alone,
    ),
    Rule(
        when="training shall keep a margin, and the groups of the private rows are not known",
        method=TEACHERS,
        why="their student keeps the margin by the groups of the public rows",
        holds=lambda case: case.margin and not case.private_groups,
    ),
    Rule(
        when="neither public rows nor declared bounds scale the columns",
        method=TEACHERS,
        why="they are asked about rows that are drawn from noisy counts",
        holds=lambda case: not case.scaled,
    ),
    Rule(
        when="something is asked for that only teachers have",
        method=TEACHERS,
        why="DP-SGD would not read it",
        holds=lambda case: case.for_teachers,
    ),
    Rule(
        when="otherwise",
        method="dpsgd",
        why="one owner, a record for each person: it is more accurate at the same epsilon",
        holds=lambda case: True,
    ),
)
"""The decision rule: the first line that holds decides. ``docs/choosing.md`` shows it."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The method that was chosen, and the line of ``RULES`` (from 1) that decided."""

    method: str
    line: int

    @property
    def rule(self) -> Rule:
        """The line that decided."""
        return RULES[self.line - 1]

    @property
    def spec(self) -> MethodSpec:
        """The record of the method."""
        return METHODS[self.method]

    @property
    def said(self) -> str:
        """The choice in a sentence, for people."""
        when = "" if self.rule.when == "otherwise" else f"{self.rule.when}; "
        return (
            f"Method {self.method}, chosen by public numbers and wishes alone: "
            f"{when}{self.rule.why}."
        )

    def kept_in(self, model: Any) -> Any:
        """Write the choice down in a fitted model and its claim, and return it."""
        public = f"the choice of the method {self.method}, made without any private row"
        model.choices_ = (self.said, *model.choices_)
        claim = model.guarantee_
        model.guarantee_ = replace(claim, public=(*claim.public, public))
        model._fitted = model._describe()
        return model


def choose(case: Case) -> Choice:
    """Return the method for a case, by the first of ``RULES`` that holds.

    Examples
    --------
    >>> choose(Case()).method, choose(Case(units=True)).method
    ('dpsgd', 'fair-shares')
    >>> choose(Case(units=True, margin=False)).method
    'pate'
    """
    line, rule = next((i, rule) for i, rule in enumerate(RULES, start=1) if rule.holds(case))
    of_teachers = "fair-shares" if case.margin else "pate"
    return Choice(method=of_teachers if rule.method == TEACHERS else rule.method, line=line)


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
        Whether a prediction may read the group. Two classes then have one threshold per group, set
        on the public rows and their groups, which is the least error at a given gap;
        ``predict`` needs ``sensitive_features``.
    gradients : bool
        Whether a model may be trained by gradients of single records.
    protect : {"record", "attribute"}
        What is protected: the whole record, or the sensitive attribute alone.
    teachers : Teachers, classifier or callable, optional
        Teachers of a kind of your own, or votes of other owners (``OutsideVotes``): DP-SGD is then
        not chosen.
    public_fraction : float, optional
        Share of ``X`` to set aside as public rows, whose features the guarantee does not cover.
    unit : str
        What a ``unit_ids`` entry stands for.
    noise : Noise, optional
        Default: that of the method.
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
        after = self._thresholds_after(y, given)
        choice = choose(self._case(X, given, after=after))
        model = self._estimator(choice, given, margin=not after)
        # Groups and progress may be given whatever the method reads; anything else is refused.
        spare = ("progress", "sensitive_features", "sensitive_features_public")
        read = {k: v for k, v in given.items() if k in model.TAKES or k not in spare}
        model = choice.kept_in(model.fit(X, y, **read))
        if after:
            model = model.with_group_thresholds(
                X_public, sensitive_features_public, fairness=self.fairness
            )
        self.model_, self.choice_ = model, choice
        return self

    def _thresholds_after(self, y: ArrayLike, given: Mapping[str, Any]) -> bool:
        """Whether the margin is kept by one threshold per group, around the fitted model."""
        public = (given["X_public"], given["sensitive_features_public"])
        if not (self.group_at_prediction and isinstance(self.fairness, DemographicParity)):
            return False
        if self.protect != "record" or any(rows is None for rows in public):
            return False
        classes = y if self.classes is None else self.classes
        return not isinstance(classes, str) and len(np.unique(np.asarray(classes))) == 2

    def _case(self, X: Any, given: Mapping[str, Any], *, after: bool) -> Case:
        fairness = None if after else self.fairness
        return Case(
            protect=self.protect,
            several_owners=isinstance(self.teachers, OutsideVotes),
            gradients=self.gradients and self.teachers is None,
            units=given["unit_ids"] is not None,
            account=given["ledger"] is not None,
            streams=isinstance(X, ParquetRows),
            for_teachers=given["X_calibration"] is not None
            or getattr(fairness, "confidence", None) is not None,
            margin=fairness is not None,
            of_decisions_alone=fairness is None or fairness.name == DemographicParity.name,
            private_groups=given["sensitive_features"] is not None,
            scaled=self._is_scaled(X, given["X_public"]),
        )

    def _is_scaled(self, X: Any, X_public: Any) -> bool:
        known = X_public is not None or self.public_fraction is not None
        return known or scales(self.schema) or may_be_pictures(X)

    def _estimator(self, choice: Choice, given: Mapping[str, Any], *, margin: bool) -> Any:
        """Return the unfitted classifier of the method that was chosen."""
        spec, fairness = choice.spec, self.fairness if margin else None
        if fairness is not None and spec.reference is not None:
            fairness = replace(fairness, reference=spec.reference)
        values = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        if spec.draws_rows and given["X_public"] is None and self.public_fraction is None:
            values["public"] = SYNTHETIC
        values |= {"fairness": fairness, **spec.fixed}
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
