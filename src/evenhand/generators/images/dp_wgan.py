"""DPWGANImages: one critic trained by clipped gradients of single pictures under noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks, _values
from evenhand._torch import torch
from evenhand.generators.aggregators import ClippedSums
from evenhand.generators.budget_plan import BudgetPlan, Door, SignalToNoise
from evenhand.generators.clipping import CLIPS, Clipping, lengths
from evenhand.generators.images.adversarial import (
    SMALL_SHARE,
    STEPS,
    AdversarialImages,
    Lesson,
)
from evenhand.generators.images.codec import EncodedImages
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.learners.nets.picture_generator import GeneratorTraining
from evenhand.learners.nets.single_critic import SingleCritic
from evenhand.typing import FloatArray, IntArray

CELLS: Final = "number of pictures by label and group, for the bounds of groups"

MEMORY: Final = 0.9
"""Of the running mean of the marks: one batch holds few pictures of a group."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CellWeights:
    """Weights by which real and generated pictures pull a critic equally hard where they are alike.

    A cell is a label with a group, or a label alone where groups play no part. Nothing of it is
    private: shares are public, or were released.

    Notes
    -----
    A generated picture has a condition, and perhaps no group: its gradient is cut as those of the
    cells of its condition are, in their shares. If gradients do not depend on the group, the
    expected pull of generated pictures is that of real ones.
    """

    shares: FloatArray
    """Share of each cell among the real pictures; positive, they sum to 1. Shape (n_cells,)."""
    conditions: IntArray
    """Condition of each cell, as the generator knows it: the cell, or its label. Shape (n_cells,).
    """
    bounds: IntArray
    """Which bound on gradients is that of each cell. Shape (n_cells,)."""
    even: bool
    """Real pictures weigh in proportion to one over their cell's share, the rarest ones 1
    (reweighting, Choi et al. 2020); all 1 if not.
    """

    @property
    def weights(self) -> FloatArray:
        """Weight of a real picture of each cell, at most 1."""
        return self.shares.min() / self.shares if self.even else np.ones_like(self.shares)

    @property
    def distribution(self) -> FloatArray:
        """Probability of each condition among generated pictures: as real ones are, or even."""
        known = _sums(self.conditions, self.shares)
        return np.full(len(known), 1.0 / len(known)) if self.even else known

    def sizes(self, n: float) -> FloatArray:
        """Pictures under each bound, of ``n`` in all."""
        return n * _sums(self.bounds, self.shares)

    def of_drawn(self, norms: FloatArray, conditions: IntArray, clipping: Clipping) -> FloatArray:
        """Return the weight of each generated picture's gradient, cut included.

        Parameters
        ----------
        norms : ndarray, shape (n,)
            Of their gradients.
        conditions : ndarray of int64, shape (n,)
            Theirs, drawn from ``distribution``.
        clipping : Clipping
            The bounds, as they stand.
        """
        total = np.zeros(len(norms))
        of_condition = self.shares / self.distribution[self.conditions]
        for cell, weight in enumerate(self.weights):
            own = conditions == self.conditions[cell]
            bound = np.full(int(own.sum()), self.bounds[cell])
            total[own] += of_condition[cell] * weight * clipping.cut(weight * norms[own], bound)
        return total


def _sums(codes: IntArray, values: FloatArray) -> FloatArray:
    """Sum of the values of each code."""
    found: FloatArray = np.bincount(codes, values).astype(np.float64)
    return found


@register
@dataclass(eq=False, repr=False, kw_only=True)
class DPWGANImages(AdversarialImages):
    """Train one Wasserstein critic by DP-SGD, and a generator against it (Xie et al. 2018).

    The pictures are dealt once into ``n_batches`` parts. Each update of the critic asks the next
    part: the gradients of its single pictures are clipped and added up, and the sum leaves under
    noise. The gradients of generated pictures are clipped alike, and add no cost: like everything
    that the generator learns, they follow from what has left.

    Parameters
    ----------
    n_batches : int
        Parts of the pictures.
    clip : {"flat", "group", "global-adapt"}
        How: see ``Clipping``. "group" (DP-SGD-F) needs groups, and with
        ``condition="label"`` releases their number.
    clip_norm : float
        Largest norm of a picture's gradient, at first. Greater than 0.
    critic_rows : int
        Generated pictures in an update of the critic.
    sampler : GroupBalancedSampler or None
        With ``scope="public"`` or ``"noisy"`` pictures of a label and group weigh in proportion to
        one over its share, the rarest ones 1 (reweighting, Choi et al. 2020), before they are
        clipped. A balance "in the partition" is refused: there one picture would move the weights
        of others.
    **others
        See ``AdversarialImages``.

    Privacy
    -------
    Neighbors : as in ``TeacherGAN``.
    Sensitivity : what one picture adds has norm at most 1, in clip norms: its gradient, and the
        mark that says whether it was long. It is in one part; added it moves that part's sum by at
        most 1, replaced by 2; with r pictures per unit r times as much.
    Cost : a round over all parts is one Gaussian release. Nothing is subsampled. Bounds move with
        the noisy marks and with noisy counts alone.
    """

    method: ClassVar[str] = "dp-wgan"
    words: ClassVar[str] = "noisy gradients of a critic"
    numbers: ClassVar[tuple[str, ...]] = (*AdversarialImages.numbers, "n_batches")

    n_batches: int = 100
    clip: str = "flat"
    clip_norm: float = 1.0
    n_steps: int = 400
    n_rows: int = 64
    critic_steps: int = 3
    critic_rows: int = 64
    hidden: Sequence[int] = (64,)
    rates: Sequence[float] = (3e-3, 3e-4)
    sampler: GroupBalancedSampler | None = None

    @property
    def _n_parts(self) -> int:
        return self.n_batches

    @property
    def _rounds(self) -> int:
        return -(-self.n_steps * self.critic_steps // self.n_batches)

    @property
    def _n_weights(self) -> int:
        return sum(map(math.prod, self._critic().shapes(self.codec_.size, self.conditions_.n)))

    @property
    def _sums(self) -> ClippedSums:
        return ClippedSums(clip_norm=1.0, per_unit=self._per_unit)

    @property
    def _releases_cells(self) -> bool:
        """Whether the sizes of groups are known from nothing else."""
        return self.clip == "group" and self.condition == "label" and self.sampler is None

    def _shares(self) -> Mapping[str, float]:
        planned = dict(super()._shares())
        if self._releases_cells:
            planned |= {CELLS: SMALL_SHARE, STEPS: planned[STEPS] - SMALL_SHARE}
        return planned

    def _learn(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        self._per_unit = data.per_unit
        self._moved = 2.0 if plan.ledger.neighbors == "replace one" else 1.0
        n_bounds = data.n_groups if self.clip == "group" else 1
        self._clipping = Clipping.start(self.clip, self.clip_norm, n_groups=n_bounds, memory=MEMORY)
        super()._learn(data, plan, rng, progress)

    def _release_counts(self, data: EncodedImages, plan: BudgetPlan) -> None:
        super()._release_counts(data, plan)
        if self._releases_cells:
            released = plan.release_counts(*data.balanced, CELLS, per_unit=data.per_unit)
            self._cells = released.values

    def _cell_weights(
        self, data: EncodedImages, sampler: GroupBalancedSampler | None
    ) -> CellWeights:
        """Return what each cell counts, by shares that are public or were released."""
        n_groups = data.n_groups
        if sampler is not None and sampler.shares is not None:
            known = np.array(sampler.shares)
        elif self._releases_cells:
            known = np.maximum(self._cells, 1.0)
        else:
            known = self._known_counts()
            n_groups = len(known) // data.n_labels
        cell = np.arange(len(known))
        return CellWeights(
            shares=known / known.sum(),
            conditions=cell if self.conditions_.n == len(known) else cell // n_groups,
            bounds=cell % n_groups if self.clip == "group" else 0 * cell,
            even=sampler is not None,
        )

    def _release(self, plan: BudgetPlan, width: int) -> Door:
        sums, n_values = self._sums, self._n_weights + self._clipping.n_marks
        return plan.rounds(
            sums, STEPS, n_rounds=self._rounds, n_blocks=self.n_batches, length=n_values
        )

    def _teach(self, lesson: Lesson) -> None:
        data, learner, rng = lesson.data, lesson.learner, lesson.rng
        shape, n_heads = self.codec_.size, self.conditions_.n
        critic = SingleCritic(self._critic(), shape, n_heads, self.critic_rate, rng)
        counted, clipping, sums = (
            self._cell_weights(data, lesson.sampler),
            self._clipping,
            self._sums,
        )
        cell = data.balanced[0] if len(counted.shares) > data.n_labels else data.label
        weights, bounds = counted.weights[cell], counted.bounds[cell]
        size = max(1.0, float(self.counts_.sum())) / self.n_batches
        sizes, n, turn = counted.sizes(size), critic.n_weights, 0
        pixels = torch.as_tensor(data.pixels.reshape(len(data), -1))
        for step in range(self.n_steps):
            for _ in range(self.critic_steps):
                rows = lesson.partition.all_rows[turn]
                real = critic.gradients(pixels[rows], data.condition[rows])
                noisy = lesson.release(
                    sums.total(clipping.vectors(real, bounds[rows], weights[rows]))
                )
                down = self._of_drawn(critic, learner, counted, rng)
                critic.climb(clipping.mean(noisy[:n], size) - down)
                clipping.move(noisy[n:], sizes)
                turn = (turn + 1) % self.n_batches
            asked = self._even(self.n_rows, rng)
            drawn = learner.draw(asked)
            learner.follow(drawn, critic.pixel_gradients(drawn, asked))
            lesson.progress("steps", step + 1, self.n_steps)

    def _of_drawn(
        self,
        critic: SingleCritic,
        learner: GeneratorTraining,
        counted: CellWeights,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Mean gradient of generated pictures, clipped as those of real ones are."""
        shares = counted.distribution
        heads = rng.choice(len(shares), size=self.critic_rows, p=shares)
        with torch.no_grad():
            drawn = learner.draw(heads).flatten(1)
        each = critic.gradients(drawn, heads)
        mean: FloatArray = counted.of_drawn(lengths(each), heads, self._clipping) @ each / len(each)
        return mean

    def _snr(self, mu: float, width: int) -> SignalToNoise:
        n_releases = self.n_steps * self.critic_steps
        size = max(0.0, float(self.counts_.sum())) / self.n_batches
        moved = self._moved * self._per_unit
        room = 1.0 - self._clipping.share**2
        return SignalToNoise(
            value=room * n_releases * (size * mu / moved) ** 2 / (self._rounds * self._n_weights),
            formula="updates of the critic times the squared pictures of one times mu squared, "
            "over the rounds and the critic's numbers, in the room that marks leave",
        )

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        each = self._n_weights
        batch = max(1.0, len(data) / self.n_batches)
        # Gradients of real and of generated pictures, in single and in double; noise of a pass.
        needed = each * (28.0 * batch + 12.0 * self.critic_rows + 16.0 * self.n_batches)
        return (
            f"gradients of {each:,} numbers for {_values.count(round(batch))} pictures and "
            f"{self.n_batches} batches",
            needed + 2.0 * data.pixels.nbytes,
            f"{self._critic_sizes}, or change n_batches",
        )

    def _foresee(self, data: EncodedImages) -> None:
        if self.clip == "group" and data.n_groups == 1:
            raise ValueError(
                "clip='group' sets bounds by group, and there is one group. Pass "
                "sensitive_features= with several, or use clip='global-adapt' or 'flat'."
            )
        super()._foresee(data)

    def _check(self) -> None:
        super()._check()
        _checks.one_of("clip", self.clip, CLIPS)
        _checks.positive("clip_norm", self.clip_norm)
        sampler = self.sampler
        if sampler is not None and sampler.scope == "partition":
            raise ValueError(
                "DPWGANImages weighs pictures by shares that are known: scope='partition' would "
                "let one picture move the weights of others in its batch. Use scope='noisy' or "
                "'public'."
            )
