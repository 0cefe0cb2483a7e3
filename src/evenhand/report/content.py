"""The report of a model: what it says as one value, and the page of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.datasets import Dataset
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.margins import ByTable, Cuts, Derived, StudentMargin, TrueGroups
from evenhand.fairness import FairnessKind
from evenhand.fairness.notion import Notion
from evenhand.fairness.trace import Coverage
from evenhand.fairness.yardstick import Yardstick
from evenhand.privacy.trade_off import TradeOff
from evenhand.report import settings
from evenhand.report.measured import Measured
from evenhand.report.opening import opening
from evenhand.report.page import Report, Section
from evenhand.report.pictures import ShownPicture
from evenhand.report.spending import Spending
from evenhand.voting import Answers, Shares
from evenhand.voting.outcomes import Disparity, Outcomes


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelReport(Report):
    """What may be published of a trained model, and nothing else.

    Privacy
    -------
    All of it but ``measured`` and ``facts`` is the claim itself, released answers, public facts and
    settings. Votes, and costs computed from votes, are not within reach of this value.
    """

    heading: ClassVar[str] = "Model report"
    glance: ClassVar[str] = "model/glance.html"
    first: ClassVar[str] = "model/opening.html"

    kind: FairnessKind
    """Where the margin sits, and whether a prediction needs the group."""
    answers: Answers | Shares | None
    """What was released about the rows that teachers were asked about; None without teachers."""
    asked: str
    """What these rows are: public rows, or drawn rows."""
    outcomes: Outcomes | None
    """What became of every such row, counted; None where no labels were released."""
    disparity: Disparity | None
    """The gap of the answered set over time; None where no gate stood."""
    student: StudentMargin | None
    """How the student stands to the margin on the public rows; None where it was not bound."""
    aimed: Notion | None
    """The margin of a training that nothing above tells how it was met; None without one."""
    cuts: Cuts | None
    """The thresholds of the groups; None for a model that needs no group."""
    derived: Derived | None
    """The probabilities of the groups; None for a model whose own decisions stand."""
    by_table: ByTable | None
    """How far apart its decisions are by a noisy table; None where none was released."""
    true_groups: TrueGroups | None
    """What is known of the true groups, for a model of SF-PATE."""
    measured: Measured | None
    """What was measured on test rows, *not covered* by the guarantee."""
    yardstick: Yardstick | None
    """The errors to read beside the model's: on the test rows where there are any, else by the
    released answers.
    """
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    """Names of the columns that ``predict`` expects; empty where the model was fitted on arrays."""
    n_columns: int
    """How many they are."""
    extractor: ExtractorRecord | None = None
    """The extractor whose features of pictures the model reads."""
    coverage: Coverage | None = None
    """How many rows of each group were answered, by the class that the student decides."""
    pictures: tuple[ShownPicture, ...] = ()
    """Public pictures that the writer of the report wants to show."""
    cautions: tuple[str, ...] = ()
    """What the fitted model warns of, beside its claim."""

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        title: str | None = None,
        dataset: Dataset | Mapping[str, object] | None = None,
        measured: Any = None,
        pictures: Sequence[ShownPicture] = (),
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
        pictures : sequence of ShownPicture
            Public pictures to show. They are then published.
        """
        whole = FittedModel.of(model)
        fitted = whole.core
        classes = fitted.class_names
        # Errors on test rows are read before those by the released answers.
        seen = whole.measured_by(getattr(measured, "yardstick", None))
        name, facts = _facts(dataset)
        named = fitted.method if whole is fitted else f"{fitted.method} with group thresholds"
        return cls(
            title=title or (f"{named} trained on {name}" if name else f"Report on a {named}"),
            method=fitted.method,
            guarantee=whole.guarantee,
            kind=whole.kind,
            allowed=TradeOff.of(whole.guarantee, whole.ledger),
            spending=None if whole.ledger is None else Spending.of(whole.ledger.to_dict()),
            answers=fitted.answers,
            asked=fitted.asked_about,
            outcomes=fitted.outcomes,
            coverage=fitted.answered_coverage,
            disparity=fitted.disparity,
            student=whole.student_margin,
            aimed=fitted.fairness,
            cuts=whole.cuts,
            derived=whole.derived,
            by_table=whole.by_table,
            true_groups=whole.true_groups,
            measured=None if measured is None else Measured.of(measured, classes=classes),
            yardstick=seen.yardstick,
            cautions=seen.cautions,
            classes=classes,
            facts=facts,
            settings=settings.in_words(fitted.arguments, fitted.guarantee.unit),
            choices=whole.choices,
            columns=whole.columns,
            n_columns=whole.n_columns,
            extractor=whole.extractor,
            pictures=tuple(pictures),
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
            (self.pictures or None, "pictures", "Some public pictures", "model/pictures.html"),
            (True, "settings", "Settings", "settings.html"),
            (True, "use", "Load and predict", "model/use.html"),
        )
        return tuple(Section(*named) for found, *named in there if found is not None)

    @property
    def opening(self) -> tuple[tuple[str, str], ...]:
        """What the first page says, for people who know none of the terms."""
        return opening(self)

    @property
    def holds_a_margin(self) -> bool:
        """Whether answers, student, thresholds or probabilities were held to a margin."""
        return any((self.disparity, self.student, self.cuts, self.derived))

    @property
    def compared(self) -> str:
        """The errors to read the model's error beside, in a few words."""
        rows = () if self.yardstick is None else self.yardstick.rows(self.classes)
        return "; ".join(f"{words}: {e.value:.3f} [{e.low:.3f}, {e.high:.3f}]" for words, e in rows)

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
        return (*super().warnings, *self.cautions)


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
