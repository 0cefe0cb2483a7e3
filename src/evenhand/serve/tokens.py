"""Who may ask: API tokens, of which the store keeps digests only."""

from __future__ import annotations

import hashlib
import re
import secrets
from enum import StrEnum
from typing import Final, NamedTuple

from evenhand import _checks

PREFIX: Final = "evenhand_"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._@+-]{0,63}")


class Role(StrEnum):
    """What a token is for."""

    READER = "reader"
    """Reads counts: ``/state`` and ``/metrics``."""
    DECIDER = "decider"
    """Asks for decisions, and reads how its decisions stand."""
    REVIEWER = "reviewer"
    """Reads the queue and the cases, and decides them."""


class Caller(NamedTuple):
    """Who asks."""

    name: str
    role: Role


def new_token() -> str:
    """Return a new token: 256 random bits, so that a plain digest cannot be searched."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """Return what the store keeps of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def checked_name(name: str) -> str:
    """Return a name of a person or a program as it may stand in the store and in logs."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"A token's name must be 1 to 64 letters, digits, spaces or . _ @ + -, and begin with "
            f"a letter or a digit, got {name!r}. It is what reviews are signed with, such as "
            f"'anna.meyer'."
        )
    return name


def checked_role(role: str) -> Role:
    """Return a role by its name."""
    return Role(_checks.one_of("role", role, [str(known) for known in Role]))
