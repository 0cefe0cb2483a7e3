"""Marks that tests of many modules bear."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest

FAINT = pytest.mark.filterwarnings(
    "ignore:the predicted signal-to-noise", "ignore:.*cannot be told from empty ones"
)
"""What small fits release stands little above their noise, and they say so; not what is tested."""


def some_slow(
    values: Iterable[Any], slow: Collection[str], name: Callable[[Any], str] = str
) -> list[Any]:
    """Return values as parameters, those of these names marked as slow."""
    return [
        pytest.param(value, marks=[pytest.mark.slow] * (name(value) in slow), id=name(value))
        for value in values
    ]
