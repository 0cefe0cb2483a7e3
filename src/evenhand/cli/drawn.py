"""What ``evenhand synthesize`` tells and writes of a run, be it of rows or of pictures."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evenhand.cli.console import plain, table

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.generators import Evaluation, Synthesizer
    from evenhand.generators.images import ImageEvaluation, ImageSynthesizer

GAPS: Final = (
    ("accuracy", "accuracy"),
    ("demographic parity gap", "demographic_parity_pairwise"),
    ("equalized odds gap", "equalized_odds_pairwise"),
    ("accuracy gap", "error_parity_pairwise"),
)
"""What is measured of models that saw synthetic data alone, in words and by its key."""


def files_beside(out: Path, of: str) -> dict[str, Path]:
    """Return where what was drawn, its claim and the report are written."""
    return {
        of: out,
        "claim": out.with_suffix(".claim.json"),
        "report": out.with_suffix(".html"),
    }


def summary_of(
    generator: Synthesizer | ImageSynthesizer,
    conditions: pd.DataFrame,
    found: Evaluation | ImageEvaluation | None,
) -> dict[str, Any]:
    """Return the claim, and how often each label and group (``conditions``) was drawn."""
    claim = generator.guarantee_
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
        "warnings": [*claim.cautions, *generator.warnings_],
        "notes": list(generator.notes_),
        "signal_to_noise": generator.snr_.value,
        "counts": {str(name): int(count) for name, count in counts.items()},
        "measured": None if found is None else found.to_dict(),
    }


def write_claim(generator: Synthesizer | ImageSynthesizer, path: Path) -> None:
    """Write the guarantee and the books as JSON."""
    claim = {
        "sentence": str(generator.guarantee_),
        "guarantee": generator.guarantee_.to_dict(),
        "ledger": None if generator.ledger_ is None else generator.ledger_.to_dict(),
    }
    text = json_format.dumps(plain(claim), indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def measured_table(
    what: str,
    found: Evaluation | ImageEvaluation,
    shown: tuple[tuple[str, str], ...],
    more: list[tuple[str, str]],
) -> list[Any]:
    """Return means over models that were trained on synthetic data, and what belongs below."""
    from evenhand.cli.measuring import NOT_COVERED

    rows = [(words, f"{found.mean(name):.3f}") for words, name in shown]
    head = f"trained on synthetic, tested on real {what}: mean"
    return [table((head, ""), rows + more), NOT_COVERED]
