"""What a person may decide about one request, and what stands after it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evenhand import _checks
from evenhand.typing import REJECTED


class DecidedAlready(ValueError):
    """A request that a person has decided before."""


class PassesMargin(ValueError):
    """A person's decision that would take the given labels out of the margin.

    Parameters
    ----------
    gap, margin : float
        The gap after the decision, and the margin.
    """

    def __init__(self, gap: float, margin: float) -> None:
        self.gap, self.margin = gap, margin
        super().__init__(
            f"With this decision the gap is {gap:.6g}, above the margin of {margin:g}. Decide "
            f"another request first, or take it with force=True: the margin is then passed by a "
            f"person, and the reports say so."
        )


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it stands, for a person to decide.

    Examples
    --------
    >>> refused = Request(number=7, group=0, said=1)
    >>> delivered = refused.decided(1)
    >>> delivered.given, delivered.decided(REJECTED).given
    (1, -1)
    >>> delivered.decided(0)
    Traceback (most recent call last):
    evenhand.fairness.gate.review.DecidedAlready: Request 7 was decided by a person already: its
    label may be withdrawn, and not replaced.
    """

    number: int
    """Its number, from ``Decisions.ids``."""
    group: int
    said: int
    """``group`` and ``said``: codes of its group, and of the class that the model said."""
    given: int = REJECTED
    """Code of the class that was given; ``REJECTED`` (-1) if none was."""
    by_person: bool = False
    """Whether a person has decided it."""

    def __post_init__(self) -> None:
        for name in ("number", "group", "said"):
            _checks.at_least(name, getattr(self, name), 0)
        _checks.at_least("given", self.given, REJECTED)

    def decided(self, label: int) -> Request:
        """Return the request as it stands after a person's decision.

        Parameters
        ----------
        label : int
            The class that is given from now on. ``REJECTED`` withdraws a label that was given, and
            closes a request that has none.

        Raises
        ------
        DecidedAlready
            If a person has decided it; a label that a person gave may still be withdrawn.
        """
        withdraws = label == REJECTED
        if self.by_person and not (withdraws and self.given != REJECTED):
            way_out = (
                "it stays without a label."
                if self.given == REJECTED
                else "its label may be withdrawn, and not replaced."
            )
            raise DecidedAlready(
                f"Request {self.number} was decided by a person already: {way_out}"
            )
        if not withdraws and label == self.given:
            raise DecidedAlready(f"Request {self.number} has this label already.")
        return replace(self, given=label, by_person=True)
