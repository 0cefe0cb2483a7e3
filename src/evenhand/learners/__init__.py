"""Models behind one small protocol: fit one on each of many partitions, let all predict."""

from evenhand.learners.dpsgd import DPSGD
from evenhand.learners.learner import Learner

__all__ = ["DPSGD", "Learner"]
