"""Networks by noisy descent on a loss plus Renyi information, and ascent on its dual.

The objective (Lowy, Gupta and Razaviyayn 2023, section 3)
----------------------------------------------------------
Let ``F`` be a record's predicted probabilities, ``g`` its group, and P the shares of the groups,
*known to everybody*. The exponential Renyi mutual information of decision and group,

    R = sum over z, k of p(z, k)^2 / (p(z) p(k)) - 1      (the chi-square of their table over n),

depends on all records at once. With multipliers W (n_groups, n_classes) it is a maximum of a mean:

    R = max over W of  mean over records of  psi,
    psi = - sum_k F[k] |W[:, k]|^2 + 2 sum_k F[k] W[g, k] / sqrt(P[g]) - 1 = F . v - 1,
    v[k] = 2 W[g, k] / sqrt(P[g]) - |W[:, k]|^2,

reached at ``W[z, k] = p(z | k) / sqrt(P[z])``. Training seeks min over weights, max over W of
``mean (loss + strength * psi)`` by steps in both on one Poisson sample. For equalized odds there is
one W, and one P, for each true label ("stratum"), and a record touches that of its own label.

One step releases one vector per record, clipped as a whole
------------------------------------------------------------
    weights      (F - y + strength * F * (v - v . F)) x'      an outer product, of norm |.| |x|,
                                                              in a network propagated back
    multipliers  2 F[k] (1[z = g] / sqrt(P[g]) - W[z, k])     in the stratum of the record

The first is scaled to norm at most ``C sqrt(1 - share^2)`` and the second, in units of ``reach``,
to at most ``C share``; so the record's whole vector has norm at most C = ``clip_norm``, and both
sums are one Gaussian release of one mechanism. Two mechanisms on the same sample, with noise of
their own, would compose to the same cost: the share is what divides it. One scale for both parts
would be no cheaper, and would let a record's loss decide how much its group counts in W. The bound
holds for every record whatever its features; dividing by the batch size first and comparing with C
after, as a bound on the *mean*, would let a record through that is as many times too long.

``reach`` is the longest multiplier part at independence, ``2 sqrt(1 / min P - 1)``. Where no
decision tells of the group, ``W[z, k] = sqrt(P[z])``: training starts there. Since
``sum_z p(z | k)^2 / P[z]`` is at most ``1 / min P``, the maximum lies in the ball of radius
``sqrt(n_classes / min P)`` in each stratum, onto which every W is projected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand import _checks
from evenhand.learners.dpsgd import DPSGDModel, NoisyNetwork, descend
from evenhand.learners.gradients import TINY, PerRecordGradients
from evenhand.typing import Array, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class FERMI(NoisyNetwork):
    """Train by noisy gradient descent and ascent on Poisson samples; binary and multinomial."""

    strength: float = 1.0
    """Weight of the Renyi information in the objective (lambda in the paper). At least 0."""
    share: float = 0.25
    """Part of ``clip_norm`` for the multipliers, in (0, 1)."""
    multiplier_rate: float = 0.03
    """Of W, which rises on ``psi`` itself. In (0, 1)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.non_negative("strength", self.strength)
        _checks.open_unit("share", self.share)
        hint = "The mean of psi bends by at most 2, so W swings without end from a rate of 1 on."
        _checks.open_unit("multiplier_rate", self.multiplier_rate, hint)

    def n_released(self, network: PerRecordGradients, shares: FloatArray) -> int:
        """Length of the vector that a step releases; ``shares`` as for ``fit``."""
        return len(network.start) + shares.size * network.n_classes

    def fit(
        self,
        network: PerRecordGradients,
        X: Array,
        y: IntArray,
        groups: IntArray,
        *,
        shares: FloatArray,
        **steps: Any,
    ) -> DPSGDModel:
        """Train a network on ``X`` (n, ...), ``y`` (n,), ``groups`` (n,).

        Parameters
        ----------
        shares : array, shape (1, n_groups) or (n_classes, n_groups)
            Shares of the groups, all above 0: of everybody, or given each true label. Known to
            everybody; computing them from the private rows here would be a release of its own.
        **steps
            ``n_steps``, ``batches``, ``noise``, of n_released numbers a step, ``batch_size`` and
            ``progress``; see ``learners.dpsgd.descend``.

        Returns
        -------
        DPSGDModel
            Whose multipliers, (n_strata, n_groups, n_classes), are where W ended.
        """
        state = FERMIState.start(self, network, shares)
        mean = descend(state, X, y, groups, averaged=self.averaged, **steps)
        return DPSGDModel(network=network.trained(mean), multipliers=state.W)


@dataclass(kw_only=True, eq=False)
class FERMIState:
    """What is known to everybody between two steps."""

    learner: FERMI
    network: PerRecordGradients
    weights: FloatArray  # (n_weights,): all layers, one after another
    W: FloatArray  # (n_strata, n_groups, n_classes)
    shares: FloatArray  # (n_strata, n_groups)
    reach: float
    radius: FloatArray  # (n_strata,)

    @classmethod
    def start(cls, learner: FERMI, network: PerRecordGradients, shares: FloatArray) -> FERMIState:
        """Return the state before the first step: the network's first weights, and independence."""
        n_classes = network.n_classes
        known = np.asarray(shares, dtype=np.float64)
        if known.ndim != 2 or len(known) not in (1, n_classes) or not (known > 0).all():
            raise ValueError(
                f"shares must be above 0, one row for everybody or one for each of {n_classes} "
                f"labels, got {known.tolist()}. A group without a share cannot be compared."
            )
        rarest = known.min(axis=1)
        return cls(
            learner=learner,
            network=network,
            weights=network.start,
            W=np.repeat(np.sqrt(known)[:, :, None], n_classes, axis=2),
            shares=known,
            # A single group has no reach; any unit will do.
            reach=float(2.0 * np.sqrt(max(1.0 / rarest.min() - 1.0, TINY))),
            radius=np.sqrt(n_classes / rarest),
        )

    def clipped_sum(self, X: Array, y: IntArray, groups: IntArray | None) -> FloatArray:
        """Sum of the records' vectors, each of norm at most ``clip_norm``; shape (n_released,)."""
        assert groups is not None
        learner = self.learner
        strata = y if len(self.W) > 1 else np.zeros_like(y)
        room = learner.clip_norm * np.sqrt(1.0 - learner.share**2)
        v = self._information(strata, groups) if learner.strength > 0 else None
        total, F = self.network.clipped_sum(self.weights, X, y, v, room)
        risen = self._ascent(F, strata, groups)
        norm = np.sqrt(np.einsum("izk,izk->i", risen, risen))
        risen *= np.minimum(1.0, learner.share / np.maximum(norm, TINY))[:, None, None]
        table = [risen[strata == s].sum(axis=0) for s in range(len(self.W))]
        return np.concatenate([total, learner.clip_norm * np.ravel(table)])

    def update(self, mean: FloatArray, t: int) -> None:
        """Take a step along the noisy mean, and project W; reads nothing private."""
        learner, k = self.learner, self.weights.size
        self.weights = self.weights - learner.learning_rate * mean[:k]
        # Back from shares of the clip norm into W's own units.
        rise = mean[k:].reshape(self.W.shape) * (self.reach / (learner.clip_norm * learner.share))
        W = self.W + learner.multiplier_rate * rise
        length = np.sqrt(np.einsum("szk,szk->s", W, W))
        self.W = W * np.minimum(1.0, self.radius / np.maximum(length, TINY))[:, None, None]

    def _information(self, strata: IntArray, groups: IntArray) -> FloatArray:
        """Return strength * v of each record (n, n_classes): strength * psi is F . that, and -1."""
        own = self.W[strata, groups] / np.sqrt(self.shares[strata, groups])[:, None]
        v: FloatArray = 2.0 * own - np.einsum("szk,szk->sk", self.W, self.W)[strata]
        return self.learner.strength * v

    def _ascent(self, F: FloatArray, strata: IntArray, groups: IntArray) -> FloatArray:
        """Gradient of psi in W for each record, in shares of the clip norm, not yet clipped."""
        W, shares = self.W[strata], self.shares[strata]
        own = np.zeros_like(shares)
        rows = np.arange(len(groups))
        own[rows, groups] = 1.0 / np.sqrt(shares[rows, groups])
        gradient: FloatArray = 2.0 * F[:, None, :] * (own[:, :, None] - W)
        return gradient * (self.learner.share / self.reach)
