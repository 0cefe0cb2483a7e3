"""Schemathesis makes requests of the API's own document: none of them is a defect of the server."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from evenhand.serve.tokens import Role

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
from schemathesis.checks import not_a_server_error  # noqa: E402 - only where it is installed
from schemathesis.specs.openapi.checks import (  # noqa: E402 - as above
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = (
    *(not_a_server_error, status_code_conformance),
    *(content_type_conformance, response_schema_conformance),
)
N_REQUESTS = int(os.environ.get("EVENHAND_SCHEMA_REQUESTS", "70"))
"""About as many are made, of all routes together."""


@pytest.mark.slow
def test_no_request_is_a_defect_and_answers_are_what_the_document_says(client: Any) -> None:
    document = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    operations = [found.ok() for found in document.get_all_operations()]
    statuses: dict[str, set[int]] = {}
    n_requests = 0
    kinds = [(operation, mode) for operation in operations for mode in schemathesis.GenerationMode]

    for operation, mode in kinds:

        @settings(
            max_examples=-(-N_REQUESTS // len(kinds)),
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
            database=None,
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def send(case: Any) -> None:
            nonlocal n_requests
            role = Role.DECIDER if case.path == "/decide" else Role.REVIEWER
            token = {"Authorization": f"Bearer {client.tokens[role]}"}
            answer = case.call(headers=token, timeout=120)  # also where the machine is busy
            case.validate_response(answer, checks=CHECKS)
            statuses.setdefault(case.operation.label, set()).add(answer.status_code)
            n_requests += 1

        with suppress(Unsatisfiable):  # a route without input has no wrong one
            send()
    print(n_requests, {name: sorted(found) for name, found in statuses.items()})
    assert n_requests >= N_REQUESTS / 4
    assert 200 in statuses["POST /decide"]
    assert 200 in statuses["GET /state"]
