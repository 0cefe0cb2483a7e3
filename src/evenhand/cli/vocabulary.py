"""Words of the command line as the objects they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from evenhand._checks import one_of, positive
from evenhand._words import REFERENCES

if TYPE_CHECKING:
    from evenhand.privacy.noise import Noise
    from evenhand.teachers.ensemble import Teachers
    from evenhand.voting.blocks import Mechanism

PROTECTS: Final = ("record", "attribute")
NOISES: Final = ("exact", "float")


def _logistic() -> Teachers:
    from evenhand.teachers import LogisticTeachers

    return LogisticTeachers()


def _mlp() -> Teachers:
    from evenhand.teachers import MLPTeachers

    return MLPTeachers()


def _tree() -> Teachers:
    from sklearn.tree import DecisionTreeClassifier

    from evenhand.teachers import SklearnTeachers

    return SklearnTeachers(DecisionTreeClassifier(max_depth=6))


def _forest() -> Teachers:
    from sklearn.ensemble import RandomForestClassifier

    from evenhand.teachers import SklearnTeachers

    return SklearnTeachers(RandomForestClassifier(n_estimators=20, min_samples_leaf=2))


TEACHERS: Final[Mapping[str, Callable[[], Any]]] = {
    "logistic": _logistic,
    "mlp": _mlp,
    "tree": _tree,
    "forest": _forest,
}


def teachers(name: str) -> Teachers:
    """Return how teachers are trained."""
    one_of("--teacher", name, TEACHERS)
    made: Teachers = TEACHERS[name]()
    return made


def noise(name: str) -> Noise:
    """Return a source of noise that protects; the seeded one is for tests only and has no word."""
    from evenhand.privacy import DiscreteNoise, FloatNoise

    one_of("--noise", name, NOISES)
    return DiscreteNoise() if name == "exact" else FloatNoise()


def mechanism(
    *, sigma: float | None, threshold: float | None, sigma_check: float | None
) -> Mechanism | None:
    """Return the mechanism that the numbers describe, or None for the default."""
    from evenhand.privacy import ConfidentGNMax, GNMax

    if threshold is None and sigma_check is None:
        return None if sigma is None else GNMax(sigma=positive("--sigma", sigma))
    if sigma is None or threshold is None or sigma_check is None:
        given = {"--sigma": sigma, "--threshold": threshold, "--sigma-check": sigma_check}
        absent = " and ".join(name for name, value in given.items() if value is None)
        raise ValueError(
            f"A noisy threshold needs --threshold, --sigma-check and --sigma together; {absent} "
            f"is missing. Give all three, or --sigma alone for a noisy maximum without it."
        )
    return ConfidentGNMax(threshold=threshold, sigma_check=sigma_check, sigma=sigma)


def check_reference(name: str) -> str:
    """Return what a group is compared with."""
    return one_of("--reference", name, REFERENCES)
