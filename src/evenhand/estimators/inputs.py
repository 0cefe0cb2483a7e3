"""What ``fit`` was given: its arguments, and the private and the public rows they come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from evenhand import _checks
from evenhand._frames import refuse_other_order
from evenhand.datasets.features.extractor import ExtractorRecord
from evenhand.datasets.parquet import ParquetRows
from evenhand.estimators.drawn_rows import DrawnRows, RowsToDraw
from evenhand.estimators.spec import CALIBRATION
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.owners.collection import OwnerVotes
from evenhand.owners.noisy_sums import NoisySums
from evenhand.privacy import Guarantee, Ledger
from evenhand.typing import Array, ArrayLike, IntArray

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``."""

NOT_TAKEN: Final[Mapping[str, str]] = {
    "sensitive_features": "it keeps no margin and reads no groups. Leave it out, or use "
    "FairSharesClassifier or FairPATEClassifier for a margin between groups",
    "X_public": "it takes the features of all rows as public, so they scale themselves. Leave it "
    "out",
    "sensitive_features_public": "it reads no groups of public rows. Leave it out, or use "
    "FairSharesClassifier or FairPATEClassifier, which keep their margin on public rows",
    **dict.fromkeys(
        CALIBRATION,
        "it reads no margin on calibration rows. Leave them out, or use FairSharesClassifier or "
        "FairPATEClassifier with a margin about true classes",
    ),
    "unit_ids": "it protects single rows, and no units that have several. Leave it out, with one "
    "row for each unit, or use PATEClassifier, FairSharesClassifier or FairPATEClassifier",
    "ledger": "it promises nothing, so there is nothing to charge. Leave it out",
    "progress": "it trains in one step. Leave it out",
}
"""Arguments of ``fit`` that not every method takes: why not, and what to do."""


_ROWS: Final = (
    ("X", "y", "sensitive_features", "unit_ids"),
    ("X_public", "sensitive_features_public"),
    ("X_calibration", "y_calibration", "sensitive_features_calibration"),
)
"""Arguments of ``fit`` that hold one row each of the same records."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FitArguments:
    """The arguments of ``fit``, as given; ``ClassifierWithClaim.fit`` says what each of them is.

    With ``votes`` they are those of ``from_votes``, and there are no private rows.
    """

    X: Any
    y: ArrayLike
    sensitive_features: Any = None
    X_public: Any = None
    sensitive_features_public: Any = None
    X_calibration: Any = None
    y_calibration: ArrayLike | None = None
    sensitive_features_calibration: Any = None
    unit_ids: ArrayLike | None = None
    ledger: Ledger | None = None
    progress: Progress | None = None
    votes: OwnerVotes | NoisySums | None = None

    def stage(self, name: str) -> Callable[[int, int], None] | None:
        """Return ``progress`` of one stage: it is called with what is done, and of how much."""
        return stage(self.progress, name)

    def require(self, taken: tuple[str, ...], by: str) -> None:
        """Refuse arguments that a method does not take.

        Raises
        ------
        TypeError
            With the reason, and the way out; also for a ledger and a progress that are none.
        """
        for name, why in NOT_TAKEN.items():
            if getattr(self, name) is not None and name not in taken:
                raise TypeError(f"{by} does not take {name}=: {why}.")
        if self.ledger is not None:
            _checks.of_type("ledger", self.ledger, Ledger, "For example Ledger(budget).")
        if self.progress is not None and not callable(self.progress):
            raise TypeError(
                f"progress must be a function progress(stage, done, total), got {self.progress!r}."
            )
        for names in _ROWS:
            refuse_other_order(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Private rows in files, and what their columns are for."""

    rows: ParquetRows
    label: str
    unit: str | None
    """Column that says whose record a row is; None where each row is a record of its own."""
    columns: tuple[str, ...]
    """The features, which are those of the public rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FitInputs:
    """The private rows with their labels, and the public rows without."""

    X_private: Any
    """DataFrame or ndarray of shape (n_private, n_columns)."""
    y_private: IntArray
    """Class codes. Shape (n_private,)."""
    X_public: Any
    """DataFrame or ndarray of shape (n_public, n_columns)."""
    classes: Array
    """What the codes stand for. Public. Shape (n_classes,)."""
    groups_public: GroupCodes | None
    """Groups of the public rows."""
    units: Array | None
    """Unit ids of the private rows, as ``ids_of`` names them: 17 and "17" are one. Shape
    (n_private,).
    """
    set_aside: int
    """Public rows that were taken from ``X`` itself, whose features the guarantee does not cover.
    """
    private_rows: IntArray
    """Which rows of ``X`` are private. Shape (n_private,)."""
    sensitive_private: Any = None
    """Sensitive features of the private rows, as given. Private; read by teachers alone."""
    extractor: ExtractorRecord | None = None
    """The extractor that made the rows of pictures; None for other rows."""
    cast: OwnerVotes | NoisySums | None = None
    """Votes of teachers elsewhere; there are no private rows then."""
    to_draw: RowsToDraw | None = None
    """How rows are to be made of noisy counts, to ask about or beside the public ones; None where
    none are.
    """
    drawn: DrawnRows | None = None
    """Those rows, once they are made."""
    stream: Stream | None = None
    """Private rows that are read in batches; none is held here then."""
    hides_n: bool = False
    """Whether the number of private rows is private although each is a unit of its own."""

    def with_rows(self, drawn: DrawnRows) -> FitInputs:
        """Return the same with drawn rows, which are asked about where none are public."""
        if drawn.X is None:
            return replace(self, drawn=drawn)
        return replace(self, X_public=drawn.X, groups_public=drawn.groups, drawn=drawn)

    @property
    def made_by(self) -> tuple[str, ...]:
        """The extractor as a claim says it; empty for rows that none made."""
        return () if self.extractor is None else (str(self.extractor),)

    def known(self, *others: str) -> tuple[str, ...]:
        """Return what a claim takes as known: of public rows the features alone."""
        rows = (f"the features of the {self.n_public} public rows",) if self.n_public else ()
        return (*rows, *self.made_by, "the names of columns and classes", *others, "all settings")

    def not_covered(self, *others: str) -> tuple[str, ...]:
        """Return what a claim does not cover: of rows that were set aside, the features alone."""
        aside = f"the features of {self.set_aside} rows of the table, set aside as public"
        return (
            *((aside,) if self.set_aside else ()),
            *others,
            "a choice of settings or of a model made by looking at private data",
            "measurements on private or test rows",
        )

    @property
    def groups_private(self) -> GroupCodes:
        """Groups of the private rows by the names of the public ones, for teachers that read them.

        Raises
        ------
        ValueError
            If they are missing, or name a group that no public row has.
        """
        if self.sensitive_private is None:
            raise ValueError(
                "These teachers read the group of every private row, and sensitive_features is "
                "missing. Pass it to fit, or choose teachers or a point that read no groups."
            )
        return encode_groups(self.sensitive_private, names=self.required_groups.names)

    @property
    def required_groups(self) -> GroupCodes:
        """Groups of the public rows, where ``read_fit_inputs`` required them."""
        if self.groups_public is None:
            raise ValueError("The groups of the public rows are missing.")
        return self.groups_public

    @property
    def n_private(self) -> int:
        """Number of private rows."""
        return len(self.y_private) if self.stream is None else len(self.stream.rows)

    @property
    def by_unit(self) -> bool:
        """Whether rows name the unit whose they are."""
        return self.units is not None or (self.stream is not None and self.stream.unit is not None)

    @property
    def n_is_public(self) -> bool:
        """Whether the claim takes the number of private rows as known."""
        return not (self.by_unit or self.hides_n)

    @property
    def n_units(self) -> int:
        """Number of units that hold the private rows; each row is one where no ids were given.

        Of a stream the number of rows, which is not smaller: units are not counted there.
        """
        return self.n_private if self.units is None else len(np.unique(self.units))

    @property
    def n_public(self) -> int:
        """Number of rows to ask about, those that are still to be drawn included."""
        if self.to_draw is None or not self.to_draw.asked:
            return len(self.X_public)
        return self.to_draw.settings.n_rows

    @property
    def asks_drawn_rows(self) -> bool:
        """Whether the rows to ask about are drawn from noisy counts."""
        return self.to_draw is not None and self.to_draw.asked

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)


def without_groups_of(claim: Guarantee, aside: IntArray | None, n: int, labels: bool) -> Guarantee:
    """Return a claim that does not cover the groups of ``n`` rows, if they are those set aside.

    As many rows as ``public_fraction`` set aside are taken to be these; ``labels`` says that their
    labels are given away with their groups.
    """
    if aside is None or n != len(aside):
        return claim
    what = "groups and labels" if labels else "groups"
    said = f"the {what} of the {n} rows that were set aside as public"
    known = said, f"the features and groups of {n} rows of the table, set aside as public"
    if not labels and any(line in claim.not_covered for line in known):
        return claim
    return replace(claim, not_covered=(said, *claim.not_covered))


def groups_to_decide(
    X: Any,
    sensitive_features: Any,
    names: tuple[str, ...] | None,
    needed: str = "This model needs the group of each row at prediction: pass sensitive_features=. "
    "For a model that needs none use a margin in training.",
) -> GroupCodes:
    """Return the groups of rows about which a model decides by them; ``needed`` says that it is."""
    if sensitive_features is None:
        raise ValueError(needed)
    refuse_other_order(X=X, sensitive_features=sensitive_features)
    return encode_groups(sensitive_features, names=names)


def calibration_given(given: Mapping[str, Any]) -> bool:
    """Return whether there are calibration rows.

    Raises
    ------
    ValueError
        If not all of them is given.
    """
    absent = [name for name in CALIBRATION if given[name] is None]
    if 0 < len(absent) < len(CALIBRATION):
        raise ValueError(
            f"Calibration rows need features, labels and groups, and {' and '.join(absent)} is "
            f"missing. Pass all three, or none."
        )
    return not absent


def stage(progress: Progress | None, name: str) -> Callable[[int, int], None] | None:
    """Return ``progress`` of one stage, where there is any."""
    return None if progress is None else lambda done, total: progress(name, done, total)
