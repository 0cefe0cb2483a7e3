"""Renyi DP curves: values that add up, and their conversion to epsilon(delta).

The guarantee that this package prints comes from exact Gaussian DP (``evenhand.privacy.gaussian``).
Renyi curves are here for comparison with the literature, for subsampled mechanisms, and for local
costs, which have no other form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand._checks import at_least, one_of, open_unit
from evenhand.typing import ArrayLike, FloatArray

ORDERS: Final[FloatArray] = 1.0 + np.geomspace(0.02, 5000.0, 400)
"""Orders on which curves are kept. Between two of them epsilon is lost by at most 0.02 %."""
ORDERS.setflags(write=False)

NEIGHBORS: Final = (
    "replace one",
    "add or remove one",
    "change one group label",
    "change one group and class label",
)
"""The relations between data sets that a cost may refer to. Costs of two of them do not add."""


@dataclass(frozen=True, eq=False)
class RenyiCurve:
    """Renyi divergence, at several orders, that neighbors can be apart after some releases.

    Parameters
    ----------
    orders : array of shape (n_orders,)
        Greater than 1 and increasing.
    rdp : array of shape (n_orders,)
        Bound on the Renyi divergence at each order, in nats, both directions; may be infinite.
    neighbors : str
        The relation between data sets: one of ``NEIGHBORS``.

    Examples
    --------
    A thousand answers of GNMax at sigma 40 (Papernot et al. 2018, Proposition 8):

    >>> curve = RenyiCurve(ORDERS, ORDERS / 40.0**2) * 1000
    >>> round(curve.epsilon(delta=1e-5), 3)
    5.378
    >>> round(curve.epsilon(delta=1e-5, conversion="classic"), 3)
    5.99
    """

    orders: FloatArray
    rdp: FloatArray
    neighbors: str = "replace one"

    def __post_init__(self) -> None:
        orders = checked_orders(self.orders)
        rdp = np.array(self.rdp, dtype=np.float64)
        if rdp.shape != orders.shape:
            raise ValueError(
                f"rdp must hold one value per order, got shape {rdp.shape} for {orders.size} "
                f"orders."
            )
        if not (rdp >= 0).all():
            worst = rdp[~(rdp >= 0)][0]
            raise ValueError(f"rdp must be at least 0 at every order, got {worst}.")
        one_of("neighbors", self.neighbors, NEIGHBORS)
        rdp.setflags(write=False)
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "rdp", rdp)

    def __add__(self, other: RenyiCurve) -> RenyiCurve:
        if not isinstance(other, RenyiCurve):
            return NotImplemented
        if self.neighbors != other.neighbors:
            raise ValueError(
                f"Costs for different neighbors do not add: {self.neighbors!r} and "
                f"{other.neighbors!r}. Report them side by side."
            )
        if not np.array_equal(self.orders, other.orders):
            raise ValueError(
                f"Curves add only on the same orders, got {self.orders.size} and "
                f"{other.orders.size} orders that differ. Make both with the same orders=."
            )
        return RenyiCurve(self.orders, self.rdp + other.rdp, self.neighbors)

    def __mul__(self, n_uses: int) -> RenyiCurve:
        n_uses = at_least("n_uses", n_uses, 0)
        rdp = self.rdp * n_uses if n_uses else np.zeros_like(self.rdp)  # 0 * inf is 0 here
        return RenyiCurve(self.orders, rdp, self.neighbors)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RenyiCurve)
            and self.neighbors == other.neighbors
            and np.array_equal(self.orders, other.orders)
            and np.array_equal(self.rdp, other.rdp)
        )

    def __hash__(self) -> int:
        return hash((self.neighbors, self.orders.tobytes(), self.rdp.tobytes()))

    def epsilon(self, delta: float, conversion: str = "tight") -> float:
        """Return epsilon at ``delta``, minimized over the orders.

        Parameters
        ----------
        delta : float
            Strictly between 0 and 1.
        conversion : {"tight", "classic"}
            "tight" is Canonne, Kamath, Steinke 2020, Proposition 12:
            ``rdp + log(1 - 1/order) - log(delta * order) / (order - 1)``.
            "classic" is Mironov 2017, Proposition 3: ``rdp - log(delta) / (order - 1)``; older
            papers report it.

        Returns
        -------
        float
            In nats, at least 0; infinite if no order has a finite divergence.
        """
        return epsilon_of(self.rdp, self.orders, delta, conversion)


def epsilon_of(rdp: FloatArray, orders: FloatArray, delta: float, conversion: str) -> float:
    """Return epsilon of plain arrays: shared with costs that are not public curves."""
    delta = open_unit("delta", delta)
    convert = _CONVERSIONS[one_of("conversion", conversion, _CONVERSIONS)]
    return max(0.0, float(np.min(convert(rdp, orders, delta))))


def checked_orders(orders: ArrayLike) -> FloatArray:
    """Return ``orders`` as a read-only float64 array, greater than 1 and increasing."""
    array = np.array(orders, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"orders must be a list of at least one order, got shape {array.shape}.")
    if not (np.isfinite(array).all() and array[0] > 1 and (np.diff(array) > 0).all()):
        raise ValueError(
            f"orders must be finite, greater than 1 and increasing, got {array[0]} to {array[-1]}. "
            f"ORDERS is a grid that serves most budgets."
        )
    array.setflags(write=False)
    return array


def _tight(rdp: FloatArray, orders: FloatArray, delta: float) -> FloatArray:
    """Canonne, Kamath, Steinke 2020, Proposition 12."""
    epsilon = rdp + np.log1p(-1.0 / orders) - (np.log(delta) + np.log(orders)) / (orders - 1.0)
    # Total variation is at most sqrt(1 - exp(-KL)) (Bretagnolle and Huber 1979), and KL <= rdp.
    tight: FloatArray = np.where(-np.expm1(-rdp) <= delta**2, 0.0, epsilon)
    return tight


def _classic(rdp: FloatArray, orders: FloatArray, delta: float) -> FloatArray:
    """Mironov 2017, Proposition 3."""
    epsilon: FloatArray = rdp - np.log(delta) / (orders - 1.0)
    return epsilon


_CONVERSIONS: Final[Mapping[str, Callable[[FloatArray, FloatArray, float], FloatArray]]] = {
    "tight": _tight,
    "classic": _classic,
}
