"""Pictures: loaders, and the biased settings in which generators of images are compared."""

from evenhand.datasets.images.bias import rare_class, rotated, unknown_groups
from evenhand.datasets.images.celeba import load_celeba
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.images.mnist import load_fashion_mnist, load_mnist
from evenhand.datasets.images.utkface import load_utkface

__all__ = [
    "ImageData",
    "load_celeba",
    "load_fashion_mnist",
    "load_mnist",
    "load_utkface",
    "rare_class",
    "rotated",
    "unknown_groups",
]
