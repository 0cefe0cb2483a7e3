"""The whole trade-off of privacy, fairness, accuracy and coverage, and a page to choose on."""

from evenhand.frontier.comparison import Comparison, compare
from evenhand.frontier.pareto import REFERENCE, by_setting, front, front_probability, hypervolume
from evenhand.frontier.run import OBJECTIVES, Plain, Run, Setting
from evenhand.frontier.store import RUNS_FILE, RunStore, StoreGone, StoreOfAnotherVersion

__all__ = [
    "OBJECTIVES",
    "REFERENCE",
    "RUNS_FILE",
    "Comparison",
    "Plain",
    "Run",
    "RunStore",
    "Setting",
    "StoreGone",
    "StoreOfAnotherVersion",
    "by_setting",
    "compare",
    "front",
    "front_probability",
    "hypervolume",
]
