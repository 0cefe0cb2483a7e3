"""PF-LD: a Lagrangian dual whose steps on weights and multipliers are noised where groups enter.

What is private, and what a step reads of it
--------------------------------------------
Features and labels are public; the group of each person is not. Let ``p`` be a model's
probabilities, h the vector that a notion compares: the probability of each class (one number for
two classes), or of a wrong decision; s the stratum of a row (its true class, or one for everybody),
A its group, ``n[s, a]`` *known* sizes of groups (noisy ones, released once). The Lagrangian is

    mean loss + sum over s, a of L[s, a] . (mean of h in (s, a) - mean of h in s)
    = sum over rows of  loss / n + (w[s, A] - w0[s]) . h,      w = L / n,   w0[s] = sum_a L / n[s].

For multipliers L known to everybody the loss, and the part with w0, read no group: their gradients
are public and take neither clipping nor noise. What is private is

    G = sum over rows of  c * grad (w[s, A] . h),      c = min(1, C / max over a, a' of |d(a, a')|),
    d(a, a') = grad ((w[s, a] - w[s, a']) . h),

with C = ``clip_norm`` times the largest difference of w between two groups. The factor c is made of
features, weights and multipliers: it is the same whatever the row's own group is, so that it is
public and G stays linear in the groups. If one person's group changes from a to a', one term of G
changes, by ``c d(a', a)``, whose norm is at most C by the choice of c: **the sensitivity of a
primal step is C**. (Clipping the gradient of the whole Lagrangian instead, which depends on the
group, would give 2C, and clip the loss for no reason.)

A dual step reads the table ``N[s, a] = sum of hits in (s, a)`` of hard decisions, one hit or none a
row. If a row's group changes, its hit moves from one cell to another: **L2 sensitivity sqrt(2)**.
Sums of N over groups are public, so noise on them is taken away again by projection, which halves
the variance for two groups: what noise on one cell of sensitivity 1 would give.

Why no sampling
---------------
DP-SGD takes each step from a secret sample and is charged less for it ("amplification by
subsampling"). Here that would be unsound for a minibatch which both parts of a step share: the
loss's gradient over the batch is public and unclipped, and it is released in the same sum, so with
noise in proportion to C alone it tells who is in the batch; and with that secret gone nothing is
amplified. (Exactly: the distributions to be told apart
are ``(1 - q) N(0) + q N(l + d1)`` and ``(1 - q) N(0) + q N(l + d2)``, with l of any length; as l
grows their divergence is that of ``N(d1)`` and ``N(d2)`` for the event that the row is in.) So
every step reads all rows. This loses nothing but time: noise that pays for T steps on all rows is,
against the sum, as small as that which pays for T steps on samples with amplification, and smaller
where there is little noise; and the cost is that of Gaussian releases, exactly. ``batches`` are for
PF-LD as printed (``evenhand.baselines.as_printed_pfld``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Final

import numpy as np

from evenhand import _checks
from evenhand.learners.gradients import DenseGradients, probabilities, rowwise
from evenhand.learners.learner import Progress
from evenhand.typing import FloatArray, IntArray

TABLE_SENSITIVITY: Final = 2.0**0.5
"""How far a table of people by group, or of their hits, moves when one group changes."""

TINY: Final = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class PFLDModel:
    """A trained model."""

    layers: tuple[tuple[FloatArray, FloatArray], ...]
    """ReLU between them; one layer is logistic regression. The last has one score for two classes
    (class 1 against class 0), else one per class.
    """
    multipliers: FloatArray
    """Where they ended, above the margin positive and below it negative. Public, as the model is.
    Shape (n_strata, n_groups, n_hits).
    """


@dataclass(frozen=True, kw_only=True)
class PFLD:
    """Train by noised primal and dual steps over all rows; binary and multinomial."""

    hidden: tuple[int, ...] = ()
    """Widths of hidden layers; none is logistic regression."""
    clip_norm: float = 1.0
    """Largest norm of the gradient of h that one row's group can change, per unit of difference
    between multipliers. Greater than 0.
    """
    learning_rate: float = 4.0
    """Greater than 0."""
    momentum: float = 0.9
    """Of the weights, in [0, 1)."""
    multiplier_rate: float = 0.6
    """How fast multipliers rise, per step, unit of gap and root of the group's share. Greater than
    0.
    """
    largest_multiplier: float = 20.0
    """Greater than 0."""
    memory: int = 10
    """Steps over which noisy tables are averaged."""
    averaged: float = 0.5
    """Part of the steps, at the end, whose weights are averaged, in (0, 1]."""
    wrong: bool = False
    """Whether h is the probability of a wrong decision; else that of each class."""

    def __post_init__(self) -> None:
        _checks.each_at_least("hidden", self.hidden, 1)
        _checks.positive("clip_norm", self.clip_norm)
        _checks.positive("learning_rate", self.learning_rate)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), got momentum={self.momentum!r}.")
        _checks.positive("multiplier_rate", self.multiplier_rate)
        _checks.positive("largest_multiplier", self.largest_multiplier)
        _checks.at_least("memory", self.memory, 1)
        if not 0 < self.averaged <= 1:
            raise ValueError(f"averaged must lie in (0, 1], got averaged={self.averaged!r}.")

    def n_weights(self, n_features: int, n_classes: int) -> int:
        """Length of the gradient that a primal step releases."""
        widths = (n_features, *self.hidden, 1 if n_classes == 2 else n_classes)
        return sum((n_in + 1) * n_out for n_in, n_out in pairwise(widths))

    def n_hits(self, n_classes: int) -> int:
        """Numbers in h."""
        return 1 if self.wrong or n_classes == 2 else n_classes

    def fit(
        self,
        X: FloatArray,
        y: IntArray,
        groups: IntArray,
        *,
        n_classes: int,
        strata: IntArray,
        sizes: FloatArray,
        margins: FloatArray,
        primal_noise: FloatArray,
        dual_noise: FloatArray,
        rng: np.random.Generator,
        batches: Iterator[IntArray] | None = None,
        sampling_rate: float = 1.0,
        progress: Progress | None = None,
    ) -> PFLDModel:
        """Train on ``X`` (n, d), ``y`` (n,), ``groups`` (n,).

        Parameters
        ----------
        strata : array of int, shape (n,)
            Among whom each row's rates are taken. Public.
        sizes : array, shape (n_strata, n_groups)
            Known sizes of the groups, all above 0.
        margins : array, shape (n_strata, n_groups) or (n_strata, n_groups, n_hits)
            How far a group's rates may be from those of everybody in the stratum; infinite where
            they are not held.
        primal_noise : array, shape (n_steps, n_weights)
            Noise for sums of sensitivity ``clip_norm``.
        dual_noise : array, shape (n_dual, n_strata * n_groups * n_hits)
            Noise for tables of sensitivity ``TABLE_SENSITIVITY``: one for each primal step, or
            fewer with batches, and dual steps are spread evenly.
        rng : Generator
            Seeds the first weights of a network, which nothing private decides.
        batches : iterator of arrays of int, optional
            Rows of each primal step, of which each is there with probability ``sampling_rate``.
            Default: all rows.
        """
        state = PFLDState.start(self, X, y, strata, sizes, margins, n_classes, rng)
        n_steps, n_dual = len(primal_noise), len(dual_noise)
        if batches is None or not 0 < n_dual <= n_steps:
            _checks.same_length(primal_noise=primal_noise, dual_noise=dual_noise)
        first = n_steps - max(1, round(self.averaged * n_steps))
        mean, speed = np.zeros_like(state.weights), np.zeros_like(state.weights)
        for t in range(n_steps):
            dual = t * n_dual // n_steps
            if t == 0 or dual > (t - 1) * n_dual // n_steps:
                state.forward()
                state.ascend(state.table(groups).ravel() + dual_noise[dual], dual)
            if batches is None:
                gradient = state.gradient(groups) + state.unit * primal_noise[t]
            else:
                rows = next(batches)
                gradient = state.on(rows).gradient(groups[rows]) + state.unit * primal_noise[t]
                gradient /= sampling_rate
            speed = self.momentum * speed - self.learning_rate * (1 - self.momentum) * gradient
            state.weights = state.weights + speed
            if t >= first:
                mean += (state.weights - mean) / (t - first + 1)
            if progress is not None:
                progress(t + 1, n_steps)
        return PFLDModel(layers=state.network.trained(mean), multipliers=state.above - state.below)


@dataclass(kw_only=True, eq=False)
class PFLDState:
    """What is known to everybody between two steps: all but the groups."""

    learner: PFLD
    X: FloatArray
    y: IntArray
    strata: IntArray
    among: IntArray  # (n_strata,): rows of each
    sizes: FloatArray
    margins: FloatArray
    n_classes: int
    network: DenseGradients
    weights: FloatArray  # (n_weights,): all layers, one after another
    above: FloatArray  # (n_strata, n_groups, n_hits): multipliers of "rate too high"
    below: FloatArray
    estimated: FloatArray  # (n_strata, n_groups, n_hits): averaged noisy tables
    inputs: list[FloatArray]  # of each layer
    F: FloatArray  # (n, n_classes)
    lengths: FloatArray  # (n,): squared norms of the rows of X

    @classmethod
    def start(
        cls,
        learner: PFLD,
        X: FloatArray,
        y: IntArray,
        strata: IntArray,
        sizes: FloatArray,
        margins: FloatArray,
        n_classes: int,
        rng: np.random.Generator,
    ) -> PFLDState:
        """Return the state before the first step: zeros, and random weights in hidden layers."""
        if sizes.ndim != 2 or not (sizes > 0).all():
            raise ValueError(
                f"sizes must be above 0, one for each stratum and group, got {sizes.tolist()}. A "
                f"group without a size has no rate."
            )
        network = DenseGradients.of(X.shape[1], learner.hidden, n_classes, rng)
        cells = (*sizes.shape, learner.n_hits(n_classes))
        return cls(
            learner=learner,
            X=X,
            y=y,
            strata=strata,
            among=np.bincount(strata, minlength=len(sizes)),
            sizes=sizes,
            margins=margins if margins.ndim == 3 else margins[:, :, None],
            n_classes=n_classes,
            network=network,
            weights=network.start,
            above=np.zeros(cells),
            below=np.zeros(cells),
            estimated=np.zeros(cells),
            inputs=[],
            F=np.zeros((0, n_classes)),
            lengths=rowwise(X),
        )

    def forward(self) -> None:
        """Run all rows through the present weights. Reads no group."""
        layers = self.network.layers(self.weights)
        self.inputs = [self.X]
        for layer in layers[:-1]:
            self.inputs.append(np.maximum(self.inputs[-1] @ layer[:-1] + layer[-1], 0.0))
        self.F = probabilities(self.inputs[-1] @ layers[-1][:-1] + layers[-1][-1])

    def on(self, rows: IntArray) -> PFLDState:
        """Return the state on some of the rows, run through the present weights."""
        parts = {name: getattr(self, name)[rows] for name in ("X", "y", "strata", "lengths")}
        some = replace(self, **parts)
        some.forward()
        return some

    @property
    def n_rows(self) -> int:
        """Number of all rows."""
        return int(self.among.sum())

    @property
    def hits(self) -> FloatArray:
        """The numbers h of hard decisions, (n, n_hits). Public."""
        decided = self.F.argmax(axis=1)
        hits: FloatArray = np.eye(self.n_classes)[decided]
        if self.learner.wrong:
            hits = (decided != self.y).astype(np.float64)[:, None]
        elif self.n_classes == 2:
            hits = hits[:, 1:]
        return hits

    def table(self, groups: IntArray) -> FloatArray:
        """Hits by stratum and group, (n_strata, n_groups, n_hits): private, to be noised."""
        n_strata, n_groups = self.sizes.shape
        shape = (n_strata, n_groups, self.learner.n_hits(self.n_classes))
        return _summed(self.hits, self.strata * n_groups + groups, shape)

    def ascend(self, noisy: FloatArray, t: int) -> None:
        """Take a dual step by a noisy table; reads no group."""
        learner = self.learner
        table: FloatArray = noisy.reshape(self.estimated.shape)
        totals = _summed(self.hits, self.strata, (len(table), 1, learner.n_hits(self.n_classes)))
        # What groups add up to is public: the noise of the sum is taken away.
        table = table + (totals - table.sum(axis=1, keepdims=True)) / table.shape[1]
        self.estimated += (table - self.estimated) * max(1.0 / (t + 1), 1.0 / learner.memory)
        among = self.among[:, None, None]
        overall = self.estimated.sum(axis=1, keepdims=True) / np.maximum(among, 1.0)
        gap = self.estimated / self.sizes[:, :, None] - overall
        # The fewer people, the larger what a multiplier does to each of them.
        step = learner.multiplier_rate * np.sqrt(self.sizes[:, :, None] / self.n_rows)
        for side, excess in ((self.above, gap), (self.below, -gap)):
            side += step * (excess - self.margins)
            np.clip(side, 0.0, learner.largest_multiplier, out=side)

    @property
    def pull(self) -> FloatArray:
        """w: what a row of each stratum and group is pulled by, (n_strata, n_groups, n_hits)."""
        pull: FloatArray = (self.above - self.below) / self.sizes[:, :, None]
        return pull

    @property
    def unit(self) -> float:
        """Largest difference of w between two groups: what a primal step's noise is in units of."""
        pull = self.pull
        return float((pull.max(axis=1) - pull.min(axis=1)).max())

    def gradient(self, groups: IntArray) -> FloatArray:
        """Gradient of the Lagrangian, (n_weights,): one group moves it by ``unit * clip_norm``.

        On some of the rows it is the sum of their terms.
        """
        n, pull = self.n_rows, self.pull
        spread = (self.above - self.below).sum(axis=1) / np.maximum(self.among[:, None], 1.0)
        own = pull[self.strata, groups] - spread[self.strata]
        back = self._gradient(own) * self.scale()[:, None]
        truth = np.eye(self.n_classes)[self.y]
        back += self._to_scores((self.F - truth) / n)
        return self._backward(back)

    def scale(self) -> FloatArray:
        """Return c of each row, (n,): the same whatever its group is."""
        most = self.unit * self.learner.clip_norm
        if most == 0.0:
            return np.ones(len(self.X))
        pull = self.pull[self.strata]
        square = np.zeros(len(self.X))
        for a, b in combinations(range(self.sizes.shape[1]), 2):
            backs = self._backs(self._gradient(pull[:, a] - pull[:, b]))
            # Of every layer's input with its 1, times what came back to the layer.
            lengths = [self.lengths, *map(rowwise, self.inputs[1:])]
            norms = sum(rowwise(b) * (a + 1.0) for a, b in zip(lengths, backs, strict=True))
            square = np.maximum(square, norms)
        return np.minimum(1.0, most / np.maximum(np.sqrt(square), TINY * most))

    def _gradient(self, v: FloatArray) -> FloatArray:
        """Gradient of ``v . h`` in the scores, for v (n, n_hits)."""
        if self.learner.wrong:
            c = -v * np.eye(self.n_classes)[self.y]
        elif self.n_classes == 2:
            c = np.column_stack([np.zeros(len(v)), v[:, 0]])
        else:
            c = v
        return self._to_scores(self.F * (c - np.einsum("ij,ij->i", c, self.F)[:, None]))

    def _to_scores(self, gradient: FloatArray) -> FloatArray:
        return gradient[:, 1:] if self.n_classes == 2 else gradient

    def _backs(self, back: FloatArray) -> list[FloatArray]:
        """Propagate gradients of the scores back to the output of every layer."""
        backs = [back]
        layers = self.network.layers(self.weights)
        for layer, seen in zip(layers[:0:-1], self.inputs[:0:-1], strict=True):
            backs.append((backs[-1] @ layer[:-1].T) * (seen > 0))
        backs.reverse()
        return backs

    def _backward(self, back: FloatArray) -> FloatArray:
        """Sum over rows of the gradients in all weights."""
        parts: list[FloatArray] = []
        for seen, each in zip(self.inputs, self._backs(back), strict=True):
            parts += [(seen.T @ each).ravel(), each.sum(axis=0)]
        return np.concatenate(parts)


def _summed(values: FloatArray, cells: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """Sum rows of ``values`` (n, m) by cell, in the given shape with m last."""
    n_cells = int(np.prod(shape[:-1]))
    columns = [np.bincount(cells, weights=each, minlength=n_cells) for each in values.T]
    out: FloatArray = np.stack(columns, axis=1).astype(np.float64).reshape(shape)
    return out
