"""The gate: which answers may be given so that the given set stays within a margin."""

from evenhand.fairness.gate.demographic_parity import DemographicParityGate, Outcome
from evenhand.fairness.gate.reject_option import (
    Decisions,
    Delivery,
    RejectOption,
    StateOfAnotherModel,
    Verdict,
)
from evenhand.fairness.gate.runner import admitted
from evenhand.fairness.gate.state_file import StateFile

__all__ = [
    "Decisions",
    "Delivery",
    "DemographicParityGate",
    "Outcome",
    "RejectOption",
    "StateFile",
    "StateOfAnotherModel",
    "Verdict",
    "admitted",
]
