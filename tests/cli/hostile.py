"""Hostile input by the thousand: every command refuses it in one line, and none falls over.

``python tests/cli/hostile.py --inputs 5000`` makes inputs from the seeds 0, 1, ...: valid ones that
are damaged (bytes, cells, values of JSON and TOML, words of the command line), and runs the command
on each in this process. Exit codes 0, 2 and 3 are right; a traceback, another code, more than one
line of error and a command that does not end are not. ``--first`` starts at another seed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import typer
from typer.testing import CliRunner

from evenhand.cli import app
from evenhand.cli.failures import CommandGroup
from evenhand.frontier.export import read_published

SECONDS: Final = 60
"""No input here is worth more; a command that takes longer hangs."""

MEMORY: Final = 4 * 2**30
"""Address space beyond what is in use: an input must not ask for all that there is."""

TRAIN: Final = (
    *("train", "private.csv", "--public", "public.csv", "--label", "loan", "--sensitive", "sex"),
    *("--epsilon", "4", "--margin", "0.3", "--teachers", "4", "--seed", "0", "--out", "made"),
)
SYNTHESIZE: Final = (
    *("synthesize", "private.csv", "--label", "loan", "--sensitive", "sex", "--epsilon", "4"),
    *("--schema", "schema.json", "--rows", "20", "--seed", "0", "--out", "made.csv"),
)
TABLES: Final = """
[data]
private = "private.csv"
public = "public.csv"
test = "test.csv"
label = "loan"
sensitive = "sex"
"""
"""The tables in a grid, of every test here."""

GRID: Final = f"""title = "loans"
seeds = [0]
{TABLES}
[[runs]]
method = ["pate"]
epsilon = [4.0]
n_teachers = 4
"""
WANTED: Final = """epsilon = 3.0
gap = 0.06
accuracy = 0.5
coverage = 0.9
fairness = "demographic_parity"
methods = ["pate"]
group_at_prediction = true
"""
SCHEMA: Final[dict[str, Any]] = {
    "columns": [
        {"name": "age", "kind": "numeric", "bounds": [10, 80], "integer": True, "missing": True},
        {"name": "job", "kind": "categorical", "categories": ["clerk", "nurse"], "missing": True},
        {"name": "sex", "kind": "categorical", "categories": ["F", "M"]},
        {"name": "loan", "kind": "categorical", "categories": ["no", "yes"]},
    ]
}

POINTS: Final = """data,method,epsilon,error,gap,gap_name,source
loans,DP-FERMI,0.5,0.1664,0.196,demographic_parity_pairwise,somebody 2023
loans,DP-FERMI,3,0.1718,0.1,demographic_parity_pairwise,somebody 2023
"""

CELLS: Final = (
    *("", " ", "NaN", "nan", "inf", "-inf", "1e400", "1e308", "-1e308", "1e-320", "-0.0", "0x10"),
    *("1_000", "1,5", "１２", "٣", "9" * 400, "None", "null", "True", "2020-01-01", "12:30", "?"),
    *('"', '""', "'", "=cmd()", "+1", "-", "@x", "\x1b[31mred", "\u202edlo", "\u0000", "🙂" * 9),
    *("x" * 200_000, "a;b", "a\tb", "a|b", "é", "e\u0301", "<script>", "{{x}}", "%s%n", "$(id)"),
)
VALUES: Final[list[Any]] = [
    *(None, True, False, -1, 0, 1, 2**63, 10**30, -(10**18), 1.5, 1e308, -1e308, float("nan")),
    *(float("inf"), float("-inf"), "", "x", "x" * 100_000, "\u0000", "\x1b[31m", "é", "../../x"),
    *([], {}, [{}], [[]], [None], [1, "a"], {"a": {"b": [1]}}, ["a", "a"], "nan", "1", {"x": 1}),
]
TOML_VALUES: Final = (
    *("nan", "inf", "-inf", "-1", "0", "1e400", "1e308", '""', '"x"', "[]", "{}", "[[]]", "[{}]"),
    *("true", "2020-01-01", "12:30:00", '"\\u0000"', "9" * 400, "[1, 'a']", "{a = 1}", '"../x"'),
    *("{from = 0, to = 1, n = 3}", "{from = 1, to = 1e9, n = 1000000000}", "[" * 3000, "''''''"),
    *('"\\u001b[31m"', "0x10", "1_0", '["a", "a"]', "[0.1, nan]", '"' + "x" * 100_000 + '"'),
)
WORDS: Final = (
    *("", " ", "-", "--", "-1", "0", "1", "nan", "inf", "1e308", "1e400", "1e-320", "9" * 400, "x"),
    *("loan", "sex", "job", "age", "LOAN", "loan ", "sex,loan", "*", "\x1b[31m", "é", "\u202ex"),
    *("\udc80", "x" * 5000, "a" * 300, "private.csv", "public.csv", "model", ".", "nowhere/x.csv"),
    *("/proc/self/mem", "/proc/nothing", "x.xlsx", "x.parquet", "x.json", "model/model.json"),
    *("sqlite:///", "sqlite:///x.db", "postgresql://nobody@127.0.0.1:1/x", "://", "file:///x"),
    *("schema.json", "front", "grid.toml", "state.json", "yes", "record", "fairpate", "pate"),
    *("10000000000", "2.5", "0.5", "true", "<b>", "{}", "[]", "%d", "a=b", "age=4", "\n", "a\nb"),
)


READERS: Final = typer.Typer(cls=CommandGroup, pretty_exceptions_enable=False)
"""What no command reads, and is a stranger's file all the same."""


@READERS.callback()
def _readers() -> None:
    """Read a file."""


READERS.command("read-published")(lambda points: print(len(read_published(points))))

AWAY: Final = {"audit", "demo", "serve"}
"""Commands that are not run: two fit for long and read no file, the other does not end."""


class Hangs(BaseException):
    """The command did not end in time; not an Exception, which a command might take for input."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one input."""

    words: list[str]
    code: int
    wrong: str = ""
    said: str = ""


def build(folder: Path) -> None:
    """Write the valid tables, a schema, a grid, a model, the counts of a gate, and a frontier."""
    rng = np.random.default_rng(0)
    for part, n in (("private", 60), ("public", 30), ("test", 20)):
        frame = pd.DataFrame(
            {
                "age": rng.integers(18, 70, n),
                "job": rng.choice(["clerk", "nurse"], n),
                "sex": np.where(np.arange(n) % 2 == 0, "F", "M"),
            }
        )
        frame["loan"] = np.where(frame["age"] + rng.normal(0, 9, n) > 44, "yes", "no")
        frame.loc[rng.random(n) < 0.1, "job"] = None
        frame.to_csv(folder / f"{part}.csv", index=False)
    (folder / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    (folder / "grid.toml").write_text(GRID, encoding="utf-8")
    (folder / "wanted.toml").write_text(WANTED, encoding="utf-8")
    (folder / "points.csv").write_text(POINTS, encoding="utf-8")
    rejecting = "predict model test.csv --reject-margin 0.3 --state state.json --out first.csv"
    with inside(folder):
        for words in (
            [*TRAIN[:-1], "model", "--ledger", "ledger.db", "--account-epsilon", "30"],
            rejecting.split(),
            ["frontier", "grid.toml", "--out", "front", "--jobs", "1"],
        ):
            done = run(words)
            assert not done.wrong, (done, "the valid input must pass")
            assert done.code == 0, done


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Stop what takes longer."""

    def stop(*_: object) -> None:
        raise Hangs(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(words: Sequence[str]) -> Outcome:
    """Run one command in this process, and judge how it ended."""
    try:
        with at_most(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("default")
            reader = bool(words) and words[0] == "read-published"
            done = CliRunner().invoke(READERS if reader else app, list(words))
    except Hangs as error:
        return Outcome(words=list(words), code=-1, wrong=f"hangs: {error}")
    error = done.exception
    said = done.stderr
    if error is not None and not isinstance(error, SystemExit):
        trace = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in trace if "/evenhand/" in frame.filename] or list(trace)
        where = f"{Path(own[-1].filename).name}:{own[-1].name}"
        kind = "hangs" if isinstance(error, Hangs) else type(error).__name__
        return Outcome(words=list(words), code=1, wrong=f"{kind} in {where}: {error}"[:300])
    return Outcome(
        words=list(words),
        code=done.exit_code,
        wrong=_wrong(done.exit_code, said, done.stdout),
        said=said,
    )


def _wrong(code: int, said: str, out: str) -> str:
    """Say what is wrong with an ending; empty if nothing is."""
    if "Traceback" in said or "Traceback" in out:
        return "a traceback is printed"
    if code not in (0, 2, 3):
        return f"exit code {code}: {said[-200:]!r}"
    if code == 2 and (said.lstrip().startswith(("Usage:", "╭")) or (not said and "Usage:" in out)):
        return ""  # typer's own box about the words, or the help of a command without words
    if code == 2:
        lines = [line for line in said.splitlines() if line.startswith("error: ")]
        if len(lines) != 1 or not said.rstrip().splitlines()[-1].startswith("error: "):
            return f"not one line of error: {said[-200:]!r}"
    if any(not (c.isprintable() or c in "\n\t") for c in said):
        return f"control characters on stderr: {said[-200:]!r}"
    if "RuntimeWarning" in said or "Warning:" in said:
        return f"a warning of a library: {said[-200:]!r}"
    return ""


# --- damage -----------------------------------------------------------------------------------


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """Damage a file as disks, editors and attackers do, whatever it holds."""
    at = rng.randrange(len(content) + 1)
    ways: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: b" \n\n\t",
        lambda: content[:at],
        lambda: content[at:],
        lambda: content[:at] + b"\0" + content[at:],
        lambda: content[:at] + bytes([rng.choice((0xFF, 0xC0, 0x80, 0xED))]) + content[at:],
        lambda: b"\xef\xbb\xbf" + content,
        lambda: b"\xef\xbb\xbf" * 2 + content,
        lambda: content.decode("utf-8", "replace").encode("utf-16"),
        lambda: content.replace(b"\r\n", b"\n").replace(b"\n", b"\r"),
        lambda: content.replace(b"\n", b"\r\n"),
        lambda: content.replace(b"\n", b"\n\n"),
        lambda: rng.randbytes(rng.choice((1, 7, 500))),
        lambda: (
            rng.choice((b"PK\x03\x04", b"PAR1", b"\x1f\x8b\x08", b"{", b"[" * 100_000))
            + content[:at]
        ),
        lambda: (
            content[:at]
            + bytes([content[at % max(1, len(content))] ^ (1 << rng.randrange(8))])
            + content[at + 1 :]
            if content
            else b"x"
        ),
        lambda: content * 2,
        lambda: (
            content[:at]
            + rng.choice(("🙂", "\x1b[2J", "\u2028", "\x85", "\x0c", '"')).encode()
            + content[at:]
        ),
    ]
    return rng.choice(ways)()


def damaged_table(content: bytes, rng: random.Random) -> bytes:
    """Damage a CSV: its cells, its header, its shape."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    row, column = rng.randrange(len(rows)), rng.randrange(len(rows[0]))
    value = rng.choice(CELLS)

    def cell() -> None:
        rows[row][column] = value

    def whole_column() -> None:
        for one in rows[1:]:
            one[column] = value

    def unique_column() -> None:
        for i, one in enumerate(rows[1:]):
            one[column] = f"{value[:9]}{i}"

    def header() -> None:
        rows[0][column] = rng.choice((*CELLS, rows[0][0], "sex ", "SEX", "loan", "prediction"))

    def ragged() -> None:
        rows[row] = (
            rows[row][: rng.randrange(len(rows[0]))] if rng.random() < 0.5 else rows[row] + [value]
        )

    def without_column() -> None:
        for one in rows:
            del one[column]

    def few_rows() -> None:
        del rows[rng.choice((0, 1, 2, 3, 5)) :]

    def wide() -> None:
        for i, one in enumerate(rows):
            one += [value[:9] if i else f"c{j}" for j in range(60)]

    def one_group() -> None:
        kept = rows[1][column]
        rows[1:] = [one for one in rows[1:] if one[column] == kept]

    def twice_the_column() -> None:
        for one in rows:
            one.append(one[column])

    ways = [cell] * 6 + [whole_column] * 3 + [unique_column] * 2 + [header] * 3 + [ragged] * 2
    ways += [without_column, few_rows, few_rows, wide, one_group, one_group, twice_the_column]
    for _ in range(rng.choice((1, 1, 2))):
        if not rows or column >= min(map(len, rows)):
            break
        rng.choice(ways)()
        row = min(row, max(0, len(rows) - 1))
    separator = rng.choice([","] * 12 + [";", "\t", "|", " "])
    end = rng.choice(["\n"] * 8 + ["\r\n", "\r"])
    made = end.join(separator.join(one) for one in rows) + rng.choice((end, ""))
    return made.encode("utf-8", "surrogatepass")


def damaged_json(content: bytes, rng: random.Random) -> bytes:
    """Damage values, keys and depth of a JSON document."""
    try:
        document = json.loads(content)
    except ValueError:
        return damaged_bytes(content, rng)
    for _ in range(rng.choice((1, 1, 1, 2))):
        document = _damaged_node(document, rng)
    made = json.dumps(document, ensure_ascii=rng.random() < 0.5)
    way = rng.randrange(20)
    if way == 0:  # deeper than any reader goes
        made = "[" * 100_000 + made + "]" * 100_000
    elif way == 1 and made.startswith("{"):  # a key twice
        made = made[:-1] + ("," if len(made) > 2 else "") + '"columns": 1}'
    elif way == 2:  # more digits than Python reads
        made = made.replace("1", "1" * 5000, 1)
    return made.encode("utf-8", "surrogatepass")


def _damaged_node(node: Any, rng: random.Random) -> Any:
    """Return the document with one node, key or item changed."""
    if not isinstance(node, dict | list) or not node or rng.random() < 0.15:
        return rng.choice(VALUES)
    if isinstance(node, list):
        i = rng.randrange(len(node))
        way = rng.randrange(6)
        if way == 0:
            return [*node[:i], *node[i + 1 :]]
        if way == 1:
            return [*node, rng.choice(VALUES)]
        if way == 2:
            return [*node, node[i]]
        return [*node[:i], _damaged_node(node[i], rng), *node[i + 1 :]]
    key = rng.choice(sorted(node))
    way = rng.randrange(8)
    if way == 0:
        return {k: v for k, v in node.items() if k != key}
    if way == 1:
        return node | {rng.choice(("x", "", "é", key + " ", "__class__")): rng.choice(VALUES)}
    if way == 2:
        return {(k if k != key else f"{k}x"): v for k, v in node.items()}
    return node | {key: _damaged_node(node[key], rng)}


def damaged_toml(content: bytes, rng: random.Random) -> bytes:
    """Damage lines, keys and values of a TOML file."""
    lines = content.decode().splitlines()
    for _ in range(rng.choice((1, 1, 2))):
        i = rng.randrange(len(lines))
        key, equals, _value = lines[i].partition(" = ")
        way = rng.randrange(9)
        if way == 0:
            del lines[i]
        elif way == 1:
            lines.insert(i, lines[rng.randrange(len(lines))])
        elif way == 2 and equals:
            lines[i] = f"{key}x = {_value}"
        elif way == 3:
            lines.insert(i, f"{rng.choice(('x', 'epsilon', 'margin', 'seeds', '[data]', ']'))} = 1")
        elif equals:
            lines[i] = f"{key} = {rng.choice(TOML_VALUES)}"
        else:
            lines[i] = rng.choice(
                ("[", "[[runs]]", "[data]", "[data.x]", "[[data]]", "\x00", "= 1")
            )
        lines = lines or [""]
    return "\n".join(lines).encode()


# --- inputs -----------------------------------------------------------------------------------


def spoil(name: str, how: Callable[[bytes, random.Random], bytes], rng: random.Random) -> None:
    """Damage one file in place; now and then its bytes, or that it is a file at all."""
    path = Path(name)
    chosen = rng.random()
    if chosen < 0.02:
        path.unlink()
    elif chosen < 0.04:
        path.unlink()
        path.mkdir()
    else:
        way = damaged_bytes if chosen < 0.2 else how
        path.write_bytes(way(path.read_bytes(), rng))


def of_train(rng: random.Random) -> list[str]:
    """Damage a table that a model is trained on."""
    spoil(rng.choice(("private.csv", "private.csv", "public.csv")), damaged_table, rng)
    more = rng.choice(
        (
            [],
            [],
            ["--test", "test.csv"],
            ["--method", "pate"],
            ["--unit", "age"],
            ["--drop", "job"],
            ["--sensitive", "job"],
            ["--method", "non-private"],
            ["--method", "fair-only"],
            ["--fairness", "equalized-odds", "--calibration", "test.csv"],
        )
    )
    return [*TRAIN, *more]


def of_schema(rng: random.Random) -> list[str]:
    """Damage a declared schema."""
    spoil("schema.json", damaged_json, rng)
    return SYNTHESIZE if rng.random() < 0.5 else [*TRAIN, "--schema", "schema.json"]


def of_new_rows(rng: random.Random) -> list[str]:
    """Damage the rows that a model is asked about."""
    spoil("test.csv", damaged_table, rng)
    return rng.choice(
        (
            ["predict", "model", "test.csv"],
            ["predict", "model", "test.csv", "--proba", "--json"],
            ["evaluate", "model", "test.csv"],
            ["evaluate", "model", "test.csv", "--json"],
            ["predict", "model", "test.csv", "--reject-margin", "0.3"],
        )
    )


def of_state(rng: random.Random) -> list[str]:
    """Damage the counts that a reject option keeps over runs."""
    spoil("state.json", damaged_json, rng)
    return ["predict", "model", "test.csv", "--reject-margin", "0.3", "--state", "state.json"]


def of_model(rng: random.Random) -> list[str]:
    """Damage a model folder, with a manifest that fits afterwards or without."""
    name = rng.choice(sorted(str(path) for path in Path("model").iterdir()))
    spoil(name, damaged_json if name.endswith(".json") else damaged_bytes, rng)
    if rng.random() < 0.7:
        remake_manifest(Path("model"))
    commands = [["predict", "model", "test.csv"], ["evaluate", "model", "test.csv"]]
    commands += [["verify", "model"]] if "verify" in commands_known() else []
    return rng.choice(commands)


def remake_manifest(folder: Path) -> None:
    """Write the digests of the files as they now are."""
    path = folder / "manifest.json"
    try:
        listed = json.loads(path.read_bytes())
        for file in folder.iterdir():
            if file.name in listed["files"]:
                listed["files"][file.name] = sha256(file.read_bytes()).hexdigest()
        path.write_text(json.dumps(listed), encoding="utf-8")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return  # the manifest itself is what is damaged


def of_grid(rng: random.Random) -> list[str]:
    """Damage a grid of settings."""
    spoil("grid.toml", damaged_toml, rng)
    return ["frontier", "grid.toml", "--out", "made", "--jobs", "1"]


def of_wanted(rng: random.Random) -> list[str]:
    """Damage what is said to be acceptable, or the runs that are looked through."""
    if rng.random() < 0.8:
        spoil("wanted.toml", damaged_toml, rng)
    else:
        spoil("front/runs.db", damaged_bytes, rng)
    return ["check", "wanted.toml", "front", *rng.choice(([], ["--json"]))]


def of_synthesize(rng: random.Random) -> list[str]:
    """Damage a table that synthetic rows are learnt from."""
    spoil("private.csv", damaged_table, rng)
    words = list(SYNTHESIZE)
    if rng.random() < 0.5:  # all is bought instead
        del words[words.index("--schema") : words.index("--schema") + 2]
    return words


def of_ledger(rng: random.Random) -> list[str]:
    """Damage the account that a training is charged to."""
    spoil("ledger.db", damaged_bytes, rng)
    return [*TRAIN, "--ledger", "ledger.db", "--account-epsilon", "30"]


def of_points(rng: random.Random) -> list[str]:
    """Damage the points that somebody published."""
    spoil("points.csv", damaged_table, rng)
    return ["read-published", "points.csv"]


def of_inspect(rng: random.Random) -> list[str]:
    """Damage a table that is looked over."""
    spoil("private.csv", damaged_table, rng)
    return ["inspect", "private.csv", *rng.choice(([], ["--public", "public.csv"], ["--json"]))]


def of_words(rng: random.Random) -> list[str]:
    """Damage the words of a command: values, names and places of its options."""
    known = commands_known()
    name = rng.choice(sorted(known))
    valid: dict[str, list[str]] = {
        "train": TRAIN,
        "synthesize": SYNTHESIZE,
        "predict": ["predict", "model", "test.csv"],
        "evaluate": ["evaluate", "model", "test.csv"],
        "frontier": ["frontier", "grid.toml", "--out", "made", "--jobs", "1"],
        "check": ["check", "wanted.toml", "front"],
        "datasets": ["datasets", "list"],
        "inspect": ["inspect", "private.csv"],
        "verify": ["verify", "model"],
    }
    words = list(valid.get(name, [name, "private.csv"]))
    for _ in range(rng.choice((1, 1, 2, 3))):
        i = rng.randrange(1, len(words)) if len(words) > 1 else 0
        way = rng.randrange(6)
        if way == 0 and i:
            words[i] = rng.choice(WORDS)
        elif way == 1 and i:
            del words[i]
        elif way == 2:
            words.insert(i or 1, rng.choice(WORDS))
        elif known[name]:
            option, takes = rng.choice(known[name])
            words += [option, rng.choice(WORDS)] if takes else [option]
    return words


def commands_known() -> dict[str, list[tuple[str, bool]]]:
    """Return the options of each command, and whether they take a value."""
    group: Any = typer.main.get_command(app)
    return {
        name: [
            (option, not parameter.is_flag)
            for parameter in command.params
            if parameter.param_type_name == "option" and parameter.name not in ("help", "backend")
            for option in parameter.opts
        ]
        for name, command in group.commands.items()
        if name not in AWAY
    }


KINDS: Final[dict[Callable[[random.Random], list[str]], int]] = {
    of_train: 22,
    of_schema: 10,
    of_new_rows: 14,
    of_state: 6,
    of_model: 14,
    of_grid: 6,
    of_wanted: 6,
    of_synthesize: 8,
    of_points: 3,
    of_ledger: 3,
    of_words: 24,
}
"""What is damaged, and how often."""


def kept_seeds() -> list[int]:
    """Return the seeds on which a command once fell over."""
    lines = Path(__file__).with_name("hostile_seeds.txt").read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def attempt(seed: int, valid: Path) -> Outcome:
    """Make the input of a seed in a folder of its own, and run it."""
    rng = random.Random(seed)
    kinds = KINDS | ({of_inspect: 8} if "inspect" in commands_known() else {})
    make = rng.choices(list(kinds), weights=list(kinds.values()))[0]
    with tempfile.TemporaryDirectory(prefix="hostile-") as scratch:
        own = Path(scratch) / "own"
        shutil.copytree(valid, own)
        with inside(own):
            return run(make(rng))


@contextmanager
def little_memory() -> Iterator[None]:
    """Let what asks for too much be refused by the system, as on a small machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def main() -> int:
    """Run many inputs and print what went wrong, by kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    os.environ |= {"NO_COLOR": "1", "COLUMNS": "200"}
    codes: Counter[int] = Counter()
    wrong: Counter[str] = Counter()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="hostile-valid-") as scratch, little_memory():
        valid = Path(scratch) / "valid"
        valid.mkdir()
        build(valid)
        for n, seed in enumerate(range(asked.first, asked.first + asked.inputs), start=1):
            outcome = attempt(seed, valid)
            codes[outcome.code] += 1
            if outcome.wrong:
                kind = outcome.wrong[:60]
                wrong[kind] += 1
                if wrong[kind] == 1:
                    words = " ".join(word[:60] for word in outcome.words)
                    print(f"{outcome.wrong!r}\n    first at seed {seed}: {words!r}", flush=True)
            if n % 500 == 0 or n == asked.inputs:
                print(
                    f"{n} inputs in {time.perf_counter() - started:.0f} s: exit codes "
                    f"{dict(sorted(codes.items()))}, {sum(wrong.values())} wrong",
                    flush=True,
                )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
