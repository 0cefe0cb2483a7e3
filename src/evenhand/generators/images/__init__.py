"""Synthetic pictures that are differentially private and balanced between groups."""

from evenhand.generators.images.base import COUNTS, ImageSample, ImageSynthesizer
from evenhand.generators.images.codec import EncodedImages, ImageCodec
from evenhand.generators.images.loading import IMAGE_METHODS, load_image_synthesizer
from evenhand.generators.images.mean_embedding import MeanEmbeddingImages

__all__ = [
    "COUNTS",
    "IMAGE_METHODS",
    "EncodedImages",
    "ImageCodec",
    "ImageSample",
    "ImageSynthesizer",
    "MeanEmbeddingImages",
    "load_image_synthesizer",
]
