"""Whether public rows look like the private ones: what is asked for, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from evenhand import _checks, _words
from evenhand._stored import stored

PURPOSE: Final = "noisy counts of the private rows, to compare with the public ones"
VOTES: Final = "answers about the public rows"
OF_DRIFT: Final = "Public rows beside private ones: "
"""How a sentence about them begins."""

WAY_OUT: Final = (
    "Take public rows of the same people, or none: rows are then drawn from noisy counts of the "
    "private ones (public='synthetic')."
)


class DriftWarning(UserWarning):
    """The public rows do not look like the private ones."""


@stored
@dataclass(frozen=True, kw_only=True)
class DriftCheck:
    """Compare the public rows with the private ones, column by column, before teachers are asked.

    The private rows are counted in each column, and by group where their groups are given to
    ``fit``; the counts are released with noise, and the shares that they give are compared with
    those of the public rows. Cuts and categories come from the public rows, or a schema, alone.

    Parameters
    ----------
    share : float, default 0.05
        Share of the budget (of ``mu_squared``) that the counts cost, in (0, 1).
    n_bins : int, default 8
        Parts of about as many public rows into which a numeric column is cut. At least 2.
    level : float, default 0.05
        Chance that any column at all is said to differ where private and public rows come from one
        distribution, in (0, 1).

    Privacy
    -------
    Neighbors : those of the fit (``neighbors=``): replace one record, as is the default of votes,
        or add or remove one, or one unit, of which the first row is counted.
    Sensitivity : a record is in one cell of each of m columns: ``sqrt(m)``, and ``sqrt(2 m)`` for
        replacing it.
    Cost : ``share`` of the budget, charged before the noise is drawn.

    Notes
    -----
    The distance of a column is the total variation of the two distributions: half the sum of the
    differences of shares, in [0, 1], best 0. Its limit is what rows that are drawn alike, in these
    numbers and with this noise, stay below but with probability ``level / m``, by simulation.
    Columns are looked at one by one: what differs only in how they go together, or in the labels,
    is not seen.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from evenhand import Budget, PATEClassifier
    >>> from evenhand.estimators.drift import DriftCheck, DriftWarning
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(4000, 2)), rng.normal([1.0, 0.0], size=(1000, 2))
    >>> model = PATEClassifier(
    ...     Budget(epsilon=4.0, delta=1e-5), check_drift=DriftCheck(share=0.1), random_state=0
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DriftWarning)
    ...     model = model.fit(X, X[:, 0] + X[:, 1] > 0, X_public=X_public)
    >>> [(column.name, column.differs) for column in model.drift_]
    [('x0', True), ('x1', False)]
    """

    share: float = _words.DRIFT_SHARE
    n_bins: int = 8
    level: float = 0.05

    def __post_init__(self) -> None:
        _checks.open_unit("share", self.share)
        _checks.at_least("n_bins", self.n_bins, 2)
        _checks.open_unit("level", self.level)


@dataclass(frozen=True, kw_only=True)
class ColumnDrift:
    """How far apart the public and the private rows are in one column, by noisy counts."""

    name: str
    distance: float
    """Total variation of the noisy table from the public one, in [0, 1]."""
    limit: float
    """What chance and noise alone stay below."""
    most: str
    """The part of the column in which they differ most."""
    private: float
    public: float
    """``private`` and ``public``: shares of that part; the private one is noisy."""

    @property
    def differs(self) -> bool:
        """Whether the distance is beyond chance and noise."""
        return self.distance > self.limit

    @property
    def said(self) -> str:
        """The distance, in words."""
        return (
            f"{self.name} (distance {self.distance:.3f}, by chance and noise below "
            f"{self.limit:.3f}; {self.most}: {self.private:.3f} of the private rows, "
            f"{self.public:.3f} of the public ones)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ColumnDrift:
        """Read what ``to_dict`` wrote."""
        return cls(
            name=str(values["name"]),
            distance=float(values["distance"]),
            limit=float(values["limit"]),
            most=str(values["most"]),
            private=float(values["private"]),
            public=float(values["public"]),
        )


def as_drift_check(check_drift: Any) -> DriftCheck | None:
    """Return what ``check_drift=`` stands for; None where nothing is to be compared.

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(check_drift, DriftCheck):
        return check_drift
    if isinstance(check_drift, bool):
        return DriftCheck() if check_drift else None
    raise TypeError(
        f"check_drift must be True, False or DriftCheck(...), got {type(check_drift).__name__}."
    )


def differing(drift: tuple[ColumnDrift, ...]) -> str:
    """Say in which columns the rows differ, for a claim; empty where they do in none."""
    apart = [column.name for column in drift if column.differs]
    if not apart:
        return ""
    return (
        f"the public rows differ from the private ones in {', '.join(apart)}: what is kept on them "
        f"may not hold for people like the private ones"
    )


def sentences(check: DriftCheck, drift: tuple[ColumnDrift, ...]) -> tuple[str, ...]:
    """Say what was paid for, and what was found."""
    head = (
        f"{OF_DRIFT}{check.share:.0%} of the budget paid for noisy counts of {len(drift)} columns "
        f"of the private rows. Where both are drawn alike, a column is said to differ with "
        f"probability {check.level:g} at most, noise included."
    )
    if apart := [column for column in drift if column.differs]:
        found = "; ".join(column.said for column in apart)
        return (head, f"{OF_DRIFT}they differ in {found}. {WAY_OUT}")
    widest = max(drift, key=lambda column: column.limit)
    return (
        head,
        f"{OF_DRIFT}no column differs beyond chance and noise, which hide distances up to "
        f"{widest.limit:.3f} ({widest.name}).",
    )
