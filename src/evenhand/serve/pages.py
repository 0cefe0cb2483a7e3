"""The reviewers' page: the queue, one case, and what each decision does to the gap.

Plain HTML with forms: no script runs, and nothing is asked of another server. Who signs in has the
token in a cookie that no script reads and that other sites' pages do not send.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from evenhand.fairness.gate.decisions import KeptMargin
from evenhand.fairness.gate.review import DecidedAlready, PassesMargin
from evenhand.report.page import fill
from evenhand.serve import answers, bodies
from evenhand.serve.desk import REASONS, BadReview, Desk, Effect, NoSuchDecision
from evenhand.serve.store import StoreAway
from evenhand.serve.tokens import Caller, Role

COOKIE: Final = "evenhand_token"
SHOWN: Final = 50
"""Cases on one page of the queue."""
_SIGNED_IN_S: Final = 12 * 3600
_MOST_BYTES: Final = 100_000
_REASONS: Final = {
    "outside_margin": "refused: the label would have left the margin",
    "withheld": "withheld until enough labels of the group fit together",
    "unsure": "refused: the model was not sure enough",
    "answered": "answered by the model",
}


def add_pages(app: FastAPI, desk: Desk) -> None:
    """Add the pages to an application; they stand in no API document."""
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

    @router.get("/")
    async def first() -> Response:
        return RedirectResponse("/review", 303)

    @router.get("/review")
    async def queue(request: Request, after: int = -1, withheld: bool = False) -> Response:
        caller = await _reviewer(request)
        if caller is None:
            return _page("sign-in.html", problem="")
        after = max(-1, min(after, 2**62))
        return await run_in_threadpool(_queue, desk, caller, after, withheld)

    @router.post("/review/sign-in")
    async def sign_in(request: Request) -> Response:
        token = (await _form(request)).get("token", "").strip()
        caller = await run_in_threadpool(app.state.door.caller, token)
        if caller is None or caller.role != Role.REVIEWER:
            words = "This is no token of a reviewer." if token else "Enter your token."
            return _page("sign-in.html", problem=words, status=401)
        answer = RedirectResponse("/review", 303)
        answer.set_cookie(
            COOKIE,
            token,
            max_age=_SIGNED_IN_S,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https"
            or request.headers.get("x-forwarded-proto") == "https",
        )
        return answer

    @router.post("/review/sign-out")
    async def sign_out() -> Response:
        answer = RedirectResponse("/review", 303)
        answer.delete_cookie(COOKIE)
        return answer

    @router.get("/review/{id}")
    async def case(request: Request, id: int) -> Response:
        caller = await _reviewer(request)
        if caller is None:
            return RedirectResponse("/review", 303)
        return await run_in_threadpool(_case, desk, caller, id)

    @router.post("/review/{id}")
    async def decide(request: Request, id: int) -> Response:
        caller = await _reviewer(request)
        if caller is None or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return RedirectResponse("/review", 303)
        return await _decide(desk, caller, id, await _form(request))

    app.include_router(router)


async def _reviewer(request: Request) -> Caller | None:
    """Return who is signed in."""
    token = request.cookies.get(COOKIE, "")
    if not token:
        return None
    caller = await run_in_threadpool(request.app.state.door.caller, token)
    return caller if caller is not None and caller.role == Role.REVIEWER else None


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a small form, the last of each name; none of what is no such form."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BYTES:  # who signs in has shown no token yet
            return {}
    try:
        found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[-1] for name, values in found.items()}


def _queue(desk: Desk, caller: Caller, after: int, withheld: bool) -> Response:
    cases = desk.store.queue(after=after, limit=SHOWN, **desk.waiting(withheld=withheld))
    return _page(
        "queue.html",
        caller=caller,
        state=answers.state_of(desk, ""),
        after=after,
        withheld=withheld,
        more=cases[-1].id if len(cases) == SHOWN else None,
        cases=[
            {
                "id": found.id,
                "group": desk.reader.groups[found.request.group],
                "said": answers.named(desk, found.request.said),
                "reason": _REASONS[REASONS[found.verdict]],
                "asked": f"{_time(found.asked_at)} by {found.asked_by}",
            }
            for found in cases
            if found.request is not None
        ],
    )


def _case(
    desk: Desk, caller: Caller, id_: int, *, problem: str = "", status: int = 200
) -> Response:
    found = desk.store.decision(id_) if 0 <= id_ <= bodies.LARGEST_ID else None
    if found is None or found.request is None:
        words = f"There is no decision {id_} that people can review."
        return _page("missing.html", caller=caller, words=words, status=404)
    following = desk.store.queue(after=id_, limit=1, **desk.waiting())
    _, option = desk.view()
    return _page(
        "case.html",
        status=status,
        caller=caller,
        problem=problem,
        open=found.open,
        id=id_,
        group=desk.reader.groups[found.request.group],
        said=answers.named(desk, found.request.said),
        given=answers.named(desk, found.request.given),
        reason=_REASONS[REASONS[found.verdict]],
        asked=f"{_time(found.asked_at)} by {found.asked_by}",
        features=found.features,
        reviews=[
            row | {"time": _time(row["at"]), "given": answers.named(desk, row["given"])}
            for row in desk.store.reviews(id_)
        ],
        margins=option.kept,
        outcomes=[
            _outcome(desk, effect, option.kept, found.open)
            for effect in desk.effects(found.request)
        ],
        following=following[0].id if following else None,
    )


def _outcome(
    desk: Desk, effect: Effect, now: Sequence[KeptMargin], is_open: bool
) -> dict[str, Any]:
    """Return a decision as it stands on the page, with each gap before and after it."""
    label = answers.named(desk, effect.label)
    words = {
        "deliver": f"Deliver {label}",
        "overrule": f"Overrule: give {label}",
        "withdraw": "Close without a label" if is_open else "Withdraw the label",
    }[effect.action]
    return {
        "action": effect.action,
        "code": effect.label,
        "words": words,
        "beyond": effect.after.beyond,
        "gaps": [
            {"before": before, "after": after, "scale": max(_least(before), after.gap) or 1.0}
            for before, after in zip(now, effect.after.kept, strict=True)
        ],
    }


def _least(kept: KeptMargin) -> float:
    """Return what the bar of a gap must at least have room for."""
    return max(2 * kept.notion.margin, kept.gap)


async def _decide(desk: Desk, caller: Caller, id_: int, form: dict[str, str]) -> Response:
    """Take the decision of a form; then the next case, or the same with what is wrong."""
    if not 0 <= id_ <= bodies.LARGEST_ID:
        return await run_in_threadpool(_case, desk, caller, id_)
    codes = {str(code): label for code, label in enumerate(desk.labels)}
    label = codes.get(form.get("code", "")) if form.get("action") == "overrule" else None
    reason = form.get("reason", "")
    try:
        body = bodies.ReviewBody.model_validate(
            {
                "action": form.get("action"),
                "label": label,
                "reason": reason,
                "force": bool(reason.strip()),
            }
        )
        await answers.reviewed(desk, id_, caller, body)
    except ValidationError:
        problem, status = "A reason has up to 1,000 characters of text.", 422
    except PassesMargin as error:
        problem, status = (
            f"The gap would be {error.gap:.4f} by now, above the margin of {error.margin:g}: give "
            f"a reason, or choose another decision.",
            409,
        )
    except (DecidedAlready, NoSuchDecision, BadReview) as error:
        problem, status = str(error), 409
    except StoreAway:
        problem, status = "The store is away: nothing was decided. Try again.", 503
    else:
        return RedirectResponse(f"/review/{id_}", 303)
    return await run_in_threadpool(_case, desk, caller, id_, problem=problem, status=status)


def _page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    headers = {
        "Cache-Control": "no-store",
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Content-Security-Policy": "frame-ancestors 'none'",
    }
    return HTMLResponse(
        fill(template, package="evenhand.serve", **values), status_code=status, headers=headers
    )


def _time(seconds: float) -> str:
    found = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return found.strftime("%Y-%m-%d %H:%M UTC")
