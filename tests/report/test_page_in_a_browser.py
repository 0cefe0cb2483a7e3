"""The page in a real Chromium: what is drawn, what is asked of the network, what keys reach."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.privacy.trade_off import TradeOff
from evenhand.report import ModelReport, figures, write_report

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def files(
    hostile: Any, protected: Any, plain: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    cases = {"hostile": hostile, "protected": protected, "plain": plain}
    return {
        name: write_report(case.model, folder / f"{name}.html", measured=case.measured)
        for name, case in cases.items()
    }


@pytest.fixture(scope="module")
def opened(files: dict[str, Path], visit: Callable[[Path], Any]) -> dict[str, Any]:
    """Each page once; tests that change one put it back, or open their own."""
    return {name: visit(path) for name, path in files.items()}


@pytest.mark.parametrize("name", ["hostile", "protected", "plain"])
def test_it_opens_from_disk_without_complaint_or_request(
    name: str, files: dict[str, Path], opened: dict[str, Any]
) -> None:
    seen = opened[name]
    assert seen.complaints == []
    assert seen.requests == [files[name].as_uri()]


@pytest.mark.parametrize(("name", "n_charts"), [("hostile", 5), ("protected", 5), ("plain", 2)])
def test_every_chart_is_drawn_inside_its_frame(
    name: str, n_charts: int, opened: dict[str, Any]
) -> None:
    page = opened[name].page
    charts = page.locator(".chart")
    assert charts.count() == n_charts
    for i in range(n_charts):
        chart = charts.nth(i)
        assert chart.locator(".bar rect, circle, .trace").first.is_visible()
        outside = chart.evaluate(
            """chart => { const box = chart.getBoundingClientRect();
               return [...chart.querySelectorAll('svg text')].filter(text => {
                 const at = text.getBoundingClientRect();
                 return at.width && (at.left < box.left - 1 || at.right > box.right + 1
                     || at.top < box.top - 1 || at.bottom > box.bottom + 1);
               }).map(text => text.textContent); }"""
        )
        assert outside == []


def test_the_claim_is_on_the_page_for_everybody_to_read(
    opened: dict[str, Any], protected: Any
) -> None:
    page = opened["protected"].page
    quote = page.locator("blockquote")
    assert quote.is_visible()
    assert quote.inner_text() == str(protected.model.guarantee_)
    assert page.locator(".banner").count() == 0


def test_test_mode_shows_a_red_banner_in_the_first_screen(
    opened: dict[str, Any],
) -> None:
    page = opened["hostile"].page
    banner = page.locator(".banner")
    assert banner.is_visible()
    assert "Not private" in banner.inner_text()
    box = banner.bounding_box()
    assert box["y"] + box["height"] < 900
    colour = banner.evaluate("e => getComputedStyle(e).backgroundColor")
    red, green, blue = (int(v) for v in colour[4:-1].split(","))
    assert red > 120 > 60 > max(green, blue)


def test_names_that_are_code_are_only_text(
    opened: dict[str, Any],
) -> None:
    page = opened["hostile"].page
    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main i, .chart a").count() == 0
    labels = page.locator("#outcomes .name").all_text_contents()
    assert any("<script>window.hit" in text for text in labels)
    assert any("R&D <b>x</b>" in text for text in labels)


def test_a_script_that_slipped_in_would_not_run(
    files: dict[str, Path], visit: Callable[[Path], Any], tmp_path: Path
) -> None:
    html = files["protected"].read_text(encoding="utf-8")
    bad = '<script>window.hit = 1</script><img src="x" onerror="window.hit = 1">'
    broken = tmp_path / "broken.html"
    broken.write_text(html.replace("<main>", f"<main>{bad}", 1), encoding="utf-8", newline="\n")
    seen = visit(broken)
    assert seen.page.evaluate("window.hit") is None
    assert any("Content Security Policy" in words for words in seen.complaints)


FITS = """width => document.documentElement.scrollWidth <= width
    && [...document.querySelectorAll('.chart svg, .chart text')]
       .every(svg => svg.getBoundingClientRect().right <= width + 0.5)"""


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_nothing_is_wider_than_the_window(width: int, opened: dict[str, Any]) -> None:
    page = opened["hostile"].page
    page.set_viewport_size({"width": width, "height": 900})
    try:
        page.wait_for_function(FITS, arg=width)
    finally:
        page.set_viewport_size({"width": 1280, "height": 900})


def test_on_a_phone_names_of_late_groups_fit_wherever_these_join(
    hostile: Any, opened: dict[str, Any]
) -> None:
    trace = ModelReport.of(hostile.model).disparity
    last = int(trace.n_given[-1])
    late = [("Hispanic or Latino", round(share * last)) for share in (0.03, 0.43, 0.49, 0.57)]
    drawn = figures.disparity(replace(trace, joined=(("first", 1), *late)))
    page = opened["plain"].page
    page.set_viewport_size({"width": 390, "height": 844})
    chart = page.locator(".chart").first
    before = chart.inner_html()
    chart.evaluate("(chart, drawn) => { chart.innerHTML = drawn; }", str(drawn))
    try:
        assert chart.inner_text().count("Hispanic or Latino") == 4
        assert page.evaluate(FITS, 390)
        inside = chart.evaluate(
            """chart => [...chart.querySelectorAll('text')].every(
                 text => text.getBoundingClientRect().left >= chart.getBoundingClientRect().left)"""
        )
        assert inside
    finally:
        chart.evaluate("(chart, before) => { chart.innerHTML = before; }", before)
        page.set_viewport_size({"width": 1280, "height": 900})


def test_on_a_phone_no_table_has_to_be_scrolled(opened: dict[str, Any]) -> None:
    page = opened["hostile"].page
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    try:
        cut = page.evaluate(
            """() => [...document.querySelectorAll('.scroll')]
                .filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel)"""
        )
        n_stacked = page.locator("td[data-column]").count()
    finally:
        page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = false; })")
        page.set_viewport_size({"width": 1280, "height": 900})
    assert cut == []
    assert n_stacked > 20


def test_the_page_can_be_used_with_the_keyboard_alone(
    files: dict[str, Path], visit: Callable[[Path], Any]
) -> None:
    page = visit(files["protected"]).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the claim"
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        tag = page.evaluate("document.activeElement.tagName")
        reached.append(tag)
        if tag == "SUMMARY":
            break
    assert reached[:7] == ["A"] * 7
    assert reached[-1] == "SUMMARY"
    details = page.locator("details").first
    assert details.get_attribute("open") is None
    page.keyboard.press("Enter")
    assert details.get_attribute("open") is not None
    assert details.locator("table").is_visible()


def test_on_paper_every_table_is_open_and_everything_fits(opened: dict[str, Any]) -> None:
    page = opened["hostile"].page
    page.set_viewport_size({"width": 673, "height": 900})  # A4 less its margins
    page.emulate_media(media="print")
    try:
        page.wait_for_function(FITS, arg=673)
        tables = page.locator("details table")
        assert tables.count() >= 1
        assert all(table.is_visible() for table in tables.all())
    finally:
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": 1280, "height": 900})
    assert page.locator("details[open]").count() == 0


CONTRASTS = """kind => [...document.querySelectorAll(kind)].map(e => {
    const light = colour => { const parts = colour.match(/[0-9.]+/g).slice(0, 3).map(v => {
        const part = v / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
      return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05; };
    const style = getComputedStyle(e);
    const ink = light(e.namespaceURI.includes('svg') ? style.fill : style.color);
    const page = light(getComputedStyle(document.documentElement).backgroundColor);
    return Math.max(ink, page) / Math.min(ink, page); })"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_light_and_in_dark(scheme: str, opened: dict[str, Any]) -> None:
    page = opened["protected"].page
    page.emulate_media(color_scheme=scheme)
    try:
        dark = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (dark == "rgb(255, 255, 255)") == (scheme == "light")
        for kind in ("p", "h2", "a", ".name", ".tick", ".margin-words", "td"):
            assert min(page.evaluate(CONTRASTS, kind)) >= 4.5, kind  # WCAG 2.2, level AA
    finally:
        page.emulate_media(color_scheme="light")


def test_without_javascript_everything_is_there(
    files: dict[str, Path], browser: Any, protected: Any
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(files["protected"].as_uri())
    assert page.locator("blockquote").inner_text() == str(protected.model.guarantee_)
    assert page.locator("#spent .bar rect").first.is_visible()
    page.locator("summary").first.click()
    assert page.locator("details table").first.is_visible()
    context.close()


def test_the_report_of_the_default_is_four_pages_of_paper_at_most_test_rows_and_all(
    shares: Any, plain: Any, tmp_path: Path, visit: Callable[[Path], Any]
) -> None:
    for case in (shares, plain):
        page = visit(write_report(case.model, tmp_path / "r.html", measured=case.measured)).page
        paper = page.pdf(prefer_css_page_size=True, print_background=True)
        assert 1 <= len(re.findall(rb"/Type\s*/Page[^s]", paper)) <= 4
        page.emulate_media(media="print")
        # The few numbers below the first page stand in its sections once more.
        assert not page.locator(".glance").is_visible()
        words = page.locator("main").inner_text()
        assert ("without its margin" in words) == (case is shares)


def test_the_first_page_has_the_error_without_privacy_where_it_may_be_known(
    shares: Any, protected: Any, tmp_path: Path, visit: Callable[[Path], Any]
) -> None:
    without = shares.measured.yardstick.without_privacy
    for case, there in ((shares, True), (protected, False)):
        page = visit(write_report(case.model, tmp_path / "r.html", measured=case.measured)).page
        said = page.locator(".opening").inner_text()
        wrong = f"a model without privacy is wrong for {100 * without.value:.0f} ("
        assert (wrong in said) == there


def test_the_first_page_is_for_people_who_have_never_heard_of_epsilon(
    opened: dict[str, Any], protected: Any
) -> None:
    first = opened["protected"].page.locator(".opening")
    words = first.inner_text()
    best = TradeOff.of(protected.model.guarantee_).best_guess
    assert f"{math.ceil(1000 * best) / 10:.1f} % of the time, where a coin is right 50 %" in words
    assert not re.search(r"epsilon|delta|ε|δ|differential", words, re.IGNORECASE)
    error = protected.measured["error_rate"].value
    assert f"wrong for {100 * error:.0f} (" in words
    assert "always predicting" in words
    assert opened["hostile"].page.locator(".opening .gain").count() == 0  # nothing is promised
