"""From votes to answers: counts in, labels or refusals out."""

from evenhand.voting.aggregator import Mechanism, aggregate, stages
from evenhand.voting.answers import Answers, Reason
from evenhand.voting.queue import QueryQueue
from evenhand.voting.shares import Shares, release_shares
from evenhand.voting.votes import Votes

__all__ = [
    "Answers",
    "Mechanism",
    "QueryQueue",
    "Reason",
    "Shares",
    "Votes",
    "aggregate",
    "release_shares",
    "stages",
]
