"""What a release of private data costs."""

from evenhand.privacy.audit import audit_epsilon_lower_bound, audit_mu_lower_bound
from evenhand.privacy.budget import Budget
from evenhand.privacy.gaussian import epsilon_from_mu, mu_from_epsilon, sigma_for
from evenhand.privacy.guarantee import Guarantee
from evenhand.privacy.histogram import NoisyHistogram
from evenhand.privacy.ledger import BudgetExceeded, Ledger
from evenhand.privacy.ledger_database import DatabaseStore
from evenhand.privacy.ledger_store import MemoryStore, OtherAccount, StoreUnavailable
from evenhand.privacy.noise import DiscreteNoise, FloatNoise, InversionNoise, NoPrivacy, SeededNoise
from evenhand.privacy.noisy_max import ConfidentGNMax, GNMax, LNMax, NoisyThreshold
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.privacy.randomized_response import RandomizedResponse
from evenhand.privacy.relation import attribute_of
from evenhand.privacy.selection import NegativeBinomialRepetitions
from evenhand.privacy.subsampled import SubsampledGaussian
from evenhand.privacy.table import LaplaceTable

__all__ = [
    "Budget",
    "BudgetExceeded",
    "ConfidentGNMax",
    "DatabaseStore",
    "DiscreteNoise",
    "FloatNoise",
    "GNMax",
    "Guarantee",
    "InversionNoise",
    "LNMax",
    "LaplaceTable",
    "Ledger",
    "MemoryStore",
    "NegativeBinomialRepetitions",
    "NoPrivacy",
    "NoisyHistogram",
    "NoisySum",
    "NoisyThreshold",
    "OtherAccount",
    "RandomizedResponse",
    "SeededNoise",
    "StoreUnavailable",
    "SubsampledGaussian",
    "attribute_of",
    "audit_epsilon_lower_bound",
    "audit_mu_lower_bound",
    "epsilon_from_mu",
    "mu_from_epsilon",
    "sigma_for",
]
