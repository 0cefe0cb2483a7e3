"""DiffusionImages: a denoiser trained by DP-SGD beside what a noisy Gaussian mixture expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import torch
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise
from evenhand.generators.feature_means import chunks
from evenhand.generators.images.codec import EncodedImages, FloatPixels
from evenhand.generators.images.gaussian import GaussianImages
from evenhand.generators.images.mixture import MixtureExpectation
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.generators.joint_plan import JointPlan
from evenhand.generators.payload import Payload, Progress
from evenhand.generators.registry import register
from evenhand.generators.synthesizer import TorchSynthesizer
from evenhand.learners.nets.denoiser import TOGETHER, Denoiser, NoisyAdam, PatchNetwork
from evenhand.learners.nets.tensors import array, computing, floats
from evenhand.privacy import Budget, FloatNoise, Guarantee, Ledger, SubsampledGaussian
from evenhand.privacy.noise import Noise
from evenhand.privacy.subsampled import poisson_batches, record_keys
from evenhand.typing import Array, FloatArray, IntArray

STEPS: Final = "noisy gradients of the denoiser, and the sums of the mixture beside them"
MIXTURE: Final = "mixture: "
LEVELS: Final = (2.0, 0.12)
"""Noise, in units of a pixel, from which pictures are drawn, and the least that is taken off."""

_DRAWN: Final = 500  # pictures that are drawn at once
_OF_MIXTURE: Final = ("n_frequencies", "n_directions", "n_components", "radius")


@register
@dataclass(eq=False, repr=False, kw_only=True)
class DiffusionImages(TorchSynthesizer, ImageSynthesizer):
    """Take noise off pictures by what a mixture expects, and a network that learns the rest.

    1. ``GaussianImages`` releases the mixtures of labels and groups, by a part of the budget.
       What they expect of a picture given the picture with noise is known in closed form.
    2. A small network reads the noisy picture and this expectation, and learns what is missing, by
       DP-SGD: at each step a Poisson sample of the pictures, each with noise of ``n_draws`` levels;
       the gradient of a picture over all its draws is clipped, and the sum leaves under noise.
    3. A picture is drawn from the mixture, noise is added, and taken off in ``n_levels`` steps
       (Karras et al. 2022; Lu et al. 2022). What the network does not know the mixture does.

    Parameters
    ----------
    mixture_share : float
        Part of the budget's mu squared that the mixtures cost, in (0, 1).
    sampling_rate : float
        Probability of a picture to be in the sample of a step, in (0, 1]. Public, whatever the
        number of pictures.
    n_steps : int
    n_draws : int
        Noise levels of a picture in a step (noise multiplicity). They cost time, and no privacy.
    clip_norm : float
        Largest norm of a picture's gradient. Greater than 0.
    learning_rate : float
        Of Adam, at most. Greater than 0.
    width, n_blocks, patch : int
        See ``PatchNetwork``.
    n_levels : int
        Steps in which noise is taken off.
    n_frequencies, n_directions, n_components, radius
        See ``GaussianImages``.
    **others
        ``condition``, ``noise``, ``random_state`` and ``device``, see ``ImageSynthesizer`` and
        ``TorchSynthesizer``. Noise is ``FloatNoise()`` by default: gradients are real numbers.

    Privacy
    -------
    Neighbors : add or remove one picture; or one unit with a single picture.
    Sensitivity : ``clip_norm`` at each step, over all draws of a picture together; of the mixtures
        as ``GaussianImages``.
    Cost : steps and mixtures together, in one privacy loss distribution (``SubsampledGaussian``).
        All else reads what was released.

    Notes
    -----
    A CNN that learns from 20,000 of these pictures was less accurate on real ones than one of
    ``GaussianImages``, at minutes for seconds (``reproductions/picture_budgets.py``).

    References
    ----------
    Dockhorn, Cao, Vahdat and Kreis 2023 (diffusion models by DP-SGD, noise multiplicity; there a
    network learns all). Karras, Aittala, Aila and Laine 2022 (noise levels, and a network beside
    what is known). Lu et al. 2022 (two-step solver).
    """

    method: ClassVar[str] = "diffusion"
    words: ClassVar[str] = "noisy gradients of a denoiser, beside noisy means and covariances"
    default_noise: ClassVar[type[Noise] | None] = FloatNoise
    numbers: ClassVar[tuple[str, ...]] = (
        "n_steps",
        "n_draws",
        "width",
        "n_blocks",
        "patch",
        "n_levels",
    )

    mixture_share: float = 0.3
    sampling_rate: float = 0.02
    n_steps: int = 400
    n_draws: int = 1
    clip_norm: float = 0.25
    learning_rate: float = 4e-3
    width: int = 48
    n_blocks: int = 2
    patch: int = 4
    n_levels: int = 14
    n_frequencies: int = 400
    n_directions: int = 64
    n_components: int = 16
    radius: float = 0.3

    def _open(self, named: str | None) -> str:
        if self.neighbors == "replace one":
            raise ValueError(
                "The cost of DP-SGD over samples is about adding or removing one picture, and "
                "neighbors='replace one' is two such steps, which it does not add up. Leave "
                "neighbors at 'add or remove one', or use GaussianImages."
            )
        return super()._open(named)

    def _shares(self) -> Mapping[str, float]:
        shares = self._mixture()._shares()
        return {MIXTURE + name: self.mixture_share * share for name, share in shares.items()}

    def _mixture(self) -> GaussianImages:
        """Return what releases the mixtures, not fitted yet."""
        own = {name: getattr(self, name) for name in _OF_MIXTURE}
        mixture = GaussianImages(condition=self.condition, **own)
        mixture.codec_, mixture.conditions_ = self.codec_, self.conditions_
        return mixture

    def _ledger(self, payload: Payload, budget: Budget, **account: Any) -> Ledger:
        # What DP-SGD costs is known at one delta, and the sums of the mixtures are counted with it.
        return super()._ledger(payload, budget, single=True, **account)

    def _plan(self, payload: Payload, ledger: Ledger, delta: float) -> BudgetPlan:
        _checks.open_unit("mixture_share", self.mixture_share)
        plan = super()._plan(payload, ledger, delta)
        mechanism = SubsampledGaussian.within(
            ledger.budget,
            sampling_rate=self.sampling_rate,
            n_steps=self.n_steps,
            clip_norm=self.clip_norm,
            beside=self.mixture_share * ledger.budget.mu_squared,
        )
        return JointPlan(ledger=ledger, shares=plan.shares, steps=mechanism, purpose=STEPS)

    def _restate(self, claim: Guarantee) -> Guarantee:
        return replace(super()._restate(claim), accounting=self._accounting)

    def _foresee(self, known: EncodedImages) -> None:
        if known.per_unit > 1:
            raise ValueError(
                f"per_unit={known.per_unit} pictures of one unit enter the samples of DP-SGD each "
                f"by itself, and the cost of several does not follow from that of one. Use "
                f"per_unit=1, or GaussianImages."
            )
        _checks.positive("clip_norm", self.clip_norm)
        _checks.positive("learning_rate", self.learning_rate)
        self._mixture()._foresee(known)
        super()._foresee(known)

    def _memory(self, data: EncodedImages) -> tuple[str, float, str]:
        what, needed, lower = self._mixture()._memory(data)
        network = self._network()
        places = network.grid[0] * network.grid[1]
        # What layers read, put out and get back: a block reads nine patches at once.
        of_draws = 4.0 * max(TOGETHER, self.n_draws) * places * 25.0 * self.n_blocks * self.width
        return (
            f"{what}, and gradients of {network.n_weights:,} numbers",
            needed + of_draws + 12.0 * TOGETHER * network.n_weights,
            f"width, n_draws, {lower}",
        )

    def _network(self) -> PatchNetwork:
        return PatchNetwork(
            shape=self.codec_.size,
            n_heads=self.conditions_.n,
            width=self.width,
            n_blocks=self.n_blocks,
            patch=self.patch,
        )

    def _denoiser(self) -> Denoiser:
        known = self._known_counts()
        expectation = MixtureExpectation.of_arrays(self.mixture_._arrays(), known / known.sum())
        return Denoiser(network=self._network(), known=expectation, n_draws=self.n_draws)

    def _learn(
        self, data: EncodedImages, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        assert isinstance(plan, JointPlan)
        self.mixture_ = self._mixture()
        self.mixture_._learn(data, plan.part(MIXTURE), rng, progress)
        self.counts_, self.counts_sigma_ = self.mixture_.counts_, self.mixture_.counts_sigma_
        mechanism, noise = plan.steps, plan.ledger.noise
        self._accounting = mechanism.accounting
        expected = mechanism.sampling_rate * max(1.0, float(self.counts_.sum()))
        self.snr_ = self._snr(mechanism, expected)
        keys, pictures = record_keys(noise, len(data)), data.pixels.reshape(len(data), -1)
        with computing(self.device):
            denoiser = self._denoiser()
            network = denoiser.network
            adam = NoisyAdam(
                weights=network.start(rng), rate=self.learning_rate, n_steps=self.n_steps
            )
            batches = poisson_batches(noise, mechanism, len(data))
            for step, (rows, drawn) in enumerate(
                zip(batches, plan.noise(network.n_weights), strict=True)
            ):
                total = denoiser.clipped_sum(
                    adam.weights,
                    pictures[rows],
                    data.condition[rows],
                    keys[rows],
                    step=step,
                    clip_norm=self.clip_norm,
                )
                adam.follow((total + drawn) / expected)
                progress("steps", step + 1, self.n_steps)
        self.weights_ = adam.mean.astype(np.float32)

    def _snr(self, mechanism: SubsampledGaussian, expected: float) -> SignalToNoise:
        """Return that of the mixtures, or of the steps where it is smaller."""
        n_weights = self._network().n_weights
        of_steps = SignalToNoise(
            value=self.n_steps * (expected / mechanism.noise_multiplier) ** 2 / n_weights,
            formula="steps times the squared pictures of one over the noise multiplier, over the "
            "numbers of the denoiser",
        )
        return min(self.mixture_.snr_, of_steps, key=lambda one: one.value)

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> FloatPixels:
        out = np.empty((len(conditions), *self.codec_.size), dtype=np.float32)
        levels = np.geomspace(*LEVELS, self.n_levels)
        with computing(self.device), torch.no_grad():
            denoiser = self._denoiser()
            layers = denoiser.network.layers(self.weights_)
            for rows in chunks(len(conditions), _DRAWN):
                heads = conditions[rows]
                clean = self.mixture_._draw(heads, rng).reshape(len(heads), -1)
                drawn = clean + LEVELS[0] * rng.standard_normal(clean.shape)
                found = solve(denoiser, layers, floats(drawn), torch.as_tensor(heads), levels, rng)
                out[rows] = array(found).reshape(-1, *self.codec_.size)
        return out

    def _arrays(self) -> dict[str, Array]:
        of_mixture = self.mixture_._arrays()
        return {"denoiser": self.weights_} | {MIXTURE + n: a for n, a in of_mixture.items()}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self.weights_ = arrays["denoiser"]
        if self.weights_.shape != (self._network().n_weights,):
            raise ValueError("the denoiser does not have the numbers that its settings say.")
        self.mixture_ = self._mixture()
        self.mixture_._restore(
            {n.removeprefix(MIXTURE): a for n, a in arrays.items() if n.startswith(MIXTURE)}
        )


def solve(
    denoiser: Denoiser,
    layers: Sequence[Any],
    noisy: Any,
    heads: Any,
    levels: FloatArray,
    rng: np.random.Generator,
) -> Any:
    """Take noise off from the first level to the last, and return what is expected at the last.

    Two-step solver of the stochastic equation in the logarithm of the level (SDE-DPM-Solver++(2M),
    Lu et al. 2022): what is expected is taken to go on as it changed from the level before, and
    fresh noise corrects what went wrong at earlier levels.
    """
    before = None
    for level, following in pairwise(levels):
        sigma = torch.full((len(noisy),), float(level))
        expected = denoiser.denoise(layers, noisy, sigma, heads)
        ahead = expected if before is None else 1.5 * expected - 0.5 * before
        kept = float(following / level) ** 2
        fresh = float(following) * (1.0 - kept) ** 0.5 * rng.standard_normal(noisy.shape)
        noisy, before = kept * noisy + (1.0 - kept) * ahead + floats(fresh), expected
    return denoiser.denoise(layers, noisy, torch.full((len(noisy),), float(levels[-1])), heads)
