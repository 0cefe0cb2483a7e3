"""Everything the report says about a model, as one value: computed first, drawn afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from evenhand._version import __version__
from evenhand.datasets import Dataset
from evenhand.estimators.small_groups import Held, listed
from evenhand.fairness import DemographicParity, Estimate, FairnessKind, Notion, Yardstick
from evenhand.privacy import Guarantee
from evenhand.report import claim, settings
from evenhand.report.answers import Disparity, Outcomes
from evenhand.report.derived import Derived
from evenhand.report.measured import Measured
from evenhand.report.spending import Spending
from evenhand.report.true_groups_section import TrueGroups
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


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelReport:
    """What may be told of a trained model, and nothing else.

    Parameters
    ----------
    title : str
    method : str
        Name of the estimator's class.
    guarantee : Guarantee
        The claim.
    kind : FairnessKind
        Where the margin sits, and whether a prediction needs the group.
    spending : Spending or None
        What was spent on what; None where there was nothing to spend.
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
    facts : tuple of (str, str)
        What the report's writer says about the data.
    settings : tuple of (str, str)
        Every argument of the estimator in words.
    choices : tuple of str
        What was chosen where an argument was left out, and why. Public numbers only.
    columns : tuple of str
        Names of the columns that ``predict`` expects; empty where the model was fitted on arrays.
    n_columns : int
        How many they are.
    version : str
        Version of this package.

    Privacy
    -------
    All of it but ``measured`` and ``facts`` is the claim itself, released answers, public facts and
    settings. Votes, and costs computed from votes, are not within reach of this value.
    """

    title: str
    method: str
    guarantee: Guarantee
    kind: FairnessKind
    spending: Spending | None
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
    facts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    choices: tuple[str, ...]
    columns: tuple[str, ...]
    n_columns: int
    version: str

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
            version=__version__,
        )

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
        found = list(self.guarantee.cautions)
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
