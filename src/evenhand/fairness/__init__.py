"""Whether an answer may be given, and how far apart groups are treated."""

from evenhand.fairness.bounds import noisy_certificate
from evenhand.fairness.functions import FunctionParity
from evenhand.fairness.gate import DemographicParityGate, RejectOption
from evenhand.fairness.grouping import Grouping
from evenhand.fairness.kinds import FairnessKind
from evenhand.fairness.metrics import gap_of
from evenhand.fairness.notion import Notion, RateNotion
from evenhand.fairness.notions import (
    DemographicParity,
    EqualizedOdds,
    ErrorParity,
    FalsePositiveParity,
)
from evenhand.fairness.report import FairnessReport, fairness_report
from evenhand.fairness.score_parity import GeneralizedDemographicParity

__all__ = [
    "DemographicParity",
    "DemographicParityGate",
    "EqualizedOdds",
    "ErrorParity",
    "FairnessKind",
    "FairnessReport",
    "FalsePositiveParity",
    "FunctionParity",
    "GeneralizedDemographicParity",
    "Grouping",
    "Notion",
    "RateNotion",
    "RejectOption",
    "fairness_report",
    "gap_of",
    "noisy_certificate",
]
