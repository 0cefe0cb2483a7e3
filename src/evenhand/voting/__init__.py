"""From votes to answers: counts in, labels or refusals out."""

from evenhand.voting.aggregator import aggregate
from evenhand.voting.answers import Answers, Reason
from evenhand.voting.shares import Shares
from evenhand.voting.votes import Votes

__all__ = [
    "Answers",
    "Reason",
    "Shares",
    "Votes",
    "aggregate",
]
