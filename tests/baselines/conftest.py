"""The same small table as the estimators' tests."""

from tests.estimators.conftest import Parts, array_api, loose, parts, settings

__all__ = ["Parts", "array_api", "loose", "parts", "settings"]
