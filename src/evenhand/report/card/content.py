"""The card of a model as one value: a report whose sections answer questions of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from evenhand.estimators.fitted import FittedModel
from evenhand.generators.synthesizer import Synthesizer
from evenhand.privacy.saved_claim import SavedLedger
from evenhand.report.card import nist, registry, rules
from evenhand.report.card.questions import Answer, answers
from evenhand.report.card.questions import Section as Questions
from evenhand.report.card.record import EXACT_COUNTS, GeneratorRecord, ImpactTable, ModelRecord
from evenhand.report.content import ModelReport
from evenhand.report.generated import GeneratorReport
from evenhand.report.page import Report, Section


class Asked(NamedTuple):
    """Whose questions a section answers."""

    title: str
    source: str
    questions: Questions


SECTIONS: Final[Mapping[str, Asked]] = {
    "nist": Asked("What an evaluator of privacy asks", nist.SOURCE, nist.QUESTIONS),
    "ll144": Asked("Impact ratios", rules.LL144, rules.LL144_QUESTIONS),
    "eu": Asked("European Union: data and their governance", rules.EU, rules.EU_QUESTIONS),
    "colorado": Asked("Colorado: documentation", rules.COLORADO, rules.COLORADO_QUESTIONS),
    "registry": Asked(
        "Registry of deployments",
        f"{registry.SCHEMA}, {registry.SCHEMA_VERSION}",
        registry.QUESTIONS,
    ),
}
"""The sections, by the names of their tables in ``card.toml``."""

QUESTIONS: Final = {name: asked.questions for name, asked in SECTIONS.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelCard(Report):
    """A model or a generator in the words of a registry, a guideline and three rules."""

    heading: ClassVar[str] = "Card of what may be published"
    glance: ClassVar[str] = "card/glance.html"

    answers: Mapping[str, tuple[Answer, ...]]
    """By the names of ``SECTIONS``."""
    impact: tuple[ImpactTable, ...] = ()
    """Selection rates and impact ratios; empty where no labelled rows were given."""
    data: str = ""
    """Name of the file of these rows."""

    @classmethod
    def of(
        cls,
        model: Any,
        *,
        measured: Any = None,
        impact: tuple[ImpactTable, ...] = (),
        data: str = "",
        sensitive: tuple[str, ...] = (),
        filled: Mapping[str, Mapping[str, Any]] | None = None,
        saved_by: str = "",
    ) -> ModelCard:
        """Gather the card of a fitted or loaded model or generator.

        Parameters
        ----------
        model : any classifier of ``evenhand.estimators``, or a generator
        measured : FairnessReport, optional
            Measurements of a classifier on the rows of ``data``.
        impact, data, sensitive, filled, saved_by
            As for ``Record``.
        """
        more: dict[str, Any] = {
            "sensitive": sensitive,
            "impact": impact,
            "data": data,
            "filled": filled or {},
            "saved_by": saved_by,
        }
        record: ModelRecord | GeneratorRecord
        if isinstance(model, Synthesizer):
            made = model.fitted_
            record = GeneratorRecord(
                report=GeneratorReport.of(model), fitted=made, ledger=_account(made.ledger), **more
            )
        else:
            fitted = FittedModel.of(model)
            about = ModelReport.of(model, measured=measured)
            record = ModelRecord(
                report=about, fitted=fitted, ledger=_account(fitted.ledger), **more
            )
        report = record.report
        # Without a bound there is nothing to register, and a generator selects nobody.
        left_out = {"registry": not report.guarantee.holds, "ll144": record.thing != "model"}
        names = [name for name in SECTIONS if not left_out.get(name)]
        said = {name: answers(QUESTIONS[name], name, record) for name in names}
        called = f"{report.method} {record.thing}"
        name = record.filled.get("registry", {}).get("basic.name", called)
        return cls(
            title=f"Card: {name}",
            method=report.method,
            guarantee=report.guarantee,
            allowed=report.allowed,
            spending=report.spending,
            facts=(),
            settings=report.settings,
            choices=report.choices,
            answers=said,
            impact=impact,
            data=data,
        )

    @property
    def sections(self) -> tuple[Section, ...]:
        """The claim, and what others ask."""
        templates = {"ll144": "card/impact.html"}
        asked = [
            Section(name, SECTIONS[name].title, templates.get(name, "card/asked.html"))
            for name in self.answers
        ]
        return (Section("claim", "The claim", "claim.html"), *asked)

    @property
    def sources(self) -> Mapping[str, str]:
        """Whose questions each section answers."""
        return {name: SECTIONS[name].source for name in self.answers}

    @property
    def n_blank(self) -> int:
        """Blanks that ``card.toml`` can fill."""
        return sum(
            answer.source == "blank" and answer.question.yours
            for section in self.answers.values()
            for answer in section
        )

    @property
    def exact_counts(self) -> str:
        """What publishing the exact counts gives away."""
        return EXACT_COUNTS

    @property
    def told(self) -> tuple[str, ...]:
        """Groups of whom the exact counts tell every member's decision."""
        return tuple(dict.fromkeys(group for table in self.impact for group in table.told))

    @property
    def entry(self) -> dict[str, Any]:
        """The entry for the registry.

        Raises
        ------
        ValueError
            For a model whose claim does not hold: it is no deployment of differential privacy.
        """
        if "registry" not in self.answers:
            raise ValueError(
                f"{self.guarantee} There is no deployment of differential privacy to register. "
                f"Write the card as html, md or json."
            )
        return registry.entry(self.answers["registry"])


def _account(ledger: Any) -> Mapping[str, Any] | None:
    if ledger is None:
        return None
    record: Mapping[str, Any] = (
        ledger.record if isinstance(ledger, SavedLedger) else ledger.to_dict()
    )
    return record
