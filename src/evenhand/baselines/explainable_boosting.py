"""DP-EBM (Nori et al. 2021): an additive model, boosted by noisy sums of residuals."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.estimators.classifier import PrivateClassifier
from evenhand.estimators.encoded_inputs import read_encoded
from evenhand.estimators.inputs import FitArguments
from evenhand.estimators.ledgers import open_run, own_noise
from evenhand.estimators.spec import BUDGET, PUBLIC_ROWS, MethodSpec, registered
from evenhand.fairness import FairnessKind
from evenhand.privacy import DiscreteNoise
from evenhand.privacy.guarantee import delta_warning
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.students.additive import AdditiveScores
from evenhand.typing import Array, FloatArray, IntArray

UNIT: Final = 2**20
"""Residuals are counted in parts of 1 this small, after rounding towards zero."""

RESIDUALS: Final = {"probability": 0.2, "label": 0.01}
"""What is left of a label, ``y - p`` with p from log-odds or ``y - score`` as in the paper, and the
learning rate. The first rate was chosen on ACS-Income of Maryland, which no result uses."""

SUREST: Final = 30.0  # of the log-odds that the intercept may be moved to


@registered(
    MethodSpec(
        name="dp-ebm",
        words="An additive model, one readable function per column, by boosting on noisy sums.",
        reads=(*BUDGET, *PUBLIC_ROWS, "group_thresholds"),
        needs=("epsilon",),
    )
)
@dataclass(eq=False, repr=False)
class DPEBMClassifier(PrivateClassifier):
    """Add up one step function per column, learned round by round from noisy sums of residuals.

    Each column is cut into bins by public rows or the schema. Once, the records of each bin are
    counted with noise. Then each round visits every column: it draws cuts without looking at the
    data, releases the noisy sum of the residuals in each leaf, and adds to the leaf's scores the
    learning rate times that sum over the noisy count. For two classes. It holds no margin: take
    ``with_group_thresholds`` or ``with_blind_rule``.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    residuals : {"probability", "label"}
        ``"probability"``: log-odds are added up and ``y - p`` is left. ``"label"``, as in the
        paper: the label 0 or 1 is approached itself, and ``y - score`` moved into [-1, 1] is left.
    n_rounds, max_leaves : int
        Of boosting; ``max_leaves`` at least 2.
    learning_rate : float, optional
        Default 0.2 for ``"probability"``; 0.01 for ``"label"``, as in the paper.
    max_bins : int
        Largest number of bins of a numeric column, at least 2. A categorical one has a bin for each
        category.
    count_budget : float
        Part of ``mu**2`` for the counts, in (0, 1). The sums have the rest.
    recalibrated : bool
        Move the intercept so that the mean probability over the public rows is the noisy share of
        class 1, by the counts. Ours; does nothing without public rows.
    schema, classes, public_fraction, noise, random_state
        As for ``DPSGDClassifier``; but ``noise`` is exact discrete noise by default, for residuals
        are rounded to whole parts of 1 before they are added. ``random_state`` draws the cuts.

    Attributes
    ----------
    student_ : AdditiveScores
        ``edges`` and ``values`` of each encoded column, to be plotted.
    n_counted_ : float
        The noisy number of records.
    positive_share_ : float
        The noisy share of class 1 among them.
    guarantee_ : Guarantee
        The claim; ``str()`` is one sentence.
    ledger_ : Ledger
    mechanism_ : tuple of NoisySum
        Of the counts, and of one round's visit to one column.
    classes_, encoder_, groups_

    Privacy
    -------
    Neighbors : add or remove one record. (Replacing one is one of each: twice every sensitivity.)
    Sensitivity : of the counts L2 ``sqrt(K)`` for K columns, for a record is in one bin, with its
        label, of each. Of a visit L2 1: the bins and cuts of a column know nothing of the data, so
        the record is in one leaf, where it adds its own residual, of size at most 1; its residual
        is a function of its own bins, its label and what was released before.
    Cost : Gaussian DP. ``mu**2`` is that of the counts plus ``n_rounds * K`` times that of a visit,
        charged before anything is drawn. Nothing is amplified by sampling, so a shared account
        may be given.

    Notes
    -----
    *Of the paper*: cyclic rounds, random cuts, noisy sums over noisy counts, Gaussian DP; of its
    authors' package the defaults: 300 rounds at rate 0.01, 32 bins, 3 leaves, a tenth for the
    counts. *Different here*: log-odds, unless ``residuals="label"``: scores that approach 0 and 1
    slowly rank well, and 0.5 is no good threshold of them. The paper finds its bins from private
    rows, by a part of the budget that also counts them; here bins are public, so that only counting
    is paid for. Residuals are bounded by force: after noisy rounds a score may leave [0, 1], and
    ``y - score`` with it. Labels are counted beside the bins. The categories of a column are put in
    a new random order for each visit, for they have none. A leaf whose noisy count is below the
    noise of its sum is taken to hold as many records as that. More than two classes would be one
    model each, at their joint cost, and are refused.

    References
    ----------
    Nori, Caruana, Bu, Shen and Kulkarni 2021, "Accuracy, Interpretability, and Differential Privacy
    via Explainable Boosting", ICML, Algorithm 2; Dong, Roth and Su 2022 (Gaussian DP).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import Budget
    >>> X, y = make_classification(3000, n_features=4, random_state=0)
    >>> clf = DPEBMClassifier(Budget(epsilon=2.0, delta=1e-6), n_rounds=40, random_state=0)
    >>> clf = clf.fit(X[:2500], y[:2500], X_public=X[2500:])
    >>> clf.guarantee_.epsilon, clf.guarantee_.neighbors, len(clf.student_.values)
    (2.0, 'add or remove one', 4)
    """

    NEIGHBORS: ClassVar[tuple[str, ...]] = ("add or remove one",)
    NUMBERS: ClassVar[tuple[str, ...]] = ("n_counted_", "positive_share_")
    _two_classes = True

    _: KW_ONLY
    residuals: str = "probability"
    n_rounds: int = 300
    learning_rate: float | None = None
    max_leaves: int = 3
    max_bins: int = 32
    count_budget: float = 0.1
    recalibrated: bool = True
    public_fraction: float | None = None

    def _learn(self, given: FitArguments) -> None:
        budget, count_share = self._checked_budget(), self._checked_rounds()
        rng = as_generator(self.random_state)
        run = open_run(
            budget,
            given.ledger,
            self.noise,
            unit="record",
            neighbors="add or remove one",
            way_out="Give the account of another data set.",
            purpose="DP-EBM",
        )
        read = read_encoded(self, given, rng, coins=own_noise(self.noise, DiscreteNoise))
        data = read.data
        encoder: Any = read.encoder  # a PublicEncoder, for pictures were refused
        if len(data.classes) != 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass. "
                f"DP-EBM is for two classes, got {len(data.classes)}: {data.classes.tolist()}. "
                f"Use DPSGDClassifier."
            )
        public = encoder.transform(data.X_public) if data.n_public else None
        columns = binned_columns(encoder, public, self.max_bins)
        if not columns:
            raise ValueError(
                "No column has two bins by what is public: all public rows are alike. Pass other "
                "public rows, or declare schema= with bounds."
            )
        bins = [column.codes(read.X_encoded) for column in columns]
        # What an account around it has left may be less than the budget: then nothing is drawn.
        whole, n_visits = budget.mu_squared * (1.0 - 1e-9), self.n_rounds * len(columns)
        counter = NoisySum.within(whole * count_share, 1, math.sqrt(len(columns)), run.noise)
        summer = NoisySum.within(whole * (1.0 - count_share), n_visits, float(UNIT), run.noise)
        uses = {counter: 1, summer: n_visits}
        with run.reserve(uses, purpose="counts of bins, and sums of residuals") as grant:
            counted = np.concatenate(
                [
                    np.bincount(2 * codes + data.y_private, minlength=2 * column.n_bins)
                    for codes, column in zip(bins, columns, strict=True)
                ]
            )
            noisy = counter.decide(counted[None, :], grant.draw(counter, len(counted)))[0]
            tables = np.split(noisy, np.cumsum([2 * column.n_bins for column in columns])[:-1])
            counts = [table.reshape(-1, 2) for table in tables]
            boosting = Boosting(
                residuals=self.residuals,
                learning_rate=self.learning_rate or RESIDUALS[self.residuals],
                max_leaves=self.max_leaves,
                fewest=max(1.0, summer.sigma / UNIT),
            )
            functions = boosting.run(
                bins,
                columns,
                data.y_private,
                [table.sum(axis=1) for table in counts],
                summer,
                grant.draw(summer, self.max_leaves).reshape(self.n_rounds, len(columns), -1),
                rng,
                given.stage("rounds"),
            )
        self.n_counted_ = float(np.mean([table.sum() for table in counts]))
        positive = float(np.mean([table[:, 1].sum() for table in counts]))
        self.positive_share_ = min(1.0, max(0.0, positive / max(1.0, self.n_counted_)))
        self.classes_, self.encoder_, self.groups_ = data.classes, encoder, None
        self.student_ = added_up(columns, functions, encoder.n_features_out_, boosting)
        if self.recalibrated and public is not None:
            self.student_ = moved(self.student_, public, self.positive_share_)
        self.mechanism_ = (counter, summer)
        self.fairness_kind_ = FairnessKind.NONE
        self.ledger_ = run
        self.guarantee_ = run.guarantee(
            public=data.known(), not_covered=data.not_covered(), warnings=self._cautions()
        )

    def _checked_rounds(self) -> float:
        """Check the arguments of boosting, and return the part of the counts."""
        _checks.one_of("residuals", self.residuals, RESIDUALS)
        _checks.at_least("n_rounds", self.n_rounds, 1)
        if self.learning_rate is not None:
            _checks.positive("learning_rate", self.learning_rate)
        _checks.at_least("max_leaves", self.max_leaves, 2)
        _checks.at_least("max_bins", self.max_bins, 2)
        return _checks.open_unit("count_budget", self.count_budget)

    def _cautions(self) -> tuple[str, ...]:
        assert self.budget is not None
        warning = delta_warning(self.budget.delta, max(1, round(self.n_counted_)))
        return (warning,) if warning else ()


class BinnedColumn(NamedTuple):
    """Where one column stands in encoded rows, and its bins. All of it is public.

    A numeric column has a bin between any two edges. A categorical one, whose ``edges`` are None,
    has a bin for each of its encoded columns, and the first for a row that has none of them.
    """

    start: int
    width: int
    edges: FloatArray | None

    @property
    def n_bins(self) -> int:
        """At least 2."""
        return self.width + 1 if self.edges is None else len(self.edges) + 1

    def codes(self, X: Array) -> IntArray:
        """Return the bin of each encoded row, shape (n,)."""
        block = X[:, self.start : self.start + self.width]
        if self.edges is None:
            return np.where(block.any(axis=1), block.argmax(axis=1) + 1, 0).astype(np.int64)
        return np.searchsorted(self.edges, block[:, 0], side="right").astype(np.int64)


def binned_columns(encoder: Any, public: FloatArray | None, max_bins: int) -> list[BinnedColumn]:
    """Cut the columns by quantiles of encoded public rows, or evenly between declared bounds.

    A mark that a number is missing is a column of its own. A column of one bin is left out.
    """
    found, start = [], 0
    for column in encoder.schema_.columns:
        if column.kind == "categorical":
            width = len(column.categories) + column.missing
            found.append(BinnedColumn(start, width, None))
            start += width
            continue
        parts = np.linspace(0.0, 1.0, max_bins + 1)[1:-1]
        if public is not None:
            # Midway to the next value, so that a value and what is above it are apart.
            values = np.unique(public[:, start])
            at = np.unique(np.quantile(public[:, start], parts, method="lower"))
            above = np.searchsorted(values, at, side="right")
            inner = above < len(values)
            edges = (at[inner] + values[above[inner]]) / 2
        else:
            assert column.bounds is not None
            scale = encoder.scales_[column.name]
            low, high = ((bound - scale.mean) / scale.sd for bound in column.bounds)
            edges = low + parts * (high - low)
        edges = np.unique(edges)
        if len(edges):
            found.append(BinnedColumn(start, 1, edges))
        if column.missing:
            found.append(BinnedColumn(start + 1, 1, np.array([0.5])))
        start += 1 + column.missing
    return found


@dataclass(frozen=True, kw_only=True)
class Boosting:
    """Cyclic rounds over the columns, each visit by one noisy sum per leaf."""

    residuals: str
    """One of "probability", "label"."""
    learning_rate: float
    max_leaves: int
    fewest: float
    """Records that a leaf is taken to hold at least."""

    def run(
        self,
        bins: list[IntArray],
        columns: list[BinnedColumn],
        y: IntArray,
        counts: list[FloatArray],
        summer: NoisySum,
        noise: Array,
        rng: np.random.Generator,
        progress: Any = None,
    ) -> list[FloatArray]:
        """Return the function of each column, one score per bin.

        Parameters
        ----------
        bins : list of arrays, each of shape (n,)
            Bins of the private rows.
        columns : list of BinnedColumn
        y : array of 0 and 1, shape (n,)
        counts : list of arrays, each of shape (n_bins,)
            Noisy.
        summer : NoisySum
        noise : array, shape (n_rounds, n_columns, max_leaves)
            What is added to each sum, in parts of 1.
        rng : Generator
            Draws the cuts.
        """
        scores = np.zeros(len(y))
        functions = [np.zeros(column.n_bins) for column in columns]
        for t, drawn in enumerate(noise):
            for k, column in enumerate(columns):
                leaves = self.leaves(column, rng)
                sums = self.leaf_sums(scores, y, leaves[bins[k]])
                released = summer.decide(sums[None, :], drawn[k][None, :])[0] / UNIT
                held = np.bincount(leaves, weights=counts[k], minlength=self.max_leaves)
                step = self.learning_rate * released / np.maximum(held, self.fewest)
                functions[k] += step[leaves]
                scores += step[leaves[bins[k]]]
            if progress is not None:
                progress(t + 1, len(noise))
        return functions

    def leaves(self, column: BinnedColumn, rng: np.random.Generator) -> IntArray:
        """Draw the leaf of each bin, shape (n_bins,); nothing of the data decides it."""
        n = column.n_bins
        cuts = np.sort(rng.choice(n - 1, min(self.max_leaves, n) - 1, replace=False)) + 1
        places = np.arange(n) if column.edges is not None else rng.permutation(n)
        return np.searchsorted(cuts, places, side="right").astype(np.int64)

    def leaf_sums(self, scores: FloatArray, y: IntArray, leaf: IntArray) -> IntArray:
        """Return the sum of the residuals in each leaf, in parts of 1, shape (max_leaves,).

        A record moves one sum, by at most ``UNIT``.
        """
        residuals = y - (expit(scores) if self.residuals == "probability" else scores)
        # Rounding is towards zero, so that no residual grows; the sums are below 2**53 and exact.
        whole = np.trunc(np.clip(residuals, -1.0, 1.0) * UNIT)
        return np.bincount(leaf, weights=whole, minlength=self.max_leaves).astype(np.int64)

    @property
    def link(self) -> str:
        """What the scores are."""
        return "logit" if self.residuals == "probability" else "identity"


def added_up(
    columns: list[BinnedColumn], functions: list[FloatArray], n_encoded: int, boosting: Boosting
) -> AdditiveScores:
    """Return the functions as steps of the encoded columns."""
    edges: list[FloatArray] = [np.zeros(0)] * n_encoded
    values: list[FloatArray] = [np.zeros(1)] * n_encoded
    intercept = 0.0
    for column, function in zip(columns, functions, strict=True):
        if column.edges is not None:
            edges[column.start], values[column.start] = column.edges, function
            continue
        intercept += float(function[0])
        for i, score in enumerate(function[1:]):
            edges[column.start + i] = np.array([0.5])
            values[column.start + i] = np.array([0.0, score - function[0]])
    return AdditiveScores(edges, values, intercept=intercept, link=boosting.link)


def moved(student: AdditiveScores, public: FloatArray, share: float) -> AdditiveScores:
    """Return the student whose mean probability over public rows is ``share``, or nearest to it."""

    def shifted(by: float) -> AdditiveScores:
        return AdditiveScores(
            student.edges, student.values, intercept=student.intercept + by, link=student.link
        )

    def excess(by: float) -> float:
        return float(shifted(by).predict_proba(public)[:, 1].mean()) - share

    low, high = -SUREST, SUREST
    if excess(low) >= 0 or excess(high) <= 0:
        return shifted(low if excess(low) >= 0 else high)
    return shifted(float(brentq(excess, low, high, xtol=1e-9)))
