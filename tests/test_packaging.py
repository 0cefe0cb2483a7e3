"""What is given away: the wheel and the sdist, the conda recipe, how to cite."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

import evenhand

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENT = re.compile(r"^([A-Za-z0-9_.-]+)\s*(.*)$")


def parts(requirements: list[str]) -> dict[str, str]:
    """Return the bound of each package, by its name as registries compare names."""
    found = (REQUIREMENT.match(words) for words in requirements)
    return {m[1].lower().replace("_", "-"): m[2] for m in found if m is not None}


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    """Builds the sdist and the wheel from it, and asks twine: about twenty seconds."""
    pytest.importorskip("build", reason="build is not installed")
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        info = f"evenhand-{evenhand.__version__}.dist-info"
        told = Parser().parsestr(file.read(f"{info}/METADATA").decode())
        commands = file.read(f"{info}/entry_points.txt").decode()
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "evenhand").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if not name.startswith(info)} == files
    assert "evenhand/py.typed" in files
    assert {"html", "css", "js"} <= {name.rpartition(".")[2] for name in files}
    assert {name.rpartition(".")[2] for name in files} <= {"py", "typed", "html", "css", "js"}
    assert wheel.stat().st_size < 3_000_000
    assert "evenhand = evenhand.cli:main" in commands
    needed = [words for words in told.get_all("Requires-Dist", []) if "extra ==" not in words]
    assert parts(needed) == parts(PROJECT["dependencies"])
    assert not {"torch", "pyarrow", "plotly", "matplotlib"} & parts(needed).keys()
    assert set(told.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    with tarfile.open(sdist) as packed:
        shipped = {name.partition("/")[2] for name in packed.getnames()}
    assert {"CITATION.cff", "conda/meta.yaml", "constraints.txt", "LICENSE"} <= shipped
    pytest.importorskip("twine", reason="twine is not installed")
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.count("PASSED") == 2


def test_the_recipe_of_conda_needs_what_the_project_needs() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    from jinja2 import Environment

    def load_file_regex(path: str, pattern: str, from_recipe_dir: bool) -> re.Match[str] | None:
        text = (ROOT / "conda" / path).read_text(encoding="utf-8")
        return re.search(pattern, text) if from_recipe_dir else None

    text = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    filled = (
        Environment().from_string(text).render(load_file_regex=load_file_regex, PYTHON="python")
    )
    recipe = yaml.safe_load(filled)
    assert recipe["package"] == {"name": "evenhand", "version": evenhand.__version__}
    run = parts(recipe["requirements"]["run"])
    assert run.pop("python") == PROJECT["requires-python"]
    assert run == parts(PROJECT["dependencies"])
    extras = parts(
        [one for several in PROJECT["optional-dependencies"].values() for one in several]
    )
    called = {"matplotlib-base": "matplotlib", "pytorch": "torch"}
    for name, bound in parts(recipe["requirements"]["run_constrained"]).items():
        assert extras[called.get(name, name)] == bound
    script = dict(line.split(" = ") for line in recipe["build"]["entry_points"])
    assert script == PROJECT["scripts"]
    assert recipe["about"]["license"] == PROJECT["license"]


TEXT = {"type": "string", "minLength": 1}
PEOPLE = {
    "type": "array",
    "minItems": 1,
    "items": {
        "anyOf": [
            {"required": ["name"], "properties": {"name": TEXT}, "additionalProperties": False},
            {
                "required": ["family-names"],
                "properties": {"family-names": TEXT, "given-names": TEXT, "orcid": TEXT},
                "additionalProperties": False,
            },
        ]
    },
}
CITATION: dict[str, Any] = {
    # What of the schema of CFF 1.2.0 this file may use.
    "type": "object",
    "required": ["cff-version", "message", "title", "authors"],
    "additionalProperties": False,
    "properties": {
        **dict.fromkeys(("message", "title", "abstract", "version"), TEXT),
        "cff-version": {"const": "1.2.0"},
        "type": {"enum": ["software", "dataset"]},
        "license": {"const": PROJECT["license"]},
        "date-released": {"type": "string", "format": "date"},
        "authors": PEOPLE,
        "keywords": {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True},
        "references": {
            "type": "array",
            "items": {
                "required": ["type", "title", "authors"],
                "properties": {"type": {"const": "article"}, "title": TEXT, "authors": PEOPLE},
                "additionalProperties": False,
            },
        },
    },
}


def test_the_citation_is_valid_and_of_this_version() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(CITATION).validate(said)
    assert said["version"] == evenhand.__version__
