"""What teacher ensembles are compared with: one module per method, each with its own solver."""

from evenhand.baselines.fair_only import FairOnlyClassifier
from evenhand.baselines.fermi import DPFERMIClassifier
from evenhand.baselines.intervention import InterventionClassifier
from evenhand.baselines.non_private import NonPrivateClassifier
from evenhand.baselines.pfld import PFLDClassifier
from evenhand.baselines.post_processing import DPPostProcessingClassifier
from evenhand.baselines.randomized_response import RandomizedResponseClassifier

__all__ = [
    "DPFERMIClassifier",
    "DPPostProcessingClassifier",
    "FairOnlyClassifier",
    "InterventionClassifier",
    "NonPrivateClassifier",
    "PFLDClassifier",
    "RandomizedResponseClassifier",
]
