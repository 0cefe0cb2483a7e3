"""Pictures: loaders, and their split; the biased settings of generators are in ``bias``."""

from evenhand.datasets.images.celeba import load_celeba
from evenhand.datasets.images.chexpert import load_chexpert
from evenhand.datasets.images.data import ImageData
from evenhand.datasets.images.fairface import load_fairface
from evenhand.datasets.images.mnist import load_color_mnist, load_fashion_mnist, load_mnist
from evenhand.datasets.images.utkface import load_utkface

__all__ = [
    "ImageData",
    "load_celeba",
    "load_chexpert",
    "load_color_mnist",
    "load_fairface",
    "load_fashion_mnist",
    "load_mnist",
    "load_utkface",
]
