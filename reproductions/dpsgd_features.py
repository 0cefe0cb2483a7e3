"""Whether DP-SGD gains by public quantile bins, or by products of columns that public rows choose.

    python reproductions/dpsgd_features.py [--seeds 6] [--again 0] [--kept FILE] [--save]

On training rows of tables on which defaults are chosen (Parkinsons, Bank, ACS-Income of Maryland,
Credit; ``_inner.py``: of no test row anything is read; German has too few records for curves), each
seed a split of its own; epsilon 1 and 3, delta 1e-5, noise from the operating system, no margin.
The *default* is ``DPSGDClassifier`` as it is: logistic regression, curves of degree 3 where
``n mu / sqrt(d)`` is 80 or more, whitened rows. Where it has curves, the ways have other features
(elsewhere they are the default); steps, rate and whitening follow from their own numbers of columns
by the same rules:

- *bins*: in the place of curves each number has indicators of its ten bins between quantiles of the
  public rows (fewer where these coincide), of the size of categories.
- *curves and bins*: both.
- *curves and products*: beside the curves stand the products of the ten pairs of encoded columns
  (not two of one column of the table) that are most correlated, up to their sign, among the public
  rows: of the columns standardised by these and clipped to [-3, 3], the product standardised too
  and clipped to [-10, 10], of the size of curves (1 / 8).
- *curves and products, new*: of the fifty most correlated pairs the ten whose products are least a
  sum of what is there: of which least squares on the encoded public rows with their curves leave
  the largest part of the variance.

**Rule**, written before the first run: of each seed the mean over the four tables of error minus
the default's; a way is *taken* if the 95 % interval of these differences over seeds lies below 0 at
epsilon 1 and at epsilon 3. A way that is taken is measured again, on as many other splits
(``--again``), before anything is made a default: it must be taken there too, by these alone. "no"
rows stay.
"""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import _tried
import numpy as np
from _inner import LOADERS as EVERY
from _inner import inner
from _table import Runs
from _tried import DEFAULT, DELTA, EPSILONS

from evenhand import Budget, DPSGDClassifier
from evenhand.datasets import PublicEncoder
from evenhand.estimators.dpsgd import FARTHEST
from evenhand.typing import FloatArray

NAME = "dpsgd_features"
LOADERS = tuple(table for table in EVERY if table != "German")
BINS, BOTH = "bins", "curves and bins"
PRODUCTS, NEW = "curves and products", "curves and products, new"
WAYS = (BINS, BOTH, PRODUCTS, NEW)
N_BINS, N_PAIRS, N_CANDIDATES = 10, 10, 50
FAR, MOST = 3.0, 10.0
SIZE_OF_BINS, SIZE_OF_PRODUCTS = 1 / 2, 1 / 8


class Bins:
    """Indicators of the bins of each number between quantiles of the public rows."""

    def __init__(self, encoder: PublicEncoder, public: FloatArray) -> None:
        numbers = [j for j, name in enumerate(encoder.feature_names_) if name in encoder.scales_]
        parts = np.linspace(0.0, 1.0, N_BINS + 1)[1:-1]
        self.edges = {j: np.unique(np.quantile(public[:, j], parts)) for j in numbers}

    def of(self, encoded: FloatArray) -> FloatArray:
        """Return the indicators of encoded rows."""
        places = {
            j: np.searchsorted(edges, encoded[:, j], side="right")
            for j, edges in self.edges.items()
        }
        blocks = [np.eye(len(self.edges[j]) + 1)[place] for j, place in places.items()]
        return SIZE_OF_BINS * np.hstack(blocks)


class Products:
    """Products of the pairs of columns that the public rows choose."""

    def __init__(self, encoder: PublicEncoder, public: FloatArray, *, known: Any = None) -> None:
        self.mean, self.sd = public.mean(axis=0), np.maximum(public.std(axis=0), 1e-3)
        columns = [name.partition("=")[0] for name in encoder.feature_names_]
        correlated = np.abs(np.nan_to_num(np.corrcoef(public, rowvar=False)))
        pairs = [
            (i, j) for i, j in combinations(range(len(columns)), 2) if columns[i] != columns[j]
        ]
        pairs.sort(key=lambda pair: -correlated[pair])
        self.pairs = pairs[: N_PAIRS if known is None else N_CANDIDATES]
        if known is not None:
            made = self._products(public)
            made = (made - made.mean(axis=0)) / np.maximum(made.std(axis=0), 1e-3)
            base = np.hstack([known, np.ones((len(known), 1))])
            left = made - base @ np.linalg.lstsq(base, made, rcond=None)[0]
            best = np.argsort(-left.var(axis=0), kind="stable")[:N_PAIRS]
            self.pairs = [self.pairs[at] for at in best]
        made = self._products(public)
        self.means, self.sds = made.mean(axis=0), np.maximum(made.std(axis=0), 1e-3)

    def _products(self, encoded: FloatArray) -> FloatArray:
        near = np.clip((encoded - self.mean) / self.sd, -FAR, FAR)
        first, second = np.array(self.pairs).T
        return np.asarray(near[:, first] * near[:, second])

    def of(self, encoded: FloatArray) -> FloatArray:
        """Return the products of encoded rows."""
        made = (self._products(encoded) - self.means) / self.sds
        return np.asarray(SIZE_OF_PRODUCTS * np.clip(made, -MOST, MOST))


class Features:
    """Turns rows into the columns of a way; everything it knows comes from public rows."""

    def __init__(self, way: str, public: Any, curves: Any) -> None:
        self.plain = PublicEncoder(clip=FARTHEST).fit(public)
        encoded = self.plain.transform(public)
        self.curves = None if way == BINS else curves
        numbers = [name in self.plain.scales_ for name in self.plain.feature_names_]
        self.sizes = np.where(numbers, 1 / 4, 1 / 2)  # those that they have beside curves
        if way in (BINS, BOTH):
            self.more: Bins | Products = Bins(self.plain, encoded)
        else:
            known = curves.transform(public) if way == NEW else None
            self.more = Products(self.plain, encoded, known=known)
        self.n_features_out_ = self.transform(public).shape[1]

    def transform(self, X: Any) -> FloatArray:
        """Encode rows, each by itself."""
        encoded = self.plain.transform(X)
        own = encoded * self.sizes if self.curves is None else self.curves.transform(X)
        return np.hstack([own, self.more.of(encoded)])


class Featured(DPSGDClassifier):
    """DP-SGD with the columns of a way, where the default has curves."""

    way = DEFAULT

    def _curved(self, read: Any, budget: Budget) -> Any:
        encoder, curved = super()._curved(read, budget)
        if not curved or self.way == DEFAULT:
            return encoder, curved
        features = Features(self.way, read.data.X_public, encoder)
        return features, (f"The features are {self.way}.",)


def measure(seed: int, table: str) -> list[dict[str, Any]]:
    """Return the errors of all ways on one split of a table."""
    split = inner(table, seed)
    found = []
    for epsilon in EPSILONS:
        for way in (DEFAULT, *WAYS):
            model = Featured(Budget(epsilon=epsilon, delta=DELTA), random_state=seed)
            model.way = way
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(split.X, split.y, X_public=split.public)
            error = float((model.predict(split.X_judge) != split.y_judge).mean())
            about = {"table": table, "seed": seed, "n": len(split.y), "epsilon": epsilon}
            columns = int(model.encoder_.n_features_out_)
            found.append(about | {"way": way, "columns": columns, "error": error})
    return found


def save(rows: list[dict[str, Any]], seeds: int, again: int, commit: str) -> None:
    """Write rows and verdicts as JSON, and as tables."""
    about = {"ways": WAYS, "tables": tuple(LOADERS), "seeds": seeds, "again": again}
    _tried.save(NAME, "What else stood beside numbers in DP-SGD", rows, commit=commit, **about)


def complete(rows: Runs, seeds: range) -> None:
    """Measure what is missing of these splits."""
    rows.complete(measure, seed=seeds, table=LOADERS)


if __name__ == "__main__":
    _tried.main(__doc__, 6, complete, save)
