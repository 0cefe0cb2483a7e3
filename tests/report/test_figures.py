from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.report import ModelReport, figures

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
    seen = [seen_by(eyes, colour) for colour in figures.colours(n)]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 0.1
    # The measure sees a confusion where there is one: the pink and the green of Okabe and Ito.
    assert np.linalg.norm(seen_by(eyes, "#CC79A7") - seen_by(eyes, "#009E73")) < 0.1


@pytest.mark.parametrize("colour", [*figures.colours(7), *figures.colours(12), figures.NOT_USED])
def test_numbers_in_bars_can_be_read(colour: str) -> None:
    def bright(rgb: Any) -> float:
        return float(np.array([0.2126, 0.7152, 0.0722]) @ linear(rgb)) + 0.05

    ink = figures.ink_on(colour)
    pair = sorted([bright(colour), bright("#ffffff" if ink == "white" else ink)])
    # The better of white and our ink reaches 3.83 on any colour; WCAG asks 3 of large text.
    assert pair[1] / pair[0] >= 3.83


@pytest.mark.parametrize("n", range(1, 25))
def test_there_are_as_many_different_colours_as_asked(n: int) -> None:
    assert len(set(figures.colours(n))) == n


def test_names_are_shown_as_they_are_and_cut_to_length() -> None:
    assert figures.label('<a href="https://x">x</a>') == '&lt;a href="https://x"&gt;x&lt;/a&gt;'
    assert figures.label("R&D") == "R&amp;D"
    assert figures.label("x" * 60) == "x" * 25 + "…"


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
    report = ModelReport.of(hostile.model)
    figure = figures.outcomes(report.outcomes)
    total = np.sum([bar.x for bar in figure.data], axis=0)
    assert total == pytest.approx(np.ones(3))
    assert len(figure.data) == 3 + len(report.outcomes.reasons)
    first = report.outcomes.answered[:, 0] / report.outcomes.sizes
    assert figure.data[0].x == pytest.approx(first)


def test_the_bar_of_the_budget_is_whole(hostile: Any) -> None:
    books = ModelReport.of(hostile.model).spending
    figure = figures.spending(books)
    assert sum(bar.x[0] for bar in figure.data) == pytest.approx(1.0)
    assert figure.data[-1].name == "not spent"
    assert figure.data[0].x[0] == books.charges[0].share


def test_the_trace_is_drawn_with_its_margin(hostile: Any) -> None:
    trace = ModelReport.of(hostile.model).disparity
    assert trace is not None
    figure = figures.disparity(trace)
    assert list(figure.data[0].y) == trace.gaps.tolist()
    assert 0.1 in {shape.y0 for shape in figure.layout.shapes if shape.y0 == shape.y1}
    assert figure.layout.yaxis.range[1] > max(0.1, trace.largest)


def test_gaps_are_drawn_with_their_intervals_and_the_margin_at_its_own_definition(
    hostile: Any,
) -> None:
    report = ModelReport.of(hostile.model, measured=hostile.measured)
    assert report.measured is not None
    assert report.disparity is not None
    figure = figures.gaps(report.measured, report.notion)
    drawn = {
        (round(x, 12), round(x - minus, 12), round(x + plus, 12))
        for trace in figure.data
        for x, minus, plus in zip(
            trace.x, trace.error_x.arrayminus, trace.error_x.array, strict=True
        )
    }
    assert drawn == {
        (round(e.value, 12), round(e.low, 12), round(e.high, 12))
        for e in hostile.measured.estimates
        if e.name != "error_rate"
    }
    (margin,) = figure.layout.shapes
    assert margin.x0 == margin.x1 == 0.1
    row = figure.layout.yaxis.ticktext.index("Demographic parity  ")
    assert margin.y0 < row < margin.y1 < row + 0.5
    assert not figures.gaps(report.measured, None).layout.shapes


def test_groups_are_drawn_on_one_scale(hostile: Any) -> None:
    found = ModelReport.of(hostile.model, measured=hostile.measured).measured
    assert found is not None
    figure = figures.by_group(found)
    scales = {
        tuple(figure.layout[name].range) for name in figure.layout if name.startswith("xaxis")
    }
    assert len(scales) == 1
    assert len(figure.data) == 4  # the error, and three classes
    assert list(figure.data[0].x) == [e.value for e in found.errors]


def test_a_group_without_test_rows_is_left_out_and_still_named(hostile: Any) -> None:
    from evenhand.fairness import fairness_report

    measured = fairness_report(
        [0, 1, 2], [0, 1, 1], ["a", "a", "b"], classes=[0, 1, 2], group_names=("a", "b", "nobody")
    )
    found = ModelReport.of(hostile.model, measured=measured).measured
    assert found is not None
    figure = figures.by_group(found)
    assert list(figure.data[0].y) == [0, 1]
    assert any("nobody (n = 0)" in text for text in figure.layout.yaxis.ticktext)
