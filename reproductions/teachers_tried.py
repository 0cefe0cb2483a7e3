"""Other teachers, probabilities for votes, and other students of one set of answers.

    python reproductions/teachers_tried.py [--seeds 8] [--again 0] [--kept FILE] [--save]

On training rows of tables on which defaults are chosen (German, Parkinsons, Bank, ACS-Income of
Maryland, Credit; ``_inner.py``: of no test row anything is read), each seed a split of its own;
epsilon 1 and 3, delta 1e-5, noise from the operating system, no margin. Every way has the steps
that ``PATEClassifier`` takes with public rows, all of which are asked. The *default* is that:
logistic teachers (``C`` 100), votes, three rounds of noisy shares, the linear student. Students of
the default's own answers are marked (answers); all others pay for answers of their own.

- *boosting*, *forests*: the teachers are scikit-learn's ``HistGradientBoostingClassifier`` (10
  trees of 8 leaves, at least 5 records each, rate .3), or ``RandomForestClassifier`` (10 trees,
  leaves of at least 3), as many as the default has; *..., a quarter*: a quarter as many, with four
  times the records. They take nearly all of the time, and have the first five splits only.
- *probabilities*: the sum of the teachers' probabilities of class 1 in the place of their votes;
  *..., clipped*: of probabilities clipped to [.1, .9], for which the noise is .8 as large; *...,
  ridge*: of teachers with ``C`` 1, whose probabilities are less sure. One record moves one
  teacher's probability, by 1 (or .8) at the most, which is what a vote moves. A probability is
  rounded to hundredths, each of which is a vote, and a record is charged as the mover of a hundred
  votes.
- *ten students* (answers): the mean probability of ten students, each of a bootstrap sample of the
  answered rows.
- *self-training* (answers): rows where the student is surer than .9 are given its decision as a
  label, which together weigh as much as all answers; fitted again, three times.
- *a third asked, self-training*: a third of the public rows is asked, with the whole budget; the
  student then trains itself so on all of them.
- *label spreading* (answers): shares spread over the graph of each public row's ten nearest (20
  steps; .8 from the neighbors, .2 its own); the student follows the spread shares. *..., neighbors
  decide* (answers): no student, but the mean of these shares at the ten nearest public rows.
- *curves*, *curves, the student's* (answers): curves of degree 3 beside numbers, as where counts
  stand beside answers (``PublicEncoder``): for teachers and student, or for the student alone.

**Rule**, written before the first run: of each seed the mean over the five tables of error minus
the default's; a way is *taken* if the 95 % interval of these differences over seeds lies below 0 at
epsilon 1 and at epsilon 3. A way that is taken is measured again, on as many other splits
(``--again``), before anything is made a default: it must be taken there too, by these alone. "no"
rows stay.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

import _tried
import numpy as np
from _inner import LOADERS, Inner, inner
from _table import Runs
from _tried import DEFAULT, DELTA, EPSILONS
from scipy import sparse
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import NearestNeighbors

from evenhand import Budget
from evenhand.datasets import PublicEncoder
from evenhand.estimators.ledgers import open_run
from evenhand.estimators.plan import default_n_teachers, default_rounds
from evenhand.privacy import FloatNoise
from evenhand.students.soft_labels import SoftLabels
from evenhand.students.student import SMOOTHED_VARIANCE, fit_student, uncertainty
from evenhand.teachers import LogisticTeachers, SklearnTeachers, by_position
from evenhand.typing import FloatArray
from evenhand.voting import Shares, Votes
from evenhand.voting.shares import release_shares

NAME = "teachers_tried"
TREES: dict[str, Any] = {
    "boosting": HistGradientBoostingClassifier(
        learning_rate=0.3,
        max_iter=10,
        max_leaf_nodes=8,
        min_samples_leaf=5,
        early_stopping=False,
    ),
    "forests": RandomForestClassifier(10, min_samples_leaf=3),
}
OTHER_TEACHERS = {
    name + said: (SklearnTeachers(trees), part)
    for (name, trees), (said, part) in product(TREES.items(), (("", 1.0), (", a quarter", 0.25)))
}
"""Teachers, and how many of them beside the default number."""
PROBABILITIES = {
    "probabilities": (100.0, 0.0),
    "probabilities, clipped": (100.0, 0.1),
    "probabilities, ridge": (1.0, 0.0),
}
"""The teachers' ``C``, and the least probability."""
TEN, SELF, THIRD = "ten students", "self-training", "a third asked, self-training"
SPREAD, NEAREST = "label spreading", "label spreading, neighbors decide"
CURVES, CURVED_STUDENT = "curves", "curves, the student's"
WAYS = (
    *OTHER_TEACHERS,
    *PROBABILITIES,
    TEN,
    SELF,
    THIRD,
    SPREAD,
    NEAREST,
    CURVES,
    CURVED_STUDENT,
)
SEEDS_OF_TREES = 5
BALLOTS, STUDENTS, SURE, NEIGHBORS, OWN, STEPS = 100, 10, 0.9, 10, 0.2, 20
DEGREE = 3

Decides = Callable[[FloatArray], FloatArray]
"""The probability of class 1 of encoded rows."""


class Rows:
    """A split, encoded by its public rows."""

    def __init__(self, of: Inner, seed: int, degree: int = 0) -> None:
        self.of, self.seed = of, seed
        self._encoder = PublicEncoder(degree=degree).fit(of.public)

    @cached_property
    def private(self) -> FloatArray:
        """Private rows."""
        return self._encoder.transform(self.of.X)

    @cached_property
    def public(self) -> FloatArray:
        """Public rows."""
        return self._encoder.transform(self.of.public)

    @cached_property
    def judge(self) -> FloatArray:
        """Rows that judge."""
        return self._encoder.transform(self.of.X_judge)

    @cached_property
    def nearest(self) -> NearestNeighbors:
        """Find the nearest public rows."""
        return NearestNeighbors(n_neighbors=NEIGHBORS).fit(self.public)

    @cached_property
    def graph(self) -> sparse.csr_array:
        """Weights of each public row's neighbors, which sum to 1."""
        links = sparse.csr_array(self.nearest.kneighbors_graph())  # without the row itself
        links = links.maximum(links.T)
        return sparse.csr_array(links / links.sum(axis=1)[:, None])

    def taught(self, teachers: Any, n_teachers: int) -> Any:
        """Return fitted teachers."""
        deal = by_position(len(self.of.y), n_teachers, self.seed)
        rng = np.random.default_rng(self.seed)
        return teachers.fit(self.private, self.of.y, deal, 2, rng)

    def error(self, decides: Decides) -> float:
        """Return the error on the rows that judge."""
        return float(((decides(self.judge) > 0.5) != self.of.y_judge).mean())


def answered(X: FloatArray, votes: Votes, budget: Budget, moves: int = 1) -> Shares:
    """Return the noisy shares of votes, of which one record moves so many: as the default asks."""
    ledger = open_run(
        budget,
        None,
        FloatNoise(),
        unit="record",
        neighbors="replace one",
        way_out="",
        purpose=NAME,
        moves=moves,
    )
    plan = default_rounds(ledger, n_queries=len(X), n_classes=2)
    return release_shares(votes, plan, ledger, unsure=lambda so_far: uncertainty(X, so_far))


def learned(X: FloatArray, answers: Shares, beside: SoftLabels | None = None) -> Decides:
    """Return what the default's student decides by."""
    model = fit_student(None, X, answers, beside=beside).model
    return lambda rows: model.predict_proba(rows)[:, 1]


def ballots(scores: FloatArray, least: float) -> Votes:
    """Return probabilities from ``least`` on, stretched to [0, 1], in hundredths as votes."""
    probability = np.clip(expit(scores), least, 1.0 - least)
    parts = np.rint(BALLOTS * (probability - least) / (1.0 - 2.0 * least)).astype(np.int64)
    total = BALLOTS * len(parts)
    ones = parts.sum(axis=0)
    return Votes(counts=np.stack([total - ones, ones], axis=1), n_teachers=total)


def unstretched(answers: Shares, least: float) -> Shares:
    """Return shares of probabilities that were stretched, as they were before."""
    part = 1.0 - 2.0 * least
    return replace(
        answers, shares=least + part * answers.shares, variance=part**2 * answers.variance
    )


def mean_of_students(X: FloatArray, answers: Shares, rng: np.random.Generator) -> Decides:
    """Return the mean probability of students of bootstrap samples of the answers."""
    students = []
    for _ in range(STUDENTS):
        some = rng.integers(len(X), size=len(X))
        own = replace(
            answers, shares=answers.shares[some], variance=answers.variance[some], n_asked=len(X)
        )
        students.append(learned(X[some], own))
    return lambda rows: np.mean([decides(rows) for decides in students], axis=0)


def self_trained(X: FloatArray, answers: Shares, every: FloatArray) -> Decides:
    """Return a student that learns its own decisions, where it is sure, three times."""
    decides = learned(X, answers)
    for _ in range(3):
        probability = decides(every)
        sure = np.maximum(probability, 1.0 - probability) > SURE
        if not sure.any():
            break
        own = np.eye(2)[(probability[sure] > 0.5).astype(np.int64)]
        decides = learned(X, answers, SoftLabels.of(every[sure], own, 1.0))
    return decides


def spread(rows: Rows, answers: Shares) -> FloatArray:
    """Return the shares of class 1, spread over the graph of the public rows."""
    own = answers.shares[:, 1]
    found = own
    for _ in range(STEPS):
        found = (1.0 - OWN) * (rows.graph @ found) + OWN * own
    return np.asarray(found)


def of_answers(rows: Rows, curved: Rows, answers: Shares) -> Iterator[tuple[str, float]]:
    """Yield the errors of the ways that learn from the default's answers."""
    X = rows.public
    yield DEFAULT, rows.error(learned(X, answers))
    yield TEN, rows.error(mean_of_students(X, answers, np.random.default_rng(rows.seed)))
    yield SELF, rows.error(self_trained(X, answers, X))
    found = spread(rows, answers)
    smooth = replace(
        answers,
        shares=np.stack([1.0 - found, found], axis=1),
        variance=np.full(len(found), SMOOTHED_VARIANCE),
    )
    yield SPREAD, rows.error(learned(X, smooth))
    yield (
        NEAREST,
        rows.error(
            lambda some: found[rows.nearest.kneighbors(some, return_distance=False)].mean(axis=1)
        ),
    )
    yield CURVED_STUDENT, curved.error(learned(curved.public, answers))


def of_logistic(rows: Rows, curved: Rows, n: int, budget: Budget) -> Iterator[tuple[str, float]]:
    """Yield the errors of the ways with logistic teachers, of which the default has ``n``."""
    X = rows.public
    usual = rows.taught(LogisticTeachers(), n)
    votes = Votes.of(usual.vote(X), 2)
    yield from of_answers(rows, curved, answered(X, votes, budget))
    third = slice(0, len(X) // 3)
    few = answered(X[third], replace(votes, counts=votes.counts[third]), budget)
    yield THIRD, rows.error(self_trained(X[third], few, X))
    for way, (C, least) in PROBABILITIES.items():
        teachers = usual if C == 100.0 else rows.taught(LogisticTeachers(C=C), n)
        said = answered(X, ballots(teachers.scores(X), least), budget, moves=BALLOTS)
        yield way, rows.error(learned(X, unstretched(said, least)))
    bent = Votes.of(curved.taught(LogisticTeachers(), n).vote(curved.public), 2)
    yield CURVES, curved.error(learned(curved.public, answered(curved.public, bent, budget)))


def of_trees(rows: Rows, curved: Rows, n: int, budget: Budget) -> Iterator[tuple[str, float]]:
    """Yield the errors of the ways with trees as teachers."""
    X = rows.public
    for way, (kind, part) in OTHER_TEACHERS.items():
        votes = Votes.of(rows.taught(kind, max(1, round(part * n))).vote(X), 2)
        yield way, rows.error(learned(X, answered(X, votes, budget)))


PARTS = {"logistic": of_logistic, "trees": of_trees}


def measure(part: str, seed: int, table: str) -> list[dict[str, Any]]:
    """Return the errors of the ways of a part on one split of a table."""
    split = inner(table, seed)
    rows, curved = (Rows(split, seed, degree) for degree in (0, DEGREE))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of noise: the error says it
        for epsilon in EPSILONS:
            budget = Budget(epsilon=epsilon, delta=DELTA)
            n = default_n_teachers(len(split.y), budget.mu)
            about = {"part": part, "table": table, "seed": seed, "epsilon": epsilon}
            about |= {"n": len(split.y), "teachers": n}
            found += [
                about | {"way": way, "error": error}
                for way, error in PARTS[part](rows, curved, n, budget)
            ]
    return found


def save(rows: list[dict[str, Any]], seeds: int, again: int, commit: str) -> None:
    """Write rows and verdicts as JSON, and as tables."""
    about = {"ways": WAYS, "tables": tuple(LOADERS), "seeds": seeds, "again": again}
    _tried.save(
        NAME, "What else teachers and students were tried to be", rows, commit=commit, **about
    )


def complete(rows: Runs, seeds: range) -> None:
    """Measure what is missing of these splits."""
    rows.complete(measure, part=["logistic"], seed=seeds, table=LOADERS)
    rows.complete(measure, part=["trees"], seed=seeds[:SEEDS_OF_TREES], table=LOADERS)


if __name__ == "__main__":
    _tried.main(__doc__, 8, complete, save)
