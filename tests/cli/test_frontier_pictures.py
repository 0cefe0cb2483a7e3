"""``evenhand frontier`` on pictures: the files of ``evenhand synthesize``, one store, one page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.frontier import RunStore
from evenhand.generators import load
from evenhand.testing.generators import pictures

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:the predicted signal-to-noise"),
]
DATA = """
[data]
private = "bars.npz"
test = "test.npz"
label = "bar"
sensitive = "side"
"""
RUNS = """
[[runs]]
method = "gaussian"
epsilon = 8
balance = ["label,sensitive", "none"]
n_rows = 200

[[runs]]
method = "gs-wgan"
epsilon = 8
sampler = "none"
balance = "label"
n_teachers = 10
setting = { n_steps = 2, condition = "label" }
n_rows = 200
"""


@pytest.fixture
def bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, n, seed in (("bars", 600, 0), ("test", 200, 1)):
        images, bar, side = pictures(n, seed)
        np.savez(name, images=images, bar=bar, side=side)
    return tmp_path


@pytest.mark.parametrize("test", ["test.npz", "copy.npz"])
def test_the_private_pictures_as_test_pictures_are_warned_of(
    bars: Path, run: Callable[..., Any], test: str
) -> None:
    Path("copy.npz").write_bytes(Path("bars.npz").read_bytes())
    runs = RUNS.partition('[[runs]]\nmethod = "gs-wgan"')[0]
    Path("grid.toml").write_text(DATA.replace("test.npz", test) + runs)
    warned = f"[data] test = {test} holds what the private table bars.npz holds"
    assert (warned in run("frontier", "grid.toml", "--out", "front").stderr) == (test == "copy.npz")


def test_it_goes_on_where_it_was_and_a_page_shows_generators_of_pictures(
    bars: Path, run: Callable[..., Any]
) -> None:
    Path("few.toml").write_text(DATA + RUNS.replace('["label,sensitive", "none"]', '"none"'))
    Path("grid.toml").write_text(DATA + RUNS)
    first = json.loads(run("frontier", "few.toml", "--out", "front", "--json").stdout)
    assert (first["n_new"], first["n_settings"], first["skipped"]) == (2, 2, {})
    again = run("frontier", "grid.toml", "--out", "front")
    assert "1 settings trained" in again.stdout
    assert "2 were there already" in again.stdout
    assert "disparity" in again.stdout
    page = Path("front/page.html").read_text(encoding="utf-8")
    assert "gs-wgan" in page
    assert "share_shown" in page
    with RunStore("front/runs.db") as store:
        (found,) = store.runs(methods=["gs-wgan"])
    assert found.setting.arguments["sampler"] == "none"
    assert found.disparity >= 0
    assert found.guarantee["neighbors"] == "replace one"
    told = run("frontier", "grid.toml", "--train", found.key, "--out", "made").stdout
    assert "The generator is in made." in told
    assert load("made").sample(4, random_state=0).images.shape == (4, 8, 8)


BAD = {
    "a method of tables": (('"gaussian"', '"marginal"'), "draws rows of a table, and [data] holds"),
    "even rates": (('"none"]', '"both-rates"]'), "balance = 'both-rates' is not for pictures"),
    "a setting that is absent": (("n_steps", "steps"), "setting has steps, which the method"),
    "an absent array": (('"side"', '"sides"'), "bars.npz has no array 'sides'"),
    "no groups": (('sensitive = "side"', ""), "label or sensitive is missing"),
    "one group": (('"test.npz"', '"left.npz"'), "'side' has one group only"),
    "other sizes": (('"test.npz"', '"small.npz"'), "are 1 x 8 x 8 (channels, height, width)"),
    "an absent file": (('"test.npz"', '"nowhere.npz"'), "There is no file"),
    "a size": (("[data]", "[data]\nsize = 8"), "size is about files of pictures"),
    "an extractor": (("[data]", '[data]\nextractor = "efficientnet-lite0"'), "learns from pixels"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_no_run_is_kept(
    case: str, bars: Path, refuse: Callable[..., str]
) -> None:
    images, bar, side = pictures(60, 1)
    np.savez("small", images=images[:, 2:, 2:], bar=bar, side=side)
    left = side == "left"
    np.savez("left", images=images[left], bar=bar[left], side=side[left])
    change, message = BAD[case]
    Path("grid.toml").write_text((DATA + RUNS).replace(*change))
    assert message in refuse("frontier", "grid.toml", "--out", "front")
    if Path("front/runs.db").exists():
        with RunStore("front/runs.db") as store:
            assert len(store) == 0
