"""One call that measures synthetic rows: balance, utility, fairness and fidelity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from evenhand.datasets import Schema
from evenhand.fairness import encode_groups
from evenhand.generators.balance import Balance, balance_of
from evenhand.generators.tables.base import Synthesizer
from evenhand.generators.tables.fidelity import Fidelity, fidelity
from evenhand.generators.utility import MODELS, ModelUtility, utility


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What was measured. None of it is covered by the generator's guarantee.

    Parameters
    ----------
    label : str
    sensitive : tuple of str
    n_synthetic, n_test : int
        Rows that models were trained on, and real rows that they were tested on.
    balance : Balance
        Of the synthetic rows.
    real_balance : Balance
        Of the real ones.
    utility : tuple of ModelUtility
        Trained on synthetic rows, and on real ones where those were given.
    use_sensitive : bool
        Whether the models saw the sensitive columns.
    fidelity : Fidelity
        Of rows drawn as they are, without balance, against the real test rows.
    """

    label: str
    sensitive: tuple[str, ...]
    n_synthetic: int
    n_test: int
    balance: Balance
    real_balance: Balance
    utility: tuple[ModelUtility, ...]
    use_sensitive: bool
    fidelity: Fidelity

    def mean(self, what: str, trained_on: str = "synthetic") -> float:
        """Mean over the models of "auroc", "accuracy" or a gap such as "equalized_odds_pairwise".

        NaN if no model was trained on that.
        """
        found = [u for u in self.utility if u.trained_on == trained_on]
        values = [
            (getattr(u, what) if what in ("auroc", "accuracy") else u.gaps[what]).value
            for u in found
        ]
        return float(np.mean(values)) if values else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; NaN stays NaN."""
        return {
            "label": self.label,
            "sensitive": list(self.sensitive),
            "n_synthetic": self.n_synthetic,
            "n_test": self.n_test,
            "covered": False,
            "balance": asdict(self.balance),
            "real_balance": asdict(self.real_balance),
            "use_sensitive": self.use_sensitive,
            "utility": [u.to_dict() for u in self.utility],
            "fidelity": asdict(self.fidelity)
            | {
                "column_score": self.fidelity.column_score,
                "pair_score": self.fidelity.pair_score,
            },
        }


def evaluate(
    generator: Synthesizer,
    synthetic: pd.DataFrame,
    test: pd.DataFrame,
    *,
    train: pd.DataFrame | None = None,
    models: Sequence[str] = tuple(MODELS),
    use_sensitive: bool = True,
    random_state: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Evaluation:
    """Measure synthetic rows on real ones that the generator has not seen.

    Parameters
    ----------
    generator : Synthesizer
        Fitted; it draws as many rows as ``test`` has without balance, to compare columns with.
    synthetic : DataFrame
        The rows that are to be used, as ``generator.sample`` gave them.
    test : DataFrame
        Real rows with the same columns.
    train : DataFrame, optional
        Real rows on which the same models are trained, to compare with.
    models : sequence of str
        Names of ``MODELS``.
    use_sensitive : bool
        Whether the models see the sensitive columns; see ``utility``.
    random_state : int
        Seeds models, draws and bootstrap.

    Privacy
    -------
    Reads real rows without noise: not covered. Publishing the numbers says something about the
    people in ``test`` and ``train``.
    """
    label, *sensitive = generator.conditions_.names
    schema: Schema = generator.codec_.schema
    plain = generator.sample(len(test), balance=(), random_state=random_state)
    return Evaluation(
        label=label,
        sensitive=tuple(sensitive),
        n_synthetic=len(synthetic),
        n_test=len(test),
        balance=balance_of(synthetic, label=label, sensitive=sensitive, groups=_groups(generator)),
        real_balance=balance_of(test, label=label, sensitive=sensitive),
        utility=utility(
            synthetic,
            test,
            label=label,
            sensitive=sensitive,
            train=train,
            models=models,
            use_sensitive=use_sensitive,
            schema=schema,
            random_state=random_state,
            progress=progress,
        ),
        use_sensitive=use_sensitive,
        fidelity=fidelity(test[list(plain.columns)], plain, schema=schema),
    )


def _groups(generator: Synthesizer) -> tuple[str, ...]:
    """Names of all groups that the generator knows, as tables of rows name them."""
    names, categories = generator.conditions_.names[1:], generator.conditions_.categories[1:]
    every = pd.DataFrame(list(product(*categories)), columns=list(names))
    return encode_groups(every if len(names) > 1 else every[names[0]]).names
