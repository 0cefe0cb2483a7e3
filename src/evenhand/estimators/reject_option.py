"""Any fitted classifier with a reject option that keeps its answers within a fairness margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from evenhand import _checks
from evenhand._frames import refuse_other_order
from evenhand.estimators.calibration import public_calibration, warn_of_wide_limits
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.given_rows import class_codes
from evenhand.estimators.saving.fingerprint import fingerprint
from evenhand.estimators.spec import CALIBRATION
from evenhand.fairness import DemographicParity, FairnessKind, RejectOption
from evenhand.fairness.gate import StateFile
from evenhand.fairness.gate.calibrated import GateCalibration
from evenhand.fairness.gate.gate import notions_of
from evenhand.fairness.groups import encode_groups, known_or_not
from evenhand.fairness.labels import refuse_rejected
from evenhand.fairness.notion import RateNotion
from evenhand.fairness.notions import require_notion
from evenhand.fairness.tally import JointTally
from evenhand.fairness.trace import Coverage
from evenhand.typing import REJECTED, Array, ArrayLike, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class RejectOptionResult:
    """What became of the rows of one call, in their order."""

    labels: Array
    """Class labels, ``REJECTED`` (-1) where none was given. Whole numbers stay whole numbers;
    labels of another kind (text, booleans) come in an array of objects. Shape (n,).
    """
    reasons: IntArray
    """A ``Verdict`` for each row. Shape (n,)."""
    ids: IntArray
    """Number of each request, by which ``deliver`` names it. Shape (n,)."""
    n_released: int
    """Answers to rows of earlier calls that wait to be fetched with ``deliver``."""
    coverage: Coverage
    """Labels said and labels given per group and class, since the counts began."""

    @property
    def answered(self) -> BoolArray:
        """Mask of the rows that carry a label."""
        mask: BoolArray = self.reasons == 0
        return mask


class RejectOptionClassifier:
    """Give a fitted classifier's labels, or REJECTED, within a margin over all given labels.

    It is no scikit-learn estimator: it has no ``fit``, and its ``predict`` remembers, because what
    it may give depends on what it gave. It can be shared by threads.

    Parameters
    ----------
    estimator : fitted classifier
        Anything with ``predict``, ``predict_proba`` or both.
    margin : float, optional
        Largest allowed difference of two groups' rates among the given labels, in [0, 1]: the
        margin of demographic parity.
    fairness : RateNotion or sequence of RateNotion, optional
        In place of ``margin``: any notion of decisions, or several that are all kept.
    reference : {"rest", "pairwise", "overall"}
        What a group's rate is compared with, see ``DemographicParity``; with ``margin`` alone.
    cold_start : int, optional
        Labels of a late group that are withheld before a block of them may be given. Default: 50,
        or ``2 / margin`` where that is more, and until this block, and every group that it is
        compared with, has ``1 / (2 margin) - 1`` of them: with fewer the gate can close for good.
    groups : sequence of str, optional
        Every group that may come, as ``encode_groups`` names them. Default: ``estimator.groups_``.
    classes : array-like, optional
        Every class that may come. Default: ``estimator.classes_``.
    threshold : float, optional
        Also refuse a label when the largest probability is below this, in [0, 1]. Default: none.
    model_id : str, optional
        Name of the model in saved states. Default: a checksum of its parameters.
    X_calibration, y_calibration, sensitive_features_calibration : optional
        Labelled rows of the population that will be asked about, with their groups: what the model
        says of them tells what is true behind its labels. Needed by notions about true classes.
        They are taken as public: refusals and gaps tell of their labels.
    level : float, default 0.95
        Confidence, over these rows, of the limit of a gap about true classes.
    admit_by : {"limit", "estimate"}
        What of such a gap must be within the margin, see ``GateCalibration``.
    unknown_group : {"error", "refuse"}
        What becomes of a row whose group is none of ``groups``, or is missing: an error, or a
        refusal of its own (``Verdict.UNKNOWN_GROUP``) that is counted by itself.

    Attributes
    ----------
    coverage_ : Coverage
        Labels said and labels given per group and class.
    gap_ : float
        Largest difference of rates in the given set; about true classes what is held within the
        margin, of several margins the one that is nearest to its own.
    gaps_ : dict of str to float
        The gap by each notion.
    unknown_ : dict
        Rows of unknown groups by the class that the model said.

    Privacy
    -------
    Post-processing of a released model: the guarantee about the *training* records stands as it
    is. Calibration rows are not protected, and the claim takes them as public. People asked about
    are not protected by it: an answer is about them, depends on who came before them, and with two
    classes a refusal tells whoever knows the counts their label.

    References
    ----------
    Yaghini et al. 2024, "Learning to Walk Impartially on the Pareto Frontier of Fairness, Privacy,
    and Utility", section 4.3; what differs and why: ``docs/reject-option.md``.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier(strategy="constant", constant="yes").fit([[0], [0]], ["no", "yes"])
    >>> option = RejectOptionClassifier(model, margin=0.1, groups=["F", "M"], cold_start=2)
    >>> option.predict([[0], [0], [0]], sensitive_features=["F", "M", "F"])
    array(['yes', -1, 'yes'], dtype=object)
    >>> option.predict([[0]], sensitive_features=["M"])
    array(['yes'], dtype=object)
    >>> option.deliver()
    {1: 'yes'}
    """

    def __init__(
        self,
        estimator: Any,
        margin: float | None = None,
        *,
        fairness: RateNotion | Sequence[RateNotion] | None = None,
        reference: str = "rest",
        cold_start: int | None = None,
        groups: Sequence[str] | None = None,
        classes: ArrayLike | None = None,
        threshold: float | None = None,
        model_id: str | None = None,
        X_calibration: Any = None,
        y_calibration: ArrayLike | None = None,
        sensitive_features_calibration: Any = None,
        level: float = 0.95,
        admit_by: str = "limit",
        unknown_group: str = "error",
    ) -> None:
        fitted = FittedModel.of(estimator)
        if fitted.needs_group:
            raise ValueError(
                f"{type(estimator).__name__} needs the group of each row to predict, and keeps a "
                f"margin by it already. Put the reject option around the model inside it: "
                f"model.model_.with_reject_option(...)."
            )
        self.estimator = estimator
        self.threshold = _checked_threshold(estimator, threshold)
        self.classes_ = _checked_classes(fitted, classes)
        self.groups_ = _checked_groups(fitted, groups)
        self._codes = {label: code for code, label in enumerate(self.classes_.tolist())}
        self.unknown_group = _checks.one_of("unknown_group", unknown_group, ("error", "refuse"))
        notions = _checked_notions(margin, fairness, reference)
        rows = (X_calibration, y_calibration, sensitive_features_calibration)
        self._option = RejectOption(
            notions,
            self.groups_,
            [str(label) for label in self.classes_.tolist()],
            calibration=self._calibrated(notions, rows, level, admit_by),
            cold_start=cold_start,
            model=fingerprint(estimator) if model_id is None else model_id,
        )
        self._file: StateFile | None = None
        self.fairness_kind_ = FairnessKind.REJECT_OPTION

    @property
    def fitted_(self) -> FittedModel:
        """What this model tells of itself, as one value."""
        inside, known = FittedModel.of(self.estimator), self._option.calibration
        claim = inside.guarantee
        if known is not None:  # what is refused, and how wide a gap is, tells of their labels
            said = public_calibration(int(known.labelled.counts.sum()))
            claim = replace(claim, public=(*claim.public, said))
        return replace(
            inside,
            method=type(self).__name__,
            guarantee=claim,
            classes=self.classes_,
            groups=self.groups_,
            kind=self.fairness_kind_,
            notion=" and ".join(notion.name for notion in self._option.notions),
            margin=self.margin,
            calibration=known,
            inside=inside,
        )

    @property
    def needs_group_at_prediction_(self) -> bool:
        """True: ``predict`` needs the group of each row."""
        return self.fairness_kind_.needs_group

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Array:
        """Give labels or REJECTED (-1) for rows, one after the other in their order.

        Parameters
        ----------
        X : what the classifier predicts on, n rows
        sensitive_features : array-like or DataFrame, n rows
            Groups of the rows.

        Returns
        -------
        ndarray, shape (n,)
            Whole numbers for whole-number labels; else objects, as for ``RejectOptionResult``.
            Compare with ``labels == REJECTED``.
        """
        return self.decide(X, sensitive_features=sensitive_features).labels

    def decide(self, X: Any, *, sensitive_features: Any = None) -> RejectOptionResult:
        """Like ``predict``, with the reason for every row. Nothing is counted if this raises."""
        if sensitive_features is None:
            raise ValueError(
                "sensitive_features is missing: a margin between groups cannot be kept without "
                "the group of every row. Pass sensitive_features=, one value per row."
            )
        refuse_other_order(X=X, sensitive_features=sensitive_features)
        if self.unknown_group == "refuse":
            groups = known_or_not(sensitive_features, self.groups_)
        else:
            groups = encode_groups(sensitive_features, names=self.groups_).codes
        labels, sure = self.said(X)
        _checks.same_length(X=labels, sensitive_features=groups)
        decisions = self._option.decide(labels, groups, sure=sure)
        return RejectOptionResult(
            labels=self._named(decisions.labels),
            reasons=decisions.reasons,
            ids=decisions.ids,
            n_released=decisions.n_released,
            coverage=self._option.coverage,
        )

    def said(self, X: Any) -> tuple[IntArray, BoolArray]:
        """Return the codes of what the classifier says of rows, and whether it is sure; no count.

        Returns
        -------
        labels : ndarray of int64, shape (n,)
            Positions in ``classes_``.
        sure : ndarray of bool, shape (n,)
            Whether the largest probability reaches ``threshold``; True without one.
        """
        labels, largest = self._labels(X)
        if self.threshold is None:
            return labels, np.ones(len(labels), dtype=np.bool_)
        return labels, largest >= self.threshold

    def deliver(self) -> dict[int, Any]:
        """Return labels of earlier rejected requests that are answered now, by their number.

        They count as given: hand them out. Each is returned once.
        """
        ids, labels = self._option.deliver()
        return dict(zip(ids.tolist(), self._named(labels).tolist(), strict=True))

    @property
    def reject_option_(self) -> RejectOption:
        """The counts and the rule, on codes; a person's decision is recorded with its ``review``.

        Codes of groups and classes are positions in ``groups_`` and ``classes_``.
        """
        return self._option

    @property
    def coverage_(self) -> Coverage:
        """Labels said and labels given per group and class, since the counts began."""
        return self._option.coverage

    @property
    def gap_(self) -> float:
        """Largest difference of rates in the given set now; 0.0 with fewer than two groups."""
        return self._option.gap

    @property
    def gaps_(self) -> dict[str, float]:
        """The gap by each notion, by its name and what a group is compared with."""
        return self._option.gaps

    @property
    def unknown_(self) -> dict[Any, int]:
        """How many rows of unknown groups there were, by the class that the model said."""
        counts = self._option.unknown.tolist()
        return {k: n for k, n in zip(self.classes_.tolist(), counts, strict=True) if n}

    def _calibrated(
        self,
        notions: Sequence[RateNotion],
        rows: tuple[Any, Any, Any],
        level: float,
        admit_by: str,
    ) -> GateCalibration | None:
        """Count what the model says of calibration rows; unsure labels are refused, and left out.

        Raises
        ------
        ValueError
            If rows are needed and missing, or given and of no use.
        """
        absent = [name for name, value in zip(CALIBRATION, rows, strict=True) if value is None]
        about = " and ".join(type(one).__name__ for one in notions if one.needs_labels)
        if not about:
            if len(absent) < len(rows):
                raise ValueError(
                    "Calibration rows tell of true classes, and the margin is about predictions "
                    "alone. Leave them out, or name another notion: fairness=."
                )
            return None
        if absent:
            raise ValueError(
                f"{about} is about true classes, and {' and '.join(absent)} is missing. Pass "
                f"X_calibration, y_calibration and sensitive_features_calibration: labelled rows "
                f"of the population that will be asked about, hundreds of each group, which the "
                f"model was not trained on."
            )
        X, y, sensitive = rows
        refuse_other_order(
            X_calibration=X, y_calibration=y, sensitive_features_calibration=sensitive
        )
        truth = class_codes(y, self.classes_, "y_calibration")
        argument = "sensitive_features_calibration"
        groups = encode_groups(sensitive, names=self.groups_, argument=argument).codes
        said, sure = self.said(X)
        _checks.same_length(**{"X_calibration": said, "y_calibration": truth, argument: groups})
        labels = np.where(sure, said, REJECTED)
        size = len(self.groups_), len(self.classes_)
        known = GateCalibration(
            labelled=JointTally.of(groups, truth, labels, *size), level=level, admit_by=admit_by
        )
        for notion in notions:
            if notion.needs_labels:
                warn_of_wide_limits(known, notion, self.groups_)
        return known

    @property
    def margin(self) -> float:
        """The margin, a difference of two rates in [0, 1]."""
        return self._option.margin

    def save_state(self, path: str | Path) -> None:
        """Write the counts to a JSON file, in one step; see ``StateFile``.

        Save before handing the answers out: after a crash in between, an answer is counted that
        nobody got. The other way round it would be given and not counted.
        """
        if self._file is None or self._file.path != Path(path):
            self._file = StateFile(path)
        self._file.write(self._option.to_dict())

    def load_state(self, path: str | Path) -> None:
        """Go on from the counts in a file that ``save_state`` wrote.

        Raises
        ------
        StateOfAnotherModel
            If the file was saved with another model or with other settings.
        """
        file = StateFile(path)
        self._option.resume(file.read())
        self._file = file

    def _labels(self, X: Any) -> tuple[IntArray, FloatArray]:
        """Return class codes and, where there is a threshold, the largest probabilities."""
        shares = None
        if self.threshold is not None or not hasattr(self.estimator, "predict"):
            shares = _checks.matrix("predict_proba's answer", self.estimator.predict_proba(X))
            if shares.shape[1] != len(self.classes_):
                raise ValueError(
                    f"The classifier gives {shares.shape[1]} probabilities a row for "
                    f"{len(self.classes_)} classes. Pass classes= in the order of its columns."
                )
        largest = np.empty(0) if shares is None else shares.max(axis=1)
        if not hasattr(self.estimator, "predict"):
            assert shares is not None
            return shares.argmax(axis=1).astype(np.int64), largest
        labels = np.asarray(self.estimator.predict(X))
        said = (labels if labels.ndim == 1 else column_or_1d(labels)).tolist()
        try:
            return np.array([self._codes[label] for label in said], dtype=np.int64), largest
        except KeyError as error:
            raise ValueError(
                f"The classifier predicted {error.args[0]!r}, which is not among the classes "
                f"{self.classes_.tolist()}. Pass classes= with every class it may predict."
            ) from None

    def _named(self, codes: IntArray) -> Array:
        kind = self.classes_.dtype.kind
        dtype: Any = np.int64 if kind in "iu" else np.float64 if kind == "f" else object
        names: Array = np.full(len(codes), REJECTED, dtype=dtype)
        given = codes != REJECTED
        names[given] = self.classes_[codes[given]]
        return names


def _checked_notions(
    margin: float | None, fairness: RateNotion | Sequence[RateNotion] | None, reference: str
) -> tuple[RateNotion, ...]:
    if (margin is None) == (fairness is None):
        raise ValueError(
            f"Give either margin=, that of demographic parity, or fairness=, a notion or several; "
            f"got {'neither' if margin is None else 'both'}."
        )
    if fairness is None:
        assert margin is not None
        return (DemographicParity(margin=margin, reference=reference),)
    if reference != "rest":
        raise ValueError(
            f"reference={reference!r} goes with margin=; a notion says its own. Write it there."
        )
    for notion in notions_of(fairness):
        require_notion(notion, "Such as fairness=[DemographicParity(margin=0.05)].")
    return notions_of(fairness)


def _checked_threshold(estimator: Any, threshold: float | None) -> float | None:
    able = [name for name in ("predict", "predict_proba") if hasattr(estimator, name)]
    if isinstance(estimator, type) or not able:
        raise TypeError(
            f"estimator must be a fitted classifier with predict or predict_proba, got "
            f"{estimator!r}."
        )
    if threshold is None:
        return None
    if "predict_proba" not in able:
        raise ValueError(
            f"threshold={threshold!r} needs probabilities, and {type(estimator).__name__} has no "
            "predict_proba. Leave threshold out, or wrap a classifier that has."
        )
    return _checks.closed_unit("threshold", threshold)


def _checked_classes(fitted: FittedModel, classes: ArrayLike | None) -> Array:
    if classes is None and len(fitted.classes):
        classes = fitted.classes
    if classes is None:
        raise ValueError(
            f"{fitted.method} has no classes_: it is not fitted, or does not say what "
            "it may predict. Fit it first, or pass classes=, every class that may come."
        )
    found = column_or_1d(classes)
    refuse_rejected("classes", found)
    return np.asarray(found)


def _checked_groups(fitted: FittedModel, groups: Sequence[str] | None) -> tuple[str, ...]:
    if groups is None:
        groups = fitted.groups
    if groups is None:
        raise ValueError(
            f"groups is missing, and {fitted.method} knows none. Name every group that "
            "may come, for example groups=['F', 'M']: the table has a fixed size."
        )
    if isinstance(groups, str) or not len(groups):
        raise ValueError(
            f"groups must be a list with the name of every group, got {groups!r}. For example "
            f"groups=['F', 'M']."
        )
    named = encode_groups(list(groups))  # named as their rows will be: 1, 1.0 and "1" are one
    return tuple(named.names[code] for code in named.codes)
