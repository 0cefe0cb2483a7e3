"""TeacherGANImages: gradients of all teachers at every step, one sum with one bound."""

from __future__ import annotations

from typing import Any, ClassVar

from evenhand._torch import torch
from evenhand.generators.images.teacher_gan import TeacherGAN
from evenhand.generators.plan import SignalToNoise, snr_of_gradients
from evenhand.generators.teacher_sums import GradientSum
from evenhand.typing import FloatArray, IntArray


class TeacherGANImages(TeacherGAN):
    """Train a generator by the gradients of many small critics, each on pictures of its own.

    At every step the gradients of one teacher's critic in all drawn pictures are one block, brought
    to norm 1 as a whole. The blocks of all teachers are added; the sum leaves under noise.

    Parameters
    ----------
    See ``TeacherGAN``.

    Privacy
    -------
    Sensitivity : a teacher's block has norm at most 1 and may turn into any other: 2 per release.
        With ``strata`` two teachers may: 4.

    Notes
    -----
    Signal to noise over all steps is ``n_teachers**2 mu**2 / (4 n_rows n_pixels)``; with ``strata``
    a quarter of it.
    """

    method: ClassVar[str] = "teacher-gan"

    def _aggregator(self, width: int) -> GradientSum:
        return GradientSum(clip_norm=1.0)

    def _said(self, gradients: Any, question: Any, stream: Any) -> IntArray:
        norms = torch.linalg.vector_norm(gradients, dim=(1, 2), keepdim=True)
        blocks: FloatArray = (gradients / norms.clamp(min=1e-30)).numpy()
        return GradientSum(clip_norm=1.0).total(blocks)

    def _direction(self, values: FloatArray, question: Any) -> FloatArray:
        return values / self._n_answering

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        return snr_of_gradients(self.n_teachers, self._mu_of_one(mu), self.n_rows * width)
