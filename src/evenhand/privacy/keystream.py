"""Random words that nobody can predict, however many of them were seen: an AES keystream.

The state of a statistical generator (NumPy's PCG64) can be read off its output: who knows all
records but one knows the noise in every published sum, and from it all noise before and after.
Here the words are AES-256 in counter mode under a key from the operating system; telling them from
fair coins is telling AES from a random permutation.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.special import ndtri

from evenhand.typing import FloatArray, IntArray

_BLOCK: Final = 1 << 17  # words; a megabyte stays in the cache
_ZEROS: Final = bytes(8 * _BLOCK)


class Keystream:
    """A stream of words under a key of its own, safe to share between threads.

    A copy, a pickle and a forked process begin another stream: two that go on alike would draw the
    same noise twice.

    Examples
    --------
    >>> stream = Keystream()
    >>> stream.words(3).shape, bool((stream.words(4) == stream.words(4)).all())
    ((3,), False)
    """

    def __init__(self) -> None:
        self._begin()

    def words(self, n: int) -> IntArray:
        """Return ``n`` independent whole numbers, uniform on [0, 2**63)."""
        return (self._bits(n) >> np.uint64(1)).astype(np.int64)

    def gaussian(self, n: int) -> FloatArray:
        """Return ``n`` draws of N(0, 1), by the inverse of its distribution function."""
        return _signed(self._bits(n), ndtri)

    def laplace(self, n: int) -> FloatArray:
        """Return ``n`` draws of Laplace noise of scale 1, by the inverse as well."""
        return _signed(self._bits(n), lambda tail: np.log(2.0 * tail))

    def __reduce__(self) -> tuple[type[Keystream], tuple[()]]:
        return Keystream, ()

    def _begin(self) -> None:
        key = secrets.token_bytes(32)
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._pid, self._lock = os.getpid(), threading.Lock()

    def _bits(self, n: int) -> np.ndarray:
        if os.getpid() != self._pid:
            self._begin()
        out = np.empty(n, dtype=np.uint64)
        with self._lock:
            for start in range(0, n, _BLOCK):
                size = min(_BLOCK, n - start)
                block = self._cipher.update(_ZEROS[: 8 * size])
                out[start : start + size] = np.frombuffer(block, dtype=np.uint64)
        return out


def uniform(words: IntArray) -> FloatArray:
    """Return words on [0, 2**63) as numbers on (0, 1], whose small ones are not rounded to 0."""
    return (words.astype(np.float64) + 0.5) * 2.0**-63


def _signed(bits: np.ndarray, quantile: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Draw by the lower half of a symmetric distribution, and a sign from the last bit.

    63 bits choose the tail probability in (0, 1/2]. A double near 0 keeps all of them, so tails go
    down to 2**-65, where N(0, 1) is at -9.1; a draw beyond has a probability of 2**-63.
    """
    tail = 0.5 * uniform((bits >> np.uint64(1)).astype(np.int64))
    sign = 1.0 - 2.0 * (bits & np.uint64(1)).astype(np.float64)
    drawn: FloatArray = quantile(tail) * sign
    return drawn
