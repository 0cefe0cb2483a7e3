"""Fits to what was released: interrupted and gone on with, begun again, saved as they go."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from marks import FAINT

from evenhand._extras import installed
from evenhand._torch import torch
from evenhand.generators import load
from evenhand.generators.images import MeanEmbeddingImages
from evenhand.generators.images.embedded import STAGE
from evenhand.generators.images.public_features import PublicFeatureImages
from evenhand.generators.saving import autosave
from evenhand.learners.nets.training_state import state_of, take_state
from evenhand.privacy import Budget, BudgetExceeded, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore, Store
from evenhand.testing.generators import pictures

pytestmark = [pytest.mark.torch, FAINT]

SEEDED: Final[dict[str, Any]] = {"n_steps": 12, "n_samples": 8, "random_state": 3}
NEW: Final[dict[str, Any]] = {
    "random": partial(MeanEmbeddingImages, n_frequencies=20, hidden=(8,), **SEEDED),
    "public": partial(PublicFeatureImages, blocks=(0,), width=8, **SEEDED),
}
FRECHET: Final = pytest.mark.skipif(
    not installed("efficientnet_lite_pytorch"), reason="the extra frechet is missing"
)
KINDS = pytest.mark.parametrize("kind", ["random", pytest.param("public", marks=FRECHET)])
BUDGET: Final = Budget(epsilon=20.0, delta=1e-5)


class Interrupted(Exception):
    pass


def stop_after(step: int, stage: str, done: int, total: int) -> None:
    if stage == STAGE and done == step:
        raise Interrupted


def fitted(
    kind: str,
    *,
    stop: int | None = None,
    budget: Budget = BUDGET,
    store: Store | None = None,
    **settings: Any,
) -> Any:
    images, y, side = pictures(200)
    made = NEW[kind](**settings, noise=SeededNoise(7))
    told = None if stop is None else partial(stop_after, stop)
    try:
        made.fit(images, y, sensitive_features=side, budget=budget, store=store, progress=told)
    except Interrupted:
        assert stop is not None
    return made


def assert_same(one: Any, other: Any) -> None:
    assert one.learnt_.keys() == other.learnt_.keys()
    assert all(np.array_equal(one.learnt_[name], other.learnt_[name]) for name in one.learnt_)
    assert one.misfit_ == other.misfit_
    assert one.notes_ == other.notes_
    drawn = [made.sample(6, random_state=0, balance=()).images for made in (one, other)]
    assert np.array_equal(*drawn)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("stop", [1, 7, 12])
def test_a_fit_goes_on_in_another_process_as_if_nothing_had_been(
    kind: str, stop: int, tmp_path: Path
) -> None:
    whole, made = fitted(kind), fitted(kind, stop=stop)
    assert np.isnan(made.misfit_)
    assert made.left_["done"] == [stop]
    assert any("resume() goes on" in note for note in made.notes_)
    made.sample(4, balance=())  # it draws with what there is
    again = load(made.save(tmp_path / "halfway"))
    assert again.notes_ == made.notes_
    assert_same(again.resume(), whole)
    assert_same(made.resume(), whole)
    assert_same(load(again.save(tmp_path / "whole")), whole)
    assert not any("resume()" in note for note in again.notes_)


@pytest.mark.slow
@KINDS
def test_a_second_fit_is_the_one_that_its_settings_would_have_had(
    kind: str, tmp_path: Path
) -> None:
    # A second derivation: the same noise and seed, and a fit with these settings from the start.
    again = load(fitted(kind, n_steps=3).save(tmp_path / "short")).refit(n_steps=12)
    assert again.n_steps == 12
    assert_same(again, fitted(kind))
    other = {"hidden": (5,)} if kind == "random" else {"width": 12}
    assert_same(again.refit(n_samples=6, **other), fitted(kind, n_samples=6, **other))


@KINDS
def test_going_on_and_beginning_again_release_nothing(kind: str) -> None:
    made = fitted(kind, stop=2)
    entries, claim, counts = made.ledger_.entries, made.guarantee_, made.counts_.copy()
    made.noise = made.ledger_.noise = None  # drawing any would fail
    for one in (made.resume(), made.refit(n_steps=4)):
        assert one.ledger_.entries == entries
        assert one.guarantee_ == claim
        assert np.array_equal(one.counts_, counts)
    assert sum(entry.mu_squared for entry in entries) == pytest.approx(BUDGET.mu_squared, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_frequencies": 5}, r"refit takes hidden, n_steps, .*got 'n_frequencies'.*its budget"),
        ({"n_step": 5}, "Did you mean 'n_steps'"),
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"n_steps": 5, "hidden": (0,)}, "hidden must be at least 1"),
    ],
)
def test_a_setting_that_cannot_be_fitted_again_changes_nothing(
    settings: dict[str, Any], message: str
) -> None:
    made = fitted("random", stop=2)
    before, left = made.settings(), made.left_
    with pytest.raises(ValueError, match=message):
        made.refit(**settings)
    assert made.settings() == before
    assert made.left_ is left


def test_a_fit_that_ended_or_began_otherwise_is_not_resumed(tmp_path: Path) -> None:
    made = fitted("random", stop=2)
    made.n_steps = 30
    words = r"begun with n_steps=12, and has n_steps=30 now.*refit\(\), at no cost"
    with pytest.raises(ValueError, match=words):
        made.resume()
    made.n_steps = 12
    with pytest.raises(ValueError, match=r"The fit has ended.*refit"):
        made.resume().resume()
    made.released_ = None  # as a generator of an earlier version is read
    old = load(made.save(tmp_path / "old"))
    assert old.misfit_ == made.misfit_
    for again in (old.resume, old.refit):
        with pytest.raises(ValueError, match=r"saved by an earlier version.*draws as it did"):
            again()
    with pytest.raises(ValueError, match="not fitted"):
        NEW["random"]().refit()


def test_the_state_of_another_network_is_refused() -> None:
    stream = torch.random.default_generator  # its state is put back as it was
    some, other = (torch.optim.Adam([torch.zeros(n, requires_grad=True)]) for n in (2, 3))
    with pytest.raises(ValueError, match="of another network or of another device"):
        take_state(other, stream, state_of(some, stream))


@pytest.mark.slow
@FRECHET
def test_a_fit_that_goes_on_ends_where_the_noise_explains_the_distance() -> None:
    # The mean of fifty steps decides, most of them from before the interruption.
    settings = {"n_steps": 90, "budget": Budget(epsilon=0.05, delta=1e-5)}
    whole, told = fitted("public", **settings), []
    made = fitted("public", stop=40, **settings)
    made.resume(progress=lambda stage, done, total: told.append(done))
    assert told == list(range(41, told[-1] + 1))
    assert told[-1] < 90
    assert_same(made, whole)


@FRECHET
def test_what_another_network_saw_is_not_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fitted("public", stop=2)
    monkeypatch.setattr("evenhand.datasets.features.efficientnet.EfficientNetMaps.digest", "0" * 64)
    with pytest.raises(ValueError, match=r"maps of another network.*Install the version"):
        made.resume()


KILLED: Final = """
import os, sys, warnings
from evenhand.generators.saving import autosave
from evenhand.generators.images import MeanEmbeddingImages
from evenhand.privacy import Budget, BudgetExceeded, SeededNoise
from evenhand.privacy.ledger_store import MemoryStore, Store
from evenhand.testing.generators import pictures

def die(stage, done, total):
    if stage == "network" and done == 9:
        os._exit(7)

warnings.simplefilter("ignore")
images, y, side = pictures(200)
made = MeanEmbeddingImages(
    n_frequencies=20, hidden=(8,), n_steps=12, n_samples=8, random_state=3, noise=SeededNoise(7)
)
made.fit(
    images, y, sensitive_features=side, budget=Budget(epsilon=20.0, delta=1e-5),
    progress=autosave(made, sys.argv[1], every=0.0, progress=die),
)
"""


@pytest.mark.slow
def test_what_was_paid_for_outlives_the_process(tmp_path: Path) -> None:
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}  # sums go by them, in last bits
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "own"], check=False, env=os.environ | threads
    )
    assert ran.returncode == 7
    assert [entry.name for entry in tmp_path.iterdir()] == ["own"]
    made = load(tmp_path / "own")
    assert made.left_["done"] == [8]
    assert_same(made.resume(), fitted("random"))


def test_a_generator_is_saved_from_its_release_on_and_at_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, y, _ = pictures(200)
    made, own, now, seen = NEW["random"](noise=SeededNoise(0)), tmp_path / "own", [0.0], []
    monkeypatch.setattr("evenhand.generators.saving.time.monotonic", lambda: now[0])

    def look(stage: str, done: int, total: int) -> None:
        if stage == STAGE:
            now[0] += 10.0
            seen.append(int(load(own).left_["done"][0]) if own.exists() else 0)
        else:
            assert not own.exists()
            assert not made.is_fitted_  # nor that of a fit before

    def fit() -> None:
        seen.clear()
        how = autosave(made, own, every=25.0, progress=look)
        made.fit(images, y, budget=BUDGET, progress=how)

    fit()
    assert seen == [0, 1, 1, 1, 4, 4, 4, 7, 7, 7, 10, 10]
    for file in own.iterdir():
        file.unlink()
    own.rmdir()
    fit()
    assert seen[:3] == [0, 1, 1]
    with pytest.raises(ValueError, match="every must be finite and >= 0"):
        autosave(made, own, every=-1.0)


def test_only_a_generator_makes_room_for_a_generator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, own, other = fitted("random"), tmp_path / "own", tmp_path / "thesis"
    made.save(own)
    with pytest.raises(FileExistsError, match="exists and is not empty"):
        made.save(own)
    made.refit(n_steps=2).save(own, overwrite=True)
    assert_same(load(own), made)
    other.mkdir()
    (other / "manifest.json").write_text('{"kind": "model"}')
    (tmp_path / "file").write_text("all I have")
    for path in (other, tmp_path / "file"):
        for save in (partial(made.save, path, overwrite=True), partial(autosave, made, path)):
            with pytest.raises(FileExistsError, match="holds no saved generator"):
                save()
    assert (tmp_path / "file").read_text() == "all I have"
    # One that cannot be moved into its place leaves what was there.
    replace = os.replace

    def fail(source: Any, to: Any) -> None:
        if Path(source).name == "folder":
            raise OSError("no room")
        replace(source, to)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no room"):
        fitted("random").save(own, overwrite=True)
    assert_same(load(own), made)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "own", "thesis"]


@pytest.mark.parametrize("stage", ["records", "features"])
def test_what_was_fitted_before_is_whole_until_something_is_released(stage: str) -> None:
    made, images, y = fitted("random"), *pictures(200, 1)[:2]
    before = dict(vars(made))

    def fail(at: str, done: int, total: int) -> None:
        if (at, done) == (stage, total if stage == "features" else 0):
            raise Interrupted

    with pytest.raises(Interrupted):
        made.fit(images, y, budget=BUDGET, progress=fail)
    if stage == "records":
        assert vars(made) == before
        made.sample(3)
    else:
        with pytest.raises(ValueError, match="not fitted"):
            made.sample(3)


def test_a_second_fit_that_is_refused_leaves_the_first_whole() -> None:
    made, store = fitted("random"), MemoryStore()
    images, y, _ = pictures(200, 1)
    drawn, before = made.sample(5, random_state=0), dict(vars(made))
    fitted("random", store=store)
    with pytest.raises(BudgetExceeded):
        made.fit(images, y, budget=BUDGET, store=store)
    assert vars(made) == before
    assert np.array_equal(made.sample(5, random_state=0).images, drawn.images)
    made.n_steps = 0
    with pytest.raises(ValueError, match="n_steps must be at least 1"):
        made.fit(images, y, budget=BUDGET)
    assert vars(made) == before | {"n_steps": 0}


def test_what_decided_the_release_is_not_changed_by_hand() -> None:
    made = fitted("random", stop=2)
    made.mirrored = True
    with pytest.raises(ValueError, match=r"begun with mirrored=False.*fit\(\) again, which has"):
        made.refit(n_steps=3)
    assert made.n_steps == 12


def test_a_new_fit_does_not_take_the_place_of_one_that_was_paid_for(tmp_path: Path) -> None:
    first = fitted("random")
    first.save(tmp_path / "own")
    with pytest.raises(FileExistsError, match="exists and is not empty"):
        autosave(NEW["random"](), tmp_path / "own")
    first.refit(n_steps=3, progress=autosave(first, tmp_path / "own"))
    assert load(tmp_path / "own").n_steps == 3
