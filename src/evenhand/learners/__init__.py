"""Models behind one small protocol: fit one on each of many partitions, let all predict."""

from evenhand.learners.dpsgd import DPSGD, DPSGDModel, GroupPull
from evenhand.learners.dual import Differences, Multipliers, RowFunction
from evenhand.learners.fair_linear import StackedFairLogistic
from evenhand.learners.frame import EvenFrame
from evenhand.learners.guide import Guide
from evenhand.learners.linear import LogisticStack, StackedLogistic
from evenhand.learners.mixture import Mixture
from evenhand.learners.parity import StackedParityLogistic
from evenhand.learners.stack import Progress, StackedLearner, StackedModel

__all__ = [
    "DPSGD",
    "DPSGDModel",
    "Differences",
    "EvenFrame",
    "GroupPull",
    "Guide",
    "LogisticStack",
    "Mixture",
    "Multipliers",
    "Progress",
    "RowFunction",
    "StackedFairLogistic",
    "StackedLearner",
    "StackedLogistic",
    "StackedModel",
    "StackedParityLogistic",
]
