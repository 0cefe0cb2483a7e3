"""MST (McKenna, Miklau and Sheldon 2021) on private-pgm, run by an interpreter that has ``mbi``.

    python _mst.py IN.npz OUT.npz RHO ROWS SEED

IN holds ``codes`` (n, m) and ``sizes`` (m,). Counts of every column, a tree of pairs chosen by the
exponential mechanism, and counts of these pairs cost a third of RHO (zero-concentrated privacy, add
or remove one record) each. OUT holds ``codes`` of the drawn rows.
"""

from __future__ import annotations

import sys
import warnings
from itertools import combinations

import numpy as np

warnings.simplefilter("ignore")
import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
import mbi  # noqa: E402


def main() -> None:
    """Measure, choose, measure again, fit, draw."""
    source, target, rho, rows, seed = sys.argv[1:]
    told = np.load(source)
    codes, sizes = told["codes"], told["sizes"].tolist()
    rng = np.random.default_rng(int(seed))
    np.random.seed(int(seed))  # noqa: NPY002  # the package draws its rows from it
    third, m = float(rho) / 3, len(sizes)
    names = [str(i) for i in range(m)]
    domain = mbi.Domain(names, sizes)

    def noisy(columns: tuple[int, ...], sigma: float) -> np.ndarray:
        shape = tuple(sizes[i] for i in columns)
        at = np.ravel_multi_index(tuple(codes[:, i] for i in columns), shape)
        counted = np.bincount(at, minlength=int(np.prod(shape)))
        return counted + rng.normal(0, sigma, counted.shape)

    sigma = (m / (2 * third)) ** 0.5
    own = [noisy((i,), sigma) for i in range(m)]
    measured = [mbi.LinearMeasurement(y, (names[i],), stddev=sigma) for i, y in enumerate(own)]
    total = np.mean([y.sum() for y in own])
    shares = [np.maximum(y, 0) / np.maximum(y, 0).sum() for y in own]
    scores = {}
    for i, j in combinations(range(m), 2):
        joint = np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j])
        scores[i, j] = np.abs(joint - total * np.outer(shares[i], shares[j]).ravel()).sum()
    epsilon = (8 * third / (m - 1)) ** 0.5
    part, tree = list(range(m)), []
    for _ in range(m - 1):
        open_pairs = [pair for pair in scores if part[pair[0]] != part[pair[1]]]
        odds = 0.5 * epsilon * np.array([scores[pair] for pair in open_pairs])
        probability = np.exp(odds - odds.max())
        i, j = open_pairs[rng.choice(len(open_pairs), p=probability / probability.sum())]
        tree.append((i, j))
        joined, gone = part[i], part[j]
        part = [joined if p == gone else p for p in part]
    sigma = ((m - 1) / (2 * third)) ** 0.5
    for i, j in tree:
        measured.append(
            mbi.LinearMeasurement(noisy((i, j), sigma), (names[i], names[j]), stddev=sigma)
        )
    model = mbi.estimation.MirrorDescent().estimate(domain, measured, iters=1500)
    drawn = model.synthetic_data(int(rows)).to_dict()
    np.savez(target, codes=np.stack([np.asarray(drawn[name]) for name in names], axis=1))


if __name__ == "__main__":
    main()
