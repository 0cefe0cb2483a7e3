"""What is measured of synthetic records, whatever they are: balance, and models trained on them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from evenhand.generators.balance import Balance
from evenhand.generators.utility import ModelUtility

if TYPE_CHECKING:
    from evenhand.generators.payload import Progress
    from evenhand.generators.synthesizer import Synthesizer


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What was measured. None of it is covered by the generator's guarantee."""

    n_synthetic: int
    n_test: int
    """``n_synthetic`` and ``n_test``: records that models were trained on, and real ones that they
    were tested on.
    """
    balance: Balance | None
    """Of the synthetic records, by the groups that they were drawn for; None where they have none.
    """
    real_balance: Balance
    """Of the real ones."""
    utility: tuple[ModelUtility, ...]
    """Trained on synthetic records, and on real ones where those were given."""

    def mean(self, what: str, trained_on: str = "synthetic") -> float:
        """Mean over the models of "auroc", "accuracy" or a gap such as "equalized_odds_pairwise".

        NaN if no model was trained on that.
        """
        values = [
            (getattr(u, what) if what in ("auroc", "accuracy") else u.gaps[what]).value
            for u in self.utility
            if u.trained_on == trained_on
        ]
        return float(np.mean(values)) if values else float("nan")

    def of_synthetic(self) -> Self:
        """Return the same without models that were trained on real records."""
        kept = tuple(u for u in self.utility if u.trained_on == "synthetic")
        return replace(self, utility=kept)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN stays NaN."""
        return {
            "n_synthetic": self.n_synthetic,
            "n_test": self.n_test,
            "covered": False,
            "balance": None if self.balance is None else asdict(self.balance),
            "real_balance": asdict(self.real_balance),
            "utility": [u.to_dict() for u in self.utility],
        }


def evaluate(
    generator: Synthesizer,
    synthetic: Any,
    test: Any,
    *,
    train: Any = None,
    random_state: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> Any:
    """Measure synthetic records on real ones that the generator has not seen.

    Parameters
    ----------
    generator : Synthesizer
        Fitted.
    synthetic : DataFrame, two of them, or ImageSample
        The records that are to be used, as ``generator.sample`` gave them.
    test : DataFrame, two of them, or ImageData
        Real records.
    train : DataFrame or ImageData, optional
        Real records to compare with: models are trained on these rows; a classifier of groups is
        trained on these pictures, and judges the synthetic ones.
    random_state : int
        Seeds models, draws and bootstrap.
    progress : callable, optional
        Called with a stage, what is done and how much there is.
    **options
        Of tables: ``models``, ``use_sensitive`` and ``units``, see
        ``tables.evaluation.evaluate_rows``; of pictures: ``models``, ``train_real``, ``epochs``,
        ``extractor``, ``n_per_group`` and ``units``, see ``images.evaluation.evaluate_images``.

    Returns
    -------
    TableEvaluation, TwoTableEvaluation or ImageEvaluation

    Privacy
    -------
    Reads real records without noise: not covered. Publishing the numbers says something about the
    people in ``test`` and ``train``.
    """
    return generator._evaluate(
        synthetic, test, train=train, random_state=random_state, progress=progress, **options
    )
