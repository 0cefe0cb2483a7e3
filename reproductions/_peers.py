"""PrivBayes, a Gaussian copula and CTGAN, run by an interpreter that has their packages.

    python _peers.py PrivBayes IN.npz OUT.npz EPSILON ROWS SEED
    python _peers.py copula|CTGAN IN.csv OUT.csv NUMBERS ROWS SEED

PrivBayes (Zhang et al. 2014): the correlated attribute mode of ``DataSynthesizer`` 0.1.13, by its
choice of parents and its noisy counts, half of EPSILON each. The degree is what it takes by
default, 3 on tables of this size. IN holds ``codes`` (n, m), OUT ``codes`` of the drawn rows.
In the place of its slow loops, lines of this file count mutual information on integers (its code
has that as a to-do) and draw rows from its counts all at once. Neither changes what is chosen,
counted or drawn in distribution.

The others are of SDV 2.0.0 with their defaults, CTGAN (ctgan 0.12.1) for EPOCHS instead of 300.
NUMBERS is JSON, the columns that are numbers; the others are categories.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np
import pandas as pd

EPOCHS = 20

Network = list[tuple[str, list[str]]]  # columns with their parents, the first of which is the root


def mutual_information(own: np.ndarray, parents: Sequence[np.ndarray]) -> float:
    """Return the mutual information of a column of codes and others together, in nats."""
    joint = np.zeros(len(own), dtype=np.int64)
    for codes in parents:
        joint = joint * (codes.max() + 1) + codes
    shape = (joint.max() + 1, own.max() + 1)
    counts = np.bincount(joint * shape[1] + own, minlength=shape[0] * shape[1]).reshape(shape)

    def of(table: np.ndarray) -> float:
        held = table[table > 0]
        return float(held @ np.log(held)) / len(own)

    return of(counts) - of(counts.sum(axis=0)) - of(counts.sum(axis=1)) + float(np.log(len(own)))


def tables_of(network: Network, count: Callable[[list[str]], np.ndarray]) -> dict[str, np.ndarray]:
    """Return counts of every column, its own axis last, by its parents.

    The first columns are counted together, as many as one has parents and one more.
    """
    degree = len(network[-1][1])
    first = [network[0][1][0], *(child for child, _ in network[:degree])]
    joint = count(first)
    tables = {first[0]: joint.sum(axis=tuple(range(1, len(first))))}
    for i, (child, parents) in enumerate(network):
        wanted = [*parents, child]
        if i < degree:
            kept = [name for name in first if name in wanted]
            spare = tuple(axis for axis, name in enumerate(first) if name not in wanted)
            tables[child] = joint.sum(axis=spare).transpose([kept.index(name) for name in wanted])
        else:
            tables[child] = count(wanted)
    return tables


def rows_of(
    network: Network, tables: dict[str, np.ndarray], n: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw columns one after another, each given its parents; where nothing was counted, evenly."""
    root = network[0][1][0]
    drawn = {}
    for child, parents in [(root, []), *network]:
        counts = np.broadcast_to(
            tables[child][tuple(drawn[name] for name in parents)], (n, tables[child].shape[-1])
        )
        sums = np.cumsum(counts + (counts.sum(axis=1, keepdims=True) == 0), axis=1)
        at = rng.random((n, 1)) * sums[:, -1:]
        drawn[child] = (at >= sums).sum(axis=1)
    return drawn


def privbayes(source: str, target: str, epsilon: float, n: int, seed: int) -> None:
    """Choose parents, count, draw."""
    from DataSynthesizer.lib import PrivBayes

    given = np.load(source)
    rows = pd.DataFrame(given["codes"], columns=[f"c{i}" for i in range(given["codes"].shape[1])])
    columns = {name: rows[name].to_numpy() for name in rows}

    def candidates(task: tuple[str, list[str], int, int, object]) -> tuple[list[Any], list[float]]:
        child, held, n_parents, at, _ = task
        pairs = [(child, [*more, held[at]]) for more in combinations(held[at + 1 :], n_parents - 1)]
        of = [mutual_information(columns[child], [columns[n] for n in names]) for _, names in pairs]
        return pairs, of

    PrivBayes.worker = candidates
    PrivBayes.Pool = lambda: ThreadPool(1)  # its processes would each have a limit of their own

    def count(names: list[str]) -> np.ndarray:
        noisy = PrivBayes.get_noisy_distribution_of_attributes(names, rows, epsilon / 2)
        return noisy["count"].to_numpy().reshape([columns[name].max() + 1 for name in names])

    network = PrivBayes.greedy_bayes(rows, 0, epsilon / 2, seed=seed)
    tables = tables_of(network, count)
    drawn = rows_of(network, tables, n, np.random.default_rng(seed))
    np.savez(target, codes=np.stack([drawn[name] for name in rows], axis=1))


def sdv(way: str, source: str, target: str, numbers: list[str], n: int, seed: int) -> None:
    """Fit to rows as they are, without privacy, and draw."""
    import torch
    from sdv.metadata import Metadata
    from sdv.single_table import CTGANSynthesizer, GaussianCopulaSynthesizer

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # the package draws from it
    names = pd.read_csv(source, nrows=0).columns
    rows = pd.read_csv(source, dtype=dict.fromkeys(set(names) - set(numbers), str))
    kinds = {name: "numerical" if name in numbers else "categorical" for name in names}
    columns = {name: {"sdtype": kind} for name, kind in kinds.items()}
    about = Metadata.load_from_dict({"tables": {"rows": {"columns": columns}}, "relationships": []})
    makers: dict[str, Callable[[], Any]] = {
        "copula": lambda: GaussianCopulaSynthesizer(about),
        "CTGAN": lambda: CTGANSynthesizer(about, epochs=EPOCHS, enable_gpu=False),
    }
    model = makers[way]()
    model.fit({"rows": rows})
    model.sample(n)["rows"].to_csv(target, index=False)


def main() -> None:
    """Fit, draw."""
    way, source, target, told, n, seed = sys.argv[1:]
    if way == "PrivBayes":
        privbayes(source, target, float(told), int(n), int(seed))
    else:
        sdv(way, source, target, json.loads(told), int(n), int(seed))


if __name__ == "__main__":
    main()
