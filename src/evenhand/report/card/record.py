"""What a card may read of a model or a generator: its report, what is filled in, the versions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Final

from evenhand._version import __version__
from evenhand.estimators.fitted import FittedModel
from evenhand.fairness.impact import ImpactRatio
from evenhand.generators.fitted import FittedGenerator
from evenhand.privacy import Guarantee
from evenhand.report.settings import listed

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
    """Selection rates and impact ratios of the groups of one grouping."""

    HEAD: ClassVar[tuple[str, ...]] = (
        *("Group", "Rows", "Selected", "Rate", "Its interval", "Ratio", "Interval of the ratio"),
        "Below 4/5",
    )

    by: str
    """Names of the columns."""
    selected: str
    """The class that counts as being selected, or what a score was above."""
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
class Record(ABC):
    """The record of one model or generator, from which every answer of a card follows."""

    product: ClassVar[str]
    """What it is, in the words of the registry of deployments."""
    thing: ClassVar[str]
    """What it is called in a sentence."""

    report: Any
    """Everything that may be published of it."""
    ledger: Mapping[str, Any] | None
    """The account as ``Ledger.to_dict`` gives it; None where nothing was spent."""
    sensitive: tuple[str, ...] = ()
    """Names of the sensitive columns, as far as they are remembered."""
    impact: tuple[ImpactTable, ...] = ()
    """What was measured on labelled rows; empty without any."""
    data: str = ""
    """Name of the file of these rows."""
    filled: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What ``card.toml`` says, by section and key, as ``read_filled`` returns it."""
    saved_by: str = ""
    """Version of evenhand that wrote the folder; empty where it is not known."""

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""
        claimed: Guarantee = self.report.guarantee
        return claimed

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called where nobody named it."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What it is, in a sentence."""

    @property
    @abstractmethod
    def domain(self) -> str:
        """Which data sets are protected."""

    @property
    @abstractmethod
    def columns(self) -> str:
        """Categories of the data that it learned from."""

    @property
    @abstractmethod
    def utility(self) -> str | None:
        """How useful it is, as far as that is known."""

    @property
    @abstractmethod
    def bias(self) -> str:
        """How groups are treated."""

    @property
    @abstractmethod
    def measured(self) -> str | None:
        """What was measured of groups."""

    @property
    @abstractmethod
    def measures(self) -> str:
        """What was done about bias."""

    @property
    @abstractmethod
    def reads_groups(self) -> str:
        """Whether its use needs the sensitive attribute."""

    @property
    @abstractmethod
    def use(self) -> str:
        """How it is used."""

    @property
    @abstractmethod
    def derived(self) -> str:
        """What is computed from the released values."""

    @property
    @abstractmethod
    def limits(self) -> str:
        """What nobody should expect of it."""

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
        """Which code made it, as far as it is known, and which made this card."""
        there = []
        for name in LIBRARIES:
            try:
                there.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                continue
        made = (
            f"evenhand {self.saved_by} wrote the {self.thing}" if self.saved_by else "not recorded"
        )
        return (
            f"{made}. Versions of its libraries are not kept with a {self.thing}; this card was "
            f"made with evenhand {__version__}, {', '.join(there)}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelRecord(Record):
    """The record of a classifier."""

    product: ClassVar[str] = "Machine learning model"
    thing: ClassVar[str] = "model"

    fitted: FittedModel

    @property
    def name(self) -> str:
        """What it decides, by what method."""
        return f"{self.fitted.method} of {listed(self.fitted.class_names)}"

    @property
    def description(self) -> str:
        """A classifier of what, from what."""
        fitted = self.fitted
        margin = "" if fitted.notion is None else f", with a margin of {fitted.notion}"
        return (
            f"A classifier of {listed(fitted.class_names)} from {fitted.n_columns} columns, "
            f"trained by {fitted.method}{margin}"
        )

    @property
    def _named(self) -> str:
        return listed(self.fitted.columns) or f"{self.fitted.n_columns} columns of an array"

    @property
    def domain(self) -> str:
        """Tables of the columns of training."""
        return (
            f"Tables of one row per record, with {self._named} and a label among "
            f"{listed(self.fitted.class_names)}"
        )

    @property
    def columns(self) -> str:
        """Columns, label and groups."""
        groups = f"; groups by {listed(self.sensitive)}" if self.sensitive else ""
        return f"{self._named}; label: {listed(self.fitted.class_names)}{groups}"

    @property
    def utility(self) -> str | None:
        """Its error, on test rows or by the released answers."""
        found = self.report.measured
        if found is not None and found.error is not None:
            return (
                f"Error on {found.n_rows:,} labelled rows: {found.error.value:.4f}, "
                f"{found.level:.0%} interval {found.error.low:.4f} to {found.error.high:.4f}; "
                f"{self.report.compared}"
            )
        if self.report.yardstick is not None:
            error = self.report.yardstick.error
            return (
                f"Error by the released answers: {error.value:.4f}, {error.level:.0%} interval "
                f"{error.low:.4f} to {error.high:.4f}; {self.report.compared}"
            )
        return None

    @property
    def bias(self) -> str:
        """Margin, where it sits, and gaps that were measured."""
        fitted = self.fitted
        said = [] if fitted.notion is None else [f"margin {fitted.margin:g} of {fitted.notion}"]
        said.append(str(fitted.kind))
        found = self.report.measured
        if found is not None:
            said += [
                f"{gap.name} gap, {gap.compares}: {gap.estimate.value:.4f}"
                for gap in found.gaps
                if gap.reference == "rest"
            ]
        return "; ".join(said)

    @property
    def measured(self) -> str | None:
        """Gaps on labelled rows."""
        found = self.report.measured
        if found is None:
            return None
        gaps = "; ".join(
            f"{gap.name} against {gap.reference}: {gap.estimate.value:.4f} "
            f"({gap.estimate.low:.4f} to {gap.estimate.high:.4f})"
            for gap in found.gaps
            if gap.reference
        )
        return f"Measured on {found.n_rows:,} labelled rows of {self.data or 'test data'}: {gaps}"

    @property
    def measures(self) -> str:
        """The margin."""
        fitted = self.fitted
        if fitted.notion is None or fitted.margin is None:
            return f"No margin was named. Where one sits: {fitted.kind}"
        return f"A margin of {fitted.margin:g} of {fitted.notion}; where it sits: {fitted.kind}"

    @property
    def reads_groups(self) -> str:
        """Whether a prediction needs the group."""
        reads = listed(self.sensitive) or "the sensitive attribute"
        at = "is needed" if self.fitted.needs_group else "is not read"
        return f"At prediction {reads} {at}"

    @property
    def use(self) -> str:
        """How to predict."""
        needs = "needs" if self.fitted.needs_group else "does not need"
        return (
            f"evenhand predict, or evenhand.load in Python; a prediction {needs} the group of the "
            f"person. evenhand serve keeps decisions and counts"
        )

    @property
    def derived(self) -> str:
        """What the student learns from."""
        return (
            "The student learns from what was released and from public rows; its predictions, and "
            "this entry, are computed from it"
            if self.fitted.answers is not None
            else "Predictions, and this entry, are computed from the released model"
        )

    @property
    def limits(self) -> str:
        """What a margin does not do."""
        return "a margin in training promises nothing on rows of other people"


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratorRecord(Record):
    """The record of a generator of rows or pictures."""

    product: ClassVar[str] = "Synthetic data"
    thing: ClassVar[str] = "generator"

    fitted: FittedGenerator

    @property
    def _conditions(self) -> str:
        named = self.fitted.codec.conditions
        parts = zip(named.names, named.categories, strict=True)
        return "; ".join(f"{name}: {listed([*map(str, values)])}" for name, values in parts)

    @property
    def name(self) -> str:
        """What it makes, by what method."""
        return f"Synthetic {self.report.words.records} by {self.fitted.name}"

    @property
    def description(self) -> str:
        """A generator of what, under which conditions."""
        return (
            f"A generator of {self.fitted.codec.memory[0]}, conditioned on label and group "
            f"({self._conditions}), trained by {self.fitted.name}"
        )

    @property
    def domain(self) -> str:
        """Data sets of such records."""
        return (
            f"Data sets of {self.fitted.codec.memory[0]}, with label and group ({self._conditions})"
        )

    @property
    def columns(self) -> str:
        """What a record is, and its label and groups."""
        return f"{self.fitted.codec.memory[0]}; label and group: {self._conditions}"

    @property
    def utility(self) -> str | None:
        """What is predicted of the noise; how near rows are is measured on real ones."""
        return f"{self.fitted.snr}"

    @property
    def bias(self) -> str:
        """Shares as learnt."""
        shares = "; ".join(f"{name}: {share:.3f}" for name, share in self.fitted.shares.items())
        return f"Shares of the combinations of label and group, by noisy counts: {shares}"

    @property
    def measured(self) -> str | None:
        """Shares, which are released."""
        return self.bias

    @property
    def measures(self) -> str:
        """Rows in any balance."""
        return (
            "Records are drawn in the balance that is asked for: labels and groups evenly by "
            "default, or as they are. That changes how many there are of each, and not what a "
            "group's records say"
        )

    @property
    def reads_groups(self) -> str:
        """Groups are columns of the synthetic records."""
        return "Synthetic records carry label and group; no record of a person is kept"

    @property
    def use(self) -> str:
        """How to draw."""
        return "evenhand.generators.load(folder).sample(n) in Python; drawing costs no privacy"

    @property
    def derived(self) -> str:
        """Everything that is drawn."""
        return "Every synthetic record, and this entry, are computed from the released generator"

    @property
    def limits(self) -> str:
        """What rows do not show."""
        return "what synthetic records do not show may be in the data all the same"


def _number(value: float) -> str:
    if value != value:
        return "no data"
    return "no limit" if value == float("inf") else f"{value:.3f}"
