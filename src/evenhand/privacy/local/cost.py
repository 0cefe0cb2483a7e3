"""Local costs: what answers cost *at these votes*, a number that is itself private.

A data-dependent cost can be far below the worst case, and tells a curator how much slack there was.
It is computed from the private votes, so it is private too: its type prints as ``<private>``, stops
no run, and has one door, named after who may use it.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import log_ndtr

from evenhand._checks import at_least, histograms, one_of, positive
from evenhand._private import Private
from evenhand.privacy.renyi import NEIGHBORS, ORDERS, checked_orders, epsilon_of
from evenhand.typing import ArrayLike, FloatArray, IntArray

DIRECTIONS: Final = ("forward", "reverse", "both")
"""Of the divergence: "forward" is D(M(D) || M(D')), "reverse" is D(M(D') || M(D)), D the data at
hand. Only "both" bounds the privacy loss of a neighbor on either side."""

_BLOCK: Final = 1 << 13  # numbers per work array: stays in the first cache


class LocalCost(Private):
    """Renyi divergence of answers at the actual votes: private, so it prints as ``<private>``.

    Costs of the same direction, neighbors and orders add up. Printing, comparing, converting,
    pickling or turning it into JSON is refused or shows nothing: each would publish a function of
    the votes that no budget has paid for.

    Parameters
    ----------
    rdp : array of shape (n_queries, n_orders)
        Divergence per query and order, in nats.
    orders : array of shape (n_orders,)
        Greater than 1 and increasing.
    direction : {"forward", "reverse", "both"}
        What the numbers bound; see ``DIRECTIONS``.
    neighbors : str
        The relation between data sets.

    Examples
    --------
    >>> cost = theorem6([[240, 10], [130, 120]], sigma=40.0)
    >>> cost
    <private>
    >>> cost.n_queries, cost.direction
    (2, 'forward')
    """

    __slots__ = ("__rdp", "direction", "neighbors", "orders")

    _way_out = (
        "A local cost is computed from private votes and is itself private. Report "
        "ledger.budget or a Guarantee; inside the curator's own walls, call reveal_to_curator()."
    )

    orders: FloatArray
    direction: str
    neighbors: str
    __rdp: FloatArray

    def __init__(
        self,
        rdp: ArrayLike,
        *,
        orders: ArrayLike,
        direction: str,
        neighbors: str = "replace one",
    ) -> None:
        grid = checked_orders(orders)
        values = np.array(rdp, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != grid.size:
            raise ValueError(
                f"rdp must have shape (n_queries, {grid.size}), one column per order, "
                f"got {values.shape}."
            )
        values.setflags(write=False)
        for name, value in (
            ("orders", grid),
            ("direction", one_of("direction", direction, DIRECTIONS)),
            ("neighbors", one_of("neighbors", neighbors, NEIGHBORS)),
            ("_LocalCost__rdp", values),
        ):
            object.__setattr__(self, name, value)

    @property
    def n_queries(self) -> int:
        """Number of rows; public."""
        return len(self.__rdp)

    def total(self) -> LocalCost:
        """Return the cost of all queries together, as one row."""
        return self._with(self.__rdp.sum(axis=0, keepdims=True))

    def reveal_to_curator(self) -> FloatArray:
        """Return the divergences, shape (n_queries, n_orders). They are private: do not publish.

        A number that may leave the curator needs a release of its own (smooth sensitivity).
        """
        return self.__rdp.copy()

    def reveal_epsilon_to_curator(self, delta: float, conversion: str = "tight") -> float:
        """Return epsilon of all queries together, for ``direction`` only. Private: do not publish.

        See ``RenyiCurve.epsilon`` for the conversions.
        """
        return epsilon_of(self.__rdp.sum(axis=0), self.orders, delta, conversion)

    def __add__(self, other: LocalCost) -> LocalCost:
        if not isinstance(other, LocalCost):
            return NotImplemented
        for name in ("direction", "neighbors"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(
                    f"Local costs of different {name} do not add: {mine!r} and {theirs!r}. "
                    f"Compute both for the same {name}."
                )
        if not np.array_equal(self.orders, other.orders):
            raise ValueError(
                "Local costs add only on the same orders. Compute both with the same orders=."
            )
        if self.n_queries != other.n_queries:
            raise ValueError(
                f"Costs of {self.n_queries} and {other.n_queries} queries do not add row by row. "
                f"Add their totals: a.total() + b.total()."
            )
        return self._with(self.__rdp + other.__rdp)

    def __mul__(self, n_uses: int) -> LocalCost:
        return self._with(self.__rdp * at_least("n_uses", n_uses, 0))

    __rmul__ = __mul__

    def _with(self, rdp: FloatArray) -> LocalCost:
        return LocalCost(
            rdp, orders=self.orders, direction=self.direction, neighbors=self.neighbors
        )


def theorem6(
    counts: ArrayLike,
    sigma: float,
    orders: ArrayLike = ORDERS,
    *,
    discrete: bool = False,
    neighbors: str = "replace one",
) -> LocalCost:
    """Bound the cost of each GNMax answer at these votes, in one direction.

    With q a bound on the probability that another class wins than the one with most votes,
    ``mu2 = sigma sqrt(-ln q)`` and ``mu1 = mu2 + 1``, the divergence of order a is at most

        ln((1-q) A^(a-1) + q B^(a-1)) / (a-1),   A = (1-q) / (1 - (q e^(mu2/sigma^2))^(1-1/mu2)),
                                                 B = e^(mu1/sigma^2) q^(-1/(mu1-1)),

    where ``1 < mu2``, ``a <= mu1`` and q is small enough; elsewhere ``a / sigma^2``.

    Parameters
    ----------
    counts : array of shape (n_queries, n_classes)
        Votes per class.
    sigma : float
        Standard deviation of the noise on each count, in votes.
    orders : array of shape (n_orders,)
        Greater than 1 and increasing.
    discrete : bool
        Whether the noise is discrete Gaussian. A gap of g votes is then lost with a probability of
        at most ``Q((g - 1/2) / (sigma sqrt 2))`` for g > 0; the continuous formula is too small.
    neighbors : str
        The relation between data sets, under which one vote moves.

    Returns
    -------
    LocalCost
        One row per query, ``direction="forward"``: it bounds D(M(D) || M(D')) and *not* the
        reverse, which it undercuts at small sigma. No statement of privacy follows from it alone.

    References
    ----------
    Papernot, Song, Mironov, Raghunathan, Talwar, Erlingsson 2018, Theorem 6, Propositions 7 and 10.
    """
    votes, grid = checked_votes(counts), checked_orders(orders)
    sigma = positive("sigma", sigma)
    log_q = _log_probability_of_upset(votes, sigma, discrete)
    mu2 = sigma * np.sqrt(-log_q)
    mu1 = mu2 + 1.0
    eps1, eps2 = mu1 / sigma**2, mu2 / sigma**2
    with np.errstate(divide="ignore", invalid="ignore"):  # queries with mu2 <= 1 are dropped
        limit = (mu2 - 1.0) * eps2 - mu2 * (np.log(mu1 / mu2) + np.log(mu2 / (mu2 - 1.0)))
        applies = (mu2 > 1.0) & (log_q <= limit) & (log_q + eps2 < 0.0)
    rows = np.flatnonzero(applies)
    rows = rows[np.argsort(mu1[rows])]  # the theorem reaches up to order mu1: like ranges together
    log_q, mu2, mu1, eps1, eps2 = (v[rows, np.newaxis] for v in (log_q, mu2, mu1, eps1, eps2))
    log_1_q = np.log1p(-np.exp(log_q))
    log_a = log_1_q - np.log1p(-np.exp((log_q + eps2) * (1.0 - 1.0 / mu2)))
    log_b = eps1 - log_q / mu2  # mu1 - 1 is mu2

    worst_of_all = grid / sigma**2
    rdp = np.empty((len(votes), grid.size))
    rdp[:] = worst_of_all
    block = max(1, _BLOCK // grid.size)
    for part in (slice(start, start + block) for start in range(0, len(rows), block)):
        reach = int(np.searchsorted(grid, mu1[part][-1, 0], side="right"))
        t, worst, below = grid[:reach] - 1.0, worst_of_all[:reach], grid[:reach]
        likely, upset = t * log_a[part], t * log_b[part]
        likely += log_1_q[part]
        upset += log_q[part]
        # np.logaddexp of both, without its slow loop; exp is slow, too, where it underflows.
        bound = np.maximum(likely, upset)
        likely -= upset
        np.exp(-np.minimum(np.abs(likely, out=likely), 700.0, out=likely), out=likely)
        bound += np.log1p(likely, out=likely)
        bound /= t
        np.minimum(bound, worst, out=bound)
        np.copyto(bound, worst, where=below > mu1[part])
        rdp[rows[part], :reach] = bound
    return LocalCost(rdp, orders=grid, direction="forward", neighbors=neighbors)


def checked_votes(counts: ArrayLike) -> IntArray:
    """Return votes as an int64 array of shape (n_queries, n_classes), none below 0."""
    array = histograms(counts)
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"counts must hold whole numbers of votes, got dtype {array.dtype}.")
    votes: IntArray = array.astype(np.int64)
    if votes.size and votes.min() < 0:
        raise ValueError(f"counts must be at least 0, got {votes.min()}.")
    return votes


def _log_probability_of_upset(votes: IntArray, sigma: float, discrete: bool) -> FloatArray:
    """Return log q: a union bound over the other classes (Proposition 7), at most 1 - 1/K."""
    if votes.size == 0:
        return np.zeros(0)
    top = votes.argmax(axis=1)
    rows = np.arange(len(votes))
    gaps = votes[rows, top, np.newaxis] - votes
    every_gap = np.arange(gaps.max() + 1.0) - (0.5 if discrete else 0.0)
    table = log_ndtr(every_gap / (-sigma * math.sqrt(2.0)))
    if discrete:
        table[0] = 0.0  # at a tie the formula would be a little too small
    log_lost: FloatArray = table[gaps]
    log_lost[rows, top] = -np.inf
    largest = log_lost.max(axis=1)
    log_lost -= largest[:, np.newaxis]
    np.maximum(log_lost, -700.0, out=log_lost)  # where exp underflows it is slow
    log_q: FloatArray = np.log(np.exp(log_lost, out=log_lost).sum(axis=1)) + largest
    return np.minimum(log_q, math.log1p(-1.0 / votes.shape[1]))
