"""Every command that needs an extra says in one line what to install, where it is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .conftest import GRID, command

# One process for all: what they need cannot be imported there, as on a machine without extras.
PROGRAM = """
import json, sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "ray", "psycopg", "PIL", "fastapi", "pyarrow", "plotly"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
from typer.testing import CliRunner
from evenhand.cli import app
done = [CliRunner().invoke(app, words) for words in json.load(sys.stdin)]
print(json.dumps([(d.exit_code, d.stdout, d.stderr, repr(d.exception)) for d in done]))
"""
ROLES = ["--label", "loan", "--sensitive", "sex", "--epsilon", "9", "--drop", "person"]


@pytest.mark.slow
def test_what_needs_an_extra_says_in_one_line_what_to_install(town: Path) -> None:
    pictures = np.zeros((40, 28, 28), dtype=np.uint8)
    halves = np.arange(40) % 2
    np.savez("pictures.npz", images=pictures, y=halves, z=np.arange(40) // 2 % 2)
    (town / "ray.toml").write_text(GRID + 'method = "pate"\nepsilon = 4\n')
    made = ["synthesize", "private.csv", *ROLES, "--out", "made.csv", "--method"]
    of_pictures = ["synthesize", "pictures.npz", "--label", "y", "--sensitive", "z"]
    of_pictures += ["--method", "mean-embedding"]
    account = {"--ledger": "postgresql://me@localhost/there", "--account-epsilon": "9"}
    (town / "folder").mkdir()
    (town / "table.parquet").write_bytes(b"PAR1")
    asked = {
        "parquet": [
            command({}, private="folder"),
            ["inspect", "table.parquet", "--label", "loan"],
            ["synthesize", "private.csv", *ROLES, "--out", "made.parquet"],
        ],
        "torch": [
            command({"--teacher": "mlp"}),
            [*made, "pate-gan"],
            [*made, "dp-wgan"],
            [*of_pictures, "--epsilon", "9", "--rows", "4", "--out", "made.npz"],
        ],
        "postgres": [
            command(account),
            ["frontier", "ray.toml", "--out", "out", "--store", "postgresql://me@localhost/there"],
            ["check", "spec.toml", "postgresql://me@localhost/there"],
        ],
        "serve": [["serve", "model"]],
        "ray": [
            ["frontier", "ray.toml", "--out", "out", "--backend", "ray", "--votes", "votes"],
        ],
    }
    (town / "spec.toml").write_text("epsilon = 3\n")
    base = [command({"--out": "plain"}), ["predict", "plain", "test.csv", "--out", "said.csv"]]
    words = [words for several in asked.values() for words in several] + base
    extras = [extra for extra, several in asked.items() for _ in several]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(words),
        capture_output=True,
        text=True,
        check=True,
    )
    ends = json.loads(done.stdout.splitlines()[-1])
    assert [end[0] for end in ends[-2:]] == [0, 0], ends[-2:]  # CSV needs no extra
    for said, extra, (code, out, err, what) in zip(words, extras, ends, strict=False):
        assert code == 2, (said, what, err)
        assert out == "", said
        lines = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, (said, err)
        assert f'Install it with: pip install "evenhand[{extra}]"' in lines[0], (said, lines)
    assert not (town / "model").exists()
    assert not (town / "made.csv").exists()


@pytest.mark.parametrize("package", ["torch", "PIL"])
def test_a_package_that_is_forbidden_is_not_installed(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand._extras import installed

    monkeypatch.setitem(sys.modules, package, None)  # as Python has it: importing it is an error
    assert not installed(package)
