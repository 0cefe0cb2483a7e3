"""All methods by name, and reading a model folder back as the estimator that wrote it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evenhand._checks import one_of

if TYPE_CHECKING:
    from evenhand.estimators.spec import MethodSpec

HOMES: Final[Mapping[str, str]] = {
    "fair-shares": "evenhand.estimators.fair_shares",
    "fairpate": "evenhand.estimators.fairpate",
    "pate": "evenhand.estimators.pate",
    "fairpate-published": "evenhand.baselines.published_fairpate",
    "fairpate-as-printed": "evenhand.baselines.as_printed_fairpate",
    "intervention": "evenhand.baselines.intervention",
    "dpsgd": "evenhand.estimators.dpsgd",
    "dp-fermi": "evenhand.baselines.fermi",
    "dp-post-processing": "evenhand.baselines.post_processing",
    "dp-decoupled": "evenhand.baselines.decoupled",
    "dp2dp": "evenhand.baselines.dp2dp",
    "dp-barycenter": "evenhand.baselines.barycenter",
    "fairdp": "evenhand.baselines.fairdp",
    "dp-ebm": "evenhand.baselines.explainable_boosting",
    "sf-student": "evenhand.estimators.sf_pate.classifier",
    "sf-teachers": "evenhand.estimators.sf_pate.classifier",
    "randomized-response": "evenhand.baselines.randomized_response",
    "pf-ld": "evenhand.baselines.pfld",
    "pf-ld-as-printed": "evenhand.baselines.as_printed_pfld",
    "non-private": "evenhand.baselines.non_private",
    "fair-only": "evenhand.baselines.fair_only",
}
"""The module of each method. One more method is one more line here."""

RENAMED: Final[Mapping[str, str]] = {"m": "randomized-response", "nonprivate": "non-private"}
"""Names of earlier versions."""


class _Methods(Mapping[str, "MethodSpec"]):
    """The records by name; a method's module is imported when its record is first read."""

    def __getitem__(self, name: str) -> MethodSpec:
        from evenhand.estimators.spec import REGISTERED

        importlib.import_module(HOMES[name])
        return REGISTERED[name]

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


METHODS: Final[Mapping[str, MethodSpec]] = _Methods()
"""The record of each method: of the command line, of a grid, and of a saved model."""


def method_named(option: str, name: str, *, others: tuple[str, ...] = ()) -> MethodSpec:
    """Return the record of a method that a user named; ``others`` stand for one, and are listed.

    Raises
    ------
    ValueError
        If there is none, with the nearest name, or with the new one of an old name.
    """
    if name in RENAMED:
        raise ValueError(
            f"{option} {name!r} is now called {RENAMED[name]!r}. Write {RENAMED[name]!r} instead."
        )
    return METHODS[one_of(option, name, (*METHODS, *others))]


def estimators() -> dict[str, Any]:
    """Return the classes that a model folder may hold, by their names."""
    from evenhand.estimators.group_thresholds import GroupThresholdClassifier

    found = {spec.estimator for spec in METHODS.values()} | {GroupThresholdClassifier}
    return {kind.__name__: kind for kind in found}


def load(path: str | Path, *, trusted: Iterable[str] = ()) -> Any:
    """Read a model folder that ``save`` wrote, without running any code in it.

    Parameters
    ----------
    path : path
        The folder.
    trusted : iterable of str, optional
        Names of further types that a student of your own is made of, as the error names them, and
        of notions of your own, ``"package.module:Class"``.
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
    from evenhand.estimators.saving import model_folder

    return model_folder.load(Path(path), estimators(), trusted)
