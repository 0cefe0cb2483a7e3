"""A user's own network as a feature extractor: a torch module, or a file of ONNX."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from evenhand._extras import MissingExtra, installed
from evenhand._torch import torch
from evenhand.datasets.features.extractor import Float32Array, NetworkExtractor
from evenhand.typing import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class TorchFeatures(NetworkExtractor):
    """Any torch module that gives one row for each picture. Make it with ``of``."""

    module: Any = field(repr=False)

    @classmethod
    def of(
        cls,
        module: Any,
        *,
        name: str,
        trained_on: str,
        licence: str,
        shape: tuple[int, int, int] = (3, 224, 224),
        mean: tuple[float, ...] = (0.0,),
        sd: tuple[float, ...] = (1.0,),
        version: str = "1",
    ) -> TorchFeatures:
        """Take a module, in evaluation mode from here on.

        Parameters
        ----------
        module : torch.nn.Module
            Takes (b, c, h, w) floats and gives (b, d), or maps (b, d, ., .), which are averaged.
        name, trained_on, licence : str
            For the claim, which says them as they are: a network that was trained on the private
            pictures is not public.
        shape, mean, sd
            What it takes, see ``NetworkExtractor``.
        version : str
            Change it with the code of the module: its weights are in the digest, its code is not.

        Raises
        ------
        ValueError
            If it gives something else.
        """
        module = module.eval()
        made = hashlib.sha256(str(module).encode())
        for key, weights in sorted(module.state_dict().items()):
            values = np.ascontiguousarray(weights.detach().cpu().numpy())
            made.update(f"{key} {values.dtype} {values.shape} ".encode() + values.tobytes())
        with torch.no_grad():
            out = module(torch.zeros(cls.batch, *shape))
        return cls(
            name=name,
            version=version,
            dimension=_dimension(tuple(out.shape), cls.batch, name),
            trained_on=trained_on,
            licence=licence,
            weights=made.hexdigest(),
            shape=shape,
            mean=mean,
            sd=sd,
            module=module,
        )

    def run(self, inputs: Float32Array) -> Array:
        """Return what the module gives."""
        self.module.eval()
        with torch.no_grad():
            return _rows(self.module(torch.from_numpy(inputs)).numpy())


@dataclass(frozen=True, kw_only=True, eq=False)
class OnnxFeatures(NetworkExtractor):
    """A network in a file of ONNX, run by onnxruntime (extra ``onnx``). Make it with ``load``."""

    session: Any = field(repr=False)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        trained_on: str,
        licence: str,
        shape: tuple[int, int, int] | None = None,
        mean: tuple[float, ...] = (0.0,),
        sd: tuple[float, ...] = (1.0,),
        name: str | None = None,
        version: str = "1",
    ) -> OnnxFeatures:
        """Read a file with one input (b, c, h, w) of floats; its first output is used.

        Parameters are those of ``TorchFeatures.of``; ``name`` is that of the file by default, and
        ``shape`` what the file says. The number of pictures, ``b``, must be free, or 16.

        Raises
        ------
        FileNotFoundError, ValueError
            If there is no such file, or it is no network of this kind.
        MissingExtra
            If onnxruntime is missing.
        """
        if not installed("onnxruntime"):
            raise MissingExtra.of("OnnxFeatures", "onnxruntime", "onnx")
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {path}.")
        runtime = import_module("onnxruntime")
        content = path.read_bytes()
        try:  # out of memory: of weights in further files the digest would say nothing
            session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
            (given,) = session.get_inputs()
        except Exception as error:  # of its own kinds, which share no base
            raise ValueError(
                f"{path} is no network with one input: {str(error).splitlines()[0]}"
            ) from None
        shape = _said_shape(path, given.shape) if shape is None else shape
        try:
            out = session.run(None, {given.name: np.zeros((cls.batch, *shape), np.float32)})[0]
        except Exception as error:  # of its own kinds, which share no base
            raise ValueError(
                f"{path} is no network that takes floats of shape (16, "
                f"{', '.join(map(str, shape))}): {str(error).splitlines()[0]}"
            ) from None
        name = name or path.stem
        return cls(
            name=name,
            version=version,
            dimension=_dimension(out.shape, cls.batch, name),
            trained_on=trained_on,
            licence=licence,
            weights=hashlib.sha256(content).hexdigest(),
            shape=shape,
            mean=mean,
            sd=sd,
            session=session,
        )

    def run(self, inputs: Float32Array) -> Array:
        """Return what the network gives."""
        (given,) = self.session.get_inputs()
        return _rows(self.session.run(None, {given.name: inputs})[0])


def _said_shape(path: Path, said: Sequence[Any]) -> tuple[int, int, int]:
    """Return the shape of a picture that a network says it takes."""
    shape = tuple(said)[1:]
    if len(shape) != 3 or not all(isinstance(side, int) for side in shape):
        raise ValueError(
            f"{path} takes an input of shape {tuple(said)}, which does not say channels, height "
            f"and width of a picture. Pass shape=(3, 224, 224), or export it with these fixed."
        )
    return shape[0], shape[1], shape[2]


def _rows(out: Array) -> Array:
    """Return rows, of maps their means."""
    means: Array = out.mean(axis=(2, 3)) if out.ndim == 4 else out
    return means


def _dimension(shape: tuple[int, ...], batch: int, name: str) -> int:
    """Return how many numbers a picture becomes."""
    if len(shape) not in (2, 4) or shape[0] != batch:
        raise ValueError(
            f"{name} gives an array of shape {shape} for {batch} pictures. It has to give a row "
            f"({batch}, d), or maps ({batch}, d, h, w), for each."
        )
    return int(shape[1])
