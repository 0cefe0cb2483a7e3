"""A page as one file: complete in itself, written whole or not at all, running only its scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from evenhand.report.htmltext import text


def document(*, title: str, style: str, body: str, scripts: tuple[str, ...]) -> str:
    """Return a whole page, under a policy that lets nothing but ``scripts`` run.

    Parameters
    ----------
    title : str
        Shown in the window; escaped here.
    style : str
        CSS of the page's own.
    body : str
        HTML in which every text from outside is escaped already.
    scripts : tuple of str
        JavaScript, run in this order at the end of the page.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(*scripts)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"{body}"
        + "\n".join(f"<script>{script}</script>" for script in scripts)
        + "\n</body>\n</html>\n"
    )


def write_whole(html: str, path: Path) -> Path:
    """Write a page: all of it, or nothing, so that an earlier page survives a failure."""
    page = html.encode("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Bytes, not text: a changed line ending would no longer match the page's own checksums.
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(page)
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
    return path


def data_element(name: str, values: Any) -> str:
    """Return plain values as JSON that a script of the page reads, and that no text can end."""
    # Inside a script element only "<" could end the data.
    inside = json.dumps(values, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{text(name)}">{inside}</script>'


def asset(package: str, name: str) -> str:
    """Return the text of a file that lies in a package of this project."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    """Return a policy under which only these scripts run, and no request leaves the page."""
    sources = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
