"""Whether an answer may be given, and how far apart groups are treated."""

from evenhand._probabilities import decided
from evenhand.fairness.bounds import (
    alpha_from_eta,
    attribute_certificate,
    noisy_certificate,
    vote_rates,
)
from evenhand.fairness.calibration import CalibratedJoint, calibrated_rates
from evenhand.fairness.functions import (
    FUNCTIONS,
    DemographicParityFunction,
    EqualizedOddsFunction,
    ErrorParityFunction,
    FairnessFunction,
    MomentsFunction,
    OwnFunction,
    function_named,
    reads_labels,
    score_distance,
    violations,
    worst_violation,
)
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
from evenhand.fairness.metrics import (
    demographic_parity,
    equalized_odds,
    error_parity,
    error_rate,
    false_positive_parity,
    gap_of,
    group_error_rates,
    selection_rates,
)
from evenhand.fairness.noisy_groups import SURE, AnsweredGroups, share_error, unbiased_sums
from evenhand.fairness.notions import (
    NOTIONS,
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FalsePositiveParity,
    LabelledNotion,
    Notion,
    exact_gap,
    notion_named,
    parity_gaps,
    require_notion,
)
from evenhand.fairness.preprocessor import cap_majority, filter_in_turn, k_gamma
from evenhand.fairness.rates import Rates
from evenhand.fairness.report import FairnessReport, fairness_report
from evenhand.fairness.score_parity import SCORE_NOTION, generalized_demographic_parity
from evenhand.fairness.tally import JointTally, Tally
from evenhand.fairness.trace import Coverage, coverage_table, gap_trace
from evenhand.fairness.yardstick import Yardstick

__all__ = [
    "FUNCTIONS",
    "NOTIONS",
    "SCORE_NOTION",
    "SURE",
    "AnsweredGroups",
    "CalibratedJoint",
    "Coverage",
    "Decisions",
    "Delivery",
    "DemographicParity",
    "DemographicParityFunction",
    "DemographicParityGate",
    "EqualizedOdds",
    "EqualizedOddsFunction",
    "ErrorParity",
    "ErrorParityFunction",
    "Estimate",
    "FairnessFunction",
    "FairnessKind",
    "FairnessReport",
    "FalsePositiveParity",
    "GroupCodes",
    "Grouping",
    "JointTally",
    "LabelledNotion",
    "MomentsFunction",
    "Notion",
    "Outcome",
    "OwnFunction",
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
    "demographic_parity",
    "encode_groups",
    "equalized_odds",
    "error_parity",
    "error_rate",
    "exact_gap",
    "fairness_report",
    "false_positive_parity",
    "filter_in_turn",
    "function_named",
    "gap_of",
    "gap_trace",
    "generalized_demographic_parity",
    "group_error_rates",
    "k_gamma",
    "missing_groups",
    "noisy_certificate",
    "notion_named",
    "parity_gaps",
    "reads_labels",
    "refuse_many_values",
    "require_notion",
    "score_distance",
    "selection_rates",
    "share_error",
    "unbiased_sums",
    "violations",
    "vote_rates",
    "worst_violation",
]
