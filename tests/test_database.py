"""A database's URL may hold a password, and no message does."""

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.frontier import RunStore
from evenhand.privacy import Budget, DatabaseStore, Ledger
from evenhand.privacy.ledger_store import StoreUnavailable

PASSWORD = "canary-in-a-cage"

STORES = (DatabaseStore, RunStore)


def opened(url: str) -> Ledger:
    return Ledger(Budget(epsilon=1.0, delta=1e-5), store=DatabaseStore(url), account="mine")


def test_without_a_password_the_server_lets_nobody_in(guarded: Callable[..., str]) -> None:
    with pytest.raises(StoreUnavailable, match="no password supplied"):
        opened(guarded())


@pytest.mark.parametrize("way", ["PGPASSWORD", "PGPASSFILE", "query"])
def test_the_environment_a_pgpass_file_and_the_url_let_us_in(
    way: str, guarded: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {}
    if way == "PGPASSWORD":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    elif way == "PGPASSFILE":
        file = tmp_path / "pgpass"
        file.write_text(f"*:*:*:*:{PASSWORD}\n")
        file.chmod(0o600)  # libpq passes over one that others may read
        monkeypatch.setenv("PGPASSFILE", str(file))
    else:
        query = {"password": PASSWORD}
    ledger = opened(guarded(**query))
    assert ledger.remaining > 0
    assert PASSWORD not in f"{ledger!r}{ledger.store}{ledger.store!r}"


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{PASSWORD}@/there?host=/nowhere",
        f"postgresql://me@/there?host=/nowhere&password={PASSWORD}",
        f"postgresql://me@/there?host=/nowhere&sslpassword={PASSWORD}",
        f"postgresql://me@/there?host=/nowhere&options={PASSWORD}",
        f"postgresql://me@/there?host=/nowhere&pasword={PASSWORD}",
        f"postgresql://me:at@{PASSWORD}@/there?host=/nowhere",
        f"postgresql://me@localhost:{PASSWORD}/there",
        f"postgres://me:{PASSWORD}@/there?host=/nowhere",
        f"postgresql+none://me:{PASSWORD}@/there",
        f"mysql://me:{PASSWORD}@localhost/there",
        f"post gres://me:{PASSWORD}@localhost/there",
        f"sqlite://me:{PASSWORD}@localhost",
    ],
)
def test_no_message_no_traceback_and_no_copy_shows_a_password(store: Any, url: str) -> None:
    said = ""
    try:
        made = store(url)
        said = f"{made}{made!r}{made._database!r}{pickle.loads(pickle.dumps(made))!r}"
        made.open(None) if store is RunStore else opened(url)
    except Exception as error:
        said += "".join(traceback.format_exception(error))
    assert said
    assert PASSWORD not in said
