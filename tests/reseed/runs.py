"""Verdicts on what holds in the mean over independent runs, with both error rates stated."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, ttest_1samp

FALSE_ALARM = 1e-6
"""Probability, over seeds, that correct code fails one statistical test."""


def p_value_of_noise(drawn: ArrayLike, sigma: float) -> float:
    """Probability that Gaussian noise of ``sigma`` varies as far from it as this, or further."""
    noise = np.ravel(drawn)
    law, found = chi2(noise.size), float(((noise / sigma) ** 2).sum())
    return float(2 * min(law.cdf(found), law.sf(found)))


def falls_short(excess: ArrayLike) -> bool:
    """Whether independent runs, each with seeds of its own, show that their mean is below 0.

    Where the mean is at least 0, Student's test says so with probability ``FALSE_ALARM`` at most.
    A test shows the other error on a build that does nothing: the same runs convict it.
    """
    found = np.asarray(excess, dtype=np.float64)
    return bool(ttest_1samp(found, 0.0, alternative="less").pvalue < FALSE_ALARM)
