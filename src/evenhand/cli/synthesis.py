"""What ``evenhand synthesize`` needs of a kind of data, and says of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from evenhand.cli.console import Bars, plain, table

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.generators.evaluation import Evaluation
    from evenhand.generators.synthesizer import FittedGenerator, Synthesizer

GAPS: Final = (
    ("accuracy", "accuracy"),
    ("demographic parity gap", "demographic_parity_pairwise"),
    ("equalized odds gap", "equalized_odds_pairwise"),
    ("accuracy gap", "error_parity_pairwise"),
)
"""What is measured of models that saw synthetic data alone, in words and by its key."""


class SyntheticData(Protocol):
    """One kind of data on the command line: how it is read, learnt, drawn and written."""

    payload: str
    default: str
    words: str

    def refuse(self) -> None:
        """Refuse options that do not go with this kind of data, and names of other files."""

    def read(self) -> None:
        """Read the private file, and the others that were named."""

    def noise(self) -> dict[str, Any]:
        """Return the source of noise, as an argument of the generator."""

    def fit(self, generator: Any, **how: Any) -> None:
        """Learn from the private file."""

    def draw(self, generator: Any) -> Any:
        """Draw what was asked for."""

    def evaluate(self, generator: Any, drawn: Any, bars: Bars) -> Evaluation:
        """Measure on the test file."""

    def conditions(self, drawn: Any) -> pd.DataFrame:
        """Return label and groups of what was drawn, by their names."""

    def write(self, drawn: Any, path: Path) -> None:
        """Write what was drawn."""

    def report(self, generator: Any, drawn: Any, path: Path, found: Any) -> None:
        """Write the report."""

    def measured(self, found: Any) -> tuple[Sequence[tuple[str, str]], list[tuple[str, str]]]:
        """Return which means to show, by words and key, and more lines below them."""


def summary_of(
    fitted: FittedGenerator, conditions: pd.DataFrame, found: Evaluation | None
) -> dict[str, Any]:
    """Return the claim, and how often each label and group (``conditions``) was drawn."""
    claim = fitted.guarantee
    names = list(conditions.columns)
    joined = f"{names[0]}=" + conditions[names[0]].astype(str)
    for name in names[1:]:
        joined = joined + f", {name}=" + conditions[name].astype(str)
    counts = joined.value_counts().sort_index()
    return {
        "n_rows": len(conditions),
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "unit": claim.unit,
        "neighbors": claim.neighbors,
        "guarantee": str(claim),
        "holds": claim.holds,
        "warnings": [*claim.cautions, *fitted.warnings],
        "notes": list(fitted.notes),
        "signal_to_noise": fitted.snr.value,
        "counts": {str(name): int(count) for name, count in counts.items()},
        "measured": None if found is None else found.to_dict(),
    }


def claim_text(generator: Synthesizer) -> str:
    """Return the guarantee and the ledger as JSON."""
    from evenhand.privacy.saved_claim import claim_record

    claim = claim_record(generator.guarantee_, generator.ledger_)
    return json.dumps(plain(claim), indent=2, ensure_ascii=False) + "\n"


def measured_table(data: SyntheticData, found: Evaluation) -> list[Any]:
    """Return means over models that were trained on synthetic data, and what belongs below."""
    from evenhand.cli.measuring import NOT_COVERED

    shown, more = data.measured(found)
    rows = [(words, f"{found.mean(name):.3f}") for words, name in shown]
    head = f"trained on synthetic, tested on real {data.words}: mean"
    return [table((head, ""), rows + more), NOT_COVERED]
