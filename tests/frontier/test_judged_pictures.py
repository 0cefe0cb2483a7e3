"""Generators of pictures on a frontier: judged on real pictures by classifiers of drawn ones."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.datasets.features.reading import PictureReading
from evenhand.datasets.images import ImageData
from evenhand.fairness import FairnessKind
from evenhand.frontier import Grid, Run, RunStore, arguments, read_runs, sweep, write_csv
from evenhand.frontier.generated import GeneratedPictures
from evenhand.frontier.judged_rows import JudgedGenerator
from evenhand.frontier.material import DataSource
from evenhand.frontier.page.data import page_data
from evenhand.frontier.plots import pair_figure
from evenhand.frontier.run import Setting
from evenhand.frontier.train import Task, train, train_one
from evenhand.generators import load
from evenhand.generators.balance import distribution_disparity
from evenhand.generators.images import GSWGANImages
from evenhand.generators.images.codec import ImageSample
from evenhand.generators.images.evaluation import evaluate_images
from evenhand.generators.images.gaussian import GaussianImages
from evenhand.privacy import Budget, SeededNoise
from evenhand.testing.generators import pictures

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::evenhand.generators.NotedWarning"),
]
TEACHERS = {"method": ["gs-wgan"], "n_teachers": [10], "balance": ["label"]}
FEW: dict[str, Any] = {"n_steps": 3, "condition": "label"}


def bars(n: int, seed: int, name: str = "bars") -> ImageData:
    images, y, side = pictures(n, seed)
    groups = pd.DataFrame({"side": side})
    return ImageData(images=images, y=y, sensitive_features=groups, name=name)


PRIVATE, TEST = bars(600, 0), bars(200, 1, "test")
SOURCE = DataSource(name="bars", private=PRIVATE, test=TEST)


def grid_of(*runs: dict[str, Any], data: DataSource = SOURCE, **more: Any) -> Grid:
    usual: dict[str, Any] = {"method": ["gaussian"], "epsilon": [8], "n_rows": [200]}
    return Grid(data=data, runs=tuple(usual | run for run in runs), **more)


def one(data: DataSource = SOURCE, **run: Any) -> Setting:
    (setting,) = grid_of(
        {k: v if isinstance(v, list) else [v] for k, v in run.items()}, data=data
    ).settings()
    return setting


def measured(setting: Setting, data: DataSource = SOURCE) -> Run:
    done = train(Task(source=data, settings=(setting,), cache=None, spec="grid.toml"))
    assert done.skipped == ()
    (run,) = done.runs
    return run


@pytest.mark.parametrize(
    ("asked", "balance"),
    [
        ({}, ("label", "sensitive")),
        ({"balance": "none", "judge": "CNN"}, ()),
        ({**TEACHERS, "setting": FEW}, ("label",)),
        ({**TEACHERS, "setting": FEW, "sampler": "none"}, ("label",)),
    ],
)
def test_a_run_has_the_numbers_of_fit_draw_and_evaluate_by_hand(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], balance: tuple[str, ...]
) -> None:
    monkeypatch.setattr(arguments, "InversionNoise", lambda: SeededNoise(5))
    run = measured(one(**asked, gap_of="equalized-odds", reference="pairwise"))

    own: dict[str, Any] = {"noise": SeededNoise(5), "random_state": 0}
    if "n_teachers" in asked:
        sampler: dict[str, Any] = {"sampler": None} if "sampler" in asked else {}
        generator: Any = GSWGANImages(**own, n_teachers=10, **FEW, **sampler)
    else:
        generator = GaussianImages(**own)
    generator.fit(
        PRIVATE.images,
        PRIVATE.y,
        sensitive_features=PRIVATE.sensitive_features,
        budget=Budget(epsilon=8.0, delta=1e-5),
    )
    drawn = generator.sample(200, balance=balance, random_state=0)
    found = evaluate_images(drawn, TEST, models=(asked.get("judge", "MLP"),))
    assert run.error == pytest.approx(1 - found.mean("accuracy"), abs=1e-12)
    assert run.gap == pytest.approx(found.mean("equalized_odds_pairwise"), abs=1e-12)
    assert (run.epsilon, run.coverage) == (generator.guarantee_.epsilon, 1.0)
    assert found.judged is not None
    shown = dict(found.judged.balance.groups)
    sides = None if drawn.sensitive_features is None else drawn.sensitive_features["side"]
    even = {name: 0.5 if sides is None else float((sides == name).mean()) for name in shown}
    away = [shown[name] - even[name] for name in shown]
    assert run.disparity == pytest.approx(math.hypot(*away), abs=1e-12)
    if balance != ():
        assert run.disparity == pytest.approx(found.judged.balance.disparity.value, abs=1e-12)
    assert {g["name"]: g["recognised"] for g in run.groups} == dict(found.judged.recognised)
    assert not FairnessKind(run.fairness_kind).needs_group
    assert (FairnessKind(run.fairness_kind) is FairnessKind.NONE) is (balance == ())


def test_errors_are_read_on_real_pictures_and_not_on_drawn_ones() -> None:
    turned = replace(TEST, y=np.where(TEST.y == "lies", "stands", "lies"))
    other = DataSource(name="turned", private=PRIVATE, test=turned)
    right, wrong = measured(one(epsilon=50)), measured(one(other, epsilon=50), other)
    assert (
        right.error < 0.5 < wrong.error
    )  # drawn pictures say nothing of what test pictures are called
    assert sum(int(str(group["rows"])) for group in right.groups) == len(TEST)


def test_where_even_groups_are_asked_for_pictures_that_are_not_are_as_far_off_as_they_are() -> None:
    # As pictures are drawn whose labels and groups could not be spread, for some were not seen.
    drawn = ImageSample(
        images=(PRIVATE.images / 255).astype(np.float32),
        y=PRIVATE.y,
        sensitive_features=PRIVATE.sensitive_features,
    )
    kind = GeneratedPictures(judge="MLP", use_sensitive=False, random_state=0)
    how = (drawn, TEST.X, TEST.y, TEST.sensitive_features)
    even, learnt = (kind.group_shares(*how, even=asked) for asked in (True, False))
    sides = pd.DataFrame(PRIVATE.sensitive_features)["side"]
    for name in ("left", "right"):
        share = float((sides == name).mean())
        assert even[name]["share_asked"] == 0.5
        assert learnt[name]["share_asked"] == pytest.approx(share)
        assert even[name]["share_shown"] == learnt[name]["share_shown"]


def test_a_sweep_that_was_stopped_goes_on_and_exports_and_page_have_all(tmp_path: Path) -> None:
    runs = ({"balance": ["label,sensitive", "none"]}, {**TEACHERS, "setting": [FEW]})
    grid = grid_of(*runs, seeds=(0, 1))

    def stop(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("settings", 4):
            raise KeyboardInterrupt

    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(KeyboardInterrupt):
            sweep(grid, store, progress=stop)
        kept = {run.key: run.error for run in store.runs()}
        again = sweep(grid, store)
        assert (again.n_before, again.n_new, again.n_settings) == (4, 2, 6)
        found = store.runs()
    assert kept.items() <= {run.key: run.error for run in found}.items()
    write_csv(found, tmp_path / "runs.csv")
    read = {run.key: run.disparity for run in read_runs(tmp_path / "runs.csv")}
    assert read == {run.key: run.disparity for run in found}
    shown = page_data(found)
    means = [
        np.mean([r.disparity for r in found if r.setting.without_seed() == s])
        for s in dict.fromkeys(r.setting.without_seed() for r in found)
    ]
    assert sorted(shown["settings"]["disparity"]) == pytest.approx(sorted(means), abs=1e-6)
    points = pair_figure(found, "disparity", "error").data[0]
    assert len(points.x) == 2
    assert distribution_disparity(np.array([1.0, 0.0])) <= 2**0.5


def test_shares_of_what_was_drawn_have_no_interval_of_test_rows_on_the_page() -> None:
    run = measured(one())
    shown = page_data([run])
    names, _, rates = json.loads(shown["texts"][shown["runs"]["table"][0]])
    cells = np.array(shown["runs"]["cells"][0], dtype=float).reshape(len(names), len(rates), 3)
    of_drawn = [rates.index(name) for name in ("share_asked", "share_shown", "recognised")]
    assert np.isnan(cells[:, of_drawn, 1:]).all()
    assert np.isfinite(cells[:, of_drawn, 0]).all()
    assert np.isfinite(cells[:, rates.index("error"), 1:]).all()


def test_the_generator_is_what_is_saved_and_its_ledger_is_charged(tmp_path: Path) -> None:
    model = train_one(SOURCE, one(epsilon=2, neighbors="replace one"))
    assert isinstance(model, JudgedGenerator)
    claim = model.fitted_.guarantee
    assert (claim.epsilon, claim.neighbors, claim.holds) == (2.0, "replace one", True)
    assert model.fitted_.epsilon_spent == pytest.approx(2.0, rel=0.05)
    model.save(tmp_path / "generator")
    again = load(tmp_path / "generator")
    drawn, same = (made.sample(5, balance=(), random_state=1) for made in (again, model.generator_))
    assert np.array_equal(drawn.images, same.images)


def test_units_and_pictures_of_a_file_of_arrays_count(tmp_path: Path) -> None:
    for part, data in (("private", PRIVATE), ("test", TEST)):
        groups = pd.DataFrame(data.sensitive_features)["side"].to_numpy().astype(str)
        np.savez(
            tmp_path / part,
            images=data.images,
            bar=data.y,
            side=groups,
            person=np.arange(len(data)) // 2,
        )
    table = {
        "data": {"private": "private.npz", "test": "test.npz", "label": "bar", "sensitive": "side"},
        "runs": [{"method": "gaussian", "epsilon": 50, "n_rows": 200}],
    }
    grid = Grid.from_dict(table, folder=tmp_path)
    (setting,) = grid.settings()
    assert 0 <= measured(setting, grid.data).error < 0.5
    table["data"]["unit"] = "person"  # type: ignore[index]
    people = Grid.from_dict(table, folder=tmp_path)
    (setting,) = people.settings()
    assert measured(setting, people.data).guarantee["unit"] == "person"


def test_equal_settings_are_one_whatever_their_order_and_a_default_judge_is_named_or_not() -> None:
    first = one(setting={"n_frequencies": 20, "mirrored": True})
    assert first.key == one(setting={"mirrored": True, "n_frequencies": 20}, judge="MLP").key
    assert first.key != one().key == one(setting={}).key
    assert first.words()["setting.n_frequencies"] == "20"
    assert len(grid_of({"setting": [{"n_frequencies": n} for n in (9, 16)]}).settings()) == 2


def test_classifiers_of_pixels_stand_beside_generators_and_are_what_they_were() -> None:
    source = replace(SOURCE, public=replace(bars(60, 2, "public"), y=None))
    both = Grid(data=source, runs=({"method": ["gaussian", "dpsgd"], "epsilon": [8]},))
    alone = Grid(data=source, runs=({"method": ["dpsgd"], "epsilon": [8]},))
    assert {s.key for s in alone.settings()} < {s.key for s in both.settings()}


OTHER = replace(TEST, images=TEST.images[:, :6, :6], name="small")
ONE_SIDE = PRIVATE.take(np.array(pd.DataFrame(PRIVATE.sensitive_features)["side"] == "left"))
OF_ANOTHER_NAME = replace(TEST, sensitive_features=pd.DataFrame({"hand": TEST.y}))
TABLE = DataSource(name="adult")
FEATURES = PictureReading(extractor="efficientnet-lite0")
BAD_GRIDS: dict[str, tuple[DataSource, dict[str, Any], str]] = {
    "a generator of tables": (
        SOURCE,
        {"method": ["marginal"]},
        "draws rows of a table, and .data. holds pictures, of which gaussian, ",
    ),
    "a table": (
        TABLE,
        {"method": ["gs-wgan"]},
        "draws pictures, and .data. holds a table, of "
        "which marginal, .* Pictures are listed by images = true, or .npz",
    ),
    "features": (
        replace(SOURCE, pictures=FEATURES),
        {},
        "'gaussian' learns from pixels, and .data. extractor = 'efficientnet-lite0'",
    ),
    "a balance of tables": (
        SOURCE,
        {"balance": ["none", "even-rates"]},
        "balance = 'even-rates' is "
        "not for pictures, which .data. holds. Take one of 'label,sensitive'",
    ),
    "a judge of tables": (
        SOURCE,
        {"judge": ["random forest"]},
        "judge = 'random forest' is not for pictures, .* Take one of 'MLP', 'CNN'",
    ),
    "a judge of pictures": (
        TABLE,
        {"method": ["marginal"], "judge": ["CNN"]},
        "judge = 'CNN' is not for rows of a table",
    ),
    "a judge that sees groups": (SOURCE, {"use_sensitive": [True]}, "Leave it out"),
    "a sampler": (
        SOURCE,
        {"sampler": ["none"]},
        "sampler = 'none' is not read by method = "
        "'gaussian' beside it, but by 'teacher-gan', 'gs-wgan', ",
    ),
    "another sampler": (
        SOURCE,
        {**TEACHERS, "sampler": ["even"]},
        "sampler must be one of 'partition', 'none', got 'even'",
    ),
    "an unknown setting": (
        SOURCE,
        {"setting": [{"n_step": 3}], **TEACHERS},
        "n_step, which the method 'gs-wgan' does not know. Did you mean 'n_steps'",
    ),
    "a setting of a wrong type": (
        SOURCE,
        {"setting": [{"n_steps": "3"}], **TEACHERS},
        "setting n_steps must",
    ),
    "a setting of a grid": (
        SOURCE,
        {"setting": [{"n_teachers": 3}], **TEACHERS},
        "Write it beside: n_teachers = 3",
    ),
    "a setting that is none": (SOURCE, {"setting": ["n_steps=3"]}, "must be a table of names"),
    "neighbors": (
        SOURCE,
        {**TEACHERS, "neighbors": ["add or remove one"]},
        "neighbors = 'add or remove one' is not read by method = 'gs-wgan'",
    ),
}


@pytest.mark.parametrize("case", BAD_GRIDS)
def test_a_grid_that_asks_for_what_pictures_do_not_have_is_refused(case: str) -> None:
    data, run, words = BAD_GRIDS[case]
    with pytest.raises((ValueError, TypeError), match=words):
        grid_of(run, data=data)


BAD_DATA: dict[str, tuple[dict[str, Any], str]] = {
    "two sizes": ({"test": OTHER}, "those of bars are 1 x 8 x 8 .*, those of small 1 x 6 x 6"),
    "no group": (
        {"private": replace(PRIVATE, sensitive_features=None)},
        "private holds pictures without sensitive_features",
    ),
    "no labels": ({"test": replace(TEST, y=None)}, "test holds pictures without y"),
    "one group": ({"private": ONE_SIDE}, "'side' has one group only"),
    "one group in the test": ({"test": ONE_SIDE}, "'side' has one group only"),
    "groups of another name": ({"test": OF_ANOTHER_NAME}, "test: .*'side'"),
    "a size": ({"pictures": PictureReading(extractor="none", size=8)}, "size is about files"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_pictures_that_cannot_be_compared_are_refused_before_any_fit(
    case: str, tmp_path: Path
) -> None:
    change, words = BAD_DATA[case]
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ValueError, match=words):
            sweep(grid_of({}, data=replace(SOURCE, **change)), store)
        assert len(store) == 0


def test_what_a_generator_would_refuse_is_refused_before_any_fit(tmp_path: Path) -> None:
    tiny: dict[str, Any] = {
        part: replace(of, images=of.images[:, :3, :3])
        for part, of in (("private", PRIVATE), ("test", TEST))
    }
    with RunStore(tmp_path / "runs.db") as store:
        for run, words in (
            ({"setting": [{"n_frequencies": 0}]}, "n_frequencies must be at least 1"),
            ({"judge": ["CNN"]}, "The CNN needs pictures of at least 4 x 4"),
            ({"method": ["diffusion"], "neighbors": ["replace one"]}, "two such steps"),
            (
                {**TEACHERS, "setting": [FEW], "balance": ["sensitive"]},
                "balance = 'sensitive' asks for even groups",
            ),
        ):
            with pytest.raises(ValueError, match=words):
                sweep(grid_of(run, data=replace(SOURCE, **tiny)), store)
        assert len(store) == 0


def test_pictures_in_files_give_the_numbers_of_the_same_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="PIL is not installed")
    monkeypatch.setattr(arguments, "InversionNoise", lambda: SeededNoise(5))
    for part, data in (("private", PRIVATE), ("test", TEST)):
        names = [f"{part}{i}.png" for i in range(len(data))]
        for name, picture in zip(names, data.images, strict=True):
            pillow.fromarray(picture).save(tmp_path / name)
        table = pd.DataFrame({"path": names, "bar": data.y}).join(
            pd.DataFrame(data.sensitive_features)
        )
        table.to_csv(tmp_path / f"{part}.csv", index=False)
    listed = DataSource(
        name="files",
        private=str(tmp_path / "private.csv"),
        test=str(tmp_path / "test.csv"),
        label="bar",
        sensitive=("side",),
        pictures=PictureReading(extractor="none", mode="L"),
    )
    first, other = measured(one(listed), listed), measured(one())
    assert (first.error, first.gap, first.disparity) == (other.error, other.gap, other.disparity)
