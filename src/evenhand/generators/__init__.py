"""Synthetic tables that are differentially private and balanced between groups."""

from evenhand.generators.aggregators import (
    Aggregator,
    ClippedSums,
    FeatureSums,
    OuterSums,
    TableCounts,
    TableDistances,
)
from evenhand.generators.balance import Balance, balance_of
from evenhand.generators.base import Encoded, Synthesizer
from evenhand.generators.codec import Conditions, TableCodec
from evenhand.generators.conditional import NotedWarning
from evenhand.generators.dp_wgan import DPWGANSynthesizer
from evenhand.generators.evaluate import Evaluation, evaluate
from evenhand.generators.fidelity import Fidelity, fidelity
from evenhand.generators.loading import METHODS, load_synthesizer
from evenhand.generators.marginal import MarginalSynthesizer
from evenhand.generators.mean_embedding import MeanEmbeddingSynthesizer
from evenhand.generators.nonprivate import NonPrivateSynthesizer, ReweightedSynthesizer
from evenhand.generators.pate_gan import PATEGANSynthesizer
from evenhand.generators.plan import (
    LEAST_SNR,
    Purse,
    Released,
    SignalToNoise,
    noisy_sum,
    snr_of_counts,
    snr_of_gradients,
)
from evenhand.generators.rates import even_rates
from evenhand.generators.reference import GroupsFromReference, groups_from_reference
from evenhand.generators.ron_gauss import FFPDGSynthesizer, RONGaussSynthesizer
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.generators.saved import GeneratorDamaged
from evenhand.generators.teacher_sums import (
    BinaryVotes,
    GradientSum,
    ProjectedHistogram,
    SeveralTeachers,
    TopKSigns,
)
from evenhand.generators.utility import MODELS, ModelUtility, utility

__all__ = [
    "LEAST_SNR",
    "METHODS",
    "MODELS",
    "Aggregator",
    "Balance",
    "BinaryVotes",
    "ClippedSums",
    "Conditions",
    "DPWGANSynthesizer",
    "Encoded",
    "Evaluation",
    "FFPDGSynthesizer",
    "FeatureSums",
    "Fidelity",
    "GeneratorDamaged",
    "GradientSum",
    "GroupBalancedSampler",
    "GroupsFromReference",
    "MarginalSynthesizer",
    "MeanEmbeddingSynthesizer",
    "ModelUtility",
    "NonPrivateSynthesizer",
    "NotedWarning",
    "OuterSums",
    "PATEGANSynthesizer",
    "ProjectedHistogram",
    "Purse",
    "RONGaussSynthesizer",
    "Released",
    "ReweightedSynthesizer",
    "SeveralTeachers",
    "SignalToNoise",
    "Synthesizer",
    "TableCodec",
    "TableCounts",
    "TableDistances",
    "TopKSigns",
    "balance_of",
    "evaluate",
    "even_rates",
    "fidelity",
    "groups_from_reference",
    "load_synthesizer",
    "noisy_sum",
    "snr_of_counts",
    "snr_of_gradients",
    "utility",
]
