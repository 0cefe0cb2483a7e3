"""The table of layers, read from the imports themselves."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import evenhand

ROOT = Path(evenhand.__file__).parent
SHARED = {
    "_probabilities",
    "_arrow",
    "_checks",
    "_database",
    "_extras",
    "_display",
    "_folder",
    "_lock",
    "_frames",
    "_notions",
    "_private",
    "_random",
    "_signing",
    "_stored",
    "_torch",
    "_roles",
    "_numerals",
    "_units",
    "_values",
    "_version",
    "_words",
    "displays",
    "methods",
    "typing",
}

# By part what stands below it; the command line makes audits, too.
BELOW: dict[str, set[str]] = {
    part: set(below.split())
    for part, below in {
        "privacy": "",
        "fairness": "",
        "datasets": "fairness",
        "voting": "privacy fairness",
        "learners": "privacy datasets",
        "teachers": "fairness voting learners",
        "students": "fairness voting learners",
        "owners": "privacy datasets voting learners teachers students",
        "estimators": "privacy fairness datasets voting "
        "learners teachers students owners generators",
        "generators": "privacy fairness datasets learners teachers",
        "baselines": "privacy fairness voting learners teachers students generators estimators",
        "report": "privacy fairness datasets voting generators estimators",
        "frontier": "privacy fairness datasets voting learners "
        "teachers students generators estimators baselines report",
        "serve": "fairness datasets estimators report",
        "cli": "privacy fairness datasets voting learners teachers students "
        "owners generators estimators baselines report frontier serve testing",
    }.items()
}

OUTSIDE: dict[str, set[str]] = {
    "privacy": {"numpy", "scipy", "opendp", "dp_accounting", "sqlalchemy", "cryptography"},
    "fairness": {"numpy", "scipy", "fairlearn", "pandas"},
    "voting": {"numpy"},
}


@cache
def imports(file: Path) -> tuple[str, ...]:
    return tuple(_imports(file))


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: write absolute imports"
            if node.module == "evenhand":
                yield from (f"evenhand.{name.name}" for name in node.names)
            elif node.module:
                yield node.module


def parts(file: Path) -> set[str]:
    return {name.split(".")[1] for name in imports(file) if name.startswith("evenhand.")}


@pytest.mark.parametrize("part", sorted(BELOW))
def test_a_part_imports_only_what_stands_below_it(part: str) -> None:
    for file in (ROOT / part).rglob("*.py"):
        above = parts(file) - BELOW[part] - SHARED - {part}
        assert not above, f"{file.relative_to(ROOT)} imports {above}, which stands above {part}"


@pytest.mark.parametrize("part", sorted(OUTSIDE))
def test_a_part_imports_only_its_own_libraries(part: str) -> None:
    import sys

    for file in (ROOT / part).rglob("*.py"):
        roots = {name.split(".")[0] for name in imports(file)} - {"evenhand"}
        strange = roots - OUTSIDE[part] - set(sys.stdlib_module_names)
        assert not strange, f"{file.relative_to(ROOT)} imports {strange}"


def test_torch_is_imported_in_one_place_and_when_it_is_used() -> None:
    for file in ROOT.rglob("*.py"):
        assert "torch" not in {name.split(".")[0] for name in imports(file)}, file
        if file.name != "_torch.py":
            assert 'import_module("torch")' not in file.read_text(), f"{file}: use evenhand._torch"


def test_every_folder_stands_in_the_table() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders - {"testing"} == set(BELOW)


def looks_for_fitted_attributes(source: str) -> list[str]:
    """Return the calls that ask an object other than ``self`` whether it was fitted with a part."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [
        call
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in ("getattr", "hasattr")
    ]
    return [
        ast.unparse(call)
        for call in named
        if isinstance(call.args[1], ast.Constant)
        and str(call.args[1].value).endswith("_")
        and not str(call.args[1].value).startswith("__")
        and not (call.func.id == "hasattr" and ast.unparse(call.args[0]) == "self")  # type: ignore[attr-defined]
    ]


def test_what_a_model_tells_is_looked_for_in_one_place() -> None:
    assert looks_for_fitted_attributes("getattr(model, 'answers_', None)")
    assert looks_for_fitted_attributes("hasattr(model, 'rule_') and hasattr(self, 'rule_')")
    assert not looks_for_fitted_attributes("hasattr(self, 'rule_') or hasattr(x, '__len__')")
    for file in ROOT.rglob("*.py"):
        if file != ROOT / "estimators" / "fitted.py":
            found = looks_for_fitted_attributes(file.read_text())
            assert not found, f"{file.relative_to(ROOT)}: read model.fitted_, not {found[0]}"


def imported_modules(file: Path, modules: set[str]) -> set[str]:
    """Return the modules of the package that a file imports when it runs, in functions too."""
    found: set[str] = set()
    open_nodes: list[ast.AST] = [ast.parse(file.read_text())]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            open_nodes += node.orelse
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            members = {f"{node.module}.{name.name}" for name in node.names}
            # A module by its name is that module; another name is one of the package's face.
            found |= {name if name in modules else str(node.module) for name in members}
        else:
            open_nodes += ast.iter_child_nodes(node)
    return found & modules


def test_no_modules_import_each_other_in_a_circle() -> None:
    files = {
        ".".join(("evenhand", *file.relative_to(ROOT).with_suffix("").parts)): file
        for file in ROOT.rglob("*.py")
    }
    files = {name.removesuffix(".__init__"): file for name, file in files.items()}
    graph = {name: imported_modules(file, set(files)) - {name} for name, file in files.items()}
    assert graph["evenhand.report.page"] >= {"evenhand.report.claim", "evenhand.report.figures"}
    while ends := graph.keys() - (graph.keys() & set().union(*graph.values())) | {
        name for name, below in graph.items() if not below
    }:  # what nobody imports, and what imports nothing, stands in no circle
        graph = {name: below - ends for name, below in graph.items() if name not in ends}
    assert not graph, f"in circles: {sorted(graph)}"
