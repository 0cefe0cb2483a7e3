"""Draws that a test does not seed come from its name: a failure can be seen again.

A release without a seed draws what the operating system gives, and keys of partitions too. A test
of such a release that is wrong once in fifty draws is wrong in one run of fifty, and nobody can
look at it. Here each test has a stream of its own, which its name and ``--reseed`` begin, behind
the doors where bytes enter the package; noise of OpenDP, which takes no bytes, is drawn from the
same law by inversion. Processes that a test starts draw what the operating system gives.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
import secrets
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from evenhand.estimators import dealing
from evenhand.generators.tables import marginal
from evenhand.privacy import inversion, keystream, noise
from evenhand.teachers import partition
from reseed import VARIABLE

DOORS = (dealing, marginal, keystream, noise, partition)
"""Modules that ask ``secrets`` for bytes of keys or noise."""

BY_TABLE = 256.0
"""Largest scale for which a table of the law is worth its time; beyond it a normal is rounded."""


class Stream:
    """Bytes that a name gives, to this process alone: a fork would draw the same again."""

    def __init__(self, name: str) -> None:
        shift = os.environ.get(VARIABLE, "0")
        self._pid, self._lock = os.getpid(), threading.Lock()
        self.seed = int.from_bytes(hashlib.sha256(f"{name} {shift}".encode()).digest()[:4], "big")
        self._rng = np.random.Generator(np.random.Philox(self.seed))

    def token_bytes(self, n: int = 32) -> bytes:
        """Return n bytes, as ``secrets.token_bytes`` does."""
        if os.getpid() != self._pid:
            return os.urandom(n)
        with self._lock:
            return self._rng.bytes(n)

    def rng(self) -> np.random.Generator:
        """Return a generator for one draw, or for whoever asks for a fresh one."""
        return np.random.Generator(np.random.Philox(int.from_bytes(self.token_bytes(8), "big")))

    def gaussian(self, sigma: float) -> Any:
        """Return a release of discrete Gaussian noise, as OpenDP's measurement is one."""
        if sigma <= BY_TABLE:
            return lambda zeros: inversion.discrete_gaussian(
                sigma, len(zeros), source=self.token_bytes
            )
        return lambda zeros: np.rint(self.rng().normal(0.0, sigma, len(zeros)))

    def laplace(self, scale: float) -> Any:
        """Return a release of discrete Laplace noise: a difference of two geometric numbers."""
        p = -math.expm1(-1.0 / scale)
        return lambda zeros: np.subtract(*self.rng().geometric(p, (2, len(zeros))))


@contextmanager
def drawn_by(name: str) -> Iterator[None]:
    """Draw what nobody seeds from a stream of this name."""
    stream = Stream(name)
    drawn = SimpleNamespace(**{**vars(secrets), "token_bytes": stream.token_bytes})
    np.random.seed(stream.seed)  # noqa: NPY002 - of code that draws so
    random.seed(stream.seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(stream.seed)
    fresh = np.random.default_rng

    def default_rng(seed: Any = None) -> np.random.Generator:
        return stream.rng() if seed is None else fresh(seed)

    source = {**(inversion.discrete_gaussian.__kwdefaults__ or {}), "source": stream.token_bytes}
    with (
        mock.patch.object(np.random, "default_rng", default_rng),
        mock.patch.object(inversion.discrete_gaussian, "__kwdefaults__", source),
        mock.patch.multiple(
            noise, _opendp_gaussian=stream.gaussian, _opendp_laplace=stream.laplace
        ),
    ):
        before = [module.secrets for module in DOORS]
        try:
            for module in DOORS:
                module.secrets = drawn
            yield
        finally:
            for module, own in zip(DOORS, before, strict=True):
                module.secrets = own
