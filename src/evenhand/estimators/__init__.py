"""The scikit-learn face: one module per method."""

from evenhand.estimators.calibration import CellsNotRead
from evenhand.estimators.callers import EachFitIsARelease
from evenhand.estimators.dpsgd import DPSGDClassifier
from evenhand.estimators.fair_shares import FairSharesClassifier
from evenhand.estimators.fairpate import FairPATEClassifier
from evenhand.estimators.fitted import Bound
from evenhand.estimators.group_thresholds import GroupThresholdClassifier
from evenhand.estimators.many import fit_many, train_teachers
from evenhand.estimators.pate import PATEClassifier
from evenhand.estimators.reject_option import RejectOptionClassifier, RejectOptionResult
from evenhand.estimators.saving import ModelDamaged, TypesNotTrusted
from evenhand.estimators.sf_pate.classifier import SFPATEClassifier
from evenhand.estimators.shared_rows import PrivateRowsAsPublic, allow_shared_rows
from evenhand.privacy.saved_ledger import SavedLedger

__all__ = [
    "Bound",
    "CellsNotRead",
    "DPSGDClassifier",
    "EachFitIsARelease",
    "FairPATEClassifier",
    "FairSharesClassifier",
    "GroupThresholdClassifier",
    "ModelDamaged",
    "PATEClassifier",
    "PrivateRowsAsPublic",
    "RejectOptionClassifier",
    "RejectOptionResult",
    "SFPATEClassifier",
    "SavedLedger",
    "TypesNotTrusted",
    "allow_shared_rows",
    "fit_many",
    "train_teachers",
]
