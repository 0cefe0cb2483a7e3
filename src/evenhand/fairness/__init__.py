"""Whether an answer may be given, and how far apart groups are treated."""

from evenhand.fairness.gate import DemographicParityGate, Outcome
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.fairness.notions import DemographicParity, exact_gap, parity_gaps
from evenhand.fairness.tally import JointTally, Tally
from evenhand.fairness.trace import Coverage, coverage_table, gap_trace

__all__ = [
    "Coverage",
    "DemographicParity",
    "DemographicParityGate",
    "GroupCodes",
    "JointTally",
    "Outcome",
    "Tally",
    "coverage_table",
    "encode_groups",
    "exact_gap",
    "gap_trace",
    "parity_gaps",
]
