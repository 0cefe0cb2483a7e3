"""The scikit-learn face: one module per method."""

from evenhand._folder import TypesNotTrusted
from evenhand.estimators.callers import EachFitIsARelease
from evenhand.estimators.dpsgd import DPSGDClassifier
from evenhand.estimators.fair_shares import FairSharesClassifier
from evenhand.estimators.fairpate import FairPATEClassifier
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.pate import PATEClassifier
from evenhand.estimators.reject_option import RejectOptionClassifier
from evenhand.estimators.saving.model_folder import ModelDamaged
from evenhand.estimators.sf_pate.classifier import SFPATEClassifier
from evenhand.estimators.shared_rows import PrivateRowsAsPublic, allow_shared_rows
from evenhand.estimators.shared_teachers import fit_many

__all__ = [
    "DPSGDClassifier",
    "EachFitIsARelease",
    "FairPATEClassifier",
    "FairSharesClassifier",
    "FittedModel",
    "ModelDamaged",
    "PATEClassifier",
    "PrivateRowsAsPublic",
    "RejectOptionClassifier",
    "SFPATEClassifier",
    "TypesNotTrusted",
    "allow_shared_rows",
    "fit_many",
]
