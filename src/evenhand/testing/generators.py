"""What every generator must keep: subclass the contract of tables or of images, name your own.

The private table is small and mixed: text, whole, real, boolean and category columns, some with
missing values, two sensitive columns. The private pictures are 8 x 8: a bar that stands or lies
(the label), in the left or the right half of the picture (the group); one group is four times as
large as the other.
"""

# ruff: noqa: D102 -- a test's name is its sentence

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from evenhand.datasets import Schema
from evenhand.generators import GeneratorDamaged, load
from evenhand.generators.images.synthesizer import ImageSynthesizer
from evenhand.generators.synthesizer import Synthesizer
from evenhand.generators.tables.synthesizer import TableSynthesizer
from evenhand.privacy import Budget

BUDGET: Final = Budget(epsilon=2.0, delta=1e-6)
ROLES: Final[dict[str, Any]] = {"label": "rich", "sensitive": ["sex", "old"]}
SCHEMA: Final = Schema.declared(
    {
        "job": {"categories": ["chef", "clerk", "none"], "missing": True},
        "hours": {"bounds": (0, 80)},
        "rich": ["no", "yes"],
        "gain": {"bounds": (0, 20_000)},
        "sex": ["F", "M"],
        "old": ["False", "True"],
        "score": {"bounds": (-0.5, 1.5), "missing": True},
    }
)


def table(n: int = 4000, seed: int = 0) -> pd.DataFrame:
    """Return text, whole, real, boolean and category columns, some with missing values."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n, p=[0.35, 0.65])
    old = rng.random(n) < 0.4
    job = np.where(old, rng.choice(["chef", "none"], n), rng.choice(["chef", "clerk"], n))
    hours = np.clip(np.where(sex == "M", 42, 36) + rng.normal(0, 9, n), 0, 80).round()
    gain = np.where(rng.random(n) < 0.7, 0.0, rng.exponential(2000, n)).clip(0, 20_000)
    rich = np.where(hours + rng.normal(0, 8, n) > 44, "yes", "no")
    frame = pd.DataFrame(
        {
            "job": job,
            "hours": hours.astype(np.int64),
            "rich": rich,
            "gain": gain,
            "sex": pd.Categorical(sex, categories=["F", "M"]),
            "old": old,
            "score": np.where(old, 0.7, 0.2) + rng.normal(0, 0.1, n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "job"] = None
    frame.loc[rng.random(n) < 0.2, "score"] = np.nan
    return frame


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


def nearest_cell(
    drawn: NDArray[Any], images: NDArray[Any], y: NDArray[Any], side: NDArray[Any]
) -> tuple[str, str]:
    """Return the label and group of bars whose mean is nearest to that of drawn pictures."""
    mean = drawn.mean(axis=0)
    apart = {
        (a, b): float(((mean - images[(y == a) & (side == b)].mean(axis=0) / 255) ** 2).sum())
        for a in ("lies", "stands")
        for b in ("left", "right")
    }
    return min(apart, key=lambda cell: apart[cell])


_FITTED: dict[type, Any] = {}  # one fit for all tests of a method


@pytest.mark.filterwarnings(
    "ignore:the predicted signal-to-noise", "ignore:.*cannot be told from empty ones"
)
class _GeneratorContract(ABC):
    """What holds of every ``Synthesizer``, whatever it generates."""

    budget: ClassVar[Budget]
    few: ClassVar[int]
    """Records of which no method learns anything at epsilon 0.05."""

    @abstractmethod
    def new(self) -> Any:
        """Return a new generator whose privacy noise is ``SeededNoise``."""

    @abstractmethod
    def _fit(self, made: Any, n: int | None, budget: Budget) -> Any:
        """Fit on ``n`` of the small records, or on as many as there are."""

    @abstractmethod
    def _assert_same(self, one: Any, other: Any) -> None:
        """Fail unless two samples are the same."""

    def fitted(self) -> Any:
        """Return one that was fitted on the small private records."""
        if type(self) not in _FITTED:
            _FITTED[type(self)] = self._fit(self.new(), None, self.budget)
        return _FITTED[type(self)]

    def test_the_ledger_sums_to_the_claim_and_never_passes_it(self) -> None:
        made: Synthesizer = self.fitted()
        spent = sum(entry.mu_squared for entry in made.ledger_.entries)
        assert spent == pytest.approx(self.budget.mu_squared, rel=1e-6)
        assert spent <= self.budget.mu_squared
        claim = made.guarantee_
        assert (claim.epsilon, claim.delta) == (self.budget.epsilon, self.budget.delta)
        assert claim.neighbors == made.neighbors
        assert not claim.holds  # the noise of this test is seeded
        assert all(entry.settled for entry in made.ledger_.entries)

    def test_it_comes_back_from_its_folder_as_it_was(self, tmp_path: Path) -> None:
        made = self.fitted()
        folder = made.save(tmp_path / "generator")
        again = load(folder)
        assert type(again) is type(made)
        assert again.guarantee_ == made.guarantee_
        assert again.settings() == made.settings()
        assert again.ledger_.to_dict() == made.ledger_.to_dict()
        self._assert_same(again.sample(30, random_state=4), made.sample(30, random_state=4))
        assert not list(folder.rglob("*.pkl"))
        claim = json.loads((folder / "claim.json").read_text())
        assert claim["sentence"] == str(made.guarantee_)

    def test_an_edited_folder_is_refused(self, tmp_path: Path) -> None:
        folder = self.fitted().save(tmp_path / "generator")
        text = (folder / "claim.json").read_text()
        epsilon = f'"epsilon": {self.budget.epsilon}'
        assert epsilon in text
        (folder / "claim.json").write_text(text.replace(epsilon, '"epsilon": 0.2'))
        with pytest.raises(GeneratorDamaged, match=r"claim\.json is not as it was saved"):
            load(folder)

    def test_a_sample_is_a_function_of_its_seed(self) -> None:
        made = self.fitted()
        one, same, other = (made.sample(30, random_state=s) for s in (1, 1, 2))
        self._assert_same(one, same)
        with pytest.raises(AssertionError):
            self._assert_same(one, other)

    def test_the_predicted_signal_to_noise_is_there_and_a_poor_one_warns(self) -> None:
        assert self.fitted().snr_.value > 0
        with pytest.warns(UserWarning, match=r"signal-to-noise is .*, below 50.*Raise epsilon"):
            poor = self._fit(self.new(), self.few, Budget(epsilon=0.05, delta=1e-6))
        (words,) = (words for words in poor.notes_ if "signal-to-noise" in words)
        assert words.endswith(poor.fewer_numbers)


class SynthesizerContract(_GeneratorContract):
    """What holds of every ``TableSynthesizer``; subclass it and write :meth:`new`."""

    budget = BUDGET
    few = 300

    def new(self) -> TableSynthesizer:
        """Return a new generator whose privacy noise is ``SeededNoise``."""
        raise NotImplementedError("Return the generator to check, for example MyGenerator().")

    def _fit(self, made: Any, n: int | None, budget: Budget) -> Any:
        return made.fit(table(n or 4000), **ROLES, budget=budget, schema=SCHEMA)

    def _assert_same(self, one: Any, other: Any) -> None:
        pd.testing.assert_frame_equal(one, other)

    def test_counts_by_label_and_group_are_exact(self) -> None:
        rows = self.fitted().sample(803, random_state=1)
        counts = rows.groupby(["rich", "sex", "old"], observed=False).size()
        assert len(counts) == 8
        assert set(counts) == {100, 101}

    def test_a_table_of_conditions_is_answered_row_by_row(self) -> None:
        asked = pd.DataFrame(
            {"rich": ["yes", "no", "yes"], "sex": ["F", "F", "M"]}, index=[7, 3, 9]
        )
        rows = self.fitted().sample(conditions=asked, random_state=1)
        assert rows.index.tolist() == [7, 3, 9]
        assert rows["rich"].tolist() == ["yes", "no", "yes"]
        assert rows["sex"].tolist() == ["F", "F", "M"]

    def test_values_that_are_fixed_are_fixed_and_the_rest_is_balanced(self) -> None:
        rows = self.fitted().sample(400, conditions={"sex": "F", "old": True}, random_state=1)
        assert (rows["sex"] == "F").all()
        assert rows["old"].all()
        assert (rows["rich"] == "yes").sum() == 200

    @pytest.mark.filterwarnings("ignore:Few private records have")
    def test_any_column_can_be_a_condition(self) -> None:
        made = self.fitted()
        rows = made.sample(400, random_state=1)
        names = ["rich", "sex", "old", "job"]
        common = rows.groupby(names, observed=True).size().idxmax()
        asked = dict(zip(names, common, strict=True))
        same = np.logical_and.reduce([rows[name] == value for name, value in asked.items()])
        few, many = rows.loc[same, "hours"].quantile([0.1, 0.9])
        drawn = made.sample(60, conditions={**asked, "hours": (few, many)}, random_state=1)
        assert len(drawn) == 60
        assert all((drawn[name] == value).all() for name, value in asked.items())
        assert drawn["hours"].between(few, many).all()
        assert drawn.dtypes.tolist() == rows.dtypes.tolist()

    def test_the_columns_have_their_names_order_dtypes_and_ranges(self) -> None:
        private, rows = table(), self.fitted().sample(2000, random_state=1)
        assert rows.columns.tolist() == private.columns.tolist()
        assert rows.dtypes.tolist() == private.dtypes.tolist()
        assert rows["hours"].between(0, 80).all()
        assert rows["gain"].between(0, 20_000).all()
        assert rows["score"].dropna().between(-0.5, 1.5).all()
        assert set(rows["job"].dropna()) <= {"chef", "clerk", "none"}

    def test_missing_values_come_at_the_learnt_rate(self) -> None:
        # The rates are those of the table that was learnt. 20,000 rows: the deviation of a rate
        # over draws is .003, that over the noise of a fit .004 at this budget: six of both.
        rows = self.fitted().sample(20_000, balance=(), random_state=1)
        learnt = table()[["score", "job"]].isna().mean()
        assert (rows[["score", "job"]].isna().mean() - learnt).abs().max() < 0.03
        assert not rows[["hours", "gain", "rich", "sex", "old"]].isna().any().any()

    def test_a_condition_that_was_never_seen_is_refused_with_the_nearest(self) -> None:
        made = self.fitted()
        with pytest.raises(ValueError, match=r"rich='yess' is not a category.*Did you mean 'yes'"):
            made.sample(5, conditions={"rich": "yess"})
        with pytest.raises(ValueError, match=r"job='cheff' is not a category.*mean 'chef'"):
            made.sample(5, conditions={"job": "cheff"})
        with pytest.raises(ValueError, match=r"no column 'jobb'; it has 'job', 'hours'.*'job'"):
            made.sample(5, conditions={"jobb": "chef"})
        with pytest.raises(ValueError, match=r"balance must be one of 'label', 'sensitive'"):
            made.sample(5, balance=("labels",))
        with pytest.raises(ValueError, match="n is missing"):
            made.sample()


class ImageSynthesizerContract(_GeneratorContract):
    """What holds of every ``ImageSynthesizer``; subclass it and write :meth:`new`.

    ``budget`` may be raised for a method that needs more to see anything in 2,000 pictures.
    """

    budget = Budget(epsilon=5.0, delta=1e-5)
    few = 60

    def new(self) -> ImageSynthesizer:
        """Return a new generator whose privacy noise is ``SeededNoise``."""
        raise NotImplementedError("Return the generator to check, for example MyGenerator().")

    def _fit(self, made: Any, n: int | None, budget: Budget) -> Any:
        images, y, side = pictures(n or 2000)
        return made.fit(images, y, sensitive_features=side, budget=budget)

    def _assert_same(self, one: Any, other: Any) -> None:
        assert np.array_equal(one.images, other.images)
        assert one.y.tolist() == other.y.tolist()

    def test_the_values_of_the_groups_are_taken_as_public(self) -> None:
        assert "the values of the groups" in self.fitted().guarantee_.public

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

    def test_colour_pictures_come_back_in_colour(self) -> None:
        images, y, _ = pictures(200, colour=True)
        made = self.new().fit(images, y == "stands", budget=self.budget)
        rows = made.sample(6, balance="label", random_state=0)
        assert rows.images.shape == (6, 8, 8, 3)
        assert rows.sensitive_features is None
        assert rows.y.dtype == np.bool_
        assert rows.y.sum() == 3
