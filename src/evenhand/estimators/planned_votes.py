"""What a vote of so many owners is likely to be worth, simulated before anything is asked."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand.estimators.pate import PATEClassifier
from evenhand.owners.collection import OwnerVotes
from evenhand.owners.digests import PublicRows
from evenhand.owners.vote_file import OWNER
from evenhand.privacy import Budget, SeededNoise
from evenhand.teachers import LogisticTeachers
from evenhand.teachers.partition import Partition
from evenhand.typing import FloatArray, IntArray

LADDER: Final = (5, 10, 20, 40, 80, 160, 320, 640)
"""Numbers of owners that are tried."""

N_TEST: Final = 4000
ALONE: Final = 10
"""Owners whose own models are measured."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Public numbers of a planned vote, of two classes."""

    n_owners: int
    n_rows: int
    """``n_owners`` and ``n_rows``: owners, and public rows that they are asked about."""
    epsilon: float
    delta: float = 1e-5
    n_records: int = 100
    """Records of an owner."""
    n_teachers: int = 1
    """Teachers of each owner, on disjoint parts of its records."""
    unit: str = OWNER
    """``"owner"`` or ``"record"``."""
    n_columns: int = 10
    """Features."""
    ceiling: float = 0.85
    """Accuracy of the best rule that there is, in (.5, 1): how hard the question is."""

    def __post_init__(self) -> None:
        for name in ("n_owners", "n_rows", "n_records", "n_teachers", "n_columns"):
            _checks.at_least(name, getattr(self, name), 1)
        _checks.one_of("unit", self.unit, (OWNER, "record"))
        Budget(epsilon=self.epsilon, delta=self.delta)  # its own checks
        if not 0.5 < self.ceiling < 1:
            raise ValueError(f"ceiling must lie in (.5, 1), got {self.ceiling!r}.")
        if self.n_records < 5 * self.n_teachers:
            raise ValueError(
                f"{self.n_teachers} teachers of {self.n_records} records have fewer than 5 each. "
                f"Use fewer teachers."
            )


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a vote of so many owners was worth in the simulation."""

    n_owners: int
    accuracy: float
    half_width: float
    """``accuracy`` and ``half_width``: mean over made-up populations, and half width of its 95 %
    interval.
    """


@dataclass(frozen=True, kw_only=True)
class VotePlan:
    """The numbers of a plan. Public: no data were read."""

    setting: Setting
    alone: float
    """Accuracy of one owner's own model."""
    expected: tuple[Expected, ...]
    """By the number of owners, the asked number among them."""
    least: int | None
    """Fewest owners of those tried from which on the vote is better than an owner alone; None if
    none of them is enough.
    """

    @property
    def asked(self) -> Expected:
        """What was asked about."""
        return next(one for one in self.expected if one.n_owners == self.setting.n_owners)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def plan_votes(
    setting: Setting,
    *,
    seed: int = 0,
    n_repeats: int = 8,
    progress: Callable[[int, int], None] | None = None,
) -> VotePlan:
    """Simulate a vote of made-up owners with these public numbers.

    Every population has normal features and a linear rule of its own, with labels that the best
    rule gets right as often as ``ceiling`` says. Owners are alike: real ones that differ do worse.

    Parameters
    ----------
    setting : Setting
    seed : int
    n_repeats : int
        Populations, at least 2.
    progress : callable, optional

    Examples
    --------
    >>> plan = plan_votes(Setting(n_owners=40, n_rows=300, epsilon=3.0, n_records=40, n_columns=3),
    ...                   n_repeats=2)
    >>> plan.asked.n_owners
    40
    """
    _checks.at_least("n_repeats", n_repeats, 2)
    tried = sorted({*LADDER, setting.n_owners})
    found = np.zeros((n_repeats, len(tried)))
    alone = np.zeros(n_repeats)
    for i in range(n_repeats):
        rng = np.random.default_rng([seed, i])
        alone[i], found[i] = _population(setting, tried, rng)
        if progress is not None:
            progress(i + 1, n_repeats)
    half = 1.96 * found.std(axis=0, ddof=1) / math.sqrt(n_repeats)
    better = (found - alone[:, None]).mean(axis=0) > 0
    # From there on: a small number that is better by luck is none.
    from_on = [n for at, n in enumerate(tried) if better[at:].all()]
    return VotePlan(
        setting=setting,
        alone=float(alone.mean()),
        expected=tuple(
            Expected(n_owners=n, accuracy=float(mean), half_width=float(width))
            for n, mean, width in zip(tried, found.mean(axis=0), half, strict=True)
        ),
        least=min(from_on, default=None),
    )


def _population(
    setting: Setting, tried: list[int], rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """Return the accuracy of an owner alone, and of the votes of so many, in one population."""
    direction = rng.normal(size=setting.n_columns)
    direction /= np.linalg.norm(direction)
    steep = _steepness(setting.ceiling)

    def people(n: int) -> tuple[FloatArray, IntArray]:
        X = rng.normal(size=(n, setting.n_columns))
        chance = 1 / (1 + np.exp(-steep * (X @ direction)))
        return X, (rng.random(n) < chance).astype(np.int64)

    rows, _ = people(setting.n_rows)
    X_test, y_test = people(N_TEST)
    most, k = max(tried), setting.n_teachers
    X, y = people(most * setting.n_records)
    owner, place = np.divmod(np.arange(len(X)), setting.n_records)
    teachers = _trained(X, y, owner * k + place * k // setting.n_records, most * k, rng)
    votes = teachers.vote(rows).reshape(most, k, setting.n_rows).sum(axis=1)
    few = owner < ALONE
    alone = _trained(X[few], y[few], owner[few], min(ALONE, most), rng).vote(X_test)
    public = PublicRows.of(rows)
    found = np.array([_voted(setting, votes[:n], rows, public, rng)(X_test) for n in tried])
    return float((alone == y_test).mean()), (found == y_test).mean(axis=1)


def _voted(
    setting: Setting,
    votes: IntArray,
    rows: FloatArray,
    public: PublicRows,
    rng: np.random.Generator,
) -> Callable[[FloatArray], Any]:
    """Return the model of the votes for class 1 of so many owners, with its noise."""
    n, ones = len(votes) * setting.n_teachers, np.sum(votes, axis=0)
    collected = OwnerVotes(
        owners=tuple(map(str, range(len(votes)))),
        teachers=(setting.n_teachers,) * len(votes),
        counts=np.stack([n - ones, ones], axis=1),
        scale=1,
        classes=("0", "1"),
        public=public,
        unit=setting.unit,
        neighbors="replace one",
        fingerprints=("",) * len(votes),
        keys_known=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the noise drowns a few owners is what is found out
        model = PATEClassifier.from_votes(
            collected,
            rows,
            budget=Budget(epsilon=setting.epsilon, delta=setting.delta),
            noise=SeededNoise(int(rng.integers(2**31))),  # made-up votes need no protection
            random_state=0,
        )
    return model.predict


def _trained(
    X: FloatArray, y: IntArray, teacher: IntArray, n_teachers: int, rng: np.random.Generator
) -> Any:
    """Return logistic regression on each part, all of them fitted as one."""
    parts = Partition(
        teacher=teacher, n_teachers=n_teachers, unit="record", neighbors="replace one"
    )
    return LogisticTeachers().fit(X, y, parts, 2, rng)


def _steepness(ceiling: float) -> float:
    """Return how steep a logistic rule is that is right this often, for a normal score."""
    x = np.linspace(-8, 8, 2001)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    low, high = 0.0, 200.0
    for _ in range(60):
        middle = (low + high) / 2
        right = float((density / (1 + np.exp(-middle * np.abs(x)))).sum())
        low, high = (middle, high) if right < ceiling else (low, middle)
    return (low + high) / 2
