"""Noise and thresholds chosen from public numbers alone, before any teacher is trained."""

from __future__ import annotations

import math
from typing import Final

from evenhand import _checks
from evenhand.privacy import (
    Budget,
    BudgetExceeded,
    GNMax,
    Ledger,
    NoisyHistogram,
    epsilon_from_mu,
)
from evenhand.voting import Mechanism, stages

ANSWERS: Final = ("labels", "shares")
"""What is released about a public row: a noisy winner, or the noisy histogram."""

LARGEST_NOISE_SHARE: Final = 0.4
"""Largest default noise per teacher; ``benchmarks/default_mechanism.py`` compares shares."""


def choose_mechanism(
    given: Mechanism | NoisyHistogram | None,
    answers: str,
    ledger: Ledger,
    *,
    n_teachers: int,
    n_queries: int,
    n_classes: int,
) -> Mechanism | NoisyHistogram:
    """Return the mechanism to use, and refuse one that the ledger cannot pay for.

    Raises
    ------
    ValueError
        If ``answers`` is unknown, or ``given`` releases something else.
    BudgetExceeded
        If the budget does not cover one label, or the shares of all rows.
    """
    _checks.one_of("answers", answers, ANSWERS)
    if given is not None and isinstance(given, NoisyHistogram) != (answers == "shares"):
        raise ValueError(
            f"mechanism={given!r} does not release {answers}. Use GNMax, ConfidentGNMax or LNMax "
            f"for answers='labels', NoisyHistogram for answers='shares', or leave it out."
        )
    if answers == "shares":
        histogram = (
            given
            if isinstance(given, NoisyHistogram)
            else default_histogram(ledger, n_queries=n_queries, n_classes=n_classes)
        )
        if ledger.affordable(histogram) < n_queries:
            raise BudgetExceeded(
                f"{histogram!r} on all {n_queries} public rows costs more than the budget has left "
                f"(it pays for {ledger.affordable(histogram)}). Raise epsilon or sigma, or leave "
                f"mechanism=None for the sigma that fits."
            )
        return histogram
    mechanism = given or default_mechanism(
        ledger.budget, n_teachers=n_teachers, n_queries=n_queries
    )
    assert not isinstance(mechanism, NoisyHistogram)
    require_one_answer(mechanism, ledger, n_teachers=n_teachers, chosen_by_default=given is None)
    return mechanism


def default_histogram(ledger: Ledger, *, n_queries: int, n_classes: int) -> NoisyHistogram:
    """Return the noisy histogram that spends what is left on all rows, each asked once.

    ``sigma = sqrt(n_queries / mu^2)`` for two classes and ``sqrt(2)`` times that for more. How many
    rows are asked hardly matters: the noise of each grows with their number.
    """
    left = max(ledger.remaining, 1e-300)
    sigma = math.sqrt((1.0 if n_classes == 2 else 2.0) * n_queries / left)
    # Discrete noise costs a little more than 1 / sigma**2: widen until all rows fit.
    while ledger.affordable(wide := NoisyHistogram(sigma=sigma, n_classes=n_classes)) < n_queries:
        sigma *= math.sqrt(wide.mu_squared(ledger.noise) * n_queries / left) * (1 + 1e-9)
    return wide


def default_mechanism(budget: Budget, *, n_teachers: int, n_queries: int) -> GNMax:
    """Return the noisy maximum that this package uses where the user names none.

    All public rows are asked if the noise that this needs stays below 0.4 times the number of
    teachers; otherwise the noise is that much, and the budget ends the asking earlier:
    ``sigma = min(sqrt(2 n_queries) / mu, 0.4 n_teachers)``. There is no noisy threshold: measured
    on Adult (``benchmarks/default_mechanism.py``), what a threshold costs is better spent on
    further answers, because a regularised student averages the noise of many labels.

    Parameters
    ----------
    budget : Budget
        What may be spent.
    n_teachers, n_queries : int
        Number of teachers and of public rows. Both public.

    Examples
    --------
    >>> default_mechanism(Budget(epsilon=3.0, delta=1e-5), n_teachers=250, n_queries=6783)
    GNMax(sigma=100.0)
    """
    wanted = math.sqrt(2.0 * max(1, n_queries)) / budget.mu
    return GNMax(sigma=min(wanted, LARGEST_NOISE_SHARE * n_teachers))


def require_one_answer(
    mechanism: Mechanism, ledger: Ledger, *, n_teachers: int, chosen_by_default: bool
) -> None:
    """Refuse a budget that does not cover one answer, before any teacher is trained.

    Raises
    ------
    BudgetExceeded
        With the epsilon, and for the default noise the number of teachers, that would do.
    """
    check, answer = stages(mechanism)
    uses = (answer,) if check is None else (check, answer)
    if ledger.affordable(*uses):
        return
    cost = sum(use.mu_squared(ledger.noise) for use in uses)
    delta = ledger.budget.delta
    enough = epsilon_from_mu(math.sqrt(cost + ledger.spent), delta)
    way_out = f"Raise epsilon to at least {math.ceil(enough * 1000) / 1000:g}"
    if chosen_by_default:
        left = max(ledger.remaining, 1e-12)
        teachers = math.ceil(math.sqrt(2.0 / left) / LARGEST_NOISE_SHARE) + 1
        way_out += f", or use at least {teachers} teachers (now {n_teachers})"
    else:
        way_out += ", or raise sigma"
    raise BudgetExceeded(
        f"{mechanism!r} costs more for one answer than the budget has left: epsilon="
        f"{ledger.budget.epsilon:g} at delta={delta:g} affords "
        f"mu={math.sqrt(ledger.remaining):.3g}, one answer needs mu={math.sqrt(cost):.3g}. "
        f"{way_out}."
    )
