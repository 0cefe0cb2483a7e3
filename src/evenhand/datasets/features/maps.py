"""Maps of a public network as features: what blocks put out, place by place, and its squares."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from evenhand import _checks
from evenhand._torch import torch
from evenhand.datasets.features.extractor import Float32Array, NetworkExtractor
from evenhand.typing import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkMaps(NetworkExtractor):
    """The maps that some blocks of a network put out, place by place, and their squares.

    Maps of pictures as large as they are, each block's scaled to length 1 and its squares as well;
    all together have length 1. Their means are first and second moments at each place, which say
    how pictures look (Harder et al. 2023).
    """

    blocks: tuple[int, ...]
    """Which, ascending; a later one sees a larger part of the picture."""

    @abstractmethod
    def put_out(self, inputs: Any) -> list[Any]:
        """Return the maps (n, d, ., .) of each of ``blocks``, of inputs (n, c, h, w)."""

    @property
    def digest(self) -> str:
        """SHA-256 digest of the weights, of how pictures are prepared, and of the blocks."""
        return hashlib.sha256(f"{super().digest} {self.blocks}".encode()).hexdigest()

    def run(self, inputs: Float32Array) -> Array:
        """Return the maps of prepared pictures."""
        with torch.no_grad():
            found: Array = self._maps(torch.from_numpy(inputs)).numpy()
        return found

    def of(self, pixels: Any) -> Any:
        """Return features (n, dimension) of a tensor (n, c, h, w) in [0, 1], with its gradient."""
        return self._maps((pixels.expand(-1, self.shape[0], -1, -1) - self.mean[0]) / self.sd[0])

    def measured(self, size: tuple[int, int, int]) -> Self:
        """Return it with its dimension, found by a black picture."""
        return replace(self, dimension=int(self.of(torch.zeros(1, *size)).shape[1]))

    def _maps(self, inputs: Any) -> Any:
        flat = [maps.flatten(1) for maps in self.put_out(inputs)]
        found = [torch.nn.functional.normalize(part) for f in flat for part in (f, f**2)]
        return torch.cat(found, dim=1) / len(found) ** 0.5


def checked_blocks(blocks: Sequence[int], n_blocks: int) -> tuple[int, ...]:
    """Return blocks of a network that has ``n_blocks``: at least one, ascending."""
    given = tuple(blocks) if isinstance(blocks, Sequence) else ()
    chosen = tuple(_checks.at_least("blocks", block, 0) for block in given)
    if not chosen or list(chosen) != sorted(set(chosen)) or chosen[-1] >= n_blocks:
        example = tuple(range(0, n_blocks, 2))[:3]
        raise ValueError(
            f"blocks must be a sequence of at least one of 0 to {n_blocks - 1}, ascending, each "
            f"once, such as {example}; got {blocks!r}."
        )
    return chosen
