"""DPSGDClassifier on pictures: features of an extractor, and convolutional networks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import falls_short

import evenhand
from evenhand import Budget, DemographicParity, DPSGDClassifier
from evenhand.datasets.features import extract
from evenhand.estimators.dpsgd import AimMissed
from evenhand.learners.nets.architectures import Convolutional
from evenhand.learners.nets.resnet import SmallResNet
from evenhand.privacy import FloatNoise, SeededNoise

BUDGET = Budget(epsilon=8.0, delta=1e-5)
NETWORK = Convolutional(widths=(4, 8))


class Colours:
    """Mean and spread of each channel."""

    name, version, dimension, digest = "colours", "1", 6, "mean and sd of channels"
    trained_on, licence = "nothing", "none needed"

    def transform(self, pictures: Any) -> Any:
        x = pictures / np.float32(255.0)
        return np.concatenate([x.mean(axis=(2, 3)), x.std(axis=(2, 3))], axis=1, dtype=np.float32)


def squares(n: int, n_classes: int = 3, seed: int = 0) -> Any:
    """Pictures of a square in one colour of three, in a half that goes with the colour."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    side = np.where(rng.random(n) < 0.8, (y > 0).astype(np.int64), rng.integers(0, 2, n))
    X = rng.integers(0, 60, (n, 3, 8, 8), dtype=np.uint8)
    for i in range(n):
        X[i, y[i], 2:6, 4 * side[i] : 4 * side[i] + 4] = 220
    names = np.array(["red", "green", "blue"])
    return X, names[y], np.array(["left", "right", "left"])[side]


def steps(**changes: Any) -> dict[str, Any]:
    return {"n_steps": 60, "batch_size": 200, "noise": SeededNoise(0), "random_state": 0} | changes


@pytest.mark.parametrize("hidden", [(), (8,)])
def test_features_are_learned_and_the_extractor_is_in_the_claim(hidden: tuple[int, ...]) -> None:
    X, y, side = squares(1500)
    features = extract(X, Colours(), cache=False)
    model = DPSGDClassifier(
        BUDGET, DemographicParity(margin=0.3), hidden=hidden, **steps(n_steps=150)
    )
    model.fit(features[:1000], y[:1000], sensitive_features=side[:1000], X_public=features[1000:])
    assert (model.predict(features[1000:]) == y[1000:]).mean() > 0.55  # a guess: one third
    assert features.made_by in model.guarantee_.public
    assert model.groups_ == ("left", "right")
    assert model.predict_proba(features[:5]).shape == (5, 3)


torch = pytest.importorskip("torch")


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("architecture", [NETWORK, SmallResNet(widths=(8, 16)), "Convolutional"])
def test_pictures_are_learned_saved_and_read_back(architecture: Any, tmp_path: Path) -> None:
    X, y, _ = squares(1100)
    model = DPSGDClassifier(BUDGET, architecture=architecture, **steps(noise=FloatNoise()))
    model.fit(X[:1000], y[:1000])
    assert (model.predict(X[1000:]) == y[1000:]).mean() > 0.6  # a guess is right on a third
    p = model.predict_proba(X[1000:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
    assert p.shape == (100, 3)
    again = evenhand.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.predict_proba(X[1000:]), p)
    assert again.guarantee_ == model.guarantee_
    with pytest.raises(ValueError, match="must be uint8 of shape"):
        again.predict(X[:5, :, :4])


@pytest.mark.slow
@pytest.mark.torch
def test_the_cost_is_that_of_tables_and_charged_before_the_noise_is_drawn(draws: Any) -> None:
    X, y, _ = squares(300)
    of_pictures = DPSGDClassifier(BUDGET, architecture=NETWORK, **steps(n_steps=20)).fit(X, y)
    assert len(draws.spent) >= 20
    assert min(draws.spent) > 0.99
    flat = X[:, :, ::4, ::4].reshape(300, -1).astype(float)
    of_rows = DPSGDClassifier(BUDGET, **steps(n_steps=20)).fit(flat, y, X_public=flat + 1.0)
    assert of_pictures.mechanism_ == of_rows.mechanism_
    assert of_pictures.ledger_.spent == of_rows.ledger_.spent
    assert "the features of" not in str(of_pictures.guarantee_)
    for words in ("add or remove one record", "the number of private records (300)"):
        assert words in str(of_pictures.guarantee_)


@pytest.mark.torch
def test_the_noise_in_the_network_is_that_of_its_mechanism() -> None:
    # One step: the weights are the first ones less rate * (sum + noise) / batch, and the noise can
    # be taken away by its seed; what is left is a sum of 300 gradients, each of norm 1 at most.
    X, y, _ = squares(300)
    model = DPSGDClassifier(
        BUDGET, architecture=NETWORK, learning_rate=1.0, **steps(n_steps=1, batch_size=300)
    ).fit(X, y)
    network = model._network(model._learner(), X, 3, np.random.default_rng(0), SeededNoise(0))
    ended = np.concatenate([v.detach().ravel() for v in model.student_.module_.parameters()])
    noise = SeededNoise(0).gaussian(model.mechanism_.noise_multiplier, (len(ended),))
    left = (network.start - ended) * 300 - noise
    codes = np.searchsorted(model.classes_, y)
    total, _ = network.clipped_sum(network.start, X, codes, None, 1.0)
    np.testing.assert_allclose(left, total, atol=1e-3)  # weights are kept in float32


@pytest.mark.slow
@pytest.mark.torch
def test_a_margin_brings_the_groups_nearer_in_a_network() -> None:
    # Smoothed gap, with noise of six seeds, in the mean at most three quarters of that without.
    X, y, side = squares(600, n_classes=2)
    left = side == "left"

    def gap(model: Any) -> float:
        p = model.predict_proba(X)[:, 0]
        return float(abs(p[left].mean() - p[~left].mean()))

    before, after = [], []
    for seed in range(6):
        given = steps(noise=SeededNoise(seed), random_state=seed, n_steps=80)
        free = DPSGDClassifier(BUDGET, architecture=NETWORK, **given).fit(X, y)
        held = DPSGDClassifier(
            BUDGET, DemographicParity(margin=0.05), architecture=NETWORK, **given
        ).fit(X, y, sensitive_features=side)
        before.append(gap(free))
        after.append(gap(held))
    assert held.groups_ == ("left", "right")
    assert not falls_short(0.75 * np.array(before) - after)
    assert falls_short(0.75 * np.array(before) - before)


@pytest.mark.slow
@pytest.mark.torch
def test_a_network_says_when_its_aim_was_missed() -> None:
    # Next to no pull and next to no noise: the noisy tables tell of the gap that the data have.
    X, y, side = squares(600)
    model = DPSGDClassifier(
        Budget(epsilon=200.0, delta=1e-5),
        DemographicParity(margin=0.01),
        architecture=NETWORK,
        penalty=1e-6,
        **steps(),
    )
    with pytest.warns(AimMissed, match=r"aimed for a gap of 0.01 .* it ended at 0"):
        model.fit(X, y, sensitive_features=side)
    assert model.within_margin_ is False
    said, left = model.predict(X), side == "left"
    gap = max(abs((said[left] == k).mean() - (said[~left] == k).mean()) for k in model.classes_)
    assert gap > 0.2
    assert model.public_gap_ == pytest.approx(gap, abs=0.15)


@pytest.mark.torch
def test_a_module_starts_from_public_weights_and_is_not_saved(tmp_path: Path) -> None:
    X, y, _ = squares(200)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 3))
    with torch.no_grad():
        module[1].weight.fill_(0.25)
    model = DPSGDClassifier(BUDGET, architecture=module, **steps(n_steps=1, learning_rate=1e-9))
    model.fit(X, y)
    np.testing.assert_allclose(model.student_.module_[1].weight.detach(), 0.25, atol=1e-5)
    assert "the weights that the network started from" in model.guarantee_.public
    with pytest.raises(ValueError, match="architecture holds a torch module"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.torch
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"architecture=SmallResNet\(\)"),
        ({"hidden": (4,)}, r"architecture=SmallResNet\(\)"),
        ({"hidden": (4,), "architecture": NETWORK}, "are two networks"),
        ({"architecture": "Convolutionl"}, "Did you mean 'Convolutional'"),
        ({"architecture": 3}, "must be a torch.nn.Module or an architecture"),
        ({"architecture": NETWORK, "schema": {}}, "Pictures have no columns"),
        ({"architecture": NETWORK, "device": "nowhere"}, "device must be one that PyTorch finds"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_charged(
    settings: dict[str, Any], message: str, draws: Any
) -> None:
    X, y, _ = squares(100)
    with pytest.raises((ValueError, TypeError), match=message):
        DPSGDClassifier(BUDGET, **steps(), **settings).fit(X, y)
    assert not draws.spent


@pytest.mark.slow
@pytest.mark.torch
def test_rows_set_aside_public_pictures_and_thresholds_work_as_for_tables() -> None:
    X, y, side = squares(400, n_classes=2)
    model = DPSGDClassifier(BUDGET, architecture=NETWORK, public_fraction=0.25, **steps(n_steps=5))
    model.fit(X, y)
    assert "rows of the table, set aside as public" in str(model.guarantee_)
    model = DPSGDClassifier(BUDGET, architecture=NETWORK, **steps(n_steps=5))
    model.fit(X[:300], y[:300], X_public=X[300:])
    fair = model.with_group_thresholds(X[300:], side[300:], fairness=DemographicParity(margin=0.05))
    assert set(fair.predict(X[300:], sensitive_features=side[300:])) <= set(y)
