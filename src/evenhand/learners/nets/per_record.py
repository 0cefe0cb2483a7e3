"""Gradients of single records in the weights of any PyTorch network, clipped and summed.

Each gradient is that of the network on one record, by ``torch.func.vmap`` of ``torch.func.grad``,
so no other record of the sample can reach it. ``benchmarks/gradients.py`` compares the sum with a
loop over records, and the time with that of Opacus: of four convolutional networks of small
pictures, one run, this took .63 to 1.11 times as long as its hooks (``GradSampleModule``) and .36
to .81 times as long as the loop. Its ghost clipping took longer for three of them (1.4 to 1.9
times), and less than half where a linear layer holds most weights (``ColorMNISTNetwork``). No
further package is needed.

A chunk of records passes at a time, filled up with zeros that are not counted, so that its shape,
and with it how numbers are rounded, does not depend on how many records there are. Sums of chunks
are added in doubles.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evenhand._torch import require_torch, torch
from evenhand.learners.gradients import TINY
from evenhand.learners.nets.architectures import outputs_of, require_architecture, seeded_network
from evenhand.learners.nets.tensors import array, computing, features_of
from evenhand.privacy.keystream import uniform
from evenhand.typing import Array, FloatArray, IntArray

CHUNK_BYTES: Final = 160_000_000
"""Of gradients and of what layers put out, for the records that pass together."""

CHUNK_ROWS: Final = 64
"""At most so many records pass together: more gain little."""

SHORT: Final = 1.0 - 1e-5
"""A breath below the norm, for what rounds in float32: norms, sums of a chunk, and the last bits of
records that stand behind another one."""

PROBES: Final = 3  # records on which a network is tried before anything is trained


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleGradients:
    """A PyTorch network whose gradients are taken record by record; make it with ``of``.

    Dropout, where the network has layers of it, draws for each record from ``words``. These words
    must be as secret as the choice of samples: with draws that follow from a public seed and a
    record's position, a record that is taken away would change those of all records behind it.
    """

    module: Any
    shape: tuple[int, ...]
    n_classes: int
    start: FloatArray
    device: str
    n_together: int
    masks: Mapping[str, tuple[tuple[int, ...], float]]  # of each dropout: shape, and chance to keep
    words: Callable[[int], IntArray] | None

    @classmethod
    def of(
        cls,
        architecture: Any,
        shape: tuple[int, ...],
        n_classes: int,
        rng: np.random.Generator,
        words: Callable[[int], IntArray] | None = None,
        *,
        device: str = "cpu",
    ) -> ModuleGradients:
        """Build a network, and try it on made-up records.

        Parameters
        ----------
        architecture : Architecture or torch.nn.Module
            An architecture starts from fresh weights, drawn from ``rng``; a module from the weights
            that it has, which must be public. Weights that need no gradient stay as they are.
        shape : tuple of int
            Of one record.
        words : function of a number, optional
            As for ``NoisyNetwork.network``. Needed for dropout.

        Raises
        ------
        ValueError
            If the network lets records of a batch meet, keeps statistics of them, draws by other
            means than layers of dropout, or gives other scores than one per class.
        """
        require_torch("A network trained by DP-SGD")
        require_architecture(architecture)
        with computing(device):
            module = seeded_network(architecture, shape, n_classes, int(rng.integers(2**31)))
            _refuse_batch_statistics(module)
            masks = _with_given_dropout(module, shape)
            if masks and words is None:
                raise ValueError(
                    "The network has dropout, whose draws must be secret: pass words=."
                )
            made = cls(
                module=module.train(),
                shape=shape,
                n_classes=n_classes,
                start=_flat(_trainable(module)),
                device=device,
                n_together=_n_together(module, shape),
                masks=masks,
                words=words,
            )
            made._try()
        return made

    def clipped_sum(
        self, weights: FloatArray, X: Array, y: IntArray, v: FloatArray | None, room: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sum of gradients and the probabilities; see ``PerRecordGradients``.

        A record whose gradient is not finite adds nothing, and is given equal probabilities.
        """
        total = np.zeros_like(self.start)
        p = np.full((len(y), self.n_classes), 1.0 / self.n_classes)
        with computing(self.device):
            state = self._tensors(weights)
            call = self._per_record(v is not None)
            for first in range(0, len(y), self.n_together):
                some = slice(first, first + self.n_together)
                gradients, scores = self._chunk(
                    call, state, X[some], y[some], None if v is None else v[some]
                )
                n = len(y[some])
                scale = _scales(gradients, room, n)
                total += np.concatenate([array(scale @ g.flatten(1)) for g in gradients.values()])
                found = array(scores[:n].double().softmax(dim=1))
                fine = np.isfinite(found).all(axis=1)
                p[some][fine] = found[fine]
        return total, p

    def trained(self, weights: FloatArray) -> Any:
        """Return the network with these weights, for predicting."""
        module = copy.deepcopy(self.module)
        with computing(self.device), torch.no_grad():
            for name, value in self._tensors(weights).items():
                module.get_parameter(name).copy_(value)
        for name in self.masks:
            module.set_submodule(name, torch.nn.Identity())
        module.row_shape = self.shape
        return module.to("cpu").eval()

    def _per_record(self, pushed: bool) -> Any:
        """Return the function from weights and records to gradients and scores."""

        def objective(own: Any, given: Any, x: Any, target: Any, v: Any) -> tuple[Any, Any]:
            scores = torch.func.functional_call(self.module, {**own, **given}, (x[None],))[0]
            logs = scores.log_softmax(dim=0)
            value = -(target * logs).sum()
            return (value + (v * logs.exp()).sum() if pushed else value), scores.detach()

        return torch.func.vmap(
            torch.func.grad(objective, has_aux=True), in_dims=(None, 0, 0, 0, 0), randomness="error"
        )

    def _chunk(
        self, call: Any, state: Any, X: Array, y: IntArray, v: FloatArray | None
    ) -> tuple[dict[str, Any], Any]:
        """Return the gradients and scores of a chunk, filled up to its full number of records."""
        n, full = len(y), self.n_together
        rows = np.zeros((full, *X.shape[1:]), dtype=X.dtype)
        rows[:n] = X
        target = np.zeros((full, self.n_classes), dtype=np.float32)
        target[np.arange(n), y] = 1.0
        push = np.zeros_like(target)
        if v is not None:
            push[:n] = v
        place = torch.get_default_device()
        target, push = (torch.as_tensor(part, device=place) for part in (target, push))
        gradients, scores = call(state, self._drawn(n, full), features_of(rows), target, push)
        return gradients, scores

    def _drawn(self, n: int, full: int) -> dict[str, Any]:
        """Return what dropout keeps, of each of ``n`` records, by the names of the layers."""
        out = {}
        for name, (shape, keep) in self.masks.items():
            assert self.words is not None
            size = int(np.prod(shape))
            kept = np.ones((full, size), dtype=np.float32)
            kept[:n] = (uniform(self.words(n * size)).reshape(n, size) <= keep) / keep
            out[f"{name}.kept"] = torch.as_tensor(
                kept.reshape(full, *shape), device=torch.get_default_device()
            )
        return out

    def _tensors(self, weights: FloatArray) -> dict[str, Any]:
        """Return a flat vector as the trainable weights by name."""
        flat = torch.as_tensor(weights, dtype=torch.float32, device=torch.get_default_device())
        out, first = {}, 0
        for name, value in _trainable(self.module).items():
            out[name] = flat[first : first + value.numel()].view(value.shape)
            first += value.numel()
        return out

    def _try(self) -> None:
        """Refuse what does not treat each record alone, on records that are made up."""
        rows = np.random.default_rng(0).uniform(size=(PROBES, *self.shape)).astype(np.float32)
        before = {name: value.clone() for name, value in self.module.named_buffers()}
        wanted = (PROBES, self.n_classes)
        for training in (False, True):
            together, alone = _scores_of(self.module.train(training), rows)
            if tuple(together.shape) != wanted:
                raise ValueError(
                    f"The network must map {PROBES} rows to scores of shape {wanted}, one per "
                    f"class, got {tuple(together.shape)}. End it with a layer of {self.n_classes} "
                    f"outputs, without softmax."
                )
            if not torch.allclose(together, alone, rtol=1e-3, atol=1e-4):
                raise ValueError(
                    "The network gives a record other scores beside other records than alone, so "
                    "no record's part in a step can be bounded. Let it read each record by itself: "
                    "normalise by torch.nn.GroupNorm or LayerNorm, and draw by torch.nn.Dropout."
                )
        for name, value in self.module.named_buffers():
            if not torch.equal(value, before[name]):
                raise ValueError(
                    f"The network changes its buffer {name} while it is trained, and that would "
                    f"leave without noise. Take layers that keep no statistics, such as "
                    f"torch.nn.GroupNorm."
                )
        numbers = torch.zeros(wanted)
        try:
            given = {name: value[:PROBES] for name, value in self._drawn(0, PROBES).items()}
            self._per_record(True)(
                self._tensors(self.start), given, features_of(rows), numbers, numbers
            )
        except RuntimeError as error:
            raise ValueError(
                f"The gradient of this network cannot be taken record by record by "
                f"torch.func.vmap: {str(error).strip().splitlines()[0]} Take layers without draws "
                f"and states of their own, such as those of SmallResNet."
            ) from None


def _refuse_batch_statistics(module: Any) -> None:
    # All of torch's layers of the kind are of this class, which has no public name.
    kind = torch.nn.modules.batchnorm._NormBase
    found = [
        f"{name or 'the network'} ({type(part).__name__})"
        for name, part in module.named_modules()
        if isinstance(part, kind)
        and (part.track_running_stats or isinstance(part, torch.nn.modules.batchnorm._BatchNorm))
    ]
    if found:
        raise ValueError(
            f"DP-SGD clips the gradient of each record, and these layers keep statistics of all "
            f"records of a batch: {', '.join(found)}. Replace each by "
            f"torch.nn.GroupNorm(groups, channels), as SmallResNet has it."
        )


def _with_given_dropout(
    module: Any, shape: tuple[int, ...]
) -> dict[str, tuple[tuple[int, ...], float]]:
    """Replace layers of dropout by ones that are given what to keep; return what each needs."""
    kinds = torch.nn.modules.dropout
    plain = (torch.nn.Dropout, torch.nn.Dropout1d, torch.nn.Dropout2d, torch.nn.Dropout3d)
    found, seen = {}, {}
    for name, part in module.named_modules():
        if not isinstance(part, kinds._DropoutNd) or part.p == 0:
            continue
        if not isinstance(part, plain) or part.p >= 1:
            raise ValueError(
                f"DP-SGD draws dropout for each record, and knows no {part!r} ({name}). Take "
                f"torch.nn.Dropout(p) or Dropout2d(p), with p below 1."
            )
        found[name] = part
        part.register_forward_hook(
            lambda layer, given, _, name=name: seen.update({name: tuple(given[0].shape[1:])})
        )
    if not found:
        return {}
    with torch.no_grad():
        module.eval()(torch.zeros((1, *shape)))
    masks = {}
    for name, part in found.items():
        if name not in seen:
            continue  # a layer that is not used
        sides = seen[name]
        whole = type(part) is torch.nn.Dropout
        kept = sides if whole else (*sides[:1], *(1 for _ in sides[1:]))
        module.set_submodule(name, _given_dropout(kept))
        masks[name] = (kept, 1.0 - part.p)
    return masks


def _given_dropout(shape: tuple[int, ...]) -> Any:
    """Return a layer that multiplies by its buffer ``kept``."""

    class GivenDropout(torch.nn.Module):  # type: ignore[misc]  # torch is imported late
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.ones(shape), persistent=False)

        def forward(self, x: Any) -> Any:
            return x * self.kept

    return GivenDropout()


def _trainable(module: Any) -> dict[str, Any]:
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


def _flat(weights: Mapping[str, Any]) -> FloatArray:
    if not weights:
        raise ValueError("The network has no weight that needs a gradient: nothing is trained.")
    return np.concatenate([array(value).ravel() for value in weights.values()]).astype(np.float64)


def _scales(gradients: Mapping[str, Any], room: float, n: int) -> Any:
    """Return by what each record's gradient is multiplied; 0 what is not finite, or no record."""
    square = sum(
        torch.linalg.vector_norm(g.flatten(1), dim=1).double() ** 2 for g in gradients.values()
    )
    fine = torch.isfinite(square)
    fine[n:] = False
    for g in gradients.values():
        g[~fine] = 0.0  # 0 times infinity is no number
    norm = square.sqrt().clamp(min=TINY)
    return torch.where(fine, (SHORT * room / norm).clamp(max=1.0), torch.zeros_like(norm)).float()


def _n_together(module: Any, shape: tuple[int, ...]) -> int:
    """Return how many records pass together, from public sizes alone."""
    n_weights = sum(int(value.numel()) for value in _trainable(module).values())
    each: int = 4 * (2 * n_weights + 4 * sum(outputs_of(module, shape)))
    return max(1, min(CHUNK_ROWS, CHUNK_BYTES // each))


def _scores_of(module: Any, rows: Array) -> tuple[Any, Any]:
    """Return the scores of records together, and of each alone."""
    with torch.no_grad(), torch.random.fork_rng([]):
        torch.random.manual_seed(0)
        together = module(features_of(rows))
        alone = torch.cat([module(features_of(row[None])) for row in rows])
    return together, alone
