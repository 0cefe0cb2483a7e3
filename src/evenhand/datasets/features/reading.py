"""How the pictures of a table become rows for a classifier: which extractor, at which size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand.datasets import places
from evenhand.datasets.features.dlib_face import DlibFace
from evenhand.datasets.features.efficientnet import EfficientNetLite0
from evenhand.datasets.features.extraction import Features, extract
from evenhand.datasets.features.extractor import (
    ExtractorRecord,
    FeatureExtractor,
    digest_of_file,
)
from evenhand.datasets.features.networks import OnnxFeatures
from evenhand.datasets.images.files import MODES, PictureFiles
from evenhand.datasets.images.manifest import Manifest, look_at_all
from evenhand.typing import Array

Progress = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``."""

NONE: Final = "none"
ONNX: Final = ".onnx"
DEFAULT: Final = "efficientnet-lite0"
EXTRACTORS: Final[Mapping[str, tuple[str, Callable[[], FeatureExtractor]]]] = {
    "dlib-face": ("dlib face descriptor", DlibFace.load),
    DEFAULT: ("EfficientNet-Lite0", EfficientNetLite0.load),
}
"""Extractors that are installed as extras: by word, the name of each and how it is read."""


@dataclass(frozen=True, kw_only=True)
class PictureReading:
    """What is done with the pictures that tables list, before anything is learnt.

    Parameters
    ----------
    extractor : str
        A word of ``EXTRACTORS``; a file of ONNX; or "none", for learners that read pixels.
    size : int, optional
        Height and width: the middle square is cut out and resized. Default: as they are.
    mode : {"RGB", "L"}
        Colour, or grey.
    features : str, optional
        Folder where features are kept, see ``extract``; "none" keeps none. Default: the user's
        cache.
    trained_on, licence : str
        Of a network in a file, for the claim.
    mean, sd : tuple of float
        Of a network in a file: it takes ``(pixel - mean) / sd`` of pixels in [0, 1].
    """

    extractor: str = DEFAULT
    size: int | None = None
    mode: str = "RGB"
    features: str | None = None
    trained_on: str = ""
    licence: str = ""
    mean: tuple[float, ...] = (0.0,)
    sd: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        for part in fields(self):
            kind = {"size": int, "mean": tuple, "sd": tuple}.get(part.name, str)
            value = getattr(self, part.name)
            if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
                raise TypeError(f"{part.name} of pictures must be {kind.__name__}, got {value!r}.")
        if not self.in_a_file:
            if self.extractor != NONE and self.extractor not in EXTRACTORS:
                raise ValueError(
                    f"extractor must be one of {', '.join(EXTRACTORS)}, a file that ends in "
                    f"{ONNX}, or none for learners that read pixels, got {self.extractor!r}."
                    f"{_checks.did_you_mean(self.extractor, (*EXTRACTORS, NONE))}"
                )
            for name in ("trained_on", "licence"):
                if getattr(self, name):
                    raise ValueError(
                        f"{name} is said of a network in a file, and {self.extractor!r} says it "
                        f"itself. Leave it out."
                    )
        elif not (self.trained_on and self.licence):
            raise ValueError(
                f"The claim says of {self.extractor} what it was trained on and on what terms it "
                f"may be used, and only you know: --trained-on 'ImageNet' --licence 'Apache-2.0' "
                f"(trained_on=, licence=). A network that was trained on the private pictures is "
                f"not public, and makes the claim wrong."
            )
        _checks.one_of("mode", self.mode, MODES)
        if self.size is not None:
            _checks.at_least("size", self.size, 1)
        for value in self.sd:
            _checks.positive("sd", value)

    @property
    def in_a_file(self) -> bool:
        """Whether the extractor is a file of the user's own."""
        return self.extractor.lower().endswith(ONNX)

    @property
    def reads_pixels(self) -> bool:
        """Whether the rows are the pictures themselves."""
        return self.extractor == NONE

    @property
    def cache(self) -> bool | str:
        """Where features are kept, as ``extract`` takes it."""
        if self.features is None:
            return True
        return False if self.features == NONE else self.features

    @property
    def kept_in(self) -> Path | None:
        """The folder of the features; None where none are kept."""
        if self.reads_pixels or self.cache is False:
            return None
        return places.cache_folder() / "features" if self.cache is True else Path(str(self.cache))

    @property
    def fingerprint(self) -> list[Any]:
        """What is public of it and decides the rows: a file by its digest."""
        file = Path(self.extractor)
        known = digest_of_file(file) if self.in_a_file and file.is_file() else ""
        return [file.name, known, self.size, self.mode, list(self.mean), list(self.sd)]

    def opened(self) -> FeatureExtractor:
        """Read the extractor.

        Raises
        ------
        MissingExtra, FileNotFoundError, ValueError
            If it is not installed, not there, or no network.
        """
        if not self.in_a_file:
            return EXTRACTORS[self.extractor][1]()
        return OnnxFeatures.load(
            self.extractor,
            trained_on=self.trained_on,
            licence=self.licence,
            mean=self.mean,
            sd=self.sd,
        )

    def look(
        self,
        manifests: Sequence[Manifest],
        *,
        side: tuple[int, int] | None = None,
        progress: Progress | None = None,
    ) -> list[PictureFiles]:
        """Look at all pictures of some tables once; see ``look_at_all``."""
        stage = None if progress is None else lambda done, n: progress("pictures", done, n)
        return look_at_all(manifests, size=self.size, mode=self.mode, side=side, progress=stage)

    def rows(
        self,
        parts: Sequence[Any],
        *,
        extractor: FeatureExtractor | None = None,
        progress: Progress | None = None,
    ) -> list[Features | Array]:
        """Return the features of several sets of pictures, or the pixels, channels first.

        Parameters
        ----------
        parts : sequence of PictureFiles, or of arrays (n, c, h, w)
        extractor : FeatureExtractor, optional
            Where it was opened already.
        progress : callable, optional
            Over all parts.
        """
        first = [
            files.channels_in_front() if isinstance(files, PictureFiles) else files
            for files in parts
        ]
        if self.reads_pixels:
            return [np.asarray(files) for files in first]
        if extractor is None:
            extractor = self.opened()
        total, before = sum(map(len, first)), 0
        made: list[Features | Array] = []
        for files in first:

            def step(done: int, _: int, before: int = before) -> None:
                if progress is not None:
                    progress("features", before + done, total)

            made.append(extract(files, extractor, cache=self.cache, progress=step))
            before += len(files)
        return made


def word_of(record: ExtractorRecord) -> str | None:
    """Return the word of the extractor that a record tells of; None of one in a file."""
    return next((word for word, (name, _) in EXTRACTORS.items() if name == record.name), None)
