"""The page on synthetic pictures: what it shows, what it leaves out, and hostile names."""

from __future__ import annotations

import base64
import copy
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import FAINT

from evenhand.datasets.images import ImageData
from evenhand.generators import load
from evenhand.generators.budget_plan import SignalToNoise
from evenhand.generators.images import MeanEmbeddingImages
from evenhand.generators.images.evaluation import evaluate_images
from evenhand.privacy import Budget, SeededNoise
from evenhand.privacy.guarantee import no_guarantee
from evenhand.report import write_report
from evenhand.report.strips import png, strip
from evenhand.testing.generators import pictures

pillow = pytest.importorskip("PIL.Image", reason="the extra images is not installed")

pytestmark = [pytest.mark.torch, FAINT]
EVIL = "<script>window.hit = 1</script>"


class Halves:
    name = "<b>halves"

    def transform(self, images: np.ndarray) -> np.ndarray:
        return images.reshape(len(images), 4, -1).mean(axis=2)


def bars(n: int, seed: int) -> ImageData:
    images, y, side = pictures(n, seed)
    return ImageData(
        images=images,
        y=np.where(y == "stands", EVIL, "lies"),
        sensitive_features=np.where(side == "left", "R&D", "</script><b>"),
        name="bars",
    )


@pytest.fixture(scope="module")
def fitted() -> MeanEmbeddingImages:
    data = bars(1500, 0)
    return MeanEmbeddingImages(
        # Seeded: one in forty draws of noise would make up a picture of an empty combination.
        **{"n_frequencies": 100, "hidden": (32,), "n_steps": 60, "n_samples": 40},
        noise=SeededNoise(0),
        random_state=0,
    ).fit(
        data.images,
        data.y,
        sensitive_features=data.sensitive_features,
        budget=Budget(epsilon=5.0, delta=1e-6),
        groups=["R&D", "</script><b>", "nobody"],
    )


@pytest.fixture(scope="module")
def pages(fitted: MeanEmbeddingImages, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, test = tmp_path_factory.mktemp("pictures"), bars(300, 1)
    shares = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    found = evaluate_images(
        fitted.sample(200, shares=shares, random_state=0),
        test,
        train=bars(300, 2),
        models=("MLP",),
        epochs=2,
        extractor=Halves(),
        n_per_group=20,
    )
    return {
        "alone": write_report(fitted, folder / "alone.html"),
        "measured": write_report(
            fitted, folder / "measured.html", measured=found, test=test, dataset={"Bars": EVIL}
        ),
    }


@given(height=st.integers(1, 9), width=st.integers(1, 9), colour=st.booleans())
def test_a_png_is_read_back_by_another_library(height: int, width: int, colour: bool) -> None:
    shape = (height, width, 3) if colour else (height, width)
    picture = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    with pillow.open(io.BytesIO(png(picture))) as read:
        assert np.array_equal(np.asarray(read), picture)


def test_a_strip_holds_its_pictures_side_by_side() -> None:
    two = np.stack([np.full((3, 4), 7, np.uint8), np.full((3, 4), 9, np.uint8)])
    start, _, data = strip(two).partition(",")
    assert start == "data:image/png;base64"
    with pillow.open(io.BytesIO(base64.b64decode(data))) as read:
        sheet = np.asarray(read)
    assert sheet.shape == (3, 9)
    assert (sheet[:, :4] == 7).all()
    assert (sheet[:, 4] == 255).all()
    assert (sheet[:, 5:] == 9).all()


def test_every_combination_has_its_strip_and_an_empty_one_says_so(pages: dict[str, Path]) -> None:
    alone, measured = (pages[name].read_text(encoding="utf-8") for name in ("alone", "measured"))
    assert alone.count('class="strip"') == 4
    assert measured.count('class="strip"') == 8
    assert alone.count("None: no picture of this combination") == 2
    assert "a page that shows them publishes them" in measured
    assert "a page that shows them publishes them" not in alone


def test_without_real_pictures_nothing_is_said_to_be_measured(pages: dict[str, Path]) -> None:
    alone, measured = (pages[name].read_text(encoding="utf-8") for name in ("alone", "measured"))
    assert "Not covered by the guarantee. These numbers" not in alone
    assert measured.count("Not covered by the guarantee. These numbers") == 4
    for words in ("Networks trained on these pictures", "These are not FIDs", "Groups shown"):
        assert words in measured
        assert words not in alone


def test_names_from_the_data_are_escaped_everywhere(pages: dict[str, Path]) -> None:
    for page in pages.values():
        text = page.read_text(encoding="utf-8")
        assert EVIL not in text
        assert "</script><b>" not in text
        assert "FD-<b>" not in text


def test_a_loaded_generator_gives_the_same_page(
    fitted: MeanEmbeddingImages, pages: dict[str, Path], tmp_path: Path
) -> None:
    again = load(fitted.save(tmp_path / "generator"))
    page = write_report(again, tmp_path / "again.html")
    assert page.read_bytes() == pages["alone"].read_bytes()


def test_a_reference_without_noise_is_told_as_one(
    fitted: MeanEmbeddingImages, tmp_path: Path
) -> None:
    plain = copy.copy(fitted)
    plain.snr_ = SignalToNoise(value=sys.float_info.max, formula="there is no noise")
    plain.guarantee_ = no_guarantee("there is no noise")
    text = write_report(plain, tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<span class="figure">no noise</span>' in text
    assert "Not private" in text


def test_a_seeded_run_is_called_what_it_is(tmp_path: Path) -> None:
    data = bars(200, 0)
    made = MeanEmbeddingImages(n_frequencies=10, hidden=(8,), n_steps=2, noise=SeededNoise(0)).fit(
        data.images, data.y, budget=Budget(epsilon=5.0, delta=1e-6)
    )
    text = write_report(made, tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<div class="banner" role="alert"><strong>Not private</strong>' in text


@pytest.mark.browser
def test_it_opens_from_disk_without_complaint_or_request(
    pages: dict[str, Path], visit: Callable[[Path], Any]
) -> None:
    seen = visit(pages["measured"])
    assert seen.complaints == []
    # Pictures are inside the page: nothing but the file itself is asked for.
    assert [url for url in seen.requests if not url.startswith("data:")] == [
        pages["measured"].as_uri()
    ]
    strips = seen.page.locator("img.strip")
    assert strips.count() == 8
    assert strips.first.evaluate("image => image.naturalWidth") == 16 * 9 - 1
