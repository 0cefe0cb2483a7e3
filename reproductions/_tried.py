"""Ways beside a default on inner rows, and the rule by which one is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from _paired import differences
from _table import Mean, Runs, asked, commit, interval, rule, select, write

DEFAULT = "default"
EPSILONS = (1.0, 3.0)
DELTA = 1e-5

Rows = list[dict[str, Any]]
"""Errors by way, table, seed and epsilon."""


def apart(rows: Rows, way: str, epsilon: float, tables: Iterable[str]) -> dict[int, float]:
    """Return error minus the default's by seed, its mean over the tables."""
    own, tables = select(rows, epsilon=epsilon), list(tables)
    found = differences(select(own, way=way), select(own, way=DEFAULT), "seed", "table")
    return {
        seed: float(np.mean([found[seed, table] for table in tables]))
        for seed in sorted({seed for seed, _ in found})
        if all((seed, table) in found for table in tables)
    }


def verdicts(
    rows: Rows, ways: Iterable[str], tables: Sequence[str], seeds: int, again: int
) -> list[dict[str, Any]]:
    """Return what the rule says of each way, and of the splits of a second look by themselves.

    A way is taken if the interval over seeds lies below 0 at both epsilons.
    """
    looks = {"first": range(seeds), "again": range(seeds, seeds + again)}
    out: list[dict[str, Any]] = []
    for (look, own), way in product(looks.items(), ways):
        by_epsilon = [
            [gap for seed, gap in apart(rows, way, epsilon, tables).items() if seed in own]
            for epsilon in EPSILONS
        ]
        if len(by_epsilon[0]) < 2:  # no interval
            continue
        one, three = (interval(values) for values in by_epsilon)
        taken = all(found.mean + found.half < 0 for found in (one, three))
        about = {"look": look, "way": way, "seeds": len(by_epsilon[0])}
        about |= {"at_1": one.mean, "at_1_pm": one.half}
        about |= {"at_3": three.mean, "at_3_pm": three.half}
        out.append(about | {"agrees": "yes" if taken else "no"})
    return out


def lines(rows: Rows, found: Rows, ways: Iterable[str], tables: Sequence[str]) -> Iterator[str]:
    """Yield the tables of a page: the verdicts, and mean errors by table."""
    yield "| look | way | minus the default: epsilon 1 | epsilon 3 | seeds | taken? |"
    yield rule(6)
    for v in found:
        one, three = Mean(v["at_1"], v["at_1_pm"]), Mean(v["at_3"], v["at_3_pm"])
        yield (
            f"| {v['look']} | {v['way']} | {one:+.4f} | {three:+.4f} | {v['seeds']} | "
            f"{v['agrees']} |"
        )
    yield ""
    yield f"| way, epsilon | {' | '.join(tables)} |"
    yield rule(1 + len(tables))
    for way, epsilon in product((DEFAULT, *ways), EPSILONS):
        own = select(rows, way=way, epsilon=epsilon)
        means = [interval(row["error"] for row in select(own, table=table)) for table in tables]
        yield f"| {way}, {epsilon:g} | {' | '.join(f'{mean:.4f}' for mean in means)} |"


def save(
    name: str,
    title: str,
    rows: Rows,
    *,
    ways: Sequence[str],
    tables: Sequence[str],
    seeds: int,
    again: int,
    commit: str,
) -> None:
    """Write rows and verdicts as JSON, and as tables."""
    found = verdicts(rows, ways, tables, seeds, again)
    about = {"commit": commit, "seeds": seeds, "again": again, "verdicts": found, "rows": rows}
    write(
        name,
        about,
        f"# {title}\n",
        f"`python reproductions/{name}.py --save`; the ways and the rule stand in the script. "
        f"Errors on inner rows of training parts, means over splits. Commit {commit}.\n",
        *lines(rows, found, ways, tables),
    )


def main(
    about: str | None,
    seeds: int,
    complete: Callable[[Runs, range], None],
    save: Callable[[Rows, int, int, str], None],
) -> None:
    """Measure what is missing of all splits, and save if asked."""
    parser = asked(about, seeds=seeds)
    parser.add_argument("--again", type=int, default=0, help="other splits, of what is taken")
    given = parser.parse_args()
    rows = Runs(given.kept)
    complete(rows, range(given.seeds + given.again))
    if given.save:
        save(rows, given.seeds, given.again, commit())
