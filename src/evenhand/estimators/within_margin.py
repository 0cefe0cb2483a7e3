"""Teachers whose student is held within a margin: what FairPATE and FairShares have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Self

from evenhand import _checks
from evenhand.estimators.base import Progress, TeacherEnsembleClassifier
from evenhand.estimators.calibration import read_calibration
from evenhand.estimators.inputs import FitInputs
from evenhand.estimators.steps import Plan, Taught
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.notions import require_notion
from evenhand.privacy import Ledger
from evenhand.students.within import Within
from evenhand.typing import ArrayLike
from evenhand.voting import Answers, Shares

SMALL_GROUPS: Final = ("interval", "margin")
"""What a group of few public rows is held to."""


class MarginClassifier(TeacherEnsembleClassifier):
    """Base of the teacher ensembles under a margin; use one of its subclasses."""

    fairness: RateNotion | None
    small_groups: str
    _needs_groups = True

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
        """Train teachers on the private rows, ask them about the public rows, fit the student.

        Parameters
        ----------
        X, y, X_public, unit_ids, ledger, progress
            As for ``PATEClassifier.fit``.
        sensitive_features : array-like or DataFrame, n_private rows, optional
            Groups of the private rows. This method does not read them, except where
            ``public_fraction`` sets rows of ``X`` aside as public.
        sensitive_features_public : array-like or DataFrame, n_public rows
            Groups of the public rows; several columns are combined.
        X_calibration, y_calibration, sensitive_features_calibration : optional
            A few *public* rows with labels and groups, on which a margin about true classes is
            read; each class must occur in each group. Without them it is read from the released
            answers.

        Raises
        ------
        ValueError
            For inputs that cannot be used; the message names the way out.
        BudgetExceeded
            If the budget does not cover one answer. Nothing is spent then.
        """
        given = self.read(
            X,
            y,
            sensitive_features=sensitive_features,
            X_public=X_public,
            sensitive_features_public=sensitive_features_public,
            unit_ids=unit_ids,
        )
        notion = self._notion(given.data)
        calibration = read_calibration(
            self, given.data, notion, X_calibration, y_calibration, sensitive_features_calibration
        )
        given = replace(given, calibration=calibration)
        plan = self.plan(given, ledger)
        taught = self.teach(given, progress)
        answers = self.ask(taught, plan, progress)
        return self.conclude(taught, plan, answers)

    def conclude(self, taught: Taught, plan: Plan, answers: Answers | Shares) -> Self:
        """Fit the student within the margin, and write down what was claimed and spent."""
        super().conclude(taught, plan, answers)
        if (calibration := taught.given.calibration) is not None:
            said = f"the {len(calibration)} calibration rows with their labels and groups"
            self.guarantee_ = replace(self.guarantee_, public=(*self.guarantee_.public, said))
        return self

    def _notion(self, data: FitInputs) -> RateNotion:
        """Check the notion before anything is spent."""
        notion = require_notion(
            self.fairness,
            "Say how far apart the groups may be, for example "
            "fairness=DemographicParity(margin=0.05); for no margin use PATEClassifier.",
        )
        _checks.one_of("small_groups", self.small_groups, SMALL_GROUPS)
        if notion.needs_labels:
            rates_of(notion, data.n_classes)
        return notion

    def _within(self, taught: Taught) -> Within | None:
        """Say on which rows the student's margin is read."""
        notion, groups = self._notion(taught.given.data), taught.given.data.required_groups
        calibration = taught.given.calibration
        if calibration is None:
            return Within(
                notion=notion,
                groups=groups.codes,
                n_groups=groups.n_groups,
                hold_small=self.small_groups == "interval",
            )
        return Within(
            notion=notion,
            groups=calibration.groups,
            n_groups=groups.n_groups,
            X=taught.encoder.transform(calibration.X),
            labels=calibration.labels,
            source="calibration rows",
        )
