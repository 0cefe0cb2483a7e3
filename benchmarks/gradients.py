"""Clipped gradients of single pictures: beside a loop over them, and beside Opacus if installed."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import numpy as np
import torch
from _harness import run

from evenhand.learners.nets.architectures import Convolutional, restored, weights_of
from evenhand.learners.nets.fairpate_networks import ColorMNISTNetwork
from evenhand.learners.nets.per_record import ModuleGradients
from evenhand.learners.nets.resnet import SmallResNet

SEED, N, CLIP = 0, 256, 1.0
NETWORKS: dict[str, tuple[Any, tuple[int, int, int], int]] = {
    "Convolutional, 28 pixels": (Convolutional(), (3, 28, 28), 10),
    "ColorMNISTNetwork, 28 pixels": (ColorMNISTNetwork(), (3, 28, 28), 10),
    "SmallResNet, 28 pixels": (SmallResNet(), (3, 28, 28), 10),
    "SmallResNet, 64 pixels": (SmallResNet(), (3, 64, 64), 2),
}


class Task:
    """One network, some pictures, and three ways to the same sum."""

    def __init__(self, name: str) -> None:
        architecture, shape, n_classes = NETWORKS[name]
        rng = np.random.default_rng(SEED)
        self.X = rng.integers(0, 256, (N, *shape), dtype=np.uint8)
        self.y = rng.integers(0, n_classes, N)
        self.ours = ModuleGradients.of(architecture, shape, n_classes, rng)
        trained = self.ours.trained(self.ours.start)
        self.module = restored(architecture, shape, n_classes, weights_of(trained)).train()
        self.pixels, self.labels = torch.as_tensor(self.X).float() / 255, torch.as_tensor(self.y)

    def sum(self) -> np.ndarray:
        """Ours."""
        return self.ours.clipped_sum(self.ours.start, self.X, self.y, None, CLIP)[0]

    def loop(self) -> np.ndarray:
        """One picture at a time."""
        weights = list(self.module.parameters())
        total = [torch.zeros_like(w) for w in weights]
        for x, y in zip(self.pixels, self.labels, strict=True):
            loss = torch.nn.functional.cross_entropy(self.module(x[None]), y[None])
            gradients = torch.autograd.grad(loss, weights)
            norm = torch.sqrt(sum(g.square().sum() for g in gradients))
            for part, g in zip(total, gradients, strict=True):
                part += g * (CLIP / norm).clamp(max=1.0)
        return np.concatenate([part.ravel().numpy() for part in total])

    def hooks(self) -> np.ndarray:
        """Opacus, per-sample gradients by hooks."""
        from opacus.grad_sample import GradSampleModule

        module = GradSampleModule(self.module, loss_reduction="sum")
        try:
            total = [torch.zeros_like(w) for w in module.parameters()]
            for rows in torch.arange(N).split(self.ours.n_together):
                module.zero_grad(set_to_none=True)
                scores = module(self.pixels[rows])
                loss = torch.nn.functional.cross_entropy
                loss(scores, self.labels[rows], reduction="sum").backward()
                gradients = [w.grad_sample for w in module.parameters()]
                norms = torch.sqrt(sum(g.flatten(1).square().sum(dim=1) for g in gradients))
                scale = (CLIP / norms).clamp(max=1.0)
                for part, g in zip(total, gradients, strict=True):
                    part += torch.einsum("i,i...->...", scale, g)
        finally:
            module.zero_grad(set_to_none=True)
            module.to_standard_module()
        return np.concatenate([part.ravel().numpy() for part in total])

    def ghost(self) -> np.ndarray:
        """Opacus, norms without gradients where it can, then a second pass back."""
        from opacus.grad_sample import GradSampleModuleFastGradientClipping

        module = GradSampleModuleFastGradientClipping(
            self.module, loss_reduction="sum", max_grad_norm=CLIP, use_ghost_clipping=True
        )
        try:
            total = [torch.zeros_like(w) for w in module.parameters()]
            for rows in torch.arange(N).split(self.ours.n_together):
                module.zero_grad(set_to_none=True)
                module.enable_hooks()
                loss = torch.nn.functional.cross_entropy
                losses = loss(module(self.pixels[rows]), self.labels[rows], reduction="none")
                losses.sum().backward(retain_graph=True)
                module.zero_grad(set_to_none=True)
                scale = module.get_clipping_coef()
                module.disable_hooks()
                (scale * losses).sum().backward()
                for part, w in zip(total, module.parameters(), strict=True):
                    part += w.grad
        finally:
            module.zero_grad(set_to_none=True)
            module.to_standard_module()
        return np.concatenate([part.ravel().numpy() for part in total])


TASKS = {name: Task(name) for name in NETWORKS}
FIRST = next(iter(TASKS.values()))


def check() -> None:
    """All ways give the same sum, but for rounding in float32."""
    for name, task in TASKS.items():
        plain = task.loop()
        ways = [task.sum] + ([task.hooks, task.ghost] if OPACUS else [])
        for way in ways:
            apart = np.linalg.norm(way() - plain) / np.linalg.norm(plain)
            assert apart < 2e-3, (name, way.__name__, apart)


OPACUS = importlib.util.find_spec("opacus") is not None


def others(_: float) -> dict[str, object]:
    """Milliseconds of processor time for each picture, by each way."""
    found: dict[str, dict[str, float]] = {}
    for name, task in TASKS.items():
        ways = {"ours": task.sum, "loop": task.loop}
        if OPACUS:
            ways |= {"opacus, hooks": task.hooks, "opacus, ghost": task.ghost}
        found[name] = {}
        for words, way in ways.items():
            times = []
            for _ in range(3):
                start = time.process_time()
                way()
                times.append(time.process_time() - start)
            found[name][words] = round(1000 * float(np.median(times)) / N, 3)
    return {"ms_per_picture": found}


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(
        "gradients, plain: a loop over pictures",
        ours=FIRST.sum,
        plain=FIRST.loop,
        check=check,
        sizes={"pictures": N, "pixels": "3 x 28 x 28", "network": "Convolutional"},
        repeats=3,
        seed=SEED,
        target="faster than the loop",
        also=others,
        clock=time.process_time,
    )
