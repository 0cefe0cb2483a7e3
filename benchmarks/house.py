"""The size and the shape of the code, as a table: of one commit, or of two side by side.

``python benchmarks/house.py`` reads the newest commit, ``--commit A`` another one, and ``--commit A
--commit B`` puts both into a table. Nothing is imported: a commit's files are parsed as they stand.
The last rows say what one more part of a kind touches: for one that is built in, how many other
files of the package have its name in their code (docstrings and comments aside).
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
STRETCH: Final = 6
"""Lines of code that make a repeated stretch."""

LONG: Final = 80
"""Lines above which a function of a command is long, its signature and docstring included."""

EXAMPLES: Final = {
    "aggregator": ("LNMax", "LNMax"),
    "notion": ("FalsePositiveParity", "FalsePositiveParity|false[-_]positive[-_]parity"),
    "generator of tables": ("RONGaussSynthesizer", "RONGaussSynthesizer|ron[-_]gauss"),
    "generator of pictures": ("DataLensImages", "DataLensImages|datalens"),
    "data set": ("load_parkinsons", "(load_)?parkinsons"),
    "picture backbone": ("CelebANetwork", "CelebANetwork"),
    "method": ("DPFERMIClassifier", "DPFERMIClassifier|dp[-_]fermi"),
}
"""A built-in part of each kind: what defines it, and the ways in which other files write it."""

_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Module:
    """One file of the package.

    Parameters
    ----------
    name : str
        As it is imported.
    text : str
    is_package : bool
        Whether it is the face of a package (``__init__.py``).
    """

    name: str
    text: str
    is_package: bool

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text)

    @cached_property
    def docstring_lines(self) -> frozenset[int]:
        """Line numbers that docstrings cover, those of constants included."""
        found: set[int] = set()
        for node in ast.walk(self.tree):
            for one in getattr(node, "body", ()) if isinstance(node, _DOCUMENTED) else ():
                if isinstance(one, ast.Expr) and _is_text(one.value):
                    found.update(_lines_of(one))
        return frozenset(found)

    @cached_property
    def code(self) -> tuple[tuple[int, str], ...]:
        """Lines that hold code, numbered, without comments and spaces at either end."""
        comments = {
            token.start[0]: token.start[1]
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline)
            if token.type == tokenize.COMMENT
        }
        lines = enumerate(self.text.splitlines(), start=1)
        kept = ((n, line[: comments.get(n, len(line))].strip()) for n, line in lines)
        return tuple((n, line) for n, line in kept if line and n not in self.docstring_lines)

    @cached_property
    def public(self) -> tuple[str, ...]:
        """``__all__``."""
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                assert isinstance(node.value, ast.List | ast.Tuple)
                # A table that is unpacked here (the notions) stands in a part's own face as well.
                names = [one for one in node.value.elts if not isinstance(one, ast.Starred)]
                return tuple(ast.literal_eval(name) for name in names)
        return ()

    @cached_property
    def imported(self) -> tuple[tuple[str, str | None], ...]:
        """Modules of the package that are imported, anywhere, with the name taken from each."""
        return self._imported(ast.walk(self.tree))

    @cached_property
    def imported_when_it_runs(self) -> tuple[tuple[str, str | None], ...]:
        """The same without what is imported for a type checker alone."""
        for_types = {
            inner
            for node in ast.walk(self.tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        return self._imported(node for node in ast.walk(self.tree) if node not in for_types)

    @staticmethod
    def _imported(nodes: Iterable[ast.AST]) -> tuple[tuple[str, str | None], ...]:
        found: list[tuple[str, str | None]] = []
        for node in nodes:
            if isinstance(node, ast.Import):
                found += [(name.name, None) for name in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                found += [(node.module, name.name) for name in node.names]
        return tuple(one for one in found if one[0].split(".")[0] == "evenhand")


@dataclass(frozen=True, kw_only=True)
class House:
    """All files of the package at one commit.

    Parameters
    ----------
    commit : str
    modules : dict of str to Module
    below : dict of str to set of str
        What each part may import, as the commit's own ``tests/test_layers.py`` says; and what all
        parts share.
    """

    commit: str
    modules: dict[str, Module]
    below: dict[str, set[str]] = field(repr=False)

    @classmethod
    def at(cls, commit: str) -> House:
        """Read a commit."""
        names = _git("ls-tree", "-r", "--name-only", commit, "src/evenhand").split()
        return cls._of(commit, names, lambda name: _git("show", f"{commit}:{name}"))

    @classmethod
    def as_it_stands(cls) -> House:
        """Read the files of this checkout."""
        files = (ROOT / "src" / "evenhand").rglob("*.py")
        names = sorted(file.relative_to(ROOT).as_posix() for file in files)
        return cls._of("files", names, lambda name: (ROOT / name).read_text(encoding="utf-8"))

    @classmethod
    def _of(cls, commit: str, names: list[str], read: Callable[[str], str]) -> House:
        modules = {}
        for name in names:
            if name.endswith(".py"):
                path = Path(name).with_suffix("").parts[1:]
                face = path[-1] == "__init__"
                dotted = ".".join(path[:-1] if face else path)
                modules[dotted] = Module(name=dotted, text=read(name), is_package=face)
        layers = ast.parse(read("tests/test_layers.py"))
        known = {}
        for node in layers.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                to = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(to, ast.Name) and to.id in ("SHARED", "BELOW"):
                    known[to.id] = eval(ast.unparse(node.value))  # of builtins alone
        below = {part: {*parts, *known["SHARED"], part} for part, parts in known["BELOW"].items()}
        return cls(commit=commit, modules=modules, below=below)

    def rows(self) -> dict[str, int]:
        """Return the numbers of the table."""
        modules = self.modules.values()
        faces = [module for module in modules if module.is_package]
        return {
            "files": len(self.modules),
            "lines": sum(len(module.text.splitlines()) for module in modules),
            "lines of code": sum(len(module.code) for module in modules),
            "lines of docstrings": sum(len(module.docstring_lines) for module in modules),
            "public names": len({name for module in faces for name in module.public}),
            "import circles": len(self.circles()),
            "import circles, imports for types counted": len(self.circles(for_types=True)),
            "upward imports": len(self.upward()),
            f"functions over {LONG} lines in `cli/`": len(self.long_functions()),
            f"repeated stretches of {STRETCH} lines": len(self.repeated()),
            "`getattr` and `hasattr` of fitted or private attributes": len(self.sniffed()),
        }

    def naming(self, kind: str) -> list[str] | None:
        """Return the modules whose code names the example of a kind, but the one that defines it.

        None if there is no such example.
        """
        defined, written = EXAMPLES[kind]
        own = {
            name
            for name, module in self.modules.items()
            for node in module.tree.body
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == defined
        }
        word = re.compile(rf"\b(?:{written})\b")
        return (
            sorted(
                name
                for name, module in self.modules.items()
                if name not in own
                and word.search(module.text)  # most have none: their code is not read
                and any(word.search(line) for _, line in module.code)
            )
            if own
            else None
        )

    def defined_in(self, module: str, name: str | None, depth: int = 9) -> str:
        """Return the module that an import reads, seen through the faces of packages."""
        if name is None:
            return module
        if f"{module}.{name}" in self.modules:
            return f"{module}.{name}"
        face = self.modules.get(module)
        if face is not None and face.is_package and depth:
            for inner, taken in face.imported:
                if taken == name:
                    return self.defined_in(inner, taken, depth - 1)
        return module

    def edges(self, *, for_types: bool = True) -> dict[str, set[str]]:
        """Return which module names which, imports inside functions included."""
        return {
            name: {
                self.defined_in(*one)
                for one in (module.imported if for_types else module.imported_when_it_runs)
            }
            - {name}
            for name, module in self.modules.items()
            if not module.is_package
        }

    def circles(self, *, for_types: bool = False) -> list[list[str]]:
        """Return sets of modules of which each leads, in the end, to each other."""
        edges = self.edges(for_types=for_types)
        reach = {name: self._reach(name, edges) for name in edges}
        found = {
            tuple(sorted(other for other in reach[name] if name in reach.get(other, ())))
            for name in edges
            if name in reach[name]
        }
        return sorted(list(circle) for circle in found)

    @staticmethod
    def _reach(name: str, edges: dict[str, set[str]]) -> set[str]:
        seen: set[str] = set()
        open_ = list(edges[name])
        while open_:
            one = open_.pop()
            if one not in seen:
                seen.add(one)
                open_ += edges.get(one, ())
        return seen

    def upward(self) -> list[tuple[str, str]]:
        """Return imports of a part that stands above."""
        found = []
        for name, module in self.modules.items():
            part = name.split(".")[1] if "." in name else ""
            for source, taken in module.imported:
                other = [*source.split("."), taken or ""][1]
                if part in self.below and other not in self.below[part]:
                    found.append((name, other))
        return found

    def long_functions(self) -> list[str]:
        """Return functions of the commands that are long."""
        return [
            f"{name}.{node.name}, {node.end_lineno - node.lineno + 1} lines"
            for name, module in self.modules.items()
            if name.startswith("evenhand.cli")
            for node in ast.walk(module.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if node.end_lineno is not None and node.end_lineno - node.lineno >= LONG
        ]

    def repeated(self) -> list[str]:
        """Return where six lines of code begin that stand somewhere before, too.

        Indentation, comments and blank lines do not count. Imports and ``__all__`` are left out:
        what two modules use of a third is no repetition. Eight lines that stand twice are three
        such places.
        """
        first: dict[tuple[str, ...], str] = {}
        found = []
        for name, module in self.modules.items():
            left_out = _lines_of_imports(module)
            code = [one for one in module.code if one[0] not in left_out]
            for i in range(len(code) - STRETCH + 1):
                at = f"{name}:{code[i][0]}"
                window = tuple(line for _, line in code[i : i + STRETCH])
                if window in first:
                    found.append(f"{at} as in {first[window]}")
                else:
                    first[window] = at
        return found

    def sniffed(self) -> list[str]:
        """Return where an attribute of another object is tried by its private or fitted name."""
        found = []
        for name, module in self.modules.items():
            for node in ast.walk(module.tree):
                if not isinstance(node, ast.Call) or len(node.args) < 2:
                    continue
                said = node.args[1]
                if ast.unparse(node.func) in ("getattr", "hasattr") and _is_text(said):
                    text = ast.literal_eval(said)
                    if not text.startswith("__") and "_" in (text[0], text[-1]):
                        found.append(f"{name}:{node.lineno} {text}")
        return found


def _lines_of_imports(module: Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(module.tree):
        listed = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if listed or isinstance(node, ast.Import | ast.ImportFrom):
            found.update(_lines_of(node))
    return found


def _lines_of(node: ast.stmt) -> range:
    assert node.end_lineno is not None
    return range(node.lineno, node.end_lineno + 1)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def lines_by_part(houses: list[House]) -> str:
    """Return a table of the lines of each part, a column for each commit."""
    columns: list[dict[str, int]] = []
    for house in houses:
        lines: dict[str, int] = {}
        for name, module in house.modules.items():
            inner = name.split(".")[1:]
            here = f"`{inner[0]}/`" if len(inner) > 1 or (module.is_package and inner) else "shared"
            lines[here] = lines.get(here, 0) + len(module.text.splitlines())
        columns.append(lines)
    head = ["| lines of | " + " | ".join(f"`{house.commit}`" for house in houses) + " |"]
    head.append("| --- |" + " ---: |" * len(houses))
    for part in sorted({part for lines in columns for part in lines}):
        numbers = (f"{lines[part]:,}" if part in lines else "-" for lines in columns)
        head.append(f"| {part} | " + " | ".join(numbers) + " |")
    return "\n".join(head)


def by_part(house: House) -> dict[str, int]:
    """Return how many public names each face has."""
    return {
        name: len(module.public)
        for name, module in house.modules.items()
        if module.is_package and module.public
    }


def table(houses: list[House]) -> str:
    """Return the table, a column for each commit."""
    columns = [house.rows() for house in houses]
    lines = [
        "| | " + " | ".join(f"`{house.commit}`" for house in houses) + " |",
        "| --- |" + " ---: |" * len(houses),
    ]
    for name in columns[0]:
        lines.append(f"| {name} | " + " | ".join(f"{column[name]:,}" for column in columns) + " |")
    for kind, (defined, _) in EXAMPLES.items():
        found = [house.naming(kind) for house in houses]
        numbers = " | ".join("-" if one is None else str(len(one)) for one in found)
        lines.append(f"| files that name one {kind}, `{defined}`, beside its own | {numbers} |")
    return "\n".join(lines)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def main() -> None:
    """Print the table of the commits that are named, or of the newest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--commit", action="append", help="a commit; more than once: side by side")
    parser.add_argument("--where", action="store_true", help="name what is counted, of the last")
    options = parser.parse_args()
    names = options.commit or [_git("rev-parse", "--short", "HEAD").strip()]
    houses = [House.at(name) for name in names]
    print(table(houses))
    print(f"\n{lines_by_part(houses)}")
    if options.where:
        last = {
            "public names": [f"{name} {n}" for name, n in by_part(houses[-1]).items()],
            "import circles": [", ".join(circle) for circle in houses[-1].circles(for_types=True)],
            "upward imports": [" -> ".join(one) for one in houses[-1].upward()],
            "long functions": houses[-1].long_functions(),
            "repeated stretches": houses[-1].repeated(),
            "getattr and hasattr": houses[-1].sniffed(),
            **{f"naming one {kind}": houses[-1].naming(kind) or [] for kind in EXAMPLES},
        }
        for title, found in last.items():
            print(f"\n{title}")
            print(*(f"  {one}" for one in found), sep="\n")


if __name__ == "__main__":
    main()
