"""Stores of each kind, and a noise that tells when it is drawn."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evenhand.privacy import DatabaseStore
from evenhand.privacy.ledger_store import MemoryStore, Store


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


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseStore:
    """A store that processes can share."""
    if request.param == "sqlite":
        return DatabaseStore(tmp_path / "ledger.db")
    return DatabaseStore(request.getfixturevalue("postgres"))


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Every kind of store: they keep one contract."""
    if request.param == "memory":
        return MemoryStore()
    if request.param == "sqlite":
        return DatabaseStore(tmp_path / "ledger.db")
    return DatabaseStore(request.getfixturevalue("postgres"))
