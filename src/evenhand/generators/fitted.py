"""What may be published of a fitted generator, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from evenhand.generators.budget_plan import SignalToNoise
from evenhand.generators.payload import Codec
from evenhand.privacy import Guarantee, Ledger
from evenhand.privacy.saved_claim import SavedLedger
from evenhand.typing import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedGenerator:
    """All that may be published of a fitted generator; folders, reports, command line read it.

    Privacy
    -------
    Released values alone.
    """

    name: str
    """Of the generator's class."""
    payload: str
    method: str
    """``payload`` and ``method``: what it generates, and its name on the command line."""
    settings: Mapping[str, Any]
    """Arguments of the constructor as plain values, less noise, seed and device."""
    codec: Codec
    guarantee: Guarantee
    ledger: Ledger | SavedLedger | None
    """None where nothing was spent."""
    counts: FloatArray
    """Noisy number of records of each combination of label and group. Shape (n_conditions,)."""
    counts_sigma: float
    """Standard deviation of the noise on each of them."""
    shares: pd.Series[float]
    """Share of each combination, by these counts."""
    snr: SignalToNoise
    """As predicted."""
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    """``notes`` and ``warnings``: what the user must know; the warnings stand in the notes as well.
    """
