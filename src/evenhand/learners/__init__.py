"""Models behind one small protocol: fit one on each of many partitions, let all predict."""

from evenhand.learners.dpsgd import DPSGD, DPSGDModel, GroupPull
from evenhand.learners.fair_linear import StackedFairLogistic
from evenhand.learners.learner import FittedModels, Learner, Progress
from evenhand.learners.linear import LogisticStack, StackedLogistic
from evenhand.learners.mixture import Mixture
from evenhand.learners.multipliers import GroupDifferences, Multipliers, RowFunction
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.learners.parity import StackedParityLogistic
from evenhand.learners.preconditioner import Whitening

__all__ = [
    "DPSGD",
    "DPSGDModel",
    "FittedModels",
    "GroupDifferences",
    "GroupPull",
    "Learner",
    "LogisticStack",
    "Mixture",
    "Multipliers",
    "Progress",
    "Regularizer",
    "RowFunction",
    "StackedFairLogistic",
    "StackedLogistic",
    "StackedParityLogistic",
    "Whitening",
]
