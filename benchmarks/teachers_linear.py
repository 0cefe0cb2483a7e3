"""Logistic teachers as one stack, beside a loop over scikit-learn, on a table shaped like Adult."""

from __future__ import annotations

import numpy as np
from _harness import run
from sklearn.linear_model import LogisticRegression

from evenhand.teachers import LogisticTeachers, by_position
from evenhand.typing import FloatArray, IntArray

SEED = 0
N_RECORDS, N_TEACHERS, C = 27_133, 250, 100.0
CATEGORIES = (7, 16, 7, 14, 6, 5, 41)  # sizes of Adult's categorical columns, 6 numeric ones beside


def table() -> tuple[FloatArray, IntArray]:
    """Six numeric columns and seven one-hot ones; a quarter of the labels are 1."""
    rng = np.random.default_rng(SEED)
    columns = [rng.normal(size=(N_RECORDS, 6))]
    for n in CATEGORIES:
        shares = rng.dirichlet(np.full(n, 0.7))
        columns.append(np.eye(n)[rng.choice(n, size=N_RECORDS, p=shares)])
    X = np.hstack(columns)
    score = X @ rng.normal(size=X.shape[1])
    y = score + 1.5 * rng.logistic(size=N_RECORDS) > np.quantile(score, 0.75)
    return X, y.astype(np.int64)


X, y = table()
DEAL = by_position(N_RECORDS, N_TEACHERS, SEED)


def ours() -> object:
    return LogisticTeachers(C=C).fit(X, y, DEAL, 2, np.random.default_rng(SEED))


def loop(**settings: object) -> list[LogisticRegression]:
    settings = {"C": C, "max_iter": 1000, **settings}
    return [LogisticRegression(**settings).fit(X[rows], y[rows]) for rows in DEAL.all_rows]


def check() -> None:
    """At a tight tolerance both find the same optimum: the votes are the same."""
    queries = X[:2000]
    votes = LogisticTeachers(C=C).fit(X, y, DEAL, 2, np.random.default_rng(SEED)).vote(queries)
    members = loop(solver="newton-cholesky", tol=1e-8)
    assert np.array_equal(votes, np.array([member.predict(queries) for member in members]))


if __name__ == "__main__":
    run(
        "teachers_linear",
        ours=ours,
        plain=loop,
        check=check,
        sizes={"records": N_RECORDS, "columns": X.shape[1], "teachers": N_TEACHERS, "C": C},
        seed=SEED,
        target="clearly faster than the loop (ratio above 2)",
    )
