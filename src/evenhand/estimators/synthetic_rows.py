"""How rows are drawn from noisy counts that a share of the budget pays for: the settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from evenhand import _checks, _words
from evenhand._stored import stored

SYNTHETIC: Final = "synthetic"
"""The word for ``public=``."""

NO_PUBLIC_ROWS: Final = "No public rows: "
BESIDE_ROWS: Final = "Beside the public rows: "
OF_DRAWN_ROWS: Final = "Of the drawn rows: "
"""How sentences about them begin."""

BALANCES: Final = ("none", "group", "label", "both")


class SyntheticRowsWarning(UserWarning):
    """The noisy counts say too little of some column, label or group to draw rows like it."""


@stored
@dataclass(frozen=True, kw_only=True)
class SyntheticRows:
    """How rows are drawn from noisy counts, where there are no public ones, or beside these.

    ``MarginalSynthesizer`` counts features, label and group with noise under the ledger of the fit;
    rows are drawn from these counts, and the teachers are asked for their labels. A student that
    learns noisy shares learns the chances that the counts give the labels of other drawn rows
    beside them (``MarginalSynthesizer.label_chances``): votes know what counts of single and pairs
    of columns do not, and counts have less noise. Rows are many, so curves stand beside numbers,
    which bend what a student learns (``PublicEncoder``). What a schema does not declare of the
    columns is released from the same share.

    A margin is read on drawn rows. Where these give a group other rates than the private rows do,
    noisy counts of the decisions of a first student tell (``counted_decisions``), for a twentieth
    of ``share``, and the margin is set right by them.

    With ``X_public`` the teachers are asked about the public rows, and a margin is read there. The
    student learns what the counts say of the labels of these, and of drawn rows, which weigh as
    1000 of them do. Categories and bounds are then those of the public rows, at no cost, and no
    groups are counted.

    Parameters
    ----------
    share : float, optional
        Share of the budget (of ``mu_squared``) that the counts cost, in (0, 1). Default 0.9 where
        the student learns labels by the counts, else 0.2.
    n_rows : int, default 2000
        Rows to draw and to ask about; with ``X_public`` nobody is asked about drawn rows. Drawing
        costs no privacy; asking about more rows puts more noise on each answer.
    balance : {"none", "group", "label", "both"}, default "none"
        What is drawn evenly among the rows to ask about, and else as often as it is by the noisy
        counts. A margin is read on rows that are drawn as they are, whatever is balanced here.
    n_bins : int, default 16
        Bins of a numeric column, at most.
    pairs : bool, default True
        Whether pairs of columns that depend on each other are counted too.
    per_unit : int, default 1
        Rows of one unit that are counted, where ``unit_ids`` say whose they are.
    keep : tuple of str
        Columns to take as they are although they look like identifiers or dates.
    label_weight : float, default 64.0
        What the chances by the counts weigh in the student's loss, beside the answers; a quarter
        of it where records are too few for the odds of labels (``MarginalSynthesizer.tilt``); 0
        for answers alone. At least 0. Without public rows a student of released labels
        (``FairPATEClassifier``) reads none.

    Privacy
    -------
    Cost : ``share`` of the budget, charged before each draw of noise, and a tenth of delta where
        categories or bounds are to be released.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Budget, DemographicParity, FairSharesClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=4000)
    >>> X = rng.normal(size=(4000, 3)) + sex[:, None] * [[1.0, 0.0, 0.0]]
    >>> y = X.sum(axis=1) + rng.normal(size=4000) > 0.5
    >>> model = FairSharesClassifier(
    ...     Budget(epsilon=4.0, delta=1e-5), DemographicParity(margin=0.05),
    ...     public=SyntheticRows(share=0.3, n_rows=2000), random_state=0,
    ... )
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> model.within_margin_, model.guarantee_.public[0][:6]
    (True, 'no row')
    """

    share: float | None = None
    n_rows: int = 2000
    balance: str = "none"
    n_bins: int = 16
    pairs: bool = True
    per_unit: int = 1
    keep: tuple[str, ...] = ()
    label_weight: float = 64.0

    def __post_init__(self) -> None:
        if self.share is not None:
            _checks.open_unit("share", self.share)
        _checks.at_least("n_rows", self.n_rows, 20)
        _checks.one_of("balance", self.balance, BALANCES)
        _checks.at_least("n_bins", self.n_bins, 2)
        _checks.at_least("per_unit", self.per_unit, 1)
        _checks.non_negative("label_weight", self.label_weight)
        object.__setattr__(self, "keep", tuple(self.keep))

    def decided(self, released: str, *, beside: bool = False) -> SyntheticRows:
        """Return the same with what was left open.

        Parameters
        ----------
        released : {"shares", "labels"}
            What is released of the votes.
        beside : bool
            Whether there are public rows.
        """
        weight = self.label_weight if beside or released == "shares" else 0.0
        share = _words.SYNTHETIC_SHARE if weight else _words.SHARE_FOR_ROWS
        return replace(self, label_weight=weight, share=self.share or share)

    def useless_beside(self) -> list[str]:
        """Return what of these settings says nothing where there are public rows."""
        plain = SyntheticRows()
        out = [
            f"{name}={getattr(self, name)!r} is about rows to ask about"
            for name in ("n_rows", "balance")
            if getattr(self, name) != getattr(plain, name)
        ]
        if not self.label_weight:
            out.append("label_weight=0 leaves nothing that the student learns of the counts")
        return out

    def said(self, *, beside: bool = False) -> str:
        """Return the choice in a sentence, once it is ``decided``."""
        assert self.share is not None
        if beside:
            return (
                f"{BESIDE_ROWS}{self.share:.0%} of the budget pays for noisy counts of the private "
                f"rows, and {1 - self.share:.0%} for the teachers' answers about the public rows. "
                f"The student learns both: the answers, and what the counts say of the labels of "
                f"these rows and of drawn ones."
            )
        evenly = {
            "none": "as often as they are by these counts",
            "group": "with as many of each group",
            "label": "with as many of each class",
            "both": "with as many of each class and group",
        }[self.balance]
        return (
            f"{NO_PUBLIC_ROWS}{self.share:.0%} of the budget pays for noisy counts of the private "
            f"rows, and {self.n_rows:,} rows are drawn from them, {evenly}. The teachers are asked "
            f"about these."
            + (
                " The student learns what these counts say of labels, too."
                if self.label_weight
                else ""
            )
        )


def as_synthetic(public: Any) -> SyntheticRows | None:
    """Return what ``public=`` stands for; None where rows are given or set aside.

    Raises
    ------
    ValueError
        For anything else: public rows themselves are an argument of ``fit``.
    """
    if public is None or isinstance(public, SyntheticRows):
        return public
    if isinstance(public, str) and public == SYNTHETIC:
        return SyntheticRows()
    got = repr(public) if isinstance(public, str | int | float) else type(public).__name__
    raise ValueError(
        f"public must be None, {SYNTHETIC!r} or SyntheticRows(...), got {got}. Public rows "
        f"themselves are given to fit: X_public=."
    )
