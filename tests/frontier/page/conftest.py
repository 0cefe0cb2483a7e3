"""A page of 5,000 runs, written once for the tests of its size and of its speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.frontier import Run
from evenhand.frontier.page.write import write_page
from evenhand.testing.frontier import synthetic_runs


@pytest.fixture(scope="session")
def big(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Run], Path]:
    """Return 5,000 runs and the page with them, in a folder that was not there before."""
    runs = synthetic_runs(5000)
    path = tmp_path_factory.mktemp("big") / "deep" / "frontier.html"
    return runs, write_page(runs, path, title="Big")
