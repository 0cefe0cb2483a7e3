"""The whole trade-off of privacy, fairness, accuracy and coverage, and a page to choose on."""

from evenhand.frontier.comparison import Comparison, compare
from evenhand.frontier.grid import Grid
from evenhand.frontier.material import DataSource
from evenhand.frontier.pareto import REFERENCE, by_setting, front, front_probability, hypervolume
from evenhand.frontier.run import OBJECTIVES, Plain, Run, Setting
from evenhand.frontier.store import RUNS_FILE, RunStore, StoreGone, StoreOfAnotherVersion
from evenhand.frontier.sweep import SweepSummary, sweep
from evenhand.frontier.votes_cache import VotesCache, VotesOfOtherData

__all__ = [
    "OBJECTIVES",
    "REFERENCE",
    "RUNS_FILE",
    "Comparison",
    "DataSource",
    "Grid",
    "Plain",
    "Run",
    "RunStore",
    "Setting",
    "StoreGone",
    "StoreOfAnotherVersion",
    "SweepSummary",
    "VotesCache",
    "VotesOfOtherData",
    "by_setting",
    "compare",
    "front",
    "front_probability",
    "hypervolume",
    "sweep",
]
