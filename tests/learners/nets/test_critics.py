"""Critics that are trained together are what each would be alone."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.typing import FloatArray, IntArray

torch = pytest.importorskip("torch", reason="needs the extra torch")

from evenhand.learners.nets.critics import BETAS, StackedCritics  # noqa: E402  # after the skip

pytestmark = pytest.mark.torch

SIZES, N, STEPS, ROWS = (4, 3, 5), 40, 6, 8


def batches(seed: int = 0) -> tuple[IntArray, IntArray]:
    rng = np.random.default_rng(seed)
    real = np.stack([rng.integers(0, s, (N, STEPS, ROWS)) for s in SIZES], axis=-1)
    return real, np.stack([rng.integers(0, s, (STEPS, ROWS)) for s in SIZES], axis=-1)


def critics(*, gold: bool = False, n: int = N) -> StackedCritics:
    streams = np.random.default_rng(3).spawn(N)[:n]
    return StackedCritics(sizes=SIZES, hidden=(7,), streams=streams, learning_rate=0.01, gold=gold)


@pytest.mark.parametrize("gold", [False, True])
def test_other_rows_of_one_partition_change_one_critic_alone_bit_for_bit(gold: bool) -> None:
    real, generated = batches()
    present = np.ones(N, dtype=np.bool_)
    one, other = critics(gold=gold), critics(gold=gold)
    one.train(real, present, generated)
    changed = real.copy()
    changed[17, 2, 3, 0] = (changed[17, 2, 3, 0] + 1) % SIZES[0]
    other.train(changed, present, generated)
    assert [t for t in range(N) if not np.array_equal(one.state(t), other.state(t))] == [17]
    # And the other way round: with other rows everywhere else this one is as it was.
    elsewhere, _ = batches(seed=5)
    elsewhere[17] = real[17]
    rest = critics(gold=gold)
    rest.train(elsewhere, present, generated)
    assert [t for t in range(N) if np.array_equal(one.state(t), rest.state(t))] == [17]
    gone = present.copy()
    gone[4] = False  # a partition without rows, whatever stands in its place
    empty = critics(gold=gold)
    empty.train(real, gone, generated)
    assert [t for t in range(N) if not np.array_equal(one.state(t), empty.state(t))] == [4]


def alone(t: int, real: IntArray, generated: IntArray, *, gold: bool) -> list[FloatArray]:
    """Train critic ``t`` by autograd, from the definition of its loss."""
    stream = np.random.default_rng(3).spawn(N)[t]
    parameters = []
    for n_in, n_out in ((sum(SIZES), 7), (7, 2)):
        drawn = torch.as_tensor(stream.random((n_in, n_out), dtype=np.float32))
        parameters.append(((6 / n_in) ** 0.5 * (2 * drawn - 1)).requires_grad_())
        parameters.append(torch.zeros(n_out, requires_grad=True))
    w1, b1, w2, b2 = parameters
    adam = torch.optim.Adam(parameters, lr=0.01, betas=BETAS)

    def odds(rows: IntArray) -> torch.Tensor:
        x = torch.cat(
            [torch.eye(s)[torch.as_tensor(rows[:, j])] for j, s in enumerate(SIZES)], dim=1
        )
        scores = torch.relu(x @ w1 + b1) @ w2 + b2
        return scores[:, 1] - scores[:, 0]

    softplus = torch.nn.functional.softplus
    for own, drawn in zip(real, generated, strict=True):
        adam.zero_grad()
        fake = odds(drawn)
        weight = torch.softmax(fake.detach(), dim=0) if gold else torch.full((ROWS,), 1 / ROWS)
        (softplus(-odds(own)).mean() + (weight * softplus(fake)).sum()).backward()
        adam.step()
    return [p.detach().numpy() for p in parameters]


@pytest.mark.parametrize("gold", [False, True])
def test_a_critic_minimises_the_loss_of_its_definition(gold: bool) -> None:
    real, generated = batches()
    stack = critics(gold=gold)
    stack.train(real, np.ones(N, dtype=np.bool_), generated)
    for t in (0, 31, 32, 39):
        w1, b1, w2, b2 = alone(t, real[t], generated, gold=gold)
        (v1, a1), (v2, a2) = stack.network(t)
        for mine, by_hand in ((v1, w1), (a1, b1), (v2, w2), (a2, b2)):
            # A step of Adam moves a weight by up to .01: a tenth of one step is rounding, in
            # float32 and in another order, over all of them.
            assert mine == pytest.approx(by_hand, abs=1e-3)


def test_only_the_rows_that_are_a_critics_business_are_judged_by_it() -> None:
    # Half of the generated rows are nobody's: the others weigh double, as if alone in the batch.
    real, generated = batches()
    judged = np.zeros((N, STEPS, ROWS), dtype=np.bool_)
    judged[:, :, : ROWS // 2] = True
    one, other = critics(), critics()
    one.train(real, np.ones(N, dtype=np.bool_), generated, judged)
    other.train(real, np.ones(N, dtype=np.bool_), generated[:, : ROWS // 2])
    for t in (0, 39):
        for mine, short in zip(one.network(t), other.network(t), strict=True):
            assert mine[0] == pytest.approx(short[0], abs=1e-4)


def test_trained_critics_tell_their_rows_from_generated_ones() -> None:
    real, generated = batches()
    real[..., 0], generated[..., 0] = 0, 1
    stack = critics()
    for _ in range(10):
        stack.train(real, np.ones(N, dtype=np.bool_), generated)
    assert stack.judge(real[0, 0]).mean() > 0.95
    assert stack.judge(generated[0]).mean() < 0.05


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="learning_rate must be finite and > 0"):
        StackedCritics(sizes=(2,), hidden=(3,), streams=[], learning_rate=0.0)
    with pytest.raises(ValueError, match="hidden must be at least 1"):
        StackedCritics(sizes=(2,), hidden=(0,), streams=[], learning_rate=0.1)
