"""Picture files as arrays, through Pillow: decoded as they are read, and bad ones named at once."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from evenhand import _checks, _values
from evenhand._extras import MissingExtra, installed
from evenhand.datasets.columns import some
from evenhand.typing import Array

# Not needed to import this module, so that documentation and tests read it without the extra.
pillow: Any = import_module("PIL.Image") if installed("PIL") else None

MODES: Final = {"RGB": 3, "L": 1}
"""What pictures are decoded to, and its channels."""

_NAMED: Final = 20
"""Rows that a message names for each kind of bad picture."""


class UnreadableImages(ValueError):
    """Picture files that cannot be used; the message names all of them, by row or by name."""


class _Bad(Exception):
    """What is wrong with one picture."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PictureFiles:
    """Pictures in files, decoded where rows are taken: ``files[rows]`` is an array."""

    paths: tuple[Path, ...]
    side: tuple[int, int]
    """Height and width of every picture."""
    mode: str
    """Colour, or grey. One of "RGB", "L"."""
    cut: bool
    """Whether the middle square is cut out and resized."""
    channels_first: bool = False
    """(n, c, h, w); otherwise (n, h, w, 3), or (n, h, w) of grey ones."""

    dtype = np.dtype(np.uint8)

    @property
    def shape(self) -> tuple[int, ...]:
        """What the array of all pictures would have."""
        if self.channels_first:
            return (len(self.paths), MODES[self.mode], *self.side)
        return (len(self.paths), *self.side, *((3,) if self.mode == "RGB" else ()))

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, rows: Any) -> PictureFiles:
        """Return some of the files: positions, a mask or a slice."""
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        return replace(self, paths=tuple(self.paths[i] for i in chosen))

    def channels_in_front(self) -> PictureFiles:
        """Return the same files, whose rows are (n, c, h, w)."""
        return replace(self, channels_first=True)

    def __getitem__(self, rows: Any) -> Array:
        chosen = np.arange(len(self))[rows]
        out = np.empty((np.size(chosen), *self.shape[1:]), dtype=np.uint8)
        for i, at in enumerate(np.atleast_1d(chosen)):
            try:
                picture = decoded(self.paths[at], self.mode, self.side[0] if self.cut else None)
                if picture.shape[:2] != self.side:
                    raise _Bad("another size than before")
            except _Bad as error:
                raise UnreadableImages(
                    f"A picture was readable when it was listed, and is not any more: "
                    f"{self.paths[at]} ({error}). Put it back, or list the files anew."
                ) from None
            out[i] = np.moveaxis(np.atleast_3d(picture), -1, 0) if self.channels_first else picture
        return out if np.ndim(chosen) else out[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("Pictures in files have no array that could be had without a copy.")
        return self[:].astype(dtype or np.uint8, copy=False)


def read_pictures(files: Sequence[tuple[str, bytes]], size: int | None, where: str) -> Array:
    """Return pictures of given names and contents as (n, h, w, 3) uint8.

    ``size`` is height and width: the middle square is cut out and resized. None: all have one size
    already. ``where`` is what they are, for messages.

    Raises
    ------
    UnreadableImages
        If any cannot be used; all are named.
    MissingExtra
        If Pillow is missing.
    """
    require_pillow(where)
    out = np.zeros((0, 1, 1, 3), dtype=np.uint8)

    def keep(at: int, picture: Array) -> None:
        nonlocal out
        if not len(out):
            out = np.empty((len(files), *picture.shape), dtype=np.uint8)
        if picture.shape == out.shape[1:]:
            out[at] = picture

    contents = [partial(bytes, content) for _, content in files]
    look = _Look(names=[name for name, _ in files], where=where, quoted=True, size=size, mode="RGB")
    look.through(contents, keep)
    return out


def listed_files(
    folder: Path,
    names: Sequence[str | None],
    *,
    size: int | None,
    mode: str,
    where: str,
    quoted: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[PictureFiles, Array]:
    """Look at the files of a table once; return them, and the digest of each file's content.

    Parameters
    ----------
    folder : Path
        What the names are relative to; no name may lead out of it.
    names : sequence of str or None
        One a row; None where the table has none.
    size, mode
        See ``ImageData.from_csv``.
    where : str
        What they are, for messages.
    quoted : bool
        Whether messages quote names, as of a public set. Otherwise they name rows, and names where
        ``show_values`` says so.

    Raises
    ------
    UnreadableImages
        For all bad files at once.
    """
    require_pillow(where)
    _checks.one_of("mode", mode, MODES)
    root = folder.resolve()
    paths = tuple(folder / (name or "") for name in names)
    digests = [""] * len(paths)

    def content(at: int) -> bytes:
        if names[at] is None:
            raise _Bad("no path")
        whole = paths[at].resolve()  # follows links too
        if not whole.is_relative_to(root):
            raise _Bad("a path that leaves the folder of the table")
        try:
            found = whole.read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise _Bad("no such file") from None
        except OSError as error:
            raise _Bad(f"a file that cannot be read ({error.strerror})") from None
        digests[at] = hashlib.sha256(found).hexdigest()
        return found

    look = _Look(names=names, where=where, quoted=quoted, size=size, mode=mode, progress=progress)
    side = look.through([partial(content, at) for at in range(len(paths))])
    return PictureFiles(paths=paths, side=side, mode=mode, cut=size is not None), np.array(digests)


@dataclass(frozen=True, kw_only=True)
class _Look:
    """A look at every picture of a set, which finds all bad ones; see ``listed_files``."""

    names: Sequence[str | None]
    where: str
    quoted: bool
    size: int | None
    mode: str
    progress: Callable[[int, int], None] | None = None

    def through(
        self,
        contents: Sequence[Callable[[], bytes]],
        keep: Callable[[int, Array], None] = lambda at, picture: None,
    ) -> tuple[int, int]:
        """Decode every picture once, hand it to ``keep``, and return the size of all."""
        if self.size is not None:
            _checks.at_least("size", self.size, 1)
        bad: dict[str, list[int]] = {}
        sides: dict[int, tuple[int, int]] = {}
        for at, content in enumerate(contents):
            try:
                picture = decoded(content(), self.mode, self.size)
                sides[at] = (picture.shape[0], picture.shape[1])
                keep(at, picture)
            except _Bad as error:
                bad.setdefault(str(error), []).append(at)
            if self.progress:
                self.progress(at + 1, len(contents))
        side = Counter(sides.values()).most_common(1)[0][0] if sides else (1, 1)
        if odd := [at for at, found in sides.items() if found != side]:
            words = (
                f"another size than {side[0]} x {side[1]} (say size=64 or --size 64, and all are "
                f"resized)"
            )
            bad[words] = odd
        if bad:
            raise UnreadableImages(self._said(bad))
        return side

    def _said(self, bad: dict[str, list[int]]) -> str:
        """Return what is wrong with which pictures."""
        parts = [f"{words}: {self._listed(at)}" for words, at in bad.items()]
        wrong = ". ".join(part[0].upper() + part[1:] for part in parts)
        if self.quoted:
            return (
                f"{sum(map(len, bad.values()))} of {len(self.names)} pictures of {self.where} "
                f"cannot be read. {wrong}. Replace them, or take them out of the folder."
            )
        return (
            f"Pictures of {self.where} cannot be used (rows are counted from 1 below the header). "
            f"{wrong}. Correct these rows or files, or leave the rows out; with "
            f"evenhand.show_values() (--show-values) this message has the names."
        )

    def _listed(self, bad: Sequence[int]) -> str:
        names = some([self.names[at] for at in bad], _NAMED)
        if self.quoted:
            return names
        more = " and others" if len(bad) > _NAMED else ""
        rows = ", ".join(str(at + 1) for at in bad[:_NAMED])
        return f"row{'s' * (len(bad) > 1)} {rows}{more}{_values.if_shown(f' ({names})')}"


def require_pillow(what: str) -> None:
    """Say how to install Pillow where it is missing."""
    if pillow is None:
        raise MissingExtra.of(what, "Pillow", "images")


def decoded(source: Path | bytes, mode: str, size: int | None) -> Array:
    """Return a picture as (h, w, 3), or (h, w) for mode "L", turned as its camera says."""
    try:
        with pillow.open(io.BytesIO(source) if isinstance(source, bytes) else source) as picture:
            picture.load()
            upright = import_module("PIL.ImageOps").exif_transpose(picture)
            return np.asarray(_square(_in_mode(upright, mode), size))
    except FileNotFoundError:
        raise _Bad("no such file") from None
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError):
        raise _Bad("cut, or no picture") from None


def _in_mode(picture: Any, mode: str) -> Any:
    """Return the picture in a mode that loses nothing of it."""
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        whole = picture.convert("RGBA")
        if whole.getchannel("A").getextrema()[0] < 255:
            raise _Bad("transparent in places: put it on a background")
        picture = whole.convert("L" if picture.mode == "LA" else "RGB")
    if picture.mode in ("1", "L", "P", "RGB"):
        grey = picture.mode in ("1", "L")
        if mode == "L" and not grey:
            raise _Bad("in colour, where mode='L' wants grey: say mode='RGB'")
        return picture.convert(mode)
    raise _Bad(f"of the mode {picture.mode}, which is neither 8-bit grey nor RGB: convert it")


def _square(picture: Any, size: int | None) -> Any:
    if size is None:
        return picture
    width, height = picture.size
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    cut = picture.crop((left, top, left + side, top + side))
    return cut if side == size else cut.resize((size, size), pillow.Resampling.LANCZOS)
