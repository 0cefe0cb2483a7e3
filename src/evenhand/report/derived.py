"""Decisions derived from a model's own and the group: their probabilities, and what they keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Derived:
    """The probabilities of each final decision, given the group and the model's own decision.

    Parameters
    ----------
    notion : str
        Which rates are held together, a key of ``evenhand.students.derived.NOTIONS``.
    margin : float
        That was asked for.
    gap : float
        Largest difference of those rates between two groups, by the noisy table.
    beyond : float
        How much further apart they may be among the private records, with probability 0.95.
    classes : tuple of str
    rows : tuple of (str, str, tuple of float)
        Group, the model's own decision, and the probability of each class.

    Privacy
    -------
    A function of the released model and of the released table.
    """

    notion: str
    margin: float
    gap: float
    beyond: float
    classes: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[float, ...]], ...]

    @classmethod
    def of(cls, model: Any) -> Derived | None:
        """Return None for a model whose own decisions stand."""
        rule = getattr(model, "rule_", None)
        if rule is None:
            return None
        classes = tuple(str(name) for name in model.classes_)
        return cls(
            notion=model.notion,
            margin=model.margin,
            gap=model.table_gap_,
            beyond=model.noise_bound_,
            classes=classes,
            rows=tuple(
                (group, own, tuple(probabilities))
                for group, table in zip(model.groups_, rule.probabilities.tolist(), strict=True)
                for own, probabilities in zip(classes, table, strict=True)
            ),
        )
