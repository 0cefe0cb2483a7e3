"""What is told of the queue, of a decision and of the counts, over HTTP and on the page."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from evenhand.fairness import RejectOption
from evenhand.fairness.gate.decisions import KeptMargin
from evenhand.serve import bodies
from evenhand.serve.desk import OVERRULE, REASONS, Asked, BadReview, Desk, Reviewed
from evenhand.serve.problems import STATUS, problem_of
from evenhand.serve.store import Decision, StoreAway
from evenhand.serve.tokens import Caller
from evenhand.typing import REJECTED

PROMISE: Final = (
    "The labels given by the model stay within every margin after every answer. What people "
    "deliver, overrule or withdraw is counted; it leaves a margin only where somebody forced it, "
    "and then the model gives only labels after which the gap is no larger. Nothing is promised of "
    "requests without a label, nor of who decides them elsewhere."
)


OF_TRUTH: Final[Mapping[str, str]] = {
    "upper limit": (
        " A margin about true classes is about the gap that the calibration rows let expect of "
        "these labels: its upper limit, at confidence {level:g} over those rows, is within."
    ),
    "estimate": (
        " A margin about true classes holds the estimate by the calibration rows, and nothing is "
        "promised of the gap itself."
    ),
}
"""What is added to it where a margin is about true classes."""


def promise_of(option: RejectOption) -> str:
    """Return what is promised of the labels that this reject option gives."""
    known = option.calibration
    if known is None:
        return PROMISE
    what = next((one.gap_is for one in option.kept if one.gap_is in OF_TRUTH), None)
    return PROMISE if what is None else PROMISE + OF_TRUTH[what].format(level=known.level)


async def decided(
    desk: Desk, caller: Caller, rows: list[dict[str, Any]], *, key: str | None, body: bytes
) -> str:
    """Take a request for decisions; returns the answer as JSON when it is kept."""
    desk.reader.check(rows)
    said = "" if key is None else hashlib.sha256(body).hexdigest()
    asked = Asked(rows=rows, by=caller.name, key=key, body_digest=said)
    return await asyncio.wrap_future(desk.decide(asked))


async def reviewed(desk: Desk, id_: int, caller: Caller, body: bodies.ReviewBody) -> Decision:
    """Take a reviewer's decision."""
    if body.force and not body.reason.strip():
        raise BadReview("force needs a reason: it is kept with your name and the time.")
    label = None
    if body.action == OVERRULE:
        label = code_of(desk, body.label)
    elif body.label is not None:
        raise BadReview(f"{body.action} takes no label: it is the model's own, or none.")
    return await asyncio.wrap_future(
        desk.review(
            Reviewed(
                id=id_,
                action=body.action,
                label=label,
                force=body.force,
                reason=body.reason.strip(),
                by=caller.name,
            )
        )
    )


async def reviewed_all(
    desk: Desk, caller: Caller, entries: Sequence[bodies.ReviewEntry]
) -> list[Decision | BaseException]:
    """Take a reviewer's decisions in their order; one that cannot be taken hinders no other."""
    waited = [reviewed(desk, entry.id, caller, entry) for entry in entries]
    found = await asyncio.gather(*waited, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException) and not isinstance(one, tuple(STATUS)):
            raise one
    if all(isinstance(one, StoreAway) for one in found):
        raise StoreAway(str(found[0]))
    return found


def results(
    desk: Desk, entries: Sequence[bodies.ReviewEntry], found: Sequence[Decision | BaseException]
) -> bodies.ReviewsAnswer:
    """Return what became of each review."""
    told = [
        bodies.Reviewed(id=entry.id, standing=None, problem=problem_of(one)[1])
        if isinstance(one, Exception)
        else bodies.Reviewed(id=entry.id, standing=standing(desk, one), problem=None)
        for entry, one in zip(entries, found, strict=True)
        if isinstance(one, Exception | Decision)
    ]
    return bodies.ReviewsAnswer(n_taken=sum(one.problem is None for one in told), results=told)


def code_of(desk: Desk, label: Any) -> int:
    """Return the code of a class by its label, as JSON has it."""
    for code, known in enumerate(desk.labels):
        if known == label and isinstance(known, bool) == isinstance(label, bool):
            return code
    raise BadReview(f"label must be one of {', '.join(map(repr, desk.labels))}.")


def named(desk: Desk, code: int) -> Any:
    """Return the label of a class code; None for none."""
    return None if code == REJECTED else desk.labels[code]


def case(desk: Desk, found: Decision) -> bodies.Case:
    """Return a decision as a reviewer meets it, with what each outcome does to the gap."""
    assert found.request is not None
    return bodies.Case(
        id=found.id,
        group=desk.reader.groups[found.request.group],
        said=named(desk, found.request.said),
        reason=REASONS[found.verdict],
        asked_by=found.asked_by,
        asked_at=found.asked_at,
        features=found.features or {},
        outcomes=[
            bodies.Outcome(
                action=effect.action,
                label=named(desk, effect.label),
                gap=effect.after.gap,
                within_margin=effect.after.within,
                needs_force=effect.after.beyond,
                margins=margins(effect.after.kept),
            )
            for effect in desk.effects(found.request)
        ],
    )


def margins(kept: Sequence[KeptMargin]) -> list[bodies.Margin]:
    """Return each margin with its gap."""
    return [bodies.Margin(**one.to_dict()) for one in kept]


def standing(desk: Desk, found: Decision) -> bodies.Standing:
    """Return a decision as it stands, and what people decided about it."""
    request = found.request
    given = REJECTED if request is None else request.given
    return bodies.Standing(
        id=found.id,
        rejected=given == REJECTED,
        label=named(desk, given),
        reason=REASONS[found.verdict],
        by_person=request is not None and request.by_person,
        reviews=[
            bodies.Review(
                **{
                    **{name: row[name] for name in bodies.Review.model_fields},
                    "given_before": named(desk, row["given_before"]),
                    "given": named(desk, row["given"]),
                }
            )
            for row in desk.store.reviews(found.id)
        ],
    )


def state_of(desk: Desk, claim: str) -> bodies.StateAnswer:
    """Return how the given labels stand to the margin."""
    counts, option = desk.view()
    coverage, given = option.coverage, option.counts
    by_hand, back = option.given_by_hand, option.taken_back
    overall = coverage.overall
    return bodies.StateAnswer(
        notion=desk.model.fitted_.notion or "",
        margin=option.margin,
        gap=option.gap,
        within_margin=option.within,
        margins=margins(option.kept),
        left_by_people=not option.within,
        n_decisions=option.n_requests,
        n_given=int(given.sum()),
        n_waiting=desk.store.n_open(**desk.waiting()),
        n_withheld=desk.store.n_open(**desk.waiting(withheld=True)),
        n_unknown_group=int(option.unknown.sum()),
        n_reviews=desk.store.n_reviews(),
        n_forced=counts.n_forced,
        coverage=None if overall != overall else overall,
        cells=[
            bodies.Cells(
                group=group,
                label=label,
                said=int(coverage.offered[z, k]),
                given=int(given[z, k]),
                given_by_model=int(coverage.given[z, k]),
                given_by_people=int(by_hand[z, k]),
                taken_back=int(back[z, k]),
                coverage=None if not coverage.offered[z, k] else float(coverage.rates[z, k]),
            )
            for z, group in enumerate(option.groups)
            for k, label in enumerate(desk.labels)
        ],
        promise=promise_of(option),
        claim=claim,
    )
