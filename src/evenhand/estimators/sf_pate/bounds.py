"""What SF-PATE's bounds say about one model: which of them say anything, in released numbers."""

from __future__ import annotations

from typing import Final

import numpy as np

from evenhand.estimators.margins import Bound
from evenhand.typing import FloatArray
from evenhand.voting.certificate import AttributeCertificate

CERTIFICATE: Final = "Certificate from a noisy table of true and noisy groups"

_ETA: Final = (
    "eta is the largest difference, over all features and labels, between the probabilities of "
    "the true and of the noisy group; no sample bounds it, so this says something only to those "
    "who know from elsewhere that eta is below the number shown"
)


def bounds_of_student(
    *,
    alpha: float,
    noisy_shares: FloatArray,
    names: tuple[str, ...],
    certificate: AttributeCertificate | None,
    alpha_of_likeliest: float,
) -> tuple[Bound, ...]:
    """Return what is known of a student that is ``alpha``-fair for noisy groups.

    Parameters
    ----------
    alpha : float
        Its violation for the noisy groups.
    noisy_shares : ndarray, shape (n_groups,)
        Shares of the noisy groups; released. They stand in for the true ones, which are private.
    names : tuple of str
    certificate : AttributeCertificate or None
        Released, if it was paid for: of the true groups and the likeliest ones.
    alpha_of_likeliest : float
        The student's violation for the likeliest groups of the same rows. A table that counts rows
        by their likeliest group says nothing of weights.

    Privacy
    -------
    Reads released and public values (post-processing).
    """
    shares = np.clip(noisy_shares, 1e-6, 1.0)
    least = float(shares.min())
    room = max(0.0, 1.0 - alpha)
    # Each solves alpha' = 1 for eta, at true shares that equal the noisy ones.
    printed = room * least**2 / 2.0
    corollary = room * least**2 / (2.0 + room * least)
    tight = room * least
    found = [
        _threshold("SF-PATE Theorem 1, as printed", printed),
        _threshold("SF-PATE Corollary 1, as printed", corollary),
        _threshold("SF-PATE Theorem 1, tightened (alpha_from_eta)", tight),
    ]
    if certificate is None:
        how = "not released: set certificate=0.1 to spend a tenth of the budget on it"
        return (*found, _silent(CERTIFICATE, how))
    bound = certificate.alpha(alpha_of_likeliest)
    worst = names[int(certificate.bounds.argmax())]
    released = Bound(
        name=CERTIFICATE,
        value=min(1.0, bound),
        says=bound < 1.0,
        words=f"holds for the rows that were counted, with {certificate.level:.0%} confidence; "
        f"widest for {worst}",
    )
    return (*found, released)


def bounds_of_teachers() -> tuple[Bound, ...]:
    """Return what is known of a student of fair teachers: nothing, without private numbers."""
    return (
        _silent(
            "SF-PATE Theorem 2",
            "its eta is a distance between joint distributions of all teachers' votes, which "
            "nobody observes; that each teacher is nearly fair does not make it small",
        ),
        _silent(
            "Expected rates of the noisy vote by group, exact",
            "computed from private votes and groups: for the curator alone "
            "(expected_rates_.reveal_disparity_to_curator())",
        ),
    )


def _threshold(name: str, eta: float) -> Bound:
    return _silent(name, f"below 1 only if eta < {eta:.4f}; {_ETA}")


def _silent(name: str, words: str) -> Bound:
    return Bound(name=name, value=None, says=False, words=words)
