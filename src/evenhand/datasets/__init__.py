"""Tables: loaders, splits, and encoders that read public rows only."""

from evenhand.datasets.acs_income import load_acs_income
from evenhand.datasets.adult import load_adult
from evenhand.datasets.bank import load_bank
from evenhand.datasets.credit_default import load_credit_default
from evenhand.datasets.dataset import Dataset
from evenhand.datasets.encoder import PublicEncoder
from evenhand.datasets.files import read_table
from evenhand.datasets.german import load_german
from evenhand.datasets.inspection import inspect
from evenhand.datasets.parkinsons import load_parkinsons
from evenhand.datasets.schema import Schema
from evenhand.datasets.sources import DataNotAvailable, available, fetch

__all__ = [
    "DataNotAvailable",
    "Dataset",
    "PublicEncoder",
    "Schema",
    "available",
    "fetch",
    "inspect",
    "load_acs_income",
    "load_adult",
    "load_bank",
    "load_credit_default",
    "load_german",
    "load_parkinsons",
    "read_table",
]
