"""The site builds without a warning, and works in a real browser without a network."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand

pytest.importorskip("sphinx_gallery", reason="the extra docs is not installed")

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
SHOWN = [
    "index.html",
    "start/csv.html",
    "gallery/index.html",
    "gallery/plot_votes_and_noise.html",
    "reference/generated/evenhand.FairSharesClassifier.html",
    "glossary.html",
    "project/reproductions/results/labels_or_shares.html",
]


@pytest.mark.slow
@pytest.mark.browser
def test_the_site_is_whole_fetches_nothing_and_can_be_read_by_anybody(
    real_data: Callable[..., Any], browser: Any
) -> None:
    """Build and open it: two to four minutes the first time, seconds where nothing changed."""
    real_data("adult")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "docs", str(SITE)]
    built = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=1500)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-4000:]

    scripts = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
    assert len(scripts) >= 20
    for script in scripts:
        page = (SITE / "gallery" / f"{script.stem}.html").read_text(encoding="utf-8")
        assert f"sphx_glr_{script.stem}_001.png" in page, f"{script.name} draws nothing"

    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for width, scheme in ((1280, "light"), (390, "dark")):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        asked: list[str] = []
        page.on("request", lambda request, to=asked: to.append(request.url))
        for name in SHOWN:
            page.goto((SITE / name).as_uri())
            found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            assert [(one["id"], one["nodes"][0]["html"][:200]) for one in serious] == [], name
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            assert evenhand.__version__ in page.content()
        assert [url for url in asked if not re.match(r"file:|data:|blob:", url)] == []
        page.close()

    page = browser.new_page()  # the search, without a server
    page.goto((SITE / "search.html").as_uri() + "?q=reject+option")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    hits = page.locator("#search-results li a").all_inner_texts()
    assert any("reject option" in hit.lower() for hit in hits)
    page.close()


@pytest.mark.slow
@pytest.mark.browser
def test_two_versions_are_built_by_one_command_and_lead_to_each_other(
    tmp_path: Path, browser: Any
) -> None:
    """On a small repository with the site's own template and script; no page asks for more."""
    versions = runpy.run_path(str(ROOT / "docs" / "_versions.py"))
    docs = tmp_path / "repository" / "docs"
    docs.mkdir(parents=True)
    settings = (
        "import os\nproject, release, html_theme = 'small', '1', 'pydata_sphinx_theme'\n"
        f"templates_path = ['{ROOT}/docs/_templates']\n"
        f"html_static_path = ['{ROOT}/docs/_static']\nhtml_js_files = ['evenhand.js']\n"
        "html_theme_options = {'navbar_end': ['version']}\n"
        "html_context = {'several': os.environ.get('EVENHAND_SITE', '')}\n"
    )
    (docs / "conf.py").write_text(settings)
    git = ["git", "-C", str(docs.parent), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q", str(docs.parent)], check=True)
    for tag in ("v1", "v2"):
        (docs / "index.rst").write_text(f"Home\n====\n\nThe pages of {tag}.\n")
        for command in (["add", "."], ["commit", "-q", "-m", tag], ["tag", tag]):
            subprocess.run([*git, *command], check=True)
    site = tmp_path / "site"
    versions["build"](["v1", "v2"], site, docs.parent)
    left = subprocess.run([*git, "worktree", "list"], text=True, capture_output=True, check=True)
    assert len(left.stdout.splitlines()) == 1

    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.wait_for_url("**/v2/index.html")
    assert "The pages of v2." in page.inner_text("article")
    choice = page.locator("select.evenhand-version").first
    assert choice.locator("option").all_inner_texts() == ["v2", "v1"]
    choice.select_option("v1")
    page.wait_for_url("**/v1/index.html")
    assert "The pages of v1." in page.inner_text("article")
    assert [url for url in asked if not re.match(r"file:|data:|blob:", url)] == []
    page.close()
