"""Every generator of images: the claim, exact conditions, the user's own values, bad input."""

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest
from marks import FAINT

from evenhand import show_values
from evenhand._folder import seal
from evenhand.datasets.images import ImageData
from evenhand.datasets.images.bias import binary_classes
from evenhand.generators import GeneratorDamaged, MarginalSynthesizer, load
from evenhand.generators.images import MeanEmbeddingImages
from evenhand.generators.images.codec import PublicValues, checked_pictures
from evenhand.generators.images.dp_wgan import DPWGANImages
from evenhand.generators.images.evolution import EvolutionImages
from evenhand.generators.images.gaussian import GaussianImages
from evenhand.generators.images.public_features import PublicFeatureImages
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.generators.memory import require_memory
from evenhand.privacy import SeededNoise
from evenhand.privacy.ledger_store import MemoryStore
from evenhand.testing.generators import (
    ROLES,
    SCHEMA,
    ImageSynthesizerContract,
    pictures,
    table,
)

BUDGET = ImageSynthesizerContract.budget

pytestmark = [pytest.mark.torch, FAINT]


def new(**settings: Any) -> MeanEmbeddingImages:
    small = {"n_frequencies": 100, "hidden": (32,), "n_steps": 60, "n_samples": 40}
    return MeanEmbeddingImages(**(small | {"noise": SeededNoise(0), "random_state": 0} | settings))


class TestMeanEmbedding(ImageSynthesizerContract):
    def new(self) -> ImageSynthesizer:
        return new()


def test_a_check_refuses_what_a_fit_would_and_leaves_what_was_fitted() -> None:
    images, y, side = pictures(200)
    known: dict[str, Any] = {"sensitive_features": side, "budget": BUDGET}
    unfitted = new(n_steps=2)
    unfitted.check(images, y, **known)
    assert not unfitted.is_fitted_
    assert not hasattr(unfitted, "codec_")
    with pytest.raises(ValueError, match="n_frequencies must be at least"):
        new(n_frequencies=0).check(images, y, **known)
    made = new(n_steps=2).fit(images, y, **known)
    before = dict(vars(made))
    with pytest.raises(ValueError, match="repeat the labels"):
        made.check(images[:, :5], y, sensitive_features=y, budget=BUDGET)
    made.check(images[:, :5], y, **known)
    assert vars(made) == before
    assert made.sample(3).images.shape == (3, 8, 8)


@pytest.mark.parametrize("y", [[True, 1, 0], [1, True, 0]])
def test_the_label_of_a_picture_follows_from_its_own_value(y: list[object]) -> None:
    column = pd.Series(y, dtype=object)
    known, codes = PublicValues.of("y", column, [0, 1, True], "label")
    assert [known.texts[code] for code in codes] == list(map(str, y))


@pytest.mark.parametrize(
    ("column", "declared", "drawn"),
    [
        ([3, 10], ["10", "3", "7"], [10, 3, 7]),
        ([True, False], ["False", "True"], [False, True]),
        ([0.5, 2.0], ["2", "0.5"], [2.0, 0.5]),
    ],
)
def test_declared_texts_come_back_as_what_the_column_holds(
    column: list[object], declared: list[str], drawn: list[object]
) -> None:
    known, codes = PublicValues.of("y", column, declared, "label")
    values = known.decode(np.arange(len(declared)))
    assert values.tolist() == drawn
    assert values.dtype == np.array(column).dtype
    assert known.decode(codes).tolist() == column
    for wrong in ("x", 3.25 if column == [3, 10] else "yes"):
        with pytest.raises(
            ValueError, match=f"cannot hold all values that are declared: {wrong!r}"
        ):
            PublicValues.of("y", column, [*declared, wrong], "label")


def test_labels_and_groups_come_back_in_the_users_own_values() -> None:
    images, y, side = pictures(300)
    groups = pd.DataFrame({"side": side, "year": np.arange(300) % 2 + 1990})
    made = new(n_steps=2).fit(
        images / 255.0,
        pd.Series(np.where(y == "stands", 3, 10), name="digit"),
        sensitive_features=groups,
        budget=BUDGET,
        groups={"year": [1991, 1990]},
    )
    rows = made.sample(conditions=pd.DataFrame({"digit": [10, 3], "year": [1990, 1991]}))
    assert rows.y.tolist() == [10, 3]
    assert rows.y.dtype == np.int64
    assert rows.sensitive_features.columns.tolist() == ["side", "year"]
    assert rows.sensitive_features["year"].tolist() == [1990, 1991]
    assert made.conditions_.categories == (("3", "10"), ("left", "right"), ("1991", "1990"))


def test_without_groups_or_conditioned_on_the_label_alone_samples_have_no_groups() -> None:
    images, y, side = pictures(300)
    made = new(n_steps=2, condition="label").fit(images, y, sensitive_features=side, budget=BUDGET)
    assert made.conditions_.n == 2
    assert made.sample(4).sensitive_features is None
    with pytest.raises(ValueError, match=r"asks for even groups, .* Ask for 'label' or for none"):
        made.sample(4, balance="sensitive")
    with pytest.raises(ValueError, match="condition must be one of 'label"):
        new(condition="labels").fit(images, y, budget=BUDGET)


def test_a_rare_class_is_evened_out_by_the_label_alone() -> None:
    images, y, _ = pictures(400)
    data = binary_classes(
        ImageData(images=images, y=y, sensitive_features=None, name="bars"),
        "lies",
        "stands",
        ratio=4,
        random_state=0,
    )
    generator = new().fit(data.images, data.y, budget=BUDGET)
    as_it_is = generator.sample(500, balance=())
    assert abs((as_it_is.y == "stands").mean() - 0.2) < 0.05
    assert (generator.sample(500, balance=("label",)).y == "stands").sum() == 250
    told = new(condition="label").fit(
        data.images, data.y, sensitive_features=data.sensitive_features, budget=BUDGET
    )
    assert told.conditions_.n == 2


def test_only_the_first_pictures_of_a_person_are_read() -> None:
    images, y, side = pictures(400)
    made = new(n_steps=2).fit(
        images,
        y,
        sensitive_features=side,
        budget=BUDGET,
        unit_ids=np.arange(400) % 100,
        per_unit=2,
    )
    assert made.guarantee_.unit == "person"
    sigma = made.counts_sigma_ * 2.0
    assert abs(made.counts_.sum() - 200) < 6 * sigma
    alone = new(n_steps=2).fit(images, y, sensitive_features=side, budget=BUDGET)
    assert made.counts_sigma_ == pytest.approx(2 * alone.counts_sigma_)
    with pytest.raises(ValueError, match="With unit_ids the claim is for adding or removing"):
        new(neighbors="replace one").fit(images, y, budget=BUDGET, unit_ids=np.arange(400))


def test_a_declared_group_without_a_picture_is_not_made_up() -> None:
    images, y, side = pictures(800)
    made = new(n_steps=20).fit(
        images, y, sensitive_features=side, budget=BUDGET, groups=["left", "right", "top"]
    )
    assert any("cannot be told" in words and "top" in words for words in made.notes_)
    with pytest.raises(ValueError, match=r"No record of .*sensitive=top can be told from the"):
        made.sample(10, conditions={"sensitive": "top"})
    with pytest.raises(TypeError, match=r"conditions must be a mapping such as .* got 'left'"):
        made.sample(10, conditions="left")  # type: ignore[arg-type]
    assert len(made.sample(10, conditions={"sensitive": "left"})) == 10


@pytest.mark.parametrize(
    "amounts", [{"y": np.arange(400) / 7}, {"sensitive_features": np.arange(400) / 7}]
)
def test_values_that_are_published_are_no_amounts(amounts: dict[str, Any]) -> None:
    images, y, side = pictures(400)
    given = {"y": y, "sensitive_features": side} | amounts
    with pytest.raises(ValueError, match=r"has more than (200|50) .* would be published"):
        new(n_steps=2).fit(images, budget=BUDGET, **given)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a label that is missing": (
        {"y": pd.Series(pictures(40)[1], dtype=object).where(np.arange(40) != 3)},
        r"label is missing for picture 4 .* Leave these pictures out",
    ),
    "a group that is missing": (
        {"sensitive_features": pd.Series(pictures(40)[2], dtype=object).where(np.arange(40) > 1)},
        r"group is missing for picture 1 .* and 1 more.*a group of their own",
    ),
    "fewer groups than pictures": (
        {"sensitive_features": ["left"] * 39},
        "There are 40 pictures, and sensitive_features has 39 rows",
    ),
    "fewer labels than pictures": ({"y": ["lies"] * 39}, "images has 40, y has 39"),
    "labels in two columns": ({"y": np.zeros((40, 2))}, r"must be one value .*shape \(40, 2\)"),
    "labels of several parts": (
        {"y": np.zeros(40, dtype=[("what", int)])},
        "must be one value for each picture.* Take one column of it",
    ),
    "a label that is not declared": (
        {"classes": ["lies", "stand"]},
        r"label 'stands' of picture \d+ .*is not among the declared.*Did you mean 'stand'",
    ),
    "one label only": ({"y": ["lies"] * 40}, "Labels have at least two values, got 'lies'"),
    "pixels beyond 1": (
        {"images": np.where(np.arange(40)[:, None, None] == 7, 2.0, 0.5) * np.ones((40, 8, 8))},
        r"Pixels must lie in \[0, 1\], and some do not in picture 8 ",
    ),
    "pixels that are not numbers": (
        {"images": np.where(np.arange(40)[:, None, None] == 9, np.nan, 0.5) * np.ones((1, 8, 8))},
        r"some do not in picture 10 ",
    ),
    "channels first": ({"images": np.zeros((40, 3, 8, 8))}, r"got \(40, 3, 8, 8\)\. Channels come"),
    "pictures of two sizes": (
        {"images": [np.zeros((8, 8 + (i in (4, 6)))) for i in range(40)]},
        r"one size, and that of picture 5 .* and 1 more is not that of the first\. Resize",
    ),
    "an array of pictures of two sizes": (
        {"images": np.array([np.zeros((8 + i % 2, 8)) for i in range(40)], dtype=object)},
        r"must have one size, and that of picture 2 .*ImageData\.from_csv",
    ),
    "no pictures": ({"images": np.zeros((0, 8, 8)), "y": []}, "There are no pictures"),
    "declared groups without groups": (
        {"sensitive_features": None, "groups": ["left"]},
        "sensitive_features, which is missing",
    ),
    "groups that are the labels": (
        {"sensitive_features": pictures(40)[1]},
        r"groups 'sensitive' repeat the labels.*balance=\('label',\).*condition='label'",
    ),
    "one column of groups that is the labels": (
        {"sensitive_features": pd.DataFrame({"side": pictures(40)[2], "what": pictures(40)[1]})},
        "groups 'what' repeat the labels",
    ),
    "an id that is missing": (
        {"unit_ids": [None, *range(39)]},
        "unit_ids is missing for picture 1 ",
    ),
    "pictures of no unit": ({"per_unit": 3}, "per_unit=3 bounds .*, and without unit_ids= each"),
}


def test_a_list_of_pictures_is_as_good_as_an_array() -> None:
    images, _, _ = pictures(40)
    apart = np.empty(40, dtype=object)
    apart[:] = list(images)
    for given in (list(images), apart):
        np.testing.assert_array_equal(checked_pictures(given), images)


@pytest.mark.usefixtures("values_shown")
@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_named_before_anything_is_spent(case: str) -> None:
    changed, message = BAD[case]
    images, y, side = pictures(40)
    given = {"images": images, "y": y, "sensitive_features": side} | changed
    store = MemoryStore()
    with pytest.raises(ValueError, match=message):
        new().fit(**given, budget=BUDGET, store=store)
    assert store.entries("default") == ()


def test_whole_numbers_that_are_not_bytes_are_refused() -> None:
    images, y, _ = pictures(40)
    with pytest.raises(TypeError, match=r"uint8 \(0 to 255\) or floats in \[0, 1\], got dtype int"):
        new().fit(images.astype(np.int64), y, budget=BUDGET)
    # As bytes True would be 1 of 255, which is black.
    with pytest.raises(TypeError, match=r"got dtype bool\. Convert them: images.astype\('float64'"):
        new().fit(images > 0.5, y, budget=BUDGET)


@pytest.mark.parametrize("name", ["classes", "groups"])
def test_one_text_is_no_list_of_values(name: str) -> None:
    images, y, side = pictures(40)
    given: dict[str, Any] = {"y": y, "sensitive_features": side, name: "left"}
    with pytest.raises(TypeError, match=r"are a sequence, got the text 'left'. Write all"):
        new().fit(images, **given, budget=BUDGET)


def test_a_run_that_would_not_fit_into_memory_stops_before_it_spends() -> None:
    images, y, _ = pictures(40)
    store = MemoryStore()
    with pytest.raises(MemoryError, match=r"frequencies .* are free. Lower n_frequencies.*Nothing"):
        new(n_frequencies=10**12).fit(images, y, budget=BUDGET, store=store)
    assert store.entries("default") == ()
    require_memory("small things", 1000.0, "nothing")


@pytest.mark.parametrize(
    "kind",
    [
        ImageSynthesizer,
        GaussianImages,
        MeanEmbeddingImages,
        PublicFeatureImages,
        EvolutionImages,
        pytest.param(DPWGANImages, marks=pytest.mark.torch),
    ],
)
def test_what_needs_memory_quotes_the_number_of_pictures_to_the_curator_alone(kind: Any) -> None:
    data = MagicMock(pixels=np.zeros((1234, 1, 2, 2), dtype=np.float32))
    data.__len__.return_value = 1234
    settings = {"n_frequencies": 7, "n_components": 3, "n_directions": 5, "n_samples": 2}
    settings |= {"n_candidates": 4, "n_kept": 6}
    settings |= {"n_batches": 1, "critic_rows": 8, "_n_weights": 5, "_critic_sizes": "blocks"}
    made = SimpleNamespace(
        **settings,
        mirrored=False,
        conditions_=SimpleNamespace(n=2),
        record_=SimpleNamespace(dimension=9),
    )
    what, _, _ = kind._memory(made, data)
    assert "(not shown) pictures" in what
    assert "234" not in what
    with show_values():
        assert "1,234 pictures" in kind._memory(made, data)[0]


def test_one_load_reads_what_either_kind_saved_and_says_which_it_is(tmp_path: Any) -> None:
    made = MarginalSynthesizer(pairs=False, noise=SeededNoise(0)).fit(
        table(), **ROLES, budget=BUDGET, schema=SCHEMA
    )
    again = load(made.save(tmp_path / "tables"))
    assert (type(again), again.payload) == (MarginalSynthesizer, "tables")
    images, y, side = pictures(200)
    drawn = new().fit(images, y, sensitive_features=side, budget=BUDGET)
    folder = drawn.save(tmp_path / "images")
    assert load(folder).payload == "images"
    head = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({k: head[k] for k in head if k != "payload"}))
    seal(folder, "generator", None)
    with pytest.raises(GeneratorDamaged, match="an earlier version, in another format"):
        load(folder)
