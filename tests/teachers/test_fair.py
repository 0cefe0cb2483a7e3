"""Teachers under a constraint keep the contract of teachers, and read groups."""

import numpy as np
import pytest
from populations import people
from runs import falls_short
from sklearn.linear_model import LogisticRegression

from evenhand import DemographicParity
from evenhand.fairness.functions import worst_violation
from evenhand.learners.nets.architectures import Dense
from evenhand.teachers import BlackBoxFairTeachers, LogisticTeachers, by_position
from evenhand.teachers.coverage import groups_of_teachers
from evenhand.teachers.fair import (
    ConstrainedLogisticTeachers,
    ConstrainedMLPTeachers,
    ConstrainedNetworkTeachers,
)

PARITY = DemographicParity(margin=0.02, reference="overall")


class Reweighed(LogisticRegression):
    """A fair classifier of somebody's own: groups weigh alike in each class."""

    def fit(self, X, y, sensitive_features=None):
        z = np.asarray(sensitive_features)
        weight = np.ones(len(y))
        for a in np.unique(z):
            for k in np.unique(y):
                cell = (z == a) & (y == k)
                if cell.any():
                    weight[cell] = (z == a).mean() * (y == k).mean() / cell.mean()
        return super().fit(X, y, sample_weight=weight)


ALL = [
    ConstrainedLogisticTeachers(PARITY),
    ConstrainedMLPTeachers(PARITY, hidden=(8,), epochs=4, step=3.0),
    ConstrainedNetworkTeachers(
        PARITY, Dense(hidden=(8,)), epochs=4, step=3.0, batch_size=128, learning_rate=0.01
    ),
    BlackBoxFairTeachers(Reweighed()),
]


def votes(teachers, X, y, z, n_teachers: int = 8):
    partition = by_position(len(X), n_teachers, 0)
    more = {"groups": z, "n_groups": 2} if getattr(teachers, "reads_groups", False) else {}
    ensemble = teachers.fit(X, y, partition, 2, np.random.default_rng(0), **more)
    return ensemble.vote(people(400, 9)[0])


@pytest.mark.parametrize("teachers", ALL, ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("who", [0, 500])
def test_one_changed_record_moves_the_votes_of_its_own_teacher_at_most(teachers, who) -> None:
    X, y, z = people(1200)
    before = votes(teachers, X, y, z)
    other_z, other_y, other_X = z.copy(), y.copy(), X.copy()
    other_z[who], other_X[who] = 1 - z[who], 5.0
    own = by_position(len(X), 8, 0).teacher[who]
    for after in (votes(teachers, X, y, other_z), votes(teachers, other_X, y, other_z)):
        moved = np.flatnonzero((before != after).any(axis=1))
        assert set(moved.tolist()) <= {int(own)}
    other_y[by_position(len(X), 8, 0).rows(int(own))] ^= 1
    moved = np.flatnonzero((before != votes(teachers, X, other_y, z)).any(axis=1))
    assert moved.tolist() == [int(own)]  # so votes do depend on what a teacher reads


@pytest.mark.parametrize("teachers", ALL, ids=lambda t: type(t).__name__)
def test_fair_teachers_vote_more_alike_on_new_rows_than_plain_ones(teachers) -> None:
    _, new_y, new_z = people(400, 9)

    def gap(kind, seed) -> float:
        X, y, z = people(4000, seed)
        said = votes(kind, X, y, z)
        return float(np.mean([worst_violation(PARITY, np.eye(2)[v], new_y, new_z) for v in said]))

    plain = np.array([gap(LogisticTeachers(C=1.0), seed) for seed in range(10)])
    fair = np.array([gap(teachers, seed) for seed in range(10)])
    assert not falls_short(0.95 * plain - fair)
    assert falls_short(0.95 * plain - plain)


def test_groups_are_needed() -> None:
    X, y, _ = people(100)
    for teachers in ALL:
        with pytest.raises(ValueError, match="reads the group of every private record"):
            teachers.fit(X, y, by_position(100, 2, 0), 2, np.random.default_rng(0))


def test_a_black_box_must_be_an_object_that_can_be_fitted() -> None:
    X, y, z = people(100)
    for wrong in (LogisticRegression, 3):
        with pytest.raises(TypeError, match="estimator must be a classifier with fit"):
            BlackBoxFairTeachers(wrong).fit(
                X, y, by_position(100, 2, 0), 2, np.random.default_rng(0), groups=z, n_groups=2
            )


def test_groups_of_teachers_are_counted_by_the_definition_and_kept_private() -> None:
    _, _, z = people(90)
    z = np.where(np.arange(90) < 5, 2, z)
    partition = by_position(90, 9, 3)
    held, all_held = groups_of_teachers(z, partition, ("a", "b", "c"))
    missing = held.reveal_to_curator().missing
    for a, name in enumerate("abc"):
        lacks = [t for t in range(9) if not (z[partition.rows(t)] == a).any()]
        assert list(missing.get(name, ())) == lacks
    assert not all_held
    assert "c" in missing
    assert repr(held) == "<private>"
    few, all_there = groups_of_teachers(np.arange(90) % 2, by_position(90, 2, 0), ("a", "b"))
    assert all_there
    assert few.reveal_to_curator().enough == 4
