"""A backbone of pictures of one's own keeps the contract, and nothing else had to be touched."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra torch")

from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.generators.registry import REGISTERED
from evenhand.privacy import Budget, SeededNoise
from evenhand.testing.generators import ImageSynthesizerContract

from .linear_critics import BrightTeacherGANImages

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:of about .* pictures with")]

SMALL: dict[str, Any] = {"n_teachers": 30, "n_steps": 3, "n_rows": 4, "critic_rows": 8}


KEY = (BrightTeacherGANImages.payload, BrightTeacherGANImages.method)
del REGISTERED[KEY]


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register it for these tests alone."""
    monkeypatch.setitem(REGISTERED, KEY, BrightTeacherGANImages)


class TestBrightTeacherGAN(ImageSynthesizerContract):
    budget = Budget(epsilon=20.0, delta=1e-5)

    def new(self) -> ImageSynthesizer:
        return BrightTeacherGANImages(**SMALL, noise=SeededNoise(0), random_state=0)
