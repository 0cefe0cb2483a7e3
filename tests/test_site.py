"""The site builds without a warning, and works in a real browser without a network."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
        assert [url for url in asked if not re.match(r"file:|data:|blob:", url)] == []
        page.close()

    page = browser.new_page()  # the search, without a server
    page.goto((SITE / "search.html").as_uri() + "?q=reject+option")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    hits = page.locator("#search-results li a").all_inner_texts()
    assert any("reject option" in hit.lower() for hit in hits)
    page.close()
