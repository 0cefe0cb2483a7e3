"""Convolutional teachers as one stack, beside a loop over them and two other ways to stack them."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from _harness import run

from evenhand.learners.nets.architectures import Convolutional, built
from evenhand.learners.nets.batches import Deal, Together
from evenhand.learners.nets.stacked_modules import ModuleStack, StackedModules
from evenhand.teachers import by_position

SEED = 0
N_TEACHERS, N_EACH, PIXELS, EPOCHS, BATCH = 200, 64, 8, 2, 16
N_RECORDS = N_TEACHERS * N_EACH
SHAPE, N_CLASSES = (3, PIXELS, PIXELS), 10
HOW: dict[str, Any] = {"epochs": EPOCHS, "batch_size": BATCH, "learning_rate": 0.003}
NETWORK = Convolutional(widths=(8, 16))

rng = np.random.default_rng(SEED)
X = rng.integers(0, 256, size=(N_RECORDS, *SHAPE)).astype(np.uint8)
y = rng.integers(N_CLASSES, size=N_RECORDS)
ROWS = by_position(N_RECORDS, N_TEACHERS, SEED).all_rows
LEARNER = StackedModules(architecture=NETWORK, **HOW)


def ours() -> ModuleStack:
    return LEARNER.fit(X, y, ROWS, n_classes=N_CLASSES, rng=np.random.default_rng(SEED))


def train(
    learner: StackedModules, X: np.ndarray, y: np.ndarray, stream: np.random.Generator
) -> torch.nn.Module:
    """Train one network as one usually does; the draws are those of the stack."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(stream.integers(2**31)))
        network = built(learner.architecture, X.shape[1:], N_CLASSES)
    adam = torch.optim.Adam(network.parameters(), lr=learner.learning_rate, fused=True)
    features, labels = torch.as_tensor(X), torch.as_tensor(y)
    own, steps = np.arange(len(X)), -(-len(X) // learner.batch_size)
    for order in stream.permuted(np.tile(own, (learner.epochs, 1)), axis=1):
        for first, last in pairwise(np.arange(steps + 1) * len(own) // steps):
            at = order[first:last]
            adam.zero_grad()
            scores = network(features[at].float() / 255)
            torch.nn.functional.cross_entropy(scores, labels[at]).backward()
            adam.step()
    return network


def loop() -> list[torch.nn.Module]:
    streams = np.random.default_rng(SEED).spawn(N_TEACHERS)
    return [
        train(LEARNER, X[own], y[own], stream) for own, stream in zip(ROWS, streams, strict=True)
    ]


def check() -> None:
    """Both train the same networks, but for rounding, which Adam's first steps enlarge."""
    stack, networks = ours(), loop()
    for t, network in enumerate(networks):
        for name, value in network.state_dict().items():
            assert torch.allclose(stack.state[name][t], value, atol=2e-3), (t, name)


def step_of(chunk: int, kind: str) -> tuple[Any, Any]:
    """Return one step of ``chunk`` networks, and a function of the gradients that it leaves."""
    together = Together.of(LEARNER, y, ROWS[:chunk], N_CLASSES, np.random.default_rng(SEED))
    deal = Deal(X, together.targets, ROWS[:chunk], together.streams, (N_EACH // BATCH, BATCH), 1)
    rows, target, share, _ = deal.batch(0, 0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        modules = [built(NETWORK, SHAPE, N_CLASSES) for _ in range(chunk)]
    weights, _ = torch.func.stack_module_state(modules)
    weights = {name: value.detach().requires_grad_() for name, value in weights.items()}
    layers = list(modules[0].named_children())

    def loss_of(scores: Any, target: Any, share: Any) -> Any:
        return -(scores.log_softmax(dim=-1) * target * share).sum()

    def outside() -> list[Any]:
        call = torch.func.vmap(lambda w, x: torch.func.functional_call(modules[0], w, (x,)))
        return torch.autograd.grad(loss_of(call(weights, rows), target, share), weights.values())

    def inside() -> list[Any]:
        def one(w: Any, x: Any, t: Any, s: Any) -> Any:
            return loss_of(torch.func.functional_call(modules[0], w, (x,)), t, s)

        of_all = torch.func.vmap(torch.func.grad(one))
        return list(of_all(weights, rows, target, share).values())

    def grouped(last: bool) -> list[Any]:
        x = rows.transpose(0, 1).reshape(BATCH, -1, PIXELS, PIXELS)
        if last:
            x = x.contiguous(memory_format=torch.channels_last)
        for name, layer in layers:
            if isinstance(layer, torch.nn.Conv2d):
                w, b = weights[f"{name}.weight"], weights[f"{name}.bias"]
                x = torch.nn.functional.conv2d(
                    x, w.flatten(0, 1), b.flatten(), padding=layer.padding, groups=chunk
                )
            elif isinstance(layer, torch.nn.Flatten):
                x = x.reshape(BATCH, chunk, -1).transpose(0, 1)
            elif isinstance(layer, torch.nn.Linear):
                w, b = weights[f"{name}.weight"], weights[f"{name}.bias"]
                x = torch.baddbmm(b.unsqueeze(1), x, w.transpose(1, 2))
            elif not isinstance(layer, torch.nn.Sequential):  # the first lays pictures out
                x = layer(x)
        return torch.autograd.grad(loss_of(x, target, share), weights.values())

    ways = {
        "vmap of the forward pass": outside,
        "vmap of grad": inside,
        "grouped convolutions": lambda: grouped(last=False),
        "grouped, channels last": lambda: grouped(last=True),
    }
    return ways[kind], weights


def ways(_: float) -> dict[str, object]:
    """Milliseconds of processor time for each network and step, by each way to stack 32 of them."""
    found, first = {}, None
    for kind in (
        "vmap of the forward pass",
        "vmap of grad",
        "grouped convolutions",
        "grouped, channels last",
    ):
        step, _ = step_of(32, kind)
        gradients = step()
        first = gradients if first is None else first
        assert all(map(lambda a, b: torch.allclose(a, b, atol=1e-5), gradients, first)), kind
        times = []
        for _ in range(10):
            start = time.process_time()
            step()
            times.append(time.process_time() - start)
        found[kind] = round(1000 * float(np.median(times)) / 32, 4)
    return {"ms_per_network_and_step": found}


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(
        "teachers_conv, plain: a loop over teachers",
        ours=ours,
        plain=loop,
        check=check,
        sizes={
            "records": N_RECORDS,
            "pixels": f"3 x {PIXELS} x {PIXELS}",
            "teachers": N_TEACHERS,
            "widths": "8, 16",
            "epochs": EPOCHS,
            "batch": BATCH,
        },
        repeats=3,
        seed=SEED,
        target="at least 3 times faster than the loop",
        also=ways,
        clock=time.process_time,
    )
