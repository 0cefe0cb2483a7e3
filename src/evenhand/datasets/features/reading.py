"""How the pictures of a table become rows for a classifier: which extractor, at which size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from evenhand import _checks
from evenhand.datasets import places
from evenhand.datasets.features.derived import JoinedFeatures
from evenhand.datasets.features.extraction import Features, extract
from evenhand.datasets.features.extractor import FeatureExtractor, digest_of_file
from evenhand.datasets.features.imagenet_networks import DenseNet121, ResNet50
from evenhand.datasets.features.networks import OnnxFeatures
from evenhand.datasets.features.words import (
    DEFAULT,
    EXTRACTORS,
    JOINED_BY,
    NONE,
    WEIGHTS,
    file_in,
    parts_of,
    with_file,
)
from evenhand.datasets.images.files import MODES, PictureFiles
from evenhand.datasets.images.manifest import Manifest, look_at_all
from evenhand.typing import Array

Progress = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``."""

NETWORKS: Final = dict(zip(WEIGHTS, (ResNet50, DenseNet121), strict=True))


@dataclass(frozen=True, kw_only=True)
class PictureReading:
    """What is done with the pictures that tables list, before anything is learnt."""

    extractor: str = DEFAULT
    """A word of ``EXTRACTORS``; a file of ONNX; ``resnet50=FILE`` or ``densenet121=FILE`` with
    weights of that network; several of these, joined by "+", one of them in a file at most; or
    "none", for learners that read pixels.
    """
    size: int | None = None
    """Height and width: the middle square is cut out and resized. Default: as they are."""
    mode: str = "RGB"
    """Colour, or grey. One of "RGB", "L"."""
    features: str | None = None
    """Folder where features are kept, see ``extract``; "none" keeps none. Default: the user's
    cache.
    """
    trained_on: str = ""
    licence: str = ""
    """``trained_on`` and ``licence``: of a network in a file, for the claim."""
    mean: tuple[float, ...] = (0.0,)
    sd: tuple[float, ...] = (1.0,)
    """``mean`` and ``sd``: of a network in a file of ONNX: it takes ``(pixel - mean) / sd`` of
    pixels in [0, 1].
    """

    def __post_init__(self) -> None:
        for part in fields(self):
            kind = {"size": int, "mean": tuple, "sd": tuple}.get(part.name, str)
            value = getattr(self, part.name)
            if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
                raise TypeError(f"{part.name} of pictures must be {kind.__name__}, got {value!r}.")
        self._check_extractor()
        _checks.one_of("mode", self.mode, MODES)
        if self.size is not None:
            _checks.at_least("size", self.size, 1)
        for value in self.sd:
            _checks.positive("sd", value)

    def _check_extractor(self) -> None:
        parts = parts_of(self.extractor)
        unknown = [part for part in parts if part not in EXTRACTORS and file_in(part) is None]
        if unknown and self.extractor != NONE:
            raise ValueError(
                f"extractor must be one of {', '.join(EXTRACTORS)}, a file that ends in .onnx, "
                f"{' or '.join(f'{word}=FILE' for word in WEIGHTS)} with weights of that network, "
                f"several joined by {JOINED_BY}, or none for learners that read pixels, got "
                f"{self.extractor!r}.{_checks.did_you_mean(unknown[0], (*EXTRACTORS, NONE))}"
            )
        in_files = [part for part in parts if file_in(part) is not None]
        if len(set(parts)) < len(parts) or len(in_files) > 1:
            raise ValueError(
                f"extractor joins different networks, one of them in a file at most, got "
                f"{self.extractor!r}. Leave one of them out, or join more in Python: "
                f"JoinedFeatures.of(...) of evenhand.datasets.features.derived."
            )
        if not in_files:
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
        if (self.mean, self.sd) != ((0.0,), (1.0,)) and not self.is_onnx:
            raise ValueError(
                f"mean and sd are said of a network in a file of ONNX, and {self.extractor!r} has "
                f"its own. Leave them out."
            )

    @property
    def file(self) -> Path | None:
        """The file of a network of the user's own; None without one."""
        found = (file_in(part) for part in parts_of(self.extractor))
        return next((Path(file) for file in found if file is not None), None)

    @property
    def is_onnx(self) -> bool:
        """Whether a network of the user's own is one of ONNX."""
        return any(part == file_in(part) for part in parts_of(self.extractor))

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
        file, word, known = self.file, self.extractor, ""
        if file is not None:
            word = with_file(word, file.name)
            known = digest_of_file(file) if file.is_file() else ""
        return [word, known, self.size, self.mode, list(self.mean), list(self.sd)]

    def opened(self) -> FeatureExtractor:
        """Read the extractor.

        Raises
        ------
        MissingExtra, FileNotFoundError, ValueError
            If it is not installed, not there, or no network.
        """
        opened = [self._opened(part) for part in parts_of(self.extractor)]
        return opened[0] if len(opened) == 1 else JoinedFeatures.of(*opened)

    def _opened(self, part: str) -> FeatureExtractor:
        file = file_in(part)
        if file is None:
            return EXTRACTORS[part][1]()
        said: dict[str, Any] = {"trained_on": self.trained_on, "licence": self.licence}
        word = part.partition("=")[0]
        if word in WEIGHTS:
            return NETWORKS[word].load(file, **said)
        return OnnxFeatures.load(file, mean=self.mean, sd=self.sd, **said)

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
