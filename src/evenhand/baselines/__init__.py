"""What teacher ensembles are compared with: one module per method, each with its own solver."""

from evenhand.baselines.fair_only import FairOnlyClassifier
from evenhand.baselines.fermi import DPFERMIClassifier
from evenhand.baselines.fermi_descent import FERMI, FERMIModel
from evenhand.baselines.intervention import InterventionClassifier
from evenhand.baselines.intervention_points import POINTS, InterventionPoint
from evenhand.baselines.non_private import NonPrivateClassifier
from evenhand.baselines.pfld import PFLDClassifier
from evenhand.baselines.pfld_descent import PFLD, TABLE_SENSITIVITY, PFLDModel
from evenhand.baselines.post_processing import DPPostProcessingClassifier
from evenhand.baselines.randomized_response import RandomizedResponseClassifier

__all__ = [
    "FERMI",
    "PFLD",
    "POINTS",
    "TABLE_SENSITIVITY",
    "DPFERMIClassifier",
    "DPPostProcessingClassifier",
    "FERMIModel",
    "FairOnlyClassifier",
    "InterventionClassifier",
    "InterventionPoint",
    "NonPrivateClassifier",
    "PFLDClassifier",
    "PFLDModel",
    "RandomizedResponseClassifier",
]
