"""Synthetic pictures that are differentially private and balanced between groups."""

from evenhand.generators.images.all_teachers import TeacherGANImages
from evenhand.generators.images.base import COUNTS, ImageSample, ImageSynthesizer
from evenhand.generators.images.codec import EncodedImages, ImageCodec
from evenhand.generators.images.datalens import DataLensImages
from evenhand.generators.images.g_pate import GPATEImages
from evenhand.generators.images.gs_wgan import GSWGANImages
from evenhand.generators.images.loading import IMAGE_METHODS, load_image_synthesizer
from evenhand.generators.images.mean_embedding import MeanEmbeddingImages

__all__ = [
    "COUNTS",
    "IMAGE_METHODS",
    "DataLensImages",
    "EncodedImages",
    "GPATEImages",
    "GSWGANImages",
    "ImageCodec",
    "ImageSample",
    "ImageSynthesizer",
    "MeanEmbeddingImages",
    "TeacherGANImages",
    "load_image_synthesizer",
]
