"""What a release of private data costs."""

from evenhand.privacy.audit import audit_epsilon_lower_bound
from evenhand.privacy.budget import Budget
from evenhand.privacy.guarantee import Guarantee
from evenhand.privacy.histogram import NoisyHistogram
from evenhand.privacy.ledger import BudgetExceeded, Ledger
from evenhand.privacy.ledger_database import DatabaseStore
from evenhand.privacy.noise import DiscreteNoise, FloatNoise, SeededNoise
from evenhand.privacy.noisy_max import ConfidentGNMax, GNMax, LNMax
from evenhand.privacy.randomized_response import RandomizedResponse
from evenhand.privacy.relation import attribute_of
from evenhand.privacy.subsampled import SubsampledGaussian

__all__ = [
    "Budget",
    "BudgetExceeded",
    "ConfidentGNMax",
    "DatabaseStore",
    "DiscreteNoise",
    "FloatNoise",
    "GNMax",
    "Guarantee",
    "LNMax",
    "Ledger",
    "NoisyHistogram",
    "RandomizedResponse",
    "SeededNoise",
    "SubsampledGaussian",
    "attribute_of",
    "audit_epsilon_lower_bound",
]
