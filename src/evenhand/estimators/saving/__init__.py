"""A fitted model as a folder of plain files."""

from evenhand.estimators.saving.model_folder import ModelDamaged, claim_of, load, save
from evenhand.estimators.saving.skops_files import TypesNotTrusted

__all__ = ["ModelDamaged", "TypesNotTrusted", "claim_of", "load", "save"]
