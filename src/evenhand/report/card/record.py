"""What a card may read of a model: its report, what is filled in, and the versions at work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Final

from evenhand._version import __version__
from evenhand.estimators.fitted import FittedModel
from evenhand.fairness.impact import ImpactRatio
from evenhand.report.content import ModelReport

EXACT_COUNTS: Final = (
    "These counts are exact, and no guarantee covers them. Whoever knows every other member of a "
    "group learns the decision about the last one by subtraction, and two tables of rows that "
    "differ by one person tell that person’s group and decision. Publish them only if the people "
    "in these rows may be known in that way; evenhand assess releases such tables with noise, on "
    "a budget of its own."
)
"""What publishing exact counts gives away."""

LIBRARIES: Final = ("opendp", "dp-accounting", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True, kw_only=True, eq=False)
class ImpactTable:
    """Selection rates and impact ratios of the groups of one grouping.

    Parameters
    ----------
    by : str
        Names of the columns.
    selected : str
        The class that counts as being selected, or what a score was above.
    rows : tuple of ImpactRatio
    """

    HEAD: ClassVar[tuple[str, ...]] = (
        *("Group", "Rows", "Selected", "Rate", "Its interval", "Ratio", "Interval of the ratio"),
        "Below 4/5",
    )

    by: str
    selected: str
    rows: tuple[ImpactRatio, ...]

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The table for readers: texts, below ``HEAD``."""
        return [
            (
                row.group + (" (under 2 % of the rows)" if row.small else ""),
                f"{row.n:,}",
                f"{row.n_selected:,}",
                _number(row.rate),
                f"{row.rate_low:.3f} to {row.rate_high:.3f}",
                _number(row.ratio),
                f"{row.ratio_low:.3f} to {_number(row.ratio_high)}",
                f"{'yes' if row.below_four_fifths else 'no'}; by its interval: {row.by_interval}",
            )
            for row in self.rows
        ]

    @property
    def n_rows(self) -> int:
        """Rows that were counted."""
        return sum(row.n for row in self.rows)

    @property
    def told(self) -> tuple[str, ...]:
        """Groups whose counts alone tell every member's decision: all got the same."""
        return tuple(row.group for row in self.rows if row.n and row.n_selected in (0, row.n))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for machines."""
        return {
            "by": self.by,
            "selected": self.selected,
            "n_rows": self.n_rows,
            "groups": [row.to_dict() for row in self.rows],
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """The record of one model, from which every answer of a card follows.

    Parameters
    ----------
    report : ModelReport
        Everything that may be published of the model.
    fitted : FittedModel
    ledger : mapping or None
        The account as ``Ledger.to_dict`` gives it; None where nothing was spent.
    sensitive : tuple of str
        Names of the sensitive columns, as far as they are remembered.
    impact : tuple of ImpactTable
        What was measured on labelled rows; empty without any.
    data : str
        Name of the file of these rows.
    filled : mapping
        What ``card.toml`` says, by section and key, as ``read_filled`` returns it.
    saved_by : str
        Version of evenhand that wrote the folder; empty where it is not known.
    """

    report: ModelReport
    fitted: FittedModel
    ledger: Mapping[str, Any] | None
    sensitive: tuple[str, ...] = ()
    impact: tuple[ImpactTable, ...] = ()
    data: str = ""
    filled: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    saved_by: str = ""

    @cached_property
    def parts(self) -> tuple[Mapping[str, Any], ...]:
        """The ledgers that the claim rests on."""
        return () if self.ledger is None else tuple(self.ledger.get("parts", [self.ledger]))

    @property
    def mechanisms(self) -> str:
        """What drew noise, how often, and for what."""
        spending = self.report.spending
        if spending is None:
            return ""
        return "; ".join(
            f"{charge.mechanism}, {charge.n_uses:,} use{'s' * (charge.n_uses != 1)} "
            f"for {charge.purpose}" + (f" ({charge.words})" if charge.words else "")
            for charge in spending.charges
        )

    @property
    def versions(self) -> str:
        """Which code made the model, as far as it is known, and which made this card."""
        there = []
        for name in LIBRARIES:
            try:
                there.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                continue
        made = f"evenhand {self.saved_by} wrote the model" if self.saved_by else "not recorded"
        return (
            f"{made}. Versions of its libraries are not kept with a model; this card was made with "
            f"evenhand {__version__}, {', '.join(there)}"
        )


def _number(value: float) -> str:
    if value != value:
        return "no data"
    return "no limit" if value == float("inf") else f"{value:.3f}"
