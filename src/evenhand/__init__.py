"""Classifiers that are differentially private and within a fairness margin."""

from evenhand._version import __version__
from evenhand.typing import REJECTED

__all__ = ["REJECTED", "__version__"]
