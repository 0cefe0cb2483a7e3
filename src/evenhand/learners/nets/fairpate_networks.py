"""The networks of FairPATE's experiments on pictures (Tables 2 and 3 of its appendix F)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenhand._stored import stored
from evenhand._torch import require_torch, torch


@stored
@dataclass(frozen=True)
class ColorMNISTNetwork:
    """Table 2: two 5 x 5 convolutions and two linear layers, for 28 x 28 pixels.

    As published: convolution with ReLU (3, 20, 5, 1), pooling (2, 2), convolution (20, 50, 5, 1),
    pooling (2, 2), linear layers (4*4*50, 500) and (500, 10). With three colours and ten classes it
    has 432,080 weights.

    Notes
    -----
    The paper does not say whether a ReLU stands between the linear layers, or how weights start:
    here one does, and they start as torch's layers do. The first linear layer follows the size of
    the pictures, which must be 16 x 16 at least.
    """

    def build(self, shape: tuple[int, ...], n_outputs: int) -> Any:
        """Return the network; see ``Architecture.build``."""
        require_torch("A network")
        nn = torch.nn
        channels, height, width = of_picture(shape, 16)
        pooled = ((height - 4) // 2 - 4) // 2 * (((width - 4) // 2 - 4) // 2)
        return nn.Sequential(
            *(nn.Conv2d(channels, 20, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(pooled * 50, 500), nn.ReLU(), nn.Linear(500, n_outputs)),
        )


@stored
@dataclass(frozen=True)
class CelebANetwork:
    """Table 3: four 3 x 3 convolutions and three linear layers, for 224 x 224 pixels.

    As published: four times convolution, pooling (2, 2) and ReLU, with (3, 64, 3, 1),
    (64, 128, 3, 1), (128, 256, 3, 1) and (256, 512, 3, 1), then linear layers (14*14*512, 1024),
    (1024, 256) and (256, 2). With three colours and two classes it has 104,575,362 weights.

    Notes
    -----
    The paper is silent about padding and the size of the pictures: 14 x 14 is what 224 x 224 become
    with a padding of 1. It names no ReLU between the linear layers; without one they would be one
    linear layer, so here one stands after each but the last. The first linear layer follows the
    size of the pictures, which must be 16 x 16 at least.
    """

    def build(self, shape: tuple[int, ...], n_outputs: int) -> Any:
        """Return the network; see ``Architecture.build``."""
        require_torch("A network")
        nn = torch.nn
        channels, height, width = of_picture(shape, 16)
        layers = []
        for n_out in (64, 128, 256, 512):
            layers += [nn.Conv2d(channels, n_out, 3, padding=1), nn.MaxPool2d(2), nn.ReLU()]
            channels = n_out
        flat = 512 * (height // 16) * (width // 16)
        return nn.Sequential(
            *layers,
            *(nn.Flatten(), nn.Linear(flat, 1024), nn.ReLU()),
            *(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, n_outputs)),
        )


def of_picture(shape: tuple[int, ...], smallest: int) -> tuple[int, int, int]:
    """Return channels, height and width; refuse what is no picture, or too small a one."""
    if len(shape) != 3 or min(shape) < 1 or min(shape[1:]) < smallest:
        raise ValueError(
            f"shape must be (channels, height, width) with {smallest} x {smallest} pixels at "
            f"least, got {shape!r}. For pictures that lie flat say it: "
            f"Convolutional(shape=(3, 32, 32)). Smaller pictures are rows of numbers: use Dense."
        )
    channels, height, width = shape
    return channels, height, width
