"""Synthetic tables that are differentially private and balanced between groups."""

from evenhand.generators.aggregators import (
    Aggregator,
    BinaryVotes,
    FeatureSums,
    GradientSum,
    TableCounts,
    TableDistances,
)
from evenhand.generators.base import Encoded, Synthesizer
from evenhand.generators.codec import Conditions, TableCodec
from evenhand.generators.loading import METHODS, load_synthesizer
from evenhand.generators.marginal import MarginalSynthesizer
from evenhand.generators.plan import (
    LEAST_SNR,
    Purse,
    Released,
    SignalToNoise,
    noisy_sum,
    snr_of_counts,
    snr_of_gradients,
)
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.generators.saved import GeneratorDamaged

__all__ = [
    "LEAST_SNR",
    "METHODS",
    "Aggregator",
    "BinaryVotes",
    "Conditions",
    "Encoded",
    "FeatureSums",
    "GeneratorDamaged",
    "GradientSum",
    "GroupBalancedSampler",
    "MarginalSynthesizer",
    "Purse",
    "Released",
    "SignalToNoise",
    "Synthesizer",
    "TableCodec",
    "TableCounts",
    "TableDistances",
    "load_synthesizer",
    "noisy_sum",
    "snr_of_counts",
    "snr_of_gradients",
]
