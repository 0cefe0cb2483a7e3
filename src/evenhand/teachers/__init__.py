"""From private records to votes: who learns from what, and what each teacher says."""

from evenhand.teachers.batched import LogisticTeachers, MLPTeachers, StackedEnsemble
from evenhand.teachers.blackbox import CastVotes, OutsideVotes
from evenhand.teachers.ensemble import Ensemble, Progress, Teachers
from evenhand.teachers.one_by_one import SklearnEnsemble, SklearnTeachers
from evenhand.teachers.partition import NEIGHBORS, Partition, by_position, by_unit, chosen_units

__all__ = [
    "NEIGHBORS",
    "CastVotes",
    "Ensemble",
    "LogisticTeachers",
    "MLPTeachers",
    "OutsideVotes",
    "Partition",
    "Progress",
    "SklearnEnsemble",
    "SklearnTeachers",
    "StackedEnsemble",
    "Teachers",
    "by_position",
    "by_unit",
    "chosen_units",
]
