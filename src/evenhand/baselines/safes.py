"""SAFES (Giddens et al. 2024): drawn rows, moved at random until labels ignore the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.sparse import coo_array, vstack
from sklearn.metrics import mutual_info_score

from evenhand import _checks
from evenhand._frames import as_pandas
from evenhand._random import as_generator
from evenhand.fairness.groups import encode_groups
from evenhand.typing import ArrayLike, FloatArray, IntArray, RandomState

FORBIDDEN: Final = np.inf
"""Distance of a move that is never made."""

TINY: Final = 1e-12

PREFERENCE: Final = 1e-3
"""What a step of a row costs, in total variation: decides between maps that change as little."""


@dataclass(frozen=True, kw_only=True)
class OptimizedPreprocessing:
    """Move labels and a few columns of *drawn* rows at random, until labels ignore the group.

    The second step of SAFES; the first are rows of a private generator, such as
    ``MarginalSynthesizer``. Which moves are made in which group is a convex program (Calmon et al.
    2017): as little as can be changes about the distribution of all rows, the shares of each label
    in the groups are within ``margin``, and no row is moved far in expectation.

    Parameters
    ----------
    margin : float
        How far apart the shares of a label may stay in two groups, in [0, 1]: in each group at most
        half of it from the share in all rows. Of the expected rows, whose shares those drawn have
        up to sampling error.
    distortion : float
        How far a row may be moved in expectation, whatever its group, columns and label; at least
        0. A step of one level in one column counts 1, and so does another label; a column is
        moved by one level at most. Above 0, unless the margin holds without it.
    n_columns, n_levels : int
        How many columns may be moved: those that tell most about the label. Each is cut into as
        many levels of about equal rows: numbers in their order, texts by how often the label is
        the second one. All other columns stay as they are. At least 1, and 2.

    Privacy
    -------
    Free: reads drawn rows alone (post-processing). The claim is that of the generator. On private
    rows there is none: what is moved is counted exactly.

    Notes
    -----
    With z the levels and the label of a row, d its group and p the distribution of the given rows,
    the map ``p(z' | z, d)`` minimises the total variation between ``p(z')`` and ``p(z)`` subject to

    - discrimination: ``|p(y' = y | d) - p(y)| <= margin / 2`` for each group and label, which is
      Calmon's ``J <= margin / (2 p(y))`` for ``J(p, q) = |p / q - 1|`` and the target ``p(y)``;
    - distortion: ``E[distance(z, z') | z, d] <= distortion`` for every z and d.

    *Of the papers*: private rows, then this map, then any model on what it gives; both constraints
    for every cell, the utility. *Made ours*: the synthesizer, AIM in the paper, is
    ``MarginalSynthesizer``; which columns are moved and how they are cut; distances are the same
    for all tables, where the paper writes one by hand for each; a level is left for a value that
    other drawn rows have in the new one; of maps that are as good the one that moves least.

    References
    ----------
    Giddens, Xiong and Liu 2024, "SAFES: Sequential Privacy and Fairness Enhancing Data Synthesis
    for Responsible AI", arXiv 2411.09178; Calmon, Wei, Vinzamuri, Ramamurthy and Varshney 2017,
    "Optimized Pre-Processing for Discrimination Prevention", NeurIPS.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 4000)
    >>> skill = rng.normal(size=4000) + (sex == "M")
    >>> rows = pd.DataFrame({"skill": skill, "sex": sex, "hired": skill > 0.5})
    >>> even = OptimizedPreprocessing(margin=0.0).transform(
    ...     rows, label="hired", sensitive="sex", random_state=0
    ... )
    >>> [round(float(np.ptp(table.groupby("sex")["hired"].mean())), 1) for table in (rows, even)]
    [0.4, 0.0]
    """

    margin: float = 0.05
    distortion: float = 0.5
    n_columns: int = 3
    n_levels: int = 4

    def __post_init__(self) -> None:
        _checks.closed_unit("margin", self.margin)
        _checks.non_negative("distortion", self.distortion)
        _checks.at_least("n_columns", self.n_columns, 1)
        _checks.at_least("n_levels", self.n_levels, 2)

    def transform(
        self, rows: pd.DataFrame, *, label: str, sensitive: str, random_state: RandomState = None
    ) -> pd.DataFrame:
        """Return the rows, some of them with another label or with other values.

        Parameters
        ----------
        rows : DataFrame
            Drawn rows, of at least two labels and two groups, none of them missing.
        label, sensitive : str
            Their columns.
        random_state : int, Generator or None
            Seeds the moves.

        Raises
        ------
        ValueError
            If no map within the distortion keeps the margin.
        """
        rng = as_generator(random_state)
        out: pd.DataFrame = as_pandas(rows).copy()
        for name in (label, sensitive):
            if name not in out.columns:
                raise ValueError(
                    f"The drawn rows have no column {name!r}; they have "
                    f"{', '.join(map(repr, out.columns))}."
                )
        groups, classes = encode_groups(out[sensitive]), encode_groups(out[label])
        if min(groups.n_groups, classes.n_groups) < 2:
            raise ValueError(
                f"Labels are evened out between two groups or more, got {groups.n_groups} in "
                f"{sensitive!r} and {classes.n_groups} labels in {label!r}."
            )
        names, levels = self._levels(out.drop(columns=[label, sensitive]), classes.codes)
        shape = (*(int(column.max()) + 1 for column in levels), classes.n_groups)
        states = np.ravel_multi_index((*levels, classes.codes), shape)
        counts = np.zeros((groups.n_groups, int(np.prod(shape))))
        np.add.at(counts, (groups.codes, states), 1.0)
        moves = fair_map(
            counts / len(out),
            distances(shape),
            np.unravel_index(np.arange(counts.shape[1]), shape)[-1],
            margin=self.margin,
            distortion=self.distortion,
        )
        upper = np.cumsum(moves, axis=2)[groups.codes, states]
        new = (rng.random(len(out))[:, None] > upper).sum(axis=1).clip(max=counts.shape[1] - 1)
        *moved_to, to_class = np.unravel_index(new, shape)
        for name, old, at in zip(names, levels, moved_to, strict=True):
            donors = out[name].to_numpy(copy=True)
            values = donors.copy()
            for level in np.unique(at[at != old]):
                here = (at == level) & (old != level)
                values[here] = rng.choice(donors[old == level], int(here.sum()))
            out[name] = pd.Series(values, index=out.index).astype(out[name].dtype)
        first = np.unique(classes.codes, return_index=True)[1]
        named = out[label].to_numpy()[first]
        out[label] = pd.Series(named[to_class], index=out.index).astype(out[label].dtype)
        return out

    def _levels(self, features: pd.DataFrame, labels: IntArray) -> tuple[list[str], list[IntArray]]:
        """Return the columns that may be moved, and the level of each row in each of them."""
        all_levels = {name: self._cut(features[name], labels) for name in features.columns}
        told = {name: mutual_info_score(labels, found) for name, found in all_levels.items()}
        names = sorted(told, key=lambda name: -told[name])[: self.n_columns]
        return names, [all_levels[name] for name in names]

    def _cut(self, column: pd.Series[Any], labels: IntArray) -> IntArray:
        """Return levels of about equal rows, without gaps; missing values are one more."""
        missing = column.isna().to_numpy()
        if pd.api.types.is_numeric_dtype(column.dtype):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            shares = pd.Series(labels > 0, index=column.index).groupby(column.astype(str)).mean()
            values = column.astype(str).map(shares).to_numpy(dtype=np.float64)
        known = values[~missing]
        if not len(known):
            return np.zeros(len(column), dtype=np.int64)
        cuts = np.quantile(known, np.arange(1, self.n_levels) / self.n_levels)
        levels = np.where(missing, self.n_levels, np.searchsorted(cuts, values, side="right"))
        codes: IntArray = np.unique(levels, return_inverse=True)[1].astype(np.int64)
        return codes


def distances(shape: tuple[int, ...]) -> FloatArray:
    """Return how far any two states are apart, by levels of columns and, last, the label.

    Shape (n_states, n_states), states in the order of ``np.ravel_multi_index``. One step in a
    column counts 1, a longer one is ``FORBIDDEN``; another label counts 1.
    """
    places = np.stack(np.unravel_index(np.arange(int(np.prod(shape))), shape), axis=1)
    apart = np.abs(places[:, None] - places[None])
    apart[..., -1] = apart[..., -1] > 0
    found: FloatArray = apart.sum(axis=2).astype(np.float64)
    found[(apart > 1).any(axis=2)] = FORBIDDEN
    return found


def fair_map(
    joint: ArrayLike, apart: ArrayLike, labels: ArrayLike, *, margin: float, distortion: float
) -> FloatArray:
    """Return the map of least total variation within a margin and a distortion.

    Parameters
    ----------
    joint : array, shape (n_groups, n_states)
        Share of each group and state. Sums to 1.
    apart : array, shape (n_states, n_states)
        Distances; infinite where a move is forbidden, 0 on the diagonal.
    labels : array of int, shape (n_states,)
        Label of each state.
    margin, distortion : float
        See ``OptimizedPreprocessing``.

    Returns
    -------
    array, shape (n_groups, n_states, n_states)
        ``[d, z, w]``: probability that a row of group d in state z comes to state w. Rows add up
        to 1; a state that a group has no share in is left as it is.

    Raises
    ------
    ValueError
        If no map within the distortion keeps the margin.

    Notes
    -----
    A linear program: probabilities of the allowed moves, and one bound per state on how far its
    share moves, half of whose sum is the total variation. Moves there and back change no share, so
    many maps are as good; the expected distance decides, at ``PREFERENCE`` a step.

    Examples
    --------
    Two groups of half the rows, labels 0 and 1, and shares .2 and .6 of label 1: half of the
    difference is made up in each.

    >>> moves = fair_map([[0.4, 0.1], [0.2, 0.3]], [[0, 1], [1, 0]], [0, 1],
    ...                  margin=0.0, distortion=0.5)
    >>> moves.round(3).tolist()
    [[[0.75, 0.25], [0.0, 1.0]], [[1.0, 0.0], [0.333, 0.667]]]
    """
    p, far, label_of = np.asarray(joint, float), np.asarray(apart, float), np.asarray(labels)
    n_groups, n = p.shape
    of_group, all_rows = p.sum(axis=1), p.sum(axis=0)
    d, z, w = np.nonzero((p > TINY)[:, :, None] & np.isfinite(far)[None])
    n_moves = len(d)
    n_all = n_moves + n
    at, weight = np.arange(n_moves), p[d, z]
    source = np.unique(d * n + z, return_inverse=True)[1]
    n_sources = int(source.max()) + 1

    def table(rows: IntArray, columns: IntArray, values: FloatArray, n_rows: int) -> Any:
        return coo_array((values, (rows, columns)), shape=(n_rows, n_all)).tocsr()

    sums = table(source, at, np.ones(n_moves), n_sources)
    moved = table(source, at, far[z, w], n_sources)
    share = table(w, at, weight, n)
    slack = table(np.arange(n), n_moves + np.arange(n), np.ones(n), n)
    n_labels = int(label_of.max()) + 1
    rate = table(d * n_labels + label_of[w], at, weight / of_group[d], n_groups * n_labels)
    target = np.tile(np.bincount(label_of, weights=all_rows, minlength=n_labels), n_groups)
    blocks = [
        (moved, np.full(n_sources, distortion)),
        (share - slack, all_rows),
        (-share - slack, -all_rows),
        (rate, target + margin / 2),
        (-rate, margin / 2 - target),
    ]
    solved = linprog(
        np.concatenate([PREFERENCE * weight * far[z, w], np.full(n, 0.5)]),
        A_ub=vstack([block for block, _ in blocks]),
        b_ub=np.concatenate([bound for _, bound in blocks]),
        A_eq=sums,
        b_eq=np.ones(n_sources),
        bounds=(0.0, None),
        method="highs",
    )
    if solved.x is None:
        raise ValueError(
            f"No map within distortion={distortion:g} brings the shares of labels within "
            f"margin={margin:g} between groups. Raise distortion, or widen the margin."
        )
    out = np.repeat(np.eye(n)[None], n_groups, axis=0)
    out[d, z] = 0.0
    out[d, z, w] = np.clip(solved.x[:n_moves], 0.0, None)
    found: FloatArray = out / out.sum(axis=2, keepdims=True)
    return found
