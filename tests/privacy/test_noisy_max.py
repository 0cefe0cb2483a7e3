import itertools
import math
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from dp_accounting import dp_event, rdp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

from evenhand.privacy import (
    ConfidentGNMax,
    DiscreteNoise,
    FloatNoise,
    GNMax,
    LNMax,
    SeededNoise,
)
from evenhand.privacy.gaussian import delta_from_mu
from evenhand.privacy.noise import Noise
from evenhand.privacy.noisy_max import NoisyThreshold
from evenhand.privacy.renyi import ORDERS

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)


def histograms(n_teachers: int, n_classes: int) -> Iterator[tuple[int, ...]]:
    for bars in itertools.combinations(range(n_teachers + n_classes - 1), n_classes - 1):
        edges = (-1, *bars, n_teachers + n_classes - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(edges))


def neighbors(votes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every histogram after one teacher moves its vote."""
    for a, b in itertools.permutations(range(len(votes)), 2):
        if votes[a]:
            moved = list(votes)
            moved[a] -= 1
            moved[b] += 1
            yield tuple(moved)


def pmf(kind: str, scale: float) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    weight = np.exp(-(k**2) / (2 * scale**2)) if kind == "gaussian" else np.exp(-np.abs(k) / scale)
    return k, weight / weight.sum()


def winner_probabilities(votes: tuple[int, ...], kind: str, scale: float) -> np.ndarray:
    """Exact law of the first largest noisy count, by summing over the winner's noise."""
    k, p = pmf(kind, scale)
    below = np.cumsum(p)  # P(X <= k)
    at_most = lambda x: np.where(x < k[0], 0.0, below[np.clip(x - k[0], 0, k.size - 1)])  # noqa: E731
    return np.array(
        [
            (
                p
                * np.prod([at_most(k + n - m - (j < i)) for j, m in enumerate(votes) if j != i], 0)
            ).sum()
            for i, n in enumerate(votes)
        ]
    )


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def holds(pairs: list[tuple[np.ndarray, np.ndarray]], mu_squared: float) -> bool:
    """Is every pair of output laws within mu-GDP at every epsilon tried?"""
    return all(
        hockey_stick(p, q, epsilon) <= delta_from_mu(math.sqrt(mu_squared), epsilon) + 1e-12
        for p, q in pairs
        for epsilon in EPSILONS
    )


@pytest.mark.parametrize("scale", [0.6, 1.0, 3.0])
@pytest.mark.parametrize(("n_teachers", "n_classes"), [(9, 2), (4, 3)])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_noisy_max_costs_no_more_than_is_charged_for_every_vote_that_moves(
    kind: str, n_teachers: int, n_classes: int, scale: float
) -> None:
    # Brute force over the definition of differential privacy, with the exact integer law.
    mechanism = GNMax(sigma=scale) if kind == "gaussian" else LNMax(scale=scale)
    law = {v: winner_probabilities(v, kind, scale) for v in histograms(n_teachers, n_classes)}
    pairs = [(law[v], law[w]) for v in law for w in neighbors(v)]
    charged = mechanism.mu_squared(DiscreteNoise())
    assert holds(pairs, charged)
    # Half the noise costs four times as much; a charge of a quarter is seen to be too small.
    assert not holds(pairs, charged / 4)


def test_the_exact_law_of_the_winner_sums_to_one() -> None:
    for votes in histograms(4, 3):
        assert winner_probabilities(votes, "gaussian", 1.3).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("sigma", [0.6, 1.0, 3.0])
def test_a_threshold_costs_no_more_than_is_charged_for_every_mask_and_vote(sigma: float) -> None:
    k, p = pmf("gaussian", sigma)
    check = NoisyThreshold(threshold=3.0, sigma=sigma)
    masks = [m for m in itertools.product([False, True], repeat=3) if any(m)]

    def law(votes: tuple[int, ...], mask: tuple[bool, ...]) -> np.ndarray:
        passed = check.decide(np.tile(votes, (k.size, 1)), k, np.array(mask))
        return np.array([p[passed].sum(), p[~passed].sum()])

    pairs = [
        (law(v, mask), law(w, mask))
        for v in histograms(4, 3)
        for w in neighbors(v)
        for mask in masks
    ]
    charged = check.mu_squared(DiscreteNoise())
    assert holds(pairs, charged)
    assert not holds(pairs, charged / 4)


def test_the_largest_admissible_count_moves_by_at_most_one_vote() -> None:
    # All histograms of 5 teachers and 3 classes, all moved votes, all masks.
    noiseless = lambda votes, mask: max(n for n, m in zip(votes, mask, strict=True) if m)  # noqa: E731
    moves = set()
    for votes in histograms(5, 3):
        for moved in neighbors(votes):
            for mask in itertools.product([False, True], repeat=3):
                if any(mask):
                    moves.add(noiseless(moved, mask) - noiseless(votes, mask))
    assert moves == {-1, 0, 1}


def test_two_counts_move_by_one_vote_each() -> None:
    for votes in histograms(5, 3):
        for moved in neighbors(votes):
            assert np.linalg.norm(np.subtract(moved, votes)) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("sigma", [1.0, 5.0])
def test_the_renyi_cost_bounds_the_exact_divergence_of_every_neighbor(sigma: float) -> None:
    # Two classes, 6 teachers, real-valued noise; the threshold at its every height.
    answer, check = GNMax(sigma=sigma).cost(1).rdp, NoisyThreshold(threshold=0, sigma=sigma).cost(1)
    orders = ORDERS[ORDERS < 200]

    def divergence(p: float, q: float) -> np.ndarray:
        terms = [
            orders * math.log(a) + (1 - orders) * math.log(b) for a, b in ((p, q), (1 - p, 1 - q))
        ]
        return np.logaddexp(*terms) / (orders - 1)

    for n in range(6):
        p, q = (stats.norm.cdf((2 * m - 6) / (sigma * math.sqrt(2))) for m in (n, n + 1))
        for one in (divergence(p, q), divergence(q, p)):
            assert (one <= answer[: orders.size] + 1e-12).all()
        p, q = (stats.norm.sf((3 - m) / sigma) for m in (n, n + 1))
        for one in (divergence(p, q), divergence(q, p)):
            assert (one <= check.rdp[: orders.size] + 1e-12).all()


def test_the_curves_are_those_of_dp_accounting() -> None:
    def theirs(*events: tuple[float, int]) -> float:
        accountant = rdp.RdpAccountant(orders=list(ORDERS))
        for multiplier, n in events:
            accountant.compose(
                dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(multiplier), n)
            )
        return accountant.get_epsilon(1e-5)

    ours = GNMax(sigma=40.0).cost(1000).epsilon(1e-5)
    assert ours == pytest.approx(theirs((40 / math.sqrt(2), 1000)), rel=1e-6)
    two = ConfidentGNMax(threshold=200.0, sigma_check=150.0, sigma=40.0)
    ours = two.cost(n_checks=1000, n_answers=500).epsilon(1e-5)
    assert ours == pytest.approx(theirs((150.0, 1000), (40 / math.sqrt(2), 500)), rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_laplace_curve_is_twice_the_divergence_by_quadrature(scale: float) -> None:
    curve = LNMax(scale=scale).cost(1)
    for i in range(0, ORDERS.size, 40):
        a = ORDERS[i]
        if a > 60:
            continue
        log_ratio = lambda x, a=a: math.exp(  # noqa: E731
            a * stats.laplace.logpdf(x, 0, scale) + (1 - a) * stats.laplace.logpdf(x, 1, scale)
        )
        total = sum(
            integrate.quad(log_ratio, low, high)[0]
            for low, high in ((-60 * scale, 0), (0, 1), (1, 60 * scale))
        )
        assert curve.rdp[i] == pytest.approx(2 * math.log(total) / (a - 1), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("noise", [DiscreteNoise(), FloatNoise()], ids=["discrete", "float"])
def test_the_price_is_that_of_the_counts_that_move(noise: Noise) -> None:
    assert GNMax(sigma=7.0).mu_squared(noise) == 2 * noise.gaussian_mu(7.0) ** 2
    assert LNMax(scale=7.0).mu_squared(noise) == 2 * noise.laplace_mu(7.0) ** 2
    assert NoisyThreshold(threshold=5, sigma=7.0).mu_squared(noise) == noise.gaussian_mu(7.0) ** 2
    both = ConfidentGNMax(threshold=5, sigma_check=9.0, sigma=7.0)
    assert both.mu_squared(noise) == pytest.approx(
        noise.gaussian_mu(9.0) ** 2 + 2 * noise.gaussian_mu(7.0) ** 2
    )


votes_and_noise = st.integers(2, 5).flatmap(
    lambda k: st.tuples(
        arrays(np.int64, (6, k), elements=st.integers(0, 50)),
        arrays(np.int64, (6, k), elements=st.integers(-20, 20)),
        st.permutations(range(k)),
    )
)


@given(votes_and_noise)
def test_renaming_classes_renames_the_answer(case) -> None:
    votes, drawn, order = case
    votes = votes * 1000 + np.arange(votes.shape[1]) * 50  # no ties
    answer = GNMax(sigma=1.0).decide(votes, drawn)
    renamed = GNMax(sigma=1.0).decide(votes[:, order], drawn[:, order])
    assert (np.array(order)[renamed] == answer).all()


@given(votes_and_noise, st.data())
def test_decisions_are_those_of_the_definition(case, data) -> None:
    votes, drawn, _ = case
    mask = data.draw(arrays(np.bool_, votes.shape))
    mask[:, 0] |= ~mask.any(axis=1)
    expected = []
    for row, noise in zip(votes, drawn, strict=True):
        noisy = [n + z for n, z in zip(row, noise, strict=True)]
        expected.append(noisy.index(max(noisy)))
    assert GNMax(sigma=1.0).decide(votes, drawn).tolist() == expected
    assert LNMax(scale=1.0).decide(votes, drawn).tolist() == expected
    rows = list(zip(votes.tolist(), drawn.tolist(), strict=True))
    assert [GNMax(sigma=1.0).decide_row(row, noise) for row, noise in rows] == expected
    assert [LNMax(scale=1.0).decide_row(row, noise) for row, noise in rows] == expected
    passed = NoisyThreshold(threshold=25, sigma=1.0).decide(votes, drawn[:, 0], mask)
    check = NoisyThreshold(threshold=25, sigma=1.0)
    assert passed.tolist() == [
        check.decide_row(row, noise[0], np.flatnonzero(open_).tolist())
        for (row, noise), open_ in zip(rows, mask, strict=True)
    ]
    assert check.decide(votes, drawn[:, 0]).tolist() == [
        check.decide_row(row, noise[0]) for row, noise in rows
    ]
    assert passed.tolist() == [
        max(n for n, m in zip(row, open_, strict=True) if m) + noise >= 25
        for row, open_, noise in zip(votes, mask, drawn[:, 0], strict=True)
    ]


def test_a_tie_goes_to_the_first_class() -> None:
    votes, none = np.array([[5, 5, 3], [1, 7, 7]]), np.zeros((2, 3), dtype=np.int64)
    assert GNMax(sigma=1.0).decide(votes, none).tolist() == [0, 1]


def test_all_classes_admissible_is_the_plain_threshold() -> None:
    check = NoisyThreshold(threshold=5, sigma=1.0)
    votes, drawn = np.array([[5, 2], [2, 2], [0, 9]]), np.array([0, 1, -3])
    assert (check.decide(votes, drawn) == check.decide(votes, drawn, np.ones(2, bool))).all()
    assert check.decide(votes, drawn).tolist() == [True, False, True]


def test_noise_has_the_shape_of_what_is_noised() -> None:
    noise = SeededNoise(0)
    assert GNMax(sigma=2.0).draw_noise(noise, 7, 3).shape == (7, 3)
    assert LNMax(scale=2.0).draw_noise(noise, 7, 3).shape == (7, 3)
    assert NoisyThreshold(threshold=2.0, sigma=2.0).draw_noise(noise, 7, 3).shape == (7,)


def test_a_mechanism_is_a_value() -> None:
    for one, other in (
        (GNMax(sigma=3), GNMax(sigma=3.0)),
        (LNMax(scale=3), LNMax(scale=3.0)),
        (NoisyThreshold(threshold=1, sigma=3), NoisyThreshold(threshold=1.0, sigma=3.0)),
    ):
        assert one == other
        assert hash(one) == hash(other)
        assert repr(one) == repr(other)
        assert pickle.loads(pickle.dumps(one)) == other
    assert GNMax(sigma=3.0) != GNMax(sigma=4.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: GNMax(sigma=s),
        lambda s: LNMax(scale=s),
        lambda s: NoisyThreshold(threshold=1.0, sigma=s),
        lambda s: ConfidentGNMax(threshold=1.0, sigma_check=s, sigma=1.0),
        lambda s: ConfidentGNMax(threshold=1.0, sigma_check=1.0, sigma=s),
    ],
)
@pytest.mark.parametrize("scale", [0.0, -2.0, math.nan, math.inf])
def test_a_mechanism_without_noise_is_refused(make, scale: float) -> None:
    with pytest.raises(
        ValueError, match=r"must be finite and > 0.*Zero noise would release the votes"
    ):
        make(scale)


@pytest.mark.parametrize("threshold", [math.nan, math.inf])
def test_a_threshold_that_no_count_can_meet_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be finite"):
        NoisyThreshold(threshold=threshold, sigma=1.0)


def test_counts_that_are_not_votes_are_refused() -> None:
    answer, drawn = GNMax(sigma=1.0), np.zeros((1, 2), dtype=np.int64)
    with pytest.raises(TypeError, match="whole numbers of votes, got dtype float64"):
        answer.decide([[1.5, 2.0]], drawn)
    with pytest.raises(ValueError, match=r"counts must have shape \(n, n_classes\)"):
        answer.decide([1, 2], drawn)
    with pytest.raises(ValueError, match=r"between 0 and 2.*\(not shown\) to \(not shown\)\.$"):
        answer.decide([[-1, 2]], drawn)
    with pytest.raises(ValueError, match="between 0 and 2"):
        answer.decide([[2**60, 2]], drawn)
    with pytest.raises(ValueError, match=r"drawn must have the shape of counts \(1, 2\)"):
        answer.decide([[1, 2]], drawn[:, :1])
    with pytest.raises(ValueError, match="one number per row"):
        NoisyThreshold(threshold=1.0, sigma=1.0).decide([[1, 2]], drawn)


def test_a_mask_that_is_no_mask_is_refused() -> None:
    check, drawn = NoisyThreshold(threshold=1.0, sigma=1.0), np.zeros(2, dtype=np.int64)
    votes = [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="admissible must be boolean"):
        check.decide(votes, drawn, [0, 1])
    with pytest.raises(ValueError, match="admissible must be boolean"):
        check.decide(votes, drawn, [True, False, True])
    with pytest.raises(ValueError, match="admissible leaves no class in row 2 "):
        check.decide(votes, drawn, [[True, False], [False, False]])
