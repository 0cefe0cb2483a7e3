"""GPATEImages: teachers vote on bins of gradients along a few public directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evenhand import _checks
from evenhand._torch import torch
from evenhand.generators.budget_plan import SignalToNoise, snr_of_gradients
from evenhand.generators.images.teacher_gan import TeacherGAN
from evenhand.generators.registry import register
from evenhand.generators.teacher_sums import ProjectedHistogram
from evenhand.learners.nets.tensors import array
from evenhand.typing import FloatArray, IntArray


@register
@dataclass(eq=False, repr=False, kw_only=True)
class GPATEImages(TeacherGAN):
    """Train a generator by teachers' votes on projected gradients (Long et al. 2021).

    At every step ``n_directions`` public Gaussian directions are drawn. Each teacher projects its
    gradient in each generated picture on them and votes for one of ``n_bins`` bins per direction.
    The histograms leave under noise; a direction moves by the middle of its fullest bin if that
    holds ``threshold * n_teachers`` votes, and not at all otherwise.

    Parameters
    ----------
    n_directions, n_bins : int
    reach : float
        Gradients count up to plus or minus this.
    threshold : float
        Votes that the fullest bin needs, as a share of the teachers that are asked. At least 0.
    **others
        See ``TeacherGAN``.

    Privacy
    -------
    Sensitivity : ``sqrt(2 n_rows n_directions)`` per release: in each histogram one teacher leaves
        a bin and enters another.
    Cost : Gaussian, on all noisy histograms. The check of the fullest bin reads them, so it is
        free; the paper pays a release of its own for it. The paper stops when a cost that depends
        on the votes has used up the budget, and where it stops depends on the votes; here the
        steps are counted before the first.
    """

    method: ClassVar[str] = "g-pate"
    words: ClassVar[str] = "noisy votes of teachers on projected gradients"

    n_directions: int = 10
    n_bins: int = 10
    reach: float = 1e-4
    threshold: float = 0.5

    def _aggregator(self, width: int) -> ProjectedHistogram:
        return ProjectedHistogram(
            n_rows=self.n_rows,
            n_directions=self.n_directions,
            n_bins=self.n_bins,
            reach=self.reach,
        )

    def _question(self, stream: Any, width: int) -> Any:
        return torch.randn(width, self.n_directions, generator=stream) / self.n_directions**0.5

    def _said(self, gradients: Any, question: Any, stream: Any) -> IntArray:
        # Of a condition that it does not hold a teacher's gradients are 0: it has nothing to say.
        holds = array(gradients.abs().amax(dim=2) > 0)
        return self._aggregator(gradients.shape[2]).total(array(gradients @ question), holds)

    def _direction(self, values: FloatArray, question: Any) -> FloatArray:
        least = self.threshold * self._n_answering
        decided = self._aggregator(len(question)).decide(values, least)
        moves: FloatArray = decided @ array(question).T.astype(np.float64)
        return moves / max(float(np.linalg.norm(moves)), 1e-30)

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        # Two counts of each histogram move by 1: half of what a block of norm 1 and -1 would.
        cells = self.n_rows * self.n_directions
        found = snr_of_gradients(self.n_teachers, mu, cells)
        return SignalToNoise(
            value=2.0 * found.value,
            formula="teachers squared times mu squared over twice the histograms of a step, if "
            "all agree",
        )

    def _check(self) -> None:
        super()._check()
        _checks.non_negative("threshold", self.threshold)
