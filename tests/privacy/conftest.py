"""Stores of each kind, and a noise that tells when it is drawn."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from evenhand.privacy import DatabaseStore, MemoryStore, Store

POSTGRES = os.environ.get("EVENHAND_TEST_POSTGRES", "")
"""A SQLAlchemy URL of an empty PostgreSQL database; without it those tests are skipped."""


class Tripwire:
    """Zero noise that runs ``on_draw`` at each draw: what does the ledger show then?"""

    name = "a tripwire"
    protects = True

    def __init__(self, on_draw: Callable[[], None]) -> None:
        self.on_draw = on_draw

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
        self.on_draw()
        return np.zeros(shape, dtype=np.int64)

    laplace = gaussian

    def gaussian_mu(self, sigma: float) -> float:
        return 1 / sigma

    laplace_mu = gaussian_mu


@pytest.fixture
def tripwire() -> type[Tripwire]:
    return Tripwire


def _wipe(url: str) -> None:
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool)
    with engine.begin() as db:
        db.exec_driver_sql("DROP TABLE IF EXISTS evenhand_entries")
        db.exec_driver_sql("DROP TABLE IF EXISTS evenhand_accounts")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DatabaseStore]:
    """A store that processes can share."""
    if request.param == "sqlite":
        yield DatabaseStore(tmp_path / "ledger.db")
    else:
        if not POSTGRES:
            pytest.skip("set EVENHAND_TEST_POSTGRES to the URL of an empty database")
        _wipe(POSTGRES)
        yield DatabaseStore(POSTGRES)
        _wipe(POSTGRES)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Every kind of store: they keep one contract."""
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "sqlite":
        yield DatabaseStore(tmp_path / "ledger.db")
    else:
        if not POSTGRES:
            pytest.skip("set EVENHAND_TEST_POSTGRES to the URL of an empty database")
        _wipe(POSTGRES)
        yield DatabaseStore(POSTGRES)
        _wipe(POSTGRES)
