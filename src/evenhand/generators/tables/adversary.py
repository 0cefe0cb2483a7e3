"""The two networks of a private GAN that never see a record: the generator and its judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import require_torch, torch
from evenhand.generators.tables.state_network import StateNetwork
from evenhand.learners.nets.layers import arrays_of, tensors_of, through
from evenhand.learners.nets.tensors import computing
from evenhand.typing import FloatArray, IntArray

BETAS: Final = (0.5, 0.9)
TEMPERATURE: Final = 0.7  # of the softened draw whose gradient stands in for that of the hard one


class Student:
    """A network that learns from released answers which rows pass for real ones.

    Parameters
    ----------
    sizes : sequence of int
        States of each column, the condition last.
    hidden : tuple of int
    learning_rate : float
    rng : Generator
        Draws the first weights.

    Privacy
    -------
    It reads generated rows and released answers: post-processing.
    """

    def __init__(
        self,
        *,
        sizes: Sequence[int],
        hidden: tuple[int, ...],
        learning_rate: float,
        rng: np.random.Generator,
    ) -> None:
        require_torch("Student")
        _checks.positive("learning_rate", learning_rate)
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        widths = (int(self.starts[-1]), *hidden, 1)
        self.layers = tensors_of(
            tuple(
                (rng.normal(0.0, (2.0 / n_in) ** 0.5, (n_in, n_out)), np.zeros(n_out))
                for n_in, n_out in pairwise(widths)
            )
        )
        flat = [tensor for layer in self.layers for tensor in layer]
        self._adam = torch.optim.Adam(flat, lr=learning_rate, betas=BETAS)

    def score(self, x: Any) -> Any:
        """Log-odds of passing for real, of rows (n, n_states)."""
        return through(self.layers, x)[:, 0]

    def loss(self, x: Any) -> Any:
        """Return what a generator lowers, per row: minus the log-probability of passing."""
        return torch.nn.functional.softplus(-self.score(x))

    def learn(self, rows: IntArray, answers: FloatArray) -> None:
        """Take one step of the cross-entropy with answers in [0, 1]."""
        with computing():
            scores = self.score(one_hot(rows, self.starts))
            said = torch.as_tensor(answers)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, said)
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()


class RowGeneratorTraining:
    """A ``StateNetwork`` in training: it moves to where its judge takes its rows for real.

    Rows are drawn state by state; the gradient of a softened draw stands in for that of the hard
    one (straight through Gumbel noise, Jang, Gu and Poole 2017).

    Parameters
    ----------
    start : StateNetwork
    learning_rate : float

    Privacy
    -------
    Conditions and noise are drawn from public distributions; it learns from its judge alone.
    """

    def __init__(self, start: StateNetwork, *, learning_rate: float) -> None:
        require_torch("RowGeneratorTraining")
        _checks.positive("learning_rate", learning_rate)
        self.start = start
        self.layers = tensors_of(start.layers)
        flat = [tensor for layer in self.layers for tensor in layer]
        self._adam = torch.optim.Adam(flat, lr=learning_rate, betas=BETAS)

    def network(self) -> StateNetwork:
        """Return what was learnt so far."""
        return replace(self.start, layers=arrays_of(self.layers))

    def rows(self, conditions: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a row of states for each condition, which stands last, (n_rows, n_columns + 1)."""
        return np.column_stack([self.network().draw(conditions, rng), conditions])

    def learn(self, conditions: IntArray, judge: Any, rng: np.random.Generator) -> None:
        """Take one step up the score that ``judge`` gives to rows and conditions as unit vectors.

        Parameters
        ----------
        conditions : ndarray of int64, shape (n_rows,)
        judge : callable
            Takes a tensor (n_rows, n_states + n_conditions) to losses (n_rows,) to be lowered.
        """
        start = self.start
        with computing():
            unit = torch.eye(len(start.base), dtype=torch.float64)[torch.as_tensor(conditions)]
            noise = torch.as_tensor(rng.normal(size=(len(conditions), start.n_noise)))
            x = torch.cat([noise, unit], dim=1)
            scores = through(self.layers, x) + torch.as_tensor(start.base[conditions])
            gumbel = torch.as_tensor(rng.gumbel(size=tuple(scores.shape)))
            parts = []
            for first, last in zip(start.starts, start.starts[1:], strict=False):
                soft = ((scores + gumbel)[:, first:last] / TEMPERATURE).softmax(dim=1)
                hard = torch.zeros_like(soft).scatter_(1, soft.argmax(dim=1, keepdim=True), 1.0)
                parts.append(hard + soft - soft.detach())
            loss = judge(torch.cat([*parts, unit], dim=1)).mean()
            self._adam.zero_grad()
            loss.backward()
            self._adam.step()


def one_hot_critic(weights: Sequence[FloatArray]) -> Callable[[Any], Any]:
    """Return what a generator lowers against a critic of one hidden layer: minus its score."""
    first, bias, last, offset = (torch.as_tensor(w) for w in weights)

    def loss(x: Any) -> Any:
        return -(torch.relu(x @ first + bias) @ last + offset)

    return loss


def one_hot(rows: IntArray, starts: IntArray) -> Any:
    """States (n, n_columns) as zeros and ones (n, n_states)."""
    x = torch.zeros(len(rows), int(starts[-1]), dtype=torch.float64)
    return x.scatter_(1, torch.as_tensor(rows + starts[:-1]), 1.0)
