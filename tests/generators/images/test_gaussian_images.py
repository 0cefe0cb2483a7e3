"""Gaussian pictures: what one picture moves, what noise explains, and what is drawn."""

import sys
from typing import Any

import numpy as np
import pytest
from marks import FAINT

from evenhand.generators import load
from evenhand.generators.aggregators import FeatureSums, OuterSums
from evenhand.generators.images.gaussian import Components, GaussianImages, low_frequencies
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import ImageSynthesizerContract, nearest_cell, pictures

pytestmark = FAINT
MUCH = Budget(epsilon=500.0, delta=1e-5)


def new(**settings: Any) -> GaussianImages:
    return GaussianImages(**({"noise": SeededNoise(0), "random_state": 0} | settings))


class TestGaussian(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        return new()


@pytest.mark.parametrize(("size", "n"), [((1, 6, 4), 24), ((1, 6, 4), 10), ((3, 5, 5), 30)])
def test_cosines_are_orthonormal_and_the_lowest_come_first(size: Any, n: int) -> None:
    cosines = low_frequencies(size, n)
    assert cosines.shape == (np.prod(size), n)
    assert cosines.T @ cosines == pytest.approx(np.eye(n), abs=1e-12)
    # Smooth pictures are read almost whole: a second derivation by what is left out.
    slope = np.linspace(0.0, 1.0, size[2])[None, None] * np.ones(size)
    left = slope.ravel() - cosines @ (cosines.T @ slope.ravel())
    assert (left**2).sum() < 0.02 * ((slope - slope.mean()) ** 2).sum()


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("relation", ["add or remove one", "replace one"])
def test_no_picture_moves_a_release_by_more_than_it_declares(
    relation: str, mirrored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All five releases of whole fits, their exact totals before noise; the extremes among the
    # pictures. What a later release reads of earlier ones stays as it was: the noise has a seed,
    # and is far larger than what a picture moves.
    images, y, side = pictures(30)
    images[0], images[1] = 0, 255
    images[2] = 255 * (np.indices((8, 8)).sum(axis=0) % 2)
    totals: list[Any] = []
    kept: dict[type, Any] = {}
    for kind in (FeatureSums, OuterSums):
        kept[kind] = kind.total

        def total(self: Any, z: Any, where: Any, real: Any = kept[kind]) -> Any:
            totals.append((self, np.array(z), np.array(where)))
            return real(self, z, where)

        monkeypatch.setattr(kind, "total", total)
    new(neighbors=relation, mirrored=mirrored).fit(
        images, y, sensitive_features=side, budget=Budget(epsilon=1.0, delta=1e-5)
    )
    kinds = [FeatureSums, OuterSums, OuterSums, FeatureSums, OuterSums]
    assert [type(sums) for sums, _, _ in totals] == kinds
    for sums, z, where in totals:
        whole = kept[type(sums)](sums, z, where)
        bound = sums.l2_sensitivity(relation)
        for i in range(4):
            rest = np.arange(30) != i
            if relation == "add or remove one":
                moved = [kept[type(sums)](sums, z[rest], where[rest])]
            else:
                moved = []
                for j in range(30):
                    zs, ws = z.copy(), where.copy()
                    zs[i], ws[i] = z[j], where[j]
                    moved.append(kept[type(sums)](sums, zs, ws))
            apart = max(float(np.linalg.norm((whole - m).astype(float))) for m in moved)
            assert apart <= bound * (1 + 1e-12)
    first = totals[0][1]
    # No picture is cut in the first release: black and white ones have length 1.
    assert np.linalg.norm(first, axis=1).max() <= 1 + 1e-9
    assert np.linalg.norm(first[:2], axis=1) == pytest.approx(1.0)


def test_the_budget_goes_to_five_releases_by_their_shares() -> None:
    images, y, side = pictures(200)
    budget = Budget(epsilon=5.0, delta=1e-5)
    made = new().fit(images, y, sensitive_features=side, budget=budget)
    spent = [entry.mu_squared / budget.mu_squared for entry in made.ledger_.entries]
    assert spent == pytest.approx([0.1, 0.15, 0.15, 0.2, 0.4], rel=1e-6)
    sigma = (2.0 / 0.1) ** 0.5 / budget.mu
    assert made.counts_sigma_ == pytest.approx(sigma, rel=1e-6)


def test_means_and_covariances_of_drawn_pictures_are_those_of_the_private_ones() -> None:
    # Smooth pictures of known variance along three cosines, another one for each label.
    rng = np.random.default_rng(0)
    n, cosines = 4000, low_frequencies((1, 8, 8), 9)
    y = np.arange(n) % 2
    spread = np.where(y[:, None] == 1, [0.5, 0.1, 0.3], [0.1, 0.5, 0.2])
    moved = rng.normal(size=(n, 3)) * spread
    flat = 0.5 + moved @ cosines[:, 1:4].T + np.where(y, 0.1, -0.1)[:, None]
    images = np.clip(flat, 0, 1).reshape(n, 8, 8)
    made = new().fit(images, y, budget=MUCH)
    drawn = made.sample(n, random_state=1)
    for label in (0, 1):
        real, own = (
            a.reshape(-1, 64)[b == label] @ cosines
            for a, b in ((images, y), (drawn.images, drawn.y))
        )
        # 2,000 of each: a mean moves by .5 / sqrt(2000) = .011, a deviation by a 63rd part of it.
        # Few pictures lie beyond the radius, and these are shortened.
        assert np.abs(real.mean(axis=0) - own.mean(axis=0)).max() < 0.1
        assert own.std(axis=0)[1:4] == pytest.approx(real.std(axis=0)[1:4], rel=0.2)


def shapes(n: int) -> tuple[Any, Any, Any]:
    """Pictures of one label that are either of two far shapes, and a label that is one shape."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    which = rng.random(n) < 0.25
    images = np.full((n, 8, 8), 0.1)
    images[(y == 0) & which, :, :4] = 0.9
    images[(y == 0) & ~which, :, 4:] = 0.9
    images[y == 1] = 0.5
    return np.clip(images + rng.normal(0.0, 0.05, images.shape), 0, 1), y, which


def test_a_label_of_two_shapes_is_drawn_as_two_and_not_as_what_lies_between() -> None:
    images, y, which = shapes(4000)
    made = new().fit(images, y, budget=MUCH)
    drawn = made.sample(2000, conditions={"label": "0"}, random_state=1).images
    left, right = drawn[:, :, :4].mean(axis=(1, 2)), drawn[:, :, 4:].mean(axis=(1, 2))
    first, second = (left > 0.7) & (right < 0.3), (left < 0.3) & (right > 0.7)
    assert (first | second).mean() > 0.95
    # As often as they are: a rate of 2,000 of each is known within 6 * sqrt(.25 * .75 / 2000) * 2.
    assert abs(first.mean() - which[y == 0].mean()) < 0.12
    one = new(n_components=1).fit(images, y, budget=MUCH)
    drawn = one.sample(2000, conditions={"label": "0"}, random_state=1).images
    left, right = drawn[:, :, :4].mean(axis=(1, 2)), drawn[:, :, 4:].mean(axis=(1, 2))
    # A single Gaussian with the mean and variance of the two, .3 and .35: five eighths.
    either = ((left > 0.7) & (right < 0.3)) | ((left < 0.3) & (right > 0.7))
    assert either.mean() < 0.8


def test_a_small_group_of_one_component_has_the_spread_of_its_label_and_not_of_a_part() -> None:
    images, y, _ = shapes(4000)
    side = np.where(np.arange(4000) % 100 < 2, "few", "many")
    budget, asked = Budget(epsilon=3.0, delta=1e-5), {"label": "0", "sensitive": "few"}
    spread = []
    for seed in range(8):
        made = new(noise=SeededNoise(seed)).fit(images, y, sensitive_features=side, budget=budget)
        few, many = made.n_components_[:2]  # of the first label
        assert few == 1
        assert many > 1
        drawn = made.sample(500, conditions=asked, random_state=1).images
        spread.append((drawn[:, :, :4] - drawn[:, :, 4:]).mean(axis=(1, 2)).std())
    # Two shapes .8 and -.8, one in four: .69 in all, less what is shortened; .05 within one.
    assert np.mean(spread) > 0.2


def test_a_picture_is_in_the_nearest_component_of_its_own_label_and_group() -> None:
    rng = np.random.default_rng(0)
    cells = Components(centres=rng.normal(size=(6, 5)), of=np.array([0, 0, 0, 1, 2, 2]))
    points, condition = rng.normal(size=(200, 5)), rng.integers(0, 3, 200)
    found = cells.nearest(points, condition)
    for point, c, cell in zip(points, condition, found, strict=True):
        apart = ((cells.centres - point) ** 2).sum(axis=1)
        assert cells.of[cell] == c
        assert apart[cell] == apart[cells.of == c].min()
    weights = cells.weights(np.array([30.0, 10.0, 2.0, -3.0, 1.0, -1.0]), sigma=1.0)
    assert weights == pytest.approx([0.75, 0.25, 0.0, 1.0, 0.5, 0.5])


def test_drawn_pictures_show_their_label_and_group() -> None:
    images, y, side = pictures(2000)
    made = new().fit(images, y, sensitive_features=side, budget=Budget(epsilon=50.0, delta=1e-5))
    for label in ("lies", "stands"):
        for group in ("left", "right"):
            drawn = made.sample(50, conditions={"label": label, "sensitive": group}, random_state=0)
            assert nearest_cell(drawn.images, images, y, side) == (label, group)


def test_groups_that_are_noise_have_what_their_label_has_and_others_their_own() -> None:
    images, y, side = pictures(200)
    groups = ["left", "right", "top"]
    made = new().fit(images, y, sensitive_features=side, groups=groups, budget=MUCH)
    made.counts_, made.counts_sigma_ = np.array([900.0, 100.0, 3.0, 500.0, 400.0, 2.0]), 10.0
    rng, m = np.random.default_rng(0), 30
    own = np.repeat([[3.0], [3.0], [80.0], [0.0], [9.0], [80.0]], m, axis=1)
    noise = np.array([0.0, 4.0, 9.0, 0.0, 0.01, 9.0])
    found = made._towards_label(
        own + noise[:, None] * rng.normal(size=(6, m)), made.counts_, noise**2 * m
    )
    # The second group differs by noise alone, and has at most a part of it left: the squared length
    # of m numbers lies within 6 sqrt(2 m) of m.
    assert ((found[1] - found[2]) ** 2).sum() < 16.0 * 6 * (2 * m) ** 0.5
    assert found[0] == pytest.approx(own[0])
    # The third was not seen, and has the mean of its label's others; so has the last.
    assert np.abs(found[2] - 3.0).max() < 0.1 * 6 * 4.0
    assert found[5] == pytest.approx(np.full(m, 4.0), abs=0.1)
    assert found[4] == pytest.approx(own[4], abs=0.1)  # nine noises of .01 away: its own


@pytest.mark.parametrize("mirrored", [False, True])
def test_it_fits_draws_and_comes_back_without_torch(
    mirrored: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    images, y, _ = pictures(200)
    made = new(mirrored=mirrored).fit(images, y, budget=MUCH)
    again = load(made.save(tmp_path / "made"))
    drawn = [g.sample(6, random_state=0).images for g in (made, again)]
    assert np.array_equal(*drawn)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_frequencies": 0}, "n_frequencies must be at least 1"),
        ({"n_directions": 0}, "n_directions must be at least 1"),
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"radius": 0.0}, "radius must be finite and > 0"),
        ({"neighbors": "change one"}, "neighbors must be one of"),
    ],
)
def test_settings_out_of_range_spend_nothing(settings: dict[str, Any], message: str) -> None:
    images, y, _ = pictures(60)
    store = MemoryStore()
    with pytest.raises(ValueError, match=message):
        new(**settings).fit(images, y, budget=MUCH, store=store)
    assert all(entry.n_uses == 0 for entry in store.entries("default"))
