"""PyTorch, an extra: imported when it is first used, so that nothing else waits for it."""

from __future__ import annotations

import sys
from typing import Any

from evenhand._extras import MissingExtra, OnUse, installed

torch: Any = OnUse("torch", "This", "PyTorch", "torch")


def require_torch(what: str) -> None:
    """Say how to install PyTorch where it is missing."""
    if not installed("torch"):
        raise MissingExtra.of(what, "PyTorch", "torch")


def is_module(given: Any) -> bool:
    """Whether it is a torch module."""
    # Whoever has made a module has imported torch: nobody else waits for it.
    return "torch" in sys.modules and isinstance(given, torch.nn.Module)
