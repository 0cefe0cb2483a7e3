"""The package's own face."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import evenhand


def test_every_public_name_is_there() -> None:
    for name in evenhand.__all__:
        assert getattr(evenhand, name) is not None
    assert set(evenhand.__all__) <= set(dir(evenhand))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'FairPate'"):
        evenhand.FairPate  # noqa: B018  # looking it up is the test


HEAVY = ("numpy", "scipy", "pandas", "sklearn", "torch", "opendp", "sqlalchemy", "fairlearn")


@pytest.mark.parametrize(
    "what",
    [
        "import evenhand",
        *(
            f"from evenhand.cli import app\ntry: app({words!r}.split())\nexcept SystemExit: pass"
            for words in ("--help", "--version", "train --help", "demo --help", "predict --help")
        ),
    ],
)
def test_nothing_waits_for_a_library_before_it_is_used(what: str) -> None:
    code = f"{what}\nimport sys; print('LOADED', *(m for m in {HEAVY} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED"


def test_the_core_is_imported_where_there_is_no_torch() -> None:
    code = (
        "import sys\n"
        "class NoTorch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "import evenhand.estimators, evenhand.cli, evenhand.report, evenhand.frontier\n"
        "import evenhand.generators, evenhand.generators.images\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_nothing_waits_for_torch_before_it_is_used() -> None:
    code = (
        "import sys, evenhand.estimators, evenhand.report, evenhand.generators.images\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


ROOT = Path(__file__).parents[1]
CITED = re.compile(r"[\w/-]+\.(?:py|md)\b")


def test_what_the_source_cites_is_in_the_source_distribution() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = told["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    files = [path for name in included for path in (ROOT / name, *(ROOT / name).rglob("*"))]
    shipped = ["/" + str(path.relative_to(ROOT)) for path in files if path.is_file()]
    found = {}
    for source in (ROOT / "src").rglob("*.py"):
        for cited in CITED.findall(source.read_text()):
            found[cited] = source.name
    assert "docs/guarantees.md" in found  # the pattern sees what it should
    lost = {cited for cited in found if not any(path.endswith(f"/{cited}") for path in shipped)}
    assert not lost, {cited: found[cited] for cited in lost}
