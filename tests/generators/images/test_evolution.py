"""Private evolution: votes by brute force, what one picture moves, and when it is paid for."""

from typing import Any

import numpy as np
import pytest
from marks import FAINT

from evenhand.generators import GeneratorDamaged, load
from evenhand.generators.budget_plan import BudgetPlan
from evenhand.generators.images import evolution
from evenhand.generators.images.evolution import (
    OWN_PICTURES,
    VOTES,
    EvolutionImages,
    WholeFrequencies,
    nearest,
    parents_of,
)
from evenhand.generators.images.gaussian import low_frequencies
from evenhand.generators.images.public_generator import Drawn, PublicPictures
from evenhand.privacy import Budget, BudgetExceeded, FloatNoise, Ledger, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import ImageSynthesizerContract, nearest_cell, pictures

pytestmark = FAINT
BUDGET = Budget(epsilon=5.0, delta=1e-5)
MUCH = Budget(epsilon=500.0, delta=1e-5)


class Bars:
    """A public generator of a user: grey bars or coloured ones, labels as text or as a flag."""

    name = "bars"
    made_of = "nothing"

    def pool(self, size: Any) -> PublicPictures:
        images, y, _ = pictures(200, seed=7, colour=size[0] == 3)
        labels = [*y, *(y == "stands")]
        return PublicPictures(np.concatenate([images, images]), labels, made_of=self.made_of)

    def random(self, labels: Any, size: Any, rng: np.random.Generator) -> Drawn:
        return self.pool(size).random(labels, size, rng)

    def vary(self, drawn: Drawn, labels: Any, strength: float, rng: np.random.Generator) -> Drawn:
        return self.pool(drawn.pixels.shape[1:]).vary(drawn, labels, strength, rng)


def new(**settings: Any) -> EvolutionImages:
    small = {
        "public": Bars(),
        "n_candidates": 20,
        "n_iterations": 4,
        "n_kept": 50,
        "n_frequencies": 30,
    }
    return EvolutionImages(**(small | {"noise": SeededNoise(0), "random_state": 0} | settings))


class TestEvolution(ImageSynthesizerContract):
    def new(self) -> EvolutionImages:
        return new()


def votes_by_hand(points: Any, cells: Any, candidates: Any, n: int) -> Any:
    """Which candidate each votes for: squared distances in whole numbers, all of them."""
    whole, others = points.astype(np.int64), candidates.astype(np.int64).reshape(-1, n, 30)
    apart = ((whole[:, None] - others[cells]) ** 2).sum(axis=2)
    return np.array([row.tolist().index(row.min()) for row in apart])


def hard_case(n: int = 40) -> tuple[Any, Any, Any]:
    """Points, cells and candidates with twins, and candidates that are as far on either side."""
    rng = np.random.default_rng(0)
    frequencies = WholeFrequencies.of((1, 8, 8), 30)
    points = frequencies.points(rng.random((n, 1, 8, 8)).astype(np.float32))
    candidates = frequencies.points(rng.random((18, 1, 8, 8)).astype(np.float32))
    candidates[3] = candidates[1]  # twins in the first cell, and in the last
    candidates[17] = candidates[12]
    candidates[7], candidates[9] = points[4] + 1, points[4] - 1
    cells = rng.integers(0, 3, n)
    cells[4] = 1
    return points, cells, candidates


@pytest.mark.parametrize("chunk", [1, 3, 2048])
def test_votes_are_those_of_a_search_one_by_one(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evolution, "_CHUNK", chunk)
    points, cells, candidates = hard_case()
    found = nearest(points, cells, candidates, 6)
    assert np.array_equal(found, votes_by_hand(points, cells, candidates, 6))
    assert found[4] == 1  # of two that are as far, the first


def test_no_picture_changes_the_vote_of_another_to_the_last_bit() -> None:
    # Products of matrices round otherwise where a row stands elsewhere: whole numbers do not.
    points, cells, candidates = hard_case(64)
    whole = nearest(points, cells, candidates, 6)
    for i in range(len(points)):
        rest = np.arange(len(points)) != i
        assert np.array_equal(nearest(points[rest], cells[rest], candidates, 6), whole[rest])
    pixels = np.random.default_rng(1).random((64, 3, 16, 16)).astype(np.float32)
    frequencies = WholeFrequencies.of((3, 16, 16), 60)
    together = frequencies.points(pixels)
    for i in range(64):
        assert np.array_equal(frequencies.points(pixels[i : i + 1])[0], together[i])


@pytest.mark.parametrize("size", [(1, 8, 8), (1, 28, 28), (3, 64, 64), (3, 256, 256)])
def test_points_are_whole_low_frequencies_and_squares_of_their_length_are_exact(size: Any) -> None:
    frequencies = WholeFrequencies.of(size, 12)
    rng = np.random.default_rng(0)
    # Black, white, and the brightest that a cosine can be read as: none is longer than 2**25.
    extremes = np.stack([np.zeros(size), np.ones(size), rng.random(size)]).astype(np.float32)
    signs = (low_frequencies(size, 12)[:, 1] > 0).reshape(1, *size).astype(np.float32)
    points = frequencies.points(np.concatenate([extremes, signs]))
    assert np.array_equal(points, np.rint(points))
    assert 2**20 < np.linalg.norm(points, axis=1).max() < 2**25
    exact = (np.rint(extremes * 255.0).reshape(3, -1) - 128.0) @ low_frequencies(size, 12)
    assert points[:3] / frequencies.scale == pytest.approx(exact, abs=1.0)


def spied(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[Any]]:
    """What votes were computed from, and what was released as votes, in whole fits."""
    asked: list[Any] = []
    released: list[Any] = []
    find, release = evolution.nearest, BudgetPlan.release

    def nearest(*given: Any) -> Any:
        asked.append(given)
        return find(*given)

    def noted(self: BudgetPlan, aggregator: Any, total: Any, purpose: str, **more: Any) -> Any:
        if purpose == VOTES:
            bound = aggregator.l2_sensitivity(self.ledger.neighbors)
            mechanism = self.mechanism(aggregator, purpose, **more)
            released.append((np.array(total), bound, mechanism))
        return release(self, aggregator, total, purpose, **more)

    monkeypatch.setattr(evolution, "nearest", nearest)
    monkeypatch.setattr(BudgetPlan, "release", noted)
    return asked, released


def counted(points: Any, cells: Any, candidates: Any, n: int) -> Any:
    votes = votes_by_hand(points, cells, candidates, n)
    return np.bincount(cells * n + votes, minlength=len(candidates))


@pytest.mark.parametrize("relation", ["add or remove one", "replace one"])
def test_a_picture_moves_votes_by_what_is_declared_and_no_more(
    relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, y, side = pictures(24)
    images[0], images[1] = 0, 255
    asked, released = spied(monkeypatch)
    new(neighbors=relation).fit(images, y, sensitive_features=side, budget=BUDGET)
    assert len(released) == len(asked) == 4
    for (points, cells, candidates, n), (total, bound, mechanism) in zip(
        asked, released, strict=True
    ):
        assert np.array_equal(counted(points, cells, candidates, n), total)
        assert bound == mechanism.l2_sensitivity == {"r": 2**0.5, "a": 1.0}[relation[0]]
        apart = []
        for i in range(len(points)):
            if relation == "add or remove one":
                rest = np.arange(len(points)) != i
                others = [(points[rest], cells[rest])]
            else:
                others = []
                for j in range(len(points)):
                    p, c = points.copy(), cells.copy()
                    p[i], c[i] = points[j], cells[j]
                    others.append((p, c))
            apart += [np.linalg.norm(counted(p, c, candidates, n) - total) for p, c in others]
        assert max(apart) == pytest.approx(bound)


def test_the_pictures_of_a_unit_move_votes_by_as_many_as_there_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    images, y, side = pictures(60)
    alike = np.concatenate([images, images[:1], images[:1], images[:1], images[:1]])
    ids = [*range(60), 0, 0, 0, 0]
    groups, labels = ([*of, *[of[0]] * 4] for of in (side, y))
    asked, released = spied(monkeypatch)
    new().fit(alike, labels, sensitive_features=groups, unit_ids=ids, per_unit=3, budget=BUDGET)
    for (points, cells, candidates, n), (total, bound, _) in zip(asked, released, strict=True):
        assert len(points) == 62  # three of the five are read
        rest = np.r_[1:60]
        assert bound == 3.0
        moved = np.linalg.norm(counted(points[rest], cells[rest], candidates, n) - total)
        assert moved == pytest.approx(bound)


class Watched(FloatNoise):
    """Noise that notes what the account had been charged when it was first drawn."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self.store, self.charged = store, []

    def gaussian(self, sigma: float, shape: tuple[int, ...]) -> Any:
        entries = self.store.entries("default")
        self.charged.append(sum(entry.mu_squared for entry in entries))
        return super().gaussian(sigma, shape)


def test_all_iterations_are_charged_before_the_first_noise() -> None:
    images, y, _ = pictures(100)
    store = MemoryStore()
    noise: Any = Watched(store)
    made = new(noise=noise).fit(images, y, budget=BUDGET, store=store)
    assert len(noise.charged) == 5
    assert noise.charged[0] == pytest.approx(BUDGET.mu_squared, rel=1e-6)
    spent = {}
    for entry in made.ledger_.entries:
        spent[entry.purpose] = spent.get(entry.purpose, 0.0) + entry.mu_squared
    assert spent[VOTES] == pytest.approx(0.95 * BUDGET.mu_squared, rel=1e-6)
    assert spent[evolution.COUNTS] == pytest.approx(0.05 * BUDGET.mu_squared, rel=1e-6)
    # Four releases of sensitivity 1 cost the square of mu.
    expected = (made.counts_.sum() / 40) ** 2 * 0.95 * BUDGET.mu_squared / 4
    assert made.snr_.value == pytest.approx(expected, rel=1e-6)


def test_a_plan_that_the_account_cannot_pay_for_draws_no_noise_and_no_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    images, y, _ = pictures(100)
    store = MemoryStore()
    new(noise=FloatNoise()).fit(images, y, budget=BUDGET, store=store)
    before = store.entries("default")
    monkeypatch.setattr(FloatNoise, "gaussian", None)
    with pytest.raises(BudgetExceeded):
        new(noise=FloatNoise()).fit(images, y, budget=BUDGET, store=store)
    assert store.entries("default") == before


def test_the_claim_names_the_generator_and_what_it_does_not_cover() -> None:
    images, y, side = pictures(100)
    made = new().fit(images, y, sensitive_features=side, budget=BUDGET)
    claim = made.guarantee_
    assert "the public generator bars (nothing)" in claim.public
    assert OWN_PICTURES in claim.not_covered
    assert OWN_PICTURES in str(claim)
    assert made.settings()["public"] == "the public generator bars (nothing)"
    made.public = PublicPictures(images, y, made_of="others")  # what was fitted stays as it was
    assert made.settings()["public"] == "the public generator bars (nothing)"


class Broken(Bars):
    """One that draws pictures of another size, or values that are no pixels."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def random(self, labels: Any, size: Any, rng: np.random.Generator) -> Drawn:
        drawn = super().random(labels, size, rng)
        return Drawn(pixels=self.change(drawn.pixels), parameters=drawn.parameters)


BAD: dict[str, tuple[dict[str, Any], Any]] = {
    "a strength above 1": ({"strengths": (1.5, 0.1)}, r"strengths must lie in \[0, 1\], got"),
    "a strength below 0": ({"strengths": (0.5, -0.1)}, r"strengths must lie in \[0, 1\], got"),
    "one strength": ({"strengths": (0.5,)}, r"strengths are two.*got \(0.5,\)"),
    "one candidate": ({"n_candidates": 1}, "n_candidates must be at least 2"),
    "no iteration": ({"n_iterations": 0}, "n_iterations must be at least 1"),
    "nothing kept": ({"n_kept": 0}, "n_kept must be at least 1"),
    "nothing compared": ({"n_frequencies": 0}, "n_frequencies must be at least 1"),
    "a threshold below 0": ({"threshold": -1.0}, "threshold must be finite and >= 0"),
    "pictures of two sizes": (
        {"public": PublicPictures(np.zeros((2, 9, 9)), ["lies", "stands"], made_of="black")},
        "private pictures have 1 x 8 x 8 and the public ones 1 x 9 x 9",
    ),
    "no picture of a label": (
        {"public": PublicPictures(np.zeros((2, 8, 8)), ["lies", "sits"], made_of="black")},
        r"no public picture of the label .* there are some of 'lies', 'sits'",
    ),
    "too few pictures": ({"public": Broken(lambda p: p[1:])}, r"asked for .*\(4, 1, 8, 8\)"),
    "pixels beyond 1": ({"public": Broken(lambda p: p * 3)}, r"pixels that do not lie in \[0, 1\]"),
    "pixels that are not numbers": (
        {"public": Broken(lambda p: p * np.float32("nan"))},
        r"pixels that do not lie in \[0, 1\]",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_what_cannot_be_bred_is_named_and_spends_nothing(case: str) -> None:
    settings, message = BAD[case]
    images, y, side = pictures(60)
    store = MemoryStore()
    with pytest.raises(ValueError, match=message):
        new(**settings).fit(images, y, sensitive_features=side, budget=BUDGET, store=store)
    assert store.entries("default") == ()


def test_a_label_that_no_font_draws_spends_nothing() -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    pytest.importorskip("PIL", reason="needs the extra images")
    images, y, _ = pictures(60)
    store = MemoryStore()
    with pytest.raises(ValueError, match=r"draws single characters .* Give public="):
        EvolutionImages().fit(images, y, budget=BUDGET, store=store)
    assert store.entries("default") == ()


def test_a_loaded_one_draws_without_its_public_generator_and_cannot_be_fitted(
    tmp_path: Any,
) -> None:
    images, y, side = pictures(400)
    made = new().fit(images, y, sensitive_features=side, budget=MUCH)
    again: Any = load(made.save(tmp_path / "made"))
    drawn = [g.sample(40, random_state=1).images for g in (made, again)]
    assert np.array_equal(*drawn)
    store = MemoryStore()
    with pytest.raises(
        TypeError, match=r"public must be a PublicGenerator, .*generator bars \(nothing"
    ):
        again.fit(images, y, budget=BUDGET, store=store)
    assert store.entries("default") == ()
    made.pictures_ = made.pictures_[1:]
    made.save(tmp_path / "other")
    with pytest.raises(GeneratorDamaged, match="not as many pictures as the settings say"):
        load(tmp_path / "other")


def test_no_kept_picture_comes_again_before_all_others_of_its_label_and_group() -> None:
    images, y, side = pictures(400)
    made = new(n_kept=10).fit(images, y, sensitive_features=side, budget=MUCH)
    made.pictures_ = np.arange(40, dtype=np.uint8)[:, None, None, None] + np.zeros(
        (40, 1, 8, 8), dtype=np.uint8
    )
    drawn = made.sample(100, random_state=0)
    times = np.bincount(drawn.uint8[:, 0, 0], minlength=40)
    assert set(times) == {2, 3}
    for cell in range(4):
        assert times[10 * cell : 10 * cell + 10].sum() == 25


def test_candidates_come_nearer_to_the_private_pictures_of_their_label_and_group() -> None:
    images, y, side = pictures(2000)
    made = new(n_iterations=6, n_candidates=60, noise=SeededNoise(0))
    made.fit(images, y, sensitive_features=side, budget=MUCH)
    for label in ("lies", "stands"):
        for group in ("left", "right"):
            drawn = made.sample(50, conditions={"label": label, "sensitive": group}, random_state=0)
            assert nearest_cell(drawn.images, images, y, side) == (label, group)

    def far(pixels: Any) -> float:
        """How far a private picture is from the nearest of 50, on average."""
        real = images[:200].reshape(200, -1) / 255.0
        own = pixels.reshape(len(pixels), -1)
        return float(((real[:, None] - own[None]) ** 2).sum(axis=2).min(axis=1).mean())

    labels = np.array(["lies", "stands"] * 100)
    start = Bars().random(labels, (1, 8, 8), np.random.default_rng(0)).pixels
    assert far(made.pictures_ / 255.0) < 0.9 * far(start)


def test_parents_are_taken_in_proportion_to_votes_above_the_threshold() -> None:
    votes = np.array([[8.0, 4.0, 1.9, 0.0], [1.0, 1.0, -3.0, 1.9]])
    found = parents_of(votes, 6, least=2.0)
    assert found[:6].tolist() == [0, 0, 0, 0, 1, 1]
    # Nothing stands out of the noise: all candidates of the cell alike.
    assert np.bincount(found[6:] - 4, minlength=4).tolist() == [2, 2, 1, 1]
    assert parents_of(np.array([[-1.0, 3.0]]), 3, least=0.0).tolist() == [1, 1, 1]


def test_the_ledger_is_that_of_one_counting_and_the_votes() -> None:
    images, y, _ = pictures(100)
    made = new().fit(images, y, budget=BUDGET)
    assert isinstance(made.ledger_, Ledger)
    assert {entry.purpose for entry in made.ledger_.entries} == {evolution.COUNTS, VOTES}
    assert "add or remove one" in str(made.guarantee_)


def test_it_can_be_printed_before_it_is_fitted_and_whatever_it_is_given() -> None:
    assert "PublicCharacters(fonts=None)" in repr(EvolutionImages())
    wrong: Any = 3
    assert "public='3'" in repr(EvolutionImages(public=wrong))
