"""What was measured on test rows: a fairness report in the shape of the charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evenhand._notions import NOTIONS
from evenhand.fairness import FairnessReport
from evenhand.fairness.intervals import Estimate
from evenhand.fairness.metrics import selection_rates
from evenhand.fairness.notions import notion_named

REFERENCES: Final[Mapping[str, str]] = {
    "rest": "all other groups together",
    "pairwise": "each other group",
    "overall": "everybody",
}
"""What a group is compared with, by the words of the package."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """One measure of how differently groups are treated."""

    kind: str
    """The key of a notion, or the estimate's own name where it is not one of them."""
    reference: str
    """A key of ``REFERENCES``, or empty."""
    estimate: Estimate

    @classmethod
    def of(cls, estimate: Estimate) -> Gap:
        """Take the name of an estimate apart."""
        kind, _, reference = estimate.name.rpartition("_")
        if _name(kind) in NOTIONS and reference in REFERENCES:
            return cls(kind=kind, reference=reference, estimate=estimate)
        return cls(kind=estimate.name, reference="", estimate=estimate)

    @property
    def name(self) -> str:
        """What it is called."""
        return name_of(self.kind)

    @property
    def compares(self) -> str:
        """What is compared with what, in words."""
        if _name(self.kind) not in NOTIONS:
            return self.estimate.definition
        return f"{notion_named(_name(self.kind)).words}, against {REFERENCES[self.reference]}"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Error, rates and gaps of the student on test rows. Not covered by any guarantee."""

    groups: tuple[str, ...]
    classes: tuple[str, ...]
    sizes: tuple[int, ...]
    """Test rows per group; those without a prediction are not counted."""
    n_unanswered: int
    """Test rows without a prediction."""
    level: float
    """Level of each interval by itself."""
    n_units: int | None
    """Units of which these rows are, where some have several."""
    error: Estimate | None
    """Share of wrong predictions; None where no true labels were given."""
    errors: tuple[Estimate, ...]
    """The same within each group; empty without true labels."""
    rates: tuple[tuple[Estimate, ...], ...]
    """``rates[group][class]``: share of the group's rows that are predicted the class."""
    shown: tuple[int, ...]
    """Classes to draw: all, or of two the one that counts as being selected."""
    gaps: tuple[Gap, ...]
    """Those of one kind side by side."""

    @classmethod
    def of(cls, found: Any, *, classes: tuple[str, ...]) -> Measured:
        """Read a ``FairnessReport`` on the model's ``classes``.

        Raises
        ------
        TypeError
            If it is something else.
        ValueError
            If it is about another number of classes than the model has.
        """
        if not isinstance(found, FairnessReport):
            raise TypeError(
                f"measured must be a FairnessReport, got {type(found).__name__}. Make one with "
                f"evenhand.fairness.fairness_report(y_true, y_pred, groups)."
            )
        if len(found.classes) != len(classes):
            raise ValueError(
                f"measured is about {len(found.classes)} classes ({', '.join(found.classes)}), the "
                f"model has {len(classes)} ({', '.join(classes)}). Measure this model's own "
                f"predictions, with classes=model.classes_."
            )
        given = found.coverage.given.sum(axis=1)
        level = found.estimates[0].level
        columns = [selection_rates(found.tally, k, level=level) for k in range(len(classes))]
        error = [estimate for estimate in found.estimates if estimate.name == "error_rate"]
        gaps = [Gap.of(e) for e in found.estimates if e.name != "error_rate"]
        kinds = [gap.kind for gap in gaps]
        chosen = 1 if found.positive is None else found.positive
        return cls(
            groups=found.groups,
            classes=classes,
            sizes=tuple(int(n) for n in given),
            n_unanswered=int(found.coverage.offered.sum() - given.sum()),
            level=level,
            n_units=found.estimates[0].n_units,
            error=error[0] if error else None,
            errors=found.errors,
            rates=tuple(zip(*columns, strict=True)),
            shown=(chosen,) if len(classes) == 2 else tuple(range(len(classes))),
            gaps=tuple(sorted(gaps, key=lambda gap: kinds.index(gap.kind))),
        )

    @property
    def n_rows(self) -> int:
        """Test rows with a prediction."""
        return sum(self.sizes)


def name_of(kind: str) -> str:
    """Return what the gap of a notion is called, by its key; of any other estimate, its name."""
    words = kind.replace("_", " ")
    return words.capitalize() if _name(kind) in NOTIONS else words


def _name(kind: str) -> str:
    return kind.replace("_", "-")


def known(estimate: Estimate) -> bool:
    """Whether there was a record to measure on."""
    return not np.isnan(estimate.value)
