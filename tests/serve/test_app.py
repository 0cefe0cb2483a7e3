"""The API: what is answered, what is refused, what is kept, who may ask."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from people import calibrated, new_desk, rows
from starlette.requests import Request
from starlette.testclient import TestClient

from evenhand import ErrorParity, RejectOptionClassifier
from evenhand.fairness import Grouping
from evenhand.fairness.gate.decisions import UNKNOWN
from evenhand.fairness.gate.reject_option import StateOfAnotherModel
from evenhand.fairness.grouping import MERGED
from evenhand.fairness.groups import encode_groups
from evenhand.serve.app import create_app
from evenhand.serve.cases import Reader
from evenhand.serve.desk import Desk
from evenhand.serve.pages import _form
from evenhand.serve.store import DecisionStore, StoreAway
from evenhand.serve.tables import KEYS
from evenhand.serve.tokens import Role
from evenhand.typing import REJECTED


def as_(client: Any, role: Role) -> dict[str, str]:
    return {"Authorization": f"Bearer {client.tokens[role]}"}


def ask(client: Any, sent: list[dict[str, Any]], **headers: str) -> Any:
    return client.post("/decide", json={"rows": sent}, headers=as_(client, Role.DECIDER) | headers)


def decided(client: Any, sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answer = ask(client, sent)
    assert answer.status_code == 200, answer.text
    return answer.json()["decisions"]


def review(client: Any, id_: int, **body: Any) -> Any:
    return client.post(f"/queue/{id_}", json=body, headers=as_(client, Role.REVIEWER))


def get(client: Any, path: str, role: Role = Role.REVIEWER) -> Any:
    return client.get(path, headers=as_(client, role))


def test_labels_are_those_of_the_same_reject_option_in_python(
    client: Any, option: Callable[..., Any]
) -> None:
    sent, plain = rows(400, 1), option()
    frame = pd.DataFrame(sent)
    expected = plain.decide(frame[["income", "job"]], sensitive_features=frame["sex"])
    late = plain.deliver()
    answers = decided(client, sent)
    assert [one["id"] for one in answers] == list(range(400))
    for i, one in enumerate(answers):
        label = late.get(i, expected.labels[i])
        assert one["label"] == (None if label == REJECTED else label)
        assert one["rejected"] == (label == REJECTED)
        assert (one["reason"] == "answered") == (not one["rejected"])
    state = get(client, "/state", Role.READER).json()
    assert state["gap"] == pytest.approx(plain.gap_)
    assert state["within_margin"]
    assert state["n_decisions"] == 400
    assert 0 < state["n_waiting"] == sum(one["rejected"] for one in answers)
    assert state["claim"] == "the claim"
    assert sum(cell["given"] for cell in state["cells"]) == state["n_given"]


def test_the_same_key_gets_the_same_answer_and_counts_once(client: Any) -> None:
    sent = rows(30, 2)
    first = ask(client, sent, **{"Idempotency-Key": "k1"})
    again = ask(client, sent, **{"Idempotency-Key": "k1"})
    assert again.json() == first.json()
    assert get(client, "/state").json()["n_decisions"] == 30
    other = ask(client, sent[:5], **{"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["error"]) == (409, "key_of_another_body")
    assert ask(client, sent, **{"Idempotency-Key": "k2"}).json() != first.json()
    assert get(client, "/state").json()["n_decisions"] == 60


def test_values_that_the_model_does_not_know_are_named_by_column_and_counted(client: Any) -> None:
    sent = rows(4, 3)
    sent[1]["job"], sent[2]["job"], sent[3]["job"] = "a secret job", None, True
    answers = decided(client, sent)
    assert [one["unknown"] for one in answers] == [[], ["job"], [], ["job"]]
    text = get(client, "/metrics", Role.READER).text
    assert 'evenhand_unknown_values_total{column="job"} 2.0' in text
    assert "secret" not in text  # names of columns alone


def test_true_is_read_as_the_model_writes_it() -> None:
    def read(*known: str) -> tuple[Any, list[list[str]]]:
        reader = Reader(
            columns=("smokes",),
            numeric=frozenset(),
            sensitive=("sex",),
            groups=("men", "women"),
            categories={"smokes": known},
        )
        sent = [{"smokes": value} for value in (True, False, None, "true")]
        cells = reader.cells(sent)
        return cells.pop("smokes").values, reader.unknown(sent)

    values, unknown = read("false", "true", "yes")  # as in a CSV of another program
    assert [*values] == ["true", "false", None, "true"]
    assert unknown == [[], [], [], []]
    assert read("False", "True")[1] == [[], [], [], ["smokes"]]
    assert read("no", "yes")[1] == [["smokes"], ["smokes"], [], ["smokes"]]


@pytest.mark.parametrize("spell", [str, str.lower, str.upper])
def test_true_is_the_group_that_the_training_had(spell: Callable[[str], str]) -> None:
    def codes(sent: list[dict[str, Any]], groups: Sequence[str], **how: Any) -> list[int]:
        reader = Reader(
            columns=("income",),
            numeric=frozenset({"income"}),
            sensitive=tuple(sent[0]),
            groups=tuple(groups),
            **how,
        )
        return reader.group_codes(sent).tolist()

    no, yes = spell("False"), spell("True")
    assert codes([{"vet": v} for v in (True, False, yes, None)], [no, yes]) == [1, 0, 1, UNKNOWN]
    names = encode_groups(pd.DataFrame({"vet": [yes, yes], "sex": ["F", "M"]})).names
    assert codes([{"vet": True, "sex": s} for s in "FMX"], names) == [0, 1, UNKNOWN]
    few = Grouping(merged=("unsaid", no), known=(yes, "some"))
    groups = [MERGED, "some", yes]
    assert codes([{"vet": v} for v in (True, False, "else")], groups, grouping=few) == [2, 0, 0]


def test_true_is_no_number(client: Any) -> None:
    refused = ask(client, [{"income": True, "sex": "men", "job": "cook"}])
    assert refused.status_code == 422
    assert "must hold a number or null, not true or false" in refused.text


def test_an_unknown_group_has_a_reason_of_its_own_and_is_counted(client: Any) -> None:
    sent = rows(4, 3)
    sent[1]["sex"], sent[2]["sex"] = "unheard-of", None
    answers = decided(client, sent)
    assert [one["reason"] == "unknown_group" for one in answers] == [False, True, True, False]
    state = get(client, "/state").json()
    assert (state["n_unknown_group"], state["n_decisions"]) == (2, 4)
    assert sum(cell["said"] for cell in state["cells"]) == 2
    assert get(client, f"/decisions/{answers[1]['id']}").json()["reason"] == "unknown_group"
    assert review(client, answers[1]["id"], action="deliver").status_code == 404


def test_what_is_withheld_is_answered_when_its_group_fits(client: Any) -> None:
    sent = [row for row in rows(400, 4) if row["sex"] == "men"][:60]
    women = [row for row in rows(400, 5) if row["sex"] == "women"][:80]
    decided(client, sent)
    (waits,) = decided(client, women[:1])
    assert waits["reason"] == "withheld"
    for row in women[1:]:
        decided(client, [row])
    now = client.get(f"/decisions/{waits['id']}", headers=as_(client, Role.DECIDER)).json()
    assert (now["reason"], now["rejected"], now["by_person"]) == ("answered", False, False)
    assert waits["id"] not in [case["id"] for case in get(client, "/queue").json()["cases"]]


def test_a_reviewer_delivers_overrules_and_withdraws_and_the_counts_follow(client: Any) -> None:
    answers = decided(client, rows(400, 6))
    state = get(client, "/state").json()
    queue = get(client, "/queue?limit=200").json()
    assert queue["n_waiting"] == len([one for one in answers if one["rejected"]])
    done: dict[str, int] = {}
    for action in ("overrule", "withdraw", "deliver"):
        found = [
            (case["id"], outcome)
            for case in get(client, "/queue?limit=200").json()["cases"]
            for outcome in case["outcomes"]
            if outcome["within_margin"] and outcome["action"] == action
        ]
        if not found:
            continue
        done[action], outcome = found[0]
        label = {"label": outcome["label"]} if action == "overrule" else {}
        stands = review(client, done[action], action=action, **label).json()
        assert (stands["label"], stands["by_person"]) == (outcome["label"], True)
        (kept,) = stands["reviews"]
        assert kept["gap_after"] == pytest.approx(outcome["gap"])
        assert (kept["by"], kept["forced"]) == ("the reviewer", False)
        assert kept["at"] > 1e9
    assert {"overrule", "withdraw"} <= set(done)
    now = get(client, "/state").json()
    # What people decide may make room for withheld labels, which are given then.
    assert now["n_waiting"] <= state["n_waiting"] - len(done)
    assert now["n_given"] + now["n_waiting"] == state["n_given"] + state["n_waiting"] - 1
    assert sum(cell["given_by_people"] for cell in now["cells"]) == len(done) - 1
    given = next(one for one in answers if not one["rejected"])
    assert review(client, given["id"], action="withdraw", force=True, reason="r").json()["rejected"]
    assert get(client, "/state").json()["n_given"] == now["n_given"] - 1


def test_withheld_labels_of_a_group_without_any_wait_for_the_model_beside_the_queue(
    client: Any, desk: Desk
) -> None:
    men = [row for row in rows(400, 4) if row["sex"] == "men"][:60]
    women = [row for row in rows(400, 5) if row["sex"] == "women"][:60]
    decided(client, men)
    before = get(client, "/queue").json()["n_waiting"]
    waits = decided(client, women[:15])
    assert {one["reason"] for one in waits} == {"withheld"}
    queue, own = get(client, "/queue").json(), get(client, "/queue?withheld=true").json()
    assert (queue["n_waiting"], queue["n_withheld"]) == (before, 15)
    assert [case["id"] for case in own["cases"]] == [one["id"] for one in waits]
    assert (own["n_waiting"], get(client, "/state").json()["n_withheld"]) == (15, 15)
    assert not {one["id"] for one in waits} & {case["id"] for case in queue["cases"]}
    assert "evenhand_withheld 15.0" in get(client, "/metrics").text
    # A staff that takes whatever is in the queue does not keep the block from filling.
    for case in queue["cases"]:
        review(client, case["id"], action="withdraw")
    for row in women[15:]:
        decided(client, [row])
    state = get(client, "/state").json()
    assert desk.view()[1].counts[desk.reader.groups.index("women")].any()
    assert state["n_withheld"] == 0
    left = desk.view()[1].held.sum()  # of the group, which is no late one any more
    held = [one["reason"] for one in get(client, "/queue?limit=200").json()["cases"]]
    assert held.count("withheld") == left
    # A person may still take one by its number.
    one = desk.store.queue(limit=1)[0]
    assert review(client, one.id, action="withdraw").status_code == 200


@pytest.mark.parametrize(
    ("place", "sent", "status"),
    [
        ("/review/0", {"action": "overrule", "code": "\u00b2"}, 409),  # a digit, and no number
        ("/review/0", {"action": "overrule", "code": "9" * 5000}, 409),
        ("/review/0", {f"field {i}": "x" for i in range(21)}, 422),
        ("/review/-1", {"action": "deliver"}, 404),
        (f"/review/{2**63}", {"action": "deliver"}, 404),
        ("/review/sign-in", {f"field {i}": "x" for i in range(21)}, 401),
    ],
)
def test_a_form_that_no_page_sends_is_refused_and_changes_nothing(
    place: str, sent: dict[str, str], status: int, client: Any
) -> None:
    decided(client, rows(1, 1))
    client.cookies.set("evenhand_token", client.tokens[Role.REVIEWER])
    answer = client.post(place, data=sent, follow_redirects=False)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert get(client, "/state").json()["n_reviews"] == {}


def test_many_reviews_at_once_are_each_taken_whole_or_not_at_all(client: Any) -> None:
    refused = [one["id"] for one in decided(client, rows(400, 6)) if one["rejected"]][:5]
    one_by_one = (decided(client, [row])[0] for row in rows(400, 7))
    beyond = next(one["id"] for one in one_by_one if one["reason"] == "outside_margin")
    entries = [
        {"id": beyond, "action": "deliver"},  # refused just now: it leaves the margin
        *({"id": id_, "action": "withdraw"} for id_ in refused[:4]),
        {"id": refused[0], "action": "withdraw"},  # decided by the one before
        {"id": 10**9, "action": "withdraw"},
        {"id": refused[4], "action": "deliver", "force": True},  # no reason
        {"id": refused[4], "action": "overrule", "label": "perhaps"},
    ]
    post = {"json": {"reviews": entries}, "headers": as_(client, Role.REVIEWER)}
    answer = client.post("/queue", **post)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["n_taken"] == 4
    assert [one["id"] for one in found["results"]] == [one["id"] for one in entries]
    errors = [one["problem"] and one["problem"]["error"] for one in found["results"]]
    assert errors[:5] == ["passes_margin", *[None] * 4]
    assert errors[5:] == ["decided_already", "no_such_decision", "bad_request", "bad_request"]
    for one in found["results"][1:5]:
        assert one["standing"] == get(client, f"/decisions/{one['id']}").json()
        assert one["standing"]["reviews"][0]["by"] == "the reviewer"
    assert all(one["standing"] is None for one in (*found["results"][:1], *found["results"][5:]))
    assert get(client, f"/decisions/{refused[4]}").json()["reviews"] == []
    assert sum(get(client, "/state").json()["n_reviews"].values()) == 4
    post["json"]["reviews"] = entries[1:]  # the first may pass, now that four are withdrawn
    assert client.post("/queue", **post).json()["n_taken"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reviews": []},
        {"reviews": [{"id": 1, "action": "withdraw"}] * 1001},
        {"reviews": [{"id": 0, "action": "withdraw"}, {"id": -1, "action": "withdraw"}]},
    ],
)
def test_a_body_of_reviews_that_is_none_changes_nothing(body: Any, client: Any) -> None:
    refused = next(one["id"] for one in decided(client, rows(400, 6)) if one["rejected"])
    for entry in body.get("reviews", [])[:1]:
        entry["id"] = refused
    answer = client.post("/queue", json=body, headers=as_(client, Role.REVIEWER))
    assert (answer.status_code, answer.json()["error"]) == (422, "bad_request")
    assert get(client, "/state").json()["n_reviews"] == {}


def test_while_the_store_is_away_no_review_of_many_is_taken(
    client: Any, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = [one["id"] for one in decided(client, rows(400, 6)) if one["rejected"]][:3]

    def away() -> Any:
        raise StoreAway("in a secret place")

    monkeypatch.setattr(desk.store, "turn", away)
    entries = [{"id": id_, "action": "withdraw"} for id_ in refused]
    answer = client.post("/queue", json={"reviews": entries}, headers=as_(client, Role.REVIEWER))
    assert (answer.status_code, answer.json()["error"]) == (503, "store_away")
    assert "secret" not in answer.text


def test_a_key_stands_for_its_answer_until_it_is_too_old_and_is_gone_then(
    option: Callable[..., Any], tmp_path: Path
) -> None:
    where = tmp_path / "s.db"
    desk = new_desk(option(), where, keys_kept_s=3600)
    token = desk.store.add_token("loans", Role.DECIDER)

    def ask_as(key: str, seed: int) -> tuple[int, list[int]]:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
        answer = made.post("/decide", json={"rows": rows(2, seed)}, headers=headers)
        found = answer.json().get("decisions", [])
        return answer.status_code, [one["id"] for one in found]

    def age(seconds: float, key: str) -> None:
        with desk.store.transaction("written", write=True) as db:
            db.execute(KEYS.update().filter_by(key=key).values(at=KEYS.c.at - seconds))

    def kept() -> set[str]:
        with desk.store.transaction("read") as db:
            return set(db.scalars(sa.select(KEYS.c.key)))

    with TestClient(create_app(desk)) as made:
        assert ask_as("a", 0) == ask_as("a", 0) == (200, [0, 1])
        age(3500, "a")
        assert ask_as("a", 0) == (200, [0, 1])
        assert ask_as("a", 1) == (409, [])
        age(200, "a")
        assert ask_as("a", 1) == (200, [2, 3])  # free for another request, and kept anew
        assert ask_as("a", 1) == (200, [2, 3])
        assert ask_as("b", 2) == (200, [4, 5])
        age(3700, "a")
        desk._keys_looked_at = 0.0  # it looks every ten seconds
        assert ask_as("c", 3) == (200, [6, 7])
        assert kept() == {"b", "c"}


def test_a_body_that_is_not_read_as_json_is_told_why(client: Any) -> None:
    def words(body: str, kind: str) -> str:
        headers = as_(client, Role.DECIDER) | {"Content-Type": kind}
        return client.post("/decide", content=body, headers=headers).json()["message"]

    sent = json.dumps({"rows": rows(1, 0)})
    form = "application/x-www-form-urlencoded"  # what curl -d sends where nothing else is named
    assert "Content-Type: application/json" in words(sent, form)
    assert words("[" * 100_000, "application/json").startswith("The body cannot be read")
    assert words('{"rows": 1' + "0" * 5000 + "}", "application/json").endswith("is too long.")
    assert words("{", "application/json") == "The request is not what this route reads."


def test_an_entry_is_decided_once(client: Any) -> None:
    refused = next(one for one in decided(client, rows(400, 7)) if one["rejected"])
    first = review(client, refused["id"], action="withdraw")
    assert first.status_code == 200
    again = review(client, refused["id"], action="deliver", force=True, reason="again")
    assert (again.status_code, again.json()["error"]) == (409, "decided_already")
    assert len(get(client, f"/decisions/{refused['id']}").json()["reviews"]) == 1


def test_a_decision_beyond_the_margin_is_refused_and_taken_with_a_reason(client: Any) -> None:
    decided(client, rows(400, 8))
    case, outcome = next(
        (case, outcome)
        for case in get(client, "/queue?limit=200").json()["cases"]
        for outcome in case["outcomes"]
        if not outcome["within_margin"] and outcome["action"] == "deliver"
    )
    before = get(client, "/state").json()
    refused = review(client, case["id"], action="deliver")
    assert (refused.status_code, refused.json()["error"]) == (409, "passes_margin")
    assert refused.json()["gap"] == pytest.approx(outcome["gap"])
    assert 'take it with "force": true and a "reason": the margin' in refused.json()["message"]
    assert get(client, "/state").json() == before
    nothing_said = review(client, case["id"], action="deliver", force=True, reason=" ")
    assert nothing_said.status_code == 422
    taken = review(client, case["id"], action="deliver", force=True, reason="a court said so")
    assert taken.json()["reviews"][0]["reason"] == "a court said so"
    after = get(client, "/state").json()
    assert (after["within_margin"], after["left_by_people"], after["n_forced"]) == (False, True, 1)
    for row in rows(50, 9):
        decided(client, [row])
        gap = get(client, "/state").json()["gap"]
        assert gap <= max(after["gap"], 0.05) + 1e-12
    again = review(client, case["id"], action="withdraw")
    assert again.status_code in (200, 409)


BAD = {
    "no JSON": (b"{", 422),
    "no object": (b"[1]", 422),
    "no rows": (b'{"rows": []}', 422),
    "too many rows": (json.dumps({"rows": [{}] * 10_001}).encode(), 422),
    "an unknown key": (b'{"rows": [{}], "margin": 1}', 422),
    "a column is missing": (b'{"rows": [{"income": 1, "sex": "men"}]}', 422),
    "a text for a number": (b'{"rows": [{"income": "x", "sex": "men", "job": "cook"}]}', 422),
    "not finite": (b'{"rows": [{"income": 1e999, "sex": "men", "job": "cook"}]}', 422),
    "NaN": (b'{"rows": [{"income": NaN, "sex": "men", "job": "cook"}]}', 422),
    "half a character": (b'{"rows": [{"income": 1, "sex": "men", "job": "\\ud800"}]}', 422),
    "a zero": (b'{"rows": [{"income": 1, "sex": "a\\u0000", "job": "cook"}]}', 422),
    "a list": (b'{"rows": [{"income": [1], "sex": "men", "job": "cook"}]}', 422),
    "a column twice": (b'{"rows": [{"income": 1, "income": 9, "sex": "men", "job": "cook"}]}', 422),
    "rows twice": (b'{"rows": [{}], "rows": [{"income": 1, "sex": "men", "job": "cook"}]}', 422),
    "deep": (b'{"rows":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400),
    "a huge number": (b'{"rows": [{"income": ' + b"9" * 5000 + b"}]}", 400),
    "not UTF-8": (b'{"rows": "\xff"}', 400),
    "too large": (b" " * (8 << 20) + b"1", 413),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_bodies_are_refused_and_nothing_is_counted(what: str, client: Any) -> None:
    body, status = BAD[what]
    headers = as_(client, Role.DECIDER) | {"Content-Type": "application/json"}
    answer = client.post("/decide", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["message"]
    assert ("not UTF-8" in answer.text) == (status == 400)
    assert get(client, "/state").json()["n_decisions"] == 0


def test_what_no_route_reads_of_a_query_is_refused_by_name(client: Any) -> None:
    words = {
        "/queue?limt=2": "this route reads after, limit, withheld. Did you mean 'limit'?",
        "/queue?limit=2&limit=3": "stands more than once.",
        "/decisions/0?x=1": "this route reads none.",
        "/state?x": "this route reads none.",
        "/metrics?x=1": "this route reads none.",
        "/healthz?x=1": "this route reads none.",
        "/review?afer=1": "this route reads after, withheld. Did you mean 'after'?",
    }
    for path, said in words.items():
        refused = get(client, path)
        assert refused.status_code == 422, path
        (where,) = refused.json()["where"]
        assert where["place"] == ["query", path.partition("?")[2].partition("=")[0]]
        assert where["problem"] == said
    for known in (False, True):  # a token that is known by heart takes another way
        for path in ("/decide?dry=1", "/queue?x=1"):
            role = Role.DECIDER if path[1] == "d" else Role.REVIEWER
            sent = client.post(path, json={"rows": rows(1, 0)}, headers=as_(client, role))
            assert (sent.status_code, sent.json()["where"][0]["place"][0]) == (422, "query")
        if not known:
            decided(client, rows(1, 0))
    assert client.get("/state?x=1").status_code == 401  # the token comes first
    assert get(client, "/state", Role.READER).json()["n_decisions"] == 1
    assert client.get("/queue?limit=2", headers=as_(client, Role.REVIEWER)).status_code == 200


@pytest.mark.parametrize("said", ['"force": "yes"', '"force": 1', '"force": true, "force": false'])
def test_a_review_that_may_be_meant_otherwise_is_refused(said: str, client: Any) -> None:
    case = next(one for one in decided(client, rows(400, 6)) if one["rejected"])
    said = f'"action": "withdraw", "reason": "r", {said}'
    headers = as_(client, Role.REVIEWER) | {"Content-Type": "application/json"}
    one, several = f"{{{said}}}", f'{{"reviews": [{{"id": {case["id"]}, {said}}}]}}'
    for path, body in (("/queue", several), (f"/queue/{case['id']}", one)):
        answer = client.post(path, content=body, headers=headers)
        assert answer.status_code == 422, answer.text
        (where,) = answer.json()["where"]
        assert re.search("valid boolean|a key stands twice", where["problem"])
    assert get(client, "/state").json()["n_reviews"] == {}


SAME: dict[str, bytes] = {
    "in order": json.dumps({"rows": rows(30, 12)}).encode(),
    "an unknown group": b'{"rows": [{"income": 1, "sex": "x", "job": "cook"}]}',
    "more columns": b'{"rows": [{"income": 2, "sex": "men", "job": 1.5, "more": [1]}]}',
    "a row that is none": b'{"rows": [1]}',
    "spaces": b' \n{"rows" : [ {"income": 1, "sex": "men", "job": "cook"} ] } ',
    "nothing": b"",
    **{what: body for what, (body, _) in BAD.items()},
}


def test_what_is_read_without_the_framework_is_answered_as_by_it(
    option: Callable[..., Any], tmp_path: Path
) -> None:
    """Two servers get the same requests; another media type of JSON takes the long way."""
    found: dict[str, list[Any]] = {}
    for kind in ("application/json", "application/vnd.evenhand+json"):
        desk = new_desk(option(), tmp_path / f"{len(kind)}.db")
        token = desk.store.add_token("loans", Role.DECIDER)
        own = found[kind] = []
        with TestClient(create_app(desk)) as made:
            for what, body in SAME.items():
                for key in (
                    {},
                    {"Idempotency-Key": what.replace(" ", "-")},
                    {"Idempotency-Key": " "},
                ):
                    headers = {"Authorization": f"Bearer {token}", "Content-Type": kind} | key
                    answer = made.post("/decide", content=body, headers=headers)
                    told = dict(answer.headers)
                    own.append((what, answer.status_code, answer.json(), told))
            own.append(desk.view()[1].counts.tolist())
            counted = made.app.state.metrics.text().decode().splitlines()
            own.append([line for line in counted if line.startswith("evenhand_requests_total")])
    short, long = found.values()
    assert short == long
    assert {status for _, status, *_ in short[:-2]} == {200, 400, 413, 422}


def test_all_wrong_cells_are_named_and_no_value(client: Any) -> None:
    sent = rows(3, 1)
    sent[0]["income"], sent[2]["job"] = "a secret", ["another"]
    answer = ask(client, sent)
    assert [(one["row"], one["column"]) for one in answer.json()["where"]] == [
        (0, "income"),
        (2, "job"),
    ]
    assert "secret" not in answer.text
    assert "another" not in answer.text


ROUTES = [
    ("POST", "/queue", {Role.REVIEWER}),
    ("POST", "/decide", {Role.DECIDER}),
    ("GET", "/decisions/0", {Role.DECIDER, Role.REVIEWER}),
    ("GET", "/queue", {Role.REVIEWER}),
    ("POST", "/queue/0", {Role.REVIEWER}),
    ("GET", "/state", set(Role)),
    ("GET", "/metrics", set(Role)),
]


@pytest.mark.parametrize(("method", "path", "able"), ROUTES)
def test_each_route_is_for_its_roles_alone(
    method: str, path: str, able: set[Role], client: Any
) -> None:
    body = {"json": {"rows": rows(1, 0), "action": "deliver"}} if method == "POST" else {}
    for headers in ({}, {"Authorization": "Bearer evenhand_x"}, {"Authorization": "Basic eDp4"}):
        assert client.request(method, path, headers=headers, **body).status_code == 401
    for role in Role:
        found = client.request(method, path, headers=as_(client, role), **body).status_code
        assert (found == 403) == (role not in able)


POSTS = [path for method, path, _ in ROUTES if method == "POST"]


@pytest.mark.parametrize("path", [*POSTS, "/review/0"])
def test_no_body_is_read_of_somebody_who_is_not_let_in(path: str, client: Any) -> None:
    def body() -> Iterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    reader = as_(client, Role.READER)
    for headers in ({}, {"Authorization": "Bearer evenhand_x"}, reader):
        headers = headers | {"Content-Type": "application/json"}
        answer = client.post(path, content=body(), headers=headers, follow_redirects=False)
        assert answer.status_code in ({303} if path.startswith("/review") else {401, 403})


def test_of_a_form_no_more_is_read_than_it_may_have() -> None:
    """Who signs in has shown no token yet."""
    parts = iter([b"t" * 100_000] * 80)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(parts), "more_body": True}

    request = Request({"type": "http", "headers": []}, receive)
    with ThreadPoolExecutor(1) as apart:  # a browser of other tests may leave a loop in this thread
        assert apart.submit(lambda: asyncio.run(_form(request))).result() == {}
    assert len(list(parts)) == 78


def test_a_revoked_token_is_refused_and_the_store_holds_no_token(
    client: Any, desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import evenhand.serve.door as door

    assert get(client, "/state", Role.READER).status_code == 200
    desk.store.revoke_token("the reader")
    monkeypatch.setattr(door, "CALLERS_KEPT_S", 0.0)
    assert get(client, "/state", Role.READER).status_code == 401
    held = b"".join(file.read_bytes() for file in tmp_path.glob("store.db*"))
    assert held
    for token in client.tokens.values():
        assert token.encode() not in held


def test_a_decider_sees_its_own_decisions_alone(client: Any, desk: Desk) -> None:
    (one,) = decided(client, rows(1, 0))
    other = desk.store.add_token("another", Role.DECIDER)
    client.app.state.door._read_at = -1e9
    answer = client.get(f"/decisions/{one['id']}", headers={"Authorization": f"Bearer {other}"})
    assert answer.status_code == 404


def test_metrics_and_health_and_the_document(client: Any) -> None:
    decided(client, rows(50, 1))
    text = get(client, "/metrics", Role.READER).text
    assert "evenhand_margin 0.05" in text
    assert 'evenhand_said_total{class="yes",group="men"}' in text
    assert 'evenhand_requests_total{method="POST",route="/decide",status="200"} 1.0' in text
    assert client.get("/healthz").json() == {"status": "ok"}
    document = client.get("/openapi.json").json()
    assert {"/decide", "/queue", "/queue/{id}", "/state", "/metrics", "/healthz"} <= set(
        document["paths"]
    )


def test_counts_go_on_after_a_restart_and_another_model_is_refused(
    option: Callable[..., Any], tmp_path: Path, model: Any
) -> None:
    desk = new_desk(option(), tmp_path / "s.db")
    desk._option.decide([0], [0])  # not kept: the store alone counts
    desk.close()
    again = new_desk(option(), tmp_path / "s.db")
    assert again.view()[1].n_requests == 0
    again.close()
    said = r"s\.db counts other labels: .*belongs to the margin 0\.05, not to 0\.06.*with --store\."
    with pytest.raises(StateOfAnotherModel, match=said):
        new_desk(option(margin=0.06), tmp_path / "s.db")
    other = RejectOptionClassifier(model, 0.05, cold_start=20, model_id="another")
    with pytest.raises(StateOfAnotherModel, match="belongs to the model"):
        new_desk(other, tmp_path / "s.db")


@pytest.mark.parametrize("earlier", [False, True])
def test_groups_of_other_columns_are_not_counted_as_those_of_the_same_names(
    option: Callable[..., Any], tmp_path: Path, earlier: bool
) -> None:
    def begin(*columns: str, grouping: Grouping | None = None, **settings: Any) -> None:
        made = option(**settings)
        store = DecisionStore(tmp_path / "s.db")
        Desk(made, store, Reader.of(made, columns, grouping)).close()

    merged = Grouping(merged=("nobody",), known=("women", "men"))
    begin("sex")
    if earlier:  # a store of before has no such table: who comes first says what they are made of
        with sa.create_engine(f"sqlite:///{tmp_path / 's.db'}").begin() as db:
            db.execute(sa.text("DROP TABLE evenhand_groups"))
        with pytest.raises(StateOfAnotherModel, match="belongs to the margin"):
            begin("sex", margin=0.06)
        begin("gender")
        with pytest.raises(StateOfAnotherModel, match="made of 'gender', not of 'sex'"):
            begin("sex")
        return
    begin("sex")
    for columns, grouping in ((("gender",), None), (("sex",), merged)):
        with pytest.raises(StateOfAnotherModel, match="made of 'sex', not of") as error:
            begin(*columns, grouping=grouping)
        assert ("nobody" in str(error.value)) == (grouping is not None)


def test_no_value_of_a_row_stands_in_the_logs_nor_in_answers_to_defects(
    client: Any, desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = {"income": 77777.125, "job": "whistleblower", "sex": "men"}
    decided(client, [secret])

    def broken(X: Any) -> Any:
        raise ValueError(f"could not read {[X.pop(name) for name in X.names]}")

    monkeypatch.setattr(desk.model, "said", broken)
    answer = ask(client, [secret])
    assert answer.status_code == 500
    assert "Nothing was answered" in answer.json()["message"]
    said = caplog.text + answer.text
    assert "POST /decide 500" in said
    assert "whistleblower" not in said
    assert "77777" not in said


def test_requests_at_once_are_decided_together_and_none_spoils_another(client: Any) -> None:
    sent = rows(60, 11)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda row: decided(client, [row])[0], sent))
    assert sorted(one["id"] for one in found) == list(range(60))
    state = get(client, "/state").json()
    assert state["n_decisions"] == 60
    assert state["within_margin"]
    assert np.isfinite(state["gap"])


@pytest.fixture
def two_margins(option: Callable[..., Any], tmp_path: Path) -> Iterator[Any]:
    desk = new_desk(option(**calibrated()), tmp_path / "two.db")
    tokens = {role: desk.store.add_token(f"the {role}", role) for role in Role}
    with TestClient(create_app(desk)) as made:
        made.tokens = tokens
        yield made
    desk.close()


def test_several_margins_are_each_kept_and_told(
    two_margins: Any, option: Callable[..., Any]
) -> None:
    sent, plain = rows(400, 1), option(**calibrated())
    frame = pd.DataFrame(sent)
    plain.decide(frame[["income", "job"]], sensitive_features=frame["sex"])
    plain.deliver()
    decided(two_margins, sent)
    state = get(two_margins, "/state").json()
    told = [(one["notion"], one["gap_is"], one["margin"]) for one in state["margins"]]
    assert told == [("demographic-parity", "exact", 0.1), ("error-parity", "upper limit", 0.3)]
    found = [one["gap"] for one in state["margins"]]
    assert found == pytest.approx(list(plain.gaps_.values()))
    assert found[1] > 0  # a limit is above 0 whatever the labels
    assert all(one["gap"] <= one["margin"] and one["within_margin"] for one in state["margins"])
    assert "confidence 0.95" in state["promise"]
    queue = get(two_margins, "/queue").json()
    assert queue["margins"] == state["margins"]
    text = get(two_margins, "/metrics").text
    assert 'evenhand_notion_margin{notion="error-parity",reference="rest"} 0.3' in text


def test_each_outcome_says_what_it_does_to_every_margin(two_margins: Any) -> None:
    decided(two_margins, rows(400, 1))
    for case in get(two_margins, "/queue?limit=20").json()["cases"]:
        now = get(two_margins, f"/queue?after={case['id'] - 1}&limit=1").json()["cases"][0]
        outcome = next(one for one in now["outcomes"] if one["action"] == "deliver")
        answer = review(two_margins, case["id"], action="deliver")
        assert (answer.status_code == 409) == outcome["needs_force"]
        if answer.status_code == 409:
            assert not all(one["within_margin"] for one in outcome["margins"])
            said = {"action": "deliver", "force": True, "reason": "it is urgent"}
            assert review(two_margins, case["id"], **said).status_code == 200
        state = get(two_margins, "/state").json()
        assert outcome["within_margin"] == all(one["within_margin"] for one in outcome["margins"])
        if outcome["needs_force"]:
            assert state["margins"] == outcome["margins"]
            assert state["left_by_people"]
            return
    raise AssertionError("the stream has no case that leaves a margin")


def test_the_page_shows_each_margin(two_margins: Any) -> None:
    decided(two_margins, rows(400, 1))
    token = two_margins.tokens[Role.REVIEWER]
    page = two_margins.post("/review/sign-in", data={"token": token})
    for one in get(two_margins, "/state").json()["margins"]:
        assert f"{one['gap']:.4f}" in page.text
    assert "Demographic parity now" in page.text
    assert "upper limit, margin 0.3" in page.text
    case = get(two_margins, "/queue").json()["cases"][0]
    text = two_margins.get(f"/review/{case['id']}").text
    assert "Error parity: the upper limit of the gap is" in text
    for outcome in case["outcomes"]:
        for one in outcome["margins"]:
            assert f"to {one['gap']:.4f}: " in text
    n_bars = sum(len(outcome["margins"]) for outcome in case["outcomes"])
    assert text.count("<svg class=") == n_bars > len(case["outcomes"])


def test_counts_under_other_margins_or_calibration_rows_are_refused(
    option: Callable[..., Any], tmp_path: Path
) -> None:
    new_desk(option(**calibrated()), tmp_path / "s.db").close()
    new_desk(option(**calibrated()), tmp_path / "s.db").close()
    for settings, named in (
        (calibrated(n=3999), "the calibration rows"),
        (calibrated(level=0.9), "the calibration rows"),
        (calibrated(admit_by="estimate"), "the calibration rows"),
        (calibrated(fairness=ErrorParity(margin=0.3)), "the notion"),
        ({"margin": 0.1}, "the notion"),
    ):
        with pytest.raises(StateOfAnotherModel, match=f"belongs to {named}"):
            new_desk(option(**settings), tmp_path / "s.db")
