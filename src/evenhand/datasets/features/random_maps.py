"""RandomMaps: features by random convolutions, which were trained on nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from evenhand._torch import torch
from evenhand.datasets.features.maps import NetworkMaps, checked_blocks

SEED: Final = 0
"""Of the weights; public."""

WIDTHS: Final = (16, 32, 64, 64)
"""Maps that each block puts out, at half the side of the block before."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomMaps(NetworkMaps):
    """The maps of convolutions with fixed random weights. Make it with ``RandomMaps.load``.

    Every block is a 3 x 3 convolution of stride 2 and a rectifier, with normal weights (He et al.
    2015) from a public seed. No picture had a part in them, so a claim needs no word about pictures
    that a network was trained on; what they see is edges and blots, and no objects.

    References
    ----------
    Saxe et al. 2011; Jarrett et al. 2009 (random filters as features).
    """

    filters: tuple[Any, ...] = field(repr=False)

    @classmethod
    def load(cls, size: tuple[int, int, int], blocks: Sequence[int] = (0, 1, 2, 3)) -> RandomMaps:
        """Draw the weights for pictures of one size.

        Parameters
        ----------
        size : tuple of int
            Channels, height and width of the pictures.
        blocks : sequence of int
            At least one of 0 to 3, ascending.

        Examples
        --------
        >>> RandomMaps.load((1, 28, 28)).dimension
        11968
        """
        chosen, rng = checked_blocks(blocks, len(WIDTHS)), np.random.default_rng(SEED)
        filters, made, n_in = [], hashlib.sha256(), size[0]
        for n_out in WIDTHS[: chosen[-1] + 1]:
            drawn = rng.standard_normal((n_out, n_in, 3, 3)) * (2.0 / (9 * n_in)) ** 0.5
            filters.append(torch.tensor(drawn, dtype=torch.float32))
            made.update(f"{drawn.shape} ".encode() + drawn.astype(np.float32).tobytes())
            n_in = n_out
        return cls(
            name=f"random convolutions (maps of blocks {', '.join(map(str, chosen))}, and squares)",
            version="1",
            dimension=0,
            trained_on="nothing",
            licence="none needed",
            weights=made.hexdigest(),
            shape=size,
            blocks=chosen,
            filters=tuple(filters),
        ).measured(size)

    def put_out(self, inputs: Any) -> list[Any]:
        """Return the maps of each of ``blocks``."""
        maps, found = inputs, []
        for i, weights in enumerate(self.filters):
            maps = torch.nn.functional.conv2d(maps, weights.to(maps), stride=2, padding=1).relu()
            if i in self.blocks:
                found.append(maps)
        return found
