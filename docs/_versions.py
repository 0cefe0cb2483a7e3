"""Build the site of several versions: ``python docs/_versions.py v0.1 v0.2``, the newest last.

Each tag, branch or commit is built by its own pages and its own code, in a worktree that is removed
afterwards, into ``build/site/NAME``. ``versions.js`` beside them lists them for the choice in the
head of each page; a script and not JSON, because a page that is opened from disk may not fetch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(refs: Sequence[str], to: Path, repository: Path = ROOT) -> None:
    """Build ``refs`` into folders of ``to``, with a list of them and a way to the newest."""
    names = [ref.replace("/", "-") for ref in refs]
    for ref, name in zip(refs, names, strict=True):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            git = ["git", "-C", str(repository), "worktree"]
            subprocess.run([*git, "add", "--quiet", "--detach", str(tree), ref], check=True)
            try:
                subprocess.run(
                    [
                        sys.executable,
                        "-m",
                        "sphinx",
                        "-W",
                        "-q",
                        str(tree / "docs"),
                        str(to / name),
                    ],
                    cwd=tree,
                    env={**os.environ, "EVENHAND_SITE": name, "PYTHONPATH": str(tree / "src")},
                    check=True,
                )
            finally:
                subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    listed = json.dumps(names[::-1])
    (to / "versions.js").write_text(f"window.evenhandVersions = {listed};\n", encoding="utf-8")
    newest = f'<meta http-equiv="refresh" content="0; url={names[-1]}/index.html">'
    (to / "index.html").write_text(f"<!doctype html>{newest}\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit("which versions? python docs/_versions.py REF [REF ...]")
    build(sys.argv[1:], ROOT / "build" / "site")
