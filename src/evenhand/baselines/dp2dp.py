"""DP2DP (Say, Denis and Pinot 2025): a private model, then parity by noisy steps on its dual."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Final

import numpy as np

from evenhand import _checks
from evenhand._random import as_generator
from evenhand.baselines.post_processing import GroupRuleClassifier
from evenhand.estimators.fitted import FittedModel
from evenhand.estimators.inputs import FitArguments
from evenhand.estimators.ledgers import SeparateLedgers, own_noise, split_budget
from evenhand.estimators.spec import BUDGET, PUBLIC_ROWS, MethodSpec, registered
from evenhand.fairness import DemographicParity, FairnessKind
from evenhand.fairness.groups import GroupCodes
from evenhand.fairness.notion import RateNotion, require_reference
from evenhand.learners.gradients import probabilities
from evenhand.privacy import Ledger
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.students.thresholds import NEEDS_GROUP
from evenhand.typing import Array, FloatArray, IntArray

DEFAULT: Final = DemographicParity(margin=0.05, reference="pairwise")

UNIT: Final = 2**20
"""Smoothed decisions are counted in parts of 1 this small, after rounding down."""

LAST: Final = 0.25
"""Part of what phase 2 spends, in ``mu**2``, on the table of the final decisions."""

LEVEL: Final = 0.95
"""Probability, over the noise of the last table, with which ``noise_bound_`` holds."""

_HALVINGS: Final = 60


@registered(
    MethodSpec(
        name="dp2dp",
        words="A private model that reads the group; noisy steps even its rates, for many classes.",
        reads=(*BUDGET, *PUBLIC_ROWS, "margin"),
        needs=("epsilon", "margin"),
        notions=("demographic-parity",),
        kind=FairnessKind.DERIVED,
        reference="pairwise",
        private_groups=True,
    )
)
@dataclass(eq=False, repr=False)
class DP2DPClassifier(GroupRuleClassifier):
    """Train privately with the group as a feature, then shift the scores of each group to parity.

    Phase 1: (multinomial) logistic regression by DP-SGD that reads the group beside the features,
    with a part of the budget. Phase 2: noisy gradient steps on the dual of the least error within
    the margin; its variables are one shift of the probability for each group and class. For any
    number of classes and groups. The decision is the class of the largest shifted probability,
    drawn where two are within the temperature of each other.

    Parameters
    ----------
    fairness : DemographicParity
        How far apart the rates of a class may be between two groups; its ``reference`` is
        ``"pairwise"``. Aimed for, not promised. Default: a margin of 0.05.
    rule_budget : float
        Part of epsilon and of delta for phase 2, in (0, 1).
    temperature : float
        Of the smoothed maximum, in probability: how near to each other two shifted probabilities
        must be for a draw to decide. Greater than 0.
    n_rule_steps, rule_rate : int, float
        Of phase 2: steps, at least 2, and the first step per unit of gap, which falls with the
        root of the number of steps. The last half of the shifts is averaged.
    budget, clip_norm, n_steps, batch_size, learning_rate, n_records
        The last five of phase 1, as for ``DPSGDClassifier``.
    schema, classes, public_fraction, noise, random_state
        As for ``DPPostProcessingClassifier``: phase 2 has the noise of its table.

    Attributes
    ----------
    shifts_ : ndarray, shape (n_groups, n_classes)
        What is taken off the probability of each class.
    group_scores_ : ndarray, shape (n_groups, n_scores)
        What the group of a row adds to the scores of the model.
    table_ : ndarray, shape (n_groups, n_classes)
        Noisy counts of the final decisions about the private rows, in expectation. Public.
    table_gap_ : float
        Largest difference of a rate between two groups, by that table.
    noise_bound_ : float
        How much further apart the rates may be among the private records, with probability 0.95
        over the noise of the table.
    ledger_ : SeparateLedgers
        One ledger for each phase.
    mechanism_ : tuple of SubsampledGaussian and two NoisySum
        Of phase 1, of a step of phase 2, and of the last table.
    guarantee_, groups_, classes_, student_, encoder_
        ``student_`` is the model without the group's part and without shifts.

    Privacy
    -------
    Neighbors : add or remove one record, its group included.
    Sensitivity : L2 ``clip_norm`` for a step of phase 1. A step of phase 2 releases the table of
        groups by classes to which a record adds its smoothed decision, numbers of at least 0 that
        add up to at most 1, in the row of its group: L2 at most 1. The sums of its rows are the
        noisy sizes of the groups, so these are no release of their own. The last table is one
        more of these. (Replacing a record is one of each: twice every sensitivity.)
    Cost : basic composition of phase 1 and phase 2, at ``1 - rule_budget`` and ``rule_budget`` of
        epsilon and delta. Phase 2 is Gaussian DP: all steps, and a quarter of its ``mu**2`` for the
        last table. It reads the released model (adaptive composition).

    Notes
    -----
    For shifts v with ``sum_s P(s) v[s, k] = 0`` and rates r of the decision ``argmax_k p_k(x, s) -
    v[s, k]``, the dual of "least error, rates of each class within rho of each other" is ``sum_s
    P(s) E_s[max_k (p_k - v[s, k])] + (rho / 2) sum P(s) |v[s, k]|``. With ``max`` smoothed to the
    temperature times a log-sum-exp, its gradient in the metric of P(s) is ``-(r[s, k] - sum_z P(z)
    r[z, k])`` of the smoothed rates; the absolute value is taken by its proximal step, in closed
    form up to one root per class. Two groups make it the dual of Denis et al.

    Where many rows have the same probabilities, as a sure model gives, no shift alone evens the
    rates: the best rule draws among ties. So what is counted, and what decides, are the smoothed
    decisions themselves. (Denis et al. break ties by a little noise on the probabilities.)

    *Of the abstracts and summaries of the paper*: both phases, the smoothed dual of Denis et al.,
    the group-aware rule for many classes, demographic parity within rho. *Reconstruction*, for its
    full text was not at hand: the sensitivity, the step sizes, the averaging, the temperature, and
    how the budget is split. Ours: more than two groups, noisy sizes of groups from the same
    releases, the last table with its bound, one exact Gaussian accounting in place of Renyi's, and
    that all records serve both phases; the paper takes its second, unlabelled sample apart. Its
    rate of convergence is not claimed here: ``noise_bound_`` is.

    References
    ----------
    Say, Denis and Pinot 2025, "Fairness Meets Privacy: Integrating Differential Privacy and
    Demographic Parity in Multi-class Classification", arXiv 2511.18876; Denis, Elie, Hebiri and Hu
    2024, "Fairness guarantees in multi-class classification with demographic parity", JMLR.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import Budget
    >>> X, y = make_classification(3000, n_classes=3, n_informative=4, random_state=0)
    >>> group = np.where(X[:, 0] > 0, "a", "b")
    >>> clf = DP2DPClassifier(Budget(epsilon=2.0, delta=1e-6), n_steps=200, batch_size=256)
    >>> clf = clf.fit(X[:2500], y[:2500], sensitive_features=group[:2500], X_public=X[2500:])
    >>> labels = clf.predict(X[2500:], sensitive_features=group[2500:])
    >>> clf.guarantee_.epsilon, clf.guarantee_.delta, clf.shifts_.shape
    (2.0, 1e-06, (2, 3))
    """

    NUMBERS: ClassVar[tuple[str, ...]] = (
        "shifts_",
        "group_scores_",
        "table_",
        "table_gap_",
        "noise_bound_",
    )

    _: KW_ONLY
    rule_budget: float = 0.25
    temperature: float = 0.01
    n_rule_steps: int = 60
    rule_rate: float = 0.5

    _default: ClassVar[RateNotion] = DEFAULT
    _reads_group: ClassVar[bool] = True

    def _learn(self, given: FitArguments) -> None:
        budget, share = self._checked_steps(given.ledger), self._checked_parts()
        of_rule, left = split_budget(budget, share)
        trained = self._train(given, left, as_generator(self.random_state))
        data, codes = trained.data, trained.groups.codes
        p = self._probabilities(trained.X_encoded, trained.groups)
        noise = own_noise(self.noise)
        run = Ledger(of_rule, noise=noise, unit="record", neighbors="add or remove one")
        shape = (trained.groups.n_groups, data.n_classes)

        summer, counter = (
            NoisySum.within(of_rule.mu_squared * part * (1.0 - 1e-9), n, float(UNIT), noise)
            for part, n in ((1.0 - LAST, self.n_rule_steps), (LAST, 1))
        )
        dual = ParityDual(
            margin=self.notion.margin, temperature=self.temperature, rate=self.rule_rate
        )
        uses = {summer: self.n_rule_steps, counter: 1}
        with run.reserve(uses, purpose="steps to parity, and the last table") as grant:
            drawn = grant.draw(summer, shape[0] * shape[1])

            def released(rows: FloatArray, t: int) -> FloatArray:
                sums = group_sums(rows, codes, shape[0])
                noisy = summer.decide(sums.reshape(1, -1), drawn[t : t + 1])[0] / UNIT
                table: FloatArray = noisy.reshape(shape)
                return table

            self.shifts_ = dual.descend(p, codes, shape, self.n_rule_steps, released)
            final = group_sums(smoothed(p - self.shifts_[codes], self.temperature), codes, shape[0])
            counted = counter.decide(final.reshape(1, -1), grant.draw(counter, final.size))
        self.table_ = counted.reshape(shape) / UNIT
        self.table_gap_, self.noise_bound_ = gap_of_table(self.table_, counter.sigma / UNIT)
        self.mechanism_ = (trained.mechanism, summer, counter)
        self.fairness_kind_ = FairnessKind.DERIVED
        self.ledger_ = SeparateLedgers(trained.ledger, run)
        self.guarantee_ = (trained.claim + run.guarantee()).with_warning(NEEDS_GROUP)

    def _expected(self, encoded: Array, groups: GroupCodes) -> FloatArray:
        p = self._probabilities(encoded, groups)
        return smoothed(p - self.shifts_[groups.codes], self.temperature)

    def _checked_parts(self) -> float:
        if not isinstance(self.notion, DemographicParity):
            raise ValueError(
                f"The dual is that of demographic parity: fairness must be a DemographicParity, "
                f"got {self.fairness!r}. Use DPPostProcessingClassifier for other notions."
            )
        require_reference(self.notion, "pairwise", "The rule")
        _checks.positive("temperature", self.temperature)
        _checks.at_least("n_rule_steps", self.n_rule_steps, 2)
        _checks.positive("rule_rate", self.rule_rate)
        return _checks.open_unit("rule_budget", self.rule_budget)

    def _take_group_weights(self, weights: FloatArray) -> None:
        self.group_scores_: FloatArray = weights

    def _probabilities(self, encoded: Array, groups: GroupCodes) -> FloatArray:
        """Return the probabilities of the model below the rule, shape (n, n_classes)."""
        scores = self.student_.decision_function(encoded).reshape(len(encoded), -1)
        return probabilities(scores + self.group_scores_[groups.codes])

    def _take(self, fitted: FittedModel) -> None:
        super()._take(fitted)
        shape = (len(self.groups_ or ()), len(self.classes_))
        if self.shifts_.shape != shape or self.group_scores_.shape[:1] != shape[:1]:
            raise ValueError("the shifts are not one for each group and class.")


def smoothed(shifted: FloatArray, temperature: float) -> FloatArray:
    """Return the smoothed decisions of shifted probabilities (n, n_classes): rows add up to 1."""
    out: FloatArray = np.exp((shifted - shifted.max(axis=1, keepdims=True)) / temperature)
    out /= out.sum(axis=1, keepdims=True)
    return out


def group_sums(decisions: FloatArray, codes: IntArray, n_groups: int) -> IntArray:
    """Add up decisions (n, n_classes) by group, in parts of 1, shape (n_groups, n_classes).

    A record's numbers are rounded down, so they add up to at most ``UNIT``: L2 at most ``UNIT``.
    """
    whole = np.floor(decisions * UNIT)
    # Sums below 2**53 are exact, in whatever order they are added.
    columns = [np.bincount(codes, weights=column, minlength=n_groups) for column in whole.T]
    return np.stack(columns, axis=1).astype(np.int64)


def gap_of_table(table: FloatArray, sigma: float) -> tuple[float, float]:
    """Return the largest difference of a rate by a noisy table, and how much wider it can be.

    Parameters
    ----------
    table : array, shape (n_groups, n_classes)
        Noisy counts of decisions.
    sigma : float
        Standard deviation of the noise on each, in records.

    Notes
    -----
    With probability ``LEVEL`` no cell is off by more than ``t = sigma sqrt(2 ln(2 n_cells / (1 -
    LEVEL)))``, for continuous and for discrete Gaussian noise (both are subgaussian; Canonne,
    Kamath and Steinke 2020, Corollary 17). Then the K rates of a group with noisy sum N are off by
    at most ``K t / N`` in total variation, and a gap has two groups. Upper bound, loose.
    """
    cells = np.maximum(table, 0.0)
    sizes = cells.sum(axis=1)
    even = np.full(cells.shape, 1.0 / cells.shape[1])  # a group that the noise left empty
    rates = np.where(sizes[:, None] > 0, cells / np.maximum(sizes, 1e-300)[:, None], even)
    off = sigma * math.sqrt(2.0 * math.log(2.0 * cells.size / (1.0 - LEVEL)))
    each = np.sort(cells.shape[1] * off / np.maximum(sizes, 1e-12))
    return float(np.ptp(rates, axis=0).max()), float(min(1.0, each[-2:].sum()))


@dataclass(frozen=True, kw_only=True)
class ParityDual:
    """The dual of the least error within a margin, descended by noisy tables of decisions."""

    margin: float
    """Between two groups, in [0, 1]."""
    temperature: float
    rate: float
    """``temperature`` and ``rate``: as of the classifier."""

    def descend(
        self,
        p: FloatArray,
        codes: IntArray,
        shape: tuple[int, int],
        n_steps: int,
        released: Callable[[FloatArray, int], FloatArray],
    ) -> FloatArray:
        """Return the shifts, shape (n_groups, n_classes): the mean of the last half of the steps.

        Parameters
        ----------
        p : array, shape (n, n_classes)
            Probabilities that the model gives to the private rows.
        codes : array of int, shape (n,)
            Their groups.
        shape : tuple of int
            Numbers of groups and classes.
        n_steps : int
        released : function of decisions (n, n_classes) and the number of the step
            Returns their noisy sums by group: all that is learned of the rows.
        """
        v, mean, sizes = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])
        for t in range(n_steps):
            table = released(smoothed(p - v[codes], self.temperature), t)
            sizes += (table.sum(axis=1) - sizes) / (t + 1)
            v = self.step(v, table, np.maximum(sizes, 1.0), self.rate / math.sqrt(1.0 + t / 10.0))
            if t >= n_steps // 2:
                mean += (v - mean) / (t - n_steps // 2 + 1)
        return mean

    def step(self, v: FloatArray, table: FloatArray, sizes: FloatArray, rate: float) -> FloatArray:
        """Take one proximal step by a noisy table; reads nothing private."""
        shares = sizes / sizes.sum()
        rates = np.clip(table / sizes[:, None], 0.0, 1.0)
        # What all groups have in common goes away where the shifts get their mean of 0.
        return shrunk(v + rate * rates, shares, rate * self.margin / 2.0)


def shrunk(v: FloatArray, shares: FloatArray, by: float) -> FloatArray:
    """Return the nearest shifts u to v by ``|u - v|^2 / 2 + by |u|``, weighted, with mean 0.

    Both sums weigh a group by its share, and ``shares @ u`` is 0 for each class. So u is v less
    one number per class, moved towards 0 by ``by``; the number is found by halving.
    """

    def towards_0(apart: FloatArray) -> FloatArray:
        out: FloatArray = np.sign(apart) * np.maximum(np.abs(apart) - by, 0.0)
        return out

    low, high = v.min(axis=0) - by, v.max(axis=0) + by
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = shares @ towards_0(v - middle) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return towards_0(v - (low + high) / 2)
