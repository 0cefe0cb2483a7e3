"""A training by Adam as arrays, so that it can go on in another process as if it had not ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand._torch import torch
from evenhand.learners.nets.tensors import array
from evenhand.typing import Array

_MOMENTS, _STEPS = ("exp_avg", "exp_avg_sq"), "step"  # as torch.optim.Adam calls them


def state_of(adam: Any, stream: Any) -> dict[str, Array]:
    """Return copies of weights, moments, rate, and where the stream of random numbers is.

    Parameters
    ----------
    adam : torch.optim.Adam
        With one group of weights.
    stream : torch.Generator
    """
    (group,) = adam.param_groups
    out: dict[str, Array] = {"rate": np.array([group["lr"]], dtype=np.float64)}
    out["stream"] = array(stream.get_state()).copy()
    for i, weight in enumerate(group["params"]):
        out[f"weight {i}"] = array(weight).copy()
        for name, moment in adam.state.get(weight, {}).items():
            out[f"{name} {i}"] = array(moment).copy()
    return out


def take_state(adam: Any, stream: Any, arrays: Mapping[str, Array]) -> None:
    """Go on where ``state_of`` was.

    Raises
    ------
    ValueError
        If the arrays are of another network, or of another kind of device.
    """
    (group,) = adam.param_groups
    try:
        stream.set_state(torch.as_tensor(arrays["stream"], device="cpu"))
        for i, weight in enumerate(group["params"]):
            with torch.no_grad():
                weight.copy_(torch.as_tensor(arrays[f"weight {i}"]))
            if f"{_STEPS} {i}" not in arrays:
                continue  # it has not taken a step
            adam.state[weight] = {
                name: torch.as_tensor(arrays[f"{name} {i}"]).clone().view_as(weight)
                for name in _MOMENTS
            }
            steps = torch.tensor(float(arrays[f"{_STEPS} {i}"].item()), device="cpu")
            adam.state[weight][_STEPS] = steps
        group["lr"] = float(arrays["rate"].item())
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"The state of this training is of another network or of another device: {error}. Go "
            f"on with the settings and the device that it was begun with."
        ) from None
