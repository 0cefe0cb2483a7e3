"""What the core asks of a kind of data: read, encode and decode; all else is the same for all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.conditions import Conditions
from evenhand.typing import Array, IntArray

Progress = Callable[[str, int, int], None]
"""Called with a stage, what is done of it, and how much there is.

For the curator: of pictures the exact number is among it, which is private where neighbors add or
remove one.
"""


class Encoded(Protocol):
    """Private records as a method reads them; every kind of data adds numbers of its own."""

    @property
    def condition(self) -> IntArray:
        """Combination of label and group of each record, shape (n,)."""

    @property
    def units(self) -> Array | None:
        """Whose record it is; None without units."""

    @property
    def per_unit(self) -> int:
        """Records that one unit has at most; 1 without units."""


class Codec(Protocol):
    """From what a method draws to the user's records; made of what is public or was released."""

    @property
    def conditions(self) -> Conditions:
        """The combinations of label and group that a generator is conditioned on."""

    @property
    def memory(self) -> tuple[str, float]:
        """Return what one record is, such as "rows of 7 columns", and the bytes that it needs."""

    def decode(
        self, made: Any, conditions: IntArray, rng: np.random.Generator, index: Any = None
    ) -> Any:
        """Return what a user gets.

        Parameters
        ----------
        made : ndarray
            What a method drew, one record per condition.
        conditions : ndarray of int64, shape (n,)
        rng : Generator
        index : optional
            Index of the table of conditions that was given.
        """

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; the class method ``from_dict`` reads them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Encoding:
    """Private records encoded, and what was released on the way."""

    codec: Any
    """A ``Codec``."""
    data: Any
    """An ``Encoded``."""
    notes: tuple[str, ...] = ()
    """What was released, what was done with the records, and what the noise may hide."""
    warnings: tuple[str, ...] = ()
    """What fell under the noise for sure. All are of released numbers alone."""


class Payload(ABC):
    """Private records of one kind, read and checked, before anything of them is released."""

    known: Any
    """What a method may know before the first release, to refuse a run that cannot end."""

    @property
    @abstractmethod
    def public(self) -> tuple[str, ...]:
        """What the claim takes as public."""

    @property
    def public_codec(self) -> Any:
        """What the records look like, where that is public; None where it is released."""
        return None

    @property
    def delta_aside(self) -> tuple[float, str]:
        """Share of delta that ``encode`` uses beside the ledger, and for what; 0 for none."""
        return 0.0, ""

    def check(self, plan: BudgetPlan, delta: float) -> None:  # noqa: B027  # most have nothing left
        """Refuse records that cannot be learnt; the last look before anything is charged.

        ``delta`` is what ``delta_aside`` sets aside.
        """

    def shares(self, of_method: Mapping[str, float], mu_squared: float) -> dict[str, float]:
        """Return the public plan: shares of ``mu_squared`` by purpose, of ``encode`` first."""
        return dict(of_method)

    @abstractmethod
    def encode(self, plan: BudgetPlan, delta: float) -> Encoding:
        """Release what is needed to read the records as numbers, and read them.

        Parameters
        ----------
        plan : BudgetPlan
            With a share for everything that is released.
        delta : float
            What ``delta_aside`` sets aside.
        """
