"""What a client is told when there is no answer: what is wrong, and no value of a row."""

from __future__ import annotations

import logging
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from evenhand.fairness.gate.review import DecidedAlready, PassesMargin
from evenhand.serve import bodies
from evenhand.serve.cases import BadRows
from evenhand.serve.desk import BadReview, KeyOfAnotherBody, NoSuchDecision, TooBusy
from evenhand.serve.door import NotAllowed
from evenhand.serve.store import StoreAway

log: Final = logging.getLogger("evenhand.serve")

STATUS: Final[dict[type[Exception], tuple[int, str]]] = {
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


def add_handlers(app: FastAPI) -> None:
    """Let an application tell what is wrong in one way."""
    for error in STATUS:
        app.add_exception_handler(error, told)
    app.add_exception_handler(NotAllowed, not_allowed)
    app.add_exception_handler(RequestValidationError, not_valid)
    app.add_exception_handler(HTTPException, http)


def problem(status: int, code: str, message: str, **more: Any) -> JSONResponse:
    """Return an answer that says what is wrong."""
    return answered(status, bodies.Problem(error=code, message=message, **more))


def answered(status: int, body: bodies.Problem) -> JSONResponse:
    """Return a problem as an answer."""
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status)
    return JSONResponse(body.model_dump(exclude_none=True), status_code=status, headers=headers)


def problem_of(error: Exception) -> tuple[int, bodies.Problem]:
    """Return the status and the words of an error of ``STATUS``."""
    status, code = next(found for kind, found in STATUS.items() if isinstance(error, kind))
    more: dict[str, Any] = {}
    words = str(error)
    if isinstance(error, PassesMargin):
        more = {"gap": error.gap, "margin": error.margin}
        words = words.replace("force=True", '"force": true and a "reason"')
    elif isinstance(error, BadRows):
        more["where"] = [
            {"row": row, "column": column, "problem": what} for row, column, what in error.wrong
        ]
    if isinstance(error, StoreAway):
        log.warning("%s", error)  # names the store: for who runs the server
        words = "The store of decisions is away. Nothing was answered."
    return status, bodies.Problem(error=code, message=words, **more)


async def told(_: Request | None, error: Exception) -> Response:
    """Answer an error of ``STATUS``."""
    return answered(*problem_of(error))


async def not_allowed(_: Request, error: Exception) -> Response:
    """Say that a token is missing, unknown, or of another role."""
    assert isinstance(error, NotAllowed)
    code = "not_authenticated" if error.status == 401 else "not_allowed"
    return problem(error.status, code, str(error))


async def not_valid(_: Request, error: Exception) -> Response:
    """Name what does not fit, and repeat no value: it may be somebody's."""
    assert isinstance(error, RequestValidationError)
    where = [
        {"place": [_plain(part) for part in one["loc"]], "problem": _plain(one["msg"])}
        for one in error.errors()[:20]
    ]
    words = "The request is not what this route reads."
    if isinstance(error.body, bytes):
        words = "The body was not read as JSON: send the header Content-Type: application/json."
    return problem(422, "bad_request", words, where=where)


async def http(_: Request, error: Exception) -> Response:
    """Say what the framework found wrong."""
    assert isinstance(error, HTTPException)
    words = str(error.detail)
    if error.status_code == 400:  # the framework's words do not say what
        words = (
            "The body cannot be read: it is not UTF-8, its JSON is nested too deep, or a number is "
            "too long."
        )
    made = problem(error.status_code, "http", words)
    for name, value in (error.headers or {}).items():
        made.headers[name] = value
    return made


def _plain(part: object) -> object:
    return part if isinstance(part, int) else str(part)[:200].encode("utf-8", "replace").decode()
