"""From votes to answers: counts in, labels or refusals out."""

from evenhand.voting.aggregator import Mechanism, aggregate, stages
from evenhand.voting.answers import Answers, Reason
from evenhand.voting.calibration import ask_calibration
from evenhand.voting.certificate import AttributeCertificate, release_certificate
from evenhand.voting.disparity import ExpectedRates, expected_rates
from evenhand.voting.group_moments import GroupMoments, release_group_moments
from evenhand.voting.lockstep import aggregate_many
from evenhand.voting.queue import QueryQueue
from evenhand.voting.shares import Rounds, Shares, release_shares
from evenhand.voting.votes import Votes

__all__ = [
    "Answers",
    "AttributeCertificate",
    "ExpectedRates",
    "GroupMoments",
    "Mechanism",
    "QueryQueue",
    "Reason",
    "Rounds",
    "Shares",
    "Votes",
    "aggregate",
    "aggregate_many",
    "ask_calibration",
    "expected_rates",
    "release_certificate",
    "release_group_moments",
    "release_shares",
    "stages",
]
