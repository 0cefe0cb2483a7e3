"""dlib's face descriptor: 128 numbers of an aligned face, by a network that tells people apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from evenhand._extras import MissingExtra, installed
from evenhand.datasets.features.extractor import Float32Array, NetworkExtractor, digest_of_file
from evenhand.typing import Array

SIDE: Final = 150
MODEL: Final = "dlib_face_recognition_resnet_model_v1.dat"
_NEEDED: Final = ("dlib", "face_recognition_models")


@dataclass(frozen=True, kw_only=True, eq=False)
class DlibFace(NetworkExtractor):
    """The descriptor of a face that is already aligned and cropped: 128 numbers.

    Pictures are resized to 150 x 150; about 10 a second on one core. No face is looked for, so a
    picture of something else has numbers too. Needs the extra ``faces``; nothing is downloaded at
    run time. Make it with ``DlibFace.load()``.

    Notes
    -----
    A part of its training pictures was collected on the web, as public sets of faces were: whether
    some are the same is not known.
    """

    batch: ClassVar[int] = 1
    network: Any = field(repr=False)

    @classmethod
    def load(cls) -> DlibFace:
        """Read the weights that the extra installed."""
        if not all(map(installed, _NEEDED)):
            raise MissingExtra.of("DlibFace", "dlib and its models", "faces")
        # Importing the package of models needs pkg_resources, which setuptools no longer has.
        spec = find_spec(_NEEDED[1])
        assert spec is not None
        assert spec.origin is not None
        weights = Path(spec.origin).parent / "models" / MODEL
        return cls(
            name="dlib face descriptor",
            version=version("face-recognition-models"),
            dimension=128,
            trained_on="3 million faces of 7,485 people (FaceScrub, VGG Face, and the web)",
            licence="public domain (CC0)",
            weights=digest_of_file(weights),
            shape=(3, SIDE, SIDE),
            network=import_module(_NEEDED[0]).face_recognition_model_v1(str(weights)),
        )

    def run(self, inputs: Float32Array) -> Array:
        """Return the descriptor of a face."""
        pixels = np.rint(inputs[0] * 255.0).astype(np.uint8).transpose(1, 2, 0)
        face = np.ascontiguousarray(pixels)
        return np.array(self.network.compute_face_descriptor(face))[None]
