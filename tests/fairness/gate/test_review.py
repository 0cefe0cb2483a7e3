"""What people decide is counted, once, and leaves the margin only when they say so."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from evenhand.fairness import DemographicParity, RejectOption
from evenhand.fairness.gate.reject_option import Verdict
from evenhand.fairness.gate.review import DecidedAlready, PassesMargin, Request
from evenhand.typing import REJECTED


def new(margin: float = 0.1, cold_start: int = 5) -> RejectOption:
    within = DemographicParity(margin=margin)
    return RejectOption(within, ["F", "M"], ["no", "yes", "later"], cold_start=cold_start)


def asked(option: RejectOption, stream: list[tuple[int, int]]) -> list[Request]:
    """Decide row by row, and keep every request as it stands."""
    requests: list[Request] = []
    for z, k in stream:
        decided = option.decide([k], [z])
        given = int(decided.labels[0])
        requests.append(Request(number=int(decided.ids[0]), group=z, said=k, given=given))
        ids, labels = option.deliver()
        for number, label in zip(ids.tolist(), labels.tolist(), strict=True):
            old = requests[number]
            requests[number] = Request(number=number, group=old.group, said=old.said, given=label)
    return requests


def mixed(seed: int, n: int = 300) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    z = (rng.random(n) < 0.3).astype(int)
    k = np.where(rng.random(n) < np.where(z == 1, 0.2, 0.5), 1, 2 * (rng.random(n) < 0.2))
    return list(zip(z.tolist(), k.tolist(), strict=True))


def table(requests: list[Request]) -> list[list[int]]:
    counts = [[0] * 3 for _ in range(2)]
    for request in requests:
        if request.given != REJECTED:
            counts[request.group][request.given] += 1
    return counts


@pytest.mark.parametrize("seed", range(3))
def test_the_table_is_a_recount_of_what_stands_after_every_decision(
    seed: int, definition: Callable[..., Fraction]
) -> None:
    option, rng = new(0.02), np.random.default_rng(seed + 10)
    requests = asked(option, mixed(seed))
    n_taken = n_refused = 0
    for number in rng.permutation(len(requests)).tolist() * 2:
        request, label = requests[number], int(rng.integers(REJECTED, 3))
        try:
            gap, within, *_ = option.after(request, label)
        except DecidedAlready:
            continue
        before = option.gap
        if within or gap < before:
            requests[number] = option.review(request, label)
            n_taken += 1
        else:
            with pytest.raises(PassesMargin) as refused:
                option.review(request, label)
            assert refused.value.gap == gap
            assert option.gap == before
            n_refused += 1
            if n_refused % 2:
                requests[number] = option.review(request, label, force=True)
        counts = table(requests)
        assert counts == option.counts.tolist()
        assert option.gap == pytest.approx(float(definition(counts, "rest")), abs=1e-12)
        assert option.within == (definition(counts, "rest") <= Fraction(1, 50))
    assert n_taken
    assert n_refused
    again = RejectOption.from_dict(json.loads(json.dumps(option.to_dict())))
    assert again.to_dict() == option.to_dict()
    assert again.coverage.given.tolist() == option.coverage.given.tolist()


def test_what_the_model_gave_itself_is_counted_apart_from_what_people_decided() -> None:
    option = new()
    requests = asked(option, mixed(0))
    itself = option.coverage.given.tolist()
    refused = next(r for r in requests if r.given == REJECTED)
    given = next(r for r in requests if r.given == 1)
    option.review(refused, refused.said, force=True)
    option.review(given, 0, force=True)
    assert option.coverage.given.tolist() == itself
    assert option.given_by_hand.sum() == 2
    assert option.taken_back.tolist()[given.group][1] == option.taken_back.sum() == 1


def test_a_withheld_request_that_a_person_decided_is_not_released_later() -> None:
    option = new(cold_start=3)
    option.decide([0, 1] * 5, [0] * 10)
    assert option.decide([0, 1], [1, 1]).reasons.tolist() == [Verdict.WITHHELD] * 2
    closed = option.review(Request(number=10, group=1, said=0), REJECTED)
    assert (closed.given, closed.by_person, option.held.sum()) == (REJECTED, True, 1)
    with pytest.raises(ValueError, match="Request 10 does not wait"):
        option._run.forget(10, 1, 0)
    option.decide([0, 1, 0], [1, 1, 1])
    assert 10 not in option.deliver().ids
    assert option.counts[1].sum() >= 2
    RejectOption.from_dict(option.to_dict())


def test_a_request_is_decided_once_and_a_label_of_a_person_may_be_withdrawn_once() -> None:
    option = new(1.0)
    (first,) = asked(option, [(0, 1)])
    with pytest.raises(DecidedAlready, match="has this label already"):
        option.review(first, 1)
    overruled = option.review(first, 2)
    with pytest.raises(DecidedAlready, match="may be withdrawn, and not replaced"):
        option.review(overruled, 0)
    withdrawn = option.review(overruled, REJECTED)
    for label in (REJECTED, 0):
        with pytest.raises(DecidedAlready, match="it stays without a label"):
            option.review(withdrawn, label)
    assert option.counts.sum() == 0


def test_a_decision_towards_the_margin_needs_no_force(
    definition: Callable[..., Fraction],
) -> None:
    option = new()
    requests = asked(option, mixed(1))
    far = [r for r in requests if r.group == 1 and r.given == 0][:15]
    for request in far:
        option.review(request, 1, force=True)
    assert not option.within
    back = Request(number=far[0].number, group=1, said=0, given=1, by_person=True)
    assert option.review(back, REJECTED).given == REJECTED
    machine = option.gap
    for z, k in mixed(2):
        before = max(option.gap, 0.1)
        option.decide([k], [z])
        assert option.gap <= before + 1e-12
    assert option.gap <= machine


@pytest.mark.parametrize(
    ("request_", "label", "message"),
    [
        ({"number": 0, "group": 0, "said": 1, "given": 1}, 3, "label must be a class from 0 to 2"),
        ({"number": 0, "group": 1, "said": 1, "given": 1}, 0, "No answer 1 of group 1 was given"),
        ({"number": 0, "group": 2, "said": 1}, 0, "group must be from 0 to 1"),
    ],
)
def test_a_request_that_cannot_be_is_refused_and_nothing_is_counted(
    request_: dict[str, Any], label: int, message: str
) -> None:
    option = new()
    asked(option, [(0, 1), (0, 0)])
    before = option.to_dict()
    with pytest.raises(ValueError, match=message):
        option.review(Request(**request_), label, force=True)
    assert option.to_dict() == before


def test_an_answer_that_waits_to_be_fetched_is_fetched_first() -> None:
    option = new(cold_start=2)
    option.decide([0, 1] * 5, [0] * 10)
    option.decide([0], [1])
    assert option.decide([1], [1]).n_released == 1
    with pytest.raises(ValueError, match=r"call deliver\(\) first"):
        option.review(Request(number=10, group=1, said=0), 0)
