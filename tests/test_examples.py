"""Every example runs from top to bottom."""

import runpy
from pathlib import Path

import pytest

from evenhand.frontier import Grid, Specification

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
SLOW = {"service"}


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize(
    "example",
    [pytest.param(p, marks=[pytest.mark.slow] * (p.stem in SLOW)) for p in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_an_example_runs_and_prints_its_claim(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert "differentially private for each" in capsys.readouterr().out


def test_the_grids_and_the_specification_among_the_examples_can_be_read() -> None:
    folder = Path(__file__).parents[1] / "examples"
    grids = sorted(folder.glob("frontier_*.toml"))
    assert [Grid.from_toml(path).data.name for path in grids] == ["adult", "credit-default"]
    assert Specification.read(folder / "acceptable.toml").epsilon == 3
