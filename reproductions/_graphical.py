"""MST and AIM on private-pgm, run by an interpreter that has ``mbi``.

    python _graphical.py NAME IN.npz OUT.npz RHO ROWS SEED

IN holds ``codes`` (n, m), ``sizes`` (m,) and ``label``, the number of the label's column. What is
measured costs RHO (zero-concentrated privacy, add or remove one record): a count with Gaussian
noise 1 / (2 sigma**2), a choice by the exponential mechanism epsilon**2 / 8. OUT holds ``codes`` of
the drawn rows, how many tables were counted, ``rounds``, and megabytes of the model, ``mb``.

MST (McKenna, Miklau and Sheldon 2021): counts of every column, a tree of pairs chosen by their
distance from independence, and counts of these pairs, a third of RHO each.

AIM (McKenna, Mullins, Sheldon and Miklau 2022, Algorithm 4): counts of every column, then rounds.
A round chooses a table by weight times (distance of the model's table less the noise to come),
counts it and fits the model again; where that moved the table by no more than noise, later rounds
are given four times as much of RHO each. Rounds, the share of the choices and the weights are the
paper's, for its workload TARGET: all tables of the label with two more columns. A table is open
while the model with it is at most MEGABYTES large, times the share of RHO that is spent; the paper
has 80. A fit begins at the one before and stops where it gains no more; the last takes longer.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np

warnings.simplefilter("ignore")
import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
import mbi  # noqa: E402
import networkx as nx  # noqa: E402
from opt_einsum import contract  # noqa: E402
from scipy.special import logsumexp  # noqa: E402

MEGABYTES = 8.0
ITERATIONS, LAST = 500, 3000  # of a round, and of the last fit
ENOUGH = 1e-4  # part of the loss that 50 iterations must gain, else a fit stops
MEAN_ABS = (2.0 / np.pi) ** 0.5  # E|N(0, 1)|

Columns = tuple[int, ...]


class Rows:
    """Private rows: what may be asked of them, and what was."""

    def __init__(self, codes: np.ndarray, sizes: list[int], rng: np.random.Generator) -> None:
        self.codes, self.sizes, self.rng = codes, sizes, rng
        self.domain = mbi.Domain([str(i) for i in range(len(sizes))], sizes)
        self.measured: list[mbi.LinearMeasurement] = []

    def cells(self, columns: Columns) -> int:
        """Return how many cells a table has."""
        return int(np.prod([self.sizes[i] for i in columns]))

    def counts(self, columns: Columns) -> np.ndarray:
        """Count a table, exactly."""
        at = np.ravel_multi_index(
            tuple(self.codes[:, i] for i in columns), tuple(self.sizes[i] for i in columns)
        )
        return np.bincount(at, minlength=self.cells(columns)).astype(float)

    def measure(self, columns: Columns, sigma: float) -> np.ndarray:
        """Count a table with noise, and keep it."""
        noisy = self.counts(columns) + self.rng.normal(0, sigma, self.cells(columns))
        self.measured.append(mbi.LinearMeasurement(noisy, named(columns), stddev=sigma))
        return noisy

    def choose(self, scores: Mapping[Columns, float], epsilon: float, moves: float) -> Columns:
        """Choose by the exponential mechanism; one record moves a score by ``moves``."""
        tables = list(scores)
        odds = 0.5 * epsilon / moves * np.array([scores[table] for table in tables])
        probability = np.exp(odds - odds.max())
        return tables[self.rng.choice(len(tables), p=probability / probability.sum())]


def named(columns: Columns) -> tuple[str, ...]:
    """Return the names that the package knows columns by."""
    return tuple(str(i) for i in columns)


def mst(rows: Rows, rho: float, label: int) -> mbi.MarkovRandomField:
    """Measure columns, choose a tree, measure its pairs, fit."""
    third, m = rho / 3, len(rows.sizes)
    own = [rows.measure((i,), (m / (2 * third)) ** 0.5) for i in range(m)]
    total = np.mean([y.sum() for y in own])
    shares = [np.maximum(y, 0) / np.maximum(y, 0).sum() for y in own]
    scores = {
        (i, j): np.abs(rows.counts((i, j)) - total * np.outer(shares[i], shares[j]).ravel()).sum()
        for i, j in combinations(range(m), 2)
    }
    epsilon = (8 * third / (m - 1)) ** 0.5
    part, tree = list(range(m)), []
    for _ in range(m - 1):
        between = {pair: s for pair, s in scores.items() if part[pair[0]] != part[pair[1]]}
        i, j = rows.choose(between, epsilon, 1.0)
        tree.append((i, j))
        joined, gone = part[i], part[j]
        part = [joined if p == gone else p for p in part]
    for pair in tree:
        rows.measure(pair, ((m - 1) / (2 * third)) ** 0.5)
    return mbi.estimation.MirrorDescent().estimate(rows.domain, rows.measured, iters=1500)


def aim(rows: Rows, rho: float, label: int) -> mbi.MarkovRandomField:
    """Measure columns, then choose, measure and fit, as long as there is budget."""
    m = len(rows.sizes)
    others = [i for i in range(m) if i != label]
    workload = [tuple(sorted((label, *pair))) for pair in combinations(others, 2)]
    weights = {
        table: sum(len(set(table) & set(asked)) for asked in workload)
        for table in {part for t in workload for n in (1, 2, 3) for part in combinations(t, n)}
    }
    weights = dict(sorted(weights.items()))
    exact = {table: rows.counts(table) for table in weights}
    most, of_counts = 16 * m, 0.9
    sigma = (most / (2 * of_counts * rho)) ** 0.5
    epsilon = (8 * (1 - of_counts) * rho / most) ** 0.5
    for i in range(m):
        rows.measure((i,), sigma)
    spent = m / (2 * sigma**2)
    model, last = fit(rows, ITERATIONS, None), False
    said = tables_of(model)
    while not last:
        left = rho - spent
        if left <= 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):
            sigma = (1 / (2 * of_counts * left)) ** 0.5
            epsilon = (8 * (1 - of_counts) * left) ** 0.5
            last = True
        spent += 1 / (2 * sigma**2) + epsilon**2 / 8
        limit = MEGABYTES * spent / rho
        here = list(model.cliques)
        scores = {
            table: weight
            * (np.abs(exact[table] - said(table)).sum() - MEAN_ABS * sigma * rows.cells(table))
            for table, weight in weights.items()
            if any(set(named(table)) <= set(clique) for clique in here)
            or size(rows, [*here, named(table)]) <= limit
        }
        chosen = rows.choose(scores, epsilon, max(weights.values()))
        rows.measure(chosen, sigma)
        before = said(chosen)
        jax.clear_caches()  # no round compiles what another did, and too much of it ends a process
        model = fit(rows, LAST if last else ITERATIONS, model)
        said = tables_of(model)
        moved = np.abs(said(chosen) - before).sum()
        print(len(rows.measured), chosen, f"{spent / rho:.3f}", flush=True)
        if moved <= MEAN_ABS * sigma * rows.cells(chosen):
            sigma, epsilon = sigma / 2, epsilon * 2
    return model


def fit(rows: Rows, iterations: int, start: mbi.MarkovRandomField | None) -> mbi.MarkovRandomField:
    """Fit a model to all that was measured, from the one before.

    This is the loop of ``MirrorDescent.estimate`` without the marginals of the first and the last
    model, whose compilation took half of the time of a round and which nothing reads here.
    """
    loss = mbi.marginal_loss.from_linear_measurements(rows.measured, rows.domain)
    total = mbi.estimation.minimum_variance_unbiased_total(rows.measured)
    zeros = mbi.CliqueVector.zeros(rows.domain, loss.cliques)
    begun = zeros if start is None else start.potentials.expand(loss.cliques)
    state = mbi.estimation.MirrorDescentState(zeros, begun, 2.0 / (loss.lipschitz * total), np.inf)
    state = jax.tree.map(lambda value: jax.numpy.array(value, dtype=float), state)
    descent, least, stalls = mbi.estimation.MirrorDescent(), np.inf, 0
    for _ in range(iterations // mbi.estimation.CALLBACK_EVERY):
        state = descent._multi_step(state, loss, total, ())
        now = float(state.loss)
        stalls = stalls + 1 if least - now <= ENOUGH * max(abs(now), 1.0) else 0
        least = now
        if stalls == 2:
            break
    return mbi.MarkovRandomField(potentials=state.potentials, marginals=zeros, total=total)


def size(rows: Rows, cliques: list[tuple[str, ...]]) -> float:
    """Return the megabytes of a model."""
    return float(mbi.junction_tree.hypothetical_model_size(rows.domain, cliques))


def beliefs(model: mbi.MarkovRandomField, tree: nx.Graph) -> dict[tuple[str, ...], np.ndarray]:
    """Return the model's distribution of every clique of a junction tree.

    By messages in NumPy: to compile them anew in every round took most of its time.
    """
    sizes = dict(zip(model.domain.attributes, model.domain.shape, strict=True))
    logs = {clique: np.zeros([sizes[name] for name in clique]) for clique in tree.nodes}
    for part in model.potentials.cliques:
        clique = next(c for c in logs if set(part) <= set(c))
        logs[clique] += spread(np.asarray(model.potentials[part].values), part, clique)
    sent: dict[tuple[tuple[str, ...], tuple[str, ...]], np.ndarray] = {}

    def gathered(clique: tuple[str, ...], but: tuple[str, ...] | None = None) -> np.ndarray:
        held = logs[clique].copy()
        for other in tree.neighbors(clique):
            if other != but:
                held += spread(sent[other, clique], common(other, clique), clique)
        return held

    for source, target in mbi.junction_tree.message_passing_order(tree):
        lost = tuple(i for i, name in enumerate(source) if name not in target)
        sent[source, target] = logsumexp(gathered(source, target), axis=lost)
    found = {clique: gathered(clique) for clique in tree.nodes}
    return {clique: np.exp(held - logsumexp(held)) for clique, held in found.items()}


def common(clique: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of one clique that are in another."""
    return tuple(name for name in clique if name in other)


def spread(values: np.ndarray, names: tuple[str, ...], over: tuple[str, ...]) -> np.ndarray:
    """Return a table with axes as in ``over``, of length one where it has none."""
    order = sorted(range(len(names)), key=lambda i: over.index(names[i]))
    here = iter(np.transpose(values, order).shape)
    return np.transpose(values, order).reshape([next(here) if n in names else 1 for n in over])


def tables_of(model: mbi.MarkovRandomField) -> Callable[[Columns], np.ndarray]:
    """Return what gives the model's table of some columns: a sum over its junction tree."""
    tree, _ = mbi.junction_tree.make_junction_tree(model.domain, model.cliques)
    joint, total = beliefs(model, tree), float(model.total)

    def table(columns: Columns) -> np.ndarray:
        wanted, part = set(named(columns)), tree.copy()
        while leaf := next((c for c in part if spare(part, c, wanted)), None):
            part.remove_node(leaf)  # what it alone holds is summed to one
        terms: list[object] = []
        for tops in nx.connected_components(part):
            top = next(iter(tops))
            parents = {top: (), **{child: parent for parent, child in nx.bfs_edges(part, top)}}
            for clique, parent in parents.items():  # given what its parent holds
                own = tuple(i for i, name in enumerate(clique) if name not in parent)
                below = joint[clique].sum(axis=own, keepdims=True)
                values = np.divide(
                    joint[clique], below, out=np.zeros_like(joint[clique]), where=below > 0
                )
                terms += [values, [int(name) for name in clique]]
        return total * np.asarray(contract(*terms, list(columns))).ravel()

    return table


def spare(tree: nx.Graph, clique: tuple[str, ...], wanted: set[str]) -> bool:
    """Return whether a clique is a leaf, and all of it that is wanted is elsewhere."""
    others = list(tree.neighbors(clique))
    if len(tree) == 1 or len(others) > 1:
        return False
    return wanted & set(clique) <= {name for other in others for name in other}


MECHANISMS = {"MST": mst, "AIM": aim}


def main() -> None:
    """Measure, fit, draw."""
    name, source, target, rho, n_rows, seed = sys.argv[1:]
    given = np.load(source)
    np.random.seed(int(seed))  # noqa: NPY002  # the package draws its rows from it
    rows = Rows(given["codes"], given["sizes"].tolist(), np.random.default_rng(int(seed)))
    model = MECHANISMS[name](rows, float(rho), int(given["label"]))
    drawn = model.synthetic_data(int(n_rows)).to_dict()
    np.savez(
        target,
        codes=np.stack([np.asarray(drawn[name]) for name in rows.domain.attributes], axis=1),
        rounds=len(rows.measured) - len(rows.sizes),
        mb=size(rows, list(model.cliques)),
    )


if __name__ == "__main__":
    main()
