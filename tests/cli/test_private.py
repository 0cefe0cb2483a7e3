"""What is private does not reach the screen: passwords, and what stands in private cells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from evenhand.cli import app

Run = Callable[..., Any]
PASSWORD = "canary-in-a-cage"


def test_the_command_line_shows_no_password(
    guarded: Callable[..., str], town: Path, asked: Run
) -> None:
    account = {"--account-epsilon": "9", "--teachers": "20"}
    good = asked({"--ledger": guarded(password=PASSWORD), **account})
    done = CliRunner().invoke(app, [*good, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["account"]["ledger"].endswith("password=***")
    other = asked({"--ledger": guarded(password=PASSWORD), "--out": "two", **account})
    spent = CliRunner().invoke(app, [*other, "--epsilon", "8.9"])
    wrong = asked({"--ledger": guarded(password=f"{PASSWORD}-not"), "--out": "no", **account})
    refused = CliRunner().invoke(app, wrong)
    assert spent.exit_code in (0, 2)
    assert (refused.exit_code, "password authentication failed" in refused.stderr) == (2, True)
    for result in (done, spent, refused):
        assert PASSWORD not in result.output
    files = [file for file in town.rglob("*") if file.is_file()]
    assert not [file for file in files if PASSWORD.encode() in file.read_bytes()]
