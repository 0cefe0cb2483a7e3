"""PF-LD: a Lagrangian dual with noised primal and dual steps, for the group alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._notions import OF_DECISIONS
from evenhand._random import as_generator
from evenhand.baselines.pfld_descent import PFLD, TABLE_SENSITIVITY
from evenhand.estimators.attribute_privacy import UNIT, AttributePrivacyClassifier, PeopleInputs
from evenhand.estimators.inputs import FitArguments
from evenhand.estimators.ledgers import open_run
from evenhand.estimators.noisy_gradient import layered_classifier
from evenhand.estimators.spec import BUDGET, MethodSpec, registered
from evenhand.fairness import FairnessKind
from evenhand.fairness.noisy_groups import AnsweredGroups
from evenhand.fairness.notion import RateNotion, rates_of
from evenhand.fairness.notions import require_notion
from evenhand.learners.preconditioner import Whitening
from evenhand.privacy import Budget, FloatNoise, Guarantee, Ledger
from evenhand.privacy.guarantee import EXACT_GAUSSIAN
from evenhand.privacy.noise import require_real
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.privacy.relation import GROUP_LABEL
from evenhand.typing import BoolArray, FloatArray, IntArray

DAMPING: Final = 0.01
"""Of the whitening of rows for logistic regression; standardised columns have variance 1."""

SIZES_SHARE: Final = 0.02
"""Part of the budget for the sizes of the groups, which are read once."""

_KEPT: Final = 1e-6  # of the budget, so that float sums of many charges stay within it


@registered(
    MethodSpec(
        name="pf-ld",
        words="One model by a Lagrangian dual whose steps are noised.",
        reads=(*BUDGET, "hidden", "margin", "reference"),
        needs=("epsilon", "margin"),
        protects="attribute",
        notions=OF_DECISIONS,
        kind=FairnessKind.WEIGHTS,
        private_groups=True,
    )
)
@dataclass(eq=False, repr=False)
class PFLDClassifier(AttributePrivacyClassifier):
    """Train logistic regression or a small network by PF-LD.

    The weights descend on the loss plus multipliers times the gaps between groups, the multipliers
    ascend on the gaps. Of both steps only what the groups enter is clipped and noised; features
    and labels are public. The model needs no group at prediction. For the whole record to be
    protected use ``DPSGDClassifier(fairness=...)``, which is this method with everything noised.

    Parameters
    ----------
    budget : Budget
        The (epsilon, delta) that the whole fit may spend. Needed.
    fairness : RateNotion
        The gap between groups that training aims for. Aimed for, not promised. Needed.
    hidden : tuple of int
        Widths of hidden layers (ReLU). Default ``()``: logistic regression.
    clip_norm : float
        Largest norm of the gradient of what is compared that one person's group can change, per
        unit of difference between multipliers.
    n_steps : int
        Primal steps, and dual ones.
    dual_share : float
        Part of the budget for dual steps, in (0, 0.98).
    learning_rate : float, optional
        Default 4 for logistic regression, 0.5 for a network.
    multiplier_rate : float
        How fast multipliers rise.
    schema, classes, random_state
        As for ``RandomizedResponseClassifier``.
    noise : Noise, optional
        ``FloatNoise()`` by default, for gradients are real numbers.

    Attributes
    ----------
    multipliers_ : ndarray, shape (n_strata, n_groups, n_hits)
        Where they ended. Public.
    estimated_shares_ : ndarray, shape (n_strata, n_groups)
        Noisy shares of the groups; by true class for equalized odds. Public.
    mechanism_ : tuple of NoisySum
        Of a primal step, a dual step, and the sizes.
    groups_ : tuple of str
    guarantee_, ledger_, classes_, student_, encoder_, fairness_kind_

    Privacy
    -------
    Neighbors : change the group label of one person. Features and class labels are public.
    Sensitivity : L2 ``clip_norm`` for a primal step, in units of the largest difference between
        multipliers, which is public; sqrt(2) for a dual step, and for the sizes.
    Cost : the budget, exactly: ``mu**2 = n_steps (1 / z_p**2 + 1 / z_d**2) + 1 / z_s**2`` with z
        the noise in units of the sensitivity (Dong, Roth and Su 2022). It is Gaussian, so it can
        be charged to an account that other runs of this unit share.

    Notes
    -----
    The defaults were chosen on validation rows of ACS-Income and German credit
    (``sf_pate_choices.py`` among the reproductions).

    References
    ----------
    Tran, Fioretto and Van Hentenryck 2021, "Differentially Private and Fair Deep Learning: A
    Lagrangian Dual Approach". The derivation, and why no minibatch is drawn, stand in
    ``evenhand.baselines.pfld_descent``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import DemographicParity
    >>> X, y = make_classification(3000, random_state=0)
    >>> clf = PFLDClassifier(
    ...     Budget(epsilon=1.0, delta=1e-6), DemographicParity(margin=0.05), n_steps=50
    ... )
    >>> clf = clf.fit(X, y, sensitive_features=X[:, 0] > 0)
    >>> clf.guarantee_.epsilon, clf.guarantee_.unit
    (1.0, 'sensitive attribute of one person')
    """

    NUMBERS = ("estimated_shares_",)

    fairness: RateNotion | None = None
    _: KW_ONLY
    hidden: tuple[int, ...] = ()
    clip_norm: float = 1.0
    n_steps: int = 150
    dual_share: float = 0.25
    learning_rate: float | None = None
    multiplier_rate: float = 0.3

    def _learn(self, given: FitArguments) -> None:
        budget = self._checked_budget()
        notion = require_notion(
            self.fairness, "Say how far apart the groups may be: DemographicParity(margin=0.05)."
        )
        rng = as_generator(self.random_state)
        people = self._read_people(given, rng)
        data, k = people.data, people.groups.n_groups
        held = Held.of(notion, data.y_private, data.n_classes)
        learner, strata = self._learner(held), held.strata
        cells = len(held.bound) * k
        whitening = None if self.hidden else Whitening.of(people.X_encoded, damping=DAMPING)
        rows = people.X_encoded if whitening is None else whitening.rows(people.X_encoded)
        widths = (
            learner.n_weights(rows.shape[1], data.n_classes),
            cells * learner.n_hits(data.n_classes),
            cells,
        )
        noise = self._noise_of(budget, given.ledger, data.n_private, widths)
        known = noisy_sizes(strata, people, noise.sizes, noise.sizes_sigma)
        trained = learner.fit(
            rows,
            data.y_private,
            people.groups.codes,
            n_classes=data.n_classes,
            strata=strata,
            sizes=known,
            margins=held.margins(AnsweredGroups(counts=known).margins(notion)),
            primal_noise=noise.primal,
            dual_noise=noise.dual,
            rng=rng.spawn(1)[0],
            batches=noise.batches,
            sampling_rate=noise.sampling_rate,
            progress=given.stage("steps"),
        )
        layers = trained.layers
        if whitening is not None:
            layers = (whitening.layer(*layers[0]),)
        self.student_ = layered_classifier(layers, data.n_classes)
        self.multipliers_ = trained.multipliers
        self.estimated_shares_ = known / known.sum(axis=1, keepdims=True)
        self.mechanism_ = noise.mechanisms
        self.encoder_, self.classes_ = people.encoder, data.classes
        self.groups_ = people.groups.names
        self.ledger_ = noise.ledger
        self.fairness_kind_ = FairnessKind.WEIGHTS
        self.guarantee_ = self._claimed(people, noise.ledger, budget)

    def _claimed(self, people: PeopleInputs, run: Ledger, budget: Budget) -> Guarantee:
        """Return what is promised."""
        return self._claim(
            people,
            run.noise,
            epsilon=budget.epsilon,
            delta=budget.delta,
            accounting=EXACT_GAUSSIAN,
            noise_words=run.noise.name,
            mu_squared=budget.mu_squared,
        )

    def _noise_of(
        self, budget: Budget, ledger: Ledger | None, n_rows: int, widths: tuple[int, int, int]
    ) -> PFLDNoise:
        """Charge and draw the noise of weights, of tables and of sizes, of these widths."""
        mechanisms, run = self._mechanisms(budget), self._run_of(budget, ledger)
        primal, dual, sizes = mechanisms
        uses = {primal: self.n_steps, dual: self.n_steps, sizes: 1}
        with run.reserve(uses, purpose="PF-LD: primal steps, dual steps, sizes") as grant:
            of_sizes = grant.draw(sizes, widths[2])
            of_weights, of_tables = grant.draw(primal, widths[0]), grant.draw(dual, widths[1])
        return PFLDNoise(
            ledger=run,
            mechanisms=mechanisms,
            primal=of_weights,
            dual=of_tables,
            sizes=of_sizes,
            sizes_sigma=sizes.sigma,
        )

    def _learner(self, held: Held) -> PFLD:
        rate = self.learning_rate
        return PFLD(
            hidden=tuple(self.hidden),
            clip_norm=self.clip_norm,
            learning_rate=(0.5 if self.hidden else 4.0) if rate is None else rate,
            multiplier_rate=self.multiplier_rate,
            wrong=held.wrong,
        )

    def _mechanisms(self, budget: Budget) -> tuple[NoisySum, NoisySum, NoisySum]:
        """Return those of a primal step, of a dual one and of the sizes; together the budget."""
        n_steps = _checks.at_least("n_steps", self.n_steps, 1)
        dual = _checks.open_unit("dual_share", self.dual_share)
        if dual >= 1.0 - SIZES_SHARE:
            raise ValueError(
                f"dual_share must be below {1 - SIZES_SHARE}, got dual_share={dual!r}: "
                f"{SIZES_SHARE} of the budget reads the sizes of the groups, and primal steps need "
                f"the rest."
            )
        parts = (
            (self.clip_norm, (1.0 - dual - SIZES_SHARE) / n_steps),
            (TABLE_SENSITIVITY, dual / n_steps),
            (TABLE_SENSITIVITY, SIZES_SHARE),
        )
        made: list[NoisySum] = []
        for moved, share in parts:
            sigma = moved / math.sqrt(budget.mu_squared * (1.0 - _KEPT) * share)
            while (one := NoisySum(sigma=sigma, l2_sensitivity=moved)) in made:
                sigma = math.nextafter(sigma, math.inf)  # a grant tells its uses by their values
            made.append(one)
        return made[0], made[1], made[2]

    def _run_of(self, budget: Budget, ledger: Ledger | None) -> Ledger:
        """Open this run's ledger: its own, or one inside the account."""
        run = open_run(
            budget,
            ledger,
            self.noise,
            unit=UNIT,
            neighbors=GROUP_LABEL,
            way_out="Open another account for it.",
            purpose=type(self).__name__,
            default=FloatNoise,
        )
        require_real(run.noise)
        return run


@dataclass(frozen=True, kw_only=True, eq=False)
class PFLDNoise:
    """The noise of a fit, charged and drawn."""

    ledger: Ledger
    mechanisms: tuple[Any, ...]
    primal: FloatArray
    dual: FloatArray
    sizes: FloatArray
    """``primal``, ``dual`` and ``sizes``: one row for each step, or table."""
    sizes_sigma: float
    """Standard deviation of the noise on the sizes."""
    batches: Iterator[IntArray] | None = None
    """Rows of each primal step, where it does not read all."""
    sampling_rate: float = 1.0
    """Probability of a row to be in a batch."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Held:
    """What a notion holds equal, in the terms of PF-LD: one hit or none a row, by stratum."""

    strata: IntArray
    """Among whom each row is counted; rows that no rate is about have a stratum to themselves.
    Shape (n,).
    """
    bound: BoolArray
    """Which numbers of h are held equal there. Shape (n_strata, n_hits)."""
    wrong: bool
    """Whether h is the probability of a wrong decision; else that of each class."""

    @classmethod
    def of(cls, notion: RateNotion, y: IntArray, n_classes: int) -> Held:
        """Read the rates of a notion.

        Raises
        ------
        ValueError
            If they are neither of errors nor each of one class, or among classes that overlap: the
            sensitivity of the tables is that of one hit a row.
        """
        rates = rates_of(notion, n_classes)
        wrong = rates.predicted is None
        errors = rates.among[:, :, None] & ~np.eye(n_classes, dtype=np.bool_)
        single = wrong or n_classes == 2
        if rates.predicted is None:
            known = np.array_equal(rates.hits, errors)
        else:
            known = single or bool((rates.predicted.sum(axis=1) == 1).all())
        if not known:
            raise ValueError(
                f"PF-LD holds rates of errors, or rates of one predicted class each, got "
                f"{notion!r}. Use FairPATEClassifier, which takes any notion."
            )
        strata, n_strata = rates.stratum_of(y), int(rates.strata.max()) + 1
        at = 0 if single else rates.hits.any(axis=1).argmax(axis=1)
        bound = np.zeros((n_strata, 1 if single else n_classes), dtype=np.bool_)
        bound[rates.strata, at] = True
        if not rates.among.any(axis=0).all():
            strata = np.where(strata < 0, n_strata, strata)
            bound = np.concatenate([bound, np.zeros_like(bound[:1])])
        return cls(strata=strata, bound=bound, wrong=wrong)

    def margins(self, margins: FloatArray) -> FloatArray:
        """Return margins (n_strata, n_groups) for each number of h; none where it is not held."""
        return np.where(self.bound[:, None, :], margins[:, :, None], np.inf)


def noisy_sizes(
    strata: IntArray, people: PeopleInputs, noise: FloatArray, sigma: float
) -> FloatArray:
    """Return the sizes of the groups by stratum with noise added, (n_strata, n_groups)."""
    k = people.groups.n_groups
    counts = np.bincount(strata * k + people.groups.codes, minlength=noise.size)
    noisy = (counts + noise.ravel()).reshape(-1, k)
    totals = np.bincount(strata, minlength=len(noisy))[:, None]
    noisy += (totals - noisy.sum(axis=1, keepdims=True)) / k  # what they add up to is public
    # A size is divided by: a cell holds at least what noise alone may show.
    floored: FloatArray = np.maximum(noisy, 1.0 + sigma)
    return floored
