"""``evenhand synthesize PICTURES.npz``: pictures, their claim and a report, or one clear line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.cli.console import Bars
from evenhand.generators import load
from evenhand.testing.generators import pictures

Run = Callable[..., Any]
Refuse = Callable[..., str]
ASKED = (
    *("synthesize", "bars.npz", "--label", "bar", "--sensitive", "side", "--epsilon", "8"),
    *("--rows", "40", "--out", "made.npz", "--seed", "0"),
)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:the predicted signal-to-noise"),
]


@pytest.fixture
def bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, n, seed in (("bars", 900, 0), ("test", 120, 1)):
        images, bar, side = pictures(n, seed)
        np.savez(name, images=images, bar=bar, side=side, person=np.arange(n) % 450)
    return tmp_path


def test_it_writes_pictures_claim_and_report_with_exact_counts(bars: Path, run: Run) -> None:
    words = ("--test", "test.npz", "--unit", "person", "--per-unit", "2", "--save", "generator")
    words += ("--setting", "mirrored=true")
    told = json.loads(run(*ASKED, *words, "--json").stdout)
    with np.load("made.npz", allow_pickle=False) as made:
        assert made["images"].shape == (40, 8, 8)
        assert made["images"].dtype == np.uint8
        pairs, counts = np.unique(np.stack([made["bar"], made["side"]]), axis=1, return_counts=True)
        assert pairs.shape == (2, 4)
        assert set(counts) == {10}
    assert told["counts"]["bar=lies, side=left"] == 10
    assert told["unit"] == "person"
    assert told["measured"]["covered"] is False
    assert {u["model"] for u in told["measured"]["utility"]} == {"MLP", "CNN"}
    claim = json.loads(Path("made.claim.json").read_text())
    assert claim["guarantee"]["epsilon"] == 8.0
    spent = sum(entry["mu_squared"] for entry in claim["ledger"]["entries"])
    assert spent <= claim["ledger"]["mu_squared_budget"]
    assert 'class="strip"' in Path("made.html").read_text(encoding="utf-8")
    again = load("generator")
    assert again.conditions_.names == ("bar", "side")
    assert again.settings()["mirrored"] is True


def declare(**categories: list[object]) -> tuple[str, ...]:
    columns = [{"name": name, "categories": values} for name, values in categories.items()]
    Path("schema.json").write_text(json.dumps({"columns": columns}))
    return "--schema", "schema.json"


def test_a_schema_declares_labels_and_groups(bars: Path, run: Run, refuse: Refuse) -> None:
    known = {"bar": ["stands", "lies", "leans"], "side": ["right", "left"]}
    # Of what is declared and never occurs no row can be drawn, and the fit is kept.
    words = (*declare(**known), "--balance", "none", "--save", "generator")
    run(*ASKED, *words, "--json")
    assert load(bars / "generator").conditions_.categories == tuple(map(tuple, known.values()))
    run(*ASKED, *declare(side=["right", "left"]), "--overwrite")
    for categories, said in (
        ({"bar": ["lies", "leans"]}, "is not among the declared ones: 'lies', 'leans'"),
        ({"age": ["old"]}, "--sensitive alone, and it has 'age'. Leave it out"),
    ):
        assert said in refuse(*ASKED, *declare(**categories), "--out", "other.npz")
    Path("schema.json").write_text('{"columns": [{"name": "bar", "kind": "numeric"}]}')
    assert "has 'bar' without any" in refuse(*ASKED, "--schema", "schema.json", "--overwrite")


BAD = {
    "an absent array": (["--label", "bars"], "bars.npz has no array 'bars'; it has 'images'"),
    "an absent group": (["--sensitive", "sides"], "Did you mean 'side'"),
    "an unknown method": (["--method", "mean-embeding"], "Did you mean 'mean-embedding'"),
    "a method of tables": (["--method", "marginal"], "--method must be one of 'gaussian'"),
    "an option of tables": (["--fairness", "equalized-odds"], "--fairness is for tables"),
    "an attack": (["--curators-report", "x.html", "--test", "bars.npz"], "report is for tables"),
    "rows of no unit": (["--per-unit", "3"], "--per-unit=3 bounds the rows of one unit"),
    "a condition": (["--where", "a=b"], "--where is for tables"),
    "groups that are not drawn": (
        ["--setting", "condition=label", "--balance", "label,sensitive"],
        "--balance label,sensitive asks for even groups, and this generator",
    ),
    "a rule": (["--constraint", "a <= b"], "--constraint is for tables"),
    "a table as output": (["--out", "made.csv"], "must end in .npz"),
    "the private pictures": (["--out", "bars.npz", "--overwrite"], "is the private table"),
    "an absent file": (["--test", "nowhere.npz"], "There is no file nowhere.npz"),
    "a file that is none": (["--test", "words.npz"], "words.npz is not a file of arrays"),
    "arrays of different length": (["--test", "short.npz"], "different lengths: images 3, bar 2"),
    "groups that are objects": (["--test", "objects.npz"], "objects.npz is not a file of arrays"),
    "test pictures in colour": (["--test", "colour.npz"], "are 8 x 8 x 3, and the private ones 8"),
    "a label nobody tests": (["--test", "label.npz"], "have a label that no test picture has"),
    "a group nobody tests": (["--test", "group.npz"], "have a group that no test picture has"),
    "no test picture": (["--test", "none.npz"], "There are no test pictures"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_one_line_and_nothing_is_written(
    case: str, bars: Path, refuse: Callable[..., str]
) -> None:
    (bars / "words.npz").write_text("no arrays")
    np.savez(
        "short", images=np.zeros((3, 8, 8), np.uint8), bar=np.array(["lies"] * 2), side=np.arange(3)
    )
    objects = np.array([{}, {}], dtype=object)
    np.savez("objects", images=np.zeros((2, 8, 8), np.uint8), bar=np.arange(2), side=objects)
    images, bar, side = pictures(120, 1)
    np.savez("colour", images=np.stack([images] * 3, axis=-1), bar=bar, side=side)
    np.savez("label", images=images, bar=np.repeat("lies", 120), side=side)
    np.savez("group", images=images, bar=bar, side=np.repeat("left", 120))
    np.savez("none", images=images[:0], bar=bar[:0], side=side[:0])
    change, message = BAD[case]
    before = sorted(bars.iterdir())
    assert message in refuse(*ASKED, *change)
    assert sorted(bars.iterdir()) == before


SLOW = (*("--method", "mean-embedding", "--setting", "n_steps=9"), *("--save", "generator"))
SLOW += ("--setting", "n_frequencies=20", "--setting", "hidden=[8]", "--noise", "exact")


@pytest.fixture
def halfway(bars: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a fit that was interrupted in its fifth step."""
    with monkeypatch.context() as patch:

        def interrupt(self: Bars, stage: str, done: int, total: int) -> None:
            if (stage, done) == ("network", 5):
                raise KeyboardInterrupt

        patch.setattr(Bars, "__call__", interrupt)
        told = run(*ASKED, *SLOW, exit_code=130)
    assert "generator holds the fit as far as it came" in told.stderr
    assert "--resume goes on" in told.stderr
    assert not (bars / "made.npz").exists()
    return bars / "generator"


def test_an_interrupted_fit_goes_on_at_no_cost(halfway: Path, run: Run) -> None:
    before = load(halfway)
    assert before.left_["done"] == [5]
    told = json.loads(run(*ASKED, *SLOW, "--resume", "--json").stdout)
    after = load(halfway)
    assert told["n_rows"] == 40
    assert not any("resume()" in note for note in told["notes"])
    assert after.left_ == {}
    assert after.ledger_.to_dict() == before.ledger_.to_dict()
    assert np.array_equal(after.released_.sums, before.released_.sums)
    whole = before.resume().sample(40, random_state=0)
    with np.load("made.npz", allow_pickle=False) as made:
        assert np.array_equal(made["images"], whole.uint8)


OTHERWISE = {
    "another budget": (["--epsilon", "4"], "begun with --epsilon 8.0, now 4.0. Repeat"),
    "another setting": (
        ["--setting", "smooth=1"],
        "begun with --setting smooth 0.0, now 1. Repeat",
    ),
    "another method": (["--method", "gaussian"], "setting"),
    "another group": (["--sensitive", "bar"], "('bar', 'side'), now ('bar', 'side', 'bar')"),
    "another unit": (["--unit", "person"], "unit 'record', now 'person'"),
    "no folder": (["--save", "nowhere"], "nowhere is not a folder"),
}


@pytest.mark.parametrize("case", sorted(OTHERWISE))
def test_a_fit_that_was_begun_otherwise_is_not_resumed(
    case: str, halfway: Path, refuse: Callable[..., str]
) -> None:
    change, message = OTHERWISE[case]
    files = {file: file.read_bytes() for file in halfway.iterdir()}
    assert message in refuse(*ASKED, *SLOW, "--resume", *change)
    assert files == {file: file.read_bytes() for file in halfway.iterdir()}


def test_a_new_fit_does_not_take_the_place_of_one_that_can_go_on(
    halfway: Path, refuse: Callable[..., str]
) -> None:
    words = "generator exists and is not empty. Choose another folder with --save"
    said = refuse(*ASKED, *SLOW)
    assert words in said
    assert "by --resume" in said
    assert load(halfway).left_["done"] == [5]


def test_only_an_interrupted_fit_is_resumed(
    bars: Path, run: Run, refuse: Callable[..., str]
) -> None:
    assert "in the folder of --save, which is missing" in refuse(*ASKED, "--resume")
    run(*ASKED, *SLOW)
    words = "generator holds no fit that was interrupted"
    assert words in refuse(*ASKED, *SLOW, "--resume", "--overwrite")
