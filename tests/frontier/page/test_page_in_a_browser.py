"""The page in a real Chromium: what limits do, what keys reach, what is asked of the network."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.frontier import Run
from evenhand.frontier.page.write import write_page
from evenhand.privacy import Guarantee
from evenhand.testing.frontier import synthetic_runs

pytestmark = pytest.mark.browser

EVIL = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
NAMES = ("epsilon", "gap", "accuracy", "coverage")
LOWER = {"epsilon": True, "gap": True, "accuracy": False, "coverage": False}


def hostile() -> list[Run]:
    """Names made to do harm, an undefined coverage, no epsilon: all in two methods."""
    runs = synthetic_runs(8, methods=(EVIL, "<b>bold</b> & 'quoted'"), groups=(EVIL, "R&D"))
    out = [replace(run, coverage=math.nan, command=f"evenhand train {EVIL}") for run in runs]
    out[0] = replace(
        out[0], epsilon=math.inf, setting=replace(out[0].setting, arguments={EVIL: EVIL})
    )
    return out


CASES: dict[str, Callable[[], list[Run]]] = {
    "many": lambda: synthetic_runs(160, n_seeds=3),
    "one": lambda: synthetic_runs(1),
    "one method": lambda: synthetic_runs(6, methods=("fairpate",)),
    "no bound": lambda: synthetic_runs(3, methods=("non-private",)),
    "hostile": hostile,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("frontiers")
    return {
        name: write_page(make(), folder / f"{name}.html", title=f"Frontier: {name} {EVIL}")
        for name, make in CASES.items()
    }


@pytest.fixture(scope="module")
def many(files: dict[str, Path], visit: Callable[[Path], Any]) -> Any:
    """The page that most tests share; each sets the limits it needs and ``fresh`` clears them."""
    return visit(files["many"]).page


@pytest.fixture
def fresh(many: Any) -> Any:
    many.set_viewport_size({"width": 1366, "height": 768})
    many.locator("#reset").click()
    many.locator("#strictly").uncheck()
    for box in many.locator("#methods input").all():
        box.check()
    many.locator("input[name=view][value=settings]").check()
    settle(many)
    return many


def settle(page: Any) -> None:
    page.evaluate("() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")


def count(page: Any) -> int:
    settle(page)
    return int(page.locator("#count").inner_text().replace(",", ""))


def means() -> dict[str, np.ndarray]:
    """The settings of the page "many", by plain means: a second derivation of what it shows."""
    groups: dict[int, list[Run]] = {}
    for run in CASES["many"]():
        groups.setdefault(int(run.setting.arguments["number"]), []).append(run)
    own = [groups[number] for number in sorted(groups)]
    return {
        "epsilon": np.array([max(r.epsilon for r in rs) for rs in own]),
        "gap": np.array([np.mean([r.gap for r in rs]) for rs in own]),
        "accuracy": np.array([1 - np.mean([r.error for r in rs]) for rs in own]),
        "coverage": np.array([np.mean([r.coverage for r in rs]) for rs in own]),
        "method": np.array([rs[0].setting.method for rs in own]),
    }


def meets(values: dict[str, np.ndarray], limits: dict[str, float]) -> np.ndarray:
    ok = np.ones(len(values["gap"]), dtype=bool)
    for name, limit in limits.items():
        ok &= values[name] <= limit if LOWER[name] else values[name] >= limit
    return ok


@pytest.mark.parametrize("name", CASES)
def test_it_opens_from_disk_without_complaint_or_request(
    name: str, files: dict[str, Path], visit: Callable[[Path], Any]
) -> None:
    seen = visit(files[name])
    page = seen.page
    assert (
        count(page) == {"many": 160, "one": 1, "one method": 6, "no bound": 3, "hostile": 8}[name]
    )
    page.locator("#list tbody button").first.click()
    assert page.locator("#chosen-body").is_visible()
    page.fill("#field-accuracy", "1")
    page.fill("#field-coverage", "1")
    assert count(page) == 0
    assert "Nothing meets this." in page.locator("#nothing").inner_text()
    assert seen.complaints == []
    assert seen.requests == [files[name].as_uri()]
    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main b, aside b, header img").count() == 0


def test_every_chart_has_marks_on_it(fresh: Any) -> None:
    holders = fresh.locator(".view")
    assert holders.count() == 8
    for i in range(8):
        holders.nth(i).scroll_into_view_if_needed()
        settle(fresh)
        coloured = holders.nth(i).evaluate(
            """view => [...view.querySelectorAll('canvas')].some(canvas => {
                 const d = canvas.getContext('2d')
                   .getImageData(0, 0, canvas.width, canvas.height).data;
                 let n = 0;
                 for (let k = 0; k < d.length; k += 4)
                   if (d[k + 3] > 200 && Math.abs(d[k] - d[k + 2]) > 60) n++;
                 return n > 100; })"""
        )
        assert coloured


LIMITS: list[dict[str, float]] = [
    {"epsilon": 2.0},
    {"gap": 0.05},
    {"accuracy": 0.8},
    {"coverage": 0.9},
    {"epsilon": 3.0, "gap": 0.1, "accuracy": 0.78, "coverage": 0.7},
]


@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: " ".join(limits))
def test_the_count_is_what_python_counts(limits: dict[str, float], fresh: Any) -> None:
    for name, limit in limits.items():
        fresh.fill(f"#field-{name}", str(limit))
    expected = int(meets(means(), limits).sum())
    assert 0 < expected < 160
    assert count(fresh) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_slider_moves_its_limit_from_any_to_the_strictest(name: str, fresh: Any) -> None:
    slider, field = fresh.locator(f"#slide-{name}"), fresh.locator(f"#field-{name}")
    assert field.input_value() == ""
    assert slider.get_attribute("aria-valuetext") == "any"
    counts = []
    for position in (190, 150, 100, 50, 10):
        slider.fill(str(position if LOWER[name] else 200 - position))
        shown = count(fresh)
        limit = float(field.input_value())
        assert shown == meets(means(), {name: limit}).sum()
        words = "at most" if LOWER[name] else "at least"
        assert slider.get_attribute("aria-valuetext").startswith(words)
        counts.append(shown)
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]


def test_a_limit_at_the_worse_end_of_the_interval_lets_fewer_through(fresh: Any) -> None:
    fresh.fill("#field-gap", "0.08")
    lenient = count(fresh)
    fresh.locator("#strictly").check()
    # Student's interval of three seeds: 4.303 standard errors.
    groups: dict[int, list[float]] = {}
    for run in CASES["many"]():
        groups.setdefault(int(run.setting.arguments["number"]), []).append(run.gap)
    ends = [min(1, np.mean(g) + 4.302653 * np.std(g, ddof=1) / 3**0.5) for g in groups.values()]
    assert count(fresh) == sum(end <= 0.08 for end in ends) < lenient


def test_a_method_that_is_unticked_leaves(fresh: Any) -> None:
    fresh.locator("#methods label", has_text="dpsgd").locator("input").uncheck()
    assert count(fresh) == (means()["method"] != "dpsgd").sum()
    assert "dpsgd" not in fresh.locator("#list tbody").inner_text()


def test_single_runs_can_be_shown(fresh: Any) -> None:
    fresh.locator("input[name=view][value=runs]").check()
    fresh.fill("#field-gap", "0.05")
    assert count(fresh) == sum(run.gap <= 0.05 for run in CASES["many"]())
    assert "seed" in fresh.locator("#list tbody tr").first.inner_text()


@pytest.mark.parametrize("view_first", [True, False])
def test_another_view_and_a_limit_within_one_frame_both_count(view_first: bool, fresh: Any) -> None:
    # The job of the limit used to take the place of the wider one: the old view stayed.
    fresh.evaluate(
        """viewFirst => {
            const view = () => document.querySelector("input[name=view][value=runs]").click();
            const limit = () => {
                const field = document.querySelector("#field-gap");
                field.value = "0.05";
                field.dispatchEvent(new Event("input"));
            };
            for (const event of viewFirst ? [view, limit] : [limit, view]) event();
        }""",
        view_first,
    )
    assert count(fresh) == sum(run.gap <= 0.05 for run in CASES["many"]())


@pytest.mark.parametrize(
    "limits",
    [
        {"epsilon": 0.5, "accuracy": 0.84},
        {"gap": 0.001, "coverage": 0.99},
        {"epsilon": 1.0, "gap": 0.02, "accuracy": 0.83, "coverage": 0.95},
    ],
    ids=lambda limits: " ".join(limits),
)
def test_the_nearest_is_the_one_that_brute_force_finds(
    limits: dict[str, float], fresh: Any
) -> None:
    for name, limit in limits.items():
        fresh.fill(f"#field-{name}", str(limit))
    assert count(fresh) == 0
    values = means()
    distance = np.zeros(160)
    for name, limit in limits.items():
        scaled = np.log(values[name]) if name == "epsilon" else values[name]
        at = math.log(limit) if name == "epsilon" else limit
        span = np.ptp(scaled[np.isfinite(scaled)])
        distance += np.maximum(0, (scaled - at) * (1 if LOWER[name] else -1) / span) ** 2
    best = int(distance.argmin())
    assert int(fresh.locator("#nearest").get_attribute("data-point")) == best
    told = fresh.locator("#nothing ul").first.locator("li").all_inner_texts()
    wanting = [n for n, v in limits.items() if not meets(values, {n: v})[best]]
    assert len(told) == len(wanting)
    for name, words in zip(wanting, told, strict=True):
        asked, _, found = words.partition(" instead of ")
        assert name in asked
        assert float(found) == limits[name]
        assert float(asked.split()[-1]) == pytest.approx(values[name][best], abs=2e-5)


def test_what_one_limit_must_give_is_least_and_enough(fresh: Any) -> None:
    limits = {"epsilon": 1.0, "gap": 0.05, "accuracy": 0.83}
    for name, limit in limits.items():
        fresh.fill(f"#field-{name}", str(limit))
    assert count(fresh) == 0
    values = means()
    ways = fresh.locator("#nothing ul").last.locator("button")
    told = {words.split()[1]: float(words.split()[-1]) for words in ways.all_inner_texts()}
    for name in limits:
        others = {n: v for n, v in limits.items() if n != name}
        found = values[name][meets(values, others)]
        found = found[np.isfinite(found)]
        if len(found):
            best = found.min() if LOWER[name] else found.max()
            assert told.pop(name) == pytest.approx(best, abs=2e-5)
    assert told == {}
    ways.first.click()
    assert count(fresh) >= 1


def test_the_list_is_sorted_and_its_first_is_the_most_accurate(fresh: Any) -> None:
    fresh.fill("#field-epsilon", "2")
    settle(fresh)
    values = means()
    within = meets(values, {"epsilon": 2.0})
    best = max(values["accuracy"][within])
    first = fresh.locator("#list tbody tr").first
    shown = first.locator("td").nth(3).inner_text().split()[0]
    assert float(shown) == pytest.approx(best, abs=5.1e-4)
    assert fresh.locator("#list th[aria-sort]").all_inner_texts()[0].startswith("Accuracy")
    fresh.locator("#list thead button[data-by=epsilon]").click()
    points = [int(row.get_attribute("data-point")) for row in visible_rows(fresh)]
    assert points[0] == np.where(within, values["epsilon"], np.inf).argmin()
    assert fresh.locator("#list th[aria-sort]").get_attribute("aria-sort") == "ascending"
    fresh.locator("#list thead button[data-by=accuracy]").click()


def test_the_button_says_how_many_rows_it_will_show(fresh: Any) -> None:
    listed, more = fresh.locator("#list tbody tr:visible"), fresh.locator("#more")
    for n, left in ((30, 100), (130, 30)):
        assert listed.count() == n
        assert more.inner_text() == f"Show {left} more"
        more.click()
    assert listed.count() == 160
    assert not more.is_visible()


def visible_rows(page: Any) -> list[Any]:
    return [row for row in page.locator("#list tbody tr").all() if row.is_visible()]


def test_the_chosen_one_shows_claim_groups_margin_and_command_of_each_seed(fresh: Any) -> None:
    fresh.locator("#list tbody button").first.click()
    point = int(fresh.locator("#list tbody tr").first.get_attribute("data-point"))
    own = [run for run in CASES["many"]() if run.setting.arguments["number"] == point]
    seeds = fresh.locator("#seed")
    assert seeds.locator("option").all_inner_texts() == ["seed 0", "seed 1", "seed 2"]
    for run, option in zip(own, seeds.locator("option").all(), strict=True):
        seeds.select_option(option.get_attribute("value"))
        assert fresh.locator("#command").inner_text() == run.command
        assert fresh.locator("#claim").inner_text() == str(Guarantee.from_dict(run.guarantee))
        margin = fresh.locator("#margin").inner_text()
        assert margin.lower().startswith(run.fairness_kind)
        cells = fresh.locator("#groups tbody tr").first.locator("th, td").all_inner_texts()
        assert cells[0] == "women"
        assert float(cells[2].split()[0]) == pytest.approx(run.groups[0]["error"], abs=6e-5)
        low, high = map(float, cells[2].split()[1].split("–"))
        assert low < run.groups[0]["error"] < high


def test_a_point_is_chosen_by_a_click_in_a_chart(fresh: Any) -> None:
    values = means()
    orange = (values["method"] == "fairpate") & (values["epsilon"] <= 1)
    fresh.fill("#field-epsilon", "1")
    fresh.fill("#field-gap", f"{values['gap'][orange].min() + 1e-4:.4f}")
    holder = fresh.locator(".pair").first
    holder.scroll_into_view_if_needed()  # what cannot be seen is drawn later
    settle(fresh)
    spot = holder.evaluate(
        """view => { const canvas = view.querySelectorAll('canvas')[1];
             const d = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
             for (let k = 0; k < d.length; k += 4)
               if (d[k + 3] === 255 && d[k] > 200 && d[k + 1] > 120 && d[k + 2] < 40)
                 return [(k / 4) % canvas.width * view.clientWidth / canvas.width,
                         Math.floor(k / 4 / canvas.width) * view.clientHeight / canvas.height]; }"""
    )
    holder.click(position={"x": spot[0] + 2, "y": spot[1] + 2})
    assert fresh.locator("#chosen-title").inner_text() == "fairpate"  # orange in the palette
    chosen = fresh.locator("#chosen-words").inner_text()
    assert float(chosen.partition("epsilon=")[2].partition(",")[0]) <= 1


def test_the_command_is_copied(files: dict[str, Path], browser: Any) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(files["one"].as_uri())
    page.locator("#list tbody button").first.click()
    page.locator("#copy").click()
    page.wait_for_function("document.getElementById('copied').textContent !== ''")
    assert page.locator("#copied").inner_text() == "Copied."
    assert page.evaluate("navigator.clipboard.readText()") == synthetic_runs(1)[0].command
    context.close()


def test_all_of_it_can_be_done_with_the_keyboard(
    files: dict[str, Path], visit: Callable[[Path], Any]
) -> None:
    page = visit(files["many"]).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the limits"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "field-epsilon"
    page.keyboard.type("2")
    assert count(page) == meets(means(), {"epsilon": 2.0}).sum()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "slide-epsilon"
    before = float(page.locator("#field-epsilon").input_value())
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert float(page.locator("#field-epsilon").input_value()) < before
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "pick":
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    third = page.locator("#list tbody tr").nth(2)
    assert "chosen" in third.get_attribute("class")
    assert third.locator("button").get_attribute("aria-pressed") == "true"
    assert page.locator("#command").is_visible()
    page.locator("#space").focus()
    still = "document.querySelector('#space canvas').toDataURL()"
    seen = page.evaluate(still)
    page.keyboard.press("ArrowRight")
    settle(page)
    assert page.evaluate(still) != seen


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("epsilon", "0", "Epsilon must be greater than 0."),
        ("epsilon", "-3", "Epsilon must be greater than 0."),
        ("gap", "1.5", "Give a number from 0 to 1."),
        ("accuracy", "-0.1", "Give a number from 0 to 1."),
    ],
)
def test_a_limit_that_is_none_is_refused_and_changes_nothing(
    name: str, typed: str, words: str, fresh: Any
) -> None:
    fresh.fill(f"#field-{name}", typed)
    assert count(fresh) == 160
    assert fresh.locator(f"#wrong-{name}").inner_text() == words
    assert fresh.locator(f"#field-{name}").get_attribute("aria-invalid") == "true"
    fresh.fill(f"#field-{name}", "")
    assert fresh.locator(f"#wrong-{name}").inner_text() == ""


def test_what_is_not_defined_meets_no_limit_and_can_be_compared_with_none(
    files: dict[str, Path], visit: Callable[[Path], Any]
) -> None:
    page = visit(files["hostile"]).page
    assert page.locator(".pair").count() == 3  # no charts of a coverage that nobody has
    page.fill("#field-coverage", "0")
    assert count(page) == 0
    assert "nothing can be compared with these limits" in page.locator("#nothing").inner_text()
    page.fill("#field-coverage", "")
    page.fill("#field-epsilon", "1000")
    assert count(page) == 7


def test_a_value_at_its_limit_meets_it_and_one_beyond_does_not(
    visit: Callable[[Path], Any], tmp_path: Path
) -> None:
    (run,) = synthetic_runs(1)
    run = replace(run, epsilon=3.0, gap=0.07, error=0.17, coverage=0.9)
    page = visit(write_page([run], tmp_path / "edge.html", title="Edge")).page
    for name, at, beyond in (
        ("epsilon", "3", "2.999"),
        ("gap", "0.07", "0.06999"),
        ("accuracy", "0.83", "0.83001"),
        ("coverage", "0.9", "0.90001"),
    ):
        page.fill(f"#field-{name}", at)
        assert count(page) == 1, name
        page.fill(f"#field-{name}", beyond)
        assert count(page) == 0, name
        page.fill(f"#field-{name}", "")


def test_settings_of_another_gap_are_shown_apart(
    visit: Callable[[Path], Any], tmp_path: Path
) -> None:
    runs = synthetic_runs(10)
    runs = [
        replace(run, gap_name="equalized_odds_rest") if i < 3 else run for i, run in enumerate(runs)
    ]
    page = visit(write_page(runs, tmp_path / "kinds.html", title="Two gaps")).page
    assert count(page) == 3
    page.locator("#kind").select_option("1")
    assert count(page) == 7


FITS = """() => { const width = document.documentElement.clientWidth;
    const out = [...document.querySelectorAll('body *')].filter(e => {
      const at = e.getBoundingClientRect();
      return at.width && at.right > width + 1 && !e.closest('.scroll, #list-scroll, .skip');
    });
    return document.documentElement.scrollWidth <= width && out.length === 0; }"""


CONTRAST = """() => {
    const parts = colour => {
      const context = document.createElement("canvas").getContext("2d", {colorSpace: "srgb"});
      context.fillStyle = colour; context.fillRect(0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data]; };
    const light = colour => { const [r, g, b] = parts(colour).map(v => {
        const part = v / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05; };
    const behind = e => { for (; e; e = e.parentElement) {
        const colour = getComputedStyle(e).backgroundColor;
        if (parts(colour)[3] === 255) return light(colour); } };
    const words = [...document.querySelectorAll("body *")].filter(e => e.checkVisibility() &&
      [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
    return words.map(e => { const [ink, page] = [light(getComputedStyle(e).color), behind(e)];
      return [Math.max(ink, page) / Math.min(ink, page), e.outerHTML.slice(0, 200)]; });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_light_and_in_dark_and_charts_stand_on_white(
    scheme: str, fresh: Any
) -> None:
    fresh.emulate_media(color_scheme=scheme)
    try:
        page = fresh.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (page == "rgb(255, 255, 255)") == (scheme == "light")
        fresh.locator("#list tbody button").first.click()
        found = fresh.evaluate(CONTRAST)
        assert len(found) > 100
        assert [words for contrast, words in found if contrast < 4.5] == []  # WCAG 2.2, level AA
        papers = fresh.evaluate(
            "[...document.querySelectorAll('.view, .tick canvas')]"
            ".map(e => getComputedStyle(e).backgroundColor)"
        )
        assert {*papers} == {"rgb(255, 255, 255)"}  # whose colours are those of the drawings
    finally:
        fresh.emulate_media(color_scheme="light")


@pytest.mark.parametrize("width", [1920, 1366, 1024, 640, 400])
@pytest.mark.parametrize("name", ["many", "hostile"])
def test_nothing_is_wider_than_the_window(
    name: str, width: int, files: dict[str, Path], visit: Callable[[Path], Any]
) -> None:
    page = visit(files[name]).page
    page.set_viewport_size({"width": width, "height": 800})
    page.locator("#list tbody button").first.click()
    page.wait_for_function(FITS)


def test_on_a_laptop_limits_and_six_charts_are_in_the_first_screen(fresh: Any) -> None:
    fresh.evaluate("scrollTo(0, 0)")
    for i in range(6):
        box = fresh.locator(".pair").nth(i).bounding_box()
        assert box["y"] + box["height"] < 768
    for name in NAMES:
        box = fresh.locator(f"#slide-{name}").bounding_box()
        assert box["y"] + box["height"] < 768


def test_on_a_small_screen_limits_stand_in_one_row_and_charts_in_rows_of_three(fresh: Any) -> None:
    fresh.set_viewport_size({"width": 1024, "height": 700})
    fresh.evaluate("scrollTo(0, 0)")
    settle(fresh)
    tops = {fresh.locator(f"#slide-{name}").bounding_box()["y"] for name in NAMES}
    assert max(tops) - min(tops) < 1
    assert max(tops) < 400  # of 700: the answer to a moved slider is on the same screen
    charts = [fresh.locator(".pair").nth(i).bounding_box()["y"] for i in range(6)]
    assert len({round(y) for y in charts}) == 2


@pytest.mark.parametrize("low", [1.0, 0.996, 0.6])
def test_an_axis_of_shares_ends_at_1_but_for_the_room_of_a_mark(low: float, browser: Any) -> None:
    script = (resources.files("evenhand.frontier.page") / "scales.js").read_text(encoding="utf-8")
    page = browser.new_page()
    lowest, best, beyond = page.evaluate(
        f"low => {{ {script}; return [low, 1, 1.02].map(linearScale('coverage', [low, 1]).at); }}",
        low,
    )
    page.close()
    assert 0 < lowest <= best < 1
    assert best >= 0.7  # at the better end, and not in the middle, also where all are 1
    assert beyond > 1


@pytest.mark.parametrize(
    ("epsilons", "ticks"),
    [
        ([3, 1, 3, 1], [1, 3]),
        ([0.3, 8], [0.3, 8]),
        ([1, 1.05, 3], [1, 2]),  # too near to each other to be written side by side
        ([1 + k / 9 for k in range(20)], [1, 2]),
    ],
)
def test_an_axis_of_few_epsilons_names_each_of_them(
    epsilons: list[float], ticks: list[float], browser: Any
) -> None:
    script = (resources.files("evenhand.frontier.page") / "scales.js").read_text(encoding="utf-8")
    page = browser.new_page()
    found = page.evaluate(f"column => {{ {script}; return logScale(column).ticks; }}", epsilons)
    page.close()
    assert found == ticks


def test_every_control_has_a_name(fresh: Any) -> None:
    nameless = fresh.evaluate(
        """() => [...document.querySelectorAll('input, select, button, [role=img]')].filter(e =>
             !(e.labels && e.labels.length) && !e.getAttribute('aria-label')
             && !e.getAttribute('aria-labelledby') && !e.textContent.trim())
             .filter(e => e.className !== 'pick').map(e => e.outerHTML)"""
    )
    assert nameless == []


def test_on_paper_nothing_is_cut_off(files: dict[str, Path], visit: Callable[[Path], Any]) -> None:
    page = visit(files["many"]).page
    page.set_viewport_size({"width": 673, "height": 900})
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function(FITS)


def test_without_javascript_the_front_is_still_there(files: dict[str, Path], browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(files["many"].as_uri())
    assert page.get_by_role("table", name="The front").is_visible()
    assert page.locator("aside").is_hidden()
    context.close()


def test_a_moved_limit_is_answered_before_a_reader_would_notice(
    visit: Callable[[Path], Any], big: tuple[list[Run], Path]
) -> None:
    # Not a measurement (that is benchmarks/frontier_page.py): only that twenty moves of a slider
    # over 5,000 runs come to rest, and that the last one is the one that is shown.
    runs, path = big
    page = visit(path).page
    assert count(page) == 5000
    for position in range(200, 0, -10):
        page.locator("#slide-epsilon").evaluate(
            "(e, to) => { e.value = to; e.dispatchEvent(new Event('input')); }", position
        )
    shown = count(page)
    limit = float(page.locator("#field-epsilon").input_value())
    assert shown == sum(run.epsilon <= limit for run in runs)
