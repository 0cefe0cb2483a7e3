"""What a fitted classifier tells, as one value: what prints, saves or compares models reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from evenhand.datasets import PublicEncoder
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.datasets.pixels import PixelEncoder
from evenhand.estimators import small_groups
from evenhand.estimators.drift import OF_DRIFT, ColumnDrift
from evenhand.estimators.margins import AIM_AGAIN, ByTable, Cuts, Derived, StudentMargin, TrueGroups
from evenhand.estimators.synthetic_rows import BESIDE_ROWS, NO_PUBLIC_ROWS, OF_DRAWN_ROWS
from evenhand.fairness import FairnessKind
from evenhand.fairness.gate.calibrated import GateCalibration
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.notion import Notion, RateNotion
from evenhand.fairness.trace import Coverage
from evenhand.fairness.yardstick import Yardstick
from evenhand.privacy import Guarantee
from evenhand.privacy.guarantee import no_guarantee
from evenhand.privacy.saved_claim import SavedLedger
from evenhand.typing import Array, FloatArray
from evenhand.voting import Answers, Shares
from evenhand.voting.outcomes import Disparity, Outcomes

BY_ANSWERS: Final = (
    "the margin is about true classes, and these were taken from the released answers: the gap "
    "is one with respect to what the teachers say, with noise, and not to the truth; calibration "
    "rows with labels and groups would tell the truth"
)
"""A caution for a margin about true classes that were taken from the released answers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedModel:
    """What a fitted classifier tells of itself; ``model.fitted_`` and ``FittedModel.of`` make it.

    Privacy
    -------
    All of it is the claim itself, released answers, public facts and settings. Votes, and costs
    computed from votes, are not within reach of this value.
    """

    method: str
    """Name of the classifier's class."""
    arguments: Mapping[str, Any] = field(repr=False)
    """Those of its constructor: what was asked for."""
    classes: Array
    """Shape (n_classes,)."""
    groups: tuple[str, ...] | None
    """Names of the groups; None where none were read."""
    columns: tuple[str, ...]
    """Names of the columns that ``predict`` expects; empty where it was fitted on arrays."""
    n_columns: int
    """How many they are."""
    guarantee: Guarantee
    ledger: Any = field(repr=False)
    """What was spent on what; None where there was nothing to spend."""
    kind: FairnessKind
    """Where the margin sits, and whether a prediction needs the group."""
    fairness: Notion | None = None
    """The margin of training, where a notion says it."""
    notion: str | None = None
    """What is compared between the groups, in the words of the command line."""
    margin: float | None = None
    """How far apart they may be, by whatever name the method has it."""
    student_margin: StudentMargin | None = None
    """How the student stands to its margin; None where it was not bound."""
    cuts: Cuts | None = None
    """One threshold per group."""
    derived: Derived | None = None
    """Decisions derived from the model's own and the group."""
    true_groups: TrueGroups | None = None
    """What is known of the true groups where training never saw them."""
    n_teachers: int | None = None
    mechanism: str | None = None
    """What answered; None after loading, for the ledger names it."""
    answers: Answers | Shares | None = field(default=None, repr=False)
    """What was released about each public row, and why some have none."""
    answered_gap: float | None = None
    """Gap of the answers by the gate's own table, about true classes what the gate holds within the
    margin; None where no gate stood, and after loading.
    """
    calibration: GateCalibration | None = field(default=None, repr=False)
    """What the gate knew of true classes: answers to calibration rows, counted."""
    answered_coverage: Coverage | None = field(default=None, repr=False)
    """How many public rows of each group were answered, by the class that the student decides; None
    where no gate stood.
    """
    choices: tuple[str, ...] = ()
    """What was chosen where an argument was left out, and why. Public numbers only."""
    drift: tuple[ColumnDrift, ...] | None = None
    """How far public and private rows are apart by noisy counts, where that was asked for."""
    yardstick: Yardstick | None = None
    """The errors by the released answers, to read beside the model's."""
    table_gap: float | None = None
    """The gap of its decisions about the private records by a noisy table."""
    table_noise: float = 0.0
    """How far that can be off, with probability 0.95."""
    numbers: Mapping[str, float | FloatArray] = field(default_factory=dict)
    """Further released numbers, by the names of their attributes."""
    extractor: ExtractorRecord | None = None
    """The extractor whose features of pictures the model reads; None for other rows."""
    encoder: PublicEncoder | PixelEncoder | None = field(default=None, repr=False)
    student: Any = field(default=None, repr=False)
    """The model that decides; it reads encoded rows."""
    without_margin: Any = field(default=None, repr=False)
    """The same student without its margin."""
    inside: FittedModel | None = field(default=None, repr=False)
    """The model whose predictions a wrapper cuts or refuses."""

    @classmethod
    def of(cls, model: Any) -> FittedModel:
        """Ask a classifier of this package; of any other, read what scikit-learn has it say.

        This is the one place that looks for attributes that may not be there.
        """
        if hasattr(type(model), "fitted_"):
            fitted: FittedModel = model.fitted_
            return fitted
        groups = getattr(model, "groups_", None)
        return cls(
            method=type(model).__name__,
            arguments={},
            classes=np.asarray(getattr(model, "classes_", [])),
            groups=None if groups is None else tuple(groups),
            columns=columns_of(model),
            n_columns=int(getattr(model, "n_features_in_", 0)),
            guarantee=no_guarantee("how the model was trained is not known"),
            ledger=None,
            kind=FairnessKind.NONE,
            student=model,
        )

    @property
    def of_drawn_rows(self) -> tuple[str, ...]:
        """How rows were drawn from noisy counts; none where that was not asked for."""
        about = (NO_PUBLIC_ROWS, BESIDE_ROWS, OF_DRAWN_ROWS)
        return tuple(words for words in self.core.choices if words.startswith(about))

    @property
    def asked_about(self) -> str:
        """What the rows are that teachers were asked about: public rows, or drawn rows."""
        drawn = any(words.startswith(NO_PUBLIC_ROWS) for words in self.core.choices)
        return "drawn rows" if drawn else "public rows"

    @property
    def of_drift(self) -> tuple[str, ...]:
        """How public rows stand beside private ones; none where nobody looked."""
        return tuple(words for words in self.core.choices if words.startswith(OF_DRIFT))

    @property
    def needs_group(self) -> bool:
        """Whether ``predict`` needs the group of each row."""
        return self.kind.needs_group

    @property
    def by_table(self) -> ByTable | None:
        """What a noisy table says of its decisions; None where a wrapper decides otherwise."""
        if self.table_gap is None or self.inside is not None:
            return None
        assert self.notion is not None
        assert self.margin is not None
        return ByTable(
            notion=self.notion,
            margin=self.margin,
            gap=self.table_gap,
            at_most=min(1.0, self.table_gap + self.table_noise),
        )

    @property
    def core(self) -> FittedModel:
        """The model that was trained: this one, or the one inside a wrapper."""
        return self if self.inside is None else self.inside.core

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes as texts."""
        return tuple(str(name) for name in self.classes.tolist())

    @property
    def epsilon_spent(self) -> float | None:
        """What the run charged, at the delta of its claim."""
        if self.ledger is None:
            return None
        if not isinstance(self.ledger, SavedLedger):
            # A claim with delta 0 has a ledger at the delta of the budget.
            delta = self.guarantee.delta or self.core.arguments["budget"].delta
            return float(self.ledger.spent_epsilon(delta))
        return float(self.ledger.record["epsilon_spent"])

    def measured_by(self, yardstick: Yardstick | None) -> FittedModel:
        """Return this value with the errors of test rows in the place of those by the answers."""
        return self if yardstick is None else replace(self, yardstick=yardstick)

    @cached_property
    def outcomes(self) -> Outcomes | None:
        """What became of every public row, counted; None where no labels were released."""
        if not isinstance(self.answers, Answers):
            return None
        groups = None if self.answers.groups is None else self.core.groups
        return Outcomes.of(self.answers, self.class_names, groups)

    @cached_property
    def disparity(self) -> Disparity | None:
        """The gap of the answered rows over time; None where no gate stood."""
        core = self.core
        if not isinstance(self.answers, Answers) or self.answers.groups is None:
            return None
        assert isinstance(core.fairness, RateNotion)
        assert core.groups is not None
        return Disparity.of(self.answers, core.groups, core.fairness, core.calibration)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before relying on the model, the claim's own cautions first."""
        return (*self.guarantee.cautions, *self.cautions)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a reader must know beside the claim's own cautions."""
        said = [*self._of_ledger(), *self._of_margin()]
        if self.yardstick is not None:
            said.append(self.yardstick.warning(self.class_names))
        if self.student_margin is not None and self.student_margin.source == "released answers":
            said.append(BY_ANSWERS)
        if self.outcomes is not None and (silent := self.outcomes.without_answers):
            said.append(
                f"none of the {self.asked_about} of {', '.join(silent)} was answered: the student "
                f"learned nothing from this group, and the margin says nothing about it"
            )
        return tuple(words for words in said if words)

    def _of_ledger(self) -> list[str]:
        """Say what stays charged of a run that did not finish."""
        entries = () if self.ledger is None else self.ledger.to_dict()["entries"]
        n_open = sum(int(entry["n_uses"]) for entry in entries if not entry["settled"])
        if not n_open:
            return []
        return [
            f"{n_open:,} uses were reserved by a run that did not finish; they stay charged, "
            f"because their noise may have been drawn"
        ]

    def _of_margin(self) -> list[str]:
        """Say where answers, student or noisy groups are outside the margin."""
        trace, student, noisy = self.disparity, self.student_margin, self.true_groups
        said = []
        if trace is not None and not trace.kept:
            said.append(
                f"the answered set was outside the margin after {trace.n_outside:,} of "
                f"{len(trace.gaps):,} steps; the largest gap was {trace.largest:.4f}, the margin "
                f"is {trace.notion.margin:g}"
            )
        if student is not None and student.held is not None:
            said.append(
                f"groups of few public rows are held to the 95 % interval of their own size, and "
                f"not to the margin of {student.notion.margin:g}: "
                f"{small_groups.listed(student.held, student.groups)}. To do without, "
                f"{small_groups.way_out(student.held)}"
            )
        elif student is not None and student.met is False and student.source == "noisy tables":
            said.append(
                f"training aimed for a gap of {student.notion.margin:g}, and {student.where} it "
                f"ended at {student.gap:.4f}: {AIM_AGAIN}"
            )
        elif student is not None and student.met is False:
            said.append(
                f"no student within the margin of {student.notion.margin:g} was found "
                f"{student.where}; the gap of the best one there is {student.gap:.4f}"
            )
        for kept in (student, self.cuts):
            if kept is not None and (words := _on_new_rows(kept.cross_fitted, kept.notion.margin)):
                said.append(words)
        if self.by_table is not None:
            least = self.by_table.gap - self.table_noise
            if least > self.by_table.margin:
                said.append(
                    f"the rates of two groups of the private records are at least {least:.4f} "
                    f"apart, by a noisy table, and the margin is {self.margin:g}"
                )
        if noisy is not None and not noisy.met and not noisy.beneath:
            said.append(
                f"no student with a violation of at most {noisy.margin:g} by the noisy groups "
                f"was found; the best one has {noisy.violation:.4f}"
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return what it tells, as plain values for machines; no array of rows is among them."""
        claim, held, answers = self.guarantee, self.student_margin, self.answers
        found, by_table = self.true_groups, self.by_table
        return {
            "method": self.method,
            "epsilon": claim.epsilon,
            "delta": claim.delta,
            "unit": claim.unit,
            "neighbors": claim.neighbors,
            "noise": claim.noise,
            "guarantee": str(claim),
            "public": list(claim.public),
            "holds": claim.holds,
            "epsilon_spent": self.epsilon_spent,
            "fairness_kind": str(self.kind),
            "needs_group_at_prediction": self.needs_group,
            "fairness": self.notion,
            "margin": self.margin,
            "noisy_violation": None if found is None else _finite(found.violation),
            "within_alpha": None if found is None or found.knows_no_group else found.met,
            "bounds": [] if found is None else [asdict(bound) for bound in found.bounds],
            "fairness_weight": self.core.arguments.get("fairness_weight"),
            "table_gap": None if by_table is None else by_table.gap,
            "table_gap_at_most": None if by_table is None else by_table.at_most,
            "drawn_rows": list(self.of_drawn_rows),
            "drift": None
            if self.core.drift is None
            else [column.to_dict() | {"differs": column.differs} for column in self.core.drift],
            "margin_source": next((of.source for of in (self.cuts, held) if of is not None), None),
            "answered_gap": self.answered_gap,
            "bound": held is not None,
            "public_gap": None if held is None else held.gap,
            "calibration_gap": (
                None if held is None or held.calibration is None else held.calibration.to_dict()
            ),
            "within_margin": None if held is None else held.met,
            "cross_fitted_gap": (
                None if held is None or held.cross_fitted is None else held.cross_fitted.to_dict()
            ),
            "margin_supported": (
                self.cuts.supported
                if self.cuts is not None
                else None
                if held is None
                else held.supported
            ),
            "held": None if held is None else held.held_record(),
            "n_teachers": self.n_teachers,
            "choices": list(self.choices),
            "n_queries": None if answers is None else len(answers),
            "n_asked": None if answers is None else answers.n_asked,
            "n_answered": None if answers is None else answers.n_answered,
            "n_rejected": None if answers is None else answers.n_rejected,
            "coverage": None if answers is None else answers.coverage,
            "coverage_by_class": (
                None if self.answered_coverage is None else self.answered_coverage.to_dict()
            ),
            "yardstick": (
                None
                if self.yardstick is None
                else self.yardstick.to_dict()
                | {"majority": self.class_names[self.yardstick.majority]}
            ),
            "mechanism": self.mechanism,
            "warnings": list(self.warnings),
        }


def _on_new_rows(found: Estimate | None, margin: float) -> str:
    """Say that held-out rows are too few to support the margin; nothing where they do."""
    if found is None or found.high <= margin:
        return ""
    return (
        f"so many rows cannot say with {found.level:.0%} confidence that the margin of {margin:g} "
        f"holds on new rows: on rows that were held out the gap is {found.value:.4f}, at most "
        f"{found.high:.4f}, the least that they support. Widen the margin, give more public rows, "
        f"or merge small groups (--merge-small, in Python evenhand.fairness.Grouping)"
    )


def columns_of(model: Any) -> tuple[str, ...]:
    """Return the names of the columns that a model was fitted on; empty for arrays."""
    return tuple(str(name) for name in getattr(model, "feature_names_in_", ()))


def is_linear(student: Any) -> bool:
    """Whether a fitted classifier decides by weights of the columns."""
    return hasattr(student, "coef_")


def decide(model: Any, X: Any, groups: Any = None) -> Array:
    """Predict with any model of this package, with the groups where it needs them.

    A score that equals its threshold, and a decision that is derived from the group, is decided at
    random; from a fixed seed, so that the same rows get the same labels.
    """
    if not model.needs_group_at_prediction_:
        return np.asarray(model.predict(X))
    return np.asarray(model.predict(X, sensitive_features=groups, random_state=0))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
