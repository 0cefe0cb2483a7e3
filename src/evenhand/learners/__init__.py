"""Models behind one small protocol: fit one on each of many partitions, let all predict."""

from evenhand.learners.dpsgd import DPSGD, DPSGDModel, GroupPull
from evenhand.learners.dual import Differences, Multipliers, RowFunction
from evenhand.learners.fair_linear import StackedFairLogistic
from evenhand.learners.fermi import FERMI, FERMIModel
from evenhand.learners.frame import EvenFrame
from evenhand.learners.guide import Guide
from evenhand.learners.linear import LogisticStack, StackedLogistic
from evenhand.learners.mixture import Mixture
from evenhand.learners.parity import StackedParityLogistic
from evenhand.learners.pfld import PFLD, TABLE_SENSITIVITY, PFLDModel
from evenhand.learners.stack import Progress, StackedLearner, StackedModel

__all__ = [
    "DPSGD",
    "FERMI",
    "PFLD",
    "TABLE_SENSITIVITY",
    "DPSGDModel",
    "Differences",
    "EvenFrame",
    "FERMIModel",
    "GroupPull",
    "Guide",
    "LogisticStack",
    "Mixture",
    "Multipliers",
    "PFLDModel",
    "Progress",
    "RowFunction",
    "StackedFairLogistic",
    "StackedLearner",
    "StackedLogistic",
    "StackedModel",
    "StackedParityLogistic",
]
