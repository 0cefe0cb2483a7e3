"""Every Python block of the README and the docs runs, page by page, top to bottom."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from marks import some_slow

from evenhand.generators.registry import REGISTERED

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = ("gallery", "project", "reference")  # folders that a build of the site writes
PAGES = [
    ROOT / "README.md",
    ROOT / "reproductions" / "README.md",
    *sorted(p for p in DOCS.rglob("*.md") if p.relative_to(DOCS).parts[0] not in MADE),
]
SLOW_STARTS = ("csv", "owners", "regulator")  # the others stand in for them where CI is not
SLOW_PAGES = (
    *("synthetic-images", "frontier", "dpsgd", "baselines"),
    *("pictures", "synthetic-data", "students", "sf-pate"),
)
STARTS = [p for p in sorted((ROOT / "docs" / "start").glob("*.md")) if p.stem != "index"]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
TESTS = {
    name
    for folder in ("tests", "src/evenhand/testing")
    for file in (ROOT / folder).rglob("*.py")
    for name in re.findall(r"def (test_\w+)\(", file.read_text(encoding="utf-8"))
}


def blocks(page: Path) -> list[tuple[int, str]]:
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start()].count("\n") + 1, m.group(1)) for m in BLOCK.finditer(text)]


def test_every_page_and_method_is_found_from_the_first_ones() -> None:
    from evenhand.methods import estimators

    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    index, readme = (ROOT / name for name in ("docs/index.md", "README.md"))
    listed = index.read_text(encoding="utf-8")
    assert pages <= set(LINK.findall(listed))
    linked = set(LINK.findall(readme.read_text(encoding="utf-8")))
    starts = {f"docs/start/{page.name}" for page in STARTS}
    assert {"docs/index.md", "docs/choosing.md", "docs/guarantees.md", *starts} <= linked
    for method in estimators():
        assert f"| `{method}` |" in listed


def test_the_page_of_architecture_names_every_part() -> None:
    parts = {path.parent.name for path in (ROOT / "src" / "evenhand").glob("*/__init__.py")}
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.M)) == sorted(parts)


def test_the_glossary_has_every_part_of_a_claim() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = {word for line in re.findall(r"^(.+)\n: ", glossary, re.M) for word in line.split(", ")}
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    table = page[page.index("| part of the sentence") : page.index("The numbers are those")]
    parts = re.findall(r"^\| ([a-z][\w ]*) \|", table, re.M)[1:]  # below the head
    assert {"neighbors", "noise", "accounting", "not covered"} <= set(parts)
    meant = {"for each person": "unit"}
    assert {meant.get(part, part) for part in parts} | {"epsilon", "delta", "mu"} <= terms


@pytest.fixture
def generators_as_before() -> Iterator[None]:
    """Forget those that a page adds."""
    yield
    for key in [key for key, kind in REGISTERED.items() if kind.__module__ == "docs"]:
        del REGISTERED[key]


@pytest.mark.usefixtures("generators_as_before")
@pytest.mark.parametrize(
    "page",
    some_slow([p for p in PAGES if blocks(p) and p not in STARTS], SLOW_PAGES, lambda p: p.stem),
)
def test_the_blocks_of_a_page_run_as_one_script(
    page: Path,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if re.search(r"load_adult\(|load_credit|load_german|load_bank", page.read_text("utf-8")):
        request.getfixturevalue("real_data")("adult")
    namespace: dict[str, object] = {"__name__": "docs"}
    for line, code in blocks(page):
        # The blank lines put errors on the page's own line numbers.
        exec(compile("\n" * line + code, str(page), "exec"), namespace)


@pytest.mark.filterwarnings("ignore:Matplotlib is currently using agg")
@pytest.mark.parametrize("page", some_slow(STARTS, SLOW_STARTS, lambda p: p.stem))
def test_a_first_page_runs_as_it_stands(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    namespace: dict[str, object] = {"__name__": "docs"}
    text = page.read_text(encoding="utf-8")
    for step in STEP.finditer(text):
        if step[1] == "python":
            line = text[: step.start()].count("\n") + 1
            exec(compile("\n" * line + step[2], str(page), "exec"), namespace)
            continue
        done = subprocess.run(["bash", "-e"], input=step[2], text=True, capture_output=True)
        allowed = (0, 3) if "evenhand check" in step[2] else (0,)  # 3: not acceptable
        assert done.returncode in allowed, f"{step[2]}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_headings_files_and_tests_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        there = page if not target else page.parent / target
        headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE)
        words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
        assert anchor in {heading.replace(" ", "-") for heading in words}, f"no {anchor} in {there}"
    folders = ("", "src", "src/evenhand", "tests", "reproductions", "benchmarks")
    for name in set(re.findall(r"`([\w/]+\.py)", text)):
        found = any((ROOT / folder / name).exists() for folder in folders)
        assert found or ("/" not in name and [*(ROOT / "tests").rglob(name)]), f"no {name}"
    named = set(re.findall(r"`(test_\w+_\w+)`", text))  # `test_fraction` is an option
    assert named <= TESTS
