"""From answers to a model that may leave the house."""

from evenhand.students.constrained import LinearFit, MarginNotMet, fit_linear
from evenhand.students.derived import DerivedRule, noise_bound
from evenhand.students.fair_tuning import FairTuning, fair_tune
from evenhand.students.lagrangian import Constraint, fit_lagrangian
from evenhand.students.module import ModuleClassifier, ModuleStudent
from evenhand.students.network import NetworkStudent, as_scikit_learn
from evenhand.students.objective import LabelLoss, Objective, ShareLoss
from evenhand.students.proximal import ProximalLoss
from evenhand.students.reduction import ReductionStudent
from evenhand.students.small_groups import Held, HeldGroup
from evenhand.students.student import (
    ConstantStudentWarning,
    FewAnswersWarning,
    Student,
    fit_student,
    refuse_unbound,
    smoothed,
    uncertainty,
)
from evenhand.students.thresholds import GroupThresholds
from evenhand.students.within import SOURCES, Within

__all__ = [
    "SOURCES",
    "ConstantStudentWarning",
    "Constraint",
    "DerivedRule",
    "FairTuning",
    "FewAnswersWarning",
    "GroupThresholds",
    "Held",
    "HeldGroup",
    "LabelLoss",
    "LinearFit",
    "MarginNotMet",
    "ModuleClassifier",
    "ModuleStudent",
    "NetworkStudent",
    "Objective",
    "ProximalLoss",
    "ReductionStudent",
    "ShareLoss",
    "Student",
    "Within",
    "as_scikit_learn",
    "fair_tune",
    "fit_lagrangian",
    "fit_linear",
    "fit_student",
    "noise_bound",
    "refuse_unbound",
    "smoothed",
    "uncertainty",
]
