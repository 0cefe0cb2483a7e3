"""Estimators as a notebook shows them: scikit-learn's page, from docstrings that it can read."""

from __future__ import annotations

import inspect
import re
from typing import Any

from sklearn.base import BaseEstimator

_PRIVACY = re.compile(r"^Privacy\n-+\n(?:(?!^[^\n]+\n-+\n).*\n?)*", re.MULTILINE)


class Shown(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """An estimator whose docstring may have a section *Privacy*.

    scikit-learn reads the docstring for what it shows beside each parameter, and warns once for
    every section that numpydoc does not have.
    """

    def _get_params_html(self, *given: Any, **named: Any) -> Any:
        return _readable(super()._get_params_html(*given, **named))

    def _get_fitted_attr_html(self, *given: Any, **named: Any) -> Any:
        return _readable(super()._get_fitted_attr_html(*given, **named))


def _readable(table: Any) -> Any:
    """Give a table of parameters or attributes a class to read that has no section of its own."""
    kind = table.estimator_class
    said = _PRIVACY.sub("", inspect.getdoc(kind) or "")
    table.estimator_class = type(kind.__name__, (), {"__doc__": said})
    return table
