"""The release of scores by group, counted: beside a model whose fit pays for it."""

from __future__ import annotations

from evenhand.privacy import Ledger
from evenhand.privacy.gaussian import sigma_for
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.students.score_counts import count_scores
from evenhand.typing import ArrayLike, FloatArray


def release_counts(
    scores: ArrayLike, groups: ArrayLike, n_groups: int, *, ledger: Ledger, mu_squared: float
) -> tuple[FloatArray, float]:
    """Return the counts of private rows with noise, and the noise's standard deviation.

    Parameters
    ----------
    scores : array-like, shape (n,)
        Of a model that has left already.
    groups : array-like of int, shape (n,)
        Codes below ``n_groups``.
    ledger : Ledger
        Is charged before the noise is drawn.

    Returns
    -------
    counts : ndarray of float64, shape (n_groups, N_RANGES)
    noise : float

    Privacy
    -------
    Neighbors : add or remove one record, which is in one range of one group.
    Sensitivity : L2 1.
    Cost : ``mu_squared``, one Gaussian release (:class:`NoisySum`).
    """
    sigma = sigma_for(mu_squared, 1, gaussian_mu=ledger.noise.gaussian_mu)
    counts = count_scores(scores, groups, n_groups)
    released = ledger.release(
        NoisySum(sigma=sigma, l2_sensitivity=1.0),
        counts.reshape(1, -1),
        purpose="scores by group, counted",
    )
    return released.reshape(counts.shape), sigma
