"""The whole trade-off of privacy, fairness, accuracy and coverage, and a page to choose on."""

from evenhand.frontier.run import OBJECTIVES, Plain, Run, Setting

__all__ = ["OBJECTIVES", "Plain", "Run", "Setting"]
