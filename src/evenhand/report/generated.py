"""The part of a generator's report that is the same for tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.generators.budget_plan import SignalToNoise
from evenhand.generators.synthesizer import Synthesizer
from evenhand.report.page import Report
from evenhand.report.spending import Spending


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratorReport(Report):
    """What may be published of any fitted generator.

    Parameters
    ----------
    snr : SignalToNoise
        As predicted.
    notes : tuple of str
        What the user must know.
    shares : tuple of (str, float)
        Share of each combination of label and group, by the noisy counts.
    **others
        See ``Report``.
    """

    heading: ClassVar[str] = "Report on synthetic data"

    snr: SignalToNoise
    notes: tuple[str, ...]
    shares: tuple[tuple[str, float], ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before using what was generated."""
        return (*super().warnings, *self.notes)


def fields_of(
    generator: Synthesizer, title: str, dataset: Mapping[str, object] | None
) -> dict[str, Any]:
    """Return the fields of a ``GeneratorReport``, from a fitted or loaded generator."""
    ledger = generator.ledger_
    return {
        "title": title,
        "method": type(generator).__name__,
        "guarantee": generator.guarantee_,
        "spending": None if ledger is None else Spending.of(ledger.to_dict()),
        "snr": generator.snr_,
        "notes": generator.notes_,
        "shares": tuple((str(k), float(v)) for k, v in generator.shares_.items()),
        "facts": tuple((str(k), str(v)) for k, v in (dataset or {}).items()),
        "settings": tuple((k, repr(v)) for k, v in generator.settings().items()),
    }
