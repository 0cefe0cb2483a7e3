"""PyTorch, an extra: imported when it is first used, so that nothing else waits for it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from evenhand._extras import MissingExtra, installed


class _Torch:
    """Stands for the package; what was looked up once is kept."""

    def __getattr__(self, name: str) -> Any:
        try:
            module = import_module("torch")
        except ModuleNotFoundError:
            raise MissingExtra.of("This", "PyTorch", "torch") from None
        value = getattr(module, name)
        setattr(self, name, value)
        return value


torch: Any = _Torch()


def require_torch(what: str) -> None:
    """Say how to install PyTorch where it is missing."""
    if not installed("torch"):
        raise MissingExtra.of(what, "PyTorch", "torch")


def is_module(given: Any) -> bool:
    """Whether it is a torch module."""
    # Whoever has made a module has imported torch: nobody else waits for it.
    return "torch" in sys.modules and isinstance(given, torch.nn.Module)
