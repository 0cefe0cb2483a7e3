"""The classifier that trains by whichever method ``choosing`` names."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from evenhand import _checks
from evenhand.datasets.parquet import ParquetRows
from evenhand.estimators.choosing import Case, Choice, choose, counts_pay, only_of_teachers, scales
from evenhand.estimators.classifier import Arguments, checked_budget
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.given_rows import coded_labels, may_be_pictures
from evenhand.estimators.inputs import NOT_TAKEN, Progress, calibration_given
from evenhand.estimators.nested import NestedValues
from evenhand.estimators.rows_after import WAY_OUT, RowsAfter
from evenhand.estimators.scored_by_group import ScoredByGroup
from evenhand.estimators.spec import CALIBRATION
from evenhand.estimators.synthetic_rows import SYNTHETIC
from evenhand.fairness import DemographicParity
from evenhand.fairness.notion import Notion, RateNotion
from evenhand.fairness.notions import require_notion
from evenhand.privacy import Budget, Ledger, SeededNoise
from evenhand.privacy.noise import Noise
from evenhand.teachers import OutsideVotes
from evenhand.teachers.partition import NEIGHBORS
from evenhand.typing import Array, ArrayLike, FloatArray, RandomState


def _gives_probabilities(model: Any) -> bool:
    """Whether the model that was chosen does; before ``fit`` nobody can say that it will not."""
    return "model_" not in vars(model) or hasattr(model.model_, "predict_proba")


@dataclass(eq=False, repr=False)
class AutoClassifier(ScoredByGroup, Arguments, ClassifierMixin, NestedValues):  # type: ignore[misc]  # untyped base
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
    neighbors : {"replace one", "add or remove one"}, optional
        As for ``PATEClassifier``. Teachers are taken for "replace one": the claim of DP-SGD is
        about the other. Default: as the method has it.
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
    neighbors: str | None = None
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
        if self.neighbors is not None:
            _checks.one_of("neighbors", self.neighbors, NEIGHBORS)  # not every method reads it
        if self.neighbors is not None and self.protect == "attribute":
            raise ValueError(
                f"neighbors={self.neighbors!r} is about whole records, and protect='attribute' "
                f"about a change of one group label alone. Leave one of them out."
            )
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
        if choice.thresholds and case.public_labels and not case.of_true_classes:
            raise ValueError(
                f"{type(self.fairness).__name__} is about predictions alone, so calibration rows "
                f"would not be read. Leave them out, or take a notion about true classes: "
                f"EqualizedOdds(margin=0.05)."
            )
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
            for_teachers=self.neighbors is not None
            and bool(only_of_teachers({"neighbors": self.neighbors})),
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

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, **groups: Any) -> FloatArray:
        """Predict class probabilities, shape (n, n_classes), by the model that was chosen."""
        check_is_fitted(self, "model_")
        probabilities: FloatArray = self.model_.predict_proba(X, **groups)
        return probabilities

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
