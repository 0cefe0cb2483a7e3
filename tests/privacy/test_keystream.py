"""The keystream: its words by a second derivation, its draws at chosen words, its copies."""

import ast
import copy
import inspect
import os
import pickle
import threading
from pathlib import Path

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from runs import FALSE_ALARM
from scipy import stats

import evenhand.privacy
from evenhand.privacy import keystream
from evenhand.privacy.keystream import Keystream, uniform

ROOT = Path(inspect.getfile(evenhand.privacy)).parent


def test_words_are_the_counters_enciphered_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # A second derivation: AES of each counter by itself, in the mode without chaining.
    monkeypatch.setattr(keystream.secrets, "token_bytes", lambda n: bytes(range(n)))
    monkeypatch.setattr(keystream, "_BLOCK", 6)  # blocks of words do not show
    stream = Keystream()
    found = np.concatenate([stream.words(4), stream.words(16)])
    cipher = Cipher(algorithms.AES(bytes(range(32))), modes.ECB()).encryptor()
    plain = b"".join(i.to_bytes(16, "big") for i in range(10))
    expected = np.frombuffer(cipher.update(plain), dtype=np.uint64) >> np.uint64(1)
    assert np.array_equal(found, expected.astype(np.int64))


@pytest.mark.parametrize("word", [0, 1, 2, 3, 2**20, 2**40 + 7, 2**62, 2**63 - 1])
@pytest.mark.parametrize("sign", [0, 1])
def test_draws_are_the_quantiles_of_their_words_to_the_far_tail(word: int, sign: int) -> None:
    stream = Keystream()
    bits = np.array([2 * word + sign], dtype=np.uint64)
    stream._bits = lambda n: bits  # type: ignore[method-assign]
    with mpmath.workdps(40):
        tail = (mpmath.mpf(word) + 0.5) / mpmath.mpf(2) ** 64
        # On the scale where tails are seen: the probability of what was drawn.
        (gaussian,), (laplace,) = stream.gaussian(1), stream.laplace(1)
        assert mpmath.almosteq(mpmath.ncdf(-abs(gaussian)), tail, rel_eps=1e-13)
        assert mpmath.almosteq(mpmath.exp(-abs(laplace)) / 2, tail, rel_eps=1e-13)
    for drawn in (gaussian, laplace):
        assert drawn == 0 or (drawn > 0) == bool(sign)


def test_uniform_numbers_never_reach_zero() -> None:
    assert uniform(np.array([0, 2**63 - 1])).tolist() == [2.0**-64, 1.0]


@pytest.mark.parametrize("n_bits", [1, 8])
def test_bits_are_even_and_independent_of_their_neighbors(n_bits: int) -> None:
    words = Keystream().words(200_000)
    for shift in range(0, 63 - n_bits + 1, n_bits):
        cells = np.bincount((words >> shift) & (2**n_bits - 1), minlength=2**n_bits)
        assert stats.chisquare(cells).pvalue * 63 > FALSE_ALARM
    low = (words & 1).astype(float)
    limit = stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(words.size - 1)
    assert abs(np.corrcoef(low[:-1], low[1:])[0, 1]) < limit


def _words_of(stream: Keystream) -> list[int]:
    return [int(word) for word in stream.words(4)]


def test_a_copy_a_pickle_and_a_fork_draw_words_of_their_own() -> None:
    stream = Keystream()
    others = [stream, copy.copy(stream), copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))]
    drawn = list(map(_words_of, others))
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, np.array(_words_of(stream)).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    drawn += [np.frombuffer(os.read(read, 32), dtype=np.int64).tolist(), _words_of(stream)]
    assert len({word for words in drawn for word in words}) == 4 * len(drawn)


def test_threads_share_a_stream_and_no_word() -> None:
    stream, drawn = Keystream(), []

    def draw() -> None:
        drawn.extend(stream.words(1).item() for _ in range(500))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 4000


def test_no_noise_that_protects_comes_from_a_generator_whose_state_can_be_read() -> None:
    # Where privacy/ makes a NumPy generator: the seed of the test mode, and what follows from it.
    may = {"SeededNoise", "_repeatable_words"}
    for file in ROOT.rglob("*.py"):
        for top in ast.parse(file.read_text()).body:
            names = {n.attr for n in ast.walk(top) if isinstance(n, ast.Attribute)}
            if names & {"default_rng", "PCG64", "RandomState"}:
                assert getattr(top, "name", None) in may, f"{file.name}: {ast.unparse(top)[:80]}"
