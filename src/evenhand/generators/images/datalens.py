"""DataLensImages: signs of every teacher's largest gradients, added up and cut at a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evenhand import _checks
from evenhand._torch import torch
from evenhand.generators.budget_plan import SignalToNoise, snr_of_gradients
from evenhand.generators.images.teacher_gan import TeacherGAN
from evenhand.generators.registry import register
from evenhand.generators.teacher_sums import TopKSigns
from evenhand.learners.nets.tensors import array
from evenhand.typing import FloatArray, IntArray

CLIP = 1e-5
"""Gradients beyond it have a certain sign; of smaller ones the sign is drawn (DataLens)."""


@register
@dataclass(eq=False, repr=False, kw_only=True)
class DataLensImages(TeacherGAN):
    """Train a generator by the signs of teachers' largest gradients (Wang et al. 2021).

    Of every generated picture each teacher names the ``k`` pixels where its gradient is largest,
    and a sign for each: +1 with probability ``1/2 + gradient / (2 b)``, with gradients cut to
    ``b``, the smaller of 1e-5 and the picture's largest one. The signs are added, the sum leaves
    under noise, and pixels whose sum exceeds ``threshold * n_teachers`` move by its sign.

    Parameters
    ----------
    k : int, optional
        Pixels per picture that a teacher names; a tenth of them if not given.
    threshold : float
        Least sum that moves a pixel, as a share of the teachers that are asked. At least 0.
    **others
        See ``TeacherGAN``.

    Privacy
    -------
    Sensitivity : ``2 sqrt(k n_rows)`` per release: all signs of one teacher may turn round.
    Cost : Gaussian, on the whole vector of sums. The paper prices it as an argmax of votes, which
        it is not.
    """

    method: ClassVar[str] = "datalens"
    words: ClassVar[str] = "noisy sums of the signs of teachers' largest gradients"

    k: int | None = None
    threshold: float = 0.2

    def _n_signs(self, width: int) -> int:
        return max(1, width // 10) if self.k is None else self.k

    def _aggregator(self, width: int) -> TopKSigns:
        return TopKSigns(n_rows=self.n_rows, width=width, k=self._n_signs(width))

    def _said(self, gradients: Any, question: Any, stream: Any) -> IntArray:
        aggregator = self._aggregator(gradients.shape[2])
        size = gradients.abs()
        largest, at = size.topk(aggregator.k, dim=2)
        bound = largest[..., :1].clamp(min=1e-30, max=CLIP)
        share = gradients.gather(2, at).div(bound).clamp(-1.0, 1.0)
        # Drawn for every teacher alike, whatever its gradients are.
        drawn = torch.rand(share.shape, generator=stream)
        signs = torch.where(drawn < (1.0 + share) / 2.0, 1, -1) * (largest[..., :1] > 0)
        said = torch.zeros(gradients.shape, dtype=torch.int8).scatter_(2, at, signs.to(torch.int8))
        return aggregator.total(array(said))

    def _direction(self, values: FloatArray, question: Any) -> FloatArray:
        enough = np.abs(values) > self.threshold * self._n_answering
        signs: FloatArray = np.sign(values) * enough
        return signs / max(1.0, float(np.linalg.norm(signs)))

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        numbers = self.n_rows * self._n_signs(width)
        return snr_of_gradients(self.n_teachers, mu, numbers)

    def _check(self) -> None:
        super()._check()
        _checks.non_negative("threshold", self.threshold)
