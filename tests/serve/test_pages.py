"""The reviewers' page in a real Chromium, at a desk and on a phone, by mouse and by keyboard."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import wait
from typing import Any

import pytest
from people import calibrated, new_desk, rows

from evenhand.serve.app import create_app
from evenhand.serve.desk import Asked, Desk
from evenhand.serve.tokens import Role

pytestmark = pytest.mark.browser
HOSTILE = "<script>window.hit=1</script>"


def ask(desk: Desk, sent: list[dict[str, Any]]) -> None:
    future = desk.decide(Asked(rows=sent, by="loans", key=None, body_digest=""))
    wait([future])
    future.result()


class Site:
    """A server in this process, and pages of it."""

    def __init__(self, desk: Desk, browser: Any) -> None:
        import uvicorn

        self.desk, self._browser, self._opened = desk, browser, []
        self.token = desk.store.add_token("anna.meyer", Role.REVIEWER)
        config = uvicorn.Config(create_app(desk), port=0, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.late: list[dict[str, Any]] = []

    def open(self, *, width: int = 1280, **options: Any) -> Any:
        """Open the first page, signed in."""
        context = self._browser.new_context(viewport={"width": width, "height": 844}, **options)
        self._opened.append(context)
        page = context.new_page()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(self.url)
        page.get_by_label("Your token").fill(self.token)
        with page.expect_navigation():
            page.get_by_role("button", name="Sign in").click()
        return page

    def close(self) -> None:
        for context in self._opened:
            context.close()
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture(scope="module")
def site(model: Any, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    where = tmp_path_factory.mktemp("pages") / "s.db"
    desk = new_desk(model.with_reject_option(0.05, cold_start=20), where)
    sent = rows(400, 1)
    # Men whom the model says yes to, until the margin is reached: it refuses the rest of them.
    sent += [row | {"income": 90.0} for row in sent if row["sex"] == "men"]
    for row in sent:
        row["job"] = HOSTILE
    ask(desk, sent)
    made = Site(desk, browser)
    yield made
    made.close()


@pytest.fixture(scope="module")
def two_margins(
    model: Any, browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    settings = calibrated() | {"cold_start": 20}
    option = model.with_reject_option(settings.pop("margin"), **settings)
    desk = new_desk(option, tmp_path_factory.mktemp("two") / "s.db")
    men = [row for row in rows(600, 1) if row["sex"] == "men"]
    women = [row for row in rows(600, 1) if row["sex"] == "women"]
    ask(desk, [*men, *women[:10]])
    made = Site(desk, browser)
    made.late = women[10:]
    yield made
    made.close()


def first_case(site: Site, *, beyond: bool = False) -> int:
    """Return the oldest case, or the oldest with a decision that leaves the margin."""
    for found in site.desk.store.queue(limit=200):
        effects = site.desk.effects(found.request)
        if not beyond or not all(effect.after.within for effect in effects):
            return found.id
    raise AssertionError("the stream has no such case")


def test_a_case_is_decided_with_the_mouse_and_everything_stays_here(site: Site) -> None:
    page = site.open()
    waiting = site.desk.store.n_open()
    assert f"{waiting} decisions wait" in page.locator("h1").inner_text()
    with page.expect_navigation():
        page.locator("td a, th a").first.click()
    assert page.evaluate("window.hit") is None
    assert HOSTILE in page.locator("main").inner_text()
    gap = site.desk.view()[1].gap
    assert f"The gap is {gap:.4f} now" in page.locator("main").inner_text()
    with page.expect_navigation():
        page.get_by_role("button", name="Close without a label").click()
    assert "Withdraw by anna.meyer" in page.locator("main").inner_text()
    assert site.desk.store.n_open() == waiting - 1
    assert all(url.startswith(site.url) or url == "data:," for url in site.requests)
    assert site.complaints == []


def test_a_decision_beyond_the_margin_asks_for_a_reason_and_shows_it(site: Site) -> None:
    page = site.open()
    id_ = first_case(site, beyond=True)
    page.goto(f"{site.url}/review/{id_}")
    card = page.locator(".outcome", has_text="leaves the margin").first
    card.get_by_role("button").click()
    assert site.desk.store.reviews(id_) == []  # the browser asks for the reason first
    card.get_by_label("Why beyond the margin").fill("the court of appeal said so")
    with page.expect_navigation():
        card.get_by_role("button").click()
    assert "the court of appeal said so" in page.locator("main").inner_text()
    (kept,) = site.desk.store.reviews(id_)
    assert (kept["by"], kept["forced"]) == ("anna.meyer", True)
    with page.expect_navigation():
        page.get_by_role("button", name="Withdraw the label").click()
    assert site.desk.view()[1].within


def test_the_page_works_with_the_keyboard_alone(site: Site) -> None:
    page = site.open()
    page.goto(f"{site.url}/review/{first_case(site)}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Close without a label":
            break
    before = site.desk.store.n_open()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert site.desk.store.n_open() < before


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(
    width: int, scheme: str, site: Site
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = site.open(width=width, color_scheme=scheme)
    for path in ("/review", f"/review/{first_case(site, beyond=True)}", "/review/999999"):
        page.goto(site.url + path)
        found = axe.run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.clear_cookies()
    page.goto(site.url + "/review")
    assert axe.run(page).response["violations"] == []


def test_who_is_not_signed_in_sees_nothing_and_other_sites_cannot_decide(
    site: Site, browser: Any
) -> None:
    decider = site.desk.store.add_token("loans", Role.DECIDER)
    id_ = first_case(site)
    page = site.open()
    page.context.clear_cookies()
    page.goto(f"{site.url}/review/{id_}")
    assert page.locator("h1").inner_text() == "Sign in"
    page.get_by_label("Your token").fill(decider)
    page.get_by_role("button", name="Sign in").click()
    assert "no token of a reviewer" in page.get_by_role("alert").inner_text()
    signed = site.open()
    form = {"action": "withdraw", "code": "-1"}
    signed.request.post(
        f"{site.url}/review/{id_}", form=form, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert site.desk.store.reviews(id_) == []
    (cookie,) = signed.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


def test_an_entry_that_a_colleague_decided_meanwhile_says_so(site: Site) -> None:
    id_ = first_case(site)
    one, other = site.open(), site.open()
    for page in (one, other):
        page.goto(f"{site.url}/review/{id_}")
    for page in (one, other):
        with page.expect_navigation():
            page.get_by_role("button", name="Close without a label").click()
    assert "was decided by a person already" in other.get_by_role("alert").inner_text()
    assert len(site.desk.store.reviews(id_)) == 1


def test_without_javascript_everything_works(site: Site) -> None:
    page = site.open(java_script_enabled=False)
    id_ = first_case(site)
    page.goto(f"{site.url}/review/{id_}")
    with page.expect_navigation():
        page.get_by_role("button", name="Close without a label").click()
    assert len(site.desk.store.reviews(id_)) == 1


@pytest.mark.slow
def test_where_one_group_alone_has_labels_no_gap_is_shown(
    model: Any, browser: Any, tmp_path: Any
) -> None:
    desk = new_desk(model.with_reject_option(0.05, cold_start=20), tmp_path / "s.db")
    ask(desk, [row for row in rows(600, 1) if row["sex"] == "men"])
    ask(desk, [row for row in rows(60, 1) if row["sex"] == "women"][:10])
    site = Site(desk, browser)
    try:
        page = site.open()
        words = page.locator("dl.glance").inner_text()
        assert "none yet" in words
        assert "fewer than two groups have labels" in words
        assert "0.0000" not in words
        first, *_ = desk.store.queue(limit=1, **desk.waiting(withheld=True))
        page.goto(f"{site.url}/review/{first.id}")
        assert "is none now, as fewer than two groups have labels" in page.inner_text("main")
    finally:
        site.close()


@pytest.mark.slow
def test_two_margins_and_what_waits_for_the_model_on_a_phone_and_at_a_desk(
    two_margins: Site,
) -> None:
    site = two_margins
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()

    def sound(page: Any, width: int) -> None:
        found = axe.run(page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    phone = site.open(width=390)
    with phone.expect_navigation():
        phone.get_by_role("link", name="10 more wait for the model").click()
    assert phone.locator("h1").inner_text() == "10 decisions wait for the model"
    assert phone.locator("tbody tr").count() == 10
    sound(phone, 390)
    ask(site.desk, site.late)
    for width in (390, 1280):
        page = site.open(width=width)
        assert page.get_by_role("link", name="wait for the model").count() == 0
        kept = site.desk.view()[1].kept
        glance = page.locator(".glance").inner_text()
        for one in kept:
            assert f"{one.gap:.4f}" in glance
        sound(page, width)
        page.goto(f"{site.url}/review/{first_case(site, beyond=True)}")
        sound(page, width)
        shown = page.locator("main").inner_text()
        assert f"Error parity: the upper limit of the gap is {kept[1].gap:.4f} now" in shown
        cards = page.locator(".outcome")
        assert page.locator(".outcome svg").count() == 2 * cards.count() > 0
    card = page.locator(".outcome", has_text="leaves the margin").first
    before = site.desk.store.n_open()
    card.get_by_role("button").click()  # the browser asks for the reason first
    card.get_by_label("Why beyond the margin").fill("the court of appeal said so")
    with page.expect_navigation():
        card.get_by_role("button").click()
    assert site.desk.store.n_open() < before
    assert not site.desk.view()[1].within
    assert "the court of appeal said so" in page.locator("main").inner_text()
    assert site.complaints == []
