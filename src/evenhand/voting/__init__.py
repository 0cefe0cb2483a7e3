"""From votes to answers: counts in, labels or refusals out."""

from evenhand.voting.aggregator import aggregate
from evenhand.voting.answers import Answers, Reason
from evenhand.voting.lockstep import aggregate_many
from evenhand.voting.shares import Rounds, Shares, release_shares
from evenhand.voting.votes import Votes

__all__ = [
    "Answers",
    "Reason",
    "Rounds",
    "Shares",
    "Votes",
    "aggregate",
    "aggregate_many",
    "release_shares",
]
