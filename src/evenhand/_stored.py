"""Which types may stand in the JSON of a saved model: each says so beside itself."""

from __future__ import annotations

from typing import Final, TypeVar

STORED: Final[dict[str, type]] = {}
"""By name, of the modules that were imported; a file that names any other type is refused."""

_Kind = TypeVar("_Kind", bound=type)


def home_of(kind: type) -> str:
    """Return MODULE:CLASS, by which a type of the user's own is named."""
    return f"{kind.__module__}:{kind.__qualname__}"


def stored(kind: _Kind) -> _Kind:
    """Let values of a type stand in a file: its arguments are kept, and it is made of them again.

    Making one must do nothing else: whoever wrote the file chose the arguments.
    """
    STORED[kind.__name__] = kind
    return kind
