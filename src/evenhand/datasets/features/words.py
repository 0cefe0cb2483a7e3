"""What is typed for an extractor: a word, a network in a file, or several of them joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from evenhand.datasets.features.derived import AND
from evenhand.datasets.features.dlib_face import DlibFace
from evenhand.datasets.features.efficientnet import EfficientNetLite0
from evenhand.datasets.features.extractor import ExtractorRecord, FeatureExtractor

NONE: Final = "none"
ONNX: Final = ".onnx"
DEFAULT: Final = "efficientnet-lite0"
JOINED_BY: Final = "+"

EXTRACTORS: Final[Mapping[str, tuple[str, Callable[[], FeatureExtractor]]]] = {
    "dlib-face": ("dlib face descriptor", DlibFace.load),
    DEFAULT: ("EfficientNet-Lite0", EfficientNetLite0.load),
}
"""Extractors that are installed as extras: by word, the name of each and how it is read."""

WEIGHTS: Final = ("resnet50", "densenet121")
"""Networks that are here without their weights: ``resnet50=FILE``."""


def parts_of(word: str) -> tuple[str, ...]:
    """Return the extractors that a word joins.

    Examples
    --------
    >>> parts_of("dlib-face+efficientnet-lite0"), parts_of("a+b.onnx")
    (('dlib-face', 'efficientnet-lite0'), ('a+b.onnx',))
    """
    parts = tuple(word.split(JOINED_BY))
    known = (part in EXTRACTORS or file_in(part) is not None for part in parts)
    return parts if all(known) else (word,)


def file_in(part: str) -> str | None:
    """Return the file of one extractor; None of one that is installed.

    Examples
    --------
    >>> file_in("resnet50=mine.pth"), file_in("mine.onnx"), file_in("dlib-face")
    ('mine.pth', 'mine.onnx', None)
    """
    network, _, file = part.partition("=")
    if network in WEIGHTS and file:
        return file
    return part if part.lower().endswith(ONNX) else None


def with_file(word: str, file: str) -> str:
    """Return the word with another name for the file that it names.

    Examples
    --------
    >>> with_file("dlib-face+resnet50=old.pth", "new.pth"), with_file("dlib-face", "new.pth")
    ('dlib-face+resnet50=new.pth', 'dlib-face')
    """

    def named(part: str) -> str:
        if file_in(part) is None:
            return part
        network = part.partition("=")[0]
        return f"{network}={file}" if network in WEIGHTS else file

    return JOINED_BY.join(map(named, parts_of(word)))


def word_of(record: ExtractorRecord) -> str | None:
    """Return the word of the extractor that a record is about; None of one in a file."""
    words = {name: word for word, (name, _) in EXTRACTORS.items()}
    named = [words.get(name) for name in record.name.split(AND)]
    return None if None in named else JOINED_BY.join(map(str, named))
