"""Error and gap of decisions between two classes, on test rows."""

from __future__ import annotations

from typing import Any

from evenhand.fairness import fairness_report


def error_and_gap(
    test: Any, decided: Any, gap: str = "demographic_parity_pairwise"
) -> tuple[float, float]:
    """Return the error of decisions about a part of a split, and a gap by its name."""
    report = fairness_report(test.y, decided, test.groups, classes=(0, 1), positive=1)
    return report["error_rate"].value, report[gap].value
