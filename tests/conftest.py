"""One thread per process, no test against the clock, and the built-in data sets."""

import functools
import os
from collections.abc import Callable

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # before NumPy is loaded: small matrices, many tests

import pytest  # noqa: E402 - the threads must be set first
from hypothesis import settings  # noqa: E402 - as above

from evenhand import datasets  # noqa: E402 - as above

settings.register_profile("evenhand", deadline=None)  # a busy machine is no error
settings.load_profile("evenhand")

LOADERS: dict[str, Callable[..., datasets.Dataset]] = {
    "acs-income": datasets.load_acs_income,
    "adult": datasets.load_adult,
    "bank": datasets.load_bank,
    "credit-default": datasets.load_credit_default,
    "german": datasets.load_german,
    "parkinsons": datasets.load_parkinsons,
}
load = functools.cache(lambda name, **options: LOADERS[name](**options))


@functools.cache
def missing(name: str) -> str:
    """Why a data set cannot be had, once per process; empty where it can."""
    try:
        load(name)
    except datasets.DataNotAvailable as error:
        return str(error)
    return ""


@pytest.fixture
def real_data() -> Callable[..., datasets.Dataset]:
    """Return ``real_data("adult")``: the data set through its loader, or a skip that says why.

    Mark the tests that use it with ``pytest.mark.data``.
    """

    def get(name: str, **options: object) -> datasets.Dataset:
        if why := missing(name):
            pytest.skip(why)
        return load(name, **options)

    return get
