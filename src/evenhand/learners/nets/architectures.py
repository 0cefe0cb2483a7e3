"""Networks by name and sizes: a value that builds one, and says in a file which one it was."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from evenhand import _checks
from evenhand._stored import STORED, stored
from evenhand._torch import require_torch, torch
from evenhand.datasets.features.imagenet_networks import DenseNet121, ResNet50
from evenhand.learners.nets.fairpate_networks import CelebANetwork, ColorMNISTNetwork, of_picture
from evenhand.learners.nets.resnet import SmallResNet
from evenhand.learners.nets.tensors import array
from evenhand.typing import Array


class Architecture(Protocol):
    """The sizes of a network: a frozen dataclass of plain values.

    A new one is a class in a module of its own, its tests, and a line in ``ARCHITECTURES``.
    """

    def build(self, shape: tuple[int, ...], n_outputs: int) -> Any:
        """Return a ``torch.nn.Module`` from rows to scores (n, n_outputs), with fresh weights.

        Parameters
        ----------
        shape : tuple of int
            Of one row: ``(n_features,)``, or ``(channels, height, width)`` of a picture.
        n_outputs : int
        """


@stored
@dataclass(frozen=True)
class Dense:
    """Fully connected layers with ReLU between them."""

    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers."""

    def __post_init__(self) -> None:
        _checks.each_at_least("hidden", self.hidden, 1)

    def build(self, shape: tuple[int, ...], n_outputs: int) -> Any:
        """Return the network; see ``Architecture.build``."""
        require_torch("A network")
        nn = torch.nn
        layers, n_in = [nn.Flatten()], math.prod(shape)
        for width in self.hidden:
            layers += [nn.Linear(n_in, width), nn.ReLU()]
            n_in = width
        return nn.Sequential(*layers, nn.Linear(n_in, n_outputs))


@stored
@dataclass(frozen=True)
class Convolutional:
    """Two 3 x 3 convolutions with ReLU and pooling by 2, then linear layers.

    With the defaults, 3 x 32 x 32 pixels in two classes have 9,186 weights.

    Parameters
    ----------
    shape : (channels, height, width), optional
        Of a picture, at least 4 x 4 pixels. Needed where rows are pictures that lie flat.
    widths : (int, int)
        Channels after each convolution.
    hidden : tuple of int
        Widths of hidden linear layers.
    """

    shape: tuple[int, int, int] | None = None
    widths: tuple[int, int] = (16, 32)
    hidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _checks.each_at_least("widths", self.widths, 1)
        _checks.each_at_least("hidden", self.hidden, 1)
        if self.shape is not None:
            of_picture(self.shape, 4)

    def build(self, shape: tuple[int, ...], n_outputs: int) -> Any:
        """Return the network; see ``Architecture.build``."""
        require_torch("A network")
        channels, height, width = of_picture(shape if self.shape is None else self.shape, 4)
        nn, (first, second) = torch.nn, self.widths
        return nn.Sequential(
            nn.Sequential(nn.Flatten(), nn.Unflatten(1, (channels, height, width))),
            *(nn.Conv2d(channels, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *Dense(self.hidden).build((second * (height // 4) * (width // 4),), n_outputs),
        )


ARCHITECTURES: Final[Mapping[str, type]] = {
    kind.__name__: kind
    for kind in (
        CelebANetwork,
        ColorMNISTNetwork,
        Convolutional,
        Dense,
        DenseNet121,
        ResNet50,
        SmallResNet,
    )
}
"""Those of this package, by name."""


def registered(kind: type) -> type:
    """Let a file name an architecture of one's own; used as a decorator of a dataclass.

    ``save`` then keeps its arguments and its weights, and ``load`` wants its module and name among
    ``trusted``, as ``"module:Class"``.

    Raises
    ------
    ValueError
        If another type has that name.
    """
    known = STORED.get(kind.__name__, kind)
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise ValueError(
            f"{kind.__name__} is the name of {known.__module__}.{known.__qualname__} already: a "
            f"file could not tell them apart. Choose another name."
        )
    return stored(kind)


def architecture_named(name: str) -> Architecture:
    """Return an architecture of this package by its name, with its default sizes."""
    made: Architecture = ARCHITECTURES[_checks.one_of("architecture", name, ARCHITECTURES)]()
    return made


def architecture_typed(word: str) -> Architecture:
    """Return an architecture by its word on the command line and in a grid, with default sizes.

    Examples
    --------
    >>> architecture_typed("small-resnet")
    SmallResNet(widths=(16, 32, 64), blocks=1, groups=8)
    """
    names = {name.lower(): name for name in ARCHITECTURES}
    return architecture_named(names[word.replace("-", "")])


def require_architecture(given: Any) -> None:
    """Refuse what makes no network."""
    if isinstance(given, torch.nn.Module) or (not isinstance(given, str) and callable(given)):
        return
    if not hasattr(given, "build"):
        raise TypeError(
            f"module must be a torch.nn.Module or an architecture that maps rows (n, d) to "
            f"scores (n, n_classes), got {given!r}. Pass an object, for example "
            f"torch.nn.Linear(d, n_classes), or Dense(hidden=(32,))."
        )


def built(given: Any, shape: tuple[int, ...], n_outputs: int) -> Any:
    """Return a new network: a copy of a module, or what an architecture or a function makes."""
    if isinstance(given, torch.nn.Module):
        module = copy.deepcopy(given)
    else:
        module = (given.build if hasattr(given, "build") else given)(shape, n_outputs)
    return module.to(torch.get_default_device())


def outputs_of(module: Any, shape: tuple[int, ...]) -> list[int]:
    """Return how many numbers one row has, and then each layer's output for it."""
    found = [math.prod(shape)]

    def note(_: Any, __: Any, out: Any) -> None:
        if isinstance(out, torch.Tensor):
            found.append(out[0].numel())

    hooks = [part.register_forward_hook(note) for part in module.modules()]
    with torch.no_grad():
        module.eval()(torch.zeros((1, *shape)))
    for hook in hooks:
        hook.remove()
    return found


def seeded_network(given: Any, shape: tuple[int, ...], n_outputs: int, seed: int) -> Any:
    """Return what ``built`` does, with weights of a seed; torch's generator stays as it was."""
    place = torch.get_default_device()
    with torch.random.fork_rng([] if place.type == "cpu" else [place]):
        torch.random.manual_seed(seed)
        return built(given, shape, n_outputs)


def is_architecture(value: Any) -> bool:
    """Whether a file may name it: an architecture of ``ARCHITECTURES``, or a stored one."""
    return hasattr(value, "build") and STORED.get(type(value).__name__) is type(value)


def weights_of(module: Any) -> dict[str, Array]:
    """Return the weights of a module by name, for a file."""
    return {name: array(weight) for name, weight in module.state_dict().items()}


def restored(
    architecture: Architecture,
    shape: tuple[int, ...],
    n_outputs: int,
    weights: Mapping[str, Array],
) -> Any:
    """Return the network with given weights; nothing but this package's own code is run.

    Raises
    ------
    ValueError
        If the weights are not those of such a network.
    """
    with torch.device("meta"):  # shapes alone: a file may name sizes for which there is no memory
        module = architecture.build(shape, n_outputs)
    wanted = {name: tuple(weight.shape) for name, weight in module.state_dict().items()}
    found = {name: weight.shape for name, weight in weights.items()}
    if wanted != found:
        raise ValueError(f"these are not the weights of {architecture!r} for rows of {shape}.")
    tensors = {name: torch.as_tensor(np.array(weight)) for name, weight in weights.items()}
    module.load_state_dict(tensors, assign=True)
    module.row_shape = shape
    return module.eval()
