"""The gate: which answers may be given so that the given set stays within a margin."""

from evenhand.fairness.gate import calibrated as calibrated  # registers its gate
from evenhand.fairness.gate.demographic_parity import DemographicParityGate
from evenhand.fairness.gate.reject_option import RejectOption
from evenhand.fairness.gate.state_file import StateFile

__all__ = [
    "DemographicParityGate",
    "RejectOption",
    "StateFile",
]
