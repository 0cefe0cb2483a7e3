"""Teachers whose student is held within a margin: what FairPATE and FairShares have in common."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.estimators.base import TeacherEnsembleClassifier
from evenhand.estimators.calibration import public_calibration, read_calibration
from evenhand.estimators.counted_decisions import CountedDecisions
from evenhand.estimators.inputs import FitArguments, FitInputs
from evenhand.estimators.steps import Given, Plan, Taught
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.notions import require_notion
from evenhand.students.confident import check_confidence
from evenhand.students.student import Student, fit_student, refuse_unbound
from evenhand.students.within import Within
from evenhand.voting import Answers, Shares

SMALL_GROUPS: Final = ("interval", "margin")
"""What a group of few public rows is held to."""


@dataclass(eq=False, repr=False)
class MarginClassifier(TeacherEnsembleClassifier):
    """Base of the teacher ensembles under a margin; use one of its subclasses."""

    fairness: RateNotion | None = None
    _: KW_ONLY
    small_groups: str = "interval"
    _needs_groups = True

    def read(self, given: FitArguments) -> Given:
        """Check the arguments, also those of calibration; see the base."""
        read = super().read(given)
        notion = self._notion(read.data)
        calibration = read_calibration(self, read.data, notion, given)
        if notion.confidence is not None and read.data.asks_drawn_rows and calibration is None:
            raise ValueError(
                f"confidence={notion.confidence:g} is about new rows from where the public rows "
                f"are from, and rows drawn from noisy counts are from nowhere. Give X_public=, or "
                f"calibration rows."
            )
        if notion.confidence is not None:
            groups, read_on = read.data.required_groups, calibration
            within = Within(
                notion=notion,
                groups=groups.codes if read_on is None else read_on.groups,
                n_groups=groups.n_groups,
                labels=None if read_on is None else read_on.labels,
                hold_small=read_on is None and self.small_groups == "interval",
            )
            check_confidence(within, groups.names)
        return replace(read, calibration=calibration)

    def _conclude(self, taught: Taught, plan: Plan, answers: Answers | Shares) -> None:
        super()._conclude(taught, plan, answers)
        if (calibration := taught.given.calibration) is not None:
            said = public_calibration(len(calibration))
            self.guarantee_ = replace(self.guarantee_, public=(*self.guarantee_.public, said))

    def _counts_decisions(self, given: Given) -> bool:
        notion = self._notion(given.data)
        return (
            given.data.asks_drawn_rows
            and given.calibration is None
            and self._binds_student
            and notion.margin < 1.0  # which holds whatever is decided
        )

    def _fit_student(self, taught: Taught, plan: Plan, answers: Answers | Shares) -> Student:
        """Fit the student; where its margin is read on drawn rows, again with that set right."""
        if plan.decisions is None:
            return super()._fit_student(taught, plan, answers)
        data, within, beside = taught.given.data, self._within(taught), self._beside(taught)
        assert within is not None
        assert data.to_draw is not None
        fit = partial(fit_student, self.student, taught.X_public, answers, beside=beside)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to say is said of the second
            first = fit(within, taught.given.student_rng).model
        cells = data.groups_private.codes
        shape: tuple[int, ...] = (within.n_groups, data.n_classes)
        if within.notion.needs_labels:
            cells, shape = cells * data.n_classes + data.y_private, (*shape, data.n_classes)
        counted = CountedDecisions.release(
            first.predict(taught.encoder.transform(data.X_private)).astype(np.int64),
            cells,
            shape,
            plan.decisions,
            units=data.units,
            per_unit=data.to_draw.settings.per_unit,
        )
        right = counted.set_right(within, first.predict(within.X).astype(np.int64))
        return fit(right, taught.given.student_rng)

    def _notion(self, data: FitInputs) -> RateNotion:
        """Check the notion before anything is spent."""
        notion = require_notion(
            self.fairness,
            "Say how far apart the groups may be, for example "
            "fairness=DemographicParity(margin=0.05); for no margin use PATEClassifier.",
        )
        _checks.one_of("small_groups", self.small_groups, SMALL_GROUPS)
        if self._binds_student:
            refuse_unbound(self.student, notion)
        if notion.needs_labels:
            rates_of(notion, data.n_classes)
        return notion

    @property
    def _binds_student(self) -> bool:
        """Whether the student is to be held within the margin."""
        return True

    def _within(self, taught: Taught) -> Within | None:
        """Say on which rows the student's margin is read."""
        notion, groups = self._notion(taught.given.data), taught.given.data.required_groups
        calibration = taught.given.calibration
        drawn = taught.given.data.drawn if taught.given.data.asks_drawn_rows else None
        if calibration is None and drawn is not None:
            assert drawn.groups_natural is not None
            return Within(
                notion=notion,
                groups=drawn.groups_natural.codes,
                n_groups=groups.n_groups,
                X=taught.encoder.transform(drawn.natural),
                labels=drawn.chances if notion.needs_labels else None,
                source="drawn rows",
            )
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
