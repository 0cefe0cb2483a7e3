"""Public generators: pictures that are moved and bent, and characters of fonts."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand import show_values
from evenhand._extras import MissingExtra, installed
from evenhand.generators.images import public_characters
from evenhand.generators.images.public_characters import PublicCharacters
from evenhand.generators.images.public_generator import (
    _BEND,
    _SCALE,
    _SHEAR,
    _SHIFT,
    _TURN,
    N_MOVES,
    PublicPictures,
    moved,
)
from evenhand.testing.generators import pictures
from evenhand.testing.public_generators import PublicGeneratorContract

RNG = np.random.default_rng(0)
IMAGES, LABELS, _ = pictures(60)
COLOURS = pictures(60, colour=True)[0]

needs_fonts = pytest.mark.skipif(
    not (installed("matplotlib") and installed("PIL")), reason="needs the extra plot"
)


class TestPublicPictures(PublicGeneratorContract):
    labels, size, unknown = ("lies", "stands"), (1, 8, 8), "sits"

    def generator(self) -> PublicPictures:
        return PublicPictures(IMAGES, LABELS, made_of="bars")


class TestPublicPicturesInColour(TestPublicPictures):
    size = (3, 8, 8)

    def generator(self) -> PublicPictures:
        return PublicPictures(COLOURS / 255.0, LABELS, made_of="bars")


@needs_fonts
class TestPublicCharacters(PublicGeneratorContract):
    labels, size, unknown = (0, 7, "F"), (1, 28, 28), "lies"

    def generator(self) -> PublicCharacters:
        return PublicCharacters()


def one_moved(picture: Any, changed: dict[int, float]) -> Any:
    """One picture, with these moves and no others."""
    moves = np.zeros((1, N_MOVES))
    moves[0, list(changed)] = list(changed.values())
    chosen, height = np.zeros(1, dtype=int), len(picture)
    return moved(picture[None, None], chosen, float(height), moves, (1, *picture.shape))[0, 0]


def test_without_a_move_a_picture_is_itself() -> None:
    for size in ((8, 8), (6, 9), (9, 5)):
        picture = np.random.default_rng(0).random(size)
        assert one_moved(picture, {}) == pytest.approx(picture, abs=1e-6)


def test_pictures_are_moved_turned_and_bent_by_what_the_parameters_say() -> None:
    picture = np.random.default_rng(0).random((8, 8))
    right = one_moved(picture, {4: 2 / 8 / _SHIFT})  # two eighths of half a picture: one pixel
    assert right[:, :-1] == pytest.approx(picture[:, 1:], abs=1e-6)
    down = one_moved(picture, {5: 2 / 8 / _SHIFT})
    assert down[:-1] == pytest.approx(picture[1:], abs=1e-6)
    quarter = one_moved(picture, {0: np.pi / 2 / _TURN})
    assert quarter == pytest.approx(np.rot90(picture), abs=1e-6)
    odd, rows = np.random.default_rng(0).random((7, 7)), np.arange(7)
    sheared = one_moved(odd, {1: 1 / _SHEAR})  # a column for each row from the middle
    assert sheared == pytest.approx(odd[rows[:, None], np.clip(rows + rows[:, None] - 3, 0, 6)])
    twice = np.clip(3 + 2 * (rows - 3), 0, 6)
    assert one_moved(odd, {2: np.log(2) / _SCALE}) == pytest.approx(odd[:, twice])
    assert one_moved(odd, {3: np.log(2) / _SCALE}) == pytest.approx(odd[twice])
    # The left half is taken from the right, and the right from the left, by the cosine there.
    row = np.tile(np.arange(8) / 8, (8, 1))
    bent = one_moved(row, {6: 0.1 / _BEND})  # the first wave: none down, half a length across
    places = np.arange(8) + 4 * 0.1 * np.cos(np.pi * (np.arange(8) + 0.5) / 8)
    expected = np.tile(np.clip(places, 0, 7) / 8, (8, 1))
    assert bent == pytest.approx(expected, abs=1e-6)


def test_a_variation_is_as_likely_as_any_picture_and_as_far_as_its_strength_says() -> None:
    n, rng = 2000, np.random.default_rng(0)
    pool = PublicPictures(IMAGES[:, :4, :4], LABELS, made_of="bars")
    drawn = pool.random(LABELS[np.arange(n) % 60], (1, 4, 4), rng)
    varied = pool.vary(drawn, LABELS[np.arange(n) % 60], 0.6, rng)
    # Another model with probability .36, which 2,000 show within 6 deviations of .0107.
    other = varied.parameters[:, 0] != drawn.parameters[:, 0]
    assert abs(other.mean() - 0.36) < 6 * (0.36 * 0.64 / n) ** 0.5
    before, after = drawn.parameters[:, 1:].ravel(), varied.parameters[:, 1:].ravel()
    # Of m products of standard normal numbers the mean has a deviation below sqrt(2 / m).
    within = 6 * (2 / len(before)) ** 0.5
    assert abs((after**2).mean() - 1.0) < within
    assert abs((before * after).mean() - 0.8) < within


@needs_fonts
def test_a_character_that_is_not_moved_is_the_one_that_pillow_draws() -> None:
    from PIL import ImageFont

    made = PublicCharacters()
    for file in made.files()[:4]:
        font = ImageFont.truetype(str(file), 100)
        for text in ("F", "7", "g"):
            mask = font.getmask(text, mode="L")
            drawn = np.frombuffer(bytes(mask), dtype=np.uint8).reshape(mask.size[::-1]) > 127
            found = public_characters._distances(str(file), text)
            assert found is not None
            # Through the whole way of a picture that is not moved.
            still, own = np.zeros((1, N_MOVES)), np.zeros(1, dtype=int)
            values = moved(found[None, None], own, 64.0, still, (1, 100, 100))
            own = framed(made.toned(values, np.zeros((1, 2)))[0, 0] > 0.5)
            assert np.abs(np.subtract(own.shape, framed(drawn).shape)).max() <= 2
            assert alike(own, framed(drawn)) > 0.9
            assert alike(own[:, ::-1], framed(drawn)) < 0.8


def framed(inside: Any) -> Any:
    """The box around what is inside."""
    rows, columns = (np.flatnonzero(inside.any(axis=axis)) for axis in (1, 0))
    return inside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def alike(one: Any, other: Any) -> float:
    """Share of the pixels of both that agree."""
    rows, columns = np.minimum(one.shape, other.shape)
    return float((one[:rows, :columns] == other[:rows, :columns]).mean())


@needs_fonts
def test_strokes_are_thicker_and_softer_as_the_parameters_say() -> None:
    made = PublicCharacters()

    def ink(tones: tuple[float, float]) -> tuple[float, float]:
        parameters = np.zeros((1, 1 + N_MOVES + 2))
        parameters[0, -2:] = tones
        own = made._drawn(parameters, np.array(["8"]), (1, 28, 28)).pixels
        return float(own.sum()), float(((own > 0.05) & (own < 0.95)).sum())

    assert ink((1.0, 0.0))[0] > 1.1 * ink((0.0, 0.0))[0]
    assert ink((0.0, 2.0))[1] > 1.1 * ink((0.0, -2.0))[1]


@needs_fonts
def test_the_fonts_are_those_of_a_folder_and_the_words_change_with_them(tmp_path: Path) -> None:
    usual = PublicCharacters()
    for file in usual.files()[:2]:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "notes.txt").write_text("not a font")
    own = PublicCharacters(fonts=tmp_path)
    assert [file.name for file in own.files()] == [file.name for file in usual.files()[:2]]
    assert own.made_of.startswith("2 fonts, digest ")
    assert own.made_of.split()[-1] != usual.made_of.split()[-1]
    assert len(own.models("3", (1, 8, 8))[0]) == 2


@needs_fonts
def test_what_cannot_be_drawn_is_refused_and_the_way_out_is_said(tmp_path: Path) -> None:
    rng, size = np.random.default_rng(0), (1, 8, 8)
    with pytest.raises(ValueError, match=r"label \(not shown\) is none\. Give public=Public"):
        PublicCharacters().random(np.array(["lies"]), size, rng)
    with show_values(), pytest.raises(ValueError, match=r"single characters .* label 'lies' is"):
        PublicCharacters().random(np.array(["lies"]), size, rng)
    with pytest.raises(ValueError, match="single characters that a font has"):
        PublicCharacters().random(np.array(["\U0010fffe"]), size, rng)
    with pytest.raises(ValueError, match="draws grey pictures, and the private ones are in colour"):
        PublicCharacters().random(np.array(["3"]), (3, 8, 8), rng)
    with pytest.raises(ValueError, match=r"There is no font \(.ttf, .otf\) in the folder"):
        PublicCharacters(fonts=tmp_path).random(np.array(["3"]), size, rng)
    pool = PublicPictures(IMAGES, LABELS, made_of="bars")
    with pytest.raises(ValueError, match=r"no public picture of the label .* 'lies', 'stands'"):
        pool.random(np.array(["sits"]), size, rng)
    with pytest.raises(ValueError, match=r"private pictures have 1 x 9 x 8 and the public ones 1"):
        pool.random(np.array(["lies"]), (1, 9, 8), rng)
    with pytest.raises(ValueError, match="pictures has 60, labels has 59"):
        PublicPictures(IMAGES, LABELS[1:], made_of="bars")


def test_without_its_packages_it_says_which_extra_brings_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(public_characters, "installed", lambda package: False)
    with pytest.raises(MissingExtra, match=r"without fonts= needs matplotlib.*\[plot\]"):
        PublicCharacters().random(np.array(["3"]), (1, 8, 8), rng)
    monkeypatch.setitem(sys.modules, "PIL.ImageFont", None)
    monkeypatch.delitem(vars(public_characters._fonts), "truetype", raising=False)
    monkeypatch.setattr(PublicCharacters, "files", lambda self: (Path("a.ttf"),))
    with pytest.raises(MissingExtra, match=r"PublicCharacters needs Pillow.*\[images\]"):
        PublicCharacters().random(np.array(["3"]), (1, 8, 8), rng)
