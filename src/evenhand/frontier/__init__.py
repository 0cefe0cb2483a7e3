"""The whole trade-off of privacy, fairness, accuracy and coverage, and a page to choose on."""

from evenhand.frontier.cluster import ClusterGone, on_ray
from evenhand.frontier.comparison import Comparison, compare
from evenhand.frontier.cost import ReleaseCost, choosing_cost
from evenhand.frontier.export import (
    read_published,
    read_runs,
    to_frame,
    write_csv,
    write_parquet,
)
from evenhand.frontier.grid import Grid
from evenhand.frontier.holdout import NoisyMeasurement, measure_with_noise
from evenhand.frontier.material import DataSource
from evenhand.frontier.pareto import REFERENCE, by_setting, front, front_probability, hypervolume
from evenhand.frontier.run import OBJECTIVES, Plain, Run, Setting
from evenhand.frontier.specification import Answer, Specification, check
from evenhand.frontier.store import RUNS_FILE, RunStore, StoreGone, StoreOfAnotherVersion
from evenhand.frontier.sweep import SweepSummary, WorkersLost, sweep
from evenhand.frontier.votes_cache import VotesCache, VotesOfOtherData

__all__ = [
    "OBJECTIVES",
    "REFERENCE",
    "RUNS_FILE",
    "Answer",
    "ClusterGone",
    "Comparison",
    "DataSource",
    "Grid",
    "NoisyMeasurement",
    "Plain",
    "ReleaseCost",
    "Run",
    "RunStore",
    "Setting",
    "Specification",
    "StoreGone",
    "StoreOfAnotherVersion",
    "SweepSummary",
    "VotesCache",
    "VotesOfOtherData",
    "WorkersLost",
    "by_setting",
    "check",
    "choosing_cost",
    "compare",
    "front",
    "front_probability",
    "hypervolume",
    "measure_with_noise",
    "on_ray",
    "read_published",
    "read_runs",
    "sweep",
    "to_frame",
    "write_csv",
    "write_parquet",
]
