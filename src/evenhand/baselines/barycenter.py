"""Xian, Li and Zhao 2024: scores of each group, moved to a barycenter of noisy histograms."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Final

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import eye_array, hstack, kron, tril, vstack
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from evenhand import _checks
from evenhand.baselines.post_processing import TableRuleClassifier, Trained
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.group_shares import release_table
from evenhand.estimators.inputs import FitInputs
from evenhand.estimators.spec import BUDGET, PUBLIC_ROWS, MethodSpec, registered
from evenhand.fairness import DemographicParity, FairnessKind
from evenhand.fairness.groups import GroupCodes
from evenhand.fairness.notion import RateNotion, require_reference
from evenhand.privacy import Budget, Ledger
from evenhand.privacy.noise import Noise
from evenhand.typing import Array, ArrayLike, FloatArray, IntArray

DEFAULT: Final = DemographicParity(margin=0.05, reference="pairwise")

LEVEL: Final = 0.95
"""Probability, over the noise of the table, with which ``noise_bound_`` holds."""


@registered(
    MethodSpec(
        name="dp-barycenter",
        words="A private model that reads the group; its scores move to noisy barycenters.",
        reads=(*BUDGET, *PUBLIC_ROWS, "margin"),
        needs=("epsilon", "margin"),
        notions=("demographic-parity",),
        kind=FairnessKind.DERIVED,
        reference="pairwise",
        private_groups=True,
    )
)
@dataclass(eq=False, repr=False)
class DPBarycenterClassifier(TableRuleClassifier):
    """Train privately with the group as a feature, and move each group's scores to a barycenter.

    Three steps: logistic regression by DP-SGD that reads the group beside the features; one noisy
    table of group and score, in even ranges of the probability of class 1; optimal transports of
    the scores of each group, at random, to distributions that are nearly alike in all groups and
    as near as can be to those of the model. Who is moved above one half is accepted. Two classes.

    Parameters
    ----------
    fairness : DemographicParity
        How far apart the distributions of the moved scores may be between two groups, at every
        threshold, by the noisy table; so the rates of acceptance too. Its ``reference`` is
        ``"pairwise"``. Default: a margin of 0.05.
    n_bins : int
        Even ranges of a score, an even number, at least 2.
    table_budget : float
        Part of epsilon for the table, in (0, 1). The steps have the rest, with all of delta.
    budget, clip_norm, n_steps, batch_size, learning_rate, n_records
        As for ``DPPostProcessingClassifier``.
    schema, classes, public_fraction, noise, random_state
        As for ``DPPostProcessingClassifier``.

    Attributes
    ----------
    acceptance_ : ndarray, shape (n_groups, n_bins)
        Probability of class 1 by group and range of the model's score.
    table_ : ndarray, shape (n_groups, n_bins)
        The noisy counts of group and score. Public.
    group_shifts_ : ndarray, shape (n_groups,)
        What the group of a row adds to its score.
    table_gap_ : float
        The largest difference of the rates of acceptance between two groups, by the noisy table.
    noise_bound_ : float
        How much further apart they may be among the private records, with probability 0.95.
    ledger_ : SeparateLedgers
        One ledger for the steps, one for the table.
    guarantee_, mechanism_, groups_, classes_, student_, encoder_
        As for ``DPPostProcessingClassifier``; ``student_`` is the model without the group's part.

    Privacy
    -------
    Neighbors : add or remove one record, its group included.
    Sensitivity : L2 ``clip_norm`` for a step; one cell of the table moves by 1.
    Cost : basic composition of the steps, at epsilon ``(1 - table_budget)`` of the budget's and its
        delta, and of the table, at the rest of epsilon and delta 0 (Laplace). The table may read
        the trained model, for that is released (adaptive composition). All else reads the table.

    Notes
    -----
    *Of the paper*, which moves the predictions of a regressor that exists: even ranges and their
    midpoints, Laplace noise on the counts of groups and midpoints, the projection of each group's
    cumulative distribution on those that rise, and the linear program of transports of least
    squared distance to distributions within the tolerance of each other in Kolmogorov-Smirnov
    distance. *Reconstruction*, for its full text was not at hand: the projection is by least
    squares (isotonic regression). Ours: the regressor is a probability and is trained by DP-SGD
    within the budget; a score above one half decides; the sum of a group's noisy counts is its
    size; all records train and are counted, where the paper takes the second sample apart.
    ``noise_bound_`` is ours too: with probability .95 no count is off by more than ``t``, then the
    cumulative distribution of k ranges of a group with noisy size N by at most ``k t / N`` (which
    no isotonic projection widens), and its rate by that times the total variation of
    ``acceptance_`` over the ranges.

    References
    ----------
    Xian, Li and Zhao 2024, "Differentially Private Post-Processing for Fair Regression", ICML,
    arXiv 2405.04034, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import Budget
    >>> X, y = make_classification(3000, random_state=0)
    >>> group = np.where(X[:, 0] > 0, "a", "b")
    >>> clf = DPBarycenterClassifier(Budget(epsilon=2.0, delta=1e-6), n_steps=200, batch_size=256)
    >>> clf = clf.fit(X[:2500], y[:2500], sensitive_features=group[:2500], X_public=X[2500:])
    >>> clf.guarantee_.epsilon, clf.table_gap_ <= 0.05 + 1e-6
    (2.0, True)
    """

    NUMBERS: ClassVar[tuple[str, ...]] = (
        "acceptance_",
        "table_",
        "group_shifts_",
        "table_gap_",
        "noise_bound_",
    )

    _: KW_ONLY
    n_bins: int = 20

    _default: ClassVar[RateNotion] = DEFAULT
    _reads_group: ClassVar[bool] = True

    def _counted(self, trained: Trained, pure: Budget, noise: Noise) -> tuple[Ledger, FloatArray]:
        groups = trained.groups
        shape = (groups.n_groups, self.n_bins)
        cells = np.ravel_multi_index((groups.codes, self._bins(trained.X_encoded, groups)), shape)
        counts = np.bincount(cells, minlength=math.prod(shape)).astype(np.int64)
        ledger, noisy = release_table(counts, pure, noise, purpose="table of group and score")
        return ledger, noisy.reshape(shape)

    def _derive(self) -> None:
        shares, sizes = distributions(self.table_)
        self.acceptance_ = accepted(transports(shares, sizes, self.notion.margin), shares)
        self.table_gap_ = float(np.ptp((self.acceptance_ * shares).sum(axis=1)))
        self.noise_bound_ = bound(self.table_, self.acceptance_, self._scale)

    def _expected(self, encoded: Array, groups: GroupCodes) -> FloatArray:
        one = self.acceptance_[groups.codes, self._bins(encoded, groups)]
        return np.stack([1.0 - one, one], axis=1)

    def _bins(self, encoded: Array, groups: GroupCodes) -> IntArray:
        """Return the range of each row's probability of class 1."""
        scores = self.student_.decision_function(encoded) + self.group_shifts_[groups.codes]
        # A score above 0 is above one half, whatever rounding does to its probability.
        bins = np.clip(np.floor(expit(scores) * self.n_bins), 0, self.n_bins - 1).astype(np.int64)
        half = self.n_bins // 2
        out: IntArray = np.where(scores > 0, np.maximum(bins, half), np.minimum(bins, half - 1))
        return out

    def _checked_parts(self) -> float:
        if not isinstance(self.notion, DemographicParity):
            raise ValueError(
                f"Distributions of scores are made alike: fairness must be a DemographicParity, "
                f"got {self.fairness!r}. Use DPPostProcessingClassifier for other notions."
            )
        require_reference(self.notion, "pairwise", "The barycenter")
        if _checks.at_least("n_bins", self.n_bins, 2) % 2:
            raise ValueError(
                f"n_bins must be even, so that no range of scores holds one half, got "
                f"n_bins={self.n_bins!r}."
            )
        return _checks.open_unit("table_budget", self.table_budget)

    def _counted_groups(self, sensitive_features: object, data: FitInputs) -> GroupCodes:
        if data.n_classes != 2:
            raise ValueError(
                f"Scores of class 1 are moved, of two classes, got {data.n_classes}: "
                f"{data.classes.tolist()}. Use DP2DPClassifier."
            )
        return super()._counted_groups(sensitive_features, data)

    def _take_group_weights(self, weights: FloatArray) -> None:
        self.group_shifts_: FloatArray = weights[:, 0].copy()

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        shape = (len(self.groups_ or ()), self.n_bins)
        if self.acceptance_.shape != shape or self.group_shifts_.shape != shape[:1]:
            raise ValueError("the transports are not one for each group and range of scores.")


def distributions(table: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the distribution of scores in each group by a noisy table, and the groups' shares.

    Parameters
    ----------
    table : array-like, shape (n_groups, n_bins)
        Noisy counts. A group that the noise left empty has even scores, and a share of nearly 0.

    Examples
    --------
    >>> distributions([[6.0, -1.0, 5.0], [5.0, 5.0, 0.0]])[0].round(2).tolist()
    [[0.55, 0.0, 0.45], [0.5, 0.5, 0.0]]
    """
    cells = np.asarray(table, dtype=np.float64)
    n_bins, sizes = cells.shape[1], cells.sum(axis=1)
    shares = np.full(cells.shape, 1.0 / n_bins)
    for group in np.flatnonzero(sizes > 0):
        below = np.cumsum(cells[group])[:-1] / sizes[group]
        rising = isotonic_regression(below, y_min=0.0, y_max=1.0)
        shares[group] = np.diff(rising, prepend=0.0, append=1.0)
    known = np.maximum(sizes, 1.0)
    return shares, known / known.sum()


def transports(shares: FloatArray, sizes: FloatArray, margin: float) -> FloatArray:
    """Return the transports of least squared distance to distributions within a margin.

    Parameters
    ----------
    shares : ndarray, shape (n_groups, n_bins)
        The distribution of scores in each group.
    sizes : ndarray, shape (n_groups,)
        The groups' shares.
    margin : float
        Largest difference of two groups' cumulative distributions afterwards, at every range.

    Returns
    -------
    ndarray, shape (n_groups, n_bins, n_bins)
        The share of each group that is moved from one range to another.
    """
    n_groups, k = shares.shape
    middle = (np.arange(k) + 0.5) / k
    cost = (sizes[:, None, None] * (middle[:, None] - middle) ** 2).ravel()
    leaves = kron(eye_array(n_groups * k), np.ones((1, k)))  # what each range sends away
    arrives = kron(eye_array(n_groups), kron(np.ones((1, k)), eye_array(k)))
    below = kron(eye_array(n_groups), tril(np.ones((k, k)))) @ arrives  # cumulative, by group
    floors = kron(np.ones((n_groups, 1)), eye_array(k))  # floor <= cumulative <= floor + margin
    solved = linprog(
        np.concatenate([cost, np.zeros(k)]),
        A_ub=vstack([hstack([below, -floors]), hstack([-below, floors])]).tocsr(),
        b_ub=np.repeat([margin, 0.0], n_groups * k),
        A_eq=hstack([leaves, np.zeros((n_groups * k, k))]).tocsr(),
        b_eq=shares.ravel(),
        bounds=(0.0, 1.0),
        method="highs",
    )
    if solved.x is None:
        raise RuntimeError(f"The transports could not be found: {solved.message}")
    moved: FloatArray = np.maximum(solved.x[:-k], 0.0).reshape(n_groups, k, k)
    return moved


def accepted(moved: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the part of each range that ends above one half, shape (n_groups, n_bins).

    A range without records stays where it is.
    """
    half = moved.shape[1] // 2
    own = np.broadcast_to(np.arange(moved.shape[1]) >= half, shares.shape).astype(np.float64)
    total = moved.sum(axis=2)
    part = moved[:, :, half:].sum(axis=2) / np.maximum(total, 1e-300)
    out: FloatArray = np.clip(np.where(shares > 1e-9, part, own), 0.0, 1.0)
    return out


def bound(table: FloatArray, acceptance: FloatArray, scale: float) -> float:
    """Return how much further apart rates of acceptance may be; see the class.

    ``scale`` is that of the Laplace noise. Upper bound, in [0, 1], loose.
    """
    off = math.ceil(scale * math.log(table.size / (1.0 - LEVEL)))
    varies = np.abs(np.diff(acceptance, axis=1)).sum(axis=1)
    sizes = table.sum(axis=1)
    each = np.where(sizes > 0, varies * table.shape[1] * off / np.maximum(sizes, 1e-12), 1.0)
    return float(min(1.0, np.sort(each)[-2:].sum()))
