"""Tables that list pictures in files: what a row names, before any file is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from evenhand._checks import did_you_mean
from evenhand.datasets.columns import some
from evenhand.datasets.images.files import PictureFiles, UnreadableImages, listed_files
from evenhand.typing import Array

PATH: Final = "path"
"""The column that names a file of each row, relative to the folder of the table."""

ENDINGS: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


@dataclass(frozen=True, kw_only=True, eq=False)
class Manifest:
    """The pictures that a table lists, one a row."""

    folder: Path
    """That of the table; no picture may lie outside."""
    names: tuple[str | None, ...]
    """As they stand in the column ``path``; None where there is none."""
    where: str
    """What messages call the table."""

    @classmethod
    def of(cls, frame: pd.DataFrame, path: str | Path) -> Manifest:
        """Take the column ``path`` of the table that was read from a file.

        Raises
        ------
        ValueError
            If there is no such column.
        """
        if PATH not in frame:
            columns = [str(name) for name in frame.columns]
            hint = did_you_mean(PATH, columns)
            raise ValueError(
                f"{path} needs a column 'path' with files of pictures, relative to its own folder; "
                f"its columns: {some(columns)}.{hint}"
            )
        names = tuple(None if pd.isna(name) else str(name) for name in frame[PATH])
        return cls(folder=Path(path).parent, names=names, where=str(path))

    def __len__(self) -> int:
        return len(self.names)

    def look(
        self,
        *,
        size: int | None,
        mode: str,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[PictureFiles, Array]:
        """Look at every file once; return them, and the digest of each file's content."""
        return listed_files(
            self.folder, self.names, size=size, mode=mode, where=self.where, progress=progress
        )


def look_at_all(
    manifests: Sequence[Manifest],
    *,
    size: int | None,
    mode: str,
    side: tuple[int, int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[PictureFiles]:
    """Look at every file of several tables, whose pictures must have one size.

    Parameters
    ----------
    manifests : sequence of Manifest
    size, mode
        See ``ImageData.from_csv``.
    side : tuple of int, optional
        Height and width that they must have. Default: those of the first table.
    progress : callable, optional
        Called as ``progress(done, total)``, over all tables.

    Raises
    ------
    UnreadableImages
        For all bad files of all tables at once.
    """
    total = sum(map(len, manifests))
    found: list[PictureFiles] = []
    bad: list[str] = []
    before = 0
    for manifest in manifests:
        try:
            files, _ = manifest.look(size=size, mode=mode, progress=_from(before, total, progress))
        except UnreadableImages as error:
            bad.append(str(error))
        else:
            found.append(files)
            if side is None:
                side = files.side
            if files.side != side:
                bad.append(
                    f"The pictures of {manifest.where} are {files.side[0]} x {files.side[1]}, and "
                    f"those of {'training' if not found[:-1] else 'the first table'} are "
                    f"{side[0]} x {side[1]}. Resize all of them by size={side[0]} (--size "
                    f"{side[0]}), which also cuts out the middle square."
                )
        before += len(manifest)
    if bad:
        raise UnreadableImages(" ".join(bad))
    return found


def lists_pictures(frame: pd.DataFrame) -> str | None:
    """Return a column that names files of pictures in most of its first rows, if there is one."""
    for name in frame.columns:
        values = [v for v in frame[name].head(50).tolist() if isinstance(v, str)]
        pictures = [v for v in values if v.lower().endswith(ENDINGS)]
        if pictures and 2 * len(pictures) > len(values):
            return str(name)
    return None


def _from(
    before: int, total: int, progress: Callable[[int, int], None] | None
) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)
