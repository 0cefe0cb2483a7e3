"""The two-stage cost bounds the exact divergence of every neighbor; the expected cost does not."""

import numpy as np
import pytest
from scipy.stats import norm

from evenhand.privacy import ConfidentGNMax, GNMax
from evenhand.privacy.local import LocalCost, exact_local_rdp
from evenhand.privacy.local.cost import theorem6
from evenhand.privacy.renyi import ORDERS as RENYI_ORDERS
from evenhand.privacy.two_stage import two_stage_rdp

ORDERS = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 32.0])


def outcomes(n1: int, teachers: int, m: ConfidentGNMax) -> np.ndarray:
    """Probabilities of: no answer, class 0, class 1."""
    top = max(n1, teachers - n1)
    passes = norm.cdf((top - m.threshold) / m.sigma_check)
    one = norm.cdf((2 * n1 - teachers) / (m.sigma * np.sqrt(2)))
    return np.array([1 - passes, passes * (1 - one), passes * one])


def exact(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Rényi divergence of two discrete laws at every order."""
    return np.array([np.log((p**a * q ** (1 - a)).sum()) / (a - 1) for a in ORDERS])


@pytest.mark.parametrize("threshold", [3.0, 4.5, 6.0, 8.0])
@pytest.mark.parametrize(("check", "answer"), [(1.0, 1.0), (3.0, 1.5), (2.0, 4.0)])
def test_it_bounds_the_exact_divergence_of_every_neighbor(
    threshold: float, check: float, answer: float
) -> None:
    # Brute force: two classes, 7 teachers, every histogram, every vote that moves, both directions.
    m = ConfidentGNMax(threshold=threshold, sigma_check=check, sigma=answer)
    counts = np.array([[7 - n, n] for n in range(8)])
    bound = two_stage_rdp(counts, m, ORDERS).reveal_to_curator()
    local = exact_local_rdp(counts, answer, ORDERS)
    sharper = two_stage_rdp(counts, m, ORDERS, answer=local).reveal_to_curator()
    assert (sharper <= bound + 1e-12).all()
    for n in range(8):
        for moved in {n - 1, n + 1} & set(range(8)):
            p, q = outcomes(n, 7, m), outcomes(moved, 7, m)
            for one, other in ((p, q), (q, p)):
                assert (exact(one, other) <= sharper[n] + 1e-12).all()


def test_it_never_exceeds_both_stages_in_full() -> None:
    m = ConfidentGNMax(threshold=200.0, sigma_check=150.0, sigma=40.0)
    counts = np.array([[250 - n, n] for n in range(0, 251, 5)])
    bound = two_stage_rdp(counts, m).reveal_to_curator()
    assert (bound <= m.cost(1, 1).rdp * (1 + 1e-12)).all()


def test_the_expected_cost_is_no_bound() -> None:
    # The check in full plus the probability of an answer times its cost, as the papers plan with.
    m = ConfidentGNMax(threshold=12.0, sigma_check=4.0, sigma=0.7)
    p, q = outcomes(4, 7, m), outcomes(3, 7, m)
    expected = m.check.cost(1).rdp + (1 - p[0]) * m.answer.cost(1).rdp
    at_8 = float(np.interp(8.0, RENYI_ORDERS, expected))  # linear in the order
    found = exact(p, q)[list(ORDERS).index(8.0)]
    assert found > 1.2 * at_8
    assert found <= two_stage_rdp([[3, 4]], m, [8.0]).reveal_to_curator()[0, 0]


def test_it_is_private_and_adds_to_other_costs_of_both_directions() -> None:
    m = ConfidentGNMax(threshold=200.0, sigma_check=150.0, sigma=40.0)
    cost = two_stage_rdp([[240, 10]], m)
    assert (repr(cost), cost.direction) == ("<private>", "both")
    assert isinstance(cost + exact_local_rdp([[240, 10]], 40.0), LocalCost)


def test_an_answer_cost_of_one_direction_or_of_other_queries_is_refused() -> None:
    m = ConfidentGNMax(threshold=200.0, sigma_check=150.0, sigma=40.0)
    for answer in (
        theorem6([[240, 10]], 40.0),
        exact_local_rdp([[240, 10], [1, 2]], 40.0),
        exact_local_rdp([[240, 10]], 40.0, ORDERS),
    ):
        with pytest.raises(ValueError, match="Compute it with exact_local_rdp"):
            two_stage_rdp([[240, 10]], m, answer=answer)


def test_a_check_that_everybody_passes_leaves_the_cost_of_the_answer() -> None:
    m = ConfidentGNMax(threshold=-1e6, sigma_check=1.0, sigma=40.0)
    bound = two_stage_rdp([[240, 10]], m).total().reveal_to_curator()[0]
    assert bound == pytest.approx(GNMax(sigma=40.0).cost(1).rdp)
