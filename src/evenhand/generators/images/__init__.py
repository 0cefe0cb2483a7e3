"""Synthetic pictures that are differentially private and balanced between groups."""

from evenhand.generators.images.base import COUNTS, ImageSample, ImageSynthesizer
from evenhand.generators.images.classifiers import IMAGE_MODELS
from evenhand.generators.images.codec import EncodedImages, ImageCodec
from evenhand.generators.images.datalens import DataLensImages
from evenhand.generators.images.dp_wgan import DPWGANImages
from evenhand.generators.images.evaluation import ImageEvaluation, Judged, evaluate_images
from evenhand.generators.images.frechet import (
    Distance,
    EfficientNetLite0,
    Extractor,
    frechet_distance,
    kernel_distance,
)
from evenhand.generators.images.g_pate import GPATEImages
from evenhand.generators.images.gs_wgan import GSWGANImages
from evenhand.generators.images.loading import IMAGE_METHODS, load_image_synthesizer
from evenhand.generators.images.mean_embedding import MeanEmbeddingImages
from evenhand.generators.images.plain_gan import PlainGANImages
from evenhand.generators.images.predicted_groups import GroupReference
from evenhand.generators.images.teacher_gan import TeacherGANImages

__all__ = [
    "COUNTS",
    "IMAGE_METHODS",
    "IMAGE_MODELS",
    "DPWGANImages",
    "DataLensImages",
    "Distance",
    "EfficientNetLite0",
    "EncodedImages",
    "Extractor",
    "GPATEImages",
    "GSWGANImages",
    "GroupReference",
    "ImageCodec",
    "ImageEvaluation",
    "ImageSample",
    "ImageSynthesizer",
    "Judged",
    "MeanEmbeddingImages",
    "PlainGANImages",
    "TeacherGANImages",
    "evaluate_images",
    "frechet_distance",
    "kernel_distance",
    "load_image_synthesizer",
]
