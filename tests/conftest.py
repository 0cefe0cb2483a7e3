"""One thread per process, no clock, the data sets, a PostgreSQL server, and a Chromium."""

import functools
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # before NumPy is loaded: small matrices, many tests

sys.path[:0] = [str(Path(__file__).with_name(name)) for name in ("reseed", "postgres")]

import hypothesis.core  # noqa: E402 - the threads must be set first
import pytest  # noqa: E402 - as above
import sqlalchemy as sa  # noqa: E402 - as above
import unseeded  # noqa: E402 - as above
from hypothesis import settings  # noqa: E402 - as above
from postgres_server import PostgresServer, postgres_programs  # noqa: E402 - as above

import reseed  # noqa: E402 - as above
from evenhand import _notions, datasets, show_values  # noqa: E402 - as above
from evenhand._stored import STORED  # noqa: E402 - as above
from evenhand.datasets.catalogue import TABLES  # noqa: E402 - as above

settings.register_profile("evenhand", deadline=None)  # a busy machine is no error
settings.load_profile("evenhand")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--reseed",
        type=int,
        default=0,
        metavar="K",
        help="shift every seed that a test sets by a function of K; 0, the default, shifts nothing",
    )


def pytest_configure(config: pytest.Config) -> None:
    if shift := config.getoption("--reseed"):
        reseed.install(shift)
        reseed.install_torch()
        if config.getoption("--hypothesis-seed", None) is None:
            hypothesis.core.global_force_seed = shift  # or a failure could not be seen again


def pytest_report_header(config: pytest.Config) -> str | None:
    shift = config.getoption("--reseed")
    return f"reseed: every seed is shifted, K={shift}" if shift else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    # Doctests print what a seed gives; a test that compares with such a number says that it does.
    pinned = item.get_closest_marker("pinned")
    if pinned is not None and not pinned.kwargs.get("reason"):
        raise pytest.UsageError(f"{item.nodeid}: pinned(reason=...) says why the seeds must stay")
    exempt = isinstance(item, pytest.DoctestItem) or pinned is not None
    fresh = item.get_closest_marker("fresh")
    if fresh is not None and not fresh.kwargs.get("reason"):
        raise pytest.UsageError(f"{item.nodeid}: fresh(reason=...) says why draws must be new ones")
    with (
        reseed.unshifted() if exempt else nullcontext(),
        nullcontext() if fresh else unseeded.drawn_by(item.nodeid),
    ):
        return (yield)


load = functools.cache(lambda name, **options: TABLES[name].load(**options))


@functools.cache
def missing(name: str) -> str:
    """Why a data set cannot be had, once per process; empty where it can."""
    try:
        load(name)
    except datasets.DataNotAvailable as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def _shipped_notions() -> Iterator[None]:
    """Forget the notions that a test registered: reports of the next one would list them."""
    yield
    from evenhand.fairness.notions import _OWN

    for home, kind in _OWN.items():
        for names in (_notions.OF_DECISIONS, _notions.OF_SCORES):
            if names.get(kind.name) == home:
                del names[kind.name]
        STORED.pop(kind.__name__, None)
    _OWN.clear()


@pytest.fixture
def real_data() -> Callable[..., datasets.Dataset]:
    """Return ``real_data("adult")``: the data set through its loader, or a skip that says why.

    Mark the tests that use it with ``pytest.mark.data``.
    """

    def get(name: str, **options: object) -> datasets.Dataset:
        if why := missing(name):
            pytest.skip(why)
        return load(name, **options)

    return get


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server per test process; skips where PostgreSQL or its driver is not installed."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: no initdb in /usr/lib/postgresql or on the PATH")
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    server = PostgresServer(programs)
    yield server
    server.close()


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty PostgreSQL database that this test alone uses."""
    name = f"test_{secrets.token_hex(6)}"
    postgres_server.run(f"CREATE DATABASE {name}")
    yield postgres_server.url(name)
    postgres_server.run(f"DROP DATABASE {name} WITH (FORCE)")


GUARD = "canary-in-a-cage"


@pytest.fixture
def guarded(postgres_server: Any, postgres: str) -> Callable[..., str]:
    """Return ``guarded(password="...")``: the URL of a database that asks for a password."""
    user = f"guard_{sa.make_url(postgres).database}"
    postgres_server.ask_for_a_password(user, GUARD)

    def url(**query: str) -> str:
        made = sa.make_url(postgres).set(username=user)
        return made.update_query_dict(query).render_as_string(hide_password=False)

    return url


CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Visit:
    """An open page and what happened on it."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip(f"no {CHROMIUM}: install the package chromium to run these")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def visit(browser: Any) -> Iterator[Callable[[Path], Visit]]:
    opened = []

    def open_page(path: Path) -> Visit:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.append(page)
        seen = Visit(page)
        page.on("console", lambda message: seen.complaints.append(message.text))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("dialog", lambda dialog: seen.complaints.append(dialog.message))
        page.on("request", lambda request: seen.requests.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_load_state("load")
        return seen

    yield open_page
    for page in opened:
        page.close()


@pytest.fixture
def values_shown() -> Iterator[None]:
    """Let messages quote private values, as the curator may ask for."""
    with show_values():
        yield
