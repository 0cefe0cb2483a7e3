"""Synthetic pictures that are differentially private and balanced between groups."""

from evenhand.generators.images.datalens import DataLensImages
from evenhand.generators.images.dp_wgan import DPWGANImages
from evenhand.generators.images.g_pate import GPATEImages
from evenhand.generators.images.mean_embedding import MeanEmbeddingImages
from evenhand.generators.images.plain_gan import PlainGANImages
from evenhand.generators.images.predicted_groups import ClusterReference, GroupReference
from evenhand.generators.images.teacher_gan import GSWGANImages, TeacherGANImages

__all__ = [
    "ClusterReference",
    "DPWGANImages",
    "DataLensImages",
    "GPATEImages",
    "GSWGANImages",
    "GroupReference",
    "MeanEmbeddingImages",
    "PlainGANImages",
    "TeacherGANImages",
]
