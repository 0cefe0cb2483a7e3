"""From answers to a model that may leave the house."""

from evenhand.students.constrained import LinearFit, MarginNotMet, Within, fit_linear
from evenhand.students.objective import LabelLoss, Objective, ShareLoss
from evenhand.students.reduction import ReductionStudent
from evenhand.students.student import ConstantStudentWarning, Student, fit_student
from evenhand.students.thresholds import GroupThresholds

__all__ = [
    "ConstantStudentWarning",
    "GroupThresholds",
    "LabelLoss",
    "LinearFit",
    "MarginNotMet",
    "Objective",
    "ReductionStudent",
    "ShareLoss",
    "Student",
    "Within",
    "fit_linear",
    "fit_student",
]
