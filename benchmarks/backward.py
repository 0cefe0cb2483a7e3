"""Backward passes written by hand, beside ``torch.func`` and autograd on the same layers."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from _harness import run

from evenhand.learners.nets.stack import StackedNetwork, layers_of

SEED = 0
STEPS = 30
SHAPES = (  # networks, rows of each, layers
    (32, 120, (102, 64, 64, 2)),
    (32, 32, (20, 32, 2)),
    (32, 104, (102, 32, 2)),
    (1, 256, (102, 64, 64, 2)),
)


class Case:
    """A stack of networks of one shape, and ``STEPS`` steps of Adam on it in three ways."""

    def __init__(self, n_models: int, width: int, sizes: tuple[int, ...]) -> None:
        stream = torch.Generator().manual_seed(SEED)
        self.n_models, self.sizes = n_models, sizes
        self.x = torch.randn(n_models, width, sizes[0], generator=stream)
        labels = torch.randint(sizes[-1], (n_models, width), generator=stream)
        self.target = torch.nn.functional.one_hot(labels, sizes[-1]).float()
        self.share = torch.full((n_models, width, 1), 1.0 / width)

    def start(self) -> StackedNetwork:
        """Return the networks before training."""
        return StackedNetwork(np.random.default_rng(SEED).spawn(self.n_models), self.sizes)

    def by_hand(self) -> torch.Tensor:
        """Train with the written-out gradients; return all weights."""
        network = self.start()
        adam = torch.optim.Adam([network.flat], lr=0.01, fused=True)
        with torch.no_grad():
            for _ in range(STEPS):
                network.backward(self.x, self.target, self.share)
                adam.step()
        return network.flat

    def autograd(self) -> torch.Tensor:
        """Train with autograd through the stacked products."""
        flat = self.start().flat.requires_grad_()
        adam = torch.optim.Adam([flat], lr=0.01, fused=True)
        for _ in range(STEPS):
            *inner, last = layers_of(flat, self.n_models, self.sizes)
            h = self.x
            for weight, bias in inner:
                h = torch.baddbmm(bias, h, weight).relu()
            logs = torch.baddbmm(last[1], h, last[0]).log_softmax(dim=2)
            adam.zero_grad()
            (-(self.target * logs * self.share).sum()).backward()
            adam.step()
        return flat.detach()

    def func(self) -> torch.Tensor:
        """Train one module with ``vmap`` of ``grad`` of ``functional_call``."""
        network = self.start()
        modules: list[torch.nn.Module] = []
        for n_in, n_out in pairwise(self.sizes):
            modules += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
        one = torch.nn.Sequential(*modules[:-1])
        weights = {}
        for i, (weight, bias) in enumerate(network.layers):
            weights[f"{2 * i}.weight"] = weight.mT.contiguous()
            weights[f"{2 * i}.bias"] = bias[:, 0].clone()

        def loss(own: object, x: torch.Tensor, target: torch.Tensor, share: torch.Tensor):
            logs = torch.func.functional_call(one, own, (x,)).log_softmax(dim=1)
            return -(target * logs * share).sum()

        gradient = torch.func.vmap(torch.func.grad(loss))
        adam = torch.optim.Adam(list(weights.values()), lr=0.01, fused=True)
        for _ in range(STEPS):
            found = gradient(weights, self.x, self.target, self.share)
            for name, weight in weights.items():
                weight.grad = found[name]
            adam.step()
        for i, (weight, bias) in enumerate(network.layers):
            weight.copy_(weights[f"{2 * i}.weight"].mT)
            bias[:, 0].copy_(weights[f"{2 * i}.bias"])
        return network.flat

    def check(self, other: Callable[[], torch.Tensor]) -> None:
        """Compare the weights after some steps, which agree but for rounding."""
        torch.testing.assert_close(self.by_hand(), other(), atol=2e-3, rtol=0.0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for n_models, width, sizes in SHAPES:
        case = Case(n_models, width, sizes)
        for name, other in (("torch.func", case.func), ("autograd", case.autograd)):
            run(
                f"backward, plain: {name}",
                ours=case.by_hand,
                plain=other,
                check=lambda case=case, other=other: case.check(other),
                sizes={"networks": n_models, "rows": width, "layers": "-".join(map(str, sizes))},
                repeats=7,
                seed=SEED,
                target="a ratio of 1.2 or less lets the hand-written pass go",
                clock=time.process_time,
            )
