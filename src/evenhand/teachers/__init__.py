"""From private records to votes: who learns from what, and what each teacher says."""

from evenhand.teachers.coverage import GroupMissingInPartition
from evenhand.teachers.fair import ParityTeachers
from evenhand.teachers.outside_votes import OutsideVotes
from evenhand.teachers.partition import by_position, by_unit
from evenhand.teachers.resampled import KeepWithin, ResampledTeachers, Undersample
from evenhand.teachers.sklearn_teachers import BlackBoxFairTeachers, SklearnTeachers
from evenhand.teachers.stacked import LogisticTeachers, MLPTeachers

__all__ = [
    "BlackBoxFairTeachers",
    "GroupMissingInPartition",
    "KeepWithin",
    "LogisticTeachers",
    "MLPTeachers",
    "OutsideVotes",
    "ParityTeachers",
    "ResampledTeachers",
    "SklearnTeachers",
    "Undersample",
    "by_position",
    "by_unit",
]
