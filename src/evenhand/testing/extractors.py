"""What every feature extractor must keep: subclass the contract in your tests, name your own.

That a record moves one row of features is what makes features free. It is checked bit for bit: it
must hold for the program that runs, not only for the network on paper.
"""

# ruff: noqa: D102 -- a test's name is its sentence

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from evenhand.datasets.features.extraction import extract
from evenhand.datasets.features.extractor import ExtractorRecord, FeatureExtractor

N: Final = 5


def pictures(n: int = N, seed: int = 0) -> NDArray[np.uint8]:
    """Return squares of colour on noise, (n, 3, 24, 24)."""
    rng = np.random.default_rng(seed)
    out = rng.integers(0, 60, (n, 3, 24, 24), dtype=np.uint8)
    for picture in out:
        top, left = rng.integers(0, 16, 2)
        picture[rng.integers(0, 3), top : top + 8, left : left + 8] = 220
    return out


class FeatureExtractorContract:
    """What holds of the protocol ``FeatureExtractor``; subclass it and write :meth:`extractor`."""

    def extractor(self) -> FeatureExtractor:
        """Return the extractor to check."""
        raise NotImplementedError("Return the extractor, for example EfficientNetLite0.load().")

    def test_it_says_what_it_is(self) -> None:
        made = self.extractor()
        for words in (made.name, made.version, made.trained_on, made.licence, made.digest):
            assert isinstance(words, str)
            assert words.strip()
        for words in (made.name, made.version, made.trained_on, made.licence):
            assert words in str(ExtractorRecord.of(made))
        assert len(made.digest) >= 12
        assert made.digest == self.extractor().digest, "the same extractor, made twice"

    def test_features_are_finite_numbers_of_its_dimension(self) -> None:
        made = self.extractor()
        rows = made.transform(pictures())
        assert rows.shape == (N, made.dimension)
        assert rows.dtype == np.float32
        assert np.isfinite(rows).all()
        assert made.transform(pictures()[:0]).shape == (0, made.dimension)

    def test_the_same_pictures_have_the_same_features_twice(self) -> None:
        made = self.extractor()
        first = made.transform(pictures())
        assert np.array_equal(first, made.transform(pictures())), "nothing is kept between calls"
        assert np.array_equal(first, self.extractor().transform(pictures()))

    def test_a_row_reads_its_own_picture_alone(self) -> None:
        made, other = self.extractor(), pictures()
        before = made.transform(pictures())
        for i in range(N):
            changed = pictures(seed=1)
            changed[i] = other[i]
            after = made.transform(changed)
            assert np.array_equal(before[i], after[i])
            moved = (before != after).any(axis=1)
            assert moved[np.arange(N) != i].all(), "and it does read its own"

    def test_how_many_others_there_are_and_where_moves_no_bit(self) -> None:
        made = self.extractor()
        whole = made.transform(pictures())
        parts = [made.transform(pictures()[rows]) for rows in ([0], [1, 2, 3], [4])]
        assert np.array_equal(whole, np.concatenate(parts))
        assert np.array_equal(whole[::-1], made.transform(pictures()[::-1]))

    def test_what_it_is_given_is_not_written_to(self) -> None:
        given = pictures()
        self.extractor().transform(given)
        assert np.array_equal(given, pictures())

    def test_bytes_and_floats_of_the_same_pictures_agree(self) -> None:
        made = self.extractor()
        rows = made.transform(pictures())
        floats = made.transform(pictures().astype(np.float32) / np.float32(255.0))
        assert np.allclose(rows, floats, rtol=1e-4, atol=1e-4)

    def test_what_is_no_picture_is_refused(self) -> None:
        for wrong in (pictures()[0], pictures().transpose(0, 2, 3, 1), 3.0 * pictures()):
            with pytest.raises(ValueError, match="pictures"):
                self.extractor().transform(wrong)

    def test_they_go_through_extract(self) -> None:
        features = extract(pictures(), self.extractor(), cache=False)
        assert np.array_equal(features.values, self.extractor().transform(pictures()))
