"""The command line as processes: exit codes, streams, kills, and two runs on one ledger."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.privacy import Budget, DatabaseStore
from evenhand.privacy.gaussian import epsilon_from_mu
from evenhand.privacy.ledger_store import mu_squared_of

Run = Callable[..., Any]
WAIT_S = 120.0


def finish(process: subprocess.Popen[str]) -> tuple[str, str, int]:
    """Wait; returns stdout, stderr and the exit code."""
    out, err = process.communicate(timeout=WAIT_S)
    return out, err, process.returncode


def entries(ledger: Path) -> int:
    """Number of charges on record, 0 where there is no ledger yet."""
    if not ledger.exists():
        return 0
    try:
        with closing(sqlite3.connect(ledger)) as db:
            found: int = db.execute("SELECT COUNT(*) FROM evenhand_entries").fetchone()[0]
            return found
    except sqlite3.OperationalError:  # the table is being made, or written
        return 0


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for a condition while the process runs."""
    end = time.monotonic() + WAIT_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.slow
def test_machines_read_one_object_on_stdout_and_nothing_else(
    town: Path, shell: Run, asked: Run
) -> None:
    # 200 teachers make a constant student, and delta is too large: two warnings for stderr.
    changes = {"--teachers": "200", "--epsilon": "0.2", "--delta": "0.01"}
    out, err, code = finish(shell(*asked(changes), "--json"))
    assert code == 0, err
    assert json.loads(out)["epsilon"] == 0.2
    assert out.count("\n") == 1
    lines = err.splitlines()
    assert lines
    assert all(line.startswith("warning: ") for line in lines)


@pytest.mark.slow
def test_bad_input_ends_with_2_and_one_line_of_words(town: Path, shell: Run, asked: Run) -> None:
    out, err, code = finish(shell(*asked({"--label": "laon"})))
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith("error: private.csv has no column 'laon'")
    assert not Path("model").exists()


@pytest.mark.slow
def test_a_defect_ends_with_1_and_a_traceback_that_shows_no_values(town: Path) -> None:
    # A defect made on purpose: reading the table raises what no user can mend.
    program = (
        "import evenhand.datasets, evenhand.cli\n"
        "def broken(path):\n"
        "    secret = 'a value computed from person %d' % len(path.name[:7])\n"
        "    raise RuntimeError('a defect')\n"
        "evenhand.datasets.read_table = broken\n"
        "evenhand.cli.app(['train', 'private.csv', '--public', 'public.csv', '--label', 'loan',\n"
        "    '--sensitive', 'sex', '--epsilon', '1', '--margin', '0.1', '--out', 'model'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 1
    assert "RuntimeError: a defect" in done.stderr
    assert "Traceback" in done.stderr
    # What stands in the program may be shown, what stood in a variable may not.
    assert "a value computed from person 7" not in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_no_model_and_its_charge_stays(
    town: Path, shell: Run, asked: Run, with_signal: signal.Signals
) -> None:
    process = shell(*asked({"--ledger": "ledger.db", "--account-epsilon": "9"}))
    until(lambda: entries(town / "ledger.db") > 0, process)
    process.send_signal(with_signal)
    out, err, code = finish(process)
    if with_signal == signal.SIGINT:
        assert code == 130, err
        assert err.splitlines() == ["interrupted"]
    else:
        assert code == -with_signal
    assert out == ""
    assert not Path("model").exists()
    assert DatabaseStore("ledger.db").spent("default") > 0


@pytest.mark.slow
@pytest.mark.parametrize("where", ["in a logged close", "in a finalizer"])
def test_an_interrupt_ends_the_run_in_one_word_wherever_it_lands(town: Path, where: str) -> None:
    # The moment is made on purpose: a connection being closed, an object being collected.
    program = (
        "import logging, signal, time, evenhand.datasets, evenhand.cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background\n"
        "class Collected:\n"
        "    def __del__(self):\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "def interrupted(path):\n"
        f"    if {where!r} == 'in a finalizer':\n"
        "        Collected()\n"
        "        time.sleep(60)\n"
        "    try:\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    except BaseException:\n"
        "        logging.getLogger('sqlalchemy.pool').error('closing', exc_info=True)\n"
        "        raise\n"
        "evenhand.datasets.read_table = interrupted\n"
        "evenhand.cli.app(['train', 'private.csv', '--public', 'public.csv', '--label', 'loan',\n"
        "    '--sensitive', 'sex', '--epsilon', '1', '--margin', '0.1', '--out', 'model'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.slow
def test_two_runs_at_once_cannot_spend_an_account_twice(town: Path, shell: Run, asked: Run) -> None:
    # Each run alone would take nearly all of the account.
    account = {"--ledger": "ledger.db", "--account-epsilon": "4.2"}
    both = [shell(*asked({**account, "--out": name}), "--json") for name in ("one", "two")]
    ends = [finish(process) for process in both]
    assert {code for _, _, code in ends} <= {0, 2}
    assert any(code == 0 for _, _, code in ends), ends
    spent = mu_squared_of(DatabaseStore("ledger.db").spent("default"))
    assert epsilon_from_mu(spent**0.5, 1e-5) <= 4.2
    assert spent <= Budget(epsilon=4.2, delta=1e-5).mu_squared
    for name, (out, err, code) in zip(("one", "two"), ends, strict=True):
        assert Path(name).exists() == (code == 0)
        if code == 0:
            assert json.loads(out)["guarantee"] == str(evenhand.load(name).guarantee_)
        else:
            assert "The account 'default'" in err


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error_in_our_words(model: Path) -> None:
    with open("test.csv") as file:
        header, *rows = file.readlines()
    Path("long.csv").write_text(header + "".join(rows) * 400)
    done = subprocess.run(
        f"{sys.executable} -m evenhand predict model long.csv | head -1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.stdout == "prediction\n"
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_progress_is_for_terminals_and_goes_to_stderr(town: Path, asked: Run) -> None:
    ours, theirs = os.openpty()  # a terminal, on stderr alone
    with subprocess.Popen(
        [sys.executable, "-m", "evenhand", *asked({}), "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:  # so Linux says that nobody holds the other end any more
            pass
        os.close(ours)
        assert process.stdout is not None
        assert json.loads(process.stdout.read())["epsilon"] == 4.0
        assert process.wait(WAIT_S) == 0
    assert b"reading private.csv" in shown
    assert b"measuring and writing" in shown
