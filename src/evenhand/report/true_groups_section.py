"""The section on true and noisy groups, for models whose training never saw the true ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from evenhand.estimators import Bound
from evenhand.fairness import function_named
from evenhand.report.htmltext import pairs, table, text


@dataclass(frozen=True, kw_only=True)
class TrueGroups:
    """How a model of SF-PATE stands to its alpha, and what is known of the true groups.

    Parameters
    ----------
    notion : str
        What the fairness function is called.
    alpha : float
    by_teachers : bool
        Whether each teacher was held to it on its own rows.
    violation : float
        Of the student by the noisy groups; NaN where it knows none.
    met : bool
    bounds : tuple of Bound

    Privacy
    -------
    A function of the student, of released shares and of public values.
    """

    notion: str
    alpha: float
    by_teachers: bool
    violation: float
    met: bool
    bounds: tuple[Bound, ...]

    @classmethod
    def of(cls, model: Any) -> TrueGroups | None:
        """Return None for a model of another method."""
        if not hasattr(model, "bounds_"):
            return None
        return cls(
            notion=function_named(model.notion).name.replace("_", " "),
            alpha=model.alpha,
            by_teachers=model.variant == "teachers",
            violation=model.noisy_violation_,
            met=model.within_alpha_,
            bounds=model.bounds_,
        )


def true_groups(known: TrueGroups | None) -> str:
    """Return how the model stands to alpha, and which bounds say anything about it."""
    if known is None:
        return ""
    rows = [
        ("Notion", known.notion),
        ("Alpha: largest difference to everybody", f"{known.alpha:g}"),
    ]
    if known.by_teachers and math.isnan(known.violation):
        said = (
            "Each teacher was trained for alpha on its own rows. The student learned their noisy "
            "vote and knows no group: nothing is promised about its decisions, and their "
            "differences can only be measured."
        )
    else:
        kept = "at most" if known.met else "above"
        sources = "noisy sums" if known.by_teachers else "the noisy answers"
        bounded = (
            "a bound on it stands below."
            if any(bound.says for bound in known.bounds)
            else "no bound says anything about it."
        )
        said = (
            f"By the groups as {sources} tell them, the student’s violation is {kept} "
            f"alpha. By the true groups it is another number, which may be larger; it can be "
            f"measured by somebody who may see them, and {bounded}"
        )
        rows.append(("Violation by the noisy groups", f"{known.violation:.4f}"))
    told = [
        (
            bound.name,
            "yes" if bound.says else "no",
            "" if bound.value is None else f"{bound.value:.4f}",
            bound.words,
        )
        for bound in known.bounds
    ]
    return (
        f"<p>{text(said)}</p>"
        + pairs(rows)
        + table("Bounds on the violation", ("Bound", "Says anything", "At most", "Why"), told, 0)
    )
