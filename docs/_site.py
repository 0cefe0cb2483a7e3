"""What the site adds to Sphinx: pages from outside this folder, the reference, and *Privacy*."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from pathlib import Path
from typing import Any

import evenhand

ROOT = Path(__file__).parents[1]
MIRRORED = ("reproductions", "benchmarks", "CHANGELOG.md", "CONTRIBUTING.md")
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#|/|mailto:)([^)#\s]+)(#[^)]*)?\)")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
PRIVACY = re.compile(r"^Privacy$")
ITEM = re.compile(r"^([A-Z][\w ,-]{0,40}?) : (.*)$")
HIDDEN = {"app"}  # the commands; they have a page


def mirror(app: Any, config: Any) -> None:
    """Copy the pages of results, benchmarks and changes into ``project``."""
    to = Path(app.srcdir) / "project"
    pages = {}
    for name in MIRRORED:
        for page in [ROOT / name] if name.endswith(".md") else (ROOT / name).rglob("*.md"):
            pages[page.relative_to(ROOT)] = page.read_text(encoding="utf-8")
    listing = "\n".join(sorted(name.as_posix() for name in pages if name.parent.name == "results"))
    head = "# Every page of results\n\n```{toctree}\n:maxdepth: 1\n\n"
    pages[Path("results.md")] = f"{head}{listing}\n```\n"
    _write(to, pages)


def link(app: Any, docname: str, source: list[str]) -> None:
    """Let links between files of the project lead to pages of the site; the rest become words."""
    if docname.startswith("gallery/"):
        return
    inside = docname.removeprefix("project/")
    home = (ROOT / inside if inside != docname else ROOT / "docs" / docname).parent

    def there(found: re.Match[str]) -> str:
        image, words, target, anchor = found.groups()
        path = Path(os.path.normpath(home / target))
        if not path.is_relative_to(ROOT):
            return words
        within = path.relative_to(ROOT)
        if within.parts[0] == "docs":
            return f"{image}[{words}](/{Path(*within.parts[1:])}{anchor or ''})"
        if path.suffix == ".md" and within.parts[0] in MIRRORED:
            return f"{image}[{words}](/project/{within}{anchor or ''})"
        return words

    parts = FENCE.split(source[0])
    source[0] = "".join(p if p.startswith("```") else LINK.sub(there, p) for p in parts)


def reference(app: Any, config: Any) -> None:
    """Write a page per package, with every public name of its face."""
    pages = {}
    names = [m.name for m in pkgutil.walk_packages(evenhand.__path__, "evenhand.") if m.ispkg]
    faces, said = ["evenhand", "evenhand.displays", *sorted(names)], set()
    for face in faces:
        module = importlib.import_module(face)
        public = getattr(module, "__all__", None) or _own(module)
        # A name has one page, at its shortest address.
        known = [name for name in public if name[0] != "_" and name not in HIDDEN]
        new = [name for name in known if id(getattr(module, name)) not in said]
        said |= {id(getattr(module, name)) for name in new}
        if not new:
            continue
        head = (module.__doc__ or "").strip().splitlines()[0]
        lines = [face, "=" * len(face), "", head, "", f".. currentmodule:: {face}", ""]
        lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in new]
        pages[Path(f"{face}.rst")] = "\n".join(lines) + "\n"
    listing = "\n".join(f"   {page.stem}" for page in sorted(pages))
    pages[Path("index.rst")] = (
        "Reference\n=========\n\nEvery public name, by the package that has it.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{listing}\n"
    )
    _write(Path(app.srcdir) / "reference", pages)


def _write(to: Path, pages: dict[Path, str]) -> None:
    """Write what has changed, so that a second build is short, and remove what is no page."""
    for name, text in pages.items():
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
    for page in [*to.rglob("*.md"), *to.glob("*.rst")]:
        if page.relative_to(to) not in pages:
            page.unlink()


def _own(module: Any) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and name[0] != "_"
    ]


_kept: dict[str, list[str]] = {}


def set_aside(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Take *Privacy* out of a docstring before numpydoc reads it, which has no such section."""
    for at in range(len(lines) - 1):
        if PRIVACY.match(lines[at]) and set(lines[at + 1]) == {"-"}:
            after = next(
                (
                    i
                    for i in range(at + 2, len(lines) - 1)
                    if lines[i] and lines[i + 1] and set(lines[i + 1]) == {"-"}
                ),
                len(lines),
            )
            _kept[name] = lines[at + 2 : after]
            del lines[at:after]
            return


def put_back(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Append it when numpydoc is done."""
    if said := _kept.pop(name, None):
        lines += ["", ".. rubric:: Privacy", "", *_items(said), ""]


def _items(said: list[str]) -> list[str]:
    """Write "Unit : one record" as items of a list, each on one line."""
    out: list[str] = []
    for line in said:
        if found := ITEM.match(line):
            out += ["", f"* **{found[1]}**: {found[2]}"]
        elif line.strip() and out and out[-1]:
            out[-1] += f" {line.strip()}"
        else:
            out.append(line.strip())
    return out


def setup(app: Any) -> dict[str, bool]:
    app.connect("config-inited", mirror)  # before autosummary looks for pages
    app.connect("config-inited", reference)
    app.connect("source-read", link)
    app.connect("autodoc-process-docstring", set_aside, priority=400)
    app.connect("autodoc-process-docstring", put_back, priority=600)
    return {"parallel_read_safe": False}
