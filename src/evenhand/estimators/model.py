"""What every fitted classifier with a claim tells of itself, decides, and can be made into."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from evenhand.datasets import PublicEncoder
from evenhand.datasets.features.extraction import extractor_of
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators.blind_rule import ruled
from evenhand.estimators.fair_tuned import tuned
from evenhand.estimators.fitted import FittedModel, columns_of
from evenhand.estimators.given_rows import checked_features, encoded_to_decide
from evenhand.estimators.group_thresholds import GroupThresholdClassifier
from evenhand.estimators.margins import StudentMargin
from evenhand.estimators.nested import NestedValues
from evenhand.estimators.reject_option import RejectOptionClassifier
from evenhand.estimators.saving import model_folder
from evenhand.fairness import DemographicParity, FairnessKind
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import RateNotion
from evenhand.privacy import Guarantee
from evenhand.students.decisions import decisions
from evenhand.students.score_counts import NO_COUNTS
from evenhand.students.small_groups import Held
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray


def _gives_probabilities(model: Any) -> bool:
    """Whether the student does; before ``fit``, whether the one that was asked for would."""
    asked = (vars(model).get(name) for name in ("student", "learner"))
    student = vars(model).get("student_", next((one for one in asked if one is not None), None))
    return student is None or hasattr(student, "predict_proba")


class ModelWithClaim(ClassifierMixin, NestedValues):  # type: ignore[misc]  # untyped base
    """Base of the fitted side of all classifiers that say what they promise."""

    NUMBERS: ClassVar[tuple[str, ...]] = ()
    """Attributes that ``fit`` sets beside those below: released numbers, kept in a folder."""

    fairness: Any = None
    mechanism_: Any = None
    """What drew the noise; None where there was none, and after loading: the ledger names it."""
    student_margin_: StudentMargin | None = None
    """How the student stands to its margin; None where it was not bound."""
    score_counts_: FloatArray = NO_COUNTS
    """Noisy counts of the private rows' scores by group and range, where they were released; else
    empty. Shape (n_groups, 20).
    """
    score_noise_: float = 0.0
    """Standard deviation of the noise on each of them."""
    extractor_: ExtractorRecord | None = None
    """The extractor whose features of pictures the model reads; None for other rows."""
    rows_set_aside_: IntArray | None = None
    """Which rows of ``X`` ``public_fraction`` set aside as public: where a rule can be set on them
    and their groups, which are then given away too. Left out of a folder and of a pickle.
    """
    choices_: tuple[str, ...] = ()
    """What was chosen where an argument was left out, and why. Public numbers only."""
    student_: Any
    """The model that leaves; it reads encoded rows."""
    student_without_margin_: Any = None
    """The same student without its margin, from the same released answers; see ``without_margin``.
    """
    ledger_: Any
    """What was spent on what; None where there was nothing to spend."""
    groups_: tuple[str, ...] | None
    """The groups that ``fit`` read."""
    fairness_kind_: FairnessKind
    """Where the margin sits, if there is one."""
    encoder_: PublicEncoder | PixelEncoder
    classes_: Array
    """Shape (n_classes,)."""
    n_features_in_: int
    guarantee_: Guarantee
    """The claim; ``str()`` is one sentence."""
    _fitted: FittedModel

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "rows_set_aside_"}

    def _copied(self) -> Self:
        """Return a copy that knows, unlike a pickle, which rows were set aside."""
        model = copy.copy(self)
        model.rows_set_aside_ = self.rows_set_aside_
        return model

    @property
    def needs_group_at_prediction_(self) -> bool:
        """Whether ``predict`` needs the group of each row."""
        return self.fairness_kind_.needs_group

    @property
    def bound_(self) -> bool:
        """Whether the margin was a constraint on the student."""
        return self.student_margin_ is not None

    @property
    def within_margin_(self) -> bool | None:
        """Whether the student is within its margin; None where nobody looked, or noise hides it."""
        return None if self.student_margin_ is None else self.student_margin_.met

    @property
    def public_gap_(self) -> float:
        """The student's gap where its margin is read; NaN where nobody looked."""
        return float("nan") if self.student_margin_ is None else self.student_margin_.gap

    @property
    def margin_supported_(self) -> float:
        """Least margin that holds on new rows at the notion's confidence; NaN without one.

        The upper limit of the gap on rows that the student was not fitted on, or the margin that
        was asked for if that is wider.
        """
        held = self.student_margin_
        return float("nan") if held is None or held.supported is None else held.supported

    @property
    def margin_source_(self) -> str | None:
        """Where the student's margin is read; None where it was not bound."""
        return None if self.student_margin_ is None else self.student_margin_.source

    @property
    def calibration_gap_(self) -> Estimate | None:
        """The student's gap on the calibration rows, with its interval."""
        return None if self.student_margin_ is None else self.student_margin_.calibration

    @property
    def held_(self) -> Held | None:
        """The groups that are held to an interval wider than the margin; None without any."""
        return None if self.student_margin_ is None else self.student_margin_.held

    @property
    def fitted_(self) -> FittedModel:
        """What this model tells of itself, as one value: as it was when ``fit`` ended."""
        check_is_fitted(self, "_fitted")
        return self._fitted

    def _describe(self) -> FittedModel:
        """Collect what this model tells of itself, at the end of ``fit``."""
        notion, margin = self._aim()
        return FittedModel(
            method=type(self).__name__,
            arguments=self.get_params(deep=False),
            classes=self.classes_,
            groups=self.groups_,
            columns=columns_of(self),
            n_columns=int(self.n_features_in_),
            guarantee=self.guarantee_,
            ledger=self.ledger_,
            kind=self.fairness_kind_,
            fairness=self.fairness,
            notion=notion,
            margin=margin,
            student_margin=self.student_margin_,
            mechanism=None if self.mechanism_ is None else repr(self.mechanism_),
            numbers={name: getattr(self, name) for name in self.NUMBERS},
            choices=self.choices_,
            extractor=self.extractor_,
            encoder=self.encoder_,
            student=self.student_,
            without_margin=self.student_without_margin_,
        )

    def _aim(self) -> tuple[str | None, float | None]:
        """Return what is compared between the groups, and how far apart they may be."""
        if self.student_margin_ is not None:
            return self.student_margin_.notion.name, float(self.student_margin_.notion.margin)
        if self.fairness is None:
            return None, None
        return self.fairness.name, float(self.fairness.margin)

    def _restore(self, fitted: FittedModel) -> None:
        """Become a fitted model by what a folder kept of one: the way back from ``fitted_``."""
        self._take(fitted)
        self._fitted = self._describe()

    def _take(self, fitted: FittedModel) -> None:
        """Set the fitted attributes."""
        self.classes_, self.groups_ = fitted.classes, fitted.groups
        self.n_features_in_ = fitted.n_columns
        if fitted.columns:
            self.feature_names_in_ = np.array(fitted.columns, dtype=object)
        self.guarantee_, self.ledger_ = fitted.guarantee, fitted.ledger
        self.fairness_kind_ = fitted.kind
        self.student_margin_ = fitted.student_margin
        self.extractor_, self.choices_ = fitted.extractor, fitted.choices
        for name in self.NUMBERS:
            # A folder of before there were counts of scores has none, and neither has its model.
            if name in fitted.numbers or not hasattr(type(self), name):
                setattr(self, name, fitted.numbers[name])
        assert fitted.encoder is not None
        self.encoder_, self.student_ = fitted.encoder, fitted.student
        self.student_without_margin_ = fitted.without_margin

    def predict(self, X: Any) -> Array:
        """Predict class labels with the student; no group is needed.

        Parameters
        ----------
        X : DataFrame or array-like, shape (n, n_columns)
            The columns seen in ``fit``. Missing values and categories never seen are allowed.

        Returns
        -------
        ndarray, shape (n,)

        Privacy
        -------
        Free: the student was made from released answers and public rows (post-processing).
        """
        encoded = self._encode(X)
        labels: Array = self.classes_[decisions(self.student_, encoded)]
        return labels

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities with the student, shape (n, n_classes).

        A class that no answer carried has a probability near 0.
        """
        encoded = self._encode(X)
        out = np.zeros((len(encoded), len(self.classes_)))
        out[:, self.student_.classes_.astype(np.int64)] = self.student_.predict_proba(encoded)
        return out

    def without_margin(self) -> Self:
        """Return this model with its student as it would be without a margin: a yardstick.

        Raises
        ------
        ValueError
            If the margin was not a constraint of a linear student; another fit would be needed.

        Privacy
        -------
        Free: made from the same released answers (post-processing).
        """
        check_is_fitted(self, "student_")
        if self.student_without_margin_ is None:
            raise ValueError(
                "This model has no student without a margin beside it: the margin was no "
                "constraint of a linear student. Train PATEClassifier, which is a release of its "
                "own."
            )
        model = self._copied()
        model._drop_margin()
        model._fitted = model._describe()
        return model

    def _drop_margin(self) -> None:
        """Take the student without a margin in the place of the other."""
        self.student_, self.student_without_margin_ = self.student_without_margin_, None
        self.student_margin_ = None
        self.fairness_kind_ = FairnessKind.NONE

    def with_reject_option(
        self,
        margin: float | None = None,
        *,
        groups: Sequence[str] | None = None,
        reference: str | None = None,
        cold_start: int | None = None,
        threshold: float | None = None,
        fairness: RateNotion | Sequence[RateNotion] | None = None,
        **calibration: Any,
    ) -> RejectOptionClassifier:
        """Return this model with a reject option that keeps its *given labels* within a margin.

        Parameters
        ----------
        margin, groups, cold_start, threshold
            As for ``RejectOptionClassifier``. ``groups`` default to those of ``fit``.
        reference : {"rest", "pairwise", "overall"}, optional
            Of ``margin``. Default: that of the notion that the model was fitted with, else
            ``"rest"``.
        fairness : RateNotion or sequence of RateNotion, optional
            In place of ``margin``: any notion, or several that are all kept.
        **calibration
            ``X_calibration``, ``y_calibration``, ``sensitive_features_calibration``, ``level`` and
            ``admit_by`` for notions about true classes, and ``unknown_group``: as for
            ``RejectOptionClassifier``.

        Privacy
        -------
        Free (post-processing). It protects the training records, not the people asked about, nor
        the calibration rows.
        """
        check_is_fitted(self, "student_")
        if reference is None:
            own = None if fairness is not None else self.fairness
            reference = "rest" if own is None else own.reference
        return RejectOptionClassifier(
            self,
            margin,
            groups=groups,
            reference=reference,
            cold_start=cold_start,
            threshold=threshold,
            fairness=fairness,
            **calibration,
        )

    def with_group_thresholds(
        self,
        X_public: Any = None,
        sensitive_features_public: Any = None,
        *,
        fairness: RateNotion,
        y_public: ArrayLike | None = None,
        tightening: float = 0.0,
    ) -> GroupThresholdClassifier:
        """Return this model with thresholds by group, set on public rows; for two classes.

        Among all decisions by the model's probability and the group these have the least error, as
        the probabilities expect it, within the margin. Of equalized odds some lie between two
        thresholds of a group, and are drawn there.

        Parameters
        ----------
        X_public : DataFrame or array-like, shape (n_public, n_columns), optional
        sensitive_features_public : array-like or DataFrame, n_public rows, optional
            Needed, save of a model that released counts of its scores
            (``DPSGDClassifier(score_counts=True)``): these then stand beside them, or in their
            place, for all notions but those whose true classes ``y_public`` gives.
        fairness : RateNotion
            The margin that the decisions on these rows keep, in expectation; with ``confidence``,
            on rows that the thresholds were not set on.
        y_public : array-like, shape (n_public,), optional
            Their true classes, for a notion about these. They become public: the claim lists them.
            Default: rates among true classes are those that the model's own probabilities expect,
            which the claim says.
        tightening : float
            Standard errors of the gap, as these rows are a sample, by which thresholds are set
            inside the margin, at most to a gap of 0. Without it every second model whose margin
            binds is beyond it in the population; with 1 about one in six, where the margin is
            wider than that error. Of more than two groups each difference is held inside by its
            own error, and a group too small to tell the margin is named in a
            ``MarginNotSupported`` warning. Not with ``confidence``, which chooses it by held-out
            rows.

        Returns
        -------
        GroupThresholdClassifier
            Needs the group of each row at prediction.

        Privacy
        -------
        Free: reads the released model, counts that were released with it, and public rows with
        what is public of them (post-processing). Rows of the private table are not such rows.
        """
        check_is_fitted(self, "student_")
        return GroupThresholdClassifier.on_public_rows(
            self, X_public, sensitive_features_public, fairness, y_public, tightening
        )

    def with_blind_rule(
        self,
        X_public: Any,
        sensitive_features_public: Any,
        *,
        fairness: RateNotion,
        y_public: ArrayLike | None = None,
        groups: Any = None,
        randomised: bool = False,
    ) -> Self:
        """Return this model with the best decisions within a margin that never read the group.

        Parameters
        ----------
        X_public : DataFrame or array-like, shape (n_public, n_columns)
        sensitive_features_public : array-like or DataFrame, n_public rows
        fairness : RateNotion
            The margin that the decisions on these rows keep; with ``confidence``, on rows that the
            rule was not set on.
        y_public : array-like, shape (n_public,), optional
            Their true classes. Needed by notions about these; for others they recalibrate the
            model's probabilities. They become public: the claim lists them.
        groups, randomised
            As for :class:`~evenhand.estimators.blind_rule.BlindRuleClassifier`.

        Returns
        -------
        a copy of this model
            Its student is the rule, and ``student_margin_`` says how that stands to the margin. It
            needs no group to predict; ``without_margin()`` is this model.

        Privacy
        -------
        Free: reads the released model, and public rows with what is public of them
        (post-processing). Rows of the private table are not such rows.
        """
        check_is_fitted(self, "student_")
        model: Self = ruled(
            self,
            X_public,
            sensitive_features_public,
            fairness,
            y_public=y_public,
            groups=groups,
            randomised=randomised,
        )
        return model

    def fair_tuned(
        self,
        X_public: Any,
        y_public: ArrayLike,
        sensitive_features_public: Any,
        *,
        fairness: DemographicParity,
        weight: float | None = None,
    ) -> Self:
        """Return this model with its student tuned on *labelled* public rows (FairPATE, App. D).

        Of a network, the last layer is tuned; what this layer reads of a row stays as it is.

        Parameters
        ----------
        X_public : DataFrame or array-like, shape (n_public, n_columns)
        y_public : array-like, shape (n_public,)
            Their true classes, none missing. They become public: the claim lists them.
        sensitive_features_public : array-like or DataFrame, n_public rows
        fairness : DemographicParity
            The margin for the decisions on these rows.
        weight : float, optional
            Of the penalty ``max(0, gap - margin)``. Default: the smallest found that is enough.

        Returns
        -------
        a copy of this model
            With ``tuning_weight_``, and ``public_gap_`` and ``within_margin_`` of these rows. It
            needs no group to predict.

        Privacy
        -------
        Free: reads the released student, and rows whose labels are public too (post-processing).
        Rows of the private table are not such rows.
        """
        check_is_fitted(self, "student_")
        model: Self = tuned(self, X_public, y_public, sensitive_features_public, fairness, weight)
        return model

    def save(self, path: str | Path, *, sign: str | Path | None = None) -> Path:
        """Write the model to a new folder without pickle; see :func:`evenhand.load`.

        Parameters
        ----------
        path : path
        sign : path, optional
            PEM file of a private Ed25519 key, to sign the folder with.
        """
        check_is_fitted(self, "student_")
        return model_folder.save(self, Path(path), sign)

    def _encode(self, X: Any, name: str = "X") -> FloatArray:
        check_is_fitted(self, "student_")
        made_by = extractor_of(X)
        if made_by is not None and made_by != self.extractor_:
            known = self.extractor_
            raise ValueError(
                f"{name} was made by {made_by}, and the model was fitted on other features: "
                f"{'of no extractor that it knows' if known is None else f'those of {known}'}. Use "
                f"that extractor; or, if the model was fitted on the bare array, pass "
                f"np.asarray(features)."
            )
        rows = checked_features(self, X, reset=False, name=name)
        encoded: FloatArray = encoded_to_decide(self.encoder_, rows)
        return encoded
