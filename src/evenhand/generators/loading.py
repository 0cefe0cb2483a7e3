"""Reading a generator's folder back as the generator that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from evenhand.generators import saving
from evenhand.generators.tables.base import Synthesizer
from evenhand.generators.tables.dp_wgan import DPWGANSynthesizer
from evenhand.generators.tables.marginal import MarginalSynthesizer
from evenhand.generators.tables.mean_embedding import MeanEmbeddingSynthesizer
from evenhand.generators.tables.nonprivate import NonPrivateSynthesizer, ReweightedSynthesizer
from evenhand.generators.tables.pate_gan import PATEGANSynthesizer
from evenhand.generators.tables.ron_gauss import FFPDGSynthesizer, RONGaussSynthesizer

METHODS: Final[Mapping[str, type[Synthesizer]]] = {
    method.__name__: method
    for method in (
        MarginalSynthesizer,
        MeanEmbeddingSynthesizer,
        PATEGANSynthesizer,
        RONGaussSynthesizer,
        FFPDGSynthesizer,
        DPWGANSynthesizer,
        NonPrivateSynthesizer,
        ReweightedSynthesizer,
    )
}
"""The generators that a folder may hold; ``method.method`` is the name on the command line."""


def load_synthesizer(path: str | Path) -> Synthesizer:
    """Read a folder that ``save`` wrote, without running any code in it.

    Parameters
    ----------
    path : path
        The folder.

    Returns
    -------
    Synthesizer
        Fitted, with ``guarantee_`` and ``ledger_`` (closed: nothing can be charged).

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    GeneratorDamaged
        If a file is missing or is not, bit for bit, what was saved.
    """
    generator: Synthesizer = saving.restore(Path(path), METHODS)
    return generator
