"""What may be told of any generator, whatever it generates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evenhand._version import __version__
from evenhand.generators import SignalToNoise
from evenhand.generators.synthesizer import ConditionalGenerator
from evenhand.privacy import Guarantee
from evenhand.report.spending import Spending

KIND: Final = "Report on synthetic data"
"""The first line of the page."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratorReport:
    """What may be told of any fitted generator.

    Parameters
    ----------
    title : str
    method : str
        Name of the generator's class.
    guarantee : Guarantee
    spending : Spending or None
        None where nothing was spent.
    snr : SignalToNoise
        As predicted.
    notes : tuple of str
        What the user must know.
    shares : tuple of (str, float)
        Share of each combination of label and group, by the noisy counts.
    facts, settings : tuple of (str, str)
        What the writer says of the data; the generator's arguments.
    version : str
    """

    title: str
    method: str
    guarantee: Guarantee
    spending: Spending | None
    snr: SignalToNoise
    notes: tuple[str, ...]
    shares: tuple[tuple[str, float], ...]
    facts: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    version: str

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before using what was generated."""
        return (*self.guarantee.cautions, *self.notes)


def told_of(
    generator: ConditionalGenerator, title: str, dataset: Mapping[str, object] | None
) -> dict[str, Any]:
    """Return the fields of a ``GeneratorReport``, from a fitted or loaded generator."""
    books = generator.ledger_
    return {
        "title": title,
        "method": type(generator).__name__,
        "guarantee": generator.guarantee_,
        "spending": None if books is None else Spending.of(books.to_dict()),
        "snr": generator.snr_,
        "notes": generator.notes_,
        "shares": tuple((str(k), float(v)) for k, v in generator.shares_.items()),
        "facts": tuple((str(k), str(v)) for k, v in (dataset or {}).items()),
        "settings": tuple((k, repr(v)) for k, v in generator.settings().items()),
        "version": __version__,
    }
