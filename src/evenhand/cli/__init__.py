"""The command line: ``evenhand train PRIVATE.csv --public PUBLIC.csv ...``."""

from evenhand.cli.app import app, main

__all__ = ["app", "main"]
