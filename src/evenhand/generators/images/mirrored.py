"""Pictures as likely as their mirror images: turned before a sum, and drawn either way."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.feature_means import chunks
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.generators.payload import Progress
from evenhand.typing import IntArray

_CHUNK: Final = 1024  # pictures that are compared at once


@dataclass(eq=False, repr=False, kw_only=True)
class MirroredImages(ImageSynthesizer):
    """A generator that may take a picture and its mirror image to be equally likely.

    Parameters
    ----------
    mirrored : bool
        Whether they may be taken so, as they may of faces and not of digits: a fact that is taken
        to be public. All pictures are then turned so that the left half is the brighter one
        (``turned``), and a drawn one is mirrored with probability one half.

    Privacy
    -------
    A picture is turned by itself alone, so what one moves in a sum stays as it is declared.
    """

    mirrored: bool = False

    @abstractmethod
    def _learn_turned(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        """Learn, as ``_learn``, from pictures that are turned already where they should be."""

    @abstractmethod
    def _draw_turned(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        """Draw what was learnt, as ``_draw``."""

    def _foresee(self, known: EncodedImages) -> None:
        _checks.flag("mirrored", self.mirrored)
        super()._foresee(known)

    def _learn(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        if self.mirrored:
            data = replace(data, pixels=turned(data.pixels))
        self._learn_turned(data, plan, rng, progress)

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        pictures = self._draw_turned(conditions, rng)
        if self.mirrored:
            half = rng.random(len(pictures)) < 0.5
            pictures[half] = pictures[half, ..., ::-1]
        return pictures


def turned(pixels: FloatPixels) -> FloatPixels:
    """Return pictures (n, channels, h, w), mirrored where the right half is the brighter one.

    Halves are compared in whole bytes: which way a picture is turned is its own matter alone, to
    the last bit, and so changes no other picture's part of a sum. A picture with halves of one
    brightness stays as it is; a middle column belongs to neither.

    Examples
    --------
    >>> turned(np.array([[[[0.0, 0.5, 1.0]]], [[[1.0, 0.5, 0.5]]]]))[:, 0, 0]
    array([[1. , 0.5, 0. ],
           [1. , 0.5, 0.5]])
    """
    half, out = pixels.shape[3] // 2, pixels.copy()
    for rows in chunks(len(pixels), _CHUNK):
        whole = np.rint(pixels[rows] * 255.0).astype(np.int64)
        left = whole[..., :half].sum(axis=(1, 2, 3))
        right = whole[..., pixels.shape[3] - half :].sum(axis=(1, 2, 3))
        out[rows] = np.where(
            (right > left)[:, None, None, None], pixels[rows, ..., ::-1], out[rows]
        )
    return out
