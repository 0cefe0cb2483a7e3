"""Hostile input: 500 generated ones, those that once got through, and each kind by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from . import hostile

CHUNKS = 10
IN_CI = 500
"""A tenth of them without the slow tests; ``python tests/cli/hostile.py`` runs 5,000."""

DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The valid files that are damaged."""
    folder = tmp_path_factory.mktemp("hostile") / "valid"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        hostile.build(folder)
        yield folder


@pytest.mark.parametrize(
    "chunk", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, CHUNKS))]
)
def test_generated_input_ends_in_one_line(chunk: int, valid: Path) -> None:
    with hostile.little_memory():
        wrong = {
            seed: outcome.wrong
            for seed in range(chunk, IN_CI, CHUNKS)
            if (outcome := hostile.attempt(seed, valid)).wrong
        }
    assert not wrong, f"python tests/cli/hostile.py --inputs 1 --first SEED shows each: {wrong}"


def test_input_that_once_got_through_ends_in_one_line(valid: Path) -> None:
    with hostile.little_memory():
        wrong = {
            seed: outcome.wrong
            for seed in hostile.kept_seeds()
            if (outcome := hostile.attempt(seed, valid)).wrong
        }
    assert not wrong


FRONTIER = ["frontier", "grid.toml", "--out", "made", "--jobs"]
POINTS = ["read-published", "points.csv"]
REJECT = [*("predict", "model", "test.csv", "--reject-margin", "0.3"), "--state", "state.json"]


@pytest.mark.parametrize(
    ("name", "damage", "words", "code"),
    [
        ("points.csv", lambda text: text.replace("\n", "\r"), POINTS, 0),
        ("points.csv", lambda text: text.replace("0.1664", '"\r'), POINTS, 2),
        ("points.csv", lambda text: text + "x" * 200_000, POINTS, 2),
        ("private.csv", lambda text: text.replace("\n", "\r"), hostile.TRAIN, 0),
        ("private.csv", lambda text: text.replace("age", "a" * 200_000), hostile.TRAIN, 2),
        ("private.csv", lambda text: first_age(text, "9" * 400), hostile.TRAIN, 0),
        ("public.csv", lambda text: first_age(text, "9" * 400), hostile.TRAIN, 2),
        ("private.csv", lambda text: first_age(text, "0.5"), [*hostile.TRAIN, "--unit", "age"], 0),
        ("schema.json", lambda _: DEEP, hostile.SYNTHESIZE, 2),
        ("state.json", lambda _: DEEP, REJECT, 2),
        ("grid.toml", lambda _: f"x = {DEEP}", [*FRONTIER, "1"], 2),
        ("grid.toml", lambda text: text.replace('"loan"', "[[]]"), [*FRONTIER, "1"], 2),
        ("grid.toml", lambda text: text.replace("[0]", f"[{10**30}]"), [*FRONTIER, "1"], 2),
        ("grid.toml", str, [*FRONTIER, "9" * 60], 2),
        ("wanted.toml", lambda _: f"epsilon = {9:9<400}", ["check", "wanted.toml", "front"], 2),
        ("wanted.toml", str, ["check", "a\nb", "front"], 2),
        ("model/training.json", lambda _: "[]", ["evaluate", "model", "test.csv"], 2),
        ("wanted.toml", lambda _: f"x = {DEEP}", ["check", "wanted.toml", "front"], 2),
    ],
)
def test_what_was_found_stays_mended(
    name: str,
    damage: Callable[[str], str],
    words: list[str],
    code: int,
    valid: Path,
    tmp_path: Path,
) -> None:
    own = Path(shutil.copytree(valid, tmp_path / "own"))
    text = (own / name).read_text(encoding="utf-8")
    (own / name).write_bytes(damage(text).encode())
    with hostile.inside(own):
        hostile.remake_manifest(own / "model")
        outcome = hostile.run(words)
    assert not outcome.wrong
    assert outcome.code == code, outcome.said


def first_age(text: str, value: str) -> str:
    """Put a value in the place of the first number of the first row."""
    header, row, *rest = text.split("\n")
    return "\n".join([header, ",".join([value, *row.split(",")[1:]]), *rest])


@pytest.mark.parametrize("sensitive", [[{}], [[]], [None], 3, {"a": 1}, "sex"])
def test_what_is_remembered_of_a_training_is_checked(
    sensitive: object, valid: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(valid, tmp_path / "own"))
    file = own / "model" / "training.json"
    values = json.loads(file.read_bytes()) | {"sensitive": sensitive}
    file.write_text(json.dumps(values), encoding="utf-8")
    with hostile.inside(own):
        hostile.remake_manifest(own / "model")
        outcome = hostile.run(["evaluate", "model", "test.csv"])
    assert not outcome.wrong
    assert outcome.code == 2


def test_the_judge_sees_a_traceback_a_second_line_and_a_wrong_code() -> None:
    assert hostile._wrong(1, "Traceback (most recent call last)", "")
    assert hostile._wrong(1, "error: x", "")
    assert hostile._wrong(2, "error: x\nand more\n", "")
    assert hostile._wrong(2, "error: \x1b[31mx\n", "")
    assert not hostile._wrong(2, "warning: y\nerror: x\n", "")
    assert not hostile._wrong(3, "", "not feasible")


def test_an_error_that_nobody_caught_is_seen(valid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr("evenhand.datasets.read_table", broken)
    with hostile.inside(valid):
        outcome = hostile.run(["inspect", "private.csv"])
    assert "KeyError in" in outcome.wrong
