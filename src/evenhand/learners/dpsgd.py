"""Logistic regression and small networks by DP-SGD, with an optional pull of groups together.

One step releases one vector per record, clipped as a whole
------------------------------------------------------------
Let ``x`` be an encoded record with a 1 appended, ``y`` its class as a unit vector, ``g`` its group
as a unit vector, and ``p`` the model's probabilities. The loss part of its gradient is the outer
product ``(p - y) x'``. For the gap between groups let ``h`` be the predicted class as a unit vector
and

    cov[z, k] = P(z) (P(h = k | z) - P(h = k)) = P(z) (1 - P(z)) Gamma(z, k),

with ``Gamma`` the gap of group z to the rest. A penalty ``|cov|`` depends on all records, so its
gradient is no sum of terms of one record each. Its Lagrangian form is: for multipliers ``W[z, k]``

    sum over z, k of W[z, k] cov[z, k] = mean over records of  v . p,   v = W[g] - sum_z P(z) W[z],

(with ``p`` for ``h``, whose derivative is 0 everywhere), and the gradient of one record's term is
``p * (v - v . p)  x'``. So for W and P(z) that are *known to everybody* each record adds

    gradient    (p - y + p * (v - v . p)) x'     an outer product  r x', of norm  |r| |x|
    statistic   s * g h'                         one entry s in a table of groups by classes

and both together are one vector. The gradient is scaled to norm at most ``sqrt(C^2 - s^2)``, so the
whole vector has norm at most C = ``clip_norm``; the statistic is not scaled, for a scale that
depends on the record would bias the rates. In a network every layer's gradient is such an outer
product, of the layer's input and of what is propagated back to it, so the squared norm is the sum
over layers of ``|back|^2 |input|^2`` (ghost clipping; Goodfellow 2015): no gradient of a single
record is ever written down. The sum over a Poisson sample plus Gaussian noise is all that leaves a
step; adding or removing a record moves it by at most C. The next step's P(z), rates and W
are functions of the noisy tables of the steps before, so they are known to everybody
(post-processing), and a step may depend on them (adaptive composition, which the privacy loss
distribution covers).

W rises where the noisy gap exceeds the margin and falls to 0 where it does not (a Lagrangian dual
with hard rates for the multipliers and probabilities for the gradient: Cotter et al. 2019). With a
margin of 0 and ``|W| <= penalty`` it adds ``penalty * sum |cov|`` to the loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.learners.learner import Progress
from evenhand.typing import FloatArray, IntArray

TINY: Final = 1e-12


@dataclass(frozen=True, kw_only=True)
class GroupPull:
    """How training pulls the groups' rates together.

    Parameters
    ----------
    margin : float
        Gaps up to it are left alone. In [0, 1].
    reference : {"rest", "pairwise", "overall"}
        What a group's rate is compared with, as in ``fairness.DemographicParity``. Between three
        or more groups ``"pairwise"`` is kept by half the margin to the overall rate.
    strength : float
        Largest size of a multiplier. Greater than 0.
    step : float
        How fast multipliers rise, per step and unit of gap.
    share : float
        Part of the clip norm that the statistic of one record takes, in (0, 1).
    memory : int
        Steps over which the noisy tables are averaged.
    """

    margin: float = 0.0
    reference: str = "rest"
    strength: float = 1.0
    step: float = 0.05
    share: float = 0.25
    memory: int = 50

    def __post_init__(self) -> None:
        _checks.closed_unit("margin", self.margin)
        _checks.one_of("reference", self.reference, ("rest", "pairwise", "overall"))
        _checks.positive("strength", self.strength)
        _checks.positive("step", self.step)
        _checks.open_unit("share", self.share)
        _checks.at_least("memory", self.memory, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class DPSGDModel:
    """Weights of a trained model.

    Parameters
    ----------
    layers : tuple of (weights, bias), shapes (n_in, n_out) and (n_out,)
        ReLU between them; one layer is logistic regression. The last has one score for two classes
        (class 1 against class 0), else one per class.
    multipliers : array, shape (n_groups, n_classes)
        Where the pull between groups ended; empty without it. Public, as the model is.
    """

    layers: tuple[tuple[FloatArray, FloatArray], ...]
    multipliers: FloatArray


@dataclass(frozen=True, kw_only=True)
class DPSGD:
    """Train by noisy gradients of Poisson samples; binary and multinomial.

    Parameters
    ----------
    hidden : tuple of int
        Widths of hidden layers; none is logistic regression.
    clip_norm : float
        Largest norm of what one record adds to a step. Greater than 0.
    learning_rate : float
        Greater than 0.
    averaged : float
        Part of the steps, at the end, whose weights are averaged, in (0, 1].
    pull : GroupPull, optional
        Pull the rates of groups together.

    Notes
    -----
    The fit is a function of the records, the samples and the noise; ``rng`` seeds the first weights
    of a network, which nothing private decides.
    """

    hidden: tuple[int, ...] = ()
    clip_norm: float = 1.0
    learning_rate: float = 4.0
    averaged: float = 0.5
    pull: GroupPull | None = None

    def __post_init__(self) -> None:
        for width in self.hidden:
            _checks.at_least("hidden", width, 1)
        _checks.positive("clip_norm", self.clip_norm)
        _checks.positive("learning_rate", self.learning_rate)
        if not 0 < self.averaged <= 1:
            raise ValueError(f"averaged must lie in (0, 1], got averaged={self.averaged!r}.")

    def shapes(self, n_features: int, n_classes: int) -> list[tuple[int, int]]:
        """Shapes of the layers, the bias as a further row."""
        widths = (n_features, *self.hidden, 1 if n_classes == 2 else n_classes)
        return [(n_in + 1, n_out) for n_in, n_out in pairwise(widths)]

    def n_released(self, n_features: int, n_classes: int, n_groups: int = 0) -> int:
        """Length of the vector that a step releases."""
        table = n_groups * n_classes if self.pull is not None else 0
        return sum(a * b for a, b in self.shapes(n_features, n_classes)) + table

    def fit(
        self,
        X: FloatArray,
        y: IntArray,
        *,
        n_classes: int,
        batches: Iterable[IntArray],
        noise: FloatArray,
        batch_size: float,
        groups: IntArray | None = None,
        n_groups: int = 0,
        rng: np.random.Generator,
        progress: Progress | None = None,
    ) -> DPSGDModel:
        """Train on ``X`` (n, d), ``y`` (n,).

        Parameters
        ----------
        batches : iterable of arrays
            Rows of each step's sample.
        noise : array, shape (n_steps, n_released)
            What is added to each step's sum.
        batch_size : float
            Expected size of a sample: public, unlike the size that came out.
        groups : array of int, shape (n,), optional
            Needed with ``pull``.
        """
        if self.pull is not None and groups is None:
            raise ValueError("The pull between groups needs the group of every record.")
        state = State.start(self, X.shape[1], n_classes, n_groups, rng)
        n_steps = len(noise)
        first = n_steps - max(1, round(self.averaged * n_steps))
        mean = np.zeros_like(state.weights)
        for t, rows in zip(range(n_steps), batches, strict=True):
            own = None if groups is None or self.pull is None else groups[rows]
            total = state.clipped_sum(X[rows], y[rows], own) + noise[t]
            state.update(total / batch_size, t)
            if t >= first:
                mean += (state.weights - mean) / (t - first + 1)
            if progress is not None:
                progress(t + 1, n_steps)
        layers = tuple((layer[:-1], layer[-1]) for layer in state.layers(mean))
        return DPSGDModel(layers=layers, multipliers=state.W)


@dataclass(kw_only=True, eq=False)
class State:
    """What is known to everybody between two steps."""

    learner: DPSGD
    shapes: list[tuple[int, int]]
    weights: FloatArray  # (n_weights,): all layers, one after another
    n_classes: int
    W: FloatArray  # (n_groups, n_classes), or (0, n_classes) without a pull
    shares: FloatArray  # (n_groups,): noisy P(z)
    sums: FloatArray  # (n_groups, n_classes): averaged noisy tables

    @classmethod
    def start(
        cls, learner: DPSGD, d: int, n_classes: int, n_groups: int, rng: np.random.Generator
    ) -> State:
        """Return the state before the first step: zeros, and random weights in hidden layers."""
        shapes = learner.shapes(d, n_classes)
        first = [np.zeros(shape) for shape in shapes]
        for layer in first[:-1]:  # He et al. 2015
            layer[:-1] = rng.normal(0.0, np.sqrt(2.0 / (len(layer) - 1)), layer[:-1].shape)
        some = n_groups if learner.pull is not None else 0
        return cls(
            learner=learner,
            shapes=shapes,
            weights=np.concatenate([layer.ravel() for layer in first]),
            n_classes=n_classes,
            W=np.zeros((some, n_classes)),
            shares=np.full(some, 1.0 / max(1, some)),
            sums=np.zeros((some, n_classes)),
        )

    def layers(self, weights: FloatArray) -> list[FloatArray]:
        """View a flat vector as the layers, each (n_in + 1, n_out)."""
        out, start = [], 0
        for a, b in self.shapes:
            out.append(weights[start : start + a * b].reshape(a, b))
            start += a * b
        return out

    @property
    def unit(self) -> float:
        """What a record adds to its cell of the table."""
        pull = self.learner.pull
        return 0.0 if pull is None else pull.share * self.learner.clip_norm

    def clipped_sum(self, X: FloatArray, y: IntArray, groups: IntArray | None) -> FloatArray:
        """Sum of the records' vectors, each of norm at most ``clip_norm``; shape (n_released,)."""
        layers = self.layers(self.weights)
        inputs = [X]
        for layer in layers[:-1]:
            inputs.append(np.maximum(inputs[-1] @ layer[:-1] + layer[-1], 0.0))
        score = inputs[-1] @ layers[-1][:-1] + layers[-1][-1]
        pushed = None if groups is None else (self.W - self.shares @ self.W)[groups]
        back, decided = _residual(score, y, pushed)
        backs = [back]
        for layer, seen in zip(layers[:0:-1], inputs[:0:-1], strict=True):
            backs.append((backs[-1] @ layer[:-1].T) * (seen > 0))
        backs.reverse()
        # Of every layer's input with its 1, times what came back to the layer.
        square = sum(_rowwise(b) * (_rowwise(a) + 1.0) for a, b in zip(inputs, backs, strict=True))
        room = np.sqrt(self.learner.clip_norm**2 - self.unit**2)
        scale = np.minimum(1.0, room / np.maximum(np.sqrt(square), TINY))[:, None]
        parts = []
        for a, b in zip(inputs, backs, strict=True):
            b = b * scale
            parts += [(a.T @ b).ravel(), b.sum(axis=0)]
        if groups is not None:
            cells = np.bincount(groups * self.n_classes + decided, minlength=self.W.size)
            parts.append(self.unit * cells)
        return np.concatenate(parts)

    def update(self, mean: FloatArray, t: int) -> None:
        """Take a step along the noisy mean; reads nothing private."""
        k = len(self.weights)
        self.weights = self.weights - self.learner.learning_rate * mean[:k]
        pull = self.learner.pull
        if pull is None:
            return
        weight = max(1.0 / (t + 1), 1.0 / pull.memory)
        self.sums += weight * (mean[k:].reshape(self.sums.shape) - self.sums)
        # Noise can push a cell below 0.
        table = np.maximum(self.sums, TINY)
        members = table.sum(axis=1)
        self.shares = members / members.sum()
        gap = _gap(table / members[:, None], self.shares, pull)
        # Above the margin the multiplier moves with the gap; within it, back towards 0.
        over = np.sign(gap) * np.maximum(np.abs(gap) - pull.margin, 0.0)
        slack = np.maximum(pull.margin - np.abs(gap), 0.0)
        W = self.W + pull.step * over
        W = np.sign(W) * np.maximum(np.abs(W) - pull.step * slack, 0.0)
        self.W = np.clip(W, -pull.strength, pull.strength)


def _rowwise(a: FloatArray) -> FloatArray:
    """Squared norm of each row."""
    out: FloatArray = np.einsum("ij,ij->i", a, a)
    return out


def _gap(rates: FloatArray, shares: FloatArray, pull: GroupPull) -> FloatArray:
    """Signed gaps (n_groups, n_classes) to be held within ``margin``."""
    to_overall = rates - shares @ rates
    if pull.reference == "overall":
        return to_overall
    if pull.reference == "pairwise" and len(shares) > 2:
        return 2.0 * to_overall
    rest: FloatArray = to_overall / np.maximum(1.0 - shares, TINY)[:, None]
    return rest


def _residual(
    score: FloatArray, y: IntArray, pushed: FloatArray | None
) -> tuple[FloatArray, IntArray]:
    """Gradient in the scores (n, n_scores), and the predicted classes (n,)."""
    if score.shape[1] == 1:
        p = 1.0 / (1.0 + np.exp(-np.clip(score[:, 0], -40.0, 40.0)))
        r = p - y
        if pushed is not None:
            # p (v - v.p) of two classes, in the one score that they share.
            r += (pushed[:, 1] - pushed[:, 0]) * p * (1.0 - p)
        return r[:, None], (score[:, 0] > 0).astype(np.int64)
    p = np.exp(score - score.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    r = p.copy()
    r[np.arange(len(y)), y] -= 1.0
    if pushed is not None:
        r += p * (pushed - np.einsum("ij,ij->i", pushed, p)[:, None])
    return r, score.argmax(axis=1)
