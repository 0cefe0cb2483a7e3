"""What stands around every request: the limit of its body, the log, and the counts of requests."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand import _values
from evenhand.serve.metrics import Metrics
from evenhand.serve.problems import problem

MOST_BYTES: Final = 8 << 20
"""Size of a request's body."""
log: Final = logging.getLogger("evenhand.serve")


class Watch:
    """Limits the size of a body, counts requests, and keeps what went wrong out of sight.

    A line of the log has method, route, status and time: no query, no body, no value.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, seen = time.perf_counter(), _Seen()

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = int(message["status"])
            await send(message)

        try:
            await self._app(scope, _limited(scope, receive), watched)
        except Exception as error:
            # Its own words may quote a row; where it was does not.
            log.error("%s in %s", _values.said_by(error), _where(error))
            if not seen.status:
                words = "Something is wrong here, and was logged. Nothing was answered."
                await problem(500, "defect", words)(scope, receive, watched)
        self._count(scope, seen.status, time.perf_counter() - started)

    def _count(self, scope: Mapping[str, Any], status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = str(scope["method"]) if route != "none" else "any"
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.seconds.labels(method, route).observe(seconds)
        log.info("%s %s %s %.1f ms", method, route, status, seconds * 1000)


@dataclass
class _Seen:
    status: int = 0


class TooLarge(HTTPException):
    """A body beyond its limit; of a kind that FastAPI lets through while it reads one."""

    def __init__(self) -> None:
        super().__init__(413, f"A body may have {MOST_BYTES:,} bytes. Send fewer rows at once.")


def _limited(scope: Scope, receive: Receive) -> Receive:
    """Stop reading a body that is too large, also where its length was not said."""
    n_bytes = 0

    async def limited() -> Message:
        nonlocal n_bytes
        said = next((v for k, v in scope["headers"] if k == b"content-length"), b"0")
        if said.isdigit() and int(said) > MOST_BYTES:
            raise TooLarge
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > MOST_BYTES:
            raise TooLarge
        return message

    return limited


def _where(error: BaseException) -> str:
    frames = error.__traceback__
    places = []
    while frames is not None:
        code = frames.tb_frame.f_code
        places.append(f"{code.co_filename.rsplit('/', 1)[-1]}:{frames.tb_lineno} {code.co_name}")
        frames = frames.tb_next
    return " > ".join(places[-6:])
