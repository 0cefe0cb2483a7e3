"""What every public generator must keep: subclass the contract in your tests, name your own."""

# ruff: noqa: D102 -- a test's name is its sentence

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np
import pytest

from evenhand.generators.images.public_generator import Drawn, PublicGenerator, Size
from evenhand.typing import Array

EACH: Final = 40


class PublicGeneratorContract:
    """What holds of the protocol ``PublicGenerator``; subclass it and write :meth:`generator`."""

    labels: ClassVar[tuple[Any, ...]]
    """Some labels that it draws, in a user's values."""

    size: ClassVar[Size]
    """Of pictures that it draws: channels, height and width."""

    unknown: ClassVar[Any]
    """A label that it does not draw."""

    def generator(self) -> PublicGenerator:
        """Return the generator to check."""
        raise NotImplementedError("Return the generator, for example PublicCharacters().")

    @property
    def asked(self) -> Array:
        """Each label as often as any other."""
        return np.repeat(np.array(self.labels), EACH)

    def _random(self, seed: int = 0) -> Drawn:
        return self.generator().random(self.asked, self.size, np.random.default_rng(seed))

    def _varied(self, drawn: Drawn, strength: float) -> Drawn:
        return self.generator().vary(drawn, self.asked, strength, np.random.default_rng(1))

    def test_it_says_what_it_is_and_what_it_was_made_of(self) -> None:
        made = self.generator()
        for words in (made.name, made.made_of):
            assert isinstance(words, str)
            assert words.strip()

    def test_it_draws_a_picture_of_each_label_in_its_size_and_range(self) -> None:
        drawn = self._random()
        for one in (drawn, self._varied(drawn, 0.5), self._varied(drawn, 1.0)):
            assert one.pixels.shape == (len(self.asked), *self.size)
            assert one.pixels.dtype == np.float32
            assert one.pixels.min() >= 0
            assert one.pixels.max() <= 1
            assert len(one.parameters) == len(self.asked)

    def test_what_it_draws_is_a_function_of_the_random_numbers(self) -> None:
        one, same, other = self._random(), self._random(), self._random(seed=2)
        assert np.array_equal(one.pixels, same.pixels)
        assert not np.array_equal(one.pixels, other.pixels)

    def test_it_goes_the_farther_the_stronger_and_nowhere_at_strength_0(self) -> None:
        drawn = self._random()
        apart = [
            float(((self._varied(drawn, s).pixels - drawn.pixels) ** 2).mean())
            for s in (0.0, 0.1, 0.5, 1.0)
        ]
        assert apart[0] <= 1e-12
        assert apart == sorted(apart)
        assert apart[1] < apart[3]

    def test_a_label_that_it_does_not_draw_is_refused(self) -> None:
        unknown = np.array([self.unknown])
        with pytest.raises(ValueError, match=r"\w"):
            self.generator().random(unknown, self.size, np.random.default_rng(0))
