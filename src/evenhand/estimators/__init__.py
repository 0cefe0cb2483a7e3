"""The scikit-learn face: one module per method."""

from evenhand.estimators.fairpate import FairPATEClassifier
from evenhand.estimators.pate import PATEClassifier
from evenhand.estimators.persistence import ModelDamaged, SavedLedger
from evenhand.estimators.reject_option import RejectOptionClassifier, RejectOptionResult
from evenhand.estimators.saved import METHODS, load

__all__ = [
    "METHODS",
    "FairPATEClassifier",
    "ModelDamaged",
    "PATEClassifier",
    "RejectOptionClassifier",
    "RejectOptionResult",
    "SavedLedger",
    "load",
]
