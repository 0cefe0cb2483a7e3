"""ResNet-50 and DenseNet-121 with weights out of a local file, as public features or as a start.

Weights have the names that torchvision gives them, under which they are published. They are read
from a file of yours, ``.pth`` (as tensors alone: no code in it is run) or ``.safetensors``; nothing
is downloaded. What the last layer of the file says is not used.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from evenhand._stored import stored
from evenhand._torch import require_torch, torch
from evenhand.datasets.features.networks import TorchFeatures
from evenhand.typing import Array

MEAN: Final = (0.485, 0.456, 0.406)
SD: Final = (0.229, 0.224, 0.225)
"""Of red, green and blue in ImageNet: what the published networks were trained on."""

SMALLEST: Final = 32
"""Pixels on a side: both networks halve height and width five times."""

NOT_SAID: Final = "what the owner of its file used (not said)"

OLD_NAMES: Final = re.compile(r"^(.*denselayer\d+\.(?:norm|conv))\.([12]\..*)$")
"""Of a DenseNet's layers, as older files have them: ``norm.1.weight`` for ``norm1.weight``."""

COUNTED: Final = "num_batches_tracked"  # of batch normalisation; older files lack it


@dataclass(frozen=True)
class ImageNetNetwork(ABC):
    """Base of the two networks: an architecture, and where its features come from.

    Notes
    -----
    Both have batch normalisation, which reads all pictures of a batch: they cannot be trained by
    DP-SGD. A network with ``start`` takes pixels in [0, 1] and normalises them as ImageNet's.
    """

    head: ClassVar[str]
    n_features: ClassVar[int]

    start: str = ""
    """Digest of the weights that it starts from; set by ``pretrained``. Empty: fresh ones."""

    @classmethod
    @abstractmethod
    def fresh(cls, n_outputs: int) -> Any:
        """Return the network with new weights; its last layer is called ``head``."""

    @classmethod
    def load(
        cls,
        weights: str | Path,
        *,
        trained_on: str = NOT_SAID,
        licence: str = NOT_SAID,
        side: int = 224,
    ) -> TorchFeatures:
        """Return the network without its last layer, as a feature extractor.

        Parameters
        ----------
        weights : path
            ``.safetensors``, or a file of ``torch.save`` with tensors by name.
        trained_on, licence : str
            For the claim, which says them as they are. Say them: one that was trained on the
            private pictures is not public.
        side : int
            Height and width to which pictures are resized, at least 32. The published weights were
            trained at 224.

        Raises
        ------
        FileNotFoundError, ValueError
            If the file cannot be read, or is not of this network: all wrong, missing and further
            names at once.
        """
        if side < SMALLEST:
            raise ValueError(f"side must be at least {SMALLEST}, got side={side!r}.")
        module, digest = cls._read(weights)
        setattr(module, cls.head, torch.nn.Identity())
        return TorchFeatures.of(
            module,
            name=cls.__name__,
            version=digest[:12],
            trained_on=trained_on,
            licence=licence,
            shape=(3, side, side),
            mean=MEAN,
            sd=SD,
        )

    @classmethod
    def pretrained(cls, weights: str | Path) -> Self:
        """Return the architecture that starts from a file, with a new last layer.

        Privacy
        -------
        The weights are public, as all settings are. Parameters are those of ``load``.
        """
        module, digest = cls._read(weights)
        made = cls(start=digest)
        # No field: what is stored of it is the digest, and a model has weights of its own.
        object.__setattr__(made, "_weights", module.state_dict())
        return made

    def build(self, shape: tuple[int, ...], n_outputs: int) -> Any:
        """Return the network; see ``Architecture.build``."""
        require_torch(type(self).__name__)
        if len(shape) != 3 or shape[0] != 3 or min(shape[1:]) < SMALLEST:
            raise ValueError(
                f"{type(self).__name__} reads pictures of 3 channels and {SMALLEST} x {SMALLEST} "
                f"pixels at least, got rows of shape {shape!r}. Repeat a grey channel: "
                f"np.repeat(X, 3, axis=1). For smaller pictures take SmallResNet()."
            )
        module = self.fresh(n_outputs)
        known: Mapping[str, Any] | None = getattr(self, "_weights", None)
        if known is not None:
            module.load_state_dict(_body(known, self.head), strict=False)
        elif self.start and torch.get_default_device().type != "meta":  # there a file has them
            raise ValueError(
                f"This network starts from weights of digest {self.start[:12]}, which are not at "
                f"hand any more. Read them anew: {type(self).__name__}.pretrained(weights=PATH)."
            )
        return _scaled()(module) if self.start else module

    @classmethod
    def _read(cls, path: str | Path) -> tuple[Any, str]:
        """Return the network with the weights of a file, and the digest of these weights."""
        require_torch(cls.__name__)
        given = {OLD_NAMES.sub(r"\1\2", name): value for name, value in _arrays(path).items()}
        body = _body(given, cls.head)
        module = cls.fresh(1)
        wanted = _body(module.state_dict(), cls.head)
        _refuse_others(cls, Path(path), body, wanted)
        digest = hashlib.sha256()
        for name in sorted(wanted):
            if name in body and not name.endswith(COUNTED):
                numbers = np.ascontiguousarray(body[name], dtype=np.float32)
                wanted[name] = torch.from_numpy(numbers.copy())
                digest.update(f"{name} {numbers.shape} ".encode() + numbers.tobytes())
        module.load_state_dict(wanted, strict=False)
        return module, digest.hexdigest()


@stored
@dataclass(frozen=True)
class ResNet50(ImageNetNetwork):
    """ResNet-50 (He et al. 2016): bottlenecks in stages of 3, 4, 6 and 3; 2,048 features.

    As published in torchvision: a stage halves height and width in the 3 x 3 convolution of its
    first block. With 1,000 classes it has 25,557,032 weights.

    Parameters
    ----------
    start
        As for ``ImageNetNetwork``.
    """

    head: ClassVar[str] = "fc"
    n_features: ClassVar[int] = 2048

    @classmethod
    def fresh(cls, n_outputs: int) -> Any:
        """Return the network with new weights."""
        return _resnet()(n_outputs)


@stored
@dataclass(frozen=True)
class DenseNet121(ImageNetNetwork):
    """DenseNet-121 (Huang et al. 2017): dense blocks of 6, 12, 24 and 16 layers; 1,024 features.

    Every layer adds 32 channels. With 1,000 classes it has 7,978,856 weights.

    Parameters
    ----------
    start
        As for ``ImageNetNetwork``.
    """

    head: ClassVar[str] = "classifier"
    n_features: ClassVar[int] = 1024

    @classmethod
    def fresh(cls, n_outputs: int) -> Any:
        """Return the network with new weights."""
        return _densenet()(n_outputs)


def _body(weights: Mapping[str, Any], head: str) -> dict[str, Any]:
    """Return all weights but those of the last layer."""
    return {name: value for name, value in weights.items() if not name.startswith(f"{head}.")}


def _arrays(path: str | Path) -> Mapping[str, Array]:
    """Read a file of weights; no code in it is run."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"There is no file {file}. Weights are not downloaded: fetch those that their owner "
            f"publishes, and pass where they are."
        )
    if file.suffix == ".safetensors":
        try:
            return dict(load_file(file))
        except SafetensorError as error:
            raise ValueError(f"{file} is no file of safetensors: {error}.") from None
    try:
        read = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # of pickle, zip and torch, which share no base
        raise ValueError(
            f"{file} cannot be read as weights alone ({type(error).__name__}). It has to hold "
            f"tensors by name, as torch.save(network.state_dict(), path) writes them, or be a file "
            f"of safetensors; code in it is not run."
        ) from None
    if not isinstance(read, Mapping) or not all(
        isinstance(value, torch.Tensor) for value in read.values()
    ):
        raise ValueError(
            f"{file} holds no tensors by name. Write them by torch.save(network.state_dict(), "
            f"path); of a file with more in it, take the entry that holds the weights."
        )
    return {str(name): value.detach().float().numpy() for name, value in read.items()}


def _refuse_others(
    kind: type, path: Path, found: Mapping[str, Array], wanted: Mapping[str, Any]
) -> None:
    """Refuse weights of another network: names and shapes, all of them at once."""
    missing = [n for n in wanted if n not in found and not n.endswith(COUNTED)]
    further = [n for n in found if n not in wanted]
    shapes = {n: tuple(v.shape) for n, v in wanted.items() if n in found}
    wrong = [
        f"{n} has {tuple(found[n].shape)} and not {shape}"
        for n, shape in shapes.items()
        if tuple(found[n].shape) != shape
    ]
    bad = [n for n in shapes if not np.isfinite(np.asarray(found[n], dtype=np.float64)).all()]
    problems = [
        f"{words}: {', '.join(names)}"
        for words, names in (
            (f"missing ({len(missing)})", missing),
            (f"not of this network ({len(further)})", further),
            (f"of another shape ({len(wrong)})", wrong),
            (f"not finite ({len(bad)})", bad),
        )
        if names
    ]
    if problems:
        raise ValueError(
            f"{path} does not hold the weights of {kind.__name__} by torchvision's names. "
            f"{'; '.join(problems)}. Pass the file of this network."
        )


@cache
def _scaled() -> Any:
    """Return the class of a network that normalises pixels, made when torch is there."""

    class Scaled(torch.nn.Module):  # type: ignore[misc]  # torch is imported late
        def __init__(self, network: Any) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any) -> Any:
            # Made here and no buffers: a file of weights has none for them.
            mean, sd = (x.new_tensor(values).view(1, 3, 1, 1) for values in (MEAN, SD))
            return self.network((x - mean) / sd)

    return Scaled


def _norm_conv(n_in: int, n_out: int, side: int, stride: int = 1) -> tuple[Any, Any]:
    """Return a convolution without bias, and the batch normalisation behind it."""
    nn = torch.nn
    convolution = nn.Conv2d(n_in, n_out, side, stride=stride, padding=side // 2, bias=False)
    return convolution, nn.BatchNorm2d(n_out)


@cache
def _resnet() -> Any:
    """Return the class of the residual network, made when torch is there."""
    nn = torch.nn

    class Bottleneck(nn.Module):  # type: ignore[misc,name-defined]  # torch is imported late
        def __init__(self, n_in: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = _norm_conv(n_in, width, 1)
            self.conv2, self.bn2 = _norm_conv(width, width, 3, stride)
            self.conv3, self.bn3 = _norm_conv(width, 4 * width, 1)
            self.downsample = None
            if stride > 1 or n_in != 4 * width:
                self.downsample = nn.Sequential(*_norm_conv(n_in, 4 * width, 1, stride))

        def forward(self, x: Any) -> Any:
            out = self.bn1(self.conv1(x)).relu()
            out = self.bn2(self.conv2(out)).relu()
            out = self.bn3(self.conv3(out))
            return (out + (x if self.downsample is None else self.downsample(x))).relu()

    class Network(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, n_outputs: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = _norm_conv(3, 64, 7, 2)
            self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
            n_in = 64
            for stage, (width, n_blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
                blocks = []
                for i in range(n_blocks):
                    stride = 2 if stage > 0 and i == 0 else 1
                    blocks.append(Bottleneck(n_in, width, stride))
                    n_in = 4 * width
                setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            self.fc = nn.Linear(n_in, n_outputs)

        def forward(self, x: Any) -> Any:
            x = self.maxpool(self.bn1(self.conv1(x)).relu())
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(x.mean(dim=(2, 3)))

    return Network


@cache
def _densenet() -> Any:
    """Return the class of the densely connected network, made when torch is there."""
    nn = torch.nn
    growth, inner = 32, 128

    class Layer(nn.Module):  # type: ignore[misc,name-defined]  # torch is imported late
        def __init__(self, n_in: int) -> None:
            super().__init__()
            self.norm1 = nn.BatchNorm2d(n_in)
            self.conv1, self.norm2 = _norm_conv(n_in, inner, 1)
            self.conv2 = nn.Conv2d(inner, growth, 3, padding=1, bias=False)

        def forward(self, x: Any) -> Any:
            new = self.conv1(self.norm1(x).relu())
            return torch.cat([x, self.conv2(self.norm2(new).relu())], dim=1)

    class Network(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, n_outputs: int) -> None:
            super().__init__()
            conv0, norm0 = _norm_conv(3, 64, 7, 2)
            pool0 = nn.MaxPool2d(3, stride=2, padding=1)
            parts = OrderedDict(conv0=conv0, norm0=norm0, relu0=nn.ReLU(), pool0=pool0)
            n = 64
            for block, n_layers in enumerate((6, 12, 24, 16), start=1):
                layers = {f"denselayer{i + 1}": Layer(n + growth * i) for i in range(n_layers)}
                parts[f"denseblock{block}"] = nn.Sequential(OrderedDict(layers))
                n += growth * n_layers
                if block < 4:
                    between = OrderedDict(
                        norm=nn.BatchNorm2d(n),
                        relu=nn.ReLU(),
                        conv=nn.Conv2d(n, n // 2, 1, bias=False),
                        pool=nn.AvgPool2d(2),
                    )
                    parts[f"transition{block}"] = nn.Sequential(between)
                    n //= 2
            parts["norm5"] = nn.BatchNorm2d(n)
            self.features = nn.Sequential(parts)
            self.classifier = nn.Linear(n, n_outputs)

        def forward(self, x: Any) -> Any:
            return self.classifier(self.features(x).relu().mean(dim=(2, 3)))

    return Network
