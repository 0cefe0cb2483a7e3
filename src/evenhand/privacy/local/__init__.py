"""Local costs: what answers cost at these votes. Numbers that are private themselves."""

from evenhand.privacy.local.cost import LocalCost
from evenhand.privacy.local.exact import exact_local_rdp

__all__ = [
    "LocalCost",
    "exact_local_rdp",
]
