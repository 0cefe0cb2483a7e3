"""What every generator of images must keep: subclass the contract in your tests, name your own.

The private pictures are 8 x 8: a bar that stands or lies (the label), in the left or the right half
of the picture (the group); one group is four times as large as the other.
"""

# ruff: noqa: D102 -- a test's name is its sentence

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from evenhand.generators import GeneratorDamaged, load
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.privacy import Budget

BUDGET: Final = Budget(epsilon=5.0, delta=1e-5)

__all__ = ["BUDGET", "ImageSynthesizerContract", "pictures"]


def pictures(
    n: int = 2000, seed: int = 0, *, colour: bool = False
) -> tuple[NDArray[np.uint8], NDArray[Any], NDArray[Any]]:
    """Return bars, what they do ("lies", "stands"), and where they are ("left", "right")."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["lies", "stands"], n)
    side = rng.choice(["left", "right"], n, p=[0.8, 0.2])
    out = np.zeros((n, 8, 8), dtype=np.uint8)
    for i in range(n):
        at = 4 * (side[i] == "right") + int(rng.integers(0, 2))
        if y[i] == "stands":
            out[i, :, at + 1] = 220
        else:
            out[i, 4 + int(rng.integers(-1, 2)), at : at + 3] = 220
    out += rng.integers(0, 30, out.shape, dtype=np.uint8)
    return (np.stack([out, out // 2, 255 - out], axis=3) if colour else out), y, side


_FITTED: dict[type, ImageSynthesizer] = {}  # one fit for all tests of a method


@pytest.mark.filterwarnings(
    "ignore:the predicted signal-to-noise", "ignore:.*cannot be told from empty ones"
)
class ImageSynthesizerContract:
    """What holds of every ``ImageSynthesizer``; subclass it and write :meth:`new`.

    ``budget`` may be raised for a method that needs more to see anything in 2,000 pictures.
    """

    budget: Budget = BUDGET

    def new(self) -> ImageSynthesizer:
        """Return a new generator whose privacy noise is ``SeededNoise``."""
        raise NotImplementedError("Return the generator to check, for example MyGenerator().")

    def fitted(self) -> ImageSynthesizer:
        """Return one that was fitted on the small pictures."""
        if type(self) not in _FITTED:
            images, y, side = pictures()
            _FITTED[type(self)] = self.new().fit(
                images, y, sensitive_features=side, budget=self.budget
            )
        return _FITTED[type(self)]

    def test_the_ledger_sums_to_the_claim_and_never_passes_it(self) -> None:
        made = self.fitted()
        spent = sum(entry.mu_squared for entry in made.ledger_.entries)
        assert spent == pytest.approx(self.budget.mu_squared, rel=1e-6)
        assert spent <= self.budget.mu_squared
        claim = made.guarantee_
        assert (claim.epsilon, claim.delta) == (self.budget.epsilon, self.budget.delta)
        assert claim.neighbors == made.neighbors
        assert not claim.holds  # the noise of this test is seeded
        assert "the values of the groups" in claim.public
        assert all(entry.settled for entry in made.ledger_.entries)

    def test_counts_by_label_and_group_are_exact(self) -> None:
        rows = self.fitted().sample(82, random_state=1)
        frame = pd.DataFrame({"y": rows.y, "s": np.asarray(rows.sensitive_features)})
        counts = frame.groupby(["y", "s"]).size()
        assert len(counts) == 4
        assert set(counts) == {20, 21}

    def test_pictures_have_the_size_and_the_range_of_those_that_were_learnt(self) -> None:
        rows = self.fitted().sample(20, random_state=1)
        assert rows.images.shape == (20, 8, 8)
        assert rows.images.dtype == np.float32
        assert rows.images.min() >= 0
        assert rows.images.max() <= 1
        assert rows.uint8.dtype == np.uint8
        assert np.abs(rows.uint8 / 255 - rows.images).max() <= 0.5 / 255 + 1e-6

    def test_a_table_of_conditions_is_answered_row_by_row(self) -> None:
        asked = pd.DataFrame(
            {"label": ["stands", "lies", "stands"], "sensitive": ["left", "left", "right"]}
        )
        rows = self.fitted().sample(conditions=asked, random_state=1)
        assert rows.y.tolist() == ["stands", "lies", "stands"]
        assert np.asarray(rows.sensitive_features).tolist() == ["left", "left", "right"]

    def test_values_that_are_fixed_are_fixed_and_the_rest_is_balanced(self) -> None:
        rows = self.fitted().sample(40, conditions={"sensitive": "right"}, random_state=1)
        assert (np.asarray(rows.sensitive_features) == "right").all()
        assert (rows.y == "stands").sum() == 20

    def test_it_comes_back_from_its_folder_as_it_was(self, tmp_path: Path) -> None:
        made = self.fitted()
        folder = made.save(tmp_path / "generator")
        again = load(folder)
        assert type(again) is type(made)
        assert again.guarantee_ == made.guarantee_
        assert again.settings() == made.settings()
        assert again.ledger_.to_dict() == made.ledger_.to_dict()
        one, other = (m.sample(30, random_state=4) for m in (again, made))
        assert np.array_equal(one.images, other.images)
        assert one.y.tolist() == other.y.tolist()
        assert not list(folder.rglob("*.pkl"))
        claim = json.loads((folder / "claim.json").read_text())
        assert claim["sentence"] == str(made.guarantee_)

    def test_an_edited_folder_is_refused(self, tmp_path: Path) -> None:
        folder = self.fitted().save(tmp_path / "generator")
        text = (folder / "claim.json").read_text()
        (folder / "claim.json").write_text(text.replace('"epsilon"', '"epsilan"', 1))
        with pytest.raises(GeneratorDamaged, match=r"claim\.json is not as it was saved"):
            load(folder)

    def test_a_sample_is_a_function_of_its_seed(self) -> None:
        made = self.fitted()
        one, same, other = (made.sample(30, random_state=s) for s in (1, 1, 2))
        assert np.array_equal(one.images, same.images)
        assert not np.array_equal(one.images, other.images)

    def test_a_condition_that_was_never_seen_is_refused_with_the_nearest(self) -> None:
        made = self.fitted()
        with pytest.raises(ValueError, match=r"label='stand' is not .*Did you mean 'stands'"):
            made.sample(5, conditions={"label": "stand"})
        with pytest.raises(ValueError, match=r"'side' is not a condition.*'label', 'sensitive'"):
            made.sample(5, conditions={"side": "left"})
        with pytest.raises(ValueError, match="n is missing"):
            made.sample()

    def test_noisy_counts_are_near_the_true_ones(self) -> None:
        _, y, side = pictures()
        made = self.fitted()
        true = [
            ((y == a) & (side == b)).sum() for a in ("lies", "stands") for b in ("left", "right")
        ]
        assert np.abs(made.counts_ - true).max() < 6 * made.counts_sigma_ + 1e-9

    def test_the_predicted_signal_to_noise_is_there_and_a_poor_one_warns(self) -> None:
        assert self.fitted().snr_.value > 0
        images, y, side = pictures(60)
        with pytest.warns(UserWarning, match=r"signal-to-noise is .*, below 50.*Raise epsilon"):
            poor = self.new().fit(
                images, y, sensitive_features=side, budget=Budget(epsilon=0.05, delta=1e-6)
            )
        assert any("signal-to-noise" in words for words in poor.notes_)

    def test_colour_pictures_come_back_in_colour(self) -> None:
        images, y, _ = pictures(200, colour=True)
        made = self.new().fit(images, y == "stands", budget=self.budget)
        rows = made.sample(6, balance="label", random_state=0)
        assert rows.images.shape == (6, 8, 8, 3)
        assert rows.sensitive_features is None
        assert rows.y.dtype == np.bool_
        assert rows.y.sum() == 3
