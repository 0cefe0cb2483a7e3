"""Rounds: one part of the records after the other, a whole round at the price of one release."""

from __future__ import annotations

from evenhand.privacy import Ledger
from evenhand.privacy.noisy_sum import NoisySum
from evenhand.typing import FloatArray, IntArray


class Rounds:
    """The door for blocks that come one after the other, one from each part of the records.

    The blocks of a pass are one vector, of which one record moves one block: one release. It is
    charged in full, and its noise drawn, when the pass begins; that later blocks depend on earlier
    ones as released is adaptive composition inside it, over disjoint parts.

    Parameters
    ----------
    ledger : Ledger
    mechanism : NoisySum
        Its sensitivity is that of one block.
    purpose : str
    n_blocks, length : int
        Blocks of a pass, and numbers of a block.
    unit : float
        What one whole number is worth.
    """

    def __init__(
        self,
        ledger: Ledger,
        mechanism: NoisySum,
        purpose: str,
        n_blocks: int,
        length: int,
        unit: float,
    ) -> None:
        self._ledger, self._mechanism, self._purpose = ledger, mechanism, purpose
        self._n_blocks, self._length, self._unit = n_blocks, length, unit
        self._left: list[FloatArray] = []

    def __call__(self, total: IntArray) -> FloatArray:
        """Release the next block."""
        if not self._left:
            with self._ledger.reserve({self._mechanism: 1}, purpose=self._purpose) as grant:
                drawn = grant.draw(self._mechanism, self._n_blocks * self._length)
            self._left = list(drawn.reshape(self._n_blocks, self._length)[::-1])
        noise = self._left.pop()
        released: FloatArray = self._mechanism.decide(total[None, :], noise[None, :])[0]
        return released * self._unit
