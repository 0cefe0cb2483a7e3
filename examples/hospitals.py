"""Hospitals that do not pool their records: each votes, and only noisy answers leave.

Every hospital trains whatever it likes on its own patients and labels the same public rows. The
aggregator sees votes, never records or models. It needs one promise from the hospitals: no patient
is a record of two of them, and nothing was fitted on the records of all.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from evenhand.fairness import DemographicParityGate
from evenhand.privacy import Budget, GNMax, Ledger
from evenhand.students.student import fit_student
from evenhand.voting import Votes, aggregate

N_HOSPITALS, N_PUBLIC = 80, 1500


def patients(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Measurements, outcome, and group of n patients."""
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 6))
    X[:, 0] += 0.6 * group
    y = (X @ np.array([1.0, 0.8, -0.6, 0.4, 0.0, 0.0]) + rng.normal(0, 0.7, n) > 0.4).astype(int)
    return X, y, group


def main() -> None:
    """Vote, aggregate within a margin, and train a model for everybody."""
    rng = np.random.default_rng(0)
    X_public, y_public, groups = patients(rng, N_PUBLIC)

    # In each hospital, on its own machines: a model of its own choice.
    kinds = [LogisticRegression(), GaussianNB(), RandomForestClassifier(20, random_state=0)]
    votes = []
    for hospital in range(N_HOSPITALS):
        X, y, _ = patients(rng, 150)
        votes.append(kinds[hospital % 3].fit(X, y).predict(X_public))

    # At the aggregator: 80 votes a row, nothing else.
    ledger = Ledger(Budget(epsilon=3.0, delta=1e-6), unit="patient", neighbors="replace one")
    answers = aggregate(
        Votes.of(votes, n_classes=2),
        GNMax(sigma=0.4 * N_HOSPITALS),
        ledger,
        gate=DemographicParityGate(0.05, n_groups=2, n_classes=2),
        groups=groups,
    )
    student = fit_student(None, X_public, answers).model
    claim = ledger.guarantee(
        public=("the public rows, their groups, and the number of hospitals",),
        not_covered=("models and votes inside a hospital",),
        warnings=("the hospitals vouch that no patient is a record of two of them",),
    )
    print(claim)
    print(answers.table())
    print(f"accuracy on the public rows: {(student.predict(X_public) == y_public).mean():.3f}")


if __name__ == "__main__":
    main()
