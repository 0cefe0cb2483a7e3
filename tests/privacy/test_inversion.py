"""Draws are functions of random words, so they are compared with the definition word by word."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import FALSE_ALARM
from scipy import stats

from evenhand.privacy import DiscreteNoise
from evenhand.privacy.inversion import LARGEST_TABLE, WORD, discrete_gaussian
from evenhand.privacy.noise import InversionNoise

SIGMAS = (0.2, 0.7, 1.0, 3.3, 40.0)


class Words:
    """Random words that were chosen beforehand."""

    def __init__(self, *words: int) -> None:
        self.left = b"".join(word.to_bytes(WORD // 8, "little") for word in words)

    def __call__(self, n: int) -> bytes:
        given, self.left = self.left[:n], self.left[n:]
        assert len(given) == n, "more words were asked for than the value needs"
        return given


@cache
def distribution(sigma: float) -> dict[int, mpmath.mpf]:
    """F, by Jacobi's theta function for the whole and plain sums for the parts."""
    with mpmath.workprec(600):
        s = mpmath.mpf(sigma)
        whole = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * s * s)))
        far = int(40 * sigma) + 40
        found, total = {}, mpmath.mpf(0)
        for k in range(-far, far + 1):
            total += mpmath.exp(-mpmath.mpf(k * k) / (2 * s * s)) / whole
            found[k] = total
        return found


def below(sigma: float, k: int) -> mpmath.mpf:
    return distribution(sigma)[k]


def inverted(sigma: float, words: tuple[int, ...]) -> int | None:
    """The value that all numbers with these leading words give, or None if they give several."""
    bits = WORD * len(words)
    u = 0
    for word in words:
        u = (u << WORD) | word
    with mpmath.workprec(600):
        low, high = mpmath.mpf(u) / mpmath.mpf(2) ** bits, mpmath.mpf(u + 1) / mpmath.mpf(2) ** bits
        k = -int(40 * sigma) - 40
        while below(sigma, k) <= low:
            k += 1
        return k if high <= below(sigma, k) else None


def at_the_edge(sigma: float, k: int) -> int:
    """The first word of F(k): it leaves open whether the value is k or above."""
    with mpmath.workprec(600):
        return int(mpmath.floor(below(sigma, k) * mpmath.mpf(2) ** WORD))


@pytest.mark.parametrize("sigma", [0.7, 3.3])
@pytest.mark.parametrize("k", [-3, -1, 0, 2])
@pytest.mark.parametrize("beside", [-1, 1])
def test_a_word_beside_an_edge_is_settled_by_itself(sigma: float, k: int, beside: int) -> None:
    word = (at_the_edge(sigma, k) + beside,)
    expected = inverted(sigma, word)
    assert expected is not None
    assert discrete_gaussian(sigma, 1, source=Words(*word)).tolist() == [expected]


@pytest.mark.parametrize("sigma", [0.7, 3.3])
@pytest.mark.parametrize("k", [-3, 0, 2])
@pytest.mark.parametrize("second", [0, 1 << 62, 3 << 62, (1 << WORD) - 1])
def test_a_word_at_an_edge_is_settled_by_the_next(sigma: float, k: int, second: int) -> None:
    words = (at_the_edge(sigma, k), second)
    assert inverted(sigma, words[:1]) is None
    expected = inverted(sigma, words)
    assert expected is not None
    assert discrete_gaussian(sigma, 1, source=Words(*words)).tolist() == [expected]


@pytest.mark.parametrize("k", [-3, -1, 0, 2])
@pytest.mark.parametrize("third", [0, (1 << WORD) - 1])
def test_two_words_at_an_edge_are_settled_by_a_third(k: int, third: int) -> None:
    with mpmath.workprec(600):
        both = int(mpmath.floor(below(3.3, k) * mpmath.mpf(2) ** (2 * WORD)))
    words = (both >> WORD, both & ((1 << WORD) - 1), third)
    assert inverted(3.3, words[:2]) is None
    assert discrete_gaussian(3.3, 1, source=Words(*words)).tolist() == [inverted(3.3, words)]


def test_the_words_of_the_last_tails_reach_further_out_than_the_table() -> None:
    # Probabilities below 2^-64: 40 standard deviations would need a word of zeros every time.
    for words in ((0, 1 << 40), ((1 << WORD) - 1, (1 << WORD) - (1 << 40))):
        assert inverted(3.3, words[:1]) is None
        assert discrete_gaussian(3.3, 1, source=Words(*words)).tolist() == [inverted(3.3, words)]
    (far,) = discrete_gaussian(3.3, 1, source=Words(0, 0, 1 << 40)).tolist()
    assert far == inverted(3.3, (0, 0, 1 << 40))
    assert far < -9.5 * 3.3


@given(sigma=st.sampled_from((0.7, 3.3)), word=st.integers(min_value=0, max_value=(1 << WORD) - 1))
def test_a_word_and_its_mirror_image_give_values_of_opposite_sign(sigma: float, word: int) -> None:
    mirror = (1 << WORD) - 1 - word
    tail = (1 << 63) - 1  # for a word at an edge; then its mirror image continues it mirrored
    one = discrete_gaussian(sigma, 1, source=Words(word, tail, tail))
    other = discrete_gaussian(sigma, 1, source=Words(mirror, (1 << WORD) - 1 - tail, tail))
    assert one == -other


@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_table_is_the_distribution_function_to_the_last_bit(sigma: float) -> None:
    # Where the value changes between neighboring words, there F lies: read off by the words.
    for k in (-2, -1, 0, 1, int(3 * sigma)):
        edge = at_the_edge(sigma, k)
        if not 1 <= edge < (1 << WORD) - 1:
            continue
        drawn = discrete_gaussian(sigma, 2, source=Words(edge - 1, edge + 1))
        assert drawn[0] <= k < drawn[1]
        step = Fraction(2, 1 << WORD)
        with mpmath.workprec(600):
            assert abs(below(sigma, k) - mpmath.mpf(edge) / mpmath.mpf(2) ** WORD) <= float(step)


def test_many_draws_are_those_of_opendp_in_distribution() -> None:
    ours = InversionNoise().gaussian(6.0, (15_000,))
    theirs = DiscreteNoise().gaussian(6.0, (15_000,))
    cells = np.arange(-18, 19)
    table = [np.bincount(np.searchsorted(cells, x), minlength=38) for x in (ours, theirs)]
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM
    # The test would see a sigma that is a tenth smaller.
    small = np.bincount(
        np.searchsorted(cells, InversionNoise().gaussian(5.4, (15_000,))), minlength=38
    )
    assert stats.chi2_contingency([small, table[1]]).pvalue < FALSE_ALARM


def test_a_sigma_beyond_the_table_is_drawn_by_opendp_and_refused_here() -> None:
    with pytest.raises(ValueError, match=r"at most 8192 .* got 9000\.0: .* DiscreteNoise"):
        discrete_gaussian(9000.0, 1)
    assert InversionNoise().gaussian(2 * LARGEST_TABLE, (3,)).shape == (3,)
    with pytest.raises(ValueError, match="sigma must be"):
        discrete_gaussian(0.0, 1)


def test_both_exact_samplers_cost_the_same_and_say_who_they_are() -> None:
    ours, theirs = InversionNoise(), DiscreteNoise()
    assert ours.gaussian_mu(7.0) == theirs.gaussian_mu(7.0)
    assert ours.name == "exact discrete noise (inversion)"
    assert theirs.name == "exact discrete noise (OpenDP)"
    assert ours.protects
