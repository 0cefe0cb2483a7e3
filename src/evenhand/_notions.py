"""The notions of fairness by name, and where each is defined; imports none of them.

The command line reads the names before it may wait for NumPy. A notion of one's own needs no line
here: ``evenhand.fairness.notions.registered`` adds it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Final

OF_DECISIONS: Final[dict[str, str]] = {
    "demographic-parity": "evenhand.fairness.notions:DemographicParity",
    "equalized-odds": "evenhand.fairness.notions:EqualizedOdds",
    "error-parity": "evenhand.fairness.notions:ErrorParity",
    "false-positive-parity": "evenhand.fairness.notions:FalsePositiveParity",
    "true-positive-rate-parity": "evenhand.fairness.true_positive_rate:TruePositiveRateParity",
}
"""Notions of decisions."""

OF_SCORES: Final[dict[str, str]] = {
    "generalized-demographic-parity": "evenhand.fairness.score_parity:GeneralizedDemographicParity",
}
"""Notions of the distribution of the score; only methods that are trained under a function of the
score can keep them."""

NOTIONS: Final[Mapping[str, str]] = ChainMap(OF_SCORES, OF_DECISIONS)  # the last is listed first
"""All of them, those of decisions first."""

SHIPPED: Final = frozenset(NOTIONS)
"""The names that every process knows."""

HOMES: Final[Mapping[str, str]] = {
    home.partition(":")[2]: home.partition(":")[0] for home in NOTIONS.values()
}
"""The module of each class that is shipped."""


def called_now(key: str) -> str:
    """Return what is written in the place of a key that files of earlier versions have."""
    return _CALLED_NOW.get(key, "")


_CALLED_NOW: Final[Mapping[str, str]] = {
    "notion": " It is now called 'fairness'.",
    "parity": " It is now called 'fairness'.",
    "rule": " The published rule is now a method: method = 'fairpate-published'. Leave rule out.",
}
