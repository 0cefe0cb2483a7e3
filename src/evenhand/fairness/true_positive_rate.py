"""Equal opportunity: who is of a class is recognised as such at nearly the same rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evenhand.fairness.notions import OfOneClass
from evenhand.fairness.rates import Rates


@dataclass(frozen=True, kw_only=True)
class TruePositiveRateParity(OfOneClass):
    """Records of a class are predicted to be of it at nearly the same rate in each group.

    Bounds ``|P(Yhat = k | Y = k, Z = z) - P(Yhat = k | Y = k, reference)|`` over all z and the
    classes k that are meant. Also called equal opportunity (Hardt, Price and Srebro 2016).

    Parameters
    ----------
    margin, reference
        As for ``DemographicParity``.
    positive : int, optional
        Code of the one class k that is meant (its place among the sorted classes). Default: of two
        classes the second, as fairlearn's ``true_positive_rate_difference``; of more, every class.

    Notes
    -----
    Of two classes the rate of the first given itself is one minus the false positive rate of the
    second: with both, the notion would be equalized odds. Of more than two no class is the good
    one unless ``positive`` says so, and the rate of each given itself (its recall) is compared;
    which wrong class the others are given is left free, unlike in equalized odds.

    Examples
    --------
    >>> TruePositiveRateParity(margin=0.25).gap([[[9, 1], [2, 8]], [[8, 2], [5, 5]]])
    0.3
    """

    name: ClassVar[str] = "true-positive-rate-parity"
    words: ClassVar[str] = "how often a class is predicted to rows that are of it"
    symbols: ClassVar[str] = "P(Yhat=k | Y=k)"

    def rates(self, n_classes: int) -> Rates:
        """Return ``P(Yhat = k | Y = k)`` for each k that is meant."""
        meant = self.meant(n_classes, default=[1] if n_classes == 2 else range(n_classes))
        return Rates.of(n_classes, [([k], [(k, k)]) for k in meant])
