"""DPWGANSynthesizer: one critic that learns from clipped, noisy gradients of all records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import require_torch
from evenhand.generators.budget_plan import BudgetPlan, SignalToNoise
from evenhand.generators.clipping import Clipping
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.tables.adversary import RowGeneratorTraining, one_hot_critic
from evenhand.generators.tables.clipped_critic import ClippedCritic, CriticGradients
from evenhand.generators.tables.private_table import EncodedTable
from evenhand.generators.tables.starting_counts import StartingCounts, starting_shares
from evenhand.generators.tables.state_network import StateNetwork, log_shares
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import FloatNoise
from evenhand.privacy.noise import Noise
from evenhand.typing import Array, FloatArray, IntArray

GRADIENTS: Final = "gradients of the critic"


@register
@dataclass(eq=False, repr=False, kw_only=True)
class DPWGANSynthesizer(TableSynthesizer):
    """Draw tables from a network whose critic is trained by DP-SGD.

    1. The critic scores rows, high for real ones (Wasserstein, its weights kept within bounds). At
       each step the gradients of *all* records, each clipped, are added up and released with noise;
       those of generated rows are clipped alike.
    2. The generator moves up the score. Labels and groups of generated rows are drawn by the noisy
       counts: no real label or group reaches it.
    3. A fixed number of steps; noise for all of them is fixed before.

    Parameters
    ----------
    clip : {"flat", "group", "global-adapt"}
        See ``Clipping``; the latter two treat groups with longer gradients more alike.
    clip_norm : float
        Largest norm of a record's gradient, at first.
    start : float
        As for ``PATEGANSynthesizer``.
    n_steps, batch_size : int
        Steps, and generated rows in each.
    width : int
        Of the critic's hidden layer.
    generator_hidden : tuple of int
    learning_rate, generator_rate : float
        Of plain steps of the critic, and of Adam for the generator.
    largest_weight : float
        Of the critic.
    noise : Noise, optional
        Floating-point noise if not given: every step releases thousands of numbers.
    neighbors, n_bins, random_state
        See ``TableSynthesizer``.

    Privacy
    -------
    Neighbors : add or remove one record or unit; or replace one record.
    Sensitivity : 1 per step (2 for "replace one"), in clip norms; r times that for r records of a
        unit.
    Cost : ``n_steps`` Gaussian releases, reserved before the first. Without samples there is
        nothing to amplify, and nothing to take on trust.

    References
    ----------
    Xie et al. 2018 (DP-GAN). Abadi et al. 2016 (DP-SGD).
    """

    method: ClassVar[str] = "dp-wgan"
    words: ClassVar[str] = "noisy gradients of a critic"
    needs: ClassVar[tuple[str, ...]] = ("torch",)
    default_noise: ClassVar[type[Noise]] = FloatNoise

    clip: str = "flat"
    clip_norm: float = 1.0
    start: float = 0.25
    n_steps: int = 300
    batch_size: int = 256
    width: int = 32
    generator_hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 1.0
    generator_rate: float = 2e-3
    largest_weight: float = 0.5

    def _shares(self) -> Mapping[str, float]:
        return starting_shares(self.start, GRADIENTS)

    def _foresee(self, n_states: int) -> None:
        require_torch(type(self).__name__)
        Clipping.start(self.clip, self.clip_norm, n_groups=1)
        for name in ("n_steps", "batch_size", "width"):
            _checks.at_least(name, getattr(self, name), 1)
        for width in self.generator_hidden:
            _checks.at_least("generator_hidden", width, 1)
        for name in ("learning_rate", "generator_rate", "largest_weight"):
            _checks.positive(name, getattr(self, name))

    def _learn(
        self, data: EncodedTable, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        known = self.conditions_
        released = StartingCounts.release(data, known.n, plan)
        self.counts_, self.counts_sigma_ = released.cells, released.sigma
        n_states = sum(data.sizes)
        base = log_shares(released.tables) if released.tables else np.zeros((known.n, n_states))
        critic = ClippedCritic.start(
            (*data.sizes, known.n),
            width=self.width,
            clipping=Clipping.start(self.clip, self.clip_norm, n_groups=known.n_groups),
            rng=rng,
        )
        start = StateNetwork.start(
            data.sizes, base, n_noise=max(1, n_states // 4), hidden=self.generator_hidden, rng=rng
        )
        made = self._play(data, critic, start, plan, rng, progress)
        self.network_ = made.towards(np.exp(base), rng) if released.tables else made

    def _play(
        self,
        data: EncodedTable,
        critic: ClippedCritic,
        start: StateNetwork,
        plan: BudgetPlan,
        rng: np.random.Generator,
        progress: Progress,
    ) -> StateNetwork:
        """Train critic and generator in turn, all noise reserved before."""
        n_steps, n_rows, known = self.n_steps, self.batch_size, self.conditions_
        rate, largest = self.learning_rate, self.largest_weight
        sums = CriticGradients(n_values=critic.n_values, per_unit=data.per_unit)
        step = plan.mechanism(sums, GRADIENTS, n_steps=n_steps)
        shares = self._known_counts() / self._known_counts().sum()
        n = max(1.0, float(self._known_counts().sum()))
        self.snr_ = SignalToNoise(
            value=(n / (step.sigma * sums.unit)) ** 2 / critic.n_values * n_steps,
            formula="records over the noise of a step, squared, times steps over the weights",
        )
        of_group: FloatArray = np.zeros(known.n_groups)
        np.add.at(of_group, known.groups(), self._known_counts())
        real = critic.rows(np.column_stack([data.codes, data.condition]))
        real_group = known.groups()[data.condition]
        training = RowGeneratorTraining(start, learning_rate=self.generator_rate)
        with plan.ledger.reserve({step: n_steps}, purpose=GRADIENTS) as grant:
            noise = grant.draw(step, critic.n_values)
            for at, drawn in enumerate(noise):
                progress("critic and generator", at, n_steps)
                noisy: FloatArray = step.decide(critic.clipped_sum(real, real_group), drawn)
                noisy = noisy * sums.unit
                given = rng.choice(known.n, n_rows, p=shares)
                made = np.column_stack([training.network().draw(given, rng), given])
                own = critic.clipped_sum(critic.rows(made), known.groups()[given])
                other = own.astype(np.float64) * sums.unit
                up, down = critic.gradient(noisy, n), critic.gradient(other, n_rows)
                for w, real_part, made_part in zip(critic.weights, up, down, strict=True):
                    np.clip(w + rate * (real_part - made_part), -largest, largest, out=w)
                critic.move_bounds(noisy, of_group)
                given = rng.choice(known.n, n_rows, p=shares)
                training.learn(given, one_hot_critic(critic.weights), rng)
            progress("critic and generator", n_steps, n_steps)
        return training.network()

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        return self.network_.draw(conditions, rng)

    def _arrays(self) -> dict[str, Array]:
        return self.network_.arrays()

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        self.network_ = StateNetwork.from_arrays(arrays)
