"""PF-LD with secret minibatches and its own accounting: to compare with, for it is not private."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.optimize import brentq

from evenhand import _checks
from evenhand.baselines.pfld import SIZES_SHARE, PFLDClassifier, PFLDNoise
from evenhand.estimators.attribute_privacy import PeopleInputs
from evenhand.estimators.ledgers import own_noise
from evenhand.estimators.spec import REGISTERED, registered
from evenhand.privacy import Budget, FloatNoise, Guarantee, Ledger
from evenhand.privacy.guarantee import as_printed
from evenhand.privacy.known_samples import KnownSamples
from evenhand.privacy.noise import require_real
from evenhand.privacy.subsampled import Batches, record_words

_HAIR: Final = 1e-6  # the ledger rounds its limit down
_TOLERANCE: Final = 1e-4  # of the logarithm of the noise multiplier


@registered(
    replace(
        REGISTERED["pf-ld"],
        name="pf-ld-as-printed",
        words="PF-LD with secret minibatches, by its own account: NOT PRIVATE AS CLAIMED.",
        claim_holds=False,
    )
)
@dataclass(eq=False, repr=False)
class AsPrintedPFLDClassifier(PFLDClassifier):
    """PF-LD on secret minibatches, charged as DP-SGD is: **not private as claimed**.

    Each primal step reads a Poisson sample of the rows, and the account is that of the sampled
    Gaussian (the moments accountant), with the sensitivity of what the groups enter: that the
    sample is secret is taken to hide who is in it. It does not, as *Privacy* derives. So
    ``guarantee_`` says NOT PRIVATE AS CLAIMED wherever it is shown, and beside it what the same
    draws cost in sound accounting: the charge of ``ledger_``.

    Parameters
    ----------
    budget : Budget
        What the published account would claim. Needed.
    fairness, hidden, clip_norm, dual_share, learning_rate, multiplier_rate
        As for ``PFLDClassifier``.
    sampling_rate : float
        Probability of a row to be in a primal step, in (0, 1].
    n_steps : int
        Primal steps. A dual step reads all rows, after as many primal ones as are one epoch.

    Attributes
    ----------
    mechanism_ : tuple of KnownSamples
        All steps together.
    ledger_ : Ledger
        ``spent_epsilon`` is the sound cost of the same draws.
    guarantee_ : Guarantee
        Without a bound, and why.

    Privacy
    -------
    **Not as claimed.** Let q be the sampling rate and z the noise of a primal step in units of how
    far a person's group can move it. With l the public part of the row's gradient (its loss, which
    is neither clipped nor noised for), and d, d' the part that its group and the other group give,
    one step is ``(1 - q) N(0, z^2) + q N(l + d, z^2)`` against ``(1 - q) N(0, z^2) + q N(l + d',
    z^2)`` for neighbors, ``|d - d'| <= 1``. The sampled Gaussian has ``N(0, z^2)`` in the second
    place, so all rows hide behind the row's absence. But l may be as long as it likes: as it grows
    a step tells whether the row was in its sample, and the pair becomes, exactly, a Gaussian step
    with probability q and nothing else. T of them cost what K Gaussian steps cost for a binomial
    K of T and q, ``delta(epsilon) = E[delta of mu = sqrt(K) / z at epsilon]``: near ``q T / z^2``
    for mu squared, where the sampled Gaussian has ``q^2 T (exp(1 / z^2) - 1)``. This bounds every
    l, for whoever is told the samples can forget them, and it is what ``ledger_`` holds, with dual
    steps and sizes beside it.

    If the gradient were clipped and noised *whole*, loss included, as DP-SGD does it, the row would
    be hidden; but then a group moves it by up to twice the clipping norm, and the account of one
    record added or removed, which has once that, would be too small again.

    Notes
    -----
    By what SF-PATE says of PF-LD: stochastic gradient descent with per-sample clipping after Abadi
    et al. 2016, noise in the primal and in the dual step, calibrated for each notion of fairness.
    (A noise that is calibrated by notion is that of the constraint's part, not of the whole
    gradient.) The paper's own constants and schedules, and how it divides by the number of members
    that a group has in a sample, which is private too, are not reproduced: all else is that of
    ``PFLDClassifier``, so that the two differ in samples and account alone.

    References
    ----------
    Tran, Fioretto and Van Hentenryck 2021, "Differentially Private and Fair Deep Learning: A
    Lagrangian Dual Approach"; Tran, Zhu, Fioretto and Van Hentenryck 2023, "SF-PATE: Scalable,
    Fair, and Private Aggregation of Teacher Ensembles", Sections 2 and 6.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from evenhand import DemographicParity
    >>> X, y = make_classification(3000, random_state=0)
    >>> clf = AsPrintedPFLDClassifier(
    ...     Budget(epsilon=1.0, delta=1e-6), DemographicParity(margin=0.05), n_steps=200
    ... )
    >>> clf = clf.fit(X, y, sensitive_features=X[:, 0] > 0)
    >>> str(clf.guarantee_)[:22], clf.guarantee_.epsilon, clf.fitted_.epsilon_spent > 3.0
    ('NOT PRIVATE AS CLAIMED', inf, True)
    """

    _: KW_ONLY
    sampling_rate: float = 0.05
    n_steps: int = 2000

    def _noise_of(
        self, budget: Budget, ledger: Ledger | None, n_rows: int, widths: tuple[int, int, int]
    ) -> PFLDNoise:
        """Charge the sound cost of what the published account pays for, and draw it."""
        if ledger is not None:
            raise ValueError(
                "ledger= is an account of costs that hold, and PF-LD's own account of its "
                "minibatches does not. Leave it out, or use PFLDClassifier."
            )
        noise = own_noise(self.noise, FloatNoise)
        require_real(noise)
        steps, n_dual = self._steps(budget)
        _, dual, sizes = self._mechanisms(budget)
        limit = Budget(epsilon=steps.epsilon(budget.delta) * (1.0 + _HAIR), delta=budget.delta)
        run = self._only_at_its_delta(limit, noise)
        shapes = tuple(zip((steps.n_steps, n_dual, 1), widths, strict=True))
        lengths = [n * width for n, width in shapes]
        with run.reserve({steps: 1}, purpose="PF-LD: primal steps, dual steps, sizes") as grant:
            (drawn,) = grant.draw(steps, sum(lengths))
        parts = np.split(drawn, np.cumsum(lengths)[:-1])
        primal, table, size = (
            part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)
        )
        return PFLDNoise(
            ledger=run,
            mechanisms=(steps,),
            primal=primal * (steps.noise_multiplier * self.clip_norm),
            dual=table * (dual.sigma * math.sqrt(n_dual / self.n_steps)),
            sizes=size * sizes.sigma,
            sizes_sigma=sizes.sigma,
            batches=Batches(record_words(noise), steps.sampling_rate, steps.n_steps, n_rows),
            sampling_rate=steps.sampling_rate,
        )

    def _steps(self, budget: Budget) -> tuple[KnownSamples, int]:
        """Return all steps as the published account calibrates them, and how many are dual."""
        rate = _checks.positive("sampling_rate", self.sampling_rate)
        if rate > 1:
            raise ValueError(
                f"sampling_rate must be at most 1, got sampling_rate={rate!r}. It is the "
                f"probability of a row to be in a step."
            )
        n_steps = _checks.at_least("n_steps", self.n_steps, 1)
        beside = budget.mu_squared * (self.dual_share + SIZES_SHARE)
        steps = KnownSamples(
            noise_multiplier=printed_multiplier(
                budget.epsilon, budget.delta, rate, n_steps, beside
            ),
            sampling_rate=rate,
            n_steps=n_steps,
            beside=beside,
            delta=budget.delta,
        )
        return steps, max(1, round(rate * n_steps))

    def _claimed(self, people: PeopleInputs, run: Ledger, budget: Budget) -> Guarantee:
        whole = super()._claimed(people, run, budget)
        said = (
            f"PF-LD's own accounting claims ({budget.epsilon!r}, {budget.delta!r}) for this run, "
            f"and that does not hold: it takes a minibatch for secret whose members the public "
            f"loss can tell; in sound accounting the same {self.n_steps:,} steps cost "
            f"epsilon={run.spent_epsilon(budget.delta):.4g} at delta={budget.delta!r}"
        )
        return as_printed(whole, said)


@lru_cache(maxsize=1024)
def printed_multiplier(
    epsilon: float, delta: float, sampling_rate: float, n_steps: int, beside: float
) -> float:
    """Return the noise multiplier at which the moments accountant says ``epsilon``.

    ``beside`` is ``mu**2`` of the Gaussian releases that are not sampled.

    Examples
    --------
    >>> round(printed_multiplier(1.0, 1e-5, 0.05, 2000, 0.01), 1)
    10.0
    """
    import dp_accounting  # a second to import, so only when a run needs it
    from dp_accounting import rdp

    def found(log_z: float) -> float:
        accountant = rdp.RdpAccountant()
        step = dp_accounting.GaussianDpEvent(math.exp(log_z))
        accountant.compose(dp_accounting.PoissonSampledDpEvent(sampling_rate, step), n_steps)
        accountant.compose(dp_accounting.GaussianDpEvent(1.0 / math.sqrt(beside)))
        return math.log(float(accountant.get_epsilon(delta)) / epsilon)

    low, high = 0.0, 1.0
    while found(low) <= 0:
        low -= 0.5
    while found(high) > 0:
        low, high = high, high + 0.5
    return math.exp(brentq(found, low, high, xtol=_TOLERANCE) + _TOLERANCE)
