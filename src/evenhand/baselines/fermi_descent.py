"""Logistic regression by noisy descent on a loss plus Renyi information, and ascent on its dual.

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
    weights      (F - y + strength * F * (v - v . F)) x'      an outer product, of norm |.| |x|
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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.learners.learner import Progress
from evenhand.typing import FloatArray, IntArray

TINY: Final = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class FERMIModel:
    """A trained model.

    Parameters
    ----------
    weights : array, shape (d, n_scores)
        One score for two classes (class 1 against class 0), else one per class.
    bias : array, shape (n_scores,)
    multipliers : array, shape (n_strata, n_groups, n_classes)
        Where W ended. Public, as the model is.
    """

    weights: FloatArray
    bias: FloatArray
    multipliers: FloatArray


@dataclass(frozen=True, kw_only=True)
class FERMI:
    """Train by noisy gradient descent and ascent on Poisson samples; binary and multinomial.

    Parameters
    ----------
    strength : float
        Weight of the Renyi information in the objective (lambda in the paper). At least 0.
    clip_norm : float
        Largest norm of what one record adds to a step, both parts together. Greater than 0.
    share : float
        Part of it for the multipliers, in (0, 1).
    learning_rate : float
        Of the weights. Greater than 0.
    multiplier_rate : float
        Of W, which rises on ``psi`` itself. In (0, 1).
    averaged : float
        Part of the steps, at the end, whose weights are averaged, in (0, 1].
    """

    strength: float = 1.0
    clip_norm: float = 1.0
    share: float = 0.25
    learning_rate: float = 4.0
    multiplier_rate: float = 0.03
    averaged: float = 0.5

    def __post_init__(self) -> None:
        _checks.non_negative("strength", self.strength)
        _checks.positive("clip_norm", self.clip_norm)
        _checks.open_unit("share", self.share)
        _checks.positive("learning_rate", self.learning_rate)
        hint = "The mean of psi bends by at most 2, so W swings without end from a rate of 1 on."
        _checks.open_unit("multiplier_rate", self.multiplier_rate, hint)
        if not 0 < self.averaged <= 1:
            raise ValueError(f"averaged must lie in (0, 1], got averaged={self.averaged!r}.")

    def n_released(self, n_features: int, n_classes: int, shares: FloatArray) -> int:
        """Length of the vector that a step releases; ``shares`` as for ``fit``."""
        n_scores = 1 if n_classes == 2 else n_classes
        return (n_features + 1) * n_scores + shares.size * n_classes

    def fit(
        self,
        X: FloatArray,
        y: IntArray,
        groups: IntArray,
        *,
        n_classes: int,
        shares: FloatArray,
        batches: Iterable[IntArray],
        noise: FloatArray,
        batch_size: float,
        progress: Progress | None = None,
    ) -> FERMIModel:
        """Train on ``X`` (n, d), ``y`` (n,), ``groups`` (n,).

        Parameters
        ----------
        shares : array, shape (1, n_groups) or (n_classes, n_groups)
            Shares of the groups, all above 0: of everybody, or given each true label. Known to
            everybody; computing them from the private rows here would be a release of its own.
        batches : iterable of arrays
            Rows of each step's sample.
        noise : array, shape (n_steps, n_released)
            What is added to each step's sum.
        batch_size : float
            Expected size of a sample: public, unlike the size that came out.
        """
        state = FERMIState.start(self, X.shape[1], n_classes, shares)
        n_steps = len(noise)
        first = n_steps - max(1, round(self.averaged * n_steps))
        mean = np.zeros_like(state.weights)
        for t, rows in zip(range(n_steps), batches, strict=True):
            total = state.clipped_sum(X[rows], y[rows], groups[rows]) + noise[t]
            state.update(total / batch_size)
            if t >= first:
                mean += (state.weights - mean) / (t - first + 1)
            if progress is not None:
                progress(t + 1, n_steps)
        return FERMIModel(weights=mean[:-1], bias=mean[-1], multipliers=state.W)


@dataclass(kw_only=True, eq=False)
class FERMIState:
    """What is known to everybody between two steps."""

    learner: FERMI
    weights: FloatArray  # (d + 1, n_scores), the bias last
    W: FloatArray  # (n_strata, n_groups, n_classes)
    shares: FloatArray  # (n_strata, n_groups)
    reach: float
    radius: FloatArray  # (n_strata,)

    @classmethod
    def start(cls, learner: FERMI, d: int, n_classes: int, shares: FloatArray) -> FERMIState:
        """Return the state before the first step: zeros, and independence."""
        known = np.asarray(shares, dtype=np.float64)
        if known.ndim != 2 or len(known) not in (1, n_classes) or not (known > 0).all():
            raise ValueError(
                f"shares must be above 0, one row for everybody or one for each of {n_classes} "
                f"labels, got {known.tolist()}. A group without a share cannot be compared."
            )
        rarest = known.min(axis=1)
        return cls(
            learner=learner,
            weights=np.zeros((d + 1, 1 if n_classes == 2 else n_classes)),
            W=np.repeat(np.sqrt(known)[:, :, None], n_classes, axis=2),
            shares=known,
            # A single group has no reach; any unit will do.
            reach=float(2.0 * np.sqrt(max(1.0 / rarest.min() - 1.0, TINY))),
            radius=np.sqrt(n_classes / rarest),
        )

    def clipped_sum(self, X: FloatArray, y: IntArray, groups: IntArray) -> FloatArray:
        """Sum of the records' vectors, each of norm at most ``clip_norm``; shape (n_released,)."""
        learner = self.learner
        F = probabilities(X @ self.weights[:-1] + self.weights[-1])
        strata = y if len(self.W) > 1 else np.zeros_like(y)
        risen = self._ascent(F, strata, groups)
        norm = np.sqrt(np.einsum("izk,izk->i", risen, risen))
        risen *= np.minimum(1.0, learner.share / np.maximum(norm, TINY))[:, None, None]
        table = [risen[strata == s].sum(axis=0) for s in range(len(self.W))]
        gradient = self._descent(F, y, strata, groups)
        norm = np.sqrt(
            np.einsum("ij,ij->i", gradient, gradient) * (np.einsum("ij,ij->i", X, X) + 1.0)
        )
        room = learner.clip_norm * np.sqrt(1.0 - learner.share**2)
        gradient *= np.minimum(1.0, room / np.maximum(norm, TINY))[:, None]
        return np.concatenate(
            [(X.T @ gradient).ravel(), gradient.sum(axis=0), learner.clip_norm * np.ravel(table)]
        )

    def update(self, mean: FloatArray) -> None:
        """Take a step along the noisy mean, and project W; reads nothing private."""
        learner, k = self.learner, self.weights.size
        self.weights = self.weights - learner.learning_rate * mean[:k].reshape(self.weights.shape)
        # Back from shares of the clip norm into W's own units.
        rise = mean[k:].reshape(self.W.shape) * (self.reach / (learner.clip_norm * learner.share))
        W = self.W + learner.multiplier_rate * rise
        length = np.sqrt(np.einsum("szk,szk->s", W, W))
        self.W = W * np.minimum(1.0, self.radius / np.maximum(length, TINY))[:, None, None]

    def _ascent(self, F: FloatArray, strata: IntArray, groups: IntArray) -> FloatArray:
        """Gradient of psi in W for each record, in shares of the clip norm, not yet clipped."""
        W, shares = self.W[strata], self.shares[strata]
        own = np.zeros_like(shares)
        rows = np.arange(len(groups))
        own[rows, groups] = 1.0 / np.sqrt(shares[rows, groups])
        gradient: FloatArray = 2.0 * F[:, None, :] * (own[:, :, None] - W)
        return gradient * (self.learner.share / self.reach)

    def _descent(
        self, F: FloatArray, y: IntArray, strata: IntArray, groups: IntArray
    ) -> FloatArray:
        """Gradient of loss + strength * psi in the scores, for each record."""
        out = F.copy()
        out[np.arange(len(y)), y] -= 1.0
        if self.learner.strength > 0:
            own = self.W[strata, groups] / np.sqrt(self.shares[strata, groups])[:, None]
            v = 2.0 * own - np.einsum("szk,szk->sk", self.W, self.W)[strata]
            out += self.learner.strength * F * (v - np.einsum("ij,ij->i", v, F)[:, None])
        return out[:, 1:] if self.weights.shape[1] == 1 else out


def probabilities(scores: FloatArray) -> FloatArray:
    """Probabilities (n, n_classes) from scores (n, n_scores); one score is class 1 against 0."""
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores[:, 0]])
    out: FloatArray = np.exp(scores - scores.max(axis=1, keepdims=True))
    out /= out.sum(axis=1, keepdims=True)
    return out
