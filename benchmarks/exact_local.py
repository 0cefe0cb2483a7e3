"""The exact local cost of 1000 queries, 10 classes, 50 orders: shared tables, or one integral each.

The plain version integrates P(class wins) with scipy.integrate.quad for the votes and each of the
90 neighbors. That takes seconds per query, so both are timed on ``N_PLAIN`` of them, and the ratio
is per query at that size; ours on all 1000 stands beside it in ``sizes`` as ``ours_all_s``.
"""

import itertools

import numpy as np
from _harness import run, seconds
from scipy.integrate import quad
from scipy.special import ndtr

from evenhand.privacy.local import exact_local_rdp

SEED, N_QUERIES, N_PLAIN, N_CLASSES, N_TEACHERS, SIGMA = 0, 1000, 1, 10, 250, 40.0
ORDERS = np.concatenate([np.linspace(1.1, 10.0, 25), np.geomspace(11.0, 200.0, 25)])


def votes(rng):
    shares = rng.dirichlet(np.full(N_CLASSES, 0.5), size=N_QUERIES)
    return np.array([rng.multinomial(N_TEACHERS, share) for share in shares])


def log_probabilities(counts):
    def integrand(x, j):
        below = ndtr((x - counts) / SIGMA)
        below[j] = np.exp(-(((x - counts[j]) / SIGMA) ** 2) / 2) / (SIGMA * np.sqrt(2 * np.pi))
        return below.prod()

    low, high = counts.min() - 10 * SIGMA, counts.max() + 10 * SIGMA
    integral = [
        quad(integrand, low, high, args=(j,), epsabs=0.0, epsrel=1e-10, limit=200)
        for j in range(N_CLASSES)
    ]
    return np.log([value for value, _ in integral])


def one_query(counts):
    p = log_probabilities(counts)
    worst = np.zeros(ORDERS.size)
    for a, b in itertools.permutations(range(N_CLASSES), 2):
        if counts[a] > 0:
            moved = counts.copy()
            moved[a] -= 1
            moved[b] += 1
            p2 = log_probabilities(moved)
            for x, y in ((p, p2), (p2, p)):
                power = np.outer(ORDERS, x) + np.outer(1.0 - ORDERS, y)
                worst = np.maximum(worst, np.logaddexp.reduce(power, axis=1) / (ORDERS - 1.0))
    return worst


def check(counts):
    ours = exact_local_rdp(counts, SIGMA, ORDERS).reveal_to_curator()
    plain = np.array([one_query(row) for row in counts])
    assert np.allclose(ours, plain, rtol=1e-4, atol=1e-9)  # quad stops at 1e-10 of a probability


if __name__ == "__main__":
    every = votes(np.random.default_rng(SEED))
    few = every[:N_PLAIN]
    all_s = [round(seconds(lambda: exact_local_rdp(every, SIGMA, ORDERS)), 4) for _ in range(5)]
    run(
        "exact_local",
        ours=lambda: exact_local_rdp(few, SIGMA, ORDERS),
        plain=lambda: [one_query(row) for row in few],
        check=lambda: check(few),
        sizes={
            "queries": N_PLAIN,
            "classes": N_CLASSES,
            "orders": ORDERS.size,
            "sigma": SIGMA,
            "ours_all_queries": N_QUERIES,
            "ours_all_s": all_s,
        },
        repeats=2,
        seed=SEED,
        target="1000 queries under 3 s on one core",
    )
