"""The ledger of a finished run, read back from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedLedger:
    """The ledger of a finished run, as it was saved. Nothing can be charged to it.

    Parameters
    ----------
    record : mapping
        As ``Ledger.to_dict`` gave it.
    """

    record: Mapping[str, Any]

    @property
    def spent(self) -> float:
        """Sum of ``mu**2`` that the run charged."""
        return float(self.record["mu_squared_spent"])

    def to_dict(self) -> dict[str, Any]:
        """Return the account as plain values, as ``Ledger.to_dict`` did."""
        return dict(self.record)
