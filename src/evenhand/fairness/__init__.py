"""Whether an answer may be given, and how far apart groups are treated."""

from evenhand._probabilities import decided
from evenhand.fairness.bounds import (
    alpha_from_eta,
    attribute_certificate,
    noisy_certificate,
    vote_rates,
)
from evenhand.fairness.calibration import CalibratedJoint, calibrated_rates
from evenhand.fairness.functions import FunctionParity, violations, worst_violation
from evenhand.fairness.gate import (
    Decisions,
    Delivery,
    DemographicParityGate,
    Outcome,
    RejectOption,
    StateFile,
    StateOfAnotherModel,
    Verdict,
    admitted,
)
from evenhand.fairness.grouping import Grouping, refuse_many_values
from evenhand.fairness.groups import GroupCodes, encode_groups, missing_groups
from evenhand.fairness.intervals import Estimate, clopper_pearson
from evenhand.fairness.kinds import FairnessKind
from evenhand.fairness.metrics import error_rate, gap_of, group_error_rates, selection_rates
from evenhand.fairness.noisy_groups import SURE, AnsweredGroups, share_error, unbiased_sums
from evenhand.fairness.notion import Notion, RateNotion
from evenhand.fairness.notions import (
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FalsePositiveParity,
    exact_gap,
    parity_gaps,
)
from evenhand.fairness.preprocessor import cap_majority, filter_in_turn, k_gamma
from evenhand.fairness.rates import Rates
from evenhand.fairness.report import FairnessReport, fairness_report
from evenhand.fairness.score_parity import (
    GeneralizedDemographicParity,
    generalized_demographic_parity,
    score_distance,
)
from evenhand.fairness.tally import JointTally, Tally
from evenhand.fairness.trace import Coverage, coverage_table, gap_trace
from evenhand.fairness.yardstick import Yardstick

__all__ = [
    "SURE",
    "AnsweredGroups",
    "CalibratedJoint",
    "Coverage",
    "Decisions",
    "Delivery",
    "DemographicParity",
    "DemographicParityGate",
    "EqualizedOdds",
    "ErrorParity",
    "Estimate",
    "FairnessKind",
    "FairnessReport",
    "FalsePositiveParity",
    "FunctionParity",
    "GeneralizedDemographicParity",
    "GroupCodes",
    "Grouping",
    "JointTally",
    "Notion",
    "Outcome",
    "RateNotion",
    "Rates",
    "RejectOption",
    "StateFile",
    "StateOfAnotherModel",
    "Tally",
    "Verdict",
    "Yardstick",
    "admitted",
    "alpha_from_eta",
    "attribute_certificate",
    "calibrated_rates",
    "cap_majority",
    "clopper_pearson",
    "coverage_table",
    "decided",
    "encode_groups",
    "error_rate",
    "exact_gap",
    "fairness_report",
    "filter_in_turn",
    "gap_of",
    "gap_trace",
    "generalized_demographic_parity",
    "group_error_rates",
    "k_gamma",
    "missing_groups",
    "noisy_certificate",
    "parity_gaps",
    "refuse_many_values",
    "score_distance",
    "selection_rates",
    "share_error",
    "unbiased_sums",
    "violations",
    "vote_rates",
    "worst_violation",
]
