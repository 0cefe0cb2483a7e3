"""Tables: loaders, splits, and encoders that read public rows only."""

from evenhand.datasets.adult import load_adult
from evenhand.datasets.dataset import Dataset, Split
from evenhand.datasets.encoder import PublicEncoder, Scale
from evenhand.datasets.schema import ColumnSchema, Schema
from evenhand.datasets.sources import DataNotAvailable, DatasetInfo, available, fetch
from evenhand.datasets.table import Table

__all__ = [
    "ColumnSchema",
    "DataNotAvailable",
    "Dataset",
    "DatasetInfo",
    "PublicEncoder",
    "Scale",
    "Schema",
    "Split",
    "Table",
    "available",
    "fetch",
    "load_adult",
]
