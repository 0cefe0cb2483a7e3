"""Who may come in: tokens, looked up in memory while they are fresh."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from evenhand.serve.store import DecisionStore
from evenhand.serve.tokens import Caller, digest

CALLERS_KEPT_S: Final = 5.0
"""So long a revoked token may still be let in."""


class NotAllowed(Exception):
    """No token, an unknown one, or one of another role."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(kw_only=True, eq=False)
class Door:
    """Who may come in: the tokens of the store, read again every few seconds."""

    store: DecisionStore
    _callers: dict[str, Caller] = field(default_factory=dict)
    _read_at: float = -1e9
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def caller(self, token: str) -> Caller | None:
        """Return who has this token; None if nobody has.

        Raises
        ------
        StoreAway
            If it cannot be looked up.
        """
        with self._lock:
            if time.monotonic() - self._read_at > CALLERS_KEPT_S:
                self._callers = self.store.callers()
                self._read_at = time.monotonic()
            return self._callers.get(digest(token))

    def knows(self, token: str) -> Caller | None:
        """Return who has this token if that is fresh in memory."""
        if time.monotonic() - self._read_at > CALLERS_KEPT_S:
            return None
        return self._callers.get(digest(token))
