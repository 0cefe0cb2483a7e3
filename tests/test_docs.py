"""Every Python block of the README and the docs runs, page by page, top to bottom."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.generators.registry import REGISTERED

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "reproductions" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


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
    assert {f"docs/{name}" for name in pages} <= linked
    for method in estimators():
        assert f"| `{method}` |" in listed


def test_the_readme_names_every_part() -> None:
    parts = {path.parent.name for path in (ROOT / "src" / "evenhand").glob("*/__init__.py")}
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    assert sorted(rows) == sorted(parts - {"testing"})  # for authors of plug-ins


@pytest.fixture
def generators_as_before() -> Iterator[None]:
    """Forget those that a page adds."""
    yield
    for key in [key for key, kind in REGISTERED.items() if kind.__module__ == "docs"]:
        del REGISTERED[key]


@pytest.mark.usefixtures("generators_as_before")
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
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


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
