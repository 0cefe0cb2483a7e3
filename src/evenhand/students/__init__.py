"""From answers to a model that may leave the house."""

from evenhand.students.constrained import MarginNotMet
from evenhand.students.module import ModuleClassifier, ModuleStudent
from evenhand.students.network import NetworkStudent
from evenhand.students.reduction import ReductionStudent
from evenhand.students.student import ConstantStudentWarning, FewAnswersWarning

__all__ = [
    "ConstantStudentWarning",
    "FewAnswersWarning",
    "MarginNotMet",
    "ModuleClassifier",
    "ModuleStudent",
    "NetworkStudent",
    "ReductionStudent",
]
