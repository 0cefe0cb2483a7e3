"""Many small critics trained together, each on rows of its own partition and on generated ones.

They are dense layers of a ``StackedNetwork`` and no ``Architecture``, for the reasons that
``picture_critics`` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import require_torch, torch
from evenhand.learners.nets.mlp import CHUNK_MODELS
from evenhand.learners.nets.stack import StackedNetwork, network_of
from evenhand.learners.nets.tensors import array, computing, floats
from evenhand.typing import BoolArray, FloatArray, IntArray

BETAS: Final = (0.5, 0.9)  # of Adam, as is usual against a generator
COPIES: Final = 4  # of every parameter: itself, its gradient, two moments
BYTES: Final = 4


class StackedCritics:
    """A network per partition that separates its rows from generated ones, all trained at once.

    Rows are whole numbers, one per column: the state that a column is in. A critic reads them as
    unit vectors and answers "real" or "generated" by two scores.

    Parameters
    ----------
    sizes : sequence of int
        States of each column.
    hidden : tuple of int
        Widths of the hidden layers.
    streams : sequence of Generator
        One per critic; they draw its first weights.
    learning_rate : float
        Of Adam.
    gold : bool
        Weight generated rows by ``exp(D)``, normalised over the rows of a step, with D the log-odds
        of being real as the critic sees them now (GOLD, Mo et al. 2019): rows that pass for real
        count for more.
    device : str
        Where they are trained.

    Privacy
    -------
    Critic ``t`` is a function of its stream, of its own real rows, and of the generated rows that
    all of them share: no other partition moves one bit of it
    (``tests/learners/nets/test_critics.py``).
    """

    def __init__(
        self,
        *,
        sizes: Sequence[int],
        hidden: tuple[int, ...],
        streams: Sequence[np.random.Generator],
        learning_rate: float,
        gold: bool = False,
        device: str = "cpu",
    ) -> None:
        require_torch("StackedCritics")
        _checks.positive("learning_rate", learning_rate)
        _checks.each_at_least("hidden", hidden, 1)
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.gold, self.device = gold, device
        layers = (int(self.starts[-1]), *hidden, 2)
        self._chunks = []
        with computing(self.device), torch.no_grad():
            for first in range(0, len(streams), CHUNK_MODELS):
                network = StackedNetwork(streams[first : first + CHUNK_MODELS], layers)
                adam = torch.optim.Adam([network.flat], lr=learning_rate, betas=BETAS, fused=True)
                self._chunks.append((network, adam))
        self.n_models = len(streams)

    def train(
        self,
        real: IntArray,
        present: BoolArray,
        generated: IntArray,
        judged: BoolArray | None = None,
    ) -> None:
        """Take one step per minibatch.

        Parameters
        ----------
        real : ndarray of int, shape (n_models, n_steps, n_rows, n_columns)
            Rows of each critic's own partition.
        present : ndarray of bool, shape (n_models,)
            Which critics have rows; for the others ``real`` weighs nothing.
        generated : ndarray of int, shape (n_steps, n_generated, n_columns)
            The same for all critics.
        judged : ndarray of bool, shape (n_models, n_steps, n_generated), optional
            Which generated rows are a critic's business; all if not given.
        """
        with computing(self.device), torch.no_grad():
            generated_rows = [torch.as_tensor(self._places(rows)) for rows in generated]
            for at, (network, adam) in enumerate(self._chunks):
                some = slice(at * CHUNK_MODELS, (at + 1) * CHUNK_MODELS)
                weight = floats(present[some])
                for step, fake in enumerate(generated_rows):
                    mine = None if judged is None else judged[some, step]
                    self._step(network, self._places(real[some, step]), weight, fake, mine)
                    adam.step()

    def judge(self, rows: IntArray) -> IntArray:
        """Return 1 where a critic takes a row for real, shape (n_models, n_rows)."""
        with computing(self.device), torch.no_grad():
            x = self._one_hot(torch.as_tensor(self._places(rows)))
            found = [_scores(network, x) for network, _ in self._chunks]
            odds = torch.cat([scores[..., 1] - scores[..., 0] for scores in found])
            votes: IntArray = array(odds > 0).astype(np.int64)
        return votes

    def network(self, t: int) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Return the layers of critic ``t``: weight (in, out) and bias (out,) of each."""
        network, _ = self._chunks[t // CHUNK_MODELS]
        return network_of(network.layers, t % CHUNK_MODELS)

    def state(self, t: int) -> FloatArray:
        """Return everything that critic ``t`` remembers: weights, and the moments of Adam."""
        network, adam = self._chunks[t // CHUNK_MODELS]
        kept = adam.state[network.flat]
        blocks = [network.flat, *(kept[name] for name in ("exp_avg", "exp_avg_sq") if name in kept)]
        parts = [
            array(view[t % CHUNK_MODELS]).ravel()
            for block in blocks
            for layer in network.like(block)
            for view in layer
        ]
        return np.concatenate(parts).astype(np.float64)

    def _step(
        self,
        network: StackedNetwork,
        real: IntArray,
        present: Any,
        fake: Any,
        judged: BoolArray | None,
    ) -> None:
        """Write the gradient of one minibatch per critic."""
        n, n_real, n_fake = len(real), real.shape[1], len(fake)
        x = torch.zeros(n, n_real + n_fake, int(self.starts[-1]))
        x[:, :n_real].scatter_(2, torch.as_tensor(real), 1.0)
        x[:, n_real:] = self._one_hot(fake)
        target = torch.zeros(n, n_real + n_fake, 2)
        target[:, :n_real, 1] = 1.0
        target[:, n_real:, 0] = 1.0
        share = torch.empty(n, n_real + n_fake, 1)
        share[:, :n_real] = present[:, None, None] / n_real
        counted = torch.ones(n, n_fake) if judged is None else floats(judged)
        if self.gold:
            scores = _scores(network, self._one_hot(fake))
            odds = scores[..., 1] - scores[..., 0]
            counted = counted * torch.exp(odds - odds.amax(dim=1, keepdim=True))
        total = counted.sum(dim=1, keepdim=True).clamp_min(1e-12)
        share[:, n_real:, 0] = counted / total
        network.backward(x, target, share)

    def _places(self, rows: IntArray) -> IntArray:
        places: IntArray = rows.astype(np.int64) + self.starts[:-1]
        return places

    def _one_hot(self, places: Any) -> Any:
        x = torch.zeros(*places.shape[:-1], int(self.starts[-1]))
        return x.scatter_(-1, places, 1.0)


def bytes_of_critics(sizes: Sequence[int], hidden: tuple[int, ...], n_models: int) -> int:
    """Return the memory that so many critics take: parameters, gradients and Adam's moments.

    Examples
    --------
    >>> bytes_of_critics((3, 2), (4,), 10)  # (5 + 1) * 4 + (4 + 1) * 2 parameters each
    5440
    """
    widths = (sum(sizes), *hidden, 2)
    each = sum((n_in + 1) * n_out for n_in, n_out in pairwise(widths))
    return n_models * each * COPIES * BYTES


def _scores(network: StackedNetwork, x: Any) -> Any:
    """Scores of the same rows by all models, shape (n_models, n_rows, 2)."""
    hidden = x.expand(len(network.layers[0][0]), *x.shape)
    for weight, bias in network.layers[:-1]:
        hidden = torch.baddbmm(bias, hidden, weight).relu_()
    weight, bias = network.layers[-1]
    return torch.baddbmm(bias, hidden, weight)
