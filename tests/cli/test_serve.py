"""``evenhand serve`` and ``evenhand tokens``: what they refuse, and a server that answers."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand

from .conftest import people

pytest.importorskip("fastapi", reason="the extra serve is not installed")

Run = Callable[..., Any]
PERSON = {"age": 40.5, "job": "clerk", "hours": 30, "race": "A", "sex": "F"}


def call(url: str, token: str = "", body: object = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    sent = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, sent, headers)) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
def test_a_server_answers_and_ends_cleanly(model: Path, run: Run, shell: Run) -> None:
    token = run("tokens", "add", "loans", "--role", "decider").stdout.strip()
    known = evenhand.load(model)
    person = {name: PERSON[name] for name in (*known.fitted_.columns, "sex")}
    server = shell("serve", "model", "--port", "0", "--json")
    try:
        said = json.loads(server.stdout.readline())
        url = f"http://127.0.0.1:{said['port']}"
        assert said["margin"] == 0.1  # that of training
        assert call(f"{url}/healthz") == (200, {"status": "ok"})
        status, answer = call(f"{url}/decide", token, {"rows": [person] * 3})
        assert status == 200
        assert [one["id"] for one in answer["decisions"]] == [0, 1, 2]
        assert call(f"{url}/decide", "another", {"rows": [person]})[0] == 401
        state = call(f"{url}/state", token)[1]
        assert (state["n_decisions"], state["claim"]) == (3, str(known.guarantee_))
    finally:
        server.terminate()
        _, err = server.communicate(timeout=60)
    assert server.returncode in (0, -15)
    assert not Path("decisions.db-wal").exists()  # the file alone is all of it
    assert "Traceback" not in err
    assert "POST /decide 200" in err
    said = re.sub(r"\d+\.\d ms", "", err)  # a duration may look like an age
    assert "40.5" not in said
    assert token not in err


def test_an_address_that_is_taken_is_refused_and_no_store_is_made(model: Path, refuse: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refuse("serve", "model", "--port", port)
    assert f"Nothing can listen on 127.0.0.1, port {port}: Address already in use" in said
    assert "no.such.host.invalid" in refuse("serve", "model", "--host", "no.such.host.invalid")
    assert not Path("decisions.db").exists()


def test_a_store_of_another_margin_is_refused(model: Path, refuse: Run) -> None:
    from evenhand.serve.cases import Reader
    from evenhand.serve.store import DecisionStore

    option = evenhand.load(model).with_reject_option(0.1)
    reader = Reader.of(option, ("other",))
    DecisionStore("decisions.db").begin(option.reject_option_, reader)
    said = refuse("serve", "model", "--margin", "0.2")
    assert "belongs to the margin 0.1, not to 0.2" in said
    assert "begin a new one" in said
    said = refuse("serve", "model", "--margin", "0.1")
    assert "made of 'other', not of 'sex'" in said


def test_margins_are_kept_by_the_rows_of_a_file(
    model: Path, run: Run, refuse: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.testclient import TestClient

    from evenhand.serve import server
    from evenhand.serve.app import create_app

    states: list[Any] = []

    def asked(desk: Any, *, claim: str, listening: Callable[[str, int], None], **_: object) -> None:
        token = desk.store.add_token(f"r{len(states)}", "reader")
        with TestClient(create_app(desk, claim=claim)) as client:
            listening("127.0.0.1", 1)
            answer = client.get("/state", headers={"Authorization": f"Bearer {token}"})
            states.append(answer.json())

    monkeypatch.setattr(server, "run", asked)
    people(3000, 77).to_csv("labelled.csv", index=False)
    words = ("serve", "model", "--margin", "0.2", "--within", "error-parity=0.3", "--calibration")
    told = run(*words, "labelled.csv", "--json")
    said = json.loads(told.stdout)
    assert said["margins"] == states[0]["margins"]
    assert [(one["notion"], one["margin"], one["gap_is"]) for one in said["margins"]] == [
        ("demographic-parity", 0.2, "exact"),
        ("error-parity", 0.3, "upper limit"),
    ]
    assert "demographic parity within 0.2, error parity within 0.3" in told.stderr
    public = "the 3000 calibration rows with their labels and groups"
    assert public in states[0]["claim"]
    people(2999, 77).to_csv("fewer.csv", index=False)
    assert "belongs to the calibration rows" in refuse(*words, "fewer.csv")
    run("serve", "model", "--store", "other.db")
    left = run("serve", "model", "--groups", "F,X", "--store", "left.db").stderr
    assert "--groups leaves out 'M' of training: rows of theirs get no label" in left
    states.pop()
    assert [(one["notion"], one["margin"]) for one in states[1]["margins"]] == [
        ("demographic-parity", 0.1)  # that of training
    ]
    assert public not in states[1]["claim"]
    rule = ("--within", "equalized-odds=0.4", "--admit-by", "estimate", "--reference", "pairwise")
    run("serve", "model", *rule, "--calibration", "labelled.csv", "--store", "third.db")
    (one,) = states[2]["margins"]
    assert (one["reference"], one["gap_is"]) == ("pairwise", "estimate")
    assert "nothing is promised of the gap itself" in states[2]["promise"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--within", "error-parity=0.1"), "error-parity is about true classes, and nothing tells"),
        (("--within", "error=0.1"), "--within: the notion must be one of"),
        (("--margin", "0.1", "--within", "demographic-parity=0.2"), "has two margins"),
        (("--calibration", "test.csv"), "--calibration is of use only for a margin about true"),
        (
            ("--sensitive", "race"),
            "this model knows those of 'sex' (leave --sensitive out for these)",
        ),
        (("--margin", "1.5"), "--margin must lie in [0, 1], got --margin=1.5"),
        (("--groups", "F,F"), "none of them empty or twice, got 'F,F'"),
        (("--threshold", "2"), "threshold must lie in [0, 1]"),
        (("--cold-start", "0"), "cold_start must be at least 1"),
        (("--store", "mysql://there/it"), "must be SQLite or PostgreSQL, got 'mysql'"),
        (("--store", "no/such/folder/x.db"), "could not be opened"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_answered(
    words: tuple[str, ...], message: str, model: Path, refuse: Run
) -> None:
    assert message in refuse("serve", "model", *words)


def test_tokens_are_made_listed_and_revoked(town: Path, run: Run, refuse: Run) -> None:
    token = run("tokens", "add", "anna", "--role", "reviewer").stdout.strip()
    other = json.loads(run("tokens", "add", "ben", "--role", "reader", "--json").stdout)["token"]
    assert token != other
    listed = json.loads(run("tokens", "list", "--json").stdout)["tokens"]
    assert listed == [{"name": "anna", "role": "reviewer"}, {"name": "ben", "role": "reader"}]
    assert "anna" in run("tokens", "list").stdout
    again = refuse("tokens", "add", "anna", "--role", "reader")
    assert "a token of the name 'anna' already" in again
    assert "role must be one of 'reader'" in refuse("tokens", "add", "carl", "--role", "admin")
    assert "must be 1 to 64 letters" in refuse("tokens", "add", "a\nb", "--role", "reader")
    run("tokens", "revoke", "anna")
    assert "no token of the name 'anna'" in refuse("tokens", "revoke", "anna")
    assert token.encode() not in Path("decisions.db").read_bytes()
    for words in (("list",), ("revoke", "ben")):
        assert "There is no store typo.db" in refuse("tokens", *words, "--store", "typo.db")
    assert not Path("typo.db").exists()
