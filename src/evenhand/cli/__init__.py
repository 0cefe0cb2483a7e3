"""The command line: ``evenhand train PRIVATE.csv --public PUBLIC.csv ...``."""

from evenhand.cli.app import app
from evenhand.cli.app import main as main  # what the console script calls: no name for Python users

__all__ = ["app"]
