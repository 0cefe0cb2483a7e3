"""DP-WGAN: what a record adds to a step is bounded whatever the weights and bounds are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from marks import FAINT

torch = pytest.importorskip("torch", reason="needs the extra torch")

from evenhand.datasets import Schema  # noqa: E402  # after the skip
from evenhand.generators import DPWGANSynthesizer  # noqa: E402
from evenhand.generators.aggregators import ClippedSums  # noqa: E402
from evenhand.generators.budget_plan import noisy_sum  # noqa: E402
from evenhand.generators.clipping import CLIPS, Clipping  # noqa: E402
from evenhand.generators.tables.clipped_critic import ClippedCritic  # noqa: E402
from evenhand.generators.tables.dp_wgan import GRADIENTS  # noqa: E402
from evenhand.generators.tables.synthesizer import TableSynthesizer  # noqa: E402
from evenhand.privacy import (  # noqa: E402
    Budget,
    FloatNoise,
    SeededNoise,
    audit_epsilon_lower_bound,
)
from evenhand.privacy.gaussian import epsilon_from_mu  # noqa: E402
from evenhand.testing.generators import (  # noqa: E402
    BUDGET,
    ROLES,
    SCHEMA,
    SynthesizerContract,
    table,
)

pytestmark = [pytest.mark.torch, FAINT]

SMALL: dict[str, Any] = {
    "n_steps": 8,
    "batch_size": 32,
    "width": 8,
    "generator_hidden": (16,),
    "noise": SeededNoise(0),
    "random_state": 0,
}


class TestDPWGAN(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return DPWGANSynthesizer(**SMALL)


class TestDPWGANThatAdapts(SynthesizerContract):
    def new(self) -> TableSynthesizer:
        return DPWGANSynthesizer(clip="global-adapt", **SMALL)


SIZES = (3, 4, 2)


def critic(clip: str, bound: float = 1.0, *, scale: float = 1.0) -> ClippedCritic:
    clipping = Clipping.start(clip, bound, n_groups=2)
    made = ClippedCritic.start(SIZES, width=5, clipping=clipping, rng=np.random.default_rng(0))
    made.weights = [scale * w for w in made.weights]
    return made


def every_row() -> np.ndarray:
    return np.stack(np.meshgrid(*map(np.arange, SIZES), indexing="ij"), axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("bound", [0.2, 5.0])
def test_no_record_adds_more_than_one_and_sums_are_exactly_of_records(
    clip: str, scale: float, bound: float
) -> None:
    # Brute force: all rows of both groups, before and after the bounds moved.
    made = critic(clip, bound, scale=scale)
    rows, unit = every_row(), ClippedSums.unit
    for moved in range(3):
        for group in (0, 1):
            where = np.full(len(rows), group)
            alone = np.stack([made.clipped_sum(made.rows(row[None]), where[:1]) for row in rows])
            lengths = np.linalg.norm(alone * unit, axis=1)
            assert lengths.max() <= 1.0
            if bound == 0.2 and scale == 30.0:
                assert (
                    lengths.max() > 0.99 * made.clipping.bounds[group] / made.clipping.bounds.max()
                )
            # Whole numbers: the sum of all is the sum of each, to the last digit, in any order.
            assert np.array_equal(made.clipped_sum(made.rows(rows), where), alone.sum(axis=0))
        noisy = np.full(made.n_values, 3.0 * moved)
        noisy[-1] *= 4.0
        made.move_bounds(noisy, np.array([10.0, 10.0]))


def test_the_gradient_is_that_of_autograd_where_nothing_is_clipped() -> None:
    made = critic("flat", bound=1e3)
    rows = every_row()
    total = made.clipped_sum(made.rows(rows), np.zeros(len(rows), dtype=np.int64))
    found = made.gradient(total * ClippedSums.unit, len(rows))
    weights = [torch.tensor(w, requires_grad=True) for w in made.weights]
    x = torch.as_tensor(made.rows(rows).toarray())
    score = torch.relu(x @ weights[0] + weights[1]) @ weights[2] + weights[3]
    assert made.score(rows) == pytest.approx(score.detach().numpy())
    score.mean().backward()
    for mine, by_hand in zip(found, weights, strict=True):
        assert mine == pytest.approx(by_hand.grad.numpy(), abs=1e-2)  # a unit is 1e3 * 2**-20


def test_groups_with_more_long_gradients_get_more_room() -> None:
    made = critic("group", bound=0.5)
    noisy = np.zeros(made.n_values)
    noisy[-2:] = np.array([8.0, 2.0]) * made.clipping.share
    made.move_bounds(noisy, np.array([10.0, 10.0]))
    # DP-SGD-F: C (1 + (m_z / b_z) / (m / b)) with shares .8 and .2 of each, .5 of all.
    assert made.clipping.bounds == pytest.approx([0.5 * 2.6, 0.5 * 1.4])
    adapt = critic("global-adapt", bound=0.5)
    adapt.move_bounds(noisy[: adapt.n_values], np.array([10.0, 10.0]))
    assert adapt.clipping.bounds == pytest.approx(np.full(2, 0.5 * np.exp(0.1 * (0.5 - 0.1))))
    flat = critic("flat", bound=0.5)
    flat.move_bounds(noisy, np.array([10.0, 10.0]))
    assert flat.clipping.bounds == pytest.approx([0.5, 0.5])


def test_an_attack_on_a_step_stays_below_the_claim_and_convicts_half_the_noise() -> None:
    # The worst record of a critic with long gradients; wrong with a probability of at most 1e-6.
    made = critic("flat", bound=0.2, scale=30.0)
    one = made.clipped_sum(made.rows(every_row()[:1]), np.zeros(1, dtype=np.int64))
    claimed = epsilon_from_mu(1.0, 1e-3)
    sums = ClippedSums(clip_norm=1.0)
    step = noisy_sum(
        sums, mu_squared=1.0, n_steps=1, neighbors="add or remove one", noise=FloatNoise()
    )
    rng = np.random.default_rng(3)

    def found(sigma: float) -> float:
        # The projection on the way between both sums, which is all that tells them apart.
        way = one / np.linalg.norm(one)
        scores = [rng.normal(float(s @ way), sigma, 100_000) for s in (one, 0 * one)]
        return audit_epsilon_lower_bound(*scores, delta=1e-3, confidence=1 - 1e-6)

    assert 0.5 * claimed < found(step.sigma) < claimed
    assert found(step.sigma / 2) > claimed
    assert sums.l2_sensitivity("replace one") == 2 * sums.l2_sensitivity("add or remove one")
    three = ClippedSums(clip_norm=1.0, per_unit=3)
    assert three.l2_sensitivity("add or remove one") * three.unit == 3.0


def test_all_steps_are_reserved_before_the_first_and_sum_to_the_share() -> None:
    made = DPWGANSynthesizer(**SMALL).fit(table(), **ROLES, budget=BUDGET, schema=SCHEMA)
    (steps,) = (e for e in made.ledger_.entries if e.purpose == GRADIENTS)
    assert steps.n_uses == 8
    left = BUDGET.mu_squared * 0.95 * 0.75
    assert steps.mu_squared == pytest.approx(left, rel=1e-6)


def test_it_learns_what_counts_of_columns_do_not_say() -> None:
    # Two columns that always agree; drawn apart they would agree half of the time.
    rng = np.random.default_rng(0)
    n = 3000
    a = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "a": np.array(["u", "v"])[a],
            "b": np.array(["x", "y"])[a],
            "y": rng.choice(["no", "yes"], n),
            "s": rng.choice(["F", "M"], n),
        }
    )
    made = DPWGANSynthesizer(
        noise=SeededNoise(0), random_state=0, width=16, generator_hidden=(32,), batch_size=64,
        n_steps=150, generator_rate=4e-3,
    ).fit(
        frame, label="y", sensitive="s", budget=Budget(epsilon=20.0, delta=1e-5),
        schema=Schema.of_public(frame),
    )  # fmt: skip
    rows = made.sample(4000, random_state=0)
    assert ((rows["a"] == "u") == (rows["b"] == "x")).mean() > 0.8
    assert abs((rows["a"] == "u").mean() - 0.5) < 0.1


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a way to clip that is none": ({"clip": "flatt"}, "Did you mean 'flat'"),
    "no bound": ({"clip_norm": 0.0}, "clip_norm must be finite and > 0"),
    "no steps": ({"n_steps": 0}, "n_steps must be at least 1"),
    "all for the start": ({"start": 1.0}, r"start must lie in \[0, 1\)"),
    "no width": ({"width": 0}, "width must be at least 1"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_settings_that_make_no_sense_are_refused(case: str) -> None:
    settings, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        DPWGANSynthesizer(**{**SMALL, **settings}).fit(
            table(), **ROLES, budget=BUDGET, schema=SCHEMA
        )
