from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.report import ModelReport, figures
from evenhand.report.colours import NOT_USED, colours, ink_on
from evenhand.report.svg import Rows, Scale, bar, short_names, shortened, steps

# Machado, Oliveira and Fernandes 2009, full severity, on linear RGB.
BLIND = {
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
# Oklab (Ottosson 2020), in which equal distances look equal.
TO_LMS = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def linear(colour: str) -> Any:
    """Linear RGB in [0, 1] of "#rrggbb"."""
    s = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)


def seen_by(eyes: str, colour: str) -> Any:
    """Where a colour lies in Oklab for a reader who lacks one kind of cone."""
    rgb = np.clip(np.array(BLIND[eyes]) @ linear(colour), 0, 1)
    return np.array(TO_LAB) @ np.cbrt(np.array(TO_LMS) @ rgb)


@pytest.mark.parametrize("eyes", ["protan", "deutan"])
@pytest.mark.parametrize("n", [2, 5, 7])
def test_few_colours_stay_apart_for_readers_who_confuse_red_and_green(eyes: str, n: int) -> None:
    seen = [seen_by(eyes, colour) for colour in colours(n)]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 0.1
    # The measure sees a confusion where there is one: the pink and the green of Okabe and Ito.
    assert np.linalg.norm(seen_by(eyes, "#CC79A7") - seen_by(eyes, "#009E73")) < 0.1


@pytest.mark.parametrize("colour", [*colours(7), *colours(12), NOT_USED])
def test_numbers_in_bars_can_be_read(colour: str) -> None:
    def bright(rgb: Any) -> float:
        return float(np.array([0.2126, 0.7152, 0.0722]) @ linear(rgb)) + 0.05

    ink = ink_on(colour)
    pair = sorted([bright(colour), bright("#ffffff" if ink == "white" else ink)])
    # The better of white and our ink reaches 3.83 on any colour; WCAG asks 3 of large text.
    assert pair[1] / pair[0] >= 3.83


@pytest.mark.parametrize("n", range(1, 25))
def test_there_are_as_many_different_colours_as_asked(n: int) -> None:
    assert len(set(colours(n))) == n


def chart(html: str) -> ElementTree.Element:
    """Read a chart; a name that was not escaped would be no XML, or an element too many."""
    return ElementTree.fromstring(f"<div>{html}</div>")


def titles(html: str) -> list[str]:
    """What a pointer reads of each mark, in the order in which they are drawn."""
    return [title.text or "" for title in chart(html).iter("title")]


def percent(element: ElementTree.Element, name: str) -> float:
    return float(element.attrib[name].rstrip("%")) / 100.0


def bars(html: str) -> dict[str, list[tuple[float, float]]]:
    """(start, width) of each bar, by the pixel of its row; swatches of the legend left out."""
    found: dict[str, list[tuple[float, float]]] = {}
    for group in chart(html).iter("g"):
        rect = group.find("rect")
        if group.get("class") == "bar" and rect is not None and group.find("title") is not None:
            place = percent(rect, "x"), percent(rect, "width")
            found.setdefault(rect.attrib["y"], []).append(place)
    return found


def ticks(html: str) -> list[str]:
    return [text.text or "" for text in chart(html).iter("text") if text.get("class") == "tick"]


def lines(html: str, kind: str) -> list[ElementTree.Element]:
    return [line for line in chart(html).iter("line") if line.get("class") == kind]


@given(high=st.floats(1e-6, 1e6), most=st.integers(3, 8))
def test_ticks_are_few_round_and_reach_nearly_to_the_end(high: float, most: int) -> None:
    found = Scale(high=high).ticks(most)
    assert found[0] == 0.0
    assert 2 <= len(found) <= most
    step = found[1]
    assert found[-1] <= high * (1 + 1e-9)
    assert high - found[-1] < step * (1 + 1e-6)
    assert round(step / 10.0 ** np.floor(np.log10(step * (1 + 1e-9))), 6) in (1, 2, 2.5, 5)


@given(st.lists(st.text("ab", min_size=20, max_size=60), unique=True, max_size=12))
def test_names_of_groups_that_are_cut_stay_unlike_each_other(names: list[str]) -> None:
    found = short_names(["sex=Female, race=White, " + name for name in names])
    assert len(set(found)) == len(names)
    assert all(len(name) <= 26 for name in found)


def test_a_chart_tells_intersections_apart() -> None:
    names = [f"sex=Female, race=Asian-Pac-Islander, age={age}" for age in ("old", "young")]
    assert len(set(figures._sized(names, [9, 9]))) == 2


@given(st.text(max_size=60))
def test_no_name_becomes_an_element_of_a_chart(name: str) -> None:
    printable = "".join(c for c in name if c.isprintable())
    rows = Rows(names=[shortened(printable)], scale=Scale(high=1.0))
    drawn = rows.drawn([bar(0, 1, 0, 9, "#fff", hover=printable)], title=printable)
    assert {e.tag for e in chart(drawn).iter()} <= {
        "div",
        "svg",
        "g",
        "rect",
        "line",
        "text",
        "title",
    }
    assert len(shortened(printable)) <= 26
    assert titles(drawn) == ([printable] if printable else [])


def test_a_line_of_steps_holds_each_value_until_the_next() -> None:
    drawn = chart(
        steps(np.array([1, 2, 4]), np.array([0.0, 0.5, 1.0]), last=4, top=1.0, height=100)
    )
    (path,) = drawn.iter("path")
    assert path.attrib["d"] == "M250 100H500V50H1000V0"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=400), st.integers(min_value=1, max_value=50))
def test_thinning_keeps_every_peak_and_the_end(values: list[float], most: int) -> None:
    x, y = np.arange(1, len(values) + 1), np.array(values)
    xs, ys = figures.thinned(x, y, most)
    assert len(xs) == len(ys) <= max(most, 1)
    assert ys.max() == y.max()
    assert xs[-1] == x[-1]
    for threshold in (0.25, 0.5):
        assert (ys > threshold).any() == (y > threshold).any()
    edges = [0, *xs.tolist()]
    for at, (low, high) in enumerate(itertools.pairwise(edges)):
        assert ys[at] == y[low:high].max()


def test_every_bar_of_the_answers_is_whole(hostile: Any) -> None:
    table = ModelReport.of(hostile.model).outcomes
    assert table is not None
    drawn = figures.outcomes(table)
    stacked = list(bars(drawn).values())
    assert len(stacked) == 3
    for row, parts in enumerate(stacked):
        assert len(parts) == 3 + len(table.reasons)
        assert parts[0] == (0.0, pytest.approx(table.answered[row, 0] / table.sizes[row], abs=1e-5))
        ends = [start + width for start, width in parts]
        assert [start for start, _ in parts[1:]] == pytest.approx(ends[:-1], abs=3e-5)
        assert ends[-1] == pytest.approx(1.0, abs=3e-5)
    names = [li.findtext(".", "") + "".join(li.itertext()) for li in chart(drawn).iter("li")]
    assert any("answered </script><i>deny</i>" in name for name in names)  # as it is, and only text


def test_the_bar_of_the_budget_is_whole(hostile: Any) -> None:
    books = ModelReport.of(hostile.model).spending
    assert books is not None
    drawn = figures.spending(books)
    (parts,) = bars(drawn).values()
    assert sum(width for _, width in parts) == pytest.approx(1.0, abs=3e-5)
    assert titles(drawn)[-1].startswith("not spent: ")
    assert parts[0][1] == pytest.approx(books.charges[0].share, abs=1e-5)


def test_the_trace_is_drawn_with_its_margin(hostile: Any) -> None:
    trace = ModelReport.of(hostile.model).disparity
    assert trace is not None
    drawn = figures.disparity(trace)
    (path,) = (p.attrib["d"] for p in chart(drawn).iter("path") if p.get("class") == "trace")
    top = max(trace.notion.margin * 1.25, trace.largest * 1.08, 1e-3)
    levels = [float(part.split("H")[0]) for part in path.replace("M", "V", 1).split("V")[2:]]
    heights = [f"{280 * (1 - y / top):.2f}" for y in trace.gaps]
    assert levels == [float(level) for level, _ in itertools.groupby(heights)][1:]
    (margin,) = lines(drawn, "margin")
    assert float(margin.attrib["y1"]) == pytest.approx(14 + 280 * (1 - 0.1 / top), abs=1e-3)
    assert margin.attrib["y1"] == margin.attrib["y2"]


def test_gaps_are_drawn_with_their_intervals_and_the_margin_at_its_own_definition(
    hostile: Any,
) -> None:
    report = ModelReport.of(hostile.model, measured=hostile.measured)
    assert report.measured is not None
    drawn = figures.gaps(report.measured, report.notion)
    shown = [e for e in hostile.measured.estimates if e.name != "error_rate"]
    assert sorted(titles(drawn)) == sorted(
        f"{e.value:.4f} ({e.low:.4f} to {e.high:.4f})" for e in shown
    )
    high = 1.04 * max(*(e.high for e in shown), 0.1)
    whiskers = [w for w in lines(drawn, "whisker") if w.attrib["y1"] == w.attrib["y2"]]
    assert sorted((percent(w, "x1") * high, percent(w, "x2") * high) for w in whiskers) == [
        pytest.approx(pair, abs=1e-4) for pair in sorted((max(e.low, 0), e.high) for e in shown)
    ]
    (margin,) = lines(drawn, "margin")
    assert percent(margin, "x1") * high == pytest.approx(0.1, abs=1e-4)
    names = [t for t in chart(drawn).iter("text") if t.get("class") == "name"]
    own = next(t for t in names if t.text == "Demographic parity")
    others = [float(t.attrib["y"]) for t in names if t is not own]
    top, bottom = float(margin.attrib["y1"]), float(margin.attrib["y2"])
    assert float(own.attrib["y"]) < bottom
    assert not any(top < y < bottom for y in others)
    assert not lines(figures.gaps(report.measured, None), "margin")


def test_groups_are_drawn_on_one_scale(hostile: Any) -> None:
    found = ModelReport.of(hostile.model, measured=hostile.measured).measured
    assert found is not None
    panels = [
        div for div in chart(figures.by_group(found)).iter("div") if div.find("p") is not None
    ]
    assert len(panels) == 4  # the error, and three classes
    scales = {
        tuple((t.get("x"), t.text) for t in panel.iter("text") if t.get("class") == "tick")
        for panel in panels
    }
    assert len(scales) == 1
    assert [t.text for t in panels[0].iter("title")] == [
        f"{e.value:.4f} ({e.low:.4f} to {e.high:.4f})" for e in found.errors
    ]


def test_a_group_without_test_rows_is_left_out_and_still_named(hostile: Any) -> None:
    from evenhand.fairness import fairness_report

    measured = fairness_report(
        [0, 1, 2], [0, 1, 1], ["a", "a", "b"], classes=[0, 1, 2], group_names=("a", "b", "nobody")
    )
    found = ModelReport.of(hostile.model, measured=measured).measured
    assert found is not None
    panel = next(d for d in chart(figures.by_group(found)).iter("div") if d.find("p") is not None)
    assert len(list(panel.iter("circle"))) == 2
    assert any("nobody (n = 0)" in (text.text or "") for text in panel.iter("text"))
