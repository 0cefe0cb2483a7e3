"""From answers to a model that may leave the house."""

from evenhand.students.student import ConstantStudentWarning, default_student, fit_student

__all__ = ["ConstantStudentWarning", "default_student", "fit_student"]
