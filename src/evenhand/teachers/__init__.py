"""From private records to votes: who learns from what, and what each teacher says."""

from evenhand.teachers.batched import LogisticTeachers, MLPTeachers, StackedEnsemble
from evenhand.teachers.blackbox import CastVotes, OutsideVotes
from evenhand.teachers.constrained import (
    ConstrainedLogisticTeachers,
    ConstrainedMLPTeachers,
    constrained,
)
from evenhand.teachers.coverage import (
    GroupMissingInPartition,
    GroupsOfTeachers,
    MissingGroups,
    groups_of_teachers,
)
from evenhand.teachers.ensemble import (
    Ensemble,
    GroupedTeachers,
    Progress,
    ScoredEnsemble,
    Teachers,
)
from evenhand.teachers.fair_black_box import BlackBoxFairTeachers
from evenhand.teachers.one_by_one import SklearnEnsemble, SklearnTeachers
from evenhand.teachers.parity import ParityTeachers
from evenhand.teachers.partition import NEIGHBORS, Partition, by_position, by_unit, chosen_units
from evenhand.teachers.postprocessed import level_votes
from evenhand.teachers.resampled import KeepWithin, Resample, ResampledTeachers, Undersample

__all__ = [
    "NEIGHBORS",
    "BlackBoxFairTeachers",
    "CastVotes",
    "ConstrainedLogisticTeachers",
    "ConstrainedMLPTeachers",
    "Ensemble",
    "GroupMissingInPartition",
    "GroupedTeachers",
    "GroupsOfTeachers",
    "KeepWithin",
    "LogisticTeachers",
    "MLPTeachers",
    "MissingGroups",
    "OutsideVotes",
    "ParityTeachers",
    "Partition",
    "Progress",
    "Resample",
    "ResampledTeachers",
    "ScoredEnsemble",
    "SklearnEnsemble",
    "SklearnTeachers",
    "StackedEnsemble",
    "Teachers",
    "Undersample",
    "by_position",
    "by_unit",
    "chosen_units",
    "constrained",
    "groups_of_teachers",
    "level_votes",
]
