"""The file: small, the same each time, with its notices, and nothing that can run but its own."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.frontier import Run
from evenhand.frontier.cost import NOT_COVERED, ReleaseCost
from evenhand.frontier.page.data import page_data
from evenhand.frontier.page.write import SCRIPTS, SHAPES, render
from evenhand.report.page import asset
from evenhand.testing.frontier import synthetic_runs

HERE = "evenhand.frontier.page"
EVIL = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"


def visible(html: str) -> str:
    """Return what a reader is shown: no scripts, no style, no markup."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def of_kind(kind: str, **more: str) -> list[Run]:
    return [replace(run, data_kind=kind, **more) for run in synthetic_runs(4)]


@pytest.mark.slow
def test_five_thousand_runs_stay_under_eight_megabytes(big: tuple[list[Run], Path]) -> None:
    _, path = big
    assert path.stat().st_size < 8_000_000
    assert path.read_text(encoding="utf-8").endswith("</html>\n")


def test_the_page_is_the_same_each_time() -> None:
    runs = synthetic_runs(30, n_seeds=3)
    assert render(runs, title="T") == render(runs, title="T")


def test_only_the_pages_own_script_may_run_and_nothing_is_loaded() -> None:
    html = render(of_kind("public stand-in"), title=EVIL, stand_in=EVIL)
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.S)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}';" in html
    assert "unsafe-eval" not in html
    for loaded in re.findall(r"""\b(?:src|href|action|srcset)=["']?([^"'\s>]*)""", html):
        assert loaded.startswith("#") or loaded in ("data:,", "x")  # x stands in escaped text
    assert html.count("<img") == 0


def test_scripts_never_write_html() -> None:
    for name in SCRIPTS:
        script = asset(HERE, name)
        for door in (
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "fetch(",
        ):
            assert door not in script, f"{name} uses {door}"


def test_every_shape_of_a_method_is_one_that_the_script_draws() -> None:
    (drawn,) = re.findall(r"var SHAPES = (\[.*?\]);", asset(HERE, "marks.js"))
    assert re.findall(r'"(\w+)"', drawn) == list(SHAPES)


def test_private_runs_have_a_price_that_is_said_first() -> None:
    runs = synthetic_runs(4)
    text = visible(render(runs, title="T"))
    assert "All 4 runs learned from private rows. Each is a release of its own" in text
    cost = ReleaseCost.of(runs)
    assert str(cost.parts[0])[1:] in text
    assert NOT_COVERED[1:] in text
    less = replace(cost, parts=(replace(cost.parts[0], n_runs=3, data="another"),))
    assert "3 runs on another" in visible(render(runs, title="T", cost=less))
    other = replace(cost.parts[0], neighbors="add or remove one")
    both = replace(cost, parts=(*cost.parts, other))
    assert "2 prices of made-up are" in visible(render(runs, title="T", cost=both))
    assert "not on this page" not in text
    more = visible(render(runs[:3], title="T", cost=cost))
    assert "That counts 1 run on the same data that is not on this page. Choosing" in more


def test_stand_in_data_is_said_with_what_it_is() -> None:
    for kind in ("public stand-in", "synthetic stand-in"):
        text = visible(render(of_kind(kind), title="T"))
        assert "All 4 runs learned from stand-in data, not from the private data" in text
        assert "learned from private rows" not in text
    runs = [*of_kind("public stand-in"), *of_kind("private")]
    text = visible(render(runs, title="T", stand_in="census of 1994"))
    assert "4 of 8 runs learned from stand-in data (census of 1994), not" in text
    assert "4 of 8 runs learned from private rows." in text


def test_private_runs_are_not_passed_off_as_stand_ins() -> None:
    with pytest.raises(ValueError, match=r"stand_in='census' .* no run .* Leave stand_in out\."):
        render(synthetic_runs(2), title="T", stand_in="census")


def test_measurements_on_private_rows_are_marked_as_not_covered() -> None:
    assert "The measurements are not covered" in visible(render(synthetic_runs(2), title="T"))
    runs = of_kind("private", measured_on="public rows")
    assert "The measurements are not covered" not in visible(render(runs, title="T"))


def test_points_of_others_are_not_claimed() -> None:
    text = visible(render(of_kind("published"), title="T"))
    assert "All 4 runs were published by others. They were not run here" in text
    assert "learned from private rows" not in text


def test_settings_that_are_left_out_are_counted() -> None:
    assert "not drawn" not in visible(render(synthetic_runs(50), title="T"))
    text = visible(render(synthetic_runs(400), title="T", most=5))
    (n,) = re.findall(r"(\d+) settings are left out", text)
    assert 0 < int(n) < 400


def test_without_scripts_the_front_stands_as_a_table() -> None:
    html = render(synthetic_runs(20), title="T")
    (table,) = re.findall(r"<noscript>(.*?)</noscript>", html, flags=re.S)
    assert "<caption>The front</caption>" in table
    assert 2 < table.count("<tr>") <= 21


def test_names_of_every_place_are_escaped() -> None:
    (run,) = synthetic_runs(1, methods=(EVIL,), groups=(EVIL,))
    setting = replace(run.setting, data=EVIL, arguments={EVIL: EVIL})
    html = render([replace(run, setting=setting, command=EVIL)], title=EVIL)
    assert "<script>window" not in html
    assert "<img" not in html
    assert "&lt;img src=x" in html


@pytest.mark.parametrize("word", ["fair model", "debias", "guarantees fairness", "unbiased"])
def test_the_page_promises_no_fairness(word: str) -> None:
    assert word not in render(synthetic_runs(2), title="T").lower()


def test_runs_no_better_than_the_majority_class_are_announced() -> None:
    known = {"majority_error": 0.25, "error_without_margin": 0.15}
    one, other = (replace(run, **known, no_better=False) for run in synthetic_runs(2))
    assert "No better than the majority class" not in visible(render([one, other], title="one"))
    page = visible(render([one, replace(other, no_better=True)], title="two"))
    assert "1 of 2 runs could not be told from a model that always predicts" in page
    told = page_data([one])["settings"]
    assert (told["majority"], told["free"]) == ([0.75], [0.85])
