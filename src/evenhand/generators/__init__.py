"""Synthetic tables and pictures that are differentially private and balanced between groups."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.generators.evaluation import evaluate
    from evenhand.generators.sampler import GroupBalancedSampler
    from evenhand.generators.saving import GeneratorDamaged, load
    from evenhand.generators.synthesizer import NotedWarning
    from evenhand.generators.tables.dp_wgan import DPWGANSynthesizer
    from evenhand.generators.tables.even_rates import even_rates
    from evenhand.generators.tables.marginal import MarginalSynthesizer
    from evenhand.generators.tables.mean_embedding import MeanEmbeddingSynthesizer
    from evenhand.generators.tables.nonprivate import NonPrivateSynthesizer, ReweightedSynthesizer
    from evenhand.generators.tables.pate_gan import PATEGANSynthesizer
    from evenhand.generators.tables.ron_gauss import FFPDGSynthesizer, RONGaussSynthesizer

_HOMES = {
    "DPWGANSynthesizer": "tables.dp_wgan",
    "FFPDGSynthesizer": "tables.ron_gauss",
    "GeneratorDamaged": "saving",
    "GroupBalancedSampler": "sampler",
    "MarginalSynthesizer": "tables.marginal",
    "MeanEmbeddingSynthesizer": "tables.mean_embedding",
    "NonPrivateSynthesizer": "tables.nonprivate",
    "NotedWarning": "synthesizer",
    "PATEGANSynthesizer": "tables.pate_gan",
    "RONGaussSynthesizer": "tables.ron_gauss",
    "ReweightedSynthesizer": "tables.nonprivate",
    "evaluate": "evaluation",
    "even_rates": "tables.even_rates",
    "load": "saving",
}

__all__ = [
    "DPWGANSynthesizer",
    "FFPDGSynthesizer",
    "GeneratorDamaged",
    "GroupBalancedSampler",
    "MarginalSynthesizer",
    "MeanEmbeddingSynthesizer",
    "NonPrivateSynthesizer",
    "NotedWarning",
    "PATEGANSynthesizer",
    "RONGaussSynthesizer",
    "ReweightedSynthesizer",
    "evaluate",
    "even_rates",
    "load",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the registry alone needs no library."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
