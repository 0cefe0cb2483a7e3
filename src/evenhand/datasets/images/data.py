"""ImageData: pictures with a label and a group each, and their split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand import _checks
from evenhand.datasets.dataset import Dataset
from evenhand.datasets.files import read_table
from evenhand.datasets.images.arrays import IMAGES, read_arrays
from evenhand.datasets.images.files import PictureFiles
from evenhand.datasets.images.manifest import Manifest
from evenhand.datasets.split import Split, rows_of_split
from evenhand.typing import Array, RandomState


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageData:
    """Pictures, labels and groups.

    Parameters
    ----------
    images : ndarray, shape (n, h, w) or (n, h, w, 3), or PictureFiles
        uint8, or float32 in [0, 1]. Files are decoded where rows are taken, and never all at once
        unless ``decoded()`` is asked for.
    y : ndarray, shape (n,), or None
        Labels. None where they are not known, as in the public part of a split.
    sensitive_features : ndarray (n,), DataFrame or None
        Groups, where they are known.
    name : str
    units : ndarray, shape (n,), optional
        What stays together in a split: a person's id, or the digest of a file of which there are
        copies.
    """

    images: Any
    y: Any
    sensitive_features: Array | pd.DataFrame | None
    name: str
    units: Array | None = None

    def __post_init__(self) -> None:
        shape, kind = self.images.shape, self.images.dtype
        known = kind in (np.uint8, np.float32)
        if not known or len(shape) not in (3, 4) or shape[3:] not in ((), (3,)):
            raise ValueError(
                f"images must be uint8 of shape (n, h, w) or (n, h, w, 3), or float32 in [0, 1], "
                f"got {kind} of shape {shape}."
            )
        beside = {"y": self.y, "sensitive_features": self.sensitive_features, "units": self.units}
        _checks.same_length(
            images=self.images, **{k: v for k, v in beside.items() if v is not None}
        )

    @classmethod
    def of(
        cls,
        X: Array,
        y: Array,
        sensitive_features: Array | pd.DataFrame | None = None,
        *,
        name: str = "pictures",
        units: Array | None = None,
    ) -> ImageData:
        """Make it of an array whose channels come first: (n, c, h, w), with 1 or 3 of them."""
        X = np.asarray(X)
        if X.ndim != 4 or X.shape[1] not in (1, 3):
            raise ValueError(
                f"X must have shape (n, c, h, w) with 1 or 3 channels, got {X.shape}. Where they "
                f"come last, write ImageData(images=X, ...)."
            )
        images = X[:, 0] if X.shape[1] == 1 else np.moveaxis(X, 1, -1)
        return cls(
            images=images, y=y, sensitive_features=sensitive_features, name=name, units=units
        )

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        label: str = "label",
        sensitive: str | Sequence[str] = "group",
        unit: str | None = None,
        size: int | None = None,
        mode: str = "RGB",
        progress: Callable[[int, int], None] | None = None,
    ) -> ImageData:
        """Make it of a table with a column ``path``, and one each for label and group.

        Every file is decoded once to see that it can be, and none is kept: ``images`` decodes rows
        as they are read.

        Parameters
        ----------
        path : path
            Such as PICTURES.csv. Paths in it are relative to its folder, and stay within it.
        label, sensitive : str
            Names of the columns; several of the sensitive attribute are allowed.
        unit : str, optional
            Column that says whose picture it is. Default: copies of one file are kept together.
        size : int, optional
            Height and width; the middle square is cut out and resized. Default: all pictures have
            one size already.
        mode : {"RGB", "L"}
            Colour, or grey.
        progress : callable, optional
            Called as ``progress(done, total)``.

        Raises
        ------
        UnreadableImages
            For all bad files at once, by their rows: missing, outside the folder, cut, of a mode
            that would lose something, of another size.
        ValueError
            For what is wrong with the table: see ``Dataset.from_frame``.
        """
        path = Path(path)
        frame = read_table(path)
        listed = Manifest.of(frame, path)
        table = Dataset.from_frame(
            frame, label=label, sensitive=sensitive, unit=unit, name=path.stem
        )
        files, digests = listed.look(size=size, mode=mode, progress=progress)
        groups = table.groups
        return cls(
            images=files,
            y=table.y.to_numpy(),
            sensitive_features=groups if isinstance(groups, pd.DataFrame) else groups.to_numpy(),
            name=path.stem,
            units=digests if table.units is None else table.units.to_numpy(),
        )

    @classmethod
    def from_npz(
        cls,
        path: str | Path,
        *,
        label: str | None = "label",
        sensitive: str | Sequence[str] = "group",
        unit: str | None = None,
    ) -> ImageData:
        """Make it of a file of arrays: ``images``, and one each for label, group and unit.

        Parameters
        ----------
        path : path
            As ``numpy.savez`` wrote it; objects are not read, for they could run code.
        label, sensitive, unit : str, optional
            Names of the arrays; several of the sensitive attribute are allowed.

        Raises
        ------
        FileNotFoundError, ValueError
            If there is no such file or array, or it does not hold pictures.
        """
        named = [sensitive] if isinstance(sensitive, str) else list(sensitive)
        beside = [name for name in (label, *named, unit) if name is not None]
        held = read_arrays(path, [IMAGES, *beside])
        try:
            return cls(
                images=held[IMAGES],
                y=None if label is None else held[label],
                sensitive_features=pd.DataFrame({name: held[name] for name in named}),
                name=Path(path).stem,
                units=None if unit is None else held[unit],
            )
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error

    def __len__(self) -> int:
        return len(self.images)

    @property
    def X(self) -> Any:
        """The pictures with channels first, (n, c, h, w): a view, or files decoded so."""
        if isinstance(self.images, PictureFiles):
            return self.images.channels_in_front()
        return self.images[:, None] if self.images.ndim == 3 else np.moveaxis(self.images, -1, 1)

    def decoded(self) -> ImageData:
        """Return the same with all pictures in memory."""
        return replace(self, images=np.asarray(self.images))

    def take(self, rows: Any) -> ImageData:
        """Return some of the pictures: positions, or a mask."""
        groups = self.sensitive_features
        if isinstance(groups, pd.DataFrame):
            groups = groups.iloc[np.arange(len(self))[rows]].reset_index(drop=True)
        elif groups is not None:
            groups = groups[rows]
        lazy = isinstance(self.images, PictureFiles)
        return replace(
            self,
            images=self.images.take(rows) if lazy else self.images[rows],
            y=None if self.y is None else self.y[rows],
            sensitive_features=groups,
            units=None if self.units is None else self.units[rows],
        )

    def split(
        self, *, public: float = 0.2, test: float = 0.25, random_state: RandomState = 0
    ) -> Split[ImageData]:
        """Deal the pictures into private, public (``y`` is None) and test, as ``Dataset.split``.

        Parameters
        ----------
        public : float
            Part of the training pictures that is public, in [0, 1).
        test : float
            Part of all pictures that is kept for the test, in [0, 1).
        random_state : int, Generator or None

        Notes
        -----
        Nothing is stratified. With ``units`` all pictures of one stay on one side, and the
        fractions are met on average.
        """
        rows = rows_of_split(
            len(self),
            units=self.units,
            noun="unit",
            public=public,
            test=test,
            random_state=random_state,
        )
        return Split(
            private=self.take(rows.private),
            public=replace(self.take(rows.public), y=None),
            test=self.take(rows.test),
        )

    def pooled(self, factor: int = 2) -> ImageData:
        """Return smaller pictures: the mean of every ``factor`` by ``factor`` pixels.

        Bytes are rounded. MNIST becomes 14 x 14 with ``factor=2``.
        """
        _checks.at_least("factor", factor, 1)
        n, height, width = self.images.shape[:3]
        if height % factor or width % factor:
            raise ValueError(
                f"Pictures of {height} x {width} cannot be cut into squares of {factor} pixels. "
                f"Choose a factor that divides both."
            )
        whole = np.asarray(self.images)
        tiles = whole.reshape(n, height // factor, factor, width // factor, factor, -1)
        small = tiles.mean(axis=(2, 4))
        small = np.rint(small).astype(np.uint8) if whole.dtype == np.uint8 else small
        return replace(self, images=small[..., 0] if whole.ndim == 3 else small)
