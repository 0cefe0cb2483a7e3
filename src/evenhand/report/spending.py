"""What was spent on what: the ledger's lines, added up by purpose and mechanism."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

KINDS: Final[Mapping[str, str]] = {
    "GNMax": "noisy winner of the vote (Gaussian noise on every count)",
    "LNMax": "noisy winner of the vote (Laplace noise on every count)",
    "NoisyThreshold": "noisy check whether enough teachers agree",
    "NoisyHistogram": "noisy shares of the vote (Gaussian noise on every count)",
    "NoisySum": "noisy sum of bounded contributions (Gaussian noise on every number)",
    "LaplaceTable": "one noisy table of counts of records (Laplace noise on every cell)",
    "SetAside": "sums with Gaussian noise, charged together before the first of them",
    "SubsampledGaussian": "noisy gradient steps on random batches, priced all together",
}
"""What a mechanism does, by its class name, for a reader who does not know the code."""

_DECIMAL: Final = re.compile(r"\b\d+\.\d+(e[+-]\d+)?")


@dataclass(frozen=True, kw_only=True)
class Charge:
    """All uses of one mechanism for one purpose."""

    purpose: str
    mechanism: str
    """``purpose`` and ``mechanism``: as they stand in the ledger."""
    n_uses: int
    """Uses that were charged."""
    mu_squared: float
    """What they cost together, in Gaussian DP."""
    share: float
    """The same as a share of the budget, in [0, 1]."""
    n_open: int
    """Uses of reservations that were never settled (a crash); they stay charged."""

    @property
    def words(self) -> str:
        """What the mechanism does; empty for one that this package does not know."""
        return KINDS.get(self.mechanism.partition("(")[0], "")

    @property
    def rounded(self) -> str:
        """The mechanism with its numbers as others of a page; the record keeps all digits."""
        return _DECIMAL.sub(lambda found: f"{float(found[0]):g}", self.mechanism)


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The ledger of one run, added up."""

    charges: tuple[Charge, ...]
    """In the order in which they first occur in the ledger."""
    mu_squared_budget: float
    mu_squared_spent: float
    """``mu_squared_budget`` and ``mu_squared_spent``: what the budget affords, and what was charged
    to it.
    """
    parts: tuple[float, ...]
    """The epsilons of the parts of the budget that have a ledger each; one for a single ledger."""
    delta: float | None
    """At which the epsilon of a single ledger is meant; a claim's own can be larger, where a part
    of it is set aside.
    """
    first: str
    last: str
    """``first`` and ``last``: UTC times of the first and the last charge, ISO 8601 to the second;
    empty without one.
    """

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Spending:
        """Add up what ``Ledger.to_dict`` returns."""
        budget = float(record["mu_squared_budget"])
        lines: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for entry in record["entries"]:
            lines.setdefault((entry["purpose"], entry["mechanism"]), []).append(entry)
        charges = []
        for (purpose, mechanism), entries in lines.items():
            cost = sum(float(entry["mu_squared"]) for entry in entries)
            charges.append(
                Charge(
                    purpose=purpose,
                    mechanism=mechanism,
                    n_uses=sum(int(entry["n_uses"]) for entry in entries),
                    mu_squared=cost,
                    share=cost / budget,
                    n_open=sum(int(entry["n_uses"]) for entry in entries if not entry["settled"]),
                )
            )
        times = sorted(str(entry["charged_at"])[:19] for entry in record["entries"])
        return cls(
            charges=tuple(charges),
            mu_squared_budget=budget,
            mu_squared_spent=float(record["mu_squared_spent"]),
            parts=tuple(float(part["epsilon"]) for part in record.get("parts", [record])),
            delta=None if "delta" not in record else float(record["delta"]),
            first=times[0] if times else "",
            last=times[-1] if times else "",
        )

    @property
    def share(self) -> float:
        """Spent share of the budget, in [0, 1]."""
        return self.mu_squared_spent / self.mu_squared_budget

    @property
    def share_left(self) -> float:
        """Share of the budget that was not spent, in [0, 1]."""
        return max(0.0, 1.0 - self.share)

    @property
    def mu_squared_left(self) -> float:
        """What was not spent, in Gaussian DP."""
        return max(0.0, self.mu_squared_budget - self.mu_squared_spent)

    @property
    def by_steps(self) -> bool:
        """Whether some was spent on noisy gradient steps, whose price is no Gaussian one."""
        return any(charge.mechanism.startswith("SubsampledGaussian") for charge in self.charges)

    @property
    def n_open(self) -> int:
        """Uses that stay charged because their reservation was never settled."""
        return sum(charge.n_open for charge in self.charges)
