"""The service over HTTP: routes, who may use them, and what is answered when something is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final

from fastapi import Body, Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from evenhand._checks import did_you_mean
from evenhand._version import __version__
from evenhand.serve import answers, bodies
from evenhand.serve.desk import Desk, NoSuchDecision
from evenhand.serve.door import Door, NotAllowed
from evenhand.serve.metrics import Metrics
from evenhand.serve.pages import add_pages
from evenhand.serve.plain import Plain
from evenhand.serve.problems import add_handlers, log
from evenhand.serve.store import StoreAway
from evenhand.serve.tokens import Caller, Role
from evenhand.serve.watch import Watch

bearer = HTTPBearer(auto_error=False, description="A token that `evenhand tokens add` made.")


class Allowed:
    """Lets in tokens of some roles."""

    def __init__(self, *roles: Role) -> None:
        self._roles = roles

    async def __call__(
        self,
        request: Request,
        header: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
    ) -> Caller:
        """Return who asks."""
        token = header.credentials if header is not None else ""
        if not token:
            raise NotAllowed(401, "A token is missing. Send it as Authorization: Bearer TOKEN.")
        door: Door = request.app.state.door
        found = door.knows(token) or await run_in_threadpool(door.caller, token)
        if found is None:
            raise NotAllowed(401, "This token is not known. It may have been revoked.")
        if found.role not in self._roles:
            able = " or ".join(self._roles)
            raise NotAllowed(403, f"This token is a {found.role}'s. This needs a {able}.")
        return found


class TokenFirst(APIRoute):
    """A route that asks for the token before it reads a body; FastAPI's own reads that first."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()
        asks = [one.call for one in self.dependant.dependencies if isinstance(one.call, Allowed)]

        async def let_in(request: Request) -> Response:
            for ask in asks:
                await ask(request, await bearer(request))
            try:
                json.loads(await request.body(), object_pairs_hook=bodies.once)
            except bodies.RepeatedKey as error:
                raise RequestValidationError([{"loc": ("body",), "msg": str(error)}]) from None
            except (ValueError, RecursionError):
                pass  # a form, or what the framework tells of
            return await answer(request)

        return let_in


async def refuse_unknown_query(request: Request) -> None:
    """Refuse what stands behind the ? and the route does not read, or twice: it would be lost."""
    route: APIRoute = request.scope["route"]
    known = [parameter.alias for parameter in route.dependant.query_params]
    given = Counter(name for name, _ in request.query_params.multi_items())
    reads = f"this route reads {', '.join(known) or 'none'}."
    wrong = [
        {"loc": ("query", name), "msg": f"{reads}{did_you_mean(name, known)}"}
        if name not in known
        else {"loc": ("query", name), "msg": "stands more than once."}
        for name, n in given.items()
        if name not in known or n > 1
    ]
    if wrong:
        raise RequestValidationError(wrong)


Anybody = Annotated[Caller, Depends(Allowed(*Role))]
Decider = Annotated[Caller, Depends(Allowed(Role.DECIDER))]
Reviewer = Annotated[Caller, Depends(Allowed(Role.REVIEWER))]
Follower = Annotated[Caller, Depends(Allowed(Role.DECIDER, Role.REVIEWER))]
Id = Annotated[int, Path(ge=0, le=bodies.LARGEST_ID)]

_WRONG: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": bodies.Problem, "description": words}
    for status, words in {
        400: "The body is no JSON",
        401: "No token, or an unknown one",
        403: "A token of another role",
        404: "There is no such decision",
        409: "Decided already, beyond the margin, or a key of another body",
        413: "The body is too large",
        422: "The query or the body is not what this route reads",
        503: "The store is away or too much waits: nothing was answered",
    }.items()
}


def wrong(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a route beside the right one, for the OpenAPI document."""
    return {status: _WRONG[status] for status in (401, 403, 422, 503, *statuses)}


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
        dependencies=[Depends(refuse_unknown_query)],  # of the pages too
        docs_url=None,  # these pages ask other servers for scripts
        redoc_url=None,
    )
    app.router.route_class = TokenFirst
    app.state.desk, app.state.door, app.state.claim = desk, Door(store=desk.store), claim
    app.state.metrics = Metrics(desk)
    _add_decisions(app, desk)
    _add_queue(app, desk)
    _add_counts(app, desk)
    add_pages(app, desk)
    _describe_rows(app, desk)
    add_handlers(app)
    app.add_middleware(Plain, desk=desk, door=app.state.door)
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
        responses=wrong(400, 409, 413),
        summary="Decide on rows, one after the other",
    )
    async def decide(
        request: Request,
        caller: Decider,
        body: Annotated[bodies.DecideBody, Body()],
        idempotency_key: Annotated[
            str | None,
            Header(
                pattern=bodies.KEY,
                description="The same key and body get the same answer again, and count once.",
            ),
        ] = None,
    ) -> Response:
        answer = await answers.decided(
            desk, caller, body.rows, key=idempotency_key, body=await request.body()
        )
        return Response(answer, media_type="application/json")

    @app.get(
        "/decisions/{id}",
        responses=wrong(404),
        summary="How a decision stands now",
    )
    def decision(id: Id, caller: Follower) -> bodies.Standing:
        found = desk.store.decision(id)
        if found is None or (caller.role == Role.DECIDER and found.asked_by != caller.name):
            raise NoSuchDecision(f"There is no decision {id} of yours.")
        return answers.standing(desk, found)


def _add_queue(app: FastAPI, desk: Desk) -> None:
    @app.get("/queue", responses=wrong(), summary="What waits for a person, oldest first")
    def queue(
        caller: Reviewer,
        after: Annotated[int, Query(ge=-1, le=bodies.LARGEST_ID)] = -1,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        withheld: Annotated[
            bool,
            Query(description="Those that wait for the first block of their group, instead."),
        ] = False,
    ) -> bodies.QueueAnswer:
        _, option = desk.view()
        found = desk.store.queue(after=after, limit=limit, **desk.waiting(withheld=withheld))
        return bodies.QueueAnswer(
            n_waiting=desk.store.n_open(**desk.waiting(withheld=withheld)),
            n_withheld=desk.store.n_open(**desk.waiting(withheld=True)),
            gap=option.gap,
            margin=option.margin,
            margins=answers.margins(option.kept),
            cases=[answers.case(desk, one) for one in found],
        )

    @app.post(
        "/queue",
        responses=wrong(400, 413),
        summary="Decide up to 1,000, one after the other, each whole or not at all",
    )
    async def reviews(caller: Reviewer, body: bodies.ReviewsBody) -> bodies.ReviewsAnswer:
        found = await answers.reviewed_all(desk, caller, body.reviews)
        return await run_in_threadpool(answers.results, desk, body.reviews, found)

    @app.post(
        "/queue/{id}",
        responses=wrong(400, 404, 409, 413),
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
        responses={
            422: _WRONG[422],
            503: {"model": bodies.Health, "description": "The store is away"},
        },
        summary="Whether decisions can be made",
    )
    def healthz() -> Response:
        try:
            desk.store.version()
        except StoreAway as error:
            log.warning("%s", error)
            return JSONResponse({"status": "store away"}, status_code=503)
        return JSONResponse({"status": "ok"})
