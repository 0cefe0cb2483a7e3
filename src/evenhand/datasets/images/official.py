"""Pictures in the layout in which their owners publish them: what is needed, and where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._checks import one_of
from evenhand.datasets.columns import some
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.images.files import listed_files
from evenhand.typing import Array

Progress = Callable[[int, int], None] | None


@dataclass(frozen=True, kw_only=True)
class OfficialSet:
    """A set of pictures that nobody may pass on: its owners' page, and what lies in its folder."""

    name: str
    title: str
    """``name`` and ``title``: of the data set, and for messages."""
    page: str
    """Where its owners give it away."""

    def file(self, folder: str | Path, *names: str) -> tuple[Path, ...]:
        """Return files or folders of these names in a folder.

        Raises
        ------
        FileNotFoundError
            If one is not there; the message has the page.
        """
        root = Path(folder)
        for name in names:
            if not (root / name).exists():
                raise FileNotFoundError(
                    f"{root} has no {name}. {self.title} is read as its owners publish it, from a "
                    f"folder with {' and '.join(names)}: {self.page}"
                )
        return tuple(root / name for name in names)

    def table(self, path: Path, columns: Iterable[str]) -> pd.DataFrame:
        """Return a list of pictures, with all values as text, if it has these columns."""
        found = pd.read_csv(path, dtype=str, keep_default_na=False)
        gone = [name for name in columns if name not in found]
        if gone:
            raise ValueError(
                f"{path} is not the official list of {self.title}: it has no column {some(gone)}. "
                f"Get it again: {self.page}"
            )
        return found

    def choose(self, label: str, sensitive: str, known: Iterable[str]) -> None:
        """Check that label and sensitive attribute are two of the known ones."""
        names = list(known)
        for role, name in (("label", label), ("sensitive", sensitive)):
            one_of(role, name, names)
        if label == sensitive:
            raise ValueError(f"label and sensitive are both {label!r}. Choose two attributes.")

    def data(
        self,
        root: Path,
        names: Sequence[str],
        y: Array,
        groups: Array,
        *,
        size: int | None,
        mode: str = "RGB",
        units: Any = None,
        progress: Progress = None,
    ) -> ImageData:
        """Look at every listed picture once, and return all, decoded as they are read.

        Raises
        ------
        FileNotFoundError
            If pictures of the list are missing.
        UnreadableImages
            If some cannot be used; all are named.
        """
        gone = [name for name in names if not (root / name).is_file()]
        if gone:
            raise FileNotFoundError(
                f"{len(gone)} of {len(names)} pictures of the list are not in {root}: "
                f"{some(gone)}. {self.title} is published here: {self.page}"
            )
        files, digests = listed_files(
            root, names, size=size, mode=mode, where=self.title, quoted=True, progress=progress
        )
        return ImageData(
            images=files,
            y=y,
            sensitive_features=groups,
            name=self.name,
            units=digests if units is None else units,
        )
