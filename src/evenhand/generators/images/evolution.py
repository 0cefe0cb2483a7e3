"""EvolutionImages: pictures of a public generator, bred by noisy votes of the private ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np

from evenhand import _checks, _values
from evenhand.generators.aggregators import TableCounts
from evenhand.generators.budget_plan import BudgetPlan, snr_of_counts
from evenhand.generators.feature_means import chunks
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.gaussian import low_frequencies
from evenhand.generators.images.public_characters import PublicCharacters
from evenhand.generators.images.public_generator import Drawn, PublicGenerator, Size
from evenhand.generators.images.synthesizer import COUNTS, ImageSynthesizer
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.rounding import largest_remainder
from evenhand.privacy import Budget, Guarantee, Ledger
from evenhand.typing import Array, FloatArray, IntArray

VOTES: Final = "votes of pictures for the nearest candidate of their label and group"

OWN_PICTURES: Final = "private pictures among those that the public generator was made of"
"""What the claim does not cover, in its words."""

_SHARES: Final = {COUNTS: 0.05, VOTES: 0.95}
_CHUNK: Final = 2048  # pictures whose distances are held at once
_FINE: Final = 20  # bits of a cosine behind the point
_LENGTH: Final = 24  # bits of the length of a point: squares of it and their sums are exact doubles


@register
@dataclass(eq=False, repr=False, kw_only=True)
class EvolutionImages(ImageSynthesizer):
    """Breed pictures of a public generator by noisy votes of the private ones (private evolution).

    1. The numbers of pictures by label and group are released.
    2. The public generator draws candidates of each label and group.
    3. Each private picture votes for the candidate of its own label and group that is nearest in
       low frequencies (``low_frequencies``). The votes are released; those below the threshold are
       set to 0. As many parents as there are candidates are taken in proportion to the rest, and
       the public generator varies them: the next candidates. This is done ``n_iterations`` times,
       with variations that become smaller.
    4. Of the last parents pictures are kept, with variations of the last strength. What is drawn
       is one of these, each as often as any other.

    Parameters
    ----------
    public : PublicGenerator
        Draws pictures of a label, and others near them.
    n_candidates : int
        Of each label and group, at least 2.
    n_iterations : int
        At least 1. Each costs an equal part of the budget.
    strengths : sequence of two floats
        Of the first variations and the last, in [0, 1].
    threshold : float
        Times its noise, below which a number of votes is not counted; at least 0.
    n_frequencies : int
        Numbers of a picture that are compared, at least 1 for each channel; of a small picture all.
    n_kept : int
        Pictures of each label and group that are kept, at least 1.
    **others
        ``condition``, ``neighbors``, ``noise`` and ``random_state``, see ``ImageSynthesizer``.

    Privacy
    -------
    Neighbors : add or remove one picture or unit; or replace one picture.
    Sensitivity : 1 of the counts, and of the votes of each iteration (``sqrt(2)`` for "replace
        one"): a picture has one vote. Which candidate is nearest follows from the picture and the
        candidates alone, to the last bit: all is computed in whole numbers.
    Cost : ``n_iterations + 1`` Gaussian releases; all else reads what was released.
    Public : the generator, which the claim names. A private picture that it was made of or trained
        on is not covered.

    References
    ----------
    Lin, Gopi, Kulkarni, Nori and Yekhanin 2024 (private evolution by foundation models). Lin,
    Baltrusaitis, Wang and Yekhanin 2025 (simulators in their place; here with shares for labels
    and groups, and parents without chance).
    """

    method: ClassVar[str] = "evolution"
    words: ClassVar[str] = "noisy votes for pictures of a public generator, by default characters"

    named_: str = field(init=False)

    public: PublicGenerator = field(default_factory=PublicCharacters)
    n_candidates: int = 600
    n_iterations: int = 16
    strengths: Sequence[float] = (0.7, 0.2)
    threshold: float = 2.0
    n_frequencies: int = 100
    n_kept: int = 2000

    def _shares(self) -> Mapping[str, float]:
        return _SHARES

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor as plain values, the public generator in words.

        One that was loaded draws what was kept, and needs it no more.
        """
        named = self.named_ if self.is_fitted_ else repr(self.public)
        return super().settings() | {"public": named}

    def _named(self) -> str:
        if not isinstance(self.public, PublicGenerator):
            raise TypeError(
                f"public must be a PublicGenerator, such as PublicCharacters(), got "
                f"{self.public!r}. A generator that was loaded has the words of its own alone: it "
                f"draws without it, and cannot be fitted again."
            )
        return f"the public generator {self.public.name} ({self.public.made_of})"

    def _foresee(self, known: EncodedImages) -> None:
        _checks.at_least("n_candidates", self.n_candidates, 2)
        _checks.at_least("n_iterations", self.n_iterations, 1)
        _checks.at_least("n_frequencies", self.n_frequencies, known.pixels.shape[1])
        _checks.at_least("n_kept", self.n_kept, 1)
        _checks.non_negative("threshold", self.threshold)
        if len(self.strengths) != 2:
            raise ValueError(
                f"strengths are two, of the first variations and the last, got {self.strengths!r}."
            )
        for strength in self.strengths:
            _checks.closed_unit("strengths", strength)
        self.named_ = self._named()
        super()._foresee(known)
        # Labels and sizes of which it draws nothing are refused here, at no cost.
        cells, rng = np.arange(self.conditions_.n), np.random.default_rng(0)
        self._vary(self._random(cells, rng), cells, self.strengths[0], rng)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        n_candidates, n_kept = (n * self.conditions_.n for n in (self.n_candidates, self.n_kept))
        size, read = data.pixels[0].size, min(self.n_frequencies, data.pixels[0].size)
        drawn = 24.0 * size * max(n_candidates, n_kept)
        compared = 8.0 * read * (size + len(data) + n_candidates)
        held = 16.0 * _CHUNK * (size + self.n_candidates)
        return (
            f"{_values.count(len(data))} pictures, {n_candidates:,} candidates and {n_kept:,} that "
            f"are kept",
            2.0 * data.pixels.nbytes + drawn + compared + held,
            "n_candidates, n_kept, or the size or the number of the pictures",
        )

    def _claim(self, budget: Budget, ledger: Ledger, public: Sequence[str]) -> Guarantee:
        claim = super()._claim(budget, ledger, (*public, self.named_))
        return replace(claim, not_covered=(*claim.not_covered, OWN_PICTURES))

    def _learn(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        n_cells, n = self.conditions_.n, self.n_candidates
        counted = plan.release_counts(data.condition, n_cells, COUNTS, per_unit=data.per_unit)
        self.counts_, self.counts_sigma_ = counted.values, counted.sigma
        votes = TableCounts(shapes=((n_cells, n),), per_unit=data.per_unit)
        frequencies = WholeFrequencies.of(self.codec_.size, self.n_frequencies)
        points, cells = frequencies.points(data.pixels), np.repeat(np.arange(n_cells), n)
        drawn, (first, last) = self._random(cells, rng), self.strengths
        for i, strength in enumerate(np.linspace(first, last, self.n_iterations)):
            progress("votes", i, self.n_iterations)
            near = nearest(points, data.condition, frequencies.points(drawn.pixels), n)
            total = votes.total([(data.condition, near)])
            released = plan.release(votes, total, VOTES, n_steps=self.n_iterations)
            (found,) = votes.apart(released.values)
            left = self.n_iterations - 1 - i
            parents = parents_of(
                found, n if left else self.n_kept, least=self.threshold * released.sigma
            )
            drawn = self._vary(drawn.take(parents), cells[parents], float(strength), rng)
        progress("votes", self.n_iterations, self.n_iterations)
        self.snr_ = snr_of_counts(float(self.counts_.sum()), n_cells * n, released.sigma)
        self.pictures_ = np.rint(drawn.pixels * 255.0).astype(np.uint8)

    def _random(self, cells: IntArray, rng: np.random.Generator) -> Drawn:
        """Draw candidates of labels and groups."""
        return self._checked(self.public.random(self._labels(cells), self.codec_.size, rng), cells)

    def _vary(
        self, drawn: Drawn, cells: IntArray, strength: float, rng: np.random.Generator
    ) -> Drawn:
        """Draw candidates near others."""
        return self._checked(self.public.vary(drawn, self._labels(cells), strength, rng), cells)

    def _labels(self, cells: IntArray) -> Array:
        """Return the user's values of the labels."""
        return self.codec_.label.decode(self.conditions_.labels()[cells])

    def _checked(self, drawn: Drawn, cells: IntArray) -> Drawn:
        """Return what a public generator drew, if it is what was asked for."""
        shape = (len(cells), *self.codec_.size)
        if drawn.pixels.shape != shape or len(drawn.parameters) != len(cells):
            raise ValueError(
                f"The public generator {self.public.name} was asked for pictures of shape {shape} "
                f"with a row of parameters each, and drew {drawn.pixels.shape} with "
                f"{drawn.parameters.shape}. Mend its random and vary."
            )
        if not ((drawn.pixels >= 0) & (drawn.pixels <= 1)).all():
            raise ValueError(
                f"The public generator {self.public.name} drew pixels that do not lie in [0, 1]. "
                f"Cut them, or divide by the largest possible value."
            )
        return drawn

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        own = self.pictures_.reshape(self.conditions_.n, -1, *self.codec_.size)
        out = np.empty((len(conditions), *self.codec_.size), dtype=np.float32)
        for c in np.unique(conditions):
            rows = np.flatnonzero(conditions == c)
            # All before one comes again.
            order = [rng.permutation(len(own[c])) for _ in range(0, len(rows), len(own[c]))]
            out[rows] = own[c][np.concatenate(order)[: len(rows)]]
        out /= np.float32(255.0)
        return out

    def _arrays(self) -> dict[str, Array]:
        return {"pictures": self.pictures_}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self.pictures_, self.named_ = arrays["pictures"], str(self.public)
        if self.pictures_.shape != (self.conditions_.n * self.n_kept, *self.codec_.size):
            raise ValueError("there are not as many pictures as the settings say.")


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeFrequencies:
    """Low frequencies of pictures in whole numbers, of which squared distances are exact.

    Which candidate is nearest to a picture then depends on no other picture, to the last bit:
    however many are multiplied at once, and also where two candidates are equally near.
    """

    cosines: FloatArray
    """Whole numbers, of 2**-20. Shape (n_pixels, n)."""
    scale: float
    """Units of a point for one byte of a picture; a power of two."""

    @classmethod
    def of(cls, size: Size, n: int) -> WholeFrequencies:
        """Return the ``n`` lowest of pictures of this size; see ``low_frequencies``."""
        # Bytes less 128, over all pixels: no point is longer, but for roundings.
        longest = math.ceil(math.log2(128.0 * math.prod(size) ** 0.5))
        cosines = np.rint(low_frequencies(size, n) * 2.0**_FINE)
        return cls(cosines=cosines, scale=2.0 ** (_LENGTH - longest))

    def points(self, pixels: FloatPixels) -> FloatArray:
        """Return points (n, n_frequencies) of pictures (n, channels, height, width)."""
        out = np.empty((len(pixels), self.cosines.shape[1]))
        for rows in chunks(len(pixels), _CHUNK):
            flat = pixels[rows].reshape(-1, len(self.cosines)).astype(np.float64)
            exact = (np.rint(flat * 255.0) - 128.0) @ self.cosines
            out[rows] = np.rint(exact * (self.scale / 2.0**_FINE))
        return out


def nearest(points: FloatArray, cells: IntArray, candidates: FloatArray, n: int) -> IntArray:
    """Return which candidate of its own cell is nearest to each point, the first if several are.

    Parameters
    ----------
    points : ndarray of float64, shape (n_points, n_features)
        Whole numbers, see ``WholeFrequencies``.
    cells : ndarray of int64, shape (n_points,)
    candidates : ndarray of float64, shape (n_cells * n, n_features)
        Those of the first cell, then those of the second, and so on.
    n : int
        Candidates of a cell.
    """
    out = np.empty_like(cells)
    for c in np.unique(cells):
        own, at = candidates[c * n : (c + 1) * n], np.flatnonzero(cells == c)
        lengths = (own**2).sum(axis=1)
        for part in chunks(len(at), _CHUNK):
            rows = at[part]
            # The squared distance, less what does not depend on the candidate.
            out[rows] = (lengths - 2.0 * points[rows] @ own.T).argmin(axis=1)
    return out


def parents_of(votes: FloatArray, n: int, *, least: float) -> IntArray:
    """Return the positions of ``n`` parents for each cell, as often as they have noisy votes.

    Votes below ``least`` count nothing; where no candidate of a cell has as many, all count alike.

    Examples
    --------
    >>> parents_of(np.array([[9.0, 1.0, 3.0], [0.5, -2.0, 1.0]]), 4, least=2.0)
    array([0, 0, 0, 2, 3, 3, 4, 5])
    """
    kept = np.where(votes >= max(least, 0.0), votes, 0.0)
    kept[~kept.any(axis=1)] = 1.0
    times = np.concatenate([largest_remainder(n, own) for own in kept])
    parents: IntArray = np.repeat(np.arange(votes.size), times)
    return parents
