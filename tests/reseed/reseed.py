"""Shifts every seed that a test sets: ``pytest --reseed K`` is the same suite on other draws.

A verdict that only one seed gives is worth nothing. The shift sits where all seeds of the package
and its libraries arrive, NumPy's two doors, PyTorch's and Python's, and it is a function of the
seed alone: two runs with the same seed still agree, also in two processes.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import random
from abc import ABCMeta
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

VARIABLE = "EVENHAND_RESEED"
STEP = 1_000_003
"""A prime above every range of seeds that a test walks through: shifted ranges do not meet."""


def shifted(seed: Any, below: int | None = None) -> Any:
    """Return the seed under the present shift; what is no seed, or would be refused, as it is."""
    shift = int(os.environ.get(VARIABLE, "0"))
    if not shift:
        return seed
    if isinstance(seed, Integral) and not isinstance(seed, bool) and seed >= 0:
        moved = int(seed) + shift * STEP
        return moved if below is None or seed >= below else moved % below
    if isinstance(seed, list | tuple | np.ndarray):
        return [*map(int, seed), shift * STEP]
    return seed


def install(shift: int) -> None:
    """Shift all seeds from now on, in this process and in those that it starts."""
    os.environ[VARIABLE] = str(shift)
    here = os.path.dirname(__file__)
    path = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    if here not in path:  # children find sitecustomize.py there
        os.environ["PYTHONPATH"] = os.pathsep.join([here, *path])
    if getattr(np.random.default_rng, "shifts", False):
        return
    np.random.default_rng = _behind(np.random.default_rng)
    # Behind every random_state= of scikit-learn and pandas.
    np.random.RandomState = _shifted_class(np.random.RandomState, below=2**32)
    random.Random = _shifted_class(random.Random)
    random.seed = _behind(random.seed)


def install_torch() -> None:
    """Shift PyTorch's global seed too; it is imported, which a child may not be meant to do."""
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    if not getattr(torch.manual_seed, "shifts", False):
        torch.manual_seed = torch.random.manual_seed = _behind(torch.manual_seed)


@contextmanager
def unshifted() -> Iterator[None]:
    """Take seeds as they are written, for what compares with numbers that were written down."""
    before = os.environ.pop(VARIABLE, None)
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before


def _behind(door: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(door)
    def shifting(seed: Any = None, *rest: Any, **options: Any) -> Any:
        return door(shifted(seed), *rest, **options)

    shifting.shifts = True
    return shifting


def _shifted_class(plain: type, below: int | None = None) -> type:
    """Return a class that is made from a seed, as one that shifts it."""

    class Kind(ABCMeta):  # as of classes that derive from it and are abstract
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, plain)  # those made before, and from pickles

    class Shifting(plain, metaclass=Kind):
        def __init__(self, seed: Any = None) -> None:
            super().__init__(shifted(seed, below))

    return Shifting
