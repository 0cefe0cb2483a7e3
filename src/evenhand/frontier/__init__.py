"""The whole trade-off of privacy, fairness, accuracy and coverage, and a page to choose on."""

from evenhand.frontier.comparison import compare
from evenhand.frontier.export import read_runs, to_frame, write_csv
from evenhand.frontier.grid import Grid
from evenhand.frontier.pareto import front, hypervolume
from evenhand.frontier.run import Run
from evenhand.frontier.specification import Specification, check
from evenhand.frontier.store import RunStore
from evenhand.frontier.sweep import sweep

__all__ = [
    "Grid",
    "Run",
    "RunStore",
    "Specification",
    "check",
    "compare",
    "front",
    "hypervolume",
    "read_runs",
    "sweep",
    "to_frame",
    "write_csv",
]
