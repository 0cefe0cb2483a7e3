"""Theorem 6 for 1000 queries, 10 classes, 50 orders: all at once, or query by query.

Two plain versions, each the paper's formula in a Python loop over the queries: one takes the orders
one by one in plain numbers, the other all orders of a query at once in NumPy.
"""

import math

import numpy as np
from _harness import run
from scipy.special import log_ndtr

from evenhand.privacy.local.cost import theorem6

SEED, N_QUERIES, N_CLASSES, N_TEACHERS, SIGMA = 0, 1000, 10, 250, 20.0
N_CALLS = 10  # a repeat: one call alone is over before the caches are warm
ORDERS = np.concatenate([np.linspace(1.1, 10.0, 25), np.geomspace(11.0, 200.0, 25)])


def votes(rng):
    shares = rng.dirichlet(np.full(N_CLASSES, 0.2), size=N_QUERIES)
    return np.array([rng.multinomial(N_TEACHERS, share) for share in shares])


def one_query(counts):
    worst = ORDERS / SIGMA**2
    top = counts.argmax()
    gaps = np.delete(counts[top] - counts, top)
    # In log space: erfc itself is 0 where the winner is sure.
    log_q = np.logaddexp.reduce(log_ndtr(gaps / (-SIGMA * math.sqrt(2.0))))
    log_q = min(log_q, math.log1p(-1.0 / N_CLASSES))
    mu2 = SIGMA * math.sqrt(-log_q)
    mu1 = mu2 + 1.0
    eps1, eps2 = mu1 / SIGMA**2, mu2 / SIGMA**2
    if mu2 <= 1.0 or log_q + eps2 >= 0.0:
        return worst
    if log_q > (mu2 - 1.0) * eps2 - mu2 * math.log(mu1 / (mu1 - 1.0) * mu2 / (mu2 - 1.0)):
        return worst
    log_1_q = np.log1p(-np.exp(log_q))
    log_a = log_1_q - np.log1p(-np.exp((log_q + eps2) * (1.0 - 1.0 / mu2)))
    log_b = eps1 - log_q / (mu1 - 1.0)
    t = ORDERS - 1.0
    bound = np.logaddexp(log_1_q + t * log_a, log_q + t * log_b) / t
    return np.where(mu1 >= ORDERS, np.minimum(bound, worst), worst)


def plain(counts):
    return np.array([one_query(row) for row in counts])


def one_query_in_plain_numbers(counts):
    top = max(range(N_CLASSES), key=counts.__getitem__)
    lost = [
        log_ndtr((counts[top] - n) / (-SIGMA * math.sqrt(2.0)))
        for k, n in enumerate(counts)
        if k != top
    ]
    largest = max(lost)
    log_q = largest + math.log(sum(math.exp(x - largest) for x in lost))
    log_q = min(log_q, math.log1p(-1.0 / N_CLASSES))
    mu2 = SIGMA * math.sqrt(-log_q)
    mu1 = mu2 + 1.0
    eps1, eps2 = mu1 / SIGMA**2, mu2 / SIGMA**2
    applies = mu2 > 1.0 and log_q + eps2 < 0.0
    if applies:
        limit = (mu2 - 1.0) * eps2 - mu2 * math.log(mu1 / (mu1 - 1.0) * mu2 / (mu2 - 1.0))
        applies = log_q <= limit
    if applies:
        log_1_q = math.log1p(-math.exp(log_q))
        log_a = log_1_q - math.log1p(-math.exp((log_q + eps2) * (1.0 - 1.0 / mu2)))
        log_b = eps1 - log_q / (mu1 - 1.0)
    out = []
    for order in ORDERS.tolist():
        worst = order / SIGMA**2
        if applies and mu1 >= order:
            t = order - 1.0
            x, y = log_1_q + t * log_a, log_q + t * log_b
            bound = (max(x, y) + math.log1p(math.exp(-abs(x - y)))) / t
            worst = min(worst, bound)
        out.append(worst)
    return out


def plain_numbers(counts):
    return np.array([one_query_in_plain_numbers(row) for row in counts.tolist()])


def repeat(job):
    for _ in range(N_CALLS):
        job()


def check(counts):
    ours = theorem6(counts, SIGMA, ORDERS).reveal_to_curator()
    for loop in (plain, plain_numbers):
        assert np.allclose(ours, loop(counts), rtol=1e-9, atol=1e-300)
    assert (ours < ORDERS / SIGMA**2).any(axis=1).mean() > 0.2  # the theorem does apply


if __name__ == "__main__":
    counts = votes(np.random.default_rng(SEED))
    loops = {"order by order in plain numbers": plain_numbers, "all orders at once": plain}
    for name, loop in loops.items():
        run(
            f"theorem6, plain: query by query, {name}",
            ours=lambda: repeat(lambda: theorem6(counts, SIGMA, ORDERS)),
            plain=lambda loop=loop: repeat(lambda: loop(counts)),
            check=lambda: check(counts),
            sizes={
                "queries": N_QUERIES,
                "classes": N_CLASSES,
                "orders": ORDERS.size,
                "calls": N_CALLS,
            },
            repeats=5,
            seed=SEED,
            target="at least 40 times a Python loop over the queries",
        )
