"""RONGaussSynthesizer: means and projected covariances by label and group, and a Gaussian draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand.generators.aggregators import OuterSums
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.feature_means import FeatureMeans, chunks
from evenhand.generators.payload import Progress
from evenhand.generators.registry import register
from evenhand.generators.tables.encoded import EncodedTable
from evenhand.generators.tables.private_table import KnownOfTable
from evenhand.generators.tables.state_network import pick
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.typing import Array, FloatArray, IntArray

MEANS: Final = "means of the states by label and group, with the counts"
COVARIANCES: Final = "covariances of projected rows by label and group"

_CHUNK: Final = 4096  # rows whose products are held at once
_TRIAL: Final = 4096  # rows by which means are set right
_ROUNDS: Final = 5
_LEAST: Final = 1e-4  # share of a state in a distribution


@register
@dataclass(eq=False, repr=False, kw_only=True)
class RONGaussSynthesizer(TableSynthesizer):
    """Draw tables from Gaussian distributions on a random projection, one per label and group.

    1. A row is the unit vectors of its columns' states, side by side, of norm 1 in all.
    2. Their sums by label and group, with the counts, are released: the means.
    3. Rows less the mean, of norm 1 again, are projected on random orthonormal directions; the sums
       of their products are released: the covariances.
    4. A draw of each Gaussian is brought back from the projection; where its coordinates stand
       above zero they are the probabilities of a column's states, set right so that their means are
       those of step 2.

    Parameters
    ----------
    n_dimensions : int
        Of the projection, at least 1; never more than there are states.
    **others
        ``neighbors``, ``n_bins``, ``noise`` and ``random_state``, see ``TableSynthesizer``.

    Privacy
    -------
    Neighbors : add or remove one record or unit; or replace one record.
    Sensitivity : sqrt(2) of the means with counts (2 for "replace one"); 1 of the products in
        Frobenius norm (sqrt(2), hence sqrt(2) / n of a covariance).
    Cost : two Gaussian releases.

    Notes
    -----
    The paper draws Laplace noise for an L1 sensitivity of ``2 sqrt(p) / n`` of a covariance over p
    coordinates. Two unit vectors can move it by ``p / n``: the noise is ``sqrt(p) / 2`` times too
    small, 5 times at p = 108 (``tests/generators/tables/test_ron_gauss.py``).

    References
    ----------
    Chanyaswad, Liu and Mittal 2019 (RON-Gauss; there rows stay in the projection).
    """

    method: ClassVar[str] = "ron-gauss"
    words: ClassVar[str] = "noisy means and covariances"

    n_dimensions: int = 16

    def _shares(self) -> Mapping[str, float]:
        return {MEANS: 0.5, COVARIANCES: 0.5}

    def _foresee(self, known: KnownOfTable) -> None:
        _checks.at_least("n_dimensions", self.n_dimensions, 1)

    def _learn(
        self, data: EncodedTable, plan: BudgetPlan, rng: np.random.Generator, progress: Progress
    ) -> None:
        n_conditions, p = self.conditions_.n, sum(data.sizes)
        self.starts_ = np.concatenate([[0], np.cumsum(data.sizes)]).astype(np.int64)
        progress("means and covariances", 0, 2)
        released = FeatureMeans.release(
            data,
            lambda rows: self._points(data.codes[rows]),
            n_features=p,
            n_conditions=n_conditions,
            chunk=_CHUNK,
            plan=plan,
            purpose=MEANS,
        )
        self.counts_, self.counts_sigma_ = released.counts, released.sigma
        self.snr_ = released.snr
        held = np.maximum(self.counts_, 1.0)[:, None]
        means: FloatArray = self._repaired(self._as_distributions(released.means))
        progress("means and covariances", 1, 2)
        m = min(self.n_dimensions, p)
        turned = np.linalg.qr(rng.normal(size=(p, m)))[0]  # random, orthonormal, public
        products = OuterSums(n_features=m, n_conditions=n_conditions, per_unit=data.per_unit)
        total = np.zeros(n_conditions * m * (m + 1) // 2, dtype=np.int64)
        for some in chunks(len(data.codes), _CHUNK):
            apart = self._points(data.codes[some]) - means[data.condition[some]]
            lengths = np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-12)
            total += products.total(apart / lengths @ turned, data.condition[some])
        noisy = products.apart(plan.release(products, total, COVARIANCES).values)
        spread = self._even(noisy / held[:, :, None])
        # A row less its mean has the squared length 1 - |mean|^2 on average, before it is made 1.
        scale = np.sqrt(np.maximum(1.0 - (means**2).sum(axis=1), 0.0))
        roots = np.stack([_root(s) for s in spread])
        self.means_ = means
        self.roots_ = np.einsum("c,pm,cmk->cpk", scale, turned, roots)
        self.corrections_ = np.ones_like(means)
        self._set_right(rng)
        progress("means and covariances", 2, 2)

    def _repaired(self, means: FloatArray) -> FloatArray:
        """Return the means that rows are drawn around."""
        return means

    def _even(self, spread: FloatArray) -> FloatArray:
        """Return the covariances that rows are drawn with."""
        return spread

    def _points(self, codes: IntArray) -> FloatArray:
        """Rows as unit vectors side by side, of norm 1 in all."""
        out = np.zeros((len(codes), int(self.starts_[-1])))
        np.put_along_axis(out, codes + self.starts_[:-1], codes.shape[1] ** -0.5, axis=1)
        return out

    def _as_distributions(self, means: FloatArray) -> FloatArray:
        """Return noisy means as distributions over each column's states, scaled as points."""
        held = np.maximum(means, _LEAST)
        sums = np.add.reduceat(held, self.starts_[:-1], axis=1)
        n_columns = len(self.starts_) - 1
        probabilities: FloatArray = held / np.repeat(
            sums * n_columns**0.5, np.diff(self.starts_), axis=1
        )
        return probabilities

    def _probabilities(self, conditions: IntArray, rng: np.random.Generator) -> FloatArray:
        """Probabilities of the states of each row."""
        drawn = rng.normal(size=(len(conditions), self.roots_.shape[2]))
        moved = np.empty((len(conditions), self.means_.shape[1]))
        for c in np.unique(conditions):
            at = conditions == c
            moved[at] = (self.means_[c] + drawn[at] @ self.roots_[c].T) * self.corrections_[c]
        return self._as_distributions(moved)

    def _set_right(self, rng: np.random.Generator) -> None:
        """Tilt probabilities so that their means are the released ones: cutting at 0 moved them."""
        for c in range(len(self.means_)):
            for _ in range(_ROUNDS):
                found = self._probabilities(np.full(_TRIAL, c), rng).mean(axis=0)
                self.corrections_[c] *= self.means_[c] / found

    def _draw(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        out = np.empty((len(conditions), len(self.starts_) - 1), dtype=np.int64)
        for some in chunks(len(conditions), _CHUNK):
            out[some] = pick(self._probabilities(conditions[some], rng), self.starts_, rng)
        return out

    def _arrays(self) -> dict[str, Array]:
        names = ("means", "roots", "corrections", "starts")
        return {name: getattr(self, f"{name}_") for name in names}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        for name, values in arrays.items():
            setattr(self, f"{name}_", values)


@register
@dataclass(eq=False, repr=False, kw_only=True)
class FFPDGSynthesizer(RONGaussSynthesizer):
    """Draw tables whose features depend less on the group, from the same releases as RON-Gauss.

    Means and covariances of the groups are moved to their mean over groups, within every label: at
    ``repair=1`` a row's features say nothing of the group beyond the label. The paper repairs
    private rows before it fits a Gaussian model; that reads many rows at once, so here the
    released numbers are repaired instead, which costs nothing.

    Parameters
    ----------
    repair : float
        How much of the way, in [0, 1].
    **others
        See ``RONGaussSynthesizer``.

    Privacy
    -------
    That of ``RONGaussSynthesizer``.

    References
    ----------
    Xu et al. 2021 (FFPDG). Feldman et al. 2015 (repair).
    """

    method: ClassVar[str] = "ffpdg"
    words: ClassVar[str] = "noisy means and covariances, evened out between groups"

    repair: float = 1.0

    def _shares(self) -> Mapping[str, float]:
        _checks.closed_unit("repair", self.repair)
        return super()._shares()

    def _repaired(self, means: FloatArray) -> FloatArray:
        return self._towards_label(means)

    def _even(self, spread: FloatArray) -> FloatArray:
        return self._towards_label(spread)

    def _towards_label(self, values: FloatArray) -> FloatArray:
        """Move what each label and group has towards the mean of the label's seen groups."""
        labels, out = self.conditions_.labels(), values.copy()
        unseen = np.isin(np.arange(len(values)), self._unseen())
        for label in np.unique(labels):
            own = labels == label
            seen = own & ~unseen if (own & ~unseen).any() else own
            middle = values[seen].mean(axis=0)
            out[own] += self.repair * (middle - values[own])
        return out


def _root(spread: FloatArray) -> FloatArray:
    """Return R with R R' the covariance, without what noise took below zero."""
    values, vectors = np.linalg.eigh(spread)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))
    return root
