"""Reading a folder back as the generator of images that wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from evenhand.generators import saving
from evenhand.generators.images.base import ImageSynthesizer
from evenhand.generators.images.datalens import DataLensImages
from evenhand.generators.images.dp_wgan import DPWGANImages
from evenhand.generators.images.g_pate import GPATEImages
from evenhand.generators.images.gs_wgan import GSWGANImages
from evenhand.generators.images.mean_embedding import MeanEmbeddingImages
from evenhand.generators.images.plain_gan import PlainGANImages
from evenhand.generators.images.teacher_gan import TeacherGANImages

IMAGE_METHODS: Final[Mapping[str, type[ImageSynthesizer]]] = {
    method.__name__: method
    for method in (
        MeanEmbeddingImages,
        TeacherGANImages,
        GSWGANImages,
        GPATEImages,
        DataLensImages,
        DPWGANImages,
        PlainGANImages,
    )
}
"""The generators of images that a folder may hold."""


def load_image_synthesizer(path: str | Path) -> ImageSynthesizer:
    """Read a folder that ``save`` wrote, without running any code in it.

    Parameters
    ----------
    path : path
        The folder.

    Returns
    -------
    ImageSynthesizer
        Fitted, with ``guarantee_`` and ``ledger_`` (closed: nothing can be charged).

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    GeneratorDamaged
        If a file is missing or is not, bit for bit, what was saved; or if it holds another kind of
        generator, such as one of tables.
    """
    generator: ImageSynthesizer = saving.restore(Path(path), IMAGE_METHODS)
    return generator
