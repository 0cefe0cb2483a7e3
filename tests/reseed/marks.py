"""Marks that tests of many modules bear."""

import pytest

FAINT = pytest.mark.filterwarnings(
    "ignore:the predicted signal-to-noise", "ignore:.*cannot be told from empty ones"
)
"""What small fits release stands little above their noise, and they say so; not what is tested."""
