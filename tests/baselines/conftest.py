"""The same small table as the estimators' tests."""

from tests.estimators.conftest import Draws, Parts, array_api, draws, loose, parts, settings

__all__ = ["Draws", "Parts", "array_api", "draws", "loose", "parts", "settings"]
