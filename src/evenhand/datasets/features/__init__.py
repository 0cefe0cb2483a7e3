"""Public feature extractors: numbers for each picture by itself, computed once and kept."""

from evenhand.datasets.features.dlib_face import DlibFace
from evenhand.datasets.features.efficientnet import EfficientNetLite0
from evenhand.datasets.features.extraction import extract

__all__ = ["DlibFace", "EfficientNetLite0", "extract"]
