"""The service over HTTP: routes, who may use them, and what is answered when something is wrong."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Body, Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi import HTTPException as FastAPIHTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand import _values
from evenhand._version import __version__
from evenhand.fairness.gate.review import DecidedAlready, PassesMargin
from evenhand.serve import answers, bodies
from evenhand.serve.cases import BadRows
from evenhand.serve.desk import (
    Asked,
    BadReview,
    Desk,
    KeyOfAnotherBody,
    NoSuchDecision,
    TooBusy,
)
from evenhand.serve.metrics import Metrics
from evenhand.serve.pages import add_pages
from evenhand.serve.store import StoreAway
from evenhand.serve.tokens import Caller, Role, digest

MOST_BYTES: Final = 8 << 20
"""Size of a request's body."""
CALLERS_KEPT_S: Final = 5.0
"""So long a revoked token may still be let in."""
LARGEST_ID: Final = 2**63 - 1
log: Final = logging.getLogger("evenhand.serve")

_STATUS: Final[dict[type[Exception], tuple[int, str]]] = {
    StoreAway: (503, "store_away"),
    TooBusy: (503, "too_busy"),
    KeyOfAnotherBody: (409, "key_of_another_body"),
    DecidedAlready: (409, "decided_already"),
    PassesMargin: (409, "passes_margin"),
    NoSuchDecision: (404, "no_such_decision"),
    BadReview: (422, "bad_request"),
    BadRows: (422, "bad_rows"),
}
"""What each error is to a client."""


@dataclass(kw_only=True, eq=False)
class Door:
    """Who may come in: the tokens of the store, read again every few seconds."""

    desk: Desk
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
                self._callers = self.desk.store.callers()
                self._read_at = time.monotonic()
            return self._callers.get(digest(token))

    def knows(self, token: str) -> Caller | None:
        """Return who has this token if that is fresh in memory."""
        if time.monotonic() - self._read_at > CALLERS_KEPT_S:
            return None
        return self._callers.get(digest(token))


class NotAllowed(Exception):
    """No token, an unknown one, or one of another role."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


bearer = HTTPBearer(auto_error=False, description="A token that `evenhand tokens add` made.")


def allowed(*roles: Role) -> Callable[..., Awaitable[Caller]]:
    """Return the dependency that lets in tokens of these roles."""

    async def caller(
        request: Request,
        header: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
    ) -> Caller:
        token = header.credentials if header is not None else ""
        if not token:
            raise NotAllowed(401, "A token is missing. Send it as Authorization: Bearer TOKEN.")
        door: Door = request.app.state.door
        found = door.knows(token) or await run_in_threadpool(door.caller, token)
        if found is None:
            raise NotAllowed(401, "This token is not known. It may have been revoked.")
        if found.role not in roles:
            able = " or ".join(roles)
            raise NotAllowed(403, f"This token is a {found.role}'s. This needs a {able}.")
        return found

    return caller


Anybody = Annotated[Caller, Depends(allowed(*Role))]
Decider = Annotated[Caller, Depends(allowed(Role.DECIDER))]
Reviewer = Annotated[Caller, Depends(allowed(Role.REVIEWER))]
Follower = Annotated[Caller, Depends(allowed(Role.DECIDER, Role.REVIEWER))]
Id = Annotated[int, Path(ge=0, le=LARGEST_ID)]

_WRONG: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": bodies.Problem, "description": words}
    for status, words in {
        400: "The body is no JSON",
        401: "No token, or an unknown one",
        403: "A token of another role",
        404: "There is no such decision",
        409: "Decided already, beyond the margin, or a key of another body",
        413: "The body is too large",
        422: "The body is not what this route reads",
        503: "The store is away or too much waits: nothing was answered",
    }.items()
}


def wrong(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a route beside the right one, for the OpenAPI document."""
    return {status: _WRONG[status] for status in (401, 403, 503, *statuses)}


def create_app(desk: Desk, *, claim: str = "") -> FastAPI:
    """Return the application.

    Parameters
    ----------
    desk : Desk
    claim : str
        The claim of the model about its training records.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(desk.close)

    app = FastAPI(
        title="evenhand",
        summary="Labels or REJECTED, within a margin over all given labels.",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # these pages ask other servers for scripts
        redoc_url=None,
    )
    app.state.desk, app.state.door, app.state.claim = desk, Door(desk=desk), claim
    app.state.metrics = Metrics(desk)
    _add_decisions(app, desk)
    _add_queue(app, desk)
    _add_counts(app, desk)
    add_pages(app, desk)
    _describe_rows(app, desk)
    for error, (status, code) in _STATUS.items():
        app.add_exception_handler(error, _told(status, code))
    app.add_exception_handler(NotAllowed, _not_allowed)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(Watch, metrics=app.state.metrics)
    return app


def _describe_rows(app: FastAPI, desk: Desk) -> None:
    """Let the OpenAPI document name the columns of this model."""
    written = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            body = written()["components"]["schemas"]["DecideBody"]
            body["properties"]["rows"]["items"] = desk.reader.row_schema()
        return written()

    setattr(app, "openapi", document)  # noqa: B010 - mypy refuses to assign to a method


def _add_decisions(app: FastAPI, desk: Desk) -> None:
    @app.post(
        "/decide",
        response_model=bodies.DecideAnswer,
        responses=wrong(400, 409, 413, 422),
        summary="Decide on rows, one after the other",
    )
    async def decide(
        request: Request,
        caller: Decider,
        body: Annotated[bodies.DecideBody, Body()],
        idempotency_key: Annotated[
            str | None,
            Header(
                min_length=1,
                max_length=200,
                pattern="^[!-~]+$",
                description="The same key and body get the same answer again, and count once.",
            ),
        ] = None,
    ) -> Response:
        desk.reader.check(body.rows)
        asked = Asked(
            rows=body.rows,
            by=caller.name,
            key=idempotency_key,
            body_digest=hashlib.sha256(await request.body()).hexdigest(),
        )
        answer = await asyncio.wrap_future(desk.decide(asked))
        return Response(answer, media_type="application/json")

    @app.get(
        "/decisions/{id}",
        responses=wrong(404, 422),
        summary="How a decision stands now",
    )
    def decision(id: Id, caller: Follower) -> bodies.Standing:
        found = desk.store.decision(id)
        if found is None or (caller.role == Role.DECIDER and found.asked_by != caller.name):
            raise NoSuchDecision(f"There is no decision {id} of yours.")
        return answers.standing(desk, found)


def _add_queue(app: FastAPI, desk: Desk) -> None:
    @app.get("/queue", responses=wrong(422), summary="What waits for a person, oldest first")
    def queue(
        caller: Reviewer,
        after: Annotated[int, Query(ge=-1, le=LARGEST_ID)] = -1,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> bodies.QueueAnswer:
        _, option = desk.view()
        found = desk.store.queue(after=after, limit=limit)
        return bodies.QueueAnswer(
            n_waiting=desk.store.n_open(),
            gap=option.gap,
            margin=option.margin,
            margins=answers.margins(option.kept),
            cases=[answers.case(desk, one) for one in found],
        )

    @app.post(
        "/queue/{id}",
        responses=wrong(400, 404, 409, 413, 422),
        summary="Deliver the model's label, overrule it, or withdraw one",
    )
    async def review(id: Id, caller: Reviewer, body: bodies.ReviewBody) -> bodies.Standing:
        found = await answers.reviewed(desk, id, caller, body)
        return await run_in_threadpool(answers.standing, desk, found)


def _add_counts(app: FastAPI, desk: Desk) -> None:
    @app.get("/state", responses=wrong(), summary="Coverage, gap and counts")
    def state(caller: Anybody) -> bodies.StateAnswer:
        return answers.state_of(desk, app.state.claim)

    @app.get(
        "/metrics",
        responses={**wrong(), 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        response_class=Response,
        summary="Prometheus",
    )
    def metrics(caller: Anybody) -> Response:
        text = app.state.metrics.text()
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get(
        "/healthz",
        responses={503: {"model": bodies.Health, "description": "The store is away"}},
        summary="Whether decisions can be made",
    )
    def healthz() -> Response:
        try:
            desk.store.version()
        except StoreAway as error:
            log.warning("%s", error)
            return JSONResponse({"status": "store away"}, status_code=503)
        return JSONResponse({"status": "ok"})


def problem(status: int, code: str, message: str, **more: Any) -> JSONResponse:
    """Return an answer that says what is wrong."""
    body = bodies.Problem(error=code, message=message, **more).model_dump(exclude_none=True)
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status)
    return JSONResponse(body, status_code=status, headers=headers)


def _told(status: int, code: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handler(_: Request, error: Exception) -> Response:
        more: dict[str, Any] = {}
        if isinstance(error, PassesMargin):
            more = {"gap": error.gap, "margin": error.margin}
        elif isinstance(error, BadRows):
            more["where"] = [
                {"row": row, "column": column, "problem": what} for row, column, what in error.wrong
            ]
        if isinstance(error, StoreAway):
            log.warning("%s", error)  # names the store: for who runs the server
            return problem(status, code, "The store of decisions is away. Nothing was answered.")
        return problem(status, code, str(error), **more)

    return handler


async def _not_allowed(_: Request, error: Exception) -> Response:
    assert isinstance(error, NotAllowed)
    code = "not_authenticated" if error.status == 401 else "not_allowed"
    return problem(error.status, code, str(error))


async def _not_valid(_: Request, error: Exception) -> Response:
    """Name what does not fit, and repeat no value: it may be somebody's."""
    assert isinstance(error, RequestValidationError)
    where = [
        {"place": [_plain(part) for part in one["loc"]], "problem": _plain(one["msg"])}
        for one in error.errors()[:20]
    ]
    return problem(422, "bad_request", "The request is not what this route reads.", where=where)


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    made = problem(error.status_code, "http", str(error.detail))
    for name, value in (error.headers or {}).items():
        made.headers[name] = value
    return made


def _plain(part: object) -> object:
    return part if isinstance(part, int) else str(part)[:200].encode("utf-8", "replace").decode()


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


class TooLarge(FastAPIHTTPException):
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
