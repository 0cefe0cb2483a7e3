"""A claim to change: most of it does not matter to the test that needs one."""

from typing import Any

from evenhand.privacy import Guarantee


def a_claim(**changes: Any) -> Guarantee:
    """Return a claim of 3 at 1e-5 for replacing one record, with these changes."""
    usual: dict[str, Any] = {
        "epsilon": 3.0,
        "delta": 1e-5,
        "unit": "record",
        "neighbors": "replace one",
        "noise": "exact discrete noise (OpenDP)",
        "accounting": "exact Gaussian DP accounting",
        "public": ("the number of records",),
        "not_covered": ("model selection",),
    }
    return Guarantee(**{**usual, **changes})
