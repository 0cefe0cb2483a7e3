"""Reading a model folder back as the estimator that wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from evenhand.baselines.fair_only import FairOnlyClassifier
from evenhand.baselines.fermi import DPFERMIClassifier
from evenhand.baselines.intervention import InterventionClassifier
from evenhand.baselines.non_private import NonPrivateClassifier
from evenhand.baselines.pfld import PFLDClassifier
from evenhand.baselines.post_processing import DPPostProcessingClassifier
from evenhand.baselines.randomized_response import RandomizedResponseClassifier
from evenhand.estimators import saving
from evenhand.estimators.classifier import ClassifierWithClaim
from evenhand.estimators.dpsgd import DPSGDClassifier
from evenhand.estimators.fairpate import FairPATEClassifier
from evenhand.estimators.group_thresholds import GroupThresholdClassifier
from evenhand.estimators.pate import PATEClassifier
from evenhand.estimators.sf_pate.classifier import SFPATEClassifier

METHODS: Final[Mapping[str, type[ClassifierWithClaim] | type[GroupThresholdClassifier]]] = {
    method.__name__: method
    for method in (
        PATEClassifier,
        SFPATEClassifier,
        FairPATEClassifier,
        InterventionClassifier,
        DPSGDClassifier,
        DPFERMIClassifier,
        DPPostProcessingClassifier,
        RandomizedResponseClassifier,
        PFLDClassifier,
        NonPrivateClassifier,
        FairOnlyClassifier,
        GroupThresholdClassifier,
    )
}
"""The estimators that a model folder may hold."""


def load(path: str | Path, *, trusted: Iterable[str] = ()) -> Any:
    """Read a model folder that ``save`` wrote, without running any code in it.

    Parameters
    ----------
    path : path
        The folder.
    trusted : iterable of str, optional
        Names of further types that a student of your own is made of, as the error names them.
        Only for a folder whose maker you trust: reading it may then run code.

    Returns
    -------
    estimator
        Fitted, with ``guarantee_``, ``fairness_kind_``, ``ledger_`` (closed: nothing can be
        charged) and, where the method asks teachers, ``answers_``.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ModelDamaged
        If the folder is not exactly what was saved, or its ledger does not bear out its claim.
    TypesNotTrusted
        If it holds objects of types that are neither harmless nor ``trusted``.
    """
    return saving.load(Path(path), METHODS, trusted)
