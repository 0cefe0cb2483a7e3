"""Teachers of a generator: each sees its own pictures alone, through a sampler of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand._torch import torch
from evenhand.generators.images.codec import FloatPixels
from evenhand.generators.sampler import GroupBalancedSampler
from evenhand.learners.nets.picture_critics import CriticNetwork, CriticStack, CriticTraining
from evenhand.learners.nets.tensors import seeded
from evenhand.teachers.partition import Partition
from evenhand.typing import IntArray

CHUNK: Final = 50  # critics of one stack: weights, gradients and moments stay in the cache
AHEAD: Final = 100  # steps whose rows a teacher draws at once
POOL: Final = 2_000_000  # numbers of public noise, read again from other places


class Teachers:
    """Critics on disjoint parts of the private pictures.

    Parameters
    ----------
    pixels : ndarray of float32, shape (n, channels, h, w)
        Private.
    heads : ndarray of int64, shape (n,)
        Condition of each picture, as the critics know it.
    balanced : ndarray of int64, shape (n,)
        What ``sampler`` evens out.
    n_heads : int
    partition : Partition
        Whose picture each is.
    network, training : CriticNetwork, CriticTraining
    sampler : GroupBalancedSampler or None
        None draws a teacher's own rows evenly.
    batch_size : int
        Real pictures, and generated ones, in a step of a critic.
    rng : Generator

    Privacy
    -------
    Teacher t reads its own rows, the generated pictures and what it is given, all of them public or
    released, and two streams: one of its own (rows) and one that all share, whose draws do not
    depend on any row (first weights, noise on inputs). So one record moves one teacher, and two if
    a picture of one stratum is replaced by one of another
    (``tests/generators/images/test_teachers.py`` sees it bit for bit).
    """

    def __init__(
        self,
        pixels: FloatPixels,
        heads: IntArray,
        balanced: IntArray,
        *,
        n_heads: int,
        partition: Partition,
        network: CriticNetwork,
        training: CriticTraining,
        sampler: GroupBalancedSampler | None,
        batch_size: int,
        rng: np.random.Generator,
        chunk: int = CHUNK,
    ) -> None:
        self.n_teachers = partition.n_teachers
        self.batch_size = _checks.at_least("batch_size", batch_size, 1)
        self._pixels = torch.as_tensor(pixels.reshape(len(pixels), -1), dtype=torch.float32)
        self._heads = torch.as_tensor(heads)
        self._balanced, self._rows, self._sampler = balanced, partition.all_rows, sampler
        self._own = rng.spawn(self.n_teachers)
        self._shared = seeded(rng)
        held = np.zeros((self.n_teachers, n_heads), dtype=np.float32)
        held[partition.teacher, heads] = 1.0
        self._held = torch.as_tensor(held)
        self._noise = training.input_noise
        if self._noise:
            self._pool = self._noise * torch.randn(POOL, generator=self._shared)
        self._chunk = chunk
        self._stacks = [
            CriticStack(
                network,
                training,
                shape=pixels.shape[1:],
                n_heads=n_heads,
                n_critics=min(chunk, self.n_teachers - start),
                stream=self._shared,
            )
            for start in range(0, self.n_teachers, chunk)
        ]
        self._queue = np.zeros((self.n_teachers, AHEAD, self.batch_size), dtype=np.int64)
        self._taken = np.full(self.n_teachers, AHEAD)

    def learn(self, fake: Any, fake_heads: IntArray, stacks: range | None = None) -> None:
        """Take one step of every critic against the same generated pictures (n, channels, h, w)."""
        drawn = fake.detach().reshape(len(fake), -1)
        for some, stack in self._parts(stacks):
            self._learn(some, stack, drawn.expand(stack.n_critics, *drawn.shape), fake_heads)

    def pixel_gradients(
        self, drawn: Any, heads: IntArray, stacks: range | None = None
    ) -> Iterator[Any]:
        """Every teacher's gradients in the same generated pictures, a few teachers at a time.

        Tensors (n_some, n, n_pixels): along its gradient a teacher takes a picture less for a real
        one. Of a condition that a teacher has no picture of it knows nothing: zeros.
        """
        x = drawn.detach().reshape(len(drawn), -1)
        asked = torch.as_tensor(heads)
        for some, stack in self._parts(stacks):
            yield stack.pixel_gradients(x, asked) * self._held[some][:, asked].unsqueeze(2)

    @property
    def n_stacks(self) -> int:
        """Stacks that can be asked alone."""
        return len(self._stacks)

    def state(self, t: int) -> tuple[FloatPixels, ...]:
        """Return what teacher ``t`` has learnt: weights, and power vectors under spectral norm."""
        return tuple(self._stacks[t // self._chunk].state(t % self._chunk))

    def rows_of(self, t: int) -> IntArray:
        """Rows of teacher ``t``."""
        rows: IntArray = self._rows[t]
        return rows

    def rows_ahead(self, t: int) -> IntArray:
        """Rows that teacher ``t`` has drawn for ``AHEAD`` steps, (AHEAD, batch_size)."""
        ahead: IntArray = self._queue[t].copy()
        return ahead

    def _parts(self, stacks: range | None) -> Iterator[tuple[slice, CriticStack]]:
        for i in range(self.n_stacks) if stacks is None else stacks:
            stack = self._stacks[i]
            yield slice(i * self._chunk, i * self._chunk + stack.n_critics), stack

    def _learn(self, some: slice, stack: CriticStack, drawn: Any, fake_heads: IntArray) -> None:
        """Take one step of a stack's critics against pictures (n_critics, n, n_pixels)."""
        heads = torch.as_tensor(fake_heads)
        at = torch.as_tensor(self._next_rows(some))
        held = self._held[some]
        stack.learn(
            self._blurred(self._pixels[at]),
            self._heads[at].unsqueeze(2),
            held.amax(dim=1, keepdim=True),
            self._blurred(drawn),
            heads.view(1, -1, 1).expand(len(at), -1, 1),
            held[:, heads],
        )

    def _blurred(self, x: Any) -> Any:
        """Pictures with noise from the pool, from a place that nothing private decides."""
        if not self._noise:
            return x
        n = x.numel()
        if n > POOL:
            return x + self._noise * torch.randn(x.shape, generator=self._shared)
        first = int(torch.randint(0, POOL - n + 1, (1,), generator=self._shared))
        return x + self._pool[first : first + n].view(x.shape)

    def _next_rows(self, some: slice) -> IntArray:
        """Rows of these teachers for one step, (n_some, batch_size)."""
        which = np.arange(self.n_teachers)[some]
        for t in which[self._taken[some] == AHEAD]:
            self._queue[t] = self._draw(self._rows[t], self._own[t]).reshape(AHEAD, -1)
            self._taken[t] = 0
        rows: IntArray = self._queue[which, self._taken[some]]
        self._taken[some] += 1
        return rows

    def _draw(self, rows: IntArray, rng: np.random.Generator) -> IntArray:
        size = AHEAD * self.batch_size
        if not len(rows):
            return np.zeros(size, dtype=np.int64)  # read, and weighted 0
        if self._sampler is None:
            return rows[rng.integers(0, len(rows), size)]
        return rows[self._sampler.draw(self._balanced[rows], size, rng)]
