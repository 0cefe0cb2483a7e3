"""Where networks compute: their device, their type, one thread, and seeds of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from evenhand._torch import torch
from evenhand.typing import Array


@contextmanager
def computing(device: str = "cpu") -> Iterator[Any]:
    """Compute on one thread, and make every new tensor on ``device``, which is yielded.

    Small products on several threads wait for each other; the caller's number comes back.

    Raises
    ------
    ValueError
        If there is no such device here.
    """
    before, place = torch.get_num_threads(), _place(device)
    torch.set_num_threads(1)
    try:
        # A mode of torch costs a little in every call, and the processor is its default anyway.
        with nullcontext() if place.type == "cpu" else place:
            yield place
    finally:
        torch.set_num_threads(before)


def _place(device: str) -> Any:
    try:
        place = torch.device(device)
        if place.type != "cpu":
            torch.zeros(1, device=place)
    except (RuntimeError, AssertionError) as error:
        first = str(error).strip().splitlines()[0]
        raise ValueError(
            f"device must be one that PyTorch finds here, such as 'cpu', got {device!r}: {first}"
        ) from None
    return place


def floats(values: Array) -> Any:
    """Return numbers as a tensor of float32, the one type that networks are trained in."""
    return torch.as_tensor(values, dtype=torch.float32)


def features_of(rows: Any) -> Any:
    """Return rows, a tensor or an array, as float32: pixels of uint8 lie between 0 and 1 then."""
    tensor = torch.as_tensor(rows)
    numbers = tensor.to(dtype=torch.float32, device=torch.get_default_device())
    return numbers.div_(255.0) if tensor.dtype is torch.uint8 and tensor.ndim > 2 else numbers


def array(tensor: Any) -> Array:
    """Return a tensor's numbers; where it is on the processor they are shared, not copied."""
    out: Array = tensor.detach().cpu().numpy()
    return out


def seeded(rng: np.random.Generator) -> Any:
    """Return a torch generator of its own, seeded from ``rng``; no global seed is touched."""
    place = torch.get_default_device()
    return torch.Generator(device=place).manual_seed(int(rng.integers(0, 2**63)))
