"""Models behind one small protocol: fit one on each of many partitions, let all predict."""

from evenhand.learners.dpsgd import DPSGD, GroupPull
from evenhand.learners.learner import FittedModels, Learner

__all__ = ["DPSGD", "FittedModels", "GroupPull", "Learner"]
