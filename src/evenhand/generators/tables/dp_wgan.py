"""DPWGANSynthesizer: one critic that learns from clipped, noisy gradients of all records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand.generators.aggregators import ClippedSums
from evenhand.generators.budget_plan import SignalToNoise
from evenhand.generators.clipping import Clipping
from evenhand.generators.registry import register
from evenhand.generators.tables.adversarial import AdversarialTables, Lesson
from evenhand.generators.tables.adversary import RowGeneratorTraining, one_hot_critic
from evenhand.generators.tables.clipped_critic import ClippedCritic
from evenhand.generators.tables.private_table import KnownOfTable
from evenhand.privacy import FloatNoise
from evenhand.privacy.noise import Noise
from evenhand.typing import FloatArray

GRADIENTS: Final = "gradients of the critic"


@register
@dataclass(eq=False, repr=False, kw_only=True)
class DPWGANSynthesizer(AdversarialTables):
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
    n_steps, batch_size : int
        Steps, and generated rows in each.
    width : int
        Of the critic's hidden layer.
    learning_rate : float
        Of plain steps of the critic.
    largest_weight : float
        Of the critic.
    noise : Noise, optional
        Floating-point noise if not given: every step releases thousands of numbers.
    **others
        See ``AdversarialTables``.

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
    purpose: ClassVar[str] = GRADIENTS
    numbers: ClassVar[tuple[str, ...]] = ("n_steps", "batch_size", "width")
    rates: ClassVar[tuple[str, ...]] = ("learning_rate", "generator_rate", "largest_weight")
    default_noise: ClassVar[type[Noise]] = FloatNoise

    clip: str = "flat"
    clip_norm: float = 1.0
    n_steps: int = 300
    batch_size: int = 256
    width: int = 32
    learning_rate: float = 1.0
    largest_weight: float = 0.5

    def _foresee(self, known: KnownOfTable) -> None:
        super()._foresee(known)
        Clipping.start(self.clip, self.clip_norm, n_groups=1)

    def _opponent(self, lesson: Lesson) -> ClippedCritic:
        n_groups = self.conditions_.n_groups
        clipping = Clipping.start(self.clip, self.clip_norm, n_groups=n_groups)
        return ClippedCritic.start(
            lesson.rows.sizes, width=self.width, clipping=clipping, rng=lesson.rng
        )

    def _play(
        self, opponent: ClippedCritic, training: RowGeneratorTraining, lesson: Lesson
    ) -> None:
        rows, plan, rng, progress = lesson.rows, lesson.plan, lesson.rng, lesson.progress
        critic, n_steps, n_rows = opponent, self.n_steps, self.batch_size
        rate, largest = self.learning_rate, self.largest_weight
        sums = ClippedSums(clip_norm=1.0, per_unit=lesson.data.per_unit)
        step = plan.mechanism(sums, GRADIENTS, n_steps=n_steps)
        shares = self._known_counts() / self._known_counts().sum()
        n = max(1.0, float(self._known_counts().sum()))
        self.snr_ = SignalToNoise(
            value=(n / (step.sigma * sums.unit)) ** 2 / critic.n_values * n_steps,
            formula="records over the noise of a step, squared, times steps over the weights",
        )
        group = self.conditions_.groups()
        of_group: FloatArray = np.zeros(self.conditions_.n_groups)
        np.add.at(of_group, group, self._known_counts())
        real = critic.rows(rows.codes)
        with plan.ledger.reserve({step: n_steps}, purpose=GRADIENTS) as grant:
            noise = grant.draw(step, critic.n_values)
            for at, drawn in enumerate(noise):
                progress("critic and generator", at, n_steps)
                noisy: FloatArray = step.decide(critic.clipped_sum(real, rows.group), drawn)
                noisy = noisy * sums.unit
                given = rng.choice(len(shares), n_rows, p=shares)
                fake = critic.rows(training.rows(given, rng))
                own = critic.clipped_sum(fake, group[given])
                other = own.astype(np.float64) * sums.unit
                up, down = critic.gradient(noisy, n), critic.gradient(other, n_rows)
                for w, real_part, made_part in zip(critic.weights, up, down, strict=True):
                    np.clip(w + rate * (real_part - made_part), -largest, largest, out=w)
                critic.move_bounds(noisy, of_group)
                given = rng.choice(len(shares), n_rows, p=shares)
                training.learn(given, one_hot_critic(critic.weights), rng)
            progress("critic and generator", n_steps, n_steps)
