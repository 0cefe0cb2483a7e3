"""Every block of pages about commands runs, in order, and prints what the page says."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evenhand.cli import app

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "command-line.md"
BLOCK = re.compile(r"^```(python|console|toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output that the page shows."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


@pytest.mark.parametrize(
    ("name", "n_commands", "needed"),
    [
        pytest.param("command-line.md", 9, (), marks=pytest.mark.slow),
        pytest.param(
            *("pictures.md", 4, ("PIL", "torch", "efficientnet_lite_pytorch")),
            # A few hundred pictures are few for this extractor, which the page says.
            marks=[
                pytest.mark.torch,
                pytest.mark.slow,
                pytest.mark.filterwarnings("ignore"),
            ],
        ),
    ],
    ids=["command-line", "pictures"],
)
def test_the_page_is_true(
    name: str,
    n_commands: int,
    needed: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    real_data: Callable[..., object],
) -> None:
    """The page of pictures takes about 25 seconds: a network reads 300 of them."""
    for extra in needed:
        pytest.importorskip(extra, reason=f"{extra} is not installed")
    page = DOCS / name
    namespace: dict[str, object] = {"__name__": "page"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    ran = 0
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(block, str(page), "exec"), namespace)
            continue
        if kind == "toml":  # its first line names the file
            Path(block.splitlines()[0].removeprefix("# ")).write_text(block, encoding="utf-8")
            continue
        for command, shown in commands(block):
            program, *arguments = shlex.split(command)
            assert program == "evenhand", f"the page runs {program}"
            if arguments[0] == "demo":
                try:
                    real_data("adult")
                except pytest.skip.Exception:
                    continue  # nothing is fetched in a test; the other commands still run
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == (2 if shown.startswith("error:") else 0), result.output
            assert doctest.OutputChecker().check_output(shown, result.output, LOOSELY), (
                f"$ {command}\n{result.output}"
            )
            ran += 1
    assert ran >= n_commands


def test_every_command_stands_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"| `{command.callback.__name__}` |" in page
    for group in app.registered_groups:
        assert f"| `{group.name}` |" in page
