"""Classifiers that are differentially private and within a fairness margin."""

from evenhand._version import __version__
from evenhand.estimators import (
    DPSGDClassifier,
    FairPATEClassifier,
    PATEClassifier,
    RejectOptionClassifier,
    load,
)
from evenhand.fairness import DemographicParity
from evenhand.privacy import Budget
from evenhand.typing import REJECTED

__all__ = [
    "REJECTED",
    "Budget",
    "DPSGDClassifier",
    "DemographicParity",
    "FairPATEClassifier",
    "PATEClassifier",
    "RejectOptionClassifier",
    "__version__",
    "load",
]
