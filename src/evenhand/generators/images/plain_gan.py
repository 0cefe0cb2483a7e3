"""PlainGANImages: one critic on all pictures and no noise, the reference that nothing protects."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from evenhand.generators.budget_plan import BudgetPlan, Door, SignalToNoise
from evenhand.generators.images.codec import EncodedImages
from evenhand.generators.images.teacher_gan import TeacherGANImages
from evenhand.generators.registry import register
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.typing import FloatArray, IntArray


@register
@dataclass(eq=False, repr=False, kw_only=True)
class PlainGANImages(TeacherGANImages):
    """Train a generator against one critic on all private pictures, with no guarantee whatever.

    A reference point: the same networks and the same interface as the private ones. With
    ``sampler=None`` (default) it is the vanilla one, with a ``GroupBalancedSampler`` the fair-only.

    Parameters
    ----------
    hidden, critic_rows, n_rows, sampler
        As in ``TeacherGAN``, for a critic that sees all pictures.
    **others
        See ``TeacherGAN``; there is one teacher.

    Privacy
    -------
    None. The budget that ``fit`` is given is not spent.
    """

    method: ClassVar[str] = "plain-gan"
    words: ClassVar[str] = "one critic on all pictures, without privacy"
    not_private: ClassVar[str] = (
        "the critic was trained on the private pictures themselves, without noise"
    )

    hidden: Sequence[int] = (128,)
    critic_rows: int = 64
    n_rows: int = 64
    sampler: GroupBalancedSampler | None = None
    n_teachers: int = field(default=1, init=False)

    def _shares(self) -> Mapping[str, float]:
        return {}

    def _release_counts(self, data: EncodedImages, plan: BudgetPlan) -> None:
        self.counts_ = np.bincount(data.condition, minlength=self.conditions_.n).astype(np.float64)
        self.counts_sigma_ = 0.0

    def _unseen(self) -> list[int]:
        empty: list[int] = np.flatnonzero(self.counts_ == 0).tolist()
        return empty

    def _release(self, plan: BudgetPlan, width: int) -> Door:
        unit = self._aggregator(width).unit

        def release(total: IntArray) -> FloatArray:
            return total.astype(np.float64) * unit

        return release

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        return SignalToNoise(value=sys.float_info.max, formula="there is no noise")
