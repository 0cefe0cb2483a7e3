"""The everyday request for decisions, read and answered without the framework's checks.

A request to ``POST /decide`` that is in order is answered here, by the same desk and in the same
words. Any other (no token that is known by heart, another kind of body, a body that is not as the
document says) is passed on as it came, so that what is wrong is told in one place.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.serve import answers
from evenhand.serve.bodies import KEY, once
from evenhand.serve.cases import MOST_ROWS
from evenhand.serve.desk import Desk
from evenhand.serve.door import Door
from evenhand.serve.problems import STATUS, told
from evenhand.serve.tokens import Caller, Role

PATH: Final = "/decide"
_KEY: Final = re.compile(KEY)


class _Route:
    """Under which name the request is counted."""

    path = PATH


class Plain:
    """Answers what is in order, and passes on what is not.

    Parameters
    ----------
    app : ASGI application
        It answers ``POST /decide`` too.
    desk : Desk
    door : Door
    """

    def __init__(self, app: ASGIApp, *, desk: Desk, door: Door) -> None:
        self._app, self._desk, self._door = app, desk, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        ours = scope["type"] == "http" and scope["path"] == PATH and scope["method"] == "POST"
        asks = self._who_asks(scope) if ours and not scope["query_string"] else None
        if asks is None:
            await self._app(scope, receive, send)
            return
        read = _Body(receive)
        body = await read.read()
        rows = _rows(body)
        if body is None or rows is None:
            await self._app(scope, read.again, send)
            return
        scope["route"] = _Route
        caller, key = asks
        try:
            answer = await answers.decided(self._desk, caller, rows, key=key, body=body)
        except tuple(STATUS) as error:
            response = await told(None, error)
            await response(scope, receive, send)
            return
        written = answer.encode()
        headers = [
            (b"content-length", str(len(written)).encode()),
            (b"content-type", b"application/json"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": written})

    def _who_asks(self, scope: Scope) -> tuple[Caller, str | None] | None:
        """Return the caller and the idempotency key; None if anything is unusual."""
        named: dict[bytes, str] = {}
        for name, value in scope["headers"]:
            if name in _READ:
                if name in named:
                    return None
                named[name] = value.decode("latin-1")
        kind, _, token = named.get(b"authorization", "").partition(" ")
        key = named.get(b"idempotency-key")
        if kind != "Bearer" or named.get(b"content-type") != "application/json":
            return None
        if key is not None and not _KEY.fullmatch(key):
            return None
        caller = self._door.knows(token)
        return (caller, key) if caller is not None and caller.role == Role.DECIDER else None


_READ: Final = frozenset({b"authorization", b"content-type", b"idempotency-key"})


class _Body:
    """A body as it was read, which can be read again."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: list[Message] = []
        self._error: Exception | None = None

    async def read(self) -> bytes | None:
        """Return it; None if it is too large or the client has gone."""
        more = True
        while more:
            try:
                message = await self._receive()
            except HTTPException as error:
                self._error = error
                return None
            self._messages.append(message)
            if message["type"] != "http.request":
                return None
            more = message.get("more_body", False)
        return b"".join([message.get("body", b"") for message in self._messages])

    async def again(self) -> Message:
        """Give what was read once more, and then whatever comes."""
        if self._messages:
            return self._messages.pop(0)
        if self._error is not None:
            raise self._error
        return await self._receive()


def _rows(body: bytes | None) -> list[dict[str, Any]] | None:
    """Return the rows of a body; None if it is not as the document says."""
    try:
        found = None if body is None else json.loads(body, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"rows"}:
        return None
    rows = found["rows"]
    fits = isinstance(rows, list) and 0 < len(rows) <= MOST_ROWS
    return rows if fits and all(isinstance(row, dict) for row in rows) else None
