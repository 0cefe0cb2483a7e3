"""Networks by DP-SGD, the smallest a logistic regression, with an optional pull of groups together.

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
depends on the record would bias the rates. A network's gradient is propagated back from the same
numbers in the scores (``learners.gradients``, in NumPy; ``learners.nets.per_record``, for any
module of PyTorch). The sum over a Poisson sample plus Gaussian noise is all that leaves a step;
adding or removing a record moves it by at most C. The next step's P(z), rates and W
are functions of the noisy tables of the steps before, so they are known to everybody
(post-processing), and a step may depend on them (adaptive composition, which the privacy loss
distribution covers).

W rises where the noisy gap exceeds the margin and falls to 0 where it does not (a Lagrangian dual
with hard rates for the multipliers and probabilities for the gradient: Cotter et al. 2019). With a
margin of 0 and ``|W| <= penalty`` it adds ``penalty * sum |cov|`` to the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from evenhand import _checks
from evenhand.learners.gradients import TINY, DenseGradients, PerRecordGradients
from evenhand.learners.learner import Progress
from evenhand.typing import Array, FloatArray, IntArray

USUAL_STEPS: Final = 1500
"""For which the rate of the multipliers is meant."""


@dataclass(frozen=True, kw_only=True)
class GroupPull:
    """How training pulls the groups' rates together."""

    margin: float = 0.0
    """Gaps up to it are left alone. In [0, 1]."""
    reference: str = "rest"
    """What a group's rate is compared with, as in ``fairness.DemographicParity``. Between three or
    more groups ``"pairwise"`` is kept by half the margin to the overall rate. One of "rest",
    "pairwise", "overall".
    """
    strength: float = 1.0
    """Largest size of a multiplier. Greater than 0."""
    step: float = 0.05
    """How fast multipliers rise, per step and unit of gap."""
    share: float = 0.25
    """Part of the clip norm that the statistic of one record takes, in (0, 1)."""
    memory: int = 50
    """Steps over which the noisy tables are averaged."""

    def __post_init__(self) -> None:
        _checks.closed_unit("margin", self.margin)
        _checks.one_of("reference", self.reference, ("rest", "pairwise", "overall"))
        _checks.positive("strength", self.strength)
        _checks.positive("step", self.step)
        _checks.open_unit("share", self.share)
        _checks.at_least("memory", self.memory, 1)

    def within(self, n_steps: int) -> GroupPull:
        """Return the pull whose multipliers move as far in fewer steps than 1,500."""
        memory = min(self.memory, max(10, n_steps // 10))
        return replace(self, step=self.step * max(1.0, USUAL_STEPS / n_steps), memory=memory)


@dataclass(frozen=True, kw_only=True, eq=False)
class DPSGDModel:
    """What training leaves."""

    network: Any
    """Tuple of (weights, bias), of shapes (n_in, n_out) and (n_out,), ReLU between them: one is
    logistic regression. The last has one score for two classes (class 1 against class 0), else one
    per class. Or a ``torch.nn.Module``.
    """
    multipliers: FloatArray
    """Where the pull between groups ended; empty without it. Public, as the model is. Shape
    (n_groups, n_classes).
    """
    table: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    """The noisy share of records of each group that was given each class, over the steps whose
    weights are averaged; empty without a pull. Public, as the model is. Shape (n_groups,
    n_classes).
    """


class Descent(Protocol):
    """What is known to everybody between two steps, and how a step is taken."""

    weights: FloatArray
    """All weights of the network, in one vector."""

    def clipped_sum(self, X: Array, y: IntArray, groups: IntArray | None) -> FloatArray:
        """Sum of the records' vectors, each of norm at most the clip norm."""

    def update(self, mean: FloatArray, t: int) -> None:
        """Take step ``t`` along the noisy mean; reads nothing private."""


def descend(
    state: Descent,
    X: Array,
    y: IntArray,
    groups: IntArray | None,
    *,
    n_steps: int,
    batches: Iterable[IntArray],
    noise: Iterable[FloatArray],
    batch_size: float,
    averaged: float,
    progress: Progress | None = None,
) -> FloatArray:
    """Take noisy steps; return the mean of the last weights.

    Parameters
    ----------
    batches : iterable of arrays
        Rows of each step's sample.
    noise : iterable of arrays
        What is added to each step's sum.
    batch_size : float
        Expected size of a sample: public, unlike the size that came out.
    averaged : float
        Part of the steps, at the end, whose weights are averaged.
    """
    first = n_steps - max(1, round(averaged * n_steps))
    mean = np.zeros_like(state.weights)
    for t, rows, drawn in zip(range(n_steps), batches, noise, strict=True):
        own = None if groups is None else groups[rows]
        total = state.clipped_sum(X[rows], y[rows], own) + drawn
        state.update(total / batch_size, t)
        if t >= first:
            mean += (state.weights - mean) / (t - first + 1)
        if progress is not None:
            progress(t + 1, n_steps)
    return mean


@dataclass(frozen=True, kw_only=True)
class NoisyNetwork:
    """What is trained by noisy steps: settings that DP-SGD and DP-FERMI share."""

    hidden: tuple[int, ...] = ()
    """Widths of hidden layers; none is logistic regression."""
    skip: bool = False
    """Whether the last layer reads the rows beside the last hidden layer."""
    architecture: Any = None
    """An ``Architecture`` or a ``torch.nn.Module``; see ``learners.nets.per_record``."""
    device: str = "cpu"
    """Where that is trained, as PyTorch names it."""
    clip_norm: float = 1.0
    """Largest norm of what one record adds to a step. Greater than 0."""
    learning_rate: float = 4.0
    """Greater than 0."""
    averaged: float = 0.5
    """Part of the steps, at the end, whose weights are averaged, in (0, 1]."""

    def __post_init__(self) -> None:
        _checks.each_at_least("hidden", self.hidden, 1)
        if self.hidden and self.architecture is not None:
            raise ValueError(
                f"hidden={self.hidden!r} and architecture={self.architecture!r} are two networks. "
                f"Leave one of them out; Dense(hidden=...) is an architecture."
            )
        _checks.positive("clip_norm", self.clip_norm)
        _checks.positive("learning_rate", self.learning_rate)
        if not 0 < self.averaged <= 1:
            raise ValueError(f"averaged must lie in (0, 1], got averaged={self.averaged!r}.")

    def network(
        self,
        shape: tuple[int, ...],
        n_classes: int,
        rng: np.random.Generator,
        words: Callable[[int], IntArray] | None = None,
    ) -> PerRecordGradients:
        """Return the network for rows of a shape.

        Parameters
        ----------
        shape : tuple of int
            Of one row: ``(n_features,)``, or ``(channels, height, width)`` of a picture.
        rng : Generator
            Of the first weights.
        words : function of a number, optional
            Returns so many whole numbers, uniform on [0, 2**63): what a network with dropout draws
            for each record. Where noise protects nobody may know them; see ``per_record``.
        """
        if self.architecture is not None:
            # Here, not above: PyTorch is slow to import and only these networks need it.
            from evenhand.learners.nets.per_record import ModuleGradients

            return ModuleGradients.of(
                self.architecture, shape, n_classes, rng, words, device=self.device
            )
        if len(shape) != 1:
            raise ValueError(
                f"The rows are pictures of shape {shape}, and hidden={self.hidden!r} makes layers "
                f"that read rows of numbers. Pass architecture=SmallResNet(), or another network "
                f"of pictures, of evenhand.learners.nets.architectures; or train on features: "
                f"evenhand.datasets.features.extract(pictures, DlibFace.load())."
            )
        return DenseGradients.of(shape[0], self.hidden, n_classes, rng, skip=self.skip)


@dataclass(frozen=True, kw_only=True)
class DPSGD(NoisyNetwork):
    """Train by noisy gradients of Poisson samples; binary and multinomial.

    Notes
    -----
    The fit is a function of the records, the samples and the noise.
    """

    pull: GroupPull | None = None
    """Pull the rates of groups together."""

    def n_released(self, network: PerRecordGradients, n_groups: int = 0) -> int:
        """Length of the vector that a step releases."""
        table = n_groups * network.n_classes if self.pull is not None else 0
        return len(network.start) + table

    def fit(
        self,
        network: PerRecordGradients,
        X: Array,
        y: IntArray,
        *,
        groups: IntArray | None = None,
        n_groups: int = 0,
        **steps: Any,
    ) -> DPSGDModel:
        """Train a network on ``X`` (n, ...), ``y`` (n,).

        Parameters
        ----------
        groups : array of int, shape (n,), optional
            Needed with ``pull``.
        **steps
            ``n_steps``, ``batches``, ``noise``, of n_released numbers a step, ``batch_size`` and
            ``progress``; see ``descend``.
        """
        if self.pull is not None and groups is None:
            raise ValueError("The pull between groups needs the group of every record.")
        state = State.start(self, network, n_groups)
        read = None if self.pull is None else groups
        state.first = steps["n_steps"] - max(1, round(self.averaged * steps["n_steps"]))
        mean = descend(state, X, y, read, averaged=self.averaged, **steps)
        return DPSGDModel(network=network.trained(mean), multipliers=state.W, table=state.table)


@dataclass(kw_only=True, eq=False)
class State:
    """What is known to everybody between two steps."""

    learner: DPSGD
    network: PerRecordGradients
    weights: FloatArray  # (n_weights,): all layers, one after another
    W: FloatArray  # (n_groups, n_classes), or (0, n_classes) without a pull
    shares: FloatArray  # (n_groups,): noisy P(z)
    sums: FloatArray  # (n_groups, n_classes): averaged noisy tables
    table: FloatArray  # (n_groups, n_classes): their mean since step ``first``, in shares
    first: int = 0

    @classmethod
    def start(cls, learner: DPSGD, network: PerRecordGradients, n_groups: int) -> State:
        """Return the state before the first step."""
        some = n_groups if learner.pull is not None else 0
        return cls(
            learner=learner,
            network=network,
            weights=network.start,
            W=np.zeros((some, network.n_classes)),
            shares=np.full(some, 1.0 / max(1, some)),
            sums=np.zeros((some, network.n_classes)),
            table=np.zeros((some, network.n_classes)),
        )

    @property
    def unit(self) -> float:
        """What a record adds to its cell of the table."""
        pull = self.learner.pull
        return 0.0 if pull is None else pull.share * self.learner.clip_norm

    def clipped_sum(self, X: Array, y: IntArray, groups: IntArray | None) -> FloatArray:
        """Sum of the records' vectors, each of norm at most ``clip_norm``; shape (n_released,)."""
        v = None if groups is None else (self.W - self.shares @ self.W)[groups]
        room = np.sqrt(self.learner.clip_norm**2 - self.unit**2)
        total, p = self.network.clipped_sum(self.weights, X, y, v, room)
        if groups is None:
            return total
        cells = groups * self.network.n_classes + p.argmax(axis=1)
        table = self.unit * np.bincount(cells, minlength=self.W.size)
        return np.concatenate([total, table])

    def update(self, mean: FloatArray, t: int) -> None:
        """Take a step along the noisy mean; reads nothing private."""
        k = len(self.weights)
        self.weights = self.weights - self.learner.learning_rate * mean[:k]
        pull = self.learner.pull
        if pull is None:
            return
        if t >= self.first:
            seen = mean[k:].reshape(self.table.shape) / self.unit
            self.table += (seen - self.table) / (t - self.first + 1)
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


def _gap(rates: FloatArray, shares: FloatArray, pull: GroupPull) -> FloatArray:
    """Signed gaps (n_groups, n_classes) to be held within ``margin``."""
    to_overall = rates - shares @ rates
    if pull.reference == "overall":
        return to_overall
    if pull.reference == "pairwise" and len(shares) > 2:
        return 2.0 * to_overall
    rest: FloatArray = to_overall / np.maximum(1.0 - shares, TINY)[:, None]
    return rest
