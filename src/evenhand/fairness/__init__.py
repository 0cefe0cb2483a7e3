"""Whether an answer may be given, and how far apart groups are treated."""

from evenhand.fairness.gate import DemographicParityGate, Outcome
from evenhand.fairness.groups import GroupCodes, encode_groups
from evenhand.fairness.notions import DemographicParity, exact_gap, parity_gaps
from evenhand.fairness.tally import JointTally, Tally

__all__ = [
    "DemographicParity",
    "DemographicParityGate",
    "GroupCodes",
    "JointTally",
    "Outcome",
    "Tally",
    "encode_groups",
    "exact_gap",
    "parity_gaps",
]
