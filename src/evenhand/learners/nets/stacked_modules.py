"""Networks of any architecture, trained together and each on its own rows: one batched pass."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from evenhand._torch import torch
from evenhand.learners.learner import Progress, needed
from evenhand.learners.linear import round_up
from evenhand.learners.nets.architectures import outputs_of, require_architecture, seeded_network
from evenhand.learners.nets.batches import Deal, Together, TrainedTogether
from evenhand.learners.nets.regularizer import Regularizer
from evenhand.learners.nets.stack import LANES
from evenhand.learners.nets.tensors import array, computing, features_of, floats
from evenhand.typing import Array, FloatArray, IntArray

CHUNK_MODELS: Final = 32
"""At most so many networks are trained together: more gain little."""

CHUNK_BYTES: Final = 16_000_000
"""Of what one layer of them puts out: beyond it a pass waits for memory."""


@dataclass(frozen=True, kw_only=True)
class ModuleStack:
    """Fitted networks, one per partition; those without two classes answer one class."""

    skeleton: Any = field(repr=False)  # one of them, without weights
    state: Mapping[str, Any] = field(repr=False)  # of all, (n_models, ...) each, by name
    allowed: FloatArray = field(repr=False)  # (n_models, n_classes): 0, or -inf for an absent class
    widest: int = field(repr=False)  # numbers that its largest layer puts out for a row

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.allowed)

    def network(self, t: int) -> Any:
        """Return model ``t`` as a ``torch.nn.Module``."""
        module = copy.deepcopy(self.skeleton)
        own = {name: value[t].clone() for name, value in self.state.items()}
        module.load_state_dict(own, assign=True)
        return module.eval()

    def predict(self, X: Array) -> IntArray:
        """Return the class of each row by each model, shape (n_models, n_rows)."""
        out = np.empty((self.n_models, len(X)), dtype=np.int64)
        n_models = min(self.n_models, CHUNK_MODELS)
        n_rows = max(1, CHUNK_BYTES // (4 * self.widest * n_models))
        call = torch.func.vmap(_forward(self.skeleton.eval()), in_dims=(0, None))
        with computing(), torch.no_grad():
            for first in range(0, self.n_models, n_models):
                some = slice(first, first + n_models)
                state = {name: value[some] for name, value in self.state.items()}
                allowed = floats(self.allowed[some])[:, None, :]
                for row in range(0, len(X), n_rows):
                    part = slice(row, row + n_rows)
                    scores = call(state, features_of(X[part])) + allowed
                    out[some, part] = array(scores.argmax(dim=2))
        return out


@dataclass(frozen=True, kw_only=True)
class StackedModules(TrainedTogether):
    """A network of any architecture on each of many partitions, trained by Adam, all at once.

    Notes
    -----
    The forward pass is ``torch.func.vmap`` of the module, and the backward pass ordinary autograd
    of that. Of 32 small convolutional networks a step takes .9 times as long as ``vmap`` of
    ``grad``, and 1.4 times as long as grouped convolutions written out for that one network, in one
    run (``benchmarks/teachers_conv.py``, which first compares the gradients): this takes any
    module. Saved is the time in which nothing is computed, which is most of it where pictures and
    networks are small; a convolution costs as much in a stack as alone, so networks of large
    pictures are trained few at a time, about as fast as one by one.

    Weights and batches of model ``t`` come from ``(rng, t)``, and the shape of its arithmetic
    follows from its own rows: another partition cannot move one bit of it. A network that draws
    (dropout) is therefore trained alone, from a seed of its own; a module that draws by a function,
    and not by a layer of ``torch.nn``, is refused. Batch normalisation counts the rows with which a
    batch is padded to a multiple of 8; group normalisation reads each row by itself.
    """

    architecture: Any
    """An architecture, or a function ``(shape, n_classes)`` that makes a module, starts each model
    from weights of its own, which ``(rng, t)`` draws. From a module itself all start: its weights
    must be public.
    """
    regularizer: Regularizer | None = None
    """A constraint for each model on its own rows. One that starts from a network is for a single
    model: ``ModuleLearner``.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require_architecture(self.architecture)
        if self.regularizer is not None and self.regularizer.start is not None:
            raise ValueError(
                "A regularizer with start= is for one network, and these are many. Train it by "
                "ModuleLearner(module, regularizer=...)."
            )

    def fit(
        self,
        X: Array,
        y: IntArray | FloatArray,
        rows: Sequence[IntArray],
        *,
        n_classes: int,
        rng: np.random.Generator,
        progress: Progress | None = None,
        groups: IntArray | None = None,
        n_groups: int = 1,
    ) -> ModuleStack:
        """Fit one model on each set of rows (n, ...); see ``Learner.fit``.

        ``y`` may also hold weights of the classes (n, n_classes). ``groups`` are read by a
        regularizer alone.
        """
        regularizer = self.regularizer
        if regularizer is not None and regularizer.needs_groups:
            regularizer = replace(regularizer, weights=np.eye(n_groups)[needed(self, groups)])
        together = Together.of(self, y, rows, n_classes, rng)
        shape = X.shape[1:]
        with computing(self.device):
            model = seeded_network(self.architecture, shape, n_classes, 0)
            widest, alone = max(outputs_of(model, shape)), _draws(model)
            state = {
                name: torch.zeros((len(rows), *value.shape), dtype=value.dtype, device="cpu")
                for name, value in model.state_dict().items()
            }

            def n_together(width: int) -> int:
                # From public numbers and a model's own rows: it shapes the arithmetic.
                most = 1 if alone else min(CHUNK_MODELS, CHUNK_BYTES // (4 * widest * width))
                return math.ceil(len(rows) / math.ceil(len(rows) / max(1, most)))

            for batches, some in together.stacks(n_together, progress):
                n = n_together(batches[1])
                found = self._train(X, together, some, n, batches, regularizer)
                for name, trained in found.items():
                    state[name][some] = trained[: len(some)].to("cpu")
            skeleton = model.to("cpu").eval()
        return ModuleStack(skeleton=skeleton, state=state, allowed=together.allowed, widest=widest)

    def _train(
        self,
        X: Array,
        together: Together,
        some: Sequence[int],
        n: int,
        batches: tuple[int, int],
        regularizer: Regularizer | None,
    ) -> dict[str, Any]:
        """Train models whose batches have one shape; return their weights and buffers.

        Always ``n`` are trained, the last of them for nothing: convolutions of other numbers of
        groups round otherwise, and how many models share a shape depends on other partitions.
        """
        idle = range(n - len(some))
        parts = [together.rows[t] for t in some] + [together.rows[some[0]] for _ in idle]
        streams = [together.streams[t] for t in some] + [np.random.default_rng(0) for _ in idle]
        n_classes = together.targets.shape[1]
        seeds = [int(stream.integers(2**31)) for stream in streams]
        modules = [
            seeded_network(self.architecture, X.shape[1:], n_classes, seed) for seed in seeds
        ]
        skeleton = modules[0].train()
        weights, buffers = torch.func.stack_module_state(modules)
        block, weights = _in_one_block(weights)
        adam = torch.optim.Adam(
            [block], lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        # Alone, a network may draw: from torch's own generator, which is seeded here and put back.
        randomness = "different" if n == 1 else "error"
        call = torch.func.vmap(_forward(skeleton), randomness=randomness)
        deal = Deal(X, together.targets, parts, streams, batches, self.epochs)
        padded = math.prod(batches)
        penalty = None if regularizer is None else regularizer.of(parts, together.targets, padded)
        own = torch.random.fork_rng([] if block.device.type == "cpu" else [block.device])
        with own:
            if n == 1:
                torch.random.manual_seed(int(streams[0].integers(2**31)))
            for epoch in range(self.epochs):
                for step in range(batches[0]):
                    rows, target, share, at = deal.batch(epoch, step)
                    block.grad.zero_()
                    scores = _scores(call, {**weights, **buffers}, rows)
                    logs = scores.log_softmax(dim=2)
                    loss = (logs * target * -share).sum()
                    pushed = None
                    if penalty is not None:
                        found = array(logs.detach().exp().double())
                        pushed = penalty.push(found, None if at is None else array(at))
                    if pushed is not None:  # the gradient of the constraint in the scores
                        loss = loss + (scores * floats(pushed) * share).sum()
                    loss.backward()
                    adam.step()
                if penalty is not None:
                    penalty.ascend()
        return {name: value.detach() for name, value in {**weights, **buffers}.items()}


def _forward(skeleton: Any) -> Any:
    """Return the forward pass as a function of weights and buffers, and rows."""
    return lambda state, rows: torch.func.functional_call(skeleton, state, (rows,))


def _scores(call: Any, state: Mapping[str, Any], rows: Any) -> Any:
    try:
        return call(state, rows)
    except RuntimeError as error:
        if "randomness" not in str(error):
            raise
        raise ValueError(
            "The module draws by a function and not by a layer, so the draws of one model would "
            "depend on how many others are trained beside it. Use torch.nn.Dropout, or train the "
            "models one by one: SklearnTeachers(ModuleClassifier(module))."
        ) from None


def _in_one_block(weights: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return all weights and gradients in one block each for a fused optimizer, and views of it.

    The block ends on whole vectors: at a ragged end the same step may round otherwise.
    """
    size = sum(value.numel() for value in weights.values())
    block = torch.zeros(round_up(size, LANES))
    block.grad = torch.zeros_like(block)
    views, first = {}, 0
    for name, value in weights.items():
        here = slice(first, first + value.numel())
        block[here] = value.detach().flatten()
        views[name] = block[here].view(value.shape).requires_grad_()
        views[name].grad = block.grad[here].view(value.shape)
        first += value.numel()
    return block, views


def _draws(module: Any) -> bool:
    """Whether a layer draws in training."""
    # All of torch's dropout layers are of this class, which has no public name.
    dropout = torch.nn.modules.dropout._DropoutNd
    return any(isinstance(part, dropout) and part.p > 0 for part in module.modules())
