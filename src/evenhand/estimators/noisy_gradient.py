"""What the classifiers trained by noisy gradients share: reading, a ledger each, the claim."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand import _checks
from evenhand._torch import is_module
from evenhand.estimators.classifier import PrivateClassifier
from evenhand.estimators.encoded_inputs import read_encoded
from evenhand.estimators.inputs import FitArguments, FitInputs
from evenhand.estimators.ledgers import own_noise
from evenhand.fairness.grouping import published_groups
from evenhand.fairness.groups import GroupCodes
from evenhand.learners.dpsgd import NoisyNetwork
from evenhand.learners.gradients import PerRecordGradients
from evenhand.learners.nets.architectures import architecture_named
from evenhand.privacy import Budget, FloatNoise, Guarantee, Ledger, SubsampledGaussian
from evenhand.privacy.guarantee import delta_warning
from evenhand.privacy.noise import Noise
from evenhand.privacy.subsampled import SUBSAMPLED_ACCOUNTING, poisson_batches, record_words
from evenhand.students.constrained import linear_model
from evenhand.students.module import ModuleClassifier, no_head
from evenhand.students.network import with_layers
from evenhand.typing import Array, FloatArray

N_STEPS: Final = 1500
LINEAR_RATE: Final = 4.0
NETWORK_RATE: Final = 0.5
"""Learning rates where none is given."""


@dataclass(eq=False, repr=False)
class NoisyGradientClassifier(PrivateClassifier):
    """Base of the classifiers trained by noisy sums over Poisson samples; use a subclass."""

    NEIGHBORS = ("add or remove one",)

    _: KW_ONLY
    clip_norm: float = 1.0
    n_steps: int | None = N_STEPS
    batch_size: int = 1024
    n_records: int | None = None
    public_fraction: float | None = None

    def _checked_steps(self, ledger: Ledger | None) -> Budget:
        """Check the arguments that every subclass has, and return the budget."""
        budget = self._checked_budget()
        if self.n_steps is not None:
            _checks.at_least("n_steps", self.n_steps, 1)
        _checks.at_least("batch_size", self.batch_size, 1)
        if self.n_records is not None:
            _checks.at_least("n_records", self.n_records, 1)
        if ledger is not None:
            raise ValueError(
                "ledger= was given, and DP-SGD cannot be charged to a shared account: its cost "
                "is known at one delta only, and adds up with no Gaussian cost. Leave ledger=None "
                "and add the guarantees: model.guarantee_ + other.guarantee_."
            )
        return budget

    def _read(self, given: FitArguments, rng: np.random.Generator) -> tuple[FitInputs, Array]:
        """Check the rows, fit the encoder on what is public, and encode the private rows."""
        read = read_encoded(self, given, rng, coins=self._float_noise())
        self.classes_ = read.data.classes
        self.encoder_ = read.encoder
        return read.data, read.X_encoded

    @staticmethod
    def _private_groups(
        sensitive_features: Any, data: FitInputs, names: tuple[str, ...] | None = None
    ) -> GroupCodes:
        """Encode the groups of the rows that were given, and keep those of the private ones."""
        known = published_groups(sensitive_features, names=names)
        _checks.same_length(X=range(data.n_private + data.set_aside), sensitive_features=known)
        return GroupCodes(codes=known.codes[data.private_rows], names=known.names)

    def _n_public(self, data: FitInputs) -> int:
        """Return the number of records that everybody may know."""
        return data.n_private if self.n_records is None else self.n_records

    def _sampled(
        self, budget: Budget, data: FitInputs, n_steps: int | None = None, beside: float = 0.0
    ) -> SubsampledGaussian:
        """Return the mechanism of all steps that spends ``budget``; ``n_steps`` of them.

        ``beside`` of its ``mu_squared`` is left for Gaussian releases beside the steps.
        """
        return SubsampledGaussian.within(
            budget,
            sampling_rate=min(1.0, self.batch_size / self._n_public(data)),
            n_steps=n_steps or self.n_steps or N_STEPS,
            clip_norm=self.clip_norm,
            beside=beside,
        )

    def _steps(
        self, mechanism: SubsampledGaussian, data: FitInputs, noise: Noise, given: FitArguments
    ) -> dict[str, Any]:
        """Return what the steps read beside rows and noise."""
        return {
            "n_steps": mechanism.n_steps,
            "batches": poisson_batches(noise, mechanism, data.n_private),
            "batch_size": mechanism.sampling_rate * self._n_public(data),
            "progress": given.stage("steps"),
        }

    def _float_noise(self) -> Noise:
        return own_noise(self.noise, FloatNoise)

    def _claim(
        self,
        budget: Budget,
        data: FitInputs,
        noise: Noise,
        *,
        public: tuple[str, ...] = (),
        not_covered: tuple[str, ...] = (),
        accounting: str = SUBSAMPLED_ACCOUNTING,
    ) -> Guarantee:
        """Return what the noisy steps promise; ``public`` says what else they took as known."""
        known = data.known(*public)
        if self.n_records is None:
            size = f"the number of private records ({data.n_private}), which sets the sampling rate"
            known = (*known, size)
        warning = delta_warning(budget.delta, self._n_public(data))
        return Guarantee(
            epsilon=budget.epsilon,
            delta=budget.delta,
            unit="record",
            neighbors="add or remove one",
            noise=noise.name,
            accounting=accounting,
            public=known,
            not_covered=data.not_covered(*not_covered),
            warnings=(warning,) if warning else (),
            holds=noise.protects,
            reason="" if noise.protects else "the noise came from a seed and can be removed",
        )


@dataclass(eq=False, repr=False)
class NoisyNetworkClassifier(NoisyGradientClassifier):
    """Base of those whose network is to be chosen: layers in NumPy, or any of PyTorch."""

    _reads_pictures = True

    _: KW_ONLY
    hidden: tuple[int, ...] = ()
    architecture: Any = None
    learning_rate: float | None = None
    device: str = "cpu"

    def _settings(self) -> dict[str, Any]:
        """Return the arguments of the learner that every such classifier has."""
        rate, network = self.learning_rate, self.architecture
        hidden: object = self.hidden
        if isinstance(hidden, int):
            raise ValueError(
                f"hidden must be the widths of the layers, got hidden={hidden!r}. Say "
                f"hidden=({hidden},) for one layer."
            )
        linear = not self.hidden and network is None
        return {
            "hidden": tuple(self.hidden),
            "architecture": architecture_named(network) if isinstance(network, str) else network,
            "device": self.device,
            "clip_norm": self.clip_norm,
            "learning_rate": (LINEAR_RATE if linear else NETWORK_RATE) if rate is None else rate,
        }

    @staticmethod
    def _network(
        learner: NoisyNetwork,
        X_encoded: Array,
        n_classes: int,
        rng: np.random.Generator,
        noise: Noise,
    ) -> PerRecordGradients:
        """Return the network to train; it is refused here, before anything is charged."""
        return learner.network(X_encoded.shape[1:], n_classes, rng.spawn(1)[0], record_words(noise))

    def _starts_from(self) -> tuple[str, ...]:
        """Return what a claim takes as public of the network."""
        return (
            ("the weights that the network started from",) if is_module(self.architecture) else ()
        )

    def _student(self, network: Any, n_classes: int) -> Any:
        """Return a trained network as a classifier of class codes."""
        if isinstance(network, tuple):
            return layered_classifier(network, n_classes)
        return ModuleClassifier.of(self._settings()["architecture"], network, *no_head(n_classes))


def linear_classifier(weights: FloatArray, bias: FloatArray, n_classes: int) -> LogisticRegression:
    """Return trained weights (d, n_scores) as the classifier that computes the same."""
    return linear_model(np.ascontiguousarray(weights.T), bias.copy(), np.arange(n_classes))


def layered_classifier(layers: tuple[tuple[FloatArray, FloatArray], ...], n_classes: int) -> Any:
    """Return trained layers as the scikit-learn classifier that computes the same."""
    if len(layers) == 1:
        return linear_classifier(*layers[0], n_classes)
    return with_layers(layers, np.arange(n_classes))
