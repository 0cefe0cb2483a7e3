"""Classifiers that are differentially private and within a fairness margin."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from evenhand._notions import HOMES
from evenhand._version import __version__

if TYPE_CHECKING:
    from evenhand._values import show_values
    from evenhand.baselines import (
        DPFERMIClassifier,
        DPPostProcessingClassifier,
        FairOnlyClassifier,
        NonPrivateClassifier,
        PFLDClassifier,
        RandomizedResponseClassifier,
    )
    from evenhand.estimators import (
        DPSGDClassifier,
        FairPATEClassifier,
        FairSharesClassifier,
        PATEClassifier,
        RejectOptionClassifier,
        SFPATEClassifier,
    )
    from evenhand.estimators.auto import AutoClassifier
    from evenhand.estimators.blind_rule import BlindRuleClassifier
    from evenhand.fairness import DemographicParity as DemographicParity
    from evenhand.fairness import EqualizedOdds as EqualizedOdds
    from evenhand.fairness import ErrorParity as ErrorParity
    from evenhand.fairness import FalsePositiveParity as FalsePositiveParity
    from evenhand.methods import load
    from evenhand.privacy import Budget
    from evenhand.typing import REJECTED

_HOMES = {
    "AutoClassifier": "evenhand.estimators.auto",
    "BlindRuleClassifier": "evenhand.estimators.blind_rule",
    "Budget": "evenhand.privacy",
    "DPFERMIClassifier": "evenhand.baselines",
    "DPPostProcessingClassifier": "evenhand.baselines",
    "DPSGDClassifier": "evenhand.estimators",
    "FairOnlyClassifier": "evenhand.baselines",
    "FairPATEClassifier": "evenhand.estimators",
    "FairSharesClassifier": "evenhand.estimators",
    "NonPrivateClassifier": "evenhand.baselines",
    "PATEClassifier": "evenhand.estimators",
    "PFLDClassifier": "evenhand.baselines",
    "REJECTED": "evenhand.typing",
    "RandomizedResponseClassifier": "evenhand.baselines",
    "RejectOptionClassifier": "evenhand.estimators",
    "SFPATEClassifier": "evenhand.estimators",
    "load": "evenhand.methods",
    "show_values": "evenhand._values",
    **HOMES,
}

__all__ = [
    "REJECTED",
    "AutoClassifier",
    "BlindRuleClassifier",
    "Budget",
    "DPFERMIClassifier",
    "DPPostProcessingClassifier",
    "DPSGDClassifier",
    "FairOnlyClassifier",
    "FairPATEClassifier",
    "FairSharesClassifier",
    "NonPrivateClassifier",
    "PATEClassifier",
    "PFLDClassifier",
    "RandomizedResponseClassifier",
    "RejectOptionClassifier",
    "SFPATEClassifier",
    "__version__",
    "load",
    "show_values",
    *HOMES,
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: help and completion need no scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
