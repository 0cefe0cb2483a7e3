"""What a release of private data costs."""

from evenhand.privacy.audit import audit_epsilon_lower_bound, audit_mu_lower_bound
from evenhand.privacy.budget import Budget
from evenhand.privacy.gaussian import (
    delta_from_mu,
    epsilon_from_mu,
    mu_from_epsilon,
    n_affordable,
    sigma_for,
)
from evenhand.privacy.guarantee import Guarantee, delta_warning, no_guarantee
from evenhand.privacy.histogram import NoisyHistogram
from evenhand.privacy.integer_noise import discrete_gaussian_mu, discrete_laplace_mu, laplace_mu
from evenhand.privacy.ledger import BudgetExceeded, Decider, Grant, Ledger, Mechanism
from evenhand.privacy.ledger_database import DatabaseStore
from evenhand.privacy.ledger_store import Entry, MemoryStore, OtherAccount, Store, StoreUnavailable
from evenhand.privacy.noise import (
    DiscreteNoise,
    FloatNoise,
    InversionNoise,
    Noise,
    NoPrivacy,
    SeededNoise,
)
from evenhand.privacy.noisy_max import ConfidentGNMax, GNMax, LNMax, NoisyThreshold
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.privacy.one_bit import one_bit_rdp
from evenhand.privacy.randomized_response import RESPONSE_ACCOUNTING, RandomizedResponse
from evenhand.privacy.relation import (
    GROUP_AND_CLASS_LABEL,
    GROUP_LABEL,
    attribute_of,
    holder_of,
    is_attribute,
)
from evenhand.privacy.renyi import NEIGHBORS, ORDERS, RenyiCurve
from evenhand.privacy.saved_ledger import SavedLedger
from evenhand.privacy.selection import (
    NegativeBinomialRepetitions,
    PoissonRepetitions,
    Repetitions,
    gaussian_curve,
)
from evenhand.privacy.subsampled import (
    SUBSAMPLED_ACCOUNTING,
    SubsampledGaussian,
    poisson_batches,
    secret_coins,
)
from evenhand.privacy.table import LAPLACE_ACCOUNTING, LaplaceTable
from evenhand.privacy.two_stage import two_stage_rdp

__all__ = [
    "GROUP_AND_CLASS_LABEL",
    "GROUP_LABEL",
    "LAPLACE_ACCOUNTING",
    "NEIGHBORS",
    "ORDERS",
    "RESPONSE_ACCOUNTING",
    "SUBSAMPLED_ACCOUNTING",
    "Budget",
    "BudgetExceeded",
    "ConfidentGNMax",
    "DatabaseStore",
    "Decider",
    "DiscreteNoise",
    "Entry",
    "FloatNoise",
    "GNMax",
    "Grant",
    "Guarantee",
    "InversionNoise",
    "LNMax",
    "LaplaceTable",
    "Ledger",
    "Mechanism",
    "MemoryStore",
    "NegativeBinomialRepetitions",
    "NoPrivacy",
    "Noise",
    "NoisyHistogram",
    "NoisySum",
    "NoisyThreshold",
    "OtherAccount",
    "PoissonRepetitions",
    "RandomizedResponse",
    "RenyiCurve",
    "Repetitions",
    "SavedLedger",
    "SeededNoise",
    "Store",
    "StoreUnavailable",
    "SubsampledGaussian",
    "attribute_of",
    "audit_epsilon_lower_bound",
    "audit_mu_lower_bound",
    "delta_from_mu",
    "delta_warning",
    "discrete_gaussian_mu",
    "discrete_laplace_mu",
    "epsilon_from_mu",
    "gaussian_curve",
    "holder_of",
    "is_attribute",
    "laplace_mu",
    "mu_from_epsilon",
    "n_affordable",
    "no_guarantee",
    "one_bit_rdp",
    "poisson_batches",
    "secret_coins",
    "sigma_for",
    "two_stage_rdp",
]
