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
from evenhand.generators.budget_plan import (
    LEAST_SNR,
    BudgetPlan,
    Released,
    SignalToNoise,
    noisy_sum,
    snr_of_counts,
    snr_of_gradients,
)
from evenhand.generators.conditions import Conditions
from evenhand.generators.loading import METHODS, load_synthesizer
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.generators.saving import GeneratorDamaged
from evenhand.generators.synthesizer import NotedWarning
from evenhand.generators.tables.base import Encoded, Synthesizer
from evenhand.generators.tables.codec import TableCodec
from evenhand.generators.tables.dp_wgan import DPWGANSynthesizer
from evenhand.generators.tables.evaluation import Evaluation, evaluate
from evenhand.generators.tables.even_rates import even_rates
from evenhand.generators.tables.fidelity import Fidelity, fidelity
from evenhand.generators.tables.marginal import MarginalSynthesizer
from evenhand.generators.tables.mean_embedding import MeanEmbeddingSynthesizer
from evenhand.generators.tables.nonprivate import NonPrivateSynthesizer, ReweightedSynthesizer
from evenhand.generators.tables.pate_gan import PATEGANSynthesizer
from evenhand.generators.tables.predicted_groups import GroupsFromReference, groups_from_reference
from evenhand.generators.tables.ron_gauss import FFPDGSynthesizer, RONGaussSynthesizer
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
    "BudgetPlan",
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
