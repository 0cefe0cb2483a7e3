"""What a part needs beside the core: said in one line where it is not installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


class MissingExtra(ImportError):
    """A package that an extra brings is not installed."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> MissingExtra:
        """Say what needs which package, and how to install it."""
        return cls(f'{what} needs {package}. Install it with: pip install "evenhand[{extra}]"')


class OnUse:
    """Stands for a module that an extra brings: imported when it is first used.

    Nothing waits for it before, and what needs it says so where it is not installed.

    Parameters
    ----------
    module : str
    words : tuple of (str, str, str)
        What needs it, what it is called, and the extra: as ``MissingExtra.of`` takes them.
    """

    def __init__(self, module: str, *words: str) -> None:
        self._module, self._words = module, words

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what inspects modules asks for these, and needs no import
            raise AttributeError(name)
        try:
            module = import_module(self._module)
        except ModuleNotFoundError:
            raise MissingExtra.of(*self._words) from None
        value = getattr(module, name)
        setattr(self, name, value)  # what was looked up once is kept
        return value


def installed(package: str) -> bool:
    """Whether a package can be imported, also where somebody forbids it."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
