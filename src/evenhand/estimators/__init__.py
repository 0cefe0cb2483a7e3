"""The scikit-learn face: one module per method."""

from evenhand.estimators.calibration import CellsNotRead
from evenhand.estimators.callers import EachFitIsARelease
from evenhand.estimators.dpsgd import DPSGDClassifier
from evenhand.estimators.fair_only import FairOnlyClassifier
from evenhand.estimators.fairpate import FairPATEClassifier
from evenhand.estimators.fermi import DPFERMIClassifier
from evenhand.estimators.intervention import InterventionClassifier
from evenhand.estimators.many import fit_many, train_teachers
from evenhand.estimators.nonprivate import NonPrivateClassifier
from evenhand.estimators.pate import PATEClassifier
from evenhand.estimators.persistence import ModelDamaged
from evenhand.estimators.pfld import PFLDClassifier
from evenhand.estimators.points import POINTS, InterventionPoint
from evenhand.estimators.post_processing import DPPostProcessingClassifier
from evenhand.estimators.randomized_response import RandomizedResponseClassifier
from evenhand.estimators.reject_option import RejectOptionClassifier, RejectOptionResult
from evenhand.estimators.saved import METHODS, load
from evenhand.estimators.sf_bounds import Bound
from evenhand.estimators.sf_pate import SFPATEClassifier
from evenhand.estimators.shared_rows import PrivateRowsAsPublic, allow_shared_rows
from evenhand.estimators.skops_files import TypesNotTrusted
from evenhand.estimators.thresholded import GroupThresholdClassifier
from evenhand.privacy import SavedLedger

__all__ = [
    "METHODS",
    "POINTS",
    "Bound",
    "CellsNotRead",
    "DPFERMIClassifier",
    "DPPostProcessingClassifier",
    "DPSGDClassifier",
    "EachFitIsARelease",
    "FairOnlyClassifier",
    "FairPATEClassifier",
    "GroupThresholdClassifier",
    "InterventionClassifier",
    "InterventionPoint",
    "ModelDamaged",
    "NonPrivateClassifier",
    "PATEClassifier",
    "PFLDClassifier",
    "PrivateRowsAsPublic",
    "RandomizedResponseClassifier",
    "RejectOptionClassifier",
    "RejectOptionResult",
    "SFPATEClassifier",
    "SavedLedger",
    "TypesNotTrusted",
    "allow_shared_rows",
    "fit_many",
    "load",
    "train_teachers",
]
