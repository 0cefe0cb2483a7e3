"""What a part needs beside the core: said in one line where it is not installed."""

from __future__ import annotations

from importlib.util import find_spec


class MissingExtra(ImportError):
    """A package that an extra brings is not installed."""

    @classmethod
    def of(cls, what: str, package: str, extra: str) -> MissingExtra:
        """Say what needs which package, and how to install it."""
        return cls(f'{what} needs {package}. Install it with: pip install "evenhand[{extra}]"')


def installed(package: str) -> bool:
    """Whether a package can be imported, also where somebody forbids it."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
