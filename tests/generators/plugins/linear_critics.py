"""A backbone of pictures of one's own: teachers with linear critics on squared pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from evenhand.generators.images.teacher_gan import TeacherGANImages
from evenhand.generators.registry import register
from evenhand.learners.nets.picture_critics import CriticNetwork


class BrightCritic:
    """Scores from squared pixels: bright ones count most."""

    def shapes(self, shape: tuple[int, int, int], n_heads: int) -> list[tuple[int, ...]]:
        """Weights and bias of one critic."""
        return [(math.prod(shape), n_heads), (1, n_heads)]

    def n_numbers(self, shape: tuple[int, int, int]) -> int:
        """Numbers of a picture; there is no hidden layer."""
        return math.prod(shape)

    def scores(self, weights: Sequence[Any], x: Any) -> Any:
        """Scores (n_critics, n, n_heads) of pictures (n_critics, n, n_pixels)."""
        return (x**2) @ weights[0] + weights[1]


@register
class BrightTeacherGANImages(TeacherGANImages):
    """``TeacherGANImages`` with linear critics; what it releases and charges is the same."""

    method: ClassVar[str] = "bright-teacher-gan"
    words: ClassVar[str] = "noisy sums of the gradients of linear teachers"

    def _critic(self) -> CriticNetwork:
        return BrightCritic()
