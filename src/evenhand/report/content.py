"""The report of a model: what it says as one value, and the page of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from evenhand.datasets import Dataset
from evenhand.estimators import Bound
from evenhand.estimators.small_groups import Held, in_words, listed
from evenhand.fairness import (
    DemographicParity,
    Estimate,
    FairnessKind,
    Notion,
    Yardstick,
    function_named,
)
from evenhand.report import claim, settings
from evenhand.report.answers import Disparity, Outcomes
from evenhand.report.measured import Measured
from evenhand.report.page import Report, Section, render, write_whole
from evenhand.report.spending import Spending
from evenhand.voting import Answers, Shares


@dataclass(frozen=True, kw_only=True)
class StudentMargin:
    """How a student that was trained under the margin stands to it on the public rows.

    Parameters
    ----------
    notion : Notion
        The margin, on which rates, and what a group is compared with.
    gap : float
        Largest difference of rates among its own decisions where the margin is read.
    met : bool
        Whether that is within the margin.
    source : str
        Where the margin is read, a key of ``evenhand.students.SOURCES``.
    calibration : Estimate or None
        The gap on the calibration rows, with its interval.
    held : Held or None
        The groups that are held to the interval of their size, and not to the margin.
    groups : tuple of str
        Names of the groups.

    Privacy
    -------
    A function of the student, of released answers and of what is public of public rows: covered.
    """

    notion: Notion
    gap: float
    met: bool
    source: str = "public rows"
    calibration: Estimate | None = None
    held: Held | None = None
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Any) -> StudentMargin | None:
        """Return None for a model whose student knows of no margin."""
        if not getattr(model, "bound_", False):
            return None
        return cls(
            notion=model.fairness,
            gap=model.public_gap_,
            met=model.within_margin_,
            source=getattr(model, "margin_source_", None) or "public rows",
            calibration=getattr(model, "calibration_gap_", None),
            held=getattr(model, "held_", None),
            groups=tuple(model.groups_ or ()),
        )

    @property
    def where(self) -> str:
        """Where the margin is read, in the words of a sentence."""
        return claim.WHERE[self.source]

    @property
    def kept(self) -> str:
        """How the gap stands to the margin, in a few words."""
        if self.held is not None:
            n = len(self.held.groups)
            return f"all within it but {n} small group{'s' * (n > 1)}, held to their intervals"
        return "within it" if self.met else "outside it"

    @property
    def held_in_words(self) -> str:
        """Which groups are held to the interval of their size, and why."""
        return "" if self.held is None else in_words(self.held, self.groups, self.notion.margin)


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """The score from which each group is given a class, where a model has one per group.

    Parameters
    ----------
    notion : DemographicParity
        The margin that the decisions on public rows keep, in expectation.
    label : str
        The class that is given above the threshold.
    rows : tuple of (str, float, float)
        Group, threshold, and the probability of the class for a score that equals it.

    Privacy
    -------
    A function of the released model and of public rows.
    """

    notion: DemographicParity
    label: str
    rows: tuple[tuple[str, float, float], ...]

    @classmethod
    def of(cls, model: Any) -> Cuts | None:
        """Return None for a model without thresholds of its own."""
        found = getattr(model, "thresholds_", None) or getattr(model, "group_thresholds_", None)
        if found is None:
            return None
        named = zip(model.groups_, found.thresholds, found.at_threshold, strict=True)
        return cls(notion=model.fairness, label=str(model.classes_[1]), rows=tuple(named))


@dataclass(frozen=True, kw_only=True)
class Derived:
    """The probabilities of each final decision, given the group and the model's own decision.

    Parameters
    ----------
    notion : str
        Which rates are held together, a key of ``evenhand.students.derived.NOTIONS``.
    margin : float
        That was asked for.
    gap : float
        Largest difference of those rates between two groups, by the noisy table.
    beyond : float
        How much further apart they may be among the private records, with probability 0.95.
    classes : tuple of str
    rows : tuple of (str, str, tuple of float)
        Group, the model's own decision, and the probability of each class.

    Privacy
    -------
    A function of the released model and of the released table.
    """

    notion: str
    margin: float
    gap: float
    beyond: float
    classes: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[float, ...]], ...]

    @classmethod
    def of(cls, model: Any) -> Derived | None:
        """Return None for a model whose own decisions stand."""
        rule = getattr(model, "rule_", None)
        if rule is None:
            return None
        classes = tuple(str(name) for name in model.classes_)
        return cls(
            notion=model.notion,
            margin=model.margin,
            gap=model.table_gap_,
            beyond=model.noise_bound_,
            classes=classes,
            rows=tuple(
                (group, own, tuple(probabilities))
                for group, table in zip(model.groups_, rule.probabilities.tolist(), strict=True)
                for own, probabilities in zip(classes, table, strict=True)
            ),
        )


@dataclass(frozen=True, kw_only=True)
class TrueGroups:
    """How a model of SF-PATE stands to its alpha, and what is known of the true groups.

    Parameters
    ----------
    notion : str
        What the fairness function is called.
    alpha : float
    by_teachers : bool
        Whether each teacher was held to it on its own rows.
    violation : float
        Of the student by the noisy groups; NaN where it knows none.
    met : bool
    bounds : tuple of Bound

    Privacy
    -------
    A function of the student, of released shares and of public values.
    """

    notion: str
    alpha: float
    by_teachers: bool
    violation: float
    met: bool
    bounds: tuple[Bound, ...]

    @classmethod
    def of(cls, model: Any) -> TrueGroups | None:
        """Return None for a model of another method."""
        if not hasattr(model, "bounds_"):
            return None
        return cls(
            notion=function_named(model.notion).name.replace("_", " "),
            alpha=model.alpha,
            by_teachers=model.variant == "teachers",
            violation=model.noisy_violation_,
            met=model.within_alpha_,
            bounds=model.bounds_,
        )

    @property
    def knows_no_group(self) -> bool:
        """Whether the student learned no more of the groups than that its teachers were held."""
        return self.by_teachers and math.isnan(self.violation)

    @property
    def bounded(self) -> bool:
        """Whether a bound says anything about the violation by the true groups."""
        return any(bound.says for bound in self.bounds)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelReport(Report):
    """What may be told of a trained model, and nothing else.

    Parameters
    ----------
    kind : FairnessKind
        Where the margin sits, and whether a prediction needs the group.
    answers : Answers, Shares or None
        What was released about the public rows; None for a method that asks about none.
    outcomes : Outcomes or None
        What became of every public row, counted; None where no labels were released.
    disparity : Disparity or None
        The gap of the answered set over time; None where no gate stood.
    student : StudentMargin or None
        How the student stands to the margin on the public rows; None where it was not bound.
    aimed : DemographicParity or None
        The margin of a training that nothing above tells how it was met; None without one.
    cuts : Cuts or None
        The thresholds of the groups; None for a model that needs no group.
    derived : Derived or None
        The probabilities of the groups; None for a model whose own decisions stand.
    true_groups : TrueGroups or None
        What is known of the true groups, for a model of SF-PATE.
    measured : Measured or None
        What was measured on test rows, *not covered* by the guarantee.
    yardstick : Yardstick or None
        The errors to read beside the model's: on the test rows where there are any, else by the
        released answers.
    classes : tuple of str
    columns : tuple of str
        Names of the columns that ``predict`` expects; empty where the model was fitted on arrays.
    n_columns : int
        How many they are.
    **others
        See ``Report``.

    Privacy
    -------
    All of it but ``measured`` and ``facts`` is the claim itself, released answers, public facts and
    settings. Votes, and costs computed from votes, are not within reach of this value.
    """

    heading: ClassVar[str] = "Model report"
    glance: ClassVar[str] = "model/glance.html"

    kind: FairnessKind
    answers: Answers | Shares | None
    outcomes: Outcomes | None
    disparity: Disparity | None
    student: StudentMargin | None
    aimed: DemographicParity | None
    cuts: Cuts | None
    derived: Derived | None
    true_groups: TrueGroups | None
    measured: Measured | None
    yardstick: Yardstick | None
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    n_columns: int

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        title: str | None = None,
        dataset: Dataset | Mapping[str, object] | None = None,
        measured: Any = None,
    ) -> ModelReport:
        """Gather the report of a fitted or loaded model.

        Parameters
        ----------
        model : any classifier of ``evenhand.estimators`` with a guarantee
            Fitted, or read by ``evenhand.load``.
        title : str, optional
            Default: made of the data set's name and the method.
        dataset : Dataset or mapping, optional
            A data set gives its name, label and sensitive attributes, and no count: how many
            records there are can be private. A mapping is printed as it is.
        measured : FairnessReport, optional
            Measurements on test rows.
        """
        inner = getattr(model, "model_", model)  # thresholds stand around the model they cut
        check_is_fitted(inner, "guarantee_")
        answers: Answers | Shares | None = getattr(inner, "answers_", None)
        classes = tuple(str(name) for name in model.classes_)
        outcomes = disparity = None
        if isinstance(answers, Answers):
            groups = None if answers.groups is None else tuple(inner.groups_)
            outcomes = Outcomes.of(answers, classes, groups)
            if groups is not None:
                disparity = Disparity.of(
                    answers, groups, inner.fairness, getattr(inner, "rule", "sound")
                )
        name, facts = _facts(dataset)
        method = type(inner).__name__
        named = method if inner is model else f"{method} with group thresholds"
        return cls(
            title=title or (f"{named} trained on {name}" if name else f"Report on a {named}"),
            method=method,
            guarantee=model.guarantee_,
            kind=model.fairness_kind_,
            spending=None if model.ledger_ is None else Spending.of(model.ledger_.to_dict()),
            answers=answers,
            outcomes=outcomes,
            disparity=disparity,
            student=StudentMargin.of(inner),
            aimed=getattr(inner, "fairness", None),
            cuts=Cuts.of(model),
            derived=Derived.of(model),
            true_groups=TrueGroups.of(inner),
            measured=None if measured is None else Measured.of(measured, classes=classes),
            yardstick=_yardstick(inner, measured),
            classes=classes,
            facts=facts,
            settings=settings.of_model(inner),
            choices=tuple(getattr(inner, "choices_", ())),
            columns=tuple(str(name) for name in getattr(model, "feature_names_in_", ())),
            n_columns=int(model.n_features_in_),
        )

    @property
    def sections(self) -> tuple[Section, ...]:
        """What the page is made of; what a method does not have is left out."""
        there = (
            (True, "claim", "The claim", "claim.html"),
            (self.spending, "spending", "What was spent on what", "spending.html"),
            (True, "measurements", "Accuracy and fairness, measured", "model/measured.html"),
            (self.answers, "answers", "Answers and refusals", "model/answers.html"),
            (True, "margin", "The margin, and who needs the group", "model/margin.html"),
            (self.true_groups, "true-groups", "True and noisy groups", "model/true_groups.html"),
            (True, "settings", "Settings", "settings.html"),
            (True, "use", "Load and predict", "model/use.html"),
        )
        return tuple(Section(*named) for found, *named in there if found is not None)

    @property
    def holds_a_margin(self) -> bool:
        """Whether answers, student, thresholds or probabilities were held to a margin."""
        return any((self.disparity, self.student, self.cuts, self.derived))

    @property
    def compared(self) -> str:
        """The errors to read the model's error beside, in a few words."""
        rows = () if self.yardstick is None else self.yardstick.rows(self.classes)
        return "; ".join(f"{words}: {error.value:.3f}" for words, error in rows)

    @property
    def notion(self) -> Notion | None:
        """The margin, and what a group is compared with; None for a method without one."""
        if self.cuts is not None:
            return self.cuts.notion
        if self.disparity is not None:
            return self.disparity.notion
        return self.aimed if self.student is None else self.student.notion

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before relying on the model, the claim's own warnings first."""
        found = list(super().warnings)
        if self.spending is not None and self.spending.n_open:
            found.append(
                f"{self.spending.n_open:,} uses were reserved by a run that did not finish; they "
                f"stay charged, because their noise may have been drawn"
            )
        if self.disparity is not None and not self.disparity.kept:
            found.append(
                f"the answered set was outside the margin after {self.disparity.n_outside:,} of "
                f"{len(self.disparity.gaps):,} steps (rule “{self.disparity.rule}”); the largest "
                f"gap was {self.disparity.largest:.4f}, the margin is "
                f"{self.disparity.notion.margin:g}"
            )
        if self.student is not None and self.student.held is not None:
            found.append(
                f"groups of few public rows are held to the 95 % interval of their own size, and "
                f"not to the margin of {self.student.notion.margin:g}: "
                f"{listed(self.student.held, self.student.groups)}"
            )
        elif self.student is not None and not self.student.met:
            found.append(
                f"no student within the margin of {self.student.notion.margin:g} was found "
                f"{self.student.where}; the gap of the best one there is {self.student.gap:.4f}"
            )
        if self.true_groups is not None and not self.true_groups.met:
            found.append(
                f"no student with a violation of at most alpha={self.true_groups.alpha:g} by the "
                f"noisy groups was found; the best one has {self.true_groups.violation:.4f}"
            )
        if self.yardstick is not None and (useless := self.yardstick.warning(self.classes)):
            found.append(useless)
        if self.student is not None and self.student.source == "released answers":
            found.append(claim.TOLD_BY_ANSWERS)
        silent = self._without_answers()
        if silent:
            found.append(
                f"no public row of {', '.join(silent)} was answered: the student learned nothing "
                f"from this group, and the margin says nothing about it"
            )
        return tuple(found)

    def _without_answers(self) -> list[str]:
        """Return the groups that have public rows and not one answer."""
        table = self.outcomes
        if table is None:
            return []
        none = (table.sizes > 0) & (table.answered.sum(axis=1) == 0)
        return [group for group, silent in zip(table.groups, none, strict=True) if silent]


def write_model_report(
    model: Any,
    path: str | Path,
    *,
    title: str | None = None,
    dataset: Dataset | Mapping[str, object] | None = None,
    measured: Any = None,
) -> Path:
    """Write ``report.html`` for a fitted or loaded model.

    Parameters
    ----------
    model : any classifier of ``evenhand.estimators`` with a guarantee
        Fitted, or read by ``evenhand.load``.
    path : path
        The file to write. An earlier report there is replaced, whole or not at all.
    title : str, optional
        Default: made of the data set's name and the method.
    dataset : Dataset or mapping, optional
        What to say about the data; of a ``Dataset`` no count is printed.
    measured : FairnessReport, optional
        Measurements on test rows. They are printed as not covered by the guarantee.

    Returns
    -------
    Path
        The file.

    Privacy
    -------
    The page holds the claim, released answers, public facts and settings: post-processing. Only
    ``measured`` and ``dataset`` can add something else, and they come from the caller.
    """
    report = ModelReport.of(model, title=title, dataset=dataset, measured=measured)
    return write_whole(render(report), path)


def _yardstick(model: Any, measured: Any) -> Yardstick | None:
    """Return the errors to compare with, on test rows before those by released answers."""
    by_test: Yardstick | None = getattr(measured, "yardstick", None)
    by_answers: Yardstick | None = getattr(model, "public_yardstick_", None)
    return by_answers if by_test is None else by_test


def _facts(
    dataset: Dataset | Mapping[str, object] | None,
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the data set's name and what may be said of it without counting its records."""
    if dataset is None:
        return "", ()
    if isinstance(dataset, Dataset):
        return dataset.name, (
            ("Data set", dataset.name),
            ("Label", dataset.label),
            ("Sensitive attribute", ", ".join(dataset.sensitive)),
            ("Columns", str(dataset.X.shape[1])),
        )
    if not isinstance(dataset, Mapping):
        raise TypeError(
            f"dataset must be a Dataset or a mapping of names to facts, got "
            f"{type(dataset).__name__}. Write for example {{'Data set': 'Adult'}}."
        )
    rows = tuple((str(key), str(value)) for key, value in dataset.items())
    return dict(rows).get("Data set", ""), rows
