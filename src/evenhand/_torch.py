"""PyTorch, an extra: imported when it is first used, so that nothing else waits for it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


class _Torch:
    """Stands for the package; what was looked up once is kept."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module("torch"), name)
        setattr(self, name, value)
        return value


torch: Any = _Torch()


def require_torch(what: str) -> None:
    """Say how to install PyTorch where it is missing."""
    if find_spec("torch") is None:
        raise ImportError(f'{what} needs PyTorch. Install it with: pip install "evenhand[torch]"')
