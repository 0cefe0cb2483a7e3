"""Classifiers of pictures, and one call that measures synthetic ones."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from evenhand import show_values
from evenhand.datasets.images import ImageData
from evenhand.generators.images import classifiers, evaluation
from evenhand.generators.images.classifiers import classify
from evenhand.generators.images.codec import ImageSample
from evenhand.generators.images.evaluation import evaluate_images
from evenhand.testing.generators import pictures

pytestmark = pytest.mark.torch


def bars(n: int, seed: int) -> ImageData:
    images, y, side = pictures(n, seed)
    return ImageData(images=images, y=y, sensitive_features=side, name="bars")


def sample(data: ImageData, *, known: bool = True) -> ImageSample:
    return ImageSample(
        images=data.images.astype(np.float32) / 255,
        y=data.y,
        sensitive_features=data.sensitive_features if known else None,
    )


class Halves:
    name = "halves"

    def transform(self, images: np.ndarray) -> np.ndarray:
        return images.reshape(len(images), 4, -1).mean(axis=2)


@pytest.mark.parametrize(("name", "epochs"), [("MLP", 40), ("CNN", 10)])
def test_a_classifier_learns_bars_and_touches_no_global_seed(name: str, epochs: int) -> None:
    import torch

    train, test = bars(400, 0), bars(100, 1)
    x, asked = (d.images[:, None].astype(np.float32) / 255 for d in (train, test))
    y = (train.y == "stands").astype(np.int64)
    before = torch.random.get_rng_state()
    one, same = (classify(name, x, y, asked, n_classes=2, epochs=epochs, seed=3) for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert np.array_equal(one, same)
    assert np.abs(one.sum(axis=1) - 1).max() < 1e-6
    assert ((one.argmax(axis=1) == 1) == (test.y == "stands")).mean() > 0.95


def test_the_networks_have_the_published_widths() -> None:
    mlp = classifiers.IMAGE_MODELS["MLP"].build((1, 28, 28), 2)
    assert sum(p.numel() for p in mlp.parameters()) == 784 * 100 + 100 + 100 * 2 + 2
    cnn = classifiers.IMAGE_MODELS["CNN"].build((1, 28, 28), 2)
    filters = 32 * 9 + 32 + 64 * 32 * 9 + 64
    assert sum(p.numel() for p in cnn.parameters()) == (
        filters + 64 * 7 * 7 * 512 + 512 + 512 * 2 + 2
    )


def test_good_pictures_score_and_what_groups_they_show_is_seen() -> None:
    train, test = bars(600, 0), bars(300, 1)
    found = evaluate_images(
        sample(bars(400, 2)),
        test,
        train=train,
        models=("MLP",),
        train_real=True,
        epochs=20,
        extractor=Halves(),
        n_per_group=20,
    )
    assert found.mean("accuracy") > 0.9
    assert found.mean("accuracy", "real") > 0.9
    assert found.judged is not None
    assert found.judged.accuracy > 0.95
    assert found.judged.agreement > 0.95
    # Four of five are on the left, in the pictures as in what they show.
    for balance in (found.balance, found.judged.balance, found.real_balance):
        assert balance is not None
        assert dict(balance.groups)["left"] == pytest.approx(0.8, abs=0.06)
    assert [d.n for d in found.distances] == [80, 20, 20, 20, 20]
    assert json.dumps(found.to_dict())


def test_test_pictures_of_the_same_people_have_wider_intervals() -> None:
    test = bars(60, 1).take(np.arange(240) % 60)
    rows, persons = (
        evaluate_images(sample(bars(200, 2)), test, models=("MLP",), epochs=2, units=units)
        for units in (None, np.arange(240) % 60)
    )
    (alone,), (of_persons,) = rows.utility, persons.utility
    assert of_persons.accuracy.value == alone.accuracy.value
    assert (of_persons.accuracy.n, of_persons.accuracy.n_units) == (240, 60)
    for name, gap in of_persons.gaps.items():
        assert gap.high - gap.low > alone.gaps[name].high - alone.gaps[name].low


def test_pictures_without_groups_are_judged_by_what_they_show() -> None:
    train, test = bars(600, 0), bars(300, 1)
    mine = bars(400, 2)
    one_sided = mine.take(mine.sensitive_features == "left")
    found = evaluate_images(sample(one_sided, known=False), test, train=train, models=(), epochs=1)
    assert found.balance is None
    assert found.judged is not None
    assert np.isnan(found.judged.agreement)
    assert dict(found.judged.balance.groups)["left"] > 0.97
    assert found.judged.balance.kl.value > 0.5  # all on one side: log 2
    assert np.isnan(found.mean("accuracy"))


def test_without_private_pictures_one_half_of_the_test_pictures_judges_and_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    test, seen = bars(400, 1), []

    def spied(name: str, images: np.ndarray, labels: np.ndarray, asked: np.ndarray, **of: int):
        seen.append((images, asked))
        return classify(name, images, labels, asked, **of)

    monkeypatch.setattr(evaluation, "classify", spied)
    found = evaluate_images(sample(bars(400, 2)), test, models=())
    assert found.judged is not None
    assert found.judged.accuracy > 0.9
    assert dict(found.judged.balance.groups)["left"] == pytest.approx(0.8, abs=0.06)
    ((learnt, asked),) = seen
    tried = {picture.tobytes() for picture in asked[: len(asked) - 400]}
    real = {picture.tobytes() for picture in (test.images / np.float32(255))}
    assert len(tried) == 200
    assert tried <= real
    assert {picture.tobytes() for picture in learnt} <= real - tried
    shown = list(zip(test.y, test.sensitive_features, strict=True))
    few = test.take(np.array([shown.index(("lies", "left")), shown.index(("stands", "right"))]))
    assert evaluate_images(sample(bars(50, 2)), few, models=()).judged is None


def test_test_pictures_may_be_files_that_a_table_lists(tmp_path: Path) -> None:
    test = bars(60, 1)
    listed = pd.DataFrame({"path": [f"{i}.png" for i in range(60)], "label": test.y})
    listed.assign(group=test.sensitive_features).to_csv(tmp_path / "listed.csv", index=False)
    for name, pixels in zip(listed["path"], test.images, strict=True):
        Image.fromarray(pixels).save(tmp_path / name)
    files = ImageData.from_csv(tmp_path / "listed.csv", mode="L")
    one, same = (
        evaluate_images(sample(bars(100, 2)), each, train=each, models=("MLP",), epochs=1)
        for each in (files, test)
    )
    assert one.to_dict() == same.to_dict()


def test_labels_that_nobody_tests_and_missing_groups_are_refused() -> None:
    test = bars(50, 1)
    strange = ImageSample(
        images=np.zeros((3, 8, 8), np.float32), y=np.array(["leans"] * 3), sensitive_features=None
    )
    with pytest.raises(ValueError, match=r"have a label that no test picture has, \(not shown"):
        evaluate_images(strange, test)
    with show_values(), pytest.raises(ValueError, match=r"test picture has, 'leans'; .*'lies'"):
        evaluate_images(strange, test)
    alone = ImageData(images=test.images, y=test.y, sensitive_features=None, name="x")
    with pytest.raises(ValueError, match="test= needs sensitive_features"):
        evaluate_images(sample(test), alone)
    with pytest.raises(ValueError, match="train=, which is missing"):
        evaluate_images(sample(test), test, train_real=True)
    with pytest.raises(ValueError, match=r"models must be one of 'MLP', 'CNN', got 'CN'"):
        evaluate_images(sample(test), test, models=("CN",))
