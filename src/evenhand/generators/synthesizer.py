"""What generators of tables and of images share: a claim, exact conditions, files without code."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand.generators import saving
from evenhand.generators.budget_plan import SignalToNoise
from evenhand.generators.conditions import Conditions
from evenhand.generators.requested_rows import Request
from evenhand.privacy import Budget, Guarantee, Ledger, Noise, delta_warning
from evenhand.typing import Array, ArrayLike, FloatArray, RandomState

NOT_COVERED: Final = (
    "a choice of settings or of a generator made by looking at private data",
    "measurements on private or test rows",
)

Progress = Callable[[str, int, int], None]


class NotedWarning(UserWarning):
    """What a user must know about a fit; it stands in ``notes_`` as well."""


class ConditionalGenerator(ABC):
    """A generator that is conditioned on label and group, under one claim.

    Parameters
    ----------
    neighbors : str
        "add or remove one" (the number of records is then private) or "replace one".
    noise : Noise, optional
        Source of privacy noise; exact discrete noise if not given.
    random_state : int, Generator or None
        Seeds what is drawn besides privacy noise.
    """

    method: ClassVar[str]

    guarantee_: Guarantee
    ledger_: Any
    conditions_: Conditions
    counts_: FloatArray
    counts_sigma_: float
    snr_: SignalToNoise
    notes_: tuple[str, ...]
    warnings_: tuple[str, ...]

    def __init__(
        self,
        *,
        neighbors: str = "add or remove one",
        noise: Noise | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.neighbors = neighbors
        self.noise = noise
        self.random_state = random_state

    def save(self, path: str | Path, *, sign: str | Path | None = None) -> Path:
        """Write a new folder of JSON and arrays; no code is in it.

        Parameters
        ----------
        path : path
        sign : path, optional
            PEM file of a private Ed25519 key, to sign the folder with.
        """
        self._require_fitted()
        return saving.save(self, Path(path), sign)

    @property
    def shares_(self) -> pd.Series[float]:
        """Share of each combination of label and group, by the noisy counts."""
        known = self._known_counts()
        names = [self.conditions_.words(c) for c in range(self.conditions_.n)]
        return pd.Series(known / known.sum(), index=names, name="share")

    # What a method adds

    @abstractmethod
    def _shares(self) -> Mapping[str, float]:
        """Purposes of the method with their parts; the parts sum to 1."""

    @abstractmethod
    def _arrays(self) -> dict[str, Array]:
        """Return what is learnt, as arrays by name."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, Array]) -> None:
        """Take back what ``_arrays`` gave; what ``_restore_shape`` sets is there."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Arguments of the constructor as plain values, less noise and seed."""

    def _restate(self, claim: Guarantee) -> Guarantee:
        """Return the claim of this method: the ledger's, unless something takes it back."""
        return claim

    def _noise_source(self) -> Noise | None:
        """Return the noise of this method's ledger; None is the ledger's own default."""
        return self.noise

    # What a kind of data adds

    @abstractmethod
    def _shape(self) -> dict[str, Any]:
        """Return what the data look like, as plain values for a file."""

    @abstractmethod
    def _restore_shape(self, head: Mapping[str, Any]) -> None:
        """Take back what ``_shape`` gave, ``conditions_`` among it."""

    # What is the same for all

    def _open(self, named: str | None) -> str:
        """Return the relation between neighbors; ``named`` is what a unit is, if there are any."""
        allowed = ("add or remove one", "replace one")
        neighbors = _checks.one_of("neighbors", self.neighbors, allowed)
        if named is not None and neighbors == "replace one":
            raise ValueError(
                f"With {named} the claim is for adding or removing one unit; replacing one "
                "is two such steps. Leave neighbors at 'add or remove one'."
            )
        return neighbors

    def _close(
        self,
        ledger: Ledger,
        claim: Guarantee,
        notes: Sequence[str],
        warn: Sequence[str] = (),
        doubts: Sequence[str] = (),
    ) -> None:
        """Keep the ledger and the claim, and warn of what the user must know.

        ``doubts`` may be noise alone: they stand in ``warnings_``, and interrupt nobody.
        """
        self.ledger_ = ledger
        self.guarantee_ = self._restate(claim)
        told = [*warn, *([self.snr_.warning] if self.snr_.warning else []), *self._thin()]
        self.warnings_ = (*doubts, *told)
        self.notes_ = (*notes, *self.warnings_)
        for words in told:
            warnings.warn(words, NotedWarning, stacklevel=3)

    def _claim(self, budget: Budget, ledger: Ledger, public: Sequence[str]) -> Guarantee:
        named = ("the number of records",) if ledger.neighbors == "replace one" else ()
        # The number of records is private under add or remove: the warning reads the noisy one.
        n = max(1, round(float(self.counts_.sum())))
        return ledger.guarantee(
            public=(*public, *named),
            not_covered=NOT_COVERED,
            warnings=tuple(filter(None, (delta_warning(budget.delta, n),))),
        )

    def _known_counts(self) -> FloatArray:
        """Noisy counts without what noise alone put below zero."""
        return np.maximum(self.counts_, 1e-9)

    @property
    def unseen_(self) -> tuple[int, ...]:
        """Positions of the combinations that cannot be told from none at all: none is drawn."""
        return tuple(self._unseen())

    def _unseen(self) -> list[int]:
        return np.flatnonzero(self.counts_ < 2.0 * self.counts_sigma_).tolist()

    def _thin(self) -> list[str]:
        unseen = self._unseen()
        if not unseen:
            return []
        named = "; ".join(self.conditions_.words(c) for c in unseen[:5])
        return [
            f"{len(unseen)} of {self.conditions_.n} combinations of label and group cannot be told "
            f"from empty ones ({named}): rows of theirs cannot be drawn"
        ]

    def _request(
        self,
        *,
        n: int | None,
        conditions: Mapping[str, object] | pd.DataFrame | None,
        balance: Sequence[str],
        shares: ArrayLike | None,
    ) -> Request:
        """Read what is asked for; a combination that was not seen is refused."""
        self._require_fitted()
        request = Request.of(
            self.conditions_,
            self._known_counts(),
            n=n,
            conditions=conditions,
            balance=balance,
            shares=shares,
        )
        for c in self._unseen():
            if request.probabilities[c] > 0 and not request.as_it_is:
                raise ValueError(
                    f"No record of {self.conditions_.words(c)} can be told from the noise (noisy "
                    f"count {self.counts_[c]:.0f}, noise {self.counts_sigma_:.0f}), so there is "
                    f"nothing to draw its rows from. Raise epsilon, join this group with another, "
                    f"or ask for other rows with conditions= or balance=()."
                )
        return request

    def _require_fitted(self) -> None:
        if not hasattr(self, "guarantee_"):
            raise ValueError(f"This {type(self).__name__} is not fitted. Call fit first.")

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({said})"
