"""Critics of private GANs, of rows and of pictures, as one stack, beside a loop over them."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from _harness import run

from evenhand.learners.nets.critics import BETAS, StackedCritics
from evenhand.learners.nets.picture_critics import SLOPE, ConvCritic, CriticStack, CriticTraining

SEED = 0
SIZES = (16, 16, 16, 16, 16, 9, 16, 7, 15, 6, 5, 42, 4)  # states of Adult's columns, and conditions
N_CRITICS, STEPS, BATCH, HIDDEN, RATE = 500, 10, 32, (32,), 3e-3

rng = np.random.default_rng(SEED)
STARTS = np.concatenate([[0], np.cumsum(SIZES)])
REAL = np.stack([rng.integers(0, s, (N_CRITICS, STEPS, BATCH)) for s in SIZES], axis=-1)
GENERATED = np.stack([rng.integers(0, s, (STEPS, BATCH)) for s in SIZES], axis=-1)


def ours() -> StackedCritics:
    streams = np.random.default_rng(SEED).spawn(N_CRITICS)
    critics = StackedCritics(sizes=SIZES, hidden=HIDDEN, streams=streams, learning_rate=RATE)
    critics.train(REAL, np.ones(N_CRITICS, dtype=np.bool_), GENERATED)
    return critics


def one_hot(rows: np.ndarray) -> torch.Tensor:
    return torch.zeros(len(rows), int(STARTS[-1])).scatter_(
        1, torch.as_tensor(rows + STARTS[:-1]), 1.0
    )


def train(real: np.ndarray, stream: np.random.Generator) -> torch.nn.Module:
    """Train one critic as one usually does; the draws are those of the stack."""
    modules: list[torch.nn.Module] = []
    for n_in, n_out in pairwise((int(STARTS[-1]), *HIDDEN, 2)):
        layer = torch.nn.Linear(n_in, n_out)
        drawn = torch.as_tensor(stream.random((n_in, n_out), dtype=np.float32))
        with torch.no_grad():
            layer.weight.copy_(((6 / n_in) ** 0.5 * (2 * drawn - 1)).T)
            layer.bias.zero_()
        modules += [layer, torch.nn.ReLU()]
    network = torch.nn.Sequential(*modules[:-1])
    adam = torch.optim.Adam(network.parameters(), lr=RATE, betas=BETAS, fused=True)
    said = torch.cat([torch.ones(BATCH), torch.zeros(BATCH)]).long()
    for own, drawn in zip(real, GENERATED, strict=True):
        adam.zero_grad()
        scores = network(torch.cat([one_hot(own), one_hot(drawn)]))
        (2.0 * torch.nn.functional.cross_entropy(scores, said)).backward()
        adam.step()
    return network


def plain() -> list[torch.nn.Module]:
    streams = np.random.default_rng(SEED).spawn(N_CRITICS)
    return [train(own, stream) for own, stream in zip(REAL, streams, strict=True)]


def check() -> None:
    """Both end with the same weights, but for rounding where a gradient is nearly 0.

    Adam divides by the size of the gradient, so that rounding moves such a weight by a step.
    """
    stack, networks = ours(), plain()
    apart = []
    for t, network in enumerate(networks):
        for i, (weight, bias) in enumerate(stack.network(t)):
            layer = network[2 * i]
            apart.append(np.abs(weight - layer.weight.detach().numpy().T).ravel())
            apart.append(np.abs(bias - layer.bias.detach().numpy()))
    far = np.concatenate(apart)
    assert far.max() < RATE, far.max()
    assert (far > 1e-5).mean() < 1e-4, (far > 1e-5).mean()


# Pictures: convolutional Wasserstein critics with a gradient penalty.
SHAPE, N_HEADS, N_OF_PICTURES, N_PICTURES, N_STEPS = (1, 28, 28), 4, 50, 12, 3
CRITIC, TRAINING = ConvCritic(shape=SHAPE), CriticTraining(loss="wasserstein")
OF_REAL = torch.as_tensor(rng.random((N_STEPS, N_OF_PICTURES, N_PICTURES, 28 * 28), np.float32))
OF_FAKE = torch.as_tensor(rng.random((N_STEPS, 1, N_PICTURES, 28 * 28), np.float32))
HEADS = torch.arange(N_PICTURES).view(1, -1, 1) % N_HEADS


def stack_of_pictures() -> CriticStack:
    return CriticStack(
        CRITIC,
        TRAINING,
        shape=SHAPE,
        n_heads=N_HEADS,
        n_critics=N_OF_PICTURES,
        stream=torch.Generator().manual_seed(SEED),
    )


def pictures() -> CriticStack:
    stack = stack_of_pictures()
    heads = HEADS.expand(N_OF_PICTURES, -1, -1)
    for real, fake in zip(OF_REAL, OF_FAKE, strict=True):
        of_all = fake.expand(N_OF_PICTURES, -1, -1)
        ones = torch.ones(N_OF_PICTURES, N_PICTURES)
        stack.learn(real, heads, ones[:, :1], of_all, heads, ones)
    return stack


class OneCritic(torch.nn.Module):
    """A critic as one usually writes it, with class projection, from given first weights."""

    def __init__(self, weights: list[torch.Tensor]) -> None:
        super().__init__()
        layers: list[torch.nn.Module] = []
        for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
            n_out, n_in, side, _ = weight.shape
            layer = torch.nn.Conv2d(n_in, n_out, side, stride=2, padding=side // 2)
            layer.weight.data, layer.bias.data = weight.clone(), bias[0].clone()
            layers += [layer, torch.nn.LeakyReLU(SLOPE)]
        self.maps = torch.nn.Sequential(*layers, torch.nn.Flatten())
        self.last = torch.nn.Linear(*weights[-2].shape)
        self.last.weight.data = weights[-2].T.clone()
        self.last.bias.data = weights[-1][0].clone()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Score each picture under its own condition."""
        scores = self.last(self.maps(x.view(-1, *SHAPE)))
        of_all = scores[:, :1] + scores[:, 1:]
        return of_all.gather(1, HEADS[0])[:, 0]


def loop_of_pictures() -> list[OneCritic]:
    """Train each by itself; first weights and places of the penalty are those of the stack."""
    first = stack_of_pictures()
    places = [torch.rand(N_OF_PICTURES, N_PICTURES, 1, generator=first._stream) for _ in OF_REAL]
    out = []
    for t in range(N_OF_PICTURES):
        critic = OneCritic([w[t].detach() for w in first.weights])
        rate = TRAINING.learning_rate
        adam = torch.optim.Adam(critic.parameters(), lr=rate, betas=(0.5, 0.9), fused=True)
        for real, fake, place in zip(OF_REAL[:, t], OF_FAKE[:, 0], places, strict=True):
            adam.zero_grad()
            of_real, of_fake = critic(real), critic(fake)
            between = (place[t] * real + (1.0 - place[t]) * fake).requires_grad_()
            (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
            off = torch.linalg.vector_norm(gradient, dim=1) - 1.0
            apart = of_fake - of_real + TRAINING.drift * of_real**2
            (apart.mean() + TRAINING.penalty * (off**2).mean()).backward()
            adam.step()
        out.append(critic)
    return out


def check_pictures() -> None:
    """Both end with the same weights; see ``check``."""
    stack, critics = pictures(), loop_of_pictures()
    apart = []
    for t, critic in enumerate(critics):
        *maps, weight, bias = stack.state(t)
        alone = [p.detach().numpy() for p in critic.parameters()]
        for ours_w, own in zip([*maps, weight.T, bias], alone, strict=True):
            apart.append(np.abs(ours_w.reshape(own.shape) - own).ravel())
    far = np.concatenate(apart)
    assert far.max() < N_STEPS * TRAINING.learning_rate, far.max()
    assert (far > 1e-5).mean() < 1e-3, (far > 1e-5).mean()


def by_patches(weights: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Scores by products of matrices: filters and patches."""
    n_critics, n, _ = x.shape
    h, side = x.reshape(-1, *SHAPE), SHAPE[1]
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        k, side = weight.shape[-1], -(-side // 2)
        patches = torch.nn.functional.unfold(h, k, padding=k // 2, stride=2)
        made = weight.flatten(2).unsqueeze(1) @ patches.view(n_critics, n, *patches.shape[1:])
        made = torch.nn.functional.leaky_relu(made + bias.mT.unsqueeze(1), SLOPE)
        h = made.view(n_critics * n, -1, side, side)
    projected = torch.baddbmm(weights[-1], h.view(n_critics, n, -1), weights[-2])
    return projected[..., :1] + projected[..., 1:]


def by_vmap(weights: list[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Scores by ``vmap`` over critics of one."""
    one = torch.func.vmap(
        lambda w, x: CRITIC.scores([side.unsqueeze(0) for side in w], x.unsqueeze(0))[0]
    )
    return one(tuple(weights), x)


def ways(_: float) -> dict[str, object]:
    """Milliseconds of processor time a critic for gradients in pictures, and theirs in weights."""
    weights, x = stack_of_pictures().weights, OF_REAL[0].clone().requires_grad_()
    found, first = {}, None
    for name, scores in (
        ("grouped convolutions", CRITIC.scores),
        ("vmap", by_vmap),
        ("products over patches", by_patches),
    ):

        def step(scores: Any = scores) -> Any:
            total = scores(weights, x)[..., 0].sum()
            (gradient,) = torch.autograd.grad(total, x, create_graph=True)
            return torch.autograd.grad((gradient**2).sum(), weights[::2])

        gradients = step()
        first = gradients if first is None else first
        for a, b in zip(gradients, first, strict=True):
            assert torch.allclose(a, b, atol=1e-4 * float(b.abs().max())), name
        times = []
        for _ in range(10):
            start = time.process_time()
            step()
            times.append(time.process_time() - start)
        found[name] = round(1000 * float(np.median(times)) / N_OF_PICTURES, 3)
    return {"ms_per_critic": found}


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(
        "teachers_gan, plain: a loop over critics",
        ours=ours,
        plain=plain,
        check=check,
        sizes={
            "critics": N_CRITICS,
            "layers": f"{int(STARTS[-1])}-{HIDDEN[0]}-2",
            "batch": f"{BATCH} real, {BATCH} generated",
            "steps": STEPS,
        },
        repeats=3,
        seed=SEED,
        target="at least 5 times faster than the loop",
    )
    run(
        "teachers_gan, pictures, plain: a loop over critics",
        ours=pictures,
        plain=loop_of_pictures,
        check=check_pictures,
        sizes={
            "critics": N_OF_PICTURES,
            "pixels": "1 x 28 x 28",
            "filters": "8, 16, 32 of 5 x 5",
            "batch": f"{N_PICTURES} real, {N_PICTURES} generated",
            "steps": N_STEPS,
        },
        repeats=3,
        seed=SEED,
        target="at least twice as fast as the loop",
        also=ways,
        clock=time.process_time,
    )
